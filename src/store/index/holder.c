/*
 * Holders in memory: workers, and plain claimants while they hold something; by id, by the place they fill, and by when
 * they were heard.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/index/parts.h"
#include "store/index/asked.h"

/* The live workers in a slot, and of those that have ended in it the one that was heard last, as long as it is remembered. */
struct slot_workers {
	uint32_t slot;
	uint32_t first; /* holder, 0: nobody */
	uint32_t ended; /* holder, 0: nobody */
};

static uint64_t holder_hash(void *context, uint32_t place)
{
	const struct index *index = context;
	const struct holder *holder = slab_at(&index->holders, place);

	return holder->id_hash;
}

static struct slot_workers *slot_workers_at(const struct index *index, uint32_t place)
{
	return slab_at(&index->slot_workers, place);
}

static uint64_t slot_workers_hash(void *context, uint32_t place)
{
	return hash_u64(slot_workers_at(context, place)->slot);
}

static const struct map_ops holder_ops = {.hash_of = holder_hash};
static const struct map_ops slot_workers_ops = {.hash_of = slot_workers_hash};

void holders_init(struct index *index)
{
	slab_init(&index->holders, sizeof(struct holder));
	map_init(&index->holder_by_id, &holder_ops, index);
	slab_init(&index->slot_workers, sizeof(struct slot_workers));
	map_init(&index->list_by_slot, &slot_workers_ops, index);
}

void holders_done(struct index *index)
{
	uint32_t number = 0;

	while ((number = index_next_holder(index, number))) {
		free(index_holder(index, number)->id);
		free(index_holder(index, number)->metadata);
		free(index_holder(index, number)->accounts);
		free(index_holder(index, number)->subtasks);
		free(index_holder(index, number)->fallback);
	}
	map_done(&index->holder_by_id);
	map_done(&index->list_by_slot);
	slab_done(&index->slot_workers);
	slab_done(&index->holders);
}

bool holder_may_take(const struct holder *holder, uint32_t queue)
{
	return holder->worker.named || holder->asks == 0 || holder->asks & asked_bit(queue);
}

void holder_asks(struct holder *holder, uint32_t queue)
{
	holder->refused = false;
	if (queue == 0) {
		holder->asks = ASKED_ALL;
		holder->any_queue = true;
		return;
	}
	holder->asks |= asked_bit(queue);
	for (uint32_t i = 0; i < holder->queue_count; i++) {
		if (holder->queues[i] == queue)
			return;
	}
	if (holder->queue_count < HOLDER_QUEUES_KEPT)
		holder->queues[holder->queue_count++] = queue;
}

struct span holder_id(const struct holder *holder)
{
	return (struct span){holder->id, holder->id_len};
}

static uint32_t find_holder(const struct index *index, struct span id, uint64_t hash)
{
	struct map_probe probe;
	uint32_t place = map_first(&index->holder_by_id, hash, &probe);

	for (; place != MAP_NONE; place = map_next(&index->holder_by_id, &probe)) {
		if (span_equal(holder_id(index_holder(index, place + 1)), id))
			return place + 1;
	}
	return 0;
}

uint32_t index_find_holder(const struct index *index, struct span id)
{
	return find_holder(index, id, hash_bytes(&index->key, id.data, id.len));
}

static uint32_t add_holder(struct index *index, struct span id, uint64_t hash)
{
	uint32_t place;
	char *copy = malloc(id.len + 1);

	if (!copy)
		return 0;
	if (slab_alloc(&index->holders, &place) < 0) {
		free(copy);
		return 0;
	}
	memcpy(copy, id.data, id.len);
	copy[id.len] = 0;
	*index_holder(index, place + 1) = (struct holder){
		.worker = {.handle = place + 1},
		.first_claim = SLAB_NONE,
		.id = copy,
		.id_len = (uint32_t)id.len,
		.id_hash = hash,
	};
	if (map_insert(&index->holder_by_id, hash, place) < 0) {
		free(copy);
		*index_holder(index, place + 1) =
			(struct holder){0}; /* nobody is there: see index_next_holder() */
		slab_free(&index->holders, place);
		return 0;
	}
	index->workers[WORKER_UNKNOWN]++;
	return place + 1;
}

uint32_t index_make_holder(struct index *index, struct span id, bool *ret_added)
{
	uint64_t hash = hash_bytes(&index->key, id.data, id.len);
	uint32_t number = find_holder(index, id, hash);

	*ret_added = number == 0;
	return number != 0 ? number : add_holder(index, id, hash);
}

/* ---- workers by slot ---- */

static struct slot_workers *find_slot_workers(const struct index *index, uint32_t slot)
{
	struct map_probe probe;
	uint32_t at = map_first(&index->list_by_slot, hash_u64(slot), &probe);

	while (at != MAP_NONE && slot_workers_at(index, at)->slot != slot)
		at = map_next(&index->list_by_slot, &probe);
	return at != MAP_NONE ? slot_workers_at(index, at) : NULL;
}

static struct slot_workers *make_slot_workers(struct index *index, uint32_t slot)
{
	struct slot_workers *list = find_slot_workers(index, slot);
	uint32_t at;

	if (list)
		return list;
	index_must_fit(slab_alloc(&index->slot_workers, &at));
	slot_workers_at(index, at)->slot = slot;
	index_must_fit(map_insert(&index->list_by_slot, hash_u64(slot), at));
	return slot_workers_at(index, at);
}

static uint32_t live_slot_of(const struct worker *worker)
{
	return worker_is_alive(worker) ? worker->slot : 0;
}

static void leave_first(struct index *index, const struct holder *holder, uint32_t slot)
{
	struct slot_workers *list = find_slot_workers(index, slot);

	assert(list);
	assert(list->first == holder->worker.handle); /* nobody stands before it */
	list->first = holder->slot_next;
}

static void leave_slot(struct index *index, struct holder *holder, uint32_t slot)
{
	if (holder->slot_previous != 0)
		index_holder(index, holder->slot_previous)->slot_next = holder->slot_next;
	else
		leave_first(index, holder, slot);
	if (holder->slot_next != 0)
		index_holder(index, holder->slot_next)->slot_previous = holder->slot_previous;
	holder->slot_next = holder->slot_previous = 0;
}

static void enter_slot(struct index *index, struct holder *holder, uint32_t number, uint32_t slot)
{
	struct slot_workers *list = make_slot_workers(index, slot);

	assert(list->first != number);
	assert(holder->slot_previous == 0);
	holder->slot_next = list->first;
	if (list->first != 0)
		index_holder(index, list->first)->slot_previous = number;
	list->first = number;
}

/* The worker is forgotten, or it is back. */
static void forget_in_slot(struct index *index, const struct holder *holder)
{
	struct slot_workers *list =
		holder->worker.slot != 0 ? find_slot_workers(index, holder->worker.slot) : NULL;

	if (list && list->ended == holder->worker.handle)
		list->ended = 0;
}

/* Rows come in any order when they are loaded. */
static void end_in_slot(struct index *index, const struct worker *worker)
{
	struct slot_workers *list = make_slot_workers(index, worker->slot);

	if (list->ended == 0 || index_holder(index, list->ended)->worker.last_beat_ms <= worker->last_beat_ms)
		list->ended = worker->handle;
}

static void set_slot(struct index *index, struct holder *holder, const struct worker *after)
{
	uint32_t from = live_slot_of(&holder->worker), to = live_slot_of(after);

	if (from != to && from != 0)
		leave_slot(index, holder, from);
	if (from != to && to != 0)
		enter_slot(index, holder, after->handle, to);
	forget_in_slot(index, holder);
	if (after->state == WORKER_INACTIVE && after->slot != 0)
		end_in_slot(index, after);
}

uint32_t index_first_in_slot(const struct index *index, uint32_t slot)
{
	const struct slot_workers *list = find_slot_workers(index, slot);

	return list ? list->first : 0;
}

uint32_t index_next_in_slot(const struct index *index, uint32_t number)
{
	return index_holder(index, number)->slot_next;
}

uint32_t index_last_in_slot(const struct index *index, uint32_t slot)
{
	const struct slot_workers *list = find_slot_workers(index, slot);

	if (!list)
		return 0;
	return list->first != 0 ? list->first : list->ended;
}

void index_drop_holder(struct index *index, uint32_t number)
{
	struct holder *holder = index_holder(index, number);

	assert(holder->worker.handle == number);  /* it is there */
	assert(holder->first_claim == SLAB_NONE); /* a holder is forgotten after its last claim */
	assert(index->workers[holder->worker.state] > 0);
	assert(!worker_is_alive(&holder->worker));
	index->workers[holder->worker.state]--;
	wheel_drop(&index->lease_timers, (number - 1) << 1 | TIMER_WORKER);
	map_remove(&index->holder_by_id, holder->id_hash, number - 1);
	free(holder->id);
	free(holder->metadata);
	free(holder->accounts);
	free(holder->subtasks);
	free(holder->fallback);
	assert(!holder->beats); /* it is in no list */
	assert(holder->slot_next == 0);
	assert(holder->slot_previous == 0);
	forget_in_slot(index, holder);
	*holder = (struct holder){0};
	slab_free(&index->holders, number - 1);
}

/* ---- workers by when they were heard ---- */

static void leave_heard(struct index *index, struct holder *holder)
{
	assert(holder->beats);
	assert(index->heard_first != 0);
	assert(index->heard_last != 0);
	if (holder->heard_previous != 0)
		index_holder(index, holder->heard_previous)->heard_next = holder->heard_next;
	else
		index->heard_first = holder->heard_next;
	if (holder->heard_next != 0)
		index_holder(index, holder->heard_next)->heard_previous = holder->heard_previous;
	else
		index->heard_last = holder->heard_previous;
	holder->beats = false;
}

static void come_last(struct index *index, struct holder *holder, uint32_t number)
{
	holder->heard_next = 0;
	holder->heard_previous = index->heard_last;
	if (index->heard_last != 0)
		index_holder(index, index->heard_last)->heard_next = number;
	else
		index->heard_first = number;
	index->heard_last = number;
	holder->beats = true;
}

/* A worker that is heard becomes the last of the list. */
static void set_heard(struct index *index, struct holder *holder, const struct worker *after)
{
	bool beats = worker_beats(after);

	if (holder->beats && beats && after->heard_ms == holder->worker.heard_ms)
		return;
	if (holder->beats)
		leave_heard(index, holder);
	if (beats)
		come_last(index, holder, after->handle);
}

static int by_last_beat(const void *a, const void *b, void *context)
{
	int64_t at = index_holder(context, *(const uint32_t *)a)->worker.last_beat_ms;
	int64_t other = index_holder(context, *(const uint32_t *)b)->worker.last_beat_ms;

	return at < other ? -1 : at > other;
}

/* Rows come in any order. */
int holders_loaded(struct index *index)
{
	uint32_t count = 0, *numbers = calloc(index->workers_alive + 1, sizeof *numbers);

	if (!numbers)
		return -ENOMEM;
	for (uint32_t number = index->heard_first; number != 0;
		number = index_holder(index, number)->heard_next)
		numbers[count++] = number;
	qsort_r(numbers, count, sizeof *numbers, by_last_beat, index);
	index->heard_first = index->heard_last = 0;
	for (uint32_t i = 0; i < count; i++)
		come_last(index, index_holder(index, numbers[i]), numbers[i]);
	free(numbers);
	return 0;
}

uint32_t index_longest_unheard(const struct index *index)
{
	return index->heard_first;
}

void holder_arm(struct index *index, struct holder *holder, const struct given *given)
{
	struct given bare = given_bare(given);
	uint32_t timer = (holder->worker.handle - 1) << 1 | TIMER_WORKER;

	if (!worker_is_alive(&holder->worker)) {
		wheel_drop(&index->lease_timers, timer);
		return;
	}
	int64_t end_ms = lease_end(&holder->worker.lease, &bare);
	if (!holder->timer.hangs || end_ms < holder->timer.at_ms)
		wheel_set(&index->lease_timers, timer, end_ms);
}

void index_set_worker(
	struct index *index, const struct worker *worker, struct span metadata, const struct given *given)
{
	struct holder *holder = index_holder(index, worker->handle);

	assert(holder->worker.handle == worker->handle); /* what was committed is of a holder that is there */
	assert(index->workers[holder->worker.state] > 0);
	if (worker->state == WORKER_UNKNOWN && worker->held == 0) {
		index_drop_holder(index, worker->handle);
		free((char *)metadata.data);
		return;
	}
	if (worker_is_alive(worker) != worker_is_alive(&holder->worker))
		index->workers_alive += worker_is_alive(worker) ? 1u : -1u;
	if (worker_is_alive(&holder->worker))
		account_worker(index, holder->worker.principal, false);
	if (worker_is_alive(worker))
		account_worker(index, worker->principal, true);
	index->workers[holder->worker.state]--;
	index->workers[worker->state]++;
	set_slot(index, holder, worker);
	set_heard(index, holder, worker);
	if (worker->state == WORKER_INACTIVE && holder->worker.state != WORKER_INACTIVE)
		holder->ended_ms = given->now.wall_ms;
	assert(holder->beats == worker_beats(worker));
	assert(index->workers_alive <= slab_used(&index->holders));
	holder->worker = *worker;
	if (metadata.data) {
		free(holder->metadata);
		holder->metadata = (char *)metadata.data;
		holder->metadata_len = (uint32_t)metadata.len;
	}
	holder_arm(index, holder, given);
}

uint32_t index_next_holder(const struct index *index, uint32_t number)
{
	for (uint32_t place = number; place < slab_high(&index->holders); place++) {
		const struct holder *holder = slab_at(&index->holders, place);
		if (holder->worker.handle == place + 1)
			return place + 1;
	}
	return 0;
}
