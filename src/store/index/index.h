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
#include "core/task/document.h"
#include "core/task/pace.h"
#include "core/task/task.h"
#include "core/worker/worker.h"
#include "store/index/lane.h"

/* A worker, or a plain claimant while it holds something. Its number is its place + 1. */
struct holder {
	uint32_t instance; /* first, because the pool writes over the first bytes of what is free */
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
	uint64_t asks;             /* the queues it has asked work of: see asked.h; 0: of none yet */
	/* lists of the live ones, by number, 0 at both ends: those in the same slot, and those that beat, as last heard */
	uint32_t slot_next, slot_previous;
	uint32_t heard_next, heard_previous;
	int64_t notified_seq; /* news_seq of worker_document */
	bool beats;           /* is in the latter */
	bool stale_on_disk;   /* a renewal is worth writing */
	uint64_t view_turn;   /* the turn that has a copy of it, and where */
	uint32_t view_index;
};

/* The tasks of one queue, counted. */
struct queue_tally {
	uint32_t queue;                   /* name */
	uint32_t count[TASK_STATE_COUNT]; /* that are there now; not the final ones */
	uint64_t came[TASK_STATE_COUNT];  /* that moved into that state since the start */
};

/* Timers of the lease clock are numbered: place << 1 | kind. */
enum timer_kind {
	TIMER_CLAIM = 0,
	TIMER_WORKER = 1,
};

struct index {
	struct slab tasks;
	struct slab claims;
	struct slab rares; /* what few tasks have: deadlines, stages, gates, questions */
	struct slab parents;
	struct map by_seq;
	bool is_indexed; /* by_seq has them all: see index_build() */
	struct map rare_by_seq;
	struct map parent_by_seq;
	struct lanes lanes;
	struct slab holders;
	struct map holder_by_id;
	struct hash_key key;
	struct heap wall_timers;   /* what: the seq of a task; some are out of date and find nothing to do */
	struct wheel lease_timers; /* one per live claim on its own lease, one per live worker */
	uint32_t count[TASK_STATE_COUNT]; /* tasks by state, the final ones apart */
	uint32_t backing_off;             /* scheduled ones that wait before another attempt */
	uint32_t asking_to_stop;          /* asking ones whose worker is told to stop */
	struct slab tallies;              /* queue_tally of every queue that had a task */
	struct map tally_by_queue;
	uint32_t last_tally;      /* place: the next task is often of the same queue */
	struct slab slot_workers; /* struct slot_workers of every slot that a worker was in */
	struct map list_by_slot;
	uint32_t heard_first, heard_last;
	uint32_t workers[WORKER_INACTIVE + 1]; /* by state */
	uint32_t workers_alive;
	uint32_t room; /* changes that no structure needs memory for, at least: see index_reserve() */
};

/* A copy on the heap. NULL: no memory. */
char *index_copy(struct span text);

/* For what only allocates within what was reserved: see above. */
static inline void index_must_fit(int fault)
{
	assert(fault == 0);
}

void index_init(struct index *index, struct hash_key key, int64_t now_lease_ms);
void index_done(struct index *index);

/* The place of a task that is not final, or MAP_NONE. */
uint32_t index_find(const struct index *index, int64_t seq);

int64_t index_seq(const struct index *index, uint32_t place);

/* A copy of it. */
void index_get(const struct index *index, uint32_t place, struct task *ret_task);

/* Its outline; false if there is no task in the place, which is below index_places(). A task keeps its place as long as
 * it is not final. */
bool index_outline(const struct index *index, uint32_t place, struct task_outline *ret_outline);
uint32_t index_places(const struct index *index);

/* How many tasks it blocks; nothing happens to a task that is not there. */
uint32_t index_children(const struct index *index, uint32_t place);
void index_set_children(struct index *index, int64_t seq, uint32_t count);

/* Does the task in the place go before `task` in claim order? */
bool index_goes_before(const struct index *index, uint32_t place, const struct task *task);
int index_order(const struct index *index, uint32_t a, uint32_t b);

/* Room for so many changes: of a task with its children, of a worker, or a wall timer that is set again. -ENOMEM. */
int index_reserve(struct index *index, uint32_t changes);

/* Room for the task in the lane that it will enter; NULL: it enters none. -ENOMEM. */
int index_reserve_lane(struct index *index, uint32_t place, const struct task *task, struct lane **ret_lane);

/* Make the task in memory what the committed row is: insert, change or, when it is final, forget it. `place` is where
 * it lies, MAP_NONE if it does not: a turn that changes a task has looked for it before. `enters` is as index_reserve_lane()
 * gave it for the same change. */
void index_set(struct index *index, uint32_t place, const struct task *task, struct lane *enters,
	const struct given *given);

/* The turn is over: what was reserved and not used is given back, and timers without a meaning are dropped if they are many. */
void index_release_reserved(struct index *index);
void index_forget(struct index *index, uint32_t place);

/* All tasks of a store that is being opened are there; from now on they are found. One index made at once costs half of
 * one that grows with a million tasks. */
int index_build(struct index *index);

/* Everything is loaded: what moves from now on counts. -ENOMEM. */
int index_loaded(struct index *index);

/* The tallies by number: from 0 on, NULL at the end; and which one is of that queue, MAP_NONE if none is. */
const struct queue_tally *index_tally(const struct index *index, uint32_t at);
uint32_t index_find_tally(const struct index *index, uint32_t queue);

/* When the claim of that task was made (wall), 0 if there is none; and the fence of its last one. */
int64_t index_claimed_ms(const struct index *index, uint32_t place, uint64_t *ret_fence);

/* How often the claim of that task was told of; NULL if there is none. In memory only. */
struct pace *index_progress(struct index *index, uint32_t place);

/* The wall time since which the longest waiting task of a lane is ready, among the first of each priority;
 * INT64_MAX if there is none. *looks is how many tasks may be looked at, and goes down. */
int64_t index_oldest_ready_ms(const struct index *index, const struct lane *lane, uint32_t *looks);

/* In which lane would it stand, if in any? */
bool index_lane_of(const struct task *task, struct lane_key *ret_key);

/* The holder of that id, 0 if there is none; and by its number. */
uint32_t index_find_holder(const struct index *index, struct span id);
static inline struct holder *index_holder(const struct index *index, uint32_t number)
{
	assert(number != 0);
	return slab_at(&index->holders, number - 1);
}

/* Does the worker take work of that queue, as far as is known? Names of old doors ask in ways that are not noted. */
bool holder_may_take(const struct holder *holder, uint32_t queue);
struct span holder_id(const struct holder *holder);

/* The holder of that id, or a new one in state WORKER_UNKNOWN; 0 if there is no memory. index_drop_holder() takes it
 * back. */
uint32_t index_make_holder(struct index *index, struct span id, bool *ret_added);
void index_drop_holder(struct index *index, uint32_t number);

/* Make the worker in memory what was committed. `metadata` is on the heap, is taken over and replaces the old one, unless data
 * is NULL. A plain claimant without claims is forgotten. */
void index_set_worker(
	struct index *index, const struct worker *worker, struct span metadata, const struct given *given);

/* The live workers in a slot: the first, and those after it; 0 at the end. */
uint32_t index_first_in_slot(const struct index *index, uint32_t slot);
uint32_t index_next_in_slot(const struct index *index, uint32_t number);

/* Of the live workers that beat, the one that was heard longest ago; 0: there is none. */
uint32_t index_longest_unheard(const struct index *index);

/* Walk all holders: start with 0, 0 at the end. */
uint32_t index_next_holder(const struct index *index, uint32_t number);

/* The tasks a holder has claims on: start with MAP_NONE, which is also the end. *ret_seq is the task. */
uint32_t index_next_claim(
	const struct index *index, const struct holder *holder, uint32_t at, int64_t *ret_seq);

/* The task a claim timer belongs to. */
int64_t index_timer_task(const struct index *index, uint32_t timer);

/* Timers that were taken out and found nothing to do, or whose turn failed, are set again. */
void index_rearm(struct index *index, uint32_t timer, const struct given *given);

/* The same for a timer of the wall clock. index_set() sets one only when the time of a task changes: a task that is given
 * the time again at which its timer was taken out in the same turn gets that timer back. */
void index_rearm_wall(struct index *index, const struct heap_entry *timer);
