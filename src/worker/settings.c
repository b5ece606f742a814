#include "worker/settings.h"

#include <ctype.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/above.h"
#include "exec/cgroup_place.h"

enum {
	NAME_BYTES_MAX = 128,
	GRACE_MS = 10 * 1000,
	SETUP_MS = 10 * 60 * 1000,
	WEIGHT_MAX = 1000,
	POOL_SIZE = 2,
	POOL_START_MS = 10 * 1000,
	POOL_SILENCE_MS = 30 * 1000,
	POOL_STALL_MS = 5 * 60 * 1000,
	POOL_GRACE_MS = 5 * 1000,
};

#define DAY_MS (INT64_C(24) * 3600 * 1000)

/* Where a complaint belongs, and how the thing is called. */
struct at {
	struct settings *settings;
	struct config_file *file;
	yyjson_val *key; /* of the member that is looked at */
	char name[300];  /* executors.tests.argv */
};

static struct at member_of(const struct at *outer, yyjson_val *key)
{
	struct at inner = {.settings = outer->settings, .file = outer->file, .key = key};

	snprintf(inner.name, sizeof inner.name, "%.150s.%.140s", outer->name, yyjson_get_str(key));
	return inner;
}

static void complain(const struct at *at, yyjson_val *value, const char *must_be)
{
	struct config_origin where = config_file_origin(at->file, at->key);
	char given[256];

	config_describe(value, given, sizeof given);
	config_note_problem(at->settings->config, where, "%s must be %s; it is %s", at->name, must_be, given);
}

static void complain_unknown(const struct at *at, const char *known)
{
	config_note_problem(at->settings->config, config_file_origin(at->file, at->key),
		"there is no key %s; here there may be %s", at->name, known);
}

bool settings_is_name(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len <= NAME_BYTES_MAX && isalnum((unsigned char)name[0]) &&
		name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:")] == 0;
}

/* ---- values ----------------------------------------------------------------------------------------------- */

/* A text without a NUL in it; NULL: it is none, or empty. */
static const char *text_of(yyjson_val *value)
{
	const char *text = yyjson_get_str(value);

	return text && text[0] && strlen(text) == yyjson_get_len(value) ? text : NULL;
}

static const char *keep(const struct at *at, const char *text)
{
	return config_keep(at->settings->config, text);
}

static int64_t take_number(const struct at *at, yyjson_val *value, int64_t least, int64_t most)
{
	char must_be[100];

	if (yyjson_is_int(value) && yyjson_get_sint(value) >= least && yyjson_get_sint(value) <= most &&
		!(yyjson_is_uint(value) && yyjson_get_uint(value) > INT64_MAX))
		return yyjson_get_sint(value);
	snprintf(must_be, sizeof must_be, "a whole number from %lld to %lld", (long long)least,
		(long long)most);
	complain(at, value, must_be);
	return least;
}

static const char **new_list(const struct at *at, size_t count)
{
	return arena_alloc(&at->settings->config->arena, (count + 1) * sizeof(char *));
}

/* Texts, each as `accepts` wants it; NULL at the end. NULL: it was complained about. */
static const char *const *take_texts(const struct at *at, yyjson_val *value, size_t least, size_t most,
	bool (*accepts)(const char *text), const char *must_be)
{
	size_t index, count = yyjson_arr_size(value);
	const char **list = yyjson_is_arr(value) ? new_list(at, count) : NULL;
	yyjson_val *item;

	if (!list || count < least || count > most) {
		complain(at, value, must_be);
		return NULL;
	}
	yyjson_arr_foreach(value, index, count, item)
	{
		const char *text = yyjson_is_str(item) && yyjson_get_len(item) == 0 ? "" : text_of(item);
		if (!text || !accepts(text)) {
			complain(at, text ? item : value, must_be);
			return NULL;
		}
		list[index] = keep(at, text);
	}
	return list;
}

static bool is_any(const char *text)
{
	(void)text;
	return true;
}

static bool is_variable(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

	return len > 0 && name[len] == 0 && !isdigit((unsigned char)name[0]) &&
		strncmp(name, "STINT_", 6) != 0;
}

static bool is_path(const char *text)
{
	return text[0] == '/' || (text[0] == '~' && text[1] == '/') || strcmp(text, "~") == 0;
}

/* A path of the configuration may begin at home; one of a task may not. */
static const char *expanded(const struct at *at, const char *path)
{
	const char *home = getenv("HOME");
	char full[4096];

	if (path[0] != '~')
		return path;
	if (!home || home[0] != '/' ||
		(size_t)snprintf(full, sizeof full, "%s%s", home, path + 1) >= sizeof full) {
		config_note_problem(at->settings->config, config_file_origin(at->file, at->key),
			"%s begins with ~, and $HOME does not say where that is", at->name);
		return "/nonexistent";
	}
	return keep(at, full);
}

static const char *const *take_paths(const struct at *at, yyjson_val *value, size_t most)
{
	const char **list = (const char **)take_texts(
		at, value, 0, most, is_path, "a list of absolute paths, or such that begin with ~/");

	for (size_t i = 0; list && list[i]; i++)
		list[i] = expanded(at, list[i]);
	return list;
}

static void complain_of_home(const struct at *at, const char *path, const char *home, enum lies lies)
{
	config_note_problem(at->settings->config, config_file_origin(at->file, at->key),
		"%s: \"%.300s\" %s the state directory %.300s, which no task may see; %s", at->name, path,
		lies == LIES_ABOVE ? "holds" : "lies in", home,
		lies == LIES_ABOVE
			? "name the directories in it that are needed, or keep the state elsewhere (--home, STINT_HOME)"
			: "put what tasks shall share elsewhere");
}

static void check_home(const struct at *at, const char *path)
{
	const char *home = at->settings->config->home.text;
	char here[4096], full[8192];

	if (!home[0])
		return; /* that was complained about */
	if (home[0] != '/' && getcwd(here, sizeof here)) {
		snprintf(full, sizeof full, "%s/%.4000s", here, home);
		home = full;
	}
	enum lies lies = above_compare(path, home);
	if (lies != LIES_APART)
		complain_of_home(at, path, home, lies);
}

/* What tasks are granted: nothing of ours. */
static const struct settings_path *take_granted(const struct at *at, yyjson_val *value)
{
	const char *const *names = take_paths(at, value, PATHS_MAX);
	struct settings_path *list = names
		? arena_alloc(&at->settings->config->arena, (yyjson_arr_size(value) + 1) * sizeof *list)
		: NULL;
	char real[ABOVE_NAME_BYTES];
	size_t count = 0;

	for (; list && names[count]; count++) {
		check_home(at, names[count]);
		list[count].name = names[count];
		list[count].real = above_real_name(names[count], real) ? keep(at, real) : names[count];
	}
	if (list)
		list[count] = (struct settings_path){0};
	return list;
}

size_t settings_grants(const struct executor *executor, struct grant *grants)
{
	const struct settings_path *lists[] = {executor->read, executor->write};
	size_t count = 0;

	for (size_t i = 0; i < 2; i++)
		for (const struct settings_path *path = lists[i]; path && path->name; path++)
			grants[count++] = (struct grant){.path = path->real,
				.inside = path->name,
				.fd = -1,
				.access = i == 0 ? GRANT_READ : GRANT_WRITE,
				.direct = true,
				.outside = true};
	return count;
}

/* Each member of an object, by its own name. */
static void take_members(const struct at *at, yyjson_val *value,
	void (*take)(const struct at *at, yyjson_val *value, void *into), void *into)
{
	size_t index, count;
	yyjson_val *key, *member;

	yyjson_obj_foreach(value, index, count, key, member)
	{
		struct at inner = member_of(at, key);
		take(&inner, member, into);
	}
}

/* {"NAME":"value"} as NAME=value */
static const char *const *take_env(const struct at *at, yyjson_val *value)
{
	const char *must_be = "an object of variables and texts; names that begin with STINT_ are ours";
	const char **list = yyjson_is_obj(value) ? new_list(at, yyjson_obj_size(value)) : NULL;
	size_t index, count;
	yyjson_val *key, *text;
	char line[8192];

	if (!list || yyjson_obj_size(value) > ENV_MAX) {
		complain(at, value, must_be);
		return NULL;
	}
	yyjson_obj_foreach(value, index, count, key, text)
	{
		struct at inner = member_of(at, key);
		const char *said = yyjson_is_str(text) && yyjson_get_len(text) == 0 ? "" : text_of(text);
		if (!is_variable(yyjson_get_str(key)) || !said ||
			(size_t)snprintf(line, sizeof line, "%s=%s", yyjson_get_str(key), said) >=
				sizeof line) {
			complain(&inner, text, "a text; names that begin with STINT_ are ours");
			return NULL;
		}
		list[index] = keep(at, line);
	}
	return list;
}

/* ---- executors -------------------------------------------------------------------------------------------- */

/* A number with a fraction, in thousandths. */
static uint64_t take_milli(const struct at *at, yyjson_val *value, double least, double most)
{
	double number;
	char must_be[100];

	if (json_number(value, &number) && number >= least && number <= most)
		return (uint64_t)(number * 1000 + 0.5);
	snprintf(must_be, sizeof must_be, "a number from %g to %g", least, most);
	complain(at, value, must_be);
	return 1;
}

/* What the whole attempt may use. Who uses it up is ended. */
static void take_budget_member(const struct at *at, yyjson_val *value, void *into)
{
	struct executor *executor = into;

	static const char *const uncounted[] = {"usd", "tokens", "turns", "toolCalls"};
	const char *name = yyjson_get_str(at->key);

	for (size_t i = 0; i < sizeof uncounted / sizeof *uncounted; i++) {
		if (strcmp(name, uncounted[i]) != 0)
			continue;
		config_note_problem(at->settings->config, config_file_origin(at->file, at->key),
			"%s cannot be enforced: of an executor that is no agent nobody counts %s; here there may be "
			"minutes, cpuSeconds, memoryBytes and outputBytes",
			at->name, name);
		return;
	}
	if (strcmp(name, "minutes") == 0)
		executor->budget_ms = (int64_t)take_milli(at, value, 0.001, 30 * 24 * 60) * 60;
	else if (strcmp(name, "cpuSeconds") == 0)
		executor->limits.cpu_us = take_milli(at, value, 0.1, 1e9) * 1000;
	else if (strcmp(name, "memoryBytes") == 0)
		executor->limits.memory_bytes = (uint64_t)take_number(at, value, 1 << 20, INT64_C(1) << 50);
	else if (strcmp(name, "outputBytes") == 0)
		executor->limits.output_bytes = (uint64_t)take_number(at, value, 0, INT64_C(1) << 50);
	else
		complain_unknown(at, "minutes, cpuSeconds, memoryBytes and outputBytes");
}

static void take_budget(const struct at *at, yyjson_val *value, struct executor *executor)
{
	if (!yyjson_is_obj(value)) {
		complain(at, value, "an object");
		return;
	}
	take_members(at, value, take_budget_member, executor);
}

/* Walls that a program runs into. */
static void take_limits(const struct at *at, yyjson_val *value, struct executor *executor)
{
	struct limits *limits = &executor->limits;
	const struct {
		const char *name;
		uint64_t *number;
		int64_t least;
	} rows[] = {
		{"files", &limits->files, 16},
		{"tasks", &limits->tasks, 1},
		{"fileBytes", &limits->file_bytes, 0},
		{"coreBytes", &limits->core_bytes, 0},
	};
	size_t index, count, row;
	yyjson_val *key, *number;

	if (!yyjson_is_obj(value)) {
		complain(at, value, "an object");
		return;
	}
	yyjson_obj_foreach(value, index, count, key, number)
	{
		struct at inner = member_of(at, key);
		for (row = 0; row < sizeof rows / sizeof *rows; row++) {
			if (yyjson_equals_str(key, rows[row].name))
				break;
		}
		if (yyjson_equals_str(key, "cpus"))
			limits->cpu_milli = take_milli(&inner, number, 0.01, 4096);
		else if (yyjson_equals_str(key, "memoryBytes") || yyjson_equals_str(key, "cpuSeconds"))
			complain_unknown(&inner,
				"files, tasks, fileBytes, coreBytes and cpus; memoryBytes and cpuSeconds of all "
				"that it starts belong into its budget");
		else if (row == sizeof rows / sizeof *rows)
			complain_unknown(&inner, "files, tasks, fileBytes, coreBytes and cpus");
		else
			*rows[row].number =
				(uint64_t)take_number(&inner, number, rows[row].least, INT64_C(1) << 50);
	}
}

/* stint/{task}-{fence}: what git takes, in a directory of its own, and never the same for two attempts. */
static bool is_branch(const char *text)
{
	size_t len = strlen(text);

	for (const char *at = text; (at = strpbrk(at, "{}")); at += at[1] == 't' ? 6 : 7)
		if (strncmp(at, "{task}", 6) != 0 && strncmp(at, "{fence}", 7) != 0)
			return false;
	return len <= 120 && strstr(text, "{fence}") && strchr(text, '/') &&
		isalnum((unsigned char)text[0]) && text[len - 1] != '/' && text[len - 1] != '.' &&
		!strstr(text, "..") && !strstr(text, "//") && !strstr(text, "/.") &&
		!strstr(text, ".lock/") && (len < 5 || strcmp(text + len - 5, ".lock") != 0) &&
		strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/{}") == len;
}

static bool is_inner(const char *text)
{
	return text[0] && text[0] != '/' && text[0] != '-' && !strstr(text, "..");
}

static void take_worktree_member(const struct at *at, yyjson_val *value, void *into)
{
	struct settings_worktree *worktree = into;
	const char *name = yyjson_get_str(at->key), *text = text_of(value);

	if (strcmp(name, "root") == 0) {
		if (text && is_path(text))
			worktree->root = expanded(at, keep(at, text));
		else
			complain(at, value, "an absolute path, or one that begins with ~/");
	} else if (strcmp(name, "branch") == 0) {
		if (text && is_branch(text))
			worktree->branch = keep(at, text);
		else
			complain(at, value,
				"a name of a branch with a / and with {fence} in it, as in stint/{task}-{fence}");
	} else if (strcmp(name, "base") == 0 || strcmp(name, "include") == 0) {
		if (text && is_inner(text))
			*(name[0] == 'b' ? &worktree->base : &worktree->include) = keep(at, text);
		else
			complain(at, value,
				name[0] == 'b' ? "a commit or branch, as in origin/main"
					       : "a path in the repository");
	} else if (strcmp(name, "setup") == 0 && yyjson_equals_str(value, "repository")) {
		worktree->setup_of_repository = true;
	} else if (strcmp(name, "setup") == 0) {
		worktree->setup = take_texts(at, value, 1, ARGV_MAX, is_any,
			"a list of a program and its arguments, or \"repository\" for .stint/setup.sh in it");
		if (worktree->setup && worktree->setup[0][0] == 0)
			complain(at, value, "a list that begins with a program");
	} else if (strcmp(name, "setupMs") == 0) {
		worktree->setup_ms = take_number(at, value, 1, DAY_MS);
	} else {
		complain_unknown(at, "root, branch, base, include, setup and setupMs");
	}
}

static void take_worktree(const struct at *at, yyjson_val *value, struct settings_worktree *worktree)
{
	*worktree = (struct settings_worktree){.on = yyjson_is_obj(value) || yyjson_is_true(value),
		.branch = "stint/{task}-{fence}",
		.base = "HEAD",
		.setup_ms = SETUP_MS};
	if (!yyjson_is_obj(value)) {
		if (!yyjson_is_bool(value))
			complain(at, value, "true, false or an object");
		return;
	}
	take_members(at, value, take_worktree_member, worktree);
}

static void take_argv(const struct at *at, yyjson_val *value, struct executor *executor)
{
	if (yyjson_equals_str(value, "payload")) {
		executor->argv = NULL;
		return;
	}
	executor->argv = take_texts(at, value, 1, ARGV_MAX, is_any,
		"a list of a program and its arguments, or \"payload\" for those that the task carries");
	if (executor->argv && executor->argv[0][0] == 0)
		complain(at, value, "a list that begins with a program");
}

static void take_kind(const struct at *at, yyjson_val *value, struct executor *executor)
{
	if (yyjson_equals_str(value, "agent"))
		config_note_problem(at->settings->config, config_file_origin(at->file, at->key),
			"%s is \"agent\", which this version does not run; it runs \"command\" and \"pool\"",
			at->name);
	else if (yyjson_equals_str(value, "pool"))
		executor->kind = "pool";
	else if (!yyjson_equals_str(value, "command"))
		complain(at, value, "\"command\" or \"pool\"");
}

static void take_working_dir(const struct at *at, yyjson_val *value, struct executor *executor)
{
	const char *text = text_of(value);

	if (text && is_path(text))
		executor->working_dir = expanded(at, keep(at, text));
	else
		complain(at, value, "an absolute path, or one that begins with ~/");
}

static const char executor_keys[] =
	"kind, argv, env, envAllow, read, write, timeoutMs, startMs, stallMs, graceMs, limits, budget, worktree, "
	"isolation, network, runtime, rootfs, kernel, initrd and image, and in a pool size, silenceMs and workingDir";

/* Where it leads, as that of what is granted. */
static const char *take_path(const struct at *at, yyjson_val *value)
{
	const char *text = text_of(value);
	char real[ABOVE_NAME_BYTES];

	if (!text || !is_path(text)) {
		complain(at, value, "an absolute path, or one that begins with ~/");
		return NULL;
	}
	text = expanded(at, keep(at, text));
	return above_real_name(text, real) ? keep(at, real) : text;
}

static void take_level(const struct at *at, yyjson_val *value, struct wall *wall)
{
	int level = text_of(value) ? wall_level_find(text_of(value)) : -1;

	if (level < 0)
		complain(at, value, "one of \"process\", \"sandbox\", \"container\" and \"vm\"");
	else
		wall->level = (enum wall_level)level;
}

static void take_runtime(const struct at *at, yyjson_val *value, struct wall *wall)
{
	const char *text = text_of(value), *slash = text ? strrchr(text, '/') : NULL,
		   *name = slash ? slash + 1 : text;

	/* a daemon starts what it runs, outside of our tree and limits; what that calls is a runtime */
	if (name && strcmp(name, "docker") == 0)
		complain(at, value,
			"an OCI runtime or \"podman\"; use the one that this program uses: \"crun\" or \"runc\"");
	else if (!text || (slash && text[0] != '/'))
		complain(at, value,
			"\"podman\" or the name of an OCI runtime such as \"crun\" or \"runc\", or its absolute path");
	else
		wall->runtime = keep(at, text);
}

/* What is around the executor's programs. False: the key is none of these. */
static bool take_wall_member(const struct at *at, yyjson_val *value, struct wall *wall)
{
	const struct {
		const char *name;
		const char **path;
	} paths[] = {{"rootfs", &wall->rootfs}, {"kernel", &wall->kernel}, {"initrd", &wall->initrd},
		{"image", &wall->image}};

	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		if (yyjson_equals_str(at->key, paths[i].name)) {
			*paths[i].path = take_path(at, value);
			return true;
		}
	}
	if (yyjson_equals_str(at->key, "isolation"))
		take_level(at, value, wall);
	else if (yyjson_equals_str(at->key, "runtime"))
		take_runtime(at, value, wall);
	else if (!yyjson_equals_str(at->key, "network"))
		return false;
	else if (yyjson_is_bool(value))
		wall->network = yyjson_get_bool(value);
	else
		complain(at, value, "true or false");
	return true;
}

const char *settings_unfit(const struct executor *executor, enum wall_level level)
{
	if (executor->size > 0 && level == WALL_VM)
		return "a pool cannot be behind level \"vm\": a serial line has no end that its workers could wait for";
	if (executor->size > 0 && level > executor->wall.level)
		return "the workers of a pool run before there is a task, at the level of their executor";
	if (level == WALL_VM &&
		((executor->read && executor->read->name) || (executor->write && executor->write->name)))
		return "it has \"read\" or \"write\", and no directory is shared with a machine";
	if (level == WALL_VM && executor->limits.memory_bytes >> 20 < WALL_MACHINE_MIB_LEAST)
		return "its budget.memoryBytes is less than the 64 MiB that a machine needs";
	if (level == WALL_PROCESS && executor->offline)
		return "it has \"network\": false, which needs \"sandbox\" or stricter";
	if (executor->worktree.on && level > WALL_SANDBOX)
		return "a work tree is part of a repository, which only levels \"process\" and \"sandbox\" can reach";
	return NULL;
}

/* A level that lacks what it is made of can never be had. */
static void check_wall(const struct at *at, const struct executor *executor)
{
	const struct wall *wall = &executor->wall;
	const char *lacks = NULL, *unfit = settings_unfit(executor, wall->level);

	if (unfit)
		config_note_problem(at->settings->config, config_file_origin(at->file, at->key),
			"%s has isolation \"%s\": %s", at->name, wall_level_name(wall->level), unfit);

	if (wall->level == WALL_CONTAINER && !wall->rootfs)
		lacks = "rootfs, the directory of its system";
	else if (wall->level == WALL_VM && !wall->kernel)
		lacks = "kernel, the file with its kernel";
	else if (wall->level == WALL_VM && !wall->initrd && !wall->image)
		lacks = "image, the file with its disk, or initrd";
	if (lacks)
		config_note_problem(at->settings->config, config_file_origin(at->file, at->key),
			"%s has isolation \"%s\" and needs %s", at->name, wall_level_name(wall->level),
			lacks);
}

static void take_executor_member(const struct at *at, yyjson_val *value, void *into)
{
	struct executor *executor = into;
	const char *name = yyjson_get_str(at->key);

	if (strcmp(name, "kind") == 0)
		take_kind(at, value, executor);
	else if (strcmp(name, "size") == 0)
		executor->size = take_number(at, value, 1, POOL_SIZE_MAX);
	else if (strcmp(name, "silenceMs") == 0)
		executor->silence_ms = take_number(at, value, 1000, DAY_MS);
	else if (strcmp(name, "workingDir") == 0)
		take_working_dir(at, value, executor);
	else if (strcmp(name, "argv") == 0)
		take_argv(at, value, executor);
	else if (strcmp(name, "env") == 0)
		executor->env = take_env(at, value);
	else if (strcmp(name, "envAllow") == 0)
		executor->env_allow = take_texts(at, value, 0, ENV_MAX, is_variable,
			"a list of names of variables; those that begin with STINT_ are ours");
	else if (strcmp(name, "read") == 0)
		executor->read = take_granted(at, value);
	else if (strcmp(name, "write") == 0)
		executor->write = take_granted(at, value);
	else if (strcmp(name, "timeoutMs") == 0)
		executor->timeout_ms = take_number(at, value, 1, 30 * DAY_MS);
	else if (strcmp(name, "startMs") == 0)
		executor->start_ms = take_number(at, value, 1, DAY_MS);
	else if (strcmp(name, "stallMs") == 0)
		executor->stall_ms = take_number(at, value, 1, DAY_MS);
	else if (strcmp(name, "graceMs") == 0)
		executor->grace_ms = take_number(at, value, 0, 10 * 60 * 1000);
	else if (strcmp(name, "limits") == 0)
		take_limits(at, value, executor);
	else if (strcmp(name, "budget") == 0)
		take_budget(at, value, executor);
	else if (strcmp(name, "worktree") == 0)
		take_worktree(at, value, &executor->worktree);
	else if (!take_wall_member(at, value, &executor->wall))
		complain_unknown(at, executor_keys);
	else if (strcmp(name, "network") == 0)
		executor->offline = !executor->wall.network;
}

/* What a pool is where nothing is said; and what only a pool has. */
static void finish_pool(const struct at *at, yyjson_val *value, struct executor *executor)
{
	static const char *const own[] = {"size", "silenceMs", "workingDir"};

	if (strcmp(executor->kind, "pool") != 0) {
		for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
			if (yyjson_obj_get(value, own[i]))
				config_note_problem(at->settings->config,
					config_file_origin(at->file, at->key), "%s.%s is for pools alone",
					at->name, own[i]);
		}
		executor->size = 0;
		return;
	}
	if (yyjson_equals_str(yyjson_obj_get(value, "argv"), "payload"))
		config_note_problem(at->settings->config, config_file_origin(at->file, at->key),
			"%s.argv must be a program: a pool runs it before there is a task", at->name);
	if (executor->worktree.on)
		config_note_problem(at->settings->config, config_file_origin(at->file, at->key),
			"%s.worktree is not for pools: their workers stay where they are", at->name);
	if (executor->size == 0)
		executor->size = POOL_SIZE;
	if (executor->silence_ms == 0)
		executor->silence_ms = POOL_SILENCE_MS;
	if (executor->start_ms == 0)
		executor->start_ms = POOL_START_MS;
	if (executor->stall_ms == 0)
		executor->stall_ms = POOL_STALL_MS;
	if (!yyjson_obj_get(value, "graceMs"))
		executor->grace_ms = POOL_GRACE_MS;
}

/* Room for the one of that name; NULL: there are too many. */
static struct executor *place_executor(struct settings *settings, const char *name)
{
	uint32_t i = 0;

	while (i < settings->executor_count && strcmp(settings->executors[i].name, name) != 0)
		i++;
	if (i == EXECUTORS_MAX)
		return NULL;
	settings->executor_count += i == settings->executor_count;
	settings->executors[i] = (struct executor){
		.name = name, .kind = "command", .grace_ms = GRACE_MS, .limits = limits_default()};
	return &settings->executors[i];
}

static void take_executor(const struct at *at, yyjson_val *value)
{
	const char *name = yyjson_get_str(at->key);
	if (!settings_is_name(name) || !yyjson_is_obj(value)) {
		complain(at, value, "an object under a name of letters, digits and -._:");
		return;
	}
	struct executor *executor = place_executor(at->settings, keep(at, name));
	if (!executor) {
		config_note_problem(at->settings->config, config_file_origin(at->file, at->key),
			"%s: there are more than %d executors", at->name, EXECUTORS_MAX);
		return;
	}
	take_members(at, value, take_executor_member, executor);
	finish_pool(at, value, executor);
	check_wall(at, executor);
	executor->where = config_file_origin(at->file, at->key);
	executor->bounds = limits_bounds(&executor->limits);
	/* root's processes are counted by nobody but a cgroup */
	if (yyjson_obj_get(yyjson_obj_get(value, "limits"), "tasks") && geteuid() == 0)
		executor->bounds |= 1u << BOUND_PIDS;
	if (!yyjson_obj_get(value, "kind") || !yyjson_obj_get(value, "argv"))
		config_note_problem(at->settings->config, config_file_origin(at->file, at->key),
			"%s needs kind and argv, as in {\"kind\": \"command\", \"argv\": [\"make\", \"test\"]}",
			at->name);
}

/* ---- queues and roots ------------------------------------------------------------------------------------- */

int settings_add_queue(struct settings *settings, const char *name, int64_t weight)
{
	uint32_t i = 0;

	while (i < settings->queue_count && strcmp(settings->queues[i].name, name) != 0)
		i++;
	if (i == QUEUES_MAX)
		return -ENOSPC;
	if (i == settings->queue_count)
		settings->queues[settings->queue_count++] = (struct settings_queue){.name = name};
	settings->queues[i].weight = weight;
	return 0;
}

static void take_queue_member(const struct at *at, yyjson_val *value, void *into)
{
	struct settings_queue *queue = into;

	if (yyjson_equals_str(at->key, "executor")) {
		if (text_of(value) && settings_is_name(text_of(value)))
			queue->executor = keep(at, text_of(value));
		else
			complain(at, value, "the name of an executor");
	} else if (yyjson_equals_str(at->key, "weight")) {
		queue->weight = take_number(at, value, 1, WEIGHT_MAX);
	} else {
		complain_unknown(at, "executor and weight");
	}
}

static void take_queue(const struct at *at, yyjson_val *value)
{
	const char *name = yyjson_get_str(at->key);
	if (!settings_is_name(name) || !yyjson_is_obj(value)) {
		complain(at, value, "an object under a name of letters, digits and -._:");
		return;
	}
	name = keep(at, name);
	if (settings_add_queue(at->settings, name, 1) < 0) {
		config_note_problem(at->settings->config, config_file_origin(at->file, at->key),
			"%s: there are more than %d queues", at->name, QUEUES_MAX);
		return;
	}
	struct settings_queue *queue = at->settings->queues;
	while (strcmp(queue->name, name) != 0)
		queue++;
	*queue = (struct settings_queue){
		.name = name, .weight = 1, .where = config_file_origin(at->file, at->key)};
	take_members(at, value, take_queue_member, queue);
}

static void take_roots(const struct at *at, yyjson_val *value)
{
	const char *const *list = take_paths(at, value, ROOTS_MAX);

	at->settings->root_count = 0;
	for (size_t i = 0; list && list[i]; i++)
		at->settings->roots[at->settings->root_count++] = list[i];
}

static void take_each(
	const struct at *at, yyjson_val *value, void (*take_one)(const struct at *, yyjson_val *))
{
	size_t index, count;
	yyjson_val *key, *member;

	if (!yyjson_is_obj(value)) {
		complain(at, value, "an object of names");
		return;
	}
	yyjson_obj_foreach(value, index, count, key, member)
	{
		struct at inner = member_of(at, key);
		take_one(&inner, member);
	}
}

bool settings_is_repository(const char *name)
{
	const char *slash = strchr(name, '/');

	return slash && slash > name && slash[1] && strlen(name) <= NAME_BYTES_MAX && name[0] != '-' &&
		!strchr(slash + 1, '/') &&
		name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/")] == 0;
}

static void take_sweep_member(const struct at *at, yyjson_val *value)
{
	struct settings_sweep *sweep = &at->settings->sweep;
	const char *name = yyjson_get_str(at->key), *text = text_of(value);
	bool named = text && settings_is_name(text);

	if (strcmp(name, "kind") == 0) {
		if (!yyjson_equals_str(value, "github"))
			complain(at, value, "\"github\"");
	} else if (strcmp(name, "repository") == 0) {
		sweep->repository = text ? keep(at, text) : NULL;
		if (!text || !settings_is_repository(text))
			complain(at, value, "owner/name");
	} else if (strcmp(name, "queue") == 0) {
		sweep->queue = named ? keep(at, text) : NULL;
		if (!named)
			complain(at, value, "the name of a queue");
	} else if (strcmp(name, "executor") == 0) {
		sweep->executor = named ? keep(at, text) : NULL;
		if (!named)
			complain(at, value, "the name of an executor");
	} else {
		complain_unknown(at, "kind, repository, queue and executor");
	}
}

static void take_sweep(const struct at *at, yyjson_val *value)
{
	at->settings->sweep = (struct settings_sweep){.on = true};
	take_each(at, value, take_sweep_member);
}

void settings_read(
	void *settings, struct config *config, struct config_file *file, yyjson_val *key, yyjson_val *value)
{
	struct at at = {.settings = settings, .file = file, .key = key};
	const char *name = yyjson_get_str(key);

	assert(name);
	at.settings->config = config;
	snprintf(at.name, sizeof at.name, "%.100s", name);
	if (strcmp(name, "executors") == 0)
		take_each(&at, value, take_executor);
	else if (strcmp(name, "queues") == 0)
		take_each(&at, value, take_queue);
	else if (strcmp(name, "roots") == 0)
		take_roots(&at, value);
	else if (strcmp(name, "prSweep") == 0)
		take_sweep(&at, value);
	else if (strcmp(name, "landlock") == 0 && yyjson_equals_str(value, "optional"))
		at.settings->landlock_optional = true;
	else if (strcmp(name, "landlock") == 0 && yyjson_equals_str(value, "required"))
		at.settings->landlock_optional = false;
	else if (strcmp(name, "landlock") == 0)
		complain(&at, value, "\"required\" or \"optional\"");
}

/* ---- all of it -------------------------------------------------------------------------------------------- */

const struct executor *settings_executor(const struct settings *settings, const char *name)
{
	for (uint32_t i = 0; i < settings->executor_count; i++) {
		if (strcmp(settings->executors[i].name, name) == 0)
			return &settings->executors[i];
	}
	return NULL;
}

const struct executor *settings_fallback(const struct settings *settings, const char *queue)
{
	for (uint32_t i = 0; i < settings->queue_count; i++) {
		if (settings->queues[i].executor && strcmp(settings->queues[i].name, queue) == 0)
			return settings_executor(settings, settings->queues[i].executor);
	}
	return settings->executor_count == 1 ? &settings->executors[0] : NULL;
}

void settings_add_payload(struct settings *settings, const char *name)
{
	if (!settings_executor(settings, name))
		place_executor(settings, name);
}

void settings_check(struct settings *settings, struct config *config)
{
	settings->config = config;
	for (uint32_t i = 0; i < settings->queue_count; i++) {
		const struct settings_queue *queue = &settings->queues[i];
		if (queue->executor && !settings_executor(settings, queue->executor))
			config_note_problem(config, queue->where,
				"queues.%s.executor is \"%s\", and there is no executor of that name",
				queue->name, queue->executor);
	}
}

unsigned settings_bounds(const struct settings *settings)
{
	unsigned bounds = 0;

	for (uint32_t i = 0; i < settings->executor_count; i++)
		bounds |= settings->executors[i].bounds;
	return bounds;
}

void settings_check_budgets(const struct settings *settings, struct config *config)
{
	static const char *const keys[BOUND_COUNT] = {[BOUND_MEMORY] = "budget.memoryBytes",
		[BOUND_PIDS] = "limits.tasks",
		[BOUND_CPU] = "limits.cpus"};
	static struct cgroup_place place;

	if (settings_bounds(settings) == 0)
		return;
	cgroup_look(&place);
	for (uint32_t i = 0; i < settings->executor_count; i++) {
		const struct executor *executor = &settings->executors[i];
		for (int bound = 0; bound < BOUND_COUNT; bound++)
			if (executor->bounds >> bound & 1 && !place.bounds[bound][0])
				config_note_problem(config, executor->where,
					"executors.%s.%s cannot be enforced on this machine: %s; or leave it out",
					executor->name, keys[bound], place.why_not[bound]);
	}
}

static int put_budget(struct buf *out, const struct executor *executor)
{
	const struct limits *limits = &executor->limits;
	int r = 0;

	if (executor->budget_ms > 0)
		r = buf_printf(
			out, "         %-16s budget: %g minutes\n", "", (double)executor->budget_ms / 60000);
	if (r == 0 && limits->cpu_us != LIMIT_UNCHANGED)
		r = buf_printf(out, "         %-16s budget: %g s of processor time\n", "",
			(double)limits->cpu_us / 1e6);
	if (r == 0 && limits->memory_bytes != LIMIT_UNCHANGED)
		r = buf_printf(out, "         %-16s budget: %llu bytes of memory\n", "",
			(unsigned long long)limits->memory_bytes);
	if (r == 0 && limits->output_bytes != LIMIT_UNCHANGED)
		r = buf_printf(out, "         %-16s budget: %llu bytes of output\n", "",
			(unsigned long long)limits->output_bytes);
	return r;
}

static int put_argv(struct buf *out, const struct executor *executor)
{
	int r = executor->argv ? 0 : buf_printf(out, " what the task carries");

	for (size_t i = 0; r == 0 && executor->argv && executor->argv[i]; i++)
		r = buf_printf(out, " %s", executor->argv[i]);
	if (r == 0 && executor->size > 0)
		r = buf_printf(out, " (%lld workers)", (long long)executor->size);
	return r < 0 ? r : buf_printf(out, "\n");
}

int settings_put(struct buf *out, const struct settings *settings)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < settings->executor_count; i++) {
		r = buf_printf(out, "executor %-16s %s, %s%s:", settings->executors[i].name,
			settings->executors[i].kind, wall_level_name(settings->executors[i].wall.level),
			settings->executors[i].wall.network ? " with network" : "");
		if (r == 0)
			r = put_argv(out, &settings->executors[i]);
		if (r == 0)
			r = put_budget(out, &settings->executors[i]);
	}
	for (uint32_t i = 0; r == 0 && i < settings->queue_count; i++)
		r = buf_printf(out, "queue    %-16s executor %s, weight %lld\n", settings->queues[i].name,
			settings->queues[i].executor ? settings->queues[i].executor : "-",
			(long long)settings->queues[i].weight);
	for (uint32_t i = 0; r == 0 && i < settings->root_count; i++)
		r = buf_printf(out, "root     %s\n", settings->roots[i]);
	return r;
}
