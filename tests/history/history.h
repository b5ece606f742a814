/*
 * Histories: the events of a run as lines of text, in the form that the checker reads.
 *
 *   E seq boot lease_ms wall_ms kind task worker fence attempt from to actor key=value…    an event
 *   C client ok op task fence - 0 0                                                        a client was told so
 *   S task key=value…                                                                      a row of the table
 *   Q                                                                                      … that was all of them
 *
 * Fields are separated by tabs; `-` is "none". The keys of a task's event are its lifecycle columns after it,
 * as folding gives them, and the facts of the record.
 */
#pragma once

#include "base/buf.h"
#include "store/record/record.h"
#include "store/store.h"

enum {
	HISTORY_BYTES_MAX = 1 << 30,
};

struct history {
	struct buf text;
	struct buf line;
};

void history_init(struct history *history);
void history_done(struct history *history);

/* `fold` is the task after the event, NULL for an event of no task. Names are looked up in the store. */
int history_event(struct history *history, struct store *store, uint64_t boot, const struct record *record,
	const struct fold *fold);

/* A row of the state table, and the end of such a list. */
int history_row(struct history *history, struct store *store, struct span id, const struct task *task,
	struct span holder);
int history_quiet(struct history *history);

/* A client was told that its request was accepted; fence 0: it has none. */
int history_ack(struct history *history, const char *client, const char *op, int64_t task, uint64_t fence);

/* Forget everything after the first `len` bytes: the store was restored to what it was then. */
void history_truncate(struct history *history, size_t len);
