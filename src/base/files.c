#include "base/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/take.h"

int file_read(int dir_fd, const char *name, struct buf *out)
{
	char block[4096];
	ssize_t got;
	int r = 0;

	cleanup(close_at) int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (r == 0 && (got = read(fd, block, sizeof block)) != 0)
		r = got < 0 ? buf_fail(out, -errno) : buf_put(out, block, (size_t)got);
	return r;
}

int file_write_all(int fd, struct span text)
{
	while (text.len > 0) {
		ssize_t put = write(fd, text.data, text.len);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put < 0 ? -errno : -EIO;
		text.data += put;
		text.len -= (size_t)put;
	}
	return 0;
}

/* A new file under a name of its own, as ".NAME.new". */
static int write_fresh(int dir_fd, const char *fresh, struct span text, bool durable)
{
	cleanup(close_at) int fd =
		openat(dir_fd, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	int r = file_write_all(fd, text);
	if (r == 0 && durable && fsync(fd) < 0)
		r = -errno;
	return r;
}

/* Under every name, or under none. */
static int name_fresh(int dir_fd, const char *fresh, const char *const *names, size_t count)
{
	size_t linked = 0;

	while (linked < count - 1 && linkat(dir_fd, fresh, dir_fd, names[linked], 0) == 0)
		linked++;
	if (linked == count - 1 && renameat(dir_fd, fresh, dir_fd, names[linked]) == 0)
		return 0;
	int r = -errno;
	while (linked > 0)
		unlinkat(dir_fd, names[--linked], 0);
	return r;
}

int file_write_as(int dir_fd, const char *const *names, size_t count, struct span text, bool durable)
{
	char fresh[300];

	if ((size_t)snprintf(fresh, sizeof fresh, ".%s.new", names[0]) >= sizeof fresh)
		return -ENAMETOOLONG;
	int r = write_fresh(dir_fd, fresh, text, durable);
	if (r == 0)
		r = name_fresh(dir_fd, fresh, names, count);
	if (r < 0) {
		unlinkat(dir_fd, fresh, 0);
		return r;
	}
	return durable && fsync(dir_fd) < 0 ? -errno : 0;
}

int file_write(int dir_fd, const char *name, struct span text, bool durable)
{
	return file_write_as(dir_fd, &name, 1, text, durable);
}

/* The names in the directory; for closedir(). NULL: errno says why. */
static DIR *open_names(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (!dir)
		close_at(&fd);
	return dir;
}

void file_tidy(int dir_fd)
{
	DIR *dir = open_names(dir_fd);
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		const char *end = strrchr(entry->d_name, '.');
		if (entry->d_name[0] == '.' && strcmp(end, ".new") == 0)
			unlinkat(dir_fd, entry->d_name, 0);
	}
	closedir(dir);
}

int file_each(int dir_fd, unsigned most, int (*each)(void *context, const char *name), void *context)
{
	DIR *dir = open_names(dir_fd);
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return -errno;
	while (r == 0 && most > 0 && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		r = each(context, entry->d_name);
		most--;
	}
	closedir(dir);
	return r;
}

int directory_make(const char *path)
{
	char part[PATH_MAX];

	if ((size_t)snprintf(part, sizeof part, "%s", path) >= sizeof part)
		return -ENAMETOOLONG;
	for (char *slash = part + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = 0;
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return -errno;
	}
	return mkdir(part, 0700) < 0 && errno != EEXIST ? -errno : 0;
}
