#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/take.h"
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
	uint64_t halves[2] = {0, 0};
	char text[64];
	int digits = 0;

	cleanup(close_at) int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t len = read(fd, text, sizeof text);
	for (ssize_t i = 0; i < len && digits < 32; i++) {
		int digit = -1;
		if (text[i] >= '0' && text[i] <= '9')
			digit = text[i] - '0';
		else if (text[i] >= 'a' && text[i] <= 'f')
			digit = text[i] - 'a' + 10;
		if (digit < 0)
			continue;
		halves[digits / 16] = halves[digits / 16] << 4 | (uint64_t)digit;
		digits++;
	}
	if (digits != 32)
		return -EINVAL;
	*ret_hi = halves[0];
	*ret_lo = halves[1];
	return 0;
}
