/*
 * The home of the person whose worker this is: what of it an executor with "read": ["home"] shows, and what of it nobody may
 * be shown.
 *
 * Landlock has grants only. "The home without its secrets" would need a complete list of secrets, which forgets the next
 * tool. So entries that begin with a dot are closed without a list, the toolchain trees among them are named, and the other
 * entries are open, each granted by itself. A list of known secrets leaves out open entries that hold one, also by a link,
 * refuses work dirs, and keeps hints from recommending one.
 *
 * Everything is looked up for each attempt. Of links only one is followed, and only if it stands in the home itself, where no
 * task can put one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "attempt/executor.h"

enum {
	PERSON_HOME_ENTRIES_MAX = 1000, /* shown at the most */
	PERSON_HOME_WALLED_MAX = 96,    /* … in a sandbox, where each is a mount */
	PERSON_HOME_LED_MAX = 128,
};

struct person_home {
	const char *path;  /* without links; NULL: there is none */
	const char *state; /* the state directory, without links; NULL: none */
	const char *
		token; /* the file with the worker's own token, without links; NULL: none, or it is in the state directory */
	/* Filled by person_home_look(): where the links of known secrets lead. */
	const char *const *led;
	size_t led_count;
};

enum home_kind {
	HOME_OUTSIDE,   /* elsewhere on the machine */
	HOME_ABOVE,     /* the home itself, or a directory above it */
	HOME_OPEN,      /* an entry without a leading dot, or beneath one */
	HOME_TOOLCHAIN, /* a named toolchain tree, or beneath one */
	HOME_CLOSED,    /* a dot entry */
	HOME_SECRET,    /* a known secret, beneath one, or a directory that holds one */
	HOME_STATE,     /* the state directory, above or beneath it */
};

/* By $HOME; `state` is the state directory. Texts go into the arena. -ENOMEM. */
int person_home_find(struct person_home *home, struct arena *arena, const char *state);

/* Finds the known secrets that are links. -ENOMEM. */
int person_home_look(struct person_home *home, struct arena *arena);

/* The path has no links in it. */
enum home_kind person_home_kind(const struct person_home *home, const char *path);

/* The toolchain tree that the path lies in, as a path; NULL: in none. */
const char *person_home_toolchain(const struct person_home *home, struct arena *arena, const char *path);

/* Why may no task work there? NULL: it may. `roots` are those that the configuration names: one that lies in a dot entry
 * allows what is beneath it, and one that is the home allows the home. */
const char *person_home_bars(
	const struct person_home *home, const char *const *roots, size_t root_count, const char *path);

/* Called for an entry that is not shown although its name would allow it. */
typedef void (*person_home_omitted)(void *context, const char *path, const char *why);

/* The entries that are shown, as grants to read, at most `most`; returns how many, or -ENOMEM. `omitted` may be NULL. */
int person_home_grants(const struct person_home *home, struct arena *arena, struct grant *grants, size_t most,
	person_home_omitted omitted, void *context);

/* The variables that lead programs to the person's toolchains and to caches in `cache`. Each is called with a name and a
 * value in the arena. */
typedef void (*person_home_variable)(void *context, const char *name, const char *value);
void person_home_variables(const struct person_home *home, struct arena *arena, const char *cache,
	person_home_variable each, void *context);

/* The file or directory may be granted because a program needs it: neither state, nor a secret, nor the home. */
bool person_home_allows(const struct person_home *home, const char *path);
