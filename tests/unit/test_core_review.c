#include "core_fixture.h"

static void a_report_ends_the_claim_and_waits_for_a_verdict(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);
	struct task_decision decision = report(w, &task);

	task = moved(decision, EVENT_TASK_REVIEWED, TASK_REVIEW);
	assert_int_equal(decision.follow, FOLLOW_NOTHING);
	assert_false(task_is_claimed(&task));
	assert_int_equal(task.crashes, 0);
	assert_int_equal(task.spent, 0);
	assert_int_equal(task.ended, ENDED_REVIEW);
}

static void a_pass_makes_it_done(void **state)
{
	struct world *w = *state;
	struct task task = review_task(w);
	struct task_decision decision = task_pass(&task, &w->given);

	moved(decision, EVENT_TASK_COMPLETED, TASK_DONE);
	assert_int_equal(decision.follow, FOLLOW_PARENT_DONE);
}

static void a_rejection_spends_an_attempt_and_goes_on_at_once(void **state)
{
	struct world *w = *state;
	struct task task = review_task(w);
	struct task_decision decision = task_reject(&task, &w->given);

	task = moved(decision, EVENT_TASK_FAILED, TASK_READY);
	assert_int_equal(decision.follow, FOLLOW_NOTHING);
	assert_int_equal(task.spent, 1);
	assert_int_equal(task.ready_at_ms, w->given.now.wall_ms);
	assert_int_equal(task.code, CODE_CHECK_FAILED);
}

static void the_last_rejection_fails_the_task(void **state)
{
	struct world *w = *state;
	struct task task = review_task(w);
	struct task_decision decision = task_reject(&task, &w->given);

	for (int round = 0; round < 2; round++) {
		task = moved(claim_by(w, &decision.task, &w->beater), EVENT_TASK_CLAIMED, TASK_CLAIMED);
		task = moved(report(w, &task), EVENT_TASK_REVIEWED, TASK_REVIEW);
		decision = task_reject(&task, &w->given);
	}
	task = moved(decision, EVENT_TASK_FAILED, TASK_FAILED);
	assert_int_equal(decision.follow, FOLLOW_PARENT_DEAD);
	assert_int_equal(task.spent, 3);
	assert_int_equal(task.code, CODE_CHECK_FAILED);
}

static void a_verdict_without_a_report_is_refused(void **state)
{
	struct world *w = *state;

	for (int s = TASK_PENDING; s < TASK_STATE_COUNT; s++) {
		struct task task = task_in(w, (enum task_state)s);

		if (s == TASK_REVIEW)
			continue;
		refused(task_pass(&task, &w->given), &task, REFUSED_BAD_TRANSITION);
		refused(task_reject(&task, &w->given), &task, REFUSED_BAD_TRANSITION);
	}
}

static void a_second_verdict_is_refused(void **state)
{
	struct world *w = *state;
	struct task task = review_task(w);

	task = moved(task_pass(&task, &w->given), EVENT_TASK_COMPLETED, TASK_DONE);
	refused(task_pass(&task, &w->given), &task, REFUSED_BAD_TRANSITION);
	refused(task_reject(&task, &w->given), &task, REFUSED_BAD_TRANSITION);
}

static void the_report_is_still_known_after_the_verdict(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);
	struct proof proof = proof_of(&task);

	task = moved(report(w, &task), EVENT_TASK_REVIEWED, TASK_REVIEW);
	task = moved(task_pass(&task, &w->given), EVENT_TASK_COMPLETED, TASK_DONE);
	repeated(task_report(&task, &proof, &w->given), &task);
	refused(task_complete(&task, &proof, &w->given), &task, REFUSED_ALREADY_TERMINAL);
}

static void work_under_review_can_be_called_off(void **state)
{
	struct world *w = *state;
	struct task task = review_task(w);

	moved(cancel(w, &task), EVENT_TASK_CANCELLED, TASK_CANCELLED);
}

static void work_under_review_is_not_claimed(void **state)
{
	struct world *w = *state;
	struct task task = review_task(w);

	refused(claim_by(w, &task, &w->rival), &task, REFUSED_BAD_TRANSITION);
}

static void a_rejection_is_not_a_new_attempt(void **state)
{
	struct world *w = *state;
	struct task task = review_task(w);
	uint64_t fence = task.fence;

	task = moved(task_reject(&task, &w->given), EVENT_TASK_FAILED, TASK_READY);
	assert_int_equal(task.fence, fence);
	assert_int_equal(task.attempt, 1);
	assert_int_equal(task.crashes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_report_ends_the_claim_and_waits_for_a_verdict),
		TEST(a_pass_makes_it_done),
		TEST(a_rejection_spends_an_attempt_and_goes_on_at_once),
		TEST(the_last_rejection_fails_the_task),
		TEST(a_verdict_without_a_report_is_refused),
		TEST(a_second_verdict_is_refused),
		TEST(the_report_is_still_known_after_the_verdict),
		TEST(work_under_review_can_be_called_off),
		TEST(work_under_review_is_not_claimed),
		TEST(a_rejection_is_not_a_new_attempt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
