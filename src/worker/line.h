/*
 * A line to the server: one connection over libuv, kept alive, one request at a time. Nothing waits: the answer comes
 * to a callback, from the loop. The requests are those of wire/http/client.h.
 */
#pragma once

#include <uv.h>

#include "wire/http/answer.h"
#include "wire/http/client.h"

struct line;

/* `fault` 0 and the answer, which lives until the next call; or a negative errno: -ETIMEDOUT, -EPROTO, -E2BIG, and what
 * sockets say. The callback may call again, or free the line. */
typedef void (*line_answered)(
	void *context, int fault, enum http_reach reach, const struct http_answer *answer);

/* Connects nowhere yet. NULL: no memory. */
struct line *line_new(
	uv_loop_t *loop, const struct http_address *address, const struct http_answer_limits *limits);

/* From now on it has a descriptor in reserve while it has no connection: when there is no other left it can connect all the same. */
void line_reserve(struct line *line);

/* Ends what is under way without a callback. The memory goes when the loop has closed its handles. NULL is fine. */
void line_free(struct line *line);

bool line_is_busy(const struct line *line);

/* The call is read before this returns. Faults (-ENOMEM, -E2BIG, -EINVAL) are told here and no callback follows. Only
 * while it is not busy. */
int line_call(struct line *line, const struct http_call *call, line_answered answered, void *context);

/* Give up what is under way: no callback follows. */
void line_drop(struct line *line);
