/*
 * The program of an attempt: which file argv[0] means, and what must be readable for that file to run.
 *
 * The install tree of P/bin/x is P. If P is too much (the home, ~/.local, a directory that holds a secret or the state) it is
 * the file alone. The same holds for what the file links to, and for the interpreter that its first line names. A link or a
 * first line that a task can write is not believed: the next attempt would be shown what the task before chose.
 */
#pragma once

#include <stdbool.h>

#include "attempt/grants.h"
#include "attempt/person_home.h"
#include "exec/request/search.h"

enum { PROGRAM_STEPS_MAX = 8 };

struct program_place {
	const struct person_home *home;
	const char *path; /* PATH of the child */
	/* Can a task change what lies in this directory? */
	bool (*is_writable)(const void *context, const char *dir);
	const void *context;
};

/* The file that a program of the operator's argv, or of the PATH, is. `own`: the argv is the operator's; of a task's argv
 * only programs in a directory of PATH count. The file is in the arena; NULL: there is none, or it is found in the work dir. */
const char *program_find(const struct program_place *place, struct arena *arena, const char *name, bool own);

/* By its name: does it lie where every program may read? */
bool program_is_of_system(const char *path);

/* For a program of our own, as git: any of its kind will do. The first in PATH that these grants, or the system's, let the
 * child read; in the arena. NULL: there is none. */
const char *program_within(
	struct arena *arena, const char *path, const char *name, const struct grant *grants, size_t count);

/* The file that is run in a sandbox: a link outside of an install tree (~/.local/bin/x) is not there, but what it leads to is. */
const char *program_behind_wall(const struct program_place *place, struct arena *arena, const char *file);

/* Adds what the file needs to run. */
void program_grant(
	const struct program_place *place, struct arena *arena, const char *file, struct grant_list *list);
