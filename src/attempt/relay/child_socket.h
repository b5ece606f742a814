/*
 * The socket in the run dir of an attempt: its one way to the server, at every level and on every host. The supervisor serves
 * it and passes bytes on; the token of the claim in each request decides what the request may do, as it does everywhere.
 *
 *	program ──▶ <run dir>/stint.sock ──▶ child_socket.c (accept) ──▶ relay.c (bytes, both ways) ──▶ the server
 *
 * A child that connects in a loop meets its own limits and nobody else's: CHILD_SOCKET_RELAYS connections at a time (the others
 * wait in the backlog of this socket), one accept per attempt and ACCEPTS_A_TICK for all attempts in an iteration of the loop,
 * and no connection to the server before the child has sent something.
 */
#pragma once

#include <stdint.h>
#include <uv.h>

#include "wire/http/transfer.h"

#define CHILD_SOCKET_NAME "stint.sock"

enum {
	CHILD_SOCKET_RELAYS = 8, /* as many as the server gives a claim */
	ACCEPTS_A_TICK = 32,
};

/* How many connections may still be accepted in this iteration of the loop: one for all sockets of a supervisor. */
struct accept_share {
	uv_prepare_t tick;
	uint32_t left;
};

void accept_share_init(struct accept_share *share, uv_loop_t *loop);

/* `closed` is called from the loop, if it is not NULL. */
void accept_share_close(struct accept_share *share, uv_close_cb closed);

struct child_socket;

struct child_socket_options {
	uv_loop_t *loop;
	struct accept_share *share; /* outlives the socket */
	int run_fd;                 /* the run dir; used during the call alone */
	const struct http_address *server;
};

/* Makes the socket (0600) and serves it. A fault leaves nothing. -EEXIST: the run dir has one. */
int child_socket_open(const struct child_socket_options *options, struct child_socket **ret_socket);

/* Ends all connections at once; the memory goes when the loop has closed the handles. The file goes with its run dir. NULL is
 * fine. */
void child_socket_close(struct child_socket *socket);
