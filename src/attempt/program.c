#include "attempt/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/take.h"
#include "exec/request/ancestors.h"

enum { FIRST_LINE_BYTES = 256 };

/* Is the directory of the file one of PATH? */
static bool is_in_path(const char *path, const char *file)
{
	size_t len = (size_t)(strrchr(file, '/') - file);

	while (path && *path) {
		size_t dir = strcspn(path, ":");
		if (dir == len && strncmp(path, file, len) == 0)
			return true;
		path += dir + (path[dir] == ':');
	}
	return false;
}

const char *program_find(const struct program_place *place, struct arena *arena, const char *name, bool own)
{
	char file[SEARCH_PATH_BYTES];

	if (strchr(name, '/'))
		return name[0] == '/' && (own || is_in_path(place->path, name)) ? name : NULL;
	return search_program(place->path, name, file) == 0 ? arena_text(arena, "%s", file) : NULL;
}

/* ---- what it needs ------------------------------------------------------------------------------------------------ */

bool program_is_of_system(const char *path)
{
	for (size_t i = 0; i < grants_system_count; i++)
		if (grants_system[i].access == GRANT_READ && path_lies_in(path, grants_system[i].path))
			return true;
	return false;
}

static bool is_within(const char *path, const struct grant *grants, size_t count)
{
	char real[ANCESTORS_NAME_BYTES];

	if (program_is_of_system(path))
		return true;
	for (size_t i = 0; i < count; i++)
		if (grants[i].path && ancestors_real_name(path, real) && path_lies_in(real, grants[i].path))
			return true;
	return false;
}

const char *program_within(
	struct arena *arena, const char *path, const char *name, const struct grant *grants, size_t count)
{
	char file[SEARCH_PATH_BYTES];

	while (path && *path) {
		size_t len = strcspn(path, ":");
		const char *dir = arena_text(arena, "%.*s", (int)len, path);
		if (search_program(dir, name, file) == 0 && is_within(file, grants, count))
			return arena_text(arena, "%s", file);
		path += len + (path[len] == ':');
	}
	return NULL;
}

static const char *parent_of(struct arena *arena, const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == path ? "/" : arena_text(arena, "%.*s", (int)(slash - path), path);
}

/* P of P/bin/x; NULL: it has none, or P is too much. */
static const char *install_tree(const struct program_place *place, struct arena *arena, const char *file)
{
	static const char *const names[] = {"bin", "sbin", "shims", "libexec", ".bin"};
	const char *dir = parent_of(arena, file), *name = strrchr(dir, '/');
	bool known = false;

	for (size_t i = 0; i < sizeof names / sizeof *names && name; i++)
		known |= strcmp(name + 1, names[i]) == 0;
	const char *tree = known ? parent_of(arena, dir) : NULL;
	if (!tree || strrchr(tree, '/') == tree || !person_home_allows(place->home, tree))
		return NULL; /* a directory of the root holds more than one thing */
	const char *local = place->home->path ? arena_text(arena, "%s/.local", place->home->path) : NULL;
	return local && strcmp(tree, local) == 0 ? NULL : tree;
}

static bool is_link(const char *file)
{
	struct stat stat_;

	return lstat(file, &stat_) == 0 && S_ISLNK(stat_.st_mode);
}

/* `file` has no link in its directory. Alone a link is no file that could be granted; what it leads to comes next. */
static void grant_install(
	const struct program_place *place, struct arena *arena, const char *file, struct grant_list *list)
{
	const char *tree = install_tree(place, arena, file);

	if (!tree && person_home_allows(place->home, file) && !is_link(file))
		tree = file;
	if (tree && !program_is_of_system(tree))
		grants_add_direct(list, tree, GRANT_READ);
}

/* The interpreter that the first line names; "env" stands for its argument, looked up. NULL: there is no such line. */
static const char *interpreter_of(const struct program_place *place, struct arena *arena, const char *file)
{
	cleanup(close_at) int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char line[FIRST_LINE_BYTES + 1], found[SEARCH_PATH_BYTES], *rest = NULL;
	struct stat stat_;

	if (fd < 0 || fstat(fd, &stat_) < 0 || !S_ISREG(stat_.st_mode))
		return NULL;
	ssize_t len = read(fd, line, FIRST_LINE_BYTES);
	if (len < 3 || line[0] != '#' || line[1] != '!')
		return NULL;
	line[len] = 0;
	line[strcspn(line, "\n")] = 0;
	const char *program = strtok_r(line + 2, " \t\r", &rest), *name = program;
	if (!program || program[0] != '/')
		return NULL;
	if (strcmp(strrchr(program, '/'), "/env") == 0)
		while ((name = strtok_r(NULL, " \t\r", &rest)) && (name[0] == '-' || strchr(name, '=')))
			;
	if (!name || name[0] == '/')
		return name ? arena_text(arena, "%s", name) : NULL;
	return !strchr(name, '/') && search_program(place->path, name, found) == 0
		? arena_text(arena, "%s", found)
		: NULL;
}

/* What the file leads to: where it links to, or its interpreter. `file` has no link in its directory. */
static const char *next_of(const struct program_place *place, struct arena *arena, const char *file)
{
	char target[PATH_MAX];
	ssize_t len = readlink(file, target, sizeof target - 1);

	if (len < 0)
		return interpreter_of(place, arena, file);
	target[len] = 0;
	return target[0] == '/' ? arena_text(arena, "%s", target)
				: arena_text(arena, "%s/%s", parent_of(arena, file), target);
}

/* Without links in its directory. NULL: there is no such directory. */
static const char *real_place(struct arena *arena, const char *file, char dir[ANCESTORS_NAME_BYTES])
{
	const char *name = strrchr(file, '/') + 1;

	if (!realpath(parent_of(arena, file), dir))
		return NULL;
	return arena_text(arena, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, name);
}

const char *program_behind_wall(const struct program_place *place, struct arena *arena, const char *file)
{
	char dir[ANCESTORS_NAME_BYTES];
	const char *at = file;

	for (int i = 0; i < PROGRAM_STEPS_MAX && at && at[0] == '/'; i++) {
		at = real_place(arena, at, dir);
		if (!at || !at[0])
			return file;
		if (!is_link(at) || install_tree(place, arena, at) || program_is_of_system(at))
			return at;
		at = place->is_writable(place->context, dir) ? NULL : next_of(place, arena, at);
	}
	return file;
}

void program_grant(
	const struct program_place *place, struct arena *arena, const char *file, struct grant_list *list)
{
	char dir[ANCESTORS_NAME_BYTES];

	for (int i = 0; i < PROGRAM_STEPS_MAX && file && file[0] == '/'; i++) {
		file = real_place(arena, file, dir);
		if (!file)
			return;
		if (file[0])
			grant_install(place, arena, file, list);
		if (!file[0] || place->is_writable(place->context, dir))
			return;
		file = next_of(place, arena, file);
	}
}
