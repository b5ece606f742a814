#include "worker/settings/parts.h"

#include <ctype.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/request/ancestors.h"
#include "exec/cgroup_place.h"

#define PATH_USUAL "/usr/local/bin:/usr/bin:/bin"

enum { PATH_BYTES_MAX = 64 << 10 };

enum {
	NAME_BYTES_MAX = 128,
	WEIGHT_MAX = 1000,
};

/* prSweep as it is written. */
struct sweep_form {
	int kind;
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
	{"kind", FIELD_CHOICE, .at = offsetof(struct sweep_form, kind), .words = "github"},
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
	for (size_t i = 0; list && list[i]; i++)
		settings->roots[settings->root_count++] = list[i];
	return list != NULL;
}

static bool take_sweep(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	struct sweep_form sweep = {.sweep.on = true};

	form_read_inner(form, field->name, value, FIELDS(sweep_fields), &sweep);
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

const struct executor *settings_fallback(const struct settings *settings, const char *queue)
{
	for (uint32_t i = 0; i < settings->queue_count; i++) {
		if (settings->queues[i].executor && strcmp(settings->queues[i].name, queue) == 0)
			return settings_executor(settings, settings->queues[i].executor);
	}
	return settings->executor_count == 1 ? &settings->executors[0] : NULL;
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

static bool is_tasks(const struct settings *settings, const char *dir)
{
	for (uint32_t i = 0; i < settings->root_count; i++)
		if (ancestors_compare(settings->roots[i], dir) == LIES_ABOVE)
			return true;
	for (uint32_t i = 0; i < settings->executor_count; i++) {
		const struct settings_path *path = settings->executors[i].write;
		for (; path && path->name; path++)
			if (ancestors_compare(path->real, dir) == LIES_ABOVE)
				return true;
	}
	return false;
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

void settings_settle_path(struct settings *settings, struct config *config)
{
	const char *path = getenv("PATH");
	char own[PATH_BYTES_MAX] = "";
	size_t used = 0;

	settings->path_count = 0;
	settings->path_text = config_keep(config, path && path[0] ? path : PATH_USUAL);
	take_path(settings, config, settings->path_text);
	for (uint32_t i = 0; i < settings->path_count; i++) {
		const char *real = settings->path[i].real;
		if ((!is_tasks(settings, real) || is_systems(real)) && used + strlen(real) + 2 < sizeof own)
			used += (size_t)snprintf(
				own + used, sizeof own - used, "%s%s", used ? ":" : "", real);
	}
	setenv("PATH", used ? own : PATH_USUAL, 1);
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
			wall_level_name(executor->wall.level), executor->wall.network ? " with network" : "");
		put_argv(out, executor);
		put_budget(out, executor);
	}
	if (settings->executor_count == 0)
		buf_printf(out, "executor none: a worker does not start without one\n");
	for (uint32_t i = 0; i < settings->queue_count; i++) {
		const struct executor *executor = settings_fallback(settings, settings->queues[i].name);
		buf_printf(out, "queue    %-16s %s%s, weight %lld\n", settings->queues[i].name,
			executor ? "executor " : "no executor: tasks must name one",
			executor ? executor->name : "", (long long)settings->queues[i].weight);
	}
	for (uint32_t i = 0; i < settings->root_count; i++)
		buf_printf(out, "root     %s\n", settings->roots[i]);
	return buf_fault(out);
}
