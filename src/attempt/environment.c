#include "attempt/environment.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	OWN_MAX = 20,
	LINE_BYTES = 8192,
};

struct list {
	struct arena *arena;
	const struct executor *executor;
	const char **items;
	size_t count;
	bool failed;
};

static size_t length(const char *const *items)
{
	size_t count = 0;

	while (items && items[count])
		count++;
	return count;
}

/* Does the executor say this one itself? */
static bool is_given(const struct executor *executor, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; executor->env && executor->env[i]; i++) {
		if (strncmp(executor->env[i], name, len) == 0 && executor->env[i][len] == '=')
			return true;
	}
	return false;
}

static void add(struct list *list, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void add(struct list *list, const char *name, const char *format, ...)
{
	char line[LINE_BYTES];
	struct span kept;
	va_list args;
	int used = snprintf(line, sizeof line, "%s=", name);

	if (is_given(list->executor, name))
		return;
	va_start(args, format);
	int more = vsnprintf(line + used, sizeof line - (size_t)used, format, args);
	va_end(args);
	if (more < 0 || used + more >= (int)sizeof line || arena_copy(list->arena, span_of(line), &kept) < 0)
		list->failed = true;
	else
		list->items[list->count++] = kept.data;
}

static void add_task(struct list *list, const struct environment *about)
{
	if (!about->task)
		return;
	add(list, "STINT_TASK_ID", "%s", about->task);
	add(list, "STINT_FENCE", "%s", about->fence);
	add(list, "STINT_ATTEMPT", "%u", about->attempt);
	add(list, "STINT_QUEUE", "%s", about->queue);
	add(list, "STINT_DEADLINE_MS", "%" PRId64, about->deadline_ms);
}

const char *const *environment_make(
	struct arena *arena, const struct environment *about, const struct executor *executor)
{
	const char *path = about->path ? about->path : getenv("PATH");
	struct list list = {.arena = arena, .executor = executor};
	size_t own = length(executor->env);

	list.items = arena_alloc(arena, (OWN_MAX + own + 1) * sizeof *list.items);
	if (!list.items)
		return NULL;
	for (size_t i = 0; i < own; i++)
		list.items[list.count++] = executor->env[i];
	add(&list, "PATH", "%s", path && path[0] ? path : "/usr/local/bin:/usr/bin:/bin");
	if (about->home)
		add(&list, "HOME", "%s", about->home);
	if (about->tmp)
		add(&list, "TMPDIR", "%s", about->tmp);
	if (about->url)
		add(&list, "STINT_URL", "%s", about->url);
	if (about->token_file)
		add(&list, "STINT_TOKEN_FILE", "%s", about->token_file);
	add_task(&list, about);
	add(&list, "STINT_WORKER_ID", "%s", about->worker);
	if (about->workspace)
		add(&list, "STINT_WORKSPACE", "%s", about->workspace);
	if (about->pool_worker) { /* two names: the protocol's document and its first program disagree */
		add(&list, "AIRI_WORKER_ID", "%s", about->pool_worker);
		add(&list, "AIRIER_WORKER_ID", "%s", about->pool_worker);
	}
	if (about->model)
		add(&list, "STINT_MODEL", "%s", about->model);
	if (about->thinking)
		add(&list, "STINT_THINKING", "%s", about->thinking);
	if (about->execution_mode)
		add(&list, "STINT_EXECUTION_MODE", "%s", about->execution_mode);
	return list.failed ? NULL : list.items;
}

const char *const *environment_allowed(struct arena *arena, const struct executor *executor)
{
	static const char *const usual[] = {"LANG", "LC_ALL", "LC_CTYPE", "TZ"};
	size_t more = length(executor->env_allow), count = 0;
	const char **names = arena_alloc(arena, (sizeof usual / sizeof *usual + more + 1) * sizeof *names);

	if (!names)
		return NULL;
	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
		bool twice = is_given(executor, usual[i]);
		for (size_t j = 0; j < more; j++)
			twice |= strcmp(executor->env_allow[j], usual[i]) == 0;
		if (!twice)
			names[count++] = usual[i];
	}
	for (size_t i = 0; i < more; i++) {
		if (!is_given(executor, executor->env_allow[i]))
			names[count++] = executor->env_allow[i];
	}
	return names;
}
