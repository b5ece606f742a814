#include "core_fixture.h"

static void a_claim_raises_fence_and_attempt_by_one(void **state)
{
	struct world *w = *state;
	struct task task = claimed_task(w);
	uint64_t first = task.fence;

	assert_int_equal(task.attempt, 1);
	task = moved(release(w, &task), EVENT_TASK_RELEASED, TASK_READY);
	task = moved(claim_by(w, &task, &w->rival), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	assert_int_equal(task.fence, first + 1);
	assert_int_equal(task.attempt, 2);
	assert_int_equal(task.claim.holder, RIVAL);
}

static void second_claim_of_same_task_is_refused(void **state)
{
	struct world *w = *state;
	struct task task = claimed_task(w);

	refused(claim_by(w, &task, &w->rival), &task, REFUSED_CLAIMED_BY_OTHER);
	refused(claim_by(w, &task, &w->plain), &task, REFUSED_CLAIMED_BY_OTHER);
	refused(claim_by(w, &task, &w->named), &task, REFUSED_CLAIMED_BY_OTHER);
}

static void of_many_racers_one_wins(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	int winners = 0;

	for (uint32_t racer = 100; racer < 200; racer++) {
		struct worker worker = registered(w, racer, false);
		struct task_decision decision = claim_by(w, &task, &worker);

		winners += decision.refusal == REFUSED_NOTHING;
		task = decision.task;
	}
	assert_int_equal(winners, 1);
	assert_int_equal(task.claim.holder, 100);
	assert_int_equal(task.attempt, 1);
}

static void a_second_claim_by_the_holder_is_refused_unless_it_resumes(void **state)
{
	struct world *w = *state;
	struct task task = claimed_task(w);

	refused(claim_by(w, &task, &w->beater), &task, REFUSED_CLAIMED_BY_OTHER);
}

static void a_resume_gives_a_new_fence_and_kills_the_old_one(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);
	struct proof old = proof_of(&task);
	struct claimant by = claimant_of(&w->beater);

	by.resumes = true;
	struct task again =
		moved(task_claim(&task, &by, QUEUE_OPEN, &w->given), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	assert_int_equal(again.fence, task.fence + 1);
	assert_int_equal(again.attempt, 2);
	assert_int_equal(again.crashes, 1);
	assert_int_equal(again.claim.clock, CLOCK_CLAIM);
	refused(task_complete(&again, &old, &w->given), &again, REFUSED_STALE_CLAIM);
	moved(complete(w, &again), EVENT_TASK_COMPLETED, TASK_DONE);
}

static void only_the_holder_resumes(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);
	struct claimant by = claimant_of(&w->rival);

	by.resumes = true;
	refused(task_claim(&task, &by, QUEUE_OPEN, &w->given), &task, REFUSED_CLAIMED_BY_OTHER);
}

static void a_resume_ignores_a_paused_queue_and_a_full_worker(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);
	struct claimant by = claimant_of(&w->beater);

	by.resumes = true;
	w->beater.max_concurrent = 1;
	w->beater.held = 1;
	moved(task_claim(&task, &by, QUEUE_PAUSED, &w->given), EVENT_TASK_CLAIMED, TASK_CLAIMED);
}

static void an_inactive_worker_cannot_resume(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	w->beater = worker_leave(&w->beater, WORKER_SHUTDOWN).worker;
	struct claimant by = claimant_of(&w->beater);
	by.resumes = true;
	refused(task_claim(&task, &by, QUEUE_OPEN, &w->given), &task, REFUSED_WORKER_INACTIVE);
}

static void work_that_is_being_stopped_cannot_be_resumed(void **state)
{
	struct world *w = *state;
	struct task task = stopping_task(w);
	struct claimant by = claimant_of(&w->beater);

	by.resumes = true;
	assert_int_not_equal(task_claim(&task, &by, QUEUE_OPEN, &w->given).refusal, REFUSED_NOTHING);
}

static void resuming_takes_a_free_task_too(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct claimant by = claimant_of(&w->beater);

	by.resumes = true;
	moved(task_claim(&task, &by, QUEUE_OPEN, &w->given), EVENT_TASK_CLAIMED, TASK_CLAIMED);
}

static void a_claim_resets_every_liveness_field(void **state)
{
	struct world *w = *state;
	struct task task = asking_unclaimed(w);

	task = moved(task_answer(&task, &no_questions, 0, &w->given), EVENT_TASK_ANSWERED, TASK_READY);
	pass_time(w, MINUTES(5));
	task = moved(claim_by(w, &task, &w->rival), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	assert_int_equal(task.claim.clock, CLOCK_CLAIM);
	assert_int_equal(task.claim.lease.deadline_ms, w->given.now.lease_ms + SECONDS(60));
	assert_int_equal(task.claim.asked_at_ms, 0);
	assert_int_equal(task.claim.claimed_wall_ms, w->given.now.wall_ms);
	assert_int_equal(task.claim.run_until_ms, w->given.now.lease_ms + MINUTES(30));
	assert_int_equal(task.ended, ENDED_NOT);
	assert_false(task.claim.stopping);
}

static void a_paused_queue_refuses_a_claim_by_id(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct claimant by = claimant_of(&w->beater);

	refused(task_claim(&task, &by, QUEUE_PAUSED, &w->given), &task, REFUSED_QUEUE_PAUSED);
}

static void a_draining_queue_is_still_claimed_from(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct claimant by = claimant_of(&w->beater);

	moved(task_claim(&task, &by, QUEUE_DRAINING, &w->given), EVENT_TASK_CLAIMED, TASK_CLAIMED);
}

static void only_the_owning_slot_claims_an_owned_task(void **state)
{
	struct world *w = *state;
	struct task draft = draft_new();
	struct claimant by = claimant_of(&w->beater);

	draft.owner = SLOT;
	struct task task = created(w, &draft, TASK_READY);
	refused(task_claim(&task, &by, QUEUE_OPEN, &w->given), &task, REFUSED_FORBIDDEN);
	by.slot = OTHER_SLOT;
	refused(task_claim(&task, &by, QUEUE_OPEN, &w->given), &task, REFUSED_FORBIDDEN);
	by.slot = SLOT;
	moved(task_claim(&task, &by, QUEUE_OPEN, &w->given), EVENT_TASK_CLAIMED, TASK_CLAIMED);
}

static void a_task_without_owner_is_for_every_slot(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct claimant by = claimant_of(&w->beater);

	by.slot = SLOT;
	moved(task_claim(&task, &by, QUEUE_OPEN, &w->given), EVENT_TASK_CLAIMED, TASK_CLAIMED);
}

static void a_parked_task_is_claimed_only_by_who_asks_for_pending(void **state)
{
	struct world *w = *state;
	struct task task = pending_task(w);
	struct claimant by = claimant_of(&w->beater);

	refused(task_claim(&task, &by, QUEUE_OPEN, &w->given), &task, REFUSED_BAD_TRANSITION);
	by.takes_pending = true;
	moved(task_claim(&task, &by, QUEUE_OPEN, &w->given), EVENT_TASK_CLAIMED, TASK_CLAIMED);
}

static void a_parked_task_is_not_claimed_before_its_time_or_parents(void **state)
{
	struct world *w = *state;
	struct task early = draft_new(), child = draft_new();
	struct claimant by = claimant_of(&w->beater);

	by.takes_pending = true;
	early.ready_at_ms = w->given.now.wall_ms + 1;
	early = created(w, &early, TASK_PENDING);
	refused(task_claim(&early, &by, QUEUE_OPEN, &w->given), &early, REFUSED_BAD_TRANSITION);
	child.open_parents = 1;
	child = created(w, &child, TASK_PENDING);
	refused(task_claim(&child, &by, QUEUE_OPEN, &w->given), &child, REFUSED_BAD_TRANSITION);
	pass_time(w, 1);
	moved(task_claim(&early, &by, QUEUE_OPEN, &w->given), EVENT_TASK_CLAIMED, TASK_CLAIMED);
}

static void workers_that_are_ending_get_no_work(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct worker quiet = worker_quiet(&w->beater).worker;
	struct worker terminating = worker_terminate(&w->beater).worker;
	struct worker gone = worker_leave(&w->beater, WORKER_SHUTDOWN).worker;

	refused(claim_by(w, &task, &quiet), &task, REFUSED_FORBIDDEN);
	refused(claim_by(w, &task, &terminating), &task, REFUSED_FORBIDDEN);
	refused(claim_by(w, &task, &gone), &task, REFUSED_WORKER_INACTIVE);
}

static void a_full_worker_gets_no_work(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);

	w->beater.max_concurrent = 2;
	w->beater.held = 2;
	refused(claim_by(w, &task, &w->beater), &task, REFUSED_WORKER_FULL);
	w->beater.held = 1;
	moved(claim_by(w, &task, &w->beater), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	w->beater.held = 1000;
	w->beater.max_concurrent = 0;
	moved(claim_by(w, &task, &w->beater), EVENT_TASK_CLAIMED, TASK_CLAIMED);
}

static void final_tasks_are_never_claimed(void **state)
{
	struct world *w = *state;
	struct claimant by = claimant_of(&w->beater);

	by.takes_pending = true;
	by.resumes = true;
	for (int s = TASK_FAILED; s <= TASK_CANCELLED; s++) {
		struct task task = task_in(w, (enum task_state)s);

		refused(task_claim(&task, &by, QUEUE_OPEN, &w->given), &task, REFUSED_ALREADY_TERMINAL);
	}
}

static void the_first_lease_is_a_minute_for_who_beats_and_a_quarter_hour_for_others(void **state)
{
	struct world *w = *state;

	assert_int_equal(claimed_by(w, &w->beater).claim.lease.granted_ms, SECONDS(60));
	assert_int_equal(claimed_by(w, &w->plain).claim.lease.granted_ms, MINUTES(15));
	assert_int_equal(claimed_by(w, &w->named).claim.lease.granted_ms, MINUTES(15));
}

static void a_claim_lease_is_clamped_like_a_workers(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct claimant by = claimant_of(&w->plain);

	by.lease_ms = 1;
	assert_int_equal(
		task_claim(&task, &by, QUEUE_OPEN, &w->given).task.claim.lease.granted_ms, SECONDS(5));
	by.lease_ms = HOURS(24) + 1;
	assert_int_equal(
		task_claim(&task, &by, QUEUE_OPEN, &w->given).task.claim.lease.granted_ms, HOURS(24));
	by.lease_ms = SECONDS(90);
	assert_int_equal(
		task_claim(&task, &by, QUEUE_OPEN, &w->given).task.claim.lease.granted_ms, SECONDS(90));
}

static void a_confirmed_claim_runs_at_once_and_is_not_verified(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct claimant by = claimant_of(&w->beater);

	by.confirms = true;
	task = moved(task_claim(&task, &by, QUEUE_OPEN, &w->given), EVENT_TASK_CLAIMED, TASK_RUNNING);
	assert_int_equal(task.claim.verify_at_ms, 0);
}

static void a_door_may_limit_the_run_itself(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct claimant by = claimant_of(&w->named);

	by.run_ms = HOURS(1);
	task = moved(task_claim(&task, &by, QUEUE_OPEN, &w->given), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	assert_int_equal(task.claim.run_until_ms, w->given.now.lease_ms + HOURS(1));
}

static void a_crash_is_counted_when_the_claim_is_made(void **state)
{
	struct task task = claimed_task(*state);

	assert_int_equal(task.crashes, 1);
	assert_int_equal(task.spent, 0);
}

static void the_request_that_made_a_claim_is_kept_with_it(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct claimant by = claimant_of(&w->beater);

	by.request = 0xfeed;
	task = moved(task_claim(&task, &by, QUEUE_OPEN, &w->given), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	assert_int_equal(task.claim.request, 0xfeed);
	task = moved(release(w, &task), EVENT_TASK_RELEASED, TASK_READY);
	assert_int_equal(task.claim.request, 0);
}

static void a_new_generation_lifts_the_fence_above_every_older_one(void **state)
{
	struct world *w = *state;
	struct task task = claimed_task(w);
	uint64_t before = task.fence;

	w->given.generation++;
	task = moved(task_void(&task, &w->given), EVENT_TASK_REQUEUED, TASK_READY);
	task = moved(claim_by(w, &task, &w->beater), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	assert_true(task.fence > before + 1000000);
	uint64_t first = task.fence;
	task = moved(release(w, &task), EVENT_TASK_RELEASED, TASK_READY);
	task = moved(claim_by(w, &task, &w->beater), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	assert_int_equal(task.fence, first + 1);
}

static void a_claim_forgets_why_the_last_attempt_failed(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	task = moved(fail_with(w, &task, CODE_WORKER_CRASHED), EVENT_TASK_FAILED, TASK_READY);
	assert_int_equal(task.code, CODE_WORKER_CRASHED);
	task = moved(claim_by(w, &task, &w->beater), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	assert_int_equal(task.code, CODE_NONE);
}

static void a_reply_that_was_never_written_gives_the_claim_back(void **state)
{
	struct world *w = *state;
	struct task task = claimed_task(w);

	task = moved(task_return(&task, &w->given), EVENT_TASK_RELEASED, TASK_READY);
	assert_int_equal(task.crashes, 0);
	assert_int_equal(task.spent, 0);
	assert_int_equal(task.attempt, 1);
	unchanged(task_return(&task, &w->given), &task);
}

static void a_claim_runs_no_longer_than_any_task_may(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct claimant by = claimant_of(&w->plain);

	by.run_ms = (int64_t)TASK_DELAY_MS_MAX + 1;
	struct task claimed =
		moved(task_claim(&task, &by, QUEUE_OPEN, &w->given), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	assert_int_equal(claimed.claim.run_ms, TASK_DELAY_MS_MAX);
}

static void an_extension_gives_time_and_leaves_a_workers_lease_alone(void **state)
{
	struct world *w = *state;
	struct task bound = running_task(w), plain = claimed_by(w, &w->plain);
	struct claimant beater = claimant_of(&w->beater), other = claimant_of(&w->plain);

	pass_time(w, SECONDS(5));
	struct task_decision longer = task_extend(&bound, &beater, &w->given);
	assert_true(longer.repeated);
	assert_int_equal(longer.task.claim.lease.deadline_ms, bound.claim.lease.deadline_ms);
	longer = task_extend(&plain, &other, &w->given);
	assert_true(longer.task.claim.lease.deadline_ms > plain.claim.lease.deadline_ms);
}

static void only_a_claim_under_a_key_that_beats_is_supervised(void **state)
{
	struct world *w = *state;
	struct task ready = ready_task(w), running = running_task(w), plain = claimed_by(w, &w->plain);

	assert_false(task_is_supervised(&ready, &w->beater));
	assert_true(task_is_supervised(&running, &w->beater));
	assert_false(task_is_supervised(&plain, &w->plain));
	running.claim.named = true;
	assert_false(task_is_supervised(&running, &w->beater));
}

static void a_report_is_heard_from_the_holder_alone(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);
	struct proof proof = proof_of(&task), stale = proof_with(BEATER, task.fence + 1);

	assert_true(task_hear(&task, &proof, false, &w->given).task.claim.reported);
	struct task_decision refusal = task_hear(&task, &stale, false, &w->given);
	assert_int_equal(refusal.refusal, REFUSED_STALE_CLAIM);
	assert_false(refusal.task.claim.reported);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_claim_raises_fence_and_attempt_by_one),
		TEST(second_claim_of_same_task_is_refused),
		TEST(of_many_racers_one_wins),
		TEST(a_second_claim_by_the_holder_is_refused_unless_it_resumes),
		TEST(a_resume_gives_a_new_fence_and_kills_the_old_one),
		TEST(only_the_holder_resumes),
		TEST(a_resume_ignores_a_paused_queue_and_a_full_worker),
		TEST(an_inactive_worker_cannot_resume),
		TEST(work_that_is_being_stopped_cannot_be_resumed),
		TEST(resuming_takes_a_free_task_too),
		TEST(a_claim_resets_every_liveness_field),
		TEST(a_paused_queue_refuses_a_claim_by_id),
		TEST(a_draining_queue_is_still_claimed_from),
		TEST(only_the_owning_slot_claims_an_owned_task),
		TEST(a_task_without_owner_is_for_every_slot),
		TEST(a_parked_task_is_claimed_only_by_who_asks_for_pending),
		TEST(a_parked_task_is_not_claimed_before_its_time_or_parents),
		TEST(workers_that_are_ending_get_no_work),
		TEST(a_full_worker_gets_no_work),
		TEST(final_tasks_are_never_claimed),
		TEST(the_first_lease_is_a_minute_for_who_beats_and_a_quarter_hour_for_others),
		TEST(a_claim_lease_is_clamped_like_a_workers),
		TEST(a_confirmed_claim_runs_at_once_and_is_not_verified),
		TEST(a_door_may_limit_the_run_itself),
		TEST(a_crash_is_counted_when_the_claim_is_made),
		TEST(the_request_that_made_a_claim_is_kept_with_it),
		TEST(a_new_generation_lifts_the_fence_above_every_older_one),
		TEST(a_claim_forgets_why_the_last_attempt_failed),
		TEST(a_reply_that_was_never_written_gives_the_claim_back),
		TEST(a_claim_runs_no_longer_than_any_task_may),
		TEST(an_extension_gives_time_and_leaves_a_workers_lease_alone),
		TEST(only_a_claim_under_a_key_that_beats_is_supervised),
		TEST(a_report_is_heard_from_the_holder_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
