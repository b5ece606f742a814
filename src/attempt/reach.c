#include "attempt/reach.h"

#include <errno.h>
#include <string.h>

#include "exec/request/ancestors.h"

int reach_look(struct reach *reach, struct arena *arena, const struct program_place *place,
	const struct executor *executor, const char *const *argv, enum wall_level level)
{
	*reach = (struct reach){.home = *place->home};
	if (level > WALL_SANDBOX)
		return 0;
	reach->program = program_find(place, arena, argv[0], executor->argv != NULL);
	/* secrets matter only for what is granted beyond the system's own */
	bool further = executor->reads_home || (executor->files && executor->files->name) ||
		(reach->program && !program_is_of_system(reach->program));
	int r = further ? person_home_look(&reach->home, arena) : 0;
	if (r < 0)
		return r;
	if (further && reach->program && level == WALL_SANDBOX) {
		struct program_place now = *place;
		now.home = &reach->home;
		reach->program = program_behind_wall(&now, arena, reach->program);
	}
	if (!executor->reads_home || !reach->home.state)
		return 0;
	reach->cache = grants_make_cache(arena, reach->home.state, executor);
	return reach->cache ? 0 : errno ? -errno : -EIO;
}

static void grant_files(const struct reach *reach, const struct executor *executor, struct grant_list *list)
{
	for (const struct settings_path *file = executor->files; file && file->name; file++)
		if (person_home_allows(&reach->home, file->real))
			grants_add_direct(list, file->real, GRANT_READ);
}

int reach_grant(const struct reach *reach, struct arena *arena, const struct program_place *place,
	const struct executor *executor, enum wall_level level, struct grant_list *list)
{
	struct program_place now = *place;

	if (level > WALL_SANDBOX)
		return 0;
	now.home = &reach->home;
	grant_files(reach, executor, list);
	if (reach->program)
		program_grant(&now, arena, reach->program, list);
	return executor->reads_home ? grants_add_home(list, arena, &reach->home, level, reach->cache) : 0;
}
