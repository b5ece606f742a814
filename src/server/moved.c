#include "server/moved.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/take.h"
#include "server/options.h"
#include "store/postgres.h"

enum {
	BACKUP_PAGES = 1000,
	PATH_BYTES = OPTIONS_PATH_MAX + 300,
};

const char moved_half[] = ".copying";

/* A store of its own has a mark, a log and the like beside it: it is made in a directory of its own. */
static void path_in(const char *directory, char path[PATH_BYTES])
{
	snprintf(path, PATH_BYTES, "%s/stint.db", directory);
}

void moved_clear(const char *directory)
{
	static const char *const names[] = {"stint.db", "stint.db-wal", "stint.db-shm", "stint.db-journal",
		"stint.db.ballast", "stint.db.partial", "stint.db.restoring", "store.mark"};
	char path[PATH_BYTES];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s/%s", directory, names[i]);
		unlink(path);
	}
	rmdir(directory);
}

static int keep_complaint(int fault, const struct backend *backend, char **ret_complaint)
{
	if (!*ret_complaint && backend && backend->complaint)
		*ret_complaint = strdup(backend->complaint);
	return fault;
}

static int open_file(const char *path, struct backend **ret_backend, char **ret_complaint)
{
	struct sqlite_options options = {.path = path, .no_ballast = true};

	return sqlite_open(&options, ret_backend, ret_complaint);
}

static void backend_close_at(struct backend **backend)
{
	if (*backend)
		(*backend)->ops->close(*backend);
}

/* ---- into a file ---------------------------------------------------------------------------------------------------- */

/* The file becomes a backup like any other: sealed, without secrets, synced, and only then with its name. */
static int publish(struct backend *file, const char *path)
{
	uint32_t remaining = 1;
	int r = file->ops->backup_begin(file, path);

	if (r < 0)
		return r;
	while (r == 0 && remaining > 0)
		r = file->ops->backup_step(file, BACKUP_PAGES, &remaining);
	file->ops->backup_end(file);
	return r;
}

static int move_through(struct backend *from, const char *directory, const char *path,
	const struct copy_options *options, struct copied *ret_copied, char **ret_complaint)
{
	cleanup(backend_close_at) struct backend *file = NULL;
	char place[PATH_BYTES];

	path_in(directory, place);
	int r = open_file(place, &file, ret_complaint);
	if (r < 0)
		return r;
	r = copy_rows(from, file, options, ret_copied);
	if (r < 0 && r != -ECANCELED)
		keep_complaint(r, from->complaint ? from : file, ret_complaint);
	if (r == 0)
		r = keep_complaint(publish(file, path), file, ret_complaint);
	return r;
}

int moved_to_file(const char *url, const char *path, const struct copy_options *options,
	struct copied *ret_copied, char **ret_complaint)
{
	cleanup(backend_close_at) struct backend *from = NULL;
	char directory[PATH_BYTES - 32];

	*ret_complaint = NULL;
	snprintf(directory, sizeof directory, "%s%s", path, moved_half);
	if (access(path, F_OK) == 0)
		return -EEXIST; /* an older backup may be the only one */
	int r = postgres_open_to_look(url, &from, ret_complaint);
	if (r < 0)
		return r;
	moved_clear(directory);
	if (mkdir(directory, 0700) < 0)
		return -errno;
	r = move_through(from, directory, path, options, ret_copied, ret_complaint);
	moved_clear(directory);
	return r;
}

/* ---- into PostgreSQL ------------------------------------------------------------------------------------------------- */

static int refuse_to_wait(void *context, const struct postgres_leader *leader)
{
	(void)context;
	(void)leader;
	return -EBUSY;
}

static int put_into(struct backend *file, const char *url, struct copied *ret_copied, char **ret_complaint)
{
	cleanup(backend_close_at) struct backend *to = NULL;
	cleanup(free_at) char *shown = postgres_url_for_people(url);
	const struct postgres_options options = {
		.url = url, .holder = "stintd --restore", .stand_by = refuse_to_wait};
	const struct copy_options by_parts = {.spill = postgres_spill};

	if (!shown)
		return -ENOMEM;
	int r = postgres_open(&options, &to, ret_complaint);
	if (r < 0)
		return r;
	int empty = copy_is_empty(to);
	if (empty == 0 &&
		asprintf(ret_complaint,
			"there is a store in that schema of %s; name another schema, as in postgres://…?schema=stint_2, or drop this one with psql",
			shown) < 0)
		*ret_complaint = NULL;
	if (empty == 0)
		return -EEXIST;
	r = empty < 0 ? empty : copy_rows(file, to, &by_parts, ret_copied);
	return r < 0 ? keep_complaint(r, to->complaint ? to : file, ret_complaint) : 0;
}

/* The copy is checked and marked as one that is restored to a file: then its rows are what the store shall have. */
static int restore_through(const char *backup, const char *url, const char *directory,
	const struct restore_teller *teller, struct copied *ret_copied, char **ret_complaint)
{
	cleanup(backend_close_at) struct backend *file = NULL;
	char place[PATH_BYTES];

	path_in(directory, place);
	int r = sqlite_restore(backup, place, NULL, teller, ret_complaint);
	if (r == 0)
		r = open_file(place, &file, ret_complaint);
	return r == 0 ? put_into(file, url, ret_copied, ret_complaint) : r;
}

int moved_to_postgres(const char *backup, const char *url, const char *home,
	const struct restore_teller *teller, struct copied *ret_copied, char **ret_complaint)
{
	char directory[PATH_BYTES - 32];

	*ret_complaint = NULL;
	snprintf(directory, sizeof directory, "%s/restoring-XXXXXX", home);
	if (!mkdtemp(directory))
		return -errno;
	int r = restore_through(backup, url, directory, teller, ret_copied, ret_complaint);
	moved_clear(directory);
	return r;
}
