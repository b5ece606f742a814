/*
 * What a child may reach of the file system besides its work dir: its own directory, and what its executor grants. The
 * caller adds what else it needs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "exec/request/confine.h"
#include "attempt/executor.h"
#include "attempt/person_home.h"

enum { GRANTS_USUAL = 160 }; /* room of an attempt that is not shown the home of the person */

struct grant_list {
	struct grant *items; /* in the arena */
	size_t count, room;
};

/* Allocates the list and adds the first grants: the directory of the run, which `run_fd` holds open, with its home and
 * its directory for temporary files. -ENOMEM. */
int grants_begin(struct grant_list *list, struct arena *arena, const struct executor *executor,
	const char *run_path, int run_fd);

/* Borrows the path; NULL and the empty path add nothing. What is more than there is room for is left out. */
void grants_add(struct grant_list *list, const char *path, enum grant_access access, bool optional);

/* A path without links, if it exists: a link that comes to be on its way is not followed, and the state directory stays
 * closed. Nothing is added twice. */
void grants_add_direct(struct grant_list *list, const char *path, enum grant_access access);

/* To be called right after grants_begin() and at most one grants_add(): then there is room for all grants. */
void grants_add_executor(struct grant_list *list, const struct executor *executor);

/* For an executor that is shown the home of the person: its entries, and `cache`, where programs may write. -ENOMEM. */
int grants_add_home(struct grant_list *list, struct arena *arena, const struct person_home *home,
	enum wall_level level, const char *cache);

/* The directory for the caches of an executor, which is made if it is missing; in the arena. NULL: it cannot be made. */
const char *grants_make_cache(struct arena *arena, const char *state, const struct executor *executor);
