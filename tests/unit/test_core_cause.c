/*
 * Causes: the words of a failure without its numbers.
 */
#include "core_fixture.h"

#include "core/task/cause.h"

static const char *cause(const char *message)
{
	static char text[CAUSE_BYTES_MAX + 1];
	size_t len = cause_put(span_of(message), text);

	assert_true(len <= CAUSE_BYTES_MAX);
	text[len] = 0;
	return text;
}

static void numbers_make_no_difference(void **state)
{
	(void)state;
	assert_string_equal(cause("expected 12, got 7"), "expected N, got N");
	assert_string_equal(cause("exit status 137"), cause("exit status 1"));
	assert_string_equal(cause("no numbers"), "no numbers");
}

static void the_first_line_that_says_something_counts(void **state)
{
	(void)state;
	assert_string_equal(cause("\n  make: failed \nsee the log"), "make: failed");
	assert_string_equal(cause(""), "");
	assert_string_equal(cause(" \n\t"), "");
}

static void a_long_one_is_cut_between_characters(void **state)
{
	char long_one[3 * CAUSE_BYTES_MAX + 1] = "";

	(void)state;
	for (int i = 0; i < CAUSE_BYTES_MAX; i++)
		memcpy(long_one + 2 * i, "\xc3\xa9", 3);
	long_one[1] = 'e'; /* now the limit falls into the middle of a character */
	long_one[0] = 'e';
	memmove(long_one + 1, long_one + 2, 2 * CAUSE_BYTES_MAX - 1);
	size_t len = strlen(cause(long_one));
	assert_int_equal(len, CAUSE_BYTES_MAX - 1);
	assert_int_equal(len % 2, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_make_no_difference),
		cmocka_unit_test(the_first_line_that_says_something_counts),
		cmocka_unit_test(a_long_one_is_cut_between_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
