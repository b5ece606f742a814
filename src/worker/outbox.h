/*
 * The outbox: reports that the server must have, whatever happens meanwhile to it, to us or to the power. Each is a file
 * before it is sent (letter.h), and is removed when the server has answered: taken, or refused for good (a claim that has
 * passed to another is such a refusal, and the server keeps the late result for the operator).
 *
 *	put ──the turn of the loop ends──▶ on disk ──released──▶ sent, with others beside it ──answered──▶ settled
 *	 └──the disk refuses it──────────▶ in memory, and tried again; it is sent all the same
 *
 * All that was put in one turn is synced once; the server commits at once what comes at once. So it costs as much to
 * report a hundred exits as one.
 *
 * Each is sent with its name as Idempotency-Key: if the answer is lost it is sent again, and counts once. While the server
 * is away it is asked again after 1, 2, 4 … 15 s, with one of them. Before a report that gives way to the word of the work
 * is sent, the server is asked for that word: it may be another worker that sends it than the one that saw the end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/span.h"
#include "wire/http/client.h"
#include "worker/verdict.h"

struct outbox;

struct outbox_events {
	/* It is on disk; or there was a fault, and it is in memory alone: then this may come again. */
	void (*saved)(void *context, const char *name, int fault);
	/* `status` and `body` are those of the answer; it was taken, or will never be. */
	void (*settled)(void *context, const char *name, int status, struct span code, struct span body);
};

/* The directory and the events stay the caller's. NULL: no memory. */
struct outbox *outbox_new(uv_loop_t *loop, const struct http_address *address, struct span token, int dir_fd,
	const struct outbox_events *events, void *context);

/* What the disk has not taken is offered to it once more. */
void outbox_free(struct outbox *outbox);

/* What a predecessor left. Returns how many there are. */
int outbox_load(struct outbox *outbox);

/* POST `body` to `target`: on disk soon, then sent. `held`: not before outbox_release(). -ENOMEM: nothing will come of it. */
int outbox_put(struct outbox *outbox, const char *name, enum yields_to to, struct span target,
	struct span body, bool held);

void outbox_release(struct outbox *outbox, const char *name);

/* Write down now what is in memory alone; who is concerned is told from the loop. */
void outbox_save(struct outbox *outbox);

uint32_t outbox_waiting(const struct outbox *outbox);
