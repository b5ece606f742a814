#include "base/iso_time.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static const struct {
	int64_t wall_ms;
	const char *text;
} moments[] = {
	{0, "1970-01-01T00:00:00.000Z"},
	{1770668435682, "2026-02-09T20:20:35.682Z"},
	{-1, "1969-12-31T23:59:59.999Z"},
	{951782400000, "2000-02-29T00:00:00.000Z"},
	{4107542400000, "2100-03-01T00:00:00.000Z"},
	{-62167219200000, "0000-01-01T00:00:00.000Z"},
	{253402300799999, "9999-12-31T23:59:59.999Z"},
};

static void a_time_is_written_and_read_back(void **state)
{
	char text[ISO_TIME_BYTES + 1];
	int64_t wall_ms;

	(void)state;
	for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
		iso_time_put(moments[i].wall_ms, text);
		assert_string_equal(text, moments[i].text);
		assert_int_equal(iso_time_read(span_of(text), &wall_ms), 0);
		assert_int_equal(wall_ms, moments[i].wall_ms);
	}
}

static void every_day_of_a_leap_cycle_comes_back(void **state)
{
	char text[ISO_TIME_BYTES + 1];
	int64_t wall_ms;

	(void)state;
	for (int64_t day = -146097; day < 146097; day += 1) {
		iso_time_put(day * 86400000, text);
		assert_int_equal(iso_time_read(span_of(text), &wall_ms), 0);
		assert_int_equal(wall_ms, day * 86400000);
	}
}

static void the_fraction_may_be_short_long_or_missing(void **state)
{
	int64_t wall_ms;

	(void)state;
	assert_int_equal(iso_time_read(SPAN("1970-01-01T00:00:01Z"), &wall_ms), 0);
	assert_int_equal(wall_ms, 1000);
	assert_int_equal(iso_time_read(SPAN("1970-01-01T00:00:01.5Z"), &wall_ms), 0);
	assert_int_equal(wall_ms, 1500);
	assert_int_equal(iso_time_read(SPAN("1970-01-01T00:00:01.123456789Z"), &wall_ms), 0);
	assert_int_equal(wall_ms, 1123);
}

static void what_is_no_time_is_refused(void **state)
{
	static const char *const wrong[] = {"", "yesterday", "2026-02-30T00:00:00.000Z",
		"2026-13-01T00:00:00Z", "2026-02-09T24:00:00Z", "2026-02-09T20:20:35.682",
		"2026-02-09 20:20:35.682Z", "2026-02-09T20:20:35.Z", "2026-02-09T20:20:35.682Zz",
		"2026-2-09T20:20:35Z", "2026-02-09T20:60:35Z", "2023-02-29T00:00:00Z",
		"2026-02-09T20:20:35.1234567890Z"};
	int64_t wall_ms = 7;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(iso_time_read(span_of(wrong[i]), &wall_ms), -EINVAL);
	assert_int_equal(wall_ms, 7);
}

static void what_no_calendar_has_becomes_the_nearest(void **state)
{
	char text[ISO_TIME_BYTES + 1];

	(void)state;
	iso_time_put(INT64_MAX, text);
	assert_string_equal(text, "9999-12-31T23:59:59.999Z");
	iso_time_put(INT64_MIN, text);
	assert_string_equal(text, "0000-01-01T00:00:00.000Z");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_time_is_written_and_read_back),
		cmocka_unit_test(every_day_of_a_leap_cycle_comes_back),
		cmocka_unit_test(the_fraction_may_be_short_long_or_missing),
		cmocka_unit_test(what_is_no_time_is_refused),
		cmocka_unit_test(what_no_calendar_has_becomes_the_nearest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
