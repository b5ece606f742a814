/* One executor of the configuration. */
#include "worker/settings/parts.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "exec/request/above.h"

enum {
	GRACE_MS = 10 * 1000,
	SETUP_MS = 10 * 60 * 1000,
	POOL_SIZE = 2,
	POOL_START_MS = 10 * 1000,
	POOL_SILENCE_MS = 30 * 1000,
	POOL_STALL_MS = 5 * 60 * 1000,
	POOL_GRACE_MS = 5 * 1000,
};

#define DAY_MS (INT64_C(24) * 3600 * 1000)

/* A number with a fraction, in thousandths. */
static uint64_t take_milli(const struct at *at, yyjson_val *value, double least, double most)
{
	double number;
	char must_be[100];

	if (json_number(value, &number) && number >= least && number <= most)
		return (uint64_t)(number * 1000 + 0.5);
	snprintf(must_be, sizeof must_be, "a number from %g to %g", least, most);
	at_complain(at, value, must_be);
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
		executor->limits.memory_bytes = (uint64_t)at_number(at, value, 1 << 20, INT64_C(1) << 50);
	else if (strcmp(name, "outputBytes") == 0)
		executor->limits.output_bytes = (uint64_t)at_number(at, value, 0, INT64_C(1) << 50);
	else
		at_complain_unknown(at, "minutes, cpuSeconds, memoryBytes and outputBytes");
}

static void take_budget(const struct at *at, yyjson_val *value, struct executor *executor)
{
	if (!yyjson_is_obj(value)) {
		at_complain(at, value, "an object");
		return;
	}
	at_members(at, value, take_budget_member, executor);
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
		at_complain(at, value, "an object");
		return;
	}
	yyjson_obj_foreach(value, index, count, key, number)
	{
		struct at inner = at_member(at, key);
		for (row = 0; row < sizeof rows / sizeof *rows; row++) {
			if (yyjson_equals_str(key, rows[row].name))
				break;
		}
		if (yyjson_equals_str(key, "cpus"))
			limits->cpu_milli = take_milli(&inner, number, 0.01, 4096);
		else if (yyjson_equals_str(key, "memoryBytes") || yyjson_equals_str(key, "cpuSeconds"))
			at_complain_unknown(&inner,
				"files, tasks, fileBytes, coreBytes and cpus; memoryBytes and cpuSeconds of all "
				"that it starts belong into its budget");
		else if (row == sizeof rows / sizeof *rows)
			at_complain_unknown(&inner, "files, tasks, fileBytes, coreBytes and cpus");
		else
			*rows[row].number =
				(uint64_t)at_number(&inner, number, rows[row].least, INT64_C(1) << 50);
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
	const char *name = yyjson_get_str(at->key), *text = at_text(value);

	if (strcmp(name, "root") == 0) {
		if (text && settings_is_path(text))
			worktree->root = at_expanded(at, at_keep(at, text));
		else
			at_complain(at, value, "an absolute path, or one that begins with ~/");
	} else if (strcmp(name, "branch") == 0) {
		if (text && is_branch(text))
			worktree->branch = at_keep(at, text);
		else
			at_complain(at, value,
				"a name of a branch with a / and with {fence} in it, as in stint/{task}-{fence}");
	} else if (strcmp(name, "base") == 0 || strcmp(name, "include") == 0) {
		if (text && is_inner(text))
			*(name[0] == 'b' ? &worktree->base : &worktree->include) = at_keep(at, text);
		else
			at_complain(at, value,
				name[0] == 'b' ? "a commit or branch, as in origin/main"
					       : "a path in the repository");
	} else if (strcmp(name, "setup") == 0 && yyjson_equals_str(value, "repository")) {
		worktree->setup_of_repository = true;
	} else if (strcmp(name, "setup") == 0) {
		worktree->setup = at_texts(at, value, 1, ARGV_MAX, settings_is_any,
			"a list of a program and its arguments, or \"repository\" for .stint/setup.sh in it");
		if (worktree->setup && worktree->setup[0][0] == 0)
			at_complain(at, value, "a list that begins with a program");
	} else if (strcmp(name, "setupMs") == 0) {
		worktree->setup_ms = at_number(at, value, 1, DAY_MS);
	} else {
		at_complain_unknown(at, "root, branch, base, include, setup and setupMs");
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
			at_complain(at, value, "true, false or an object");
		return;
	}
	at_members(at, value, take_worktree_member, worktree);
}

static void take_argv(const struct at *at, yyjson_val *value, struct executor *executor)
{
	if (yyjson_equals_str(value, "payload")) {
		executor->argv = NULL;
		return;
	}
	executor->argv = at_texts(at, value, 1, ARGV_MAX, settings_is_any,
		"a list of a program and its arguments, or \"payload\" for those that the task carries");
	if (executor->argv && executor->argv[0][0] == 0)
		at_complain(at, value, "a list that begins with a program");
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
		at_complain(at, value, "\"command\" or \"pool\"");
}

static void take_working_dir(const struct at *at, yyjson_val *value, struct executor *executor)
{
	const char *text = at_text(value);

	if (text && settings_is_path(text))
		executor->working_dir = at_expanded(at, at_keep(at, text));
	else
		at_complain(at, value, "an absolute path, or one that begins with ~/");
}

static const char executor_keys[] =
	"kind, argv, env, envAllow, read, write, timeoutMs, startMs, stallMs, graceMs, limits, budget, worktree, "
	"isolation, network, runtime, rootfs, kernel, initrd and image, and in a pool size, silenceMs and workingDir";

/* Where it leads, as that of what is granted. */
static const char *take_path(const struct at *at, yyjson_val *value)
{
	const char *text = at_text(value);
	char real[ABOVE_NAME_BYTES];

	if (!text || !settings_is_path(text)) {
		at_complain(at, value, "an absolute path, or one that begins with ~/");
		return NULL;
	}
	text = at_expanded(at, at_keep(at, text));
	return above_real_name(text, real) ? at_keep(at, real) : text;
}

static void take_level(const struct at *at, yyjson_val *value, struct wall *wall)
{
	int level = at_text(value) ? wall_level_find(at_text(value)) : -1;

	if (level < 0)
		at_complain(at, value, "one of \"process\", \"sandbox\", \"container\" and \"vm\"");
	else
		wall->level = (enum wall_level)level;
}

static void take_runtime(const struct at *at, yyjson_val *value, struct wall *wall)
{
	const char *text = at_text(value), *slash = text ? strrchr(text, '/') : NULL,
		   *name = slash ? slash + 1 : text;

	/* a daemon starts what it runs, outside of our tree and limits; what that calls is a runtime */
	if (name && strcmp(name, "docker") == 0)
		at_complain(at, value,
			"an OCI runtime or \"podman\"; use the one that this program uses: \"crun\" or \"runc\"");
	else if (!text || (slash && text[0] != '/'))
		at_complain(at, value,
			"\"podman\" or the name of an OCI runtime such as \"crun\" or \"runc\", or its absolute path");
	else
		wall->runtime = at_keep(at, text);
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
		at_complain(at, value, "true or false");
	return true;
}

/* A level that lacks what it is made of can never be had. */
static void check_wall(const struct at *at, const struct executor *executor)
{
	const struct wall *wall = &executor->wall;
	const char *lacks = NULL, *unfit = executor_unfit(executor, wall->level);

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
		executor->size = at_number(at, value, 1, POOL_SIZE_MAX);
	else if (strcmp(name, "silenceMs") == 0)
		executor->silence_ms = at_number(at, value, 1000, DAY_MS);
	else if (strcmp(name, "workingDir") == 0)
		take_working_dir(at, value, executor);
	else if (strcmp(name, "argv") == 0)
		take_argv(at, value, executor);
	else if (strcmp(name, "env") == 0)
		executor->env = at_env(at, value);
	else if (strcmp(name, "envAllow") == 0)
		executor->env_allow = at_texts(at, value, 0, ENV_MAX, settings_is_variable,
			"a list of names of variables; those that begin with STINT_ are ours");
	else if (strcmp(name, "read") == 0)
		executor->read = at_granted(at, value);
	else if (strcmp(name, "write") == 0)
		executor->write = at_granted(at, value);
	else if (strcmp(name, "timeoutMs") == 0)
		executor->timeout_ms = at_number(at, value, 1, 30 * DAY_MS);
	else if (strcmp(name, "startMs") == 0)
		executor->start_ms = at_number(at, value, 1, DAY_MS);
	else if (strcmp(name, "stallMs") == 0)
		executor->stall_ms = at_number(at, value, 1, DAY_MS);
	else if (strcmp(name, "graceMs") == 0)
		executor->grace_ms = at_number(at, value, 0, 10 * 60 * 1000);
	else if (strcmp(name, "limits") == 0)
		take_limits(at, value, executor);
	else if (strcmp(name, "budget") == 0)
		take_budget(at, value, executor);
	else if (strcmp(name, "worktree") == 0)
		take_worktree(at, value, &executor->worktree);
	else if (!take_wall_member(at, value, &executor->wall))
		at_complain_unknown(at, executor_keys);
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

void settings_take_executor(const struct at *at, yyjson_val *value)
{
	const char *name = yyjson_get_str(at->key);
	if (!settings_is_name(name) || !yyjson_is_obj(value)) {
		at_complain(at, value, "an object under a name of letters, digits and -._:");
		return;
	}
	struct executor *executor = place_executor(at->settings, at_keep(at, name));
	if (!executor) {
		config_note_problem(at->settings->config, config_file_origin(at->file, at->key),
			"%s: there are more than %d executors", at->name, EXECUTORS_MAX);
		return;
	}
	at_members(at, value, take_executor_member, executor);
	finish_pool(at, value, executor);
	check_wall(at, executor);
	at->settings->executor_origins[executor - at->settings->executors] =
		config_file_origin(at->file, at->key);
	executor->bounds = limits_bounds(&executor->limits);
	/* root's processes are counted by nobody but a cgroup */
	if (yyjson_obj_get(yyjson_obj_get(value, "limits"), "tasks") && geteuid() == 0)
		executor->bounds |= 1u << BOUND_PIDS;
	if (!yyjson_obj_get(value, "kind") || !yyjson_obj_get(value, "argv"))
		config_note_problem(at->settings->config, config_file_origin(at->file, at->key),
			"%s needs kind and argv, as in {\"kind\": \"command\", \"argv\": [\"make\", \"test\"]}",
			at->name);
}

void settings_add_payload(struct settings *settings, const char *name)
{
	if (!settings_executor(settings, name))
		place_executor(settings, name);
}
