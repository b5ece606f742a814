#include "core_fixture.h"

static void progress_confirms_a_claim(void **state)
{
	struct world *w = *state;
	struct task task = claimed_task(w);

	task = moved(progress(w, &task), EVENT_TASK_PROGRESSED, TASK_RUNNING);
	assert_int_equal(task.claim.verify_at_ms, 0);
	assert_int_equal(task.claim.clock, CLOCK_CLAIM);
}

static void progress_renews_a_claim_lease_by_its_length(void **state)
{
	struct world *w = *state;
	struct task task = claimed_task(w);

	pass_time(w, SECONDS(50));
	task = moved(progress(w, &task), EVENT_TASK_PROGRESSED, TASK_RUNNING);
	assert_int_equal(task.claim.lease.deadline_ms, w->given.now.lease_ms + SECONDS(60));
	pass_time(w, SECONDS(50));
	task = noted(progress(w, &task), &task, EVENT_TASK_PROGRESSED);
	assert_int_equal(task.claim.lease.deadline_ms, w->given.now.lease_ms + SECONDS(60));
}

static void progress_may_ask_for_another_length_within_the_limits(void **state)
{
	struct world *w = *state;
	struct task task = running_plain(w);
	struct proof proof = proof_of(&task);

	task = noted(task_progress(&task, &proof, MINUTES(3), &w->given), &task, EVENT_TASK_PROGRESSED);
	assert_int_equal(task.claim.lease.granted_ms, MINUTES(3));
	task = noted(task_progress(&task, &proof, 1, &w->given), &task, EVENT_TASK_PROGRESSED);
	assert_int_equal(task.claim.lease.granted_ms, SECONDS(5));
	task = noted(task_progress(&task, &proof, HOURS(48), &w->given), &task, EVENT_TASK_PROGRESSED);
	assert_int_equal(task.claim.lease.granted_ms, HOURS(24));
}

static void progress_of_a_bound_task_leaves_its_workers_clock_alone(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	pass_time(w, SECONDS(10));
	struct task after = noted(progress(w, &task), &task, EVENT_TASK_PROGRESSED);
	assert_same_claim(&after.claim, &task.claim);
}

static void progress_with_a_stale_fence_changes_nothing(void **state)
{
	struct world *w = *state;
	struct task task = running_plain(w);
	struct proof older = proof_with(PLAIN, task.fence - 1);
	struct proof newer = proof_with(PLAIN, task.fence + 1);

	refused(task_progress(&task, &older, 0, &w->given), &task, REFUSED_STALE_CLAIM);
	refused(task_progress(&task, &newer, 0, &w->given), &task, REFUSED_STALE_CLAIM);
}

static void progress_by_another_holder_changes_nothing(void **state)
{
	struct world *w = *state;
	struct task task = running_plain(w);
	struct proof thief = proof_with(RIVAL, task.fence);
	struct proof name = by_name(RIVAL);

	refused(task_progress(&task, &thief, 0, &w->given), &task, REFUSED_STALE_CLAIM);
	refused(task_progress(&task, &name, 0, &w->given), &task, REFUSED_CLAIMED_BY_OTHER);
}

static void progress_by_name_is_enough_where_no_fence_is_known(void **state)
{
	struct world *w = *state;
	struct task task = claimed_by(w, &w->named);
	struct proof name = by_name(NAMED);

	moved(task_progress(&task, &name, 0, &w->given), EVENT_TASK_PROGRESSED, TASK_RUNNING);
}

static void progress_by_name_of_an_unclaimed_task_is_refused(void **state)
{
	struct world *w = *state;
	struct task ready = ready_task(w), done = done_task(w);
	struct proof name = by_name(BEATER);

	refused(task_progress(&ready, &name, 0, &w->given), &ready, REFUSED_NOT_CLAIMED);
	refused(task_progress(&done, &name, 0, &w->given), &done, REFUSED_ALREADY_TERMINAL);
}

static void progress_ends_a_row_of_interruptions(void **state)
{
	struct world *w = *state;
	struct task task = claimed_task(w);

	task = moved(release(w, &task), EVENT_TASK_RELEASED, TASK_READY);
	assert_int_equal(task.interruptions, 1);
	task = moved(claim_by(w, &task, &w->beater), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	assert_int_equal(task.interruptions, 1);
	task = moved(progress(w, &task), EVENT_TASK_PROGRESSED, TASK_RUNNING);
	assert_int_equal(task.interruptions, 0);
}

static void progress_leaves_the_crash_count_alone(void **state)
{
	struct world *w = *state;
	struct task task = claimed_task(w);

	task = moved(progress(w, &task), EVENT_TASK_PROGRESSED, TASK_RUNNING);
	assert_int_equal(task.crashes, 1);
}

static void past_the_timeout_a_claim_lease_is_no_longer_renewed(void **state)
{
	struct world *w = *state;
	struct task task = running_plain(w);
	int64_t renewed;

	for (int i = 0; i < 3; i++) {
		pass_time(w, MINUTES(10) - (i == 2));
		assert_false(task_must_stop(&task, &w->given));
		task = noted(progress(w, &task), &task, EVENT_TASK_PROGRESSED);
	}
	renewed = task.claim.lease.deadline_ms;
	pass_time(w, 1);
	assert_true(task_must_stop(&task, &w->given));
	task = noted(progress(w, &task), &task, EVENT_TASK_PROGRESSED);
	assert_int_equal(task.claim.lease.deadline_ms, renewed);
}

static void past_the_timeout_a_beating_worker_is_told_to_stop(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	pass_time(w, MINUTES(30) - 1);
	assert_false(task_must_stop(&task, &w->given));
	pass_time(w, 1);
	assert_true(task_must_stop(&task, &w->given));
	unchanged(expire(w, &task), &task);
}

static void a_task_without_a_claim_has_nobody_to_stop(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);

	pass_time(w, HOURS(24));
	assert_false(task_must_stop(&task, &w->given));
}

static void progress_while_asking_keeps_the_question_open_and_the_claim_alive(void **state)
{
	struct world *w = *state;
	struct task task = running_plain(w);

	task = moved(ask(w, &task), EVENT_TASK_ASKED, TASK_ASKING);
	pass_time(w, MINUTES(1));
	task = noted(progress(w, &task), &task, EVENT_TASK_PROGRESSED);
	assert_int_equal(task.claim.lease.deadline_ms, w->given.now.lease_ms + MINUTES(15));
}

static void progress_under_a_pending_cancel_does_not_undo_it(void **state)
{
	struct world *w = *state;
	struct task task = stopping_task(w);

	task = noted(progress(w, &task), &task, EVENT_TASK_PROGRESSED);
	assert_true(task.claim.stopping);
	task = silent(task_unbind(&task, BEATER, &w->given), &task);
	pass_time(w, SECONDS(10));
	int64_t deadline_ms = task.claim.lease.deadline_ms;
	task = noted(progress(w, &task), &task, EVENT_TASK_PROGRESSED);
	assert_int_equal(task.claim.lease.deadline_ms, deadline_ms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(progress_confirms_a_claim),
		TEST(progress_renews_a_claim_lease_by_its_length),
		TEST(progress_may_ask_for_another_length_within_the_limits),
		TEST(progress_of_a_bound_task_leaves_its_workers_clock_alone),
		TEST(progress_with_a_stale_fence_changes_nothing),
		TEST(progress_by_another_holder_changes_nothing),
		TEST(progress_by_name_is_enough_where_no_fence_is_known),
		TEST(progress_by_name_of_an_unclaimed_task_is_refused),
		TEST(progress_ends_a_row_of_interruptions),
		TEST(progress_leaves_the_crash_count_alone),
		TEST(past_the_timeout_a_claim_lease_is_no_longer_renewed),
		TEST(past_the_timeout_a_beating_worker_is_told_to_stop),
		TEST(a_task_without_a_claim_has_nobody_to_stop),
		TEST(progress_while_asking_keeps_the_question_open_and_the_claim_alive),
		TEST(progress_under_a_pending_cancel_does_not_undo_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
