/*
 * Schedules in the store: an occurrence makes at most one task, across crashes, restores and clocks that jump; what overlaps; and
 * what the ends of tasks mean for the ones that wait.
 */
#include "store_fixture.h"

#define MINUTE_MS INT64_C(60000)

static struct command say_schedule(enum overlap overlap, enum catch_up catch_up)
{
	static const struct command_create template = {
		.queue = {"q", 1}, .body = {"{}", 2}, .max_attempts = 1};

	return (struct command){
		.kind = COMMAND_SCHEDULE_PUT,
		.actor = SPAN("tester"),
		.oversees = true,
		.schedule =
			{
				.schedule = {.id = SPAN("s"),
					.kind = PLAN_EVERY,
					.every_ms = MINUTE_MS,
					.overlap = overlap,
					.catch_up = catch_up,
					.task = SPAN("{}")},
				.create = &template,
			},
	};
}

static void put(struct world *world, enum overlap overlap, enum catch_up catch_up)
{
	struct command command = say_schedule(overlap, catch_up);

	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
}

static enum refusal tell(struct world *world, enum command_kind kind, int64_t at_ms)
{
	struct command command = {.kind = kind, .actor = SPAN("tester"), .oversees = true};

	command.schedule.schedule.id = SPAN("s");
	command.schedule.at_ms = at_ms;
	return world_run(world, &command)->refusal;
}

static void pass(struct world *world, int64_t ms)
{
	world_pass(world, ms);
	world_run(world, NULL);
}

static struct schedule_state look(struct world *world)
{
	struct schedule_document document;

	assert_int_equal(store_read_schedule(world->store, SPAN("s"), &document), 0);
	return *document.state;
}

struct count {
	enum event_kind kind;
	uint32_t count;
};

static int count_event(void *context, const struct record *record)
{
	struct count *count = context;

	count->count += record->kind == count->kind;
	return 0;
}

static uint32_t events(struct world *world, enum event_kind kind)
{
	struct count count = {kind, 0};

	assert_int_equal(store_page_events(world->store, 0, UINT32_MAX, count_event, &count), 0);
	return count.count;
}

static void finish(struct world *world, const char *task, enum command_kind how)
{
	uint64_t fence = world_claim(world, "w");

	assert_int_not_equal(fence, 0);
	assert_int_equal(world_report(world, how, task, "w", fence), REFUSED_NOTHING);
}

static void each_planned_time_makes_one_task(void **state)
{
	struct world *world = *state;

	put(world, OVERLAP_ALLOW, CATCH_UP_ONE);
	pass(world, MINUTE_MS - 1);
	assert_int_equal(world_state(world, "t-1"), TASK_NOWHERE);
	assert_int_equal(store_idle_ms(world->store, world->now), 1);
	pass(world, 1);
	assert_int_equal(world_state(world, "t-1"), TASK_READY);
	pass(world, 0);
	pass(world, MINUTE_MS);
	assert_int_equal(world_state(world, "t-2"), TASK_READY);
	assert_int_equal(world_state(world, "t-3"), TASK_NOWHERE);
	assert_int_equal(events(world, EVENT_SCHEDULE_FIRED), 2);
	assert_int_equal(world_task(world, "t-2").occurrence, OCCURRENCE_MADE);
}

static void a_crash_around_an_occurrence_makes_no_second_task(void **state)
{
	struct world *world = *state;

	put(world, OVERLAP_ALLOW, CATCH_UP_ALL);
	world_crash(world);
	pass(world, MINUTE_MS);
	world_crash(world);
	world_run(world, NULL);
	world_crash(world);
	pass(world, MINUTE_MS);
	assert_int_equal(look(world).made, 2);
	assert_int_equal(events(world, EVENT_TASK_CREATED), 2);
}

static void what_was_missed_is_caught_up_and_the_rest_is_one_event(void **state)
{
	struct world *world = *state;

	put(world, OVERLAP_ALLOW, CATCH_UP_ONE);
	world_pass(world, 10 * MINUTE_MS + 2 * MINUTE_MS + 1);
	world_crash(world);
	world_run(world, NULL);
	/* of twelve, eleven were found late: the newest of those is made, and the one on time */
	assert_int_equal(events(world, EVENT_SCHEDULE_FIRED), 2);
	assert_int_equal(events(world, EVENT_SCHEDULE_SKIPPED), 1);
	assert_int_equal(look(world).skipped, 10);
	assert_int_equal(look(world).history[0].count, 10);
}

static void a_clock_that_is_set_back_makes_nothing_twice(void **state)
{
	struct world *world = *state;

	put(world, OVERLAP_ALLOW, CATCH_UP_ALL);
	pass(world, 5 * MINUTE_MS);
	uint64_t made = look(world).made;
	world->now.wall_ms -= 4 * MINUTE_MS;
	for (int i = 0; i < 4; i++) {
		world_run(world, NULL);
		world_crash(world);
		pass(world, MINUTE_MS);
	}
	assert_int_equal(look(world).made, made);
	pass(world, MINUTE_MS);
	assert_int_equal(look(world).made, made + 1);
}

static void nothing_from_before_a_restore_is_made(void **state)
{
	struct world *world = *state;

	put(world, OVERLAP_ALLOW, CATCH_UP_ALL);
	struct backend *backend = store_abandon(world->store);
	assert_int_equal(backend->ops->begin(backend), 0);
	assert_int_equal(backend->ops->put_meta(backend, META_RESTORED, RESTORED), 0);
	assert_int_equal(backend->ops->put_meta(backend, META_GENERATION, 2), 0);
	assert_int_equal(backend_commit(backend), 0);
	world->store = NULL;
	if (world->on_disk)
		backend->ops->close(backend);
	world_pass(world, 5 * MINUTE_MS);
	world_open(world);
	world_run(world, NULL);
	assert_int_equal(look(world).made, 0);
	pass(world, MINUTE_MS);
	assert_int_equal(look(world).made, 1);
}

static void overlap_skip_makes_none_while_one_is_open(void **state)
{
	struct world *world = *state;

	put(world, OVERLAP_SKIP, CATCH_UP_ONE);
	for (int i = 0; i < 4; i++)
		pass(world, MINUTE_MS);
	assert_int_equal(look(world).made, 1);
	assert_int_equal(look(world).skipped, 3);
	assert_int_equal(events(world, EVENT_SCHEDULE_FAILING), 1);
	finish(world, "t-1", COMMAND_COMPLETE);
	assert_int_equal(look(world).streak, 0);
	pass(world, MINUTE_MS);
	assert_int_equal(look(world).made, 2);
}

static void overlap_queue_lets_one_go_after_the_other(void **state)
{
	struct world *world = *state;

	put(world, OVERLAP_QUEUE, CATCH_UP_ONE);
	for (int i = 0; i < 3; i++)
		pass(world, MINUTE_MS);
	assert_int_equal(world_state(world, "t-1"), TASK_READY);
	assert_int_equal(world_state(world, "t-2"), TASK_WAITING);
	assert_int_equal(world_state(world, "t-3"), TASK_WAITING);
	world_crash(world);
	finish(world, "t-1", COMMAND_FAIL);
	assert_int_equal(world_state(world, "t-1"), TASK_FAILED);
	assert_int_equal(world_state(world, "t-2"), TASK_READY);
	assert_int_equal(world_state(world, "t-3"), TASK_WAITING);
	struct command cancel = say_about(COMMAND_CANCEL, "t-2");
	assert_int_equal(world_run(world, &cancel)->refusal, REFUSED_NOTHING);
	assert_int_equal(world_state(world, "t-3"), TASK_READY);
}

static void a_waiting_one_that_is_cancelled_lets_nobody_pass_the_first(void **state)
{
	struct world *world = *state;

	put(world, OVERLAP_QUEUE, CATCH_UP_ONE);
	for (int i = 0; i < 3; i++)
		pass(world, MINUTE_MS);
	struct command cancel = say_about(COMMAND_CANCEL, "t-2");
	world_run(world, &cancel);
	assert_int_equal(world_state(world, "t-3"), TASK_WAITING);
	struct command retry = say_about(COMMAND_RETRY, "t-2");
	assert_int_equal(world_run(world, &retry)->refusal, REFUSED_NOTHING);
	assert_int_equal(world_state(world, "t-2"), TASK_READY); /* a person's word */
}

static void overlap_queue_has_an_end(void **state)
{
	struct world *world = *state;

	put(world, OVERLAP_QUEUE, CATCH_UP_ONE);
	for (int i = 0; i < SCHEDULE_OPEN_MAX + 2; i++)
		pass(world, MINUTE_MS);
	assert_int_equal(look(world).open_count, SCHEDULE_OPEN_MAX);
	assert_int_equal(look(world).skipped, 2);
}

static void overlap_cancel_calls_the_one_before_off(void **state)
{
	struct world *world = *state;

	put(world, OVERLAP_CANCEL, CATCH_UP_ONE);
	pass(world, MINUTE_MS);
	pass(world, MINUTE_MS);
	assert_int_equal(world_state(world, "t-1"), TASK_CANCELLED);
	assert_int_equal(world_state(world, "t-2"), TASK_READY);
	assert_int_equal(look(world).open_count, 1);
}

static void what_cannot_be_made_is_skipped_and_stops_nobody(void **state)
{
	struct world *world = *state;
	struct command drain = {.kind = COMMAND_QUEUE_SET, .actor = SPAN("tester")};

	put(world, OVERLAP_CANCEL, CATCH_UP_ONE);
	pass(world, MINUTE_MS);
	drain.queue_set.queue = SPAN("q");
	drain.queue_set.state = QUEUE_DRAINING;
	world_run(world, &drain);
	pass(world, MINUTE_MS);
	assert_int_equal(world_state(world, "t-1"), TASK_READY);
	assert_int_equal(look(world).history[1].skip, SKIP_DRAINING);
	assert_int_equal(tell(world, COMMAND_SCHEDULE_RUN, 0), REFUSED_QUEUE_DRAINING);
	assert_int_equal(look(world).open_count, 1);
}

static void times_of_the_template_count_from_the_planned_one(void **state)
{
	struct world *world = *state;
	struct command command = say_schedule(OVERLAP_ALLOW, CATCH_UP_ONE);
	struct command_create template = *command.schedule.create;

	template.finish_by_ms = 5 * MINUTE_MS;
	template.not_before_ms = MINUTE_MS;
	command.schedule.create = &template;
	command.schedule.schedule.jitter_ms = 1000;
	world_run(world, &command);
	pass(world, MINUTE_MS + 7);
	struct task task = world_task(world, "t-1");
	int64_t planned_ms = START_WALL_MS + MINUTE_MS;
	assert_int_equal(task.finish_by_ms, planned_ms + 5 * MINUTE_MS);
	assert_int_equal(task.state, TASK_SCHEDULED);
	assert_int_equal(
		task.ready_at_ms, planned_ms + MINUTE_MS + schedule_jitter_ms(SPAN("s"), planned_ms, 1000));
}

static void a_pause_makes_nothing_and_is_not_caught_up(void **state)
{
	struct world *world = *state;

	put(world, OVERLAP_ALLOW, CATCH_UP_ALL);
	assert_int_equal(tell(world, COMMAND_SCHEDULE_PAUSE, 0), REFUSED_NOTHING);
	pass(world, 5 * MINUTE_MS);
	world_crash(world);
	assert_int_equal(tell(world, COMMAND_SCHEDULE_RESUME, 0), REFUSED_NOTHING);
	world_run(world, NULL);
	assert_int_equal(look(world).made, 0);
	pass(world, MINUTE_MS);
	assert_int_equal(look(world).made, 1);
}

static void by_hand_a_skipped_time_is_made_once(void **state)
{
	struct world *world = *state;
	int64_t skipped_ms = START_WALL_MS + 2 * MINUTE_MS;

	put(world, OVERLAP_SKIP, CATCH_UP_ONE);
	pass(world, MINUTE_MS);
	pass(world, MINUTE_MS);
	assert_int_equal(tell(world, COMMAND_SCHEDULE_RUN, skipped_ms - MINUTE_MS), REFUSED_INVALID);
	assert_int_equal(tell(world, COMMAND_SCHEDULE_RUN, skipped_ms), REFUSED_NOTHING);
	assert_int_equal(tell(world, COMMAND_SCHEDULE_RUN, skipped_ms), REFUSED_INVALID);
	world_crash(world);
	assert_int_equal(tell(world, COMMAND_SCHEDULE_RUN, skipped_ms), REFUSED_INVALID);
	assert_int_equal(tell(world, COMMAND_SCHEDULE_RUN, 0), REFUSED_NOTHING);
	assert_int_equal(look(world).made, 3);
}

static void a_schedule_is_made_once_changed_and_removed(void **state)
{
	struct world *world = *state;
	struct command again = say_schedule(OVERLAP_QUEUE, CATCH_UP_ONE);

	again.schedule.changes = true;
	assert_int_equal(world_run(world, &again)->refusal, REFUSED_NOT_FOUND);
	again.schedule.changes = false;
	assert_int_equal(world_run(world, &again)->refusal, REFUSED_NOTHING);
	assert_int_equal(world_run(world, &again)->refusal, REFUSED_SCHEDULE_EXISTS);
	pass(world, MINUTE_MS);
	pass(world, MINUTE_MS);
	again.schedule.changes = true;
	again.schedule.schedule.every_ms = 2 * MINUTE_MS;
	world_run(world, &again);
	pass(world, MINUTE_MS);
	assert_int_equal(look(world).made, 2); /* it starts from now */
	assert_int_equal(tell(world, COMMAND_SCHEDULE_REMOVE, 0), REFUSED_NOTHING);
	assert_int_equal(world_state(world, "t-1"), TASK_READY);
	assert_int_equal(world_state(world, "t-2"), TASK_CANCELLED); /* it waited for the one before */
	world_crash(world);
	assert_int_equal(tell(world, COMMAND_SCHEDULE_REMOVE, 0), REFUSED_NOT_FOUND);
	finish(world, "t-1", COMMAND_COMPLETE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(each_planned_time_makes_one_task),
		ON_BOTH(a_crash_around_an_occurrence_makes_no_second_task),
		ON_BOTH(what_was_missed_is_caught_up_and_the_rest_is_one_event),
		ON_BOTH(a_clock_that_is_set_back_makes_nothing_twice),
		ON_BOTH(nothing_from_before_a_restore_is_made),
		ON_BOTH(overlap_skip_makes_none_while_one_is_open),
		ON_BOTH(overlap_queue_lets_one_go_after_the_other),
		ON_BOTH(a_waiting_one_that_is_cancelled_lets_nobody_pass_the_first),
		ON_BOTH(overlap_queue_has_an_end),
		ON_BOTH(overlap_cancel_calls_the_one_before_off),
		ON_BOTH(what_cannot_be_made_is_skipped_and_stops_nobody),
		ON_BOTH(times_of_the_template_count_from_the_planned_one),
		ON_BOTH(a_pause_makes_nothing_and_is_not_caught_up),
		ON_BOTH(by_hand_a_skipped_time_is_made_once),
		ON_BOTH(a_schedule_is_made_once_changed_and_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
