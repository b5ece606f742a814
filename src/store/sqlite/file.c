/*
 * Paths, files and directories, as far as SQLite does not handle them.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/take.h"
#include "store/sqlite/sqlite_backend.h"

enum {
	READ_AHEAD_BYTES_MAX = 1 << 30, /* a larger store would push itself out of memory again */
};

char *file_beside(const char *path, const char *suffix)
{
	char *beside;

	return asprintf(&beside, "%s%s", path, suffix) < 0 ? NULL : beside;
}

/* The directory part, with "." for none and "/" kept. */
static char *directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return strdup(".");
	return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

int file_resolve(const char *path, char **ret_path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	cleanup(free_at) char *directory = NULL;
	cleanup(free_at) char *real = NULL;

	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EISDIR;
	directory = directory_of(path);
	if (!directory)
		return -ENOMEM;
	real = realpath(directory, NULL);
	if (!real)
		return -errno;
	if (asprintf(ret_path, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name) < 0)
		return -ENOMEM;
	return 0;
}

int file_create(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

int file_check(const char *path)
{
	struct stat stat;

	if (lstat(path, &stat) < 0)
		return -errno;
	if (S_ISLNK(stat.st_mode))
		return -ELOOP;
	if (!S_ISREG(stat.st_mode))
		return -EINVAL;
	/* Root may open anyone's store; everyone else only what nobody else could have laid there. */
	if (geteuid() != 0 && stat.st_uid != geteuid())
		return -EPERM;
	return 0;
}

int file_read_ahead(const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0)
		posix_fadvise(fd, 0, READ_AHEAD_BYTES_MAX, POSIX_FADV_WILLNEED); /* advice: may fail */
	return fd;
}

int file_settle(const char *path)
{
	cleanup(close_at) int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fsync(fd) < 0)
		return -errno;
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	return 0;
}

static int sync_path(const char *path, int flags)
{
	cleanup(close_at) int fd = open(path, flags | O_CLOEXEC);

	if (fd < 0 || fsync(fd) < 0)
		return -errno;
	return 0;
}

int file_sync(const char *path)
{
	return sync_path(path, O_RDONLY | O_NOFOLLOW);
}

int file_sync_directory_of(const char *path)
{
	cleanup(free_at) char *directory = directory_of(path);

	return directory ? sync_path(directory, O_RDONLY | O_DIRECTORY) : -ENOMEM;
}

int file_remove(const char *path)
{
	return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

int64_t file_bytes(const char *path)
{
	struct stat stat;

	return lstat(path, &stat) < 0 ? -1 : (int64_t)stat.st_size;
}
