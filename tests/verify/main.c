/*
 * stint-verify DB [HISTORY]         DB: the path of a file, or the URL of a store in PostgreSQL
 *
 * Opens a store that nobody serves, as a start of the server would, and proves it: the memory equals the rows, the
 * events folded give the rows. Then it writes the events and the rows as a history for the checker. Exit status 0,
 * 1 for a broken proof, 2 for a store that cannot be read. The opening is an event: look at a copy.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proof/check.h"
#include "base/clock.h"
#include "base/take.h"
#include "history/history.h"
#include "store/postgres.h"
#include "store/sqlite.h"
#include "store/store.h"

enum {
	PAGE_ROWS = 1000,
	TASKS_MAX = 1 << 22,
};

struct verify {
	struct store *store;
	struct history history;
	struct fold *folds; /* by number of the task */
	int64_t folds_room;
	int64_t last;
};

static int complain(const char *what, const char *why)
{
	printf("%s: %s\n", what, why);
	return 2;
}

static int open_backend(const char *path, struct backend **ret_backend, char **ret_complaint)
{
	struct sqlite_options sqlite = {.path = path, .no_ballast = true};
	struct postgres_options postgres = {.url = path};

	return postgres_is_url(path) ? postgres_open(&postgres, ret_backend, ret_complaint)
				     : sqlite_open(&sqlite, ret_backend, ret_complaint);
}

/* It is opened in the boot that it was last served in, so that no lease is granted anew. */
static int open_store(const char *path, struct store **ret_store)
{
	struct store_options options = store_options_default();
	struct backend *backend;
	int64_t boot_hi = 0, boot_lo = 0;
	cleanup(free_at) char *complaint = NULL;

	int r = open_backend(path, &backend, &complaint);
	if (r < 0)
		return complain(path, complaint ? complaint : strerror(-r));
	backend->ops->get_meta(backend, META_BOOT_HI, &boot_hi);
	backend->ops->get_meta(backend, META_BOOT_LO, &boot_lo);
	options.boot_hi = (uint64_t)boot_hi;
	options.boot_lo = (uint64_t)boot_lo;
	options.now = (struct moment){clock_ms(CLOCK_REALTIME), clock_ms(CLOCK_BOOTTIME)};
	r = store_open(backend, &options, ret_store);
	if (r < 0) {
		backend->ops->close(backend);
		return complain(path, strerror(-r));
	}
	return 0;
}

static int prove(struct store *store)
{
	char why[256] = "";

	if (store_check_memory(store, why, sizeof why) < 0) {
		complain("memory and rows", why);
		return 1;
	}
	if (store_check_fold(store, why, sizeof why) < 0) {
		complain("events and rows", why);
		return 1;
	}
	return 0;
}

static struct fold *fold_of(struct verify *verify, int64_t task)
{
	if (task >= TASKS_MAX)
		return NULL;
	if (task >= verify->folds_room) {
		int64_t room = task * 2 < TASKS_MAX ? task * 2 : TASKS_MAX;
		struct fold *folds = realloc(verify->folds, (size_t)room * sizeof *folds);
		if (!folds)
			return NULL;
		memset(&folds[verify->folds_room], 0, (size_t)(room - verify->folds_room) * sizeof *folds);
		verify->folds = folds;
		verify->folds_room = room;
	}
	verify->folds[task].task.seq = task;
	return &verify->folds[task];
}

static int put_event(void *context, const struct record *record)
{
	struct verify *verify = context;
	struct fold *fold = NULL;

	verify->last = record->seq;
	if (record->task != 0) {
		fold = fold_of(verify, record->task);
		if (!fold)
			return -ENOMEM;
		fold_apply(fold, record);
	}
	return history_event(&verify->history, verify->store, 1, record, fold);
}

static int put_row(void *context, const struct task *task, struct span holder)
{
	struct verify *verify = context;
	char id[32];
	int len = snprintf(id, sizeof id, "t%" PRId64, task->seq);

	verify->last = task->seq;
	return history_row(&verify->history, verify->store, (struct span){id, (size_t)len}, task, holder);
}

static int put_history(struct verify *verify)
{
	struct store *store = verify->store;
	int64_t before = -1;
	int r = 0;

	while (r == 0 && verify->last < store_last_event(store))
		r = store_page_events(store, verify->last, PAGE_ROWS, put_event, verify);
	verify->last = 0;
	while (r == 0 && verify->last != before) {
		before = verify->last;
		r = store_page_tasks(store, verify->last, PAGE_ROWS, put_row, verify);
	}
	return r < 0 ? r : history_quiet(&verify->history);
}

static int write_history(struct store *store, const char *path)
{
	struct verify verify = {.store = store};
	FILE *file = fopen(path, "we");

	if (!file)
		return complain(path, strerror(errno));
	history_init(&verify.history);
	int r = store_event_base(store) == 0 ? put_history(&verify) : -ESTALE;
	if (r == 0 &&
		fwrite(verify.history.text.data, 1, verify.history.text.len, file) != verify.history.text.len)
		r = -EIO;
	if (fclose(file) != 0)
		r = -EIO;
	history_done(&verify.history);
	free(verify.folds);
	return r < 0 ? complain("no history", strerror(-r)) : 0;
}

int main(int argc, char **argv)
{
	struct store *store = NULL;

	if (argc != 2 && argc != 3) {
		fputs("usage: stint-verify DB [HISTORY]\n", stderr);
		return 2;
	}
	int status = open_store(argv[1], &store);
	if (status == 0)
		status = prove(store);
	if (status == 0 && argc == 3)
		status = write_history(store, argv[2]);
	if (status == 0)
		printf("OK %" PRId64 "\n", store_last_event(store));
	store_close(store);
	return status;
}
