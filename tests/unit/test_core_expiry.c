#include "core_fixture.h"

/* ---- claim leases ------------------------------------------------------------------------------- */

static void a_claim_lease_ends_at_its_deadline_and_not_a_millisecond_before(void **state)
{
	struct world *w = *state;
	struct task task = running_plain(w);

	pass_time(w, MINUTES(15) - 1);
	unchanged(expire(w, &task), &task);
	pass_time(w, 1);
	task = moved(expire(w, &task), EVENT_TASK_EXPIRED, TASK_READY);
	assert_false(task_is_claimed(&task));
	assert_int_equal(task.ended, ENDED_LOST);
	assert_int_equal(task.code, CODE_LEASE_LOST);
}

static void the_first_loss_is_ready_at_once_and_the_second_backs_off(void **state)
{
	struct world *w = *state;
	struct task task = running_plain(w);

	pass_time(w, MINUTES(15));
	task = moved(expire(w, &task), EVENT_TASK_EXPIRED, TASK_READY);
	assert_int_equal(task.ready_at_ms, w->given.now.wall_ms);
	assert_int_equal(task.crashes, 1);
	task = moved(claim_by(w, &task, &w->plain), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	pass_time(w, MINUTES(15));
	task = moved(expire(w, &task), EVENT_TASK_EXPIRED, TASK_SCHEDULED);
	assert_int_equal(task.ready_at_ms, w->given.now.wall_ms + SECONDS(10));
	assert_int_equal(task.crashes, 2);
	assert_int_equal(task.spent, 0);
}

static void the_third_loss_in_a_row_fails_the_task(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct task_decision decision = {.task = task};

	for (int loss = 0; loss < 3; loss++) {
		pass_time(w, MINUTES(1));
		task = task_due(&decision.task, &w->given).task;
		task = moved(claim_by(w, &task, &w->plain), EVENT_TASK_CLAIMED, TASK_CLAIMED);
		pass_time(w, MINUTES(15));
		decision = expire(w, &task);
	}
	moved(decision, EVENT_TASK_EXPIRED, TASK_FAILED);
	assert_int_equal(decision.follow, FOLLOW_PARENT_DEAD);
	assert_int_equal(decision.task.code, CODE_LEASE_LOST);
}

static void a_lease_that_ended_unseen_is_renewed_if_the_renewal_comes_first(void **state)
{
	struct world *w = *state;
	struct task task = running_plain(w);

	pass_time(w, MINUTES(16));
	task = noted(progress(w, &task), &task, EVENT_TASK_PROGRESSED);
	unchanged(expire(w, &task), &task);
}

static void an_expired_lease_cannot_be_renewed_even_if_nobody_took_the_task(void **state)
{
	struct world *w = *state;
	struct task task = running_plain(w);
	struct proof proof = proof_of(&task);

	pass_time(w, MINUTES(15));
	task = moved(expire(w, &task), EVENT_TASK_EXPIRED, TASK_READY);
	refused(task_progress(&task, &proof, 0, &w->given), &task, REFUSED_STALE_CLAIM);
	refused(task_bind(&task, PLAIN, &w->given), &task, REFUSED_STALE_CLAIM);
}

static void a_bound_claim_does_not_end_with_the_lease_it_began_with(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	pass_time(w, HOURS(24 * 7));
	unchanged(expire(w, &task), &task);
	unchanged(task_verify(&task, &w->given), &task);
}

static void nothing_expires_without_a_claim(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);

	pass_time(w, HOURS(24 * 7));
	unchanged(expire(w, &task), &task);
	unchanged(task_verify(&task, &w->given), &task);
	unchanged(task_lose(&task, &w->given), &task);
	unchanged(task_void(&task, &w->given), &task);
}

/* ---- grace -------------------------------------------------------------------------------------- */

static void after_a_restart_a_claim_has_the_whole_grace(void **state)
{
	struct world *w = *state;
	struct task task = running_plain(w);

	pass_time(w, MINUTES(14) + SECONDS(30));
	w->given.grace.started_ms = w->given.now.lease_ms;
	pass_time(w, SECONDS(60) - 1);
	unchanged(expire(w, &task), &task);
	pass_time(w, 1);
	moved(expire(w, &task), EVENT_TASK_EXPIRED, TASK_READY);
}

static void after_a_second_restart_it_has_the_whole_grace_again(void **state)
{
	struct world *w = *state;
	struct task task = running_plain(w);

	pass_time(w, MINUTES(15) - 1);
	for (int restart = 0; restart < 2; restart++) {
		w->given.grace.started_ms = w->given.now.lease_ms;
		pass_time(w, SECONDS(60) - 1);
		unchanged(expire(w, &task), &task);
	}
	pass_time(w, 1);
	moved(expire(w, &task), EVENT_TASK_EXPIRED, TASK_READY);
}

static void after_a_suspend_a_claim_has_half_a_minute(void **state)
{
	struct world *w = *state;
	struct task task = running_plain(w);

	pass_time(w, HOURS(8));
	w->given.grace.woke_ms = w->given.now.lease_ms;
	pass_time(w, SECONDS(30) - 1);
	unchanged(expire(w, &task), &task);
	pass_time(w, 1);
	moved(expire(w, &task), EVENT_TASK_EXPIRED, TASK_READY);
}

static void after_a_suspend_a_shorter_lease_has_its_own_length(void **state)
{
	struct world *w = *state;
	struct task task = running_plain(w);
	struct proof proof = proof_of(&task);

	task = noted(task_progress(&task, &proof, SECONDS(8), &w->given), &task, EVENT_TASK_PROGRESSED);
	pass_time(w, HOURS(8));
	w->given.grace.woke_ms = w->given.now.lease_ms;
	pass_time(w, SECONDS(8) - 1);
	unchanged(expire(w, &task), &task);
	pass_time(w, 1);
	moved(expire(w, &task), EVENT_TASK_EXPIRED, TASK_READY);
}

static void while_the_store_is_frozen_no_claim_is_lost(void **state)
{
	struct world *w = *state;
	struct task plain = running_plain(w), unconfirmed = claimed_task(w);

	w->given.grace.frozen = true;
	pass_time(w, HOURS(24 * 7));
	unchanged(expire(w, &plain), &plain);
	unchanged(expire(w, &unconfirmed), &unconfirmed);
	unchanged(task_verify(&unconfirmed, &w->given), &unconfirmed);
	assert_int_equal(worker_expire(&w->beater, &w->given).event, EVENT_NONE);
}

/* ---- worker leases ------------------------------------------------------------------------------ */

static void a_worker_expires_at_its_deadline_and_not_a_millisecond_before(void **state)
{
	struct world *w = *state;

	pass_time(w, SECONDS(60) - 1);
	assert_int_equal(worker_expire(&w->beater, &w->given).event, EVENT_NONE);
	pass_time(w, 1);
	struct worker_decision decision = worker_expire(&w->beater, &w->given);
	assert_int_equal(decision.event, EVENT_WORKER_INACTIVE);
	assert_int_equal(decision.worker.ended, WORKER_EXPIRED);
	assert_true(decision.frees_lost);
	assert_false(decision.frees_returned);
}

static void a_worker_has_the_grace_of_both_restarts(void **state)
{
	struct world *w = *state;

	pass_time(w, SECONDS(59));
	for (int restart = 0; restart < 2; restart++) {
		w->given.grace.started_ms = w->given.now.lease_ms;
		pass_time(w, SECONDS(60) - 1);
		assert_int_equal(worker_expire(&w->beater, &w->given).event, EVENT_NONE);
	}
	pass_time(w, 1);
	assert_int_equal(worker_expire(&w->beater, &w->given).event, EVENT_WORKER_INACTIVE);
}

static void a_restart_never_shortens_the_lease_that_a_worker_was_promised(void **state)
{
	struct world *w = *state;
	struct beat beat = {.has_token = true, .lease_ms = MINUTES(5)};

	beat.token = w->beater.token;
	w->beater = worker_beat(&w->beater, &beat, false, &w->given).worker;
	w->beater.stored_deadline_ms = w->beater.lease.deadline_ms;
	pass_time(w, SECONDS(60));
	beat.token = w->beater.token;
	struct worker_decision last = worker_beat(&w->beater, &beat, false, &w->given);
	assert_false(last.store_soon);
	int64_t promised_ms = last.worker.lease.deadline_ms;
	w->beater = last.worker;
	/* what the next server reads, and what it makes of it */
	w->beater.lease.deadline_ms = w->beater.stored_deadline_ms + w->rules.restart_grace_ms;
	w->given.grace.started_ms = w->given.now.lease_ms;
	pass_time(w, promised_ms - 1 - w->given.now.lease_ms);
	assert_int_equal(worker_expire(&w->beater, &w->given).event, EVENT_NONE);
}

static void what_a_lost_worker_held_is_lost_one_by_one(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w), unconfirmed = claimed_task(w);

	task = moved(task_lose(&task, &w->given), EVENT_TASK_EXPIRED, TASK_READY);
	assert_int_equal(task.crashes, 1);
	assert_int_equal(task.ended, ENDED_LOST);
	unchanged(task_lose(&task, &w->given), &task);
	moved(task_lose(&unconfirmed, &w->given), EVENT_TASK_EXPIRED, TASK_READY);
}

static void expiry_may_be_told_to_mark_only(void **state)
{
	struct world *w = *state;

	w->rules.reschedule_on_expiry = false;
	pass_time(w, SECONDS(60));
	struct worker_decision decision = worker_expire(&w->beater, &w->given);
	assert_int_equal(decision.event, EVENT_WORKER_INACTIVE);
	assert_false(decision.frees_lost);
	assert_false(decision.frees_returned);
}

static void what_a_worker_held_when_it_said_goodbye_comes_back_unspent(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	task = moved(task_return(&task, &w->given), EVENT_TASK_RELEASED, TASK_READY);
	assert_int_equal(task.crashes, 0);
	assert_int_equal(task.spent, 0);
	assert_int_equal(task.interruptions, 1);
}

/* ---- verification ------------------------------------------------------------------------------- */

static struct task claimed_for_long(struct world *w, const struct worker *worker)
{
	struct task task = ready_task(w);
	struct claimant by = claimant_of(worker);

	by.lease_ms = HOURS(1);
	return moved(task_claim(&task, &by, QUEUE_OPEN, &w->given), EVENT_TASK_CLAIMED, TASK_CLAIMED);
}

static void an_unconfirmed_claim_is_taken_back_after_two_minutes(void **state)
{
	struct world *w = *state;
	struct task task = claimed_for_long(w, &w->beater);

	pass_time(w, MINUTES(2) - 1);
	unchanged(task_verify(&task, &w->given), &task);
	pass_time(w, 1);
	moved(task_verify(&task, &w->given), EVENT_CLAIM_UNCONFIRMED, TASK_READY);
}

static void an_unconfirmed_claim_spends_nothing(void **state)
{
	struct world *w = *state;
	struct task task = claimed_for_long(w, &w->beater);

	pass_time(w, MINUTES(2));
	task = moved(task_verify(&task, &w->given), EVENT_CLAIM_UNCONFIRMED, TASK_READY);
	assert_int_equal(task.spent, 0);
	assert_int_equal(task.crashes, 0);
	assert_int_equal(task.attempt, 1);
	assert_int_equal(task.ended, ENDED_LOST);
	assert_int_equal(task.ready_at_ms, w->given.now.wall_ms);
}

static void a_claim_that_its_worker_never_named_in_a_beat_did_not_arrive(void **state)
{
	struct world *w = *state;
	struct task task = claimed_task(w);

	pass_time(w, SECONDS(30));
	hear_from(w, &w->beater);
	pass_time(w, SECONDS(30) - 1);
	unchanged(expire(w, &task), &task);
	pass_time(w, 1);
	task = moved(expire(w, &task), EVENT_CLAIM_UNCONFIRMED, TASK_READY);
	assert_int_equal(task.spent, 0);
	assert_int_equal(task.crashes, 0);
	assert_int_equal(task.interruptions, 1);
	assert_int_equal(task.code, CODE_NONE);
}

/* A worker with a lease far longer than that of its claim, last heard a moment before it claimed. */
static struct task claimed_in_silence(struct world *w)
{
	w->beater.lease = lease_grant((uint32_t)HOURS(1), &w->given);
	pass_time(w, 1);
	return claimed_task(w);
}

static void a_claim_whose_worker_was_not_heard_since_is_a_crash(void **state)
{
	struct world *w = *state;
	struct task task = claimed_in_silence(w);

	pass_time(w, SECONDS(60));
	assert_true(worker_is_alive(&w->beater));
	task = moved(expire(w, &task), EVENT_TASK_EXPIRED, TASK_READY);
	assert_int_equal(task.crashes, 1);
	assert_int_equal(task.interruptions, 0);
	assert_int_equal(task.code, CODE_LEASE_LOST);
}

static void a_beat_in_the_moment_of_the_claim_may_have_come_before_it(void **state)
{
	struct world *w = *state;
	struct task task = claimed_in_silence(w);

	hear_from(w, &w->beater);
	pass_time(w, SECONDS(60));
	moved(expire(w, &task), EVENT_TASK_EXPIRED, TASK_READY);
}

static void a_claim_whose_worker_is_gone_is_a_crash_even_if_it_was_heard(void **state)
{
	struct world *w = *state;
	struct task task = claimed_task(w);

	pass_time(w, SECONDS(30));
	hear_from(w, &w->beater);
	w->beater = worker_leave(&w->beater, WORKER_SHUTDOWN).worker;
	pass_time(w, SECONDS(30));
	task = moved(expire(w, &task), EVENT_TASK_EXPIRED, TASK_READY);
	assert_int_equal(task.crashes, 1);
}

static void a_worker_not_heard_since_a_restart_or_reboot_is_a_crash(void **state)
{
	struct world *w = *state;
	struct task task = claimed_task(w);

	pass_time(w, SECONDS(10));
	hear_from(w, &w->beater);
	w->beater = worker_rebase(&w->beater, &w->given).worker;
	task = task_rebase(&task, &w->given).task;
	pass_time(w, SECONDS(60));
	moved(expire(w, &task), EVENT_TASK_EXPIRED, TASK_READY);
}

static void a_quiet_or_terminating_worker_is_heard_as_well(void **state)
{
	struct world *w = *state;
	struct task task = claimed_task(w);

	pass_time(w, SECONDS(60));
	hear_from(w, &w->beater);
	w->beater = worker_quiet(&w->beater).worker;
	moved(expire(w, &task), EVENT_CLAIM_UNCONFIRMED, TASK_READY);
	w->beater = worker_terminate(&w->beater).worker;
	moved(expire(w, &task), EVENT_CLAIM_UNCONFIRMED, TASK_READY);
}

static void a_claim_that_progressed_arrived_and_its_loss_is_a_crash(void **state)
{
	struct world *w = *state;
	struct task task = claimed_task(w);

	task = moved(progress(w, &task), EVENT_TASK_PROGRESSED, TASK_RUNNING);
	pass_time(w, SECONDS(60));
	hear_from(w, &w->beater);
	task = moved(expire(w, &task), EVENT_TASK_EXPIRED, TASK_READY);
	assert_int_equal(task.crashes, 1);
}

static void the_third_claim_lost_in_silence_fails_the_task(void **state)
{
	struct world *w = *state;
	struct task task = claimed_in_silence(w);

	for (int loss = 1; loss < 3; loss++) {
		pass_time(w, SECONDS(60));
		task = expire(w, &task).task;
		pass_time(w, SECONDS(10));
		task = task_due(&task, &w->given).task;
		task = moved(claim_by(w, &task, &w->beater), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	}
	pass_time(w, SECONDS(60));
	moved(expire(w, &task), EVENT_TASK_EXPIRED, TASK_FAILED);
}

static void only_claims_of_beating_workers_are_verified(void **state)
{
	struct world *w = *state;
	const struct worker *exempt[] = {&w->plain, &w->named};

	assert_int_not_equal(claimed_by(w, &w->beater).claim.verify_at_ms, 0);
	for (int i = 0; i < 2; i++) {
		struct task task = claimed_for_long(w, exempt[i]);

		assert_int_equal(task.claim.verify_at_ms, 0);
		pass_time(w, MINUTES(59));
		unchanged(task_verify(&task, &w->given), &task);
		unchanged(expire(w, &task), &task);
	}
}

static void a_claim_through_a_door_of_names_is_exempt_even_if_its_worker_beats(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct claimant by = claimant_of(&w->beater);

	by.named = true;
	task = moved(task_claim(&task, &by, QUEUE_OPEN, &w->given), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	assert_int_equal(task.claim.verify_at_ms, 0);
	assert_true(task.claim.named);
	assert_int_equal(task.claim.lease.granted_ms, MINUTES(15));
}

static void a_bind_or_progress_or_question_settles_the_verification(void **state)
{
	struct world *w = *state;
	struct task task = claimed_for_long(w, &w->beater);
	struct task settled[] = {bound(w, &task), progress(w, &task).task, ask(w, &task).task};

	pass_time(w, MINUTES(3));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(settled[i].claim.verify_at_ms, 0);
		unchanged(task_verify(&settled[i], &w->given), &settled[i]);
	}
}

static void verification_waits_for_the_grace_of_a_restart(void **state)
{
	struct world *w = *state;
	struct task task = claimed_for_long(w, &w->beater);

	pass_time(w, MINUTES(2));
	w->given.grace.started_ms = w->given.now.lease_ms;
	pass_time(w, SECONDS(60) - 1);
	unchanged(task_verify(&task, &w->given), &task);
	pass_time(w, 1);
	moved(task_verify(&task, &w->given), EVENT_CLAIM_UNCONFIRMED, TASK_READY);
}

/* ---- bind and unbind ---------------------------------------------------------------------------- */

static void the_first_bind_moves_a_claim_to_its_workers_lease(void **state)
{
	struct world *w = *state;
	struct task task = claimed_task(w);

	task = bound(w, &task);
	assert_int_equal(task.claim.clock, CLOCK_WORKER);
	assert_int_equal(task.claim.verify_at_ms, 0);
	unchanged(task_bind(&task, BEATER, &w->given), &task);
}

static void binding_what_progressed_moves_it_too_without_an_event(void **state)
{
	struct world *w = *state;
	struct task task = claimed_task(w);

	task = moved(progress(w, &task), EVENT_TASK_PROGRESSED, TASK_RUNNING);
	task = silent(task_bind(&task, BEATER, &w->given), &task);
	assert_int_equal(task.claim.clock, CLOCK_WORKER);
}

static void binding_anothers_task_changes_nothing(void **state)
{
	struct world *w = *state;
	struct task claimed = claimed_task(w), running = running_task(w), ready = ready_task(w);

	refused(task_bind(&claimed, RIVAL, &w->given), &claimed, REFUSED_STALE_CLAIM);
	refused(task_bind(&running, RIVAL, &w->given), &running, REFUSED_STALE_CLAIM);
	refused(task_bind(&ready, RIVAL, &w->given), &ready, REFUSED_STALE_CLAIM);
}

static void unbinding_gives_a_lease_of_the_verification_time(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	pass_time(w, MINUTES(10));
	task = silent(task_unbind(&task, BEATER, &w->given), &task);
	assert_int_equal(task.state, TASK_RUNNING);
	assert_int_equal(task.claim.clock, CLOCK_CLAIM);
	assert_int_equal(task.claim.lease.deadline_ms, w->given.now.lease_ms + MINUTES(2));
	pass_time(w, MINUTES(2) - 1);
	unchanged(expire(w, &task), &task);
	pass_time(w, 1);
	moved(expire(w, &task), EVENT_TASK_EXPIRED, TASK_READY);
}

static void unbinding_twice_equals_once(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	task = silent(task_unbind(&task, BEATER, &w->given), &task);
	pass_time(w, MINUTES(1));
	unchanged(task_unbind(&task, BEATER, &w->given), &task);
}

static void unbinding_what_is_not_bound_or_not_yours_changes_nothing(void **state)
{
	struct world *w = *state;
	struct task claimed = claimed_task(w), running = running_task(w), ready = ready_task(w);

	unchanged(task_unbind(&claimed, BEATER, &w->given), &claimed);
	unchanged(task_unbind(&running, RIVAL, &w->given), &running);
	unchanged(task_unbind(&ready, BEATER, &w->given), &ready);
}

static void a_restore_sets_every_claim_free_unspent(void **state)
{
	struct world *w = *state;
	struct task running = running_task(w), stopping = stopping_task(w), asking = asking_task(w);

	running = moved(task_void(&running, &w->given), EVENT_TASK_REQUEUED, TASK_READY);
	assert_int_equal(running.crashes, 0);
	assert_int_equal(running.interruptions, 0);
	assert_int_equal(running.ended, ENDED_LOST);
	moved(task_void(&stopping, &w->given), EVENT_TASK_CANCELLED, TASK_CANCELLED);
	asking = noted(task_void(&asking, &w->given), &asking, EVENT_TASK_REQUEUED);
	assert_false(task_is_claimed(&asking));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_claim_lease_ends_at_its_deadline_and_not_a_millisecond_before),
		TEST(the_first_loss_is_ready_at_once_and_the_second_backs_off),
		TEST(the_third_loss_in_a_row_fails_the_task),
		TEST(a_lease_that_ended_unseen_is_renewed_if_the_renewal_comes_first),
		TEST(an_expired_lease_cannot_be_renewed_even_if_nobody_took_the_task),
		TEST(a_bound_claim_does_not_end_with_the_lease_it_began_with),
		TEST(nothing_expires_without_a_claim),
		TEST(after_a_restart_a_claim_has_the_whole_grace),
		TEST(after_a_second_restart_it_has_the_whole_grace_again),
		TEST(after_a_suspend_a_claim_has_half_a_minute),
		TEST(after_a_suspend_a_shorter_lease_has_its_own_length),
		TEST(while_the_store_is_frozen_no_claim_is_lost),
		TEST(a_worker_expires_at_its_deadline_and_not_a_millisecond_before),
		TEST(a_worker_has_the_grace_of_both_restarts),
		TEST(a_restart_never_shortens_the_lease_that_a_worker_was_promised),
		TEST(what_a_lost_worker_held_is_lost_one_by_one),
		TEST(expiry_may_be_told_to_mark_only),
		TEST(what_a_worker_held_when_it_said_goodbye_comes_back_unspent),
		TEST(an_unconfirmed_claim_is_taken_back_after_two_minutes),
		TEST(an_unconfirmed_claim_spends_nothing),
		TEST(a_claim_that_its_worker_never_named_in_a_beat_did_not_arrive),
		TEST(a_claim_whose_worker_was_not_heard_since_is_a_crash),
		TEST(a_beat_in_the_moment_of_the_claim_may_have_come_before_it),
		TEST(a_claim_whose_worker_is_gone_is_a_crash_even_if_it_was_heard),
		TEST(a_worker_not_heard_since_a_restart_or_reboot_is_a_crash),
		TEST(a_quiet_or_terminating_worker_is_heard_as_well),
		TEST(a_claim_that_progressed_arrived_and_its_loss_is_a_crash),
		TEST(the_third_claim_lost_in_silence_fails_the_task),
		TEST(only_claims_of_beating_workers_are_verified),
		TEST(a_claim_through_a_door_of_names_is_exempt_even_if_its_worker_beats),
		TEST(a_bind_or_progress_or_question_settles_the_verification),
		TEST(verification_waits_for_the_grace_of_a_restart),
		TEST(the_first_bind_moves_a_claim_to_its_workers_lease),
		TEST(binding_what_progressed_moves_it_too_without_an_event),
		TEST(binding_anothers_task_changes_nothing),
		TEST(unbinding_gives_a_lease_of_the_verification_time),
		TEST(unbinding_twice_equals_once),
		TEST(unbinding_what_is_not_bound_or_not_yours_changes_nothing),
		TEST(a_restore_sets_every_claim_free_unspent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
