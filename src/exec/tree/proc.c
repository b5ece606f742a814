#include "exec/tree/proc.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/take.h"

int pidfd_open_of(pid_t pid)
{
	assert(pid > 0); /* never a group, never everybody */
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}

int pidfd_signal(int pidfd, int signal)
{
	assert(pidfd >= 0);
	return syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) < 0 ? -errno : 0;
}

bool pidfd_is_over(int pidfd)
{
	struct pollfd poll_one = {.fd = pidfd, .events = POLLIN};

	return poll(&poll_one, 1, 0) == 1 && poll_one.revents & POLLIN;
}

ssize_t proc_text_read(int dir, const char *name, char *text, size_t room)
{
	cleanup(close_at) int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, room - 1);

	text[got < 0 ? 0 : got] = 0;
	if (got < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return got;
}

int proc_stat_read(pid_t pid, struct proc_stat *ret_stat)
{
	char path[64], text[1024];
	const char *rest;
	ssize_t got;
	int parent;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	got = proc_text_read(AT_FDCWD, path, text, sizeof text);
	if (got < 0)
		return (int)got;
	rest = strrchr(text, ')'); /* the name may hold anything, ")" too */
	if (!rest || sscanf(rest + 1, " %c %d", &ret_stat->state, &parent) != 2)
		return -ESRCH;
	ret_stat->cpu_ticks = 0;
	for (int field = 2; field < 22 && rest; field++) { /* start is field 22, the name was 2 */
		rest = strchr(rest + 1, ' ');
		if (rest && field + 1 >= 14 && field + 1 <= 17) /* utime, stime, cutime, cstime */
			ret_stat->cpu_ticks += strtoull(rest + 1, NULL, 10);
	}
	if (!rest)
		return -ESRCH;
	ret_stat->parent = parent;
	ret_stat->start = strtoull(rest + 1, NULL, 10);
	return 0;
}

int pidfd_open_known(pid_t pid, uint64_t start)
{
	struct proc_stat stat;
	int pidfd, fault;

	if (pid <= 0)
		return -ESRCH;
	pidfd = pidfd_open_of(pid);
	if (pidfd < 0)
		return pidfd;
	fault = proc_stat_read(pid, &stat);
	if (!fault && (stat.start != start || stat.state == 'Z' || pidfd_is_over(pidfd)))
		fault = -ESRCH;
	if (!fault)
		return pidfd;
	close(pidfd);
	return fault;
}

static void read_bits(const char *status, const char *key, uint64_t *ret_bits)
{
	const char *at = strstr(status, key);

	if (at)
		*ret_bits = strtoull(at + strlen(key), NULL, 16);
}

void proc_self_read(struct proc_self *ret_self)
{
	char status[4096];

	*ret_self = (struct proc_self){UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
	if (proc_text_read(AT_FDCWD, "/proc/self/status", status, sizeof status) < 0)
		return;
	read_bits(status, "\nSigIgn:", &ret_self->ignored);
	read_bits(status, "\nCapBnd:", &ret_self->bounding);
	read_bits(status, "\nCapEff:", &ret_self->capabilities);
	read_bits(status, "\nCapAmb:", &ret_self->ambient);
}

void proc_heed_signals(const struct proc_self *self)
{
	struct sigaction usual = {.sa_handler = SIG_DFL};

	for (int number = 1; number <= 64; number++)
		if (self->ignored >> (number - 1) & 1)
			sigaction(number, &usual, NULL);
}

int proc_drop_bounding(const struct proc_self *self, uint64_t capabilities)
{
	if (!(self->capabilities >> CAP_SETPCAP & 1))
		return 0;
	for (int i = 0; i < 64; i++) {
		if (!(self->bounding & capabilities & 1ull << i) || prctl(PR_CAPBSET_DROP, i, 0, 0, 0) == 0)
			continue;
		if (errno == EINVAL)
			return 0; /* behind the last that the kernel has */
		if (errno != EPERM)
			return -errno;
	}
	return 0;
}

int boot_id_read(char *boot, size_t room)
{
	ssize_t got = proc_text_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot, room);

	if (got < 0)
		return (int)got;
	boot[strcspn(boot, "\n")] = 0;
	return 0;
}

bool proc_has_env(pid_t pid, const char *entry)
{
	static char text[1 << 17]; /* ours stands first (env.c): no need to read all of a long one */
	size_t len = strlen(entry);
	char path[64];
	ssize_t got;

	snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
	got = proc_text_read(AT_FDCWD, path, text, sizeof text);
	for (ssize_t at = 0; at + (ssize_t)len < got; at += (ssize_t)strlen(text + at) + 1)
		if (memcmp(text + at, entry, len + 1) == 0)
			return true;
	return false;
}

int64_t monotonic_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
