/*
 * The states of a task and the moves between them, as data.
 *
 * `state` is exact; `status` is the coarse one that clients of slot workers know. The transition table in
 * state.c is the only list of legal moves; spec/states.md is checked against it. The numbers are
 * stored, so rows are only ever appended.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/event.h"

// clang-format off
#define TASK_STATES(X) \
	X(PENDING,    1, "pending",   TODO,        "parked: claimed only by a claimant that asks for pending") \
	X(SCHEDULED,  2, "scheduled", TODO,        "becomes ready by itself at a time") \
	X(WAITING,    3, "waiting",   TODO,        "some task that it waits for has not ended") \
	X(READY,      4, "ready",     TODO,        "may be claimed now") \
	X(CLAIMED,    5, "claimed",   IN_PROGRESS, "leased, not yet confirmed") \
	X(RUNNING,    6, "running",   IN_PROGRESS, "leased and confirmed") \
	X(ASKING,     7, "asking",    IN_PROGRESS, "waits for a person's answer") \
	X(REVIEW,     8, "review",    REVIEW,      "work reported: a gate or a validator decides") \
	X(BLOCKED,    9, "blocked",   BLOCKED,     "a person must change something first") \
	X(FAILED,    10, "failed",    BLOCKED,     "attempts or crash budget spent, or not retryable") \
	X(DONE,      11, "done",      DONE,        "finished") \
	X(CANCELLED, 12, "cancelled", CANCELLED,   "called off")
// clang-format on

enum task_state {
	TASK_NOWHERE = 0, /* before creation, and after a purge */
#define X(name, number, wire, status, text) TASK_##name = number,
	TASK_STATES(X)
#undef X
		TASK_STATE_COUNT
};

/* Callers ask for a status by name; which one they may ask for depends on who they are. */
enum task_status {
	STATUS_NONE = 0,
	STATUS_TODO,
	STATUS_IN_PROGRESS,
	STATUS_REVIEW,
	STATUS_BLOCKED,
	STATUS_DONE,
	STATUS_CANCELLED,
	TASK_STATUS_COUNT,
};

/* The status of that wire name, or STATUS_NONE; and the status of a state. */
enum task_status task_status_from_name(const char *name, unsigned long len);
enum task_status task_status_of(enum task_state state);

const char *task_state_name(enum task_state state);
const char *task_state_status(enum task_state state);

/* done, failed and cancelled: only an operator's retry leads out. */
bool task_state_is_final(enum task_state state);

/* claimed and running always have a claim; asking may. */
bool task_state_may_hold_claim(enum task_state state);
bool task_state_must_hold_claim(enum task_state state);

/* One row of the transition table: this kind of event leads from any state of `from` to any of `to`. */
struct transition {
	enum event_kind kind;
	uint16_t from; /* bit per enum task_state */
	uint16_t to;
};

#define STATE_BIT(state) ((uint16_t)(1u << (state)))

/* The moves, and the notes that leave the state as it was (their `to` is empty); each list ends with a row
 * of kind EVENT_NONE. */
extern const struct transition task_transitions[];
extern const struct transition task_notes[];

bool transition_is_legal(enum event_kind kind, enum task_state from, enum task_state to);
