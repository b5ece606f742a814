#include "store/index/train.h"

#include <assert.h>

#include "base/hash.h"
#include "core/flow/limit.h"

/* A task in the tree of its train. */
struct train_node {
	uint32_t task;
	struct treap_links links;
};

static struct train_node *node_at(const struct trains *trains, uint32_t number)
{
	return slab_at(&trains->nodes, number);
}

static uint64_t key_hash(uint32_t queue, uint64_t key)
{
	return hash_u64(key ^ hash_u64(queue));
}

static uint64_t hash_of(void *context, uint32_t number)
{
	const struct running_key *key = trains_key(context, number);

	return key_hash(key->queue, key->key);
}

static const struct map_ops key_ops = {.hash_of = hash_of};

static struct treap_links *node_links(const void *context, uint32_t number)
{
	return &node_at(context, number)->links;
}

static int node_order(const void *context, uint32_t a, uint32_t b)
{
	const struct trains *trains = context;

	return a == b ? 0
		      : trains->order(trains->context, node_at(trains, a)->task, node_at(trains, b)->task);
}

static struct treap_links *train_links(const void *context, uint32_t number)
{
	return &train_at(context, number)->links;
}

static struct fair_turn turn_of(const struct trains *trains, const struct train *train)
{
	const struct running_key *key = trains_key(trains, train->key);

	return (struct fair_turn){key->live, key->served};
}

static int order_by_turn(const struct trains *trains, const struct train *a, uint32_t first_a,
	const struct train *b, uint32_t first_b)
{
	int32_t left = trains->priority(trains->context, first_a);
	int32_t right = trains->priority(trains->context, first_b);

	if (left != right)
		return left > right ? -1 : 1;
	struct fair_turn turn_a = turn_of(trains, a), turn_b = turn_of(trains, b);
	return fair_order(&turn_a, &turn_b);
}

/* Both are of one lane. */
static int train_order(const void *context, uint32_t a, uint32_t b)
{
	const struct trains *trains = context;
	const struct train *left = train_at(trains, a), *right = train_at(trains, b);

	if (a == b)
		return 0;
	uint32_t first_left = train_first(trains, left), first_right = train_first(trains, right);
	int order = train_sides_of(trains, left->lane)->fair
		? order_by_turn(trains, left, first_left, right, first_right)
		: 0;
	return order != 0 ? order : trains->order(trains->context, first_left, first_right);
}

void trains_init(struct trains *trains)
{
	slab_init(&trains->keys, sizeof(struct running_key));
	slab_init(&trains->trains, sizeof(struct train));
	slab_init(&trains->nodes, sizeof(struct train_node));
	map_init(&trains->by_key, &key_ops, trains);
	trains->order_of_tasks = (struct treap){node_links, node_order, trains};
	trains->order_of_trains = (struct treap){train_links, train_order, trains};
}

void trains_done(struct trains *trains)
{
	map_done(&trains->by_key);
	slab_done(&trains->keys);
	slab_done(&trains->trains);
	slab_done(&trains->nodes);
}

/* A task may leave one key and come to another; the second task of a train makes a tree of two. */
int trains_reserve(struct trains *trains, uint32_t changes)
{
	int r = slab_reserve(&trains->keys, 2 * changes);

	if (r == 0)
		r = map_reserve(&trains->by_key, trains->by_key.used + 2 * changes);
	if (r == 0)
		r = slab_reserve(&trains->trains, changes);
	return r == 0 ? slab_reserve(&trains->nodes, 2 * changes) : r;
}

uint32_t trains_find(const struct trains *trains, uint32_t queue, uint64_t key)
{
	struct map_probe probe;
	uint32_t number = map_first(&trains->by_key, key_hash(queue, key), &probe);

	while (number != MAP_NONE &&
		(trains_key(trains, number)->key != key || trains_key(trains, number)->queue != queue))
		number = map_next(&trains->by_key, &probe);
	return number;
}

static void must_fit(int fault)
{
	assert(fault == 0); /* its memory was reserved */
}

static uint64_t served_before(const struct trains *trains, uint64_t hash)
{
	const struct remembered_key *place = &trains->remembered[hash & (KEYS_REMEMBERED - 1)];

	return place->hash == hash ? place->served : 0;
}

uint64_t trains_served(const struct trains *trains, uint32_t queue, uint64_t key)
{
	uint32_t number = trains_find(trains, queue, key);

	return number != MAP_NONE ? trains_key(trains, number)->served
				  : served_before(trains, key_hash(queue, key));
}

static void remember(struct trains *trains, const struct running_key *key)
{
	uint64_t hash = key_hash(key->queue, key->key);

	if (key->served != 0)
		trains->remembered[hash & (KEYS_REMEMBERED - 1)] = (struct remembered_key){hash, key->served};
}

uint32_t trains_make(struct trains *trains, uint32_t queue, uint64_t key)
{
	uint32_t number = trains_find(trains, queue, key);

	if (number != MAP_NONE)
		return number;
	must_fit(slab_alloc(&trains->keys, &number));
	*trains_key(trains, number) = (struct running_key){.key = key,
		.queue = queue,
		.first = SLAB_NONE,
		.served = served_before(trains, key_hash(queue, key))};
	must_fit(map_insert(&trains->by_key, key_hash(queue, key), number));
	return number;
}

/* ---- where trains stand ------------------------------------------------------------------------------------------- */

static uint32_t *side_of(const struct trains *trains, const struct train *train)
{
	struct train_sides *sides = train_sides_of(trains, train->lane);

	return train->shut ? &sides->shut : &sides->open;
}

void trains_lift(struct trains *trains, uint32_t number)
{
	uint32_t at = trains_key(trains, number)->first;

	for (; at != SLAB_NONE; at = train_at(trains, at)->next)
		treap_remove(&trains->order_of_trains, side_of(trains, train_at(trains, at)), at);
}

void trains_lower(struct trains *trains, uint32_t number)
{
	struct running_key *key = trains_key(trains, number);

	assert(key->live <= key->begun); /* whoever was claimed has begun */
	if (key->first == SLAB_NONE && key->begun == 0) {
		remember(trains, key);
		map_remove(&trains->by_key, key_hash(key->queue, key->key), number);
		*key = (struct running_key){0}; /* for those who walk all keys */
		slab_free(&trains->keys, number);
		return;
	}
	for (uint32_t at = key->first; at != SLAB_NONE; at = train_at(trains, at)->next) {
		struct train *train = train_at(trains, at);
		train->shut = trains->is_open && !trains->is_open(trains->judge, key, train->begun);
		treap_insert(&trains->order_of_trains, side_of(trains, train), at);
	}
}

/* ---- the tasks of a train ----------------------------------------------------------------------------------------- */

static uint32_t node_make(struct trains *trains, uint32_t task)
{
	uint32_t number;

	must_fit(slab_alloc(&trains->nodes, &number));
	node_at(trains, number)->task = task;
	return number;
}

static void tree_insert(struct trains *trains, struct train *train, uint32_t task)
{
	if (train->tasks & TRAIN_SINGLE) {
		uint32_t single = train->tasks & ~TRAIN_SINGLE;
		uint32_t root = TREAP_NONE;
		treap_insert(&trains->order_of_tasks, &root, node_make(trains, single));
		train->tasks = root;
	}
	treap_insert(&trains->order_of_tasks, &train->tasks, node_make(trains, task));
}

/* The node of the task: found by the order, so the task must be as it was when it came. */
static uint32_t node_of(const struct trains *trains, const struct train *train, uint32_t task)
{
	uint32_t at = train->tasks;

	while (node_at(trains, at)->task != task) {
		bool before = trains->order(trains->context, task, node_at(trains, at)->task) < 0;
		at = before ? node_at(trains, at)->links.left : node_at(trains, at)->links.right;
		assert(at != TREAP_NONE); /* it stands in the train */
	}
	return at;
}

static void tree_remove(struct trains *trains, struct train *train, uint32_t task)
{
	uint32_t number = node_of(trains, train, task);

	treap_remove(&trains->order_of_tasks, &train->tasks, number);
	slab_free(&trains->nodes, number);
	struct train_node *root = node_at(trains, train->tasks);
	if (root->links.left == TREAP_NONE && root->links.right == TREAP_NONE) {
		uint32_t last = train->tasks;
		train->tasks = root->task | TRAIN_SINGLE;
		slab_free(&trains->nodes, last);
	}
}

static uint32_t *link_of(const struct trains *trains, uint32_t key, uint32_t lane)
{
	uint32_t *link = &trains_key(trains, key)->first;

	while (*link != SLAB_NONE && train_at(trains, *link)->lane != lane)
		link = &train_at(trains, *link)->next;
	return link;
}

void trains_insert(struct trains *trains, uint32_t key, uint32_t lane, bool begun, uint32_t task)
{
	uint32_t number = *link_of(trains, key, lane);

	assert(!(task & TRAIN_SINGLE));
	trains_key(trains, key)->waiting++;
	if (number != SLAB_NONE) {
		tree_insert(trains, train_at(trains, number), task);
		return;
	}
	must_fit(slab_alloc(&trains->trains, &number));
	*train_at(trains, number) = (struct train){
		.key = key,
		.lane = lane,
		.next = trains_key(trains, key)->first,
		.tasks = task | TRAIN_SINGLE,
		.begun = begun,
	};
	trains_key(trains, key)->first = number;
}

void trains_remove(struct trains *trains, uint32_t key, uint32_t lane, uint32_t task)
{
	uint32_t *link = link_of(trains, key, lane), number = *link;

	assert(number != SLAB_NONE); /* it stands in a train of its key */
	assert(trains_key(trains, key)->waiting > 0);
	trains_key(trains, key)->waiting--;
	struct train *train = train_at(trains, number);
	if (!(train->tasks & TRAIN_SINGLE)) {
		tree_remove(trains, train, task);
		return;
	}
	assert(train->tasks == (task | TRAIN_SINGLE));
	*link = train->next;
	slab_free(&trains->trains, number);
}

/* ---- walking ------------------------------------------------------------------------------------------------------- */

uint32_t trains_first(const struct trains *trains, uint32_t root)
{
	return treap_first(&trains->order_of_trains, root);
}

uint32_t trains_after(const struct trains *trains, uint32_t root, uint32_t train)
{
	return treap_after(&trains->order_of_trains, root, train);
}

uint32_t train_first(const struct trains *trains, const struct train *train)
{
	if (train->tasks & TRAIN_SINGLE)
		return train->tasks & ~TRAIN_SINGLE;
	return node_at(trains, treap_first(&trains->order_of_tasks, train->tasks))->task;
}

uint32_t train_after(const struct trains *trains, const struct train *train, uint32_t task)
{
	if (train->tasks & TRAIN_SINGLE)
		return MAP_NONE;
	uint32_t after = treap_after(&trains->order_of_tasks, train->tasks, node_of(trains, train, task));
	return after == TREAP_NONE ? MAP_NONE : node_at(trains, after)->task;
}
