#include "worker/settings/parts.h"

#include <ctype.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/settings.h"
#include "exec/request/ancestors.h"
#include "exec/cgroup_place.h"

#define PATH_USUAL "/usr/local/bin:/usr/bin:/bin"

enum { PATH_BYTES_MAX = 64 << 10, OMISSIONS_TOLD_MAX = 20, HOME_LOOK_BYTES = 4 << 20 };

enum {
	NAME_BYTES_MAX = 128,
	WEIGHT_MAX = 1000,
};

enum { SWEEP_ARGV_MAX = 64 };

/* prSweep as it is written. */
struct sweep_form {
	enum { SWEEP_GITHUB, SWEEP_COMMAND } kind;
	struct settings_sweep sweep;
};

bool settings_is_name(const char *name)
{
	return text_is_id(span_of(name));
}

/* ---- queues and roots ------------------------------------------------------------------------------------- */

struct settings_queue *settings_add_queue(struct settings *settings, const char *name, int64_t weight)
{
	uint32_t i = 0;

	while (i < settings->queue_count && strcmp(settings->queues[i].name, name) != 0)
		i++;
	if (i == QUEUES_MAX)
		return NULL;
	if (i == settings->queue_count)
		settings->queues[settings->queue_count++] = (struct settings_queue){.name = name};
	settings->queues[i].weight = weight;
	return &settings->queues[i];
}

static const struct field queue_fields[] = {
	FIELD(settings_queue, executor, "executor", FIELD_STRING, .accepts = settings_is_name,
		.allowed = "the name of an executor"),
	FIELD(settings_queue, weight, "weight", FIELD_INT, .min = 1, .max = WEIGHT_MAX),
};

static void take_queue(struct form *form, struct span name, yyjson_val *value, void *into)
{
	struct settings *settings = into;

	if (!text_is_id(name) || !yyjson_is_obj(value)) {
		form_wrong_as(form, "", "an object under a name of letters, digits and -._:", value);
		return;
	}
	const char *kept = form_keep(form, name);
	struct settings_queue *queue = kept ? settings_add_queue(settings, kept, 1) : NULL;
	if (!queue) {
		form_error(form, "", "is one too many: there may be %d queues", QUEUES_MAX);
		return;
	}
	*queue = (struct settings_queue){.name = kept, .weight = 1, .where = config_form_origin(form)};
	form_read(form, value, FIELDS(queue_fields), queue);
}

bool settings_is_repository(const char *name)
{
	const char *slash = strchr(name, '/');

	return slash && slash > name && slash[1] && strlen(name) <= NAME_BYTES_MAX && name[0] != '-' &&
		!strchr(slash + 1, '/') &&
		name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/")] == 0;
}

static const struct field sweep_fields[] = {
	{"kind", FIELD_CHOICE, .at = offsetof(struct sweep_form, kind), .words = "github|command"},
	FIELD(sweep_form, sweep.argv, "argv", FIELD_STRINGS, .min = 1, .max = SWEEP_ARGV_MAX,
		.allowed = "a list of a program and its arguments"),
	FIELD(sweep_form, sweep.repository, "repository", FIELD_STRING, .accepts = settings_is_repository,
		.allowed = "owner/name"),
	FIELD(sweep_form, sweep.queue, "queue", FIELD_STRING, .accepts = settings_is_name,
		.allowed = "the name of a queue"),
	FIELD(sweep_form, sweep.executor, "executor", FIELD_STRING, .accepts = settings_is_name,
		.allowed = "the name of an executor"),
};

/* ---- keys -------------------------------------------------------------------------------------------------- */

static bool take_executors(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	form_each(form, field->name, value, settings_take_executor, at);
	return true;
}

static bool take_queues(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	form_each(form, field->name, value, take_queue, at);
	return true;
}

static bool take_roots(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	const char *const *list = settings_read_paths(form, field->name, value, ROOTS_MAX);
	struct settings *settings = at;

	settings->root_count = 0;
	settings->roots_origin = config_form_origin(form);
	for (size_t i = 0; list && list[i]; i++)
		settings->roots[settings->root_count++] = list[i];
	return list != NULL;
}

static bool take_sweep(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	struct sweep_form sweep = {.sweep.on = true};

	form_read_inner(form, field->name, value, FIELDS(sweep_fields), &sweep);
	if (sweep.kind == SWEEP_COMMAND && (!sweep.sweep.argv || sweep.sweep.repository))
		form_error(form, field->name,
			"of kind command needs argv, and no repository, as in {\"kind\": \"command\", \"argv\": [\"list-work\"]}");
	if (sweep.kind != SWEEP_COMMAND && sweep.sweep.argv)
		form_error(form, field->name, "has an argv: that is for \"kind\": \"command\"");
	((struct settings *)at)->sweep = sweep.sweep;
	return true;
}

static bool take_landlock(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	const struct field words = {.name = field->name, .kind = FIELD_CHOICE, .words = "required|optional"};
	int word = 0;

	bool good = form_take(form, &words, value, &word);
	((struct settings *)at)->landlock_optional = word == 1;
	return good;
}

void settings_read(
	void *settings, struct config *config, struct form *form, struct span key, yyjson_val *value)
{
	static const struct field fields[] = {
		{"executors", FIELD_BY, .by = take_executors},
		{"queues", FIELD_BY, .by = take_queues},
		{"roots", FIELD_BY, .by = take_roots},
		{"prSweep", FIELD_BY, .by = take_sweep},
		{"landlock", FIELD_BY, .by = take_landlock},
		{"prices", FIELD_BY, .by = settings_take_prices},
	};

	((struct settings *)settings)->config = config;
	form_take_member(form, FIELDS(fields), key, value, settings);
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

const struct executor *settings_queue_executor(const struct settings *settings, const char *queue)
{
	for (uint32_t i = 0; i < settings->queue_count; i++) {
		if (settings->queues[i].executor && strcmp(settings->queues[i].name, queue) == 0)
			return settings_executor(settings, settings->queues[i].executor);
	}
	return settings->executor_count == 1 ? &settings->executors[0] : NULL;
}

/* A limit of dollars needs an agent that says them, or a price of its model. */
static void check_prices(const struct settings *settings, struct config *config)
{
	for (uint32_t i = 0; i < settings->executor_count; i++) {
		const struct executor *executor = &settings->executors[i];
		const struct agent_settings *agent = executor->agent;
		if (!agent || agent->usd_max == 0 || agent->adapter->counts_usd ||
			price_find(&settings->prices, agent->model))
			continue;
		config_note_problem(config, settings->executor_origins[i],
			"executors.%s.budget.usd cannot be metered: %s says tokens and no money, and \"prices\" has no price "
			"of the executor's \"model\"%s%s; add it, or use \"tokens\"",
			executor->name, agent->adapter->name, agent->model ? ", " : "",
			agent->model ? agent->model : "");
	}
}

void settings_check(struct settings *settings, struct config *config)
{
	char file[4096];

	settings->config = config;
	if (!settings->file)
		settings->file = config_user_file(file, sizeof file) ? config_keep(config, file)
								     : "config.json of the state directory";
	for (uint32_t i = 0; i < settings->queue_count; i++) {
		const struct settings_queue *queue = &settings->queues[i];
		if (queue->executor && !settings_executor(settings, queue->executor))
			config_note_problem(config, queue->where,
				"queues.%s.executor is \"%s\", and there is no executor of that name",
				queue->name, queue->executor);
	}
	check_prices(settings, config);
	settings_check_fallback(settings, config);
}

void settings_assert(const struct settings *settings)
{
	assert(settings->executor_count > 0);
	assert(settings->executor_count <= EXECUTORS_MAX);
	assert(settings->queue_count > 0);
	assert(settings->queue_count <= QUEUES_MAX);
	assert(settings->root_count <= ROOTS_MAX);
	for (uint32_t i = 0; i < settings->executor_count; i++) {
		const struct executor *executor = &settings->executors[i];
		bool pool = executor->size > 0;
		assert(settings_is_name(executor->name));
		assert(pool == (strcmp(executor->kind, "pool") == 0));
		assert(executor->size <= POOL_SIZE_MAX);
		assert(!pool || executor->argv); /* it runs before there is a task */
		assert(!pool || !executor->worktree.on);
		assert(!pool || executor->start_ms > 0);
		assert(!pool || executor->stall_ms > 0);
		assert(!pool || executor->silence_ms > 0);
		assert(!executor->argv || executor->argv[0][0]);
		assert(executor->grace_ms >= 0);
		assert(executor->timeout_ms >= 0);
		assert(executor->budget_ms >= 0);
		assert(executor->wall.level != WALL_CONTAINER || executor->wall.rootfs);
		assert(executor->wall.level != WALL_VM || executor->wall.kernel);
	}
	for (uint32_t i = 0; i < settings->queue_count; i++) {
		const struct settings_queue *queue = &settings->queues[i];
		assert(settings_is_name(queue->name));
		assert(queue->weight >= 1);
		assert(queue->weight <= WEIGHT_MAX);
		assert(!queue->executor || settings_executor(settings, queue->executor));
	}
}

/* ---- where programs are found ---- */

/* A root or a grant may lie above it: "/", say. Who may write there has nothing to gain from us. */
static bool is_systems(const char *dir)
{
	static const char *const places[] = {"/usr", "/bin", "/sbin", "/opt", "/nix", "/snap"};

	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (ancestors_compare(places[i], dir) == LIES_ABOVE)
			return true;
	return false;
}

/* Can a task change it? */
static bool is_tasks(const struct settings *settings, const char *dir)
{
	for (uint32_t i = 0; i < settings_named_roots(settings); i++)
		if (ancestors_compare(settings->roots[i], dir) == LIES_ABOVE)
			return true;
	if (settings->home_root && settings->home.path && path_lies_in(dir, settings->home.path) &&
		!person_home_bars(&settings->home, NULL, 0, dir))
		return true;
	for (uint32_t i = 0; i < settings->executor_count; i++) {
		const struct settings_path *path = settings->executors[i].write;
		for (; path && path->name; path++)
			if (ancestors_compare(path->real, dir) == LIES_ABOVE)
				return true;
	}
	return false;
}

static bool is_writable(const void *settings, const char *dir)
{
	return is_tasks(settings, dir);
}

static void take_path(struct settings *settings, struct config *config, const char *at)
{
	char dir[ANCESTORS_NAME_BYTES], real[ANCESTORS_NAME_BYTES];

	while (*at && settings->path_count < PROGRAM_DIRS_MAX) {
		size_t len = strcspn(at, ":");
		if ((size_t)snprintf(dir, sizeof dir, "%.*s", (int)len, at) < sizeof dir && dir[0] == '/' &&
			dir[1] && ancestors_real_name(dir, real))
			settings->path[settings->path_count++] =
				(struct settings_path){config_keep(config, dir), config_keep(config, real)};
		at += len + (at[len] == ':');
	}
}

void settings_settle_path(struct settings *settings, struct config *config, const char *state)
{
	const char *path = getenv("PATH");
	char own[PATH_BYTES_MAX] = "";
	size_t used = 0;

	person_home_find(&settings->home, &config->arena, state);
	settings->path_count = 0;
	settings->path_text = config_keep(config, path && path[0] ? path : PATH_USUAL);
	take_path(settings, config, settings->path_text);
	for (uint32_t i = 0; i < settings->path_count; i++) {
		const char *real = settings->path[i].real;
		if ((!is_tasks(settings, real) || is_systems(real)) && used + strlen(real) + 2 < sizeof own)
			used += (size_t)snprintf(
				own + used, sizeof own - used, "%s%s", used ? ":" : "", real);
	}
	settings->place = (struct program_place){.home = &settings->home,
		.path = settings->path_text,
		.is_writable = is_writable,
		.context = settings};
	setenv("PATH", used ? own : PATH_USUAL, 1);
}

/* ---- where it is said ---- */

const char *settings_file_of(const struct settings *settings, struct config_origin origin)
{
	return origin.source == CONFIG_FILE ? origin.name : settings->file;
}

struct config_origin settings_origin_of(const struct settings *settings, const struct executor *executor)
{
	assert(executor >= settings->executors);
	assert(executor < settings->executors + settings->executor_count);
	return settings->executor_origins[executor - settings->executors];
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
				config_note_problem(config, settings->executor_origins[i],
					"executors.%s.%s cannot be enforced on this machine: %s; or leave it out",
					executor->name, keys[bound], place.why_not[bound]);
	}
}

/* ---- what would fail later ---- */

const char *settings_missing_program(const struct settings *settings, const struct executor *executor)
{
	const char *name = executor->argv ? executor->argv[0] : NULL;
	char file[SEARCH_PATH_BYTES];

	if (!name || executor->wall.level > WALL_SANDBOX || (name[0] != '/' && strchr(name, '/')))
		return NULL;
	if (name[0] == '/')
		return access(name, X_OK) == 0 ? NULL : name;
	return search_program(settings->path_text, name, file) == 0 ? NULL : name;
}

void settings_check_programs(const struct settings *settings, struct config *config)
{
	for (uint32_t i = 0; i < settings->executor_count; i++) {
		const char *missing = settings_missing_program(settings, &settings->executors[i]);
		if (missing)
			config_note_problem(config, settings->executor_origins[i],
				"executors.%s.argv begins with \"%s\", %s", settings->executors[i].name,
				missing,
				missing[0] == '/'
					? "which is not a program that the worker may execute"
					: "and no directory of the worker's PATH has such a program");
	}
}

static void put_finding(struct buf *out, const char *name, bool works, const char *text, const char *fix)
{
	struct json_object object;

	buf_put_byte(out, ',');
	json_begin(&object, out);
	json_member_word(&object, "level", name);
	json_member_null(&object, "executor");
	json_member_bool(&object, "works", works);
	json_member_word(&object, "text", "");
	json_member_string(&object, works ? "note" : "problem", span_of(text));
	json_member_string(&object, "fix", span_of(fix));
	json_end(&object);
}

int settings_put_findings(struct buf *out, const struct settings *settings)
{
	char text[6000], fix[400];

	for (uint32_t i = 0; i < settings->executor_count; i++) {
		const struct executor *executor = &settings->executors[i];
		const char *missing = settings_missing_program(settings, executor);
		if (!missing)
			continue;
		snprintf(text, sizeof text,
			"executors.%s.argv begins with \"%.1000s\", which is not in PATH or cannot be executed",
			executor->name, missing);
		snprintf(fix, sizeof fix,
			"stint worker run --check-config   # then install it, or mend %.300s",
			settings_file_of(settings, settings->executor_origins[i]));
		put_finding(out, "program", false, text, fix);
	}
	if (settings->home.token) {
		snprintf(text, sizeof text,
			"the token %.4096s lies outside of the state directory; tasks at levels process and sandbox do not see it, "
			"because the worker hides this one file by its name",
			settings->home.token);
		put_finding(out, "token", true, text, "");
	}
	return buf_fault(out);
}

bool settings_hide_token(struct settings *settings, struct config *config, const char *file)
{
	char real[ANCESTORS_NAME_BYTES];
	uint32_t before = config->problem_count;

	if (!file || !realpath(file, real) ||
		(settings->home.state && path_lies_in(real, settings->home.state)))
		return true;
	settings->home.token = config_keep(config, real);
	for (uint32_t i = 0; i < settings->executor_count; i++) {
		const struct settings_path *lists[] = {
			settings->executors[i].read, settings->executors[i].write};
		for (size_t j = 0; j < 2; j++)
			for (const struct settings_path *path = lists[j]; path && path->name; path++)
				if (path_lies_in(real, path->real))
					config_note_problem(config, settings->executor_origins[i],
						"executors.%s.%s has \"%s\", which holds the worker's own token %s: no task may see "
						"that; keep the token elsewhere",
						settings->executors[i].name, j == 0 ? "read" : "write",
						path->name, real);
	}
	return config->problem_count == before;
}

struct omission {
	struct buf *out;
	unsigned count;
};

static void put_omitted(void *context, const char *path, const char *why)
{
	struct omission *omission = context;

	if (omission->count++ < OMISSIONS_TOLD_MAX)
		buf_printf(omission->out, "         %-16s leaves out %s: %s\n", "", path, why);
}

/* What of the home an executor is shown. */
static void put_home(struct buf *out, const struct settings *settings, const struct executor *executor)
{
	size_t most = executor->wall.level == WALL_PROCESS ? PERSON_HOME_ENTRIES_MAX : PERSON_HOME_WALLED_MAX;
	struct omission omission = {.out = out};
	struct person_home home = settings->home;
	struct arena arena;

	if (!executor->reads_home || !home.path)
		return;
	arena_init(&arena, HOME_LOOK_BYTES);
	struct grant *grants = arena_alloc(&arena, most * sizeof *grants);
	if (grants && person_home_look(&home, &arena) == 0) {
		int shown = person_home_grants(&home, &arena, grants, most, put_omitted, &omission);
		buf_printf(
			out, "         %-16s reads %d entries and toolchains of %s\n", "", shown, home.path);
	}
	arena_done(&arena);
}

static void put_budget(struct buf *out, const struct executor *executor)
{
	const struct limits *limits = &executor->limits;

	if (executor->budget_ms > 0)
		buf_printf(
			out, "         %-16s budget: %g minutes\n", "", (double)executor->budget_ms / 60000);
	if (limits->cpu_us != LIMIT_UNCHANGED)
		buf_printf(out, "         %-16s budget: %g s of processor time\n", "",
			(double)limits->cpu_us / 1e6);
	if (limits->memory_bytes != LIMIT_UNCHANGED)
		buf_printf(out, "         %-16s budget: %llu bytes of memory\n", "",
			(unsigned long long)limits->memory_bytes);
	if (limits->output_bytes != LIMIT_UNCHANGED)
		buf_printf(out, "         %-16s budget: %llu bytes of output\n", "",
			(unsigned long long)limits->output_bytes);
}

static void put_argv(struct buf *out, const struct executor *executor)
{
	if (!executor->argv)
		buf_printf(out, " what the task carries");
	for (size_t i = 0; executor->argv && executor->argv[i]; i++)
		buf_printf(out, " %s", executor->argv[i]);
	if (executor->size > 0)
		buf_printf(out, " (%lld workers)", (long long)executor->size);
	buf_put_byte(out, '\n');
}

int settings_put(struct buf *out, const struct settings *settings)
{
	for (uint32_t i = 0; i < settings->executor_count; i++) {
		const struct executor *executor = &settings->executors[i];
		buf_printf(out, "executor %-16s %s, %s%s:", executor->name, executor->kind,
			wall_level_name(executor->wall.level),
			executor->wall.network    ? " with network"
				: executor->hosts ? " with a list of hosts"
						  : "");
		put_argv(out, executor);
		put_budget(out, executor);
		put_home(out, settings, executor);
	}
	if (settings->executor_count == 0)
		buf_printf(out, "executor none: a worker does not start without one\n");
	for (uint32_t i = 0; i < settings->queue_count; i++) {
		const struct executor *executor = settings_queue_executor(settings, settings->queues[i].name);
		buf_printf(out, "queue    %-16s %s%s, weight %lld\n", settings->queues[i].name,
			executor ? "executor " : "no executor: tasks must name one",
			executor ? executor->name : "", (long long)settings->queues[i].weight);
	}
	for (uint32_t i = 0; i < settings->root_count; i++)
		buf_printf(out, "root     %s%s\n", settings->roots[i],
			settings->home_root && i + 1 == settings->root_count
				? ", in entries that do not begin with a dot"
				: "");
	if (settings->home.token)
		buf_printf(out, "token    %s, hidden from tasks\n", settings->home.token);
	return buf_fault(out);
}
