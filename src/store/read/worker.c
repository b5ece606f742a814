/*
 * Reading about workers and the slots they fill, between turns: all of it is in memory.
 */
#include <errno.h>
#include <stdlib.h>

#include "store/turn/turn.h"

bool store_worker(const struct store *store, struct span id, struct worker *ret_worker)
{
	uint32_t number = index_find_holder(&store->index, id);

	if (number == 0)
		return false;
	*ret_worker = index_holder(&store->index, number)->worker;
	return true;
}

struct span store_worker_id(const struct store *store, uint32_t handle)
{
	return holder_id(index_holder(&store->index, handle));
}

int store_read_worker(const struct store *store, struct span id, struct worker_document *ret_document)
{
	uint32_t number = index_find_holder(&store->index, id);

	if (number == 0)
		return -ENOENT;
	const struct holder *holder = index_holder(&store->index, number);
	const struct slot *slot = store_find_slot(store, holder->worker.slot);
	*ret_document = (struct worker_document){
		.id = holder_id(holder),
		.worker = holder->worker,
		.metadata = {holder->metadata, holder->metadata_len},
		.instance = holder->instance,
		.queues = holder->queues,
		.queue_count = holder->queue_count,
		.any_queue = holder->any_queue,
		.restarts = slot ? slot->restarts : 0,
		.ended_ms = holder->worker.state == WORKER_INACTIVE ? holder->ended_ms : 0,
		.news_seq = holder->notified_seq,
	};
	return 0;
}

int store_each_held(
	struct store *store, struct span worker, int (*each)(void *context, struct span id), void *context)
{
	const struct index *index = &store->index;
	uint32_t number = index_find_holder(index, worker), at = MAP_NONE;
	struct arena arena;
	struct task task;
	struct span id;
	int64_t seq;
	int r = number == 0 ? -ENOENT : 0;

	arena_init(&arena, 1 << 20);
	while (r == 0 && (at = index_next_claim(index, index_holder(index, number), at, &seq)) != MAP_NONE) {
		index_get(index, index_find(index, seq), &task);
		r = store_task_id(store, &task, &arena, &id);
		if (r == 0)
			r = each(context, id);
		arena_reset(&arena);
	}
	arena_done(&arena);
	return r;
}

/* A slot that somebody fills (a number of a holder), or that has a history (an entry of store->slots), or both. */
struct known_slot {
	struct span name;
	uint32_t holder;
	const struct slot *slot;
};

static int by_name(const void *a, const void *b)
{
	return span_compare(((const struct known_slot *)a)->name, ((const struct known_slot *)b)->name);
}

static uint32_t gather_slots(const struct store *store, struct known_slot *known)
{
	const struct index *index = &store->index;
	uint32_t count = 0;

	for (uint32_t i = 0; i < store->slot_count; i++)
		known[count++] = (struct known_slot){
			names_text(&store->names, store->slots[i].name), 0, &store->slots[i].slot};
	for (uint32_t number = index_next_holder(index, 0); number != 0;
		number = index_next_holder(index, number)) {
		const struct worker *worker = &index_holder(index, number)->worker;
		if (worker->slot != 0 && worker_is_alive(worker))
			known[count++] =
				(struct known_slot){names_text(&store->names, worker->slot), number, NULL};
	}
	qsort(known, count, sizeof *known, by_name);
	return count;
}

/* All entries of one name are one slot; how many there are of it. */
static uint32_t join_slot(const struct store *store, const struct known_slot *known, uint32_t count,
	struct slot_document *ret_slot)
{
	uint32_t i = 0;

	*ret_slot = (struct slot_document){.name = known[0].name};
	slot_init(&ret_slot->slot);
	for (; i < count && span_equal(known[i].name, known[0].name); i++) {
		if (known[i].slot)
			ret_slot->slot = *known[i].slot;
		if (known[i].holder != 0) {
			const struct holder *holder = index_holder(&store->index, known[i].holder);
			ret_slot->worker = holder_id(holder);
			ret_slot->filler = &holder->worker;
		}
	}
	return i;
}

int store_each_slot(const struct store *store, int (*each)(void *context, const struct slot_document *slot),
	void *context)
{
	struct known_slot *known = calloc(store->slot_count + store->index.workers_alive + 1, sizeof *known);
	struct slot_document slot;
	int r = 0;

	if (!known)
		return -ENOMEM;
	uint32_t count = gather_slots(store, known);
	for (uint32_t i = 0; r == 0 && i < count;) {
		i += join_slot(store, &known[i], count - i, &slot);
		r = each(context, &slot);
	}
	free(known);
	return r;
}

bool store_slot(const struct store *store, struct span name, struct slot *ret_slot)
{
	uint32_t number = names_find(&store->names, name);
	const struct slot *slot = number != 0 ? store_find_slot(store, number) : NULL;

	if (slot)
		*ret_slot = *slot;
	return slot != NULL;
}

uint32_t store_slot_owner(const struct store *store, uint32_t slot, int64_t wall_ms)
{
	uint32_t last = index_last_in_slot(&store->index, slot);
	const struct worker *worker = last != 0 ? &index_holder(&store->index, last)->worker : NULL;

	if (!worker ||
		!(worker_is_alive(worker) ||
			tokens_have_live(&store->credentials, worker->principal, wall_ms)))
		return PRINCIPAL_NOBODY;
	return worker->principal;
}

int store_read_slot(const struct store *store, struct span name, struct slot_document *ret_slot)
{
	uint32_t number = names_find(&store->names, name);
	uint32_t filler = number != 0 ? index_first_in_slot(&store->index, number) : 0;
	struct slot_document document = {.name = name};

	slot_init(&document.slot);
	if (!store_slot(store, name, &document.slot) && filler == 0)
		return -ENOENT;
	if (filler != 0) {
		document.worker = holder_id(index_holder(&store->index, filler));
		document.filler = &index_holder(&store->index, filler)->worker;
	}
	*ret_slot = document;
	return 0;
}
