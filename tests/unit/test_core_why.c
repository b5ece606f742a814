#include "core_fixture.h"

#include <string.h>

static const struct surroundings nothing_missing = {.queue = QUEUE_OPEN,
	.workers = 1,
	.serving = 1,
	.capable = 1,
	.executing = 1,
	.owning = 1,
	.free = 1,
	.idle = 1,
	.known = true};

static enum why why_of(struct world *w, struct task task)
{
	return task_why(&task, &nothing_missing, &w->given).why;
}

static void every_state_has_its_reason(void **state)
{
	static const enum why expected[TASK_STATE_COUNT] = {
		[TASK_PENDING] = WHY_PARKED,
		[TASK_SCHEDULED] = WHY_SCHEDULED,
		[TASK_WAITING] = WHY_DEPENDENCY,
		[TASK_READY] = WHY_READY_NOW,
		[TASK_CLAIMED] = WHY_UNCONFIRMED,
		[TASK_RUNNING] = WHY_RUNNING,
		[TASK_ASKING] = WHY_ASKING,
		[TASK_REVIEW] = WHY_REVIEW,
		[TASK_BLOCKED] = WHY_BLOCKED,
		[TASK_FAILED] = WHY_ENDED,
		[TASK_DONE] = WHY_ENDED,
		[TASK_CANCELLED] = WHY_ENDED,
	};
	struct world *w = *state;

	for (int s = TASK_PENDING; s < TASK_STATE_COUNT; s++)
		assert_int_equal(why_of(w, task_in(w, (enum task_state)s)), expected[s]);
}

static void a_ready_task_names_the_first_thing_that_is_missing(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct surroundings around = {.queue = QUEUE_PAUSED, .known = true};

	task.owner = SLOT;
	assert_int_equal(task_why(&task, &around, &w->given).why, WHY_PAUSED);
	around.queue = QUEUE_OPEN;
	around.disarmed = true;
	assert_int_equal(task_why(&task, &around, &w->given).why, WHY_DISARMED);
	around.disarmed = false;
	around.read_only = true;
	assert_int_equal(task_why(&task, &around, &w->given).why, WHY_READ_ONLY);
	around.read_only = false;
	assert_int_equal(task_why(&task, &around, &w->given).why, WHY_NO_WORKER);
	around.workers = 1;
	assert_int_equal(task_why(&task, &around, &w->given).why, WHY_QUEUE_UNSERVED);
	around.serving = 1;
	assert_int_equal(task_why(&task, &around, &w->given).why, WHY_NO_CAPABILITY);
	around.capable = 1;
	assert_int_equal(task_why(&task, &around, &w->given).why, WHY_NO_EXECUTOR);
	around.executing = 1;
	assert_int_equal(task_why(&task, &around, &w->given).why, WHY_OWNER_AWAY);
	around.owning = 1;
	around.held_until_ms = 7;
	assert_int_equal(task_why(&task, &around, &w->given).why, WHY_HELD);
	assert_int_equal(task_why(&task, &around, &w->given).until_ms, 7);
	around.free = 1;
	assert_int_equal(task_why(&task, &around, &w->given).why, WHY_WORKERS_BUSY);
	around.idle = 1;
	assert_int_equal(task_why(&task, &around, &w->given).why, WHY_READY_NOW);
}

static void where_no_worker_announces_itself_nothing_is_missing(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct surroundings around = {.queue = QUEUE_OPEN};

	assert_int_equal(task_why(&task, &around, &w->given).why, WHY_READY_NOW);
	around.queue = QUEUE_DRAINING;
	assert_int_equal(task_why(&task, &around, &w->given).why, WHY_READY_NOW);
	around.known = around.asked_for =
		true; /* workers of other queues do, and a script asks for work of this one */
	assert_int_equal(task_why(&task, &around, &w->given).why, WHY_READY_NOW);
}

static void a_quarantined_owner_says_until_when(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct surroundings around = {.queue = QUEUE_OPEN, .owner_quarantined = true, .trial_at_ms = 7};

	assert_int_equal(task_why(&task, &around, &w->given).why, WHY_READY_NOW); /* nobody owns it */
	task.owner = SLOT;
	struct reason reason = task_why(&task, &around, &w->given);
	assert_int_equal(reason.why, WHY_OWNER_QUARANTINED);
	assert_int_equal(reason.until_ms, 7);
}

static void a_quarantined_pool_is_the_last_reason_and_says_which_place(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct surroundings around = nothing_missing;

	around.pool_slot = 9;
	around.trial_at_ms = 7;
	struct reason reason = task_why(&task, &around, &w->given);
	assert_int_equal(reason.why, WHY_POOL_QUARANTINED);
	assert_int_equal(reason.slot, 9);
	assert_int_equal(reason.until_ms, 7);
	around.idle = 0;
	reason = task_why(&task, &around, &w->given);
	assert_int_equal(reason.why, WHY_WORKERS_BUSY);
	assert_int_equal(reason.slot, 0);
	assert_int_equal(reason.until_ms, 0);
}

static void a_scheduled_task_says_until_when(void **state)
{
	struct world *w = *state;
	struct task task = scheduled_task(w);
	struct reason reason = task_why(&task, &nothing_missing, &w->given);

	assert_int_equal(reason.until_ms, task.ready_at_ms);
	assert_int_equal(reason.code, CODE_NONE);
}

static void a_task_that_backs_off_says_why_and_until_when(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	task = moved(fail_with(w, &task, CODE_STALLED), EVENT_TASK_FAILED, TASK_SCHEDULED);
	struct reason reason = task_why(&task, &nothing_missing, &w->given);
	assert_int_equal(reason.why, WHY_BACKING_OFF);
	assert_int_equal(reason.code, CODE_STALLED);
	assert_int_equal(reason.until_ms, w->given.now.wall_ms + SECONDS(10));
}

static void a_cancel_that_waits_is_told_whatever_the_state(void **state)
{
	struct world *w = *state;
	struct task asking = asking_task(w);

	assert_int_equal(why_of(w, stopping_task(w)), WHY_STOPPING);
	asking = noted(cancel(w, &asking), &asking, EVENT_TASK_UPDATED);
	assert_int_equal(why_of(w, asking), WHY_STOPPING);
}

static void work_past_its_time_limit_is_overdue(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	pass_time(w, MINUTES(30) - 1);
	assert_int_equal(why_of(w, task), WHY_RUNNING);
	pass_time(w, 1);
	assert_int_equal(why_of(w, task), WHY_OVERDUE);
}

static void blocked_and_failed_tasks_name_their_code(void **state)
{
	struct world *w = *state;
	struct task blocked = blocked_task(w), failed = failed_task(w), child = blocked_by_parent(w);

	assert_int_equal(task_why(&blocked, &nothing_missing, &w->given).code, CODE_BAD_WORKDIR);
	assert_int_equal(task_why(&failed, &nothing_missing, &w->given).code, CODE_EXECUTION_ERROR);
	assert_int_equal(task_why(&child, &nothing_missing, &w->given).code, CODE_DEPENDENCY_FAILED);
}

static void reasons_have_unique_names_and_a_sentence(void **state)
{
	(void)state;
	for (int a = 0; a < WHY_COUNT; a++) {
		assert_true(strlen(why_name((enum why)a)) > 0);
		assert_true(strlen(why_text((enum why)a)) > 0);
		for (int b = a + 1; b < WHY_COUNT; b++)
			assert_string_not_equal(why_name((enum why)a), why_name((enum why)b));
	}
}

static void a_task_that_did_not_opt_in_waits_where_a_queue_asks_for_it(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct surroundings around = {.queue = QUEUE_OPEN, .opted_in = true};

	assert_int_equal(task_why(&task, &around, &w->given).why, WHY_NOT_AUTONOMOUS);
	task.autonomous = true;
	assert_int_equal(task_why(&task, &around, &w->given).why, WHY_READY_NOW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_state_has_its_reason),
		TEST(a_ready_task_names_the_first_thing_that_is_missing),
		TEST(where_no_worker_announces_itself_nothing_is_missing),
		TEST(a_quarantined_owner_says_until_when),
		TEST(a_quarantined_pool_is_the_last_reason_and_says_which_place),
		TEST(a_scheduled_task_says_until_when),
		TEST(a_task_that_backs_off_says_why_and_until_when),
		TEST(a_cancel_that_waits_is_told_whatever_the_state),
		TEST(work_past_its_time_limit_is_overdue),
		TEST(blocked_and_failed_tasks_name_their_code),
		TEST(reasons_have_unique_names_and_a_sentence),
		TEST(a_task_that_did_not_opt_in_waits_where_a_queue_asks_for_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
