/* What becomes of an attempt: every way a process can end, without a process. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "wire/json/json.h"
#include "attempt/verdict.h"

struct world {
	struct process_end end;
	struct attempt_end attempt;
	struct buf members;
	enum report_verb verb;
};

static int set_up(void **state)
{
	static struct world world;

	world = (struct world){.end = {.how = ENDED_EXIT}, .attempt = {.wall_ms = 1000000}};
	world.attempt.end = &world.end;
	buf_init(&world.members, 1 << 20);
	*state = &world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	buf_done(&w->members);
	return 0;
}

static void becomes(struct world *w, enum report_verb verb, const char *members)
{
	buf_clear(&w->members);
	assert_int_equal(verdict_put(&w->attempt, &w->verb, &w->members), 0);
	assert_int_equal(w->verb, verb);
	assert_int_equal(buf_put_byte(&w->members, 0), 0);
	assert_string_equal(w->members.data, members);
}

static void exits(struct world *w, int code, const char *out, const char *err)
{
	w->end.how = ENDED_EXIT;
	w->end.code = code;
	w->attempt.out = span_of(out);
	w->attempt.err = span_of(err);
}

static void the_last_line_is_the_result_if_it_is_json(void **state)
{
	exits(*state, 0, "one\n{\"a\": [1, 2]}\n\n", "");
	becomes(*state, REPORT_COMPLETE, "\"result\":{\"a\":[1,2]}");
	exits(*state, 0, "12", "");
	becomes(*state, REPORT_COMPLETE, "\"result\":12");
}

static void otherwise_it_is_the_text(void **state)
{
	exits(*state, 0, "one\ntwo {\n", "not this");
	becomes(*state, REPORT_COMPLETE, "\"result\":\"one\\ntwo {\"");
	exits(*state, 0, "", "");
	becomes(*state, REPORT_COMPLETE, "\"result\":\"\"");
}

static void of_a_long_text_the_tail_from_a_whole_character_on(void **state)
{
	struct world *w = *state;
	static char text[3 * 4096 + 1];

	for (size_t i = 0; i < sizeof text - 1; i += 3)
		memcpy(text + i, "\xe2\x82\xac", 3);
	exits(w, 0, text, "");
	assert_int_equal(verdict_put(&w->attempt, &w->verb, &w->members), 0);
	assert_memory_equal(w->members.data, "\"result\":\"\xe2\x82\xac", 13);
	assert_in_range(w->members.len, 4000, 4200);
}

static void seventy_five_is_later_and_spends_nothing(void **state)
{
	exits(*state, 75, "", "");
	becomes(*state, REPORT_RELEASE, "\"reason\":\"exit status 75: try again later\",\"delayMs\":10000");
}

static void seventy_eight_is_never(void **state)
{
	exits(*state, 78, "", "no such key\n");
	becomes(*state, REPORT_FAIL,
		"\"error\":{\"code\":\"EXECUTION_ERROR\",\"message\":\"exit status 78, do not retry: no such key\","
		"\"details\":{\"exit\":78},\"retry\":false}");
}

static void any_other_status_is_a_failed_attempt_with_its_last_words(void **state)
{
	exits(*state, 3, "out\n", "first\nlast\n");
	becomes(*state, REPORT_FAIL,
		"\"error\":{\"code\":\"EXECUTION_ERROR\",\"message\":\"exit status 3: last\",\"details\":{\"exit\":3}}");
	exits(*state, 1, "only this\n", "");
	becomes(*state, REPORT_FAIL,
		"\"error\":{\"code\":\"EXECUTION_ERROR\",\"message\":\"exit status 1: only this\",\"details\":{\"exit\":1}}");
}

static void a_signal_is_a_crash(void **state)
{
	struct world *w = *state;

	w->end = (struct process_end){.how = ENDED_SIGNAL, .code = SIGSEGV};
	becomes(w, REPORT_FAIL,
		"\"error\":{\"code\":\"WORKER_CRASHED\",\"message\":\"ended by signal 11 (SIGSEGV)\",\"details\":{\"signal\":11}}");
}

static void a_lost_shim_is_a_crash_too(void **state)
{
	struct world *w = *state;

	w->end = (struct process_end){.how = ENDED_LOST};
	becomes(w, REPORT_FAIL,
		"\"error\":{\"code\":\"WORKER_CRASHED\",\"message\":\"its shim died; how the program ended is not known\"}");
}

static void unstarted_by(struct world *w, enum start_step step, int error, const char *code)
{
	char expected[80];

	w->end = (struct process_end){.how = ENDED_UNSTARTED, .fault = {.step = step, .error = error}};
	buf_clear(&w->members);
	assert_int_equal(verdict_put(&w->attempt, &w->verb, &w->members), 0);
	assert_int_equal(w->verb, REPORT_FAIL);
	snprintf(expected, sizeof expected, "\"error\":{\"code\":\"%s\"", code);
	assert_memory_equal(w->members.data, expected, strlen(expected));
}

static void unstarted(struct world *w, enum start_step step, const char *code)
{
	unstarted_by(w, step, ENOENT, code);
}

static void a_host_that_is_short_of_something_is_nobody_elses_fault(void **state)
{
	struct world *w = *state;

	w->attempt.own_argv = true;
	unstarted_by(w, START_EXEC, EAGAIN, "WORKER_INIT_FAILED");
	unstarted_by(w, START_LANDLOCK, EMFILE, "WORKER_INIT_FAILED");
	assert_non_null(memmem(w->members.data, w->members.len, "\"retryAt\":1010000", 17));
}

static void what_was_not_even_begun_has_a_code_and_words(void **state)
{
	static const struct {
		int fault;
		enum wall_level level;
		bool has_workdir;
		const char *code;
	} rows[] = {
		{-ENOMEM, WALL_PROCESS, true, "WORKER_INIT_FAILED"},
		{-EMFILE, WALL_SANDBOX, false, "WORKER_INIT_FAILED"},
		{-ENOENT, WALL_PROCESS, false, "WORKER_INIT_FAILED"},
		{-ENOENT, WALL_SANDBOX, true, "ISOLATION_UNAVAILABLE"},
		{-EOPNOTSUPP, WALL_PROCESS, true, "ISOLATION_UNAVAILABLE"},
		{-EXDEV, WALL_PROCESS, true, "BAD_WORKDIR"},
		{-EXDEV, WALL_SANDBOX, false, "ISOLATION_UNAVAILABLE"},
		{-E2BIG, WALL_PROCESS, false, "EXECUTION_ERROR"},
		{-EILSEQ, WALL_VM, false, "EXECUTION_ERROR"},
	};
	char text[START_REASON_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		text[0] = 0;
		assert_string_equal(
			start_refused(rows[i].fault, rows[i].has_workdir, rows[i].level, text), rows[i].code);
		assert_true(strlen(text) > 10 && strlen(text) < sizeof text - 1);
	}
}

static void who_can_not_be_where_it_belongs_is_barred(void **state)
{
	struct world *w = *state;

	w->end.how = ENDED_UNSTARTED;
	w->end.fault = (struct start_fault){.step = START_WORKDIR, .error = EACCES};
	assert_string_equal(verdict_barred(&w->end), "BAD_WORKDIR");
	w->end.fault = (struct start_fault){.step = START_WALL, .error = EPERM};
	assert_string_equal(verdict_barred(&w->end), "ISOLATION_UNAVAILABLE");
	w->end.fault = (struct start_fault){.step = START_WALL, .error = ENOMEM};
	assert_null(verdict_barred(&w->end)); /* that passes */
	w->end.fault = (struct start_fault){.step = START_EXEC, .error = ENOENT};
	assert_null(verdict_barred(&w->end)); /* its own fault */
	w->end.how = ENDED_EXIT;
	assert_null(verdict_barred(&w->end));
}

static void a_work_dir_that_has_the_state_directory_in_it_is_a_bad_one(void **state)
{
	struct world *w = *state;

	unstarted_by(w, START_LANDLOCK, EXDEV, "BAD_WORKDIR");
	w->end.fault.detail[0] = '/'; /* what the executor grants */
	buf_clear(&w->members);
	assert_int_equal(verdict_put(&w->attempt, &w->verb, &w->members), 0);
	assert_non_null(memmem(w->members.data, w->members.len, "ISOLATION_UNAVAILABLE", 21));
}

static void what_could_not_be_started_is_somebodys_fault(void **state)
{
	struct world *w = *state;

	unstarted(w, START_EXEC, "WORKER_INIT_FAILED");
	assert_non_null(memmem(w->members.data, w->members.len, "\"retryAt\":1010000", 17));
	unstarted(w, START_FORK, "WORKER_INIT_FAILED");
	unstarted(w, START_WORKDIR, "BAD_WORKDIR");
	unstarted(w, START_LANDLOCK, "ISOLATION_UNAVAILABLE");
	unstarted(w, START_SECCOMP, "ISOLATION_UNAVAILABLE");
	w->attempt.own_argv = true;
	unstarted(w, START_EXEC, "EXECUTION_ERROR");
	assert_non_null(memmem(w->members.data, w->members.len, "\"retry\":false", 13));
}

static void stopped(struct world *w, enum stop_reason reason, enum report_verb verb, const char *part)
{
	w->attempt.stop = reason;
	w->attempt.limit_ms = 5000;
	w->end = (struct process_end){.how = ENDED_SIGNAL, .code = SIGTERM, .stop_asked = true};
	buf_clear(&w->members);
	assert_int_equal(verdict_put(&w->attempt, &w->verb, &w->members), 0);
	assert_int_equal(w->verb, verb);
	assert_non_null(memmem(w->members.data, w->members.len, part, strlen(part)));
}

static void what_we_stopped_ends_as_we_know(void **state)
{
	stopped(*state, STOP_CANCELLED, REPORT_RELEASE, "cancelled");
	stopped(*state, STOP_SHUTDOWN, REPORT_RELEASE, "the worker stops");
	stopped(*state, STOP_PARKED, REPORT_RELEASE, "it waits for an answer");
	stopped(*state, STOP_LAPSED, REPORT_RELEASE, "no answer");
	stopped(*state, STOP_TIMED_OUT, REPORT_FAIL, "TASK_TIMEOUT\",\"message\":\"ran longer than 5000 ms");
	stopped(*state, STOP_STALLED, REPORT_FAIL, "STALLED");
}

/* However it went when it got TERM. */
static void what_its_shim_ended_for_its_lease_is_given_back(void **state)
{
	struct world *w = *state;
	const char *members = "\"reason\":\"its worker did not renew its lease in time\"";

	w->attempt.stop = STOP_LAPSED;
	w->end = (struct process_end){.how = ENDED_SIGNAL, .code = SIGTERM, .lapsed = true};
	becomes(w, REPORT_RELEASE, members);
	w->end = (struct process_end){.how = ENDED_EXIT, .code = 1, .lapsed = true};
	becomes(w, REPORT_RELEASE, members);
}

static void what_ended_before_our_word_reached_it_counts_itself(void **state)
{
	struct world *w = *state;

	w->attempt.stop = STOP_CANCELLED;
	exits(w, 0, "7", "");
	becomes(w, REPORT_COMPLETE, "\"result\":7");
}

static void what_was_stopped_before_it_began_is_given_back(void **state)
{
	struct world *w = *state;

	w->attempt.end = NULL;
	w->attempt.stop = STOP_SHUTDOWN;
	becomes(w, REPORT_RELEASE, "\"reason\":\"the worker stops\"");
}

static void a_budget_that_is_used_up_beats_all_but_a_cancel(void **state)
{
	struct world *w = *state;
	struct limits limits = limits_default();
	const char *memory =
		"\"error\":{\"code\":\"BUDGET_EXCEEDED\",\"message\":\"budget.memoryBytes of its executor is used up: it needed "
		"more than 1048576 bytes of memory, and the kernel killed what asked for more\","
		"\"details\":{\"budget\":\"memoryBytes\",\"limit\":1048576}}";

	limits.memory_bytes = 1 << 20;
	w->attempt.limits = &limits;
	w->end.spent = SPENT_MEMORY;
	exits(w, 0, "all is well", "");
	becomes(w, REPORT_FAIL, memory);
	w->end.how = ENDED_SIGNAL;
	w->end.code = SIGKILL;
	becomes(w, REPORT_FAIL, memory);
	w->attempt.stop = STOP_SHUTDOWN;
	w->end.stop_asked = true;
	becomes(w, REPORT_FAIL, memory);
	w->attempt.stop = STOP_CANCELLED;
	becomes(w, REPORT_RELEASE, "\"reason\":\"cancelled\"");
}

static void wall_time_is_a_budget_only_where_the_executor_says_so(void **state)
{
	struct world *w = *state;
	struct limits limits = limits_default();

	w->attempt.limits = &limits;
	w->attempt.stop = STOP_TIMED_OUT;
	w->attempt.limit_ms = 120000;
	w->end.stop_asked = true;
	becomes(w, REPORT_FAIL,
		"\"error\":{\"code\":\"TASK_TIMEOUT\",\"message\":\"ran longer than 120000 ms\"}");
	w->attempt.limit_is_budget = true;
	becomes(w, REPORT_FAIL,
		"\"error\":{\"code\":\"BUDGET_EXCEEDED\",\"message\":\"budget.minutes of its executor is used up: it ran longer "
		"than 120000 ms\",\"details\":{\"budget\":\"minutes\",\"limit\":2}}");
	w->attempt.limit_ms = 6000;
	becomes(w, REPORT_FAIL,
		"\"error\":{\"code\":\"BUDGET_EXCEEDED\",\"message\":\"budget.minutes of its executor is used up: it ran longer "
		"than 6000 ms\",\"details\":{\"budget\":\"minutes\",\"limit\":0.1}}");
}

static void refused_as(int fault, bool names_dir, enum wall_level level, const char *code, const char *reason)
{
	char said[START_REASON_BYTES];

	assert_string_equal(start_refused(fault, names_dir, level, said), code);
	assert_string_equal(said, reason);
}

static void what_cannot_even_be_made_is_somebodys_fault_too(void **state)
{
	(void)state;
	refused_as(-ENOSPC, false, WALL_PROCESS, "WORKER_INIT_FAILED",
		"cannot be started: No space left on device");
	refused_as(-ENOENT, false, WALL_PROCESS, "WORKER_INIT_FAILED",
		"cannot be started: No such file or directory");
	refused_as(-ENOENT, false, WALL_SANDBOX, "ISOLATION_UNAVAILABLE",
		"level \"sandbox\": a path that it may use cannot be opened: No such file or directory");
	refused_as(-E2BIG, true, WALL_VM, "EXECUTION_ERROR", "cannot be started: Argument list too long");
	refused_as(-EILSEQ, false, WALL_VM, "EXECUTION_ERROR",
		"at level \"vm\" an argument or a value of the environment cannot have a line break: it goes in as one line");
	refused_as(-EXDEV, true, WALL_PROCESS, "BAD_WORKDIR",
		"its work dir, or another path that it may use, contains the state directory or lies in it");
	refused_as(-EXDEV, false, WALL_PROCESS, "ISOLATION_UNAVAILABLE",
		"its work dir, or another path that it may use, contains the state directory or lies in it");
}

static void trouble_of_a_host_passes_and_other_refusals_do_not(void **state)
{
	struct world *w = *state;

	assert_int_equal(failure_put_refused(&w->members, "WORKER_INIT_FAILED", "x", 1000), 0);
	assert_int_equal(buf_put_byte(&w->members, 0), 0);
	assert_non_null(strstr(w->members.data, "\"retryAt\":11000"));
	buf_clear(&w->members);
	assert_int_equal(failure_put_refused(&w->members, "BAD_WORKDIR", "x", 1000), 0);
	assert_int_equal(buf_put_byte(&w->members, 0), 0);
	assert_non_null(strstr(w->members.data, "\"retry\":false"));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(the_last_line_is_the_result_if_it_is_json),
		T(otherwise_it_is_the_text),
		T(of_a_long_text_the_tail_from_a_whole_character_on),
		T(seventy_five_is_later_and_spends_nothing),
		T(seventy_eight_is_never),
		T(any_other_status_is_a_failed_attempt_with_its_last_words),
		T(a_signal_is_a_crash),
		T(a_lost_shim_is_a_crash_too),
		T(what_could_not_be_started_is_somebodys_fault),
		T(a_host_that_is_short_of_something_is_nobody_elses_fault),
		T(what_was_not_even_begun_has_a_code_and_words),
		T(who_can_not_be_where_it_belongs_is_barred),
		T(a_work_dir_that_has_the_state_directory_in_it_is_a_bad_one),
		T(what_we_stopped_ends_as_we_know),
		T(what_its_shim_ended_for_its_lease_is_given_back),
		T(what_ended_before_our_word_reached_it_counts_itself),
		T(what_was_stopped_before_it_began_is_given_back),
		T(a_budget_that_is_used_up_beats_all_but_a_cancel),
		T(wall_time_is_a_budget_only_where_the_executor_says_so),
		T(what_cannot_even_be_made_is_somebodys_fault_too),
		T(trouble_of_a_host_passes_and_other_refusals_do_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
