/*
 * Records in chunks of 1,024. Only the directory of chunks is ever moved, so
 * records keep their addresses while the pool grows. A free record holds the
 * number of the next free one in its first four bytes: the free list costs no
 * memory. Chunks are not given back before pool_done: a queue that was once
 * this long will be again.
 */
#include "base/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define POOL_ALIGN      8
#define POOL_CHUNKS_MAX (UINT32_MAX / POOL_CHUNK_ITEMS) /* keeps POOL_NONE out of reach */

void pool_init(struct pool *pool, size_t item_bytes)
{
	assert(item_bytes > 0);
	assert(item_bytes <= SIZE_MAX - POOL_ALIGN);
	*pool = (struct pool){
		.item_bytes = (item_bytes + POOL_ALIGN - 1) / POOL_ALIGN * POOL_ALIGN,
		.free_first = POOL_NONE,
	};
}

void pool_done(struct pool *pool)
{
	if (!pool)
		return;
	for (uint32_t i = 0; i < pool->chunk_count; i++)
		free(pool->chunks[i]);
	free(pool->chunks);
	pool_init(pool, pool->item_bytes);
}

static int pool_widen(struct pool *pool)
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

static int pool_grow(struct pool *pool)
{
	char *chunk;
	int fault;

	if (pool->chunk_count == POOL_CHUNKS_MAX)
		return -ENOMEM;
	fault = pool_widen(pool);
	if (fault)
		return fault;
	chunk = calloc(POOL_CHUNK_ITEMS, pool->item_bytes);
	if (!chunk)
		return -ENOMEM;
	pool->chunks[pool->chunk_count++] = chunk;
	return 0;
}

/* Slots that need no memory: the freed ones, and the rest of the last chunk. */
static uint32_t pool_ready(const struct pool *pool)
{
	return pool->chunk_count * POOL_CHUNK_ITEMS - pool->used;
}

int pool_reserve(struct pool *pool, uint32_t more)
{
	while (pool_ready(pool) < more) {
		int fault = pool_grow(pool);

		if (fault)
			return fault;
	}
	return 0;
}

static uint32_t pool_reuse(struct pool *pool)
{
	uint32_t slot = pool->free_first;
	void *item = pool_at(pool, slot);

	memcpy(&pool->free_first, item, sizeof(pool->free_first));
	memset(item, 0, pool->item_bytes);
	return slot;
}

int pool_alloc(struct pool *pool, uint32_t *ret_slot)
{
	int fault = pool_reserve(pool, 1);

	if (fault)
		return fault;
	/* A slot never used before is still zero from calloc. */
	*ret_slot = pool->free_first != POOL_NONE ? pool_reuse(pool) : pool->high++;
	pool->used++;
	assert(pool->used <= pool->high);
	return 0;
}

void pool_free(struct pool *pool, uint32_t slot)
{
	assert(pool->used > 0);
	memcpy(pool_at(pool, slot), &pool->free_first, sizeof(pool->free_first));
	pool->free_first = slot;
	pool->used--;
}
