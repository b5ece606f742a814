/*
 * Events from outside: one event of the task each, and the same id acts once.
 */
#include "store_fixture.h"

static enum refusal emit(struct world *world, const char *task, const char *id, unsigned char body)
{
	struct command command = say_about(COMMAND_EMIT, task);

	command.note = SPAN("\"event\":\"ci\"");
	command.emit.id = span_of(id);
	for (const char *c = id; c && *c; c++)
		command.emit.digest = command.emit.digest * 31 + (unsigned char)*c;
	memset(command.emit.fingerprint, body, sizeof command.emit.fingerprint);
	return world_run(world, &command)->refusal;
}

static void the_same_id_acts_once_and_is_answered_as_the_first_time(void **state)
{
	struct world *world = *state;

	world_create(world, "a", "q");
	assert_int_equal(emit(world, "a", "e1", 1), REFUSED_NOTHING);
	int64_t seq = world->result.noted_seq, time_ms = world->result.noted_ms;
	assert_int_equal(seq, store_last_event(world->store));
	world_pass(world, 1000);
	world_crash(world);
	int64_t last = store_last_event(world->store);
	assert_int_equal(emit(world, "a", "e1", 1), REFUSED_NOTHING);
	assert_true(world->result.repeated);
	assert_int_equal(world->result.noted_seq, seq);
	assert_int_equal(world->result.noted_ms, time_ms);
	assert_int_equal(emit(world, "a", "e1", 2), REFUSED_IDEMPOTENCY_CONFLICT);
	assert_int_equal(store_last_event(world->store), last);
	assert_int_equal(emit(world, "a", "e2", 2), REFUSED_NOTHING);
	assert_int_equal(store_last_event(world->store), last + 1);
}

static void ids_are_remembered_by_task(void **state)
{
	struct world *world = *state;

	world_create(world, "a", "q");
	world_create(world, "b", "q");
	assert_int_equal(emit(world, "a", "e1", 1), REFUSED_NOTHING);
	assert_int_equal(emit(world, "b", "e1", 2), REFUSED_NOTHING);
	assert_false(world->result.repeated);
	assert_int_equal(emit(world, "c", "e1", 1), REFUSED_NOT_FOUND);
}

static void without_an_id_it_acts_each_time(void **state)
{
	struct world *world = *state;

	world_create(world, "a", "q");
	emit(world, "a", NULL, 1);
	int64_t seq = world->result.noted_seq;
	emit(world, "a", NULL, 1);
	assert_int_equal(world->result.noted_seq, seq + 1);
}

static void a_final_task_is_told_too_and_stays_as_it_is(void **state)
{
	struct world *world = *state;

	world_create(world, "a", "q");
	uint64_t fence = world_claim(world, "w");
	world_report(world, COMMAND_COMPLETE, "a", "w", fence);
	assert_int_equal(emit(world, "a", "deployed", 1), REFUSED_NOTHING);
	assert_int_equal(world_state(world, "a"), TASK_DONE);
	assert_int_equal(world->result.task.version, store_last_event(world->store));
}

static void the_oldest_ids_are_forgotten(void **state)
{
	struct world *world = *state;
	struct command command = say_about(COMMAND_EMIT, "a");
	struct result result;
	char id[16];

	world_create(world, "a", "q");
	for (uint32_t i = 0; i <= COMMAND_EMITS_MAX; i++) {
		snprintf(id, sizeof id, "e%u", i);
		command.emit.id = span_of(id);
		command.emit.digest = i + 1;
		assert_int_equal(store_turn(world->store, world->now, &command, 1, &result), 0);
		assert_false(result.repeated);
	}
	command.emit = (struct command_emit){.id = SPAN("e1"), .digest = 2};
	assert_int_equal(store_turn(world->store, world->now, &command, 1, &result), 0);
	assert_true(result.repeated);
	command.emit = (struct command_emit){.id = SPAN("e0"), .digest = 1};
	assert_int_equal(store_turn(world->store, world->now, &command, 1, &result), 0);
	assert_false(result.repeated);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(the_same_id_acts_once_and_is_answered_as_the_first_time),
		ON_BOTH(ids_are_remembered_by_task),
		ON_BOTH(without_an_id_it_acts_each_time),
		ON_BOTH(a_final_task_is_told_too_and_stays_as_it_is),
		ON_BOTH(the_oldest_ids_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
