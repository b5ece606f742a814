/*
 * Which queues somebody asks work of, for `why`. Kept in memory: a server that starts knows nothing yet and accuses nobody.
 *
 * A queue has one of 64 bits, by the number of its name. Two queues may share one and are then taken for each other: what
 * is called unserved is, and what is not may be all the same.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	SERVED_BITS = 64,
	SERVED_LATELY_MS = 2 * 60 * 1000, /* the longest wait of a claim, twice */
};

#define SERVED_ALL UINT64_MAX

/* Claimants that never registered, each time they ask. */
struct served {
	int64_t asked_ms[SERVED_BITS]; /* lease clock; 0: never */
};

static inline uint64_t served_bit(uint32_t queue)
{
	return UINT64_C(1) << queue % SERVED_BITS;
}

void served_note(struct served *served, uint64_t bits, int64_t now_ms);

bool served_lately(const struct served *served, uint32_t queue, int64_t now_ms);
