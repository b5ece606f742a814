/*
 * Virtual time. `true_ms` is the time of the simulated world and only grows; the server sees it through its
 * two clocks. A reboot starts the lease clock again at a small number; somebody setting the wall clock moves
 * that alone.
 */
#pragma once

#include <stdint.h>

#include "core/task/given.h"

struct clocks {
	int64_t true_ms;
	int64_t booted_ms; /* true time at which the lease clock stood at 0 */
	int64_t wall_offset_ms;
	int64_t wall_offset_high_ms; /* the largest ever: what producers believed the time to be */
	uint64_t boot;               /* boot id */
};

static inline struct moment clocks_now(const struct clocks *clocks)
{
	return (struct moment){
		.wall_ms = clocks->true_ms + clocks->wall_offset_ms,
		.lease_ms = clocks->true_ms - clocks->booted_ms,
	};
}
