/*
 * What is removed here was written by strangers who may still be at it. So: every step by name from an open directory,
 * never through a link, never deeper or longer than the limits; a directory that we may not read is opened up first.
 */
#include "exec/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/take.h"

enum {
	RUNDIR_DEPTH_MAX = 64, /* a descriptor and a list for each */
	RUNDIR_LIST_BYTES = 4096,
	RUNDIR_NAME_MAX = 128,
	RUNDIR_NAMES_TRIED = 1000,
	RUNDIR_PASSES_MAX = 1000,
};

static bool name_is_good(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len <= RUNDIR_NAME_MAX && name[0] != '.' && !strchr(name, '/');
}

/* ext4 does not give out an inode again for a minute after it was freed, and looks at each such inode of a block group when it
 * makes a file there: where hundreds of directories come and go every second that takes longer than all the rest. As the
 * children of a top directory they are spread over all groups. Elsewhere it is refused, and not needed. */
void rundir_spread(int runs_fd)
{
	int flags;

	if (ioctl(runs_fd, FS_IOC_GETFLAGS, &flags) < 0 || flags & FS_TOPDIR_FL)
		return;
	flags |= FS_TOPDIR_FL;
	if (ioctl(runs_fd, FS_IOC_SETFLAGS, &flags) < 0)
		return;
}

int rundir_make(int runs_fd, const char *name, int *ret_fd)
{
	static const char *const parts[] = {"home", "tmp"};
	int fault = 0;

	if (!name_is_good(name))
		return -EINVAL;
	if (mkdirat(runs_fd, name, 0700) < 0)
		return -errno;
	cleanup(close_at) int fd = openat(runs_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		fault = -errno;
	for (size_t i = 0; i < sizeof parts / sizeof *parts && !fault; i++)
		fault = mkdirat(fd, parts[i], 0700) < 0 ? -errno : 0;
	if (fault) {
		rundir_remove(runs_fd, name);
		return fault;
	}
	*ret_fd = take_fd(fd);
	return 0;
}

int rundir_put_secret(int run_fd, const char *name, struct span secret)
{
	int fault;

	if (!name_is_good(name))
		return -EINVAL;
	cleanup(close_at) int fd =
		openat(run_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	fault = file_write_all(fd, secret);
	if (fault)
		unlinkat(run_fd, name, 0);
	return fault;
}

/* One removal: what lies too deep is moved up to the top and removed from there, so that depth costs no descriptors. */
struct removal {
	int top;
	unsigned moved;
	unsigned left; /* that many entries more */
};

static int remove_entry(struct removal *removal, int dir, const char *name, bool is_directory, int depth);

/* By the system call itself: readdir() takes three calls more for each directory. */
static int remove_entries(struct removal *removal, int dir, int depth)
{
	char list[RUNDIR_LIST_BYTES] __attribute__((aligned(8)));
	ssize_t got;

	while ((got = getdents64(dir, list, sizeof list)) > 0)
		for (ssize_t at = 0; at < got;) {
			const struct dirent64 *entry = (const struct dirent64 *)(list + at);
			at += entry->d_reclen;
			if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
				continue;
			int fault =
				remove_entry(removal, dir, entry->d_name, entry->d_type == DT_DIR, depth + 1);
			if (fault)
				return fault;
		}
	return got < 0 ? -errno : 0;
}

/* Its owner may have taken the permission to read away. By descriptor, so that no link gets it instead; what else is needed to
 * remove from it the caller gives it. */
static int open_up(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char path[64];

	if (fd >= 0 || errno != EACCES)
		return fd < 0 ? -errno : fd;
	cleanup(close_at) int here = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (here < 0)
		return -errno;
	snprintf(path, sizeof path, "/proc/self/fd/%d", here);
	if (chmod(path, 0700) < 0)
		return -errno;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int move_up(struct removal *removal, int dir, const char *name)
{
	char up[32];

	for (int look = 0; look < RUNDIR_NAMES_TRIED; look++) {
		snprintf(up, sizeof up, "~%u", removal->moved++);
		if (renameat2(dir, name, removal->top, up, RENAME_NOREPLACE) == 0 || errno == ENOENT)
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
	return -ELOOP;
}

/* Most directories are empty when their turn comes: they go without a look. */
static int remove_entry(struct removal *removal, int dir, const char *name, bool is_directory, int depth)
{
	int fault;

	if (removal->left == 0)
		return -EAGAIN;
	removal->left--;
	if (is_directory && unlinkat(dir, name, AT_REMOVEDIR) == 0)
		return 0;
	if (!is_directory || (errno != ENOTEMPTY && errno != EEXIST)) { /* or it was one a moment ago */
		if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
			return 0;
		if (errno != EISDIR && errno != EPERM)
			return -errno;
	}
	cleanup(close_at) int fd = open_up(dir, name);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (depth > RUNDIR_DEPTH_MAX)
		return move_up(removal, dir, name);
	fchmod(fd, 0700);
	fault = remove_entries(removal, fd, depth);
	if (!fault && unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		fault = -errno;
	return fault;
}

/* Most attempts leave nothing: what every one has goes without a look into it. False: there is more, or something in them. */
static bool remove_usual(int top)
{
	static const char *const files[] = {"token", "stint.sock"}, *const dirs[] = {"home", "tmp", "work"};

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		if (unlinkat(top, files[i], 0) < 0 && errno != ENOENT)
			return false;
	}
	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
		if (unlinkat(top, dirs[i], AT_REMOVEDIR) < 0 && errno != ENOENT)
			return false;
	}
	return true;
}

int rundir_remove_some(int runs_fd, const char *name, unsigned entries_max)
{
	struct removal removal = {.left = entries_max};
	int fault = 0;

	if (!name_is_good(name))
		return -EINVAL;
	cleanup(close_at) int top = open_up(runs_fd, name);
	if (top < 0)
		return top == -ENOENT ? 0 : top;
	if (remove_usual(top) && unlinkat(runs_fd, name, AT_REMOVEDIR) == 0)
		return 0;
	fchmod(top, 0700);
	removal.top = top;
	for (int pass = 0; pass < RUNDIR_PASSES_MAX; pass++) {
		if (pass > 0)
			lseek(top, 0, SEEK_SET);
		fault = remove_entries(&removal, top, 0);
		if (fault && fault != -ENOTEMPTY)
			return fault;
		if (unlinkat(runs_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		if (errno != ENOTEMPTY && errno != EEXIST)
			return -errno;
	}
	return -ENOTEMPTY; /* somebody still adds to it */
}

int rundir_remove(int runs_fd, const char *name)
{
	return rundir_remove_some(runs_fd, name, UINT_MAX);
}
