/*
 * Changing a task in a store: its time, parents and key, and its lane; all or nothing.
 */
#include "store_fixture.h"

static struct command say_update(const char *task)
{
	return say_about(COMMAND_UPDATE, task);
}

static enum refusal put_parents(struct world *world, const char *task, const char *first, const char *second)
{
	struct span ids[] = {span_of(first), span_of(second)};
	struct command command = say_update(task);

	command.update.patch.set_parents = true;
	command.update.parents = (struct name_list){ids, (uint32_t)(first != NULL) + (second != NULL)};
	return world_run(world, &command)->refusal;
}

static enum refusal put_key(struct world *world, const char *task, const char *key)
{
	struct command command = say_update(task);

	command.update.patch.set_keyed = true;
	command.update.unique_key = span_of(key);
	return world_run(world, &command)->refusal;
}

static enum refusal put_time(struct world *world, const char *task, int64_t not_before_ms)
{
	struct command command = say_update(task);

	command.update.patch.set_not_before = true;
	command.update.patch.not_before_ms = not_before_ms;
	return world_run(world, &command)->refusal;
}

static enum refusal put_status(
	struct world *world, const char *task, const char *owner, enum task_status status)
{
	struct command command = say_update(task);

	command.by_name = true;
	command.update.status = status;
	command.update.patch.set_owner = owner != NULL;
	command.update.owner = span_of(owner);
	return world_run(world, &command)->refusal;
}

static void finish(struct world *world, const char *task)
{
	uint64_t fence = world_claim(world, "w");

	assert_int_equal(world_report(world, COMMAND_COMPLETE, task, "w", fence), REFUSED_NOTHING);
}

static void a_new_time_is_kept_and_comes(void **state)
{
	struct world *world = *state;

	world_create(world, "a", "q");
	assert_int_equal(put_time(world, "a", START_WALL_MS + 5000), REFUSED_NOTHING);
	assert_int_equal(world_claim(world, "w"), 0);
	assert_int_equal(put_time(world, "a", START_WALL_MS + 2000), REFUSED_NOTHING);
	world_crash(world);
	world_pass(world, 1999);
	assert_int_equal(world_claim(world, "w"), 0);
	world_pass(world, 1);
	assert_int_not_equal(world_claim(world, "w"), 0);
	assert_int_equal(put_time(world, "a", 0), REFUSED_BAD_TRANSITION);
}

static void a_deadline_that_is_given_again_in_the_turn_in_which_it_fired_fires_again(void **state)
{
	struct world *world = *state;
	struct command create = say_create("a", "q");
	struct command again[] = {say_about(COMMAND_RETRY, "a"), say_update("a")};
	struct result results[2];

	create.create.start_by_ms = world->now.wall_ms + 1000;
	world_run(world, &create);
	again[1].update.patch.set_start_by = true;
	again[1].update.patch.start_by_ms = create.create.start_by_ms;
	world_pass(world, 1000);
	assert_int_equal(store_turn(world->store, world->now, again, 2, results), 0);
	assert_int_equal(results[1].refusal, REFUSED_NOTHING);
	assert_int_equal(world_state(world, "a"), TASK_READY);
	assert_int_equal(store_idle_ms(world->store, world->now), 0);
	world_run(world, NULL);
	assert_int_equal(world_state(world, "a"), TASK_FAILED);
}

static void changes_of_one_task_that_meet_in_one_turn_all_hold(void **state)
{
	struct world *world = *state;
	struct command changes[] = {say_update("a"), say_update("a"), say_update("a")};
	struct result results[3];

	world_create(world, "a", "q");
	changes[0].update.patch.set_priority = true;
	changes[0].update.patch.priority = 7;
	changes[1].update.patch.set_max_attempts = true;
	changes[1].update.patch.max_attempts = 9;
	changes[2].update.patch.set_timeout = true;
	changes[2].update.patch.timeout_ms = 12345;
	assert_int_equal(store_turn(world->store, world->now, changes, 3, results), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(results[i].refusal, REFUSED_NOTHING);
	world_crash(world);
	struct task task = world_task(world, "a");
	assert_int_equal(task.priority, 7);
	assert_int_equal(task.max_attempts, 9);
	assert_int_equal(task.timeout_ms, 12345);
}

static void new_parents_take_the_place_of_the_old_ones(void **state)
{
	struct world *world = *state;

	world_create(world, "old", "other");
	world_create(world, "new", "q");
	world_create(world, "child", "later");
	assert_int_equal(put_parents(world, "child", "old", "new"), REFUSED_NOTHING);
	assert_int_equal(world_state(world, "child"), TASK_WAITING);
	assert_int_equal(put_parents(world, "child", "new", "new"), REFUSED_NOTHING);
	struct command cancel = say_about(COMMAND_CANCEL, "old"); /* nobody waits for it any more */
	world_run(world, &cancel);
	assert_int_equal(world_state(world, "child"), TASK_WAITING);
	world_crash(world);
	struct command claim = say_about(COMMAND_CLAIM, "new");
	claim.worker = SPAN("w");
	claim.claim.any_executor = true;
	uint64_t fence = world_run(world, &claim)->claims[0].task.fence;
	world_report(world, COMMAND_COMPLETE, "new", "w", fence);
	assert_int_equal(world_state(world, "child"), TASK_READY);
}

static void a_parent_that_died_blocks_and_one_that_is_done_does_not(void **state)
{
	struct world *world = *state;

	world_create(world, "done", "q");
	finish(world, "done");
	world_create(world, "dead", "q");
	struct command cancel = say_about(COMMAND_CANCEL, "dead");
	world_run(world, &cancel);
	world_create(world, "child", "q");
	assert_int_equal(put_parents(world, "child", "done", NULL), REFUSED_NOTHING);
	assert_int_equal(world_state(world, "child"), TASK_READY);
	assert_int_equal(put_parents(world, "child", "done", "dead"), REFUSED_NOTHING);
	assert_int_equal(world_state(world, "child"), TASK_BLOCKED);
	assert_int_equal(put_parents(world, "child", NULL, NULL), REFUSED_NOTHING);
	assert_int_equal(world_state(world, "child"), TASK_READY);
}

static void nobody_waits_for_itself(void **state)
{
	struct world *world = *state;

	world_create(world, "a", "q");
	world_create(world, "b", "q");
	world_create(world, "c", "q");
	assert_int_equal(put_parents(world, "a", "a", NULL), REFUSED_INVALID);
	assert_true(world->result.cyclic);
	assert_int_equal(put_parents(world, "b", "a", NULL), REFUSED_NOTHING);
	assert_int_equal(put_parents(world, "c", "b", NULL), REFUSED_NOTHING);
	assert_int_equal(put_parents(world, "a", "c", NULL), REFUSED_INVALID);
	assert_true(world->result.cyclic);
	assert_true(span_equal(world->result.id, SPAN("c")));
	assert_int_equal(put_parents(world, "a", "nobody", NULL), REFUSED_INVALID);
	assert_false(world->result.cyclic);
	assert_int_equal(world_state(world, "a"), TASK_READY);
	assert_int_equal(put_parents(world, "c", "a", NULL), REFUSED_NOTHING);
}

static void a_key_is_changed_unless_another_task_holds_it(void **state)
{
	struct world *world = *state;

	world_create(world, "a", "q");
	world_create(world, "b", "q");
	assert_int_equal(put_key(world, "a", "k"), REFUSED_NOTHING);
	assert_int_equal(put_key(world, "a", "k"), REFUSED_NOTHING);
	assert_int_equal(put_key(world, "b", "k"), REFUSED_TASK_EXISTS);
	assert_int_equal(put_key(world, "a", "other"), REFUSED_NOTHING);
	assert_int_equal(put_key(world, "b", "k"), REFUSED_NOTHING);
	assert_int_equal(put_key(world, "a", NULL), REFUSED_NOTHING);
	world_crash(world);
	assert_int_equal(put_key(world, "b", "other"), REFUSED_NOTHING);
	struct command cancel = say_about(COMMAND_CANCEL, "b"), retry = say_about(COMMAND_RETRY, "b");
	world_run(world, &cancel);
	assert_int_equal(put_key(world, "a", "other"), REFUSED_NOTHING);
	assert_int_equal(world_run(world, &retry)->refusal, REFUSED_TASK_EXISTS);
	assert_int_equal(put_key(world, "b", "k"), REFUSED_NOTHING); /* final: it holds none yet */
	assert_int_equal(world_run(world, &retry)->refusal, REFUSED_NOTHING);
}

static void a_slot_works_by_status_alone(void **state)
{
	struct world *world = *state;

	world_create(world, "a", "q");
	assert_int_equal(put_status(world, "a", NULL, STATUS_IN_PROGRESS), REFUSED_BAD_TRANSITION);
	assert_int_equal(put_status(world, "a", "slot-1", STATUS_IN_PROGRESS), REFUSED_NOTHING);
	assert_int_equal(world->result.task.state, TASK_RUNNING);
	int64_t version = world->result.task.version;
	assert_int_equal(put_status(world, "a", NULL, STATUS_IN_PROGRESS), REFUSED_NOTHING);
	assert_int_equal(world->result.task.version, version);
	world_crash(world);
	assert_int_equal(put_status(world, "a", NULL, STATUS_TODO), REFUSED_NOTHING);
	assert_int_equal(world_state(world, "a"), TASK_READY);
	assert_int_equal(put_status(world, "a", NULL, STATUS_DONE), REFUSED_BAD_TRANSITION);
	assert_int_equal(put_status(world, "a", NULL, STATUS_IN_PROGRESS), REFUSED_NOTHING);
	assert_int_equal(put_status(world, "a", NULL, STATUS_DONE), REFUSED_NOTHING);
	assert_int_equal(world_state(world, "a"), TASK_DONE);
}

static void a_move_that_is_refused_changes_no_field_either(void **state)
{
	struct world *world = *state;

	world_create(world, "a", "q");
	int64_t last = store_last_event(world->store);
	assert_int_equal(put_status(world, "a", "slot-1", STATUS_REVIEW), REFUSED_BAD_TRANSITION);
	assert_int_equal(store_last_event(world->store), last);
	assert_int_equal(put_status(world, "a", NULL, STATUS_IN_PROGRESS), REFUSED_BAD_TRANSITION);
	world_claim(world, "w");
	assert_int_equal(put_status(world, "a", "slot-1", STATUS_TODO), REFUSED_CLAIMED_BY_OTHER);
	assert_int_equal(world_state(world, "a"), TASK_CLAIMED);
}

static void a_change_of_nothing_is_no_event(void **state)
{
	struct world *world = *state;
	struct command nothing = say_update("a");

	world_create(world, "a", "q");
	int64_t last = store_last_event(world->store);
	assert_int_equal(world_run(world, &nothing)->refusal, REFUSED_NOTHING);
	assert_int_equal(store_last_event(world->store), last);
}

/* Its parents go and its slot takes it, in one command: the stage that follows from the first is there for the second. */
static void a_lane_does_not_take_back_the_stage_that_its_fields_led_to(void **state)
{
	struct world *world = *state;
	struct span parent = SPAN("parent");
	struct command create = say_create("job", "q"), both = say_update("job");

	world_create(world, "parent", "q");
	create.create.workflow = WORKFLOW_AUTOPILOT;
	create.create.owner = SPAN("slot-1");
	create.create.parents = (struct name_list){&parent, 1};
	int64_t before = world_run(world, &create)->task.version;
	assert_int_equal(world->result.task.stage, STAGE_ALLOCATED);
	both.by_name = true;
	both.update.patch.set_parents = true;
	both.update.status = STATUS_IN_PROGRESS;
	assert_int_equal(world_run(world, &both)->refusal, REFUSED_NOTHING);
	assert_int_equal(world->result.task.state, TASK_RUNNING);
	assert_int_equal(world->result.task.stage, STAGE_IN_PROGRESS);
	assert_int_equal(world->result.task.version, before + 3); /* updated, stage changed, claimed */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(a_new_time_is_kept_and_comes),
		ON_BOTH(a_deadline_that_is_given_again_in_the_turn_in_which_it_fired_fires_again),
		ON_BOTH(changes_of_one_task_that_meet_in_one_turn_all_hold),
		ON_BOTH(new_parents_take_the_place_of_the_old_ones),
		ON_BOTH(a_parent_that_died_blocks_and_one_that_is_done_does_not),
		ON_BOTH(nobody_waits_for_itself),
		ON_BOTH(a_key_is_changed_unless_another_task_holds_it),
		ON_BOTH(a_slot_works_by_status_alone),
		ON_BOTH(a_move_that_is_refused_changes_no_field_either),
		ON_BOTH(a_change_of_nothing_is_no_event),
		ON_BOTH(a_lane_does_not_take_back_the_stage_that_its_fields_led_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
