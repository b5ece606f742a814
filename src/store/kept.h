/*
 * What is kept of the events that compaction takes out of the log: the last ones of each task that is still there, and those that say
 * what was done to credentials, gates, execution and the server. However many events others cause, they cannot push these out.
 *
 * The events of a task lie in one row beside it, the oldest first, and go with the task. Those of the second kind are numbered from 1
 * and have a row each beside task 0; row 0 says which there are.
 */
#pragma once

#include "base/span.h"
#include "store/record/record.h"

struct store;
struct turn;

enum {
	KEPT_EVENTS_MAX = 32, /* of one task */
	KEPT_BYTES_MAX = 8 << 10,
};

/* Part of a turn that takes this event out of the log. `old`: it has had its time; only its task still wants it. */
int keep_event(struct turn *turn, const struct record *record, struct span data, bool old);

/* The task is gone, and with it what was kept. */
int keep_no_events(struct turn *turn, int64_t task);
