/*
 * Limits of a queue: when its next task may be claimed.
 *
 * A limit is judged by the load of the queue, which is counted from its tasks. There is no permit that somebody has to give back,
 * so none can be lost: not by a crash, not by a lease that runs out, not by a task that is moved to another queue. Lowering a limit
 * stops nobody: the queue hands out nothing until enough of its claims have ended.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/event.h"

enum {
	LIMIT_MAX = 1000000, /* the highest number that a limit may have */
};

/* What keeps a task from being claimed. */
enum limit_kind {
	LIMIT_NONE = 0,
	LIMIT_HOLD, /* of the task's account: see hold.h */
	LIMIT_CONCURRENCY,
	LIMIT_KIND_COUNT,
};

/* 0: no such limit. */
struct queue_limits {
	uint32_t concurrency; /* live claims of the queue */
};

/* What is counted against them. */
struct queue_load {
	uint32_t live; /* tasks with a live claim: claimed, running, asking with a process, stopping */
};

/* Bits of limits_patch.set. */
enum {
	LIMITS_SET_CONCURRENCY = 1,
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

/* How many more of its tasks may be claimed. */
uint32_t limits_room(const struct queue_limits *limits, const struct queue_load *load);

bool limits_are_none(const struct queue_limits *limits);

/* Are those that were read from disk consistent? */
bool limits_are_sound(const struct queue_limits *limits);

/* As the API calls it. */
const char *limit_kind_name(enum limit_kind kind);
