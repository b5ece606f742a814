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

struct moment clock_now(void)
{
	return (struct moment){clock_ms(CLOCK_REALTIME), clock_ms(CLOCK_BOOTTIME)};
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
