/*
 * Schedules: what is due, what is caught up, what overlaps, what is remembered.
 */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <string.h>

#include "core/flow/schedule.h"

#define MINUTE_MS INT64_C(60000)
#define HOUR_MS   (60 * MINUTE_MS)
#define NOW_MS    INT64_C(1800000000000)

static struct schedule_plan every(int64_t ms)
{
	return (struct schedule_plan){.kind = PLAN_EVERY, .every_ms = ms, .anchor_ms = NOW_MS};
}

static struct schedule_plan hourly(void)
{
	struct schedule_plan plan = {.kind = PLAN_CRON, .zone = &zone_utc};
	struct cron_fault fault;

	assert_int_equal(cron_read(SPAN("@hourly"), &plan.cron, &fault), 0);
	return plan;
}

static struct schedule_due due(
	const struct schedule_plan *plan, enum catch_up catch_up, int64_t last_ms, int64_t now_ms)
{
	struct schedule_state state = {.last_ms = last_ms};
	struct schedule_due result;

	schedule_due(plan, catch_up, &state, now_ms, &result);
	return result;
}

static void every_counts_from_its_anchor(void **state)
{
	struct schedule_plan plan = every(90000);

	(void)state;
	assert_int_equal(schedule_plan_next(&plan, NOW_MS), NOW_MS + 90000);
	assert_int_equal(schedule_plan_next(&plan, NOW_MS + 89999), NOW_MS + 90000);
	assert_int_equal(schedule_plan_next(&plan, NOW_MS + 90000), NOW_MS + 180000);
	assert_int_equal(schedule_plan_next(&plan, NOW_MS - HOUR_MS), NOW_MS + 90000);
}

static void at_comes_once(void **state)
{
	struct schedule_plan plan = {.kind = PLAN_AT, .at_ms = NOW_MS};

	(void)state;
	assert_int_equal(schedule_plan_next(&plan, NOW_MS - 1), NOW_MS);
	assert_int_equal(schedule_plan_next(&plan, NOW_MS), INT64_MAX);
}

static void what_is_on_time_is_made_each(void **state)
{
	struct schedule_plan plan = every(10000);
	struct schedule_due found = due(&plan, CATCH_UP_SKIP, NOW_MS, NOW_MS + 35000);

	(void)state;
	assert_int_equal(found.count, 3);
	assert_int_equal(found.make[0], NOW_MS + 10000);
	assert_int_equal(found.last_ms, NOW_MS + 30000);
	assert_int_equal(found.missed.count, 0);
	assert_int_equal(due(&plan, CATCH_UP_SKIP, NOW_MS, NOW_MS + 9999).count, 0);
}

static void catch_up_one_makes_the_newest_that_was_missed(void **state)
{
	struct schedule_plan plan = hourly();
	int64_t from_ms = NOW_MS - NOW_MS % HOUR_MS;
	struct schedule_due found = due(&plan, CATCH_UP_ONE, from_ms, from_ms + 5 * HOUR_MS + 10 * MINUTE_MS);

	(void)state;
	assert_int_equal(found.count, 1);
	assert_int_equal(found.make[0], from_ms + 5 * HOUR_MS);
	assert_int_equal(found.missed.from_ms, from_ms + HOUR_MS);
	assert_int_equal(found.missed.at_ms, from_ms + 4 * HOUR_MS);
	assert_int_equal(found.missed.count, 4);
	assert_int_equal(found.last_ms, from_ms + 5 * HOUR_MS);
}

static void catch_up_skip_makes_none_that_was_missed(void **state)
{
	struct schedule_plan plan = hourly();
	int64_t from_ms = NOW_MS - NOW_MS % HOUR_MS;
	struct schedule_due found = due(&plan, CATCH_UP_SKIP, from_ms, from_ms + 2 * HOUR_MS + MINUTE_MS + 1);

	(void)state;
	assert_int_equal(found.count, 0);
	assert_int_equal(found.missed.count, 2);
	assert_int_equal(found.last_ms, from_ms + 2 * HOUR_MS);
	found = due(&plan, CATCH_UP_SKIP, from_ms, from_ms + 2 * HOUR_MS + MINUTE_MS);
	assert_int_equal(found.count, 1); /* a minute late is on time */
	assert_int_equal(found.missed.count, 1);
}

static void catch_up_all_makes_the_newest_hundred(void **state)
{
	struct schedule_plan plan = hourly();
	int64_t from_ms = NOW_MS - NOW_MS % HOUR_MS;
	struct schedule_due found =
		due(&plan, CATCH_UP_ALL, from_ms, from_ms + 150 * HOUR_MS + 2 * MINUTE_MS);

	(void)state;
	assert_int_equal(found.count, 100);
	assert_int_equal(found.make[0], from_ms + 51 * HOUR_MS);
	assert_int_equal(found.make[99], from_ms + 150 * HOUR_MS);
	assert_int_equal(found.missed.count, 50);
}

static void a_week_of_seconds_is_one_range(void **state)
{
	struct schedule_plan plan = every(1000);
	struct schedule_due found = due(&plan, CATCH_UP_ALL, NOW_MS, NOW_MS + 7 * 24 * HOUR_MS);

	(void)state;
	assert_int_equal(found.count, SCHEDULE_DUE_MAX);
	assert_int_equal(found.missed.count + found.count, 7 * 24 * 3600);
	assert_int_equal(found.last_ms, NOW_MS + 7 * 24 * HOUR_MS);
}

static void paused_is_never_due(void **state)
{
	struct schedule_plan plan = every(1000);
	struct schedule_state paused = {.last_ms = NOW_MS, .paused = true};

	(void)state;
	assert_int_equal(schedule_next_ms(&paused, &plan), INT64_MAX);
	schedule_begin(&paused, NOW_MS - HOUR_MS, false);
	assert_int_equal(paused.last_ms, NOW_MS); /* it goes forward only … */
	schedule_begin(&paused, NOW_MS - HOUR_MS, true);
	assert_int_equal(paused.last_ms, NOW_MS - HOUR_MS); /* … unless somebody changed it */
}

static void overlap_decides_by_what_is_open(void **state)
{
	struct schedule_state open = {.open_count = 1}, full = {.open_count = SCHEDULE_OPEN_MAX}, none = {0};

	(void)state;
	assert_int_equal(schedule_overlap(&none, OVERLAP_SKIP).skip, SKIP_NOTHING);
	assert_int_equal(schedule_overlap(&open, OVERLAP_SKIP).skip, SKIP_OVERLAP);
	assert_int_equal(schedule_overlap(&full, OVERLAP_ALLOW).skip, SKIP_NOTHING);
	assert_false(schedule_overlap(&open, OVERLAP_ALLOW).waits);
	assert_true(schedule_overlap(&open, OVERLAP_QUEUE).waits);
	assert_int_equal(schedule_overlap(&full, OVERLAP_QUEUE).skip, SKIP_QUEUE_FULL);
	assert_true(schedule_overlap(&open, OVERLAP_CANCEL).waits);
}

static void three_failures_or_skips_in_a_row_are_told_once(void **state)
{
	struct schedule_state now = {0}, before;
	struct occurrence skipped = {NOW_MS, NOW_MS, 1, 0, OUTCOME_SKIPPED, SKIP_OVERLAP};
	uint32_t told = 0;

	(void)state;
	for (int i = 1; i <= 5; i++) {
		before = now;
		schedule_made(&now, NOW_MS + i, i);
		schedule_task_ended(&now, i, TASK_FAILED);
		told += schedule_is_failing_now(&before, &now);
	}
	assert_int_equal(told, 1);
	schedule_made(&now, NOW_MS + 9, 9);
	schedule_task_ended(&now, 9, TASK_DONE);
	assert_int_equal(now.streak, 0);
	schedule_skipped(&now, &skipped);
	schedule_skipped(&now, &skipped);
	before = now;
	schedule_skipped(&now, &skipped);
	assert_true(schedule_is_failing_now(&before, &now));
}

static void an_end_is_noted_and_a_retry_opens_it_again(void **state)
{
	struct schedule_state now = {0};

	(void)state;
	schedule_made(&now, NOW_MS, 7);
	schedule_made(&now, NOW_MS + 1, 8);
	schedule_task_ended(&now, 7, TASK_CANCELLED);
	assert_int_equal(now.open_count, 1);
	assert_int_equal(now.history[0].outcome, OUTCOME_CANCELLED);
	assert_int_equal(now.streak, 0);
	schedule_task_ended(&now, 7, TASK_NOWHERE);
	assert_int_equal(now.open_count, 2);
	assert_int_equal(now.open[0], 7);
	assert_int_equal(now.history[0].outcome, OUTCOME_OPEN);
	assert_true(schedule_state_is_sound(&now));
}

static void only_what_was_skipped_can_be_made_by_hand_and_once(void **state)
{
	struct schedule_plan plan = hourly();
	int64_t from_ms = NOW_MS - NOW_MS % HOUR_MS;
	struct schedule_state now = {0};
	struct occurrence range = {from_ms, from_ms + 9 * HOUR_MS, 10, 0, OUTCOME_SKIPPED, SKIP_MISSED};

	(void)state;
	schedule_skipped(&now, &range);
	assert_false(schedule_take_skipped(&plan, &now, from_ms + 1));       /* not planned */
	assert_false(schedule_take_skipped(&plan, &now, from_ms - HOUR_MS)); /* not skipped */
	assert_true(schedule_take_skipped(&plan, &now, from_ms + 3 * HOUR_MS));
	schedule_made(&now, from_ms + 3 * HOUR_MS, 1);
	assert_false(schedule_take_skipped(&plan, &now, from_ms + 3 * HOUR_MS));
	assert_true(schedule_take_skipped(&plan, &now, from_ms));
	assert_true(schedule_take_skipped(&plan, &now, from_ms + 9 * HOUR_MS));
	assert_true(schedule_state_is_sound(&now));
	int64_t left = 0;
	for (uint32_t i = 0; i < now.history_count; i++)
		left += now.history[i].outcome == OUTCOME_SKIPPED ? now.history[i].count : 0;
	assert_int_equal(left, 7);
}

static void jitter_is_the_same_for_the_same_occurrence(void **state)
{
	int64_t first = schedule_jitter_ms(SPAN("nightly"), NOW_MS, HOUR_MS);
	bool differs = false;

	(void)state;
	assert_int_equal(schedule_jitter_ms(SPAN("nightly"), NOW_MS, HOUR_MS), first);
	assert_int_equal(schedule_jitter_ms(SPAN("nightly"), NOW_MS, 0), 0);
	for (int i = 1; i < 100; i++) {
		int64_t jitter_ms = schedule_jitter_ms(SPAN("nightly"), NOW_MS + i * HOUR_MS, HOUR_MS);
		assert_true(jitter_ms >= 0 && jitter_ms <= HOUR_MS);
		differs |= jitter_ms != first;
	}
	assert_true(differs);
}

static void the_history_is_bounded_and_keeps_the_newest(void **state)
{
	struct schedule_state now = {0};

	(void)state;
	for (int i = 1; i <= 300; i++)
		schedule_made(&now, NOW_MS + i, i);
	assert_int_equal(now.history_count, SCHEDULE_HISTORY_MAX);
	assert_int_equal(now.history[SCHEDULE_HISTORY_MAX - 1].task, 300);
	assert_int_equal(now.open_count, SCHEDULE_OPEN_MAX);
	assert_int_equal(now.open[SCHEDULE_OPEN_MAX - 1], 300);
	assert_true(schedule_state_is_sound(&now));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_counts_from_its_anchor),
		cmocka_unit_test(at_comes_once),
		cmocka_unit_test(what_is_on_time_is_made_each),
		cmocka_unit_test(catch_up_one_makes_the_newest_that_was_missed),
		cmocka_unit_test(catch_up_skip_makes_none_that_was_missed),
		cmocka_unit_test(catch_up_all_makes_the_newest_hundred),
		cmocka_unit_test(a_week_of_seconds_is_one_range),
		cmocka_unit_test(paused_is_never_due),
		cmocka_unit_test(overlap_decides_by_what_is_open),
		cmocka_unit_test(three_failures_or_skips_in_a_row_are_told_once),
		cmocka_unit_test(an_end_is_noted_and_a_retry_opens_it_again),
		cmocka_unit_test(only_what_was_skipped_can_be_made_by_hand_and_once),
		cmocka_unit_test(jitter_is_the_same_for_the_same_occurrence),
		cmocka_unit_test(the_history_is_bounded_and_keeps_the_newest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
