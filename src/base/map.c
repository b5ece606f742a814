/*
 * Open addressing with linear probing. A number lives in its home cell (the low
 * bits of its hash) or in the unbroken run of full cells that follows it:
 *
 *	home(s) ... full, full, full, s        no empty cell in between
 *
 * Removal keeps that true by shifting later numbers of the run back into the
 * hole, so there are no tombstones and a map that lives for months does not
 * slow down. Stored hashes were rejected: they double the memory and save only
 * comparisons that the caller makes anyway.
 */
#include "base/map.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MAP_CELLS_MIN 16u
#define MAP_CELLS_MAX (1u << 31)

void map_init(struct map *map, const struct map_ops *ops, void *context)
{
	*map = (struct map){.ops = ops, .context = context};
}

void map_done(struct map *map)
{
	if (!map)
		return;
	free(map->cells);
	map_init(map, map->ops, map->context);
}

/* Three quarters: at least one cell is always empty, and there every probe ends. */
static uint32_t map_fill_max(uint32_t cells)
{
	return cells / 4 * 3;
}

static uint32_t map_cells(const struct map *map)
{
	return map->cells ? map->mask + 1 : 0;
}

static void map_place(struct map *map, uint64_t hash, uint32_t slot)
{
	uint32_t at = (uint32_t)hash & map->mask;

	while (map->cells[at] != MAP_NONE)
		at = (at + 1) & map->mask;
	map->cells[at] = slot;
}

static int map_resize(struct map *map, uint32_t cells)
{
	uint32_t *old = map->cells;
	uint32_t old_cells = map_cells(map);
	uint32_t *fresh = malloc(sizeof(*fresh) * cells);

	if (!fresh)
		return -ENOMEM;
	memset(fresh, 0xff, sizeof(*fresh) * cells); /* MAP_NONE in every cell */
	map->cells = fresh;
	map->mask = cells - 1;
	for (uint32_t at = 0; at < old_cells; at++)
		if (old[at] != MAP_NONE)
			map_place(map, map->ops->hash_of(map->context, old[at]), old[at]);
	free(old);
	return 0;
}

int map_reserve(struct map *map, uint32_t count)
{
	uint32_t cells = map_cells(map);

	if (count <= map_fill_max(cells))
		return 0;
	if (count > map_fill_max(MAP_CELLS_MAX))
		return -ENOMEM;
	if (cells < MAP_CELLS_MIN)
		cells = MAP_CELLS_MIN;
	while (count > map_fill_max(cells))
		cells *= 2;
	return map_resize(map, cells);
}

int map_insert(struct map *map, uint64_t hash, uint32_t slot)
{
	int fault;

	assert(slot != MAP_NONE);
	fault = map_reserve(map, map->used + 1);
	if (fault)
		return fault;
	map_place(map, hash, slot);
	map->used++;
	return 0;
}

uint32_t map_first(const struct map *map, uint64_t hash, struct map_probe *ret_probe)
{
	ret_probe->at = (uint32_t)hash & map->mask;
	return map->cells ? map->cells[ret_probe->at] : MAP_NONE;
}

uint32_t map_next(const struct map *map, struct map_probe *probe)
{
	assert(map->cells);
	assert(map->cells[probe->at] != MAP_NONE);
	probe->at = (probe->at + 1) & map->mask;
	return map->cells[probe->at];
}

/* May the number in cell `at` move back into `hole`? Only if its home is not after the hole. */
static bool map_may_shift(const struct map *map, uint32_t at, uint32_t hole)
{
	uint32_t home = (uint32_t)map->ops->hash_of(map->context, map->cells[at]) & map->mask;

	return ((at - home) & map->mask) >= ((at - hole) & map->mask);
}

static void map_close_hole(struct map *map, uint32_t hole)
{
	uint32_t at = (hole + 1) & map->mask;

	while (map->cells[at] != MAP_NONE) {
		if (map_may_shift(map, at, hole)) {
			map->cells[hole] = map->cells[at];
			hole = at;
		}
		at = (at + 1) & map->mask;
	}
	map->cells[hole] = MAP_NONE;
}

void map_remove(struct map *map, uint64_t hash, uint32_t slot)
{
	struct map_probe probe;
	uint32_t candidate = map_first(map, hash, &probe);

	while (candidate != slot) {
		assert(candidate != MAP_NONE);
		candidate = map_next(map, &probe);
	}
	assert(candidate != MAP_NONE);
	map_close_hole(map, probe.at);
	map->used--;
}
