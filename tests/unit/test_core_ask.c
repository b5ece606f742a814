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

	refused(task_ask(&task, &stale, &w->given), &task, REFUSED_STALE_CLAIM);
	refused(task_ask(&task, &thief, &w->given), &task, REFUSED_STALE_CLAIM);
	refused(task_ask(&task, &name, &w->given), &task, REFUSED_CLAIMED_BY_OTHER);
	refused(task_ask(&ready, &name, &w->given), &ready, REFUSED_NOT_CLAIMED);
	name = by_name(BEATER);
	moved(task_ask(&task, &name, &w->given), EVENT_TASK_ASKED, TASK_ASKING);
}

static void an_answer_lets_the_claim_go_on(void **state)
{
	struct world *w = *state;
	struct task task = asking_task(w);
	uint64_t fence = task.fence;

	task = moved(task_answer(&task, &w->given), EVENT_TASK_ANSWERED, TASK_RUNNING);
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
	task = moved(task_answer(&task, &w->given), EVENT_TASK_ANSWERED, TASK_RUNNING);
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

static void an_answer_without_a_claim_makes_it_ready_now(void **state)
{
	struct world *w = *state;
	struct task task = asking_unclaimed(w);

	pass_time(w, HOURS(3));
	task = moved(task_answer(&task, &w->given), EVENT_TASK_ANSWERED, TASK_READY);
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
			refused(task_answer(&task, &w->given), &task, REFUSED_BAD_TRANSITION);
	}
}

static void a_second_answer_is_refused(void **state)
{
	struct world *w = *state;
	struct task task = asking_task(w);

	task = moved(task_answer(&task, &w->given), EVENT_TASK_ANSWERED, TASK_RUNNING);
	refused(task_answer(&task, &w->given), &task, REFUSED_BAD_TRANSITION);
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

	task = moved(task_answer(&task, &w->given), EVENT_TASK_ANSWERED, TASK_RUNNING);
	pass_time(w, SECONDS(1));
	task = moved(ask(w, &task), EVENT_TASK_ASKED, TASK_ASKING);
	assert_int_equal(task.claim.asked_at_ms, w->given.now.lease_ms);
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
		TEST(an_answer_without_a_claim_makes_it_ready_now),
		TEST(an_open_question_without_a_claim_is_not_claimed),
		TEST(only_an_open_question_is_answered),
		TEST(a_second_answer_is_refused),
		TEST(a_question_ends_a_row_of_interruptions),
		TEST(a_task_may_ask_again_after_its_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
