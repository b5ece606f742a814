/*
 * A limit per minute, as a token bucket: `per_minute` times at once, and then one by one as time passes. One number says
 * how far the minute is used up.
 */
#pragma once

#include <stdint.h>

/* The moment on the lease clock, in microseconds, at which nothing of the minute is used up any more. */
struct pace {
	int64_t free_at_us;
};

/* May it happen once more? 0: yes. Else the milliseconds to wait. `per_minute` 0: always. */
int64_t pace_wait_ms(const struct pace *pace, uint32_t per_minute, int64_t now_ms);

/* Counts one, and takes one back. */
void pace_take(struct pace *pace, uint32_t per_minute, int64_t now_ms);
void pace_give_back(struct pace *pace, uint32_t per_minute);
