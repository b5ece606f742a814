/*
 * Which queues somebody asks work of, for `why`. Kept in memory: a server that starts knows nothing yet and accuses nobody.
 *
 * A queue has one of 64 bits, by the number of its name. Two queues may share one and are then taken for each other: a queue
 * that is called unserved is, and one that is not may be all the same.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	ASKED_BITS = 64,
	ASKED_LATELY_MS = 2 * 60 * 1000, /* the longest wait of a claim, twice */
};

#define ASKED_ALL UINT64_MAX

/* When claimants that never registered asked for work, by the bit of the queue. */
struct asked_queues {
	int64_t asked_ms[ASKED_BITS]; /* lease clock; 0: never */
};

static inline uint64_t asked_bit(uint32_t queue)
{
	return UINT64_C(1) << queue % ASKED_BITS;
}

static inline void asked_note(struct asked_queues *asked, uint64_t bits, int64_t now_ms)
{
	for (; bits != 0; bits &= bits - 1)
		asked->asked_ms[__builtin_ctzll(bits)] = now_ms;
}

static inline bool asked_lately(const struct asked_queues *asked, uint32_t queue, int64_t now_ms)
{
	int64_t asked_ms = asked->asked_ms[queue % ASKED_BITS];

	return asked_ms != 0 && now_ms - asked_ms <= ASKED_LATELY_MS;
}
