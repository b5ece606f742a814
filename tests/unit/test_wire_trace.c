#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "wire/trace.h"

#define ID      "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN_ID "00f067aa0ba902b7"

static void a_traceparent_is_read(void **state)
{
	struct trace trace;

	(void)state;
	assert_true(trace_read(SPAN("00-" ID "-" SPAN_ID "-01"), &trace));
	assert_string_equal(trace.id, ID);
	assert_string_equal(trace.parent, SPAN_ID);
	assert_true(trace.sampled);
	assert_true(trace_read(SPAN("00-" ID "-" SPAN_ID "-02"), &trace));
	assert_false(trace.sampled);
	assert_true(trace_read(SPAN("cc-" ID "-" SPAN_ID "-01-later"), &trace));
}

static void what_is_none_is_refused(void **state)
{
	static const char *const bad[] = {"", "00", "00-" ID "-" SPAN_ID, "00-" ID "-" SPAN_ID "-0",
		"00-" ID "-" SPAN_ID "-01-x", "00-" ID "-" SPAN_ID "-0g", "ff-" ID "-" SPAN_ID "-01",
		"00_" ID "-" SPAN_ID "-01", "cc-" ID "-" SPAN_ID "-01x",
		"00-00000000000000000000000000000000-" SPAN_ID "-01", "00-" ID "-0000000000000000-01",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN_ID "-01"};
	struct trace trace;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(trace_read(span_of(bad[i]), &trace));
}

/* A worker and a notifier of different versions must agree: these ids are a contract. */
static void spans_are_the_same_everywhere(void **state)
{
	char span[TRACE_SPAN_BYTES], again[TRACE_SPAN_BYTES], text[TRACEPARENT_BYTES];
	struct trace trace;

	(void)state;
	trace_of_task(SPAN("t-1"), 1000, SPAN("00-" ID "-" SPAN_ID "-01"), &trace);
	trace_attempt_span(&trace, SPAN("t-1"), 1, span);
	assert_string_equal(span, "d3994712971b4210");
	trace_attempt_span(&trace, SPAN("t-1"), 2, again);
	assert_string_not_equal(span, again);
	trace_attempt_span(&trace, SPAN("t-2"), 1, again);
	assert_string_not_equal(span, again);
	trace_task_span(&trace, SPAN("t-1"), again);
	assert_string_equal(again, "8267328d16d830a6");
	trace_put(&trace, span, text);
	assert_string_equal(text, "00-" ID "-d3994712971b4210-01");
}

static void a_task_of_no_trace_begins_its_own(void **state)
{
	struct trace first, second;

	(void)state;
	trace_of_task(SPAN("t-1"), 1000, SPAN("nonsense"), &first);
	trace_of_task(SPAN("t-1"), 1000, SPAN(""), &second);
	assert_string_equal(first.id, second.id);
	assert_string_equal(first.id, "c2ac7875b6d3b308d0b780c052d429ec");
	assert_string_equal(first.parent, "");
	assert_true(first.sampled);
	trace_of_task(SPAN("t-1"), 1001, SPAN(""), &second); /* the id was free again: another task */
	assert_string_not_equal(first.id, second.id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_traceparent_is_read),
		cmocka_unit_test(what_is_none_is_refused),
		cmocka_unit_test(spans_are_the_same_everywhere),
		cmocka_unit_test(a_task_of_no_trace_begins_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
