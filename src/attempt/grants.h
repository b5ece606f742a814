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

struct grant_list {
	struct grant *items; /* in the arena */
	size_t count;
};

/* Allocates the list and adds the first grants: the directory of the run, which `run_fd` holds open, with its home and
 * its directory for temporary files. -ENOMEM. */
int grants_begin(struct grant_list *list, struct arena *arena, const char *run_path, int run_fd);

/* Borrows the path; NULL and the empty path add nothing. More than GRANTS_MAX are left out. */
void grants_add(struct grant_list *list, const char *path, enum grant_access access, bool optional);

/* To be called right after grants_begin() and at most one grants_add(): then there is room for all grants. */
void grants_add_executor(struct grant_list *list, const struct executor *executor);
