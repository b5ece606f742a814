/*
 * A heap gives back timers, earliest first. Equal times come in the order of
 * `what`, so that the order depends on the entries alone and a seed replays.
 *
 * There is no removal from the middle: a timer that lost its meaning stays
 * until its time comes, and its owner pops it and finds that nothing is due.
 *
 * The heap sets no maximum of its own: its owner counts what it admits.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct heap_entry {
	int64_t at;
	uint64_t what; /* the caller's; equal entries may be held twice */
};

struct heap {
	struct heap_entry *entries;
	size_t count;
	size_t cap;
};

/* Allocates nothing and cannot fail. */
void heap_init(struct heap *heap);

/* Frees the entries; the heap is empty and may be used again. NULL is fine. */
void heap_done(struct heap *heap);

/* -ENOMEM cannot happen within what heap_reserve promised. */
__attribute__((warn_unused_result)) int heap_push(struct heap *heap, struct heap_entry entry);

/* After it, the next `more` pushes cannot fail. */
__attribute__((warn_unused_result)) int heap_reserve(struct heap *heap, size_t more);

/* The earliest entry, borrowed until the next push or pop; NULL when empty. */
const struct heap_entry *heap_peek(const struct heap *heap);

/* Removes and returns the earliest entry. The heap must not be empty. */
struct heap_entry heap_pop(struct heap *heap);

static inline size_t heap_count(const struct heap *heap)
{
	return heap->count;
}
