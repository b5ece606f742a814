/*
 * Event records: how a change is written down, and how writing it down again gives the state.
 *
 * A record carries what changed in the lifecycle columns of a task (only that), who did it, and a few
 * numbers that explain it. Its encoding is known here and nowhere else. Folding the records of a task in
 * order gives its columns: that is what compaction keeps as a baseline, and what every crash test compares.
 *
 * The records of one task are linked backwards by `previous`, so that its history is read without an index.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"
#include "core/event.h"
#include "core/task.h"

/* Numbers that explain an event. Stored numbers: only ever appended. */
enum fact {
	FACT_DEADLINE = 0, /* lease clock: the deadline that passed */
	FACT_GRANTED = 1,
	FACT_GRACE_END = 2, /* lease clock: no expiry before it */
	FACT_BEATS = 3,     /* claimed by a worker that beats */
	FACT_NAMED = 4,     /* claimed through a door that knows only a name */
	FACT_VERIFY = 5,    /* the claim will be verified */
	FACT_NAME_ONLY = 6, /* no fence was shown */
	FACT_MAX = 7,       /* maxConcurrent of a worker */
	FACT_REASON = 8,    /* enum worker_end */
	FACT_INSTANCE = 9,
	FACT_GENERATION = 10,
	FACT_START = 11,
	FACT_STOPPING = 12, /* a cancel waits for the worker */
	FACT_TRIAL = 13,    /* a quarantine was lifted for one trial */
	FACT_CLASS = 14,    /* enum failure_class */
	FACT_RETRY_AT = 15, /* wall: the worker named the time of the next try */
	FACT_COUNT,
};

struct record {
	int64_t seq;
	int64_t wall_ms, lease_ms;
	enum event_kind kind;
	int64_t task;       /* seq, 0 if it is about none */
	int64_t previous;   /* the event before this one of the same task */
	struct span id;     /* the task's own id, if it was given one */
	struct span worker; /* the worker that acted, or lost it */
	struct span actor;
	struct span subject; /* a queue or slot, for their events */
	struct span note;    /* what the caller said, as it said it */
	uint32_t facts;      /* bit per enum fact */
	int64_t fact[FACT_COUNT];
	uint64_t changed;     /* bit per column; see record.c */
	struct task columns;  /* the changed ones, as they are after the event */
	enum task_state from; /* TASK_NOWHERE for other nouns */
};

/* Lifecycle columns of a task as folded from its events. */
struct fold {
	struct task task;
	char holder[129]; /* worker id of the live claim, or "" */
};

void record_fact(struct record *record, enum fact fact, int64_t value);
bool record_has(const struct record *record, enum fact fact);

/* Note what differs between the two. */
void record_diff(struct record *record, const struct task *before, const struct task *after);

/* Appends the encoding; all but seq, which is the row's key. */
int record_encode(const struct record *record, struct buf *buf);

/* Spans are borrowed from `data`. -EPROTO: not a record. */
int record_decode(int64_t seq, struct span data, struct record *ret_record);

/* Apply one event of the task. The fold starts zeroed. */
void fold_apply(struct fold *fold, const struct record *record);

/* A fold as a baseline row, and back. */
int fold_encode(const struct fold *fold, struct buf *buf);
int fold_decode(int64_t seq, struct span data, struct fold *ret_fold);

/* Do the columns that events determine agree? Names the first one that does not. */
const char *fold_difference(const struct fold *fold, const struct task *task, struct span holder);
