/*
 * What people tell a task: it reaches the holder, or the next one, and is not lost in between.
 */
#include "store_fixture.h"

#define MINUTES(n) ((int64_t)(n) * 60 * 1000)

static enum refusal tell(struct world *world, const char *text)
{
	struct command command = say_about(COMMAND_TELL, "job");

	command.data = span_of(text);
	return world_run(world, &command)->refusal;
}

static struct result *claim(struct world *world, const char *worker)
{
	struct command command = say_claim(worker);

	world_run(world, &command);
	assert_int_equal(world->result.claim_count, 1);
	return &world->result;
}

static uint32_t told_by_beat(struct world *world, uint64_t token)
{
	struct command beat = say_beat("w", token);

	beat.beat.lease_ms = MINUTES(60);
	assert_int_equal(world_run(world, &beat)->refusal, REFUSED_NOTHING);
	return world->result.tell_count;
}

static bool told_by_progress(struct world *world, uint64_t fence, uint32_t heard)
{
	struct command progress = say_report(COMMAND_PROGRESS, "job", "w", fence);

	progress.heard = heard;
	assert_int_equal(world_run(world, &progress)->refusal, REFUSED_NOTHING);
	return world->result.told;
}

static void the_first_claim_carries_what_was_told_before(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	assert_int_equal(tell(world, "one"), REFUSED_NOTHING);
	world_crash(world);
	assert_int_equal(tell(world, "two"), REFUSED_NOTHING);
	struct result *result = claim(world, "w");
	assert_int_equal(result->claims[0].last_telling, 2);
	assert_true(span_equal(result->claims[0].tellings[0], SPAN("one")));
	assert_true(span_equal(result->claims[0].tellings[1], SPAN("two")));
	assert_false(told_by_progress(world, result->claims[0].task.fence, 0));
}

static void a_running_holder_is_told_until_it_has_heard_it(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	assert_int_equal(told_by_beat(world, 0), 0);
	uint64_t token = world->result.worker.token;
	uint64_t fence = claim(world, "w")->claims[0].task.fence;
	assert_false(told_by_progress(world, fence, 0));
	tell(world, "one");
	assert_true(told_by_progress(world, fence, 0));
	assert_int_equal(told_by_beat(world, token), 1);
	token = world->result.worker.token;
	tell(world, "two");
	assert_true(told_by_progress(world, fence, 1)); /* the second has come in between */
	assert_int_equal(told_by_beat(world, token), 1);
	token = world->result.worker.token;
	assert_false(told_by_progress(world, fence, 2));
	assert_int_equal(told_by_beat(world, token), 0);
	tell(world, "three");
	world_crash(world);
	assert_true(told_by_progress(world, fence, 2));
}

static void what_a_lost_attempt_has_heard_the_next_one_gets_too(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	uint64_t fence = claim(world, "w")->claims[0].task.fence;
	tell(world, "one");
	told_by_progress(world, fence, 1);
	world_report(world, COMMAND_RELEASE, "job", "w", fence);
	assert_int_equal(claim(world, "w")->claims[0].last_telling, 1);
}

static void a_task_that_has_ended_is_told_nothing_and_counts_no_more(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	uint64_t fence = claim(world, "w")->claims[0].task.fence;
	tell(world, "one");
	assert_int_equal(world_report(world, COMMAND_COMPLETE, "job", "w", fence), REFUSED_NOTHING);
	assert_int_equal(tell(world, "two"), REFUSED_BAD_TRANSITION);
	world_crash(world);
	struct command retry = say_about(COMMAND_RETRY, "job");
	world_run(world, &retry);
	fence = claim(world, "w")->claims[0].task.fence;
	assert_false(told_by_progress(world, fence, 0));
}

static void twenty_messages_that_nobody_heard_are_enough(void **state)
{
	struct world *world = *state;
	char text[16];

	world_create(world, "job", "q");
	for (int i = 1; i <= 20; i++) {
		snprintf(text, sizeof text, "%d", i);
		assert_int_equal(tell(world, text), REFUSED_NOTHING);
	}
	assert_int_equal(tell(world, "21"), REFUSED_TOO_LARGE);
	assert_true(world->result.told_enough);
	uint64_t fence = claim(world, "w")->claims[0].task.fence;
	for (int i = 21; i <= 130; i++) {
		snprintf(text, sizeof text, "%d", i);
		assert_int_equal(tell(world, text), REFUSED_NOTHING);
		world_pass(world, 1000);
		assert_false(told_by_progress(world, fence, (uint32_t)i));
	}
	world_report(world, COMMAND_RELEASE, "job", "w", fence);
	struct result *result = claim(world, "w");
	assert_int_equal(result->claims[0].first_telling, 111);
	assert_true(span_equal(result->claims[0].tellings[19], SPAN("130")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(the_first_claim_carries_what_was_told_before),
		ON_BOTH(a_running_holder_is_told_until_it_has_heard_it),
		ON_BOTH(what_a_lost_attempt_has_heard_the_next_one_gets_too),
		ON_BOTH(a_task_that_has_ended_is_told_nothing_and_counts_no_more),
		ON_BOTH(twenty_messages_that_nobody_heard_are_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
