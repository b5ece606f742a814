#include "core_fixture.h"

/* Every way in which a holder can end its attempt. */
static const enum claim_end ends[] = {ENDED_COMPLETE, ENDED_FAIL, ENDED_REVIEW, ENDED_BLOCK, ENDED_RELEASE};

enum {
	ENDS = sizeof ends / sizeof ends[0],
};

static struct task_decision end_as(
	struct world *w, const struct task *task, const struct proof *proof, enum claim_end how)
{
	struct failure failure = failure_of(CODE_EXECUTION_ERROR);

	switch (how) {
	case ENDED_COMPLETE:
		return task_complete(task, proof, &w->given);
	case ENDED_FAIL:
		return task_fail(task, proof, &failure, &w->given);
	case ENDED_REVIEW:
		return task_report(task, proof, &w->given);
	case ENDED_BLOCK:
		return task_block(task, proof, CODE_STOPPED, &w->given);
	case ENDED_WAIT:
		return task_suspend(task, proof, 0, 0, &w->given);
	case ENDED_RELEASE:
	case ENDED_NOT:
	case ENDED_LOST:
		break;
	}
	return task_release(task, proof, 0, &w->given);
}

static struct task ended_as(struct world *w, const struct task *task, enum claim_end how)
{
	struct proof proof = proof_of(task);
	struct task_decision decision = end_as(w, task, &proof, how);

	assert_int_equal(decision.refusal, REFUSED_NOTHING);
	assert_int_not_equal(decision.event, EVENT_NONE);
	assert_int_equal(decision.task.ended, how);
	assert_false(task_is_claimed(&decision.task));
	return decision.task;
}

static void completion_makes_it_done(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);
	struct task_decision decision = complete(w, &task);

	moved(decision, EVENT_TASK_COMPLETED, TASK_DONE);
	assert_int_equal(decision.follow, FOLLOW_PARENT_DONE);
	assert_int_equal(decision.task.crashes, 0);
	assert_int_equal(decision.task.spent, 0);
	assert_int_equal(decision.task.attempt, 1);
	assert_false(task_is_claimed(&decision.task));
}

static void an_unconfirmed_claim_may_end_in_every_way(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < ENDS; i++) {
		struct task task = claimed_task(w);

		ended_as(w, &task, ends[i]);
	}
}

static void a_claim_that_asks_may_end_in_every_way(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < ENDS; i++) {
		struct task task = asking_task(w);

		ended_as(w, &task, ends[i]);
	}
}

static void the_same_report_again_is_answered_as_the_first_time(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < ENDS; i++) {
		struct task task = running_task(w);
		struct proof proof = proof_of(&task);

		task = ended_as(w, &task, ends[i]);
		repeated(end_as(w, &task, &proof, ends[i]), &task);
		pass_time(w, HOURS(1));
		repeated(end_as(w, &task, &proof, ends[i]), &task);
	}
}

static void another_report_than_the_first_is_refused(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < ENDS; i++) {
		for (int j = 0; j < ENDS; j++) {
			struct task task = running_task(w);
			struct proof proof = proof_of(&task);

			if (i == j)
				continue;
			task = ended_as(w, &task, ends[i]);
			refused(end_as(w, &task, &proof, ends[j]), &task, REFUSED_ALREADY_TERMINAL);
		}
	}
}

static void a_repeat_is_still_known_after_an_operators_retry(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);
	struct proof proof = proof_of(&task);

	task = ended_as(w, &task, ENDED_COMPLETE);
	task = moved(task_retry(&task, false, &w->given), EVENT_TASK_RETRIED, TASK_READY);
	repeated(task_complete(&task, &proof, &w->given), &task);
}

static void after_the_next_claim_an_old_report_is_stale(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < ENDS; i++) {
		struct task task = running_task(w);
		struct proof old = proof_of(&task);

		task = ended_as(w, &task, ENDED_RELEASE);
		task = moved(claim_by(w, &task, &w->beater), EVENT_TASK_CLAIMED, TASK_CLAIMED);
		refused(end_as(w, &task, &old, ends[i]), &task, REFUSED_STALE_CLAIM);
	}
}

static void a_stale_fence_never_ends_anything(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < ENDS; i++) {
		struct task task = running_task(w);
		struct proof older = proof_with(BEATER, task.fence - 1);
		struct proof newer = proof_with(BEATER, task.fence + 1);
		struct proof none = proof_with(BEATER, 0);

		refused(end_as(w, &task, &older, ends[i]), &task, REFUSED_STALE_CLAIM);
		refused(end_as(w, &task, &newer, ends[i]), &task, REFUSED_STALE_CLAIM);
		refused(end_as(w, &task, &none, ends[i]), &task, REFUSED_STALE_CLAIM);
	}
}

static void the_right_fence_in_other_hands_ends_nothing(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < ENDS; i++) {
		struct task task = running_task(w);
		struct proof thief = proof_with(RIVAL, task.fence);

		refused(end_as(w, &task, &thief, ends[i]), &task, REFUSED_STALE_CLAIM);
	}
}

static void a_task_that_was_never_claimed_cannot_end(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct proof proof = proof_with(BEATER, 0), name = by_name(BEATER);

	for (int i = 0; i < ENDS; i++) {
		refused(end_as(w, &task, &proof, ends[i]), &task, REFUSED_STALE_CLAIM);
		refused(end_as(w, &task, &name, ends[i]), &task, REFUSED_NOT_CLAIMED);
	}
}

static void a_report_after_the_lease_was_lost_is_stale_and_its_result_is_kept(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);
	struct proof proof = proof_of(&task);

	task = moved(task_lose(&task, &w->given), EVENT_TASK_EXPIRED, TASK_READY);
	struct task_decision late = task_complete(&task, &proof, &w->given);
	refused(late, &task, REFUSED_STALE_CLAIM);
	assert_true(late.orphan);
	task = moved(claim_by(w, &task, &w->rival), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	late = task_complete(&task, &proof, &w->given);
	refused(late, &task, REFUSED_STALE_CLAIM);
	assert_true(late.orphan);
}

static void a_fence_that_was_never_issued_leaves_no_orphan(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w), fresh = ready_task(w);
	struct proof future = proof_with(BEATER, task.fence + 1),
		     ancient = proof_with(BEATER, task.fence - 1);
	struct proof zero = proof_with(BEATER, 0);

	assert_false(task_complete(&task, &future, &w->given).orphan);
	assert_false(task_complete(&task, &ancient, &w->given).orphan);
	assert_false(task_complete(&task, &zero, &w->given).orphan);
	assert_false(task_complete(&fresh, &zero, &w->given).orphan);
}

static void a_result_from_before_a_restore_is_kept_too(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);
	struct proof proof = proof_of(&task);

	w->given.generation++;
	task = moved(task_void(&task, &w->given), EVENT_TASK_REQUEUED, TASK_READY);
	struct task_decision late = task_complete(&task, &proof, &w->given);
	refused(late, &task, REFUSED_STALE_CLAIM);
	assert_true(late.orphan);
}

static void a_result_from_before_a_restore_is_kept_after_the_next_claim(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);
	struct proof proof = proof_of(&task);

	w->given.generation++;
	task = moved(task_void(&task, &w->given), EVENT_TASK_REQUEUED, TASK_READY);
	task = moved(claim_by(w, &task, &w->rival), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	struct task_decision late = task_complete(&task, &proof, &w->given);
	refused(late, &task, REFUSED_STALE_CLAIM);
	assert_true(late.orphan);
}

static void a_fence_beyond_the_count_of_claims_was_not_issued_before_a_restore(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);
	struct proof invented = proof_with(BEATER, task.fence + 2);

	w->given.generation++;
	task = moved(task_void(&task, &w->given), EVENT_TASK_REQUEUED, TASK_READY);
	task = moved(claim_by(w, &task, &w->rival), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	struct task_decision late = task_complete(&task, &invented, &w->given);
	refused(late, &task, REFUSED_STALE_CLAIM);
	assert_false(late.orphan);
}

static void a_name_alone_ends_its_own_claim_in_every_way(void **state)
{
	struct world *w = *state;
	struct proof name = by_name(NAMED);

	for (int i = 0; i < ENDS; i++) {
		struct task task = claimed_by(w, &w->named);
		struct task_decision decision = end_as(w, &task, &name, ends[i]);

		assert_int_equal(decision.refusal, REFUSED_NOTHING);
		assert_int_equal(decision.task.ended, ends[i]);
	}
}

static void a_name_alone_does_not_end_anothers_claim(void **state)
{
	struct world *w = *state;
	struct task task = claimed_by(w, &w->named);
	struct proof name = by_name(RIVAL);

	for (int i = 0; i < ENDS; i++)
		refused(end_as(w, &task, &name, ends[i]), &task, REFUSED_CLAIMED_BY_OTHER);
}

static void a_name_alone_cannot_end_what_has_ended(void **state)
{
	struct world *w = *state;
	struct task done = done_task(w), review = review_task(w);
	struct proof name = by_name(BEATER);

	for (int i = 0; i < ENDS; i++) {
		refused(end_as(w, &done, &name, ends[i]), &done, REFUSED_ALREADY_TERMINAL);
		refused(end_as(w, &review, &name, ends[i]), &review, REFUSED_NOT_CLAIMED);
	}
}

static void a_release_spends_nothing_and_undoes_only_the_provisional_crash(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	task = moved(task_lose(&task, &w->given), EVENT_TASK_EXPIRED, TASK_READY);
	task = moved(claim_by(w, &task, &w->beater), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	assert_int_equal(task.crashes, 2);
	task = moved(release(w, &task), EVENT_TASK_RELEASED, TASK_READY);
	assert_int_equal(task.crashes, 1);
	assert_int_equal(task.spent, 0);
	assert_int_equal(task.attempt, 2);
}

static void a_release_with_a_delay_is_scheduled(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);
	struct proof proof = proof_of(&task);

	task = moved(
		task_release(&task, &proof, SECONDS(30), &w->given), EVENT_TASK_RELEASED, TASK_SCHEDULED);
	assert_int_equal(task.ready_at_ms, w->given.now.wall_ms + SECONDS(30));
}

static void a_release_while_asking_leaves_the_question_open(void **state)
{
	struct task task = asking_unclaimed(*state);

	assert_int_equal(task.state, TASK_ASKING);
	assert_int_equal(task.crashes, 0);
	assert_int_equal(task.interruptions, 0);
}

static void a_block_undoes_the_provisional_crash_and_says_why(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);
	struct task_decision decision = block(w, &task);

	moved(decision, EVENT_TASK_BLOCKED, TASK_BLOCKED);
	assert_int_equal(decision.task.code, CODE_BAD_WORKDIR);
	assert_int_equal(decision.task.crashes, 0);
	assert_int_equal(decision.task.spent, 0);
	assert_int_equal(decision.follow, FOLLOW_NOTHING);
}

static void the_right_worker_and_fence_of_another_principal_end_nothing(void **state)
{
	struct world *w = *state;
	struct worker worker = w->beater;
	struct task task = ready_task(w);

	worker.principal = 7;
	task = claim_by(w, &task, &worker).task;
	assert_int_equal(task.claimant, 7);
	struct proof proof = proof_of(&task);
	struct task_decision decision = task_complete(&task, &proof, &w->given);
	refused(decision, &task, REFUSED_STALE_CLAIM);
	assert_true(decision.foreign);
	decision = task_progress(&task, &proof, 0, &w->given);
	refused(decision, &task, REFUSED_STALE_CLAIM);
	assert_true(decision.foreign);
	proof.by_name = true;
	refused(task_complete(&task, &proof, &w->given), &task, REFUSED_CLAIMED_BY_OTHER);
	proof.principal = 7;
	moved(task_complete(&task, &proof, &w->given), EVENT_TASK_COMPLETED, TASK_DONE);
}

static void another_principal_cannot_repeat_a_report(void **state)
{
	struct world *w = *state;
	struct worker worker = w->beater;
	struct task task = ready_task(w);

	worker.principal = 7;
	task = claim_by(w, &task, &worker).task;
	struct proof proof = proof_of(&task);
	proof.principal = 7;
	task = task_complete(&task, &proof, &w->given).task;
	repeated(task_complete(&task, &proof, &w->given), &task);
	proof.principal = 8;
	struct task_decision decision = task_complete(&task, &proof, &w->given);
	refused(decision, &task, REFUSED_STALE_CLAIM);
	assert_true(decision.foreign);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(completion_makes_it_done),
		TEST(an_unconfirmed_claim_may_end_in_every_way),
		TEST(a_claim_that_asks_may_end_in_every_way),
		TEST(the_same_report_again_is_answered_as_the_first_time),
		TEST(another_report_than_the_first_is_refused),
		TEST(a_repeat_is_still_known_after_an_operators_retry),
		TEST(after_the_next_claim_an_old_report_is_stale),
		TEST(a_stale_fence_never_ends_anything),
		TEST(the_right_fence_in_other_hands_ends_nothing),
		TEST(the_right_worker_and_fence_of_another_principal_end_nothing),
		TEST(another_principal_cannot_repeat_a_report),
		TEST(a_task_that_was_never_claimed_cannot_end),
		TEST(a_report_after_the_lease_was_lost_is_stale_and_its_result_is_kept),
		TEST(a_fence_that_was_never_issued_leaves_no_orphan),
		TEST(a_result_from_before_a_restore_is_kept_too),
		TEST(a_result_from_before_a_restore_is_kept_after_the_next_claim),
		TEST(a_fence_beyond_the_count_of_claims_was_not_issued_before_a_restore),
		TEST(a_name_alone_ends_its_own_claim_in_every_way),
		TEST(a_name_alone_does_not_end_anothers_claim),
		TEST(a_name_alone_cannot_end_what_has_ended),
		TEST(a_release_spends_nothing_and_undoes_only_the_provisional_crash),
		TEST(a_release_with_a_delay_is_scheduled),
		TEST(a_release_while_asking_leaves_the_question_open),
		TEST(a_block_undoes_the_provisional_crash_and_says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
