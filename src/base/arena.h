/*
 * An arena hands out memory that all goes at once: one per request, one per
 * turn. It never holds more than its maximum, bookkeeping of a few words per
 * chunk aside; the unused tail of a chunk counts as held.
 */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

struct arena_chunk;

struct arena {
	struct arena_chunk *first; /* survives arena_reset */
	char *at, *end;            /* the room from which the next bytes come */
	size_t held;               /* bytes in all chunks */
	size_t max;
};

#define ARENA_ALIGN 16

/* Allocates nothing and cannot fail. */
void arena_init(struct arena *arena, size_t max);

/* Frees everything; the arena may be used again. NULL is fine. */
void arena_done(struct arena *arena);

/* Takes back all that was handed out and keeps the first chunk for reuse. */
void arena_reset(struct arena *arena);

/* The rare half of arena_take(): not for others. */
void *arena_take_anew(struct arena *arena, size_t bytes);

/*
 * Aligned to ARENA_ALIGN, the arena's own until reset or done. Not zeroed: for what is written over at once. NULL when
 * the maximum or the machine's memory is reached. Zero bytes are a valid request and give a pointer that may not be
 * read.
 */
static inline void *arena_take(struct arena *arena, size_t bytes)
{
	size_t need = (bytes + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
	char *at = arena->at;

	if (!at || need < bytes || need > (size_t)(arena->end - at))
		return arena_take_anew(arena, bytes);
	arena->at += need;
	return at;
}

/* The same, zeroed. Compiled where it is asked for: how much to zero is mostly known there. */
static inline void *arena_alloc(struct arena *arena, size_t bytes)
{
	void *at = bytes <= PTRDIFF_MAX ? arena_take(arena, bytes) : NULL;

	return at ? memset(at, 0, bytes) : NULL;
}

/* Why so many bytes were not handed out just now: -E2BIG, the arena's maximum; -ENOMEM, the machine has no memory. */
static inline int arena_fault(const struct arena *arena, size_t bytes)
{
	return bytes > arena->max - arena->held ? -E2BIG : -ENOMEM;
}

/*
 * For an arena that has handed out nothing yet: room for exactly so much in its
 * first chunk, each piece rounded up to ARENA_ALIGN. -ENOMEM as arena_alloc.
 */
int arena_reserve(struct arena *arena, size_t bytes);

/*
 * Copies the bytes into the arena; a NUL stands after them, outside ret->len,
 * so that text may be passed on as a C string. -E2BIG, -ENOMEM: arena_fault().
 */
int arena_copy(struct arena *arena, struct span span, struct span *ret);

/* A text made by a format. "" without memory: for paths and messages, where that is refused or says nothing. */
const char *arena_text(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
