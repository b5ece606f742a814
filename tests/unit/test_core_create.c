#include "core_fixture.h"

static void a_plain_task_is_ready_at_once(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);

	assert_int_equal(task.created_ms, w->given.now.wall_ms);
	assert_int_equal(task.ready_at_ms, w->given.now.wall_ms);
	assert_int_equal(task.attempt, 0);
	assert_int_equal(task.spent, 0);
	assert_int_equal(task.fence, 0);
	assert_false(task_is_claimed(&task));
}

static void a_parked_task_is_pending(void **state)
{
	struct task task = pending_task(*state);

	assert_int_equal(task.state, TASK_PENDING);
}

static void a_task_with_a_later_time_is_scheduled(void **state)
{
	struct world *w = *state;
	struct task draft = draft_new();

	draft.ready_at_ms = w->given.now.wall_ms + 1;
	struct task task = created(w, &draft, TASK_SCHEDULED);
	assert_int_equal(task.ready_at_ms, w->given.now.wall_ms + 1);
}

static void a_time_that_has_come_does_not_delay(void **state)
{
	struct world *w = *state;
	struct task draft = draft_new();

	draft.ready_at_ms = w->given.now.wall_ms;
	created(w, &draft, TASK_READY);
	draft.ready_at_ms = w->given.now.wall_ms - HOURS(1);
	created(w, &draft, TASK_READY);
}

static void a_task_with_an_open_parent_is_waiting_even_past_its_time(void **state)
{
	struct world *w = *state;
	struct task draft = draft_new();

	draft.open_parents = 1;
	created(w, &draft, TASK_WAITING);
	draft.ready_at_ms = w->given.now.wall_ms + HOURS(1);
	created(w, &draft, TASK_WAITING);
}

static void a_task_with_a_dead_parent_is_blocked_from_the_start(void **state)
{
	struct world *w = *state;
	struct task draft = draft_new();

	draft.open_parents = 2;
	draft.dead_parents = 1;
	struct task task = created(w, &draft, TASK_BLOCKED);
	assert_int_equal(task.code, CODE_DEPENDENCY_FAILED);
}

static void parking_comes_before_parents_and_time(void **state)
{
	struct world *w = *state;
	struct task draft = draft_new();

	draft.open_parents = 1;
	draft.ready_at_ms = w->given.now.wall_ms + HOURS(1);
	struct task task = created(w, &draft, TASK_PENDING);
	assert_int_equal(task.ready_at_ms, w->given.now.wall_ms + HOURS(1));
	assert_int_equal(task.open_parents, 1);
}

static void a_draining_queue_refuses_creation(void **state)
{
	struct world *w = *state;
	struct task draft = draft_new();

	refused(task_create(&draft, false, QUEUE_DRAINING, &w->given), &draft, REFUSED_QUEUE_DRAINING);
	refused(task_create(&draft, true, QUEUE_DRAINING, &w->given), &draft, REFUSED_QUEUE_DRAINING);
}

static void a_paused_queue_takes_new_tasks(void **state)
{
	struct world *w = *state;
	struct task draft = draft_new();

	moved(task_create(&draft, false, QUEUE_PAUSED, &w->given), EVENT_TASK_CREATED, TASK_READY);
}

static void limits_that_are_not_given_are_the_defaults(void **state)
{
	struct task task = ready_task(*state);

	assert_int_equal(task.timeout_ms, MINUTES(30));
	assert_int_equal(task.max_attempts, 3);
}

static void a_timeout_above_the_cap_is_clamped_to_it(void **state)
{
	struct world *w = *state;
	struct task draft = draft_new();

	draft.timeout_ms = (uint32_t)HOURS(2) + 1;
	assert_int_equal(created(w, &draft, TASK_READY).timeout_ms, HOURS(2));
	draft.timeout_ms = (uint32_t)HOURS(2);
	assert_int_equal(created(w, &draft, TASK_READY).timeout_ms, HOURS(2));
	draft.timeout_ms = 1;
	assert_int_equal(created(w, &draft, TASK_READY).timeout_ms, 1);
}

static void given_limits_are_kept(void **state)
{
	struct world *w = *state;
	struct task draft = draft_new();

	draft.max_attempts = 1;
	draft.priority = -50;
	draft.owner = SLOT;
	struct task task = created(w, &draft, TASK_READY);
	assert_int_equal(task.max_attempts, 1);
	assert_int_equal(task.priority, -50);
	assert_int_equal(task.owner, SLOT);
}

static void an_update_changes_only_the_fields_it_names(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct task_patch patch = {.set_priority = true, .priority = 50, .owner = SLOT, .queue = 99};

	struct task after = noted(task_update(&task, &patch, &w->given), &task, EVENT_TASK_UPDATED);
	assert_int_equal(after.priority, 50);
	assert_int_equal(after.owner, 0);
	assert_int_equal(after.queue, QUEUE);
}

static void an_update_can_change_every_field(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct task_patch patch = {true, true, true, true, true, true, true, true, true, .priority = 1,
		.owner = 2, .queue = 3, .requires = 4, .executor = 5, .max_attempts = 6, .timeout_ms = 7,
		.start_by_ms = 8, .finish_by_ms = 9};

	struct task after = noted(task_update(&task, &patch, &w->given), &task, EVENT_TASK_UPDATED);
	assert_int_equal(after.priority, 1);
	assert_int_equal(after.owner, 2);
	assert_int_equal(after.queue, 3);
	assert_int_equal(after.requires, 4);
	assert_int_equal(after.executor, 5);
	assert_int_equal(after.max_attempts, 6);
	assert_int_equal(after.timeout_ms, 7);
	assert_int_equal(after.start_by_ms, 8);
	assert_int_equal(after.finish_by_ms, 9);
}

static void an_update_leaves_at_least_one_attempt_more_than_are_spent(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);
	struct task_patch patch = {.set_max_attempts = true, .max_attempts = 0};

	task = moved(fail_with(w, &task, CODE_EXECUTION_ERROR), EVENT_TASK_FAILED, TASK_SCHEDULED);
	task = noted(task_update(&task, &patch, &w->given), &task, EVENT_TASK_UPDATED);
	assert_int_equal(task.max_attempts, 2);
	assert_int_equal(task.spent, 1);
}

static void an_update_clamps_the_timeout_and_restores_the_default(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct task_patch patch = {.set_timeout = true, .timeout_ms = (uint32_t)HOURS(3)};

	task = noted(task_update(&task, &patch, &w->given), &task, EVENT_TASK_UPDATED);
	assert_int_equal(task.timeout_ms, HOURS(2));
	patch.timeout_ms = 0;
	task = noted(task_update(&task, &patch, &w->given), &task, EVENT_TASK_UPDATED);
	assert_int_equal(task.timeout_ms, MINUTES(30));
}

static void an_update_leaves_a_live_claim_its_limits(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);
	struct task_patch patch = {.set_timeout = true, .timeout_ms = 1000};

	struct task after = noted(task_update(&task, &patch, &w->given), &task, EVENT_TASK_UPDATED);
	assert_same_claim(&after.claim, &task.claim);
}

static void only_final_tasks_are_purged(void **state)
{
	struct world *w = *state;

	for (int s = TASK_PENDING; s < TASK_STATE_COUNT; s++) {
		struct task task = task_in(w, (enum task_state)s);

		if (task_state_is_final(task.state))
			moved(task_purge(&task, &w->given), EVENT_TASK_PURGED, TASK_NOWHERE);
		else
			refused(task_purge(&task, &w->given), &task, REFUSED_BAD_TRANSITION);
	}
}

static void a_scheduled_task_is_ready_exactly_at_its_time(void **state)
{
	struct world *w = *state;
	struct task task = scheduled_task(w);

	assert_int_equal(task_next_wall_ms(&task), w->given.now.wall_ms + HOURS(1));
	pass_time(w, HOURS(1) - 1);
	unchanged(task_due(&task, &w->given), &task);
	pass_time(w, 1);
	task = moved(task_due(&task, &w->given), EVENT_TASK_REQUEUED, TASK_READY);
	assert_int_equal(task.ready_at_ms, w->given.now.wall_ms);
}

static void time_moves_only_scheduled_tasks(void **state)
{
	struct world *w = *state;

	for (int s = TASK_PENDING; s < TASK_STATE_COUNT; s++) {
		struct world later = *w;
		struct task task = task_in(w, (enum task_state)s);

		later.given.rules = &later.rules;
		pass_time(&later, HOURS(24));
		if (s != TASK_SCHEDULED)
			unchanged(task_due(&task, &later.given), &task);
	}
}

static void attempts_are_never_more_than_any_task_may_have(void **state)
{
	struct world *w = *state;
	struct task draft = draft_new();

	draft.max_attempts = TASK_ATTEMPTS_MAX + 1;
	struct task task = created(w, &draft, TASK_READY);
	assert_int_equal(task.max_attempts, TASK_ATTEMPTS_MAX);
	struct task_patch patch = {.set_max_attempts = true, .max_attempts = TASK_ATTEMPTS_MAX + 1};
	assert_int_equal(task_update(&task, &patch, &w->given).task.max_attempts, TASK_ATTEMPTS_MAX);
}

static void a_clock_that_was_set_back_does_not_undo_that_a_time_came(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct task_patch patch = {.set_max_attempts = true, .max_attempts = 2, .set_parents = true};

	w->given.now.wall_ms -= HOURS(1);
	struct task_decision decision = task_update(&task, &patch, &w->given);
	assert_int_equal(decision.task.state, TASK_READY);
}

static void only_what_waits_too_long_for_an_executor_is_stranded(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w), running = running_task(w);

	unchanged(task_strand(&running, &w->given), &running);
	unchanged(task_strand(&task, &w->given), &task);
	task.executor = 5;
	unchanged(task_strand(&task, &w->given), &task);
	pass_time(w, w->rules.executor_missing_ms);
	struct task blocked = moved(task_strand(&task, &w->given), EVENT_TASK_BLOCKED, TASK_BLOCKED);
	assert_int_equal(blocked.code, CODE_EXECUTOR_NOT_FOUND);
}

static void whether_a_task_may_run_on_its_own_can_be_changed(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct task_patch patch = {
		.set_autonomous = true, .autonomous = true, .set_keyed = true, .keyed = true};

	task = noted(task_update(&task, &patch, &w->given), &task, EVENT_TASK_UPDATED);
	assert_true(task.autonomous);
	assert_true(task.keyed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_plain_task_is_ready_at_once),
		TEST(a_parked_task_is_pending),
		TEST(a_task_with_a_later_time_is_scheduled),
		TEST(a_time_that_has_come_does_not_delay),
		TEST(a_task_with_an_open_parent_is_waiting_even_past_its_time),
		TEST(a_task_with_a_dead_parent_is_blocked_from_the_start),
		TEST(parking_comes_before_parents_and_time),
		TEST(a_draining_queue_refuses_creation),
		TEST(a_paused_queue_takes_new_tasks),
		TEST(limits_that_are_not_given_are_the_defaults),
		TEST(a_timeout_above_the_cap_is_clamped_to_it),
		TEST(given_limits_are_kept),
		TEST(an_update_changes_only_the_fields_it_names),
		TEST(an_update_can_change_every_field),
		TEST(an_update_leaves_at_least_one_attempt_more_than_are_spent),
		TEST(an_update_clamps_the_timeout_and_restores_the_default),
		TEST(an_update_leaves_a_live_claim_its_limits),
		TEST(only_final_tasks_are_purged),
		TEST(a_scheduled_task_is_ready_exactly_at_its_time),
		TEST(time_moves_only_scheduled_tasks),
		TEST(attempts_are_never_more_than_any_task_may_have),
		TEST(a_clock_that_was_set_back_does_not_undo_that_a_time_came),
		TEST(only_what_waits_too_long_for_an_executor_is_stranded),
		TEST(whether_a_task_may_run_on_its_own_can_be_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
