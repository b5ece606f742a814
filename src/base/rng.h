/*
 * A generator for simulation and jitter: the same seed gives the same numbers
 * on every machine, for ever. Anyone who sees a few of them can tell the next:
 * never use it for tokens or keys.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct rng {
	uint64_t state[4];
};

/* Any seed is as good as another, 0 too. */
void rng_seed(struct rng *rng, uint64_t seed);

uint64_t rng_u64(struct rng *rng);
uint32_t rng_u32(struct rng *rng);

/* 0 to n - 1, each as likely as the other. n must not be 0. */
uint32_t rng_below(struct rng *rng, uint32_t n);

/* True once in `one_in` on average; 0 means never, which switches a fault off. */
bool rng_chance(struct rng *rng, uint32_t one_in);

/* lo to hi, both included, each as likely as the other. */
int64_t rng_between(struct rng *rng, int64_t lo, int64_t hi);
