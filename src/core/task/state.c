/*
 * The transition table: the whole life of a task on one screen.
 *
 *        create ─▶ pending ◀─park─┐            ┌──────── expire · release · fail (retry) ───────┐
 *           │        │ unpark     │            ▼                                                │
 *           ├─▶ scheduled ─time─▶ ready ─claim─▶ claimed ─bind · progress─▶ running ─ask─▶ asking
 *           ├─▶ waiting ─parents─▶  │               │                          │             │
 *           └─▶ blocked ◀───────────┴── block ──────┴──────────────────────────┴─────────────┤
 *                  │ retry                                                                   │
 *                  ▼              done ◀── complete ◀── review ◀── report ───────────────────┤
 *                ready            failed ◀── budget spent · deadline                         │
 *                                 cancelled ◀── cancel ──────────────────────────────────────┘
 *
 * A from-bit of TASK_NOWHERE is creation, a to-bit of it is the purge by retention.
 */
#include "core/task/state.h"

#include <assert.h>
#include <string.h>

static const struct state_row {
	const char *name;
	enum task_status status;
} rows[TASK_STATE_COUNT] = {
#define X(name, number, wire, status, text) [number] = {wire, STATUS_##status},
	TASK_STATES(X)
#undef X
};

// clang-format off
#define S(name) STATE_BIT(TASK_##name)
#define FINAL   (S(DONE) | S(FAILED) | S(CANCELLED))
#define LEASED  (S(CLAIMED) | S(RUNNING))
#define HELD    (LEASED | S(ASKING))
#define RESTING (S(SCHEDULED) | S(WAITING) | S(READY) | S(BLOCKED))
#define LINED   (S(PENDING) | S(SCHEDULED) | S(WAITING) | S(READY))
#define ALL     (LINED | HELD | S(REVIEW) | S(BLOCKED) | FINAL)

const struct transition task_transitions[] = {
	/* kind                       from                                  to */
	{EVENT_TASK_CREATED,          S(NOWHERE),                           LINED | S(BLOCKED) | S(DONE) | S(FAILED)},
	{EVENT_TASK_CLAIMED,          S(READY) | S(PENDING) | LEASED,       LEASED},
	{EVENT_TASK_CONFIRMED,        S(CLAIMED),                           S(RUNNING)},
	{EVENT_TASK_PROGRESSED,       S(CLAIMED),                           S(RUNNING)},
	{EVENT_TASK_ASKED,            LEASED,                               S(ASKING)},
	{EVENT_TASK_ANSWERED,         S(ASKING),                            S(RUNNING) | S(READY)},
	{EVENT_TASK_ANSWERED,         S(CLAIMED),                           S(RUNNING)},
	{EVENT_TASK_REVIEWED,         HELD,                                 S(REVIEW)},
	{EVENT_TASK_COMPLETED,        HELD | S(REVIEW) | S(FAILED),         S(DONE)},
	{EVENT_TASK_FAILED,           HELD,                                 S(READY) | S(SCHEDULED) | S(FAILED)},
	{EVENT_TASK_FAILED,           S(REVIEW),                            S(READY) | S(FAILED)},
	{EVENT_TASK_FAILED,           LINED | S(ASKING) | S(BLOCKED),       S(FAILED)},
	{EVENT_TASK_BLOCKED,          HELD | LINED,                         S(BLOCKED)},
	{EVENT_TASK_RELEASED,         LEASED,                               S(READY) | S(SCHEDULED)},
	{EVENT_TASK_SUSPENDED,        LEASED,                               S(WAITING) | S(READY)},
	{EVENT_TASK_EXPIRED,          LEASED,                               S(READY) | S(SCHEDULED) | S(FAILED)},
	{EVENT_CLAIM_UNCONFIRMED,     S(CLAIMED),                           S(READY)},
	{EVENT_TASK_REQUEUED,         S(SCHEDULED) | S(WAITING) | LEASED,   S(READY)},
	{EVENT_TASK_REQUEUED,         S(WAITING),                           S(SCHEDULED)},
	{EVENT_TASK_REQUEUED,         S(BLOCKED),                           S(WAITING)},
	{EVENT_TASK_CANCELLED,        LINED | HELD | S(REVIEW) | S(BLOCKED), S(CANCELLED)},
	{EVENT_TASK_RETRIED,          S(BLOCKED) | FINAL,                   S(READY) | S(WAITING)},
	{EVENT_TASK_PARKED,           S(SCHEDULED) | S(WAITING) | S(READY), S(PENDING)},
	{EVENT_TASK_UNPARKED,         S(PENDING),                           S(SCHEDULED) | S(WAITING) | S(READY) | S(BLOCKED)},
	{EVENT_TASK_UPDATED,          RESTING,                              RESTING},
	{EVENT_TASK_PURGED,           FINAL,                                S(NOWHERE)},
	{EVENT_NONE, 0, 0},
};

const struct transition task_notes[] = {
	{EVENT_TASK_UPDATED,          ALL,                                  0},
	{EVENT_TASK_PROGRESSED,       S(RUNNING) | S(ASKING),               0},
	{EVENT_TASK_FAILED,           S(ASKING),                            0},
	{EVENT_TASK_RELEASED,         S(ASKING),                            0},
	{EVENT_TASK_EXPIRED,          S(ASKING),                            0},
	{EVENT_TASK_ANSWERED,         S(RUNNING),                           0},
	{EVENT_TASK_REQUEUED,         S(ASKING) | S(READY),                 0},
	{EVENT_CLAIM_REBASED,         HELD,                                 0},
	{EVENT_TASK_ORPHAN_RESULT,    ALL,                                  0},
	{EVENT_TASK_NOTED,            ALL,                                  0},
	{EVENT_SESSION_STARTED,       HELD,                                 0},
	{EVENT_SESSION_OUTPUT,        HELD,                                 0},
	{EVENT_SESSION_USAGE,         HELD,                                 0},
	{EVENT_SESSION_GONE,          S(SCHEDULED) | S(READY) | S(ASKING) | S(FAILED), 0},
	{EVENT_SESSION_ENDED,         S(SCHEDULED) | S(WAITING) | S(READY) | S(ASKING) | S(REVIEW) | S(BLOCKED) | FINAL, 0},
	{EVENT_TASK_STAGE_CHANGED,    ALL & ~(S(PENDING) | S(CANCELLED)),   0},
	{EVENT_GATE_OPENED,           S(REVIEW),                            0},
	{EVENT_GATE_PASSED,           S(REVIEW),                            0},
	{EVENT_GATE_REJECTED,         S(REVIEW),                            0},
	{EVENT_NONE, 0, 0},
};
// clang-format on

const char *task_state_name(enum task_state state)
{
	assert(state > TASK_NOWHERE);
	assert(state < TASK_STATE_COUNT);
	return rows[state].name;
}

enum task_status task_status_of(enum task_state state)
{
	assert(state > TASK_NOWHERE);
	assert(state < TASK_STATE_COUNT);
	return rows[state].status;
}

static const char *const status_names[TASK_STATUS_COUNT] = {
	[STATUS_TODO] = "todo",
	[STATUS_IN_PROGRESS] = "in-progress",
	[STATUS_REVIEW] = "review",
	[STATUS_BLOCKED] = "blocked",
	[STATUS_DONE] = "done",
	[STATUS_CANCELLED] = "cancelled",
};

const char *task_state_status(enum task_state state)
{
	return status_names[task_status_of(state)];
}

enum task_status task_status_from_name(const char *name, unsigned long len)
{
	for (int status = STATUS_TODO; status < TASK_STATUS_COUNT; status++) {
		if (strlen(status_names[status]) == len && memcmp(status_names[status], name, len) == 0)
			return (enum task_status)status;
	}
	return STATUS_NONE;
}

bool task_state_is_final(enum task_state state)
{
	return (STATE_BIT(state) & FINAL) != 0;
}

bool task_state_may_hold_claim(enum task_state state)
{
	return (STATE_BIT(state) & HELD) != 0;
}

bool task_state_must_hold_claim(enum task_state state)
{
	return (STATE_BIT(state) & LEASED) != 0;
}

bool transition_is_legal(enum event_kind kind, enum task_state from, enum task_state to)
{
	for (const struct transition *row = task_transitions; row->kind != EVENT_NONE; row++) {
		if (row->kind == kind && (row->from & STATE_BIT(from)) && (row->to & STATE_BIT(to)))
			return true;
	}
	for (const struct transition *row = task_notes; row->kind != EVENT_NONE; row++) {
		if (row->kind == kind && from == to && (row->from & STATE_BIT(from)))
			return true;
	}
	return false;
}
