/*
 * Time zones: the table says what the C library says; names that lead elsewhere and files that are none are refused.
 */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "base/zone.h"

static void utc_needs_no_file(void **state)
{
	struct zone *zone;

	(void)state;
	assert_int_equal(zone_load(NULL, SPAN("UTC"), &zone), 0);
	assert_int_equal(zone->count, 1);
	assert_int_equal(zone->shifts[zone_find(zone, 0)].offset_s, 0);
	zone_free(zone);
}

static void a_name_that_leads_elsewhere_is_refused(void **state)
{
	static const char *const names[] = {"", "/etc/passwd", "../../etc/passwd", "Europe/../Berlin",
		"Europe/", "Europe//Berlin", "Europe/Ber lin", "Europe\\Berlin",
		"a/very/long/name/that/no/zone/has/because/names/of/zones/are/all/much/shorter/than/this"};
	struct zone *zone;

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		assert_int_equal(zone_load(NULL, span_of(names[i]), &zone), -EINVAL);
	assert_int_equal(zone_load(NULL, SPAN("Nowhere/Town"), &zone), -ENOENT);
	assert_int_equal(zone_load("/nonexistent", SPAN("UTC"), &zone), -ENOENT);
}

static void a_directory_or_a_text_is_no_zone(void **state)
{
	struct zone *zone;

	(void)state;
	assert_int_equal(zone_read(SPAN("TZif"), &zone), -EINVAL);
	assert_int_equal(zone_read(SPAN("# tzdb links for names\n"), &zone), -EINVAL);
	int r = zone_load(NULL, SPAN("Europe"), &zone);
	assert_true(r == -EINVAL || r == -ENOENT);
}

static void the_table_says_what_the_c_library_says(void **state)
{
	static const char *const names[] = {"Europe/Berlin", "America/New_York", "Australia/Lord_Howe",
		"Africa/Casablanca", "Asia/Kathmandu", "America/Nuuk", "Pacific/Kiritimati", "Asia/Tehran",
		"Europe/Dublin", "America/Asuncion"};
	struct rng rng;

	(void)state;
	rng_seed(&rng, 7);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct zone *zone;
		int r = zone_load(NULL, span_of(names[i]), &zone);
		if (r == -ENOENT)
			continue; /* this machine has no such file */
		assert_int_equal(r, 0);
		setenv("TZ", names[i], 1);
		tzset();
		for (int n = 0; n < 2000; n++) {
			time_t at = (time_t)rng_between(&rng, 0, INT64_C(4102444800));
			struct tm tm;
			localtime_r(&at, &tm);
			assert_int_equal(zone->shifts[zone_find(zone, at)].offset_s, tm.tm_gmtoff);
		}
		for (uint32_t shift = 1; shift < zone->count; shift++) {
			assert_true(zone->shifts[shift].at_s > zone->shifts[shift - 1].at_s);
			assert_int_not_equal(zone->shifts[shift].offset_s, zone->shifts[shift - 1].offset_s);
		}
		zone_free(zone);
	}
}

static void days_and_dates_are_one_to_one(void **state)
{
	(void)state;
	for (int64_t days = -200000; days < 200000; days += 13) {
		int64_t year;
		int month, day;
		date_of_days(days, &year, &month, &day);
		assert_int_equal(days_of_date(year, month, day), days);
		assert_true(day >= 1 && day <= days_of_month(year, month));
	}
	assert_int_equal(weekday_of_days(0), 4);
	assert_int_equal(weekday_of_days(-4), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(utc_needs_no_file),
		cmocka_unit_test(a_name_that_leads_elsewhere_is_refused),
		cmocka_unit_test(a_directory_or_a_text_is_no_zone),
		cmocka_unit_test(the_table_says_what_the_c_library_says),
		cmocka_unit_test(days_and_dates_are_one_to_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
