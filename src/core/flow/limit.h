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
	LIMIT_KIND_COUNT,
};

/* 0: no such limit. */
struct queue_limits {
	uint32_t concurrency; /* live claims of the queue */
	uint32_t per_key;     /* live claims of each concurrency key */
	bool sequential;      /* the next task of a key waits until the one that has begun is final */
};

/* A concurrency key that has a number of its own in place of per_key. */
struct key_cap {
	uint64_t key;
	uint32_t most;
	char text[CONCURRENCY_KEY_MAX + 1];
};

/* What is counted against them. */
struct queue_load {
	uint32_t live; /* tasks with a live claim: claimed, running, asking with a process, stopping */
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
