/*
 * The kill switch in the store: it is durable, and fails closed.
 */
#include "store_fixture.h"

#include "core/flow/execution.h"

static bool arm(struct world *world, bool armed)
{
	struct command command = {.kind = COMMAND_EXECUTION_SET, .actor = SPAN("tester"), .armed = armed};
	struct result *result = world_run(world, &command);

	assert_int_equal(result->refusal, REFUSED_NOTHING);
	return !result->repeated && result->event_seq != 0;
}

static enum refusal claim(struct world *world, const char *worker)
{
	struct command command = say_claim(worker);

	return world_run(world, &command)->refusal;
}

static void disarmed_is_disarmed_after_a_crash_too(void **state)
{
	struct world *world = *state;
	int64_t since_ms;

	world_create(world, "job", "q");
	assert_true(store_is_armed(world->store, &since_ms));
	assert_int_equal(since_ms, 0);
	assert_true(arm(world, false));
	assert_false(arm(world, false)); /* it is so already */
	assert_int_equal(claim(world, "w"), REFUSED_EXECUTION_DISARMED);
	world_crash(world);
	assert_false(store_is_armed(world->store, &since_ms));
	assert_int_equal(since_ms, world->now.wall_ms);
	assert_int_equal(claim(world, "w"), REFUSED_EXECUTION_DISARMED);
	assert_true(arm(world, true));
	assert_int_equal(claim(world, "w"), REFUSED_NOTHING);
	assert_int_equal(world->result.claim_count, 1);
}

static void what_comes_after_it_in_the_same_turn_is_refused(void **state)
{
	struct world *world = *state;
	struct command commands[] = {
		{.kind = COMMAND_EXECUTION_SET, .armed = false},
		say_claim("w"),
		{.kind = COMMAND_EXECUTION_SET, .armed = true},
		say_claim("w"),
	};
	struct result results[4];

	world_create(world, "job", "q");
	assert_int_equal(store_turn(world->store, world->now, commands, 4, results), 0);
	assert_int_equal(results[1].refusal, REFUSED_EXECUTION_DISARMED);
	assert_int_equal(results[3].refusal, REFUSED_NOTHING);
	assert_int_equal(results[3].claim_count, 1);
}

static void what_is_held_is_reported_and_beats_go_on(void **state)
{
	struct world *world = *state;
	struct command beat = say_beat("w", 0);

	world_create(world, "job", "q");
	assert_int_equal(world_run(world, &beat)->refusal, REFUSED_NOTHING);
	uint64_t token = world->result.worker.token, fence = world_claim(world, "w");
	arm(world, false);
	beat = say_beat("w", token);
	assert_int_equal(world_run(world, &beat)->refusal, REFUSED_NOTHING);
	assert_int_equal(world_report(world, COMMAND_PROGRESS, "job", "w", fence), REFUSED_NOTHING);
	assert_int_equal(world_report(world, COMMAND_COMPLETE, "job", "w", fence), REFUSED_NOTHING);
	assert_int_equal(world_create(world, "another", "q"), REFUSED_NOTHING);
}

static void a_claim_that_was_made_before_is_not_handed_out_again(void **state)
{
	struct world *world = *state;
	struct command command = say_claim("w");

	command.claim.request = 7;
	world_create(world, "job", "q");
	assert_int_equal(world_run(world, &command)->claim_count, 1);
	arm(world, false);
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_EXECUTION_DISARMED);
}

static void what_is_stored_and_not_understood_is_disarmed(void **state)
{
	struct world *world = *state;
	struct backend *backend = world->backend;

	world_create(world, "job", "q");
	assert_int_equal(backend->ops->begin(backend), 0);
	assert_int_equal(backend->ops->put_meta(backend, META_EXECUTION, 17), 0);
	assert_int_equal(backend_commit(backend), 0);
	world_crash(world);
	assert_false(store_is_armed(world->store, NULL));
	assert_int_equal(claim(world, "w"), REFUSED_EXECUTION_DISARMED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(disarmed_is_disarmed_after_a_crash_too),
		ON_BOTH(what_comes_after_it_in_the_same_turn_is_refused),
		ON_BOTH(what_is_held_is_reported_and_beats_go_on),
		ON_BOTH(a_claim_that_was_made_before_is_not_handed_out_again),
		ON_BOTH(what_is_stored_and_not_understood_is_disarmed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
