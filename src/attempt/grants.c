#include "attempt/grants.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

int grants_begin(struct grant_list *list, struct arena *arena, const struct executor *executor,
	const char *run_path, int run_fd)
{
	_Static_assert(4 + 2 * PATHS_MAX <= GRANTS_USUAL, "those of an executor fit beside its own");
	_Static_assert(GRANTS_USUAL + PERSON_HOME_ENTRIES_MAX + 64 <= GRANTS_MAX, "with the system's");
	*list = (struct grant_list){
		.room = GRANTS_USUAL + (executor->reads_home ? PERSON_HOME_ENTRIES_MAX : 0)};
	list->items = arena_alloc(arena, list->room * sizeof *list->items);
	if (!list->items)
		return -ENOMEM;
	list->items[list->count++] = (struct grant){.path = run_path, .fd = run_fd, .access = GRANT_READ};
	int r = grant_hold(&list->items[0]);
	if (r < 0)
		return r;
	grants_add(list, arena_text(arena, "%s/home", run_path), GRANT_WRITE, false);
	grants_add(list, arena_text(arena, "%s/tmp", run_path), GRANT_WRITE, false);
	return list->count == 3 ? 0 : -ENOMEM;
}

void grants_add(struct grant_list *list, const char *path, enum grant_access access, bool optional)
{
	if (list->count < list->room && path && path[0])
		list->items[list->count++] =
			(struct grant){.path = path, .fd = -1, .access = access, .optional = optional};
}

void grants_add_direct(struct grant_list *list, const char *path, enum grant_access access)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].path && list->items[i].access == access &&
			strcmp(list->items[i].path, path) == 0)
			return;
	if (list->count < list->room && path[0])
		list->items[list->count++] = (struct grant){.path = path,
			.fd = -1,
			.access = access,
			.optional = true,
			.direct = true,
			.outside = true};
}

void grants_add_executor(struct grant_list *list, const struct executor *executor)
{
	assert(list->count <= 4); /* the static assertion in grants_begin() counts on it */
	list->count += executor_grants(executor, list->items + list->count);
}

int grants_add_home(struct grant_list *list, struct arena *arena, const struct person_home *home,
	enum wall_level level, const char *cache)
{
	size_t most = level == WALL_PROCESS ? PERSON_HOME_ENTRIES_MAX : PERSON_HOME_WALLED_MAX;

	if (list->room - list->count < most)
		most = list->room - list->count;
	int shown = person_home_grants(home, arena, list->items + list->count, most, NULL, NULL);
	if (shown < 0)
		return shown;
	list->count += (size_t)shown;
	grants_add(list, cache, GRANT_WRITE, false);
	return 0;
}

const char *grants_make_cache(struct arena *arena, const char *state, const struct executor *executor)
{
	const char *all = arena_text(arena, "%s/cache", state);
	const char *own = arena_text(arena, "%s/cache/%s", state, executor->name);

	if (!own[0] || (mkdir(all, 0700) < 0 && errno != EEXIST) || (mkdir(own, 0700) < 0 && errno != EEXIST))
		return NULL;
	return own;
}
