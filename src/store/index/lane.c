#include "store/index/lane.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum {
	CHUNK_TASKS = 126,
	CHUNKS_SPARE = 64, /* kept between turns */
};

struct chunk {
	uint32_t count;
	union {
		uint32_t tasks[CHUNK_TASKS];
		struct chunk *next; /* while it is spare */
	};
};

static uint64_t place_hash(uint32_t queue, uint32_t owner)
{
	return hash_u64((uint64_t)queue << 32 | owner);
}

static struct lane_group *lane_group_at(const struct lanes *lanes, uint32_t number)
{
	return slab_at(&lanes->groups, number);
}

static struct lane *lane_at(const struct lanes *lanes, uint32_t number)
{
	return slab_at(&lanes->lanes, number);
}

static uint64_t hash_of(void *context, uint32_t number)
{
	const struct lane_group *group = lane_group_at(context, number);

	return place_hash(group->queue, group->owner);
}

static const struct map_ops map_ops = {.hash_of = hash_of};

void lanes_init(struct lanes *lanes, int (*order)(const void *, uint32_t, uint32_t), const void *context)
{
	sublanes_init(&lanes->sublanes);
	lanes->sublanes.order = order;
	lanes->sublanes.context = context;
	slab_init(&lanes->lanes, sizeof(struct lane));
	slab_init(&lanes->groups, sizeof(struct lane_group));
	map_init(&lanes->by_place, &map_ops, lanes);
	lanes->first_stand = SLAB_NONE;
	lanes->order = order;
	lanes->context = context;
}

static void spare_trim(struct lanes *lanes, uint32_t kept)
{
	while (lanes->spare_count > kept) {
		struct chunk *chunk = lanes->spare;
		lanes->spare = chunk->next;
		lanes->spare_count--;
		free(chunk);
	}
}

void lanes_done(struct lanes *lanes)
{
	const struct lane *lane = NULL;

	while ((lane = lanes_walk(lanes, lane))) {
		for (uint32_t i = 0; i < lane->chunk_count; i++)
			free(lane->chunks[i]);
		free(lane->chunks);
	}
	spare_trim(lanes, 0);
	sublanes_done(&lanes->sublanes);
	slab_done(&lanes->lanes);
	slab_done(&lanes->groups);
	map_done(&lanes->by_place);
}

struct sublane_sides *sublane_sides_of(const struct sublanes *sublanes, uint32_t lane)
{
	const struct lanes *lanes =
		(const struct lanes *)((const char *)sublanes - offsetof(struct lanes, sublanes));

	return &lane_at(lanes, lane)->sides;
}

static uint32_t find_stand(const struct lanes *lanes, uint32_t queue, uint32_t owner)
{
	struct map_probe probe;
	uint32_t number = map_first(&lanes->by_place, place_hash(queue, owner), &probe);

	for (; number != MAP_NONE; number = map_next(&lanes->by_place, &probe)) {
		const struct lane_group *group = lane_group_at(lanes, number);
		if (group->queue == queue && group->owner == owner)
			return number;
	}
	return MAP_NONE;
}

const struct lane_group *lanes_stand(const struct lanes *lanes, uint32_t queue, uint32_t owner)
{
	uint32_t number = find_stand(lanes, queue, owner);

	return number == MAP_NONE ? NULL : lane_group_at(lanes, number);
}

const struct lane_group *lanes_next_stand(const struct lanes *lanes, const struct lane_group *group)
{
	uint32_t number = group ? group->next : lanes->first_stand;

	return number == SLAB_NONE ? NULL : lane_group_at(lanes, number);
}

struct lane *lanes_first(const struct lanes *lanes, const struct lane_group *group)
{
	return group->first_lane == SLAB_NONE ? NULL : lane_at(lanes, group->first_lane);
}

struct lane *lanes_next(const struct lanes *lanes, const struct lane *lane)
{
	return lane->next == SLAB_NONE ? NULL : lane_at(lanes, lane->next);
}

struct lane *lanes_walk(const struct lanes *lanes, const struct lane *lane)
{
	if (lane && lane->next != SLAB_NONE)
		return lane_at(lanes, lane->next);
	const struct lane_group *group =
		lanes_next_stand(lanes, lane ? lane_group_at(lanes, lane->group) : NULL);
	return group ? lanes_first(lanes, group) : NULL;
}

bool lane_key_equal(const struct lane_key *a, const struct lane_key *b)
{
	return a->queue == b->queue && a->owner == b->owner && a->requires == b->requires &&
		a->executor == b->executor && a->host == b->host && a->credential == b->credential &&
		a->pending == b->pending && a->autonomous == b->autonomous && a->keyed == b->keyed &&
		a->begun == b->begun && a->priority == b->priority;
}

const struct lane_key *lanes_key(const struct lanes *lanes, uint32_t number)
{
	return &lane_at(lanes, number)->key;
}

static struct lane *lane_find(const struct lanes *lanes, const struct lane_key *key)
{
	const struct lane_group *group = lanes_stand(lanes, key->queue, key->owner);

	if (!group)
		return NULL;
	for (struct lane *lane = lanes_first(lanes, group); lane; lane = lanes_next(lanes, lane)) {
		if (lane_key_equal(&lane->key, key))
			return lane;
	}
	return NULL;
}

static int lane_group_make(struct lanes *lanes, uint32_t queue, uint32_t owner, uint32_t *ret_stand)
{
	*ret_stand = find_stand(lanes, queue, owner);
	if (*ret_stand != MAP_NONE)
		return 0;
	int r = slab_alloc(&lanes->groups, ret_stand);
	if (r < 0)
		return r;
	r = map_insert(&lanes->by_place, place_hash(queue, owner), *ret_stand);
	if (r < 0) {
		slab_free(&lanes->groups, *ret_stand);
		return r;
	}
	*lane_group_at(lanes, *ret_stand) =
		(struct lane_group){queue, owner, SLAB_NONE, lanes->first_stand, SLAB_NONE};
	if (lanes->first_stand != SLAB_NONE)
		lane_group_at(lanes, lanes->first_stand)->previous = *ret_stand;
	lanes->first_stand = *ret_stand;
	return 0;
}

static int lane_make(struct lanes *lanes, const struct lane_key *key, struct lane **ret_lane)
{
	uint32_t lane_group_number, lane_number;

	*ret_lane = lane_find(lanes, key);
	if (*ret_lane)
		return 0;
	int r = slab_reserve(&lanes->lanes, 1); /* a group without a lane would never be removed */
	if (r == 0)
		r = lane_group_make(lanes, key->queue, key->owner, &lane_group_number);
	if (r == 0)
		r = slab_alloc(&lanes->lanes, &lane_number);
	if (r < 0)
		return r;
	struct lane_group *group = lane_group_at(lanes, lane_group_number);
	struct lane *lane = lane_at(lanes, lane_number);
	lane->key = *key;
	lane->number = lane_number;
	lane->sides = (struct sublane_sides){TREAP_NONE, TREAP_NONE,
		lanes->sublanes.is_fair && lanes->sublanes.is_fair(lanes->sublanes.judge, key->queue)};
	lane->group = lane_group_number;
	lane->next = group->first_lane;
	group->first_lane = lane_number;
	*ret_lane = lane;
	return 0;
}

static void lane_group_drop(struct lanes *lanes, uint32_t number)
{
	struct lane_group *group = lane_group_at(lanes, number);

	if (group->previous == SLAB_NONE)
		lanes->first_stand = group->next;
	else
		lane_group_at(lanes, group->previous)->next = group->next;
	if (group->next != SLAB_NONE)
		lane_group_at(lanes, group->next)->previous = group->previous;
	map_remove(&lanes->by_place, place_hash(group->queue, group->owner), number);
	slab_free(&lanes->groups, number);
}

/* An empty lane is removed, and its group with its last lane: names that nobody uses any more cost nothing. */
static void lane_drop(struct lanes *lanes, struct lane *lane)
{
	struct lane_group *group = lane_group_at(lanes, lane->group);
	uint32_t lane_group_number = lane->group, *link = &group->first_lane;

	while (lane_at(lanes, *link) != lane)
		link = &lane_at(lanes, *link)->next;
	uint32_t lane_number = *link;
	*link = lane->next;
	assert(lane->total == 0);
	assert(lane->reserved == 0); /* nobody comes any more */
	assert(lane->chunk_count == 0);
	free(lane->chunks);
	slab_free(&lanes->lanes, lane_number);
	if (group->first_lane != SLAB_NONE)
		return;
	lane_group_drop(lanes, lane_group_number);
}

/* The first chunk whose last entry does not come before the task; else the last chunk. */
static uint32_t chunk_for(const struct lanes *lanes, const struct lane *lane, uint32_t task)
{
	uint32_t low = 0, high = lane->chunk_count - 1;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct chunk *chunk = lane->chunks[middle];
		if (lanes->order(lanes->context, chunk->tasks[chunk->count - 1], task) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Where in the chunk the task stands or should stand. */
static uint32_t place_in(const struct lanes *lanes, const struct chunk *chunk, uint32_t task)
{
	uint32_t low = 0, high = chunk->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (lanes->order(lanes->context, chunk->tasks[middle], task) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* A new empty chunk at position `at`: lanes_reserve() has set it aside. */
static struct chunk *chunk_open(struct lanes *lanes, struct lane *lane, uint32_t at)
{
	struct chunk *chunk = lanes->spare;

	assert(chunk);
	assert(lanes->spare_count > 0);
	assert(lane->chunk_count < lane->chunk_cap);
	assert(at <= lane->chunk_count);
	lanes->spare = chunk->next;
	lanes->spare_count--;
	chunk->count = 0;
	memmove(&lane->chunks[at + 1], &lane->chunks[at], (lane->chunk_count - at) * sizeof *lane->chunks);
	lane->chunks[at] = chunk;
	lane->chunk_count++;
	return chunk;
}

/* Make room in a full chunk: at its end by a new chunk, anywhere else by halving it. */
static void chunk_split(struct lanes *lanes, struct lane *lane, uint32_t at, uint32_t place)
{
	struct chunk *full = lane->chunks[at];
	struct chunk *fresh = chunk_open(lanes, lane, at + 1);

	uint32_t keep = place == CHUNK_TASKS ? CHUNK_TASKS : CHUNK_TASKS / 2;
	fresh->count = CHUNK_TASKS - keep;
	memcpy(fresh->tasks, full->tasks + keep, fresh->count * sizeof *fresh->tasks);
	full->count = keep;
}

/*
 * How many chunks the reserved tasks may open, wherever they go, and whichever others leave before. A chunk that is full is halved
 * once, and gets another behind it once, as the last one. A half, and a new chunk, takes at least half a chunk of tasks before it
 * is full, and can then do both again.
 */
static uint32_t opens_max(const struct lane *lane)
{
	uint32_t most = 2 * lane->chunk_count + 1 + 2 * (lane->reserved / (CHUNK_TASKS / 2));

	return lane->reserved < most ? lane->reserved : most;
}

static int reserve_chunks(struct lanes *lanes, struct lane *lane, uint32_t opens)
{
	uint32_t cap = lane->chunk_cap ? lane->chunk_cap : 4;

	while (cap < lane->chunk_count + opens)
		cap *= 2;
	if (cap > lane->chunk_cap) {
		struct chunk **chunks = realloc(lane->chunks, cap * sizeof(struct chunk *));
		if (!chunks)
			return -ENOMEM;
		lane->chunks = chunks;
		lane->chunk_cap = cap;
	}
	while (lanes->spare_count < lanes->spare_wanted) {
		struct chunk *chunk = malloc(sizeof *chunk);
		if (!chunk)
			return -ENOMEM;
		chunk->next = lanes->spare;
		lanes->spare = chunk;
		lanes->spare_count++;
	}
	return 0;
}

int lanes_reserve(struct lanes *lanes, const struct lane_key *key, struct lane **ret_lane)
{
	struct lane *lane;
	int r = lane_make(lanes, key, &lane);
	if (r < 0)
		return r;
	uint32_t before = opens_max(lane);
	lane->reserved++;
	lanes->reserved++;
	*ret_lane = lane;
	if (key->keyed) /* its sublanes are reserved with the index */
		return 0;
	uint32_t opens = opens_max(lane);
	lanes->spare_wanted += opens - before;
	return reserve_chunks(lanes, lane, opens);
}

void lanes_release(struct lanes *lanes)
{
	uint32_t next_stand;

	for (uint32_t at = lanes->first_stand; lanes->reserved > 0 && at != SLAB_NONE; at = next_stand) {
		struct lane *next, *lane = lanes_first(lanes, lane_group_at(lanes, at));
		next_stand = lane_group_at(lanes, at)->next; /* the group goes with its last lane */
		for (; lane; lane = next) {
			next = lanes_next(lanes, lane);
			assert(lanes->reserved >= lane->reserved);
			lanes->reserved -= lane->reserved;
			lane->reserved = 0;
			if (lane->total == 0)
				lane_drop(lanes, lane);
		}
	}
	assert(lanes->reserved == 0);
	lanes->spare_wanted = 0;
	spare_trim(lanes, CHUNKS_SPARE);
}

/* Most tasks come in the order they will leave in: then there is nothing to search. */
static bool goes_last(const struct lanes *lanes, const struct lane *lane, uint32_t task)
{
	const struct chunk *last = lane->chunks[lane->chunk_count - 1];

	return last->count == 0 || lanes->order(lanes->context, last->tasks[last->count - 1], task) < 0;
}

/* It takes the room that was reserved for it. */
static void come_into(struct lanes *lanes, struct lane *lane)
{
	assert(lane->reserved > 0); /* so the lane is still there */
	assert(lanes->reserved > 0);
	lane->reserved--;
	if (--lanes->reserved == 0)
		lanes->spare_wanted = 0;
	lane->total++;
}

void lanes_insert(struct lanes *lanes, struct lane *lane, uint32_t task)
{
	assert(!lane->key.keyed);
	come_into(lanes, lane);
	if (lane->chunk_count == 0)
		chunk_open(lanes, lane, 0);

	uint32_t at = lane->chunk_count - 1;
	uint32_t place = lane->chunks[at]->count;
	if (!goes_last(lanes, lane, task)) {
		at = chunk_for(lanes, lane, task);
		place = place_in(lanes, lane->chunks[at], task);
	}
	if (lane->chunks[at]->count == CHUNK_TASKS) {
		chunk_split(lanes, lane, at, place);
		if (place > lane->chunks[at]->count || place == CHUNK_TASKS) {
			place -= lane->chunks[at]->count;
			at++;
		}
	}
	struct chunk *chunk = lane->chunks[at];
	memmove(&chunk->tasks[place + 1], &chunk->tasks[place],
		(chunk->count - place) * sizeof *chunk->tasks);
	chunk->tasks[place] = task;
	chunk->count++;
	assert(place == 0 || lanes->order(lanes->context, chunk->tasks[place - 1], task) < 0); /* sorted … */
	assert(place + 1 == chunk->count || lanes->order(lanes->context, task, chunk->tasks[place + 1]) < 0);
}

void lanes_remove(struct lanes *lanes, const struct lane_key *key, uint32_t task)
{
	struct lane *lane = lane_find(lanes, key);

	assert(lane);
	assert(lane->total > 0);
	uint32_t at = chunk_for(lanes, lane, task);
	struct chunk *chunk = lane->chunks[at];
	uint32_t place = place_in(lanes, chunk, task);
	assert(place < chunk->count);
	assert(chunk->tasks[place] == task);
	chunk->count--;
	memmove(&chunk->tasks[place], &chunk->tasks[place + 1],
		(chunk->count - place) * sizeof *chunk->tasks);
	lane->total--;
	if (chunk->count == 0) {
		free(chunk);
		lane->chunk_count--;
		memmove(&lane->chunks[at], &lane->chunks[at + 1],
			(lane->chunk_count - at) * sizeof *lane->chunks);
	}
	if (lane->total == 0 && lane->reserved == 0)
		lane_drop(lanes, lane);
}

void lanes_insert_keyed(struct lanes *lanes, struct lane *lane, uint32_t key, uint32_t task)
{
	assert(lane->key.keyed);
	come_into(lanes, lane);
	sublanes_insert(&lanes->sublanes, key, lane->number, lane->key.begun, task);
}

void lanes_remove_keyed(struct lanes *lanes, const struct lane_key *lane_key, uint32_t key, uint32_t task)
{
	struct lane *lane = lane_find(lanes, lane_key);

	assert(lane);
	assert(lane->total > 0);
	sublanes_remove(&lanes->sublanes, key, lane->number, task);
	if (--lane->total == 0 && lane->reserved == 0)
		lane_drop(lanes, lane);
}

void lanes_set_fair(struct lanes *lanes, uint32_t queue, bool is_fair)
{
	struct lane *lane = NULL;

	while ((lane = lanes_walk(lanes, lane))) {
		if (lane->key.queue == queue)
			lane->sides.fair = is_fair;
	}
}

uint32_t lane_pieces(const struct lane *lane)
{
	return lane->chunk_count;
}

const uint32_t *lane_piece(const struct lane *lane, uint32_t at, uint32_t *ret_count)
{
	*ret_count = lane->chunks[at]->count;
	return lane->chunks[at]->tasks;
}

uint32_t lane_peek(struct lane *lane, uint64_t turn)
{
	if (lane->cursor_turn != turn) {
		lane->cursor_turn = turn;
		lane->cursor_chunk = 0;
		lane->cursor_at = 0;
	}
	assert(lane->cursor_chunk <= lane->chunk_count);
	if (lane->cursor_chunk == lane->chunk_count)
		return MAP_NONE;
	assert(lane->cursor_at < lane->chunks[lane->cursor_chunk]->count);
	return lane->chunks[lane->cursor_chunk]->tasks[lane->cursor_at];
}

void lane_skip(struct lane *lane)
{
	assert(lane->cursor_chunk < lane->chunk_count);
	if (++lane->cursor_at == lane->chunks[lane->cursor_chunk]->count) {
		lane->cursor_chunk++;
		lane->cursor_at = 0;
	}
}

uint32_t lane_peek_sublane(const struct lanes *lanes, struct lane *lane, uint64_t turn)
{
	if (lane->cursor_turn != turn) {
		lane->cursor_turn = turn;
		lane->cursor_sublane = sublanes_first(&lanes->sublanes, lane->sides.open);
	}
	return lane->cursor_sublane;
}

void lane_skip_sublane(const struct lanes *lanes, struct lane *lane)
{
	assert(lane->cursor_sublane != MAP_NONE);
	lane->cursor_sublane = sublanes_after(&lanes->sublanes, lane->sides.open, lane->cursor_sublane);
}

/* ---- all tasks of a lane ------------------------------------------------------------------------------------------- */

static uint32_t next_in_chunks(const struct lane *lane, struct lane_walk *walk)
{
	if (walk->chunk < lane->chunk_count && walk->at == lane->chunks[walk->chunk]->count) {
		walk->chunk++;
		walk->at = 0;
	}
	return walk->chunk < lane->chunk_count ? lane->chunks[walk->chunk]->tasks[walk->at++] : MAP_NONE;
}

static uint32_t next_sublane(const struct lanes *lanes, const struct lane *lane, struct lane_walk *walk)
{
	const struct sublanes *sublanes = &lanes->sublanes;
	uint32_t next = MAP_NONE;

	if (!walk->begun)
		next = sublanes_first(sublanes, lane->sides.open);
	else if (walk->sublane != MAP_NONE)
		next = sublanes_after(
			sublanes, walk->in_shut ? lane->sides.shut : lane->sides.open, walk->sublane);
	if (next == MAP_NONE && !walk->in_shut) {
		walk->in_shut = true;
		next = sublanes_first(sublanes, lane->sides.shut);
	}
	walk->begun = true;
	return next;
}

uint32_t lane_next_task(const struct lanes *lanes, const struct lane *lane, struct lane_walk *walk)
{
	const struct sublanes *sublanes = &lanes->sublanes;
	uint32_t task = MAP_NONE;

	if (!lane->key.keyed)
		return next_in_chunks(lane, walk);
	if (walk->begun && walk->sublane != MAP_NONE)
		task = sublane_after(sublanes, sublane_at(sublanes, walk->sublane), walk->task);
	if (task == MAP_NONE && (!walk->begun || walk->sublane != MAP_NONE)) {
		walk->sublane = next_sublane(lanes, lane, walk);
		task = walk->sublane != MAP_NONE
			? sublane_first(sublanes, sublane_at(sublanes, walk->sublane))
			: MAP_NONE;
	}
	walk->task = task;
	return task;
}
