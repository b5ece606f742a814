#include "core_fixture.h"

/* What a decision about a parent does to its child. */
static struct task child_after(struct world *w, struct task child, struct task_decision parent)
{
	switch (parent.follow) {
	case FOLLOW_NOTHING:
		return child;
	case FOLLOW_PARENT_DONE:
		return task_parent_done(&child, &w->given).task;
	case FOLLOW_PARENT_DEAD:
		return task_parent_dead(&child, &w->given).task;
	case FOLLOW_PARENT_REOPENED:
		return task_parent_reopened(&child, &w->given).task;
	case FOLLOW_PARENT_REVIVED:
		child = task_parent_reopened(&child, &w->given).task;
		return task_parent_done(&child, &w->given).task;
	}
	return child;
}

static void the_last_parent_done_makes_it_ready(void **state)
{
	struct world *w = *state;
	struct task task = waiting_task(w, 2);

	task = noted(task_parent_done(&task, &w->given), &task, EVENT_TASK_UPDATED);
	assert_int_equal(task.open_parents, 1);
	pass_time(w, SECONDS(5));
	task = moved(task_parent_done(&task, &w->given), EVENT_TASK_REQUEUED, TASK_READY);
	assert_int_equal(task.open_parents, 0);
	assert_int_equal(task.ready_at_ms, w->given.now.wall_ms);
}

static void the_last_parent_done_before_its_time_makes_it_scheduled(void **state)
{
	struct world *w = *state;
	struct task draft = draft_new();

	draft.open_parents = 1;
	draft.ready_at_ms = w->given.now.wall_ms + HOURS(1);
	struct task task = created(w, &draft, TASK_WAITING);
	task = moved(task_parent_done(&task, &w->given), EVENT_TASK_REQUEUED, TASK_SCHEDULED);
	assert_int_equal(task.ready_at_ms, draft.ready_at_ms);
}

static void one_dead_parent_blocks_it(void **state)
{
	struct world *w = *state;
	struct task task = waiting_task(w, 2);

	struct task_decision decision = task_parent_dead(&task, &w->given);
	task = moved(decision, EVENT_TASK_BLOCKED, TASK_BLOCKED);
	assert_int_equal(task.code, CODE_DEPENDENCY_FAILED);
	assert_int_equal(decision.follow, FOLLOW_NOTHING);
	assert_int_equal(task.open_parents, 2);
	assert_int_equal(task.dead_parents, 1);
}

static void a_parent_opened_again_lets_it_wait_again(void **state)
{
	struct world *w = *state;
	struct task task = blocked_by_parent(w);

	task = moved(task_parent_reopened(&task, &w->given), EVENT_TASK_REQUEUED, TASK_WAITING);
	assert_int_equal(task.code, CODE_NONE);
	moved(task_parent_done(&task, &w->given), EVENT_TASK_REQUEUED, TASK_READY);
}

static void of_two_dead_parents_both_must_be_opened_again(void **state)
{
	struct world *w = *state;
	struct task task = waiting_task(w, 2);

	task = moved(task_parent_dead(&task, &w->given), EVENT_TASK_BLOCKED, TASK_BLOCKED);
	task = noted(task_parent_dead(&task, &w->given), &task, EVENT_TASK_UPDATED);
	assert_int_equal(task.dead_parents, 2);
	task = noted(task_parent_reopened(&task, &w->given), &task, EVENT_TASK_UPDATED);
	moved(task_parent_reopened(&task, &w->given), EVENT_TASK_REQUEUED, TASK_WAITING);
}

static void a_parent_done_does_not_unblock_what_another_blocks(void **state)
{
	struct world *w = *state;
	struct task task = waiting_task(w, 2);

	task = moved(task_parent_dead(&task, &w->given), EVENT_TASK_BLOCKED, TASK_BLOCKED);
	task = noted(task_parent_done(&task, &w->given), &task, EVENT_TASK_UPDATED);
	assert_int_equal(task.open_parents, 1);
	assert_int_equal(task.dead_parents, 1);
	task = moved(task_parent_reopened(&task, &w->given), EVENT_TASK_REQUEUED, TASK_WAITING);
	moved(task_parent_done(&task, &w->given), EVENT_TASK_REQUEUED, TASK_READY);
}

static void a_task_blocked_for_another_reason_stays_blocked(void **state)
{
	struct world *w = *state;
	struct task task = blocked_task(w);

	unchanged(task_parent_reopened(&task, &w->given), &task);
	unchanged(task_parent_done(&task, &w->given), &task);
	unchanged(task_parent_dead(&task, &w->given), &task);
}

static void a_task_without_parents_is_left_alone(void **state)
{
	struct world *w = *state;

	for (int s = TASK_PENDING; s < TASK_STATE_COUNT; s++) {
		struct task task = task_in(w, (enum task_state)s);

		if (s == TASK_WAITING)
			continue;
		unchanged(task_parent_done(&task, &w->given), &task);
		unchanged(task_parent_dead(&task, &w->given), &task);
		unchanged(task_parent_reopened(&task, &w->given), &task);
	}
}

static void a_parked_child_counts_its_parents_and_stays_parked(void **state)
{
	struct world *w = *state;
	struct task draft = draft_new();

	draft.open_parents = 2;
	struct task task = created(w, &draft, TASK_PENDING);
	task = noted(task_parent_dead(&task, &w->given), &task, EVENT_TASK_UPDATED);
	task = noted(task_parent_reopened(&task, &w->given), &task, EVENT_TASK_UPDATED);
	task = noted(task_parent_done(&task, &w->given), &task, EVENT_TASK_UPDATED);
	task = noted(task_parent_done(&task, &w->given), &task, EVENT_TASK_UPDATED);
	assert_int_equal(task.open_parents, 0);
	moved(task_unpark(&task, &w->given), EVENT_TASK_UNPARKED, TASK_READY);
}

static void a_cancelled_child_counts_its_parents_and_stays_cancelled(void **state)
{
	struct world *w = *state;
	struct task task = waiting_task(w, 1);

	task = moved(task_cancel(&task, NULL, &w->given), EVENT_TASK_CANCELLED, TASK_CANCELLED);
	task = noted(task_parent_done(&task, &w->given), &task, EVENT_TASK_UPDATED);
	moved(task_retry(&task, false, &w->given), EVENT_TASK_RETRIED, TASK_READY);
}

static void exactly_the_ends_of_a_parent_reach_its_children(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w), review = review_task(w), ready = ready_task(w);

	assert_int_equal(complete(w, &task).follow, FOLLOW_PARENT_DONE);
	assert_int_equal(task_pass(&review, &w->given).follow, FOLLOW_PARENT_DONE);
	assert_int_equal(fail_for_ever(w, &task).follow, FOLLOW_PARENT_DEAD);
	assert_int_equal(cancel(w, &ready).follow, FOLLOW_PARENT_DEAD);
	assert_int_equal(fail_with(w, &task, CODE_EXECUTION_ERROR).follow, FOLLOW_NOTHING);
	assert_int_equal(block(w, &task).follow, FOLLOW_NOTHING);
	assert_int_equal(report(w, &task).follow, FOLLOW_NOTHING);
	assert_int_equal(task_lose(&task, &w->given).follow, FOLLOW_NOTHING);
}

static void a_dead_parent_that_is_retried_and_done_frees_its_child(void **state)
{
	struct world *w = *state;
	struct task child = waiting_task(w, 1), parent = running_task(w);
	struct task_decision decision = fail_for_ever(w, &parent);

	child = child_after(w, child, decision);
	assert_int_equal(child.state, TASK_BLOCKED);
	decision = task_retry(&decision.task, false, &w->given);
	child = child_after(w, child, decision);
	assert_int_equal(child.state, TASK_WAITING);
	parent = moved(claim_by(w, &decision.task, &w->beater), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	child = child_after(w, child, complete(w, &parent));
	assert_int_equal(child.state, TASK_READY);
}

/* Whoever tells a child about its parents tells each of them once: the child only counts. */
static void a_child_counts_every_parent_that_it_is_told_is_done(void **state)
{
	struct world *w = *state;
	struct task task = waiting_task(w, 3);

	for (uint32_t left = 2; left > 0; left--) {
		task = noted(task_parent_done(&task, &w->given), &task, EVENT_TASK_UPDATED);
		assert_int_equal(task.open_parents, left);
	}
	task = moved(task_parent_done(&task, &w->given), EVENT_TASK_REQUEUED, TASK_READY);
	unchanged(task_parent_done(&task, &w->given), &task);
}

static void a_child_whose_parents_are_all_dead_has_none_left_to_be_done(void **state)
{
	struct world *w = *state;
	struct task task = waiting_task(w, 1);

	task = moved(task_parent_dead(&task, &w->given), EVENT_TASK_BLOCKED, TASK_BLOCKED);
	unchanged(task_parent_done(&task, &w->given), &task);
	unchanged(task_parent_dead(&task, &w->given), &task);
}

static void a_retried_child_waits_for_the_living_and_forgets_the_dead(void **state)
{
	struct world *w = *state;
	struct task task = waiting_task(w, 2);

	task = moved(task_parent_dead(&task, &w->given), EVENT_TASK_BLOCKED, TASK_BLOCKED);
	task = moved(task_retry(&task, false, &w->given), EVENT_TASK_RETRIED, TASK_WAITING);
	assert_int_equal(task.open_parents, 1);
	assert_int_equal(task.dead_parents, 0);
	unchanged(task_parent_reopened(&task, &w->given), &task);
	moved(task_parent_done(&task, &w->given), EVENT_TASK_REQUEUED, TASK_READY);
}

static void a_parent_that_is_open_again_frees_only_what_it_blocked(void **state)
{
	struct world *w = *state;
	struct task waiting = waiting_task(w, 2);

	waiting.dead_parents = 2;
	waiting.state = TASK_BLOCKED;
	waiting.code = CODE_DEPENDENCY_FAILED;
	struct task one = noted(task_parent_reopened(&waiting, &w->given), &waiting, EVENT_TASK_UPDATED);
	moved(task_parent_reopened(&one, &w->given), EVENT_TASK_REQUEUED, TASK_WAITING);
	one.code = CODE_BAD_WORKDIR;
	noted(task_parent_reopened(&one, &w->given), &one, EVENT_TASK_UPDATED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_last_parent_done_makes_it_ready),
		TEST(the_last_parent_done_before_its_time_makes_it_scheduled),
		TEST(one_dead_parent_blocks_it),
		TEST(a_parent_opened_again_lets_it_wait_again),
		TEST(of_two_dead_parents_both_must_be_opened_again),
		TEST(a_parent_done_does_not_unblock_what_another_blocks),
		TEST(a_task_blocked_for_another_reason_stays_blocked),
		TEST(a_task_without_parents_is_left_alone),
		TEST(a_parked_child_counts_its_parents_and_stays_parked),
		TEST(a_cancelled_child_counts_its_parents_and_stays_cancelled),
		TEST(exactly_the_ends_of_a_parent_reach_its_children),
		TEST(a_dead_parent_that_is_retried_and_done_frees_its_child),
		TEST(a_child_counts_every_parent_that_it_is_told_is_done),
		TEST(a_child_whose_parents_are_all_dead_has_none_left_to_be_done),
		TEST(a_retried_child_waits_for_the_living_and_forgets_the_dead),
		TEST(a_parent_that_is_open_again_frees_only_what_it_blocked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
