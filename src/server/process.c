/*
 * What the kernel says of processes: of another one whether it is still there, and of ourselves what we cost.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/take.h"
#include "server/server.h"

enum {
	STAT_BYTES_MAX = 1024, /* of /proc/PID/stat: about 50 numbers and a name of 15 bytes */
	STAT_START = 22,       /* field of it: when the process started, in ticks since boot */
	STAT_STATE = 3,
};

/* /proc/PID/stat, ended by a zero; false: there is none. */
static bool read_stat(uint32_t pid, char text[STAT_BYTES_MAX])
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%u/stat", pid);
	cleanup(close_at) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, STAT_BYTES_MAX - 1);
	text[len > 0 ? len : 0] = 0;
	return len > 0;
}

/* The name in parentheses may have anything in it; the fields behind the last of them are numbers. */
static const char *stat_field(const char *text, int number)
{
	const char *at = strrchr(text, ')');

	for (int i = STAT_STATE; at && i <= number; i++) {
		at = strchr(at + 1, ' ');
		if (at && i == number)
			return at + 1;
	}
	return NULL;
}

bool process_is_seen(uint32_t pid, uint64_t start)
{
	char text[STAT_BYTES_MAX];

	if (!read_stat(pid, text))
		return false;
	const char *state = stat_field(text, STAT_STATE), *started = stat_field(text, STAT_START);
	if (!state || !started || *state == 'Z' || *state == 'X')
		return false;
	return strtoull(started, NULL, 10) == start;
}
