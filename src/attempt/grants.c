#include "attempt/grants.h"

#include <assert.h>
#include <errno.h>

int grants_begin(struct grant_list *list, struct arena *arena, const char *run_path, int run_fd)
{
	_Static_assert(4 + 2 * PATHS_MAX <= GRANTS_MAX, "those of an executor fit beside its own");
	*list = (struct grant_list){.items = arena_alloc(arena, GRANTS_MAX * sizeof *list->items)};
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
	if (list->count < GRANTS_MAX && path && path[0])
		list->items[list->count++] =
			(struct grant){.path = path, .fd = -1, .access = access, .optional = optional};
}

void grants_add_executor(struct grant_list *list, const struct executor *executor)
{
	assert(list->count <= 4); /* the static assertion in grants_begin() counts on it */
	list->count += executor_grants(executor, list->items + list->count);
}
