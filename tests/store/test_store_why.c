/*
 * Why a ready task is not taken, as far as the store knows what is around it.
 */
#include "store_fixture.h"

static struct reason why_of(struct world *world, const char *id)
{
	struct task task = world_task(world, id);

	assert_int_not_equal(task.state, TASK_NOWHERE);
	return store_why(world->store, &task, world->now);
}

static void create_for(struct world *world, const char *id, const char *slot)
{
	struct command create = say_create(id, "q");

	create.create.owner = span_of(slot);
	assert_int_equal(world_run(world, &create)->refusal, REFUSED_NOTHING);
}

static void without_any_worker_the_next_claim_is_what_is_missing(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	assert_int_equal(why_of(world, "job").why, WHY_READY_NOW);
	world_create(world, "other", "q");
	world_claim(world, "script"); /* announces nothing */
	assert_int_equal(why_of(world, "other").why, WHY_READY_NOW);
}

static void when_the_last_worker_is_gone_that_is_said(void **state)
{
	struct world *world = *state;
	struct command beat = say_beat("w1", 0);
	struct command leave = {.kind = COMMAND_LEAVE, .worker = SPAN("w1"), .leave = WORKER_SHUTDOWN};

	world_create(world, "job", "q");
	world_run(world, &beat);
	assert_int_equal(why_of(world, "job").why, WHY_READY_NOW);
	world_run(world, &leave);
	assert_int_equal(why_of(world, "job").why, WHY_NO_WORKER);
	world_crash(world);
	assert_int_equal(why_of(world, "job").why, WHY_NO_WORKER);
}

static void claim_from(struct world *world, const char *worker, struct span queue)
{
	struct command claim = say_claim(worker);

	if (queue.len > 0)
		claim.claim.queues = (struct name_list){&queue, 1};
	assert_int_equal(world_run(world, &claim)->refusal, REFUSED_NOTHING);
}

static void a_queue_that_no_worker_asks_for_is_unserved(void **state)
{
	struct world *world = *state;
	struct command beat = say_beat("w1", 0);

	world_create(world, "shell", "shell");
	world_create(world, "job", "q");
	world_run(world, &beat);
	assert_int_equal(why_of(world, "job").why, WHY_READY_NOW); /* it has not asked for anything yet */
	claim_from(world, "w1", SPAN("shell"));
	assert_int_equal(why_of(world, "job").why, WHY_QUEUE_UNSERVED);
	claim_from(world, "w1", SPAN("elsewhere")); /* by turns, as weights have it */
	assert_int_equal(why_of(world, "job").why, WHY_QUEUE_UNSERVED);
	world_create(world, "more", "q");
	claim_from(world, "w1", SPAN("q"));
	assert_int_equal(why_of(world, "more").why, WHY_READY_NOW);
	world_crash(world); /* nobody has asked the new server for anything */
	assert_int_equal(why_of(world, "more").why, WHY_READY_NOW);
}

static void a_worker_that_takes_anything_serves_every_queue(void **state)
{
	struct world *world = *state;
	struct command beat = say_beat("w1", 0);

	world_run(world, &beat);
	claim_from(world, "w1", (struct span){0});
	world_create(world, "job", "q");
	assert_int_equal(why_of(world, "job").why, WHY_READY_NOW);
}

static void a_script_that_asks_for_a_queue_serves_it_for_a_while(void **state)
{
	struct world *world = *state;
	struct command beat = say_beat("w1", 0);

	beat.beat.lease_ms = 60 * 60 * 1000;
	world_create(world, "shell", "shell");
	world_create(world, "job", "q");
	world_run(world, &beat);
	claim_from(world, "w1", SPAN("shell"));
	claim_from(world, "script", SPAN("q"));
	world_create(world, "more", "q");
	assert_int_equal(why_of(world, "more").why, WHY_READY_NOW);
	world_pass(world, 3 * 60 * 1000);
	assert_int_equal(why_of(world, "more").why, WHY_QUEUE_UNSERVED);
}

static void create_with(struct world *world, const char *id, const char *executor)
{
	struct command create = say_create(id, "q");

	create.create.executor = span_of(executor);
	assert_int_equal(world_run(world, &create)->refusal, REFUSED_NOTHING);
}

static void wait_and_sweep(struct world *world, int64_t ms)
{
	world_pass(world, ms);
	assert_int_equal(store_sweep(world->store, world->now), 0);
}

static void a_task_whose_executor_nobody_has_for_long_is_blocked(void **state)
{
	struct world *world = *state;
	int64_t after_ms = world->options.rules.executor_missing_ms;

	create_with(world, "lost", "fortran");
	world_create(world, "plain", "q");
	wait_and_sweep(world, 1);
	wait_and_sweep(world, after_ms - 1);
	assert_int_equal(why_of(world, "lost").why, WHY_READY_NOW);
	wait_and_sweep(world, 1);
	assert_int_equal(why_of(world, "lost").why, WHY_BLOCKED);
	assert_int_equal(why_of(world, "lost").code, CODE_EXECUTOR_NOT_FOUND);
	assert_int_equal(why_of(world, "plain").why, WHY_READY_NOW);
}

static void an_executor_that_was_there_meanwhile_is_missed_from_then_on(void **state)
{
	struct world *world = *state;
	int64_t after_ms = world->options.rules.executor_missing_ms;
	struct command beat = say_beat("w1", 0);
	struct command leave = {.kind = COMMAND_LEAVE, .worker = SPAN("w1"), .leave = WORKER_SHUTDOWN};

	create_with(world, "job", "fortran");
	wait_and_sweep(world, 1);
	wait_and_sweep(world, after_ms - 2);
	world_run(world, &beat); /* it takes any executor */
	wait_and_sweep(world, 1);
	world_run(world, &leave);
	wait_and_sweep(world, 1);
	wait_and_sweep(world, after_ms - 1);
	assert_int_not_equal(why_of(world, "job").why, WHY_BLOCKED);
	wait_and_sweep(world, 1);
	assert_int_equal(why_of(world, "job").why, WHY_BLOCKED);
}

static void an_executor_of_a_worker_that_serves_other_queues_is_missing(void **state)
{
	struct world *world = *state;
	int64_t after_ms = world->options.rules.executor_missing_ms;
	struct command beat = say_beat("w1", 0);

	beat.beat.lease_ms = 24 * 60 * 60 * 1000;
	world_create(world, "shell", "shell");
	create_with(world, "job", "fortran");
	world_run(world, &beat); /* it takes any executor … */
	wait_and_sweep(world, 1);
	wait_and_sweep(world, after_ms);
	assert_int_equal(why_of(world, "job").why, WHY_READY_NOW);
	claim_from(world, "w1", SPAN("shell")); /* … and work of another queue alone */
	wait_and_sweep(world, 1);
	wait_and_sweep(world, after_ms - 1);
	assert_int_not_equal(why_of(world, "job").why, WHY_BLOCKED);
	wait_and_sweep(world, 1);
	assert_int_equal(why_of(world, "job").code, CODE_EXECUTOR_NOT_FOUND);
}

static void a_server_that_starts_waits_anew_for_an_executor(void **state)
{
	struct world *world = *state;
	int64_t after_ms = world->options.rules.executor_missing_ms;

	create_with(world, "job", "fortran");
	wait_and_sweep(world, 1);
	wait_and_sweep(world, after_ms - 2);
	world_crash(world);
	wait_and_sweep(world, 2);
	assert_int_equal(why_of(world, "job").why, WHY_READY_NOW);
}

static void a_slot_that_is_away_or_quarantined_holds_its_tasks(void **state)
{
	struct world *world = *state;
	struct command crash = {.kind = COMMAND_SLOT_CRASH, .slot = SPAN("slot-1")};
	struct command beat = say_beat("w1", 0);

	create_for(world, "job", "slot-1");
	world_run(world, &beat);
	assert_int_equal(why_of(world, "job").why, WHY_OWNER_AWAY);
	for (int i = 0; i < 3; i++)
		world_run(world, &crash);
	struct reason reason = why_of(world, "job");
	assert_int_equal(reason.why, WHY_OWNER_QUARANTINED);
	assert_int_equal(reason.until_ms, world->now.wall_ms + 10 * 60 * 1000);
	world_pass(world, 10 * 60 * 1000);
	assert_int_not_equal(why_of(world, "job").why, WHY_OWNER_QUARANTINED); /* a trial is let in */
}

static void crash_thrice(struct world *world, const char *slot)
{
	struct command crash = {.kind = COMMAND_SLOT_CRASH, .slot = span_of(slot)};

	for (int i = 0; i < 3; i++)
		world_run(world, &crash);
}

static void a_pool_whose_places_are_quarantined_is_the_reason(void **state)
{
	struct world *world = *state;
	struct command beat = say_beat("host-1a2b3c4d", 0);
	struct command lift = {.kind = COMMAND_UNQUARANTINE, .slot = SPAN("host/airi-2")};

	create_with(world, "named", "airi");
	create_with(world, "other", "shell");
	world_create(world, "any", "q");
	world_run(world, &beat);
	crash_thrice(world, "host/airi-2");
	struct reason reason = why_of(world, "named");
	assert_int_equal(reason.why, WHY_POOL_QUARANTINED);
	assert_true(span_equal(store_name(world->store, reason.slot), SPAN("host/airi-2")));
	assert_int_equal(reason.until_ms, world->now.wall_ms + 10 * 60 * 1000);
	assert_int_equal(
		why_of(world, "any").why, WHY_POOL_QUARANTINED); /* the worker's queue may mean that pool */
	assert_int_equal(why_of(world, "other").why, WHY_READY_NOW);
	world_crash(world);
	assert_int_equal(why_of(world, "named").why, WHY_POOL_QUARANTINED);
	world_run(world, &lift);
	assert_int_equal(why_of(world, "named").why, WHY_READY_NOW);
}

static void a_pool_of_a_worker_that_is_not_there_is_no_reason(void **state)
{
	struct world *world = *state;
	struct command beat = say_beat("host-b-1a2b3c4d", 0); /* its name is host-b */

	create_with(world, "job", "airi");
	world_run(world, &beat);
	crash_thrice(world, "host/airi-1");
	crash_thrice(world, "host-b-1a2b3c4d/airi-1");
	assert_int_equal(why_of(world, "job").why, WHY_READY_NOW);
	crash_thrice(world, "host-b/airi-1");
	assert_int_equal(why_of(world, "job").why, WHY_POOL_QUARANTINED);
	world_pass(world, 10 * 60 * 1000);
	world_run(world, &beat);
	assert_int_not_equal(why_of(world, "job").why, WHY_POOL_QUARANTINED); /* a trial is let in */
}

static void while_the_disk_is_full_nothing_is_handed_out(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	memory_set_full(world->backend, true);
	assert_int_not_equal(world_create(world, "more", "q"), REFUSED_NOTHING);
	assert_int_equal(why_of(world, "job").why, WHY_READ_ONLY);
	memory_set_full(world->backend, false);
	assert_int_equal(store_sweep(world->store, world->now), 0);
	assert_int_equal(why_of(world, "job").why, WHY_READY_NOW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(without_any_worker_the_next_claim_is_what_is_missing),
		ON_BOTH(when_the_last_worker_is_gone_that_is_said),
		ON_BOTH(a_queue_that_no_worker_asks_for_is_unserved),
		ON_BOTH(a_worker_that_takes_anything_serves_every_queue),
		ON_BOTH(a_script_that_asks_for_a_queue_serves_it_for_a_while),
		ON_BOTH(a_slot_that_is_away_or_quarantined_holds_its_tasks),
		ON_BOTH(a_pool_whose_places_are_quarantined_is_the_reason),
		ON_BOTH(a_pool_of_a_worker_that_is_not_there_is_no_reason),
		ON_BOTH(a_task_whose_executor_nobody_has_for_long_is_blocked),
		ON_BOTH(an_executor_that_was_there_meanwhile_is_missed_from_then_on),
		ON_BOTH(an_executor_of_a_worker_that_serves_other_queues_is_missing),
		ON_BOTH(a_server_that_starts_waits_anew_for_an_executor),
		{"while_the_disk_is_full_nothing_is_handed_out (memory)",
			while_the_disk_is_full_nothing_is_handed_out, on_memory, world_over, NULL},
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
