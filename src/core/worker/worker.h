/*
 * Workers: one record per process instance, its lease and its heartbeat token.
 *
 *     unknown ──register · first beat──▶ active ──▶ quiet ──▶ terminating
 *                                          │          │            │
 *                                          └──────────┴────────────┴──▶ inactive (for good)
 *
 * A heartbeat extends the lease to server-now plus the granted length. Each accepted beat gets a new token;
 * a beat with another token than the last one extends nothing and is answered with the current one, because
 * our last reply was lost. An inactive worker never comes back under the same key.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/event.h"
#include "core/task/given.h"
#include "core/lease.h"
#include "core/refusal.h"

/* Stored numbers. Active, quiet and terminating are alive. */
enum worker_state {
	WORKER_UNKNOWN = 0, /* never registered: a plain claimant, or nobody */
	WORKER_ACTIVE = 1,
	WORKER_QUIET = 2,
	WORKER_TERMINATING = 3,
	WORKER_INACTIVE = 4,
};

enum worker_end {
	WORKER_ENDED_NOT = 0,
	WORKER_EXPIRED = 1,
	WORKER_SHUTDOWN = 2,
	WORKER_TERMINATED = 3,
	WORKER_REPLACED = 4,
};

/* Which process a worker is, by its own word. Zero in a field: it did not say. */
struct worker_process {
	uint32_t host;             /* name */
	uint64_t boot_hi, boot_lo; /* boot id of its machine */
	uint32_t pid;
	uint64_t start; /* of the process, in the units of its system, since that boot */
};

struct worker {
	uint32_t handle;    /* the store's number for it; tasks name their holder by it */
	uint32_t principal; /* its owner: the first who used the id */
	enum worker_state state;
	enum worker_end ended;
	bool named;     /* a name from an older client's API: it may come back as a new instance */
	uint64_t token; /* last one issued */
	uint64_t
		credential; /* token of its last registration, and the number of its own credential; 0: none */
	struct lease lease;
	int64_t heard_ms; /* lease clock: last beat that this run of the server heard; INT64_MIN = none */
	int64_t stored_deadline_ms; /* the lease's deadline on disk; older by at most the restart grace */
	uint32_t slot;
	uint32_t capabilities;   /* set */
	uint32_t executors;      /* set */
	bool any_executor;       /* it named none: it takes tasks of any executor */
	uint32_t max_concurrent; /* 0 = no limit */
	uint32_t held;           /* live claims */
	int64_t registered_ms;   /* wall */
	int64_t last_beat_ms;    /* wall */
	struct worker_process process;
	uint32_t version; /* name: of its program; 0: it did not say */
};

enum {
	WORKER_HELD_MAX = 10000,        /* live claims of one worker, however many it asks for */
	WORKER_METADATA_MAX = 16 << 10, /* bytes: they stay in memory; a supervisor lists its pools there */
};

struct worker_decision {
	enum refusal refusal;
	enum event_kind event; /* EVENT_NONE: nothing to record */
	bool must_store;       /* the reply waits until this is on disk */
	bool store_soon;       /* worth writing, but no reply waits for it */
	bool frees_lost;       /* what it held is lost: decide each task with task_lose() */
	bool frees_returned;   /* what it held is given back: task_return() */
	struct worker worker;
};

/* A registration or a beat. */
struct beat {
	uint32_t principal;
	bool inherits; /* the worker's owner is gone: a name that has ended may be taken by anybody */
	bool has_token;
	uint64_t token;
	int64_t lease_ms; /* asked for; 0 = default */
	bool has_deltas;  /* binds or unbinds come with it */
	bool registers;   /* it is a registration */
	bool describes;   /* the fields below were given */
	uint32_t slot;
	uint32_t capabilities;
	uint32_t executors;
	bool any_executor;
	uint32_t max_concurrent;
	bool named;
	struct worker_process process;
	uint32_t version;
};

/* How a newcomer's claim that the worker in its slot is dead was judged. */
enum evidence {
	EVIDENCE_NONE = 0, /* no evidence was given */
	EVIDENCE_HOLDS,
	EVIDENCE_OF_ANOTHER,    /* it names another worker than the one that fills the slot */
	EVIDENCE_UNCHECKED,     /* the slot's worker never said which process it is */
	EVIDENCE_FROM_AFAR,     /* the newcomer is not on the host and boot of the slot's worker */
	EVIDENCE_OTHER_PROCESS, /* the slot's worker is another process */
	EVIDENCE_REFUTED,       /* the server sees the process alive */
};

/* `dead` is the process that the newcomer says is dead. `seen_alive`: the server looked for that process on its own
 * machine and found it; not finding it proves nothing, because the worker may live in a container. */
enum evidence worker_judge(const struct worker_process *old, const struct worker_process *newcomer,
	const struct worker_process *dead, bool seen_alive);

/* Explicit registration. `slot_taken`: another live worker fills the slot it asks for. */
struct worker_decision worker_register(
	const struct worker *worker, const struct beat *beat, bool slot_taken, const struct given *given);

/* A heartbeat; the first one of an unknown key registers it. */
struct worker_decision worker_beat(
	const struct worker *worker, const struct beat *beat, bool slot_taken, const struct given *given);

/* Does the beat come from another process than the worker's last one, which never said goodbye? Names of older clients come
 * back like this, and workers that register under an id of their own choice; the worker stays the same. */
bool worker_is_restarted(const struct worker *worker, const struct beat *beat);

/* A named worker made progress: that counts as a beat. */
struct worker_decision worker_renew(const struct worker *worker, const struct given *given);

/* An operator's wish: take no more work; end. */
struct worker_decision worker_quiet(const struct worker *worker);
struct worker_decision worker_terminate(const struct worker *worker);

/* The end: the lease ran out (no change while it has not); it said goodbye, an operator removed it, or its
 * successor in the slot showed that it is gone. */
struct worker_decision worker_expire(const struct worker *worker, const struct given *given);
struct worker_decision worker_leave(const struct worker *worker, enum worker_end how);

/* The store was restored, and all claims are void. A worker that beats must learn it, because its token may still be the
 * right one. A named worker learns it from the answer to its next report. */
struct worker_decision worker_void(const struct worker *worker);

/* The machine rebooted: the lease starts again. */
struct worker_decision worker_rebase(const struct worker *worker, const struct given *given);

/* Its token was revoked: its lease is cut. */
struct worker_decision worker_cut(const struct worker *worker, const struct given *given);

/* May the principal act under this id? The id belongs to its first principal for as long as the worker is remembered; a
 * claimant that never registered is remembered while it holds a claim. */
bool worker_belongs_to(const struct worker *worker, uint32_t principal);

/* Is a worker that was read from disk consistent? */
bool worker_is_sound(const struct worker *worker);

bool worker_is_alive(const struct worker *worker);

/* Does it send heartbeats, so that claims handed to it are verified? */
bool worker_beats(const struct worker *worker);

/* Has it as many claims as it may have? */
bool worker_is_full(const struct worker *worker);

/* Are the tasks that it may take others than before: by its state, or by what it says of itself? */
bool worker_takes_other(const struct worker *before, const struct worker *after);

/* May it take one more task, and if not, why? */
enum refusal worker_may_claim(const struct worker *worker);

const char *worker_state_name(enum worker_state state);
const char *worker_end_name(enum worker_end ended);
