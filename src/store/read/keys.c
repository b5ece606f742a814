/*
 * The concurrency keys of a queue, for people. A key is a number here: its text is in the documents of its tasks.
 */
#include "store/turn/turn.h"

int store_queue_number(const struct store *store, struct span name, uint32_t *ret_queue)
{
	*ret_queue = names_find(&store->names, name);
	return *ret_queue != 0 && index_find_tally(&store->index, *ret_queue) != MAP_NONE ? 0 : -ENOENT;
}

/* A task of it that waits for a claim; 0: none does. */
static int64_t first_waiting(const struct index *index, const struct running_key *key)
{
	const struct sublanes *sublanes = &index->lanes.sublanes;

	return key->first == SLAB_NONE
		? 0
		: index_seq(index, sublane_first(sublanes, sublane_at(sublanes, key->first)));
}

int store_page_keys(const struct store *store, uint32_t queue, uint32_t *at, uint32_t limit,
	int (*each)(void *context, const struct key_document *key), void *context)
{
	const struct sublanes *sublanes = &store->index.lanes.sublanes;
	uint32_t place = *at, high = slab_high(&sublanes->keys);
	uint32_t end = place < high && high - place > limit ? place + limit : high;
	int r = 0;

	for (; r == 0 && place < end; place++) {
		const struct running_key *key = sublanes_key(sublanes, place);
		if (key->queue != queue) /* a free place has none */
			continue;
		const struct key_document document = {
			key->key, key->live, key->begun, key->waiting, first_waiting(&store->index, key)};
		r = each(context, &document);
	}
	*at = end < high ? end : 0;
	return r;
}

struct key_document store_keyless(const struct store *store, uint32_t queue)
{
	uint32_t at = index_find_tally(&store->index, queue), standing = 0;
	const struct lanes *lanes = &store->index.lanes;
	const struct lane_group *group = NULL;

	while ((group = lanes_next_stand(lanes, group))) {
		for (struct lane *lane = lanes_first(lanes, group); lane && group->queue == queue;
			lane = lanes_next(lanes, lane))
			standing += lane->key.keyed ? 0 : lane->total;
	}
	const struct queue_tally *tally = at != MAP_NONE ? index_tally(&store->index, at) : NULL;
	return (struct key_document){
		.live = tally ? tally->live - tally->live_keyed : 0, .waiting = standing};
}

int store_page_begun(const struct store *store, uint32_t queue, uint32_t *at, uint32_t limit,
	int (*each)(void *context, uint64_t key, int64_t seq), void *context)
{
	const struct index *index = &store->index;
	uint32_t place = *at, high = index_places(index);
	uint32_t end = place < high && high - place > limit ? place + limit : high;
	struct task_outline outline;
	struct task task;
	int r = 0;

	for (; r == 0 && place < end; place++) {
		if (!index_outline(index, place, &outline) || outline.queue != queue)
			continue;
		index_get(index, place, &task);
		if (task.concurrency_key != 0 && task_has_begun(&task))
			r = each(context, task.concurrency_key, task.seq);
	}
	*at = end < high ? end : 0;
	return r;
}
