/*
 * Limits of a queue: when its next task may be claimed.
 *
 * A limit is judged by the load of the queue, and of the task's concurrency key in that queue, which are counted from the tasks.
 * There is no permit that somebody has to give back, so none can be lost: not by a crash, not by a lease that runs out, not by a task
 * that is moved to another queue. Lowering a limit stops nobody: the queue hands out nothing until enough of its claims have ended.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "core/event.h"

enum {
	LIMIT_MAX = 1000000, /* the highest number that a limit may have */
	CONCURRENCY_KEY_MAX = 255,
	KEY_CAPS_MAX = 100, /* keys of a queue that have a number of their own */
};

/* What keeps a task from being claimed. */
enum limit_kind {
	LIMIT_NONE = 0,
	LIMIT_HOLD, /* of the task's account: see hold.h */
	LIMIT_CONCURRENCY,
	LIMIT_PER_KEY,
	LIMIT_SEQUENTIAL,
	LIMIT_RATE,
	LIMIT_REVIEW,
	LIMIT_BUDGET, /* of its day: see budget.h */
	LIMIT_KIND_COUNT,
};

/*
 * So many claims in a time: a bucket that holds `burst` permits and gets `count` of them in every per_ms, evenly. It is kept as one
 * number, the moment at which it is full again; a claim moves that by one step, and may be made while no more than burst - 1 steps
 * are left until then. Every new claim takes a permit, however it ends. Times are of the wall clock, because the number stays over a
 * restart; where the clock is set back, the moment is taken to be one filling away.
 */
struct rate {
	uint32_t count; /* 0: no rate */
	uint32_t burst; /* at least 1 */
	int64_t per_ms;
	bool per_key; /* a bucket for each concurrency key; else one for the queue */
};

/* The longest time in which a bucket may fill: a year. */
#define RATE_FILL_MS_MAX (INT64_C(366) * 24 * 3600 * 1000)

/* 0: no such limit. */
struct queue_limits {
	uint32_t concurrency; /* live claims of the queue */
	uint32_t per_key;     /* live claims of each concurrency key */
	bool sequential;      /* the next task of a key waits until the one that has begun is final */
	struct rate rate;     /* claims of the queue, or of each key */
	uint32_t review;      /* no claim while so many tasks are in review */
	bool fair;            /* within a priority its keys come in turn: see fair_order() */
	uint32_t max_open;    /* no new task while so many of its tasks are open */
};

/* A concurrency key that has a number of its own in place of per_key. */
struct key_cap {
	uint64_t key;
	uint32_t most;
	char text[CONCURRENCY_KEY_MAX + 1];
};

/* What is counted against them. */
struct queue_load {
	uint32_t live;   /* tasks with a live claim: claimed, running, asking with a process, stopping */
	uint32_t review; /* tasks in review */
};

/*
 * What decides whose turn it is among the concurrency keys of a fair queue; tasks without a key are one key together. The key with the
 * fewest live claims comes first, then the one that got its last claim longest ago. Live claims are counted, so a restart changes
 * nothing about them; when a key was served is known in memory only.
 */
struct fair_turn {
	uint32_t live;
	uint64_t served; /* number of its last claim, rising; 0: none that is remembered */
};

/* The same for one concurrency key of the queue. */
struct key_load {
	uint32_t live;  /* tasks with a live claim */
	uint32_t begun; /* tasks that were claimed once and are not final */
};

/* Bits of limits_patch.set. */
enum {
	LIMITS_SET_CONCURRENCY = 1,
	LIMITS_SET_PER_KEY = 2,
	LIMITS_SET_SEQUENTIAL = 4,
	LIMITS_SET_RATE = 8,
	LIMITS_SET_REVIEW = 16,
	LIMITS_SET_FAIR = 32,
	LIMITS_SET_MAX_OPEN = 64,
};

struct limits_patch {
	uint32_t set;               /* what changes */
	struct queue_limits wanted; /* 0 lifts the limit */
};

struct limits_decision {
	enum event_kind event; /* EVENT_NONE: no change */
	struct queue_limits limits;
};

struct limits_decision limits_change(const struct queue_limits *limits, const struct limits_patch *patch);

/* The first limit that keeps the next task of the queue from being claimed; LIMIT_NONE: it may be. */
enum limit_kind limits_judge(const struct queue_limits *limits, const struct queue_load *load);

/* The first limit of its key that keeps a task from being claimed. `cap`: the number that the key has instead of per_key; 0: it has
 * none. `begun`: the task itself was claimed before. */
enum limit_kind limits_judge_key(
	const struct queue_limits *limits, uint32_t cap, const struct key_load *load, bool begun);

/* How many more of its tasks may be claimed; and how many of one key, while nothing else happens. */
uint32_t limits_room(const struct queue_limits *limits, const struct queue_load *load);
uint32_t limits_key_room(const struct queue_limits *limits, uint32_t cap, const struct key_load *load);

/* Negative if a key with turn `a` comes before one with turn `b`, both with a task of one priority; 0: their tasks decide. */
int fair_order(const struct fair_turn *a, const struct fair_turn *b);

/* May no new task be added to a queue that has so many open ones? */
bool limits_are_full(const struct queue_limits *limits, uint64_t open);

/* The moment in nanoseconds at which the bucket is full again, after one more claim; and at which it is if the clock was set back. */
int64_t rate_take(const struct rate *rate, int64_t due_ns, int64_t now_ms);
int64_t rate_clamp(const struct rate *rate, int64_t due_ns, int64_t now_ms);
/* When the next claim may be made: now_ms or earlier if it may be now. */
int64_t rate_opens_ms(const struct rate *rate, int64_t due_ns, int64_t now_ms);
bool rate_is_sound(const struct rate *rate);

bool limits_are_none(const struct queue_limits *limits);

/* Are those that were read from disk consistent? */
bool limits_are_sound(const struct queue_limits *limits);

/* As the API calls it. */
const char *limit_kind_name(enum limit_kind kind);

/*
 * The number of a concurrency key; 0 for no text. Stored with the task, so it never changes. Its text is in the task's document: a
 * table of texts would have to forget those that nobody uses any more. Two texts with one number, which is about as likely as a disk
 * that lies, would be taken for one key and so wait for each other.
 */
uint64_t concurrency_key_number(struct span text);
