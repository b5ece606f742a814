/*
 * The clocks of the kernel, for the rooms that may look at one: the rules and the store are told the time.
 */
#pragma once

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ms(clockid_t clock)
{
	struct timespec at;

	clock_gettime(clock, &at);
	return (int64_t)at.tv_sec * 1000 + at.tv_nsec / 1000000;
}

/* People's time, since 1970. It may be set, forth and back. */
static inline int64_t clock_wall_ms(void)
{
	return clock_ms(CLOCK_REALTIME);
}
