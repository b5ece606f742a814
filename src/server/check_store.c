/*
 * stintd --check-store [FILE|URL]: all of a store is read, and nothing of it is changed. One JSON line for each thing that is
 * wrong. First what SQLite says of its pages and indices, then every row with a checksum; if all of them are right, the memory
 * that a start would build is compared with the rows, and the rows with their events.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/take.h"
#include "server/server.h"
#include "store/copy.h"
#include "store/postgres.h"
#include "store/sqlite.h"

enum {
	EXIT_DAMAGED = 1,
	EXIT_UNREADABLE = 74,
	EXIT_IN_USE = 75,
	LINE_BYTES_MAX = 64 << 10,
	FINDINGS_MAX = 10000,
};

struct findings {
	const char *path;
	uint32_t count;
};

static int print_finding(void *context, const struct finding *finding)
{
	struct findings *findings = context;
	cleanup(buf_done) struct buf line;

	buf_init(&line, LINE_BYTES_MAX);
	if (api_put_finding(
		    &line, findings->path, finding->table, finding->row, finding->key, finding->what) == 0)
		printf("%.*s\n", SPAN_ARGS(buf_span(&line)));
	return ++findings->count < FINDINGS_MAX ? 0 : 1;
}

static void print_what(struct findings *findings, const char *what)
{
	print_finding(findings, &(struct finding){.what = what});
}

/* Programs read the lines of stdout, so a store that cannot be read is a finding there, too. */
static int refuse_check(struct findings *findings, int fault, const char *complaint)
{
	const char *why = complaint ? complaint : strerror(-fault);

	fprintf(stderr, "stintd: cannot check %s: %s\n", findings->path, why);
	if (fault == -EBUSY)
		return EXIT_IN_USE;
	print_what(findings, why);
	return EXIT_UNREADABLE;
}

static void print_unopened(struct findings *findings, const struct backend *backend, int fault)
{
	assert(backend);
	struct finding finding = {.what = backend->complaint ? backend->complaint : strerror(-fault)};

	if (fault == -EBADMSG) {
		finding.table = backend->last_damage.table;
		finding.row = backend->last_damage.row;
		finding.key = backend->last_damage.key;
	}
	print_finding(findings, &finding);
}

/* What a start would do, without the start. */
static void prove(const struct options *options, struct backend *backend, struct findings *findings)
{
	struct store_options storage = options->storage;
	struct store *store;
	char why[256] = "";

	storage.look_only = true;
	storage.now = clock_now();
	int r = store_open(backend, &storage, &store);
	if (r < 0) {
		print_unopened(findings, backend, r);
		backend->ops->close(backend);
		return;
	}
	r = store_check_memory(store, why, sizeof why);
	if (r == 0)
		r = store_check_fold(store, why, sizeof why);
	if (r < 0)
		print_what(findings,
			why[0]                           ? why
				: store_complaint(store) ? store_complaint(store)
							 : strerror(-r));
	store_close(store);
}

/* Findings of the opening itself are told, and the look goes on with what SQLite can read. */
static int open_to_look(struct findings *findings, struct backend **ret_backend, char **ret_complaint)
{
	struct sqlite_options sqlite = {.path = findings->path, .no_ballast = true, .look_only = true};

	int r = clock_boot_id(&sqlite.boot_hi, &sqlite.boot_lo);
	if (r == 0)
		r = sqlite_open(&sqlite, ret_backend, ret_complaint);
	if (r != -EBADMSG)
		return r;
	print_what(findings, *ret_complaint ? *ret_complaint : strerror(-r));
	free(*ret_complaint);
	*ret_complaint = NULL;
	sqlite.accept_loss = true;
	return sqlite_open(&sqlite, ret_backend, ret_complaint);
}

/* A table is read until its first damaged row. */
static void read_tables(struct findings *findings, struct backend *backend)
{
	const char *table;
	int r = 0;

	for (uint32_t i = 0; (r = copy_check_table(backend, i, &table)) != -ENOENT; i++) {
		if (r < 0)
			print_unopened(findings, backend, r);
	}
}

/* One snapshot: whoever leads goes on. */
static int check_postgres(const struct options *options, const char *url)
{
	cleanup(free_at) char *shown = postgres_url_for_people(url);
	cleanup(free_at) char *complaint = NULL;
	struct findings findings = {.path = shown ? shown : "postgres"};
	struct backend *backend = NULL;
	int r = postgres_open_to_look(url, &backend, &complaint);

	if (r < 0)
		return refuse_check(&findings, r, complaint);
	read_tables(&findings, backend);
	if (findings.count == 0)
		prove(options, backend, &findings);
	else
		backend->ops->close(backend);
	return findings.count > 0 ? EXIT_DAMAGED : 0;
}

int check_store_run(const struct options *options)
{
	struct findings findings = {.path = options->check_path ? options->check_path : options->store};
	const char *url = options->check_path ? options->check_path : options->store_url;

	if (url && postgres_is_url(url))
		return check_postgres(options, url);
	struct backend *backend = NULL;
	cleanup(free_at) char *complaint = NULL;
	int r = open_to_look(&findings, &backend, &complaint);

	if (r < 0)
		return refuse_check(&findings, r, complaint);
	assert(backend); /* what was opened is there */
	r = sqlite_check(backend, print_finding, &findings);
	if (r == 0 && findings.count == 0)
		prove(options, backend, &findings);
	else
		backend->ops->close(backend);
	return findings.count > 0 ? EXIT_DAMAGED : 0;
}
