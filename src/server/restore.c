/*
 * stintd --restore FILE: a backup takes the place of the store while no server runs. The store that was there is kept
 * beside it under another name.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/take.h"
#include "base/utf8.h"
#include "server/backup.h"
#include "server/home.h"
#include "server/moved.h"
#include "store/sqlite.h"

enum {
	EXIT_RESTORE = 74,
	LIST_BYTES_MAX = 1 << 20,
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

/* The tokens that a restore brought back or took away, by what it did. */
struct told {
	struct buf lists[RESTORED_TOKEN_ENDED + 1];
	uint32_t counts[RESTORED_TOKEN_ENDED + 1];
};

static void note_token(void *context, enum restored_token what, struct span id, struct span name)
{
	struct told *told = context;

	if (what < RESTORED_TOKEN_UNKNOWN || what > RESTORED_TOKEN_ENDED)
		return;
	buf_printf(&told->lists[what], "%s%.*s (%.*s)", told->counts[what]++ > 0 ? ", " : "", SPAN_ARGS(id),
		SPAN_ARGS(name));
}

static void told_done(struct told *told)
{
	for (int what = RESTORED_TOKEN_UNKNOWN; what <= RESTORED_TOKEN_ENDED; what++)
		buf_done(&told->lists[what]);
}

static void print_tokens(struct told *told)
{
	static const char *const words[] = {
		[RESTORED_TOKEN_UNKNOWN] =
			("what the replaced store knew of tokens or quarantines could not all be read: look through stint token ls, "
			 "and revoke what must not be valid"),
		[RESTORED_TOKEN_CAME] =
			"these tokens are valid again (the replaced store did not have them; stint token revoke ID ends one): ",
		[RESTORED_TOKEN_WENT] =
			"these tokens are gone (the backup does not have them; their holders need new ones): ",
		[RESTORED_TOKEN_ENDED] =
			"these tokens are revoked (they had ended in the replaced store, which had forgotten them): ",
	};

	for (int what = RESTORED_TOKEN_UNKNOWN; what <= RESTORED_TOKEN_ENDED; what++) {
		if (told->counts[what] > 0) {
			printf("stintd: %s", words[what]);
			if (what != RESTORED_TOKEN_UNKNOWN)
				print_safely(stdout, buf_span(&told->lists[what]));
			fputc('\n', stdout);
		}
	}
	told_done(told);
}

static int refuse(const struct options *options, int fault, const char *complaint)
{
	fputs("stintd: cannot restore ", stderr);
	print_safely(stderr, span_of(options->restore));
	fputs(": ", stderr);
	print_safely(stderr, span_of(complaint ? complaint : strerror(-fault)));
	fputc('\n', stderr);
	return EXIT_RESTORE;
}

static int restore_into_postgres(const struct options *options, struct told *told)
{
	const struct restore_teller teller = {.token = note_token, .context = told};
	cleanup(free_at) char *complaint = NULL;
	struct copied copied = {0};
	int r = moved_to_postgres(
		options->restore, options->store_url, options->home, &teller, &copied, &complaint);

	if (r < 0) {
		told_done(told);
		return refuse(options, r, complaint);
	}
	printf("stintd: restored %s into %s (%" PRIu64
	       " rows): a new generation, in which every claim is set free at the next start, fences of before, and tokens of instances and claims, are "
	       "refused and no id is given out again; execution stays disarmed if it was so in the backup\n",
		options->restore, options->store, copied.rows);
	print_tokens(told);
	return 0;
}

int restore_run(const struct options *options)
{
	const char *store = options->store;
	char aside[OPTIONS_PATH_MAX + 64];
	cleanup(free_at) char *complaint = NULL;

	int r = home_prepare(options->home);
	if (r != 0)
		return r;
	struct told told = {0};
	for (int what = RESTORED_TOKEN_UNKNOWN; what <= RESTORED_TOKEN_ENDED; what++)
		buf_init(&told.lists[what], LIST_BYTES_MAX);
	if (options->store_url)
		return restore_into_postgres(options, &told);
	name_aside(aside, sizeof aside, store, "restore");
	r = sqlite_restore(options->restore, store, aside,
		&(struct restore_teller){.token = note_token, .context = &told}, &complaint);
	if (r < 0) {
		told_done(&told);
		return refuse(options, r, complaint);
	}
	bool kept = access(aside, F_OK) == 0;
	printf("stintd: restored %s to %s%s%s: a new generation, in which every claim is set free at the next start, "
	       "fences of before, and tokens of instances and claims, are refused and no id is given out again; execution stays "
	       "disarmed if it was in either of them, tokens stay revoked and slots quarantined that were so in the replaced store\n",
		options->restore, store, kept ? "; the store that was there is kept as " : "",
		kept ? aside : "");
	print_tokens(&told);
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
