/*
 * One connection of a child, and the one to the server that belongs to it. Bytes are passed on in blocks: a block is read only
 * when the one before it was written, so a side that does not read holds up the other and costs no memory.
 *
 *	WAITING ──first bytes──▶ CONNECTING ──▶ PASSING ──an end, a fault──▶ CLOSING
 *	   │ nothing in time         │ the server cannot be reached
 *	   ▼                         ▼
 *	CLOSING                   REFUSING: 503; what the child still sends is dropped ──▶ CLOSING
 */
#pragma once

#include <uv.h>

#include "wire/http/transfer.h"

struct relay;

/* The relay has begun to close: it is not to be used any more. */
typedef void (*relay_ended)(void *context, struct relay *relay);

/* Takes `fd`, a connected socket of the child; also after a fault. `server` must live as long as the relay. */
int relay_open(uv_loop_t *loop, int fd, const struct http_address *server, relay_ended ended, void *context,
	struct relay **ret_relay);

/* Ends both connections, without a callback; the memory goes when the loop has closed the handles. */
void relay_close(struct relay *relay);
