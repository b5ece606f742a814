#include "core/task/pace.h"

static const int64_t minute_us = INT64_C(60) * 1000 * 1000;

static int64_t step_us(uint32_t per_minute)
{
	return minute_us / per_minute;
}

int64_t pace_wait_ms(const struct pace *pace, uint32_t per_minute, int64_t now_ms)
{
	if (per_minute == 0)
		return 0;
	int64_t wait_us = pace->free_at_us + step_us(per_minute) - minute_us - now_ms * 1000;
	return wait_us > 0 ? (wait_us + 999) / 1000 : 0;
}

void pace_take(struct pace *pace, uint32_t per_minute, int64_t now_ms)
{
	if (per_minute == 0)
		return;
	if (pace->free_at_us < now_ms * 1000)
		pace->free_at_us = now_ms * 1000;
	pace->free_at_us += step_us(per_minute);
}

void pace_give_back(struct pace *pace, uint32_t per_minute)
{
	if (per_minute != 0)
		pace->free_at_us -= step_us(per_minute);
}
