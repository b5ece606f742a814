/*
 * Bulk actions: one change for every task that matches a filter.
 *
 *	RUNNING ──the last task that was there has been looked at──▶ DONE
 *	   └──a person · the credential of its caller has ended · a restore──▶ STOPPED
 *
 * The tasks are walked by their numbers, up to the last one that was there when the action was accepted, a step at a time. A step
 * changes its tasks and moves the cursor behind them in one transaction: whatever happens to the server, no task is changed twice.
 * What is refused for a task is counted by the code of the refusal.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "core/refusal.h"

/* Stored numbers. */
enum bulk_action {
	BULK_RETRY = 1,
	BULK_CANCEL = 2,
	BULK_PARK = 3,
	BULK_UNPARK = 4,
	BULK_MOVE = 5,     /* into another queue */
	BULK_PRIORITY = 6, /* another priority */
	BULK_PURGE = 7,
	BULK_ACTION_COUNT,
};

/* Stored numbers. */
enum bulk_state { BULK_RUNNING = 1, BULK_DONE = 2, BULK_STOPPED = 3 };

/* Why it is stopped. Stored numbers. */
enum bulk_stop {
	BULK_NOT_STOPPED = 0,
	BULK_BY_PERSON = 1,
	BULK_REVOKED = 2,  /* the credential of its caller was revoked, or has expired */
	BULK_RESTORED = 3, /* the store was restored since it began */
	BULK_DAMAGED = 4,  /* the rows of the tasks cannot be read */
	BULK_STOP_COUNT,
};

enum {
	BULK_FILTER_BYTES_MAX = 8192,
	BULKS_RUNNING_MAX = 16,
	BULKS_KEPT_MAX = 100, /* of a store, with those that have ended */
	BULK_STEP_MAX = 64,   /* tasks of one step */
};

struct bulk_progress {
	enum bulk_state state;
	enum bulk_stop stop;
	int64_t cursor, last; /* tasks up to `cursor` were looked at, of those up to `last` */
	uint64_t matched;     /* when it was accepted */
	uint64_t done;
	uint64_t skipped[REFUSAL_COUNT];
	int64_t ended_ms; /* wall; 0: it runs */
};

struct bulk_progress bulk_begin(int64_t last, uint64_t matched, int64_t now_ms);

/* May a step that begins behind that task be made? Another one has been made before, or the action has ended. */
bool bulk_takes_step(const struct bulk_progress *progress, int64_t from);

/* Was the task there when the action was accepted, and was it not looked at since? */
bool bulk_covers(const struct bulk_progress *progress, int64_t task);

/* A task was changed, or the change was refused. */
void bulk_count(struct bulk_progress *progress, enum refusal refusal);

/* All up to `cursor` were looked at. True: that was the last one, and the action has ended. */
bool bulk_advance(struct bulk_progress *progress, int64_t cursor, int64_t now_ms);

/* False: it has ended before. */
bool bulk_stop(struct bulk_progress *progress, enum bulk_stop why, int64_t now_ms);

uint64_t bulk_skipped(const struct bulk_progress *progress); /* in all */
bool bulk_is_sound(const struct bulk_progress *progress);

/* What was asked for, and by whom. It never changes. */
struct bulk {
	uint32_t number;
	enum bulk_action action;
	int32_t priority;   /* BULK_PRIORITY */
	struct span queue;  /* BULK_MOVE */
	struct span filter; /* as the caller wrote it; what matches is not decided here */
	struct span actor;  /* for the events */
	struct span token;  /* the id of the caller's credential */
	uint32_t principal;
	bool oversees;
	struct name_list within; /* the caller sees tasks of these queues only; empty: all */
	int64_t created_ms;
};

enum {
	BULK_ID_BYTES_MAX = 13,
};

/* "b-7" */
struct span bulk_id_put(uint32_t number, char text[BULK_ID_BYTES_MAX]);
uint32_t bulk_id_read(struct span id); /* 0: no such id */

const char *bulk_action_name(enum bulk_action action);
enum bulk_action bulk_action_find(struct span name); /* 0: no such action */
const char *bulk_state_name(enum bulk_state state);
const char *bulk_stop_name(enum bulk_stop stop);
