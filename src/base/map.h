/*
 * A map finds an item's number by the hash of its key. It stores numbers
 * alone, in 4-byte cells at most three quarters full; keys and hashes live in
 * the caller's items. So a lookup yields candidates, and the caller compares
 * the key of each:
 *
 *	struct map_probe probe;
 *	uint32_t number = map_first(map, hash, &probe);
 *	while (number != MAP_NONE && !key_matches(number))
 *		number = map_next(map, &probe);
 *
 * Candidates may have other hashes. Any insert or remove ends all probes.
 */
#pragma once

#include <stdint.h>

/* No item: the end of a probe, and the content of an empty cell. */
#define MAP_NONE UINT32_MAX

struct map_ops {
	/*
	 * The hash of the key of an item in the map: the same hash that it was
	 * inserted with. Called while the map grows or removes; never called
	 * for the item that is being inserted or removed.
	 */
	uint64_t (*hash_of)(void *context, uint32_t slot);
};

struct map {
	uint32_t *cells; /* mask + 1 of them; NULL until the first insert */
	uint32_t mask;
	uint32_t used;
	const struct map_ops *ops;
	void *context;
};

struct map_probe {
	uint32_t at;
};

/* Borrows ops and context until map_done. Allocates nothing and cannot fail. */
void map_init(struct map *map, const struct map_ops *ops, void *context);

/* Frees the cells; the map is empty and may be used again. NULL is fine. */
void map_done(struct map *map);

/*
 * The caller knows that the key is absent. -ENOMEM leaves the map as it was;
 * it cannot happen within what map_reserve has promised.
 */
__attribute__((warn_unused_result)) int map_insert(struct map *map, uint64_t hash, uint32_t slot);

/* After it, inserting up to `count` items in total cannot fail. */
__attribute__((warn_unused_result)) int map_reserve(struct map *map, uint32_t count);

/* The first candidate for this hash, or MAP_NONE. */
uint32_t map_first(const struct map *map, uint64_t hash, struct map_probe *ret_probe);

/* The candidate after the last one this probe gave, or MAP_NONE. */
uint32_t map_next(const struct map *map, struct map_probe *probe);

/* The item must be in the map, inserted with this hash. */
void map_remove(struct map *map, uint64_t hash, uint32_t slot);
