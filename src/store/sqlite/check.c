/*
 * A look at all of a store, for stintd --check-store: what SQLite itself says of its pages and indices, and every row that has
 * a checksum. It changes nothing.
 */
#include <stdio.h>
#include <string.h>

#include "store/sqlite/sqlite_backend.h"

enum {
	COMPLAINTS_MAX = 100, /* of SQLite */
	WHAT_BYTES = 256,
};

struct look {
	struct sqlite *store;
	int (*each)(void *context, const struct finding *finding);
	void *context;
};

/* Rows with a seal: the numbers that it covers first, then one or two blobs or texts, then the seal. */
static const struct sealed_table {
	const char *name, *sql;
	int numbers, blobs;
	bool is_event;
} sealed_tables[] = {
	{"task", "SELECT seq, state, queue, priority, rest, holder, crc FROM task ORDER BY seq", 4, 2, false},
	{"task_body", "SELECT seq, body, crc FROM task_body ORDER BY seq", 1, 1, false},
	{"task_extra", "SELECT seq, kind, n, data, crc FROM task_extra ORDER BY seq, kind, n", 3, 1, false},
	{"event", "SELECT last, data, crc FROM event ORDER BY last", 1, 1, true},
};

static int tell(const struct look *look, const char *table, int64_t row, const char *what)
{
	return look->each(look->context, &(struct finding){table, row, what});
}

static bool row_is_right(
	const struct sqlite *store, const struct sealed_table *table, sqlite3_stmt *statement)
{
	struct columns columns = {statement, 0};
	int64_t numbers[SEAL_NUMBERS_MAX];
	struct span blobs[2] = {{0}, {0}};

	for (int i = 0; i < table->numbers; i++)
		numbers[i] = column_int(&columns);
	for (int i = 0; i < table->blobs; i++)
		blobs[i] = column_span(&columns);
	int64_t unsealed = table->is_event ? store->unsealed_event : store->unsealed_task;
	return seal_is_right(
		&columns, seal_of(numbers, table->numbers, blobs[0], blobs[1]), numbers[0] <= unsealed);
}

static int check_table(const struct look *look, const struct sealed_table *table)
{
	sqlite3_stmt *statement;
	int code = sqlite3_prepare_v2(look->store->db, table->sql, -1, &statement, NULL);
	int r = 0;

	if (code != SQLITE_OK)
		return tell(look, table->name, 0, sqlite3_errmsg(look->store->db));
	while (r == 0 && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		if (!row_is_right(look->store, table, statement))
			r = tell(look, table->name, sqlite3_column_int64(statement, 0),
				"its checksum is wrong");
	}
	if (r == 0 && code != SQLITE_DONE)
		r = tell(look, table->name, 0, sqlite3_errmsg(look->store->db));
	sqlite3_finalize(statement);
	return r;
}

static int check_pages(const struct look *look)
{
	sqlite3_stmt *statement;
	int code = sqlite3_prepare_v2(look->store->db, "PRAGMA integrity_check(100)", -1, &statement, NULL);
	int r = 0;

	_Static_assert(COMPLAINTS_MAX == 100, "as in the statement");
	if (code != SQLITE_OK)
		return tell(look, NULL, 0, sqlite3_errmsg(look->store->db));
	while (r == 0 && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_text(statement, 0);
		if (text && strcmp(text, "ok") != 0)
			r = tell(look, NULL, 0, text);
	}
	if (r == 0 && code != SQLITE_DONE)
		r = tell(look, NULL, 0, sqlite3_errmsg(look->store->db));
	sqlite3_finalize(statement);
	return r;
}

int sqlite_check(
	struct backend *backend, int (*each)(void *context, const struct finding *finding), void *context)
{
	struct look look = {sqlite_of(backend), each, context};
	int r = check_pages(&look);

	for (size_t i = 0; r == 0 && i < sizeof sealed_tables / sizeof *sealed_tables; i++)
		r = check_table(&look, &sealed_tables[i]);
	return r;
}
