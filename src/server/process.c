/*
 * What the kernel says of processes: of another one whether it is still there, and of ourselves what we cost.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/take.h"
#include "server/process.h"

enum {
	STAT_BYTES_MAX = 1024, /* of /proc/PID/stat: about 50 numbers and a name of 15 bytes */
	STAT_START = 22,       /* field of it: when the process started, in ticks since boot */
	STAT_STATE = 3,
};

/* /proc/PID/stat, ended by a zero. False: there is no such process. */
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

static double seconds(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/* Pages of address space and of memory, as /proc/self/statm has them. */
static void read_memory(struct process_figures *figures)
{
	char text[128];
	char *rest;
	cleanup(close_at) int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);

	if (len <= 0)
		return;
	text[len] = 0;
	figures->virtual_bytes = strtoull(text, &rest, 10) * page_bytes;
	figures->resident_bytes = strtoull(rest, NULL, 10) * page_bytes;
}

struct process_figures process_figures(void)
{
	struct process_figures figures = {0};
	struct rusage usage;
	struct rlimit files;
	struct stat directory;

	if (getrusage(RUSAGE_SELF, &usage) == 0)
		figures.cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0)
		figures.files_max = files.rlim_cur;
	if (stat("/proc/self/fd", &directory) ==
		0) /* since Linux 6.2; counting them one by one costs too much */
		figures.open_files = (uint64_t)directory.st_size;
	read_memory(&figures);
	return figures;
}
