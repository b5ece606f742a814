/*
 * Questions in SQL, for people: one statement that reads, by the connection that owns the store. A second connection
 * is not to be had: the first one keeps the file to itself, and its log has no shared index. So this one is fenced:
 *
 *   - while a question is asked, the authorizer lets reading pass and nothing else: tables and views of the schema,
 *     a few pragmas that describe it, functions by a list, and never the hash of a token;
 *   - it joins with ON: the columns of USING and NATURAL are read without asking the authorizer, and a full join
 *     gives them out;
 *   - it is one statement, which SQLite itself must call read-only;
 *   - it runs between turns in a transaction that is rolled back, whatever became of it;
 *   - it is asked again and again whether it has run long enough, and no value grows large. It cannot be asked inside of a
 *     function: so only functions are on the list whose time grows with the length of their arguments and no faster.
 *     instr() and LIKE are ours for that reason, and short texts alone are compared by LIKE.
 *
 * SQLite counts a whole table in one step that cannot be stopped, so questions count with a count() of our own, which
 * goes row by row. The authorizer stays for good and looks at a flag: setting it anew would have every statement of
 * the store prepared again.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/take.h"
#include "core/admin_query.h"
#include "store/sqlite/sqlite_backend.h"

enum {
	STEPS_BETWEEN_LOOKS = 50, /* of SQLite's machine: each may be a function that reads one long value */
	LIKE_PATTERN_BYTES_MAX = 200,
	LIKE_TEXT_BYTES_MAX = 64 << 10,
	EXPRESSION_DEPTH_MAX = 50,
	FUNCTION_ARGUMENTS_MAX = 10,
};

/* ---- what may be read ---------------------------------------------------------------------------------------- */

static bool is_among(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strcasecmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

#define AMONG(name, list) is_among(name, list, sizeof(list) / sizeof((list)[0]))

/* The argument of a describing one says what to describe; that of any other would set something. */
static bool pragma_is_open(const char *name, const char *argument)
{
	static const char *const describing[] = {
		"table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo"};
	static const char *const plain[] = {
		"user_version", "application_id", "page_count", "page_size", "freelist_count"};

	return AMONG(name, describing) || (!argument && AMONG(name, plain));
}

/* The names are read once: the schema changes with the release only. */
static bool table_is_open(const struct sqlite *store, const char *name)
{
	static const char *const others[] = {
		"sqlite_master", "sqlite_schema", "json_each", "json_tree", "tasks", "events", "claims"};
	static const char pragma[] = "pragma_";

	if (strncasecmp(name, pragma, sizeof(pragma) - 1) == 0)
		return pragma_is_open(name + sizeof(pragma) - 1, name);
	for (const char *table = store->tables; table && *table; table += strlen(table) + 1) {
		if (strcasecmp(name, table) == 0)
			return true;
	}
	return AMONG(name, others);
}

/* The first thing it may not have is the one that is told. */
static int deny(struct sqlite *store, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int deny(struct sqlite *store, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (!store->denied[0])
		vsnprintf(store->denied, sizeof(store->denied), format, args);
	va_end(args);
	return SQLITE_DENY;
}

static int judge_read(struct sqlite *store, const char *table, const char *column)
{
	if (!table || !column)
		return deny(store, "it may only read tables");
	if (strcasecmp(table, "token") == 0 && strcasecmp(column, "hash") == 0)
		return deny(store, "%s.%s is shown to nobody; name the columns you want", table, column);
	if (!*column)
		return SQLITE_OK; /* rows are counted and nothing of them is read; it may be a name of the question's own */
	if (strcasecmp(table, "secret") == 0)
		return deny(store, "%s is shown to nobody", table);
	return table_is_open(store, table) ? SQLITE_OK : deny(store, "%s may not be read", table);
}

/* Views of the schema may use others: what they hand to them is short. */
static int judge_function(struct sqlite *store, const char *name, const char *view)
{
	static const char *const open[] = {"abs", "avg", "char", "coalesce", "count", "cume_dist", "date",
		"datetime", "dense_rank", "first_value", "group_concat", "hex", "ifnull", "iif", "instr",
		"json", "json_array", "json_array_length", "json_each", "json_extract", "json_group_array",
		"json_group_object", "json_object", "json_quote", "json_tree", "json_type", "json_valid",
		"julianday", "lag", "last_value", "lead", "length", "like", "lower", "max", "min",
		"nth_value", "ntile", "nullif", "percent_rank", "quote", "random", "rank", "round",
		"row_number", "sign", "sqlite_version", "strftime", "substr", "substring", "sum", "time",
		"total", "typeof", "unicode", "unixepoch", "upper", "->", "->>"};
	static const char *const of_views[] = {"replace"};

	if (name && (AMONG(name, open) || (view && AMONG(name, of_views))))
		return SQLITE_OK;
	return deny(store, "the function %s may not be used", name ? name : "");
}

int sqlite_authorize(void *context, int action, const char *first, const char *second, const char *schema,
	const char *accessor)
{
	struct sqlite *store = context;

	(void)schema;
	if (!store->is_asked)
		return SQLITE_OK;
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_RECURSIVE:
		return SQLITE_OK;
	case SQLITE_READ:
		return judge_read(store, first, second);
	case SQLITE_FUNCTION:
		return judge_function(store, second, accessor);
	case SQLITE_PRAGMA:
		if (first && pragma_is_open(first, second))
			return SQLITE_OK;
		return deny(store, "PRAGMA %s may not be used", first ? first : "");
	default:
		return deny(store, "it may only read: SELECT, and nothing that changes something");
	}
}

/* ---- counting row by row -------------------------------------------------------------------------------------- */

static void count_add(sqlite3_context *context, int count, sqlite3_value **values)
{
	int64_t *total = sqlite3_aggregate_context(context, sizeof(*total));

	(void)count;
	(void)values;
	if (total)
		++*total;
}

static void count_take(sqlite3_context *context, int count, sqlite3_value **values)
{
	int64_t *total = sqlite3_aggregate_context(context, sizeof(*total));

	(void)count;
	(void)values;
	if (total)
		--*total;
}

static void count_tell(sqlite3_context *context)
{
	const int64_t *total = sqlite3_aggregate_context(context, 0);

	sqlite3_result_int64(context, total ? *total : 0);
}

/* ---- searching in bounded time --------------------------------------------------------------------------------- */

static struct span bytes_of(sqlite3_value *value)
{
	const char *data = sqlite3_value_blob(value);
	int len = sqlite3_value_bytes(value);

	return (struct span){data ? data : "", data ? (size_t)len : 0};
}

static int64_t characters_of(struct span text)
{
	int64_t count = 0;

	for (size_t i = 0; i < text.len; i++)
		count += (text.data[i] & 0xc0) != 0x80;
	return count;
}

/* As SQLite's own, which compares the needle anew at every place. */
static void instr_tell(sqlite3_context *context, int count, sqlite3_value **values)
{
	bool both_bytes =
		sqlite3_value_type(values[0]) == SQLITE_BLOB && sqlite3_value_type(values[1]) == SQLITE_BLOB;

	(void)count;
	if (sqlite3_value_type(values[0]) == SQLITE_NULL || sqlite3_value_type(values[1]) == SQLITE_NULL)
		return;
	struct span text = bytes_of(values[0]), needle = bytes_of(values[1]);
	const char *found = memmem(text.data, text.len, needle.data, needle.len);
	struct span before = {text.data, found ? (size_t)(found - text.data) : 0};
	int64_t skipped = both_bytes ? (int64_t)before.len : characters_of(before);
	sqlite3_result_int64(context, found ? skipped + 1 : 0);
}

static char lower_of(char byte)
{
	return byte >= 'A' && byte <= 'Z' ? (char)(byte + ('a' - 'A')) : byte;
}

static size_t character_bytes(struct span text, size_t at)
{
	size_t len = 1;

	while (at + len < text.len && (text.data[at + len] & 0xc0) == 0x80)
		len++;
	return len;
}

/* After a mismatch only the last % is tried again, one character further: never more steps than text times pattern. */
static bool is_like(struct span pattern, struct span text)
{
	size_t at = 0, in = 0, again_at = 0, again_in = SIZE_MAX;

	while (at < text.len) {
		if (in < pattern.len && pattern.data[in] == '%') {
			again_in = ++in;
			again_at = at;
		} else if (in < pattern.len && pattern.data[in] == '_') {
			in++;
			at += character_bytes(text, at);
		} else if (in < pattern.len && lower_of(pattern.data[in]) == lower_of(text.data[at])) {
			in++;
			at++;
		} else if (again_in != SIZE_MAX) {
			in = again_in;
			again_at += character_bytes(text, again_at);
			at = again_at;
		} else {
			return false;
		}
	}
	while (in < pattern.len && pattern.data[in] == '%')
		in++;
	return in == pattern.len;
}

/* X LIKE Y is like(Y, X). */
static void like_tell(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)count;
	if (sqlite3_value_type(values[0]) == SQLITE_NULL || sqlite3_value_type(values[1]) == SQLITE_NULL)
		return;
	sqlite3_value_text(values[0]); /* a number is compared as its text */
	sqlite3_value_text(values[1]);
	struct span pattern = bytes_of(values[0]), text = bytes_of(values[1]);
	if (pattern.len > LIKE_PATTERN_BYTES_MAX || text.len > LIKE_TEXT_BYTES_MAX)
		sqlite3_result_error(
			context, "LIKE compares texts up to 64 KiB with patterns up to 200 bytes", -1);
	else
		sqlite3_result_int(context, is_like(pattern, text));
}

static void like_escape_tell(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)count;
	(void)values;
	sqlite3_result_error(context, "LIKE with ESCAPE may not be used", -1);
}

/* The statements of the store itself use neither. */
static int create_functions(sqlite3 *db)
{
	const int how = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
	int code = sqlite3_create_function_v2(db, "instr", 2, how, NULL, instr_tell, NULL, NULL, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_create_function_v2(db, "like", 2, how, NULL, like_tell, NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_create_function_v2(
			db, "like", 3, how, NULL, like_escape_tell, NULL, NULL, NULL);
	return code;
}

/* ---- the first question ---------------------------------------------------------------------------------------- */

/* The names of all tables and views, each ended by a zero, the last by two. */
static int list_tables(struct sqlite *store)
{
	sqlite3_stmt *statement;
	size_t len = 0;
	int code = sqlite3_prepare_v2(store->db,
		"SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')", -1, &statement, NULL);

	if (code != SQLITE_OK)
		return code;
	while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(statement, 0);
		size_t more = name ? strlen(name) + 1 : 0;
		char *tables = name ? realloc(store->tables, len + more + 1) : NULL;

		if (!tables) {
			code = SQLITE_NOMEM;
			break;
		}
		store->tables = tables;
		memcpy(store->tables + len, name, more);
		len += more;
		store->tables[len] = 0;
	}
	sqlite3_finalize(statement);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* SQLite makes the table of such a function when it is first named, and to the authorizer that looks like a write. */
static int make_virtual_tables(sqlite3 *db)
{
	sqlite3_stmt *statement;
	int code = sqlite3_prepare_v2(db,
		"SELECT 1 FROM tasks, events, claims, json_each('[]'), json_tree('[]'), pragma_table_info('x'), pragma_table_xinfo('x'), "
		"pragma_table_list, pragma_index_list('x'), pragma_index_info('x'), pragma_index_xinfo('x')",
		-1, &statement, NULL);

	if (code == SQLITE_OK)
		sqlite3_finalize(statement);
	return code;
}

/* The two tables that earlier worker connectors kept, with their own names for the columns. They stand before the views of the
 * schema, which show live claims only and have no id. */
static int make_views(sqlite3 *db)
{
	return sqlite3_exec(db,
		"CREATE TEMP VIEW IF NOT EXISTS worker_registry AS SELECT worker_id AS id, * FROM main.worker_registry;"
		"CREATE TEMP VIEW IF NOT EXISTS worker_task_claims AS SELECT task || '/' || fence AS id, task AS vtid, worker AS worker_id, "
		"claimed_at, expires_at, released_at, release_reason FROM claims",
		NULL, NULL, NULL);
}

/* A new function makes SQLite prepare each statement again when it is next used. A rollback may need no memory, so its
 * statement is prepared again now. Outside of a transaction it does nothing else, and SQLite calls that an error. */
static int renew_rollback(struct sqlite *store)
{
	assert(sqlite3_get_autocommit(store->db));
	int code = sqlite3_step(store->statements[SQL_ROLLBACK]);

	sqlite3_reset(store->statements[SQL_ROLLBACK]);
	return code == SQLITE_ERROR ? SQLITE_OK : code;
}

static int prepare_to_be_asked(struct sqlite *store)
{
	int code;

	if (store->tables)
		return SQLITE_OK;
	code = sqlite3_create_window_function(store->db, "count", 0,
		SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, NULL, count_add, count_tell,
		count_tell, count_take, NULL);
	if (code == SQLITE_OK)
		code = create_functions(store->db);
	if (code == SQLITE_OK)
		code = query_tables_create(store);
	if (code == SQLITE_OK)
		code = make_virtual_tables(store->db);
	if (code == SQLITE_OK)
		code = make_views(store->db);
	if (code == SQLITE_OK)
		code = renew_rollback(store);
	if (code == SQLITE_OK)
		code = list_tables(store);
	if (code != SQLITE_OK) {
		free(store->tables);
		store->tables = NULL;
	}
	return code;
}

/* ---- one question ---------------------------------------------------------------------------------------------- */

static int complain(struct admin_query *question, int fault, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int complain(struct admin_query *question, int fault, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(question->complaint, sizeof(question->complaint), format, args);
	va_end(args);
	return fault;
}

/* Why it could not be prepared, or did not come to its end. */
static int query_fault(struct sqlite *store, struct admin_query *question, int code)
{
	if (store->denied[0])
		return complain(question, -EPERM, "%s", store->denied);
	switch (code & 0xff) {
	case SQLITE_INTERRUPT:
		return complain(question, -ETIME, "it ran longer than it may and was ended");
	case SQLITE_TOOBIG:
		return complain(question, -E2BIG, "a value in it is larger than allowed");
	case SQLITE_NOMEM:
		return complain(question, -ENOMEM, "there is no memory for it");
	case SQLITE_IOERR:
	case SQLITE_CORRUPT:
	case SQLITE_FULL:
		return complain(question, -EIO, "the store cannot be read: %s", sqlite3_errmsg(store->db));
	default:
		return complain(question, -EINVAL, "%s", sqlite3_errmsg(store->db));
	}
}

static bool is_word_byte(char byte)
{
	return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
		byte == '_' || byte == '$' || (byte & 0x80);
}

/* As a word anywhere, in a literal too: who needs it there can pass it as a parameter. */
static bool has_word(struct span text, const char *word)
{
	size_t len = strlen(word);

	for (size_t i = 0; i + len <= text.len; i++) {
		bool begins = i == 0 || !is_word_byte(text.data[i - 1]);
		bool ends = i + len == text.len || !is_word_byte(text.data[i + len]);
		if (begins && ends && strncasecmp(text.data + i, word, len) == 0)
			return true;
	}
	return false;
}

/* Whatever follows the statement must be nothing. */
static int check_tail(struct sqlite *store, struct admin_query *question, const char *tail)
{
	const char *end = question->text.data + question->text.len;
	sqlite3_stmt *second = NULL;
	int code = sqlite3_prepare_v2(store->db, tail, (int)(end - tail), &second, NULL);
	bool more = second != NULL;

	sqlite3_finalize(second);
	if (code == SQLITE_NOMEM)
		return query_fault(store, question, code);
	return more || code != SQLITE_OK ? complain(question, -EINVAL, "it must be one statement") : 0;
}

static int query_prepare(struct sqlite *store, struct admin_query *question, sqlite3_stmt **ret_statement)
{
	const char *tail;
	int code;

	if (memchr(question->text.data ? question->text.data : "", 0, question->text.len))
		return complain(question, -EINVAL, "it has a zero byte in it");
	if (has_word(question->text, "using") || has_word(question->text, "natural"))
		return complain(question, -EPERM, "USING and NATURAL may not be used; join with ON");
	code = sqlite3_prepare_v2(store->db, question->text.data ? question->text.data : "",
		(int)question->text.len, ret_statement, &tail);
	if (code != SQLITE_OK)
		return query_fault(store, question, code);
	if (!*ret_statement)
		return complain(question, -EINVAL, "there is no statement in it");
	if (!sqlite3_stmt_readonly(*ret_statement))
		return complain(question, -EPERM, "it may only read");
	if (sqlite3_column_count(*ret_statement) > ADMIN_QUERY_COLUMNS_MAX)
		return complain(question, -E2BIG, "it has more than %d columns", ADMIN_QUERY_COLUMNS_MAX);
	return check_tail(store, question, tail);
}

static int query_bind(struct admin_query *question, sqlite3_stmt *statement)
{
	int wanted = sqlite3_bind_parameter_count(statement), code = SQLITE_OK;

	if ((uint32_t)wanted != question->param_count)
		return complain(question, -EINVAL, "it has %d parameters, and %u values were given", wanted,
			question->param_count);
	for (int i = 0; code == SQLITE_OK && i < wanted; i++) {
		const struct cell *cell = &question->params[i];
		const char *text = cell->text.data ? cell->text.data : "";

		switch (cell->kind) {
		case CELL_NULL:
			break; /* as it is */
		case CELL_INT:
			code = sqlite3_bind_int64(statement, i + 1, cell->integer);
			break;
		case CELL_REAL:
			code = sqlite3_bind_double(statement, i + 1, cell->real);
			break;
		case CELL_TEXT:
			code = sqlite3_bind_text64(
				statement, i + 1, text, cell->text.len, SQLITE_STATIC, SQLITE_UTF8);
			break;
		case CELL_BYTES:
			code = sqlite3_bind_blob64(statement, i + 1, text, cell->text.len, SQLITE_STATIC);
			break;
		}
	}
	return code == SQLITE_OK ? 0 : complain(question, -E2BIG, "a parameter is larger than allowed");
}

static int query_columns(struct admin_query *question, sqlite3_stmt *statement)
{
	struct span names[ADMIN_QUERY_COLUMNS_MAX];
	int count = sqlite3_column_count(statement);

	for (int i = 0; i < count; i++) {
		const char *name = sqlite3_column_name(statement, i);
		if (!name)
			return complain(question, -ENOMEM, "there is no memory for it");
		names[i] = span_of(name);
	}
	return question->columns(question->context, names, (uint32_t)count);
}

static struct cell cell_at(sqlite3_stmt *statement, int column)
{
	struct cell cell = {.kind = CELL_NULL};

	switch (sqlite3_column_type(statement, column)) {
	case SQLITE_INTEGER:
		cell.kind = CELL_INT;
		cell.integer = sqlite3_column_int64(statement, column);
		break;
	case SQLITE_FLOAT:
		cell.kind = CELL_REAL;
		cell.real = sqlite3_column_double(statement, column);
		break;
	case SQLITE_TEXT:
	case SQLITE_BLOB:
		cell.kind = sqlite3_column_type(statement, column) == SQLITE_TEXT ? CELL_TEXT : CELL_BYTES;
		cell.text.data = sqlite3_column_blob(statement, column);
		cell.text.len = (size_t)sqlite3_column_bytes(statement, column);
		break;
	}
	return cell;
}

static int query_rows(struct sqlite *store, struct admin_query *question, sqlite3_stmt *statement)
{
	struct cell cells[ADMIN_QUERY_COLUMNS_MAX];
	int count = sqlite3_column_count(statement), code, fault = 0;
	uint32_t rows = 0;

	while (!fault && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		if (question->is_over(question->over_context))
			return query_fault(store, question, SQLITE_INTERRUPT);
		if (rows++ == question->rows_max) {
			question->truncated = true;
			return 0;
		}
		for (int i = 0; i < count; i++)
			cells[i] = cell_at(statement, i);
		fault = question->row(question->context, cells, (uint32_t)count);
	}
	if (fault) {
		question->truncated = fault > 0;
		return fault < 0 ? fault : 0;
	}
	return code == SQLITE_DONE ? 0 : query_fault(store, question, code);
}

static int query_run(struct sqlite *store, struct admin_query *question)
{
	sqlite3_stmt *statement = NULL;
	int fault = query_prepare(store, question, &statement);

	if (!fault)
		fault = query_bind(question, statement);
	if (!fault)
		fault = query_columns(question, statement);
	if (!fault)
		fault = query_rows(store, question, statement);
	sqlite3_finalize(statement);
	return fault;
}

static int look_at_the_time(void *context)
{
	const struct admin_query *question = context;

	return question->is_over(question->over_context);
}

/* Inside the fence. */
static int query_fenced(struct sqlite *store, struct admin_query *question)
{
	static const struct {
		int what, most;
	} limits[] = {
		{SQLITE_LIMIT_LENGTH, ADMIN_QUERY_VALUE_BYTES_MAX},
		{SQLITE_LIMIT_EXPR_DEPTH, EXPRESSION_DEPTH_MAX},
		{SQLITE_LIMIT_FUNCTION_ARG, FUNCTION_ARGUMENTS_MAX},
	};
	enum { LIMITS = sizeof limits / sizeof *limits };
	int before[LIMITS], fault;

	for (int i = 0; i < LIMITS; i++)
		before[i] = sqlite3_limit(store->db, limits[i].what, limits[i].most);
	store->is_asked = true;
	store->asked_wall_ms = question->now_wall_ms;
	store->asked_lease_ms = question->now_lease_ms;
	sqlite3_progress_handler(store->db, STEPS_BETWEEN_LOOKS, look_at_the_time, question);
	fault = query_run(store, question);
	sqlite3_progress_handler(store->db, 0, NULL, NULL);
	store->is_asked = false;
	for (int i = 0; i < LIMITS; i++)
		sqlite3_limit(store->db, limits[i].what, before[i]);
	return fault;
}

int sqlite_query(struct backend *backend, struct admin_query *question)
{
	struct sqlite *store = sqlite_of(backend);
	int code, fault;

	assert(sqlite3_get_autocommit(store->db));
	question->truncated = false;
	question->complaint[0] = 0;
	store->denied[0] = 0;
	code = prepare_to_be_asked(store);
	if (code == SQLITE_OK)
		code = sqlite3_exec(store->db, "BEGIN", NULL, NULL, NULL);
	fault = code == SQLITE_OK ? query_fenced(store, question) : query_fault(store, question, code);
	drop_transaction(store);
	return fault;
}
