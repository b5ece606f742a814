#include "core_fixture.h"

#include "core/flow/execution.h"

static void what_is_stored_and_not_understood_is_disarmed(void **state)
{
	(void)state;
	assert_true(execution_is_armed(EXECUTION_UNTOUCHED));
	assert_true(execution_is_armed(EXECUTION_ARMED));
	assert_false(execution_is_armed(EXECUTION_DISARMED));
	assert_false(execution_is_armed(3));
	assert_false(execution_is_armed(-1));
}

static void only_a_change_is_an_event(void **state)
{
	(void)state;
	assert_int_equal(execution_set(true, false).event, EVENT_EXECUTION_DISARMED);
	assert_int_equal(execution_set(true, false).execution, EXECUTION_DISARMED);
	assert_int_equal(execution_set(false, true).event, EVENT_EXECUTION_ARMED);
	assert_int_equal(execution_set(false, true).execution, EXECUTION_ARMED);
	assert_int_equal(execution_set(true, true).event, EVENT_NONE);
	assert_int_equal(execution_set(false, false).event, EVENT_NONE);
}

static void while_disarmed_nothing_is_claimed_not_even_ones_own(void **state)
{
	struct world *w = *state;
	struct task ready = ready_task(w), own = running_plain(w);
	struct claimant again = claimant_of(&w->plain);

	again.resumes = true;
	w->given.disarmed = true;
	refused(claim_by(w, &ready, &w->beater), &ready, REFUSED_EXECUTION_DISARMED);
	refused(task_claim(&own, &again, QUEUE_OPEN, &w->given), &own, REFUSED_EXECUTION_DISARMED);
	w->given.disarmed = false;
	moved(claim_by(w, &ready, &w->beater), EVENT_TASK_CLAIMED, TASK_CLAIMED);
}

static void while_disarmed_work_goes_on_and_is_reported(void **state)
{
	struct world *w = *state;
	struct task task = running_plain(w);

	w->given.disarmed = true;
	task = noted(progress(w, &task), &task, EVENT_TASK_PROGRESSED);
	moved(complete(w, &task), EVENT_TASK_COMPLETED, TASK_DONE);
}

static void while_disarmed_a_slot_takes_nothing_by_its_lane(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct claimant by = claimant_of(&w->named);

	task.owner = SLOT;
	w->given.disarmed = true;
	refused(task_set_status(&task, STATUS_IN_PROGRESS, &by, QUEUE_OPEN, &w->given), &task,
		REFUSED_EXECUTION_DISARMED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_stored_and_not_understood_is_disarmed),
		TEST(only_a_change_is_an_event),
		TEST(while_disarmed_nothing_is_claimed_not_even_ones_own),
		TEST(while_disarmed_work_goes_on_and_is_reported),
		TEST(while_disarmed_a_slot_takes_nothing_by_its_lane),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
