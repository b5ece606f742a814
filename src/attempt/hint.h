/*
 * What to tell a person whose program failed because isolation hid something from it. The kernel does not say which path was
 * refused, so it is taken from the program's own words: a line with "Permission denied" and an absolute path that we could
 * open and the program could not. A hint never recommends to open a secret, or an entry of the home that begins with a dot and
 * is no toolchain.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "attempt/person_home.h"
#include "base/span.h"

enum { HINT_BYTES_MAX = 1200, HINT_LINES_MAX = 32, HINT_PATHS_MAX = 32 };

struct hint_site {
	const struct person_home *home; /* after person_home_look() */
	const struct grant *grants;     /* what the program could reach besides the system's */
	size_t grant_count;
	const char *workdir;
	enum wall_level level;
	const char *executor, *file; /* its name, and the file where it is configured, or would be */
	bool configured;             /* it stands in that file */
};

/* `words` is the end of its standard error. A sentence in the arena; NULL: there is nothing to say. */
const char *hint_from_words(const struct hint_site *site, struct arena *arena, struct span words);

/* The same for a program that could not be executed. */
const char *hint_from_program(const struct hint_site *site, struct arena *arena, const char *program);
