/*
 * Bulk actions in the store: each task once, across restarts and steps that come twice; nothing after a restore; the rights of the
 * caller; what is refused is counted.
 */
#include "store_fixture.h"

enum {
	TASKS = 10,
};

static const char *name_of_task(int number)
{
	static char name[16];

	snprintf(name, sizeof name, "m%d", number);
	return name;
}

static void add_many(struct world *world, int count)
{
	for (int i = 0; i < count; i++) {
		struct command create = say_create(name_of_task(i), "q");
		assert_int_equal(world_run(world, &create)->refusal, REFUSED_NOTHING);
	}
}

static struct command say_bulk(enum bulk_action action)
{
	struct command command = {.kind = COMMAND_BULK_START,
		.actor = SPAN("tester"),
		.principal = PRINCIPAL_ADMIN,
		.oversees = true};

	command.bulk.bulk =
		(struct bulk){.action = action, .filter = SPAN("{\"queue\":\"q\"}"), .token = SPAN("admin")};
	if (action == BULK_MOVE)
		command.bulk.bulk.queue = SPAN("r");
	command.bulk.matched = TASKS;
	return command;
}

static uint32_t start(struct world *world, enum bulk_action action)
{
	struct command command = say_bulk(action);
	struct result *result = world_run(world, &command);

	assert_int_equal(result->refusal, REFUSED_NOTHING);
	return result->bulk;
}

static struct bulk_progress look(struct world *world, uint32_t number)
{
	struct bulk_document document;

	assert_int_equal(store_read_bulk(world->store, number, &document), 0);
	return *document.progress;
}

/* A step over the tasks from m`first` on, so many of them; all were seen as they are now. */
static struct command say_step(
	struct world *world, uint32_t number, int first, int count, struct bulk_item *items)
{
	struct command command = {.kind = COMMAND_BULK_STEP, .actor = SPAN("tester")};

	command.bulk.bulk.number = number;
	command.bulk.from = look(world, number).cursor;
	command.bulk.items = items;
	command.bulk.item_count = (uint32_t)count;
	for (int i = 0; i < count; i++) {
		struct task task = world_task(world, name_of_task(first + i));
		items[i] = (struct bulk_item){.seq = task.seq, .version = task.version};
		command.bulk.to = task.seq;
	}
	return command;
}

static void step(struct world *world, uint32_t number, int first, int count)
{
	struct bulk_item items[TASKS];
	struct command command = say_step(world, number, first, count, items);

	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
}

static uint32_t events_of(struct world *world, enum event_kind kind)
{
	return (uint32_t)store_counts(world->store)->events[kind];
}

static void each_task_is_changed_once_across_a_restart(void **state)
{
	struct world *world = *state;

	add_many(world, TASKS);
	uint32_t number = start(world, BULK_PARK);
	step(world, number, 0, 4);
	world_crash(world);
	assert_int_equal(look(world, number).state, BULK_RUNNING);
	assert_int_equal(look(world, number).done, 4);
	step(world, number, 4, 6);
	assert_int_equal(look(world, number).state, BULK_DONE);
	assert_int_equal(look(world, number).done, TASKS);
	assert_int_equal(events_of(world, EVENT_TASK_PARKED), 6); /* of this run */
	assert_int_equal(events_of(world, EVENT_BULK_ENDED), 1);
	for (int i = 0; i < TASKS; i++)
		assert_int_equal(world_state(world, name_of_task(i)), TASK_PENDING);
}

static void a_step_that_comes_twice_does_nothing(void **state)
{
	struct world *world = *state;
	struct bulk_item items[TASKS];

	add_many(world, TASKS);
	uint32_t number = start(world, BULK_CANCEL);
	struct command command = say_step(world, number, 0, 4, items);
	world_run(world, &command);
	world_run(world, &command);
	assert_int_equal(look(world, number).done, 4);
	struct bulk_progress progress = look(world, number);
	assert_int_equal(bulk_skipped(&progress), 0);
}

static void a_task_that_has_changed_since_is_looked_at_again(void **state)
{
	struct world *world = *state;
	struct bulk_item items[TASKS];

	add_many(world, TASKS);
	uint32_t number = start(world, BULK_CANCEL);
	struct command command = say_step(world, number, 0, 4, items);
	struct command park = say_about(COMMAND_PARK, "m2");
	world_run(world, &park);
	world_run(world, &command);
	assert_int_equal(look(world, number).done, 2);
	assert_int_equal(look(world, number).cursor, items[1].seq);
	assert_int_equal(world_state(world, "m2"), TASK_PENDING);
	assert_int_equal(world_state(world, "m3"), TASK_READY);
}

static void what_was_made_after_it_began_is_not_touched(void **state)
{
	struct world *world = *state;

	add_many(world, 3);
	uint32_t number = start(world, BULK_CANCEL);
	struct command late = say_create("m3", "q");
	world_run(world, &late);
	step(world, number, 0, 4);
	assert_int_equal(look(world, number).done, 3);
	assert_int_equal(world_state(world, "m3"), TASK_READY);
}

static void nothing_goes_on_after_a_restore(void **state)
{
	struct world *world = *state;

	add_many(world, TASKS);
	uint32_t number = start(world, BULK_CANCEL);
	step(world, number, 0, 4);
	struct backend *backend = store_abandon(world->store);
	assert_int_equal(backend->ops->begin(backend), 0);
	assert_int_equal(backend->ops->put_meta(backend, META_RESTORED, RESTORED), 0);
	assert_int_equal(backend->ops->put_meta(backend, META_GENERATION, 2), 0);
	assert_int_equal(backend_commit(backend), 0);
	world->store = NULL;
	if (world->on_disk)
		backend->ops->close(backend);
	world_open(world);
	assert_int_equal(look(world, number).state, BULK_STOPPED);
	assert_int_equal(look(world, number).stop, BULK_RESTORED);
	assert_false(store_has_bulk(world->store));
	assert_true(
		start(world, BULK_CANCEL) > number + 1); /* numbers given out since the backup are left out */
}

static void it_stops_where_it_is(void **state)
{
	struct world *world = *state;
	struct command stop = {.kind = COMMAND_BULK_STOP, .actor = SPAN("tester")};
	struct bulk_item items[TASKS];

	add_many(world, TASKS);
	uint32_t number = start(world, BULK_CANCEL);
	struct command late = say_step(world, number, 0, 4, items);
	stop.bulk.bulk.number = number;
	world_run(world, &stop);
	assert_true(world_run(world, &stop)->repeated);
	world_run(world, &late);
	assert_int_equal(look(world, number).stop, BULK_BY_PERSON);
	assert_int_equal(world_state(world, "m0"), TASK_READY);
	stop.bulk.bulk.number = number + 1;
	assert_int_equal(world_run(world, &stop)->refusal, REFUSED_NOT_FOUND);
}

static struct command say_token(enum command_kind kind)
{
	struct command command = {.kind = kind, .actor = SPAN("tester"), .principal = PRINCIPAL_ADMIN};

	command.token = (struct command_token){
		.id = SPAN("tok"), .kind = TOKEN_OPERATOR, .name = SPAN("n"), .hash = {1}};
	return command;
}

static void a_revoked_caller_ends_it(void **state)
{
	struct world *world = *state;
	struct command token = say_token(COMMAND_TOKEN_PUT), revoke = say_token(COMMAND_TOKEN_REVOKE);

	add_many(world, TASKS);
	world_run(world, &token);
	struct command command = say_bulk(BULK_CANCEL);
	command.principal = store_find_token(world->store, SPAN("tok"))->principal;
	command.bulk.bulk.token = SPAN("tok");
	uint32_t number = world_run(world, &command)->bulk;
	step(world, number, 0, 4);
	world_run(world, &revoke);
	step(world, number, 4, 4);
	assert_int_equal(look(world, number).done, 4);
	assert_int_equal(look(world, number).stop, BULK_REVOKED);
}

static void what_is_refused_is_counted_and_survives(void **state)
{
	struct world *world = *state;
	static const struct span parents[] = {{"m0", 2}};
	struct command child = say_create("child", "other");

	add_many(world, 3);
	child.create.parents = (struct name_list){parents, 1};
	world_run(world, &child);
	for (int i = 0; i < 2; i++) {
		struct command cancel = say_about(COMMAND_CANCEL, name_of_task(i));
		world_run(world, &cancel);
	}
	uint32_t number = start(world, BULK_PURGE);
	step(world, number, 0, 3);
	world_crash(world);
	struct bulk_progress progress = look(world, number);
	assert_int_equal(progress.done, 1);
	assert_int_equal(progress.skipped[REFUSED_IN_USE], 1);
	assert_int_equal(progress.skipped[REFUSED_BAD_TRANSITION], 1);
}

static void a_damaged_task_is_passed_over(void **state)
{
	struct world *world = *state;
	struct bulk_item items[TASKS];

	add_many(world, 3);
	uint32_t number = start(world, BULK_PARK);
	struct command command = say_step(world, number, 0, 3, items);
	items[1].damaged = true;
	world_run(world, &command);
	assert_int_equal(look(world, number).done, 2);
	assert_int_equal(look(world, number).skipped[REFUSED_STORE_DAMAGED], 1);
	assert_int_equal(world_state(world, "m1"), TASK_READY);
}

static void it_moves_and_gives_priorities(void **state)
{
	struct world *world = *state;

	add_many(world, 2);
	step(world, start(world, BULK_MOVE), 0, 2);
	struct command command = say_bulk(BULK_PRIORITY);
	command.bulk.bulk.priority = -7;
	step(world, world_run(world, &command)->bulk, 0, 2);
	assert_int_equal(world_task(world, "m1").priority, -7);
	assert_true(span_is(store_name(world->store, world_task(world, "m1").queue), "r"));
}

static void only_so_many_run_and_are_kept(void **state)
{
	struct world *world = *state;
	struct command command = say_bulk(BULK_PARK);
	struct bulk_document document;

	add_many(world, 1);
	uint32_t first = start(world, BULK_PARK);
	for (int i = 1; i < BULKS_RUNNING_MAX; i++)
		start(world, BULK_PARK);
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_TOO_LARGE);
	for (int i = 0; i < BULKS_KEPT_MAX; i++) {
		struct command stop = {.kind = COMMAND_BULK_STOP, .actor = SPAN("tester")};
		stop.bulk.bulk.number = first + (uint32_t)i;
		world_run(world, &stop);
		start(world, BULK_PARK);
	}
	assert_int_equal(store_read_bulk(world->store, first, &document), -ENOENT);
	world_crash(world);
	uint32_t number = 0, count = 0;
	while (store_next_bulk(world->store, &number, &document))
		count++;
	assert_int_equal(count, BULKS_KEPT_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(each_task_is_changed_once_across_a_restart),
		ON_BOTH(a_step_that_comes_twice_does_nothing),
		ON_BOTH(a_task_that_has_changed_since_is_looked_at_again),
		ON_BOTH(what_was_made_after_it_began_is_not_touched),
		ON_BOTH(nothing_goes_on_after_a_restore),
		ON_BOTH(it_stops_where_it_is),
		ON_BOTH(a_revoked_caller_ends_it),
		ON_BOTH(what_is_refused_is_counted_and_survives),
		ON_BOTH(a_damaged_task_is_passed_over),
		ON_BOTH(it_moves_and_gives_priorities),
		ON_BOTH(only_so_many_run_and_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
