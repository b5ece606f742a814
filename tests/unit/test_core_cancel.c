#include "core_fixture.h"

static void what_nobody_holds_is_called_off_at_once(void **state)
{
	static const enum task_state free_states[] = {
		TASK_PENDING, TASK_SCHEDULED, TASK_WAITING, TASK_READY, TASK_REVIEW, TASK_BLOCKED};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof free_states / sizeof free_states[0]; i++) {
		struct task task = task_in(w, free_states[i]);
		struct task_decision decision = task_cancel(&task, NULL, &w->given);

		moved(decision, EVENT_TASK_CANCELLED, TASK_CANCELLED);
		assert_int_equal(decision.follow, FOLLOW_PARENT_DEAD);
	}
}

static void an_open_question_without_a_claim_is_called_off_at_once(void **state)
{
	struct world *w = *state;
	struct task task = asking_unclaimed(w);

	moved(task_cancel(&task, NULL, &w->given), EVENT_TASK_CANCELLED, TASK_CANCELLED);
}

static void work_under_a_claim_lease_is_called_off_at_once(void **state)
{
	struct world *w = *state;
	struct task task = running_plain(w);
	struct proof proof = proof_of(&task);

	task = moved(task_cancel(&task, &w->plain, &w->given), EVENT_TASK_CANCELLED, TASK_CANCELLED);
	assert_false(task_is_claimed(&task));
	struct task_decision late = task_complete(&task, &proof, &w->given);
	refused(late, &task, REFUSED_STALE_CLAIM);
	assert_true(late.orphan);
}

static void an_unconfirmed_claim_is_called_off_at_once(void **state)
{
	struct world *w = *state;
	struct task task = claimed_task(w);

	moved(cancel(w, &task), EVENT_TASK_CANCELLED, TASK_CANCELLED);
}

static void work_under_a_beating_worker_stays_running_until_it_has_stopped(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);
	struct task_decision decision = cancel(w, &task);

	task = noted(decision, &task, EVENT_TASK_UPDATED);
	assert_int_equal(task.state, TASK_RUNNING);
	assert_int_equal(decision.follow, FOLLOW_NOTHING);
	assert_true(task.claim.stopping);
	assert_true(task_must_stop(&task, &w->given));
	repeated(cancel(w, &task), &task);
}

static void a_question_under_a_beating_worker_waits_too(void **state)
{
	struct world *w = *state;
	struct task task = asking_task(w);

	task = noted(cancel(w, &task), &task, EVENT_TASK_UPDATED);
	assert_true(task_must_stop(&task, &w->given));
	moved(task_lose(&task, &w->given), EVENT_TASK_CANCELLED, TASK_CANCELLED);
}

static void work_bound_to_a_dead_worker_is_called_off_at_once(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	pass_time(w, SECONDS(60));
	w->beater = worker_expire(&w->beater, &w->given).worker;
	moved(cancel(w, &task), EVENT_TASK_CANCELLED, TASK_CANCELLED);
}

static void a_quiet_or_terminating_worker_still_beats(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	w->beater = worker_quiet(&w->beater).worker;
	noted(cancel(w, &task), &task, EVENT_TASK_UPDATED);
	w->beater = worker_terminate(&w->beater).worker;
	noted(cancel(w, &task), &task, EVENT_TASK_UPDATED);
}

static void completion_beats_a_pending_cancel(void **state)
{
	struct world *w = *state;
	struct task task = stopping_task(w);
	struct task_decision decision = complete(w, &task);

	moved(decision, EVENT_TASK_COMPLETED, TASK_DONE);
	assert_int_equal(decision.follow, FOLLOW_PARENT_DONE);
}

static void assert_cancelled(struct task_decision decision)
{
	moved(decision, EVENT_TASK_CANCELLED, TASK_CANCELLED);
	assert_int_equal(decision.follow, FOLLOW_PARENT_DEAD);
	assert_false(task_is_claimed(&decision.task));
	assert_int_equal(decision.task.spent, 0);
}

static void every_failure_under_a_pending_cancel_is_the_cancel(void **state)
{
	struct world *w = *state;

	for (int code = CODE_OTHER; code < FAILURE_CODE_COUNT; code++) {
		struct task task = stopping_task(w);

		assert_cancelled(fail_with(w, &task, (enum failure_code)code));
	}
}

static void a_release_block_or_return_under_a_pending_cancel_is_the_cancel(void **state)
{
	struct world *w = *state;
	struct task task = stopping_task(w);

	assert_cancelled(release(w, &task));
	assert_cancelled(block(w, &task));
	assert_cancelled(task_return(&task, &w->given));
}

static void a_report_for_review_under_a_pending_cancel_is_the_cancel(void **state)
{
	struct world *w = *state;
	struct task task = stopping_task(w);

	assert_cancelled(report(w, &task));
}

static void a_lost_worker_under_a_pending_cancel_is_the_cancel(void **state)
{
	struct world *w = *state;
	struct task task = stopping_task(w);

	assert_cancelled(task_lose(&task, &w->given));
}

static void a_lease_that_ends_under_a_pending_cancel_is_the_cancel(void **state)
{
	struct world *w = *state;
	struct task task = stopping_task(w);

	task = silent(task_unbind(&task, BEATER, &w->given), &task);
	pass_time(w, MINUTES(2) - 1);
	unchanged(expire(w, &task), &task);
	pass_time(w, 1);
	assert_cancelled(expire(w, &task));
}

static void an_answer_does_not_lift_a_pending_cancel(void **state)
{
	struct world *w = *state;
	struct task task = asking_task(w);

	task = noted(cancel(w, &task), &task, EVENT_TASK_UPDATED);
	task = moved(task_answer(&task, &no_questions, 0, &w->given), EVENT_TASK_ANSWERED, TASK_RUNNING);
	assert_true(task.claim.stopping);
}

static void done_and_failed_tasks_cannot_be_called_off(void **state)
{
	struct world *w = *state;
	struct task done = done_task(w), failed = failed_task(w);

	refused(cancel(w, &done), &done, REFUSED_ALREADY_TERMINAL);
	refused(cancel(w, &failed), &failed, REFUSED_ALREADY_TERMINAL);
}

static void a_second_cancel_is_answered_as_the_first(void **state)
{
	struct world *w = *state;
	struct task task = cancelled_task(w);

	repeated(cancel(w, &task), &task);
}

static void the_report_that_confirmed_a_cancel_may_be_repeated(void **state)
{
	struct world *w = *state;
	struct task task = stopping_task(w);
	struct proof proof = proof_of(&task);
	struct failure failure = failure_of(CODE_STOPPED);

	task = task_fail(&task, &proof, &failure, &w->given).task;
	assert_int_equal(task.state, TASK_CANCELLED);
	repeated(task_fail(&task, &proof, &failure, &w->given), &task);
}

static void calling_off_a_claim_counts_as_no_crash(void **state)
{
	struct world *w = *state;
	struct task task = running_plain(w);

	task = moved(task_cancel(&task, &w->plain, &w->given), EVENT_TASK_CANCELLED, TASK_CANCELLED);
	assert_int_equal(task.crashes, 0);
	assert_int_equal(task.spent, 0);
}

static void what_is_stopped_is_blocked_until_a_person_acts(void **state)
{
	static const enum task_state states[] = {
		TASK_PENDING, TASK_SCHEDULED, TASK_WAITING, TASK_READY, TASK_CLAIMED};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
		struct task task = task_in(w, states[i]);
		uint32_t crashes = task.crashes - task_is_claimed(&task);
		struct task stopped = moved(task_stop(&task, &w->beater), EVENT_TASK_BLOCKED, TASK_BLOCKED);

		assert_false(task_is_claimed(&stopped));
		assert_int_equal(stopped.code, CODE_STOPPED);
		assert_int_equal(stopped.crashes, crashes);
		repeated(task_stop(&stopped, &w->beater), &stopped);
	}
}

static void a_stop_waits_for_a_worker_that_beats(void **state)
{
	struct world *w = *state;
	struct task running = running_task(w), plain = running_plain(w);

	running = noted(task_stop(&running, &w->beater), &running, EVENT_TASK_UPDATED);
	assert_true(task_must_stop(&running, &w->given));
	repeated(task_stop(&running, &w->beater), &running);
	struct proof proof = proof_of(&running);
	struct task released =
		moved(task_release(&running, &proof, 0, &w->given), EVENT_TASK_BLOCKED, TASK_BLOCKED);
	assert_int_equal(released.code, CODE_STOPPED);
	moved(task_lose(&running, &w->given), EVENT_TASK_BLOCKED, TASK_BLOCKED);
	moved(task_report(&running, &proof, &w->given), EVENT_TASK_BLOCKED, TASK_BLOCKED);
	moved(task_complete(&running, &proof, &w->given), EVENT_TASK_COMPLETED, TASK_DONE);
	/* a cancel means more */
	struct task cancelled = noted(cancel(w, &running), &running, EVENT_TASK_UPDATED);
	moved(task_lose(&cancelled, &w->given), EVENT_TASK_CANCELLED, TASK_CANCELLED);
	moved(task_stop(&plain, &w->plain), EVENT_TASK_BLOCKED, TASK_BLOCKED);
}

static void what_is_over_or_being_cancelled_cannot_be_stopped_any_more(void **state)
{
	static const enum task_state states[] = {
		TASK_REVIEW, TASK_BLOCKED, TASK_FAILED, TASK_DONE, TASK_CANCELLED};
	struct world *w = *state;
	struct task stopping = stopping_task(w);

	for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
		struct task task = task_in(w, states[i]);
		repeated(task_stop(&task, &w->beater), &task);
	}
	repeated(task_stop(&stopping, &w->beater), &stopping);
}

static void a_session_starts_with_a_claim_and_ends_with_it(void **state)
{
	struct world *w = *state;
	struct task ready = ready_task(w), running = running_task(w), done = done_task(w);

	assert_int_equal(
		task_session_event(EVENT_TASK_CLAIMED, ready.fence, false, &running), EVENT_SESSION_STARTED);
	assert_int_equal(
		task_session_event(EVENT_TASK_PROGRESSED, running.fence, true, &running), EVENT_NONE);
	assert_int_equal(task_session_event(EVENT_TASK_CLAIMED, running.fence - 1, true, &running),
		EVENT_SESSION_STARTED); /* taken up again */
	assert_int_equal(
		task_session_event(EVENT_TASK_COMPLETED, done.fence, true, &done), EVENT_SESSION_ENDED);
	assert_int_equal(
		task_session_event(EVENT_TASK_EXPIRED, ready.fence, true, &ready), EVENT_SESSION_GONE);
	assert_int_equal(task_session_event(EVENT_TASK_UPDATED, ready.fence, false, &ready), EVENT_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_nobody_holds_is_called_off_at_once),
		TEST(an_open_question_without_a_claim_is_called_off_at_once),
		TEST(work_under_a_claim_lease_is_called_off_at_once),
		TEST(an_unconfirmed_claim_is_called_off_at_once),
		TEST(work_under_a_beating_worker_stays_running_until_it_has_stopped),
		TEST(a_question_under_a_beating_worker_waits_too),
		TEST(work_bound_to_a_dead_worker_is_called_off_at_once),
		TEST(a_quiet_or_terminating_worker_still_beats),
		TEST(completion_beats_a_pending_cancel),
		TEST(every_failure_under_a_pending_cancel_is_the_cancel),
		TEST(a_release_block_or_return_under_a_pending_cancel_is_the_cancel),
		TEST(a_report_for_review_under_a_pending_cancel_is_the_cancel),
		TEST(a_lost_worker_under_a_pending_cancel_is_the_cancel),
		TEST(a_lease_that_ends_under_a_pending_cancel_is_the_cancel),
		TEST(an_answer_does_not_lift_a_pending_cancel),
		TEST(done_and_failed_tasks_cannot_be_called_off),
		TEST(a_second_cancel_is_answered_as_the_first),
		TEST(the_report_that_confirmed_a_cancel_may_be_repeated),
		TEST(calling_off_a_claim_counts_as_no_crash),
		TEST(what_is_stopped_is_blocked_until_a_person_acts),
		TEST(a_stop_waits_for_a_worker_that_beats),
		TEST(what_is_over_or_being_cancelled_cannot_be_stopped_any_more),
		TEST(a_session_starts_with_a_claim_and_ends_with_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
