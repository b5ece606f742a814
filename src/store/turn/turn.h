/*
 * A turn from the inside: copies of what it looks at, what it has staged, and how it ends.
 *
 * The turn works on copies. Rows and events go into the backend's open transaction as they are decided. The
 * index in memory changes only in turn_settle(), after the transaction is on disk. A turn that cannot be
 * committed leaves nothing behind.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/rng.h"
#include "core/flow/execution.h"
#include "core/flow/budget.h"
#include "core/flow/hold.h"
#include "core/flow/limit.h"
#include "core/task/subtask.h"
#include "store/index/index.h"
#include "store/command/executors.h"
#include "store/index/names.h"
#include "store/index/bulks.h"
#include "store/index/groups.h"
#include "store/index/schedules.h"
#include "store/index/sessions.h"
#include "store/index/registrations.h"
#include "store/index/asked.h"
#include "store/store.h"
#include "store/index/logins.h"
#include "store/index/tokens.h"
#include "store/stats.h"

struct turn_task {
	struct task task; /* as the turn has it */
	uint32_t place;   /* in the index when the turn began, or MAP_NONE */
	struct span own_id;
	uint32_t children; /* tasks that it blocks; for a final task only 0 or not 0 */
	bool changed, gone, was_final;
	bool orphaned;     /* a child was taken away from it */
	bool listed;       /* in turn.ready */
	struct lane *lane; /* the lane that it enters, with room reserved; set before the commit */
};

struct turn_worker {
	struct worker worker;
	struct span id, metadata; /* metadata.data NULL: unchanged */
	char *kept_metadata;      /* copy of the metadata for the index, made before the commit */
	uint32_t instance;
	bool added;
	bool stale_on_disk;
	bool widened; /* it may take more than when the turn began */
};

struct turn_queue {
	uint32_t name;
	enum queue_state state;
};

struct turn_slot {
	uint32_t name;
	struct slot slot;
};

/* Has the task been told something that nobody has heard? */
struct turn_telling {
	int64_t seq;
	bool unheard;
};

struct turn_schedule {
	struct definition *definition; /* a use of it */
	struct schedule_state state;   /* as the turn has it */
	bool gone;
};

struct turn_group {
	struct group_state group; /* as the turn has it */
	struct span name;
	uint32_t waiters;
	bool changed; /* its row is written before the commit */
	bool added, gone;
	char *kept_name; /* copy of the name for the memory, made before the commit */
};

struct turn_bulk {
	struct known_bulk *known;      /* in memory; or, of a new one, what the memory takes over */
	struct bulk_progress progress; /* as the turn has it */
	bool added, gone;
};

/* The hold of an account; state HOLD_NONE: it has none any more. */
struct turn_hold {
	uint32_t credential;
	struct hold hold;
};

/* The budget of a day; `name` is of a queue or an account. */
struct turn_day_budget {
	enum budget_scope scope;
	uint32_t name;
	struct day_budget budget;
};

enum {
	LIMITED_QUEUES_MAX = 10000,
};

/* Concurrency keys of a queue that have a number of their own in place of perKey, on the heap. */
struct key_caps {
	uint32_t count;
	struct key_cap items[KEY_CAPS_MAX];
};

struct head;

/* A queue that has, or had, limits. The lines of the turn count in the turn `turn` only. */
struct limited_queue {
	uint32_t queue; /* first, because the slab overwrites the first bytes of a free item */
	struct queue_limits limits;
	struct key_caps *caps; /* NULL: none */
	uint64_t turn;
	struct queue_limits next;       /* as the turn has them */
	struct key_caps *next_caps;     /* … taken over or freed at its end, if they are others than `caps` */
	int32_t more_live, more_review; /* live claims and tasks in review that the turn adds */
	int32_t more_keyless;           /* … of the live claims, those without a concurrency key */
	int32_t more_open;              /* … and open tasks */
	uint64_t keyless_served;        /* 0: not in this turn; see struct fair_turn */
	uint64_t head_turn;             /* `head` is of that turn: see choose.c */
	struct head *head;
	bool opened; /* claims that were passed over may go through after it */
};

/* What is left of a rate: of a queue, or of a concurrency key of it. The second line counts in the turn `turn` only. */
struct bucket {
	uint64_t key; /* first, because the slab overwrites the first bytes of a free item; 0: of the queue */
	int64_t due_ns;    /* see struct rate */
	int64_t refill_ms; /* in store.refills; 0: not */
	uint64_t turn;
	int64_t next_ns;
	uint32_t queue;
};

enum {
	REFILLED_MAX = 64, /* buckets that get a permit in one turn */
};

/* A concurrency key whose tasks the turn claims, ends or makes ready, and what that changes. */
struct turn_key {
	uint64_t key;
	uint32_t queue;
	uint32_t number; /* of the committed running_key, or MAP_NONE */
	int32_t more_live, more_begun;
	uint64_t served;      /* 0: not in this turn */
	uint32_t freed, came; /* claims that ended, tasks that came to stand in a lane */
	bool listed;          /* in turn.open_keys */
};

/* What the subtasks of a parent that the turn has created take from its budget. */
struct turn_budget {
	int64_t parent;
	uint32_t count;
	double taken[SUBTASK_BUDGET_PARTS];
};

/*
 *   IDLE ── turn_begin ──▶ OPEN ── turn_send ──▶ SENT ── turn_settle ──▶ IDLE   and the memory is as the disk
 *                           │                     │ a fault
 *                           └── turn_abort ───────┴──▶ IDLE                     and nothing has happened
 *
 * Views are loaded and rows staged while it is OPEN and at no other time; the memory changes in turn_settle() alone. What
 * the last turn did can be read until the next one begins.
 */
enum turn_state {
	TURN_IDLE = 0,
	TURN_OPEN,
	TURN_SENT,
};

struct turn_login {
	struct browser_login login;
	bool gone;
};

/* A limit per minute as it was before this turn: see turn_pace(). */
struct turn_pace {
	struct pace *pace;
	struct pace before;
};

/* What a turn changes of the store as a whole. */
struct store_facts {
	int64_t last_event, last_task; /* the last numbers that were given out */
	uint32_t last_principal, last_group, last_bulk;
	bool disarmed;
	int64_t execution_ms; /* wall: since when `disarmed` is as it is; 0: it was never set */
	uint64_t shadow_ids;  /* callers' ids that look like generated ones */
	int64_t finals;       /* final tasks that are kept */
	struct signing_keys keys;
};

/* What the program told of the admin's token. */
struct store_admin {
	unsigned char hash[TOKEN_HASH_BYTES];
	unsigned char key[SIGNING_KEY_BYTES]; /* follows from it */
	bool has_signed; /* `key` did, in a release before this one: see META_KEY_OF_ADMIN */
};

enum {
	TOLD_WORDS = EVENT_KIND_COUNT / 64 + 1,
};

struct turn {
	struct store *store;
	uint64_t number;
	struct given given;
	struct arena arena;
	struct buf record;
	enum turn_state state;
	bool in_doubt;    /* the last commit failed: its fault decides whether it is on disk */
	bool begun;       /* the backend's transaction is open */
	int fault;        /* the first fault of a change or a view: the turn is not sent */
	bool memory_only; /* the disk is full: nothing may be written */

	struct turn_task **tasks;
	uint32_t task_count, task_cap;
	struct map task_by_seq;
	struct turn_task **ready; /* tasks of this turn that stood in a lane at some moment */
	uint32_t ready_count, ready_cap;

	struct turn_worker **workers;
	uint32_t worker_count, worker_cap;
	/* workers that are notified after the commit: ids in the arena, because a plain claimant may be forgotten by then */
	struct span *notified;
	uint32_t notified_count, notified_cap;
	uint32_t notified_last; /* number of the last of them */
	bool any_widened;       /* one of the workers is */

	struct turn_queue *queues;
	uint32_t queue_count, queue_cap;
	struct turn_slot *slots;
	uint32_t slot_count, slot_cap;

	struct turn_telling *tellings; /* the last one of a task counts */
	uint32_t telling_count, telling_cap;
	struct turn_hold *holds;
	uint32_t hold_count, hold_cap;
	struct turn_day_budget *day_budgets;
	uint32_t day_budget_count, day_budget_cap;
	struct limited_queue **limited; /* of which the turn changes something */
	uint32_t limited_count, limited_cap;
	struct turn_key **keys; /* in the arena */
	uint32_t key_count, key_cap;
	struct map key_by_number;
	struct turn_key **
		open_keys; /* whose committed tasks are looked at by key, not in their lane: see running_key.c */
	uint32_t open_key_count, open_key_cap;
	uint32_t *buckets; /* numbers of those that the turn changes */
	uint32_t bucket_count, bucket_cap;
	uint32_t refilled[REFILLED_MAX]; /* queues in which a permit of a rate has come */
	uint32_t refilled_count;
	struct turn_budget *budgets; /* of the subtasks that the turn has created */
	uint32_t budget_count, budget_cap;
	uint64_t served;  /* claims that the turn has made in queues with limits */
	uint64_t choices; /* of a next task */
	bool holds_let;   /* claims that were passed over may go through now */

	struct session *spawned; /* by this turn; labels are on the heap, and the index takes them over */
	uint32_t spawned_count, spawned_cap;

	struct turn_schedule **schedules; /* those that the turn looked at, in the arena */
	uint32_t schedule_count, schedule_cap;
	uint32_t schedules_new; /* how many of them are not in memory yet */

	struct turn_group **groups; /* those that the turn looked at, in the arena */
	uint32_t group_count, group_cap;
	uint32_t groups_new; /* how many of them are not in memory yet, at most */
	struct map group_by_name;

	struct turn_bulk *bulks; /* those that the turn looked at */
	uint32_t bulk_count, bulk_cap;

	struct token **tokens; /* copies, as they shall be */
	uint32_t token_count, token_cap;

	struct turn_login *logins;
	uint32_t login_count, login_cap;

	struct turn_pace *paces;
	uint32_t pace_count, pace_cap;

	uint32_t timers[STORE_TIMERS_MAX]; /* taken out of the wheel */
	uint32_t timer_count;
	struct heap_entry wall_timers[STORE_TIMERS_MAX];
	uint32_t wall_timer_count;

	struct store_facts facts;        /* as they shall be */
	uint32_t told[EVENT_KIND_COUNT]; /* number of events of this turn, by kind */
	uint64_t told_kinds[TOLD_WORDS]; /* a bit for each kind with events in this turn */
	size_t handed_bytes;             /* size of the tasks that were handed out */
	struct spent_list spent;         /* by attempts, in this turn */
	bool wrote_stats;                /* what was counted so far is in rows of this turn */
	uint32_t rescheduled, unscheduled[RESCHEDULE_ERROR_COUNT];

	const struct command *command;      /* the one at hand, NULL for timers */
	struct outside_event outside_event; /* of the command at hand */
	int64_t outside_event_task;         /* the task it is about; 0: it moves no stage (yet) */
	struct span told_error;             /* of an event that nobody outside has sent: see command_tell() */
	bool names_spent;                   /* the command's principal may add no more names */
	uint32_t question; /* number of the question that the command at hand asks, answers or withdraws */
};

struct store {
	struct backend *backend;
	struct rules rules;
	struct retention retention;
	struct index index;
	struct names names;
	struct rng rng;
	struct turn turn;
	struct grace grace;

	/* queues and slots that differ from the default */
	struct turn_queue *queues;
	uint32_t queue_count, queue_cap;
	struct turn_slot *slots;
	uint32_t slot_count, slot_cap;
	struct map slot_by_name;
	uint32_t quarantined; /* number of quarantined slots */
	int64_t *told_tasks;  /* sorted: tasks that were told something that nobody has heard */
	uint32_t told_task_count, told_task_cap;
	struct turn_hold *holds; /* accounts that are held, or were until lately: a few */
	uint32_t hold_count, hold_cap;
	struct turn_day_budget
		*day_budgets; /* of queues and accounts that have one, or have used something today */
	uint32_t day_budget_count, day_budget_cap;
	int64_t budgets_ms; /* wall: the time of the last turn */

	struct slab limited; /* limited_queue */
	struct map limited_by_queue;
	struct slab buckets; /* of rates, those that are not full */
	struct map bucket_by_key;
	struct heap refills; /* what: the number of a bucket; some are out of date */
	int64_t rates_ms;    /* wall: the last moment that rates were judged at */

	struct schedules schedules;
	struct groups groups;
	struct bulks bulks;
	struct tokens credentials;
	struct logins logins;
	struct sessions sessions;
	struct workflows workflows;
	char workflow_names[WORKFLOW_MAX][WORKFLOW_NAME_MAX]; /* names of configured workflows */
	uint64_t workflows_new;                               /* bit per number that is not on disk yet */
	struct registrations registrations;
	struct asked_queues asked;
	struct store_counts counts;
	struct store_stats stats;

	uint32_t generation;
	uint64_t starts;
	uint64_t tokens; /* heartbeat tokens issued by this run */
	struct store_facts facts;
	int64_t event_base;
	uint64_t worker_changes; /* rises with each worker that a turn looked at */
	struct missing_executors missing_executors;
	int64_t purge_cursor;    /* where the next sweep goes on; after the end it starts again */
	uint32_t group_cursor;   /* … and among the groups */
	uint32_t queue_cursor;   /* … and among the queues */
	uint32_t renewal_cursor; /* number of the last holder that the last sweep looked at; 0: start again */
	uint64_t boot_hi, boot_lo;
	uint64_t id_hi, id_lo;                     /* which store it is */
	void (*random)(void *bytes, size_t count); /* of secrets; NULL: none are made */
	struct store_admin admin;
	const char *opt_in_queues;
	struct action_tasks actions;
	enum restored restored;
	bool rebooted;
	bool started; /* the start is on disk */
	bool degraded, dead;
	struct store_room room;
	bool is_compaction_stuck; /* old events are damaged: they, and those behind them, are not folded */
	uint32_t damages_told;    /* by an event */
	bool backing_up;
	char complaint[512];
};

/* An operation of the store's backend by its name in backend_ops: store_rows(store, get_meta, META_STARTS, &starts). */
#define store_rows(store, op, ...) ((store)->backend->ops->op((store)->backend, ##__VA_ARGS__))

/* Life of a turn. turn_send(), turn_settle(): 0, or a fault after which turn_abort() has already been called;
 * turn_settle() also -EAGAIN: not known yet, and nothing has changed. turn_commit() sends, waits and settles. */
void turn_init(struct turn *turn, struct store *store);
void turn_done(struct turn *turn);
void turn_begin(struct turn *turn, struct moment now);
int turn_send(struct turn *turn);
int turn_settle(struct turn *turn);
int turn_commit(struct turn *turn);
void turn_abort(struct turn *turn);

/* Open the backend's transaction if it is not open yet. Also the turn's first fault, if it has one. */
int turn_open_transaction(struct turn *turn);

/* Change a row, by an operation of backend_ops: turn_put(turn, put_meta, META_STARTS, starts). The transaction is opened if it is
 * not. A fault ends the turn: the first fault stays, nothing is written after it, and callers may check after several
 * changes. */
#define turn_put(turn, op, ...)                                          \
	((turn)->fault = turn_open_transaction(turn) < 0 ? (turn)->fault \
							 : store_rows((turn)->store, op, ##__VA_ARGS__))

/* Keep what was written into turn->record beside the task. */
int turn_put_record(struct turn *turn, int64_t seq, enum extra_kind kind, int64_t n);

/* Room for more than `count` items of a list on the heap. -ENOMEM. */
int turn_grow(void **items, uint32_t count, uint32_t *cap, size_t size);

/* "t-" and the sequence in base 36; -EINVAL if the id is not of that form. */
int generated_id_seq(struct span id, int64_t *ret_seq);

/* Views. -ENOENT: no such task. turn_find_task(): NULL if the turn has not looked at it. */
struct turn_task *turn_find_task(const struct turn *turn, int64_t seq);
int turn_task(struct turn *turn, int64_t seq, struct turn_task **ret_task);
/* A copy of a task that is not final; the turn gets no view of it. */
void turn_peek(const struct turn *turn, int64_t seq, struct task *ret_task);
int turn_task_by_id(struct turn *turn, struct span id, struct turn_task **ret_task);
int turn_own_id(
	struct turn *turn, struct turn_task *view); /* loads the caller's own id, if the task has one */
int turn_id_text(struct turn *turn, struct turn_task *view, struct span *ret_id);
struct turn_worker *turn_worker(struct turn *turn, struct span id, bool make); /* NULL: none, or no memory */
struct turn_worker *turn_worker_by_number(struct turn *turn, uint32_t number);
/* To be called before pace_take(): if the turn is aborted the pace is set back. -ENOMEM. */
int turn_pace(struct turn *turn, struct pace *pace);

/* What the principal has; `more_…` is what this turn has given it so far. NULL: no memory. */
struct account *turn_account(struct turn *turn, uint32_t principal);
/* Notify this worker after the commit. -ENOMEM. */
int turn_notify(struct turn *turn, uint32_t holder);
/* The number of a name; a new name counts for the command's principal. -E2BIG: too many names, in all or of this principal. */
int turn_name(struct turn *turn, struct span text, uint32_t *ret_id);
int turn_name_set(struct turn *turn, struct name_list members, uint32_t *ret_id);
int turn_keep_names(struct turn *turn, uint32_t count); /* write the names after the first `count` */
enum queue_state turn_queue(const struct turn *turn, uint32_t name);
void turn_slot(const struct turn *turn, uint32_t name, struct slot *ret_slot);

/* The committed slot, or NULL if it never differed from slot_init(). store_set_slot() needs room for it. */
const struct slot *store_find_slot(const struct store *store, uint32_t name);
int store_reserve_slots(struct store *store, uint32_t more); /* -ENOMEM */
void store_set_slot(struct store *store, const struct turn_slot *slot);

/* A schedule as the turn has it; *ret_view is NULL if there is none. -ENOMEM. */
int turn_schedule(struct turn *turn, struct span id, struct turn_schedule **ret_view);
/* The turn has a new one of it; a use of the definition is taken over, also if there is no memory for it. */
int turn_add_schedule(struct turn *turn, struct definition *definition, struct turn_schedule **ret_view);

int turn_new_principal(struct turn *turn, uint32_t *ret_principal);      /* a number that nobody has had */
const struct token *turn_token(const struct turn *turn, struct span id); /* NULL: none */
const struct browser_login *turn_login(const struct turn *turn, struct span id); /* NULL: none */

/* Every task that the worker holds as the turn has it. */
struct held_tasks {
	int64_t *seqs;
	uint32_t count;
};
int turn_held_by(struct turn *turn, const struct turn_worker *worker, struct held_tasks *ret_held);

/* Staging. */
struct record turn_record(const struct turn *turn, enum event_kind kind);
int turn_write_task(struct turn *turn, struct turn_task *view, const struct task_decision *decision,
	struct record *record);
int turn_write_new(struct turn *turn, const struct task_decision *decision, struct span own_id,
	struct record *record, struct turn_task **ret_view);
const struct workflow_plan *turn_plan(const struct turn *turn, const struct task *task);
/* Moves the task in its workflow after a change; `before` is the task before the change. */
int turn_follow(struct turn *turn, struct turn_task *view, const struct task *before);
int turn_store_worker(struct turn *turn, struct turn_worker *view); /* as it is */
/* `record` may be NULL if the decision has no event. */
int turn_write_worker(struct turn *turn, struct turn_worker *view, const struct worker_decision *decision,
	struct record *record);
int turn_write_event(struct turn *turn, struct record *record);
int turn_write_queue(struct turn *turn, uint32_t name, enum queue_state state, struct record *record);
int turn_write_execution(struct turn *turn, enum execution execution, struct record *record);
int turn_write_hold(struct turn *turn, uint32_t credential, const struct hold_decision *decision);
int turn_write_slot(struct turn *turn, uint32_t name, const struct slot *slot, enum event_kind event,
	struct record *record);
int turn_tell_output(struct turn *turn, struct turn_task *view); /* an output event, for sessions only */
int turn_write_session(struct turn *turn, struct turn_task *view, const struct session *session);

/* The label of the task's session, as the turn has it; empty: the task is no session. */
struct span turn_session_label(const struct turn *turn, int64_t seq);

/* A turn of the agent of a session has ended: the note of the command says what was used. */
int turn_tell_usage(struct turn *turn, struct turn_task *view);
int turn_write_token(struct turn *turn, const struct token *token);         /* it is copied */
int turn_write_login(struct turn *turn, const struct browser_login *login); /* it is copied */
int turn_drop_login(struct turn *turn, const struct browser_login *login);

/* read/read.c: how EXTRA_LAST_HOLDER is kept, and for which states: final and in review. */
bool last_holder_is_shown(enum task_state state);
enum {
	LAST_HOLDER_BYTES_MAX = COMMAND_ID_MAX + 48,
};
struct span last_holder_put(const struct last_holder *last, char text[LAST_HOLDER_BYTES_MAX]);

/* command/commands.c: one command; command/timers.c: all timers that are due. A fault ends the turn. */
int command_run(struct turn *turn, const struct command *command, struct result *result);
int timers_run(struct turn *turn);

/* command/usage.c: what all attempts of the task have used. */
int usage_read(struct store *store, int64_t seq, struct arena *arena, struct usage *ret_usage);

/* command/tell.c: what a task was told, and how far it was heard. Texts are in the arena; NULL: it was told nothing. */
struct tellings {
	uint32_t last, heard;
};
enum {
	TELLINGS_KEPT = 20,
};
int tellings_read(struct store *store, int64_t seq, struct arena *arena, struct tellings *ret_tellings);
int tellings_list(struct store *store, int64_t seq, struct arena *arena, struct tellings *ret_tellings,
	struct span **ret_texts, uint32_t *ret_first);
bool turn_is_told(const struct turn *turn, int64_t seq);
/* The holder has heard all up to that number. */
int tellings_heard(struct turn *turn, int64_t seq, uint32_t number);
int tellings_reserve(struct store *store, uint32_t more); /* -ENOMEM */
void tellings_set(struct store *store, int64_t seq, bool unheard);
int telling_load(struct store *store, struct span key);

/* command/budget.c: budgets of a day, at the end of a turn, at its beginning, as the turn has them and as they are committed. */
int budgets_reserve(struct turn *turn);
void budgets_apply(struct turn *turn);
void budgets_run_due(struct turn *turn);
int64_t budgets_next_ms(const struct store *store); /* wall; INT64_MAX: never */
bool turn_budget_is_spent(const struct turn *turn, uint32_t queue);
bool store_budget_is_spent(const struct store *store, uint32_t queue);
bool store_read_budget(
	const struct store *store, enum budget_scope scope, uint32_t name, struct day_budget *ret_budget);
int budgets_load(struct store *store, struct span key, const struct day_budget *budget, uint32_t name);

/* command/hold.c: the hold of an account as the turn has it; state HOLD_NONE: it is not held. */
struct hold turn_hold(const struct turn *turn, uint32_t credential);
int holds_run_due(struct turn *turn);
int64_t holds_next_ms(const struct store *store); /* wall; INT64_MAX: never */
/* command/limit.c: the limit that keeps tasks of the queue from being claimed, as the turn has it; a task changes, so that other
 * claims are alive; the memory follows the turn. */
void limits_init(struct store *store);
void limits_done(struct store *store);
int limits_load(struct store *store, uint32_t queue, const struct queue_limits *limits); /* -ENOMEM */
int limits_load_cap(
	struct store *store, uint32_t queue, struct span key, uint32_t most); /* -ENOMEM, -EPROTO */
enum limit_kind turn_limit(const struct turn *turn, uint32_t queue);
bool turn_queue_is_full(const struct turn *turn, uint32_t queue);               /* see limits_are_full() */
struct limited_queue *turn_fair_queue(const struct turn *turn, uint32_t queue); /* NULL: it is not fair */
int limits_follow(struct turn *turn, const struct task *before, const struct task *after); /* -ENOMEM */
void limits_apply(struct turn *turn);
void limits_forget(struct turn *turn); /* copies that nobody took over */
/* The limits of a queue as the turn has them, or as they are committed, and the number that a key has of its own, or 0. */
struct queue_limits turn_limits(const struct turn *turn, uint32_t queue, uint64_t key, uint32_t *ret_cap);
struct queue_limits store_key_limits(
	const struct store *store, uint32_t queue, uint64_t key, uint32_t *ret_cap, bool *ret_any);

uint32_t store_count_caps(const struct store *store, uint32_t queue);

/* command/rate.c: the next moment at which a rate lets a task of the queue, or of the key, be claimed; 0: it does now. */
void rates_init(struct store *store);
void rates_done(struct store *store);
int64_t turn_rate_opens_ms(const struct turn *turn, uint32_t queue, uint64_t concurrency_key);
int64_t store_rate_opens_ms(const struct store *store, uint32_t queue, uint64_t concurrency_key);
int rates_take(struct turn *turn, const struct task *task); /* a new claim; -ENOMEM */
int rates_fill(struct turn *turn, uint32_t queue);
int rates_write(struct turn *turn);
int rates_reserve(struct turn *turn);
void rates_apply(struct turn *turn);
int rates_refill(struct turn *turn); /* permits that have come */
int64_t rates_next_ms(const struct store *store);
int rates_sweep(struct turn *turn, uint32_t step);
int rates_load(struct store *store, uint32_t queue, uint64_t key, int64_t due_ns);

/* command/running_key.c: limits of the task's concurrency key, as the turn has them and as they are committed; what a change of a
 * task means for its keys. */
void running_keys_init(struct store *store);
int running_keys_follow(struct turn *turn, const struct task *before, const struct task *after); /* -ENOMEM */
/* The first limit of its queue, or of its key, that keeps the task from being claimed. */
enum limit_kind turn_task_limit(const struct turn *turn, const struct task *task);
enum limit_kind store_task_limit(const struct store *store, const struct task *task);

/* Does a hold keep the task from that worker, as it does between two turns? */
bool store_hold_keeps(const struct store *store, struct span worker, const struct task *task);
enum limit_kind turn_key_limit(const struct turn *turn, const struct task *task);
enum limit_kind store_key_limit(const struct store *store, const struct task *task);
struct key_load store_key_load(const struct store *store, const struct task *task);
/* Whose turn a key has in its queue, as the turn has it; key 0: the tasks without a key. */
struct fair_turn turn_fair(const struct turn *turn, uint32_t queue, uint64_t key);
struct fair_turn turn_fair_keyless(const struct turn *turn, uint32_t queue);
/* The key as the turn has it; NULL: the turn changes nothing of it. */
struct turn_key *turn_key(const struct turn *turn, uint32_t queue, uint64_t key);
/* The limits of a queue become others in this turn: its keys are judged anew. -ENOMEM. */
int running_keys_touch(struct turn *turn, uint32_t queue);
/* The limits of a queue become others: between the two calls. */
void running_keys_lift(struct store *store, uint32_t queue);
void running_keys_lower(struct store *store, uint32_t queue);
void running_keys_clear(struct turn *turn);
/* How many waiting claims may find work because the last turn freed keys, or brought tasks of keys: of the queue of key number `at`. */
uint32_t running_key_room(const struct store *store, uint32_t at, uint32_t *ret_queue);
/* Does a key say how many of the task's claims wake, rather than the task itself? */
bool running_key_counts(const struct store *store, const struct task *task);
/* The same of what is committed; and the limits with what counts against them. */
struct queue_limits store_limits(const struct store *store, uint32_t queue, struct queue_load *ret_load);
enum limit_kind store_limit(const struct store *store, uint32_t queue);
/* The queues in which the last turn ended claims or changed limits, and how many of their tasks may be claimed. */
bool limits_has_opened(const struct store *store, uint32_t queue);
bool limits_next_opened(const struct store *store, uint32_t *at, uint32_t *ret_queue, uint32_t *ret_room);
/* command/queue_news.c: queue.drained, told when a task changes; and for a queue that begins to drain. */
int queue_follow_task(struct turn *turn, const struct task *before, const struct task *after);
int queue_tell_drained(struct turn *turn, uint32_t queue);
bool queue_is_empty(const struct turn *turn, uint32_t queue); /* it has no open task */
/* Tells what is new of some queues, and what is to be noted of them when that is on disk: index_note_news(). */
enum {
	QUEUE_NEWS_MAX = 64,
	QUEUES_LOOKED_AT = 4096, /* by one sweep */
};
int queues_sweep(struct turn *turn, struct queue_news news[QUEUE_NEWS_MAX], uint32_t *ret_count);

/* command/schedule.c: all occurrences that are due; a task of a schedule has ended or was opened again; nothing from before a
 * restore is made. */
int schedules_run(struct turn *turn);
int schedule_follow_task(struct turn *turn, const struct turn_task *view);
int schedules_begin_again(struct turn *turn);

/* turn/task.c: for those that wait for the group; *waiters is 0 when nobody waits any more. */
int turn_follow_group(struct turn *turn, uint32_t group, enum follow follow, uint32_t *waiters);

/* command/group.c: a member moved; retention; and at the end of a turn: the rows of changed groups, memory for what is new,
 * the memory as the rows are, copies that nobody took over, and the beginning of the next turn. */
int group_follow_task(struct turn *turn, uint32_t number, enum task_state from, enum task_state to);

/* A task that has ended is opened again. Its group may have been removed meanwhile: then it is of none, because the name is free. */
int group_leave_if_gone(struct turn *turn, uint32_t *group);
int group_add_waiter(struct turn *turn, int64_t edge);
int groups_sweep(struct turn *turn, uint32_t step);
int groups_write(struct turn *turn);
int groups_prepare(struct turn *turn);
void groups_apply(struct turn *turn);
void groups_forget(struct turn *turn);
void groups_clear(struct turn *turn);

/* command/bulk.c: nothing from before a restore goes on; the memory follows the turn; copies that nobody took over. */
int bulks_stop_all(struct turn *turn);
void bulks_apply(struct turn *turn);
void bulks_forget(struct turn *turn);

/* command/session.c */
int session_forget(struct turn *turn, int64_t seq); /* its label is free again */
int sessions_load(struct store *store);

/* index/workflows.c: the plans by number; names of new workflows are written in the turn of the start. */
int workflows_load(struct store *store, const struct store_options *options); /* -E2BIG: too many names */
int workflows_keep(struct turn *turn);

/* command/subtask.c: the subtasks of a task: how many it has created, those before an operator's last retry with them, and how
 * many stand beneath it if it is the root; the one of that number, from 0. */
struct subtasks {
	uint32_t made, first, in_tree;
};
int subtasks_read(struct store *store, int64_t seq, struct arena *arena, struct subtasks *ret_subtasks);
int subtasks_at(struct store *store, int64_t seq, uint32_t number, struct arena *arena, int64_t *ret_subtask);
int subtasks_drop_edges(struct turn *turn, int64_t seq);
int subtasks_call_off(struct turn *turn, const struct turn_task *view);
int subtasks_begin_anew(struct turn *turn, int64_t seq); /* an operator has retried the task */

/* Does an open task want the result of this one, which is final, or is it part of a tree that is at work? */
int task_is_needed(struct turn *turn, const struct turn_task *view, bool *ret_needed);

/* command/action.c: creates the task of an action for that task's workflow; without a queue it does nothing. And such a task has
 * ended: the task that it is for is told. */
int action_begin(struct turn *turn, struct turn_task *of, enum action action);
int action_ended(struct turn *turn, struct turn_task *view);

/* command/emit.c: an event that nobody outside has sent. `note` goes into it; `error` is kept if the task fails by it or is rejected. */
int command_tell(
	struct turn *turn, struct turn_task *view, struct span type, struct span note, struct span error);

/* command/ask.c: the questions of the task; all 0: it has asked none, or it asked an older server. */
int questions_read(struct store *store, int64_t seq, struct arena *arena, struct questions *ret_questions);

/* read/offer.c: does the task name no executor, and require only these capabilities? */
bool store_task_fits(const struct store *store, const struct task *task, const struct name_set *capabilities);

/* read/read.c: a task as it was committed, from memory, or from disk if it is final. -ENOENT. */
int store_load_task(struct store *store, int64_t seq, struct arena *arena, struct task *ret_task);

/* The extra of that kind, kept beside the task; empty: none. */
int store_get_kept(
	struct store *store, int64_t seq, enum extra_kind kind, struct arena *arena, struct span *ret_data);

/* The next number for a heartbeat token. */
uint64_t store_next_token(struct store *store);

/* store.c, open.c, upkeep.c */

/* Does the fault end by itself, once the disk has room or may be written? */
bool fault_will_pass(int fault);

/* Refuse changes and let nobody expire, until upkeep finds room. */
void store_degrade(struct store *store, int fault);

/* A fault ended the turn; nothing of it happened. 0 if the store lives on. */
int store_fail(struct store *store, int fault);

/* The turn that notes the start; on a full disk it may have to wait. */
int store_start(struct store *store, struct moment now);
