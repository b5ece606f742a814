/*
 * A slab owns items of one size, each with a 32-bit number. An item never
 * moves: a pointer from slab_at lives until the item is freed. A freed
 * number is given out again, the last freed first, before a new one.
 *
 * The slab sets no maximum of its own: its owner counts what it admits.
 */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* Never the number of an item. */
#define SLAB_NONE UINT32_MAX

#define SLAB_CHUNK_BITS  10
#define SLAB_CHUNK_ITEMS (1u << SLAB_CHUNK_BITS)

struct slab {
	char **chunks; /* each holds SLAB_CHUNK_ITEMS items */
	uint32_t chunk_count;
	uint32_t chunk_cap;
	size_t item_bytes;   /* rounded up to 8 */
	uint32_t high;       /* one past the highest number ever given out */
	uint32_t used;       /* items in use */
	uint32_t free_first; /* the first free item; each names the next, SLAB_NONE ends the list */
};

/* Items are aligned to 8 bytes. Allocates nothing and cannot fail. */
void slab_init(struct slab *pool, size_t item_bytes);

/* Frees all items at once; the slab may be used again. NULL is fine. */
void slab_done(struct slab *pool);

/* The item is zeroed. -ENOMEM cannot happen within what slab_reserve promised. */
__attribute__((warn_unused_result)) int slab_alloc(struct slab *pool, uint32_t *ret_slot);

/* The item must be in use. The caller frees first what the item owns. */
void slab_free(struct slab *pool, uint32_t slot);

/* After it, the next `more` allocations cannot fail. */
__attribute__((warn_unused_result)) int slab_reserve(struct slab *pool, uint32_t more);

/* For the number of a freed item the memory is meaningless. */
static inline void *slab_at(const struct slab *pool, uint32_t slot)
{
	assert(slot < pool->high);
	return pool->chunks[slot >> SLAB_CHUNK_BITS] +
		(size_t)(slot & (SLAB_CHUNK_ITEMS - 1)) * pool->item_bytes;
}

static inline uint32_t slab_used(const struct slab *pool)
{
	return pool->used;
}

static inline uint32_t slab_high(const struct slab *pool)
{
	return pool->high;
}
