/*
 * xoshiro256** (Blackman and Vigna), its state filled by splitmix64 so that
 * neighbouring seeds have nothing in common and the state is never all zero.
 */
#include "base/rng.h"

#include <assert.h>

#include "base/hash.h"

static inline uint64_t rotate_left(uint64_t value, unsigned int bits)
{
	return value << bits | value >> (64 - bits);
}

void rng_seed(struct rng *rng, uint64_t seed)
{
	for (int i = 0; i < 4; i++) {
		seed += 0x9e3779b97f4a7c15u;
		rng->state[i] = hash_u64(seed);
	}
}

uint64_t rng_u64(struct rng *rng)
{
	uint64_t *s = rng->state;
	uint64_t result = rotate_left(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate_left(s[3], 45);
	return result;
}

uint32_t rng_u32(struct rng *rng)
{
	return (uint32_t)(rng_u64(rng) >> 32);
}

/* Draws again while the number lies in the incomplete last copy of 0..n-1. */
static uint64_t rng_below_u64(struct rng *rng, uint64_t n)
{
	uint64_t skip = -n % n; /* 2^64 mod n */
	uint64_t draw;

	do
		draw = rng_u64(rng);
	while (draw < skip);
	return draw % n;
}

uint32_t rng_below(struct rng *rng, uint32_t n)
{
	assert(n > 0);
	return (uint32_t)rng_below_u64(rng, n);
}

bool rng_chance(struct rng *rng, uint32_t one_in)
{
	return one_in > 0 && rng_below(rng, one_in) == 0;
}

int64_t rng_between(struct rng *rng, int64_t lo, int64_t hi)
{
	uint64_t width = (uint64_t)hi - (uint64_t)lo + 1;

	assert(lo <= hi);
	if (width == 0) /* all 2^64 of them */
		return (int64_t)rng_u64(rng);
	return (int64_t)((uint64_t)lo + rng_below_u64(rng, width));
}
