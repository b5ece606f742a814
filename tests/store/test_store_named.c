/*
 * Claims by name, as old doors make them: two clocks, signs of life, coming back, and what the events say.
 */
#include "store_fixture.h"

#define MINUTE INT64_C(60000)

static struct command say_named_claim(const char *task, const char *worker, int64_t run_ms)
{
	struct command command = say_about(COMMAND_CLAIM, task);

	command.worker = span_of(worker);
	command.by_name = true;
	command.claim = (struct command_claim){
		.any_executor = true,
		.named = true,
		.takes_ready = true,
		.enters = true,
		.extends = true,
		.max = 1,
		.lease_ms = 5 * MINUTE,
		.run_ms = run_ms,
	};
	return command;
}

static enum refusal claim(struct world *world, const char *task, const char *worker)
{
	struct command command = say_named_claim(task, worker, 60 * MINUTE);

	return world_run(world, &command)->refusal;
}

static void beat(struct world *world, const char *worker)
{
	struct command command = say_beat(worker, 0);

	command.beat.named = true;
	command.beat.lease_ms = 5 * MINUTE;
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
}

static enum refusal tell(struct world *world, const char *task, const char *worker)
{
	struct command command = say_report(COMMAND_PROGRESS, task, worker, 0);

	command.by_name = true;
	command.lease_ms = 5 * MINUTE;
	return world_run(world, &command)->refusal;
}

struct seen {
	struct record record;
	bool found;
};

static int see_expired(void *context, const struct record *record)
{
	struct seen *seen = context;

	if (record->kind == EVENT_TASK_EXPIRED) {
		seen->record = *record;
		seen->found = true;
	}
	return 0;
}

static struct seen expiry(struct world *world)
{
	struct seen seen = {0};

	assert_int_equal(store_page_events(world->store, 0, 1000, see_expired, &seen), 0);
	return seen;
}

static void five_minutes_without_a_sign_end_it(void **state)
{
	struct world *world = *state;

	world_create(world, "a", "q");
	assert_int_equal(claim(world, "a", "w"), REFUSED_NOTHING);
	world_pass(world, 5 * MINUTE - 1);
	world_run(world, NULL);
	assert_int_equal(world_state(world, "a"), TASK_CLAIMED);
	world_pass(world, 1000);
	world_run(world, NULL);
	assert_int_equal(world_state(world, "a"), TASK_READY);
	struct seen seen = expiry(world);
	assert_true(seen.found);
	assert_true(record_has(&seen.record, FACT_NAMED));
	assert_false(record_has(&seen.record, FACT_OVERDUE));
}

static void beats_and_progress_both_keep_it_alive(void **state)
{
	struct world *world = *state;

	world_create(world, "a", "q");
	claim(world, "a", "w");
	for (int i = 0; i < 6; i++) {
		world_pass(world, 4 * MINUTE);
		if (i % 2)
			beat(world, "w");
		else
			assert_int_equal(tell(world, "a", "w"), REFUSED_NOTHING);
		if (i == 3)
			world_crash(world);
	}
	assert_int_equal(world_state(world, "a"), TASK_RUNNING);
	world_pass(world, 6 * MINUTE);
	world_run(world, NULL);
	assert_int_equal(world_state(world, "a"), TASK_READY);
}

static void a_beat_alone_confirms_nothing(void **state)
{
	struct world *world = *state;

	world_create(world, "a", "q");
	claim(world, "a", "w");
	int64_t last = store_last_event(world->store);
	beat(world, "w");
	assert_int_equal(world_state(world, "a"), TASK_CLAIMED);
	assert_int_equal(store_last_event(world->store), last);
}

static void past_the_time_it_was_claimed_for_nothing_renews_it(void **state)
{
	struct world *world = *state;

	world_create(world, "a", "q");
	claim(world, "a", "w");
	for (int i = 0; i < 16; i++) { /* an hour, and a little */
		world_pass(world, 4 * MINUTE);
		beat(world, "w");
		if (i < 14)
			assert_int_equal(world_state(world, "a"), TASK_CLAIMED);
	}
	world_pass(world, 1 * MINUTE);
	beat(world, "w");
	world_run(world, NULL);
	assert_int_equal(world_state(world, "a"), TASK_READY);
	struct seen seen = expiry(world);
	struct worker worker;
	assert_true(record_has(&seen.record, FACT_OVERDUE));
	assert_true(store_worker(world->store, SPAN("w"), &worker));
	assert_int_equal(worker.state, WORKER_ACTIVE); /* it lives; its claim had its time */
}

static void the_same_name_claims_for_longer_and_keeps_its_fence(void **state)
{
	struct world *world = *state;
	struct command longer = say_named_claim("a", "w", 90 * MINUTE);

	world_create(world, "a", "q");
	claim(world, "a", "w");
	uint64_t fence = world->result.claims[0].task.fence;
	world_pass(world, 2 * MINUTE);
	int64_t last = store_last_event(world->store);
	assert_int_equal(world_run(world, &longer)->refusal, REFUSED_NOTHING);
	assert_true(world->result.repeated);
	assert_int_equal(world->result.claims[0].task.fence, fence);
	assert_int_equal(world->result.claims[0].task.claim.run_until_ms, world->now.lease_ms + 90 * MINUTE);
	assert_int_equal(world->result.claims[0].lease_ms, 5 * MINUTE);
	assert_int_equal(store_last_event(world->store), last);
	longer.by_name = false;
	longer.fence = fence - 1;
	assert_int_equal(world_run(world, &longer)->refusal, REFUSED_STALE_CLAIM);
	assert_int_equal(claim(world, "a", "v"), REFUSED_CLAIMED_BY_OTHER);
}

static void a_name_that_ended_comes_back_with_its_next_claim(void **state)
{
	struct world *world = *state;
	struct worker_document document;

	world_create(world, "a", "q");
	claim(world, "a", "w");
	world_pass(world, 6 * MINUTE);
	world_run(world, NULL);
	assert_int_equal(store_read_worker(world->store, SPAN("w"), &document), 0);
	assert_int_equal(document.worker.state, WORKER_INACTIVE);
	assert_int_equal(claim(world, "a", "w"), REFUSED_NOTHING);
	assert_int_equal(store_read_worker(world->store, SPAN("w"), &document), 0);
	assert_int_equal(document.worker.state, WORKER_ACTIVE);
	assert_int_equal(document.instance, 2);
	world_crash(world);
	assert_int_equal(world_state(world, "a"), TASK_CLAIMED);
}

static void a_claim_that_is_refused_makes_no_worker(void **state)
{
	struct world *world = *state;
	struct worker worker;

	world_create(world, "a", "q");
	claim(world, "a", "w");
	int64_t last = store_last_event(world->store);
	assert_int_equal(claim(world, "a", "late"), REFUSED_CLAIMED_BY_OTHER);
	assert_int_equal(claim(world, "none", "late"), REFUSED_NOT_FOUND);
	assert_int_equal(store_last_event(world->store), last);
	assert_false(store_worker(world->store, SPAN("late"), &worker) && worker.state != WORKER_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(five_minutes_without_a_sign_end_it),
		ON_BOTH(beats_and_progress_both_keep_it_alive),
		ON_BOTH(a_beat_alone_confirms_nothing),
		ON_BOTH(past_the_time_it_was_claimed_for_nothing_renews_it),
		ON_BOTH(the_same_name_claims_for_longer_and_keeps_its_fence),
		ON_BOTH(a_name_that_ended_comes_back_with_its_next_claim),
		ON_BOTH(a_claim_that_is_refused_makes_no_worker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
