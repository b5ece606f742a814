#include "core_fixture.h"

static void a_question_keeps_the_claim(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	task = moved(ask(w, &task), EVENT_TASK_ASKED, TASK_ASKING);
	assert_int_equal(task.claim.holder, BEATER);
	assert_int_equal(task.claim.clock, CLOCK_WORKER);
	assert_int_equal(task.claim.asked_at_ms, w->given.now.lease_ms);
}

static void an_unconfirmed_claim_may_ask(void **state)
{
	struct world *w = *state;
	struct task task = claimed_task(w);

	task = moved(ask(w, &task), EVENT_TASK_ASKED, TASK_ASKING);
	assert_int_equal(task.claim.verify_at_ms, 0);
}

static void a_second_question_while_one_is_open_is_refused(void **state)
{
	struct world *w = *state;
	struct task task = asking_task(w);

	refused(ask(w, &task), &task, REFUSED_BAD_TRANSITION);
}

static void only_the_holder_asks(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w), ready = ready_task(w);
	struct proof stale = proof_with(BEATER, task.fence - 1), thief = proof_with(RIVAL, task.fence);
	struct proof name = by_name(RIVAL);

	refused(task_ask(&task, &no_questions, &stale, &w->beater, 0, &w->given), &task, REFUSED_STALE_CLAIM);
	refused(task_ask(&task, &no_questions, &thief, &w->beater, 0, &w->given), &task, REFUSED_STALE_CLAIM);
	refused(task_ask(&task, &no_questions, &name, &w->beater, 0, &w->given), &task,
		REFUSED_CLAIMED_BY_OTHER);
	refused(task_ask(&ready, &no_questions, &name, &w->plain, 0, &w->given), &ready, REFUSED_NOT_CLAIMED);
	name = by_name(BEATER);
	moved(task_ask(&task, &no_questions, &name, &w->beater, 0, &w->given), EVENT_TASK_ASKED, TASK_ASKING);
}

static void an_answer_lets_the_claim_go_on(void **state)
{
	struct world *w = *state;
	struct task task = asking_task(w);
	uint64_t fence = task.fence;

	task = moved(task_answer(&task, &no_questions, 0, &w->given), EVENT_TASK_ANSWERED, TASK_RUNNING);
	assert_int_equal(task.fence, fence);
	assert_int_equal(task.claim.asked_at_ms, 0);
	assert_int_equal(task.claim.holder, BEATER);
}

static void the_time_limit_stands_still_while_a_person_thinks(void **state)
{
	struct world *w = *state;
	struct task task = asking_task(w);
	int64_t run_until_ms = task.claim.run_until_ms;

	pass_time(w, HOURS(24));
	assert_false(task_must_stop(&task, &w->given));
	task = moved(task_answer(&task, &no_questions, 0, &w->given), EVENT_TASK_ANSWERED, TASK_RUNNING);
	assert_int_equal(task.claim.run_until_ms, run_until_ms + HOURS(24));
	pass_time(w, MINUTES(30) - 1);
	assert_false(task_must_stop(&task, &w->given));
	pass_time(w, 1);
	assert_true(task_must_stop(&task, &w->given));
}

static void a_claim_lease_that_ends_while_asking_leaves_the_question_open(void **state)
{
	struct world *w = *state;
	struct task task = running_plain(w);

	task = moved(ask(w, &task), EVENT_TASK_ASKED, TASK_ASKING);
	pass_time(w, MINUTES(15));
	task = noted(expire(w, &task), &task, EVENT_TASK_EXPIRED);
	assert_false(task_is_claimed(&task));
	assert_int_equal(task.crashes, 0);
	assert_int_equal(task.spent, 0);
}

static void a_worker_that_is_lost_while_asking_leaves_the_question_open(void **state)
{
	struct world *w = *state;
	struct task task = asking_task(w);

	task = noted(task_lose(&task, &w->given), &task, EVENT_TASK_EXPIRED);
	assert_false(task_is_claimed(&task));
	assert_int_equal(task.ended, ENDED_LOST);
	assert_int_equal(task.crashes, 0);
	unchanged(task_lose(&task, &w->given), &task);
}

static void a_crash_while_asking_leaves_the_question_open(void **state)
{
	struct world *w = *state;

	w->beater.process.host = HOST;
	struct task asking = asking_task(w);
	struct task task = noted(fail_with(w, &asking, CODE_WORKER_CRASHED), &asking, EVENT_TASK_FAILED);
	struct proof proof = proof_with(BEATER, asking.fence);
	struct failure crash = failure_of(CODE_WORKER_CRASHED);

	assert_false(task_is_claimed(&task));
	assert_int_equal(task.crashes, 0);
	assert_int_equal(task.interruptions, 0);
	assert_int_equal(task.resume_host, HOST);
	repeated(task_fail(&task, &proof, &crash, &w->given), &task);
	crash.no_retry = true;
	moved(task_fail(&asking, &proof, &crash, &w->given), EVENT_TASK_FAILED, TASK_FAILED);
}

static void an_answer_without_a_claim_makes_it_ready_now(void **state)
{
	struct world *w = *state;
	struct task task = asking_unclaimed(w);

	pass_time(w, HOURS(3));
	task = moved(task_answer(&task, &no_questions, 0, &w->given), EVENT_TASK_ANSWERED, TASK_READY);
	assert_int_equal(task.ready_at_ms, w->given.now.wall_ms);
	task = moved(claim_by(w, &task, &w->rival), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	assert_int_equal(task.attempt, 2);
	assert_int_equal(task.crashes, 1);
}

static void an_open_question_without_a_claim_is_not_claimed(void **state)
{
	struct world *w = *state;
	struct task task = asking_unclaimed(w);

	refused(claim_by(w, &task, &w->rival), &task, REFUSED_BAD_TRANSITION);
}

static void only_an_open_question_is_answered(void **state)
{
	struct world *w = *state;

	for (int s = TASK_PENDING; s < TASK_STATE_COUNT; s++) {
		struct task task = task_in(w, (enum task_state)s);

		if (s != TASK_ASKING)
			refused(task_answer(&task, &no_questions, 0, &w->given), &task,
				REFUSED_BAD_TRANSITION);
	}
}

static void a_second_answer_is_refused(void **state)
{
	struct world *w = *state;
	struct task task = asking_task(w);

	task = moved(task_answer(&task, &no_questions, 0, &w->given), EVENT_TASK_ANSWERED, TASK_RUNNING);
	refused(task_answer(&task, &no_questions, 0, &w->given), &task, REFUSED_BAD_TRANSITION);
}

static void a_question_ends_a_row_of_interruptions(void **state)
{
	struct world *w = *state;
	struct task task = claimed_task(w);

	task = moved(release(w, &task), EVENT_TASK_RELEASED, TASK_READY);
	task = moved(claim_by(w, &task, &w->beater), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	assert_int_equal(task.interruptions, 1);
	task = moved(ask(w, &task), EVENT_TASK_ASKED, TASK_ASKING);
	assert_int_equal(task.interruptions, 0);
}

static void a_task_may_ask_again_after_its_answer(void **state)
{
	struct world *w = *state;
	struct task task = asking_task(w);

	task = moved(task_answer(&task, &no_questions, 0, &w->given), EVENT_TASK_ANSWERED, TASK_RUNNING);
	pass_time(w, SECONDS(1));
	task = moved(ask(w, &task), EVENT_TASK_ASKED, TASK_ASKING);
	assert_int_equal(task.claim.asked_at_ms, w->given.now.lease_ms);
}

/* ---- parking ---- */

static void a_process_that_waits_too_long_is_to_be_parked(void **state)
{
	struct world *w = *state;
	struct task task = asking_task(w), running = running_task(w);

	pass_time(w, MINUTES(2) - 1);
	assert_false(task_must_park(&task, &w->given));
	pass_time(w, 1);
	assert_true(task_must_park(&task, &w->given));
	assert_false(task_must_stop(&task, &w->given));
	assert_false(task_must_park(&running, &w->given));
	task = noted(release(w, &task), &task, EVENT_TASK_RELEASED);
	assert_false(task_must_park(&task, &w->given));
	assert_int_equal(task.spent, 0);
	assert_int_equal(task.crashes, 0);
	assert_int_equal(task.interruptions, 0);
}

static void nobody_is_parked_where_processes_may_wait_for_ever(void **state)
{
	struct world *w = *state;
	struct task task = asking_task(w);

	w->rules.ask_park_ms = 0;
	pass_time(w, HOURS(24));
	assert_false(task_must_park(&task, &w->given));
}

static void a_claim_lease_is_renewed_while_it_asks_and_not_past_the_parking_time(void **state)
{
	struct world *w = *state;
	struct task task = running_plain(w);

	task = moved(ask(w, &task), EVENT_TASK_ASKED, TASK_ASKING);
	pass_time(w, MINUTES(1));
	task = noted(progress(w, &task), &task, EVENT_TASK_PROGRESSED);
	int64_t deadline_ms = task.claim.lease.deadline_ms;
	assert_int_equal(deadline_ms, w->given.now.lease_ms + MINUTES(15));
	pass_time(w, MINUTES(1));
	task = noted(progress(w, &task), &task, EVENT_TASK_PROGRESSED);
	assert_int_equal(task.claim.lease.deadline_ms, deadline_ms);
	assert_int_equal(task_renew(&task, &w->given).task.claim.lease.deadline_ms, deadline_ms);
}

static void the_time_that_is_left_stands_still_too(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	pass_time(w, MINUTES(10));
	task = moved(ask(w, &task), EVENT_TASK_ASKED, TASK_ASKING);
	pass_time(w, MINUTES(1));
	assert_int_equal(task_run_remaining_ms(&task, &w->given), MINUTES(20));
	task = moved(task_answer(&task, &no_questions, 0, &w->given), EVENT_TASK_ANSWERED, TASK_RUNNING);
	assert_int_equal(task_run_remaining_ms(&task, &w->given), MINUTES(20));
	pass_time(w, MINUTES(21));
	assert_int_equal(task_run_remaining_ms(&task, &w->given), -MINUTES(1));
}

/* ---- the host that asked ---- */

static struct task answered_on(struct world *w, uint32_t host)
{
	w->beater.process.host = host;
	struct task task = asking_unclaimed(w);

	return moved(task_answer(&task, &no_questions, 0, &w->given), EVENT_TASK_ANSWERED, TASK_READY);
}

static void after_the_answer_only_the_host_that_asked_may_claim_for_ten_minutes(void **state)
{
	struct world *w = *state;
	struct task task = answered_on(w, HOST);

	assert_int_equal(task.resume_until_ms, w->given.now.wall_ms + MINUTES(10));
	refused(claim_by(w, &task, &w->plain), &task, REFUSED_FORBIDDEN);
	w->rival.process.host = OTHER_HOST;
	refused(claim_by(w, &task, &w->rival), &task, REFUSED_FORBIDDEN);
	w->rival.process.host = HOST;
	task = moved(claim_by(w, &task, &w->rival), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	assert_int_equal(task.resume_host, 0);
	assert_int_equal(task.resume_until_ms, 0);
}

static void then_it_is_for_anyone(void **state)
{
	struct world *w = *state;
	struct task task = answered_on(w, HOST);

	assert_int_equal(task_next_wall_ms(&task), task.resume_until_ms);
	pass_time(w, MINUTES(10) - 1);
	unchanged(task_due(&task, &w->given), &task);
	pass_time(w, 1);
	task = noted(task_due(&task, &w->given), &task, EVENT_TASK_REQUEUED);
	assert_int_equal(task_next_wall_ms(&task), INT64_MAX);
	unchanged(task_due(&task, &w->given), &task);
	moved(claim_by(w, &task, &w->plain), EVENT_TASK_CLAIMED, TASK_CLAIMED);
}

static void of_a_claimant_that_has_no_host_nobody_is_kept_out(void **state)
{
	struct world *w = *state;
	struct task task = answered_on(w, 0);

	assert_int_equal(task.resume_until_ms, 0);
	moved(claim_by(w, &task, &w->rival), EVENT_TASK_CLAIMED, TASK_CLAIMED);
}

static void a_lost_lease_and_a_restore_do_not_forget_the_host(void **state)
{
	struct world *w = *state;

	w->beater.process.host = HOST;
	struct task task = asking_task(w);
	struct task lost = noted(task_lose(&task, &w->given), &task, EVENT_TASK_EXPIRED);
	struct task voided = noted(task_void(&task, &w->given), &task, EVENT_TASK_REQUEUED);

	assert_int_equal(lost.resume_host, HOST);
	assert_int_equal(voided.resume_host, HOST);
}

/* Its process has waited so long that it is being ended, and now there is the answer. */
static struct task answered_late(struct world *w)
{
	w->beater.process.host = HOST;
	struct task task = asking_task(w);

	pass_time(w, MINUTES(2));
	return moved(task_answer(&task, &no_questions, 0, &w->given), EVENT_TASK_ANSWERED, TASK_RUNNING);
}

static void an_answer_that_comes_while_its_process_is_ended_is_kept_for_the_host_too(void **state)
{
	struct world *w = *state;
	struct task task = answered_late(w);
	int64_t until_ms = w->given.now.wall_ms + MINUTES(10);

	task = noted(progress(w, &task), &task, EVENT_TASK_PROGRESSED);
	assert_int_equal(task_next_wall_ms(&task), INT64_MAX);
	pass_time(w, SECONDS(10));
	task = moved(release(w, &task), EVENT_TASK_RELEASED, TASK_READY);
	assert_int_equal(task.resume_until_ms, until_ms);
	w->rival.process.host = OTHER_HOST;
	refused(claim_by(w, &task, &w->rival), &task, REFUSED_FORBIDDEN);
	w->rival.process.host = HOST;
	moved(claim_by(w, &task, &w->rival), EVENT_TASK_CLAIMED, TASK_CLAIMED);
}

static void a_process_that_goes_on_with_its_late_answer_is_held_to_nothing(void **state)
{
	struct world *w = *state;
	struct task task = answered_late(w), lost, again;

	lost = moved(task_lose(&task, &w->given), EVENT_TASK_EXPIRED, TASK_READY);
	assert_int_equal(lost.resume_host, 0);
	again = moved(ask(w, &task), EVENT_TASK_ASKED, TASK_ASKING);
	assert_int_equal(again.resume_host, HOST);
	assert_int_equal(again.resume_until_ms, 0);
	w->beater.process.host = OTHER_HOST; /* it takes its own claim up again, wherever it is now */
	struct claimant by = claimant_of(&w->beater);
	by.resumes = true;
	again = moved(task_claim(&task, &by, QUEUE_OPEN, &w->given), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	assert_int_equal(again.resume_host, 0);
	pass_time(w, MINUTES(10));
	unchanged(task_due(&task, &w->given), &task);
	task = moved(release(w, &task), EVENT_TASK_RELEASED, TASK_READY);
	assert_int_equal(task.resume_host, 0);
}

static void whatever_else_happens_to_it_makes_it_anyones(void **state)
{
	struct world *w = *state;
	struct task task = answered_on(w, HOST), asking = asking_task(w);
	struct task parked = moved(task_park(&task, &w->given), EVENT_TASK_PARKED, TASK_PENDING);

	parked = moved(task_unpark(&parked, &w->given), EVENT_TASK_UNPARKED, TASK_READY);
	assert_int_equal(parked.resume_until_ms, 0);
	asking = moved(fail_with(w, &asking, CODE_WORKER_INIT_FAILED), EVENT_TASK_FAILED, TASK_READY);
	assert_int_equal(asking.resume_host, 0);
	asking = asking_task(w);
	asking = moved(task_answer(&asking, &no_questions, 0, &w->given), EVENT_TASK_ANSWERED, TASK_RUNNING);
	assert_int_equal(asking.resume_host, 0);
}

static void a_change_of_its_fields_keeps_it_for_the_host(void **state)
{
	struct world *w = *state;
	struct task task = answered_on(w, HOST);
	struct task_patch patch = {.set_priority = true, .priority = 9};

	task = noted(task_update(&task, &patch, &w->given), &task, EVENT_TASK_UPDATED);
	assert_int_equal(task.resume_host, HOST);
	refused(claim_by(w, &task, &w->rival), &task, REFUSED_FORBIDDEN);
}

static void why_says_until_when_it_is_kept_for_the_host(void **state)
{
	struct world *w = *state;
	struct task task = answered_on(w, HOST);
	struct surroundings around = {.queue = QUEUE_OPEN, .known = true, .workers = 1};
	struct reason reason = task_why(&task, &around, &w->given);

	assert_int_equal(reason.why, WHY_KEPT_FOR_HOST);
	assert_int_equal(reason.until_ms, task.resume_until_ms);
	around.queue = QUEUE_PAUSED;
	assert_int_equal(task_why(&task, &around, &w->given).why, WHY_PAUSED);
}

/* ---- asked again ---- */

static void what_was_answered_before_is_answered_at_once(void **state)
{
	struct world *w = *state;
	struct task claimed = claimed_task(w), running = running_task(w), asking = asking_task(w);
	struct proof proof = proof_of(&claimed), stale = proof_with(BEATER, running.fence - 1);
	struct task task = moved(task_ask_again(&claimed, &no_questions, &proof, &w->given),
		EVENT_TASK_ANSWERED, TASK_RUNNING);

	assert_int_equal(task.claim.verify_at_ms, 0);
	assert_int_equal(task.claim.asked_at_ms, 0);
	proof = proof_of(&running);
	noted(task_ask_again(&running, &no_questions, &proof, &w->given), &running, EVENT_TASK_ANSWERED);
	refused(task_ask_again(&running, &no_questions, &stale, &w->given), &running, REFUSED_STALE_CLAIM);
	proof = proof_of(&asking);
	refused(task_ask_again(&asking, &no_questions, &proof, &w->given), &asking, REFUSED_BAD_TRANSITION);
}

/* ---- by its number ---- */

static struct questions asked_by(const struct task *task, uint32_t last, uint32_t in_attempt)
{
	return (struct questions){.last = last, .in_attempt = in_attempt, .fence = task->fence};
}

static void an_answer_to_another_question_is_refused(void **state)
{
	struct world *w = *state;
	struct task task = asking_task(w);
	struct questions questions = asked_by(&task, 4, 1);

	refused(task_answer(&task, &questions, 3, &w->given), &task, REFUSED_QUESTION_CHANGED);
	refused(task_answer(&task, &questions, 5, &w->given), &task, REFUSED_QUESTION_CHANGED);
	moved(task_answer(&task, &questions, 4, &w->given), EVENT_TASK_ANSWERED, TASK_RUNNING);
}

static void once_an_attempt_has_asked_twice_an_answer_must_name_its_question(void **state)
{
	struct world *w = *state;
	struct task task = asking_task(w);
	struct questions once = asked_by(&task, 7, 1), twice = asked_by(&task, 8, 2);

	moved(task_answer(&task, &once, 0, &w->given), EVENT_TASK_ANSWERED, TASK_RUNNING);
	refused(task_answer(&task, &twice, 0, &w->given), &task, REFUSED_QUESTION_CHANGED);
	twice.fence--; /* an earlier attempt asked that often */
	moved(task_answer(&task, &twice, 0, &w->given), EVENT_TASK_ANSWERED, TASK_RUNNING);
}

static void questions_are_numbered_through_all_attempts_and_counted_in_each(void **state)
{
	struct task task = running_task(*state);
	struct questions questions = questions_add(&no_questions, &task, true);

	assert_int_equal(questions.last, 1);
	questions = questions_add(&questions, &task, true);
	assert_int_equal(questions.last, 2);
	assert_int_equal(questions.in_attempt, 2);
	task.fence++;
	questions = questions_add(&questions, &task, false);
	assert_int_equal(questions.last, 2);
	assert_int_equal(questions.in_attempt, 1);
	assert_int_equal(questions.fence, task.fence);
}

static void an_attempt_asks_fifty_questions_and_no_more(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);
	struct questions questions = asked_by(&task, 60, 49);
	struct proof proof = proof_of(&task);

	moved(task_ask(&task, &questions, &proof, &w->beater, 0, &w->given), EVENT_TASK_ASKED, TASK_ASKING);
	questions.in_attempt = 50;
	refused(task_ask(&task, &questions, &proof, &w->beater, 0, &w->given), &task, REFUSED_TOO_LARGE);
	refused(task_ask_again(&task, &questions, &proof, &w->given), &task, REFUSED_TOO_LARGE);
	questions.fence--;
	moved(task_ask(&task, &questions, &proof, &w->beater, 0, &w->given), EVENT_TASK_ASKED, TASK_ASKING);
}

static void the_holder_takes_its_question_back(void **state)
{
	struct world *w = *state;
	struct task task = asking_task(w);
	struct questions questions = asked_by(&task, 2, 2);
	struct proof proof = proof_of(&task), stale = proof_with(BEATER, task.fence - 1);

	refused(task_withdraw(&task, &questions, 2, &stale, &w->given), &task, REFUSED_STALE_CLAIM);
	refused(task_withdraw(&task, &questions, 1, &proof, &w->given), &task, REFUSED_QUESTION_CHANGED);
	pass_time(w, MINUTES(1));
	int64_t run_until_ms = task.claim.run_until_ms;
	task = moved(
		task_withdraw(&task, &questions, 2, &proof, &w->given), EVENT_TASK_ANSWERED, TASK_RUNNING);
	assert_int_equal(task.claim.run_until_ms, run_until_ms + MINUTES(1));
	repeated(task_withdraw(&task, &questions, 2, &proof, &w->given), &task);
}

/* ---- by its time ---- */

static struct task asking_until(struct world *w, int64_t answer_by_ms)
{
	struct task task = running_task(w);
	struct proof proof = proof_of(&task);

	return moved(task_ask(&task, &no_questions, &proof, &w->beater, answer_by_ms, &w->given),
		EVENT_TASK_ASKED, TASK_ASKING);
}

static void a_question_that_nobody_answers_in_time_is_denied_and_its_process_goes_on(void **state)
{
	struct world *w = *state;
	struct task task = asking_until(w, w->given.now.wall_ms + MINUTES(5));

	assert_int_equal(task_next_wall_ms(&task), w->given.now.wall_ms + MINUTES(5));
	pass_time(w, MINUTES(5) - 1);
	unchanged(task_answer_due(&task, &w->given), &task);
	pass_time(w, 1);
	task = moved(task_answer_due(&task, &w->given), EVENT_TASK_ANSWERED, TASK_RUNNING);
	assert_int_equal(task_answer_by_ms(&task), 0);
	unchanged(task_answer_due(&task, &w->given), &task);
}

static void its_time_outlives_its_process_and_then_it_is_ready_for_its_host(void **state)
{
	struct world *w = *state;

	w->beater.process.host = HOST;
	struct task task = asking_until(w, w->given.now.wall_ms + MINUTES(5));
	task = noted(task_lose(&task, &w->given), &task, EVENT_TASK_EXPIRED);
	assert_int_equal(task_next_wall_ms(&task), w->given.now.wall_ms + MINUTES(5));
	pass_time(w, MINUTES(5));
	unchanged(task_due(&task, &w->given), &task);
	task = moved(task_answer_due(&task, &w->given), EVENT_TASK_ANSWERED, TASK_READY);
	assert_int_equal(task.resume_host, HOST);
	assert_int_equal(task.resume_until_ms, w->given.now.wall_ms + MINUTES(10));
	assert_int_equal(task.spent, 0);
}

static void a_question_without_a_time_waits_for_ever(void **state)
{
	struct world *w = *state;
	struct task task = asking_unclaimed(w);

	pass_time(w, HOURS(24 * 400));
	assert_int_equal(task_next_wall_ms(&task), INT64_MAX);
	unchanged(task_answer_due(&task, &w->given), &task);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_question_keeps_the_claim),
		TEST(an_unconfirmed_claim_may_ask),
		TEST(a_second_question_while_one_is_open_is_refused),
		TEST(only_the_holder_asks),
		TEST(an_answer_lets_the_claim_go_on),
		TEST(the_time_limit_stands_still_while_a_person_thinks),
		TEST(a_claim_lease_that_ends_while_asking_leaves_the_question_open),
		TEST(a_worker_that_is_lost_while_asking_leaves_the_question_open),
		TEST(a_crash_while_asking_leaves_the_question_open),
		TEST(an_answer_without_a_claim_makes_it_ready_now),
		TEST(an_open_question_without_a_claim_is_not_claimed),
		TEST(only_an_open_question_is_answered),
		TEST(a_second_answer_is_refused),
		TEST(a_question_ends_a_row_of_interruptions),
		TEST(a_task_may_ask_again_after_its_answer),
		TEST(a_process_that_waits_too_long_is_to_be_parked),
		TEST(nobody_is_parked_where_processes_may_wait_for_ever),
		TEST(a_claim_lease_is_renewed_while_it_asks_and_not_past_the_parking_time),
		TEST(the_time_that_is_left_stands_still_too),
		TEST(after_the_answer_only_the_host_that_asked_may_claim_for_ten_minutes),
		TEST(then_it_is_for_anyone),
		TEST(of_a_claimant_that_has_no_host_nobody_is_kept_out),
		TEST(a_lost_lease_and_a_restore_do_not_forget_the_host),
		TEST(an_answer_that_comes_while_its_process_is_ended_is_kept_for_the_host_too),
		TEST(a_process_that_goes_on_with_its_late_answer_is_held_to_nothing),
		TEST(whatever_else_happens_to_it_makes_it_anyones),
		TEST(a_change_of_its_fields_keeps_it_for_the_host),
		TEST(why_says_until_when_it_is_kept_for_the_host),
		TEST(what_was_answered_before_is_answered_at_once),
		TEST(an_answer_to_another_question_is_refused),
		TEST(once_an_attempt_has_asked_twice_an_answer_must_name_its_question),
		TEST(questions_are_numbered_through_all_attempts_and_counted_in_each),
		TEST(an_attempt_asks_fifty_questions_and_no_more),
		TEST(the_holder_takes_its_question_back),
		TEST(a_question_that_nobody_answers_in_time_is_denied_and_its_process_goes_on),
		TEST(its_time_outlives_its_process_and_then_it_is_ready_for_its_host),
		TEST(a_question_without_a_time_waits_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
