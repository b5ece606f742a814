/*
 * One call of an HTTP client as a state machine without I/O. Its owners (http/client.c with poll(), worker/api_client.c with
 * libuv) do what the state asks for and report what came of it; which address is tried and for how long, whether a call is
 * repeated, and whether the connection is kept, is decided here.
 *
 *	        start                found                 connected              reply
 *	IDLE ─┬───────▶ FIND ────────────────▶ CONNECT ───────────────▶ TALK ──────┬──────────▶ DONE
 *	      │           │                     ▲   │ ▲                  │  │      └─a stream─▶ STREAM ──closed──▶ DONE
 *	      │           └─no address──▶ DONE  │   │ └─the next address─┘  │
 *	      │                                 │   └─no address is left────┼───────────────────▶ DONE
 *	      └─over the connection that was kept───────────────────────────┘
 *	        (and from TALK back to FIND, once, if that one was closed before the server said anything)
 *
 * Servers that share a store are addresses behind one another (`next`). When one is not reached, or says that it does not lead
 * (503 not_leader), the call goes to FIND for the next one, each once. The next call begins with the server that answered last.
 *
 * The time of a call is for all of it. While there are several addresses each gets an equal share of what is left, so that
 * one that does not answer leaves time for the next.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"
#include "wire/http/answer.h"
#include "wire/http/http.h"

struct tls_trust;

/* Where a server is: https://HOST[:PORT][/PREFIX], http://… or unix:PATH. */
struct http_address {
	bool local;  /* a Unix socket */
	bool secure; /* https */
	const struct tls_trust
		*trust;   /* of `secure`: whoever connects sets it before; it outlives every client */
	char path[108];   /* of the socket */
	char host[256];   /* without brackets */
	char prefix[256]; /* before every path, without a slash at its end */
	uint16_t port;
	struct http_address
		*next; /* another server of the same store; outlives every client. NULL: there is none */
};

enum {
	HTTP_SERVERS_MAX = 16,
};

/* -EINVAL: the complaint says in what way it is no address of a server. */
int http_address_parse(const char *url, struct http_address *ret_address, const char **ret_complaint);
/* The same of several with commas between them: `next` leads through the others. Also -ENOMEM. */
int http_address_parse_all(const char *urls, struct http_address *ret_address, const char **ret_complaint);
/* Frees the others. No client may use them any more; a program that keeps its servers until it ends need not ask. */
void http_address_done(struct http_address *address);
bool http_address_is_loopback(const struct http_address *address); /* and all behind it */

struct http_call {
	enum http_method method;
	struct span target; /* path and query, encoded */
	struct span body;   /* JSON; data NULL: none */
	struct span token;
	struct span idempotency_key;
	struct span traceparent;
	struct span accept;
	struct span last_event_id;
	struct span host, origin, content_type; /* in place of the usual ones: for tests of a server */
	bool may_repeat;
	int64_t timeout_ms; /* for all of it; for a stream, until the headers are there */
};

/* The bytes of the request, instead of what is in the buffer. -EINVAL: a control byte in a header; -ENOMEM, -E2BIG. */
__attribute__((warn_unused_result)) int http_put_request(
	struct buf *out, const struct http_address *address, const struct http_call *call);

/* The Host header of that address, with its line end. */
void http_put_host(struct buf *out, const struct http_address *address);

/* How far a call that failed got. */
enum http_reach {
	HTTP_REACH_NOTHING, /* no connection: the server has not heard of it */
	HTTP_REACH_UNKNOWN, /* it was sent, and no reply came */
	HTTP_REACH_REPLY,   /* a reply came and could not be understood */
};

enum http_transfer_state {
	HTTP_TRANSFER_IDLE,    /* no call */
	HTTP_TRANSFER_FIND,    /* the owner is to find out how many addresses the server has */
	HTTP_TRANSFER_CONNECT, /* the owner is to connect to the address with the number `place` */
	HTTP_TRANSFER_TALK,    /* the owner is to send `out` and to hand in what comes */
	HTTP_TRANSFER_STREAM,  /* the call has succeeded; what comes belongs to its stream */
	HTTP_TRANSFER_DONE,    /* the call is over: `fault` */
};

struct http_transfer {
	enum http_transfer_state state;
	struct http_address address; /* of the server that is asked */
	struct http_address first;
	uint32_t servers, given_up; /* in this call */
	bool own_host;              /* the call says what its Host header is */
	struct http_answer *answer;
	struct buf out;         /* the request */
	uint32_t place, places; /* the address that is tried, of so many */
	int64_t timeout_ms;     /* of the call */
	int64_t until_ms;       /* the end of that time */
	int64_t place_until_ms; /* … and of the time for this address */
	bool over_kept; /* the connection has served a call before: the server may have closed it since */
	bool may_repeat;
	bool sent; /* something of the request may have reached the server */
	int fault; /* of the call, once it is over */
};

/* Times are those of one clock that does not jump. -ENOMEM. */
int http_transfer_init(struct http_transfer *transfer, const struct http_address *address,
	const struct http_answer_limits *limits, size_t request_bytes_max);
void http_transfer_done(struct http_transfer *transfer);

/* A new call; one that is under way is forgotten. Its bytes are copied. Faults of http_put_request(). */
__attribute__((warn_unused_result)) int http_transfer_prepare(
	struct http_transfer *transfer, const struct http_call *call);

/* Begin what was prepared. `connected`: the owner has a connection that served a call before. */
void http_transfer_start(struct http_transfer *transfer, bool connected, int64_t now_ms);

/* What the owner reports. */
void http_transfer_found(struct http_transfer *transfer, uint32_t places, int64_t now_ms);
void http_transfer_unconnected(struct http_transfer *transfer, int fault, int64_t now_ms);
void http_transfer_connected(struct http_transfer *transfer);
void http_transfer_sent(struct http_transfer *transfer); /* from now on the server may have heard of it */
void http_transfer_received(struct http_transfer *transfer, struct span bytes);

/* The connection is gone: the server closed it (0), or it broke. The owner has no connection any more. */
void http_transfer_closed(struct http_transfer *transfer, int fault);

/* The time of http_transfer_until() has come. Whatever connection is under way or open is of no use any more. */
void http_transfer_late(struct http_transfer *transfer, int64_t now_ms);

/* Something else ends the call. */
void http_transfer_fail(struct http_transfer *transfer, int fault);

/* Until when the owner may take for what the state asks for. */
int64_t http_transfer_until(const struct http_transfer *transfer);

static inline bool http_transfer_is_under_way(const struct http_transfer *transfer)
{
	return transfer->state == HTTP_TRANSFER_FIND || transfer->state == HTTP_TRANSFER_CONNECT ||
		transfer->state == HTTP_TRANSFER_TALK;
}

/* Once it is over: how far it got, and whether the connection may serve another call. */
enum http_reach http_transfer_reach(const struct http_transfer *transfer);
bool http_transfer_keeps(const struct http_transfer *transfer);
