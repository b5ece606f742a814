/*
 * Reading in pages while the store changes between them.
 */
#include "store_fixture.h"

#include "base/base36.h"

enum {
	TASKS = 40,
};

struct seen {
	int times[TASKS + 64];
	int64_t last;
	uint32_t count;
};

static int see_outline(void *context, const struct task_outline *outline)
{
	struct seen *seen = context;

	assert_in_range(outline->seq, 1, TASKS + 63);
	seen->times[outline->seq]++;
	seen->last = outline->seq;
	seen->count++;
	return 0;
}

static void make_tasks(struct world *world, int count)
{
	for (int i = 0; i < count; i++)
		assert_int_equal(world_create(world, "", "q"), REFUSED_NOTHING);
}

static void cancel(struct world *world, int64_t seq)
{
	char id[2 + BASE36_MAX] = "t-";

	base36_encode((uint64_t)seq, id + 2);
	struct command command = say_about(COMMAND_CANCEL, id);
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
}

static void a_task_that_stays_open_is_met_exactly_once_whatever_happens_to_others(void **state)
{
	struct world *world = *state;
	struct seen seen = {0};
	uint32_t at = 0;
	int64_t odd = 1;

	make_tasks(world, TASKS);
	do {
		assert_int_equal(store_page_open(world->store, &at, 3, see_outline, &seen), 0);
		cancel(world, odd); /* its place is free … */
		odd += 2;
		make_tasks(world, 1); /* … and taken again */
		world_claim(world, "w1");
	} while (at != 0);
	for (int seq = 2; seq <= TASKS; seq += 2)
		assert_int_equal(seen.times[seq], 1);
}

static void a_place_that_is_free_holds_no_task(void **state)
{
	struct world *world = *state;
	struct seen seen = {0};
	uint32_t at = 0;

	make_tasks(world, 3);
	cancel(world, 2);
	assert_int_equal(store_page_open(world->store, &at, 100, see_outline, &seen), 0);
	assert_int_equal(at, 0);
	assert_int_equal(seen.count, 2);
	assert_int_equal(seen.times[2], 0);
	at = 77; /* there are not so many places, or no longer */
	assert_int_equal(store_page_open(world->store, &at, 100, see_outline, &seen), 0);
	assert_int_equal(at, 0);
}

static void final_tasks_come_newest_first_in_bounded_steps(void **state)
{
	struct world *world = *state;
	struct seen seen = {0};
	int64_t before = INT64_MAX;

	make_tasks(world, 7);
	cancel(world, 2);
	cancel(world, 6);
	assert_int_equal(store_page_final(world->store, &before, 3, see_outline, &seen), 0);
	assert_int_equal(before, 5); /* 7, 6, 5 were looked at */
	assert_int_equal(seen.last, 6);
	assert_int_equal(store_page_final(world->store, &before, 3, see_outline, &seen), 0);
	assert_int_equal(before, 2);
	assert_int_equal(seen.last, 2);
	assert_int_equal(store_page_final(world->store, &before, 3, see_outline, &seen), 0);
	assert_int_equal(before, 0);
	assert_int_equal(seen.count, 2);
}

static int count_worker(void *context, struct span id, const struct worker *worker)
{
	assert_true(id.len > 0);
	assert_int_not_equal(worker->handle, 0);
	++*(uint32_t *)context;
	return 0;
}

static void workers_are_paged_too(void **state)
{
	struct world *world = *state;
	uint32_t count = 0, pages = 0, at = 0;

	for (int i = 0; i < 7; i++) {
		char id[8];
		snprintf(id, sizeof id, "w%d", i);
		struct command beat = say_beat(id, 0);
		assert_int_equal(world_run(world, &beat)->refusal, REFUSED_NOTHING);
	}
	do {
		assert_int_equal(store_page_workers(world->store, &at, 3, count_worker, &count), 0);
		pages++;
	} while (at != 0);
	assert_int_equal(count, 7);
	assert_int_equal(pages, 3);
}

struct queue_seen {
	uint32_t queues, waiting, paused;
};

static int see_queue(void *context, struct span name, enum queue_state state, uint32_t waiting)
{
	struct queue_seen *seen = context;

	assert_true(name.len > 0);
	seen->queues++;
	seen->waiting += waiting;
	seen->paused += state == QUEUE_PAUSED;
	return 0;
}

static void queues_are_counted_over_all_their_owners(void **state)
{
	struct world *world = *state;
	struct queue_seen seen = {0};
	struct command pause = {.kind = COMMAND_QUEUE_SET, .queue_set = {SPAN("q1"), QUEUE_PAUSED}};
	struct command idle = {.kind = COMMAND_QUEUE_SET, .queue_set = {SPAN("idle"), QUEUE_PAUSED}};

	for (int i = 0; i < 60; i++) {
		char queue[8], owner[8];
		snprintf(queue, sizeof queue, "q%d", i % 3);
		snprintf(owner, sizeof owner, "slot-%d", i % 20);
		struct command create = say_create("", queue);
		create.create.owner = span_of(owner);
		assert_int_equal(world_run(world, &create)->refusal, REFUSED_NOTHING);
	}
	world_run(world, &pause);
	world_run(world, &idle);
	assert_int_equal(store_each_queue(world->store, see_queue, &seen), 0);
	assert_int_equal(seen.queues, 4);
	assert_int_equal(seen.waiting, 60);
	assert_int_equal(seen.paused, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(a_task_that_stays_open_is_met_exactly_once_whatever_happens_to_others),
		ON_BOTH(a_place_that_is_free_holds_no_task),
		ON_BOTH(final_tasks_come_newest_first_in_bounded_steps),
		ON_BOTH(workers_are_paged_too),
		ON_BOTH(queues_are_counted_over_all_their_owners),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
