/* Subtasks: what a task may create under its claim, waiting for that, and tasks that run however their parents ended. */
#include "core/task/subtask.h"

#include "core_fixture.h"

static struct task parent_task(struct world *w)
{
	struct task task = running_task(w);

	task.subtasks = SUBTASKS_MADE;
	return task;
}

static struct task suspended(struct world *w, const struct task *task, uint32_t open)
{
	struct proof proof = proof_of(task);
	struct task_decision decision = task_suspend(task, &proof, open, 7, &w->given);

	assert_int_equal(decision.refusal, REFUSED_NOTHING);
	assert_int_equal(decision.event, EVENT_TASK_SUSPENDED);
	return decision.task;
}

static void waiting_gives_up_the_claim_and_spends_nothing(void **state)
{
	struct world *w = *state;
	struct task before = parent_task(w), task = suspended(w, &before, 2);

	assert_int_equal(task.state, TASK_WAITING);
	assert_true(task_awaits(&task));
	assert_false(task_is_claimed(&task));
	assert_int_equal(task.open_parents, 2);
	assert_int_equal(task.crashes, before.crashes - 1);
	assert_int_equal(task.interruptions, before.interruptions);
	assert_int_equal(task.spent, before.spent);
}

static void the_last_subtask_wakes_its_parent_however_it_ended(void **state)
{
	struct world *w = *state;
	struct task before = parent_task(w), task = suspended(w, &before, 2);

	task = task_parent_dead(&task, &w->given).task;
	assert_int_equal(task.state, TASK_WAITING);
	struct task_decision woken = task_parent_done(&task, &w->given);
	assert_int_equal(woken.event, EVENT_TASK_REQUEUED);
	assert_int_equal(woken.task.state, TASK_READY);
	assert_int_equal(woken.task.open_parents, 0);
	assert_false(task_awaits(&woken.task));
	assert_int_equal(woken.task.resume_host, 7);
	assert_true(woken.task.resume_until_ms > w->given.now.wall_ms);
}

static void a_failed_last_subtask_wakes_its_parent_too(void **state)
{
	struct world *w = *state;
	struct task before = parent_task(w), task = suspended(w, &before, 1);

	task = task_parent_dead(&task, &w->given).task;
	assert_int_equal(task.state, TASK_READY);
	assert_int_equal(task.dead_parents, 0);
}

static void one_that_is_opened_again_is_waited_for_again(void **state)
{
	struct world *w = *state;
	struct task before = parent_task(w), task = suspended(w, &before, 2);

	task = task_parent_dead(&task, &w->given).task;
	task = task_parent_reopened(&task, &w->given).task;
	task = task_parent_done(&task, &w->given).task;
	assert_int_equal(task.state, TASK_WAITING);
	assert_int_equal(task_parent_done(&task, &w->given).task.state, TASK_READY);
}

static void without_an_open_subtask_it_is_ready_at_once(void **state)
{
	struct world *w = *state;
	struct task before = parent_task(w), task = suspended(w, &before, 0);

	assert_int_equal(task.state, TASK_READY);
	assert_int_equal(task.resume_host, 7);
}

static void a_repeated_wait_is_answered_as_the_first(void **state)
{
	struct world *w = *state;
	struct task before = parent_task(w), task = suspended(w, &before, 1);
	struct proof proof = proof_of(&before);

	assert_true(task_suspend(&task, &proof, 1, 7, &w->given).repeated);
	assert_int_equal(task_complete(&task, &proof, &w->given).refusal, REFUSED_ALREADY_TERMINAL);
}

static void its_parents_cannot_be_changed_while_it_waits(void **state)
{
	struct world *w = *state;
	struct task before = parent_task(w), task = suspended(w, &before, 1);
	struct task_patch patch = {.set_parents = true};

	assert_int_equal(task_update(&task, &patch, &w->given).refusal, REFUSED_BAD_TRANSITION);
}

static void a_cancel_ends_the_waiting(void **state)
{
	struct world *w = *state;
	static const struct worker nobody;
	struct task before = parent_task(w), task = suspended(w, &before, 2);
	struct task_decision decision = task_cancel(&task, &nobody, &w->given);

	assert_int_equal(decision.task.state, TASK_CANCELLED);
	assert_int_equal(decision.task.open_parents, 0);
	assert_true(task_calls_off_subtasks(&task, &decision.task));
	assert_int_equal(task_parent_dead(&decision.task, &w->given).event, EVENT_NONE);
}

static void done_leaves_subtasks_running(void **state)
{
	struct world *w = *state;
	struct task before = parent_task(w);
	struct proof proof = proof_of(&before);
	struct task_decision decision = task_complete(&before, &proof, &w->given);

	assert_int_equal(decision.task.state, TASK_DONE);
	assert_false(task_calls_off_subtasks(&before, &decision.task));
}

static void its_time_stands_still_while_it_waits_in_its_process(void **state)
{
	struct world *w = *state;
	struct task task = parent_task(w);
	struct proof proof = proof_of(&task);
	int64_t left_ms = task_run_remaining_ms(&task, &w->given);

	task = task_hear(&task, &proof, true, &w->given).task;
	w->given.now.lease_ms += 1000 + w->given.rules->ask_park_ms;
	assert_int_equal(task_run_remaining_ms(&task, &w->given), left_ms);
	assert_true(task_must_park(&task, &w->given));
	task = task_go_on(&task, &proof, &w->given).task;
	assert_int_equal(task_run_remaining_ms(&task, &w->given), left_ms);
	assert_false(task.claim.reported);
	assert_false(task_must_park(&task, &w->given));
}

/* ---- rights ---- */

static enum subtask_excess excess_of(struct world *w, struct task draft, bool listed)
{
	struct task parent = {.seq = 5, .queue = 1, .executor = 2, .credential = 3, .priority = 10};
	struct subtask_place place = {.level = 2, .children = 1, .in_tree = 2};

	subtask_inherit(&draft, &parent, draft.priority != 0);
	assert_int_equal(draft.subtask_of, 5);
	return subtask_exceeds(&draft, &parent, listed, &place, w->given.rules);
}

static void a_subtask_inherits_and_has_no_more_than_its_parent(void **state)
{
	struct world *w = *state;

	assert_int_equal(excess_of(w, (struct task){0}, false), EXCESS_NONE);
	assert_int_equal(excess_of(w, (struct task){.priority = 11}, false), EXCESS_PRIORITY);
	assert_int_equal(excess_of(w, (struct task){.priority = -1}, false), EXCESS_NONE);
	assert_int_equal(excess_of(w, (struct task){.executor = 9}, false), EXCESS_EXECUTOR);
	assert_int_equal(excess_of(w, (struct task){.executor = 9}, true), EXCESS_NONE);
	assert_int_equal(excess_of(w, (struct task){.credential = 9}, false), EXCESS_CREDENTIAL);
	assert_int_equal(excess_of(w, (struct task){.queue = 9}, false), EXCESS_NONE);
}

static enum subtask_excess excess_at(struct world *w, struct subtask_place place)
{
	struct task draft = {.queue = 1}, parent = {.queue = 1};

	return subtask_exceeds(&draft, &parent, false, &place, w->given.rules);
}

static void a_budget_comes_out_of_what_is_left(void **state)
{
	const double nothing[SUBTASK_BUDGET_PARTS] = {0}, some[SUBTASK_BUDGET_PARTS] = {1.0};
	struct subtask_budget budget = {.limited = 1, .said = 3, .left = {2.0}, .wanted = {1.5, 100}};
	double left;

	(void)state;
	assert_int_equal(subtask_budget_excess(&budget, nothing, &left),
		SUBTASK_BUDGET_PARTS); /* of the others it has its own */
	assert_int_equal(subtask_budget_excess(&budget, some, &left), 0);
	assert_true(left == 1.0);
	budget.said = 0;
	assert_int_equal(subtask_budget_excess(&budget, nothing, &left), 0);
	budget.limited = 0;
	assert_int_equal(subtask_budget_excess(&budget, nothing, &left), SUBTASK_BUDGET_PARTS);
}

static void a_tree_has_limits(void **state)
{
	struct world *w = *state;

	assert_int_equal(excess_at(w, (struct subtask_place){4, 99, 999}), EXCESS_NONE);
	assert_int_equal(excess_at(w, (struct subtask_place){5, 0, 1}), EXCESS_LEVELS);
	assert_int_equal(excess_at(w, (struct subtask_place){2, 100, 101}), EXCESS_CHILDREN);
	assert_int_equal(excess_at(w, (struct subtask_place){2, 0, 1000}), EXCESS_TREE);
}

static void a_task_that_is_told_to_stop_creates_none(void **state)
{
	struct world *w = *state;
	struct task task = parent_task(w);
	struct proof proof = proof_of(&task), stale = proof;

	assert_int_equal(subtask_refusal(&task, &proof), REFUSED_NOTHING);
	stale.fence++;
	assert_int_equal(subtask_refusal(&task, &stale), REFUSED_STALE_CLAIM);
	task.claim.stopping = true;
	assert_int_equal(subtask_refusal(&task, &proof), REFUSED_BAD_TRANSITION);
}

/* ---- however the parents ended ---- */

static struct task lenient_task(struct world *w, uint32_t parents)
{
	struct task draft = draft_new();

	draft.has_parent = draft.runs_anyway = true;
	draft.open_parents = parents;
	return task_create(&draft, false, QUEUE_OPEN, &w->given).task;
}

static void it_runs_once_all_parents_have_ended(void **state)
{
	struct world *w = *state;
	struct task task = lenient_task(w, 2);

	task = task_parent_dead(&task, &w->given).task;
	assert_int_equal(task.state, TASK_WAITING);
	task = task_parent_done(&task, &w->given).task;
	assert_int_equal(task.state, TASK_READY);
	assert_int_equal(task.open_parents, 0);
	assert_int_equal(task.dead_parents, 0);
	assert_int_equal(task_parent_reopened(&task, &w->given).event, EVENT_NONE);
}

static void a_parent_that_had_failed_before_holds_it_back_no_more(void **state)
{
	struct world *w = *state;
	struct task draft = draft_new();

	draft.has_parent = draft.runs_anyway = true;
	draft.open_parents = draft.dead_parents = 1;
	assert_int_equal(task_create(&draft, false, QUEUE_OPEN, &w->given).task.state, TASK_READY);
	draft.runs_anyway = false;
	assert_int_equal(task_create(&draft, false, QUEUE_OPEN, &w->given).task.state, TASK_BLOCKED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(waiting_gives_up_the_claim_and_spends_nothing),
		TEST(the_last_subtask_wakes_its_parent_however_it_ended),
		TEST(a_failed_last_subtask_wakes_its_parent_too),
		TEST(one_that_is_opened_again_is_waited_for_again),
		TEST(without_an_open_subtask_it_is_ready_at_once),
		TEST(a_repeated_wait_is_answered_as_the_first),
		TEST(its_parents_cannot_be_changed_while_it_waits),
		TEST(a_cancel_ends_the_waiting),
		TEST(done_leaves_subtasks_running),
		TEST(its_time_stands_still_while_it_waits_in_its_process),
		TEST(a_subtask_inherits_and_has_no_more_than_its_parent),
		TEST(a_budget_comes_out_of_what_is_left),
		TEST(a_tree_has_limits),
		TEST(a_task_that_is_told_to_stop_creates_none),
		TEST(it_runs_once_all_parents_have_ended),
		TEST(a_parent_that_had_failed_before_holds_it_back_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
