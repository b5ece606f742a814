/*
 * The model: what the events say, folded one by one as they are committed, and what actors were told.
 *
 * It is the simulator's own memory of the world. Every event is judged against it before it is folded in;
 * every row of the store must equal it. A restore takes the model back to what it was when the copy was made.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "core/command.h"
#include "sim/request.h"
#include "sim/words.h"
#include "store/record/record.h"

struct sim;

enum {
	MODEL_NONE = UINT32_MAX,
	MODEL_NAMES_MAX = 128,
	MODEL_BULKS_MAX = 128,
};

/* A claim's own lease as results told it; 0 granted: not known. */
struct model_lease {
	int64_t since_true_ms;
	uint32_t granted_ms;
	bool worker_clock;
};

struct model_task {
	struct fold fold; /* state TASK_NOWHERE: purged */
	char id[ID_MAX];
	uint32_t live_at; /* its place in model.live, MODEL_NONE when final */
	uint32_t outcome; /* the last of its ended claims, by place in model.outcomes */
	struct model_lease lease;
	uint32_t question; /* number of the last one that it asked */
	uint32_t bulk;     /* the bulk action that changed it last */
	int64_t claimed_event;
	bool succeeds; /* it took the place of a task that ran */
	uint32_t groups,
		waits; /* bits of the groups that it named to wait for, and of those that have not ended since */
};

/* A group by its name, as events tell it. */
struct model_group {
	int64_t number;  /* as tasks name it; 0: not known */
	int64_t removed; /* the number of the last one of this name that is gone */
	bool ended;
};

enum model_hold_state { MODEL_FREE, MODEL_HELD, MODEL_PROBING, MODEL_RELEASING };

struct model_hold {
	enum model_hold_state state;
	int64_t probing_event; /* since then one claim at a time tries */
	int64_t until_ms;      /* wall: released a few at a time */
};

struct model_worker {
	char id[ID_MAX];
	enum worker_state state;
	enum worker_end ended;
	bool named;
	uint32_t max, held;
	int64_t accepted_true_ms; /* of the last beat or registration */
	uint32_t granted_ms;
	uint64_t token; /* the last one issued */
	int slot;
};

/* How one claim ended. */
struct outcome {
	int64_t task;
	uint64_t fence;
	enum claim_end ended;
	enum task_state to;
	uint32_t previous;
};

/* Something an actor was told and that must stay so. */
struct ack {
	enum command_kind kind; /* CREATE, or a report */
	int64_t task;
	uint64_t fence;
	enum claim_end ended;
};

struct model {
	struct model_task *tasks;
	uint32_t task_count, task_cap;
	struct map task_by_seq;
	struct map task_by_id;
	uint32_t *live; /* tasks that are not final */
	uint32_t live_count, live_cap;
	uint32_t existing;
	struct model_worker *workers;
	uint32_t worker_count, worker_cap;
	struct map worker_by_id;
	struct outcome *outcomes;
	uint32_t outcome_count, outcome_cap;
	struct ack *acks;
	uint32_t ack_count, ack_cap;
	enum queue_state queues[WORD_QUEUES];
	struct queue_limits limits[WORD_QUEUES];
	double full_ms
		[WORD_QUEUES]; /* wall: when the bucket of the queue's rate is full again, counted from claims */
	struct model_group groups[WORD_GROUPS];
	struct model_hold holds[WORD_ACCOUNTS];
	bool quarantined[WORD_SLOTS];
	int64_t crashed_ms[WORD_SLOTS][2]; /* lease clock: the last crashes, newest first; INT64_MIN = none */
	uint32_t bulks_ended[MODEL_BULKS_MAX]; /* the last ones, round and round */
	uint32_t bulk_count;
	int64_t last_event;
	int64_t wall_high_ms; /* the latest wall time ever seen: what was ready stays so when the clock is set back */
	uint32_t generation;
	uint32_t era;
	uint64_t hash; /* over every event, also those that a restore took back */
};

void model_init(struct model *model);
void model_done(struct model *model);
void model_copy(struct model *to, const struct model *from);

/* A slot begins anew: it was let go, or the machine restarted. */
void model_forget_crashes(struct model *model, int slot);

struct model_task *model_task(const struct model *model, int64_t seq);
struct model_task *model_task_by_id(const struct model *model, struct span id);
struct model_worker *model_worker(const struct model *model, struct span id);
struct model_worker *model_worker_made(struct model *model, struct span id);

/* Read and judge the events that were committed since the last time. */
void model_follow(struct sim *sim);

/* An actor has heard this. */
void model_acknowledge(struct sim *sim, const struct request *request, const struct reply *reply);

/* Nothing that was acknowledged is lost. */
void model_check_acks(struct sim *sim);

/* The limit that keeps the task from being claimed, counted from what the events say of every other task. */
/* Live claims of the task's concurrency key in its queue; tasks without a key are one key. */
uint32_t model_live_of_key(const struct sim *sim, const struct task *task);
enum limit_kind model_limit(const struct sim *sim, const struct model_task *task);

/* The limits of the task's queue, as events tell them. */
const struct queue_limits *model_limits(const struct sim *sim, const struct model_task *task);

/* A claim that is new was made: does the rate of its queue allow it? */
bool model_take_permit(struct sim *sim, const struct model_task *task, int64_t wall_ms);

/* The hold of the task's account; NULL: it names none. */
struct model_hold *model_hold(struct sim *sim, const struct task *task);

/* Does only the hold itself know whether the task may be claimed: its account is tried, or is released a few at a time? */
bool model_hold_decides(struct sim *sim, const struct task *task, int64_t wall_ms);

/* The task was created to wait for these groups, and is of that one. */
void model_note_groups(struct sim *sim, struct model_task *task, const struct command_create *create);

/* A turn begins, or a start, at that time: a bucket that would be full later than one filling from now is full then, because the clock may
 * have been set back. */
void model_note_clock(struct model *model, int64_t wall_ms);

/* May this claimant take it now, by what the model knows? */
bool model_is_claimable(
	struct sim *sim, const struct model_task *task, const struct command *command, int64_t wall_ms);
