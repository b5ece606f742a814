/*
 * A look at all of a store, for stintd --check-store: what SQLite itself says of its pages and indices, and every row by
 * its checksum. It changes nothing.
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

/* All columns, the seal last: see row_is_sealed(). A row is named by its column `key`, a number or a text. */
static const struct whole_table {
	const char *name, *sql;
	int key;
} whole_tables[] = {
	{"meta", "SELECT key, value, crc FROM meta ORDER BY key", 0},
	{"name", "SELECT id, text, principal, crc FROM name ORDER BY id", 0},
	{"task_base", "SELECT seq, data, crc FROM task_base ORDER BY seq", 0},
	{"task_id", "SELECT id, seq, crc FROM task_id ORDER BY id", 1},
	{"task_key", "SELECT key, seq, crc FROM task_key ORDER BY key", 1},
	{"edge", "SELECT parent, child, dead, crc FROM edge ORDER BY parent, child", 1},
	{"small", "SELECT kind, key, data, crc FROM small ORDER BY kind, key", 1},
	{"secret", "SELECT kind, key, data, crc FROM secret ORDER BY kind, key", 1},
	{"idem",
		"SELECT principal, key, fingerprint, task, created_ms, deduplicated, crc FROM idem ORDER BY 1, 2",
		1},
	{"worker", NULL, 0},
	{"token", NULL, 0},
};

static int tell(const struct look *look, const char *table, int64_t row, const char *what)
{
	return look->each(look->context, &(struct finding){table, row, what, NULL});
}

static int tell_row(const struct look *look, const struct whole_table *table, sqlite3_stmt *statement)
{
	struct columns columns = {statement, table->key};
	char key[DAMAGE_KEY_BYTES];
	struct finding finding = {.table = table->name, .what = "its checksum is wrong"};

	if (sqlite3_column_type(statement, table->key) == SQLITE_INTEGER) {
		finding.row = column_int(&columns);
	} else {
		backend_key_text(column_span(&columns), key);
		finding.key = key;
	}
	return look->each(look->context, &finding);
}

/* The two with many columns have a statement that reads all of them anyway. */
static const char *sql_of(const struct whole_table *table)
{
	if (table->sql)
		return table->sql;
	return sql_statements[table->name[0] == 'w' ? SQL_SCAN_WORKERS : SQL_SCAN_TOKENS];
}

/* The tables whose rows a start asks for by their keys: a row whose own key is damaged would not be asked for. */
static bool is_small(const struct whole_table *table)
{
	return strcmp(table->name, "meta") == 0 || strcmp(table->name, "small") == 0 ||
		strcmp(table->name, "secret") == 0;
}

static int check_whole_table(const struct look *look, const struct whole_table *table)
{
	sqlite3_stmt *statement;
	int code = sqlite3_prepare_v2(look->store->db, sql_of(table), -1, &statement, NULL);
	int r = 0;

	if (code != SQLITE_OK)
		return tell(look, table->name, 0, sqlite3_errmsg(look->store->db));
	while (r == 0 && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		if (!row_is_sealed(statement))
			r = tell_row(look, table, statement);
	}
	if (r == 0 && code != SQLITE_DONE)
		r = tell(look, table->name, 0, sqlite3_errmsg(look->store->db));
	sqlite3_finalize(statement);
	return r;
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

static int stop_at_first(void *context, const struct finding *finding)
{
	struct sqlite *store = context;

	if (finding->key)
		return sqlite_fault_key(store, finding->table, span_of(finding->key));
	if (finding->row == 0)
		return sqlite_fault_page(store, finding->table);
	return sqlite_fault_row(store, finding->table, finding->row);
}

int check_small(struct sqlite *store)
{
	struct look look = {store, stop_at_first, store};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof whole_tables / sizeof *whole_tables; i++) {
		if (is_small(&whole_tables[i]))
			r = check_whole_table(&look, &whole_tables[i]);
	}
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
	for (size_t i = 0; r == 0 && i < sizeof whole_tables / sizeof *whole_tables; i++)
		r = check_whole_table(&look, &whole_tables[i]);
	return r;
}
