#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/uuid.h"

static void assert_read(const char *text, uint64_t hi, uint64_t lo)
{
	uint64_t halves[2] = {0, 0};

	assert_true(uuid_read(span_of(text), &halves[0], &halves[1]));
	assert_true(halves[0] == hi && halves[1] == lo);
}

static void assert_refused(const char *text)
{
	uint64_t hi = 7, lo = 8;

	assert_false(uuid_read(span_of(text), &hi, &lo));
	assert_true(hi == 7 && lo == 8);
}

static void dashes_and_capitals_make_no_difference(void **state)
{
	(void)state;
	assert_read("01234567-89ab-cdef-fedc-ba9876543210", 0x0123456789abcdef, 0xfedcba9876543210);
	assert_read("0123456789abcdeffedcba9876543210", 0x0123456789abcdef, 0xfedcba9876543210);
	assert_read("0123456789ABCDEF-FEDCBA9876543210", 0x0123456789abcdef, 0xfedcba9876543210);
}

static void anything_but_32_digits_is_refused(void **state)
{
	(void)state;
	assert_refused("");
	assert_refused("0123456789abcdeffedcba987654321");
	assert_refused("0123456789abcdeffedcba98765432100");
	assert_refused("0123456789abcdeffedcba987654321g");
	assert_refused("0123456789abcdeffedcba987654321 0");
	assert_refused("\xc1\xc2\xc3\xc4\xc5\xc6");
}

static void what_is_written_is_read(void **state)
{
	char text[UUID_CHARS + 1];

	(void)state;
	uuid_write(0x0123456789abcdef, 7, text);
	assert_string_equal(text, "01234567-89ab-cdef-0000-000000000007");
	assert_read(text, 0x0123456789abcdef, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dashes_and_capitals_make_no_difference),
		cmocka_unit_test(anything_but_32_digits_is_refused),
		cmocka_unit_test(what_is_written_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
