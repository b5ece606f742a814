/*
 * The outbox: reports that the server must have, whatever happens meanwhile to it, to us or to the power. Each is a file
 * before it is sent, and is removed when the server has answered: taken, or refused for good (a claim that has passed to
 * another is such a refusal, and the server keeps the late result for the operator).
 *
 * Each is sent with its name as Idempotency-Key: if the answer is lost it is sent again, and counts once.
 *
 * They are sent one after the other. While the server is away it is asked again after 1, 2, 4 … 15 s. Before a report that
 * gives way to the word of the work is sent, the server is asked for that word: it may be another worker that sends it
 * than the one that saw the end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/span.h"
#include "wire/http_client.h"
#include "worker/verdict.h"

struct outbox;

/* `status` and `body` are those of the answer; it was taken, or will never be. */
typedef void (*outbox_settled)(
	void *context, const char *name, int status, struct span code, struct span body);

/* The directory stays the caller's. NULL: no memory. */
struct outbox *outbox_new(uv_loop_t *loop, const struct http_address *address, struct span token, int dir_fd,
	outbox_settled settled, void *context);
void outbox_free(struct outbox *outbox);

/* What a predecessor left. Returns how many there are. */
int outbox_load(struct outbox *outbox);

/* POST `body` to `target`. On disk when this returns, unless the disk refuses it (the fault is returned): then it is
 * kept in memory, sent, and written down as soon as the disk takes it. `held`: not sent before outbox_release(). */
int outbox_put(struct outbox *outbox, const char *name, enum yields_to to, struct span target,
	struct span body, bool held);

void outbox_release(struct outbox *outbox, const char *name);

/* Try again to write down what is in memory alone. The fault of one that still is. */
int outbox_save(struct outbox *outbox);

uint32_t outbox_waiting(const struct outbox *outbox);

/* The form of a file: to what it gives way ("?word"; nothing: a line less), the target, the body, each on a line. */
int outbox_put_text(struct buf *out, enum yields_to to, struct span target, struct span body);
