#include "core_fixture.h"

static struct task with_deadlines(
	struct world *w, struct task task, int64_t start_in_ms, int64_t finish_in_ms)
{
	struct task_patch patch = {
		.set_start_by = start_in_ms != 0,
		.set_finish_by = finish_in_ms != 0,
		.start_by_ms = w->given.now.wall_ms + start_in_ms,
		.finish_by_ms = w->given.now.wall_ms + finish_in_ms,
	};

	return noted(task_update(&task, &patch, &w->given), &task, EVENT_TASK_UPDATED);
}

static void assert_misses_deadline(struct world *w, const struct task *task)
{
	struct task_decision decision = task_deadline(task, &w->given);

	moved(decision, EVENT_TASK_FAILED, TASK_FAILED);
	assert_int_equal(decision.task.code, CODE_DEADLINE);
	assert_int_equal(decision.follow, FOLLOW_PARENT_DEAD);
	assert_int_equal(decision.task.spent, task->spent);
}

static void a_task_not_started_by_its_time_fails_at_that_moment(void **state)
{
	struct world *w = *state;
	struct task task = with_deadlines(w, ready_task(w), MINUTES(10), 0);

	assert_int_equal(task_next_wall_ms(&task), w->given.now.wall_ms + MINUTES(10));
	pass_time(w, MINUTES(10) - 1);
	unchanged(task_deadline(&task, &w->given), &task);
	pass_time(w, 1);
	assert_misses_deadline(w, &task);
}

static void a_task_not_finished_by_its_time_fails_at_that_moment(void **state)
{
	struct world *w = *state;
	struct task task = with_deadlines(w, ready_task(w), 0, MINUTES(10));

	pass_time(w, MINUTES(10) - 1);
	unchanged(task_deadline(&task, &w->given), &task);
	pass_time(w, 1);
	assert_misses_deadline(w, &task);
}

static void every_unclaimed_state_that_is_not_final_misses_its_deadline(void **state)
{
	static const enum task_state states[] = {
		TASK_PENDING, TASK_SCHEDULED, TASK_WAITING, TASK_READY, TASK_REVIEW, TASK_BLOCKED};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
		struct task task = with_deadlines(w, task_in(w, states[i]), 0, 1);

		pass_time(w, 1);
		assert_misses_deadline(w, &task);
	}
	struct task asking = with_deadlines(w, asking_unclaimed(w), 0, 1);
	pass_time(w, 1);
	assert_misses_deadline(w, &asking);
}

static void a_claimed_task_is_never_failed_by_a_deadline(void **state)
{
	struct world *w = *state;

	for (int s = TASK_CLAIMED; s <= TASK_ASKING; s++) {
		struct task task = with_deadlines(w, task_in(w, (enum task_state)s), 1, 1);

		pass_time(w, HOURS(1));
		unchanged(task_deadline(&task, &w->given), &task);
	}
}

static void final_tasks_have_no_deadline(void **state)
{
	struct world *w = *state;

	for (int s = TASK_FAILED; s <= TASK_CANCELLED; s++) {
		struct task task = with_deadlines(w, task_in(w, (enum task_state)s), 1, 1);

		pass_time(w, HOURS(1));
		unchanged(task_deadline(&task, &w->given), &task);
		assert_int_equal(task_next_wall_ms(&task), INT64_MAX);
	}
}

static void a_task_that_was_started_has_kept_its_start_time(void **state)
{
	struct world *w = *state;
	struct task task = with_deadlines(w, claimed_task(w), 1, 0);

	task = moved(release(w, &task), EVENT_TASK_RELEASED, TASK_READY);
	pass_time(w, HOURS(1));
	unchanged(task_deadline(&task, &w->given), &task);
	assert_int_equal(task_next_wall_ms(&task), INT64_MAX);
}

static void a_task_that_comes_back_too_late_fails_then(void **state)
{
	struct world *w = *state;
	struct task task = with_deadlines(w, running_task(w), 0, MINUTES(1));

	pass_time(w, MINUTES(2));
	task = moved(release(w, &task), EVENT_TASK_RELEASED, TASK_READY);
	assert_misses_deadline(w, &task);
}

static void work_that_finishes_too_late_is_done_all_the_same(void **state)
{
	struct world *w = *state;
	struct task task = with_deadlines(w, running_task(w), 0, MINUTES(1));

	pass_time(w, MINUTES(2));
	moved(complete(w, &task), EVENT_TASK_COMPLETED, TASK_DONE);
}

static void work_past_its_finish_time_must_stop(void **state)
{
	struct world *w = *state;
	struct task task = with_deadlines(w, running_task(w), 0, MINUTES(1));

	pass_time(w, MINUTES(1) - 1);
	assert_false(task_must_stop(&task, &w->given));
	pass_time(w, 1);
	assert_true(task_must_stop(&task, &w->given));
}

static void a_question_past_its_finish_time_must_stop_too(void **state)
{
	struct world *w = *state;
	struct task task = with_deadlines(w, asking_task(w), 0, MINUTES(1));

	pass_time(w, MINUTES(1));
	assert_true(task_must_stop(&task, &w->given));
}

static void past_its_finish_time_a_claim_lease_is_not_renewed(void **state)
{
	struct world *w = *state;
	struct task task = with_deadlines(w, running_plain(w), 0, MINUTES(10));
	int64_t deadline_ms = task.claim.lease.deadline_ms;

	pass_time(w, MINUTES(10));
	task = noted(progress(w, &task), &task, EVENT_TASK_PROGRESSED);
	assert_int_equal(task.claim.lease.deadline_ms, deadline_ms);
}

static void a_claimed_task_asks_for_no_look_by_the_wall_clock(void **state)
{
	struct world *w = *state;
	int64_t finish_by_ms = w->given.now.wall_ms + MINUTES(1);

	for (int s = TASK_CLAIMED; s <= TASK_ASKING; s++) {
		struct task task = with_deadlines(w, task_in(w, (enum task_state)s), MINUTES(1), MINUTES(1));

		assert_int_equal(task_next_wall_ms(&task), INT64_MAX);
		task = task_return(&task, &w->given).task;
		assert_int_equal(task_next_wall_ms(&task), finish_by_ms);
	}
}

static void a_task_without_deadlines_never_misses_one(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);

	pass_time(w, HOURS(24 * 365));
	unchanged(task_deadline(&task, &w->given), &task);
	assert_int_equal(task_next_wall_ms(&task), INT64_MAX);
}

static void the_next_look_is_the_soonest_of_time_and_deadlines(void **state)
{
	struct world *w = *state;
	int64_t now_ms = w->given.now.wall_ms;
	struct task task = scheduled_task(w);

	assert_int_equal(task_next_wall_ms(&task), now_ms + HOURS(1));
	task = with_deadlines(w, task, 0, HOURS(2));
	assert_int_equal(task_next_wall_ms(&task), now_ms + HOURS(1));
	task = with_deadlines(w, task, MINUTES(30), 0);
	assert_int_equal(task_next_wall_ms(&task), now_ms + MINUTES(30));
	task = with_deadlines(w, task, 0, MINUTES(20));
	assert_int_equal(task_next_wall_ms(&task), now_ms + MINUTES(20));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_task_not_started_by_its_time_fails_at_that_moment),
		TEST(a_task_not_finished_by_its_time_fails_at_that_moment),
		TEST(every_unclaimed_state_that_is_not_final_misses_its_deadline),
		TEST(a_claimed_task_is_never_failed_by_a_deadline),
		TEST(final_tasks_have_no_deadline),
		TEST(a_task_that_was_started_has_kept_its_start_time),
		TEST(a_task_that_comes_back_too_late_fails_then),
		TEST(work_that_finishes_too_late_is_done_all_the_same),
		TEST(work_past_its_finish_time_must_stop),
		TEST(a_question_past_its_finish_time_must_stop_too),
		TEST(past_its_finish_time_a_claim_lease_is_not_renewed),
		TEST(a_claimed_task_asks_for_no_look_by_the_wall_clock),
		TEST(a_task_without_deadlines_never_misses_one),
		TEST(the_next_look_is_the_soonest_of_time_and_deadlines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
