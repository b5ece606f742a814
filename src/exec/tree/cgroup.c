#include "exec/tree/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/take.h"
#include "exec/tree/proc.h"
#include "exec/tree/tree.h"

enum {
	FREEZE_LOOKS = 50, /* of 1 ms */
	SWEPT_AFTER_S = 60,
};

void cgroup_sweep(const char *place)
{
	DIR *dir = opendir(place);
	struct dirent *entry;
	struct stat about;

	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "stint-", 6) == 0 &&
			fstatat(dirfd(dir), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
			about.st_mtime < time(NULL) - SWEPT_AFTER_S)
			unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR); /* EBUSY while somebody is in it */
	}
	if (dir)
		closedir(dir);
}

/* ---- a leaf ------------------------------------------------------------------------------------------------------- */

int cgroup_path(const char *place, const char *run, char ret_path[CGROUP_PATH_BYTES])
{
	int len = snprintf(ret_path, CGROUP_PATH_BYTES, "%s/stint-%s", place, run);

	return len < 0 || len >= CGROUP_PATH_BYTES ? -ENAMETOOLONG : 0;
}

int cgroup_make(const char *place, const char *run, char ret_path[CGROUP_PATH_BYTES], int *ret_fd)
{
	char path[CGROUP_PATH_BYTES];
	int fault = cgroup_path(place, run, path);

	if (fault)
		return fault;
	if (mkdir(path, 0755) < 0)
		return -errno;
	*ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret_fd < 0) {
		fault = -errno;
		rmdir(path);
		return fault;
	}
	memcpy(ret_path, path, sizeof path);
	return 0;
}

int cgroup_write(int dir, const char *name, const char *text)
{
	cleanup(close_at) int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return -errno;
	return 0;
}

static bool file_has(int dir, const char *name, const char *word)
{
	char text[4096]; /* a hybrid machine has a line for each hierarchy */

	proc_text_read(dir, name, text, sizeof text);
	return strstr(text, word) != NULL;
}

/* The number of that key, in a file with a key and a number in each line; -1: no such line. */
static int64_t file_number(int dir, const char *name, const char *key)
{
	size_t len = strlen(key);
	char text[4096], *at = text;

	for (proc_text_read(dir, name, text, sizeof text); at && *at; at = strchr(at, '\n'), at += at != NULL)
		if (strncmp(at, key, len) == 0 && at[len] == ' ')
			return strtoll(at + len, NULL, 10);
	return -1;
}

int cgroup_enter(int fd)
{
	return cgroup_write(fd, "cgroup.procs", "0");
}

/* Freezing takes effect when every task has noticed; one that is stuck in the kernel is not waited for. */
static void freeze(int fd)
{
	bool second = cgroup_write(fd, "cgroup.freeze", "1") == 0;

	if (!second && cgroup_write(fd, "freezer.state", "FROZEN") < 0)
		return;
	for (int look = 0; look < FREEZE_LOOKS; look++) {
		if (second ? file_has(fd, "cgroup.events", "frozen 1")
			   : file_has(fd, "freezer.state", "FROZEN"))
			return;
		usleep(1000);
	}
}

static void thaw(int fd)
{
	if (cgroup_write(fd, "cgroup.freeze", "0") < 0)
		cgroup_write(fd, "freezer.state", "THAWED");
}

/* Is this process, which a pidfd holds, in the leaf of that name? Run 1 is not run 12. */
static bool is_member(pid_t pid, const char *leaf)
{
	char path[64], text[4096], *at = text;
	size_t len = strlen(leaf);

	snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
	proc_text_read(AT_FDCWD, path, text, sizeof text);
	while ((at = strstr(at, leaf))) {
		at += len;
		if (*at == 0 || *at == '\n' || *at == '/')
			return true;
	}
	return false;
}

static uint32_t signal_members(int fd, const char *leaf, int signal)
{
	static pid_t pids[TREE_PIDS_MAX];
	cleanup(close_at) int procs = openat(fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	uint32_t reached = 0, count = procs < 0 ? 0 : tree_pids_read(procs, pids, TREE_PIDS_MAX);

	for (uint32_t i = 0; i < count; i++) {
		cleanup(close_at) int pidfd = pidfd_open_of(pids[i]);
		if (pidfd >= 0 && is_member(pids[i], leaf))
			reached += pidfd_signal(pidfd, signal) == 0;
	}
	return reached;
}

uint32_t cgroup_signal(int fd, const char *path, int signal)
{
	const char *leaf = strrchr(path, '/');
	uint32_t reached;

	if (!leaf)
		return 0;
	if (signal != SIGKILL)
		return signal_members(fd, leaf, signal);
	reached = signal_members(fd, leaf, 0);
	if (reached == 0 || cgroup_write(fd, "cgroup.kill", "1") == 0)
		return reached;
	freeze(fd);
	reached = signal_members(fd, leaf, SIGKILL);
	thaw(fd);
	return reached;
}

int cgroup_remove(const char *path)
{
	return !path[0] || rmdir(path) == 0 || errno == ENOENT ? 0 : -errno;
}

int64_t cgroup_cpu_us(int fd)
{
	int64_t used_us = file_number(fd, "cpu.stat", "usage_usec");

	return used_us < 0 ? -ENOENT : used_us;
}

uint64_t cgroup_oom_kills(int fd)
{
	int64_t kills = file_number(fd, "memory.events", "oom_kill");

	if (kills < 0)
		kills = file_number(fd, "memory.oom_control", "oom_kill");
	return kills > 0 ? (uint64_t)kills : 0;
}
