/*
 * Rejected: realpath() and a comparison of names. Between the look and the use the task before could put a link there.
 * openat2() resolves beneath the root in one step inside the kernel, and what it found is held, not named.
 */
#include "exec/workdir.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/complain.h"
#include "base/take.h"

enum { RACES_MAX = 16 }; /* a rename beside us makes the kernel unsure about ".." */

/* What is left of an absolute path after the root, "." if it is the root; NULL if it does not begin with it. Slashes at
 * the end and doubled ones count as one. */
static const char *beneath(const char *root, const char *path)
{
	while (*root) {
		if (*root == '/') {
			root += strspn(root, "/");
			if (*root == 0)
				break;
			if (*path != '/')
				return NULL;
			path += strspn(path, "/");
			continue;
		}
		if (*root++ != *path++)
			return NULL;
	}
	if (*path && *path != '/')
		return NULL;
	path += strspn(path, "/");
	return *path ? path : ".";
}

static int open_beneath(const char *root, const char *rest)
{
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd = -1;

	cleanup(close_at) int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return -errno;
	for (int race = 0; race < RACES_MAX; race++) {
		fd = syscall(SYS_openat2, root_fd, rest, &how, sizeof how);
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	return fd < 0 ? -errno : (int)fd;
}

/* Not a byte or not a file more: whatever works there would fail in a way that says less. One that is only for
 * reading is as full as it shall be. */
static bool is_full(int fd)
{
	struct statvfs disk;

	if (fstatvfs(fd, &disk) < 0 || disk.f_flag & ST_RDONLY || disk.f_blocks == 0)
		return false;
	bool root = geteuid() == 0;
	return (root ? disk.f_bfree : disk.f_bavail) == 0 ||
		(disk.f_files > 0 && (root ? disk.f_ffree : disk.f_favail) == 0);
}

static int explain(int fault, const char *path, char *reason)
{
	static const struct {
		int fault;
		const char *text;
	} known[] = {
		{-ENOENT, "does not exist"},
		{-ENOTDIR, "is not a directory"},
		{-ELOOP, "leads through a symbolic link"},
		{-EXDEV, "leads out of its root"},
		{-ENOSPC, "is on a disk that is full"},
		{-EACCES, "may not be entered"},
	};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].fault == fault)
			return complain(
				reason, WORKDIR_REASON_BYTES, fault, "work dir '%s' %s", path, known[i].text);
	return complain(reason, WORKDIR_REASON_BYTES, fault, "work dir '%s': %s", path, strerror(-fault));
}

int workdir_open(const char *const *roots, size_t root_count, const char *path, int *ret_fd,
	char reason[WORKDIR_REASON_BYTES])
{
	int fault = -EXDEV, fd;

	if (!path[0])
		return complain(reason, WORKDIR_REASON_BYTES, -EINVAL, "the work dir is empty text");
	for (size_t i = 0; i < root_count && i < WORKDIR_ROOTS_MAX; i++) {
		const char *rest = path[0] == '/' ? beneath(roots[i], path) : path;
		if (!rest)
			continue;
		fd = open_beneath(roots[i], rest);
		if (fd >= 0 && is_full(fd)) {
			close(fd);
			return explain(-ENOSPC, path, reason);
		}
		if (fd >= 0) {
			*ret_fd = fd;
			return 0;
		}
		/* The root that knows most about it tells: a later one may have it, or may only not know the name. */
		if (fault == -EXDEV || fault == -ENOENT)
			fault = explain(fd, path, reason);
	}
	if (fault != -EXDEV)
		return fault;
	if (root_count == 0)
		return complain(
			reason, WORKDIR_REASON_BYTES, fault, "work dir '%s': this worker has no roots", path);
	return path[0] == '/' ? complain(reason, WORKDIR_REASON_BYTES, fault,
					"work dir '%s' is not beneath a root of this worker", path)
			      : explain(fault, path, reason);
}
