/* Unique keys: who holds one, and what takes the place of its holder. */
#include "core_fixture.h"

enum {
	SUCCESSOR = 900, /* a number above those of the fixture */
};

static struct task keyed(struct task task)
{
	task.keyed = true;
	return task;
}

static struct task superseded(struct world *w)
{
	struct task task = keyed(running_task(w));

	return task_supersede(&task, SUCCESSOR).task;
}

static void a_key_is_held_until_the_end_or_for_its_time_past_done(void **state)
{
	struct world *w = *state;
	struct task task = keyed(ready_task(w));
	int64_t now_ms = w->given.now.wall_ms;

	assert_true(task_holds_key(&task, now_ms));
	task.state = TASK_DONE;
	assert_false(task_holds_key(&task, now_ms));
	task.unique_until_ms = now_ms + 1;
	assert_true(task_holds_key(&task, now_ms));
	assert_false(task_holds_key(&task, now_ms + 1));
	task.state = TASK_FAILED;
	assert_false(task_holds_key(&task, now_ms));
}

static void who_may_not_cancel_the_holder_does_not_replace_it(void **state)
{
	struct world *w = *state;
	struct task task = keyed(ready_task(w));

	assert_int_equal(task_meet_key(&task, CONFLICT_EXISTING, true), MEETING_EXISTS);
	assert_int_equal(task_meet_key(&task, CONFLICT_REJECT, true), MEETING_REFUSED);
	assert_int_equal(task_meet_key(&task, CONFLICT_REPLACE, true), MEETING_REPLACES);
	assert_int_equal(task_meet_key(&task, CONFLICT_REPLACE, false), MEETING_REFUSED);
	task.state = TASK_DONE;
	assert_int_equal(task_meet_key(&task, CONFLICT_REPLACE, true), MEETING_EXISTS);
}

static void a_successor_has_the_place_in_line_and_starts_within_the_time_of_the_key(void **state)
{
	struct world *w = *state;
	struct task holder = keyed(ready_task(w)), draft = {.ready_at_ms = holder.created_ms + 5000};

	task_succeed(&draft, &holder);
	assert_int_equal(draft.created_ms, holder.created_ms);
	assert_int_equal(draft.ready_at_ms, holder.created_ms + 5000);
	assert_int_equal(draft.predecessor, 0);
	holder.unique_until_ms = holder.created_ms + 3000;
	task_succeed(&draft, &holder);
	assert_int_equal(draft.ready_at_ms, holder.created_ms + 3000);
}

static void what_is_in_line_gives_way_at_once(void **state)
{
	struct world *w = *state;
	struct task task = keyed(ready_task(w));
	struct task_decision decision = task_supersede(&task, SUCCESSOR);

	assert_int_equal(decision.event, EVENT_TASK_CANCELLED);
	assert_int_equal(decision.task.state, TASK_CANCELLED);
	assert_int_equal(decision.task.superseded_by, SUCCESSOR);
	assert_false(task_counts_in_group(&decision.task));
}

static void what_runs_gives_way_when_its_attempt_fails(void **state)
{
	struct world *w = *state;
	struct task task = superseded(w);
	struct proof proof = proof_of(&task);
	struct failure failure = {.code = CODE_EXECUTION_ERROR, .klass = CLASS_TASK};

	assert_int_equal(task.state, TASK_RUNNING);
	assert_false(task_holds_key(&task, w->given.now.wall_ms));
	struct task_decision decision = task_fail(&task, &proof, &failure, &w->given);
	assert_int_equal(decision.event, EVENT_TASK_CANCELLED);
	assert_int_equal(decision.task.state, TASK_CANCELLED);
	decision = task_report(&task, &proof, &w->given);
	assert_int_equal(decision.task.state, TASK_CANCELLED);
	decision = task_lose(&task, &w->given);
	assert_int_equal(decision.task.state, TASK_CANCELLED);
	decision = task_suspend(&task, &proof, 2, 0, &w->given);
	assert_int_equal(decision.task.state, TASK_CANCELLED);
	assert_int_equal(decision.task.open_parents, 0);
}

static void the_failure_of_an_attempt_that_gives_way_counts_no_more_than_that_of_a_cancelled_one(void **state)
{
	struct world *w = *state;
	struct failure failure = {.code = CODE_EXECUTION_ERROR, .klass = CLASS_TASK};
	struct task task = superseded(w);

	task.crashes = 2; /* the second is counted by the claim, in advance */
	struct proof proof = proof_of(&task);
	struct task_decision decision = task_fail(&task, &proof, &failure, &w->given);
	assert_int_equal(decision.task.state, TASK_CANCELLED);
	assert_int_equal(decision.task.spent, task.spent);
	assert_int_equal(decision.task.crashes, 1);
	assert_int_equal(decision.task.interruptions, task.interruptions);
}

static void what_is_done_in_time_stays_done(void **state)
{
	struct world *w = *state;
	struct task task = superseded(w);
	struct proof proof = proof_of(&task);
	struct task_decision decision = task_complete(&task, &proof, &w->given);

	assert_int_equal(decision.task.state, TASK_DONE);
	assert_int_equal(decision.task.superseded_by, SUCCESSOR);
}

static void a_successor_waits_for_that_attempt_and_no_longer(void **state)
{
	struct world *w = *state;
	struct task holder = keyed(running_task(w)), draft = {.queue = QUEUE};

	task_succeed(&draft, &holder);
	draft.seq = SUCCESSOR;
	struct task task = task_create(&draft, false, QUEUE_OPEN, &w->given).task;
	assert_int_equal(task.state, TASK_WAITING);
	assert_int_equal(task_why(&task, &(struct surroundings){0}, &w->given).why, WHY_PREDECESSOR);
	struct task_decision free = task_predecessor_ended(&task, &w->given);
	assert_int_equal(free.event, EVENT_TASK_REQUEUED);
	assert_int_equal(free.task.state, TASK_READY);
	task = task_park(&task, &w->given).task;
	assert_int_equal(task_unpark(&task, &w->given).task.state, TASK_WAITING);
	free = task_predecessor_ended(&task, &w->given);
	assert_int_equal(free.task.state, TASK_PENDING);
	assert_int_equal(task_unpark(&free.task, &w->given).task.state, TASK_READY);
}

static void a_retry_ends_what_a_task_had_to_do_with_others_of_its_key(void **state)
{
	struct world *w = *state;
	struct task task = keyed(ready_task(w));

	task = task_supersede(&task, SUCCESSOR).task;
	assert_int_equal(task_retry(&task, true, &w->given).refusal, REFUSED_TASK_EXISTS);
	task = task_retry(&task, false, &w->given).task;
	assert_int_equal(task.state, TASK_READY);
	assert_true(task_holds_key(&task, w->given.now.wall_ms));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_key_is_held_until_the_end_or_for_its_time_past_done),
		TEST(who_may_not_cancel_the_holder_does_not_replace_it),
		TEST(a_successor_has_the_place_in_line_and_starts_within_the_time_of_the_key),
		TEST(what_is_in_line_gives_way_at_once),
		TEST(what_runs_gives_way_when_its_attempt_fails),
		TEST(the_failure_of_an_attempt_that_gives_way_counts_no_more_than_that_of_a_cancelled_one),
		TEST(what_is_done_in_time_stays_done),
		TEST(a_successor_waits_for_that_attempt_and_no_longer),
		TEST(a_retry_ends_what_a_task_had_to_do_with_others_of_its_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
