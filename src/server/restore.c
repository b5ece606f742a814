/*
 * stintd --restore FILE: a backup takes the place of the store while no server runs. The store that was there is kept
 * beside it under another name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/take.h"
#include "base/utf8.h"
#include "server/backup.h"
#include "server/home.h"
#include "store/sqlite.h"

enum {
	EXIT_RESTORE = 74,
	IN_ONE_SECOND_MAX = 100, /* restores; the next is refused by the store */
};

static void name_aside(char *path, size_t size, const char *store, const char *why)
{
	time_t now = time(NULL);
	char when[32];
	struct tm utc;
	int i = 0;

	gmtime_r(&now, &utc);
	strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", &utc);
	do {
		snprintf(path, size, "%s.before-%s-%s-%d", store, why, when, i);
	} while (access(path, F_OK) == 0 && ++i < IN_ONE_SECOND_MAX);
}

/* What SQLite says has names of the file in it, which is anybody's: no byte of theirs moves the cursor of a terminal. */
static void print_safely(FILE *out, struct span text)
{
	while (text.len > 0) {
		bool good;
		size_t len = utf8_next(text, &good);
		const unsigned char *byte = (const unsigned char *)text.data;
		bool control =
			byte[0] < ' ' || byte[0] == 0x7f || (len == 2 && byte[0] == 0xc2 && byte[1] < 0xa0);
		for (size_t i = 0; i < len; i++) {
			if (good && !control)
				fputc(byte[i], out);
			else
				fprintf(out, "\\x%02x", byte[i]);
		}
		text = (struct span){text.data + len, text.len - len};
	}
}

int restore_run(const struct options *options)
{
	const char *store = options->store;
	char aside[OPTIONS_PATH_MAX + 64];
	cleanup(free_at) char *complaint = NULL;

	int r = home_prepare(options->home);
	if (r != 0)
		return r;
	name_aside(aside, sizeof aside, store, "restore");
	r = sqlite_restore(options->restore, store, aside, &complaint);
	if (r < 0) {
		fputs("stintd: cannot restore ", stderr);
		print_safely(stderr, span_of(options->restore));
		fputs(": ", stderr);
		print_safely(stderr, span_of(complaint ? complaint : strerror(-r)));
		fputc('\n', stderr);
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

int store_set_aside(const struct options *options, char **ret_complaint)
{
	char aside[OPTIONS_PATH_MAX + 64];

	name_aside(aside, sizeof aside, options->store, "new");
	int r = sqlite_set_aside(options->store, aside, ret_complaint);
	if (r == 0 && access(aside, F_OK) == 0)
		log_warn("a new store is begun; the store that was there is kept", log_cstr("path", aside));
	return r;
}
