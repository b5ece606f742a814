#include "agent/session/changes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/take.h"
#include "wire/json/json.h"

enum { DEPTH_MAX = 64, PATH_BYTES = 4096 };

struct walk {
	int64_t since_ns;
	uint32_t looked;
	struct changes *changes;
	struct buf *list;
	char path[PATH_BYTES];
};

static int64_t ns_of(struct timespec time)
{
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t changes_mark_ns(const char *dir)
{
	struct timespec now;

	(void)dir;
	/* the clock that file systems stamp with is coarse and never ahead of this one */
	return clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0 ? ns_of(now) : 0;
}

static void note(struct walk *walk, bool is_file)
{
	walk->changes->something = true;
	if (!is_file)
		return;
	if (walk->changes->files++ < CHANGES_LISTED_MAX) {
		if (walk->changes->files > 1)
			buf_put_byte(walk->list, ',');
		json_put_string(walk->list, span_of(walk->path));
	}
}

static void look_in(struct walk *walk, int dir_fd, size_t len, int depth);

static void look_at(struct walk *walk, int dir_fd, const char *name, size_t len, int depth)
{
	struct stat stat_;
	int written = snprintf(walk->path + len, sizeof walk->path - len, "%s%s", len > 0 ? "/" : "", name);

	if (written < 0 || len + (size_t)written >= sizeof walk->path ||
		fstatat(dir_fd, name, &stat_, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	bool is_dir = S_ISDIR(stat_.st_mode);
	if (ns_of(stat_.st_ctim) >= walk->since_ns)
		note(walk, !is_dir);
	if (!is_dir || depth == DEPTH_MAX)
		return;
	int inner_fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (inner_fd >= 0)
		look_in(walk, inner_fd, len + (size_t)written, depth + 1);
}

/* Closes the descriptor. */
static void look_in(struct walk *walk, int dir_fd, size_t len, int depth)
{
	DIR *dir = fdopendir(dir_fd);
	struct dirent *entry;

	if (!dir) {
		close(dir_fd);
		return;
	}
	while ((entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
			strcmp(entry->d_name, ".git") == 0)
			continue;
		if (walk->looked++ >= CHANGES_LOOKED_MAX) {
			walk->changes->incomplete = true;
			break;
		}
		look_at(walk, dirfd(dir), entry->d_name, len, depth);
	}
	closedir(dir);
}

/* The log of HEAD grows with each commit in the tree. */
static bool has_committed(const char *git, int64_t since_ns)
{
	char path[PATH_BYTES];
	struct stat stat_;

	return snprintf(path, sizeof path, "%s/logs/HEAD", git) < (int)sizeof path &&
		stat(path, &stat_) == 0 && ns_of(stat_.st_mtim) >= since_ns;
}

int changes_look(
	const char *dir, const char *git, int64_t since_ns, struct changes *ret_changes, struct buf *list)
{
	struct walk walk = {.since_ns = since_ns, .changes = ret_changes, .list = list};
	int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	*ret_changes = (struct changes){0};
	if (dir_fd < 0)
		return -errno;
	buf_put_byte(list, '[');
	look_in(&walk, dir_fd, 0, 0);
	buf_put_byte(list, ']');
	ret_changes->something |= git && has_committed(git, since_ns);
	return buf_fault(list);
}
