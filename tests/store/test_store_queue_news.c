/*
 * News of queues: what is draining says once that it is empty, in the turn that ends its last task; that a limit holds back work, and that no
 * work is left, is said once, however often the sweep looks.
 */
#include "store_fixture.h"

static void set_queue(struct world *world, enum queue_state state)
{
	struct command command = {
		.kind = COMMAND_QUEUE_SET, .oversees = true, .queue_set = {SPAN("q"), state}};

	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
}

static void limit_to_one(struct world *world)
{
	struct command command = {.kind = COMMAND_QUEUE_LIMIT,
		.oversees = true,
		.queue_limit = {.queue = SPAN("q"), .patch = {LIMITS_SET_CONCURRENCY, {.concurrency = 1}}}};

	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
}

struct count {
	enum event_kind kind;
	uint32_t seen;
	struct record last;
};

static int count_kind(void *context, const struct record *record)
{
	struct count *count = context;

	if (record->kind != count->kind)
		return 0;
	assert_true(span_equal(record->subject, SPAN("q")));
	count->seen++;
	count->last = *record;
	return 0;
}

/* How often it was told so far. */
static struct count told(struct world *world, enum event_kind kind)
{
	struct count count = {.kind = kind};

	assert_int_equal(store_page_events(world->store, 0, 1000, count_kind, &count), 0);
	return count;
}

static void sweep(struct world *world)
{
	world_pass(world, 1000);
	assert_int_equal(store_sweep(world->store, world->now), 0);
}

static void finish(struct world *world, const char *id)
{
	uint64_t fence = world_claim(world, "w");

	assert_int_equal(world_report(world, COMMAND_COMPLETE, id, "w", fence), REFUSED_NOTHING);
}

static void a_queue_that_drains_says_once_that_it_is_empty(void **state)
{
	struct world *world = *state;

	world_create(world, "one", "q");
	world_create(world, "two", "q");
	set_queue(world, QUEUE_DRAINING);
	finish(world, "one");
	assert_int_equal(told(world, EVENT_QUEUE_DRAINED).seen, 0);
	world_crash(world);
	finish(world, "two");
	assert_int_equal(told(world, EVENT_QUEUE_DRAINED).seen, 1);
	sweep(world);
	world_crash(world);
	sweep(world);
	assert_int_equal(told(world, EVENT_QUEUE_DRAINED).seen, 1);
}

static void a_queue_without_open_tasks_has_drained_at_once(void **state)
{
	struct world *world = *state;

	world_create(world, "one", "q");
	finish(world, "one");
	set_queue(world, QUEUE_DRAINING);
	assert_int_equal(told(world, EVENT_QUEUE_DRAINED).seen, 1);
}

static void two_tasks_that_end_in_one_turn_drain_their_queue_once(void **state)
{
	struct world *world = *state;
	struct command commands[] = {say_about(COMMAND_CANCEL, "one"), say_about(COMMAND_CANCEL, "two")};
	struct result results[2];

	world_create(world, "one", "q");
	world_create(world, "two", "q");
	set_queue(world, QUEUE_DRAINING);
	assert_int_equal(store_turn(world->store, world->now, commands, 2, results), 0);
	world_run(world, NULL);
	assert_int_equal(told(world, EVENT_QUEUE_DRAINED).seen, 1);
}

static void moving_the_last_task_away_drains_its_queue(void **state)
{
	struct world *world = *state;
	struct command move = say_about(COMMAND_UPDATE, "one");

	world_create(world, "one", "q");
	set_queue(world, QUEUE_DRAINING);
	move.update.patch.set_queue = true;
	move.update.queue = SPAN("other");
	assert_int_equal(world_run(world, &move)->refusal, REFUSED_NOTHING);
	assert_int_equal(told(world, EVENT_QUEUE_DRAINED).seen, 1);
}

static void a_limit_that_holds_back_work_is_told_once(void **state)
{
	struct world *world = *state;

	limit_to_one(world);
	for (int i = 0; i < 3; i++) {
		char id[8];
		snprintf(id, sizeof id, "t%d", i);
		world_create(world, id, "q");
	}
	sweep(world);
	assert_int_equal(told(world, EVENT_QUEUE_LIMITED).seen, 0);
	uint64_t fence = world_claim(world, "w");
	sweep(world);
	struct count limited = told(world, EVENT_QUEUE_LIMITED);
	assert_int_equal(limited.seen, 1);
	assert_int_equal(limited.last.fact[FACT_LIMIT], LIMIT_CONCURRENCY);
	assert_int_equal(limited.last.fact[FACT_WAITING], 2);
	assert_int_equal(world_report(world, COMMAND_COMPLETE, "t0", "w", fence), REFUSED_NOTHING);
	sweep(world);
	fence = world_claim(world, "w"); /* it is reached again, and tasks have waited all the time */
	sweep(world);
	assert_int_equal(told(world, EVENT_QUEUE_LIMITED).seen, 1);
	assert_int_equal(world_report(world, COMMAND_COMPLETE, "t1", "w", fence), REFUSED_NOTHING);
	world_claim(world, "w"); /* the last one: nothing is held back any more … */
	sweep(world);
	world_create(world, "later", "q");
	sweep(world); /* … until this one came */
	assert_int_equal(told(world, EVENT_QUEUE_LIMITED).seen, 2);
}

static void a_queue_that_has_handed_out_work_is_idle_once(void **state)
{
	struct world *world = *state;

	world_create(world, "one", "q");
	sweep(world);
	assert_int_equal(told(world, EVENT_QUEUE_IDLE).seen, 0);
	uint64_t fence = world_claim(world, "w");
	sweep(world);
	assert_int_equal(told(world, EVENT_QUEUE_IDLE).seen, 0); /* it is in work */
	assert_int_equal(world_report(world, COMMAND_COMPLETE, "one", "w", fence), REFUSED_NOTHING);
	sweep(world);
	sweep(world);
	assert_int_equal(told(world, EVENT_QUEUE_IDLE).seen, 1);
	world_crash(world);
	sweep(world);
	assert_int_equal(told(world, EVENT_QUEUE_IDLE).seen, 1); /* it has handed out nothing since */
	world_create(world, "two", "q");
	finish(world, "two");
	sweep(world);
	assert_int_equal(told(world, EVENT_QUEUE_IDLE).seen, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(a_queue_that_drains_says_once_that_it_is_empty),
		ON_BOTH(a_queue_without_open_tasks_has_drained_at_once),
		ON_BOTH(two_tasks_that_end_in_one_turn_drain_their_queue_once),
		ON_BOTH(moving_the_last_task_away_drains_its_queue),
		ON_BOTH(a_limit_that_holds_back_work_is_told_once),
		ON_BOTH(a_queue_that_has_handed_out_work_is_idle_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
