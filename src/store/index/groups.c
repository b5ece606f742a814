#include "store/index/groups.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "store/index/index.h"

static struct known_group *group_in(const struct groups *groups, uint32_t place)
{
	return slab_at(&groups->all, place);
}

static uint64_t number_hash(void *context, uint32_t place)
{
	return hash_u64(group_in(context, place)->group.number);
}

static const struct map_ops number_ops = {.hash_of = number_hash};

void groups_init(struct groups *groups)
{
	*groups = (struct groups){0};
	slab_init(&groups->all, sizeof(struct known_group));
	map_init(&groups->by_number, &number_ops, groups);
}

void groups_done(struct groups *groups)
{
	for (uint32_t i = 0; i < groups->count; i++) {
		struct known_group *known = group_in(groups, groups->order[i]);
		free((char *)known->name.data);
		known->name = (struct span){0};
	}
	free(groups->order);
	map_done(&groups->by_number);
	slab_done(&groups->all);
}

struct known_group *groups_at(const struct groups *groups, uint32_t at)
{
	return at < groups->count ? group_in(groups, groups->order[at]) : NULL;
}

/* Where the name stands, or would. */
static uint32_t place_of(const struct groups *groups, struct span name, bool *ret_there)
{
	uint32_t low = 0, high = groups->count;

	*ret_there = false;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = span_compare(group_in(groups, groups->order[middle])->name, name);
		if (order == 0) {
			*ret_there = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint32_t groups_behind(const struct groups *groups, struct span name)
{
	bool there;
	uint32_t at = place_of(groups, name, &there);

	return at + there;
}

struct known_group *groups_find(const struct groups *groups, struct span name)
{
	bool there;
	uint32_t at = place_of(groups, name, &there);

	return there ? groups_at(groups, at) : NULL;
}

static uint32_t find_number(const struct groups *groups, uint32_t number)
{
	struct map_probe probe;
	uint32_t place = map_first(&groups->by_number, hash_u64(number), &probe);

	while (place != MAP_NONE && group_in(groups, place)->group.number != number)
		place = map_next(&groups->by_number, &probe);
	return place;
}

struct known_group *groups_find_number(const struct groups *groups, uint32_t number)
{
	uint32_t place = find_number(groups, number);

	return place != MAP_NONE ? group_in(groups, place) : NULL;
}

uint32_t groups_place(const struct groups *groups, const struct known_group *known)
{
	return find_number(groups, known->group.number);
}

int groups_reserve(struct groups *groups, uint32_t more)
{
	uint32_t cap = groups->cap ? groups->cap : 64;

	while (cap < groups->count + more)
		cap *= 2;
	if (cap > groups->cap) {
		uint32_t *order = realloc(groups->order, cap * sizeof *order);
		if (!order)
			return -ENOMEM;
		groups->order = order;
		groups->cap = cap;
	}
	int r = slab_reserve(&groups->all, more);
	return r < 0 ? r : map_reserve(&groups->by_number, groups->count + more);
}

struct known_group *groups_add(struct groups *groups, uint32_t number, struct span name)
{
	bool there;
	uint32_t at = place_of(groups, name, &there), place;

	assert(!there);                      /* one group of a name */
	assert(groups->count < groups->cap); /* groups_reserve() was called */
	index_must_fit(slab_alloc(&groups->all, &place));
	struct known_group *known = group_in(groups, place);
	known->group.number = number;
	known->name = name;
	index_must_fit(map_insert(&groups->by_number, hash_u64(number), place));
	memmove(&groups->order[at + 1], &groups->order[at], (groups->count - at) * sizeof *groups->order);
	groups->order[at] = place;
	groups->count++;
	return known;
}

void groups_drop(struct groups *groups, struct known_group *known)
{
	bool there;
	uint32_t at = place_of(groups, known->name, &there);
	uint32_t place = groups->order[at];

	assert(there);
	map_remove(&groups->by_number, hash_u64(known->group.number), place);
	free((char *)known->name.data);
	slab_free(&groups->all, place);
	groups->count--;
	memmove(&groups->order[at], &groups->order[at + 1], (groups->count - at) * sizeof *groups->order);
}
