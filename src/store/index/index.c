/*
 * Tasks in memory, with their claims and timers, and how many there are of each kind.
 */
#include "store/index/parts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/take.h"

/* A task as it lies in memory. */
struct index_task {
	int64_t seq;
	int64_t created_ms;
	int64_t ready_at_ms;
	int64_t version;
	uint64_t fence;
	uint64_t charge;
	uint64_t concurrency_key;
	uint32_t queue, owner, requires, executor;
	int32_t priority;
	uint32_t timeout_ms;
	uint32_t attempt;
	union {
		uint32_t claim; /* INDEX_CLAIMED: the place of its index_claim, which has the claimant too */
		uint32_t claimant; /* … and else of its last claim */
	};
	uint16_t max_attempts, spent;
	uint16_t crashes, interruptions;
	uint16_t open_parents, dead_parents;
	uint8_t state, ended, code, flags;
};

enum {
	WALL_TIMERS_SPARE = 1024,
	RUN_LOOKS = 32,   /* tasks of one priority that are asked how long they wait */
	ROOM_AHEAD = 256, /* changes for which memory is reserved beyond those of the turn */
};

/* Beside the flags of the task itself: TASK_FLAGS. */
enum index_flag {
	INDEX_HAS_RARE = 16, /* has a row in `rares` */
	INDEX_IS_PARENT = 32,
	INDEX_CLAIMED = 64,
	INDEX_AWAITS = 128, /* it waits for its subtasks */
};

struct index_claim {
	int64_t seq; /* first, because the pool writes over the first bytes of what is free */
	struct claim claim;
	uint32_t next, previous; /* of the same holder */
	uint32_t claimant;
	struct pace progress;
	struct wheel_node timer;
};

/* What few tasks have: deadlines, a workflow, gates, a question, a successor. */
struct index_rare {
	int64_t seq;
	int64_t start_by_ms, finish_by_ms;
	int64_t resume_until_ms;
	uint32_t resume_host;
	uint32_t gates, gates_passed;
	uint32_t credential;
	uint32_t group;
	int64_t subtask_of;
	int64_t unique_until_ms, superseded_by, predecessor, verdict_for;
	uint32_t session_host, verdict_attempt;
	uint8_t begins_anew, verdict_action;
	uint8_t workflow, stage, gate_count, occurrence, runs_anyway, subtasks;
};

struct index_parent {
	int64_t seq;
	uint32_t children;
};

/* TASK_FIELDS says of each field where it lies: for a few lines about those of every task, or of few tasks. */
#define IF_COMMON_COMMON(code) code
#define IF_COMMON_RARE(code)
#define IF_COMMON_NOWHERE(code)
#define IF_RARE_COMMON(code)
#define IF_RARE_RARE(code) code
#define IF_RARE_NOWHERE(code)

/* Nothing is lost by packing. */
#define PACK(into, name)                                 \
	into->name = (__typeof__(into->name))task->name; \
	assert(into->name == task->name);

char *index_copy(struct span text)
{
	char *copy = malloc(text.len + 1);

	if (copy && text.len > 0)
		memcpy(copy, text.data, text.len);
	return copy;
}

static struct index_task *task_at(const struct index *index, uint32_t place)
{
	return slab_at(&index->tasks, place);
}

static struct index_claim *claim_at(const struct index *index, uint32_t place)
{
	return slab_at(&index->claims, place);
}

static struct index_rare *rare_at(const struct index *index, uint32_t place)
{
	return slab_at(&index->rares, place);
}

static struct index_parent *parent_at(const struct index *index, uint32_t place)
{
	return slab_at(&index->parents, place);
}

static uint64_t parent_hash(void *context, uint32_t place)
{
	return hash_u64((uint64_t)parent_at(context, place)->seq);
}

static uint64_t task_hash(void *context, uint32_t place)
{
	return hash_u64((uint64_t)task_at(context, place)->seq);
}

static uint64_t rare_hash(void *context, uint32_t place)
{
	return hash_u64((uint64_t)rare_at(context, place)->seq);
}

static struct queue_tally *tally_at(const struct index *index, uint32_t place)
{
	return slab_at(&index->tallies, place);
}

static uint64_t tally_hash(void *context, uint32_t place)
{
	return hash_u64(tally_at(context, place)->queue);
}

static const struct map_ops tally_ops = {.hash_of = tally_hash};

static struct account *account_at(const struct index *index, uint32_t place)
{
	return slab_at(&index->accounts, place);
}

static uint64_t account_hash(void *context, uint32_t place)
{
	return hash_u64(account_at(context, place)->principal);
}

static const struct map_ops account_ops = {.hash_of = account_hash};
static const struct map_ops task_ops = {.hash_of = task_hash};
static const struct map_ops rare_ops = {.hash_of = rare_hash};
static const struct map_ops parent_ops = {.hash_of = parent_hash};

static int32_t priority_at(const void *context, uint32_t place)
{
	return task_at(context, place)->priority;
}

static int lane_order(const void *context, uint32_t a, uint32_t b)
{
	return index_order(context, a, b);
}

static struct wheel_node *timer_node(void *context, uint32_t timer)
{
	const struct index *index = context;

	if ((timer & 1) == TIMER_CLAIM)
		return &claim_at(index, timer >> 1)->timer;
	return &((struct holder *)slab_at(&index->holders, timer >> 1))->timer;
}

void index_init(struct index *index, struct hash_key key, int64_t now_lease_ms)
{
	memset(index, 0, sizeof *index);
	index->key = key;
	slab_init(&index->tasks, sizeof(struct index_task));
	slab_init(&index->claims, sizeof(struct index_claim));
	slab_init(&index->rares, sizeof(struct index_rare));
	slab_init(&index->parents, sizeof(struct index_parent));
	slab_init(&index->tallies, sizeof(struct queue_tally));
	map_init(&index->tally_by_queue, &tally_ops, index);
	index->last_tally = SLAB_NONE;
	slab_init(&index->accounts, sizeof(struct account));
	map_init(&index->account_by_principal, &account_ops, index);
	map_init(&index->by_seq, &task_ops, index);
	map_init(&index->rare_by_seq, &rare_ops, index);
	map_init(&index->parent_by_seq, &parent_ops, index);
	holders_init(index);
	lanes_init(&index->lanes, lane_order, index);
	index->lanes.sublanes.priority = priority_at;
	heap_init(&index->wall_timers);
	wheel_init(&index->lease_timers, timer_node, index, now_lease_ms);
}

void index_done(struct index *index)
{
	holders_done(index);
	lanes_done(&index->lanes);
	map_done(&index->by_seq);
	map_done(&index->rare_by_seq);
	map_done(&index->parent_by_seq);
	map_done(&index->tally_by_queue);
	slab_done(&index->tallies);
	map_done(&index->account_by_principal);
	slab_done(&index->accounts);
	slab_done(&index->tasks);
	slab_done(&index->claims);
	slab_done(&index->rares);
	slab_done(&index->parents);
	heap_done(&index->wall_timers);
}

/* ---- tasks ------------------------------------------------------------------------------------ */

uint32_t index_find(const struct index *index, int64_t seq)
{
	struct map_probe probe;
	uint32_t place = map_first(&index->by_seq, hash_u64((uint64_t)seq), &probe);

	while (place != MAP_NONE && task_at(index, place)->seq != seq)
		place = map_next(&index->by_seq, &probe);
	return place;
}

static uint32_t find_rare(const struct index *index, int64_t seq)
{
	struct map_probe probe;
	uint32_t place = map_first(&index->rare_by_seq, hash_u64((uint64_t)seq), &probe);

	while (place != MAP_NONE && rare_at(index, place)->seq != seq)
		place = map_next(&index->rare_by_seq, &probe);
	return place;
}

void index_get(const struct index *index, uint32_t place, struct task *ret_task)
{
	const struct index_task *row = task_at(index, place);

	assert(row->state != TASK_NOWHERE); /* a free place holds no task */
	*ret_task = (struct task){.seq = row->seq};
#define X(name, column, kept, memory) \
	IF_COMMON_##memory(ret_task->name = (__typeof__(ret_task->name))row->name;)
	TASK_FIELDS(X)
#undef X
	task_set_flags(ret_task, row->flags);
	if (row->flags & INDEX_CLAIMED) {
		ret_task->claim = claim_at(index, row->claim)->claim;
		ret_task->claimant = claim_at(index, row->claim)->claimant;
	} else {
		ret_task->claimant = row->claimant;
	}
	if (row->flags & INDEX_HAS_RARE) {
		const struct index_rare *rare = rare_at(index, find_rare(index, row->seq));
#define X(name, column, kept, memory) \
	IF_RARE_##memory(ret_task->name = (__typeof__(ret_task->name))rare->name;)
		TASK_FIELDS(X)
#undef X
	}
}

bool index_outline(const struct index *index, uint32_t place, struct task_outline *ret_outline)
{
	const struct index_task *row = task_at(index, place);

	*ret_outline = (struct task_outline){row->seq, row->created_ms, row->queue, row->owner, row->priority,
		(enum task_state)row->state, 0, 0};
	if (row->state != TASK_NOWHERE && row->flags & INDEX_HAS_RARE) {
		const struct index_rare *rare = rare_at(index, find_rare(index, row->seq));
		ret_outline->group = rare->group;
		ret_outline->subtask_of = rare->subtask_of;
	}
	return row->state != TASK_NOWHERE;
}

uint32_t index_places(const struct index *index)
{
	return slab_high(&index->tasks);
}

static uint32_t find_parent(const struct index *index, int64_t seq)
{
	struct map_probe probe;
	uint32_t place = map_first(&index->parent_by_seq, hash_u64((uint64_t)seq), &probe);

	while (place != MAP_NONE && parent_at(index, place)->seq != seq)
		place = map_next(&index->parent_by_seq, &probe);
	return place;
}

uint32_t index_children(const struct index *index, uint32_t place)
{
	const struct index_task *row = task_at(index, place);

	if (!(row->flags & INDEX_IS_PARENT))
		return 0;
	uint32_t parent = find_parent(index, row->seq);
	assert(parent != MAP_NONE); /* what is marked as a parent is counted as one */
	return parent_at(index, parent)->children;
}

void index_set_children(struct index *index, int64_t seq, uint32_t count)
{
	uint32_t place = index_find(index, seq);

	if (place == MAP_NONE)
		return;
	struct index_task *row = task_at(index, place);
	uint32_t parent = row->flags & INDEX_IS_PARENT ? find_parent(index, seq) : MAP_NONE;
	if (parent == MAP_NONE) {
		index_must_fit(slab_alloc(&index->parents, &parent));
		parent_at(index, parent)->seq = seq;
		index_must_fit(map_insert(&index->parent_by_seq, hash_u64((uint64_t)seq), parent));
		row->flags |= INDEX_IS_PARENT;
	}
	parent_at(index, parent)->children = count;
}

static void drop_children(struct index *index, const struct index_task *row)
{
	if (!(row->flags & INDEX_IS_PARENT))
		return;
	uint32_t parent = find_parent(index, row->seq);
	assert(parent != MAP_NONE);
	map_remove(&index->parent_by_seq, hash_u64((uint64_t)row->seq), parent);
	slab_free(&index->parents, parent);
}

int index_order(const struct index *index, uint32_t a, uint32_t b)
{
	const struct index_task *left = task_at(index, a), *right = task_at(index, b);

	if (left->priority != right->priority)
		return left->priority > right->priority ? -1 : 1;
	if (left->created_ms != right->created_ms)
		return left->created_ms < right->created_ms ? -1 : 1;
	return left->seq < right->seq ? -1 : left->seq > right->seq;
}

int64_t index_seq(const struct index *index, uint32_t place)
{
	return task_at(index, place)->seq;
}

bool index_goes_before(const struct index *index, uint32_t place, const struct task *task)
{
	const struct index_task *row = task_at(index, place);
	struct task other = {.seq = row->seq, .created_ms = row->created_ms, .priority = row->priority};

	return task_claim_order(&other, task, index->age_ms) < 0;
}

static bool stands_in_lane(uint32_t state)
{
	return state == TASK_READY || state == TASK_PENDING;
}

bool index_lane_of(const struct index *index, const struct task *task, struct lane_key *ret_key)
{
	if (!stands_in_lane(task->state))
		return false;
	*ret_key = (struct lane_key){
		.queue = task->queue,
		.owner = task->owner,
		.requires = task->requires,
		.executor = task->executor,
		/* a parked task remembers the host that it waited on, but is not kept for it */
		.host = task->state == TASK_READY ? task->resume_host : 0,
		.credential = task->credential,
		.pending = task->state == TASK_PENDING,
		.autonomous = task->autonomous,
		.keyed = task->concurrency_key != 0,
		.begun = task->concurrency_key != 0 && task->attempt > 0,
		.priority = index->age_ms != 0 ? task->priority : 0,
	};
	return true;
}

static bool row_lane(const struct index *index, const struct index_task *row, struct lane_key *ret_key)
{
	unset struct task task;

	if (!stands_in_lane(row->state))
		return false;
	task.state = (enum task_state)row->state;
	task.queue = row->queue;
	task.owner = row->owner;
	task.requires = row->requires;
	task.executor = row->executor;
	task.concurrency_key = row->concurrency_key;
	task.attempt = row->attempt;
	task.priority = row->priority;
	task_set_flags(&task, row->flags);
	const struct index_rare *rare =
		row->flags & INDEX_HAS_RARE ? rare_at(index, find_rare(index, row->seq)) : NULL;
	task.resume_host = rare ? rare->resume_host : 0;
	task.credential = rare ? rare->credential : 0;
	return index_lane_of(index, &task, ret_key);
}

/* Has the task anything that few have? */
static bool has_rare(const struct task *task)
{
#define X(name, column, kept, memory) IF_RARE_##memory(task->name != 0 ||)
	return TASK_FIELDS(X) false;
#undef X
}

static void set_rare(struct index *index, struct index_task *row, const struct task *task)
{
	uint32_t place = row->flags & INDEX_HAS_RARE ? find_rare(index, row->seq) : MAP_NONE;
	bool wanted = task && has_rare(task);

	if (!wanted) {
		if (place != MAP_NONE) {
			map_remove(&index->rare_by_seq, hash_u64((uint64_t)row->seq), place);
			slab_free(&index->rares, place);
		}
		row->flags &= (uint8_t)~INDEX_HAS_RARE;
		return;
	}
	if (place == MAP_NONE) {
		index_must_fit(slab_alloc(&index->rares, &place));
		rare_at(index, place)->seq = row->seq;
		index_must_fit(map_insert(&index->rare_by_seq, hash_u64((uint64_t)row->seq), place));
	}
	struct index_rare *rare = rare_at(index, place);
#define X(name, column, kept, memory) IF_RARE_##memory(PACK(rare, name))
	TASK_FIELDS(X)
#undef X
	row->flags |= INDEX_HAS_RARE;
}

static void unlink_claim(struct index *index, struct index_task *row)
{
	if (!(row->flags & INDEX_CLAIMED))
		return;
	struct index_claim *claim = claim_at(index, row->claim);
	struct holder *holder = index_holder(index, claim->claim.holder);
	assert(claim->seq == row->seq);           /* a claim is of the task that names it */
	assert(holder->first_claim != SLAB_NONE); /* it is in the list of its holder … */
	assert(claim->previous != SLAB_NONE || holder->first_claim == row->claim); /* … at its place */
	wheel_drop(&index->lease_timers, row->claim << 1 | TIMER_CLAIM);
	if (claim->previous == SLAB_NONE)
		holder->first_claim = claim->next;
	else
		claim_at(index, claim->previous)->next = claim->next;
	if (claim->next != SLAB_NONE)
		claim_at(index, claim->next)->previous = claim->previous;
	assert(!claim->timer.hangs);
	*claim = (struct index_claim){0};
	slab_free(&index->claims, row->claim);
	row->flags &= (uint8_t)~INDEX_CLAIMED;
}

static void link_claim(struct index *index, struct index_task *row, const struct claim *wanted)
{
	struct holder *holder = index_holder(index, wanted->holder);

	assert(!(row->flags & INDEX_CLAIMED));           /* a task has one claim */
	assert(holder->worker.handle == wanted->holder); /* nobody holds a claim who is not there */
	index_must_fit(slab_alloc(&index->claims, &row->claim));
	row->flags |= INDEX_CLAIMED;
	struct index_claim *claim = claim_at(index, row->claim);
	claim->seq = row->seq;
	claim->previous = SLAB_NONE;
	claim->next = holder->first_claim;
	if (holder->first_claim != SLAB_NONE)
		claim_at(index, holder->first_claim)->previous = row->claim;
	holder->first_claim = row->claim;
}

static void set_claim(struct index *index, struct index_task *row, const struct task *task)
{
	uint32_t before = row->flags & INDEX_CLAIMED ? claim_at(index, row->claim)->claim.holder : 0;

	if (before != task->claim.holder) {
		unlink_claim(index, row);
		if (task->claim.holder != 0)
			link_claim(index, row, &task->claim);
	}
	if (row->flags & INDEX_CLAIMED) {
		claim_at(index, row->claim)->claim = task->claim;
		claim_at(index, row->claim)->claimant = task->claimant;
	} else {
		row->claimant = task->claimant;
	}
	assert(((row->flags & INDEX_CLAIMED) != 0) == task_is_claimed(task)); /* memory and decision agree */
}

static void pack(struct index_task *row, const struct task *task)
{
	unsigned kept_flags = row->flags & (INDEX_HAS_RARE | INDEX_IS_PARENT | INDEX_CLAIMED);

#define X(name, column, kept, memory) IF_COMMON_##memory(PACK(row, name))
	TASK_FIELDS(X)
#undef X
	row->flags = (uint8_t)(kept_flags | task_flags(task) | (task_awaits(task) ? INDEX_AWAITS : 0u));
}

static struct index_task *row_make(struct index *index, int64_t seq, uint32_t *ret_place)
{
	index_must_fit(slab_alloc(&index->tasks, ret_place));
	struct index_task *row = task_at(index, *ret_place);
	row->seq = seq;
	if (index->is_indexed)
		index_must_fit(map_insert(&index->by_seq, hash_u64((uint64_t)seq), *ret_place));
	return row;
}

int index_build(struct index *index)
{
	assert(!index->is_indexed);
	int r = map_reserve(&index->by_seq, slab_high(&index->tasks));
	if (r < 0)
		return r;
	for (uint32_t place = 0; place < slab_high(&index->tasks); place++)
		index_must_fit(map_insert(&index->by_seq, task_hash(index, place), place));
	index->is_indexed = true;
	return 0;
}

/* A timer that is set earlier than needed looks, and is set again: renewals move nothing. */
static void arm_claim(struct index *index, uint32_t place, const struct task *task, const struct given *given)
{
	struct given bare = given_bare(given);
	int64_t lease_ms = task_next_lease_ms(task, &bare);
	const struct index_claim *claim = claim_at(index, place);

	if (lease_ms == INT64_MAX)
		wheel_drop(&index->lease_timers, place << 1 | TIMER_CLAIM);
	else if (!claim->timer.hangs || lease_ms < claim->timer.at_ms)
		wheel_set(&index->lease_timers, place << 1 | TIMER_CLAIM, lease_ms);
}

/* The wall time at which the row wants to be looked at. */
static int64_t row_wall_ms(const struct index *index, uint32_t place)
{
	const struct index_task *row = task_at(index, place);
	unset struct task task;

	if (row->state != TASK_SCHEDULED && !(row->flags & INDEX_HAS_RARE))
		return INT64_MAX;
	index_get(index, place, &task);
	return task_next_wall_ms(&task);
}

void index_rearm_wall(struct index *index, const struct heap_entry *timer)
{
	uint32_t place = index_find(index, (int64_t)timer->what);

	if (place != MAP_NONE && row_wall_ms(index, place) == timer->at)
		index_must_fit(heap_push(&index->wall_timers, *timer));
}

/* Timers of tasks that have ended, or are due at another time by now, are dropped when they are the most. They come
 * out of the heap in order, so that one that was set twice is kept once. */
static void sift_wall_timers(struct index *index)
{
	size_t wanted = index->count[TASK_SCHEDULED] + slab_used(&index->rares);
	struct heap_entry last = {INT64_MIN, 0};
	struct heap kept;

	if (heap_count(&index->wall_timers) <= 2 * wanted + WALL_TIMERS_SPARE)
		return;
	heap_init(&kept);
	if (heap_reserve(&kept, heap_count(&index->wall_timers) + index->room) < 0)
		return; /* the next turn tries again */
	while (heap_count(&index->wall_timers) > 0) {
		struct heap_entry entry = heap_pop(&index->wall_timers);
		uint32_t place = index_find(index, (int64_t)entry.what);
		bool again = entry.at == last.at && entry.what == last.what;
		assert(entry.at >= last.at); /* timers come out in order */
		if (!again && place != MAP_NONE && row_wall_ms(index, place) == entry.at)
			index_must_fit(heap_push(&kept, entry));
		last = entry;
	}
	heap_done(&index->wall_timers);
	index->wall_timers = kept;
}

void index_release_reserved(struct index *index)
{
	/* every record is found by its map, and nothing else is */
	assert(index->by_seq.used == slab_used(&index->tasks));
	assert(index->rare_by_seq.used == slab_used(&index->rares));
	assert(index->parent_by_seq.used == slab_used(&index->parents));
	assert(index->tally_by_queue.used == slab_used(&index->tallies));
	assert(index->account_by_principal.used == slab_used(&index->accounts));
	assert(index->holder_by_id.used == slab_used(&index->holders));
	assert(index->list_by_slot.used == slab_used(&index->slot_workers));
	assert(slab_used(&index->claims) <= slab_used(&index->tasks)); /* a task has one claim at most */
	assert(index->lease_timers.count <= slab_used(&index->claims) + index->workers_alive);
	lanes_release(&index->lanes);
	sift_wall_timers(index);
}

/* ---- tallies: tasks by queue and state -------------------------------------------------------- */

uint32_t index_find_tally(const struct index *index, uint32_t queue)
{
	struct map_probe probe;

	if (index->last_tally != SLAB_NONE && tally_at(index, index->last_tally)->queue == queue)
		return index->last_tally;
	uint32_t place = map_first(&index->tally_by_queue, hash_u64(queue), &probe);
	while (place != MAP_NONE && tally_at(index, place)->queue != queue)
		place = map_next(&index->tally_by_queue, &probe);
	return place;
}

static struct queue_tally *tally_of(struct index *index, uint32_t queue)
{
	uint32_t place = index_find_tally(index, queue);

	if (place == MAP_NONE) {
		index_must_fit(slab_alloc(&index->tallies, &place));
		tally_at(index, place)->queue = queue;
		index_must_fit(map_insert(&index->tally_by_queue, hash_u64(queue), place));
	}
	index->last_tally = place;
	return tally_at(index, place);
}

/* ---- accounts: what each principal has -------------------------------------------------------------- */

struct account *index_account(struct index *index, uint32_t principal)
{
	struct map_probe probe;
	uint32_t place = map_first(&index->account_by_principal, hash_u64(principal), &probe);

	while (place != MAP_NONE && account_at(index, place)->principal != principal)
		place = map_next(&index->account_by_principal, &probe);
	if (place != MAP_NONE)
		return account_at(index, place);
	if (slab_alloc(&index->accounts, &place) < 0)
		return NULL;
	*account_at(index, place) = (struct account){.principal = principal};
	if (map_insert(&index->account_by_principal, hash_u64(principal), place) < 0) {
		slab_free(&index->accounts, place);
		return NULL;
	}
	return account_at(index, place);
}

void account_worker(struct index *index, uint32_t principal, bool is_more)
{
	struct account *account = index_account(index, principal);

	assert(account); /* there was room for it, as for every change */
	assert(is_more || account->workers > 0);
	account->workers += is_more ? 1u : -1u;
}

static void account_task(struct index *index, uint64_t charge, bool is_more)
{
	if (charge == 0)
		return;
	struct account *account = index_account(index, (uint32_t)(charge >> 32));
	uint64_t kib = (uint32_t)charge;
	assert(account);
	assert(is_more || (account->tasks > 0 && account->kib >= kib));
	account->tasks += is_more ? 1u : -1u;
	account->kib += is_more ? kib : -kib;
}

/* It waits for no parent: so for the task whose key it took, or for the one that its schedule made before. */
static void count_behind(struct index *index, bool succeeds, uint32_t by)
{
	if (succeeds)
		index->succeeding += by;
	else
		index->behind_schedule += by;
}

static bool row_succeeds(const struct index *index, const struct index_task *row)
{
	return row->flags & INDEX_HAS_RARE && rare_at(index, find_rare(index, row->seq))->predecessor != 0;
}

static bool is_backing_off(enum task_state state, uint32_t code)
{
	return state == TASK_SCHEDULED && code != CODE_NONE;
}

static bool is_asking_to_stop(enum task_state state, const struct claim *claim)
{
	return state == TASK_ASKING && claim->holder != 0 && claim->stopping;
}

static void count_out(struct index *index, const struct index_task *row)
{
	if (row->state == TASK_ASKING && row->flags & INDEX_CLAIMED)
		index->asking_to_stop -= is_asking_to_stop(row->state, &claim_at(index, row->claim)->claim);
	struct queue_tally *tally = tally_of(index, row->queue);
	assert(index->count[row->state] > 0); /* what leaves was counted when it came */
	assert(tally->count[row->state] > 0);
	index->count[row->state]--;
	tally->count[row->state]--;
	assert(!(row->flags & INDEX_CLAIMED) || tally->live > 0);
	tally->live -= (row->flags & INDEX_CLAIMED) != 0;
	tally->live_keyed -= row->flags & INDEX_CLAIMED && row->concurrency_key != 0;
	index->backing_off -= is_backing_off(row->state, row->code);
	if (row->state == TASK_WAITING && row->open_parents == 0)
		count_behind(index, row_succeeds(index, row), -1u);
	index->awaiting -= row->state == TASK_WAITING && (row->flags & INDEX_AWAITS) != 0;
	account_task(index, row->charge, false);
}

static void count_in(struct index *index, const struct task *task, bool moved)
{
	struct queue_tally *tally = tally_of(index, task->queue);

	index->count[task->state]++;
	tally->count[task->state]++;
	tally->live += task_is_claimed(task);
	tally->live_keyed += task_is_claimed(task) && task->concurrency_key != 0;
	tally->came[task->state] += moved;
	index->backing_off += is_backing_off(task->state, task->code);
	if (task->state == TASK_WAITING && task->open_parents == 0)
		count_behind(index, task->predecessor != 0, 1);
	index->awaiting += task->state == TASK_WAITING && task_awaits(task);
	account_task(index, task->charge, true);
	index->asking_to_stop += is_asking_to_stop(task->state, &task->claim);
}

int index_loaded(struct index *index)
{
	for (uint32_t i = 0; i < slab_high(&index->tallies); i++)
		memset(tally_at(index, i)->came, 0, sizeof tally_at(index, i)->came);
	return holders_loaded(index);
}

void index_note_wait(struct index *index, uint32_t queue, int64_t ms)
{
	stats_note_wait(&tally_of(index, queue)->fresh, ms);
}

void index_note_news(struct index *index, const struct queue_news *news)
{
	struct queue_tally *tally = tally_of(index, news->queue);

	tally->told_limited = news->told_limited;
	tally->told_taken = news->told_taken;
}

void index_forget_fresh(struct index *index, uint32_t at)
{
	tally_at(index, at)->fresh = (struct stats_cell){0};
}

const struct queue_tally *index_tally(const struct index *index, uint32_t at)
{
	return at < slab_high(&index->tallies) ? tally_at(index, at) : NULL;
}

int64_t index_claimed_ms(const struct index *index, uint32_t place, uint64_t *ret_fence)
{
	const struct index_task *row = task_at(index, place);

	*ret_fence = row->fence;
	return row->flags & INDEX_CLAIMED ? claim_at(index, row->claim)->claim.claimed_wall_ms : 0;
}

struct pace *index_progress(struct index *index, uint32_t place)
{
	const struct index_task *row = task_at(index, place);

	return row->flags & INDEX_CLAIMED ? &claim_at(index, row->claim)->progress : NULL;
}

/* The first tasks of the keys are looked at. */
static int64_t oldest_in_sublanes(const struct index *index, const struct lane *lane, uint32_t *looks)
{
	const struct sublanes *sublanes = &index->lanes.sublanes;
	const uint32_t roots[] = {lane->sides.open, lane->sides.shut};
	int64_t oldest_ms = INT64_MAX;

	for (int side = 0; side < 2; side++) {
		uint32_t at = sublanes_first(sublanes, roots[side]);
		for (; at != MAP_NONE && *looks > 0;
			at = sublanes_after(sublanes, roots[side], at), *looks -= 1) {
			const struct index_task *row =
				task_at(index, sublane_first(sublanes, sublane_at(sublanes, at)));
			if (row->ready_at_ms < oldest_ms)
				oldest_ms = row->ready_at_ms;
		}
	}
	return oldest_ms;
}

/* Pieces that begin and end in the priority at hand hold nothing new but its later tasks. */
int64_t index_oldest_ready_ms(const struct index *index, const struct lane *lane, uint32_t *looks)
{
	int64_t oldest_ms = INT64_MAX;
	uint32_t run = 0, count;
	int32_t priority = 0;

	if (lane->key.keyed)
		return oldest_in_sublanes(index, lane, looks);

	for (uint32_t at = 0; at < lane_pieces(lane) && *looks > 0; at++) {
		const uint32_t *places = lane_piece(lane, at, &count);
		bool passed = run >= RUN_LOOKS && task_at(index, places[count - 1])->priority == priority;
		*looks -= 1;
		for (uint32_t i = 0; i < count && !passed && *looks > 0; i++, *looks -= 1) {
			const struct index_task *row = task_at(index, places[i]);
			run = run > 0 && row->priority == priority ? run + 1 : 1;
			priority = row->priority;
			if (run <= RUN_LOOKS && row->ready_at_ms < oldest_ms)
				oldest_ms = row->ready_at_ms;
		}
	}
	return oldest_ms;
}

static int reserve_rows(struct slab *pool, struct map *map, uint32_t more)
{
	int r = slab_reserve(pool, more);

	return r < 0 ? r : map_reserve(map, map->used + more);
}

/* A change adds one record at most to each structure, and one timer. So the room of all of them is one number, and most turns
 * compare that alone. What is removed leaves more room than the number says. */
int index_reserve(struct index *index, uint32_t changes)
{
	uint32_t more = changes + ROOM_AHEAD;

	if (changes <= index->room) {
		index->room -= changes;
		return 0;
	}
	int r = reserve_rows(&index->tallies, &index->tally_by_queue, more);
	if (r == 0)
		r = reserve_rows(&index->accounts, &index->account_by_principal, more);
	if (r == 0)
		r = index->is_indexed ? reserve_rows(&index->tasks, &index->by_seq, more)
				      : slab_reserve(&index->tasks, more);
	if (r == 0)
		r = slab_reserve(&index->claims, more);
	if (r == 0)
		r = reserve_rows(&index->rares, &index->rare_by_seq, more);
	if (r == 0)
		r = reserve_rows(&index->parents, &index->parent_by_seq, more);
	if (r == 0)
		r = reserve_rows(&index->slot_workers, &index->list_by_slot, more);
	if (r == 0)
		r = heap_reserve(&index->wall_timers, more);
	if (r == 0)
		r = sublanes_reserve(&index->lanes.sublanes, more);
	index->room = r == 0 ? ROOM_AHEAD : 0;
	return r;
}

/* Does the change of the task in the row leave it where it stands? */
static bool keeps_lane(const struct index *index, const struct index_task *row, const struct task *task,
	const struct lane_key *to)
{
	struct lane_key from;

	return row_lane(index, row, &from) && lane_key_equal(&from, to) && row->priority == task->priority &&
		row->created_ms == task->created_ms && row->concurrency_key == task->concurrency_key;
}

int index_reserve_lane(struct index *index, uint32_t place, const struct task *task, struct lane **ret_lane)
{
	struct lane_key to;

	*ret_lane = NULL;
	if (!index_lane_of(index, task, &to))
		return 0;
	if (place != MAP_NONE && keeps_lane(index, task_at(index, place), task, &to))
		return 0;
	return lanes_reserve(&index->lanes, &to, ret_lane);
}

/* ---- concurrency keys -------------------------------------------------------------------------------- */

/* The keys that a change of a task moves: that of before and that of after; MAP_NONE: it has none. */
struct key_move {
	uint32_t before, after;
};

static uint32_t key_lift(struct index *index, uint32_t queue, uint64_t key)
{
	struct sublanes *sublanes = &index->lanes.sublanes;

	if (key == 0)
		return MAP_NONE;
	uint32_t number = sublanes_make(sublanes, queue, key);
	sublanes_lift(sublanes, number);
	return number;
}

/* `row`: as the memory has it, or NULL; `task`: as it becomes, or NULL. */
static struct key_move keys_lift(struct index *index, const struct index_task *row, const struct task *task)
{
	struct key_move move = {MAP_NONE, MAP_NONE};
	uint64_t before = row ? row->concurrency_key : 0, after = task ? task->concurrency_key : 0;

	if (before == 0 && after == 0)
		return move;
	if (row && task && before != 0 && before == after && row->queue == task->queue) {
		move.before = move.after = key_lift(index, row->queue, before);
		return move;
	}
	move.before = before != 0 ? key_lift(index, row->queue, before) : MAP_NONE;
	move.after = after != 0 ? key_lift(index, task->queue, after) : MAP_NONE;
	return move;
}

static void keys_lower(struct index *index, struct key_move move)
{
	if (move.before != MAP_NONE)
		sublanes_lower(&index->lanes.sublanes, move.before);
	if (move.after != MAP_NONE && move.after != move.before)
		sublanes_lower(&index->lanes.sublanes, move.after);
}

static void key_count_out(struct index *index, uint32_t number, const struct index_task *row)
{
	struct running_key *key = number != MAP_NONE ? sublanes_key(&index->lanes.sublanes, number) : NULL;

	if (!key)
		return;
	assert(key->live >= ((row->flags & INDEX_CLAIMED) != 0)); /* what leaves was counted when it came */
	assert(key->begun >= (row->attempt > 0));
	key->live -= (row->flags & INDEX_CLAIMED) != 0;
	key->begun -= row->attempt > 0;
}

static void key_count_in(struct index *index, uint32_t number, const struct task *task)
{
	if (number == MAP_NONE)
		return;
	struct running_key *key = sublanes_key(&index->lanes.sublanes, number);
	key->live += task_is_claimed(task);
	key->begun += task_has_begun(task);
}

/* The key of a task that comes behind another one of its key in that lane and counts for nothing; MAP_NONE: it moves its key. */
static uint32_t key_to_join(const struct index *index, const struct lane *enters, const struct task *task)
{
	const struct sublanes *sublanes = &index->lanes.sublanes;

	if (!enters || !enters->key.keyed || task_is_claimed(task) || task_has_begun(task))
		return MAP_NONE;
	uint32_t key = sublanes_find(sublanes, task->queue, task->concurrency_key);
	uint32_t head = key != MAP_NONE ? sublanes_head(sublanes, key, enters->number) : MAP_NONE;
	return head != MAP_NONE && index_goes_before(index, head, task) ? key : MAP_NONE;
}

/* It is claimed anew: the next claim is another key's, where the queue is fair. */
static void note_served(struct index *index, uint32_t key, const struct task *task)
{
	struct sublanes *sublanes = &index->lanes.sublanes;

	if (key != MAP_NONE)
		sublanes_key(sublanes, key)->served = ++sublanes->served_last;
	else
		tally_of(index, task->queue)->keyless_served = ++sublanes->served_last;
}

static void lane_leave(struct index *index, const struct lane_key *lane, uint32_t key, uint32_t place)
{
	if (lane->keyed)
		lanes_remove_keyed(&index->lanes, lane, key, place);
	else
		lanes_remove(&index->lanes, lane, place);
}

static void lane_enter(struct index *index, struct lane *lane, uint32_t key, uint32_t place)
{
	if (lane->key.keyed)
		lanes_insert_keyed(&index->lanes, lane, key, place);
	else
		lanes_insert(&index->lanes, lane, place);
}

void index_set(struct index *index, uint32_t place, const struct task *task, struct lane *enters,
	const struct given *given)
{
	struct lane_key from;

	assert(place == MAP_NONE || task_at(index, place)->seq == task->seq);
	if (task_state_is_final(task->state)) {
		if (place != MAP_NONE) {
			struct queue_tally *tally = tally_of(index, task->queue);
			tally->came[task->state]++;
			stats_note_end(&tally->fresh, task->state);
		}
		index_forget(index, place);
		return;
	}
	bool fresh = place == MAP_NONE;
	struct index_task *row = fresh ? row_make(index, task->seq, &place) : task_at(index, place);
	int64_t old_wall_ms = fresh ? INT64_MAX : row_wall_ms(index, place);
	bool groups = stands_in_lane(task->state);
	assert(!enters || groups);
	assert(!fresh || !groups || enters);
	assert(!groups || !task_is_claimed(task));      /* no claimed task stands in a lane */
	assert(fresh || task->fence >= row->fence);     /* the claims of a task are counted up */
	assert(fresh || task->version >= row->version); /* the events of a task are counted up */
	assert(fresh || task->created_ms == row->created_ms);
	uint32_t joined = fresh ? key_to_join(index, enters, task) : MAP_NONE;
	struct key_move keys = joined == MAP_NONE ? keys_lift(index, fresh ? NULL : row, task)
						  : (struct key_move){MAP_NONE, joined};
	if (!fresh && (enters || !groups) && row_lane(index, row, &from))
		lane_leave(index, &from, keys.before, place);
	bool moved = fresh || row->state != task->state;
	bool is_served = task_is_claimed(task) && (fresh || task->fence != row->fence);
	if (!fresh) {
		count_out(index, row);
		key_count_out(index, keys.before, row);
	}
	count_in(index, task, moved);
	key_count_in(index, keys.after, task);
	if (is_served && index->is_indexed) /* not of what is loaded */
		note_served(index, keys.after, task);
	pack(row, task);
	set_claim(index, row, task);
	set_rare(index, row, task);
	if (enters)
		lane_enter(index, enters, keys.after, place);
	if (joined == MAP_NONE)
		keys_lower(index, keys);
	if (row->flags & INDEX_CLAIMED)
		arm_claim(index, row->claim, task, given);
	int64_t wall_ms = task_next_wall_ms(task);
	if (wall_ms != INT64_MAX && wall_ms != old_wall_ms)
		index_must_fit(
			heap_push(&index->wall_timers, (struct heap_entry){wall_ms, (uint64_t)task->seq}));
}

void index_forget(struct index *index, uint32_t place)
{
	struct lane_key lane;

	if (place == MAP_NONE)
		return;
	struct index_task *row = task_at(index, place);
	struct key_move keys = keys_lift(index, row, NULL);
	if (row_lane(index, row, &lane))
		lane_leave(index, &lane, keys.before, place);
	count_out(index, row);
	key_count_out(index, keys.before, row);
	keys_lower(index, keys);
	unlink_claim(index, row);
	set_rare(index, row, NULL);
	drop_children(index, row);
	assert(!(row->flags & (INDEX_HAS_RARE | INDEX_CLAIMED))); /* nothing hangs on it any more */
	map_remove(&index->by_seq, hash_u64((uint64_t)row->seq), place);
	row->state = TASK_NOWHERE; /* for those who walk the places */
	slab_free(&index->tasks, place);
}

uint32_t index_next_claim(
	const struct index *index, const struct holder *holder, uint32_t at, int64_t *ret_seq)
{
	uint32_t next = at == MAP_NONE ? holder->first_claim : claim_at(index, at)->next;

	if (next == SLAB_NONE)
		return MAP_NONE;
	*ret_seq = claim_at(index, next)->seq;
	return next;
}

int64_t index_timer_task(const struct index *index, uint32_t timer)
{
	assert((timer & 1) == TIMER_CLAIM);
	return claim_at(index, timer >> 1)->seq;
}

void index_rearm(struct index *index, uint32_t timer, const struct given *given)
{
	if ((timer & 1) == TIMER_WORKER) {
		struct holder *holder = slab_at(&index->holders, timer >> 1);
		if (holder->worker.handle == (timer >> 1) + 1) /* not freed since it was taken out */
			holder_arm(index, holder, given);
		return;
	}
	const struct index_claim *claim = claim_at(index, timer >> 1);
	struct task task;
	if (claim->claim.holder == 0)
		return;
	uint32_t place = index_find(index, claim->seq);
	if (place == MAP_NONE || !(task_at(index, place)->flags & INDEX_CLAIMED) ||
		task_at(index, place)->claim != timer >> 1)
		return;
	index_get(index, place, &task);
	arm_claim(index, timer >> 1, &task, given);
}
