#include "exec/request/ancestors.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/take.h"

static bool is_same(struct place a, struct place b)
{
	return a.dev == b.dev && a.ino == b.ino;
}

struct place place_of(const struct stat *stat)
{
	return (struct place){stat->st_dev, stat->st_ino};
}

int ancestors_find(int fd, struct place ret_ancestors[ANCESTORS_MAX])
{
	return ancestors_until(fd, NULL, ret_ancestors);
}

int ancestors_until(int fd, const struct place *last, struct place ret_ancestors[ANCESTORS_MAX])
{
	char up[sizeof "/.." * (ANCESTORS_MAX + 1)] = "."; /* then "./..", "./../.." ... */
	struct stat stat;

	for (int count = 0; count < ANCESTORS_MAX; count++) {
		if (fstatat(fd, up, &stat, 0) < 0)
			return -errno;
		ret_ancestors[count] = place_of(&stat);
		if (count && is_same(ret_ancestors[count - 1], ret_ancestors[count]))
			return count; /* the root is its own parent */
		if (last && is_same(ret_ancestors[count], *last))
			return count + 1;
		memcpy(up + 1 + 3 * count, "/..", sizeof "/..");
	}
	return -ENAMETOOLONG;
}

int ancestors_find_path(const char *path, struct place ret_ancestors[ANCESTORS_MAX])
{
	cleanup(close_at) int fd = path ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	if (!path)
		return 0;
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	return ancestors_find(fd, ret_ancestors);
}

int ancestors_index_of(const struct place *ancestors, int count, struct place place)
{
	for (int i = 0; i < count; i++)
		if (is_same(ancestors[i], place))
			return i;
	return -1;
}

int ancestors_index(const struct place *ancestors, int count, int fd)
{
	struct stat stat;

	if (fstat(fd, &stat) < 0)
		return -1;
	return ancestors_index_of(ancestors, count, place_of(&stat));
}

/* The directory it is in, or itself if it is one. */
static int directory_of(int fd)
{
	char link[64], path[PATH_MAX];
	struct stat stat;

	if (fstat(fd, &stat) == 0 && S_ISDIR(stat.st_mode))
		return openat(fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t len = readlink(link, path, sizeof path - 1);
	path[len > 0 ? len : 0] = 0;
	char *slash = strrchr(path, '/');
	if (!slash)
		return -1; /* it has no name: a pipe, say */
	slash[slash == path] = 0;
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

bool ancestors_holds(const char *dir, int fd)
{
	cleanup(close_at) int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup(close_at) int at = dir_fd < 0 ? -1 : directory_of(fd);
	struct place ancestors[ANCESTORS_MAX];
	int count = at < 0 ? 0 : ancestors_find(at, ancestors);

	return ancestors_index(ancestors, count, dir_fd) >= 0;
}

/* From its end on, until there is something. */
bool ancestors_real_name(const char *path, char ret_real[ANCESTORS_NAME_BYTES])
{
	char head[PATH_MAX], rest[PATH_MAX] = "", longer[PATH_MAX];

	_Static_assert(ANCESTORS_NAME_BYTES >= PATH_MAX, "realpath() fits");
	if (path[0] != '/' || (size_t)snprintf(head, sizeof head, "%s", path) >= sizeof head)
		return false;
	while (!realpath(head, ret_real)) {
		char *slash = strrchr(head, '/');
		if ((size_t)snprintf(longer, sizeof longer, "%s%s", slash, rest) >= sizeof longer)
			return false;
		memcpy(rest, longer, sizeof rest);
		slash[slash == head] = 0;
	}
	size_t len = strcmp(ret_real, "/") == 0 && rest[0] ? 0 : strlen(ret_real);
	return (size_t)snprintf(ret_real + len, ANCESTORS_NAME_BYTES - len, "%s", rest) <
		ANCESTORS_NAME_BYTES - len;
}

bool path_lies_in(const char *path, const char *dir)
{
	size_t len = strcmp(dir, "/") == 0 ? 0 : strlen(dir);

	return strncmp(path, dir, len) == 0 && (path[len] == '/' || path[len] == 0);
}

enum lies ancestors_compare(const char *path, const char *dir)
{
	char real[ANCESTORS_NAME_BYTES], real_dir[ANCESTORS_NAME_BYTES];

	if (!ancestors_real_name(path, real) || !ancestors_real_name(dir, real_dir))
		return LIES_APART; /* too long for anybody to open */
	return path_lies_in(real_dir, real)    ? LIES_ABOVE
		: path_lies_in(real, real_dir) ? LIES_BENEATH
					       : LIES_APART;
}
