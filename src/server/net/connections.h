/*
 * All connections, and what the other rooms of the server do with one. What a connection consists of is in connection.h.
 */
#pragma once

#include <sys/queue.h>
#include <uv.h>

#include "server/net/sources.h"
#include "server/turn/exchange.h"
#include "wire/http/http.h"

enum {
	LISTENERS_MAX = 3,
	SPARE_INPUTS_MAX = 16,
	CROWD = 500, /* with more connections, memory that each keeps and a look at all of them are expensive */
};

/* Connections that are closed as soon as they are taken; see refused.c. */
struct refused_connections {
	union {
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	};
	bool is_busy;                        /* the handle is being closed */
	uv_stream_t *waiting[LISTENERS_MAX]; /* listeners whose next connection it takes then */
	uint32_t waiting_count;
};

LIST_HEAD(connection_list, connection);

struct connections {
	struct connection_list all;   /* the youngest first */
	struct connection_list dirty; /* connections with output to write, or input to read on */
	uint32_t count;
	uint32_t most;   /* the highest count since memory was last given back */
	uint32_t sweeps; /* number of sweeps over a crowd */
	struct http_input *spare_inputs[SPARE_INPUTS_MAX]; /* unused, for the next requests */
	uint32_t spare_input_count;
	struct refused_connections refused;
	uint64_t tick;                    /* of the loop */
	uint32_t accepted;                /* in this tick */
	uv_stream_t *late[LISTENERS_MAX]; /* listeners with a connection that the next tick accepts */
	uint32_t late_count;
};

void connection_accept(uv_stream_t *listener, int status);
void connection_refuse(struct server *server, uv_stream_t *listener); /* take its next one and close it */
const struct source_key *connection_source(const struct connection *connection);
/* The address of its other end, or "socket". */
void connection_peer(const struct connection *connection, char ret_address[API_PEER_BYTES]);
/* HOST:PORT of the server on standby to which the client connected; empty: it connected to us. */
struct span connection_passed_host(const struct connection *connection);
void connection_reply(struct connection *connection, struct exchange *exchange); /* takes the exchange over */
void connection_rest(struct connection *connection);           /* it has nothing to do for a while */
void connection_close(struct connection *connection);          /* in any state */
size_t connection_unsent(const struct connection *connection); /* bytes that the kernel has not taken yet */

/* The head of a stream, which stays the current exchange until either side ends it. */
void connection_begin_stream(struct connection *connection);
struct buf *connection_output(struct connection *connection); /* for more of the stream; it will be written */
void connection_end_stream(struct connection *connection);    /* after what it was given has been written */

/* A reply in pieces, of the current exchange: its head, parts of its body, its end. False: the connection was closed.
 * The end frees the exchange. */
bool connection_begin_pieces(struct connection *connection);
bool connection_put_piece(struct connection *connection, struct span bytes);
void connection_end_pieces(struct connection *connection);

void connections_flush(struct server *server);
void connections_tick(struct server *server);            /* once in each tick of the loop */
bool connections_are_quiet(const struct server *server); /* nothing has come since the loop looked */
bool connections_have_unsent(const struct server *server);
void connections_timeout(struct server *server);
/* The time that the server itself stood still counts against no connection: every timeout starts again. */
void connections_outlast_stall(struct server *server);
void connections_close_all(struct server *server);
