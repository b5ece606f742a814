/*
 * Subtasks of one turn: what one takes from the budget of its parent is not there for the next; and what a claim may do outlives a restart.
 */
#include "store_fixture.h"

static uint64_t begin(struct world *world)
{
	struct command create = say_create("p", "q"), claim = say_claim("w");
	struct command_account listed[] = {{SPAN("agent"), SPAN("tests")}, {SPAN("other"), SPAN("shell")}};

	create.create.executor = SPAN("agent");
	assert_int_equal(world_run(world, &create)->refusal, REFUSED_NOTHING);
	claim.claim.any_executor = true;
	claim.claim.announced.subtasks = (struct command_accounts){true, 2, listed};
	assert_int_equal(world_run(world, &claim)->claim_count, 1);
	return world_task(world, "p").fence;
}

static struct command say_subtask(const char *id, uint64_t fence)
{
	struct command command = say_create(id, "q");

	command.task = SPAN("p");
	command.worker = SPAN("w");
	command.fence = fence;
	command.create.subtask = true;
	return command;
}

static void two_of_one_turn_share_what_is_left(void **state)
{
	struct world *world = *state;
	uint64_t fence = begin(world);
	const struct subtask_budget half = {.limited = 1, .said = 1, .left = {2.0}, .wanted = {1.5}};
	const struct subtask_budget rest = {.limited = 1, .said = 1, .left = {2.0}, .wanted = {0.5}};
	struct command commands[] = {
		say_subtask("a", fence), say_subtask("b", fence), say_subtask("c", fence)};
	struct result results[3];

	commands[0].create.budget = commands[1].create.budget = &half;
	commands[2].create.budget = &rest;
	assert_int_equal(store_turn(world->store, world->now, commands, 3, results), 0);
	assert_int_equal(results[0].refusal, REFUSED_NOTHING);
	assert_int_equal(results[1].refusal, REFUSED_INVALID);
	assert_int_equal(results[1].excess, EXCESS_BUDGET);
	assert_true(results[1].budget_left == 0.5);
	assert_int_equal(results[2].refusal, REFUSED_NOTHING);
	world_run(world, NULL);
}

/* It was counted before another one came: nobody knows what that one took. */
static void what_was_left_before_others_came_is_counted_again(void **state)
{
	struct world *world = *state;
	uint64_t fence = begin(world);
	const struct subtask_budget early = {
		.limited = 1, .said = 1, .left = {2.0}, .wanted = {1.5}, .seen = 0};
	struct subtask_budget late = early;
	struct command first = say_subtask("a", fence), second = say_subtask("b", fence);

	first.create.budget = second.create.budget = &early;
	assert_int_equal(world_run(world, &first)->refusal, REFUSED_NOTHING);
	assert_int_equal(world_run(world, &second)->refusal, REFUSED_UNAVAILABLE);
	late.seen = 1;
	late.left[0] = 0.5;
	second.create.budget = &late;
	assert_int_equal(world_run(world, &second)->excess, EXCESS_BUDGET);
}

static void what_the_holder_listed_outlives_a_restart(void **state)
{
	struct world *world = *state;
	uint64_t fence = begin(world);
	struct command allowed = say_subtask("a", fence), refused = say_subtask("b", fence);

	world_crash(world);
	allowed.create.executor = SPAN("tests");
	refused.create.executor = SPAN("shell"); /* of another executor */
	assert_int_equal(world_run(world, &allowed)->refusal, REFUSED_NOTHING);
	assert_int_equal(world_run(world, &refused)->excess, EXCESS_EXECUTOR);
}

static void a_key_of_one_above_it_is_refused_in_a_sequential_queue(void **state)
{
	struct world *world = *state;
	uint64_t fence = begin(world);
	struct command limit = {.kind = COMMAND_QUEUE_LIMIT,
		.oversees = true,
		.queue_limit = {.queue = SPAN("q"), .patch = {LIMITS_SET_SEQUENTIAL, {.sequential = true}}}};
	struct command key = say_about(COMMAND_UPDATE, "p"), same = say_subtask("a", fence);

	assert_int_equal(world_run(world, &limit)->refusal, REFUSED_NOTHING);
	key.update.patch.set_concurrency_key = true;
	key.update.concurrency_key = SPAN("acme");
	assert_int_equal(world_run(world, &key)->refusal, REFUSED_NOTHING);
	same.create.concurrency_key = SPAN("acme");
	assert_int_equal(world_run(world, &same)->refusal, REFUSED_INVALID);
	assert_int_equal(world->result.excess, EXCESS_KEY);
	same.create.concurrency_key = SPAN("other");
	assert_int_equal(world_run(world, &same)->refusal, REFUSED_NOTHING);
}

static void beat_on(struct world *world, const char *worker, const char *host)
{
	struct command beat = say_beat(worker, 0);

	beat.beat.describes = true;
	beat.beat.any_executor = true;
	beat.beat.process = (struct command_process){span_of(host), 1, 2, 10, 100};
	assert_int_equal(world_run(world, &beat)->refusal, REFUSED_NOTHING);
}

static void a_parked_one_whose_subtasks_have_ended_is_for_every_host(void **state)
{
	struct world *world = *state;
	struct command park = say_about(COMMAND_PARK, "p"), cancel = say_about(COMMAND_CANCEL, "a"),
		       claim = say_claim("w2");

	beat_on(world, "w", "host-a");
	beat_on(world, "w2", "host-b");
	uint64_t fence = begin(world);
	struct command subtask = say_subtask("a", fence);
	subtask.create.executor = SPAN("agent");
	assert_int_equal(world_run(world, &subtask)->refusal, REFUSED_NOTHING);
	assert_int_equal(world_report(world, COMMAND_WAIT, "p", "w", fence), REFUSED_NOTHING);
	assert_int_equal(world_state(world, "p"), TASK_WAITING);
	assert_int_equal(world_run(world, &park)->refusal, REFUSED_NOTHING);
	assert_int_equal(world_run(world, &cancel)->refusal, REFUSED_NOTHING);
	assert_int_equal(world_state(world, "p"), TASK_PENDING);
	claim.claim.any_executor = true;
	claim.claim.takes_pending = true;
	assert_int_equal(world_run(world, &claim)->claim_count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(two_of_one_turn_share_what_is_left),
		ON_BOTH(what_was_left_before_others_came_is_counted_again),
		ON_BOTH(what_the_holder_listed_outlives_a_restart),
		ON_BOTH(a_key_of_one_above_it_is_refused_in_a_sequential_queue),
		ON_BOTH(a_parked_one_whose_subtasks_have_ended_is_for_every_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
