/*
 * A connection from the inside, for connection.c and connections.c. Only they include this.
 */
#pragma once

#include "server/net/passed.h"
#include "server/net/secure.h"
#include "server/server.h"

/* Output that the kernel did not take at once. */
struct outgoing {
	uv_write_t write;
	struct buf bytes;
	struct exchange_list unwritten; /* exchanges whose replies are in `bytes` */
	size_t left_bytes;              /* bytes left at the last look at timeouts */
};

/*
 *   OPEN ──"close", or a stream──▶ ENDING ──all written──▶ CLOSED
 *     └──not HTTP──▶ REFUSED ──all written──▶ FIN_SENT ──the client closes, or is too slow──▶ CLOSED
 *
 * From every state CLOSED may follow at once.
 */
enum connection_state {
	CONNECTION_OPEN,
	CONNECTION_ENDING,   /* the output is written, then it closes */
	CONNECTION_REFUSED,  /* the same, and what the client still sends is thrown away */
	CONNECTION_FIN_SENT, /* … and the client knows that nothing more will come */
	CONNECTION_CLOSED,   /* freed as soon as libuv has let go of it */
};

/* Ten thousand connections may be idle, so this is small: the input and the write are allocated while they are in use. */
struct connection {
	union {
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	};
	struct server *server;
	struct secure *secure; /* NULL: it has no TLS */
	LIST_ENTRY(connection) all;
	struct source_key source;
	struct source_key client;     /* of the last request: who is behind a proxy, or the source */
	struct source *lobby_of;      /* a stranger's; NULL: it has shown a right credential */
	struct payer *payer;          /* for whom it counts; NULL: a stranger's */
	TAILQ_ENTRY(connection) seat; /* in the lobby, or with its payer */
	uint64_t born;                /* the tick of the loop */
	int64_t opened_ms;
	struct passed *passed;    /* a server on standby has passed it on: for whom; NULL: it was not */
	struct http_input *input; /* NULL while nothing of a request is there */
	struct exchange *current; /* the last exchange: it waits for its turn, or for work */
	struct exchange *ahead_first, *ahead_last; /* exchanges before it, which wait for the same turn */
	uint32_t ahead_count;
	bool owes_continue;             /* send "100 Continue" after the replies of earlier exchanges */
	struct exchange_list unwritten; /* answered into `out`, not yet written */
	struct buf out;                 /* replies that nobody has begun to write */
	struct outgoing *outgoing;      /* NULL: no write is under way */
	int64_t since_ms;               /* lease clock: when its current activity began, for timeouts */
	int64_t heard_ms;               /* lease clock: when the last byte came */
	size_t heard_bytes;             /* bytes of the request under way */
	uint64_t held_bytes;            /* of requests under way with long bodies: see payer_hold() */
	uint64_t taken_bytes;           /* of these, requests that are whole */
	enum connection_state state;
	bool in_body;                 /* the head of the request under way is complete */
	bool paused;                  /* the input is full: nothing is read */
	LIST_ENTRY(connection) dirty; /* connections with output to flush */
	bool is_dirty;                /* is in that list */
};

/* Has a part of a request come? */
bool connection_is_amid(const struct connection *connection);
