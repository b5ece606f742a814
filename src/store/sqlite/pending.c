/*
 * Rows that were put and are not written yet.
 *
 * A statement that writes one row spends two thirds of its time on beginning and ending. So the rows of a turn that
 * there are many of (tasks and their bodies) are kept here and written together by one statement: SQLite reads them
 * as a table (a virtual one, which only this connection has) and the cursor of the table that they go to stays open
 * from one to the next. They are written before the commit, and before anything is asked of the table they go to.
 *
 * They are written in the order of their keys. From a row to the one right behind it SQLite takes a step; to any other
 * one it goes down from the root, and that is the longer the more rows there are. Of several rows with one key the last
 * one counts.
 *
 * Rejected: statements with places for many rows, one for each number of rows.
 */
#include "store/sqlite/pending.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/sqlite/sqlite_backend.h"

/* ---- putting rows in ---- */

static int make_room(struct pending *pending)
{
	uint32_t cap = pending->cap ? pending->cap * 2 : 256;
	struct pending_value *values;

	if (pending->count + pending->columns <= pending->cap)
		return 0;
	values = realloc(pending->values, cap * sizeof *values);
	if (!values)
		return -ENOMEM;
	pending->values = values;
	pending->cap = cap;
	return 0;
}

struct pending_value *pending_row(struct pending *pending)
{
	assert(pending->columns > 0);
	assert(pending->count % pending->columns == 0); /* every row before it is whole */
	pending->fault = make_room(pending);
	if (pending->fault)
		return NULL;
	assert(pending->count + pending->columns <= pending->cap);
	struct pending_value *row = &pending->values[pending->count];
	pending->count += pending->columns;
	return memset(row, 0, pending->columns * sizeof *row);
}

static struct pending_value put_bytes(struct pending *pending, enum pending_kind kind, struct span bytes)
{
	struct pending_value value = {.kind = kind, .at = pending->bytes.len, .len = bytes.len};
	int fault = buf_put_span(&pending->bytes, bytes);

	if (fault)
		pending->fault = fault;
	return value;
}

struct pending_value pending_text(struct pending *pending, struct span text)
{
	return put_bytes(pending, PENDING_TEXT, text);
}

struct pending_value pending_blob(struct pending *pending, struct span bytes)
{
	return put_bytes(pending, PENDING_BLOB, bytes);
}

void pending_forget(struct pending *pending)
{
	pending->count = 0;
	pending->fault = 0;
	if (pending->bytes.cap > PENDING_BYTES_KEPT)
		buf_done(&pending->bytes);
	buf_clear(&pending->bytes);
}

int pending_end_row(struct sqlite *store, enum pending_table table)
{
	struct pending *pending = &store->pending[table];

	if (pending->fault)
		return pending->fault;
	if (pending->count < PENDING_VALUES_MAX && pending->bytes.len < PENDING_BYTES_KEPT)
		return 0;
	return pending_write(store, table);
}

static int reserve_order(struct pending *pending)
{
	uint32_t rows = pending->count / pending->columns;
	struct pending_place *order;

	if (rows <= pending->order_cap)
		return 0;
	order = realloc(pending->order, pending->cap * sizeof *order);
	if (!order)
		return -ENOMEM;
	pending->order = order;
	pending->order_cap = pending->cap;
	return 0;
}

/* A turn's rows mostly come in order, or in a few orders that are mixed, and there are a few hundred at most. */
static int sort_rows(struct pending *pending)
{
	struct pending_place *order;
	uint32_t count = 0;
	int fault = reserve_order(pending);

	if (fault)
		return fault;
	order = pending->order;
	for (uint32_t at = 0; at < pending->count; at += pending->columns) {
		struct pending_place place = {pending->values[at].number, at};
		uint32_t i = count;

		while (i > 0 && order[i - 1].key > place.key)
			i--;
		if (i > 0 && order[i - 1].key == place.key) {
			order[i - 1] = place;
			continue;
		}
		assert(count < pending->order_cap);
		memmove(&order[i + 1], &order[i], (count - i) * sizeof *order);
		order[i] = place;
		count++;
	}
	assert(count * pending->columns <= pending->count); /* of rows with one key the last counts */
	pending->order_count = count;
	return 0;
}

int pending_write(struct sqlite *store, enum pending_table table)
{
	static const enum sql_statement statements[PENDING_TABLE_COUNT] = {
		[PENDING_NEW_TASK] = SQL_INSERT_TASKS,
		[PENDING_TASK] = SQL_REPLACE_TASKS,
		[PENDING_BODY] = SQL_PUT_BODIES,
	};
	struct pending *pending = &store->pending[table];
	int fault = 0;

	if (pending->count > 0)
		fault = sort_rows(pending);
	if (pending->count > 0 && !fault)
		fault = statement_run(store, statements[table]);
	pending_forget(pending);
	return fault;
}

/* ---- SQLite reads them as a table ---- */

struct pending_vtab {
	sqlite3_vtab base;
	const struct pending *pending;
};

struct pending_cursor {
	sqlite3_vtab_cursor base;
	const struct pending *pending;
	uint32_t at; /* in the order */
};

static int connect_pending(sqlite3 *db, void *context, int argc, const char *const *argv,
	sqlite3_vtab **ret_vtab, char **ret_complaint)
{
	struct pending_vtab *vtab;
	int code = sqlite3_declare_vtab(db, "CREATE TABLE pending (a, b, c, d, e, f, g, h, i)");

	(void)argc;
	(void)argv;
	(void)ret_complaint;
	if (code == SQLITE_OK)
		code = sqlite3_vtab_config(db, SQLITE_VTAB_DIRECTONLY);
	if (code != SQLITE_OK)
		return code;
	vtab = sqlite3_malloc(sizeof *vtab);
	if (!vtab)
		return SQLITE_NOMEM;
	*vtab = (struct pending_vtab){.pending = context};
	*ret_vtab = &vtab->base;
	return SQLITE_OK;
}

static int disconnect_pending(sqlite3_vtab *vtab)
{
	sqlite3_free(vtab);
	return SQLITE_OK;
}

/* There is one way to read it: all of it. */
static int plan_pending(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
	(void)vtab;
	info->estimatedCost = 1;
	return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *vtab, sqlite3_vtab_cursor **ret_cursor)
{
	struct pending_cursor *cursor = sqlite3_malloc(sizeof *cursor);

	if (!cursor)
		return SQLITE_NOMEM;
	*cursor = (struct pending_cursor){.pending = ((struct pending_vtab *)vtab)->pending};
	*ret_cursor = &cursor->base;
	return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
	sqlite3_free(cursor);
	return SQLITE_OK;
}

static int start_cursor(
	sqlite3_vtab_cursor *cursor, int plan, const char *plan_text, int argc, sqlite3_value **argv)
{
	(void)plan;
	(void)plan_text;
	(void)argc;
	(void)argv;
	((struct pending_cursor *)cursor)->at = 0;
	return SQLITE_OK;
}

static int step_cursor(sqlite3_vtab_cursor *base)
{
	((struct pending_cursor *)base)->at++;
	return SQLITE_OK;
}

static int cursor_is_at_end(sqlite3_vtab_cursor *base)
{
	const struct pending_cursor *cursor = (struct pending_cursor *)base;

	return cursor->at >= cursor->pending->order_count;
}

/* Never NULL: SQLite would take that for NULL, and empty is not that. */
static const char *bytes_of(const struct pending *pending, const struct pending_value *value)
{
	/* what it names was put, and nothing was forgotten since */
	assert(value->at + value->len <= pending->bytes.len);
	return pending->bytes.data ? pending->bytes.data + value->at : "";
}

static int tell_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
	const struct pending_cursor *cursor = (struct pending_cursor *)base;
	const struct pending *pending = cursor->pending;
	assert(cursor->at < pending->order_count); /* SQLite asks for the end before each row */
	assert(column >= 0);
	assert((uint32_t)column < pending->columns);
	const struct pending_value *value =
		&pending->values[pending->order[cursor->at].at + (uint32_t)column];

	switch (value->kind) {
	case PENDING_NULL:
		break;
	case PENDING_INT:
		sqlite3_result_int64(context, value->number);
		break;
	case PENDING_TEXT:
		sqlite3_result_text64(
			context, bytes_of(pending, value), value->len, SQLITE_STATIC, SQLITE_UTF8);
		break;
	case PENDING_BLOB:
		sqlite3_result_blob64(context, bytes_of(pending, value), value->len, SQLITE_STATIC);
		break;
	}
	return SQLITE_OK;
}

static int tell_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *ret_rowid)
{
	*ret_rowid = ((struct pending_cursor *)cursor)->at;
	return SQLITE_OK;
}

static const sqlite3_module pending_module = {
	.xConnect = connect_pending,
	.xDisconnect = disconnect_pending,
	.xDestroy = disconnect_pending,
	.xBestIndex = plan_pending,
	.xOpen = open_cursor,
	.xClose = close_cursor,
	.xFilter = start_cursor,
	.xNext = step_cursor,
	.xEof = cursor_is_at_end,
	.xColumn = tell_column,
	.xRowid = tell_rowid,
};

/* ---- life ---- */

int pending_init(struct sqlite *store)
{
	static const struct {
		const char *name;
		uint32_t columns;
	} tables[PENDING_TABLE_COUNT] = {
		[PENDING_NEW_TASK] = {"pending_new_task", PENDING_TASK_COLUMNS},
		[PENDING_TASK] = {"pending_task", PENDING_TASK_COLUMNS},
		[PENDING_BODY] = {"pending_body", PENDING_BODY_COLUMNS},
	};
	int code = SQLITE_OK;

	for (int i = 0; code == SQLITE_OK && i < PENDING_TABLE_COUNT; i++) {
		store->pending[i].columns = tables[i].columns;
		buf_init(&store->pending[i].bytes, PENDING_BYTES_MAX);
		code = sqlite3_create_module(store->db, tables[i].name, &pending_module, &store->pending[i]);
	}
	return code;
}

void pending_done(struct sqlite *store)
{
	for (int i = 0; i < PENDING_TABLE_COUNT; i++) {
		free(store->pending[i].values);
		free(store->pending[i].order);
		buf_done(&store->pending[i].bytes);
		store->pending[i] = (struct pending){0};
	}
}
