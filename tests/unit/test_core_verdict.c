/*
 * Who decides how an attempt ended: each row of "By its report" in spec/states.md, from the first to the last.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/take.h"
#include "core/task/verdict.h"

static enum seen_end seen_of(enum failure_code code, bool exited, bool checked)
{
	struct failure failure = {.code = code, .klass = failure_code_class(code)};

	return verdict_seen(ENDED_FAIL, &failure, exited, checked);
}

/* ---- what the supervisor's word amounts to ---- */

static void a_host_in_trouble_or_a_forbidden_start_has_run_nothing(void **state)
{
	(void)state;
	assert_int_equal(seen_of(CODE_WORKER_INIT_FAILED, false, false), SEEN_NOTHING_RUN);
	assert_int_equal(seen_of(CODE_ISOLATION_UNAVAILABLE, true, false), SEEN_NOTHING_RUN);
	assert_int_equal(seen_of(CODE_BAD_WORKDIR, false, true), SEEN_NOTHING_RUN);
}

static void a_spent_budget_yields_only_where_no_check_has_judged(void **state)
{
	(void)state;
	assert_int_equal(seen_of(CODE_BUDGET_EXCEEDED, false, false), SEEN_BUDGET_SPENT);
	assert_int_equal(seen_of(CODE_BUDGET_EXCEEDED, false, true), SEEN_NOTHING_RUN);
}

static void a_crash_a_clock_a_failed_check_and_an_error_as_last_word_are_faults(void **state)
{
	(void)state;
	assert_int_equal(seen_of(CODE_WORKER_CRASHED, false, false), SEEN_FAULT);
	assert_int_equal(seen_of(CODE_WORKER_CRASHED, true, false), SEEN_FAULT);
	assert_int_equal(seen_of(CODE_TASK_TIMEOUT, false, false), SEEN_FAULT);
	assert_int_equal(seen_of(CODE_STALLED, false, false), SEEN_FAULT);
	assert_int_equal(seen_of(CODE_QUOTA, false, false), SEEN_FAULT);
	assert_int_equal(seen_of(CODE_CHECK_FAILED, true, true), SEEN_FAULT);
	assert_int_equal(seen_of(CODE_EXECUTION_ERROR, false, false), SEEN_FAULT);
	assert_int_equal(seen_of(CODE_OTHER, false, false), SEEN_FAULT);
}

static void an_exit_status_and_whatever_is_no_failure_are_the_exit(void **state)
{
	const struct failure nothing = {0};

	(void)state;
	assert_int_equal(seen_of(CODE_EXECUTION_ERROR, true, false), SEEN_EXIT);
	assert_int_equal(seen_of(CODE_OTHER, true, false), SEEN_EXIT);
	assert_int_equal(verdict_seen(ENDED_COMPLETE, &nothing, false, false), SEEN_EXIT);
	assert_int_equal(verdict_seen(ENDED_REVIEW, &nothing, false, false), SEEN_EXIT);
	assert_int_equal(verdict_seen(ENDED_RELEASE, &nothing, false, false), SEEN_EXIT);
}

static void a_block_is_weighed_by_its_code_as_a_failure_is(void **state)
{
	const struct failure refused = {.code = CODE_EXECUTOR_NOT_FOUND, .klass = CLASS_POLICY};
	const struct failure error = {.code = CODE_EXECUTION_ERROR, .klass = CLASS_TASK};

	(void)state;
	assert_int_equal(verdict_seen(ENDED_BLOCK, &refused, false, false), SEEN_NOTHING_RUN);
	assert_int_equal(verdict_seen(ENDED_BLOCK, &error, false, false), SEEN_FAULT);
}

/* ---- the rows ---- */

static const enum claim_end all_reports[] = {
	ENDED_NOT, ENDED_COMPLETE, ENDED_FAIL, ENDED_REVIEW, ENDED_BLOCK, ENDED_RELEASE};

static void where_nothing_ran_neither_report_nor_question_counts(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof all_reports / sizeof *all_reports; i++) {
		assert_int_equal(verdict_weigh(SEEN_NOTHING_RUN, all_reports[i], false), VERDICT_SEEN);
		assert_int_equal(verdict_weigh(SEEN_NOTHING_RUN, all_reports[i], true), VERDICT_SEEN);
	}
}

static void a_spent_budget_gives_way_to_done_and_to_nothing_else(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof all_reports / sizeof *all_reports; i++) {
		enum verdict expected = all_reports[i] == ENDED_COMPLETE ? VERDICT_REPORTED : VERDICT_SEEN;
		assert_int_equal(verdict_weigh(SEEN_BUDGET_SPENT, all_reports[i], false), expected);
		assert_int_equal(verdict_weigh(SEEN_BUDGET_SPENT, all_reports[i], true), expected);
	}
}

static void an_open_question_goes_before_every_report_and_fault(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof all_reports / sizeof *all_reports; i++) {
		assert_int_equal(verdict_weigh(SEEN_EXIT, all_reports[i], true), VERDICT_ASKED);
		assert_int_equal(verdict_weigh(SEEN_FAULT, all_reports[i], true), VERDICT_ASKED);
	}
}

static void a_failure_that_the_work_reported_goes_before_what_the_supervisor_saw(void **state)
{
	static const enum claim_end failures[] = {ENDED_FAIL, ENDED_BLOCK, ENDED_RELEASE};

	(void)state;
	for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
		assert_int_equal(verdict_weigh(SEEN_FAULT, failures[i], false), VERDICT_REPORTED);
		assert_int_equal(verdict_weigh(SEEN_EXIT, failures[i], false), VERDICT_REPORTED);
	}
}

static void a_fault_goes_before_a_success_that_the_work_reported(void **state)
{
	(void)state;
	assert_int_equal(verdict_weigh(SEEN_FAULT, ENDED_COMPLETE, false), VERDICT_SEEN);
	assert_int_equal(verdict_weigh(SEEN_FAULT, ENDED_REVIEW, false), VERDICT_SEEN);
	assert_int_equal(verdict_weigh(SEEN_FAULT, ENDED_NOT, false), VERDICT_SEEN);
}

static void a_report_goes_before_the_exit(void **state)
{
	(void)state;
	assert_int_equal(verdict_weigh(SEEN_EXIT, ENDED_COMPLETE, false), VERDICT_REPORTED);
	assert_int_equal(verdict_weigh(SEEN_EXIT, ENDED_REVIEW, false), VERDICT_REPORTED);
}

static void without_a_report_the_exit_decides(void **state)
{
	(void)state;
	assert_int_equal(verdict_weigh(SEEN_EXIT, ENDED_NOT, false), VERDICT_SEEN);
}

static void a_caller_that_does_not_ask_for_it_decides_alone(void **state)
{
	(void)state;
	assert_int_equal(verdict_weigh(SEEN_NOT_SAID, ENDED_FAIL, true), VERDICT_SEEN);
}

/* ---- how a report is kept ---- */

static void a_report_is_read_as_it_was_kept(void **state)
{
	const struct ending ending = {
		.outcome = ENDED_FAIL,
		.failure = {.code = CODE_QUOTA,
			.klass = CLASS_QUOTA,
			.retry_at_ms = 1794747196179,
			.no_retry = true},
		.delay_ms = 7,
		.data = SPAN("{\"code\":\"QUOTA\"}"),
		.evidence = SPAN("[1]"),
		.note = SPAN("\"message\":\"m\""),
	};
	struct ending read;
	cleanup(buf_done) struct buf kept = {0};

	(void)state;
	buf_init(&kept, 1000);
	assert_int_equal(ending_put(&kept, &ending), 0);
	assert_int_equal(ending_read(buf_span(&kept), &read), 0);
	assert_int_equal(read.outcome, ENDED_FAIL);
	assert_memory_equal(&read.failure, &ending.failure, sizeof read.failure);
	assert_int_equal(read.delay_ms, 7);
	assert_true(span_equal(read.data, ending.data));
	assert_true(span_equal(read.evidence, ending.evidence));
	assert_true(span_equal(read.note, ending.note));
	for (size_t len = 0; len < kept.len; len++)
		assert_int_equal(ending_read((struct span){kept.data, len}, &read), -EPROTO);
}

static void a_report_of_an_older_server_keeps_its_outcome_and_its_text(void **state)
{
	struct span kept = SPAN("{\"outcome\":\"review\",\"result\":5}");
	struct ending read;

	(void)state;
	assert_int_equal(ending_read(kept, &read), 0);
	assert_int_equal(read.outcome, ENDED_REVIEW);
	assert_true(span_equal(read.data, kept));
	assert_int_equal(ending_read(SPAN("{\"outcome\":\"fail\"}"), &read), 0);
	assert_int_equal(read.outcome, ENDED_FAIL);
	assert_int_equal(read.failure.klass, CLASS_TASK);
	assert_int_equal(ending_read(SPAN("{\"outcome\":\"win\"}"), &read), -EPROTO);
	assert_int_equal(ending_read(SPAN(""), &read), -EPROTO);
}

/* The numbers of a kept report, each of which fits into a byte: form, outcome, code, class, and nothing behind. */
static int read_numbers(char form, char outcome, char code, char klass)
{
	char kept[] = {form, outcome, code, klass, 0, 0, 0, 0, 0, 0};
	struct ending read;

	return ending_read((struct span){kept, sizeof kept}, &read);
}

static void a_kept_report_with_an_impossible_number_is_not_understood(void **state)
{
	(void)state;
	assert_int_equal(read_numbers(1, ENDED_COMPLETE, CODE_NONE, 0), 0);
	assert_int_equal(read_numbers(2, ENDED_COMPLETE, CODE_NONE, 0), -EPROTO);
	assert_int_equal(read_numbers(1, ENDED_NOT, CODE_NONE, 0), -EPROTO);
	assert_int_equal(read_numbers(1, ENDED_LOST, CODE_NONE, 0), -EPROTO);
	assert_int_equal(read_numbers(1, ENDED_FAIL, FAILURE_CODE_COUNT, 0), -EPROTO);
	assert_int_equal(read_numbers(1, ENDED_FAIL, CODE_NONE, FAILURE_CLASS_COUNT), -EPROTO);
}

static void a_report_that_does_not_fit_is_not_kept_in_part(void **state)
{
	const struct ending ending = {.outcome = ENDED_COMPLETE, .note = SPAN("a note")};
	struct ending read;
	struct buf kept;

	(void)state;
	buf_init(&kept, 8);
	assert_int_equal(ending_put(&kept, &ending), -E2BIG);
	assert_int_equal(kept.len, 0);
	buf_done(&kept);
	buf_init(&kept, 1000);
	assert_int_equal(ending_put(&kept, &ending), 0);
	assert_int_equal(ending_read(buf_span(&kept), &read), 0);
	assert_int_equal(read.data.len, 0);
	assert_true(span_equal(read.note, SPAN("a note")));
	buf_done(&kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_in_trouble_or_a_forbidden_start_has_run_nothing),
		cmocka_unit_test(a_spent_budget_yields_only_where_no_check_has_judged),
		cmocka_unit_test(a_crash_a_clock_a_failed_check_and_an_error_as_last_word_are_faults),
		cmocka_unit_test(an_exit_status_and_whatever_is_no_failure_are_the_exit),
		cmocka_unit_test(a_block_is_weighed_by_its_code_as_a_failure_is),
		cmocka_unit_test(where_nothing_ran_neither_report_nor_question_counts),
		cmocka_unit_test(a_spent_budget_gives_way_to_done_and_to_nothing_else),
		cmocka_unit_test(an_open_question_goes_before_every_report_and_fault),
		cmocka_unit_test(a_failure_that_the_work_reported_goes_before_what_the_supervisor_saw),
		cmocka_unit_test(a_fault_goes_before_a_success_that_the_work_reported),
		cmocka_unit_test(a_report_goes_before_the_exit),
		cmocka_unit_test(without_a_report_the_exit_decides),
		cmocka_unit_test(a_caller_that_does_not_ask_for_it_decides_alone),
		cmocka_unit_test(a_report_is_read_as_it_was_kept),
		cmocka_unit_test(a_report_of_an_older_server_keeps_its_outcome_and_its_text),
		cmocka_unit_test(a_kept_report_with_an_impossible_number_is_not_understood),
		cmocka_unit_test(a_report_that_does_not_fit_is_not_kept_in_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
