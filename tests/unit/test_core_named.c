#include "core_fixture.h"

/* Claims by name: longer by asking again, renewed by any sign of life, within the time they were made for. */

static struct claimant by_the_name(struct world *w, int64_t run_ms)
{
	struct claimant by = claimant_of(&w->named);

	by.lease_ms = MINUTES(5);
	by.run_ms = run_ms;
	return by;
}

static struct task named_claim(struct world *w)
{
	struct task task = ready_task(w);
	struct claimant by = by_the_name(w, HOURS(1));

	return moved(task_claim(&task, &by, QUEUE_OPEN, &w->given), EVENT_TASK_CLAIMED, TASK_CLAIMED);
}

static void asking_again_makes_it_last_longer_and_records_nothing(void **state)
{
	struct world *w = *state;
	struct task task = named_claim(w);
	struct claimant by = by_the_name(w, HOURS(2));

	pass_time(w, MINUTES(4));
	struct task_decision decision = task_extend(&task, &by, &w->given);
	assert_true(decision.repeated);
	assert_int_equal(decision.event, EVENT_NONE);
	assert_int_equal(decision.task.fence, task.fence);
	assert_int_equal(decision.task.attempt, task.attempt);
	assert_int_equal(decision.task.claim.run_until_ms, w->given.now.lease_ms + HOURS(2));
	assert_int_equal(decision.task.claim.lease.deadline_ms, w->given.now.lease_ms + MINUTES(5));
}

static void only_its_holder_makes_it_last_longer(void **state)
{
	struct world *w = *state;
	struct task task = named_claim(w), ready = ready_task(w), stopping = stopping_task(w);
	struct claimant other = claimant_of(&w->plain), beater = claimant_of(&w->beater),
			own = by_the_name(w, 1);

	refused(task_extend(&task, &other, &w->given), &task, REFUSED_CLAIMED_BY_OTHER);
	refused(task_extend(&ready, &own, &w->given), &ready, REFUSED_CLAIMED_BY_OTHER);
	refused(task_extend(&stopping, &beater, &w->given), &stopping, REFUSED_CLAIMED_BY_OTHER);
	w->given.disarmed = true;
	refused(task_extend(&task, &own, &w->given), &task, REFUSED_EXECUTION_DISARMED);
}

static void a_sign_of_life_renews_it_until_its_time_is_up(void **state)
{
	struct world *w = *state;
	struct task task = named_claim(w);

	pass_time(w, MINUTES(4));
	task = silent(task_renew(&task, &w->given), &task);
	assert_int_equal(task.claim.lease.deadline_ms, w->given.now.lease_ms + MINUTES(5));
	pass_time(w, MINUTES(56)); /* the hour is over */
	unchanged(task_renew(&task, &w->given), &task);
	struct task bound = running_task(w), ready = ready_task(w);
	unchanged(task_renew(&bound, &w->given), &bound); /* it lives on its worker's lease */
	unchanged(task_renew(&ready, &w->given), &ready);
}

static void progress_is_a_sign_of_life_of_a_name_and_of_nobody_else(void **state)
{
	struct world *w = *state;

	pass_time(w, SECONDS(30));
	struct worker_decision decision = worker_renew(&w->named, &w->given);
	assert_int_equal(decision.event, EVENT_NONE);
	assert_int_equal(
		decision.worker.lease.deadline_ms, w->given.now.lease_ms + w->named.lease.granted_ms);
	assert_int_equal(decision.worker.token, w->named.token);
	decision = worker_renew(&w->beater, &w->given);
	assert_int_equal(decision.worker.lease.deadline_ms, w->beater.lease.deadline_ms);
	struct worker gone = worker_leave(&w->named, WORKER_TERMINATED).worker;
	assert_int_equal(worker_renew(&gone, &w->given).worker.state, WORKER_INACTIVE);
}

static void a_queue_that_opts_in_hands_out_what_may_run_on_its_own(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct claimant by = claimant_of(&w->beater);

	by.opted_in = true;
	refused(task_claim(&task, &by, QUEUE_OPEN, &w->given), &task, REFUSED_NOT_AUTONOMOUS);
	task.autonomous = true;
	moved(task_claim(&task, &by, QUEUE_OPEN, &w->given), EVENT_TASK_CLAIMED, TASK_CLAIMED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(asking_again_makes_it_last_longer_and_records_nothing),
		TEST(only_its_holder_makes_it_last_longer),
		TEST(a_sign_of_life_renews_it_until_its_time_is_up),
		TEST(progress_is_a_sign_of_life_of_a_name_and_of_nobody_else),
		TEST(a_queue_that_opts_in_hands_out_what_may_run_on_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
