/*
 * Groups in the store: counts move with their members, across restarts and retention; what waits for a group is judged when the
 * group ends; and what would wait for itself is refused.
 */
#include "store_fixture.h"

static struct command say_member(const char *id, const char *group, const char *after_group)
{
	static struct span after[1];
	struct command command = say_create(id, "q");

	command.create.max_attempts = 1;
	if (group)
		command.create.group = span_of(group);
	if (after_group) {
		after[0] = span_of(after_group);
		command.create.blocked_by_groups = (struct name_list){after, 1};
	}
	return command;
}

static enum refusal add(struct world *world, const char *id, const char *group, const char *after_group)
{
	struct command command = say_member(id, group, after_group);

	return world_run(world, &command)->refusal;
}

static enum refusal tell(struct world *world, enum command_kind kind, const char *name)
{
	struct command command = {.kind = kind, .actor = SPAN("tester"), .oversees = true};

	command.group.name = span_of(name);
	return world_run(world, &command)->refusal;
}

static struct group_state look(struct world *world, const char *name)
{
	struct group_document document;

	assert_int_equal(store_read_group(world->store, span_of(name), &document), 0);
	return *document.group;
}

static bool is_there(struct world *world, const char *name)
{
	struct group_document document;

	return store_read_group(world->store, span_of(name), &document) == 0;
}

/* Memory, rows and events agree. */
static void check(struct world *world)
{
	char complaint[256] = "";

	assert_int_equal(store_check_memory(world->store, complaint, sizeof complaint), 0);
	assert_string_equal(complaint, "");
	assert_int_equal(store_check_fold(world->store, complaint, sizeof complaint), 0);
}

static void restart(struct world *world)
{
	check(world);
	world_crash(world);
	check(world);
}

static void operate(struct world *world, enum command_kind kind, const char *id)
{
	struct command command = say_about(kind, id);

	command.oversees = true;
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
}

static void finish(struct world *world, const char *id, enum command_kind kind)
{
	uint64_t fence = world_claim(world, "w");

	assert_int_equal(world_report(world, kind, id, "w", fence), REFUSED_NOTHING);
}

static void counts_move_with_the_members_and_survive_a_restart(void **state)
{
	struct world *world = *state;

	add(world, "a", "g", NULL);
	add(world, "b", "g", NULL);
	finish(world, "a", COMMAND_COMPLETE);
	restart(world);
	struct group_state group = look(world, "g");
	assert_int_equal(group.count[TASK_DONE], 1);
	assert_int_equal(group.count[TASK_READY], 1);
	assert_int_equal(group_members(&group), 2);
}

static void what_waits_for_a_group_goes_when_it_is_closed_and_done(void **state)
{
	struct world *world = *state;

	add(world, "a", "g", NULL);
	add(world, "last", NULL, "g");
	assert_int_equal(world_state(world, "last"), TASK_WAITING);
	finish(world, "a", COMMAND_COMPLETE);
	assert_int_equal(world_state(world, "last"), TASK_WAITING);
	restart(world);
	assert_int_equal(tell(world, COMMAND_GROUP_CLOSE, "g"), REFUSED_NOTHING);
	assert_int_equal(world_state(world, "last"), TASK_READY);
	assert_int_not_equal(look(world, "g").ended_ms, 0);
	restart(world);
}

static void a_failed_member_blocks_and_its_retry_lets_wait_again(void **state)
{
	struct world *world = *state;

	add(world, "a", "g", NULL);
	add(world, "last", NULL, "g");
	tell(world, COMMAND_GROUP_CLOSE, "g");
	operate(world, COMMAND_CANCEL, "a");
	assert_int_equal(world_state(world, "last"), TASK_BLOCKED);
	restart(world);
	operate(world, COMMAND_RETRY, "a");
	assert_int_equal(world_state(world, "last"), TASK_WAITING);
	assert_int_equal(look(world, "g").ended_ms, 0);
	finish(world, "a", COMMAND_COMPLETE);
	assert_int_equal(world_state(world, "last"), TASK_READY);
	restart(world);
}

static void a_group_that_has_ended_is_judged_at_once(void **state)
{
	struct world *world = *state;

	add(world, "a", "good", NULL);
	add(world, "b", "bad", NULL);
	operate(world, COMMAND_CANCEL, "b");
	finish(world, "a", COMMAND_COMPLETE);
	tell(world, COMMAND_GROUP_CLOSE, "good");
	tell(world, COMMAND_GROUP_CLOSE, "bad");
	add(world, "c", NULL, "good");
	add(world, "d", NULL, "bad");
	assert_int_equal(world_state(world, "c"), TASK_READY);
	assert_int_equal(world_state(world, "d"), TASK_BLOCKED);
	restart(world);
}

static void a_closed_group_keeps_out_and_a_removed_one_frees_its_name(void **state)
{
	struct world *world = *state;

	add(world, "a", "g", NULL);
	tell(world, COMMAND_GROUP_CLOSE, "g");
	assert_int_equal(add(world, "b", "g", NULL), REFUSED_GROUP_CLOSED);
	assert_int_equal(tell(world, COMMAND_GROUP_REMOVE, "g"), REFUSED_IN_USE);
	finish(world, "a", COMMAND_COMPLETE);
	assert_int_equal(tell(world, COMMAND_GROUP_REMOVE, "g"), REFUSED_NOTHING);
	assert_false(is_there(world, "g"));
	restart(world);
	uint32_t number = world_task(world, "a").group;
	assert_int_equal(add(world, "c", "g", NULL), REFUSED_NOTHING);
	assert_int_not_equal(world_task(world, "c").group, number);
	struct group_state group = look(world, "g");
	assert_int_equal(group_members(&group), 1);
	restart(world);
}

static void a_task_that_is_opened_again_after_its_group_was_removed_is_of_none(void **state)
{
	struct world *world = *state;

	add(world, "a", "g", NULL);
	operate(world, COMMAND_CANCEL, "a");
	tell(world, COMMAND_GROUP_CLOSE, "g");
	assert_int_equal(tell(world, COMMAND_GROUP_REMOVE, "g"), REFUSED_NOTHING);
	operate(world, COMMAND_RETRY, "a");
	assert_int_equal(world_task(world, "a").group, 0);
	restart(world);
	assert_int_equal(add(world, "b", "g", NULL), REFUSED_NOTHING);
	struct group_state group = look(world, "g");
	assert_int_equal(group_members(&group), 1);
	restart(world);
}

static void what_would_wait_for_itself_is_refused(void **state)
{
	struct world *world = *state;

	assert_int_equal(add(world, "self", "g", "g"), REFUSED_INVALID);
	assert_false(is_there(world, "g"));
	assert_int_equal(add(world, "a", "one", "two"), REFUSED_NOTHING);
	assert_int_equal(add(world, "b", "two", "three"), REFUSED_NOTHING);
	assert_int_equal(add(world, "c", "three", "one"), REFUSED_INVALID);
	assert_int_equal(add(world, "d", "three", NULL), REFUSED_NOTHING);
	struct command command = say_member("e", "three", NULL);
	command.create.parents = (struct name_list){(struct span[]){SPAN("a")}, 1};
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_INVALID);
	check(world);
}

static void a_group_is_of_the_first_that_names_it(void **state)
{
	struct world *world = *state;
	struct command mine = say_member("a", "g", NULL), theirs = say_member("b", "g", NULL);

	mine.principal = 5;
	theirs.principal = 6;
	assert_int_equal(world_run(world, &mine)->refusal, REFUSED_NOTHING);
	assert_int_equal(world_run(world, &theirs)->refusal, REFUSED_FORBIDDEN);
	theirs.oversees = true;
	assert_int_equal(world_run(world, &theirs)->refusal, REFUSED_NOTHING);
	check(world);
}

static void purged_members_stay_counted_and_the_last_takes_the_group_along(void **state)
{
	struct world *world = *state;

	add(world, "a", "g", NULL);
	add(world, "b", "g", NULL);
	tell(world, COMMAND_GROUP_CLOSE, "g");
	finish(world, "a", COMMAND_COMPLETE);
	operate(world, COMMAND_PURGE, "a");
	restart(world);
	assert_int_equal(look(world, "g").count[TASK_DONE], 1);
	finish(world, "b", COMMAND_COMPLETE);
	operate(world, COMMAND_PURGE, "b");
	assert_true(is_there(world, "g"));
	assert_int_equal(store_sweep(world->store, world->now), 0);
	assert_false(is_there(world, "g"));
	restart(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(counts_move_with_the_members_and_survive_a_restart),
		ON_BOTH(what_waits_for_a_group_goes_when_it_is_closed_and_done),
		ON_BOTH(a_failed_member_blocks_and_its_retry_lets_wait_again),
		ON_BOTH(a_group_that_has_ended_is_judged_at_once),
		ON_BOTH(a_closed_group_keeps_out_and_a_removed_one_frees_its_name),
		ON_BOTH(a_task_that_is_opened_again_after_its_group_was_removed_is_of_none),
		ON_BOTH(what_would_wait_for_itself_is_refused),
		ON_BOTH(a_group_is_of_the_first_that_names_it),
		ON_BOTH(purged_members_stay_counted_and_the_last_takes_the_group_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
