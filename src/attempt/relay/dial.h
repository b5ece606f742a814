/*
 * Makes one connection for a child: to the server's socket, or by TCP to a host, whose addresses are tried one after the other.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <uv.h>

struct dial;

struct dial_wish {
	const char *path; /* of a Unix socket; NULL: by TCP */
	const char *host; /* a name or a number without brackets */
	uint16_t port;
	/* May this address be used? NULL: any. */
	bool (*may)(void *context, const struct sockaddr *address);
	void *may_context;
};

/* A connected socket, which is the callee's now, or a negative errno: -EACCES if `may` let no address pass. Comes from the loop,
 * once, and the dial is gone. */
typedef void (*dial_done)(void *context, int fd_or_fault);

/* The texts of the wish are copied. -ENOMEM, -ENAMETOOLONG: no callback follows. */
int dial_start(
	uv_loop_t *loop, const struct dial_wish *wish, dial_done done, void *context, struct dial **ret_dial);

/* No callback follows. NULL is fine. */
void dial_cancel(struct dial *dial);
