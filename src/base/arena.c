/*
 * Memory in chunks, given out from the front of the current one.
 *
 * Chunks double from 4 KiB to 256 KiB, clipped to what the maximum leaves. A
 * request that wants a chunk of its own does not push aside a current chunk
 * with more room left. Memory is zeroed as it is given out, not by calloc: a
 * reused first chunk is as clean as a new one and costs no more than is used.
 */
#include "base/arena.h"

#include <assert.h>
#include <errno.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ARENA_CHUNK_BYTES_MIN 4096
#define ARENA_CHUNK_BYTES_MAX (256 * 1024)

struct arena_chunk {
	struct arena_chunk *next;
	size_t bytes;
	alignas(ARENA_ALIGN) char data[];
};

_Static_assert(alignof(max_align_t) >= ARENA_ALIGN, "malloc aligns the chunks");

void arena_init(struct arena *arena, size_t max)
{
	/* Rounded down: then every chunk is a whole number of aligned units. */
	*arena = (struct arena){.max = max - max % ARENA_ALIGN};
}

/* Frees what hangs behind the first chunk. */
static void arena_trim(struct arena *arena)
{
	struct arena_chunk *chunk = arena->first->next;

	while (chunk) {
		struct arena_chunk *next = chunk->next;

		assert(arena->held >= chunk->bytes);
		arena->held -= chunk->bytes;
		free(chunk);
		chunk = next;
	}
	arena->first->next = NULL;
	assert(arena->held == arena->first->bytes);
}

void arena_reset(struct arena *arena)
{
	if (!arena->first)
		return;
	arena_trim(arena);
	arena->at = arena->first->data;
	arena->end = arena->at + arena->first->bytes;
}

void arena_done(struct arena *arena)
{
	if (!arena || !arena->first)
		return;
	arena_trim(arena);
	free(arena->first);
	arena_init(arena, arena->max);
}

static size_t arena_room(const struct arena *arena)
{
	assert(arena->at <= arena->end);
	return arena->at ? (size_t)(arena->end - arena->at) : 0;
}

/* As large as all before it, so that few chunks serve a large turn. */
static size_t arena_chunk_bytes(const struct arena *arena, size_t need)
{
	size_t left = arena->max - arena->held;
	size_t bytes = arena->held;

	if (bytes < ARENA_CHUNK_BYTES_MIN)
		bytes = ARENA_CHUNK_BYTES_MIN;
	if (bytes > ARENA_CHUNK_BYTES_MAX)
		bytes = ARENA_CHUNK_BYTES_MAX;
	if (bytes < need)
		bytes = need;
	return bytes < left ? bytes : left;
}

static void arena_link(struct arena *arena, struct arena_chunk *chunk)
{
	if (!arena->first) {
		arena->first = chunk;
		return;
	}
	chunk->next = arena->first->next;
	arena->first->next = chunk;
}

/* A chunk of so many bytes, whose first `need` are handed out. */
static char *arena_add(struct arena *arena, size_t bytes, size_t need)
{
	struct arena_chunk *chunk;

	if (bytes > SIZE_MAX - sizeof(*chunk))
		return NULL;
	chunk = malloc(sizeof(*chunk) + bytes);
	if (!chunk)
		return NULL;
	*chunk = (struct arena_chunk){.bytes = bytes};
	arena_link(arena, chunk);
	arena->held += bytes;
	if (!arena->at || arena_room(arena) < bytes - need) {
		arena->at = chunk->data + need;
		arena->end = chunk->data + bytes;
	}
	assert((uintptr_t)chunk->data % ARENA_ALIGN == 0);
	return chunk->data;
}

int arena_reserve(struct arena *arena, size_t bytes)
{
	assert(!arena->first);
	assert(bytes % ARENA_ALIGN == 0);
	if (bytes > arena->max)
		return -ENOMEM;
	return arena_add(arena, bytes, 0) ? 0 : -ENOMEM;
}

void *arena_take_anew(struct arena *arena, size_t bytes)
{
	size_t need;

	if (bytes > SIZE_MAX - (ARENA_ALIGN - 1))
		return NULL;
	need = (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
	assert(arena->held <= arena->max);
	if (need > arena->max - arena->held)
		return NULL;
	return arena_add(arena, arena_chunk_bytes(arena, need), need);
}

int arena_copy(struct arena *arena, struct span span, struct span *ret)
{
	char *data;

	if (span.len == SIZE_MAX)
		return -E2BIG;
	data = arena_take(arena, span.len + 1);
	if (!data)
		return arena_fault(arena, span.len + 1);
	if (span.len > 0)
		memcpy(data, span.data, span.len);
	data[span.len] = 0;
	*ret = (struct span){data, span.len};
	return 0;
}

const char *arena_text(struct arena *arena, const char *format, ...)
{
	va_list args, again;

	va_start(args, format);
	va_copy(again, args);
	int len = vsnprintf(NULL, 0, format, args);
	char *text = len > 0 ? arena_take(arena, (size_t)len + 1) : NULL;
	if (text)
		vsnprintf(text, (size_t)len + 1, format, again);
	va_end(again);
	va_end(args);
	return text ? text : "";
}
