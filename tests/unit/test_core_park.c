#include "core_fixture.h"

static struct task parked(struct world *w, const struct task *task)
{
	return moved(task_park(task, &w->given), EVENT_TASK_PARKED, TASK_PENDING);
}

static void what_is_in_line_can_be_set_aside(void **state)
{
	struct world *w = *state;

	for (int s = TASK_SCHEDULED; s <= TASK_READY; s++) {
		struct task task = task_in(w, (enum task_state)s);

		parked(w, &task);
	}
}

static void nothing_else_can_be_set_aside(void **state)
{
	struct world *w = *state;

	for (int s = TASK_PENDING; s < TASK_STATE_COUNT; s++) {
		struct task task = task_in(w, (enum task_state)s);

		if (s < TASK_SCHEDULED || s > TASK_READY)
			refused(task_park(&task, &w->given), &task, REFUSED_BAD_TRANSITION);
	}
}

static void only_what_was_set_aside_goes_on(void **state)
{
	struct world *w = *state;

	for (int s = TASK_SCHEDULED; s < TASK_STATE_COUNT; s++) {
		struct task task = task_in(w, (enum task_state)s);

		refused(task_unpark(&task, &w->given), &task, REFUSED_BAD_TRANSITION);
	}
}

static void a_parked_task_goes_on_to_ready(void **state)
{
	struct world *w = *state;
	struct task task = pending_task(w);

	pass_time(w, HOURS(1));
	task = moved(task_unpark(&task, &w->given), EVENT_TASK_UNPARKED, TASK_READY);
	assert_int_equal(task.ready_at_ms, w->given.now.wall_ms);
}

static void a_parked_task_keeps_its_time(void **state)
{
	struct world *w = *state;
	struct task task = scheduled_task(w);
	int64_t ready_at_ms = task.ready_at_ms;

	task = parked(w, &task);
	struct task early = moved(task_unpark(&task, &w->given), EVENT_TASK_UNPARKED, TASK_SCHEDULED);
	assert_int_equal(early.ready_at_ms, ready_at_ms);
	pass_time(w, HOURS(1));
	unchanged(task_due(&task, &w->given), &task);
	moved(task_unpark(&task, &w->given), EVENT_TASK_UNPARKED, TASK_READY);
}

static void a_parked_task_keeps_its_parents(void **state)
{
	struct world *w = *state;
	struct task task = waiting_task(w, 1);

	task = parked(w, &task);
	struct task waits = moved(task_unpark(&task, &w->given), EVENT_TASK_UNPARKED, TASK_WAITING);
	assert_int_equal(waits.open_parents, 1);
	task = noted(task_parent_done(&task, &w->given), &task, EVENT_TASK_UPDATED);
	moved(task_unpark(&task, &w->given), EVENT_TASK_UNPARKED, TASK_READY);
}

static void a_parked_task_whose_parent_died_goes_on_to_blocked(void **state)
{
	struct world *w = *state;
	struct task task = waiting_task(w, 1);

	task = parked(w, &task);
	task = noted(task_parent_dead(&task, &w->given), &task, EVENT_TASK_UPDATED);
	task = moved(task_unpark(&task, &w->given), EVENT_TASK_UNPARKED, TASK_BLOCKED);
	assert_int_equal(task.code, CODE_DEPENDENCY_FAILED);
}

static void a_parked_task_can_be_called_off(void **state)
{
	struct world *w = *state;
	struct task task = pending_task(w);

	moved(task_cancel(&task, NULL, &w->given), EVENT_TASK_CANCELLED, TASK_CANCELLED);
}

static void a_claimed_parked_task_comes_back_ready(void **state)
{
	struct world *w = *state;
	struct task task = pending_task(w);
	struct claimant by = claimant_of(&w->named);

	by.takes_pending = true;
	task = moved(task_claim(&task, &by, QUEUE_OPEN, &w->given), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	moved(release(w, &task), EVENT_TASK_RELEASED, TASK_READY);
}

static void setting_aside_costs_nothing(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	task = moved(fail_with(w, &task, CODE_EXECUTION_ERROR), EVENT_TASK_FAILED, TASK_SCHEDULED);
	struct task after = parked(w, &task);
	after = moved(task_unpark(&after, &w->given), EVENT_TASK_UNPARKED, TASK_SCHEDULED);
	assert_int_equal(after.spent, 1);
	assert_int_equal(after.attempt, 1);
	assert_int_equal(after.ready_at_ms, task.ready_at_ms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_in_line_can_be_set_aside),
		TEST(nothing_else_can_be_set_aside),
		TEST(only_what_was_set_aside_goes_on),
		TEST(a_parked_task_goes_on_to_ready),
		TEST(a_parked_task_keeps_its_time),
		TEST(a_parked_task_keeps_its_parents),
		TEST(a_parked_task_whose_parent_died_goes_on_to_blocked),
		TEST(a_parked_task_can_be_called_off),
		TEST(a_claimed_parked_task_comes_back_ready),
		TEST(setting_aside_costs_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
