#include "exec/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/take.h"
#include "exec/proc.h"
#include "exec/tree.h"

enum {
	FREEZE_LOOKS = 50, /* of 1 ms */
	SWEPT_AFTER_S = 60,
};

static void fclose_at(FILE **file)
{
	if (*file)
		fclose(*file);
}

/* ---- where we are ------------------------------------------------------------------------------------------------ */

/* Our own path within the hierarchy that has this controller ("" is the second version's). */
static bool own_path(const char *controller, char *ret_path, size_t room)
{
	cleanup(fclose_at) FILE *file = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX];

	while (file && fgets(line, sizeof line, file)) {
		char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
		if (!path)
			continue;
		*names++ = 0;
		*path++ = 0;
		path[strcspn(path, "\n")] = 0;
		if (strcmp(names, controller) == 0)
			return (size_t)snprintf(ret_path, room, "%s", path) < room;
	}
	return false;
}

/* Where that hierarchy is mounted, and which part of it. The fields of mountinfo: 4 root, 5 mount point, after " - "
 * type, source, options. */
static bool mounted(const char *type, const char *option, char *ret_root, char *ret_point, size_t room)
{
	cleanup(fclose_at) FILE *file = fopen("/proc/self/mountinfo", "re");
	char line[PATH_MAX], root[1024], point[1024], found[64], options[1024];

	while (file && fgets(line, sizeof line, file)) {
		const char *rest = strstr(line, " - ");
		if (!rest || sscanf(line, "%*s %*s %*s %1023s %1023s", root, point) != 2 ||
			sscanf(rest + 3, "%63s %*s %1023s", found, options) != 2)
			continue;
		if (strcmp(found, type) == 0 && (!option[0] || strstr(options, option)))
			return (size_t)snprintf(ret_root, room, "%s", root) < room &&
				(size_t)snprintf(ret_point, room, "%s", point) < room;
	}
	return false;
}

static bool own_directory(const char *type, const char *controller, char path[CGROUP_PATH_BYTES])
{
	char own[CGROUP_PATH_BYTES], root[CGROUP_PATH_BYTES], point[CGROUP_PATH_BYTES];
	size_t skip;

	if (!own_path(controller, own, sizeof own) || !mounted(type, controller, root, point, sizeof own))
		return false;
	skip = strcmp(root, "/") == 0
		? 0
		: strlen(root); /* a part of the hierarchy: our path counts from there */
	if (strncmp(own, root, skip) != 0)
		return false;
	int len = snprintf(path, CGROUP_PATH_BYTES, "%s%s", point, strcmp(own, "/") == 0 ? "" : own + skip);
	return len > 0 && len < CGROUP_PATH_BYTES;
}

/* May we make a leaf there, and move our children from here into it? */
static bool usable(const char *place)
{
	char path[CGROUP_PATH_BYTES], procs[CGROUP_PATH_BYTES + 16], run[32];
	int fd;

	snprintf(procs, sizeof procs, "%s/cgroup.procs", place);
	snprintf(run, sizeof run, "probe-%d", (int)getpid());
	if (access(procs, W_OK) < 0 || cgroup_make(place, run, path, &fd) < 0)
		return false;
	close(fd);
	return cgroup_remove(path) == 0;
}

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

enum cgroup_kind cgroup_find(char path[CGROUP_PATH_BYTES])
{
	if (own_directory("cgroup2", "", path) && usable(path))
		return CGROUP_V2;
	if (own_directory("cgroup", "freezer", path) && usable(path))
		return CGROUP_V1;
	path[0] = 0;
	return CGROUP_NONE;
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

static int write_file(int dir, const char *name, const char *text)
{
	cleanup(close_at) int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return -errno;
	return 0;
}

static bool file_has(int dir, const char *name, const char *word)
{
	cleanup(close_at) int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	char text[512];
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

	if (got < 0)
		return false;
	text[got] = 0;
	return strstr(text, word) != NULL;
}

int cgroup_enter(int fd)
{
	return write_file(fd, "cgroup.procs", "0");
}

/* Freezing takes effect when every task has noticed; one that is stuck in the kernel is not waited for. */
static void freeze(int fd)
{
	bool second = write_file(fd, "cgroup.freeze", "1") == 0;

	if (!second && write_file(fd, "freezer.state", "FROZEN") < 0)
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
	if (write_file(fd, "cgroup.freeze", "0") < 0)
		write_file(fd, "freezer.state", "THAWED");
}

/* Is this process, which a pidfd holds, in the leaf of that name? */
static bool is_member(pid_t pid, const char *leaf)
{
	cleanup(close_at) int dir = -1;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d", (int)pid);
	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return dir >= 0 && file_has(dir, "cgroup", leaf);
}

static uint32_t signal_members(int fd, const char *leaf, int signal)
{
	cleanup(close_at) int procs = openat(fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	uint32_t reached = 0;
	char line[32];
	size_t len = 0;
	char byte;

	/* By the byte: the list is short, and a pid must not be cut in two. */
	while (procs >= 0 && read(procs, &byte, 1) == 1) {
		if (byte != '\n') {
			if (len < sizeof line - 1)
				line[len++] = byte;
			continue;
		}
		line[len] = 0;
		len = 0;
		pid_t pid = (pid_t)strtol(line, NULL, 10);
		cleanup(close_at) int pidfd = pidfd_open_of(pid);
		if (pidfd >= 0 && is_member(pid, leaf))
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
	if (reached == 0 || write_file(fd, "cgroup.kill", "1") == 0)
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
