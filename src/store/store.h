/*
 * The store: whole turns in, results out.
 *
 *   commands ─▶ store_turn() ─▶ for each: load a small view, let the core decide, stage rows and the event
 *                            ─▶ one commit ─▶ the index follows ─▶ results
 *
 * A store has one active writer and one owner of a turn at a time; it starts no thread and asks no clock.
 * A result may be told to the caller as soon as store_turn() has returned 0, and not before: then it is on
 * disk. Timers and lapsed leases enter a turn by themselves, before its commands.
 *
 *   store.c, open.c, upkeep.c   turns as the caller sees them; the start; what goes on between turns
 *   turn/                       a turn from the inside: views, staging, commit
 *   command/                    what happens in it, by command and by timer
 *   read/                       reading between turns
 *   index/                      what is in memory: tasks, workers, ready tasks in claim order, texts as numbers
 *   record/                     events and their folding; the output of attempts; small records
 *   sqlite/, postgres/          where rows live (tests/backend/ has rows in memory)
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "core/command.h"
#include "core/task/document.h"
#include "core/task/given.h"
#include "core/worker/signing_key.h"
#include "core/worker/slot.h"
#include "core/why.h"
#include "store/backend.h"
#include "store/read.h"
#include "store/record/record.h"

enum {
	STORE_COMMANDS_MAX = 4096,        /* in one turn */
	STORE_TOKENS_MAX = 10000,         /* kept, ended ones included */
	STORE_TIMERS_MAX = 1000,          /* fired by one turn; the next one goes on */
	STORE_GENERATION_MAX = 10000000,  /* restores: a fence has it in its high digits */
	STORE_STARTS_MAX = (1 << 24) - 1, /* a heartbeat token has it in its high bits */
};

struct retention {
	int64_t final_ms;    /* how long a final task is kept … */
	uint64_t finals_max; /* … while there are no more than this */
	int64_t event_ms;
	uint64_t events_max;
	uint64_t audit_max; /* events of credentials, gates, execution and the server, beyond events_max */
	int64_t idempotency_ms;
	int64_t dead_worker_ms;    /* how long a dead worker's id is remembered … */
	uint32_t dead_workers_max; /* … while there are no more than about this */
	int64_t ended_token_ms;    /* how long the row of a revoked or expired token is kept */
	uint32_t step;             /* rows looked at by one sweep */
};

/* The tasks that workflows begin: where they go, and their texts, which the store does not know the form of. */
struct action_tasks {
	struct span queues
		[ACTION_COUNT]; /* empty: no task is made, and the event alone tells what is to be done */
	/* The body of a task that does so for the task of that id. */
	int (*body)(struct arena *arena, enum action action, struct span id, struct span *ret_body);
	/* Why work is rejected: the error of the one that judged it, as the error of the other; empty: nothing was said. */
	int (*error)(struct arena *arena, enum action action, struct span id, struct span said,
		struct span *ret_error);
};

struct store_options {
	struct rules rules;
	struct retention retention;
	/* Queues that hand out only autonomous tasks: names, a blank between them; "*": all; NULL: none. Borrowed. */
	const char *opt_in_queues;
	const struct workflow_plan *workflows; /* configured; their rules and texts are borrowed */
	uint32_t workflow_count;
	struct action_tasks actions;
	struct moment now;
	uint64_t boot_hi, boot_lo; /* the machine's boot id: leases of another boot are rebased */
	uint64_t seed;             /* of hashes and jitter */
	/* Bytes that nobody can guess, for the keys of derived tokens. NULL: the store makes no keys and looks at no admin token. */
	void (*random)(void *bytes, size_t count);
	unsigned char admin_hash[TOKEN_HASH_BYTES]; /* of the admin's token */
	unsigned char admin_key
		[SIGNING_KEY_BYTES]; /* that follows from it: releases before keys in the store used it */
	bool look_only;              /* everything is loaded and nothing is written: no turns */
};

struct store_options store_options_default(void);

/* Takes the backend over if it succeeds. Opening is a turn of its own: it counts the start, rebases leases
 * after a reboot, and sets claims free after a restore. -ENOSPC and the like: nothing was changed. */
int store_open(struct backend *backend, const struct store_options *options, struct store **ret_store);

/* Closes the backend too; NULL is fine. */
void store_close(struct store *store);

/* Forgets the memory as a crash would and hands the backend back. */
struct backend *store_abandon(struct store *store);

/*
 * One turn. `ret_results` has one result per command, valid until the next turn. Returns 0, also when every
 * command was refused because the disk is full. A negative fault is the end: what is on disk is not known,
 * nothing of this turn may be acknowledged, and no further turn is accepted.
 */
int store_turn(struct store *store, struct moment now, const struct command *commands, uint32_t count,
	struct result *ret_results);

/* A turn in two halves, for a backend that does not block; store_turn() is both, and waits. store_send() decides and
 * hands everything over; store_settle(), with the same results, is asked until it no longer says -EAGAIN. Then the results
 * may be told, and until then the memory is as before and no other turn begins. Faults of both as above. */
int store_send(struct store *store, struct moment now, const struct command *commands, uint32_t count,
	struct result *ret_results);
int store_settle(struct store *store, struct result *results, uint32_t count);

/* What the last turn left to claim among the tasks it touched: how many, and in which queues. A claimant that waits
 * for work in one of them should ask again. `max` queues are told at most; as many may mean that there are more. */
struct ready_work {
	uint32_t tasks;
	uint32_t queue_count;
};

struct ready_work store_ready_work(const struct store *store, uint32_t *ret_queues, uint32_t max);

/* What the last turn changed about claimants rather than tasks. Did it let claims go through that were passed over, because a hold has
 * ended? */
bool store_holds_let(const struct store *store);
/* The workers that may take more than before, one by one: they were full and have a free place, or they described themselves anew. `*at`
 * starts at 0; false: there are no more. And the slots that were opened. */
bool store_next_widened(const struct store *store, uint32_t *at, struct span *ret_worker);
bool store_next_opened_slot(const struct store *store, uint32_t *at, struct span *ret_slot);

/* How long until a timer needs a turn; 0: now; INT64_MAX: no timer is set. */
int64_t store_idle_ms(const struct store *store, struct moment now);

/* The machine was suspended, or the server stalled: nobody expires before the window has passed. */
void store_woke(struct store *store, struct moment now);

/* One small step of upkeep: renewals worth writing, retention, a checkpoint, coming back from a full disk.
 * To be called about once a second, after the replies have gone out. Faults as for store_turn(). */
int store_sweep(struct store *store, struct moment now);

/* The last thing before an orderly end: writes the figures of the minute that is open. A fault costs these figures and nothing
 * else, but the store is not used any more after it. */
int store_rest(struct store *store, struct moment now);

/* Is retention behind? Then the next sweep should not wait for its second. */
bool store_has_chores(const struct store *store);

/* After the replies of a busy turn have gone out. Faults as for store_turn(). */
int store_checkpoint(struct store *store);

bool store_is_dead(const struct store *store);
/* Why the store is dead or degraded; else the last call's fault, NULL if there was none or it has no words. */
const char *store_complaint(const struct store *store);

/* From now on, until the next call. */
void store_set_room(struct store *store, const struct store_room *room);

/* ---- figures and looks for the server; read.h has what the API reads ---------------------------- */

enum {
	TIMES_BUCKETS = 12, /* the last one is for everything longer */
};

struct times {
	uint64_t buckets[TIMES_BUCKETS];
	int64_t sum_ms;
};

extern const int64_t times_ends_ms[TIMES_BUCKETS - 1]; /* upper bound of each bucket, in ms */

/* What became of the tasks of workers that were lost, in this run. */
enum reschedule_error {
	RESCHEDULE_RETRY,     /* the store could not be written: it is tried again */
	RESCHEDULE_PERMANENT, /* the crash budget was spent: the task has failed */
	RESCHEDULE_SKIPPED, /* there was nothing to do: it asks, it was to be cancelled, or rescheduleOnExpiry is off */
	RESCHEDULE_ERROR_COUNT,
};

/* What was counted by this run of the server. */
struct store_counts {
	uint64_t events[EVENT_KIND_COUNT];            /* committed events, by kind */
	struct times wait_times;                      /* of tasks, from being ready to their claim */
	struct times run_times;                       /* of tasks, from their claim to its end */
	uint64_t rescheduled;                         /* tasks of lost workers that became ready again */
	uint64_t unscheduled[RESCHEDULE_ERROR_COUNT]; /* tasks of lost workers that did not, by the reason */
	uint64_t registrations_refused;               /* registrations above the limit */
	uint64_t creates_refused;                     /* tasks above the quota of their principal */
};
const struct store_counts *store_counts(const struct store *store);

/* Workers by state; the age of the oldest last heartbeat among the live ones that send them; and slots. */
uint32_t store_workers(const struct store *store, enum worker_state state);
int64_t store_heartbeat_age_max_ms(const struct store *store, struct moment now);
uint32_t store_slots_quarantined(const struct store *store);

/* Tasks by queue. */
struct queue_figures {
	struct span name;
	const uint32_t *count; /* tasks by state; final ones are not counted */
	const uint64_t *came;  /* tasks that entered each state, in this run */
	int64_t oldest_ready_ms; /* wall: since when the longest waiting task is ready; INT64_MAX: no task is ready */
};

/* The figures of each queue that had a task in this run, of at most a thousand. Looks at a bounded number of tasks. */
int store_each_queue_figures(const struct store *store,
	int (*each)(void *context, const struct queue_figures *figures), void *context);

/* How many tasks wait, by reason: parked, scheduled, ready and not taken, … Returns the number of tasks that were not looked
 * at, because there were too many. */
uint32_t store_count_reasons(struct store *store, struct moment now, uint32_t ret_counts[WHY_COUNT]);
/* Is execution armed? And since when (wall); 0: it was never set. */
bool store_is_armed(const struct store *store, int64_t *ret_since_ms);
uint32_t store_generation(const struct store *store);
const char *store_kind(const struct store *store); /* of its backend */
uint32_t store_schema(const struct store *store);
uint64_t store_starts(const struct store *store);
uint32_t store_count(const struct store *store, enum task_state state); /* not for final states */
size_t store_timers(const struct store *store); /* number of timers set, on both clocks */
bool store_opts_in(const struct store *store, uint32_t queue);
enum queue_state store_queue_state(const struct store *store, struct span queue);
bool store_worker(const struct store *store, struct span id, struct worker *ret_worker);
/* A task that is claimed now, and its holder. False: it is not claimed. The text is valid until the next turn. */
bool store_live_claim(const struct store *store, int64_t seq, struct task *ret_task, struct span *ret_holder);
/* The session made a request: it is not idle. In memory only. */
/* The current secret of the token was shown: the one before it, if that is still valid, is not any more. */
void store_see_secret(struct store *store, struct span token);
void store_see_login(struct store *store, struct span id, int64_t lease_ms);

/* Counts changes of tokens: while it stays the same, every token that was found is valid and unchanged. */
uint64_t store_token_changes(const struct store *store);
/* The keys of derived tokens; those of a store that could not be started on a full disk may be missing. Valid until the next turn. */
const struct signing_keys *store_signing_keys(const struct store *store);
bool store_slot(const struct store *store, struct span name, struct slot *ret_slot);

/* Ids of the workers that the last turn wants notified. Valid until the next turn. */
const struct span *store_notified(const struct store *store, uint32_t *ret_count);

/* Rises with every turn that heard from a worker. */
uint64_t store_worker_changes(const struct store *store);

/* A question to the backend, between turns: see backend_ops. */
int store_query(struct store *store, struct admin_query *question);

/* ---- proofs ------------------------------------------------------------------------------------ */

/* Does the memory equal the rows? And do the events, folded, give the rows? 0, or -EPROTO with a sentence in
 * `complaint` (of `len` bytes). Both read everything. */
int store_check_memory(struct store *store, char *complaint, size_t len);
int store_check_fold(struct store *store, char *complaint, size_t len);

/* ---- backup, while running -------------------------------------------------------------------- */

int store_backup_begin(struct store *store, const char *path);
int store_backup_step(struct store *store, uint32_t pages, uint32_t *ret_remaining);
void store_backup_end(struct store *store);
