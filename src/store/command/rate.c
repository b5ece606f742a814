/*
 * Rates of queues and of concurrency keys: so many claims in a time.
 *
 * A rate has one number for each queue, or for each of its keys: when its bucket is full again (core/flow/limit.h). It is written with
 * the claims that move it, so a restart forgets none of them. A bucket that is full is not kept.
 *
 * Whoever found a bucket empty is not asked again and again: the heap `refills` has the moment of the next permit, at which the key is
 * opened, or the queue counts as opened, for one claim.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "store/command/commands.h"
#include "store/record/small.h"

static struct bucket *bucket_at(const struct store *store, uint32_t number)
{
	return slab_at(&store->buckets, number);
}

static uint64_t bucket_number_hash(uint32_t queue, uint64_t key)
{
	return hash_u64(key ^ hash_u64(queue));
}

static uint64_t bucket_hash(void *context, uint32_t number)
{
	const struct bucket *bucket = bucket_at(context, number);

	return bucket_number_hash(bucket->queue, bucket->key);
}

static const struct map_ops bucket_ops = {.hash_of = bucket_hash};

void rates_init(struct store *store)
{
	slab_init(&store->buckets, sizeof(struct bucket));
	map_init(&store->bucket_by_key, &bucket_ops, store);
	heap_init(&store->refills);
}

void rates_done(struct store *store)
{
	map_done(&store->bucket_by_key);
	slab_done(&store->buckets);
	heap_done(&store->refills);
}

static uint32_t bucket_find(const struct store *store, uint32_t queue, uint64_t key)
{
	struct map_probe probe;

	if (slab_used(&store->buckets) == 0)
		return MAP_NONE;
	uint32_t at = map_first(&store->bucket_by_key, bucket_number_hash(queue, key), &probe);
	while (at != MAP_NONE && (bucket_at(store, at)->key != key || bucket_at(store, at)->queue != queue))
		at = map_next(&store->bucket_by_key, &probe);
	return at;
}

/* MAP_NONE: no memory. */
static uint32_t bucket_make(struct store *store, uint32_t queue, uint64_t key)
{
	uint32_t number = bucket_find(store, queue, key);

	if (number != MAP_NONE)
		return number;
	if (slab_alloc(&store->buckets, &number) < 0)
		return MAP_NONE;
	*bucket_at(store, number) = (struct bucket){.key = key, .queue = queue};
	if (map_insert(&store->bucket_by_key, bucket_number_hash(queue, key), number) < 0) {
		slab_free(&store->buckets, number);
		return MAP_NONE;
	}
	return number;
}

static void bucket_drop(struct store *store, uint32_t number)
{
	const struct bucket *bucket = bucket_at(store, number);

	map_remove(&store->bucket_by_key, bucket_number_hash(bucket->queue, bucket->key), number);
	slab_free(&store->buckets, number);
}

/* The key under which the rate counts the task; false: it does not count it. */
static bool counts_as(const struct rate *rate, uint64_t concurrency_key, uint64_t *ret_key)
{
	*ret_key = rate->per_key ? concurrency_key : 0;
	return rate->count != 0 && (!rate->per_key || concurrency_key != 0);
}

/* ---- as the turn has them ---------------------------------------------------------------------------------------- */

static int64_t due_in_turn(const struct turn *turn, uint32_t number)
{
	const struct bucket *bucket = number != MAP_NONE ? bucket_at(turn->store, number) : NULL;

	if (!bucket)
		return 0;
	return bucket->turn == turn->number ? bucket->next_ns : bucket->due_ns;
}

int64_t turn_rate_opens_ms(const struct turn *turn, uint32_t queue, uint64_t concurrency_key)
{
	uint32_t cap;
	uint64_t key;
	struct queue_limits limits = turn_limits(turn, queue, 0, &cap);

	if (!counts_as(&limits.rate, concurrency_key, &key))
		return 0;
	int64_t opens_ms = rate_opens_ms(&limits.rate,
		due_in_turn(turn, bucket_find(turn->store, queue, key)), turn->given.now.wall_ms);
	return opens_ms > turn->given.now.wall_ms ? opens_ms : 0;
}

static int bucket_set(struct turn *turn, uint32_t number, int64_t due_ns)
{
	struct bucket *bucket = bucket_at(turn->store, number);

	if (bucket->turn != turn->number) {
		int r = turn_grow((void **)&turn->buckets, turn->bucket_count, &turn->bucket_cap,
			sizeof *turn->buckets);
		if (r < 0)
			return r;
		turn->buckets[turn->bucket_count++] = number;
		bucket->turn = turn->number;
	}
	bucket->next_ns = due_ns;
	return 0;
}

int rates_take(struct turn *turn, const struct task *task)
{
	uint32_t cap;
	uint64_t key;
	struct queue_limits limits = turn_limits(turn, task->queue, 0, &cap);

	if (!counts_as(&limits.rate, task->concurrency_key, &key))
		return 0;
	uint32_t number = bucket_make(turn->store, task->queue, key);
	if (number == MAP_NONE)
		return -ENOMEM;
	return bucket_set(
		turn, number, rate_take(&limits.rate, due_in_turn(turn, number), turn->given.now.wall_ms));
}

/* The rate becomes another one: its buckets are full. */
int rates_fill(struct turn *turn, uint32_t queue)
{
	struct store *store = turn->store;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < slab_high(&store->buckets); i++) {
		const struct bucket *bucket = bucket_at(store, i);
		if (bucket->queue == queue && bucket_find(store, queue, bucket->key) == i)
			r = bucket_set(turn, i, 0);
	}
	return r;
}

/* The queue, the character 31, and the number of the key in hexadecimal digits. */
static struct span bucket_name(struct turn *turn, const struct bucket *bucket)
{
	struct span name = names_text(&turn->store->names, bucket->queue);
	char *text = arena_alloc(&turn->arena, name.len + 18);

	if (!text)
		return (struct span){0};
	int len = snprintf(text, name.len + 18, "%.*s%c%016llx", SPAN_ARGS(name), ASSIGNMENT_SEPARATOR,
		(unsigned long long)bucket->key);
	return (struct span){text, (size_t)len};
}

int rates_write(struct turn *turn)
{
	char data[SMALL_BYTES_MAX];
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < turn->bucket_count; i++) {
		const struct bucket *bucket = bucket_at(turn->store, turn->buckets[i]);
		struct span name = bucket_name(turn, bucket);
		if (name.len == 0)
			return -ENOMEM;
		r = bucket->next_ns == 0 ? turn_put(turn, delete_small, SMALL_BUCKET, name)
					 : turn_put(turn, put_small, SMALL_BUCKET, name,
						   small_bucket_put(bucket->next_ns, data));
	}
	return r;
}

int rates_reserve(struct turn *turn)
{
	return heap_reserve(&turn->store->refills, turn->bucket_count);
}

/* ---- what is committed ------------------------------------------------------------------------------------------- */

/* When the next claim may be made; 0: now. */
static int64_t committed_opens_ms(const struct store *store, const struct queue_limits *limits,
	uint32_t queue, uint64_t concurrency_key)
{
	uint64_t key;

	if (!counts_as(&limits->rate, concurrency_key, &key))
		return 0;
	uint32_t number = bucket_find(store, queue, key);
	if (number == MAP_NONE)
		return 0;
	int64_t opens_ms = rate_opens_ms(&limits->rate, bucket_at(store, number)->due_ns, store->rates_ms);
	return opens_ms > store->rates_ms ? opens_ms : 0;
}

int64_t store_rate_opens_ms(const struct store *store, uint32_t queue, uint64_t concurrency_key)
{
	uint32_t cap;
	bool any;
	struct queue_limits limits = store_key_limits(store, queue, 0, &cap, &any);

	return any ? committed_opens_ms(store, &limits, queue, concurrency_key) : 0;
}

/* The key of the bucket is judged anew, and looked at when its next permit comes. */
static void bucket_judge(struct store *store, uint32_t number, int64_t due_ns)
{
	struct sublanes *sublanes = &store->index.lanes.sublanes;
	struct bucket *bucket = bucket_at(store, number);
	uint32_t key = bucket->key != 0 ? sublanes_find(sublanes, bucket->queue, bucket->key) : MAP_NONE;
	uint32_t cap;
	bool any;
	struct queue_limits limits = store_key_limits(store, bucket->queue, 0, &cap, &any);

	if (key != MAP_NONE)
		sublanes_lift(sublanes, key);
	bucket->due_ns = due_ns;
	if (key != MAP_NONE)
		sublanes_lower(sublanes, key);
	int64_t opens_ms = any ? committed_opens_ms(store, &limits, bucket->queue, bucket->key) : 0;
	if (opens_ms != 0 && opens_ms != bucket->refill_ms) {
		bucket->refill_ms = opens_ms;
		index_must_fit(heap_push(&store->refills, (struct heap_entry){opens_ms, number}));
	}
}

void rates_apply(struct turn *turn)
{
	struct store *store = turn->store;

	for (uint32_t i = 0; i < turn->bucket_count; i++) {
		bucket_judge(store, turn->buckets[i], bucket_at(store, turn->buckets[i])->next_ns);
		if (bucket_at(store, turn->buckets[i])->due_ns == 0)
			bucket_drop(store, turn->buckets[i]);
	}
}

/* The clock was set back: what a bucket is full at is at most one filling away. -ENOMEM. */
static int clamp_all(struct store *store)
{
	int r = heap_reserve(&store->refills, slab_used(&store->buckets));
	uint32_t cap;
	bool any;

	for (uint32_t i = 0; r == 0 && i < slab_high(&store->buckets); i++) {
		const struct bucket *bucket = bucket_at(store, i);
		if (bucket_find(store, bucket->queue, bucket->key) != i)
			continue;
		struct queue_limits limits = store_key_limits(store, bucket->queue, 0, &cap, &any);
		bucket_judge(store, i, rate_clamp(&limits.rate, bucket->due_ns, store->rates_ms));
	}
	return r;
}

static void note_refilled(struct turn *turn, const struct bucket *bucket)
{
	if (bucket->key != 0) {
		struct sublanes *sublanes = &turn->store->index.lanes.sublanes;
		uint32_t key = sublanes_find(sublanes, bucket->queue, bucket->key);
		if (key == MAP_NONE || sublanes_key(sublanes, key)->first == SLAB_NONE)
			return;
		sublanes_lift(sublanes, key);
		sublanes_lower(sublanes, key);
	}
	turn->refilled[turn->refilled_count++] = bucket->queue;
}

int rates_refill(struct turn *turn)
{
	struct store *store = turn->store;
	int64_t now_ms = turn->given.now.wall_ms, before_ms = store->rates_ms;
	const struct heap_entry *next;

	store->rates_ms = now_ms;
	int r = now_ms < before_ms ? clamp_all(store) : 0;
	while (r == 0 && turn->refilled_count < REFILLED_MAX && (next = heap_peek(&store->refills)) &&
		next->at <= now_ms) {
		struct heap_entry entry = heap_pop(&store->refills);
		uint32_t number = (uint32_t)entry.what;
		struct bucket *bucket = bucket_at(store, number);
		if (bucket_find(store, bucket->queue, bucket->key) == number &&
			bucket->refill_ms == entry.at) {
			bucket->refill_ms = 0;
			note_refilled(turn, bucket);
		}
	}
	return r;
}

int64_t rates_next_ms(const struct store *store)
{
	const struct heap_entry *next = heap_peek(&store->refills);

	return next ? next->at : INT64_MAX;
}

/* Buckets that are full again are forgotten, some at a time. */
int rates_sweep(struct turn *turn, uint32_t step)
{
	struct store *store = turn->store;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < slab_high(&store->buckets) && step > 0; i++) {
		const struct bucket *bucket = bucket_at(store, i);
		if (bucket_find(store, bucket->queue, bucket->key) != i ||
			bucket->due_ns / 1000000 >= turn->given.now.wall_ms)
			continue;
		r = bucket_set(turn, i, 0);
		step--;
	}
	return r;
}

/* All limits are loaded. */
int rates_load(struct store *store, uint32_t queue, uint64_t key, int64_t due_ns)
{
	uint32_t number = bucket_make(store, queue, key), cap;
	bool any;
	struct queue_limits limits = store_key_limits(store, queue, 0, &cap, &any);

	if (number == MAP_NONE || heap_reserve(&store->refills, 1) < 0)
		return -ENOMEM;
	bucket_judge(store, number, any ? rate_clamp(&limits.rate, due_ns, store->rates_ms) : due_ns);
	return 0;
}
