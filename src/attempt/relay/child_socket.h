/*
 * The socket in the run dir of an attempt: its one way to the server, at every level and on every host. The supervisor serves
 * it and passes bytes on; the token of the claim in each request decides what the request may do, as it does everywhere.
 *
 *	program ──▶ <run dir>/stint.sock ──▶ child_socket.c (accept) ──▶ relay.c (bytes, both ways) ──▶ the server
 *
 * A child that connects in a loop meets its own limits and nobody else's: CHILD_SOCKET_RELAYS connections at a time (the others
 * wait in the backlog of this socket), one accept per attempt and ACCEPTS_A_TICK for all attempts in an iteration of the loop,
 * and no connection to the server before the child has sent something.
 *
 * An executor whose "network" is a list of hosts has a second one, proxy.sock, which leads to these hosts alone.
 */
#pragma once

#include <stdint.h>
#include <uv.h>

#include "attempt/relay/relay.h"
#include "wire/http/transfer.h"

#define CHILD_SOCKET_NAME "stint.sock"
#define PROXY_SOCKET_NAME "proxy.sock"

enum {
	CHILD_SOCKET_RELAYS = 8, /* to the server: as many as it gives a claim */
	PROXY_RELAYS = 64,       /* to other hosts */
	ACCEPTS_A_TICK = 32,
};

/* What the sockets of all attempts of a supervisor share. */
struct accept_share {
	uv_prepare_t tick;
	uint32_t left;  /* connections that may still be accepted in this iteration of the loop */
	uint32_t dials; /* connections to other hosts that are being made */
};

void accept_share_init(struct accept_share *share, uv_loop_t *loop);

struct child_socket;

struct child_socket_options {
	uv_loop_t *loop;
	struct accept_share *share;        /* outlives the socket */
	int run_fd;                        /* the run dir; used during the call alone */
	const struct http_address *server; /* copied; NULL: this is the proxy to `hosts` (relay/proxy.h) */
	const char *const *hosts;          /* NULL at the end; outlives the socket */
	relay_barred *barred;              /* with `hosts`: told of every refusal */
	void *context;                     /* of `barred` */
};

/* Makes the socket (0600), CHILD_SOCKET_NAME or PROXY_SOCKET_NAME, and serves it. A fault leaves nothing. -EEXIST: the run dir has
 * one. */
int child_socket_open(const struct child_socket_options *options, struct child_socket **ret_socket);

/* Ends all connections at once; the memory goes when the loop has closed the handles. The file goes with its run dir. NULL is
 * fine. */
void child_socket_close(struct child_socket *socket);
