/*
 * Unique keys in the store: a conflict gives the task that is there, is refused, or puts another task in its place; a key may be held past
 * the end; and all of it survives restarts, retries and retention.
 */
#include "store_fixture.h"

#define HOUR_MS (INT64_C(3600) * 1000)

static struct command say_keyed(const char *id, enum on_conflict on_conflict)
{
	struct command command = say_create(id, "q");

	command.oversees = true;
	command.create.unique_key = SPAN("key");
	command.create.on_conflict = on_conflict;
	command.create.max_attempts = 1;
	return command;
}

static enum refusal add(struct world *world, const char *id, enum on_conflict on_conflict)
{
	struct command command = say_keyed(id, on_conflict);

	return world_run(world, &command)->refusal;
}

static enum refusal replace(struct world *world, const char *id)
{
	return add(world, id, CONFLICT_REPLACE);
}

static enum refusal add_after(struct world *world, const char *id, const char *parent)
{
	struct span parents[] = {span_of(parent)};
	struct command command = say_create(id, "q");

	command.create.parents = (struct name_list){parents, 1};
	return world_run(world, &command)->refusal;
}

static enum refusal operate(struct world *world, enum command_kind kind, const char *id)
{
	struct command command = say_about(kind, id);

	command.oversees = true;
	return world_run(world, &command)->refusal;
}

static bool answers_with(struct world *world, const char *id)
{
	return world->result.deduplicated && span_equal(world->result.id, span_of(id));
}

static void a_conflict_is_answered_or_refused(void **state)
{
	struct world *world = *state;

	assert_int_equal(add(world, "a", CONFLICT_REJECT), REFUSED_NOTHING);
	assert_int_equal(add(world, "b", CONFLICT_EXISTING), REFUSED_NOTHING);
	assert_true(answers_with(world, "a"));
	assert_int_equal(add(world, "b", CONFLICT_REJECT), REFUSED_TASK_EXISTS);
	assert_true(span_equal(world->result.id, SPAN("a")));
}

static void a_task_in_line_gives_its_place_and_those_that_wait_for_it(void **state)
{
	struct world *world = *state;

	replace(world, "a");
	add_after(world, "last", "a");
	world_pass(world, 1000);
	assert_int_equal(replace(world, "b"), REFUSED_NOTHING);
	assert_false(world->result.deduplicated);
	struct task a = world_task(world, "a"), b = world_task(world, "b");
	assert_int_equal(a.state, TASK_CANCELLED);
	assert_int_equal(a.superseded_by, b.seq);
	assert_int_equal(b.created_ms, a.created_ms);
	assert_int_equal(world_state(world, "last"), TASK_WAITING);
	world_crash(world);
	assert_int_equal(
		world_report(world, COMMAND_COMPLETE, "b", "w", world_claim(world, "w")), REFUSED_NOTHING);
	assert_int_equal(world_state(world, "last"), TASK_READY);
	assert_int_equal(add(world, "c", CONFLICT_REJECT), REFUSED_NOTHING);
}

static void a_running_task_ends_first_and_the_last_that_came_has_its_place(void **state)
{
	struct world *world = *state;

	replace(world, "a");
	uint64_t fence = world_claim(world, "w");
	assert_int_equal(replace(world, "b"), REFUSED_NOTHING);
	assert_int_equal(world_state(world, "a"), TASK_CLAIMED);
	assert_int_equal(world_state(world, "b"), TASK_WAITING);
	assert_int_equal(add(world, "x", CONFLICT_EXISTING), REFUSED_NOTHING);
	assert_true(answers_with(world, "b"));
	assert_int_equal(replace(world, "c"), REFUSED_NOTHING);
	assert_int_equal(world_state(world, "b"), TASK_CANCELLED);
	assert_int_equal(world_state(world, "c"), TASK_WAITING);
	assert_int_equal(world_task(world, "a").superseded_by, world_task(world, "c").seq);
	world_crash(world);
	assert_int_equal(world_claim(world, "v"), 0);
	assert_int_equal(world_report(world, COMMAND_FAIL, "a", "w", fence), REFUSED_NOTHING);
	assert_int_equal(world_state(world, "a"), TASK_CANCELLED);
	assert_int_equal(world_state(world, "c"), TASK_READY);
	assert_int_equal(operate(world, COMMAND_RETRY, "a"), REFUSED_TASK_EXISTS);
}

static void what_is_done_before_its_successor_stays_done(void **state)
{
	struct world *world = *state;

	replace(world, "a");
	uint64_t fence = world_claim(world, "w");
	replace(world, "b");
	assert_int_equal(world_report(world, COMMAND_COMPLETE, "a", "w", fence), REFUSED_NOTHING);
	assert_int_equal(world_state(world, "a"), TASK_DONE);
	assert_int_equal(world_state(world, "b"), TASK_READY);
}

static void a_producer_replaces_its_own_tasks_alone(void **state)
{
	struct world *world = *state;
	struct command command = say_keyed("a", CONFLICT_REPLACE);

	command.oversees = false;
	command.principal = 7;
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
	command.principal = 8;
	command.create.id = SPAN("b");
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_TASK_EXISTS);
	command.principal = 7;
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
	assert_int_equal(world_state(world, "a"), TASK_CANCELLED);
}

static void what_would_wait_for_itself_is_refused(void **state)
{
	struct world *world = *state;
	struct span parents[] = {SPAN("last")};
	struct command command = say_keyed("b", CONFLICT_REPLACE);

	replace(world, "a");
	add_after(world, "last", "a");
	command.create.parents = (struct name_list){parents, 1};
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_INVALID);
	assert_true(world->result.cyclic);
	parents[0] = SPAN("a");
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_INVALID);
	assert_int_equal(world_state(world, "a"), TASK_READY);
}

static void a_replaced_member_does_not_count_in_its_group(void **state)
{
	struct world *world = *state;
	struct command member = say_keyed("a", CONFLICT_REPLACE);
	struct command last = say_create("last", "q");
	struct command end = {.kind = COMMAND_GROUP_CLOSE, .actor = SPAN("tester"), .oversees = true};
	struct span after[] = {SPAN("g")};

	member.create.group = last.create.group = end.group.name = SPAN("g");
	world_run(world, &member);
	last.create.group = (struct span){0};
	last.create.blocked_by_groups = (struct name_list){after, 1};
	last.oversees = true;
	assert_int_equal(world_run(world, &last)->refusal, REFUSED_NOTHING);
	member.create.id = SPAN("b");
	assert_int_equal(world_run(world, &member)->refusal, REFUSED_NOTHING);
	world_run(world, &end);
	world_crash(world);
	assert_int_equal(
		world_report(world, COMMAND_COMPLETE, "b", "w", world_claim(world, "w")), REFUSED_NOTHING);
	assert_int_equal(world_state(world, "last"), TASK_READY);
	operate(world, COMMAND_PURGE, "a");
	assert_int_equal(world_state(world, "a"), TASK_NOWHERE);
}

static enum refusal add_for_an_hour(struct world *world, const char *id, enum on_conflict on_conflict)
{
	struct command command = say_keyed(id, on_conflict);

	command.create.unique_for_ms = HOUR_MS;
	return world_run(world, &command)->refusal;
}

static void a_key_is_held_past_done_for_its_time(void **state)
{
	struct world *world = *state;

	add_for_an_hour(world, "a", CONFLICT_EXISTING);
	world_report(world, COMMAND_COMPLETE, "a", "w", world_claim(world, "w"));
	world_crash(world);
	assert_int_equal(replace(world, "b"), REFUSED_NOTHING);
	assert_true(answers_with(world, "a"));
	assert_int_equal(add(world, "b", CONFLICT_REJECT), REFUSED_TASK_EXISTS);
	assert_int_equal(operate(world, COMMAND_PURGE, "a"), REFUSED_IN_USE);
	assert_int_equal(operate(world, COMMAND_RETRY, "a"), REFUSED_NOTHING);
	world_report(world, COMMAND_COMPLETE, "a", "w", world_claim(world, "w"));
	world_pass(world, HOUR_MS);
	assert_int_equal(add(world, "b", CONFLICT_REJECT), REFUSED_NOTHING);
	assert_false(world->result.deduplicated);
	assert_int_equal(operate(world, COMMAND_RETRY, "a"), REFUSED_TASK_EXISTS);
	assert_int_equal(operate(world, COMMAND_PURGE, "a"), REFUSED_NOTHING);
	assert_int_equal(add(world, "c", CONFLICT_REJECT), REFUSED_TASK_EXISTS);
}

static void a_key_is_not_held_past_a_failure(void **state)
{
	struct world *world = *state;

	add_for_an_hour(world, "a", CONFLICT_EXISTING);
	world_report(world, COMMAND_FAIL, "a", "w", world_claim(world, "w"));
	assert_int_equal(world_state(world, "a"), TASK_FAILED);
	assert_int_equal(add(world, "b", CONFLICT_REJECT), REFUSED_NOTHING);
}

static void a_key_of_the_past_is_free_when_its_task_is_removed(void **state)
{
	struct world *world = *state;

	add_for_an_hour(world, "a", CONFLICT_EXISTING);
	world_report(world, COMMAND_COMPLETE, "a", "w", world_claim(world, "w"));
	world_pass(world, HOUR_MS);
	assert_int_equal(operate(world, COMMAND_PURGE, "a"), REFUSED_NOTHING);
	assert_int_equal(add(world, "b", CONFLICT_REJECT), REFUSED_NOTHING);
}

static void what_is_put_off_again_and_again_runs_in_the_end(void **state)
{
	struct world *world = *state;
	char id[] = "a";

	for (; id[0] < 'k'; id[0]++) {
		struct command command = say_keyed(id, CONFLICT_REPLACE);
		command.create.unique_for_ms = HOUR_MS;
		command.create.not_before_ms = world->now.wall_ms + HOUR_MS / 2;
		assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
		world_pass(world, HOUR_MS / 8);
	}
	world_run(world, NULL);
	struct task last = world_task(world, "j");
	assert_int_equal(last.ready_at_ms, START_WALL_MS + HOUR_MS + HOUR_MS / 8);
	assert_int_equal(last.state, TASK_READY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(a_conflict_is_answered_or_refused),
		ON_BOTH(a_task_in_line_gives_its_place_and_those_that_wait_for_it),
		ON_BOTH(a_running_task_ends_first_and_the_last_that_came_has_its_place),
		ON_BOTH(what_is_done_before_its_successor_stays_done),
		ON_BOTH(a_producer_replaces_its_own_tasks_alone),
		ON_BOTH(what_would_wait_for_itself_is_refused),
		ON_BOTH(a_replaced_member_does_not_count_in_its_group),
		ON_BOTH(a_key_is_held_past_done_for_its_time),
		ON_BOTH(a_key_is_not_held_past_a_failure),
		ON_BOTH(a_key_of_the_past_is_free_when_its_task_is_removed),
		ON_BOTH(what_is_put_off_again_and_again_runs_in_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
