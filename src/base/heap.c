/*
 * A heap of four children a node: entry i has the children 4i+1 to 4i+4 and is
 * not later than any of them. Four entries of 16 bytes are one cache line's
 * worth, and the tree is half as deep as a binary one. Entries move through a
 * gap instead of being swapped: half the stores.
 */
#include "base/heap.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define HEAP_CHILDREN 4
#define HEAP_CAP_MIN  64

void heap_init(struct heap *heap)
{
	*heap = (struct heap){0};
}

void heap_done(struct heap *heap)
{
	if (!heap)
		return;
	free(heap->entries);
	heap_init(heap);
}

static bool entry_is_before(const struct heap_entry *a, const struct heap_entry *b)
{
	if (a->at != b->at)
		return a->at < b->at;
	return a->what < b->what;
}

int heap_reserve(struct heap *heap, size_t more)
{
	const size_t cap_max = SIZE_MAX / sizeof(struct heap_entry) / 2;
	struct heap_entry *entries;
	size_t cap = heap->cap;

	assert(heap->count <= heap->cap);
	if (more <= heap->cap - heap->count)
		return 0;
	if (heap->cap > cap_max || more > cap_max - heap->count)
		return -ENOMEM;
	if (cap < HEAP_CAP_MIN)
		cap = HEAP_CAP_MIN;
	while (cap - heap->count < more)
		cap *= 2;
	entries = realloc(heap->entries, sizeof(*entries) * cap);
	if (!entries)
		return -ENOMEM;
	heap->entries = entries;
	heap->cap = cap;
	return 0;
}

int heap_push(struct heap *heap, struct heap_entry entry)
{
	size_t gap = heap->count;
	int fault = heap_reserve(heap, 1);

	if (fault)
		return fault;
	heap->count++;
	while (gap > 0) {
		size_t parent = (gap - 1) / HEAP_CHILDREN;

		if (!entry_is_before(&entry, &heap->entries[parent]))
			break;
		heap->entries[gap] = heap->entries[parent];
		gap = parent;
	}
	heap->entries[gap] = entry;
	return 0;
}

const struct heap_entry *heap_peek(const struct heap *heap)
{
	return heap->count > 0 ? &heap->entries[0] : NULL;
}

/* The earliest child; heap->count or beyond: no child. */
static size_t heap_child(const struct heap *heap, size_t parent)
{
	size_t first = parent * HEAP_CHILDREN + 1;
	size_t end = first + HEAP_CHILDREN;
	size_t best = first;

	if (end > heap->count)
		end = heap->count;
	for (size_t child = first + 1; child < end; child++)
		if (entry_is_before(&heap->entries[child], &heap->entries[best]))
			best = child;
	return best;
}

/* Puts the entry at or below the root, whose place is free. */
static void heap_sink(struct heap *heap, struct heap_entry entry)
{
	size_t gap = 0;

	for (;;) {
		size_t child = heap_child(heap, gap);

		if (child >= heap->count || !entry_is_before(&heap->entries[child], &entry))
			break;
		heap->entries[gap] = heap->entries[child];
		gap = child;
	}
	heap->entries[gap] = entry;
}

struct heap_entry heap_pop(struct heap *heap)
{
	struct heap_entry earliest;

	assert(heap->count > 0);
	earliest = heap->entries[0];
	heap->count--;
	if (heap->count > 0)
		heap_sink(heap, heap->entries[heap->count]);
	return earliest;
}
