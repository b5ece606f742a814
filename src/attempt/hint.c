#include "attempt/hint.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/request/ancestors.h"

/* ---- paths in words ----------------------------------------------------------------------------------------------- */

static bool has(struct span line, const char *words)
{
	size_t len = strlen(words);

	for (size_t i = 0; i + len <= line.len; i++)
		if (strncasecmp(line.data + i, words, len) == 0)
			return true;
	return false;
}

/* Behind a wall of mounts what is hidden does not exist. */
static bool tells_refusal(const struct hint_site *site, struct span line)
{
	return has(line, "permission denied") || has(line, "EACCES") ||
		(site->level == WALL_SANDBOX &&
			(has(line, "no such file or directory") || has(line, "ENOENT")));
}

static bool ends_path(struct span line, size_t at)
{
	char c = line.data[at], next = at + 1 < line.len ? line.data[at + 1] : ' ';

	return (unsigned char)c <= ' ' || strchr("'\"`();,<>|", c) ||
		(c == ':' && ((unsigned char)next <= ' ' || strchr("'\"`", next)));
}

/* The next absolute path in the line from *at on; false: there is none. */
static bool next_path(struct span line, size_t *at, char ret_path[PATH_MAX])
{
	for (size_t i = *at; i < line.len; i++) {
		bool begins = line.data[i] == '/' && (i == 0 || strchr(" \t'\"`(=:<", line.data[i - 1]));
		size_t end = i;
		while (begins && end < line.len && !ends_path(line, end))
			end++;
		while (end > i + 1 && strchr(".:/", line.data[end - 1]))
			end--;
		if (!begins || end - i < 2 || end - i >= PATH_MAX)
			continue;
		snprintf(ret_path, PATH_MAX, "%.*s", (int)(end - i), line.data + i);
		*at = end;
		return true;
	}
	return false;
}

/* ---- one path ------------------------------------------------------------------------------------------------------ */

/* What it could do there. */
static bool reaches(const struct hint_site *site, const char *path, bool to_write)
{
	if (site->workdir && site->workdir[0] && path_lies_in(path, site->workdir))
		return true;
	for (size_t i = 0; i < site->grant_count; i++) {
		const struct grant *grant = &site->grants[i];
		if (grant->path && path_lies_in(path, grant->path) &&
			(!to_write || grant->access != GRANT_READ))
			return true;
	}
	return false;
}

static bool is_of_system(const char *path)
{
	for (size_t i = 0; i < grants_system_count; i++)
		if (path_lies_in(path, grants_system[i].path))
			return true;
	return path_lies_in(path, "/dev") || path_lies_in(path, "/run");
}

/* Without links; of a file that is not there yet, its directory. False: neither is there. */
static bool real_of(const char *path, char ret_real[ANCESTORS_NAME_BYTES], bool *ret_exists)
{
	char dir[PATH_MAX];

	*ret_exists = realpath(path, ret_real) != NULL;
	if (*ret_exists)
		return true;
	snprintf(dir, sizeof dir, "%s", path);
	char *slash = strrchr(dir, '/');
	if (!slash || slash == dir)
		return false;
	*slash = 0;
	return realpath(dir, ret_real) != NULL;
}

static bool may_be_told(const struct person_home *home, const char *path)
{
	enum home_kind kind = person_home_kind(home, path);

	return kind == HOME_OUTSIDE || kind == HOME_OPEN || kind == HOME_TOOLCHAIN;
}

/* What to grant so that the path can be reached: its toolchain, its directory, or itself. NULL: nothing should be. */
static const char *grant_for(const struct hint_site *site, struct arena *arena, const char *path)
{
	const char *tree = person_home_toolchain(site->home, arena, path);
	struct stat stat_;

	if (!may_be_told(site->home, path) || stat(path, &stat_) < 0)
		return NULL;
	if (tree && may_be_told(site->home, tree))
		return tree;
	if (S_ISDIR(stat_.st_mode))
		return strrchr(path, '/') == path ? NULL : path; /* not a whole directory of the root */
	const char *slash = strrchr(path, '/');
	const char *dir = arena_text(arena, "%.*s", (int)(slash - path), path);
	return dir[0] && strrchr(dir, '/') != dir && may_be_told(site->home, dir) ? dir : path;
}

/* The words of the configuration that grant it. */
static const char *line_for(
	const struct hint_site *site, struct arena *arena, const char *tree, bool to_write)
{
	if (site->configured)
		return arena_text(arena, "grant it with \"%s\" of executors.%s in %s",
			to_write ? "write" : "read", site->executor, site->file);
	return arena_text(arena,
		"to grant it, put \"executors\": {\"%s\": {\"kind\": \"command\", \"argv\": \"payload\", \"read\": "
		"[\"home\"%s%s\"]}} into %s",
		site->executor, to_write ? "], \"write\": [\"" : ", \"", tree, site->file);
}

static const char *make_hint(const struct hint_site *site, struct arena *arena, const char *spoken,
	const char *tree, bool to_write)
{
	const char *hint = arena_text(arena, "%s%ssolation %s %s; %s, and restart the worker",
		spoken ? arena_text(arena, "It says that %s was refused: ", spoken) : "", spoken ? "i" : "I",
		to_write ? "lets it read and not change" : "hides", tree,
		line_for(site, arena, tree, to_write));

	return hint[0] && strlen(hint) <= HINT_BYTES_MAX ? hint : NULL;
}

/* `line`: in which the program named the path itself. */
static const char *judge(
	const struct hint_site *site, struct arena *arena, const char *path, struct span line)
{
	char real[ANCESTORS_NAME_BYTES];
	bool exists;

	if (!real_of(path, real, &exists) || is_of_system(real) || access(real, exists ? R_OK : W_OK) != 0)
		return NULL; /* who may do what with it is not ours to say */
	bool to_write = reaches(site, real, false);
	bool wants_write = !exists || has(line, "cannot") || has(line, "write") || has(line, "create");
	if (to_write && (!wants_write || reaches(site, real, true) || access(real, W_OK) != 0))
		return NULL;
	const char *tree = grant_for(site, arena, real);
	if (!tree || (to_write && person_home_kind(site->home, tree) == HOME_TOOLCHAIN))
		return NULL;
	return make_hint(site, arena, line.len > 0 ? path : NULL, tree, to_write);
}

/* ---- all of it ------------------------------------------------------------------------------------------------------ */

const char *hint_from_words(const struct hint_site *site, struct arena *arena, struct span words)
{
	const char *hint = NULL;
	char path[PATH_MAX];
	int paths = 0;

	for (int i = 0; i < HINT_LINES_MAX && words.len > 0 && !hint; i++) { /* the last line first */
		const char *newline = memrchr(words.data, '\n', words.len);
		size_t begin = newline ? (size_t)(newline + 1 - words.data) : 0, at = 0;
		struct span line = {words.data + begin, words.len - begin};
		words.len = newline ? begin - 1 : 0;
		while (!hint && tells_refusal(site, line) && paths++ < HINT_PATHS_MAX &&
			next_path(line, &at, path))
			hint = judge(site, arena, path, line);
	}
	return hint;
}

const char *hint_from_program(const struct hint_site *site, struct arena *arena, const char *program)
{
	return program[0] == '/' ? judge(site, arena, program, (struct span){0}) : NULL;
}
