/*
 * Bulk actions: which step may be made, which tasks it covers, when the action has ended, and its id.
 */
#include "core_fixture.h"

#include "core/flow/bulk.h"

enum {
	NOW_MS = 5000,
};

static void a_step_begins_where_the_last_one_ended(void **state)
{
	struct bulk_progress progress = bulk_begin(100, 40, NOW_MS);

	(void)state;
	assert_true(bulk_takes_step(&progress, 0));
	assert_false(bulk_advance(&progress, 64, NOW_MS));
	assert_false(bulk_takes_step(&progress, 0));
	assert_true(bulk_takes_step(&progress, 64));
	assert_true(bulk_is_sound(&progress));
}

static void only_tasks_that_were_there_and_were_not_looked_at_are_covered(void **state)
{
	struct bulk_progress progress = bulk_begin(100, 40, NOW_MS);

	(void)state;
	bulk_advance(&progress, 64, NOW_MS);
	assert_false(bulk_covers(&progress, 64));
	assert_true(bulk_covers(&progress, 65));
	assert_true(bulk_covers(&progress, 100));
	assert_false(bulk_covers(&progress, 101));
}

static void it_ends_with_the_last_task_that_was_there(void **state)
{
	struct bulk_progress progress = bulk_begin(100, 40, NOW_MS);

	(void)state;
	assert_false(bulk_advance(&progress, 99, NOW_MS));
	assert_true(bulk_advance(&progress, INT64_MAX, NOW_MS));
	assert_int_equal(progress.state, BULK_DONE);
	assert_int_equal(progress.cursor, 100);
	assert_int_equal(progress.ended_ms, NOW_MS);
	assert_false(bulk_takes_step(&progress, 100));
	assert_false(bulk_stop(&progress, BULK_BY_PERSON, NOW_MS));
	assert_true(bulk_is_sound(&progress));
}

static void without_a_task_it_has_ended_at_once(void **state)
{
	struct bulk_progress progress = bulk_begin(0, 0, NOW_MS);

	(void)state;
	assert_int_equal(progress.state, BULK_DONE);
	assert_true(bulk_is_sound(&progress));
}

static void a_stopped_one_takes_no_step_and_says_why(void **state)
{
	struct bulk_progress progress = bulk_begin(100, 40, NOW_MS);

	(void)state;
	assert_true(bulk_stop(&progress, BULK_RESTORED, NOW_MS));
	assert_false(bulk_takes_step(&progress, 0));
	assert_string_equal(bulk_stop_name(progress.stop), "restored");
	assert_true(bulk_is_sound(&progress));
}

static void refusals_are_counted_by_their_code(void **state)
{
	struct bulk_progress progress = bulk_begin(100, 40, NOW_MS);

	(void)state;
	bulk_count(&progress, REFUSED_NOTHING);
	bulk_count(&progress, REFUSED_IN_USE);
	bulk_count(&progress, REFUSED_IN_USE);
	bulk_count(&progress, REFUSED_BAD_TRANSITION);
	assert_int_equal(progress.done, 1);
	assert_int_equal(progress.skipped[REFUSED_IN_USE], 2);
	assert_int_equal(bulk_skipped(&progress), 3);
}

static void an_id_has_one_spelling(void **state)
{
	static const char *const wrong[] = {
		"", "b-", "b-0", "b-01", "c-1", "b-1x", "b1", "b-4294967296", "b-99999999999"};
	char text[BULK_ID_BYTES_MAX];

	(void)state;
	assert_int_equal(bulk_id_read(bulk_id_put(107, text)), 107);
	assert_string_equal(text, "b-107");
	assert_int_equal(bulk_id_read(bulk_id_put(UINT32_MAX, text)), UINT32_MAX);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(bulk_id_read(span_of(wrong[i])), 0);
}

static void every_action_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (int i = BULK_RETRY; i < BULK_ACTION_COUNT; i++)
		assert_int_equal(bulk_action_find(span_of(bulk_action_name((enum bulk_action)i))), i);
	assert_int_equal(bulk_action_find(SPAN("burn")), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_begins_where_the_last_one_ended),
		cmocka_unit_test(only_tasks_that_were_there_and_were_not_looked_at_are_covered),
		cmocka_unit_test(it_ends_with_the_last_task_that_was_there),
		cmocka_unit_test(without_a_task_it_has_ended_at_once),
		cmocka_unit_test(a_stopped_one_takes_no_step_and_says_why),
		cmocka_unit_test(refusals_are_counted_by_their_code),
		cmocka_unit_test(an_id_has_one_spelling),
		cmocka_unit_test(every_action_has_a_name_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
