/*
 * Questions in SQL: what may be asked is answered, and whatever else is tried changes nothing and ends in time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "core/admin_query.h"
#include "store/backend.h"
#include "backend/memory.h"
#include "sqlite_place.h"

/* ---- an allocator that fails once ---- */

static sqlite3_mem_methods memory; /* SQLite's own */
static int left = -1;              /* allocations that succeed before the one that fails; negative: all do */

static bool fails(void)
{
	return left >= 0 && left-- == 0;
}

static void *short_malloc(int bytes)
{
	return fails() ? NULL : memory.xMalloc(bytes);
}

static void *short_realloc(void *old, int bytes)
{
	return fails() ? NULL : memory.xRealloc(old, bytes);
}

/* Before SQLite is used for the first time. */
static void take_allocator(void)
{
	sqlite3_mem_methods failing;

	assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &memory), SQLITE_OK);
	failing = memory;
	failing.xMalloc = short_malloc;
	failing.xRealloc = short_realloc;
	assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &failing), SQLITE_OK);
	assert_int_equal(
		sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0), SQLITE_OK); /* small ones count, too */
}

/* ---- questions ---- */

/* An answer as text: values are followed by a comma, rows by a semicolon. */
struct answer {
	char columns[512];
	char rows[4096];
	uint32_t row_count;
	uint32_t looks, looks_max; /* how often it may go on */
	struct admin_query question;
};

static bool is_over(void *context)
{
	struct answer *answer = context;

	return ++answer->looks > answer->looks_max;
}

static int take_columns(void *context, const struct span *names, uint32_t count)
{
	struct answer *answer = context;

	for (uint32_t i = 0; i < count; i++) {
		size_t len = strlen(answer->columns);
		snprintf(answer->columns + len, sizeof(answer->columns) - len, "%.*s,", SPAN_ARGS(names[i]));
	}
	return 0;
}

static int take_row(void *context, const struct cell *cells, uint32_t count)
{
	struct answer *answer = context;

	answer->row_count++;
	for (uint32_t i = 0; i < count; i++) {
		size_t len = strlen(answer->rows);
		char *at = answer->rows + len;
		size_t room = sizeof(answer->rows) - len;

		if (cells[i].kind == CELL_INT)
			snprintf(at, room, "%lld,", (long long)cells[i].integer);
		else if (cells[i].kind == CELL_REAL)
			snprintf(at, room, "%g,", cells[i].real);
		else if (cells[i].kind == CELL_NULL)
			snprintf(at, room, "NULL,");
		else
			snprintf(at, room, "%.*s,", SPAN_ARGS(cells[i].text));
	}
	size_t len = strlen(answer->rows);
	snprintf(answer->rows + len, sizeof(answer->rows) - len, ";");
	return 0;
}

static int ask_with(struct backend *backend, const char *sql, const struct cell *params, uint32_t count,
	uint32_t looks_max, struct answer *answer)
{
	*answer = (struct answer){.looks_max = looks_max};
	answer->question = (struct admin_query){
		.text = span_of(sql),
		.params = params,
		.param_count = count,
		.rows_max = ADMIN_QUERY_ROWS_MAX,
		.is_over = is_over,
		.over_context = answer,
		.columns = take_columns,
		.row = take_row,
		.context = answer,
	};
	return backend->ops->query(backend, &answer->question);
}

static int ask(struct backend *backend, const char *sql, struct answer *answer)
{
	return ask_with(backend, sql, NULL, 0, 100000, answer);
}

struct bench {
	struct place place;
	struct backend *backend;
};

static void put_rows(struct backend *backend)
{
	struct token token = {
		.id = SPAN("k1"), .kind = TOKEN_ADMIN, .hash = "secret-hash", .name = SPAN("ann")};
	struct worker_row worker = {.id = SPAN("w1"), .metadata = SPAN("{\"a\":1}")};

	worker.worker.state = WORKER_ACTIVE;
	worker.worker.capabilities = 3;
	assert_int_equal(backend->ops->begin(backend), 0);
	assert_int_equal(backend->ops->put_token(backend, &token), 0);
	assert_int_equal(backend->ops->put_worker(backend, &worker), 0);
	assert_int_equal(
		backend->ops->put_name(backend, &(struct name_row){3, 16, SPAN("\037a\"b\037c\\d")}), 0);
	assert_int_equal(backend->ops->put_meta(backend, META_GENERATION, 7), 0);
	for (int64_t i = 1; i <= 2000; i++)
		assert_int_equal(backend->ops->put_base(backend, i, SPAN("data")), 0);
	assert_int_equal(backend_commit(backend), 0);
}

static int bench_setup(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	place_make(&bench->place);
	bench->backend = store_open(bench->place.store);
	put_rows(bench->backend);
	*state = bench;
	return 0;
}

static int bench_teardown(void **state)
{
	struct bench *bench = *state;

	bench->backend->ops->close(bench->backend);
	place_remove(&bench->place);
	free(bench);
	return 0;
}

/* It is refused with that fault and these words, and the store is as it was and serves. */
static void refused(struct bench *bench, const char *sql, int fault, const char *words)
{
	struct answer answer;
	int64_t value;
	int got = ask(bench->backend, sql, &answer);

	if (got != fault || !strstr(answer.question.complaint, words))
		fail_msg("%s: %d, %s", sql, got, answer.question.complaint);
	assert_int_equal(bench->backend->ops->get_meta(bench->backend, META_GENERATION, &value), 0);
	assert_int_equal(value, 7);
	assert_int_equal(ask(bench->backend, "SELECT count(*) FROM task_base", &answer), 0);
	assert_string_equal(answer.rows, "2000,;");
	assert_int_equal(bench->backend->ops->begin(bench->backend), 0);
	assert_int_equal(bench->backend->ops->put_meta(bench->backend, META_GENERATION, 7), 0);
	assert_int_equal(backend_commit(bench->backend), 0);
}

static void a_question_is_answered_with_columns_and_rows(void **state)
{
	struct bench *bench = *state;
	struct answer answer;

	assert_int_equal(
		ask(bench->backend,
			"SELECT id, 1.5 AS half, NULL AS none, x'6162' AS bytes FROM token; -- all", &answer),
		0);
	assert_string_equal(answer.columns, "id,half,none,bytes,");
	assert_string_equal(answer.rows, "k1,1.5,NULL,ab,;");
	assert_false(answer.question.truncated);
	assert_int_equal(ask(bench->backend,
				 "WITH t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3) "
				 "SELECT n, count(*) OVER () FROM t",
				 &answer),
		0);
	assert_string_equal(answer.rows, "1,3,;2,3,;3,3,;");
}

static void parameters_are_values_and_no_sql(void **state)
{
	struct bench *bench = *state;
	struct cell params[] = {{.kind = CELL_TEXT, .text = SPAN("k1' OR 1 --")},
		{.kind = CELL_INT, .integer = -5}, {.kind = CELL_REAL, .real = 0.5}, {.kind = CELL_NULL}};
	struct answer answer;

	assert_int_equal(ask_with(bench->backend, "SELECT ?, ?, ?, ?", params, 4, 100, &answer), 0);
	assert_string_equal(answer.rows, "k1' OR 1 --,-5,0.5,NULL,;");
	assert_int_equal(
		ask_with(bench->backend, "SELECT id FROM token WHERE id = ?", params, 1, 100, &answer), 0);
	assert_string_equal(answer.rows, "");
	assert_int_equal(ask_with(bench->backend, "SELECT ?", params, 2, 100, &answer), -EINVAL);
	assert_int_equal(ask_with(bench->backend, "SELECT ?", NULL, 0, 100, &answer), -EINVAL);
}

static void every_table_and_view_of_the_schema_may_be_read(void **state)
{
	struct bench *bench = *state;
	struct answer tables, answer;
	char sql[200];
	int count = 0;

	assert_int_equal(ask(bench->backend, "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')",
				 &tables),
		0);
	for (char *name = strtok(tables.rows, ",;"); name; name = strtok(NULL, ",;"), count++) {
		snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", name);
		if (ask(bench->backend, sql, &answer) != 0)
			fail_msg("%s: %s", sql, answer.question.complaint);
	}
	assert_true(count >= 16);
	assert_int_equal(ask(bench->backend, "SELECT name FROM pragma_table_info('meta')", &answer), 0);
	assert_string_equal(answer.rows, "key,;value,;crc,;");
	assert_int_equal(ask(bench->backend, "PRAGMA table_info(meta)", &answer), 0);
	assert_int_equal(ask(bench->backend, "PRAGMA user_version", &answer), 0);
	assert_int_equal(ask(bench->backend, "EXPLAIN QUERY PLAN SELECT * FROM task", &answer), 0);
	assert_int_equal(ask(bench->backend, "SELECT value FROM json_each('[1,2]')", &answer), 0);
	assert_int_equal(
		ask(bench->backend, "SELECT worker_id, status, metadata FROM worker_registry", &answer), 0);
	assert_string_equal(answer.rows, "w1,active,{\"a\":1},;");
	assert_int_equal(ask(bench->backend, "SELECT capabilities FROM worker_registry", &answer), 0);
	assert_string_equal(answer.rows, "[\"a\\\"b\",\"c\\\\d\"],;");
}

static void nothing_is_changed_by_a_question(void **state)
{
	struct bench *bench = *state;
	static const char *const attempts[] = {
		"INSERT INTO meta VALUES (99, 1)",
		"UPDATE meta SET value = 9",
		"DELETE FROM event",
		"REPLACE INTO meta VALUES (1, 9)",
		"WITH x AS (SELECT 9 AS v) UPDATE meta SET value = (SELECT v FROM x) RETURNING value",
		"INSERT INTO meta SELECT 99, 1 RETURNING *",
		"CREATE TABLE t (a)",
		"CREATE TEMP TABLE t (a)",
		"CREATE TEMP VIEW v AS SELECT 1",
		"CREATE TRIGGER t AFTER INSERT ON meta BEGIN DELETE FROM event; END",
		"DROP TABLE event",
		"ALTER TABLE event ADD COLUMN x",
		"ATTACH '/tmp/other.db' AS o",
		"ATTACH ':memory:' AS o",
		"DETACH main",
		"VACUUM",
		"VACUUM INTO '/tmp/copy-of-a-store.db'",
		"REINDEX",
		"ANALYZE",
		"BEGIN",
		"COMMIT",
		"ROLLBACK",
		"SAVEPOINT s",
		"RELEASE s",
		"EXPLAIN DELETE FROM event",
	};

	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
		refused(bench, attempts[i], -EPERM, "only read");
}

static void pragmas_that_set_something_are_refused(void **state)
{
	struct bench *bench = *state;
	static const char *const attempts[] = {
		"PRAGMA writable_schema = ON",
		"PRAGMA writable_schema",
		"PRAGMA user_version = 9",
		"PRAGMA application_id = 1",
		"PRAGMA journal_mode = DELETE",
		"PRAGMA journal_mode",
		"PRAGMA locking_mode = NORMAL",
		"PRAGMA synchronous = OFF",
		"PRAGMA query_only = OFF",
		"PRAGMA wal_checkpoint(TRUNCATE)",
		"PRAGMA integrity_check",
		"PRAGMA temp_store_directory = '/tmp'",
		"PRAGMA database_list",
		"PRAGMA main.cache_size = 1",
		"SELECT * FROM pragma_database_list",
		"SELECT * FROM pragma_integrity_check",
		"SELECT * FROM pragma_writable_schema",
	};

	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
		struct answer answer;
		int fault = ask(bench->backend, attempts[i], &answer);
		if (fault != -EPERM && fault != -EINVAL) /* -EINVAL: there is no such table */
			fail_msg("%s: %d", attempts[i], fault);
	}
	refused(bench, attempts[0], -EPERM, "PRAGMA writable_schema");
}

static void what_reaches_outside_is_refused(void **state)
{
	struct bench *bench = *state;
	struct answer answer;

	refused(bench, "SELECT load_extension('/tmp/x.so')", -EPERM, "load_extension");
	assert_int_not_equal(ask(bench->backend, "SELECT fts3_tokenizer('simple')", &answer), 0);
	assert_int_not_equal(ask(bench->backend, "SELECT * FROM dbstat", &answer), 0);
	assert_int_not_equal(ask(bench->backend, "SELECT data FROM sqlite_dbpage", &answer), 0);
	assert_int_not_equal(ask(bench->backend, "SELECT sql FROM sqlite_stmt", &answer), 0);
}

static void the_keys_of_derived_tokens_are_shown_to_nobody(void **state)
{
	struct bench *bench = *state;
	static const char *const attempts[] = {
		"SELECT data FROM secret",
		"SELECT * FROM Secret",
		"SELECT hex(data) FROM main.secret AS s",
		"SELECT 1 FROM secret WHERE data > x'00'",
		"SELECT count(crc) FROM secret",
		"SELECT (SELECT data FROM [secret])",
		"SELECT 1 WHERE (11, '1-0', x'00', 1) IN secret",
		"WITH s AS (SELECT * FROM secret) SELECT 1 FROM s",
	};
	struct answer answer;

	for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
		if (ask(bench->backend, attempts[i], &answer) != -EPERM)
			fail_msg("%s is answered", attempts[i]);
		assert_non_null(strstr(answer.question.complaint, "shown to nobody"));
	}
}

static void the_hash_of_a_token_is_shown_to_nobody(void **state)
{
	struct bench *bench = *state;
	static const char *const attempts[] = {
		"SELECT hash FROM token",
		"SELECT * FROM token",
		"SELECT HASH FROM main.Token AS t",
		"SELECT t.\"hash\" FROM token AS t",
		"SELECT id FROM token WHERE hash = x'00'",
		"SELECT id FROM token ORDER BY hash",
		"SELECT max(hash) OVER () FROM token",
		"SELECT (SELECT hex(hash) FROM token)",
		"WITH t AS (SELECT * FROM token) SELECT 1 FROM t",
		"SELECT id FROM token JOIN (SELECT x'00' AS hash) USING (hash)",
		"SELECT id FROM token NATURAL JOIN (SELECT x'00' AS hash)",
		"SELECT count(hash) FROM token",
		"SELECT hash FROM (SELECT x'00' AS hash) FULL JOIN token USING (hash)",
		"SELECT hash FROM (SELECT x'00' AS hash) NATURAL FULL JOIN token",
		"SELECT 1 WHERE (1,1,1,1,1,1,1,1,1,1) IN token",
		"SELECT hash FROM (SELECT 1 AS hash WHERE 0) RIGHT JOIN [token] USING (hash)",
		"SELECT id FROM token GROUP BY hash",
		"SELECT id FROM token LIMIT (SELECT length(hash) FROM token)",
		"SELECT json_group_array(hash) FROM token",
		"SELECT hash FROM token UNION SELECT 1",
		"VALUES ((SELECT hash FROM token))",
	};

	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
		refused(bench, attempts[i], -EPERM, "");
}

static void it_must_be_one_statement(void **state)
{
	struct bench *bench = *state;
	struct answer answer;

	refused(bench, "SELECT 1; DELETE FROM event", -EINVAL, "one statement");
	refused(bench, "SELECT 1; SELECT 2", -EINVAL, "one statement");
	refused(bench, "SELECT 1; nonsense", -EINVAL, "one statement");
	refused(bench, "", -EINVAL, "no statement");
	refused(bench, "-- nothing", -EINVAL, "no statement");
	refused(bench, "SELEKT", -EINVAL, "syntax error");
	refused(bench, "SELECT colour FROM task", -EINVAL, "no such column");
	assert_int_equal(ask(bench->backend, "SELECT 1;  ; /* the end */ ", &answer), 0);
	answer.question.text = SPAN("SELECT 1\0; DELETE FROM event");
	assert_int_equal(bench->backend->ops->query(bench->backend, &answer.question), -EINVAL);
}

static void what_never_ends_is_ended(void **state)
{
	struct bench *bench = *state;
	static const char *const attempts[] = {
		"WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t",
		"WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t",
		"SELECT count(*) FROM task_base a, task_base b, task_base c",
		"SELECT group_concat(a.seq) FROM task_base a, task_base b, task_base c",
		"SELECT a.seq FROM task_base a, task_base b, task_base c ORDER BY b.seq + c.seq",
	};
	struct answer answer;

	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
		int fault = ask_with(bench->backend, attempts[i], NULL, 0, 200, &answer);
		if (fault != -ETIME)
			fail_msg("%s: %d %s", attempts[i], fault, answer.question.complaint);
		assert_int_equal(answer.looks, 201);
	}
	refused(bench, "SELECT 1; SELECT 2", -EINVAL, "one statement");
}

static void a_count_of_a_table_can_be_ended_too(void **state)
{
	struct bench *bench = *state;
	struct answer answer;

	assert_int_equal(
		ask_with(bench->backend, "SELECT count(*) FROM task_base", NULL, 0, 2, &answer), -ETIME);
	assert_int_equal(ask(bench->backend, "SELECT count(*) FROM task_base", &answer), 0);
	assert_true(answer.looks > 3);
}

static void no_more_rows_than_asked_for_are_told(void **state)
{
	struct bench *bench = *state;
	struct answer answer;

	assert_int_equal(ask(bench->backend, "SELECT seq FROM task_base", &answer), 0);
	assert_int_equal(answer.row_count, ADMIN_QUERY_ROWS_MAX);
	assert_true(answer.question.truncated);
	assert_int_equal(ask(bench->backend, "SELECT seq FROM task_base LIMIT 500", &answer), 0);
	assert_int_equal(answer.row_count, ADMIN_QUERY_ROWS_MAX);
	assert_false(answer.question.truncated);
}

static void no_value_grows_large(void **state)
{
	struct bench *bench = *state;
	char sql[4000] = "SELECT 0";

	refused(bench,
		"WITH RECURSIVE t(n, x) AS (SELECT 1, 'xxxxxxxx' UNION ALL SELECT n + 1, x || x FROM t LIMIT 30) "
		"SELECT max(length(x)) FROM t",
		-E2BIG, "larger");
	for (int i = 0; i < ADMIN_QUERY_COLUMNS_MAX; i++)
		strcat(sql, ",0");
	refused(bench, sql, -E2BIG, "columns");
}

/* No look at the clock reaches into a function: what could run for long in one call is not there. */
static void functions_whose_time_nothing_bounds_are_refused(void **state)
{
	struct bench *bench = *state;
	static const char *const attempts[] = {"replace('a', 'a', 'b')", "printf('%d', 1)", "format('%d', 1)",
		"zeroblob(10)", "randomblob(10)", "trim('a', 'b')", "ltrim(' a')", "rtrim('a ')",
		"'a' GLOB '*'", "load_extension('x')", "json_patch('{}', '{}')"};
	char sql[100];

	for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
		snprintf(sql, sizeof sql, "SELECT %s", attempts[i]);
		refused(bench, sql, -EPERM, "");
	}
	refused(bench, "SELECT 'a%b' LIKE 'a!%b' ESCAPE '!'", -EINVAL, "ESCAPE");
	refused(bench,
		"WITH RECURSIVE t(n, x) AS (SELECT 1, 'aaaaaaaa' UNION ALL SELECT n + 1, x || x FROM t LIMIT 18) "
		"SELECT x LIKE '%a%a%a%a%b' FROM t",
		-EINVAL, "64 KiB");
}

static void like_and_instr_answer_as_those_of_sqlite(void **state)
{
	struct bench *bench = *state;
	static const struct {
		const char *sql, *told;
	} rows[] = {
		{"SELECT 'Stint' LIKE 's%T', 'abc' LIKE 'a_c', 'abc' LIKE 'ab', '' LIKE '%', 'aXbXc' LIKE '%x%x%'",
			"1,1,0,1,1,;"},
		{"SELECT 'ä' LIKE '_', 'äb' LIKE '%b', 'aab' LIKE '%ab', 'abab' LIKE 'ab', 12 LIKE '1%', NULL LIKE 'a'",
			"1,1,1,0,1,NULL,;"},
		{"SELECT instr('äbc', 'c'), instr('abc', 'x'), instr('abc', ''), instr(x'c3a4', x'a4'), instr(NULL, 'a')",
			"3,0,1,2,NULL,;"},
	};
	struct answer answer;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(ask(bench->backend, rows[i].sql, &answer), 0);
		assert_string_equal(answer.rows, rows[i].told);
	}
}

static void a_parameter_that_is_too_large_is_refused(void **state)
{
	static char bytes[ADMIN_QUERY_VALUE_BYTES_MAX + 1];
	struct bench *bench = *state;
	struct cell params[] = {{.kind = CELL_BYTES, .text = {bytes, sizeof bytes}}};
	struct answer answer;

	assert_int_equal(ask_with(bench->backend, "SELECT length(?)", params, 1, 100, &answer), -E2BIG);
	assert_string_equal(answer.question.complaint, "a parameter is larger than allowed");
	params[0].kind = CELL_TEXT;
	assert_int_equal(ask_with(bench->backend, "SELECT length(?)", params, 1, 100, &answer), -E2BIG);
	params[0] = (struct cell){.kind = CELL_BYTES}; /* empty, and not NULL */
	assert_int_equal(ask_with(bench->backend, "SELECT length(?)", params, 1, 100, &answer), 0);
	assert_string_equal(answer.rows, "0,;");
}

/* What the reader says of its second row. */
static int verdict_on_second;

static int take_one_row(void *context, const struct cell *cells, uint32_t count)
{
	struct answer *answer = context;

	return answer->row_count > 0 ? verdict_on_second : take_row(context, cells, count);
}

static void a_reader_that_has_enough_ends_the_answer(void **state)
{
	static const struct {
		int verdict, fault;
		bool truncated;
	} cases[] = {{1, 0, true}, {-ENOMEM, -ENOMEM, false}};
	struct bench *bench = *state;
	struct answer answer;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(ask(bench->backend, "SELECT 1 WHERE 0", &answer), 0);
		answer.question.text = SPAN("SELECT seq FROM task_base");
		answer.question.row = take_one_row;
		verdict_on_second = cases[i].verdict;
		assert_int_equal(
			bench->backend->ops->query(bench->backend, &answer.question), cases[i].fault);
		assert_int_equal(answer.question.truncated, cases[i].truncated);
		assert_int_equal(answer.row_count, 1);
	}
	refused(bench, "SELEKT", -EINVAL, "syntax error");
}

/* A question that finds no memory is refused as such, and never as the caller's mistake; the store lives on. */
static void starve_question(struct bench *bench, const char *sql, int usual_fault, const char *rows)
{
	struct answer answer;
	bool failed = true;

	for (int number = 0; failed; number++) {
		left = number;
		int got = ask(bench->backend, sql, &answer);
		failed = left < 0;
		left = -1;
		bool is_usual = got == usual_fault && strcmp(answer.rows, rows) == 0;
		if (!is_usual && !(failed && got == -ENOMEM))
			fail_msg("%s, allocation %d: %d %s, %s", sql, number, got, answer.rows,
				answer.question.complaint);
		assert_int_equal(ask(bench->backend, "SELECT name FROM token", &answer), 0);
		assert_string_equal(answer.rows, "ann,;");
	}
}

static void a_shortage_of_memory_is_never_the_callers_mistake(void **state)
{
	struct bench *bench = *state;

	starve_question(bench, "SELECT count(*), 1.5, 'x' FROM task_base;", 0, "2000,1.5,x,;");
	starve_question(bench, "SELECT length(hex(hex(hex(hex(hex(hex(hex(hex(hex('aaaaaaaa')))))))))), NULL",
		0, "4096,NULL,;");
	starve_question(bench, "SELECT j.value FROM json_each('[5]') j", 0, "5,;");
	starve_question(bench, "SELECT 1; SELECT 2", -EINVAL, "");
	starve_question(bench, "SELEKT", -EINVAL, "");
	starve_question(bench, "DELETE FROM event", -EPERM, "");
}

static void nor_is_it_for_the_first_question_of_a_store(void **state)
{
	struct bench *bench = *state;
	struct answer answer;
	bool failed = true;

	for (int number = 0; failed; number++) {
		bench->backend->ops->close(bench->backend);
		bench->backend = store_open(bench->place.store);
		left = number;
		int got = ask(bench->backend, "SELECT name FROM token", &answer);
		failed = left < 0;
		left = -1;
		assert_true(got == 0 || (failed && got == -ENOMEM));
	}
}

static void a_store_in_memory_has_no_sql(void **state)
{
	struct backend *backend = memory_open();
	struct answer answer;

	(void)state;
	assert_int_equal(ask(backend, "SELECT 1", &answer), -ENOTSUP);
	assert_non_null(strstr(answer.question.complaint, "no SQL"));
	backend->ops->close(backend);
}

#define ON_A_STORE(function) cmocka_unit_test_setup_teardown(function, bench_setup, bench_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_A_STORE(a_question_is_answered_with_columns_and_rows),
		ON_A_STORE(parameters_are_values_and_no_sql),
		ON_A_STORE(every_table_and_view_of_the_schema_may_be_read),
		ON_A_STORE(nothing_is_changed_by_a_question),
		ON_A_STORE(pragmas_that_set_something_are_refused),
		ON_A_STORE(what_reaches_outside_is_refused),
		ON_A_STORE(the_hash_of_a_token_is_shown_to_nobody),
		ON_A_STORE(the_keys_of_derived_tokens_are_shown_to_nobody),
		ON_A_STORE(it_must_be_one_statement),
		ON_A_STORE(what_never_ends_is_ended),
		ON_A_STORE(a_count_of_a_table_can_be_ended_too),
		ON_A_STORE(no_more_rows_than_asked_for_are_told),
		ON_A_STORE(no_value_grows_large),
		ON_A_STORE(functions_whose_time_nothing_bounds_are_refused),
		ON_A_STORE(like_and_instr_answer_as_those_of_sqlite),
		ON_A_STORE(a_parameter_that_is_too_large_is_refused),
		ON_A_STORE(a_reader_that_has_enough_ends_the_answer),
		ON_A_STORE(a_shortage_of_memory_is_never_the_callers_mistake),
		ON_A_STORE(nor_is_it_for_the_first_question_of_a_store),
		cmocka_unit_test(a_store_in_memory_has_no_sql),
	};

	take_allocator();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
