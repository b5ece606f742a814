/*
 * Figures over time: what a cell counts, how cells add up, and what a wait is said to have been.
 */
#include "core/flow/stats.h"
#include "core_fixture.h"

static struct stats_cell waits(uint32_t many, int64_t ms)
{
	struct stats_cell cell = {0};

	for (uint32_t i = 0; i < many; i++)
		stats_note_wait(&cell, ms);
	return cell;
}

static void each_bucket_of_waits_is_twice_as_long_as_the_one_before(void **state)
{
	(void)state;
	assert_int_equal(wait_bucket(-5), 0); /* somebody set the clock */
	assert_int_equal(wait_bucket(0), 0);
	assert_int_equal(wait_bucket(1), 1);
	assert_int_equal(wait_bucket(2), 2);
	assert_int_equal(wait_bucket(3), 2);
	assert_int_equal(wait_bucket(4), 3);
	assert_int_equal(wait_bucket(1023), 10);
	assert_int_equal(wait_bucket(1024), 11);
	assert_int_equal(wait_bucket(INT64_MAX), WAIT_BUCKETS - 1);
}

static void ends_are_counted_by_their_state_and_nothing_else_is(void **state)
{
	struct stats_cell cell = {0};

	(void)state;
	stats_note_end(&cell, TASK_READY);
	stats_note_end(&cell, TASK_BLOCKED);
	assert_true(stats_are_none(&cell));
	stats_note_end(&cell, TASK_DONE);
	stats_note_end(&cell, TASK_DONE);
	stats_note_end(&cell, TASK_FAILED);
	stats_note_end(&cell, TASK_CANCELLED);
	assert_int_equal(cell.done, 2);
	assert_int_equal(cell.failed, 1);
	assert_int_equal(cell.cancelled, 1);
	assert_false(stats_are_none(&cell));
}

static void a_sum_of_cells_has_all_that_they_have_and_does_not_run_over(void **state)
{
	struct stats_cell sum = waits(3, 100), more = waits(2, 5000);

	(void)state;
	more.done = UINT32_MAX - 1;
	sum.done = 7;
	stats_add(&sum, &more);
	assert_int_equal(stats_waited(&sum), 5);
	assert_int_equal(sum.done, UINT32_MAX);
}

static void a_wait_is_told_within_its_bucket(void **state)
{
	struct stats_cell cell = waits(19, 100), late = waits(1, 5000);

	(void)state;
	assert_int_equal(stats_wait_ms(&(struct stats_cell){0}, 500), -1);
	stats_add(&cell, &late);
	assert_in_range(stats_wait_ms(&cell, 500), 64, 128);
	assert_in_range(stats_wait_ms(&cell, 950), 64, 128); /* 19 of 20 */
	assert_in_range(stats_wait_ms(&cell, 951), 4096, 8192);
	assert_in_range(stats_wait_ms(&cell, 1000), 4096, 8192);
	late = waits(4, 0);
	assert_int_equal(stats_wait_ms(&late, 1000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_bucket_of_waits_is_twice_as_long_as_the_one_before),
		TEST(ends_are_counted_by_their_state_and_nothing_else_is),
		TEST(a_sum_of_cells_has_all_that_they_have_and_does_not_run_over),
		TEST(a_wait_is_told_within_its_bucket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
