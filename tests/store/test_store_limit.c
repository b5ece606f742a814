/*
 * Limits of queues in the store: they are counted from live claims, within a turn too, bind every new claim, and stay after a crash.
 */
#include "store_fixture.h"

static struct command say_limit(const char *queue, uint32_t concurrency)
{
	return (struct command){
		.kind = COMMAND_QUEUE_LIMIT,
		.actor = SPAN("tester"),
		.oversees = true,
		.queue_limit = {.queue = span_of(queue),
			.patch = {.set = LIMITS_SET_CONCURRENCY, .wanted = {.concurrency = concurrency}}},
	};
}

static void limit(struct world *world, const char *queue, uint32_t concurrency)
{
	struct command command = say_limit(queue, concurrency);

	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
}

static uint32_t claim_many(struct world *world, const char *worker, uint32_t max)
{
	struct command command = say_claim(worker);

	command.claim.max = max;
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
	return world->result.claim_count;
}

static void create_four(struct world *world)
{
	assert_int_equal(world_create(world, "a", "q"), REFUSED_NOTHING);
	assert_int_equal(world_create(world, "b", "q"), REFUSED_NOTHING);
	assert_int_equal(world_create(world, "c", "q"), REFUSED_NOTHING);
	assert_int_equal(world_create(world, "other", "free"), REFUSED_NOTHING);
}

static void what_is_over_the_limit_is_passed_over(void **state)
{
	struct world *world = *state;

	create_four(world);
	limit(world, "q", 2);
	assert_int_equal(claim_many(world, "w", 10), 3);
	assert_int_equal(world_task(world, "c").state, TASK_READY);
	assert_int_equal(world_task(world, "other").state, TASK_CLAIMED);
}

static void a_claim_by_id_is_refused_and_says_by_which_limit(void **state)
{
	struct world *world = *state;
	struct command claim = say_claim("v");

	create_four(world);
	limit(world, "q", 1);
	assert_int_equal(claim_many(world, "w", 1), 1);
	claim.kind = COMMAND_CLAIM;
	claim.task = SPAN("b");
	assert_int_equal(world_run(world, &claim)->refusal, REFUSED_LIMITED);
	assert_int_equal(world->result.limit, LIMIT_CONCURRENCY);
	assert_int_equal(world_task(world, "b").state, TASK_READY);
}

static void an_end_frees_the_place_and_wakes_as_many_as_fit(void **state)
{
	struct world *world = *state;
	uint32_t queues[4];

	create_four(world);
	limit(world, "q", 1);
	uint64_t fence = world_claim(world, "w");
	assert_int_equal(claim_many(world, "v", 10), 1); /* of the queue without a limit */
	assert_int_equal(store_ready_work(world->store, queues, 4).tasks, 0);
	assert_int_equal(world_report(world, COMMAND_COMPLETE, "a", "w", fence), REFUSED_NOTHING);
	assert_int_equal(store_ready_work(world->store, queues, 4).tasks, 1);
	assert_int_not_equal(world_claim(world, "w"), 0);
	assert_int_equal(world_claim(world, "w"), 0);
}

static void a_finish_and_a_claim_of_one_turn_count_in_their_order(void **state)
{
	struct world *world = *state;
	struct result results[3];

	create_four(world);
	limit(world, "q", 1);
	uint64_t fence = world_claim(world, "w");
	struct command commands[] = {
		say_report(COMMAND_COMPLETE, "a", "w", fence), say_claim("w"), say_claim("v")};
	commands[1].claim.max = 1;
	commands[2].claim.max = 10;
	assert_int_equal(store_turn(world->store, world->now, commands, 3, results), 0);
	assert_int_equal(results[1].claim_count, 1);
	assert_int_equal(results[2].claim_count, 1); /* the task without a limit */
	assert_int_equal(world_task(world, "b").state, TASK_CLAIMED);
	assert_int_equal(world_task(world, "c").state, TASK_READY);
	world_run(world, NULL);
}

static void a_limit_that_comes_with_claims_in_its_turn_counts_them(void **state)
{
	struct world *world = *state;
	struct command commands[] = {say_claim("w"), say_limit("q", 2), say_claim("v")};
	struct result results[3];

	create_four(world);
	commands[2].claim.max = 10;
	assert_int_equal(store_turn(world->store, world->now, commands, 3, results), 0);
	assert_int_equal(results[0].claim_count, 1);
	assert_int_equal(results[2].claim_count, 2); /* one more of q, and the other */
	assert_int_equal(world_task(world, "c").state, TASK_READY);
	world_run(world, NULL);
}

static void limits_and_places_are_the_same_after_a_crash(void **state)
{
	struct world *world = *state;

	create_four(world);
	limit(world, "q", 2);
	assert_int_equal(claim_many(world, "w", 1), 1);
	world_crash(world);
	assert_int_equal(claim_many(world, "v", 10), 2); /* one of q, and the other */
	limit(world, "q", 0);
	world_crash(world);
	assert_int_equal(claim_many(world, "v", 10), 1);
}

static void a_lower_limit_stops_nobody_and_a_lost_claim_frees_its_place(void **state)
{
	struct world *world = *state;

	create_four(world);
	assert_int_equal(claim_many(world, "w", 2), 2);
	limit(world, "q", 1);
	assert_int_equal(world_task(world, "a").state, TASK_CLAIMED);
	assert_int_equal(world_task(world, "b").state, TASK_CLAIMED);
	assert_int_equal(claim_many(world, "v", 10), 1); /* of the other queue */
	world_pass(world, INT64_C(24) * 3600 * 1000);
	world_run(world, NULL); /* all leases are over */
	world_pass(world, INT64_C(24) * 3600 * 1000);
	world_run(world, NULL);
	assert_int_equal(claim_many(world, "u", 10), 2); /* one of q, and the other */
}

static void a_repeated_claim_is_neither_checked_nor_counted(void **state)
{
	struct world *world = *state;
	struct command claim = say_claim("w");

	create_four(world);
	limit(world, "q", 1);
	claim.claim.request = 77;
	assert_int_equal(world_run(world, &claim)->claim_count, 1);
	uint64_t fence = world->result.claims[0].task.fence;
	assert_int_equal(world_run(world, &claim)->claim_count, 1);
	assert_int_equal(world->result.claims[0].task.fence, fence);
	assert_true(world->result.repeated);
}

static void why_names_the_limit(void **state)
{
	struct world *world = *state;

	create_four(world);
	limit(world, "q", 1);
	assert_int_equal(claim_many(world, "w", 1), 1);
	struct task task = world_task(world, "b");
	struct reason reason = store_why(world->store, &task, world->now);
	assert_int_equal(reason.why, WHY_LIMITED);
	assert_int_equal(reason.limit, LIMIT_CONCURRENCY);
	assert_int_equal(reason.most, 1);
	assert_int_equal(reason.live, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(what_is_over_the_limit_is_passed_over),
		ON_BOTH(a_claim_by_id_is_refused_and_says_by_which_limit),
		ON_BOTH(an_end_frees_the_place_and_wakes_as_many_as_fit),
		ON_BOTH(a_finish_and_a_claim_of_one_turn_count_in_their_order),
		ON_BOTH(a_limit_that_comes_with_claims_in_its_turn_counts_them),
		ON_BOTH(limits_and_places_are_the_same_after_a_crash),
		ON_BOTH(a_lower_limit_stops_nobody_and_a_lost_claim_frees_its_place),
		ON_BOTH(a_repeated_claim_is_neither_checked_nor_counted),
		ON_BOTH(why_names_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
