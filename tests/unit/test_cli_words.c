/*
 * What people type: durations, times, priorities, flags, verbs that are nearly right; and the exit for each refusal.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "cli/frame/args.h"
#include "cli/verb/verbs.h"
#include "cli/frame/exit.h"
#include "base/suggest.h"
#include "cli/frame/verb.h"
#include "cli/frame/when.h"
#include "core/refusal.h"

#define NOW INT64_C(1700000000000)

static void durations_have_units(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} good[] = {{"0", 0}, {"250ms", 250}, {"90s", 90000}, {"30m", 1800000}, {"1h30m", 5400000},
		{"2d", 172800000}, {"1w", 604800000}, {"1h30m15s", 5415000}, {"41 min", 2460000},
		{"41min", 2460000}, {"1 h 59 min", 7140000}, {"38 s", 38000}};
	static const char *const bad[] = {"", "30", "m", "-5m", "5  m", "30m1h", "1m1min", "5 ", "1h1h", "5x",
		"1.5h", "99999999w", "1h ", "mm"};
	int64_t ms;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_int_equal(when_duration(good[i].text, &ms), 0);
		assert_int_equal(ms, good[i].ms);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(when_duration(bad[i], &ms), -EINVAL);
}

static void moments_are_from_now_or_dates(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} good[] = {{"now", NOW}, {"30m", NOW + 1800000}, {"in 30m", NOW + 1800000},
		{"1700000000123", 1700000000123}, {"2023-11-14T22:13:20Z", NOW},
		{"2023-11-14T23:13:20+01:00", NOW}, {"2023-11-14T22:13:20.999Z", NOW},
		{"2023-11-14", 1699920000000}, {"2023-11-14 22:13:20", NOW}, {"23:00", NOW + 2800000},
		{"22:00", NOW + 85600000}, {"22:13:21", NOW + 1000}};
	static const char *const bad[] = {"", "tomorrow", "2023-13-01", "2023-02-30", "2023-1-1",
		"2023-11-14T25:00Z", "2023-11-14T10:61", "2023-11-14T10:00+99:00", "2023-11-14T10:00x", "12",
		"2023-11-14Tx", "2023-+1-14", "2023- 1-14", " 2023-1-14", "2023-11-14T10:+5",
		"2023-11-14T10:00+-9:00", "2023-11-14T10:00+1:00", "2023-11-14T10:00:", "24:00", "22:60",
		"22:5", "22:00x", "2:00"};
	int64_t ms;

	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_int_equal(when_moment(good[i].text, NOW, &ms), 0);
		assert_int_equal(ms, good[i].ms);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(when_moment(bad[i], NOW, &ms), -EINVAL);
}

static void expect_relative(int64_t offset_ms, const char *text)
{
	struct buf out;

	buf_init(&out, 64);
	assert_int_equal(when_put_relative(&out, NOW + offset_ms, NOW), 0);
	assert_int_equal(out.len, strlen(text));
	assert_memory_equal(out.data, text, out.len);
	buf_done(&out);
}

static void times_are_told_in_one_unit(void **state)
{
	(void)state;
	expect_relative(0, "now");
	expect_relative(-1500, "1 s ago");
	expect_relative(-59000, "59 s ago");
	expect_relative(-60000, "1 min ago");
	expect_relative(-3 * 3600000 - 1, "3 h ago");
	expect_relative(-50 * 3600000, "2 d ago");
	expect_relative(90000, "in 1 min");
}

static void priorities_are_numbers_or_words(void **state)
{
	int64_t priority;

	(void)state;
	assert_int_equal(args_priority("urgent", &priority), 0);
	assert_int_equal(priority, 100);
	assert_int_equal(args_priority("p3", &priority), 0);
	assert_int_equal(priority, -50);
	assert_int_equal(args_priority("-7", &priority), 0);
	assert_int_equal(priority, -7);
	assert_int_equal(args_priority("2147483648", &priority), -EINVAL);
	assert_int_equal(args_priority("soon", &priority), -EINVAL);
	assert_int_equal(args_priority("", &priority), -EINVAL);
}

/* ---- suggestions ---- */

static const char *nearest(const char *typed)
{
	struct suggestion best = {0};

	for (size_t i = 0; i < verb_count; i++)
		suggest_consider(&best, typed, verbs[i]->name);
	return best.word;
}

static void a_slip_finds_its_verb(void **state)
{
	(void)state;
	assert_string_equal(nearest("lss"), "ls");
	assert_string_equal(nearest("cancle"), "cancel");
	assert_string_equal(nearest("evnets"), "events");
	assert_string_equal(nearest("comp"), "completion");
	assert_null(nearest("frobnicate"));
	assert_null(nearest("nope")); /* half of it would be wrong: that is no slip */
	assert_null(nearest("foo"));
	assert_null(nearest("x"));
	assert_null(nearest(""));
}

static void a_swap_is_one_slip(void **state)
{
	(void)state;
	assert_int_equal(suggest_distance("ab", "ba"), 1);
	assert_int_equal(suggest_distance("abc", "abc"), 0);
	assert_int_equal(suggest_distance("", "abc"), 3);
	assert_int_equal(suggest_distance("kitten", "sitting"), 3);
}

/* ---- flags ---- */

static int read_words(struct args *args, const char *verb_name, int count, const char *const *words,
	struct args_complaint *complaint)
{
	char name[64], *parts[2] = {name, NULL};
	int used;

	strcpy(name, verb_name);
	const struct verb *verb = verb_find(1, parts, &used);
	assert_non_null(verb);
	return args_read(args, verb, count, (char *const *)words, NOW, complaint);
}

static void flags_stand_anywhere_and_have_their_values(void **state)
{
	static const char *const words[] = {
		"--queue", "q", "title", "-p", "high", "--timeout=30m", "--label", "a,b", "-lc", "--", "--x"};
	struct args_complaint complaint;
	struct args args;
	size_t at = 0;

	(void)state;
	assert_int_equal(read_words(&args, "add", 9, words, &complaint), 0);
	assert_string_equal(args_text(&args, "queue"), "q");
	assert_string_equal(args_plain(&args, 0), "title");
	assert_int_equal(args_number(&args, "priority", 1), 50);
	assert_int_equal(args_number(&args, "timeout", 1), 1800000);
	assert_string_equal(args_each(&args, "label", &at), "a,b");
	assert_string_equal(args_each(&args, "label", &at), "c");
	assert_null(args_each(&args, "label", &at));
	assert_false(args_has(&args, "hold"));
	args_done(&args);
}

static void what_follows_two_dashes_is_no_flag(void **state)
{
	static const char *const words[] = {"--", "--hold"};
	struct args_complaint complaint;
	struct args args;

	(void)state;
	assert_int_equal(read_words(&args, "add", 2, words, &complaint), 0);
	assert_string_equal(args_plain(&args, 0), "--hold");
	args_done(&args);
}

static void expect_complaint(const char *verb, const char *a, const char *b, const char *part)
{
	const char *words[] = {a, b};
	struct args_complaint complaint;
	struct args args;

	assert_int_equal(read_words(&args, verb, b ? 2 : a ? 1 : 0, words, &complaint), -EINVAL);
	if (!strstr(complaint.text, part))
		fail_msg("\"%s\" does not say \"%s\"", complaint.text, part);
	assert_true(complaint.fix[0] != 0);
	args_done(&args);
}

static void what_is_wrong_is_said(void **state)
{
	(void)state;
	expect_complaint("add", "x", "--quue=a", "did you mean --queue?");
	expect_complaint("add", "x", "--zzz", "--zzz is not a known flag of stint add");
	expect_complaint("add", "x", "--queue", "needs a value");
	expect_complaint("add", "x", "--timeout=30", "must be a duration such as");
	expect_complaint("add", "x", "--hold=yes", "takes no value");
	expect_complaint("add", "x", "--max-attempts=0", "from 1 to");
	expect_complaint("add", "x", "y", "does not take \"y\"");
	expect_complaint("add", "-pq", NULL, "must be a number");
	expect_complaint("ls", "--queue=a", "--queue=b", "given twice");
	expect_complaint(
		"ls", "--color=pink", NULL, "must be \"auto\", \"always\" or \"never\"; it is \"pink\"");
	expect_complaint("why", NULL, NULL, "needs ID");
}

/* ---- the table itself ---- */

static void every_verb_is_described(void **state)
{
	(void)state;
	for (size_t i = 0; i < verb_count; i++) {
		const struct verb *verb = verbs[i];
		assert_true(verb->run || verb->list || verb->change ||
			verb == &verb_complete); /* run.c knows that one */
		assert_non_null(verb->brief);
		assert_true(verb_least(verb) <= verb_most(verb));
		if (!verb->hidden)
			assert_true(strlen(verb->brief) <= 30);
		for (const struct flag *flag = verb->flags; flag && flag->name; flag++) {
			assert_non_null(flag->text);
			assert_true((flag->kind == FLAG_SWITCH) == (flag->value == NULL));
			assert_ptr_equal(verb_flag(verb, flag->name, strlen(flag->name)), flag);
			if (flag->letter)
				assert_ptr_equal(verb_letter(verb, flag->letter), flag);
		}
	}
}

static void every_refusal_has_the_exit_of_the_table(void **state)
{
	(void)state;
#define X(name, code, status, exit_status, text) \
	assert_int_equal(exit_of_refusal(status, span_of(code)), exit_status);
	REFUSALS(X)
#undef X
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_have_units),
		cmocka_unit_test(moments_are_from_now_or_dates),
		cmocka_unit_test(times_are_told_in_one_unit),
		cmocka_unit_test(priorities_are_numbers_or_words),
		cmocka_unit_test(a_slip_finds_its_verb),
		cmocka_unit_test(a_swap_is_one_slip),
		cmocka_unit_test(flags_stand_anywhere_and_have_their_values),
		cmocka_unit_test(what_follows_two_dashes_is_no_flag),
		cmocka_unit_test(what_is_wrong_is_said),
		cmocka_unit_test(every_verb_is_described),
		cmocka_unit_test(every_refusal_has_the_exit_of_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
