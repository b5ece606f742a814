#include "attempt/environment.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OWN_MAX = 64 };

struct list {
	struct arena *arena;
	const char **items;
	size_t count, room;
	bool failed;
};

static size_t length(const char *const *items)
{
	size_t count = 0;

	while (items && items[count])
		count++;
	return count;
}

/* Does the list, NULL at the end, have a variable of that name? */
static bool is_given(const char *const *items, const char *name, size_t len)
{
	for (size_t i = 0; items && items[i]; i++) {
		if (strncmp(items[i], name, len) == 0 && items[i][len] == '=')
			return true;
	}
	return false;
}

/* NULL: not set. */
static void add(struct list *list, const char *name, const char *value)
{
	if (!value || is_given(list->items, name, strlen(name)))
		return;
	assert(list->count < list->room);
	const char *line = arena_text(list->arena, "%s=%s", name, value);
	if (line[0])
		list->items[list->count++] = line;
	else
		list->failed = true;
}

static void add_variable(void *list, const char *name, const char *value)
{
	add(list, name, value);
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
	add(list, "TRACEPARENT", about->traceparent);
	add_number(list, "STINT_DEADLINE_MS", about->deadline_ms);
}

/* Programs differ in the spelling that they look for, and Node in whether it looks at all. */
static void add_proxy(struct list *list, const char *url)
{
	static const char *const names[] = {"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"};

	for (size_t i = 0; url && i < sizeof names / sizeof *names; i++)
		add(list, names[i], url);
	if (url) {
		add(list, "NO_PROXY", "localhost,127.0.0.1,::1");
		add(list, "no_proxy", "localhost,127.0.0.1,::1");
		add(list, "NODE_USE_ENV_PROXY", "1");
	}
}

const char *const *environment_make(
	struct arena *arena, const struct environment *about, const struct executor *executor)
{
	const char *path = about->path ? about->path : getenv("PATH");
	size_t own = length(executor->env), of_agent = length(about->of_agent),
	       of_task = length(about->from_task);
	struct list list = {.arena = arena, .room = OWN_MAX + own + of_agent + of_task};

	list.items = arena_alloc(arena, (list.room + 1) * sizeof *list.items);
	if (!list.items)
		return NULL;
	for (size_t i = 0; i < own; i++)
		list.items[list.count++] = executor->env[i];
	for (size_t i = 0; i < of_agent; i++) { /* what the operator says counts more */
		if (!is_given(executor->env, about->of_agent[i], strcspn(about->of_agent[i], "=")))
			list.items[list.count++] = about->of_agent[i];
	}
	for (size_t i = 0; i < of_task; i++) {
		size_t len = strcspn(about->from_task[i], "=");
		if (!is_given(executor->env, about->from_task[i], len) &&
			!is_given(about->of_agent, about->from_task[i], len))
			list.items[list.count++] = about->from_task[i];
	}
	add(&list, "PATH", path && path[0] ? path : "/usr/local/bin:/usr/bin:/bin");
	add(&list, "HOME", about->home);
	add(&list, "TMPDIR", about->tmp);
	add(&list, "STINT_URL", about->url);
	add(&list, "STINT_TOKEN_FILE", about->token_file);
	add_task(&list, about);
	add_proxy(&list, about->proxy);
	add(&list, "STINT_WORKER_ID", about->worker);
	add(&list, "STINT_WORKSPACE", about->workspace);
	/* two names: the protocol's document and its first program disagree */
	add(&list, "AIRI_WORKER_ID", about->pool_child);
	add(&list, "AIRIER_WORKER_ID", about->pool_child);
	add(&list, "STINT_MODEL", about->model);
	add(&list, "STINT_THINKING", about->thinking);
	add(&list, "STINT_EXECUTION_MODE", about->execution_mode);
	if (about->person && about->cache)
		person_home_variables(about->person, arena, about->cache, add_variable, &list);
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
		bool twice = is_given(executor->env, usual[i], strlen(usual[i]));
		for (size_t j = 0; j < more; j++)
			twice |= strcmp(executor->env_allow[j], usual[i]) == 0;
		if (!twice)
			names[count++] = usual[i];
	}
	for (size_t i = 0; i < more; i++) {
		if (!is_given(executor->env, executor->env_allow[i], strlen(executor->env_allow[i])))
			names[count++] = executor->env_allow[i];
	}
	return names;
}
