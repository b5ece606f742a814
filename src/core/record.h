/*
 * An event as readers get it: what happened to which object, when, by whom, and the numbers that explain it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "core/event.h"
#include "core/task/task.h"

/* Numbers that explain an event. Stored numbers: only ever appended. */
enum fact {
	FACT_DEADLINE = 0, /* lease clock: the deadline that passed */
	FACT_GRANTED = 1,
	FACT_GRACE_END = 2, /* lease clock: no expiry before it */
	FACT_BEATS = 3,     /* claimed by a worker that beats */
	FACT_NAMED = 4,     /* claimed through an API that knows only a name */
	FACT_VERIFY = 5,    /* the claim will be verified */
	FACT_NAME_ONLY = 6, /* no fence was shown */
	FACT_MAX = 7,       /* maxConcurrent of a worker */
	FACT_REASON = 8,    /* enum worker_end */
	FACT_INSTANCE = 9,
	FACT_GENERATION = 10,
	FACT_START = 11,
	FACT_STOPPING = 12,   /* a cancel waits for the worker */
	FACT_TRIAL = 13,      /* a quarantine was lifted for one trial */
	FACT_CLASS = 14,      /* enum failure_class */
	FACT_RETRY_AT = 15,   /* wall: the worker named the time of the next try */
	FACT_STAGE_FROM = 20, /* enum stage */
	FACT_ACTION = 21,     /* enum action of the new stage */
	FACT_OVERDUE = 22,    /* the claim was past its run limit */
	FACT_REPORTED = 25,   /* the work itself reported its end */
	FACT_DAMAGE = 26,     /* places of the store that are known to be damaged */
	FACT_EXPIRES = 27,    /* wall: until when a claim that ends here, made by name, was to run */
	FACT_QUESTION = 28,   /* number of the question that was asked, answered or withdrawn */
	FACT_WITHDRAWN = 29,  /* the holder took its question back */
	FACT_LATE = 30,       /* nobody answered in time, so the question was denied */
	FACT_PLANNED = 32, /* wall: the planned instant of a schedule's occurrence, or the last of several */
	FACT_PLANNED_FROM = 33,  /* wall: … the first of several … */
	FACT_PLANNED_COUNT = 34, /* … and how many they are */
	FACT_SKIP = 35,          /* enum skip */
	FACT_STREAK = 36,        /* failures and skips of a schedule in a row */
	FACT_CONCURRENCY = 40,   /* of a queue's limits; left out: it has none */
	FACT_MATCHED = 45,       /* tasks that matched when a bulk action began … */
	FACT_DONE = 46,          /* … that it changed … */
	FACT_SKIPPED = 47,       /* … and that it could not change */
	FACT_STOP = 48,          /* enum bulk_stop */
	FACT_PER_KEY = 50,       /* … */
	FACT_SEQUENTIAL = 51,    /* … */
	FACT_KEY_CAPS = 52,      /* … how many keys have a number of their own */
	FACT_RATE = 53,          /* … claims … */
	FACT_RATE_MS = 54,       /* … in so many milliseconds … */
	FACT_BURST = 55,         /* … so many at once … */
	FACT_RATE_PER_KEY = 56,  /* … of each key */
	FACT_REVIEW_MOST = 57,   /* … tasks in review */
	FACT_FAIR = 58,          /* … its keys come in turn */
	FACT_MAX_OPEN = 59,      /* … open tasks */
	FACT_LIMIT = 60,         /* enum limit_kind that holds tasks back … */
	FACT_WAITING = 61,       /* … and how many of the queue are ready */
	FACT_COUNT,
};

struct record {
	int64_t seq;
	int64_t wall_ms, lease_ms;
	enum event_kind kind;
	int64_t task;       /* seq of the task; 0: the event is about no task */
	int64_t previous;   /* the event before this one of the same task */
	struct span id;     /* the task's id of the caller's choice, if it has one */
	struct span worker; /* the worker that acted, or lost the task */
	struct span actor;
	struct span subject; /* a queue or slot, for their events */
	struct span note;    /* what the caller said, as it said it */
	uint64_t facts;      /* bit per enum fact */
	int64_t fact[FACT_COUNT];
	uint64_t changed;     /* bit per column; see store/record/record.c */
	struct task columns;  /* the changed columns, as they are after the event */
	enum task_state from; /* TASK_NOWHERE for other nouns */
};

void record_fact(struct record *record, enum fact fact, int64_t value);
bool record_has(const struct record *record, enum fact fact);
