/*
 * What the time is, once for a tick of the loop, and which boot of the machine this is.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/take.h"
#include "base/uuid.h"
#include "server/server.h"

enum {
	READS_MAX = 3,
};

/* Both clocks in the same millisecond, unless the machine is busy. */
static struct moment clocks_read(void)
{
	struct moment moment;
	int reads = 0;

	do {
		moment.lease_ms = clock_ms(CLOCK_BOOTTIME);
		moment.wall_ms = clock_ms(CLOCK_REALTIME);
	} while (++reads < READS_MAX && clock_ms(CLOCK_BOOTTIME) != moment.lease_ms);
	return moment;
}

/* The wall clock goes with the clock since boot until somebody sets it or it drifts, so that the end of a lease is the same
 * wall time whenever it is told. Without that it would differ by one: the clocks do not begin a millisecond together. */
struct moment clock_now(void)
{
	static int64_t ahead_ms;
	struct moment now = clocks_read();
	int64_t apart_ms = now.wall_ms - now.lease_ms - ahead_ms;

	if (apart_ms > 0 || apart_ms < -1)
		ahead_ms += apart_ms;
	now.wall_ms = now.lease_ms + ahead_ms;
	return now;
}

void clock_tick(struct server *server)
{
	if (!server->now_is_old)
		return;
	server->now = clock_now();
	server->now_ns = uv_hrtime();
	server->now_is_old = false;
}

int64_t clock_asleep_ms(void)
{
	return clock_ms(CLOCK_BOOTTIME) - clock_ms(CLOCK_MONOTONIC);
}

int clock_boot_id(uint64_t *ret_hi, uint64_t *ret_lo)
{
	char text[UUID_CHARS];

	cleanup(close_at) int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t len = read(fd, text, sizeof text);
	if (len < 0)
		return -errno;
	return uuid_read((struct span){text, (size_t)len}, ret_hi, ret_lo) ? 0 : -EINVAL;
}
