/* Which repository a directory is in. */
#include "worktree/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/complain.h"
#include "base/take.h"
#include "exec/request/ancestors.h"
#include "exec/workdir.h"

enum { CONFIG_BYTES_MAX = 64 << 10 };

/* The text of a file of one line, after `before`; false: it is no such file. */
bool worktree_read_word(const char *path, const char *before, char *out, size_t room)
{
	cleanup(close_at) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[PATH_MAX + 32];
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	size_t skip = strlen(before);

	if (got <= (ssize_t)skip || strncmp(text, before, skip) != 0)
		return false;
	text[got] = 0;
	text[strcspn(text, "\n")] = 0;
	return (size_t)snprintf(out, room, "%s", text + skip) < room && out[0];
}

bool worktree_resolve(const char *dir, const char *name, char out[WORKTREE_PATH_BYTES])
{
	char path[2 * PATH_MAX], real[PATH_MAX];

	snprintf(path, sizeof path, "%s%s%s", name[0] == '/' ? "" : dir, name[0] == '/' ? "" : "/", name);
	return realpath(path, real) &&
		(size_t)snprintf(out, WORKTREE_PATH_BYTES, "%s", real) < WORKTREE_PATH_BYTES;
}

/* The value of core.worktree in one file of a configuration; as git writes it, which is one line. */
static bool read_named_tree(const char *path, char *out, size_t room)
{
	cleanup(close_at) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[CONFIG_BYTES_MAX + 1], value[PATH_MAX], *rest = text, *line;
	ssize_t got = fd < 0 ? -1 : read(fd, text, CONFIG_BYTES_MAX);
	bool core = false, found = false;

	text[got > 0 ? got : 0] = 0;
	while ((line = strsep(&rest, "\n"))) {
		line += strspn(line, " \t");
		if (line[0] == '[')
			core = strncasecmp(line, "[core]", 6) == 0;
		else if (core &&
			(sscanf(line, "worktree = \"%4000[^\"]", value) == 1 ||
				sscanf(line, "worktree = %4000[^\"]", value) == 1))
			found = true;
	}
	return found && (size_t)snprintf(out, room, "%s", value) < room;
}

/* Does the repository at `git` say itself that `top` is its tree? What lies in a tree a task can write, and it could say there that it is
 * somebody else's. One that lies in the tree is not. */
static bool is_tree_of(const char *git, const char *top)
{
	static const char *const files[] = {"config", "config.worktree"};
	char path[WORKTREE_PATH_BYTES + 32], word[PATH_MAX], tree[WORKTREE_PATH_BYTES];
	size_t len = strlen(top);

	if (strncmp(git, top, len) == 0 && git[len] == '/')
		return true;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		snprintf(path, sizeof path, "%s/%s", git, files[i]);
		if (read_named_tree(path, word, sizeof word) && worktree_resolve(git, word, tree) &&
			strcmp(tree, top) == 0)
			return true;
	}
	return false;
}

/* The same of one that has several: it keeps a directory for each, `git`, and that says where the tree is. */
static bool is_one_of(const char *common, const char *git, const char *top)
{
	char path[WORKTREE_PATH_BYTES + 32], word[PATH_MAX], file[WORKTREE_PATH_BYTES];
	size_t len = strlen(common), top_len = strlen(top);

	snprintf(path, sizeof path, "%s/gitdir", git);
	return strncmp(git, common, len) == 0 && strncmp(git + len, "/worktrees/", 11) == 0 &&
		!strchr(git + len + 11, '/') && worktree_read_word(path, "", word, sizeof word) &&
		worktree_resolve(git, word, file) && strncmp(file, top, top_len) == 0 &&
		strcmp(file + top_len, "/.git") == 0;
}

/* The git directory of the tree at `top` that several trees share: .git, or the directory that .git points to. False: not a
 * repository. `ret_others`: that directory does not know of this tree. */
static bool find_common(const char *top, char common[WORKTREE_PATH_BYTES], bool *ret_others)
{
	char at[PATH_MAX + 32], word[PATH_MAX], git[WORKTREE_PATH_BYTES];
	struct stat stat_;

	*ret_others = false;
	snprintf(at, sizeof at, "%s/.git", top);
	if (lstat(at, &stat_) < 0)
		return false;
	if (S_ISDIR(stat_.st_mode))
		return worktree_resolve(top, ".git", common);
	if (!S_ISREG(stat_.st_mode) || !worktree_read_word(at, "gitdir: ", word, sizeof word) ||
		!worktree_resolve(top, word, git))
		return false;
	snprintf(at, sizeof at, "%s/commondir", git);
	if (!worktree_read_word(at, "", word, sizeof word)) {
		memcpy(common, git, WORKTREE_PATH_BYTES);
		*ret_others = !is_tree_of(git, top);
		return true;
	}
	bool found = worktree_resolve(git, word, common);
	*ret_others = found && !is_one_of(common, git, top);
	return found;
}

static bool is_in_roots(const char *const *roots, size_t root_count, const char *path)
{
	char reason[WORKDIR_REASON_BYTES], real[PATH_MAX];
	const char *resolved_roots[WORKDIR_ROOTS_MAX];
	static char names[WORKDIR_ROOTS_MAX][PATH_MAX];
	int fd = -1;

	for (size_t i = 0; i < root_count && i < WORKDIR_ROOTS_MAX; i++)
		resolved_roots[i] = realpath(roots[i], real) ? strcpy(names[i], real) : roots[i];
	if (workdir_open(resolved_roots, root_count, path, &fd, reason) < 0)
		return false;
	close(fd);
	return true;
}

/* The repository itself, not a tree of it: as git tells one. */
static bool is_bare(const char *path)
{
	static const char *const parts[] = {"HEAD", "objects", "refs"};
	char part[WORKTREE_PATH_BYTES + 16];

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		snprintf(part, sizeof part, "%s/%s", path, parts[i]);
		if (access(part, F_OK) < 0)
			return false;
	}
	return true;
}

/* What a repository would have to be for a task to be held to its own branches. NULL: it is. */
static const char *unfit(const char *common)
{
	char path[WORKTREE_PATH_BYTES + 16];

	snprintf(path, sizeof path, "%s/reftable", common);
	if (access(path, F_OK) == 0)
		return "keeps all of its refs in one place (reftable), where a task cannot be held to its own branches";
	return NULL;
}

int worktree_find(const char *const *roots, size_t root_count, const char *home, const char *path,
	char ret_top[WORKTREE_PATH_BYTES], char ret_common[WORKTREE_PATH_BYTES], const char **ret_rest,
	char reason[WORKTREE_REASON_BYTES])
{
	char top[WORKTREE_PATH_BYTES];
	size_t len = (size_t)snprintf(top, sizeof top, "%s", path);
	bool others = false;

	if (len >= sizeof top)
		return -ENAMETOOLONG;
	while (len > 1 && !find_common(top, ret_common, &others)) {
		while (len > 1 && top[len - 1] != '/')
			len--;
		top[len > 1 ? --len : len] = 0;
	}
	if (is_bare(path))
		return complain(reason, WORKTREE_REASON_BYTES, -ENOENT,
			"work dir '%.300s' is a bare repository, which has no files: name a work tree of it",
			path);
	if (len <= 1 || !is_in_roots(roots, root_count, top))
		return complain(reason, WORKTREE_REASON_BYTES, -ENOENT,
			"work dir '%.300s' is in no git repository beneath a root, and its executor makes a work tree for each "
			"task; payload {\"worktree\": false} works in it as it is",
			path);
	if (!is_in_roots(roots, root_count, ret_common))
		return complain(reason, WORKTREE_REASON_BYTES, -EXDEV,
			"the repository of work dir '%.300s' lies outside of the roots", path);
	if (others)
		return complain(reason, WORKTREE_REASON_BYTES, -EXDEV,
			"work dir '%.200s' names the repository %.200s, which does not say that this is a tree of it; if it is: "
			"git --git-dir=%.200s config core.worktree %.200s",
			path, ret_common, ret_common, top);
	if (ancestors_compare(top, home) == LIES_BENEATH ||
		ancestors_compare(ret_common, home) == LIES_BENEATH)
		return complain(reason, WORKTREE_REASON_BYTES, -EXDEV,
			"work dir '%.300s' lies in the state directory, where the trees of other tasks are",
			path);
	if (unfit(ret_common))
		return complain(reason, WORKTREE_REASON_BYTES, -EOPNOTSUPP,
			"the repository of work dir '%.300s' %s; payload {\"worktree\": false} works in it as it is",
			path, unfit(ret_common));
	memcpy(ret_top, top, sizeof top);
	*ret_rest = path + len + (path[len] == '/');
	return 0;
}
