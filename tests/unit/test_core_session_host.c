/* What an agent has on its host: the next attempt goes on there. */
#include "core_fixture.h"

/* Running on HOST, where an agent has said that it works. */
static struct task worked_on(struct world *w)
{
	struct task task = running_task(w);
	struct task_decision decision = progress(w, &task);

	w->beater.process.host = HOST;
	w->rival.process.host = OTHER_HOST;
	task_begin_session(&decision, HOST);
	return decision.task;
}

static void after_a_failure_only_the_host_with_its_session_may_claim_it(void **state)
{
	struct world *w = *state;
	struct task task = worked_on(w);

	task = moved(fail_with(w, &task, CODE_CHECK_FAILED), EVENT_TASK_FAILED, TASK_READY);
	assert_int_equal(task.resume_until_ms, w->given.now.wall_ms + MINUTES(10));
	refused(claim_by(w, &task, &w->rival), &task, REFUSED_FORBIDDEN);
	task = moved(claim_by(w, &task, &w->beater), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	assert_int_equal(task.resume_until_ms, 0);
	assert_int_equal(task.session_host, HOST);
}

static void it_is_kept_when_its_backoff_is_over(void **state)
{
	struct world *w = *state;
	struct task task = worked_on(w);

	task = moved(fail_with(w, &task, CODE_EXECUTION_ERROR), EVENT_TASK_FAILED, TASK_SCHEDULED);
	assert_int_equal(task.resume_host, 0);
	pass_time(w, MINUTES(1));
	task = moved(task_due(&task, &w->given), EVENT_TASK_REQUEUED, TASK_READY);
	refused(claim_by(w, &task, &w->rival), &task, REFUSED_FORBIDDEN);
}

static void after_a_rejection_and_a_retry_it_is_kept_too(void **state)
{
	struct world *w = *state;
	struct task working = worked_on(w);

	struct task task = moved(report(w, &working), EVENT_TASK_REVIEWED, TASK_REVIEW);
	task = moved(task_reject(&task, &w->given), EVENT_TASK_FAILED, TASK_READY);
	assert_int_equal(task.resume_host, HOST);
	task = moved(block(w, &working), EVENT_TASK_BLOCKED, TASK_BLOCKED);
	task = moved(task_retry(&task, false, &w->given), EVENT_TASK_RETRIED, TASK_READY);
	assert_int_equal(task.resume_host, HOST);
}

static void a_lost_lease_keeps_it_for_the_host(void **state)
{
	struct world *w = *state;
	struct task task = worked_on(w);

	pass_time(w, HOURS(1));
	task = moved(task_lose(&task, &w->given), EVENT_TASK_EXPIRED, TASK_READY);
	assert_int_equal(task.resume_host, HOST);
}

static void while_a_worker_is_there_it_waits_on(void **state)
{
	struct world *w = *state;
	struct task task = worked_on(w);

	task = moved(fail_with(w, &task, CODE_CHECK_FAILED), EVENT_TASK_FAILED, TASK_READY);
	unchanged(task_keep_for_host(&task, &w->given), &task);
	pass_time(w, MINUTES(10));
	struct task kept = noted(task_keep_for_host(&task, &w->given), &task, EVENT_TASK_REQUEUED);
	assert_int_equal(kept.resume_until_ms, w->given.now.wall_ms + MINUTES(10));
	refused(claim_by(w, &kept, &w->rival), &kept, REFUSED_FORBIDDEN);
}

static void without_one_it_is_for_anyone_after_ten_minutes(void **state)
{
	struct world *w = *state;
	struct task task = worked_on(w);

	task = moved(fail_with(w, &task, CODE_CHECK_FAILED), EVENT_TASK_FAILED, TASK_READY);
	pass_time(w, MINUTES(10));
	task = noted(task_due(&task, &w->given), &task, EVENT_TASK_REQUEUED);
	assert_int_equal(task.session_host, 0);
	moved(claim_by(w, &task, &w->rival), EVENT_TASK_CLAIMED, TASK_CLAIMED);
}

static void an_answer_without_a_session_waits_for_ten_minutes_alone(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	w->beater.process.host = HOST;
	task = moved(ask(w, &task), EVENT_TASK_ASKED, TASK_ASKING);
	task = noted(release(w, &task), &task, EVENT_TASK_RELEASED);
	task = moved(task_answer(&task, &no_questions, 0, &w->given), EVENT_TASK_ANSWERED, TASK_READY);
	pass_time(w, MINUTES(10));
	unchanged(task_keep_for_host(&task, &w->given), &task);
}

static void a_fresh_retry_is_for_anyone_and_says_so_until_a_session_begins(void **state)
{
	struct world *w = *state;
	struct task task = worked_on(w);

	task = moved(block(w, &task), EVENT_TASK_BLOCKED, TASK_BLOCKED);
	struct task_decision decision = task_retry(&task, false, &w->given);
	task_begin_anew(&decision);
	task = moved(decision, EVENT_TASK_RETRIED, TASK_READY);
	assert_true(task.begins_anew);
	task = moved(claim_by(w, &task, &w->rival), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	assert_true(task.begins_anew);
	decision = progress(w, &task);
	task_begin_session(&decision, OTHER_HOST);
	assert_false(decision.task.begins_anew);
	assert_int_equal(decision.task.session_host, OTHER_HOST);
}

static void while_all_accounts_are_held_that_is_why_it_waits(void **state)
{
	struct world *w = *state;
	struct task task = worked_on(w);
	struct surroundings around = {.queue = QUEUE_OPEN,
		.known = true,
		.workers = 1,
		.serving = 1,
		.capable = 1,
		.executing = 1,
		.owning = 1};

	task = moved(fail_with(w, &task, CODE_CHECK_FAILED), EVENT_TASK_FAILED, TASK_READY);
	assert_int_equal(task_why(&task, &around, &w->given).why, WHY_HELD);
	around.free = around.idle = 1;
	assert_int_equal(task_why(&task, &around, &w->given).why, WHY_KEPT_FOR_HOST);
}

static void parked_moved_or_ended_it_is_for_anyone(void **state)
{
	struct world *w = *state;
	struct task working = worked_on(w);
	struct task_patch patch = {.set_queue = true, .queue = QUEUE + 1};

	struct task task = moved(fail_with(w, &working, CODE_CHECK_FAILED), EVENT_TASK_FAILED, TASK_READY);
	struct task parked = moved(task_park(&task, &w->given), EVENT_TASK_PARKED, TASK_PENDING);
	parked = moved(task_unpark(&parked, &w->given), EVENT_TASK_UNPARKED, TASK_READY);
	assert_int_equal(parked.resume_host, 0);
	task = noted(task_update(&task, &patch, &w->given), &task, EVENT_TASK_UPDATED);
	assert_int_equal(task.resume_host, 0);
	assert_int_equal(task.session_host, 0);
	task = moved(complete(w, &working), EVENT_TASK_COMPLETED, TASK_DONE);
	assert_int_equal(task.session_host, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(after_a_failure_only_the_host_with_its_session_may_claim_it),
		TEST(it_is_kept_when_its_backoff_is_over),
		TEST(after_a_rejection_and_a_retry_it_is_kept_too),
		TEST(a_lost_lease_keeps_it_for_the_host),
		TEST(while_a_worker_is_there_it_waits_on),
		TEST(without_one_it_is_for_anyone_after_ten_minutes),
		TEST(an_answer_without_a_session_waits_for_ten_minutes_alone),
		TEST(a_fresh_retry_is_for_anyone_and_says_so_until_a_session_begins),
		TEST(while_all_accounts_are_held_that_is_why_it_waits),
		TEST(parked_moved_or_ended_it_is_for_anyone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
