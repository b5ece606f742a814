/*
 * Holds: the tasks of an account are passed over, because the account is exhausted, logged out, or its service is down.
 *
 *   none ──a quota failure · a person──▶ held ──its time──▶ probing ──the probe reports usage or completes──▶ releasing ──10 min──▶ none
 *                                         ▲ later failures extend it   │ one claim at a time                     │ so many a minute
 *                                         └──────── a quota failure ───┴─────────────────────────────────────────┘
 *
 * Times are of the wall clock: an account's limit ends at a time of day, whatever this server does meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/event.h"
#include "core/task/failure.h"
#include "core/task/given.h"

/* Stored numbers. */
enum hold_state {
	HOLD_NONE = 0,
	HOLD_HELD = 1,
	HOLD_PROBING = 2,
	HOLD_RELEASING = 3,
};

struct hold {
	enum hold_state state;
	enum failure_code code; /* of the failure that opened it; CODE_NONE: a person did */
	uint32_t in_row;        /* holds since the account last worked */
	int64_t since_ms;       /* held since; releasing since */
	int64_t until_ms;       /* held until; 0: until a person acts */
	int64_t probe_task;     /* probing: the task that tries, and the fence of its claim; 0: none does */
	uint64_t probe_fence;
	int64_t next_ms; /* releasing: no claim before; 0: one may come */
};

struct hold_decision {
	enum event_kind event; /* EVENT_NONE: nothing to record, though the hold may have changed */
	struct hold hold;
};

/* A failure of class quota; `retry_at_ms` is when the service said that it goes on, 0 if it did not. */
struct hold_decision hold_fail(
	const struct hold *hold, enum failure_code code, int64_t retry_at_ms, const struct given *given);

/* The account has nothing left of its budget for the day, which ends then; a hold that is longer stays. */
struct hold_decision hold_spend(const struct hold *hold, int64_t until_ms, const struct given *given);

/* A person holds the account until then (0: until a person acts), or lets it go at once. */
struct hold_decision hold_set(const struct hold *hold, int64_t until_ms, const struct given *given);
struct hold_decision hold_lift(const struct hold *hold);

/* Its time has come: one claim tries; or the next claim may come; or it was released long enough. */
struct hold_decision hold_due(const struct hold *hold, const struct given *given);

/* The task with that fence has shown that the account works. */
struct hold_decision hold_prove(
	const struct hold *hold, int64_t task, uint64_t fence, const struct given *given);

/* May one more claim go through? `probe_lives`: the claim that tries is still alive. */
bool hold_lets(const struct hold *hold, bool probe_lives, const struct given *given);

/* … and it did. */
struct hold hold_claimed(const struct hold *hold, int64_t task, uint64_t fence, const struct given *given);

/* A claim was taken up again by its worker and has another fence. It is no further claim; one that tries the account goes on trying. */
struct hold hold_resumed(const struct hold *hold, int64_t task, uint64_t fence);

/* When it wants to be looked at again; INT64_MAX: never. */
int64_t hold_next_ms(const struct hold *hold);

const char *hold_state_name(enum hold_state state);

/* Is one that was read from disk consistent? */
bool hold_is_sound(const struct hold *hold);
