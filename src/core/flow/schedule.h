/*
 * Schedules: tasks that are made at planned times.
 *
 * An occurrence is a schedule and a planned instant. `last_ms` in the state of a schedule only moves forward, in the transaction
 * that makes the task, so that an occurrence makes at most one task. A person may have an occurrence made that was skipped, as
 * long as the history remembers it as skipped; from then on the history says that it was made.
 *
 *   plan ──schedule_due()──▶ instants to make, a range to skip ──schedule_overlap()──▶ make, make and wait, or skip
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "base/zone.h"
#include "core/event.h"
#include "core/flow/cron.h"
#include "core/task/state.h"

enum {
	SCHEDULES_MAX = 10000,
	SCHEDULE_LATE_MS = 60000,    /* an occurrence that is found later than this was missed */
	SCHEDULE_CATCH_UP_MAX = 100, /* missed occurrences that are made, with CATCH_UP_ALL */
	SCHEDULE_DUE_MAX = SCHEDULE_CATCH_UP_MAX + SCHEDULE_LATE_MS / 1000 + 1, /* made at once */
	SCHEDULE_QUEUE_MAX = 100, /* tasks that wait for the one before, with OVERLAP_QUEUE */
	SCHEDULE_OPEN_MAX = SCHEDULE_QUEUE_MAX + 1,
	SCHEDULE_HISTORY_MAX = 20,
	SCHEDULE_FAILING = 3, /* failures or skips in a row */
	SCHEDULE_EVERY_MIN_MS = 1000,
	SCHEDULE_COUNT_MAX = 100000, /* skipped times of a cron line are counted so far */
};

#define SCHEDULE_EVERY_MAX_MS  (INT64_C(366) * 24 * 3600 * 1000)
#define SCHEDULE_JITTER_MAX_MS (INT64_C(24) * 3600 * 1000)

/* Stored numbers, all of these. */
enum plan_kind {
	PLAN_CRON = 1,
	PLAN_EVERY = 2,
	PLAN_AT = 3,
};

enum catch_up {
	CATCH_UP_ONE = 0,
	CATCH_UP_SKIP = 1,
	CATCH_UP_ALL = 2,
};

enum overlap {
	OVERLAP_SKIP = 0,
	OVERLAP_ALLOW = 1,
	OVERLAP_QUEUE = 2,
	OVERLAP_CANCEL = 3,
};

/* When. */
struct schedule_plan {
	enum plan_kind kind;
	struct cron cron;
	const struct zone *zone; /* of PLAN_CRON; NULL: the zone is not known here, and nothing happens */
	int64_t every_ms, anchor_ms;
	int64_t at_ms;
};

/* The first planned instant after that; INT64_MAX: none. */
int64_t schedule_plan_next(const struct schedule_plan *plan, int64_t after_ms);

/* What a person asked for. Spans are borrowed. */
struct schedule {
	struct span id;
	enum plan_kind kind;
	struct span cron, tz;
	int64_t every_ms, at_ms;
	int64_t anchor_ms; /* creation or last change: PLAN_EVERY counts from there */
	int64_t jitter_ms;
	enum catch_up catch_up;
	enum overlap overlap;
	struct span task;     /* the template as the caller wrote it: JSON, for readers */
	struct span template; /* the same for the store: see store/record/template.h */
	struct span maker;    /* who made or changed it … */
	uint32_t principal;   /* … by number: its tasks are on the quota of that principal … */
	bool oversees;        /* … unless it is an operator */
	int64_t created_ms, updated_ms;
};

/* How an occurrence went. Stored numbers. */
enum occurrence_outcome {
	OUTCOME_OPEN = 1, /* its task is not final */
	OUTCOME_DONE = 2,
	OUTCOME_FAILED = 3,
	OUTCOME_CANCELLED = 4,
	OUTCOME_SKIPPED = 5,
};

/* Why one was skipped. Stored numbers. */
// clang-format off
#define SKIPS(X) \
	X(MISSED,     1, "missed",          "the server was away, or its clock jumped, and catchUp leaves it out") \
	X(OVERLAP,    2, "overlap",         "the task before it has not ended") \
	X(QUEUE_FULL, 3, "queue_full",      "100 tasks of the schedule wait already") \
	X(DRAINING,   4, "queue_draining",  "the queue takes no new tasks") \
	X(KEY_HELD,   5, "task_exists",     "another task holds the unique key") \
	X(QUOTA,      6, "quota_exceeded",  "the maker of the schedule has as many open tasks as it may") \
	X(PARENT,     7, "parent_gone",     "a task in blockedBy does not exist") \
	X(TOO_LARGE,  8, "too_large",       "a limit of the store is reached") \
	X(MADE,       9, "made_before",     "the occurrence has made its task already") \
	X(REFUSED,   10, "refused",         "the task could not be made") \
	X(MAX_OPEN,  11, "max_open",        "the queue has as many open tasks as its limit maxOpen allows") \
	X(GROUP,     12, "group_closed",    "the group of the task is closed")
// clang-format on

enum skip {
	SKIP_NOTHING = 0,
#define X(name, number, wire, text) SKIP_##name = number,
	SKIPS(X)
#undef X
		SKIP_END
};

const char *skip_name(enum skip skip);
const char *outcome_name(enum occurrence_outcome outcome);

struct occurrence {
	int64_t from_ms, at_ms; /* one instant, or the first and the last of `count` that were skipped */
	int64_t count;
	int64_t task; /* seq; 0: none was made */
	enum occurrence_outcome outcome;
	enum skip skip;
};

/* What became of it. */
struct schedule_state {
	int64_t last_ms; /* the last planned instant that was looked at: nothing up to it is made by itself */
	bool paused;
	uint32_t streak; /* failures and skips in a row */
	uint64_t made, skipped;
	int64_t version;                                 /* of its last event */
	struct occurrence history[SCHEDULE_HISTORY_MAX]; /* oldest first */
	uint32_t history_count;
	int64_t open[SCHEDULE_OPEN_MAX]; /* seqs of its tasks that are not final, oldest first */
	uint32_t open_count;
};

/* A schedule as a reader gets it. Valid until the next turn. */
struct schedule_document {
	const struct schedule *schedule;
	const struct schedule_state *state;
	const struct schedule_plan *plan;
	int64_t next_ms; /* the next planned instant; INT64_MAX: none */
};

bool schedule_state_is_sound(const struct schedule_state *state);

/* When it next wants to be looked at; INT64_MAX: never. */
int64_t schedule_next_ms(const struct schedule_state *state, const struct schedule_plan *plan);

/* What is due. `make` is oldest first. The state is to be moved to `last_ms`. */
struct schedule_due {
	int64_t make[SCHEDULE_DUE_MAX];
	uint32_t count;
	struct occurrence missed; /* count 0: none */
	int64_t last_ms;
};

void schedule_due(const struct schedule_plan *plan, enum catch_up catch_up,
	const struct schedule_state *state, int64_t now_ms, struct schedule_due *ret_due);

/* What an occurrence that is due does about the tasks of the schedule that are open. */
struct overlap_decision {
	enum skip skip; /* SKIP_NOTHING: make its task */
	bool waits;     /* if any task is open when it is made */
};

struct overlap_decision schedule_overlap(const struct schedule_state *state, enum overlap overlap);

/* How much later than planned its task may begin: the same for the same occurrence, whoever asks. */
int64_t schedule_jitter_ms(struct span id, int64_t at_ms, int64_t jitter_ms);

/* The occurrence made a task, or did not. */
void schedule_made(struct schedule_state *state, int64_t at_ms, int64_t task);
void schedule_skipped(struct schedule_state *state, const struct occurrence *skipped);

/* A task of it has ended, or was opened again by a person; TASK_NOWHERE: opened. */
void schedule_task_ended(struct schedule_state *state, int64_t task, enum task_state end);

/* Is this the failure or skip in a row that people are told of? */
bool schedule_is_failing_now(const struct schedule_state *before, const struct schedule_state *after);

/* Was the occurrence skipped, so that a person may have it made? If so it is taken out of the skipped ones. */
bool schedule_take_skipped(const struct schedule_plan *plan, struct schedule_state *state, int64_t at_ms);

/* Has it made a task already, as far as is remembered? */
bool schedule_has_made(const struct schedule_state *state, int64_t at_ms);

/* It was created, changed, resumed or restored: nothing from before is made. `anew`: the clock counts, even if it is behind
 * what was looked at. */
void schedule_begin(struct schedule_state *state, int64_t now_ms, bool anew);
