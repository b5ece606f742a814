#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/span.h"

static void a_literal_span_leaves_out_the_nul(void **state)
{
	struct span span = SPAN("a\0b");

	(void)state;
	assert_int_equal(span.len, 3);
	assert_memory_equal(span.data, "a\0b", 3);
}

static void a_literal_span_may_initialise_a_table(void **state)
{
	static const struct span names[] = {SPAN("ready"), SPAN("leased")};

	(void)state;
	assert_true(span_equal(names[1], span_of("leased")));
}

static void the_span_of_no_string_is_empty(void **state)
{
	(void)state;
	assert_true(span_is_empty(span_of(NULL)));
	assert_true(span_is_empty(span_of("")));
	assert_false(span_is_empty(span_of("x")));
}

static void empty_spans_are_equal_wherever_they_point(void **state)
{
	(void)state;
	assert_true(span_equal(span_of(NULL), SPAN("")));
	assert_int_equal(span_compare(span_of(NULL), SPAN("")), 0);
}

static void equal_spans_have_the_same_bytes_to_the_end(void **state)
{
	(void)state;
	assert_true(span_equal(SPAN("a\0b"), SPAN("a\0b")));
	assert_false(span_equal(SPAN("a\0b"), SPAN("a\0c")));
	assert_false(span_equal(SPAN("ab"), SPAN("abc")));
}

static void a_prefix_sorts_before_the_longer_span(void **state)
{
	(void)state;
	assert_true(span_compare(SPAN("ab"), SPAN("abc")) < 0);
	assert_true(span_compare(SPAN("abc"), SPAN("ab")) > 0);
	assert_true(span_compare(span_of(NULL), SPAN("a")) < 0);
}

static void bytes_sort_unsigned(void **state)
{
	(void)state;
	assert_true(span_compare(SPAN("\x7f"), SPAN("\x80")) < 0);
	assert_true(span_compare(SPAN("\xff"), SPAN("aaaa")) > 0);
}

static void span_args_print_the_bytes_and_nothing_for_null(void **state)
{
	struct span name = {"stintd", 5};
	char text[16];

	(void)state;
	snprintf(text, sizeof(text), "[%.*s%.*s]", SPAN_ARGS(name), SPAN_ARGS(span_of(NULL)));
	assert_string_equal(text, "[stint]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_literal_span_leaves_out_the_nul),
		cmocka_unit_test(a_literal_span_may_initialise_a_table),
		cmocka_unit_test(the_span_of_no_string_is_empty),
		cmocka_unit_test(empty_spans_are_equal_wherever_they_point),
		cmocka_unit_test(equal_spans_have_the_same_bytes_to_the_end),
		cmocka_unit_test(a_prefix_sorts_before_the_longer_span),
		cmocka_unit_test(bytes_sort_unsigned),
		cmocka_unit_test(span_args_print_the_bytes_and_nothing_for_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
