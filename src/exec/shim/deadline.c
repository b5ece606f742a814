#include "exec/shim/deadline.h"

#include <assert.h>
#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"

static int64_t asleep_now_ms(void)
{
	return clock_ms(CLOCK_BOOTTIME) - clock_ms(CLOCK_MONOTONIC);
}

int64_t deadline_end_ms(const struct deadline *deadline, int64_t asleep_ms)
{
	const struct process_lease *lease = &deadline->lease;
	int64_t slept_ms = asleep_ms - deadline->asleep_ms;
	int64_t woken_ms = deadline->pushed_ms + slept_ms + lease->window_ms;

	if (lease->until_ms == 0)
		return INT64_MAX;
	if (lease->window_ms == 0 || slept_ms <= DEADLINE_SLEPT_MS)
		return lease->until_ms;
	return woken_ms > lease->until_ms ? woken_ms : lease->until_ms;
}

static void arm(const struct deadline *deadline, int64_t at_ms)
{
	assert(deadline->timer >= 0);
	assert(at_ms >= 0);
	struct itimerspec spec = {.it_value = {.tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000}};

	timerfd_settime(deadline->timer, TFD_TIMER_ABSTIME, &spec, NULL);
}

int deadline_open(struct deadline *deadline)
{
	deadline->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	return deadline->timer < 0 ? -errno : 0;
}

void deadline_push(struct deadline *deadline, const struct process_lease *lease)
{
	deadline->lease = *lease;
	deadline->pushed_ms = clock_ms(CLOCK_BOOTTIME);
	deadline->asleep_ms = asleep_now_ms();
	arm(deadline, lease->until_ms > 0 ? lease->until_ms : 0);
}

bool deadline_is_over(struct deadline *deadline, uint32_t *ret_grace_ms)
{
	int64_t end_ms = deadline_end_ms(deadline, asleep_now_ms());
	int64_t late_ms = clock_ms(CLOCK_BOOTTIME) - end_ms;

	if (end_ms == INT64_MAX)
		return false;
	if (late_ms < 0) { /* the machine slept */
		arm(deadline, end_ms);
		return false;
	}
	*ret_grace_ms = late_ms < deadline->lease.grace_ms ? deadline->lease.grace_ms - (uint32_t)late_ms : 0;
	assert(*ret_grace_ms <=
		deadline->lease.grace_ms); /* KILL comes before the lease is over, however late we are */
	deadline->lease.until_ms = 0;
	arm(deadline, 0);
	return true;
}
