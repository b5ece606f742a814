/*
 * Tasks in memory, with their claims and timers, and how many there are of each kind.
 */
#include "store/index/parts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A task as it lies in memory. */
struct hot_task {
	int64_t seq;
	int64_t created_ms;
	int64_t ready_at_ms;
	int64_t version;
	uint64_t fence;
	uint32_t queue, owner, requires, executor;
	int32_t priority;
	uint32_t timeout_ms;
	uint32_t attempt;
	union {
		uint32_t claim;    /* HOT_CLAIMED: the slot of its hot_claim, which has the claimant too */
		uint32_t claimant; /* … and else of its last claim */
	};
	uint16_t max_attempts, spent;
	uint16_t crashes, interruptions;
	uint16_t open_parents, dead_parents;
	uint8_t state, ended, code, flags;
};

enum {
	WALL_TIMERS_SPARE = 1024,
	RUN_LOOKS = 32, /* tasks of one priority that are asked how long they wait */
};

/* Beside the flags of the task itself: TASK_FLAGS. */
enum hot_flag {
	HOT_HAS_RARE = 16, /* has a row in `rares` */
	HOT_IS_PARENT = 32,
	HOT_CLAIMED = 64,
};

struct hot_claim {
	int64_t seq; /* first, because the pool writes over the first bytes of what is free */
	struct claim claim;
	uint32_t next, previous; /* of the same holder */
	uint32_t claimant;
	struct pace progress;
	struct wheel_node timer;
};

/* What few tasks have: deadlines, a workflow, gates, a question. */
struct hot_rare {
	int64_t seq;
	int64_t start_by_ms, finish_by_ms;
	int64_t resume_until_ms;
	uint32_t resume_host;
	uint32_t gates, gates_passed;
	uint8_t workflow, stage, gate_count;
};

struct hot_parent {
	int64_t seq;
	uint32_t children;
};

static struct hot_task *task_at(const struct hot *hot, uint32_t slot)
{
	return pool_at(&hot->tasks, slot);
}

static struct hot_claim *claim_at(const struct hot *hot, uint32_t slot)
{
	return pool_at(&hot->claims, slot);
}

static struct hot_rare *rare_at(const struct hot *hot, uint32_t slot)
{
	return pool_at(&hot->rares, slot);
}

static struct hot_parent *parent_at(const struct hot *hot, uint32_t slot)
{
	return pool_at(&hot->parents, slot);
}

static uint64_t parent_hash(void *context, uint32_t slot)
{
	return hash_u64((uint64_t)parent_at(context, slot)->seq);
}

static uint64_t task_hash(void *context, uint32_t slot)
{
	return hash_u64((uint64_t)task_at(context, slot)->seq);
}

static uint64_t rare_hash(void *context, uint32_t slot)
{
	return hash_u64((uint64_t)rare_at(context, slot)->seq);
}

static struct queue_tally *tally_at(const struct hot *hot, uint32_t slot)
{
	return pool_at(&hot->tallies, slot);
}

static uint64_t tally_hash(void *context, uint32_t slot)
{
	return hash_u64(tally_at(context, slot)->queue);
}

static const struct map_ops tally_ops = {.hash_of = tally_hash};
static const struct map_ops task_ops = {.hash_of = task_hash};
static const struct map_ops rare_ops = {.hash_of = rare_hash};
static const struct map_ops parent_ops = {.hash_of = parent_hash};

static int lane_order(const void *context, uint32_t a, uint32_t b)
{
	return hot_order(context, a, b);
}

static struct wheel_node *timer_node(void *context, uint32_t timer)
{
	const struct hot *hot = context;

	if ((timer & 1) == TIMER_CLAIM)
		return &claim_at(hot, timer >> 1)->timer;
	return &((struct holder *)pool_at(&hot->holders, timer >> 1))->timer;
}

void hot_init(struct hot *hot, struct hash_key key, int64_t now_lease_ms)
{
	memset(hot, 0, sizeof *hot);
	hot->key = key;
	pool_init(&hot->tasks, sizeof(struct hot_task));
	pool_init(&hot->claims, sizeof(struct hot_claim));
	pool_init(&hot->rares, sizeof(struct hot_rare));
	pool_init(&hot->parents, sizeof(struct hot_parent));
	pool_init(&hot->tallies, sizeof(struct queue_tally));
	map_init(&hot->tally_by_queue, &tally_ops, hot);
	hot->last_tally = POOL_NONE;
	map_init(&hot->by_seq, &task_ops, hot);
	map_init(&hot->rare_by_seq, &rare_ops, hot);
	map_init(&hot->parent_by_seq, &parent_ops, hot);
	holders_init(hot);
	lanes_init(&hot->lanes, lane_order, hot);
	heap_init(&hot->wall_timers);
	wheel_init(&hot->lease_timers, timer_node, hot, now_lease_ms);
}

void hot_done(struct hot *hot)
{
	holders_done(hot);
	lanes_done(&hot->lanes);
	map_done(&hot->by_seq);
	map_done(&hot->rare_by_seq);
	map_done(&hot->parent_by_seq);
	map_done(&hot->tally_by_queue);
	pool_done(&hot->tallies);
	pool_done(&hot->tasks);
	pool_done(&hot->claims);
	pool_done(&hot->rares);
	pool_done(&hot->parents);
	heap_done(&hot->wall_timers);
}

/* ---- tasks ------------------------------------------------------------------------------------ */

uint32_t hot_find(const struct hot *hot, int64_t seq)
{
	struct map_probe probe;
	uint32_t slot = map_first(&hot->by_seq, hash_u64((uint64_t)seq), &probe);

	while (slot != MAP_NONE && task_at(hot, slot)->seq != seq)
		slot = map_next(&hot->by_seq, &probe);
	return slot;
}

static uint32_t find_rare(const struct hot *hot, int64_t seq)
{
	struct map_probe probe;
	uint32_t slot = map_first(&hot->rare_by_seq, hash_u64((uint64_t)seq), &probe);

	while (slot != MAP_NONE && rare_at(hot, slot)->seq != seq)
		slot = map_next(&hot->rare_by_seq, &probe);
	return slot;
}

void hot_get(const struct hot *hot, uint32_t slot, struct task *ret_task)
{
	const struct hot_task *row = task_at(hot, slot);

	assert(row->state != TASK_NOWHERE); /* a free place holds no task */
	*ret_task = (struct task){.seq = row->seq};
#define X(name, column, kept, memory) GET_##memory(name)
#define GET_COMMON(name)              ret_task->name = (__typeof__(ret_task->name))row->name;
#define GET_RARE(name)
#define GET_NOWHERE(name)
	TASK_FIELDS(X)
#undef GET_COMMON
#undef GET_RARE
	task_set_flags(ret_task, row->flags);
	if (row->flags & HOT_CLAIMED) {
		ret_task->claim = claim_at(hot, row->claim)->claim;
		ret_task->claimant = claim_at(hot, row->claim)->claimant;
	} else {
		ret_task->claimant = row->claimant;
	}
	if (row->flags & HOT_HAS_RARE) {
		const struct hot_rare *rare = rare_at(hot, find_rare(hot, row->seq));
#define GET_COMMON(name)
#define GET_RARE(name) ret_task->name = (__typeof__(ret_task->name))rare->name;
		TASK_FIELDS(X)
#undef GET_COMMON
#undef GET_RARE
	}
#undef GET_NOWHERE
#undef X
}

bool hot_outline(const struct hot *hot, uint32_t slot, struct task_outline *ret_outline)
{
	const struct hot_task *row = task_at(hot, slot);

	*ret_outline = (struct task_outline){row->seq, row->created_ms, row->queue, row->owner, row->priority,
		(enum task_state)row->state};
	return row->state != TASK_NOWHERE;
}

uint32_t hot_slots(const struct hot *hot)
{
	return pool_high(&hot->tasks);
}

static uint32_t find_parent(const struct hot *hot, int64_t seq)
{
	struct map_probe probe;
	uint32_t slot = map_first(&hot->parent_by_seq, hash_u64((uint64_t)seq), &probe);

	while (slot != MAP_NONE && parent_at(hot, slot)->seq != seq)
		slot = map_next(&hot->parent_by_seq, &probe);
	return slot;
}

uint32_t hot_children(const struct hot *hot, uint32_t slot)
{
	const struct hot_task *row = task_at(hot, slot);

	if (!(row->flags & HOT_IS_PARENT))
		return 0;
	uint32_t parent = find_parent(hot, row->seq);
	assert(parent != MAP_NONE); /* what is marked as a parent is counted as one */
	return parent_at(hot, parent)->children;
}

void hot_set_children(struct hot *hot, int64_t seq, uint32_t count)
{
	uint32_t slot = hot_find(hot, seq);

	if (slot == MAP_NONE)
		return;
	struct hot_task *row = task_at(hot, slot);
	uint32_t parent = row->flags & HOT_IS_PARENT ? find_parent(hot, seq) : MAP_NONE;
	if (parent == MAP_NONE) {
		hot_must_fit(pool_alloc(&hot->parents, &parent));
		parent_at(hot, parent)->seq = seq;
		hot_must_fit(map_insert(&hot->parent_by_seq, hash_u64((uint64_t)seq), parent));
		row->flags |= HOT_IS_PARENT;
	}
	parent_at(hot, parent)->children = count;
}

int hot_reserve_children(struct hot *hot, struct hot_needs *needs, uint32_t slot)
{
	if (slot != MAP_NONE && task_at(hot, slot)->flags & HOT_IS_PARENT)
		return 0;
	return hot_reserve_rows(&hot->parents, &hot->parent_by_seq, ++needs->parents);
}

static void drop_children(struct hot *hot, const struct hot_task *row)
{
	if (!(row->flags & HOT_IS_PARENT))
		return;
	uint32_t parent = find_parent(hot, row->seq);
	assert(parent != MAP_NONE);
	map_remove(&hot->parent_by_seq, hash_u64((uint64_t)row->seq), parent);
	pool_free(&hot->parents, parent);
}

int hot_order(const struct hot *hot, uint32_t a, uint32_t b)
{
	const struct hot_task *left = task_at(hot, a), *right = task_at(hot, b);

	if (left->priority != right->priority)
		return left->priority > right->priority ? -1 : 1;
	if (left->created_ms != right->created_ms)
		return left->created_ms < right->created_ms ? -1 : 1;
	return left->seq < right->seq ? -1 : left->seq > right->seq;
}

int64_t hot_seq(const struct hot *hot, uint32_t slot)
{
	return task_at(hot, slot)->seq;
}

bool hot_goes_before(const struct hot *hot, uint32_t slot, const struct task *task)
{
	const struct hot_task *row = task_at(hot, slot);
	struct task other = {.seq = row->seq, .created_ms = row->created_ms, .priority = row->priority};

	return task_claim_order(&other, task) < 0;
}

bool hot_lane_of(const struct task *task, struct lane_key *ret_key)
{
	if (task->state != TASK_READY && task->state != TASK_PENDING)
		return false;
	*ret_key = (struct lane_key){
		.queue = task->queue,
		.owner = task->owner,
		.requires = task->requires,
		.executor = task->executor,
		.host = task->resume_host,
		.pending = task->state == TASK_PENDING,
		.autonomous = task->autonomous,
	};
	return true;
}

static bool row_lane(const struct hot *hot, const struct hot_task *row, struct lane_key *ret_key)
{
	struct task task = {
		.state = (enum task_state)row->state,
		.queue = row->queue,
		.owner = row->owner,
		.requires = row->requires,
		.executor = row->executor,
	};

	task_set_flags(&task, row->flags);
	if (row->flags & HOT_HAS_RARE)
		task.resume_host = rare_at(hot, find_rare(hot, row->seq))->resume_host;
	return hot_lane_of(&task, ret_key);
}

/* Has the task anything that few have? */
static bool has_rare(const struct task *task)
{
#define X(name, column, kept, memory) HAS_##memory(name)
#define HAS_COMMON(name)
#define HAS_RARE(name) task->name != 0 ||
#define HAS_NOWHERE(name)
	return TASK_FIELDS(X) false;
#undef HAS_COMMON
#undef HAS_RARE
#undef HAS_NOWHERE
#undef X
}

static void set_rare(struct hot *hot, struct hot_task *row, const struct task *task)
{
	uint32_t slot = row->flags & HOT_HAS_RARE ? find_rare(hot, row->seq) : MAP_NONE;
	bool wanted = task && has_rare(task);

	if (!wanted) {
		if (slot != MAP_NONE) {
			map_remove(&hot->rare_by_seq, hash_u64((uint64_t)row->seq), slot);
			pool_free(&hot->rares, slot);
		}
		row->flags &= (uint8_t)~HOT_HAS_RARE;
		return;
	}
	if (slot == MAP_NONE) {
		hot_must_fit(pool_alloc(&hot->rares, &slot));
		rare_at(hot, slot)->seq = row->seq;
		hot_must_fit(map_insert(&hot->rare_by_seq, hash_u64((uint64_t)row->seq), slot));
	}
	struct hot_rare *rare = rare_at(hot, slot);
#define X(name, column, kept, memory) SET_##memory(name)
#define SET_COMMON(name)
#define SET_RARE(name)                                   \
	rare->name = (__typeof__(rare->name))task->name; \
	assert(rare->name == task->name); /* nothing is lost by packing */
#define SET_NOWHERE(name)
	TASK_FIELDS(X)
#undef SET_COMMON
#undef SET_RARE
#undef SET_NOWHERE
#undef X
	row->flags |= HOT_HAS_RARE;
}

static void unlink_claim(struct hot *hot, struct hot_task *row)
{
	if (!(row->flags & HOT_CLAIMED))
		return;
	struct hot_claim *claim = claim_at(hot, row->claim);
	struct holder *holder = hot_holder(hot, claim->claim.holder);
	assert(claim->seq == row->seq);           /* a claim is of the task that names it */
	assert(holder->first_claim != POOL_NONE); /* it is in the list of its holder … */
	assert(claim->previous != POOL_NONE || holder->first_claim == row->claim); /* … at its place */
	wheel_drop(&hot->lease_timers, row->claim << 1 | TIMER_CLAIM);
	if (claim->previous == POOL_NONE)
		holder->first_claim = claim->next;
	else
		claim_at(hot, claim->previous)->next = claim->next;
	if (claim->next != POOL_NONE)
		claim_at(hot, claim->next)->previous = claim->previous;
	*claim = (struct hot_claim){0};
	pool_free(&hot->claims, row->claim);
	row->flags &= (uint8_t)~HOT_CLAIMED;
}

static void link_claim(struct hot *hot, struct hot_task *row, const struct claim *wanted)
{
	struct holder *holder = hot_holder(hot, wanted->holder);

	assert(!(row->flags & HOT_CLAIMED));             /* a task has one claim */
	assert(holder->worker.handle == wanted->holder); /* nobody holds a claim who is not there */
	hot_must_fit(pool_alloc(&hot->claims, &row->claim));
	row->flags |= HOT_CLAIMED;
	struct hot_claim *claim = claim_at(hot, row->claim);
	claim->seq = row->seq;
	claim->previous = POOL_NONE;
	claim->next = holder->first_claim;
	if (holder->first_claim != POOL_NONE)
		claim_at(hot, holder->first_claim)->previous = row->claim;
	holder->first_claim = row->claim;
}

static void set_claim(struct hot *hot, struct hot_task *row, const struct task *task)
{
	uint32_t before = row->flags & HOT_CLAIMED ? claim_at(hot, row->claim)->claim.holder : 0;

	if (before != task->claim.holder) {
		unlink_claim(hot, row);
		if (task->claim.holder != 0)
			link_claim(hot, row, &task->claim);
	}
	if (row->flags & HOT_CLAIMED) {
		claim_at(hot, row->claim)->claim = task->claim;
		claim_at(hot, row->claim)->claimant = task->claimant;
	} else {
		row->claimant = task->claimant;
	}
	assert(((row->flags & HOT_CLAIMED) != 0) == task_is_claimed(task)); /* memory and decision agree */
}

static void pack(struct hot_task *row, const struct task *task)
{
	unsigned kept_flags = row->flags & (HOT_HAS_RARE | HOT_IS_PARENT | HOT_CLAIMED);

#define X(name, column, kept, memory) SET_##memory(name)
#define SET_COMMON(name)                               \
	row->name = (__typeof__(row->name))task->name; \
	assert(row->name == task->name); /* nothing is lost by packing */
#define SET_RARE(name)
#define SET_NOWHERE(name)
	TASK_FIELDS(X)
#undef SET_COMMON
#undef SET_RARE
#undef SET_NOWHERE
#undef X
	row->flags = (uint8_t)(kept_flags | task_flags(task));
}

static struct hot_task *row_make(struct hot *hot, int64_t seq, uint32_t *ret_slot)
{
	hot_must_fit(pool_alloc(&hot->tasks, ret_slot));
	struct hot_task *row = task_at(hot, *ret_slot);
	row->seq = seq;
	if (hot->is_indexed)
		hot_must_fit(map_insert(&hot->by_seq, hash_u64((uint64_t)seq), *ret_slot));
	return row;
}

int hot_index(struct hot *hot)
{
	assert(!hot->is_indexed);
	int r = map_reserve(&hot->by_seq, pool_high(&hot->tasks));
	if (r < 0)
		return r;
	for (uint32_t slot = 0; slot < pool_high(&hot->tasks); slot++)
		hot_must_fit(map_insert(&hot->by_seq, task_hash(hot, slot), slot));
	hot->is_indexed = true;
	return 0;
}

/* A timer that is set earlier than needed looks, and is set again: renewals move nothing. */
static void arm_claim(struct hot *hot, uint32_t slot, const struct task *task, const struct given *given)
{
	struct given bare = given_bare(given);
	int64_t lease_ms = task_next_lease_ms(task, &bare);
	const struct hot_claim *claim = claim_at(hot, slot);

	if (lease_ms == INT64_MAX)
		wheel_drop(&hot->lease_timers, slot << 1 | TIMER_CLAIM);
	else if (!claim->timer.hangs || lease_ms < claim->timer.at_ms)
		wheel_set(&hot->lease_timers, slot << 1 | TIMER_CLAIM, lease_ms);
}

/* The wall time at which the row wants to be looked at. */
static int64_t row_wall_ms(const struct hot *hot, uint32_t slot)
{
	const struct hot_task *row = task_at(hot, slot);
	struct task task;

	if (row->state != TASK_SCHEDULED && !(row->flags & HOT_HAS_RARE))
		return INT64_MAX;
	hot_get(hot, slot, &task);
	return task_next_wall_ms(&task);
}

void hot_rearm_wall(struct hot *hot, const struct heap_entry *timer)
{
	uint32_t slot = hot_find(hot, (int64_t)timer->what);

	if (slot != MAP_NONE && row_wall_ms(hot, slot) == timer->at)
		hot_must_fit(heap_push(&hot->wall_timers, *timer));
}

/* Timers of tasks that have ended, or are due at another time by now, are dropped when they are the most. They come
 * out of the heap in order, so that one that was set twice is kept once. */
static void sift_wall_timers(struct hot *hot)
{
	size_t wanted = hot->count[TASK_SCHEDULED] + pool_used(&hot->rares);
	struct heap_entry last = {INT64_MIN, 0};
	struct heap kept;

	if (heap_count(&hot->wall_timers) <= 2 * wanted + WALL_TIMERS_SPARE)
		return;
	heap_init(&kept);
	if (heap_reserve(&kept, heap_count(&hot->wall_timers)) < 0)
		return; /* the next turn tries again */
	while (heap_count(&hot->wall_timers) > 0) {
		struct heap_entry entry = heap_pop(&hot->wall_timers);
		uint32_t slot = hot_find(hot, (int64_t)entry.what);
		bool again = entry.at == last.at && entry.what == last.what;
		assert(entry.at >= last.at); /* timers come out in order */
		if (!again && slot != MAP_NONE && row_wall_ms(hot, slot) == entry.at)
			hot_must_fit(heap_push(&kept, entry));
		last = entry;
	}
	heap_done(&hot->wall_timers);
	hot->wall_timers = kept;
}

void hot_settle(struct hot *hot)
{
	lanes_release(&hot->lanes);
	sift_wall_timers(hot);
}

/* ---- tallies: tasks by queue and state -------------------------------------------------------- */

uint32_t hot_find_tally(const struct hot *hot, uint32_t queue)
{
	struct map_probe probe;

	if (hot->last_tally != POOL_NONE && tally_at(hot, hot->last_tally)->queue == queue)
		return hot->last_tally;
	uint32_t slot = map_first(&hot->tally_by_queue, hash_u64(queue), &probe);
	while (slot != MAP_NONE && tally_at(hot, slot)->queue != queue)
		slot = map_next(&hot->tally_by_queue, &probe);
	return slot;
}

static struct queue_tally *tally_of(struct hot *hot, uint32_t queue)
{
	uint32_t slot = hot_find_tally(hot, queue);

	if (slot == MAP_NONE) {
		hot_must_fit(pool_alloc(&hot->tallies, &slot));
		tally_at(hot, slot)->queue = queue;
		hot_must_fit(map_insert(&hot->tally_by_queue, hash_u64(queue), slot));
	}
	hot->last_tally = slot;
	return tally_at(hot, slot);
}

static bool is_backing_off(enum task_state state, uint32_t code)
{
	return state == TASK_SCHEDULED && code != CODE_NONE;
}

static bool is_asking_to_stop(enum task_state state, const struct claim *claim)
{
	return state == TASK_ASKING && claim->holder != 0 && claim->stopping;
}

static void count_out(struct hot *hot, const struct hot_task *row)
{
	if (row->state == TASK_ASKING && row->flags & HOT_CLAIMED)
		hot->asking_to_stop -= is_asking_to_stop(row->state, &claim_at(hot, row->claim)->claim);
	struct queue_tally *tally = tally_of(hot, row->queue);
	assert(hot->count[row->state] > 0); /* what leaves was counted when it came */
	assert(tally->count[row->state] > 0);
	hot->count[row->state]--;
	tally->count[row->state]--;
	hot->backing_off -= is_backing_off(row->state, row->code);
}

static void count_in(struct hot *hot, const struct task *task, bool moved)
{
	struct queue_tally *tally = tally_of(hot, task->queue);

	hot->count[task->state]++;
	tally->count[task->state]++;
	tally->came[task->state] += moved;
	hot->backing_off += is_backing_off(task->state, task->code);
	hot->asking_to_stop += is_asking_to_stop(task->state, &task->claim);
}

int hot_loaded(struct hot *hot)
{
	for (uint32_t i = 0; i < pool_high(&hot->tallies); i++)
		memset(tally_at(hot, i)->came, 0, sizeof tally_at(hot, i)->came);
	return holders_loaded(hot);
}

const struct queue_tally *hot_tally(const struct hot *hot, uint32_t at)
{
	return at < pool_high(&hot->tallies) ? tally_at(hot, at) : NULL;
}

int64_t hot_claimed_ms(const struct hot *hot, uint32_t slot, uint64_t *ret_fence)
{
	const struct hot_task *row = task_at(hot, slot);

	*ret_fence = row->fence;
	return row->flags & HOT_CLAIMED ? claim_at(hot, row->claim)->claim.claimed_wall_ms : 0;
}

struct pace *hot_progress(struct hot *hot, uint32_t slot)
{
	const struct hot_task *row = task_at(hot, slot);

	return row->flags & HOT_CLAIMED ? &claim_at(hot, row->claim)->progress : NULL;
}

/* Pieces that begin and end in the priority at hand hold nothing new but its later tasks. */
int64_t hot_oldest_ready_ms(const struct hot *hot, const struct lane *lane, uint32_t *looks)
{
	int64_t oldest_ms = INT64_MAX;
	uint32_t run = 0, count;
	int32_t priority = 0;

	for (uint32_t at = 0; at < lane_pieces(lane) && *looks > 0; at++) {
		const uint32_t *slots = lane_piece(lane, at, &count);
		bool passed = run >= RUN_LOOKS && task_at(hot, slots[count - 1])->priority == priority;
		*looks -= 1;
		for (uint32_t i = 0; i < count && !passed && *looks > 0; i++, *looks -= 1) {
			const struct hot_task *row = task_at(hot, slots[i]);
			run = run > 0 && row->priority == priority ? run + 1 : 1;
			priority = row->priority;
			if (run <= RUN_LOOKS && row->ready_at_ms < oldest_ms)
				oldest_ms = row->ready_at_ms;
		}
	}
	return oldest_ms;
}

/* The lane in which the task stands, and that in which it shall stand: it may leave, enter, or stay where it is. */
struct lane_change {
	struct lane_key from, to;
	bool leaves, enters;
};

static struct lane_change lane_change_of(const struct hot *hot, uint32_t slot, const struct task *task)
{
	const struct hot_task *row = slot != MAP_NONE ? task_at(hot, slot) : NULL;
	struct lane_change change = {0};

	change.leaves = row && row_lane(hot, row, &change.from);
	change.enters = hot_lane_of(task, &change.to);
	if (change.leaves && change.enters && lane_key_equal(&change.from, &change.to) &&
		row->priority == task->priority && row->created_ms == task->created_ms)
		change.leaves = change.enters = false;
	return change;
}

int hot_reserve_rows(struct pool *pool, struct map *map, uint32_t more)
{
	int r = pool_reserve(pool, more);

	return r < 0 ? r : map_reserve(map, map->used + more);
}

int hot_reserve_task(struct hot *hot, struct hot_needs *needs, uint32_t slot, const struct task *task)
{
	const struct hot_task *row = slot != MAP_NONE ? task_at(hot, slot) : NULL;
	bool has_tally = task->queue == needs->queue || hot_find_tally(hot, task->queue) != MAP_NONE;
	int r = 0;

	if (!has_tally) {
		needs->queue = task->queue;
		r = hot_reserve_rows(&hot->tallies, &hot->tally_by_queue, ++needs->tallies);
	}
	if (r < 0 || task_state_is_final(task->state))
		return r;
	needs->tasks += !row;
	needs->claims += task_is_claimed(task);
	needs->rares += has_rare(task) && !(row && row->flags & HOT_HAS_RARE);
	needs->wall_timers += task_next_wall_ms(task) != INT64_MAX;
	struct lane_change change = lane_change_of(hot, slot, task);
	r = hot->is_indexed ? hot_reserve_rows(&hot->tasks, &hot->by_seq, needs->tasks)
			    : pool_reserve(&hot->tasks, needs->tasks);
	if (r == 0)
		r = pool_reserve(&hot->claims, needs->claims);
	if (r == 0)
		r = hot_reserve_rows(&hot->rares, &hot->rare_by_seq, needs->rares);
	if (r == 0)
		r = heap_reserve(&hot->wall_timers, needs->wall_timers);
	return r == 0 && change.enters ? lanes_reserve(&hot->lanes, &change.to) : r;
}

void hot_set(struct hot *hot, uint32_t slot, const struct task *task, const struct given *given)
{
	assert(slot == MAP_NONE || task_at(hot, slot)->seq == task->seq);
	if (task_state_is_final(task->state)) {
		if (slot != MAP_NONE)
			tally_of(hot, task->queue)->came[task->state]++;
		hot_forget(hot, slot);
		return;
	}
	bool fresh = slot == MAP_NONE;
	struct lane_change change = lane_change_of(hot, slot, task);
	struct hot_task *row = fresh ? row_make(hot, task->seq, &slot) : task_at(hot, slot);
	int64_t old_wall_ms = fresh ? INT64_MAX : row_wall_ms(hot, slot);
	assert(!change.enters || !task_is_claimed(task)); /* no claimed task stands in a lane */
	assert(fresh || task->fence >= row->fence);       /* the claims of a task are counted up */
	assert(fresh || task->version >= row->version);   /* the events of a task are counted up */
	assert(fresh || task->created_ms == row->created_ms);
	if (change.leaves)
		lanes_remove(&hot->lanes, &change.from, slot);
	bool moved = fresh || row->state != task->state;
	if (!fresh)
		count_out(hot, row);
	count_in(hot, task, moved);
	pack(row, task);
	set_claim(hot, row, task);
	set_rare(hot, row, task);
	if (change.enters)
		lanes_insert(&hot->lanes, &change.to, slot);
	if (row->flags & HOT_CLAIMED)
		arm_claim(hot, row->claim, task, given);
	int64_t wall_ms = task_next_wall_ms(task);
	if (wall_ms != INT64_MAX && wall_ms != old_wall_ms)
		hot_must_fit(
			heap_push(&hot->wall_timers, (struct heap_entry){wall_ms, (uint64_t)task->seq}));
}

void hot_forget(struct hot *hot, uint32_t slot)
{
	struct lane_key lane;

	if (slot == MAP_NONE)
		return;
	struct hot_task *row = task_at(hot, slot);
	if (row_lane(hot, row, &lane))
		lanes_remove(&hot->lanes, &lane, slot);
	count_out(hot, row);
	unlink_claim(hot, row);
	set_rare(hot, row, NULL);
	drop_children(hot, row);
	map_remove(&hot->by_seq, hash_u64((uint64_t)row->seq), slot);
	row->state = TASK_NOWHERE; /* for those who walk the slots */
	pool_free(&hot->tasks, slot);
}

uint32_t hot_next_claim(const struct hot *hot, const struct holder *holder, uint32_t at, int64_t *ret_seq)
{
	uint32_t next = at == MAP_NONE ? holder->first_claim : claim_at(hot, at)->next;

	if (next == POOL_NONE)
		return MAP_NONE;
	*ret_seq = claim_at(hot, next)->seq;
	return next;
}

int64_t hot_timer_task(const struct hot *hot, uint32_t timer)
{
	assert((timer & 1) == TIMER_CLAIM);
	return claim_at(hot, timer >> 1)->seq;
}

void hot_rearm(struct hot *hot, uint32_t timer, const struct given *given)
{
	if ((timer & 1) == TIMER_WORKER) {
		struct holder *holder = pool_at(&hot->holders, timer >> 1);
		if (holder->worker.handle == (timer >> 1) + 1) /* not freed meanwhile */
			holder_arm(hot, holder, given);
		return;
	}
	const struct hot_claim *claim = claim_at(hot, timer >> 1);
	struct task task;
	if (claim->claim.holder == 0)
		return;
	uint32_t slot = hot_find(hot, claim->seq);
	if (slot == MAP_NONE || !(task_at(hot, slot)->flags & HOT_CLAIMED) ||
		task_at(hot, slot)->claim != timer >> 1)
		return;
	hot_get(hot, slot, &task);
	arm_claim(hot, timer >> 1, &task, given);
}
