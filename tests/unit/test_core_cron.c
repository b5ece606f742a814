/*
 * Cron lines: what is read and what is refused; gaps and repeated hours of the clock; and, drawn from a seed that is printed, lines
 * in many zones and years against a walk over every minute that asks the C library what the clock shows.
 */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/iso_time.h"
#include "base/rng.h"
#include "base/zone.h"
#include "core/flow/cron.h"

static struct zone *load(const char *name)
{
	struct zone *zone = NULL;
	int r = zone_load(NULL, span_of(name), &zone);

	if (r == -ENOENT && strcmp(name, "UTC") != 0)
		skip(); /* this machine has no zoneinfo */
	assert_int_equal(r, 0);
	return zone;
}

static int64_t moment(const char *text)
{
	int64_t ms;

	assert_int_equal(iso_time_read(span_of(text), &ms), 0);
	return ms / 1000;
}

/* The next times of the line after that moment are these; "": none. */
static void expect(const char *line, const char *zone_name, const char *after, const char *const *times)
{
	struct zone *zone = load(zone_name);
	struct cron_fault fault;
	struct cron cron;
	int64_t at_s = moment(after);
	char text[ISO_TIME_BYTES + 1];

	assert_int_equal(cron_read(span_of(line), &cron, &fault), 0);
	for (; *times; times++) {
		at_s = cron_next(&cron, zone, at_s);
		if (at_s == INT64_MAX) {
			assert_string_equal(*times, "");
			break;
		}
		iso_time_put(at_s * 1000, text);
		assert_memory_equal(text, *times, strlen(*times));
	}
	zone_free(zone);
}

#define NEXT(line, zone, after, ...) expect(line, zone, after, (const char *const[]){__VA_ARGS__, NULL})

static void each_field_is_read_as_cron_reads_it(void **state)
{
	(void)state;
	NEXT("*/15 3-4 * * *", "UTC", "2026-01-01T00:00:00Z", "2026-01-01T03:00:00", "2026-01-01T03:15:00",
		"2026-01-01T03:30:00", "2026-01-01T03:45:00", "2026-01-01T04:00:00");
	NEXT("0 9 * * MON", "UTC", "2026-01-01T00:00:00Z", "2026-01-05T09", "2026-01-12T09");
	NEXT("0 9 * jan,MAR sun", "UTC", "2026-01-20T00:00:00Z", "2026-01-25", "2026-03-01");
	NEXT("10 30 2 * * *", "UTC", "2026-01-01T00:00:00Z", "2026-01-01T02:30:10", "2026-01-02T02:30:10");
	NEXT("5/20 * * * *", "UTC", "2026-01-01T00:00:00Z", "2026-01-01T00:05", "2026-01-01T00:25",
		"2026-01-01T00:45", "2026-01-01T01:05");
	NEXT("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", "2028-02-29", "2032-02-29");
	NEXT("@daily", "UTC", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00");
	NEXT("@Hourly", "UTC", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00");
}

static void last_and_nth_days_are_those_of_their_month(void **state)
{
	(void)state;
	NEXT("0 0 L * *", "UTC", "2024-01-15T00:00:00Z", "2024-01-31", "2024-02-29", "2024-03-31");
	NEXT("0 0 * * 5L", "UTC", "2026-01-01T00:00:00Z", "2026-01-30", "2026-02-27");
	NEXT("0 0 * * FRI#2", "UTC", "2026-01-01T00:00:00Z", "2026-01-09", "2026-02-13");
	NEXT("0 0 * * 7#1", "UTC", "2026-01-01T00:00:00Z", "2026-01-04", "2026-02-01");
	NEXT("0 0 * * MON#5", "UTC", "2026-01-01T00:00:00Z", "2026-03-30", "2026-06-29");
}

static void a_day_that_matches_either_day_field_counts(void **state)
{
	(void)state;
	NEXT("0 0 13 * FRI", "UTC", "2026-02-01T00:00:00Z", "2026-02-06", "2026-02-13", "2026-02-20");
	NEXT("0 0 13 * *", "UTC", "2026-02-01T00:00:00Z", "2026-02-13", "2026-03-13");
	NEXT("0 0 ? * FRI", "UTC", "2026-02-01T00:00:00Z", "2026-02-06", "2026-02-13");
}

static void a_fixed_time_in_a_gap_happens_at_its_end_and_once(void **state)
{
	(void)state;
	NEXT("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00",
		"2026-03-30T00:30:00");
	NEXT("*/10 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00",
		"2026-03-30T00:00:00");
	NEXT("0 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00",
		"2026-03-30T00:00:00");
	NEXT("30 2 * * *", "Australia/Lord_Howe", "2026-10-02T20:00:00Z", "2026-10-03T15:30:00");
}

static void a_fixed_time_in_a_repeated_hour_happens_once(void **state)
{
	(void)state;
	NEXT("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00",
		"2026-10-26T01:30:00");
	NEXT("*/30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:00:00",
		"2026-10-25T00:30:00", "2026-10-26T01:00:00");
	NEXT("30 2 * * *", "Europe/Berlin", "2026-10-25T00:45:00Z", "2026-10-26T01:30:00");
}

static void a_star_or_a_step_in_the_hour_follows_real_time(void **state)
{
	(void)state;
	NEXT("*/30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", "2026-10-25T00:30", "2026-10-25T01:00",
		"2026-10-25T01:30", "2026-10-25T02:00");
	NEXT("0 */2 * * *", "Europe/Berlin", "2026-03-28T23:30:00Z", "2026-03-29T02:00:00",
		"2026-03-29T04:00:00");
	NEXT("0 2/12 * * *", "Europe/Berlin", "2026-10-24T22:30:00Z", "2026-10-25T00:00", "2026-10-25T01:00",
		"2026-10-25T13:00");
}

static void a_line_that_never_comes_has_no_next_time(void **state)
{
	(void)state;
	NEXT("0 0 30 2 *", "UTC", "2026-01-01T00:00:00Z", "");
	NEXT("0 0 31 4,6,9,11 *", "UTC", "2026-01-01T00:00:00Z", "");
}

static void what_is_no_cron_line_is_refused_with_field_and_text(void **state)
{
	static const struct {
		const char *line, *field, *at;
	} rows[] = {
		{"60 * * * *", "minute", "60"},
		{"* 24 * * *", "hour", "24"},
		{"* * 0 * *", "day of the month", "0"},
		{"* * * 13 *", "month", "13"},
		{"* * * FOO *", "month", "FOO"},
		{"* * * * 8", "weekday", "8"},
		{"* * * * FRI#6", "weekday", "FRI#6"},
		{"1, * * * *", "minute", ""},
		{"5-1 * * * *", "minute", "5-1"},
		{"*/0 * * * *", "minute", "*/0"},
		{"*/90 * * * *", "minute", "*/90"},
		{"1-2-3 * * * *", "minute", "1-2-3"},
		{"* L * * *", "hour", "L"},
		{"? * * * *", "minute", "?"},
		{"60 * * * * *", "second", "60"},
		{"* * * *", NULL, "* * * *"},
		{"* * * * * * *", NULL, "* * * * * * *"},
		{"@reboot", NULL, "@reboot"},
		{"", NULL, ""},
	};
	struct cron_fault fault;
	struct cron cron;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(cron_read(span_of(rows[i].line), &cron, &fault), -EINVAL);
		assert_non_null(fault.allowed);
		assert_true(span_equal(fault.at, span_of(rows[i].at)));
		if (rows[i].field)
			assert_string_equal(fault.field, rows[i].field);
		else
			assert_null(fault.field);
	}
}

/* ---- drawn -------------------------------------------------------------------------------------------------- */

/* The same line as text and as sets. */
struct drawn {
	char text[200];
	bool minute[60], hour[24], day[32], month[13], weekday[7];
	bool nth[7][6], last_weekday[7], last_day;
	bool any_day, any_weekday, follows_time;
};

__attribute__((format(printf, 2, 3))) static char *put(char *at, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	at += vsprintf(at, format, list);
	va_end(list);
	return at;
}

/* A field of plain values, ranges and steps. Returns the end of the text. */
static char *draw_field(struct rng *rng, char *at, int least, int most, bool *set, bool *ret_steps)
{
	uint32_t parts = 1 + rng_below(rng, 2);

	for (uint32_t i = 0; i < parts; i++) {
		int from = (int)rng_between(rng, least, most), to = from, step = 1;
		at = put(at, "%s%d", i > 0 ? "," : "", from);
		if (rng_chance(rng, 3)) {
			to = (int)rng_between(rng, from, most);
			at = put(at, "-%d", to);
		}
		if (to > from && rng_chance(rng, 2)) {
			step = (int)rng_between(rng, 1, most - least);
			at = put(at, "/%d", step);
			*ret_steps = true;
		}
		for (int value = from; value <= to; value += step)
			set[value] = true;
	}
	return at;
}

static char *draw_or_star(struct rng *rng, uint32_t one_in, char *at, int least, int most, bool *set,
	bool *ret_star, bool *ret_steps)
{
	*ret_star = !rng_chance(rng, one_in);
	if (!*ret_star)
		return draw_field(rng, at, least, most, set, ret_steps);
	for (int value = least; value <= most; value++)
		set[value] = true;
	return put(at, "*");
}

static char *draw_weekday(struct rng *rng, char *at, struct drawn *drawn)
{
	static const char *const names[] = {"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"};
	int weekday = (int)rng_below(rng, 7), nth = (int)rng_between(rng, 1, 5);
	bool ignored;

	switch (rng_below(rng, 4)) {
	case 0:
		drawn->nth[weekday][nth] = true;
		return put(at, "%s#%d", names[weekday], nth);
	case 1:
		drawn->last_weekday[weekday] = true;
		return put(at, "%dL", weekday);
	default:
		return draw_field(rng, at, 0, 6, drawn->weekday, &ignored);
	}
}

static void draw(struct rng *rng, struct drawn *drawn)
{
	bool ignored = false, star, steps = false;
	char *at = drawn->text;

	*drawn = (struct drawn){0};
	at = put(draw_or_star(rng, 2, at, 0, 59, drawn->minute, &star, &ignored), " ");
	at = put(draw_or_star(rng, 2, at, 0, 23, drawn->hour, &star, &steps), " ");
	drawn->follows_time = star || steps;
	if (rng_chance(rng, 6)) {
		drawn->last_day = true;
		at = put(at, "L ");
	} else {
		at = put(draw_or_star(rng, 3, at, 1, 31, drawn->day, &drawn->any_day, &ignored), " ");
	}
	at = put(draw_or_star(rng, 6, at, 1, 12, drawn->month, &star, &ignored), " ");
	drawn->any_weekday = !rng_chance(rng, 3);
	if (drawn->any_weekday)
		put(at, "*");
	else
		draw_weekday(rng, at, drawn);
}

static int month_days(const struct tm *tm)
{
	struct tm last = {.tm_year = tm->tm_year, .tm_mon = tm->tm_mon + 1, .tm_mday = 0, .tm_hour = 12};

	timegm(&last);
	return last.tm_mday;
}

static bool matches(const struct drawn *drawn, const struct tm *tm)
{
	int w = tm->tm_wday, days = month_days(tm);
	bool day = drawn->any_day || drawn->day[tm->tm_mday] || (drawn->last_day && tm->tm_mday == days);
	bool weekday = drawn->any_weekday || drawn->weekday[w] || drawn->nth[w][(tm->tm_mday + 6) / 7] ||
		(drawn->last_weekday[w] && tm->tm_mday > days - 7);
	bool by_day = drawn->any_day || drawn->any_weekday ? day && weekday : day || weekday;

	return by_day && drawn->minute[tm->tm_min] && drawn->hour[tm->tm_hour] &&
		drawn->month[tm->tm_mon + 1];
}

/* Does a local minute between the two match? */
static bool any_matches(const struct drawn *drawn, int64_t after, int64_t before)
{
	for (time_t local = after + 60; local < before; local += 60) {
		struct tm tm;
		gmtime_r(&local, &tm);
		if (matches(drawn, &tm))
			return true;
	}
	return false;
}

/* Minute by minute, asking the C library. INT64_MAX: none before `end`. */
static int64_t walk(const struct drawn *drawn, int64_t after, int64_t end)
{
	int64_t shown = INT64_MIN; /* how far the local clock has come */

	for (time_t t = (after / 60 - 24 * 60) * 60; t < end; t += 60) {
		struct tm tm;
		localtime_r(&t, &tm);
		struct tm copy = tm;
		int64_t local = timegm(&copy);
		bool gap = shown != INT64_MIN && local > shown + 60 && !drawn->follows_time &&
			any_matches(drawn, shown, local);
		bool now = matches(drawn, &tm) && (drawn->follows_time || local > shown);
		if (t > after && (gap || now))
			return t;
		shown = local > shown ? local : shown;
	}
	return INT64_MAX;
}

static const char *const zones[] = {"UTC", "Europe/Berlin", "Europe/London", "America/New_York",
	"America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kolkata", "Asia/Tehran", "Africa/Casablanca",
	"Pacific/Apia", "Pacific/Chatham", "America/St_Johns", "Asia/Gaza", "Africa/Cairo",
	"Antarctica/Troll", "America/Havana"};

/* A moment a little before a shift of the zone, or any. */
static int64_t draw_moment(struct rng *rng, const struct zone *zone)
{
	int64_t at = rng_between(rng, INT64_C(220924800), INT64_C(3786912000)); /* 1977 to 2090 */
	uint32_t shift = zone_find(zone, at);

	if (shift + 1 < zone->count && !rng_chance(rng, 4))
		at = zone->shifts[shift + 1].at_s - rng_between(rng, 0, 3 * 86400);
	return at > 4000000000 ? 4000000000 : at;
}

static void drawn_lines_agree_with_a_walk_over_every_minute(void **state)
{
	const char *said = getenv("STINT_SEED");
	uint64_t seed = said ? strtoull(said, NULL, 10) : (uint64_t)time(NULL) ^ (uint64_t)getpid() << 20;
	struct drawn drawn;
	struct cron_fault fault;
	struct cron cron;
	struct rng rng;

	(void)state;
	rng_seed(&rng, seed);
	print_message("seed %llu: STINT_SEED replays it\n", (unsigned long long)seed);
	for (int i = 0; i < 300; i++) {
		const char *name = zones[rng_below(&rng, sizeof zones / sizeof *zones)];
		struct zone *zone = load(name);
		int64_t after = draw_moment(&rng, zone), end = after + 12 * 86400;
		draw(&rng, &drawn);
		assert_int_equal(cron_read(span_of(drawn.text), &cron, &fault), 0);
		setenv("TZ", name, 1);
		tzset();
		int64_t expected = walk(&drawn, after, end), found = cron_next(&cron, zone, after);
		if (expected == INT64_MAX ? found < end - 60 : found != expected)
			fail_msg("\"%s\" in %s after %lld: %lld, the walk says %lld", drawn.text, name,
				(long long)after, (long long)found, (long long)expected);
		zone_free(zone);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_field_is_read_as_cron_reads_it),
		cmocka_unit_test(last_and_nth_days_are_those_of_their_month),
		cmocka_unit_test(a_day_that_matches_either_day_field_counts),
		cmocka_unit_test(a_fixed_time_in_a_gap_happens_at_its_end_and_once),
		cmocka_unit_test(a_fixed_time_in_a_repeated_hour_happens_once),
		cmocka_unit_test(a_star_or_a_step_in_the_hour_follows_real_time),
		cmocka_unit_test(a_line_that_never_comes_has_no_next_time),
		cmocka_unit_test(what_is_no_cron_line_is_refused_with_field_and_text),
		cmocka_unit_test(drawn_lines_agree_with_a_walk_over_every_minute),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
