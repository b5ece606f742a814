/*
 * A client of one HTTP server: one connection, kept alive, one request at a time, no call without a time limit.
 *
 * A request that may have reached the server is sent a second time only if it `may_repeat`: it changes nothing, or
 * carries what makes the server recognise it. One whose connection could not even be made was not sent, and that
 * is a different fault, so that callers can tell "nothing happened" from "nobody knows".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"
#include "wire/http/http.h"
#include "wire/http/answer.h"

/* Where a server is: http://HOST[:PORT][/PREFIX] or unix:PATH. */
struct http_address {
	bool local;       /* a Unix socket */
	char path[108];   /* of the socket */
	char host[256];   /* without brackets */
	char prefix[256]; /* before every path, without a slash at its end */
	uint16_t port;
};

/* -EINVAL: the complaint says in what way it is no address of a server. */
int http_address_parse(const char *url, struct http_address *ret_address, const char **ret_complaint);
bool http_address_is_loopback(const struct http_address *address);

struct http_call {
	enum http_method method;
	struct span target; /* path and query, encoded */
	struct span body;   /* JSON; data NULL: none */
	struct span token;
	struct span idempotency_key;
	struct span accept;
	struct span last_event_id;
	struct span host, origin, content_type; /* instead of our own: for whoever tests a server */
	bool may_repeat;
	int64_t timeout_ms; /* for all of it; for a stream, until the headers are there */
};

/* The bytes of the request, instead of what is in the buffer. -EINVAL: a control byte in a header; -ENOMEM, -E2BIG. */
int http_put_request(struct buf *out, const struct http_address *address, const struct http_call *call);

struct http_client;

/* Connects nowhere yet. NULL: no memory. */
struct http_client *http_client_new(
	const struct http_address *address, const struct http_answer_limits *limits);
void http_client_free(struct http_client *client);

/* How far a call that failed got. */
enum http_reach {
	HTTP_REACH_NOTHING, /* no connection: the server has not heard of it */
	HTTP_REACH_UNKNOWN, /* it was sent, and no reply came */
	HTTP_REACH_REPLY,   /* a reply came and could not be understood */
};

/* Sends the request and waits for the reply; a reply that is a stream is handed over with its head. The answer is
 * the client's and lives until the next call. Faults: -ETIMEDOUT, -EPROTO, -E2BIG, -EINVAL (a control byte in a
 * header), and what the sockets say. */
int http_client_call(struct http_client *client, const struct http_call *call,
	struct http_answer **ret_answer, enum http_reach *ret_reach);

/* More of a stream, into the answer of the last call. 0: the stream has ended. 1: there is more in it.
 * -ETIMEDOUT: nothing came in that time, and it goes on. */
int http_client_more(struct http_client *client, int64_t timeout_ms);

/* Say goodbye; the next call connects anew. */
void http_client_hang_up(struct http_client *client);
