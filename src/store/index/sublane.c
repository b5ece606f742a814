#include "store/index/sublane.h"

#include <assert.h>

#include "base/hash.h"
#include "core/flow/limit.h"

/* A task in the tree of its sublane. */
struct sublane_node {
	uint32_t task;
	struct treap_links links;
};

static struct sublane_node *node_at(const struct sublanes *sublanes, uint32_t number)
{
	return slab_at(&sublanes->nodes, number);
}

static uint64_t key_hash(uint32_t queue, uint64_t key)
{
	return hash_u64(key ^ hash_u64(queue));
}

static uint64_t hash_of(void *context, uint32_t number)
{
	const struct running_key *key = sublanes_key(context, number);

	return key_hash(key->queue, key->key);
}

static const struct map_ops key_ops = {.hash_of = hash_of};

static struct treap_links *node_links(const void *context, uint32_t number)
{
	return &node_at(context, number)->links;
}

static int node_order(const void *context, uint32_t a, uint32_t b)
{
	const struct sublanes *sublanes = context;

	return a == b
		? 0
		: sublanes->order(sublanes->context, node_at(sublanes, a)->task, node_at(sublanes, b)->task);
}

static struct treap_links *sublane_links(const void *context, uint32_t number)
{
	return &sublane_at(context, number)->links;
}

static struct fair_turn turn_of(const struct sublanes *sublanes, const struct sublane *sublane)
{
	const struct running_key *key = sublanes_key(sublanes, sublane->key);

	return (struct fair_turn){key->live, key->served};
}

static int order_by_turn(const struct sublanes *sublanes, const struct sublane *a, uint32_t first_a,
	const struct sublane *b, uint32_t first_b)
{
	int32_t left = sublanes->priority(sublanes->context, first_a);
	int32_t right = sublanes->priority(sublanes->context, first_b);

	if (left != right)
		return left > right ? -1 : 1;
	struct fair_turn turn_a = turn_of(sublanes, a), turn_b = turn_of(sublanes, b);
	return fair_order(&turn_a, &turn_b);
}

/* Both are of one lane. */
static int sublane_order(const void *context, uint32_t a, uint32_t b)
{
	const struct sublanes *sublanes = context;
	const struct sublane *left = sublane_at(sublanes, a), *right = sublane_at(sublanes, b);

	if (a == b)
		return 0;
	uint32_t first_left = sublane_first(sublanes, left), first_right = sublane_first(sublanes, right);
	int order = sublane_sides_of(sublanes, left->lane)->fair
		? order_by_turn(sublanes, left, first_left, right, first_right)
		: 0;
	return order != 0 ? order : sublanes->order(sublanes->context, first_left, first_right);
}

void sublanes_init(struct sublanes *sublanes)
{
	slab_init(&sublanes->keys, sizeof(struct running_key));
	slab_init(&sublanes->sublanes, sizeof(struct sublane));
	slab_init(&sublanes->nodes, sizeof(struct sublane_node));
	map_init(&sublanes->by_key, &key_ops, sublanes);
	sublanes->order_of_tasks = (struct treap){node_links, node_order, sublanes};
	sublanes->order_of_sublanes = (struct treap){sublane_links, sublane_order, sublanes};
}

void sublanes_done(struct sublanes *sublanes)
{
	map_done(&sublanes->by_key);
	slab_done(&sublanes->keys);
	slab_done(&sublanes->sublanes);
	slab_done(&sublanes->nodes);
}

/* A task may leave one key and come to another; the second task of a sublane makes a tree of two. */
int sublanes_reserve(struct sublanes *sublanes, uint32_t changes)
{
	int r = slab_reserve(&sublanes->keys, 2 * changes);

	if (r == 0)
		r = map_reserve(&sublanes->by_key, sublanes->by_key.used + 2 * changes);
	if (r == 0)
		r = slab_reserve(&sublanes->sublanes, changes);
	return r == 0 ? slab_reserve(&sublanes->nodes, 2 * changes) : r;
}

uint32_t sublanes_find(const struct sublanes *sublanes, uint32_t queue, uint64_t key)
{
	struct map_probe probe;
	uint32_t number = map_first(&sublanes->by_key, key_hash(queue, key), &probe);

	while (number != MAP_NONE &&
		(sublanes_key(sublanes, number)->key != key ||
			sublanes_key(sublanes, number)->queue != queue))
		number = map_next(&sublanes->by_key, &probe);
	return number;
}

static void must_fit(int fault)
{
	assert(fault == 0); /* its memory was reserved */
}

static uint64_t served_before(const struct sublanes *sublanes, uint64_t hash)
{
	const struct remembered_key *place = &sublanes->remembered[hash & (KEYS_REMEMBERED - 1)];

	return place->hash == hash ? place->served : 0;
}

uint64_t sublanes_served(const struct sublanes *sublanes, uint32_t queue, uint64_t key)
{
	uint32_t number = sublanes_find(sublanes, queue, key);

	return number != MAP_NONE ? sublanes_key(sublanes, number)->served
				  : served_before(sublanes, key_hash(queue, key));
}

static void remember(struct sublanes *sublanes, const struct running_key *key)
{
	uint64_t hash = key_hash(key->queue, key->key);

	if (key->served != 0)
		sublanes->remembered[hash & (KEYS_REMEMBERED - 1)] =
			(struct remembered_key){hash, key->served};
}

uint32_t sublanes_make(struct sublanes *sublanes, uint32_t queue, uint64_t key)
{
	uint32_t number = sublanes_find(sublanes, queue, key);

	if (number != MAP_NONE)
		return number;
	must_fit(slab_alloc(&sublanes->keys, &number));
	*sublanes_key(sublanes, number) = (struct running_key){.key = key,
		.queue = queue,
		.first = SLAB_NONE,
		.served = served_before(sublanes, key_hash(queue, key))};
	must_fit(map_insert(&sublanes->by_key, key_hash(queue, key), number));
	return number;
}

/* ---- where sublanes stand ------------------------------------------------------------------------------------------- */

static uint32_t *side_of(const struct sublanes *sublanes, const struct sublane *sublane)
{
	struct sublane_sides *sides = sublane_sides_of(sublanes, sublane->lane);

	return sublane->shut ? &sides->shut : &sides->open;
}

void sublanes_lift(struct sublanes *sublanes, uint32_t number)
{
	uint32_t at = sublanes_key(sublanes, number)->first;

	for (; at != SLAB_NONE; at = sublane_at(sublanes, at)->next)
		treap_remove(&sublanes->order_of_sublanes, side_of(sublanes, sublane_at(sublanes, at)), at);
}

void sublanes_lower(struct sublanes *sublanes, uint32_t number)
{
	struct running_key *key = sublanes_key(sublanes, number);

	assert(key->live <= key->begun); /* whoever was claimed has begun */
	if (key->first == SLAB_NONE && key->begun == 0) {
		remember(sublanes, key);
		map_remove(&sublanes->by_key, key_hash(key->queue, key->key), number);
		*key = (struct running_key){0}; /* for those who walk all keys */
		slab_free(&sublanes->keys, number);
		return;
	}
	for (uint32_t at = key->first; at != SLAB_NONE; at = sublane_at(sublanes, at)->next) {
		struct sublane *sublane = sublane_at(sublanes, at);
		sublane->shut = sublanes->is_open && !sublanes->is_open(sublanes->judge, key, sublane->begun);
		treap_insert(&sublanes->order_of_sublanes, side_of(sublanes, sublane), at);
	}
}

/* ---- the tasks of a sublane ----------------------------------------------------------------------------------------- */

static uint32_t node_make(struct sublanes *sublanes, uint32_t task)
{
	uint32_t number;

	must_fit(slab_alloc(&sublanes->nodes, &number));
	node_at(sublanes, number)->task = task;
	return number;
}

static void tree_insert(struct sublanes *sublanes, struct sublane *sublane, uint32_t task)
{
	if (sublane->tasks & SUBLANE_SINGLE) {
		uint32_t single = sublane->tasks & ~SUBLANE_SINGLE;
		uint32_t root = TREAP_NONE;
		treap_insert(&sublanes->order_of_tasks, &root, node_make(sublanes, single));
		sublane->tasks = root;
	}
	treap_insert(&sublanes->order_of_tasks, &sublane->tasks, node_make(sublanes, task));
}

/* The node of the task: found by the order, so the task must be as it was when it came. */
static uint32_t node_of(const struct sublanes *sublanes, const struct sublane *sublane, uint32_t task)
{
	uint32_t at = sublane->tasks;

	while (node_at(sublanes, at)->task != task) {
		bool before = sublanes->order(sublanes->context, task, node_at(sublanes, at)->task) < 0;
		at = before ? node_at(sublanes, at)->links.left : node_at(sublanes, at)->links.right;
		assert(at != TREAP_NONE); /* it stands in the sublane */
	}
	return at;
}

static void tree_remove(struct sublanes *sublanes, struct sublane *sublane, uint32_t task)
{
	uint32_t number = node_of(sublanes, sublane, task);

	treap_remove(&sublanes->order_of_tasks, &sublane->tasks, number);
	slab_free(&sublanes->nodes, number);
	struct sublane_node *root = node_at(sublanes, sublane->tasks);
	if (root->links.left == TREAP_NONE && root->links.right == TREAP_NONE) {
		uint32_t last = sublane->tasks;
		sublane->tasks = root->task | SUBLANE_SINGLE;
		slab_free(&sublanes->nodes, last);
	}
}

static uint32_t tree_first(const struct sublanes *sublanes, const struct sublane *sublane)
{
	if (sublane->tasks & SUBLANE_SINGLE)
		return sublane->tasks & ~SUBLANE_SINGLE;
	return node_at(sublanes, treap_first(&sublanes->order_of_tasks, sublane->tasks))->task;
}

static uint32_t *link_of(const struct sublanes *sublanes, uint32_t key, uint32_t lane)
{
	uint32_t *link = &sublanes_key(sublanes, key)->first;

	while (*link != SLAB_NONE && sublane_at(sublanes, *link)->lane != lane)
		link = &sublane_at(sublanes, *link)->next;
	return link;
}

void sublanes_insert(struct sublanes *sublanes, uint32_t key, uint32_t lane, bool begun, uint32_t task)
{
	uint32_t number = *link_of(sublanes, key, lane);

	assert(!(task & SUBLANE_SINGLE));
	sublanes_key(sublanes, key)->waiting++;
	if (number != SLAB_NONE) {
		struct sublane *sublane = sublane_at(sublanes, number);
		tree_insert(sublanes, sublane, task);
		if (sublanes->order(sublanes->context, task, sublane->head) < 0)
			sublane->head = task;
		return;
	}
	must_fit(slab_alloc(&sublanes->sublanes, &number));
	*sublane_at(sublanes, number) = (struct sublane){
		.key = key,
		.lane = lane,
		.next = sublanes_key(sublanes, key)->first,
		.tasks = task | SUBLANE_SINGLE,
		.head = task,
		.begun = begun,
	};
	sublanes_key(sublanes, key)->first = number;
}

void sublanes_remove(struct sublanes *sublanes, uint32_t key, uint32_t lane, uint32_t task)
{
	uint32_t *link = link_of(sublanes, key, lane), number = *link;

	assert(number != SLAB_NONE); /* it stands in a sublane of its key */
	assert(sublanes_key(sublanes, key)->waiting > 0);
	sublanes_key(sublanes, key)->waiting--;
	struct sublane *sublane = sublane_at(sublanes, number);
	if (!(sublane->tasks & SUBLANE_SINGLE)) {
		tree_remove(sublanes, sublane, task);
		if (sublane->head == task)
			sublane->head = tree_first(sublanes, sublane);
		return;
	}
	assert(sublane->tasks == (task | SUBLANE_SINGLE));
	*link = sublane->next;
	slab_free(&sublanes->sublanes, number);
}

/* ---- walking ------------------------------------------------------------------------------------------------------- */

uint32_t sublanes_first(const struct sublanes *sublanes, uint32_t root)
{
	return treap_first(&sublanes->order_of_sublanes, root);
}

uint32_t sublanes_after(const struct sublanes *sublanes, uint32_t root, uint32_t sublane)
{
	return treap_after(&sublanes->order_of_sublanes, root, sublane);
}

uint32_t sublane_first(const struct sublanes *sublanes, const struct sublane *sublane)
{
	(void)sublanes;
	return sublane->head;
}

uint32_t sublanes_head(const struct sublanes *sublanes, uint32_t key, uint32_t lane)
{
	uint32_t number = *link_of(sublanes, key, lane);

	return number != SLAB_NONE ? sublane_at(sublanes, number)->head : MAP_NONE;
}

uint32_t sublane_after(const struct sublanes *sublanes, const struct sublane *sublane, uint32_t task)
{
	if (sublane->tasks & SUBLANE_SINGLE)
		return MAP_NONE;
	uint32_t after =
		treap_after(&sublanes->order_of_tasks, sublane->tasks, node_of(sublanes, sublane, task));
	return after == TREAP_NONE ? MAP_NONE : node_at(sublanes, after)->task;
}
