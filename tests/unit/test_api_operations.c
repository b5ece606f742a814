#include "api_fixture.h"

#include <math.h>

static int admin_begin(void **state)
{
	int r = dialogue_begin(state);
	struct dialogue *d = *state;

	if (r == 0)
		d->call.who.scopes |= SCOPE_BIT(SCOPE_ADMIN);
	return r;
}

#define ADMIN(test) cmocka_unit_test_setup_teardown(test, admin_begin, dialogue_end)

static void finish_accepted(struct dialogue *d)
{
	d->results[0] = (struct result){.event_seq = 9};
	api_finish(&d->call, d->results);
}

/* ---- backup ---- */

static bool backs_up(void *context)
{
	(void)context;
	return true;
}

static void a_backup_is_audited_and_then_made(void **state)
{
	struct dialogue *d = *state;
	struct backup_made made = {SPAN("n.db"), SPAN("/h/backups/n.db"), 4096, 9};

	post(d, "/api/backup", "{\"file\":\"n.db\"}");
	assert_non_null(strstr(becomes(d, COMMAND_AUDIT)->note.data, "\"object\":\"n.db\""));
	finish_accepted(d);
	assert_int_equal(d->call.step, API_BACKUP);
	assert_true(span_equal(d->call.backup_file, SPAN("n.db")));
	api_finish_backup(&d->call, 0, &made);
	reply_is(d, 201);
	reply_says(d, "{\"file\":\"n.db\",\"path\":\"/h/backups/n.db\",\"bytes\":4096,\"lastEvent\":9}");
}

static void the_name_of_a_backup_is_no_path(void **state)
{
	struct dialogue *d = *state;
	static const char *const bad[] = {
		"../x", "a/b", "/x", ".", "..", ".x", "-x", "a b", "x.partial", "\\u00e9"};
	char body[64];

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(body, sizeof body, "{\"file\":\"%s\"}", bad[i]);
		post(d, "/api/backup", body);
		refuses_field(d, "file");
	}
	post(d, "/api/backup", "{\"file\":\"A-1_2.db\"}");
	becomes(d, COMMAND_AUDIT);
	post(d, "/api/backup", NULL);
	becomes(d, COMMAND_AUDIT);
	assert_int_equal(d->call.backup_file.len, 0);
}

static void every_fault_of_a_backup_is_told(void **state)
{
	struct dialogue *d = *state;
	static const struct {
		int fault, status;
		const char *code, *words;
	} rows[] = {
		{-EALREADY, 409, "backup_running", "being made"},
		{-EEXIST, 409, "backup_exists", "stays as it is"},
		{-ENOSPC, 503, "unavailable", "no room"},
		{-EDQUOT, 503, "unavailable", "no room"},
		{-ECANCELED, 503, "unavailable", "stopping"},
		{-ENOTSUP, 503, "unavailable", "no backups"},
		{-EIO, 503, "unavailable", "removed"},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		post(d, "/api/backup", NULL);
		finish_accepted(d);
		api_finish_backup(&d->call, rows[i].fault, NULL);
		refused_with(d, rows[i].status, rows[i].code);
		reply_says(d, rows[i].words);
	}
	post(d, "/api/backup", NULL);
	d->results[0] = (struct result){.refusal = REFUSED_UNAVAILABLE};
	api_finish(&d->call, d->results);
	refused_with(d, 503, "unavailable");
	d->host.is_backing_up = backs_up;
	post(d, "/api/backup", NULL);
	refused_with(d, 409, "backup_running");
}

/* ---- questions ---- */

static int answer_two_rows(void *context, struct admin_query *question)
{
	struct span names[] = {SPAN("a"), SPAN("b\"")};
	struct cell row[] = {{.kind = CELL_INT, .integer = -7}, {.kind = CELL_TEXT, .text = SPAN("x")}};

	(void)context;
	assert_int_equal(question->rows_max, ADMIN_QUERY_ROWS_MAX);
	int r = question->columns(question->context, names, 2);
	for (int i = 0; r == 0 && i < 2; i++)
		r = question->row(question->context, row, 2);
	question->truncated = true;
	return r;
}

static void a_question_is_audited_and_then_asked(void **state)
{
	struct dialogue *d = *state;

	d->host.ask = answer_two_rows;
	post(d, "/api/query", "{\"sql\":\"SELECT 1\"}");
	assert_non_null(strstr(becomes(d, COMMAND_AUDIT)->note.data, "\"sql\":\"SELECT 1\""));
	finish_accepted(d);
	reply_is(d, 200);
	reply_says(d, "{\"columns\":[\"a\",\"b\\\"\"],\"rows\":[[-7,\"x\"],[-7,\"x\"]],\"truncated\":true}");
}

static int answer_every_kind(void *context, struct admin_query *question)
{
	struct span names[] = {SPAN("a"), SPAN("b"), SPAN("c"), SPAN("d"), SPAN("e"), SPAN("f")};
	struct cell row[] = {
		{.kind = CELL_NULL},
		{.kind = CELL_INT, .integer = INT64_MIN},
		{.kind = CELL_REAL, .real = 0.1},
		{.kind = CELL_REAL, .real = INFINITY},
		{.kind = CELL_TEXT, .text = SPAN("\377\"")},
		{.kind = CELL_BYTES, .text = SPAN("foo")},
	};

	(void)context;
	int r = question->columns(question->context, names, 6);
	return r < 0 ? r : question->row(question->context, row, 6);
}

static void every_value_is_json(void **state)
{
	struct dialogue *d = *state;

	d->host.ask = answer_every_kind;
	post(d, "/api/query", "{\"sql\":\"SELECT 1\"}");
	finish_accepted(d);
	reply_is(d, 200);
	reply_says(d, "[[null,\"-9223372036854775808\",0.10000000000000001,null,");
	reply_says(d, "{\"base64\":\"Zm9v\"}]]");
}

static const struct cell *params_of(struct dialogue *d)
{
	return ((const struct admin_query *)d->call.detail)->params;
}

static void parameters_are_scalars(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/query", "{\"sql\":\"?\",\"params\":[\"a\",-1,1.5,null,true,18446744073709551615]}");
	becomes(d, COMMAND_AUDIT);
	const struct cell *params = params_of(d);
	assert_true(params[0].kind == CELL_TEXT && span_equal(params[0].text, SPAN("a")));
	assert_true(params[1].kind == CELL_INT && params[1].integer == -1);
	assert_true(params[2].kind == CELL_REAL && params[2].real == 1.5);
	assert_true(params[3].kind == CELL_NULL);
	assert_true(params[4].kind == CELL_INT && params[4].integer == 1);
	assert_true(params[5].kind == CELL_REAL);
	post(d, "/api/query", "{\"sql\":\"?\",\"params\":[[1]]}");
	refuses_field(d, "params");
	post(d, "/api/query", "{\"sql\":\"?\",\"params\":{}}");
	refuses_field(d, "params");
	post(d, "/api/query", "{\"params\":[]}");
	refuses_field(d, "sql");
	post(d, "/api/query", "{\"sql\":1}");
	refuses_field(d, "sql");
}

static int fault_to_answer;

static int answer_a_fault(void *context, struct admin_query *question)
{
	struct span name = SPAN("half");

	(void)context;
	question->columns(question->context, &name, 1); /* what was written by then is not told */
	strcpy(question->complaint, "because");
	return fault_to_answer;
}

static void a_question_that_is_not_answered_is_told_why(void **state)
{
	struct dialogue *d = *state;
	static const int invalid[] = {-EINVAL, -EPERM, -E2BIG, -ETIME};
	static const int unavailable[] = {-ENOTSUP, -EIO, -ENOMEM};

	d->host.ask = answer_a_fault;
	for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
		fault_to_answer = invalid[i];
		post(d, "/api/query", "{\"sql\":\"SELECT 1\"}");
		finish_accepted(d);
		refuses_field(d, "sql");
		reply_says(d, invalid[i] == -ETIME ? "20 ms" : "because");
		reply_hides(d, "half");
	}
	for (size_t i = 0; i < sizeof unavailable / sizeof *unavailable; i++) {
		fault_to_answer = unavailable[i];
		post(d, "/api/query", "{\"sql\":\"SELECT 1\"}");
		finish_accepted(d);
		refused_with(d, 503, "unavailable");
	}
}

static void only_admins_may(void **state)
{
	struct dialogue *d = *state;

	d->call.who.scopes = EVERYTHING;
	post(d, "/api/backup", NULL);
	refused_with(d, 403, "forbidden");
	post(d, "/api/query", "{\"sql\":\"SELECT 1\"}");
	refused_with(d, 403, "forbidden");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ADMIN(a_backup_is_audited_and_then_made),
		ADMIN(the_name_of_a_backup_is_no_path),
		ADMIN(every_fault_of_a_backup_is_told),
		ADMIN(a_question_is_audited_and_then_asked),
		ADMIN(every_value_is_json),
		ADMIN(parameters_are_scalars),
		ADMIN(a_question_that_is_not_answered_is_told_why),
		ADMIN(only_admins_may),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
