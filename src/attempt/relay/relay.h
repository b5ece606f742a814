/*
 * One connection of a child, and the one to the server (or, for a proxy, to another host) that belongs to it. Bytes are passed on in
 * blocks: a block is read only when the one before it was written, so a side that does not read holds up the other and costs no
 * memory.
 *
 *	WAITING ──first bytes; for a proxy: a head──▶ CONNECTING ──▶ PASSING ──an end, a fault──▶ CLOSING
 *	   │ nothing in time                              │ barred, or nobody is there
 *	   ▼                                              ▼
 *	CLOSING                                        REFUSING: a reply; what the child still sends is dropped ──▶ CLOSING
 */
#pragma once

#include <uv.h>

#include "attempt/relay/proxy.h"
#include "wire/http/transfer.h"

struct relay;

/* The proxy has refused a host. `address` is one of a private network that the host has; "": the list does not have the host. */
typedef void relay_barred(void *context, const char *host, uint16_t port, const char *address);

/* Where the connections of a socket lead. */
struct relay_way {
	const struct http_address *server; /* NULL: to what each request wants, of these hosts */
	const char *const *hosts;
	uint32_t *dials; /* connections to hosts that are being made, for all sockets */
	relay_barred *barred;
	void *context;
};

/* The relay has begun to close: it is not to be used any more. */
typedef void (*relay_ended)(void *context, struct relay *relay);

/* Takes `fd`, a connected socket of the child; also after a fault. `way` must live as long as the relay is open. */
int relay_open(uv_loop_t *loop, int fd, const struct relay_way *way, relay_ended ended, void *context,
	struct relay **ret_relay);

/* Ends both connections, without a callback; the memory goes when the loop has closed the handles. */
void relay_close(struct relay *relay);
