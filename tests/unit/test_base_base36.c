#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "base/base36.h"
#include "base/rng.h"

static void assert_spelled(uint64_t value, const char *text)
{
	char out[BASE36_MAX];
	uint64_t back;

	assert_int_equal(base36_encode(value, out), strlen(text));
	assert_string_equal(out, text);
	assert_int_equal(base36_decode(span_of(text), &back), 0);
	assert_true(back == value);
}

static void assert_refused(struct span text)
{
	uint64_t value = 12345;

	assert_int_equal(base36_decode(text, &value), -EINVAL);
	assert_int_equal(value, 12345);
}

static void known_numbers_have_known_spellings(void **state)
{
	(void)state;
	assert_spelled(0, "0");
	assert_spelled(9, "9");
	assert_spelled(10, "a");
	assert_spelled(35, "z");
	assert_spelled(36, "10");
	assert_spelled(UINT64_MAX, "3w5e11264sgsf");
}

static void every_number_comes_back(void **state)
{
	char out[BASE36_MAX];
	struct rng rng;

	(void)state;
	rng_seed(&rng, 36);
	for (int i = 0; i < 20000; i++) {
		uint64_t value = rng_u64(&rng) >> rng_below(&rng, 64);
		uint64_t back;
		size_t len = base36_encode(value, out);

		assert_int_equal(base36_decode((struct span){out, len}, &back), 0);
		assert_true(back == value);
	}
}

static void a_number_past_64_bits_is_refused(void **state)
{
	(void)state;
	assert_refused(SPAN("3w5e11264sgsg"));
	assert_refused(SPAN("3w5e11264sgt0"));
	assert_refused(SPAN("zzzzzzzzzzzzz"));
}

static void no_digits_or_too_many_are_refused(void **state)
{
	(void)state;
	assert_refused(span_of(NULL));
	assert_refused(SPAN("10000000000000"));
}

static void a_leading_zero_is_refused(void **state)
{
	(void)state;
	assert_refused(SPAN("00"));
	assert_refused(SPAN("01"));
}

static void capitals_signs_and_blanks_are_refused(void **state)
{
	(void)state;
	assert_refused(SPAN("A"));
	assert_refused(SPAN("1Z"));
	assert_refused(SPAN("-1"));
	assert_refused(SPAN("+1"));
	assert_refused(SPAN(" 1"));
	assert_refused(SPAN("1\0"));
	assert_refused(SPAN("\xff"));
}

static void every_byte_that_is_no_digit_is_refused(void **state)
{
	(void)state;
	for (int byte = 0; byte < 256; byte++) {
		char text = (char)byte;

		if ((byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z'))
			continue;
		assert_refused((struct span){&text, 1});
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_numbers_have_known_spellings),
		cmocka_unit_test(every_number_comes_back),
		cmocka_unit_test(a_number_past_64_bits_is_refused),
		cmocka_unit_test(no_digits_or_too_many_are_refused),
		cmocka_unit_test(a_leading_zero_is_refused),
		cmocka_unit_test(capitals_signs_and_blanks_are_refused),
		cmocka_unit_test(every_byte_that_is_no_digit_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
