/*
 * Concurrency keys: which of them may have a task claimed.
 *
 * What is committed stands in the index (store/index/sublane.h), where a key that is full leaves the way of claims. What the open turn
 * changes is counted beside it, in a turn_key for each key whose claims it makes or ends. The tasks of such a key are no longer looked
 * at in their lanes, which stand as they were before the turn, but by key: turn.open_keys has those that may be open.
 */
#include <assert.h>
#include <errno.h>

#include "store/command/commands.h"

/* ---- as the turn has them ---------------------------------------------------------------------------------------- */

static uint64_t number_hash(uint32_t queue, uint64_t key)
{
	return hash_u64(key ^ hash_u64(queue));
}

static uint64_t turn_key_hash(void *context, uint32_t number)
{
	const struct turn *turn = context;

	return number_hash(turn->keys[number]->queue, turn->keys[number]->key);
}

static const struct map_ops turn_key_ops = {.hash_of = turn_key_hash};

struct turn_key *turn_key(const struct turn *turn, uint32_t queue, uint64_t key)
{
	struct map_probe probe;

	if (turn->key_count == 0)
		return NULL;
	uint32_t at = map_first(&turn->key_by_number, number_hash(queue, key), &probe);
	while (at != MAP_NONE && (turn->keys[at]->key != key || turn->keys[at]->queue != queue))
		at = map_next(&turn->key_by_number, &probe);
	return at == MAP_NONE ? NULL : turn->keys[at];
}

void running_keys_clear(struct turn *turn)
{
	for (uint32_t i = 0; i < turn->key_count; i++)
		map_remove(&turn->key_by_number, turn_key_hash(turn, i), i);
	turn->key_count = turn->open_key_count = 0;
	turn->served = turn->choices = 0;
}

/* -ENOMEM. */
static int key_touch(struct turn *turn, uint32_t queue, uint64_t key, struct turn_key **ret_key)
{
	*ret_key = turn_key(turn, queue, key);
	if (*ret_key)
		return 0;
	int r = turn_grow((void **)&turn->keys, turn->key_count, &turn->key_cap, sizeof *turn->keys);
	struct turn_key *fresh = r == 0 ? arena_alloc(&turn->arena, sizeof *fresh) : NULL;
	if (!fresh)
		return -ENOMEM;
	*fresh = (struct turn_key){.key = key,
		.queue = queue,
		.number = sublanes_find(&turn->store->index.lanes.sublanes, queue, key)};
	turn->keys[turn->key_count] = fresh;
	r = map_insert(&turn->key_by_number, number_hash(queue, key), turn->key_count);
	if (r < 0)
		return r;
	turn->key_count++;
	*ret_key = fresh;
	return 0;
}

/* Its committed tasks are looked at by key from now on. -ENOMEM. */
static int key_list(struct turn *turn, struct turn_key *key)
{
	if (key->listed || key->number == MAP_NONE ||
		sublanes_key(&turn->store->index.lanes.sublanes, key->number)->first == SLAB_NONE)
		return 0;
	int r = turn_grow((void **)&turn->open_keys, turn->open_key_count, &turn->open_key_cap,
		sizeof *turn->open_keys);
	if (r < 0)
		return r;
	turn->open_keys[turn->open_key_count++] = key;
	key->listed = true;
	return 0;
}

static struct key_load committed_load(const struct store *store, uint32_t number)
{
	if (number == MAP_NONE)
		return (struct key_load){0};
	const struct running_key *key = sublanes_key(&store->index.lanes.sublanes, number);
	return (struct key_load){key->live, key->begun};
}

static struct key_load load_in_turn(const struct turn *turn, const struct turn_key *key)
{
	struct key_load load = committed_load(turn->store, key->number);

	assert((int64_t)load.live + key->more_live >= 0); /* what ends was counted */
	assert((int64_t)load.begun + key->more_begun >= 0);
	load.live = (uint32_t)((int64_t)load.live + key->more_live);
	load.begun = (uint32_t)((int64_t)load.begun + key->more_begun);
	return load;
}

enum limit_kind turn_key_limit(const struct turn *turn, const struct task *task)
{
	uint32_t cap;

	if (task->concurrency_key == 0 || slab_used(&turn->store->limited) == 0)
		return LIMIT_NONE;
	struct queue_limits limits = turn_limits(turn, task->queue, task->concurrency_key, &cap);
	const struct turn_key *key = turn_key(turn, task->queue, task->concurrency_key);
	struct key_load load = key ? load_in_turn(turn, key) : store_key_load(turn->store, task);
	enum limit_kind limit = limits_judge_key(&limits, cap, &load, task_has_begun(task));
	if (limit == LIMIT_NONE && limits.rate.per_key &&
		turn_rate_opens_ms(turn, task->queue, task->concurrency_key) != 0)
		limit = LIMIT_RATE;
	return limit;
}

enum limit_kind turn_task_limit(const struct turn *turn, const struct task *task)
{
	enum limit_kind limit = turn_limit(turn, task->queue);

	return limit != LIMIT_NONE ? limit : turn_key_limit(turn, task);
}

/* What a task is to its key. */
struct standing {
	uint32_t queue;
	uint64_t key;
	bool live, begun, stands;
};

static struct standing standing_of(const struct task *task)
{
	return (struct standing){
		.queue = task->queue,
		.key = task->state != TASK_NOWHERE ? task->concurrency_key : 0,
		.live = task_is_claimed(task),
		.begun = task_has_begun(task),
		.stands = task->state == TASK_READY || task->state == TASK_PENDING,
	};
}

/* `frees`: it makes room for another one of the key. */
static int count_standing(struct turn *turn, const struct standing *standing, int more, bool frees)
{
	struct turn_key *key;
	int r = standing->key != 0 ? key_touch(turn, standing->queue, standing->key, &key) : 0;

	if (r < 0 || standing->key == 0)
		return r;
	key->more_live += standing->live ? more : 0;
	key->more_begun += standing->begun ? more : 0;
	key->freed += frees;
	key->came += standing->stands && more > 0;
	return key_list(turn, key);
}

int running_keys_follow(struct turn *turn, const struct task *before, const struct task *after)
{
	struct standing was = standing_of(before), is = standing_of(after);
	bool same = was.key == is.key && was.queue == is.queue;

	if (same && was.live == is.live && was.begun == is.begun && was.stands == is.stands)
		return 0;
	/* what had begun, and is not in work, holds up the next one of a sequential key until it has ended */
	bool frees = (was.live && !(same && is.live)) || (was.begun && !(same && is.begun));
	int r = count_standing(turn, &was, -1, frees);
	if (r == 0)
		r = count_standing(turn, &is, 1, false);
	if (r == 0 && is.live && !was.live && is.key != 0)
		turn_key(turn, is.queue, is.key)->served =
			turn->store->index.lanes.sublanes.served_last + ++turn->served;
	return r;
}

struct fair_turn turn_fair(const struct turn *turn, uint32_t queue, uint64_t key)
{
	const struct sublanes *sublanes = &turn->store->index.lanes.sublanes;
	const struct turn_key *touched = key != 0 ? turn_key(turn, queue, key) : NULL;

	if (key == 0)
		return turn_fair_keyless(turn, queue);
	uint32_t number = touched ? touched->number : sublanes_find(sublanes, queue, key);
	struct fair_turn its = {.served = sublanes_served(sublanes, queue, key)};
	its.live = touched ? load_in_turn(turn, touched).live : committed_load(turn->store, number).live;
	if (touched && touched->served != 0)
		its.served = touched->served;
	return its;
}

/* ---- what is committed ------------------------------------------------------------------------------------------- */

struct key_load store_key_load(const struct store *store, const struct task *task)
{
	return task->concurrency_key == 0
		? (struct key_load){0}
		: committed_load(store,
			  sublanes_find(&store->index.lanes.sublanes, task->queue, task->concurrency_key));
}

enum limit_kind store_key_limit(const struct store *store, const struct task *task)
{
	uint32_t cap;
	bool any;

	if (task->concurrency_key == 0 || slab_used(&store->limited) == 0)
		return LIMIT_NONE;
	struct queue_limits limits = store_key_limits(store, task->queue, task->concurrency_key, &cap, &any);
	struct key_load load = store_key_load(store, task);
	enum limit_kind limit = limits_judge_key(&limits, cap, &load, task_has_begun(task));
	if (limit == LIMIT_NONE && limits.rate.per_key &&
		store_rate_opens_ms(store, task->queue, task->concurrency_key) != 0)
		limit = LIMIT_RATE;
	return limit;
}

enum limit_kind store_task_limit(const struct store *store, const struct task *task)
{
	enum limit_kind limit = store_limit(store, task->queue);

	return limit != LIMIT_NONE ? limit : store_key_limit(store, task);
}

/* For the index: see sublanes.is_open. */
static bool key_is_open(const void *judge, const struct running_key *key, bool begun)
{
	const struct store *store = judge;
	const struct key_load load = {key->live, key->begun};
	uint32_t cap;
	bool any;

	if (slab_used(&store->limited) == 0)
		return true;
	struct queue_limits limits = store_key_limits(store, key->queue, key->key, &cap, &any);
	return limits_judge_key(&limits, cap, &load, begun) == LIMIT_NONE &&
		(!limits.rate.per_key || store_rate_opens_ms(store, key->queue, key->key) == 0);
}

static bool queue_is_fair(const void *judge, uint32_t queue)
{
	struct queue_load load;

	return store_limits(judge, queue, &load).fair;
}

void running_keys_init(struct store *store)
{
	struct sublanes *sublanes = &store->index.lanes.sublanes;

	sublanes->is_open = key_is_open;
	sublanes->is_fair = queue_is_fair;
	sublanes->judge = store;
	map_init(&store->turn.key_by_number, &turn_key_ops, &store->turn);
}

/* Only a key of which a task was claimed can be shut, or stand elsewhere in a fair queue. */
static bool may_stand_elsewhere(const struct running_key *key, uint32_t queue)
{
	return (key->begun > 0 || key->served != 0) && key->queue == queue;
}

int running_keys_touch(struct turn *turn, uint32_t queue)
{
	const struct sublanes *sublanes = &turn->store->index.lanes.sublanes;
	struct turn_key *key;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < slab_high(&sublanes->keys); i++) {
		if (!may_stand_elsewhere(sublanes_key(sublanes, i), queue))
			continue;
		r = key_touch(turn, queue, sublanes_key(sublanes, i)->key, &key);
		if (r == 0)
			r = key_list(turn, key);
	}
	return r;
}

void running_keys_lift(struct store *store, uint32_t queue)
{
	struct sublanes *sublanes = &store->index.lanes.sublanes;

	for (uint32_t i = 0; i < slab_high(&sublanes->keys); i++) {
		if (may_stand_elsewhere(sublanes_key(sublanes, i), queue))
			sublanes_lift(sublanes, i);
	}
}

void running_keys_lower(struct store *store, uint32_t queue)
{
	struct sublanes *sublanes = &store->index.lanes.sublanes;

	for (uint32_t i = 0; i < slab_high(&sublanes->keys); i++) {
		if (may_stand_elsewhere(sublanes_key(sublanes, i), queue))
			sublanes_lower(sublanes, i);
	}
}

/* ---- whom a freed key wakes -------------------------------------------------------------------------------------- */

/* How many tasks of the key stand in lanes, as far as `most`. */
static uint32_t standing_tasks(const struct store *store, uint32_t number, uint32_t most)
{
	const struct sublanes *sublanes = &store->index.lanes.sublanes;
	uint32_t count = 0;

	for (uint32_t at = sublanes_key(sublanes, number)->first; at != SLAB_NONE && count < most;
		at = sublane_at(sublanes, at)->next) {
		const struct sublane *sublane = sublane_at(sublanes, at);
		uint32_t task = sublane_first(sublanes, sublane);
		for (; task != MAP_NONE && count < most; task = sublane_after(sublanes, sublane, task))
			count++;
	}
	return count;
}

static uint32_t key_room(const struct store *store, uint32_t queue, uint64_t key, uint32_t *ret_number)
{
	uint32_t cap;
	bool any;

	*ret_number = sublanes_find(&store->index.lanes.sublanes, queue, key);
	struct queue_limits limits = store_key_limits(store, queue, key, &cap, &any);
	struct key_load load = committed_load(store, *ret_number);
	return any ? limits_key_room(&limits, cap, &load) : UINT32_MAX;
}

bool running_key_counts(const struct store *store, const struct task *task)
{
	uint32_t number;

	return task->concurrency_key != 0 &&
		key_room(store, task->queue, task->concurrency_key, &number) != UINT32_MAX;
}

uint32_t running_key_room(const struct store *store, uint32_t at, uint32_t *ret_queue)
{
	const struct turn_key *key = store->turn.keys[at];
	uint32_t number, room = key_room(store, key->queue, key->key, &number);

	*ret_queue = key->queue;
	if (room == UINT32_MAX || room == 0 || number == MAP_NONE)
		return 0;
	uint32_t wanted = key->freed + key->came;
	return standing_tasks(store, number, room < wanted ? room : wanted);
}
