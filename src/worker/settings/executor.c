/* One executor of the configuration. */
#include "worker/settings/parts.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attempt/relay/proxy.h"
#include "exec/request/ancestors.h"

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

/* ---- budget and limits ------------------------------------------------------------------------------------- */

/* What the whole attempt may use. An attempt that uses it up is ended. The first two are read in thousandths. */
static const struct field budget_fields[] = {
	FIELD(executor, budget_ms, "minutes", FIELD_MILLI, .min = 1, .max = INT64_C(30) * 24 * 60 * 1000),
	FIELD(executor, limits.cpu_us, "cpuSeconds", FIELD_MILLI, .min = 100,
		.max = INT64_C(1000000000) * 1000),
	FIELD(executor, limits.memory_bytes, "memoryBytes", FIELD_INT, .min = 1 << 20,
		.max = INT64_C(1) << 50),
	FIELD(executor, limits.output_bytes, "outputBytes", FIELD_INT, .max = INT64_C(1) << 50),
	{"usd", FIELD_BY, .by = settings_take_agent},
	{"tokens", FIELD_BY, .by = settings_take_agent},
	{"turns", FIELD_BY, .by = settings_take_agent},
	{"toolCalls", FIELD_BY, .by = settings_take_agent},
};

static bool take_budget(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	struct executor *executor = at;
	uint64_t given = form_read_inner(form, field->name, value, FIELDS(budget_fields), executor);

	if (given & 1u)
		executor->budget_ms *= 60;
	if (given & 2u)
		executor->limits.cpu_us *= 1000;
	return given != 0;
}

#define OF_BUDGET "is a part of \"budget\": there it holds for everything that an attempt starts"

/* Walls that a program runs into. */
static const struct field limits_fields[] = {
	FIELD(limits, files, "files", FIELD_INT, .min = 16, .max = INT64_C(1) << 50),
	FIELD(limits, tasks, "tasks", FIELD_INT, .min = 1, .max = INT64_C(1) << 50),
	FIELD(limits, file_bytes, "fileBytes", FIELD_INT, .max = INT64_C(1) << 50),
	FIELD(limits, core_bytes, "coreBytes", FIELD_INT, .max = INT64_C(1) << 50),
	FIELD(limits, cpu_milli, "cpus", FIELD_MILLI, .min = 10, .max = 4096 * 1000),
	{"memoryBytes", FIELD_REFUSED, .allowed = OF_BUDGET},
	{"cpuSeconds", FIELD_REFUSED, .allowed = OF_BUDGET},
};

/* ---- work tree --------------------------------------------------------------------------------------------- */

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

bool settings_take_program(
	struct form *form, const struct field *field, yyjson_val *value, const char *const **into)
{
	const struct field list = {.name = field->name,
		.kind = FIELD_STRINGS,
		.min = 1,
		.max = ARGV_MAX,
		.allowed = field->allowed};
	const char *const *argv = NULL;

	if (!form_take(form, &list, value, &argv))
		return false;
	if (argv[0][0] == 0)
		return form_wrong_as(form, field->name, "a list that begins with a program", value);
	*into = argv;
	return true;
}

static bool take_setup(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	struct settings_worktree *worktree = at;

	worktree->setup_of_repository = yyjson_equals_str(value, "repository");
	return worktree->setup_of_repository || settings_take_program(form, field, value, &worktree->setup);
}

/* true, false, or the hosts that are reached through our proxy. */
static bool take_network(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	const struct field list = {.name = field->name,
		.kind = FIELD_STRINGS,
		.max = PROXY_HOSTS_MAX,
		.accepts = proxy_is_host,
		.allowed = field->allowed};
	struct executor *executor = at;

	executor->hosts = NULL;
	executor->wall.network = yyjson_is_true(value);
	return yyjson_is_bool(value) || form_take(form, &list, value, &executor->hosts);
}

static const struct field worktree_fields[] = {
	FIELD(settings_worktree, root, "root", FIELD_BY, .by = settings_take_path),
	FIELD(settings_worktree, branch, "branch", FIELD_STRING, .accepts = is_branch,
		.allowed = "a name of a branch with a / and with {fence} in it, as in stint/{task}-{fence}"),
	FIELD(settings_worktree, base, "base", FIELD_STRING, .accepts = is_inner,
		.allowed = "a commit or branch, as in origin/main"),
	FIELD(settings_worktree, include, "include", FIELD_STRING, .accepts = is_inner,
		.allowed = "a path in the repository"),
	{"setup", FIELD_BY, .by = take_setup,
		.allowed =
			"a list of a program and its arguments, or \"repository\" for .stint/setup.sh in it"},
	FIELD(settings_worktree, setup_ms, "setupMs", FIELD_INT, .min = 1, .max = DAY_MS, .unit = "ms"),
};

/* What a work tree is where nothing is said: of an executor, or of a task whose executor has none. */
static struct settings_worktree worktree_default(void)
{
	return (struct settings_worktree){
		.branch = "stint/{task}-{fence}", .base = "HEAD", .setup_ms = SETUP_MS};
}

static bool take_worktree(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	struct settings_worktree *worktree = at;

	*worktree = worktree_default();
	worktree->on = yyjson_is_obj(value) || yyjson_is_true(value);
	if (yyjson_is_obj(value))
		form_read_inner(form, field->name, value, FIELDS(worktree_fields), worktree);
	return yyjson_is_obj(value) || yyjson_is_bool(value) || form_wrong(form, field, value);
}

/* ---- the program, and what is around it -------------------------------------------------------------------- */

/* The files that the words name, where they are now; NULL behind the last. False: no memory. */
static bool keep_files(struct form *form, struct executor *executor)
{
	size_t count = 0, bytes, kept = 0;
	char real[ANCESTORS_NAME_BYTES];
	struct stat stat_;

	while (executor->argv[count])
		count++;
	bytes = (count + 1) * sizeof(struct settings_path);
	struct settings_path *files = arena_alloc(form->arena, bytes);
	if (!files)
		return form_short(form, arena_fault(form->arena, bytes));
	for (size_t i = 1; i < count && kept < PATHS_MAX; i++) {
		const char *word = executor->argv[i];
		if (word[0] != '/' || stat(word, &stat_) < 0 || !S_ISREG(stat_.st_mode) ||
			!ancestors_real_name(word, real))
			continue;
		files[kept].name = word;
		files[kept].real = form_keep(form, span_of(real));
		if (!files[kept++].real)
			return false;
	}
	executor->files = files;
	return true;
}

/* No shell reads the words of an argv: a ~ would be the name of a directory. */
static bool has_no_tilde(struct form *form, const struct field *field, const char *const *argv)
{
	const char *home = getenv("HOME");

	for (size_t i = 0; argv[i]; i++)
		if (argv[i][0] == '~' && (argv[i][1] == '/' || argv[i][1] == 0)) {
			form_error(form, field->name,
				"has \"%.300s\": no shell reads it, so write the whole path: %.300s%.300s",
				argv[i], home && home[0] == '/' ? home : "/home/NAME", argv[i] + 1);
			return false;
		}
	return true;
}

static bool take_argv(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	struct executor *executor = at;

	return yyjson_equals_str(value, "payload") ||
		(settings_take_program(form, field, value, &executor->argv) &&
			has_no_tilde(form, field, executor->argv) && keep_files(form, executor));
}

/* docker is a client: its daemon starts the programs, outside of our tree and limits. */
static bool is_runtime(const char *text)
{
	const char *slash = strrchr(text, '/'), *name = slash ? slash + 1 : text;

	return text[0] && strcmp(name, "docker") != 0 && (!slash || text[0] == '/');
}

static_assert(WALL_PROCESS == 0 && WALL_SANDBOX == 1 && WALL_CONTAINER == 2 && WALL_VM == 3,
	"the words of isolation");

static const struct field executor_fields[] = {
	FIELD(executor, kind, "kind", FIELD_STRING, .words = "command|pool|agent"),
	{"argv", FIELD_BY, .by = take_argv,
		.allowed =
			"a list of a program and its arguments, or \"payload\" for those that the task carries"},
	FIELD(executor, env, "env", FIELD_BY, .by = settings_take_env,
		.allowed =
			"an object of variables and strings; names that begin with STINT_ belong to stint"),
	FIELD(executor, env_allow, "envAllow", FIELD_STRINGS, .max = ENV_MAX, .accepts = settings_is_variable,
		.allowed = "a list of names of variables; names that begin with STINT_ belong to stint"),
	FIELD(executor, env_from_task, "envFromTask", FIELD_STRINGS, .max = ENV_MAX,
		.accepts = settings_is_task_variable,
		.allowed =
			"a list of names of variables that a task may set; names that begin with STINT_ or LD_ are not a task's"),
	FIELD(executor, subtasks, "subtasks", FIELD_STRINGS, .max = EXECUTORS_MAX,
		.accepts = settings_is_name,
		.allowed = "a list of executors that subtasks of its tasks may name"),
	{"read", FIELD_BY, .by = settings_take_read},
	FIELD(executor, write, "write", FIELD_BY, .by = settings_take_granted),
	FIELD(executor, timeout_ms, "timeoutMs", FIELD_INT, .min = 1, .max = 30 * DAY_MS, .unit = "ms"),
	FIELD(executor, start_ms, "startMs", FIELD_INT, .min = 1, .max = DAY_MS, .unit = "ms"),
	FIELD(executor, stall_ms, "stallMs", FIELD_INT, .min = 1, .max = DAY_MS, .unit = "ms"),
	FIELD(executor, grace_ms, "graceMs", FIELD_INT, .max = 10 * 60 * 1000, .unit = "ms"),
	FIELD(executor, limits, "limits", FIELD_GROUP, .fields = limits_fields,
		.field_count = sizeof limits_fields / sizeof *limits_fields),
	{"budget", FIELD_BY, .by = take_budget},
	FIELD(executor, worktree, "worktree", FIELD_BY, .by = take_worktree,
		.allowed = "true, false or an object"),
	FIELD(executor, wall.level, "isolation", FIELD_CHOICE, .words = "process|sandbox|container|vm"),
	{"network", FIELD_BY, .by = take_network,
		.allowed =
			"true, false or a list of hosts, as in [\"pypi.org\", \"*.pythonhosted.org\", \"10.1.2.3\"]"},
	FIELD(executor, wall.runtime, "runtime", FIELD_STRING, .accepts = is_runtime,
		.allowed =
			"\"podman\" or an OCI runtime such as \"crun\" or \"runc\", by its name or absolute path; "
			"not docker: use the runtime that docker uses"),
	FIELD(executor, wall.rootfs, "rootfs", FIELD_BY, .by = settings_take_real_path),
	FIELD(executor, wall.kernel, "kernel", FIELD_BY, .by = settings_take_real_path),
	FIELD(executor, wall.initrd, "initrd", FIELD_BY, .by = settings_take_real_path),
	FIELD(executor, wall.image, "image", FIELD_BY, .by = settings_take_real_path),
	FIELD(executor, wall.emulate, "emulate", FIELD_BOOL),
	FIELD(executor, size, "size", FIELD_INT, .min = 1, .max = POOL_SIZE_MAX),
	FIELD(executor, silence_ms, "silenceMs", FIELD_INT, .min = 1000, .max = DAY_MS, .unit = "ms"),
	FIELD(executor, working_dir, "workingDir", FIELD_BY, .by = settings_take_path),
	{"adapter", FIELD_BY, .by = settings_take_agent},
	{"model", FIELD_BY, .by = settings_take_agent},
	{"credential", FIELD_BY, .by = settings_take_agent},
	{"fallback", FIELD_BY, .by = settings_take_agent},
	{"prompt", FIELD_BY, .by = settings_take_agent},
	{"policy", FIELD_BY, .by = settings_take_agent},
	{"checks", FIELD_BY, .by = settings_take_agent},
	{"onBudget", FIELD_BY, .by = settings_take_agent},
	{"toolMs", FIELD_BY, .by = settings_take_agent},
	{"checkMs", FIELD_BY, .by = settings_take_agent},
};

/* A level that lacks what it is made of can never be had. */
static void check_wall(struct form *form, const struct executor *executor)
{
	const struct wall *wall = &executor->wall;
	const char *lacks = NULL, *unfit = executor_unfit(executor, wall->level);

	if (unfit)
		form_error(form, "", "has isolation \"%s\": %s", wall_level_name(wall->level), unfit);

	if (wall->level == WALL_CONTAINER && !wall->rootfs)
		lacks = "rootfs, the directory of its system";
	else if (wall->level == WALL_VM && !wall->kernel)
		lacks = "kernel, the file with its kernel";
	else if (wall->level == WALL_VM && !wall->initrd && !wall->image)
		lacks = "image, the file with its disk, or initrd";
	if (lacks)
		form_error(
			form, "", "has isolation \"%s\" and needs %s", wall_level_name(wall->level), lacks);
}

/* What a pool is where nothing is said; and what only a pool has. */
static void finish_pool(struct form *form, yyjson_val *value, struct executor *executor)
{
	static const char *const own[] = {"size", "silenceMs", "workingDir"};

	if (strcmp(executor->kind, "pool") != 0) {
		for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
			if (yyjson_obj_get(value, own[i]))
				form_error(form, own[i], "is only for pools");
		}
		executor->size = 0;
		return;
	}
	if (yyjson_equals_str(yyjson_obj_get(value, "argv"), "payload"))
		form_error(form, "argv", "must be a program: a pool runs it before there is a task");
	if (executor->env_from_task)
		form_error(form, "envFromTask", "is not for pools: their workers run before there is a task");
	if (executor->worktree.on)
		form_error(form, "worktree", "is not for pools: their workers stay where they are");
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
	settings->executors[i] = (struct executor){.name = name,
		.kind = "command",
		.grace_ms = GRACE_MS,
		.worktree = worktree_default(),
		.limits = limits_default()};
	return &settings->executors[i];
}

void settings_take_executor(struct form *form, struct span name, yyjson_val *value, void *into)
{
	struct settings *settings = into;

	if (!text_is_id(name) || !yyjson_is_obj(value)) {
		form_wrong_as(form, "", "an object under a name of letters, digits and -._:", value);
		return;
	}
	const char *kept = form_keep(form, name);
	struct executor *executor = kept ? place_executor(settings, kept) : NULL;
	if (!executor) {
		form_error(form, "", "is one too many: there may be %d executors", EXECUTORS_MAX);
		return;
	}
	form_read(form, value, FIELDS(executor_fields), executor);
	executor->offline = yyjson_is_false(yyjson_obj_get(value, "network"));
	finish_pool(form, value, executor);
	settings_finish_agent(form, value, executor);
	check_wall(form, executor);
	settings->executor_origins[executor - settings->executors] = config_form_origin(form);
	executor->bounds = limits_bounds(&executor->limits);
	/* root's processes are counted by nobody but a cgroup */
	if (yyjson_obj_get(yyjson_obj_get(value, "limits"), "tasks") && geteuid() == 0)
		executor->bounds |= 1u << BOUND_PIDS;
	if (!yyjson_obj_get(value, "kind") || (!yyjson_obj_get(value, "argv") && !executor->argv))
		form_error(form, "",
			"needs kind and argv, as in {\"kind\": \"command\", \"argv\": [\"make\", \"test\"]}");
}

struct executor *settings_add_executor(struct settings *settings, const char *name)
{
	struct executor *executor = settings_executor(settings, name) ? NULL : place_executor(settings, name);

	if (executor)
		settings->executor_origins[executor - settings->executors] = (struct config_origin){0};
	return executor;
}

void settings_add_payload(struct settings *settings, const char *name)
{
	if (settings_executor(settings, name))
		return;
	struct executor *executor = place_executor(settings, name);
	if (executor) {
		executor->reads_home = true;
		settings->executor_origins[executor - settings->executors] = (struct config_origin){0};
	}
}
