/*
 * Slots: stable names that workers fill, and the quarantine of slots whose workers crash too often.
 *
 * The third crash within the window stops the slot; an operator lifts that, and after a while one trial is
 * let through. A crash during the trial's window quarantines it again at once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "core/event.h"
#include "core/task/given.h"
#include "core/refusal.h"

enum {
	SLOT_CRASHES_KEPT = 8,
};

/* Stored numbers. */
enum slot_state {
	SLOT_FREE_TO_RUN = 0,
	SLOT_QUARANTINED = 1,
	SLOT_ON_TRIAL = 2,
};

struct slot {
	enum slot_state state;
	int64_t since_ms;                      /* lease clock: of the quarantine, or of the trial */
	int64_t crashed_ms[SLOT_CRASHES_KEPT]; /* lease clock, newest first; INT64_MIN = none */
	uint32_t restarts;                     /* unclean ends */
	uint64_t trial_by;                     /* digest of the worker that the trial was given to */
};

struct slot_decision {
	enum refusal refusal;
	enum event_kind event;
	struct slot slot;
};

void slot_init(struct slot *slot);
struct slot_decision slot_crash(const struct slot *slot, const struct given *given);
struct slot_decision slot_unquarantine(const struct slot *slot);

/* Its worker ended without a goodbye. That counts; a crash that quarantines is for its supervisor to tell. */
struct slot slot_lost(const struct slot *slot);

/* A worker of this slot wants to run: refused while quarantined, except for one trial, which is an event and belongs
 * to the worker that it was given to. `who` is a digest of that worker's id, not 0. */
struct slot_decision slot_enter(const struct slot *slot, uint64_t who, const struct given *given);

/* The machine rebooted: times on the lease clock start again. */
struct slot slot_rebase(const struct slot *slot, const struct given *given);

/* How it stands now: a trial that was survived is over. */
enum slot_state slot_state_now(const struct slot *slot, const struct given *given);

/* One place in a pool is `<worker>/<executor>-<n>`: which worker, by its slot or its name, and which executor. False: the
 * slot is not a place of a pool. */
bool slot_split_pool(struct span name, struct span *ret_worker, struct span *ret_executor);

const char *slot_state_name(enum slot_state state);
