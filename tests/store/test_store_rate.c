/*
 * Rates: so many claims in a time, of a queue or of each key, over restarts and clocks that are set back; and no claim while too many
 * tasks are in review.
 */
#include "store_fixture.h"

static void limit(struct world *world, uint32_t set, struct queue_limits wanted)
{
	struct command command = {
		.kind = COMMAND_QUEUE_LIMIT,
		.actor = SPAN("tester"),
		.oversees = true,
		.queue_limit = {.queue = SPAN("q"), .patch = {set, wanted}},
	};

	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
}

static void rate(struct world *world, uint32_t count, int64_t per_ms, uint32_t burst, bool per_key)
{
	limit(world, LIMITS_SET_RATE, (struct queue_limits){.rate = {count, burst, per_ms, per_key}});
}

static void create_many(struct world *world, uint32_t count, const char *key)
{
	char id[32];

	for (uint32_t i = 0; i < count; i++) {
		snprintf(id, sizeof id, "%s%u", key, i);
		struct command command = say_create(id, "q");
		command.create.concurrency_key = span_of(key);
		assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
	}
}

static uint32_t claim_many(struct world *world)
{
	struct command command = say_claim("w");

	command.claim.max = 100;
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
	return world->result.claim_count;
}

static void a_bucket_is_full_when_set_and_fills_evenly(void **state)
{
	struct world *world = *state;

	create_many(world, 12, "");
	rate(world, 2, 10000, 3, false);
	assert_int_equal(claim_many(world), 3);
	assert_int_equal(claim_many(world), 0);
	world_pass(world, 4999);
	assert_int_equal(claim_many(world), 0);
	world_pass(world, 1);
	assert_int_equal(claim_many(world), 1);
	world_pass(world, 60000);
	assert_int_equal(claim_many(world), 3); /* no more than the bucket holds */
}

static void a_claim_by_id_learns_when_the_next_permit_comes(void **state)
{
	struct world *world = *state;
	struct command claim = say_claim("v");

	create_many(world, 2, "");
	rate(world, 1, 60000, 1, false);
	assert_int_equal(claim_many(world), 1);
	int64_t made_ms = world->now.wall_ms;
	world_pass(world, 20000);
	claim.kind = COMMAND_CLAIM;
	claim.task = SPAN("1");
	assert_int_equal(world_run(world, &claim)->refusal, REFUSED_LIMITED);
	assert_int_equal(world->result.limit, LIMIT_RATE);
	assert_int_equal(world->result.until_ms, made_ms + 60000);
	struct task task = world_task(world, "1");
	struct reason reason = store_why(world->store, &task, world->now);
	assert_int_equal(reason.limit, LIMIT_RATE);
	assert_int_equal(reason.until_ms, made_ms + 60000);
}

static void a_restart_forgets_no_claim(void **state)
{
	struct world *world = *state;

	create_many(world, 4, "a");
	create_many(world, 4, "b");
	rate(world, 1, 86400000, 1, false);
	assert_int_equal(claim_many(world), 1);
	world_crash(world);
	assert_int_equal(claim_many(world), 0);
	rate(world, 1, 86400000, 1, true);
	assert_int_equal(claim_many(world), 2);
	world_crash(world);
	assert_int_equal(claim_many(world), 0);
	world_pass(world, 86400000);
	world_run(world, NULL);
	assert_int_equal(claim_many(world), 2);
}

static void each_key_has_its_own_bucket_and_tasks_without_one_have_none(void **state)
{
	struct world *world = *state;

	create_many(world, 3, "a");
	create_many(world, 3, "b");
	create_many(world, 3, "");
	rate(world, 1, 1000, 1, true);
	assert_int_equal(claim_many(world), 5);
	assert_int_equal(claim_many(world), 0);
	world_pass(world, 1000);
	assert_int_equal(claim_many(world), 2);
}

static void a_refill_wakes_exactly_one(void **state)
{
	struct world *world = *state;
	uint32_t queues[4];

	create_many(world, 5, "a");
	rate(world, 1, 1000, 1, true);
	assert_int_equal(claim_many(world), 1);
	assert_int_equal(store_ready_work(world->store, queues, 4).tasks, 0);
	assert_true(store_idle_ms(world->store, world->now) <= 1000);
	world_pass(world, 1000);
	world_run(world, NULL);
	assert_int_equal(store_ready_work(world->store, queues, 4).tasks, 1);
	world_run(world, NULL);
	assert_int_equal(store_ready_work(world->store, queues, 4).tasks, 0);
	rate(world, 2, 1000, 1, false);
	assert_int_equal(claim_many(world), 1);
	world_pass(world, 500);
	world_run(world, NULL);
	assert_int_equal(store_ready_work(world->store, queues, 4).tasks, 1);
}

static void a_clock_that_is_set_back_costs_one_filling_at_most(void **state)
{
	struct world *world = *state;

	create_many(world, 5, "a");
	rate(world, 1, 1000, 1, true);
	assert_int_equal(claim_many(world), 1);
	world->now.wall_ms -= INT64_C(86400000);
	assert_int_equal(claim_many(world), 0);
	world_pass(world, 1000);
	assert_int_equal(claim_many(world), 1);
	world->now.wall_ms -= INT64_C(86400000);
	world_crash(world);
	assert_int_equal(claim_many(world), 0);
	world_pass(world, 1000);
	assert_int_equal(claim_many(world), 1);
}

static void a_rate_that_is_lifted_lets_all_through(void **state)
{
	struct world *world = *state;

	create_many(world, 5, "a");
	rate(world, 1, 1000, 1, true);
	assert_int_equal(claim_many(world), 1);
	rate(world, 0, 0, 0, false);
	assert_int_equal(claim_many(world), 4);
}

static void nothing_is_handed_out_while_too_many_are_in_review(void **state)
{
	struct world *world = *state;
	uint32_t queues[4];

	create_many(world, 4, "");
	limit(world, LIMITS_SET_REVIEW, (struct queue_limits){.review = 1});
	uint64_t fence = world_claim(world, "w");
	assert_int_equal(world_report(world, COMMAND_REVIEW, "0", "w", fence), REFUSED_NOTHING);
	assert_int_equal(claim_many(world), 0);
	world_crash(world);
	assert_int_equal(claim_many(world), 0);
	struct command pass = say_about(COMMAND_PASS, "0");
	assert_int_equal(world_run(world, &pass)->refusal, REFUSED_NOTHING);
	assert_true(store_ready_work(world->store, queues, 4).tasks > 0);
	assert_int_equal(claim_many(world), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(a_bucket_is_full_when_set_and_fills_evenly),
		ON_BOTH(a_claim_by_id_learns_when_the_next_permit_comes),
		ON_BOTH(a_restart_forgets_no_claim),
		ON_BOTH(each_key_has_its_own_bucket_and_tasks_without_one_have_none),
		ON_BOTH(a_refill_wakes_exactly_one),
		ON_BOTH(a_clock_that_is_set_back_costs_one_filling_at_most),
		ON_BOTH(a_rate_that_is_lifted_lets_all_through),
		ON_BOTH(nothing_is_handed_out_while_too_many_are_in_review),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
