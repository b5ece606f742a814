/*
 * stintd --restore FILE: a backup takes the place of the store while no server runs. The store that was there is kept
 * beside it under another name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/take.h"
#include "server/backup.h"
#include "server/home.h"
#include "store/sqlite.h"

enum {
	EXIT_RESTORE = 74,
	IN_ONE_SECOND_MAX = 100, /* restores; the next is refused by the store */
};

static void name_aside(char *path, size_t size, const char *store)
{
	time_t now = time(NULL);
	char when[32];
	struct tm utc;
	int i = 0;

	gmtime_r(&now, &utc);
	strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", &utc);
	do {
		snprintf(path, size, "%s.before-restore-%s-%d", store, when, i);
	} while (access(path, F_OK) == 0 && ++i < IN_ONE_SECOND_MAX);
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
	r = sqlite_restore(options->restore, store, aside, &complaint);
	if (r < 0) {
		fprintf(stderr, "stintd: cannot restore %s: %s\n", options->restore,
			complaint ? complaint : strerror(-r));
		return EXIT_RESTORE;
	}
	bool kept = access(aside, F_OK) == 0;
	printf("stintd: restored %s to %s%s%s: a new generation, in which every claim is set free at the next start, "
	       "fences and tokens of before are refused and no id is given out again; execution stays disarmed if it was in "
	       "either of them\n",
		options->restore, store, kept ? "; the store that was there is kept as " : "",
		kept ? aside : "");
	return 0;
}
