/*
 * Items in chunks of 1,024. Only the directory of chunks is ever moved, so
 * items keep their addresses while the slab grows. A free item holds the
 * number of the next free one in its first four bytes: the free list costs no
 * memory. Chunks are not given back before slab_done: a queue that was once
 * this long will be again.
 */
#include "base/slab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLAB_ALIGN      8
#define SLAB_CHUNKS_MAX (UINT32_MAX / SLAB_CHUNK_ITEMS) /* keeps SLAB_NONE out of reach */

void slab_init(struct slab *pool, size_t item_bytes)
{
	assert(item_bytes > 0);
	assert(item_bytes <= SIZE_MAX - SLAB_ALIGN);
	*pool = (struct slab){
		.item_bytes = (item_bytes + SLAB_ALIGN - 1) / SLAB_ALIGN * SLAB_ALIGN,
		.free_first = SLAB_NONE,
	};
}

void slab_done(struct slab *pool)
{
	if (!pool)
		return;
	for (uint32_t i = 0; i < pool->chunk_count; i++)
		free(pool->chunks[i]);
	free(pool->chunks);
	slab_init(pool, pool->item_bytes);
}

static int slab_widen(struct slab *pool)
{
	uint32_t cap = pool->chunk_cap ? pool->chunk_cap * 2 : 8;
	char **chunks;

	if (pool->chunk_count < pool->chunk_cap)
		return 0;
	chunks = realloc(pool->chunks, sizeof(*chunks) * cap);
	if (!chunks)
		return -ENOMEM;
	pool->chunks = chunks;
	pool->chunk_cap = cap;
	return 0;
}

static int slab_grow(struct slab *pool)
{
	char *chunk;
	int fault;

	if (pool->chunk_count == SLAB_CHUNKS_MAX)
		return -ENOMEM;
	fault = slab_widen(pool);
	if (fault)
		return fault;
	chunk = calloc(SLAB_CHUNK_ITEMS, pool->item_bytes);
	if (!chunk)
		return -ENOMEM;
	pool->chunks[pool->chunk_count++] = chunk;
	return 0;
}

/* Slots that need no memory: the freed ones, and the rest of the last chunk. */
static uint32_t slab_ready(const struct slab *pool)
{
	return pool->chunk_count * SLAB_CHUNK_ITEMS - pool->used;
}

int slab_reserve(struct slab *pool, uint32_t more)
{
	while (slab_ready(pool) < more) {
		int fault = slab_grow(pool);

		if (fault)
			return fault;
	}
	return 0;
}

static uint32_t slab_reuse(struct slab *pool)
{
	uint32_t slot = pool->free_first;
	void *item = slab_at(pool, slot);

	memcpy(&pool->free_first, item, sizeof(pool->free_first));
	memset(item, 0, pool->item_bytes);
	return slot;
}

int slab_alloc(struct slab *pool, uint32_t *ret_slot)
{
	int fault = slab_reserve(pool, 1);

	if (fault)
		return fault;
	/* An item never used before is still zero from calloc. */
	*ret_slot = pool->free_first != SLAB_NONE ? slab_reuse(pool) : pool->high++;
	pool->used++;
	assert(pool->used <= pool->high);
	return 0;
}

void slab_free(struct slab *pool, uint32_t slot)
{
	assert(pool->used > 0);
	memcpy(slab_at(pool, slot), &pool->free_first, sizeof(pool->free_first));
	pool->free_first = slot;
	pool->used--;
}
