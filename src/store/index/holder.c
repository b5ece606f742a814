/*
 * Holders in memory: workers, and plain claimants while they hold something; by id, by the slot they fill, and by when
 * they were heard.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/index/parts.h"
#include "store/index/served.h"

struct seat {
	uint32_t slot;
	uint32_t first; /* holder, 0: nobody */
};

static uint64_t holder_hash(void *context, uint32_t slot)
{
	const struct hot *hot = context;
	const struct holder *holder = pool_at(&hot->holders, slot);

	return holder->id_hash;
}

static struct seat *seat_at(const struct hot *hot, uint32_t slot)
{
	return pool_at(&hot->seats, slot);
}

static uint64_t seat_hash(void *context, uint32_t slot)
{
	return hash_u64(seat_at(context, slot)->slot);
}

static const struct map_ops holder_ops = {.hash_of = holder_hash};
static const struct map_ops seat_ops = {.hash_of = seat_hash};

void holders_init(struct hot *hot)
{
	pool_init(&hot->holders, sizeof(struct holder));
	map_init(&hot->holder_by_id, &holder_ops, hot);
	pool_init(&hot->seats, sizeof(struct seat));
	map_init(&hot->seat_by_slot, &seat_ops, hot);
}

void holders_done(struct hot *hot)
{
	uint32_t number = 0;

	while ((number = hot_next_holder(hot, number))) {
		free(hot_holder(hot, number)->id);
		free(hot_holder(hot, number)->metadata);
	}
	map_done(&hot->holder_by_id);
	map_done(&hot->seat_by_slot);
	pool_done(&hot->seats);
	pool_done(&hot->holders);
}

bool hot_may_serve(const struct holder *holder, uint32_t queue)
{
	return holder->worker.named || holder->serves == 0 || holder->serves & served_bit(queue);
}

struct span holder_id(const struct holder *holder)
{
	return (struct span){holder->id, holder->id_len};
}

static uint32_t find_holder(const struct hot *hot, struct span id, uint64_t hash)
{
	struct map_probe probe;
	uint32_t slot = map_first(&hot->holder_by_id, hash, &probe);

	for (; slot != MAP_NONE; slot = map_next(&hot->holder_by_id, &probe)) {
		if (span_equal(holder_id(hot_holder(hot, slot + 1)), id))
			return slot + 1;
	}
	return 0;
}

uint32_t hot_find_holder(const struct hot *hot, struct span id)
{
	return find_holder(hot, id, hash_bytes(&hot->key, id.data, id.len));
}

static uint32_t add_holder(struct hot *hot, struct span id, uint64_t hash)
{
	uint32_t slot;
	char *copy = malloc(id.len + 1);

	if (!copy)
		return 0;
	if (pool_alloc(&hot->holders, &slot) < 0) {
		free(copy);
		return 0;
	}
	memcpy(copy, id.data, id.len);
	copy[id.len] = 0;
	*hot_holder(hot, slot + 1) = (struct holder){
		.worker = {.handle = slot + 1},
		.first_claim = POOL_NONE,
		.id = copy,
		.id_len = (uint32_t)id.len,
		.id_hash = hash,
	};
	if (map_insert(&hot->holder_by_id, hash, slot) < 0) {
		free(copy);
		*hot_holder(hot, slot + 1) = (struct holder){0}; /* nobody is there: see hot_next_holder() */
		pool_free(&hot->holders, slot);
		return 0;
	}
	hot->workers[WORKER_UNKNOWN]++;
	return slot + 1;
}

uint32_t hot_make_holder(struct hot *hot, struct span id, bool *ret_added)
{
	uint64_t hash = hash_bytes(&hot->key, id.data, id.len);
	uint32_t number = find_holder(hot, id, hash);

	*ret_added = number == 0;
	return number != 0 ? number : add_holder(hot, id, hash);
}

void hot_drop_holder(struct hot *hot, uint32_t number)
{
	struct holder *holder = hot_holder(hot, number);

	assert(holder->worker.handle == number);  /* it is there */
	assert(holder->first_claim == POOL_NONE); /* a holder is forgotten after its last claim */
	assert(hot->workers[holder->worker.state] > 0);
	assert(!worker_is_alive(&holder->worker));
	hot->workers[holder->worker.state]--;
	wheel_drop(&hot->lease_timers, (number - 1) << 1 | TIMER_WORKER);
	map_remove(&hot->holder_by_id, holder->id_hash, number - 1);
	free(holder->id);
	free(holder->metadata);
	*holder = (struct holder){0};
	pool_free(&hot->holders, number - 1);
}

/* ---- workers by slot ---- */

static struct seat *find_seat(const struct hot *hot, uint32_t slot)
{
	struct map_probe probe;
	uint32_t at = map_first(&hot->seat_by_slot, hash_u64(slot), &probe);

	while (at != MAP_NONE && seat_at(hot, at)->slot != slot)
		at = map_next(&hot->seat_by_slot, &probe);
	return at != MAP_NONE ? seat_at(hot, at) : NULL;
}

static struct seat *make_seat(struct hot *hot, uint32_t slot)
{
	struct seat *seat = find_seat(hot, slot);
	uint32_t at;

	if (seat)
		return seat;
	hot_must_fit(pool_alloc(&hot->seats, &at));
	seat_at(hot, at)->slot = slot;
	hot_must_fit(map_insert(&hot->seat_by_slot, hash_u64(slot), at));
	return seat_at(hot, at);
}

static uint32_t seated_in(const struct worker *worker)
{
	return worker_is_alive(worker) ? worker->slot : 0;
}

static void leave_seat(struct hot *hot, struct holder *holder, uint32_t slot)
{
	if (holder->slot_previous != 0)
		hot_holder(hot, holder->slot_previous)->slot_next = holder->slot_next;
	else
		find_seat(hot, slot)->first = holder->slot_next;
	if (holder->slot_next != 0)
		hot_holder(hot, holder->slot_next)->slot_previous = holder->slot_previous;
	holder->slot_next = holder->slot_previous = 0;
}

static void take_seat(struct hot *hot, struct holder *holder, uint32_t number, uint32_t slot)
{
	struct seat *seat = make_seat(hot, slot);

	holder->slot_next = seat->first;
	if (seat->first != 0)
		hot_holder(hot, seat->first)->slot_previous = number;
	seat->first = number;
}

static void set_seat(struct hot *hot, struct holder *holder, const struct worker *after)
{
	uint32_t from = seated_in(&holder->worker), to = seated_in(after);

	if (from == to)
		return;
	if (from != 0)
		leave_seat(hot, holder, from);
	if (to != 0)
		take_seat(hot, holder, after->handle, to);
}

uint32_t hot_first_in_slot(const struct hot *hot, uint32_t slot)
{
	const struct seat *seat = find_seat(hot, slot);

	return seat ? seat->first : 0;
}

uint32_t hot_next_in_slot(const struct hot *hot, uint32_t number)
{
	return hot_holder(hot, number)->slot_next;
}

/* ---- workers by when they were heard ---- */

static void leave_heard(struct hot *hot, struct holder *holder)
{
	if (holder->heard_previous != 0)
		hot_holder(hot, holder->heard_previous)->heard_next = holder->heard_next;
	else
		hot->heard_first = holder->heard_next;
	if (holder->heard_next != 0)
		hot_holder(hot, holder->heard_next)->heard_previous = holder->heard_previous;
	else
		hot->heard_last = holder->heard_previous;
	holder->beats = false;
}

static void come_last(struct hot *hot, struct holder *holder, uint32_t number)
{
	holder->heard_next = 0;
	holder->heard_previous = hot->heard_last;
	if (hot->heard_last != 0)
		hot_holder(hot, hot->heard_last)->heard_next = number;
	else
		hot->heard_first = number;
	hot->heard_last = number;
	holder->beats = true;
}

/* Whoever is heard is the last of them. */
static void set_heard(struct hot *hot, struct holder *holder, const struct worker *after)
{
	bool beats = worker_beats(after);

	if (holder->beats && beats && after->heard_ms == holder->worker.heard_ms)
		return;
	if (holder->beats)
		leave_heard(hot, holder);
	if (beats)
		come_last(hot, holder, after->handle);
}

static int by_last_beat(const void *a, const void *b, void *context)
{
	int64_t at = hot_holder(context, *(const uint32_t *)a)->worker.last_beat_ms;
	int64_t other = hot_holder(context, *(const uint32_t *)b)->worker.last_beat_ms;

	return at < other ? -1 : at > other;
}

/* Rows come in any order. */
int holders_loaded(struct hot *hot)
{
	uint32_t count = 0, *numbers = calloc(hot->workers_alive + 1, sizeof *numbers);

	if (!numbers)
		return -ENOMEM;
	for (uint32_t number = hot->heard_first; number != 0; number = hot_holder(hot, number)->heard_next)
		numbers[count++] = number;
	qsort_r(numbers, count, sizeof *numbers, by_last_beat, hot);
	hot->heard_first = hot->heard_last = 0;
	for (uint32_t i = 0; i < count; i++)
		come_last(hot, hot_holder(hot, numbers[i]), numbers[i]);
	free(numbers);
	return 0;
}

uint32_t hot_longest_unheard(const struct hot *hot)
{
	return hot->heard_first;
}

void holder_arm(struct hot *hot, struct holder *holder, const struct given *given)
{
	struct given bare = given_bare(given);
	uint32_t timer = (holder->worker.handle - 1) << 1 | TIMER_WORKER;

	if (!worker_is_alive(&holder->worker)) {
		wheel_drop(&hot->lease_timers, timer);
		return;
	}
	int64_t end_ms = lease_end(&holder->worker.lease, &bare);
	if (!holder->timer.hangs || end_ms < holder->timer.at_ms)
		wheel_set(&hot->lease_timers, timer, end_ms);
}

int hot_reserve_worker(struct hot *hot, struct hot_needs *needs, const struct worker *worker)
{
	uint32_t slot = seated_in(worker);

	if (slot == 0 || find_seat(hot, slot))
		return 0;
	return hot_reserve_rows(&hot->seats, &hot->seat_by_slot, ++needs->seats);
}

void hot_set_worker(
	struct hot *hot, const struct worker *worker, struct span metadata, const struct given *given)
{
	struct holder *holder = hot_holder(hot, worker->handle);

	assert(holder->worker.handle == worker->handle); /* what was committed is of a holder that is there */
	assert(hot->workers[holder->worker.state] > 0);
	if (worker->state == WORKER_UNKNOWN && worker->held == 0) {
		hot_drop_holder(hot, worker->handle);
		free((char *)metadata.data);
		return;
	}
	if (worker_is_alive(worker) != worker_is_alive(&holder->worker))
		hot->workers_alive += worker_is_alive(worker) ? 1u : -1u;
	hot->workers[holder->worker.state]--;
	hot->workers[worker->state]++;
	set_seat(hot, holder, worker);
	set_heard(hot, holder, worker);
	if (worker->state == WORKER_INACTIVE && holder->worker.state != WORKER_INACTIVE)
		holder->ended_ms = given->now.wall_ms;
	holder->worker = *worker;
	if (metadata.data) {
		free(holder->metadata);
		holder->metadata = (char *)metadata.data;
		holder->metadata_len = (uint32_t)metadata.len;
	}
	holder_arm(hot, holder, given);
}

uint32_t hot_next_holder(const struct hot *hot, uint32_t number)
{
	for (uint32_t slot = number; slot < pool_high(&hot->holders); slot++) {
		const struct holder *holder = pool_at(&hot->holders, slot);
		if (holder->worker.handle == slot + 1)
			return slot + 1;
	}
	return 0;
}
