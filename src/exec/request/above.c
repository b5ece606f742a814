#include "exec/request/above.h"

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

int above_find(int fd, struct place ret_above[ABOVE_MAX])
{
	return above_until(fd, NULL, ret_above);
}

int above_until(int fd, const struct place *last, struct place ret_above[ABOVE_MAX])
{
	char up[sizeof "/.." * (ABOVE_MAX + 1)] = "."; /* then "./..", "./../.." ... */
	struct stat stat;

	for (int count = 0; count < ABOVE_MAX; count++) {
		if (fstatat(fd, up, &stat, 0) < 0)
			return -errno;
		ret_above[count] = place_of(&stat);
		if (count && is_same(ret_above[count - 1], ret_above[count]))
			return count; /* the root is its own parent */
		if (last && is_same(ret_above[count], *last))
			return count + 1;
		memcpy(up + 1 + 3 * count, "/..", sizeof "/..");
	}
	return -ENAMETOOLONG;
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

int above_index_of(const struct place *above, int count, struct place place)
{
	for (int i = 0; i < count; i++)
		if (is_same(above[i], place))
			return i;
	return -1;
}

int above_index(const struct place *above, int count, int fd)
{
	struct stat stat;

	if (fstat(fd, &stat) < 0)
		return -1;
	return above_index_of(above, count, place_of(&stat));
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

bool above_holds(const char *dir, int fd)
{
	cleanup(close_at) int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup(close_at) int at = dir_fd < 0 ? -1 : directory_of(fd);
	struct place above[ABOVE_MAX];
	int count = at < 0 ? 0 : above_find(at, above);

	return above_index(above, count, dir_fd) >= 0;
}

/* From its end on, until there is something. */
bool above_real_name(const char *path, char ret_real[ABOVE_NAME_BYTES])
{
	char head[PATH_MAX], rest[PATH_MAX] = "", longer[PATH_MAX];

	_Static_assert(ABOVE_NAME_BYTES >= PATH_MAX, "realpath() fits");
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
	return (size_t)snprintf(ret_real + len, ABOVE_NAME_BYTES - len, "%s", rest) < ABOVE_NAME_BYTES - len;
}

static bool begins_with_path(const char *path, const char *above)
{
	size_t len = strcmp(above, "/") == 0 ? 0 : strlen(above);

	return strncmp(path, above, len) == 0 && (path[len] == '/' || path[len] == 0);
}

enum lies above_compare(const char *path, const char *dir)
{
	char real[ABOVE_NAME_BYTES], real_dir[ABOVE_NAME_BYTES];

	if (!above_real_name(path, real) || !above_real_name(dir, real_dir))
		return LIES_APART; /* too long for anybody to open */
	return begins_with_path(real_dir, real)    ? LIES_ABOVE
		: begins_with_path(real, real_dir) ? LIES_BENEATH
						   : LIES_APART;
}
