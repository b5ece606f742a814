#include "core_fixture.h"

static struct task retried(struct world *w, const struct task *task)
{
	return moved(task_retry(task, false, &w->given), EVENT_TASK_RETRIED, TASK_READY);
}

static void final_and_blocked_tasks_are_ready_again(void **state)
{
	struct world *w = *state;

	for (int s = TASK_BLOCKED; s <= TASK_CANCELLED; s++) {
		struct task task = task_in(w, (enum task_state)s);

		pass_time(w, SECONDS(1));
		task = retried(w, &task);
		assert_int_equal(task.ready_at_ms, w->given.now.wall_ms);
		assert_int_equal(task.code, CODE_NONE);
	}
}

static void living_tasks_are_not_retried(void **state)
{
	struct world *w = *state;

	for (int s = TASK_PENDING; s <= TASK_REVIEW; s++) {
		struct task task = task_in(w, (enum task_state)s);

		refused(task_retry(&task, false, &w->given), &task, REFUSED_BAD_TRANSITION);
	}
}

static void a_retry_resets_the_budgets_and_never_attempt_or_fence(void **state)
{
	struct world *w = *state;
	struct task task = failed_task(w);
	uint64_t fence = task.fence;

	assert_int_equal(task.spent, 1);
	task = retried(w, &task);
	assert_int_equal(task.spent, 0);
	assert_int_equal(task.crashes, 0);
	assert_int_equal(task.interruptions, 0);
	assert_int_equal(task.attempt, 1);
	assert_int_equal(task.fence, fence);
}

static void a_retry_gives_a_task_of_crashes_its_whole_budget_again(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	w->rules.crash_budget = 1;
	task = moved(fail_with(w, &task, CODE_WORKER_CRASHED), EVENT_TASK_FAILED, TASK_FAILED);
	w->rules.crash_budget = 2;
	task = retried(w, &task);
	task = moved(claim_by(w, &task, &w->beater), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	moved(fail_with(w, &task, CODE_WORKER_CRASHED), EVENT_TASK_FAILED, TASK_READY);
}

static void a_retry_of_a_final_task_is_refused_while_its_key_is_held(void **state)
{
	struct world *w = *state;

	for (int s = TASK_FAILED; s <= TASK_CANCELLED; s++) {
		struct task task = task_in(w, (enum task_state)s);

		refused(task_retry(&task, true, &w->given), &task, REFUSED_TASK_EXISTS);
	}
}

static void a_blocked_task_holds_its_key_itself(void **state)
{
	struct world *w = *state;
	struct task task = blocked_task(w);

	moved(task_retry(&task, true, &w->given), EVENT_TASK_RETRIED, TASK_READY);
}

static void a_retry_reopens_dead_parents_only(void **state)
{
	struct world *w = *state;
	struct task blocked = blocked_task(w), failed = failed_task(w);
	struct task done = done_task(w), cancelled = cancelled_task(w);

	assert_int_equal(task_retry(&blocked, false, &w->given).follow, FOLLOW_NOTHING);
	assert_int_equal(task_retry(&failed, false, &w->given).follow, FOLLOW_PARENT_REOPENED);
	assert_int_equal(task_retry(&done, false, &w->given).follow, FOLLOW_NOTHING);
	assert_int_equal(task_retry(&cancelled, false, &w->given).follow, FOLLOW_PARENT_REOPENED);
}

static void a_retry_no_longer_waits_for_a_parent_that_is_dead(void **state)
{
	struct world *w = *state;
	struct task task = blocked_by_parent(w);

	task = retried(w, &task);
	assert_int_equal(task.open_parents, 0);
	assert_int_equal(task.dead_parents, 0);
}

static void a_retry_still_waits_for_the_parents_that_live(void **state)
{
	struct world *w = *state;
	struct task task = waiting_task(w, 2);

	task = moved(task_parent_dead(&task, &w->given), EVENT_TASK_BLOCKED, TASK_BLOCKED);
	task = moved(task_retry(&task, false, &w->given), EVENT_TASK_RETRIED, TASK_WAITING);
	assert_int_equal(task.open_parents, 1);
	assert_int_equal(task.dead_parents, 0);
	moved(task_parent_done(&task, &w->given), EVENT_TASK_REQUEUED, TASK_READY);
}

static void a_cancelled_task_with_open_parents_waits_for_them_again(void **state)
{
	struct world *w = *state;
	struct task task = waiting_task(w, 1);

	task = moved(task_cancel(&task, NULL, &w->given), EVENT_TASK_CANCELLED, TASK_CANCELLED);
	moved(task_retry(&task, false, &w->given), EVENT_TASK_RETRIED, TASK_WAITING);
}

static void a_retry_stands_above_deadlines_that_have_passed(void **state)
{
	struct world *w = *state;
	struct task draft = draft_new();

	draft.start_by_ms = w->given.now.wall_ms + 10;
	draft.finish_by_ms = w->given.now.wall_ms + HOURS(1);
	struct task task = created(w, &draft, TASK_READY);
	pass_time(w, 10);
	task = moved(task_deadline(&task, &w->given), EVENT_TASK_FAILED, TASK_FAILED);
	task = retried(w, &task);
	assert_int_equal(task.start_by_ms, 0);
	assert_int_equal(task.finish_by_ms, draft.finish_by_ms);
	unchanged(task_deadline(&task, &w->given), &task);
}

static void a_second_retry_is_refused(void **state)
{
	struct world *w = *state;
	struct task task = failed_task(w);

	task = retried(w, &task);
	refused(task_retry(&task, false, &w->given), &task, REFUSED_BAD_TRANSITION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(final_and_blocked_tasks_are_ready_again),
		TEST(living_tasks_are_not_retried),
		TEST(a_retry_resets_the_budgets_and_never_attempt_or_fence),
		TEST(a_retry_gives_a_task_of_crashes_its_whole_budget_again),
		TEST(a_retry_of_a_final_task_is_refused_while_its_key_is_held),
		TEST(a_blocked_task_holds_its_key_itself),
		TEST(a_retry_reopens_dead_parents_only),
		TEST(a_retry_no_longer_waits_for_a_parent_that_is_dead),
		TEST(a_retry_still_waits_for_the_parents_that_live),
		TEST(a_cancelled_task_with_open_parents_waits_for_them_again),
		TEST(a_retry_stands_above_deadlines_that_have_passed),
		TEST(a_second_retry_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
