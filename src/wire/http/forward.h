/*
 * Requests that are passed on to another address than the one that they were written for: the Host header and the path get what
 * the server's URL says. Everything else, bodies too, passes byte by byte and is not judged; that is the server's work.
 *
 * What cannot be followed (a head of more than HTTP_FORWARD_HEAD_MAX bytes, a body in chunks, a length that is none) passes as it
 * is, with all that comes behind it on that connection.
 */
#pragma once

#include "base/buf.h"
#include "wire/http/transfer.h"

enum { HTTP_FORWARD_HEAD_MAX = 16 << 10 };

enum http_forward_state {
	HTTP_FORWARD_HEAD, /* a head is being collected */
	HTTP_FORWARD_BODY, /* `left` bytes of a body pass */
	HTTP_FORWARD_RAW,  /* everything passes */
};

struct http_forward {
	enum http_forward_state state;
	uint64_t left;
	size_t head_len;
	char head[HTTP_FORWARD_HEAD_MAX];
};

/* Puts as much of the connection as can go on: perhaps nothing yet. Begins with a struct of zeros. Returns the fault of `out`,
 * which needs room for `in`, HTTP_FORWARD_HEAD_MAX bytes more, and 1 KiB for each head. */
int http_forward(
	struct http_forward *forward, const struct http_address *server, struct span in, struct buf *out);
