#include "exec/above.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/take.h"

static bool is_at(struct place place, const struct stat *stat)
{
	return place.dev == stat->st_dev && place.ino == stat->st_ino;
}

int above_find(int fd, struct place ret_above[ABOVE_MAX])
{
	struct stat stat;
	int count = 0;

	cleanup(close_at) int at = openat(fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (;;) {
		if (at < 0 || fstat(at, &stat) < 0)
			return -errno;
		if (count && is_at(ret_above[count - 1], &stat))
			return count; /* the root is its own parent */
		if (count == ABOVE_MAX)
			return -ENAMETOOLONG;
		ret_above[count++] = (struct place){stat.st_dev, stat.st_ino};
		int parent = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(at);
		at = parent;
	}
}

int above_find_path(const char *path, struct place ret_above[ABOVE_MAX])
{
	cleanup(close_at) int fd = path ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	if (!path)
		return 0;
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	return above_find(fd, ret_above);
}

int above_index(const struct place *above, int count, int fd)
{
	struct stat stat;

	if (fstat(fd, &stat) < 0)
		return -1;
	for (int i = 0; i < count; i++)
		if (is_at(above[i], &stat))
			return i;
	return -1;
}
