/*
 * What an attempt reaches beyond its own directories and the paths that its executor grants: its program with the tree that
 * the program is installed in, the files that the operator's argv names, and, if the executor reads it, the home of the person.
 * All of it is looked up for each attempt.
 */
#pragma once

#include "attempt/program.h"

struct reach {
	struct person_home home;
	const char *program; /* for process_spec.program; NULL: none was found, or a container has its own */
	const char *cache;   /* where its programs may keep caches; NULL: it has none */
};

/* -ENOMEM; -EIO and others: the directory for caches cannot be made. */
int reach_look(struct reach *reach, struct arena *arena, const struct program_place *place,
	const struct executor *executor, const char *const *argv, enum wall_level level);

/* Adds the grants. -ENOMEM. */
int reach_grant(const struct reach *reach, struct arena *arena, const struct program_place *place,
	const struct executor *executor, enum wall_level level, struct grant_list *list);
