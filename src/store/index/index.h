/*
 * The index: every task that is not final, every live claim and every worker, in memory.
 *
 * It mirrors what is committed and nothing else: a turn works on copies and hands them over with index_set()
 * once its transaction is on disk. It is rebuilt from the rows when a store is opened. A waiting task costs
 * about a hundred bytes, all in.
 *
 * After a commit there is no way back. So a turn reserves what the index will need before the commit is sent, with
 * index_reserve() and index_reserve_lane(); a turn that gets no memory there is refused, and index_set() and its like cannot fail.
 */
#pragma once

#include <assert.h>

#include "base/hash.h"
#include "base/heap.h"
#include "base/map.h"
#include "base/slab.h"
#include "base/span.h"
#include "base/wheel.h"
#include "core/flow/stats.h"
#include "core/task/document.h"
#include "core/task/pace.h"
#include "core/task/task.h"
#include "core/worker/worker.h"
#include "store/index/lane.h"

enum {
	HOLDER_QUEUES_KEPT = 8,
};

/* An account that a worker uses with an executor; or an executor that subtasks of the first one may name, or that takes its place. */
struct worker_account {
	struct span executor, account;
};

/* A worker, or a plain claimant while it holds something. Its number is its place + 1. */
struct holder {
	uint32_t instance; /* first, because the slab overwrites the first bytes of a free item */
	struct worker worker;
	uint32_t first_claim; /* place of its first index_claim */
	uint32_t id_len;
	char *id;
	uint64_t id_hash;
	char *metadata;
	uint32_t metadata_len;
	struct wheel_node timer;
	int64_t ended_ms;
	struct pace registrations; /* of this id */
	uint64_t asks;             /* the queues that it asked for work, as bits of asked.h; 0: none yet */
	uint32_t queues[HOLDER_QUEUES_KEPT]; /* … the first of them by name */
	uint32_t queue_count;
	bool any_queue; /* it asked for work of any */
	bool refused;   /* its last claim named a queue that its credential is not for */
	/* lists of live workers, by number, 0 at both ends: workers of the same slot; workers that beat, longest unheard first */
	uint32_t slot_next, slot_previous;
	uint32_t heard_next, heard_previous;
	int64_t notified_seq;            /* news_seq of worker_document */
	struct worker_account *accounts; /* that it announced last, with their texts; in memory only */
	uint32_t account_count;
	struct worker_account *subtasks; /* … with which executor which others may be named in subtasks */
	uint32_t subtask_count;
	struct worker_account
		*fallback; /* … which others take the place of an executor whose account is held */
	uint32_t fallback_count;
	bool beats;          /* it is in the list of workers that beat */
	bool stale_on_disk;  /* its renewal should be written */
	uint64_t view_turn;  /* number of the last turn that has a view of it */
	uint32_t view_index; /* index of that view in turn.workers */
};

/* The tasks of one queue, counted. */
/* What a principal has, as far as it is committed; and what the open turn gives it: that counts in the turn `turn` only. */
struct account {
	uint32_t principal;
	uint32_t tasks; /* open, created by it */
	uint64_t kib;   /* of these */
	uint32_t workers;
	uint32_t more_tasks, more_workers;
	uint64_t more_kib;
	uint64_t turn;
};

struct queue_tally {
	uint32_t queue;                   /* name */
	uint32_t count[TASK_STATE_COUNT]; /* tasks now in each state; final ones are not counted */
	uint32_t live;                    /* tasks with a live claim */
	uint32_t live_keyed;              /* … that have a concurrency key */
	uint64_t keyless_served;          /* of those that have none, together: see struct fair_turn */
	uint64_t came[TASK_STATE_COUNT];  /* tasks that entered each state since the start */
	struct stats_cell fresh;          /* what is in no row yet: see store/stats.h */
	bool told_limited; /* queue.limited was told, and since then there were always ready tasks */
	uint64_t
		told_taken; /* tasks that were claimed or begun when queue.idle was told last: see queue_news.c */
};

/* What was told of a queue. */
struct queue_news {
	uint32_t queue;
	bool told_limited;
	uint64_t told_taken;
};

/* Timers of the lease clock are numbered: place << 1 | kind. */
enum timer_kind {
	TIMER_CLAIM = 0,
	TIMER_WORKER = 1,
};

struct index {
	struct slab tasks;
	struct slab claims;
	struct slab rares; /* fields that few tasks have: deadlines, stages, gates, questions */
	struct slab parents;
	struct map by_seq;
	bool is_indexed; /* by_seq has all tasks: see index_build() */
	struct map rare_by_seq;
	struct map parent_by_seq;
	struct lanes lanes;
	struct slab holders;
	struct map holder_by_id;
	struct hash_key key;
	int64_t age_ms;            /* queue.ageMs */
	struct heap wall_timers;   /* what: the seq of a task; some are out of date and find nothing to do */
	struct wheel lease_timers; /* one per live claim on its own lease, one per live worker */
	uint32_t count[TASK_STATE_COUNT]; /* tasks by state; final ones are not counted */
	uint32_t backing_off;             /* scheduled tasks that wait before another attempt */
	uint32_t awaiting;                /* waiting tasks that wait for their subtasks */
	uint32_t
		behind_schedule; /* waiting tasks that wait for the one before of their schedule, and for no parent */
	uint32_t succeeding;     /* … for the one whose unique key they took */
	uint32_t asking_to_stop; /* asking tasks whose worker has to stop */
	struct slab tallies;     /* queue_tally of every queue that had a task */
	struct map tally_by_queue;
	uint32_t last_tally;  /* place: the next task is often of the same queue */
	struct slab accounts; /* struct account of every principal that had an open task, or a live worker */
	struct map account_by_principal;
	struct slab slot_workers; /* struct slot_workers of every slot that a worker was in */
	struct map list_by_slot;
	uint32_t heard_first, heard_last;
	uint32_t workers[WORKER_INACTIVE + 1]; /* by state */
	uint32_t workers_alive;
	uint32_t room; /* how many changes are possible without memory, at least: see index_reserve() */
};

/* A copy on the heap. NULL: no memory. */
char *index_copy(struct span text);

/* For a call that cannot fail, because its memory was reserved. */
static inline void index_must_fit(int fault)
{
	assert(fault == 0);
}

void index_init(struct index *index, struct hash_key key, int64_t now_lease_ms);
void index_done(struct index *index);

/* The place of a task that is not final, or MAP_NONE. */
uint32_t index_find(const struct index *index, int64_t seq);

int64_t index_seq(const struct index *index, uint32_t place);

/* A copy of the task. */
void index_get(const struct index *index, uint32_t place, struct task *ret_task);

/* The outline of the task in a place below index_places(); false: the place is empty. A task keeps its place as long as it is
 * not final. */
bool index_outline(const struct index *index, uint32_t place, struct task_outline *ret_outline);
uint32_t index_places(const struct index *index);

/* How many tasks this task blocks; index_set_children() ignores a task that is not in the index. */
uint32_t index_children(const struct index *index, uint32_t place);
void index_set_children(struct index *index, int64_t seq, uint32_t count);

/* Does the task in the place go before `task` in claim order? And the order of two of one lane. */
bool index_goes_before(const struct index *index, uint32_t place, const struct task *task);
int index_order(const struct index *index, uint32_t a, uint32_t b);

/* Memory for that many changes: of a task with its children, of a worker, or a wall timer that is set again. -ENOMEM. */
int index_reserve(struct index *index, uint32_t changes);

/* Memory for the task in the lane that it will enter; *ret_lane NULL: it enters no lane. -ENOMEM. */
int index_reserve_lane(struct index *index, uint32_t place, const struct task *task, struct lane **ret_lane);

/* Make the task in memory what the committed row is: insert, change or, when it is final, forget it. `place` is its
 * place, or MAP_NONE: a turn that changes a task has looked for it before. `enters` is from index_reserve_lane() for the same
 * change. */
void index_set(struct index *index, uint32_t place, const struct task *task, struct lane *enters,
	const struct given *given);

/* The turn is over: gives back unused reservations, and drops outdated timers if there are many. */
void index_release_reserved(struct index *index);
void index_forget(struct index *index, uint32_t place);

/* At the opening of a store, after all tasks were added: builds by_seq, so that tasks are found. Building it at once costs
 * half as much as letting it grow with a million tasks. */
int index_build(struct index *index);

/* Everything is loaded: from now on `came` of the tallies counts. -ENOMEM. */
int index_loaded(struct index *index);

/* The account of a principal: it never moves. NULL: no memory. */
struct account *index_account(struct index *index, uint32_t principal);

/* A task of the queue was claimed after that time. The task is to be set in the same turn. */
void index_note_wait(struct index *index, uint32_t queue, int64_t ms);

/* What was told of the queue is on disk. */
void index_note_news(struct index *index, const struct queue_news *news);

/* The counts of tally number `at` were written. */
void index_forget_fresh(struct index *index, uint32_t at);

/* Tally number `at`, or NULL past the end; index_find_tally(): its number for a queue, or MAP_NONE. */
const struct queue_tally *index_tally(const struct index *index, uint32_t at);
uint32_t index_find_tally(const struct index *index, uint32_t queue);

/* When the claim of that task was made (wall), or 0; and the fence of its last claim. */
int64_t index_claimed_ms(const struct index *index, uint32_t place, uint64_t *ret_fence);

/* The pace of progress reports of the task's claim, or NULL. In memory only. */
struct pace *index_progress(struct index *index, uint32_t place);

/* The wall time since which the longest waiting task of a lane is ready, among the first of each priority;
 * INT64_MAX: the lane is empty. *looks is how many tasks may be looked at, and goes down. */
int64_t index_oldest_ready_ms(const struct index *index, const struct lane *lane, uint32_t *looks);

/* The key of the lane that the task belongs in; false: in no lane. */
bool index_lane_of(const struct index *index, const struct task *task, struct lane_key *ret_key);

/* The number of the holder of that id, or 0; and the holder of a number. */
uint32_t index_find_holder(const struct index *index, struct span id);
static inline struct holder *index_holder(const struct index *index, uint32_t number)
{
	assert(number != 0);
	return slab_at(&index->holders, number - 1);
}

/* Does the worker take work of that queue, as far as is known? Claims of older clients' names are not noted. */
bool holder_may_take(const struct holder *holder, uint32_t queue);
void holder_asks(struct holder *holder, uint32_t queue); /* for work of that queue; 0: of any */
struct span holder_id(const struct holder *holder);

/* The holder of that id, or a new one in state WORKER_UNKNOWN; 0 if there is no memory. index_drop_holder() takes it
 * back. */
uint32_t index_make_holder(struct index *index, struct span id, bool *ret_added);
void index_drop_holder(struct index *index, uint32_t number);

/* Make the worker in memory what was committed. `metadata` is on the heap, is taken over and replaces the old one, unless data
 * is NULL. A plain claimant without claims is forgotten. */
void index_set_worker(
	struct index *index, const struct worker *worker, struct span metadata, const struct given *given);

/* The live worker in a slot, else the one that ended there last and is remembered; 0: none. */
uint32_t index_last_in_slot(const struct index *index, uint32_t slot);
/* The live workers in a slot: the first, and those after it; 0 at the end. */
uint32_t index_first_in_slot(const struct index *index, uint32_t slot);
uint32_t index_next_in_slot(const struct index *index, uint32_t number);

/* Of the live workers that beat, the one that was heard longest ago, or 0. */
uint32_t index_longest_unheard(const struct index *index);

/* Walk all holders: start with 0, 0 at the end. */
uint32_t index_next_holder(const struct index *index, uint32_t number);

/* The tasks a holder has claims on: start with MAP_NONE, which is also the end. *ret_seq is the task. */
uint32_t index_next_claim(
	const struct index *index, const struct holder *holder, uint32_t at, int64_t *ret_seq);

/* The task a claim timer belongs to. */
int64_t index_timer_task(const struct index *index, uint32_t timer);

/* Sets a timer again that was taken out and found nothing to do, or whose turn failed. */
void index_rearm(struct index *index, uint32_t timer, const struct given *given);

/* The same for a timer of the wall clock. index_set() sets one only when the time of a task changes: a task that is given
 * the time again at which its timer was taken out in the same turn gets that timer back. */
void index_rearm_wall(struct index *index, const struct heap_entry *timer);
