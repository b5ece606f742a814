/*
 * stintd --restore FILE: a backup takes the place of the store while no server runs. The store that was there is kept
 * beside it under another name; two names for one file cost nothing until one of them is given up.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/take.h"
#include "server/home.h"
#include "server/server.h"
#include "store/sqlite.h"

enum {
	EXIT_RESTORE = 74,
};

static void name_aside(char *path, size_t size, const char *store)
{
	time_t now = time(NULL);
	char when[32];
	struct tm utc;

	gmtime_r(&now, &utc);
	strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", &utc);
	snprintf(path, size, "%s.before-restore-%s", store, when);
}

static int complain(const char *what, const char *why)
{
	fprintf(stderr, "stintd: cannot restore %s: %s\n", what, why);
	return EXIT_RESTORE;
}

int restore_run(const struct options *options)
{
	const char *store = options->store;
	char aside[OPTIONS_PATH_MAX + 64];
	cleanup(free_at) char *complaint = NULL;

	int r = home_prepare(options->home);
	if (r != 0)
		return r;
	name_aside(aside, sizeof aside, store);
	bool kept = link(store, aside) == 0;
	if (!kept && errno != ENOENT && errno != EPERM &&
		errno != EOPNOTSUPP) /* not every file system has two names */
		return complain(options->restore, "the store that is there cannot be kept aside");
	r = sqlite_restore(options->restore, store, &complaint);
	if (r < 0) {
		if (kept)
			unlink(aside);
		return complain(options->restore, complaint ? complaint : strerror(-r));
	}
	printf("stintd: restored %s to %s%s%s: a new generation, in which every claim is set free at the next start, "
	       "fences and tokens of before are refused and no id is given out again\n",
		options->restore, store, kept ? "; the store that was there is kept as " : "",
		kept ? aside : "");
	return 0;
}
