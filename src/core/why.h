/*
 * Why a task is where it is: one reason, kept as an enumeration, for `why`, lists and metrics.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/flow/limit.h"
#include "core/task/task.h"

// clang-format off
#define WHYS(X) \
	X(READY_NOW,        "ready",            "ready: the next matching claim takes it") \
	X(PARKED,           "parked",           "parked by a person") \
	X(SCHEDULED,        "scheduled",        "not before its time") \
	X(BACKING_OFF,      "back_off",         "waiting before the next attempt") \
	X(DEPENDENCY,       "dependency",       "a task it is blocked by is not done") \
	X(CHILDREN,         "children",         "its subtasks have not all ended") \
	X(PREDECESSOR,      "predecessor",      "the attempt of the task whose unique key it took has not ended") \
	X(SCHEDULE,         "schedule",         "the task that its schedule made before has not ended") \
	X(PAUSED,           "queue_paused",     "its queue is paused") \
	X(LIMITED,          "limited",          "a limit of its queue is reached") \
	X(DISARMED,         "execution_disarmed", "execution is disarmed: nothing is handed out until it is armed again") \
	X(NOT_AUTONOMOUS,   "not_autonomous",   "its queue hands out only tasks with metadata.autonomous_execution: true") \
	X(READ_ONLY,        "store_read_only",  "the store cannot be written: nothing is handed out until it can") \
	X(HELD,             "held",             "its account is held: exhausted, logged out, or its service is down") \
	X(KEPT_FOR_HOST,    "kept_for_host",    "its answer, or its session, is for one host: while a worker is there, else for some minutes, only that one may take it") \
	X(NO_WORKER,        "no_worker",        "no registered worker is alive and takes work") \
	X(QUEUE_UNSERVED,   "queue_unserved",   "no registered worker takes work of its queue") \
	X(NO_CAPABILITY,    "no_capability",    "no live worker has the capabilities it requires") \
	X(NO_EXECUTOR,      "no_executor",      "no live worker has its executor") \
	X(OWNER_AWAY,       "owner_away",       "the slot that owns it has no live worker") \
	X(OWNER_QUARANTINED, "owner_quarantined", "the slot that owns it crashed too often and is quarantined") \
	X(WORKERS_BUSY,     "workers_busy",     "every matching worker is busy") \
	X(POOL_QUARANTINED, "pool_quarantined", "workers of a pool that could take it crashed too often and are quarantined") \
	X(UNCONFIRMED,      "unconfirmed",      "its worker has not confirmed it yet") \
	X(RUNNING,          "running",          "a worker holds it") \
	X(STOPPING,         "stopping",         "cancelled; waiting until its worker has stopped") \
	X(OVERDUE,          "overdue",          "past its time limit; its worker was told to stop") \
	X(ASKING,           "asking",           "waiting for a person's answer") \
	X(REVIEW,           "review",           "reported; waiting for a verdict") \
	X(BLOCKED,          "blocked",          "a person must change something first") \
	X(ENDED,            "ended",            "final")
// clang-format on

enum why {
#define X(name, wire, text) WHY_##name,
	WHYS(X)
#undef X
		WHY_COUNT
};

/* What the store knows about the workers that could take a ready task. */
struct surroundings {
	enum queue_state queue;
	struct queue_limits limits; /* of its queue … */
	struct queue_load load;     /* … and what counts against them */
	struct key_load key_load;   /* of its concurrency key */
	int64_t rate_opens_ms;      /* wall: when a rate lets it be claimed; 0: it does now */
	int64_t budget_until_ms; /* wall: the budget of its queue is spent, and its day ends then; 0: it is not */
	uint32_t key_cap;        /* the number that its key has of its own; 0: none */
	bool disarmed;           /* execution is disarmed */
	bool opted_in;           /* the queue hands out only autonomous tasks */
	bool read_only;          /* the store cannot be written */
	bool owner_quarantined; /* the slot that owns the task is quarantined */
	uint32_t pool_slot;     /* a quarantined slot of a pool that could run it; 0: none */
	int64_t trial_at_ms;    /* wall: until when that slot is quarantined; 0 = for good */
	bool asked_for;         /* a claimant that never registered asked for work of the queue lately */
	/* each counts the workers of the line before it that also … */
	uint32_t workers;      /* … are alive and take work */
	uint32_t serving;      /* … take work of its queue, as far as is known */
	uint32_t capable;      /* … have its capabilities */
	uint32_t executing;    /* … have its executor */
	uint32_t owning;       /* … are in the slot that owns it, if a slot does */
	uint32_t free;         /* … have an account for it that is not held */
	uint32_t idle;         /* … have room for one more task */
	int64_t held_until_ms; /* wall: of its account; 0: not known */
	bool held;             /* the account that it names is held */
	uint32_t
		refused; /* handle of a worker that takes no work, because all its claims are refused; 0: none */
	bool known;      /* some worker has announced itself; plain claimants never do */
};

struct reason {
	enum why why;
	int64_t until_ms;       /* wall; 0 = no time is known */
	uint32_t slot;          /* of POOL_QUARANTINED: the first quarantined slot */
	enum limit_kind limit;  /* of LIMITED: which … */
	uint32_t live, most;    /* … and how many tasks count, of how many that may */
	enum failure_code code; /* for BLOCKED, BACKING_OFF and ENDED; else CODE_NONE */
	uint32_t workers;       /* of WORKERS_BUSY: how many are */
	uint32_t refused;       /* of QUEUE_UNSERVED: a worker whose claims are all refused */
	bool unasked;           /* of READY_NOW: nobody is known to ask for work of its queue */
};

struct reason task_why(const struct task *task, const struct surroundings *around, const struct given *given);

const char *why_name(enum why why);
const char *why_text(enum why why);
