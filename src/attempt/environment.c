#include "attempt/environment.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OWN_MAX = 20 };

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

/* NULL: not set. */
static void add(struct list *list, const char *name, const char *value)
{
	if (!value || is_given(list->executor, name))
		return;
	assert(list->count <
		OWN_MAX + length(list->executor->env)); /* the list was made with that much room */
	const char *line = arena_text(list->arena, "%s=%s", name, value);
	if (line[0])
		list->items[list->count++] = line;
	else
		list->failed = true;
}

static void add_number(struct list *list, const char *name, int64_t number)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRId64, number);
	add(list, name, text);
}

static void add_task(struct list *list, const struct environment *about)
{
	if (!about->task)
		return;
	add(list, "STINT_TASK_ID", about->task);
	add(list, "STINT_FENCE", about->fence);
	add_number(list, "STINT_ATTEMPT", about->attempt);
	add(list, "STINT_QUEUE", about->queue);
	add_number(list, "STINT_DEADLINE_MS", about->deadline_ms);
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
	add(&list, "PATH", path && path[0] ? path : "/usr/local/bin:/usr/bin:/bin");
	add(&list, "HOME", about->home);
	add(&list, "TMPDIR", about->tmp);
	add(&list, "STINT_URL", about->url);
	add(&list, "STINT_TOKEN_FILE", about->token_file);
	add_task(&list, about);
	add(&list, "STINT_WORKER_ID", about->worker);
	add(&list, "STINT_WORKSPACE", about->workspace);
	/* two names: the protocol's document and its first program disagree */
	add(&list, "AIRI_WORKER_ID", about->pool_child);
	add(&list, "AIRIER_WORKER_ID", about->pool_child);
	add(&list, "STINT_MODEL", about->model);
	add(&list, "STINT_THINKING", about->thinking);
	add(&list, "STINT_EXECUTION_MODE", about->execution_mode);
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
