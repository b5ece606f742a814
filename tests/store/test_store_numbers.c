/*
 * More of everything than the store looks at in one go: timers of one turn, claims of one request, events of a page. What does
 * not fit is done next; nothing is left out.
 */
#include "store/store_fixture.h"

enum {
	MANY = 1100, /* above every hundred and thousand in the store */
	AT_ONCE = 100,
	ROUNDS_MAX = 8,
};

struct crowd {
	struct world *world;
	struct command commands[MANY];
	struct result results[MANY];
	char ids[MANY][12];
};

static struct crowd *crowd_of(struct world *world)
{
	struct crowd *crowd = calloc(1, sizeof *crowd);

	assert_non_null(crowd);
	crowd->world = world;
	for (int i = 0; i < MANY; i++)
		snprintf(crowd->ids[i], sizeof crowd->ids[i], "t%d", i);
	return crowd;
}

static void crowd_run(struct crowd *crowd)
{
	struct world *world = crowd->world;

	assert_int_equal(store_turn(world->store, world->now, crowd->commands, MANY, crowd->results), 0);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(crowd->results[i].refusal, REFUSED_NOTHING);
}

static void create_many(struct crowd *crowd, const struct command *like)
{
	for (int i = 0; i < MANY; i++) {
		crowd->commands[i] = *like;
		crowd->commands[i].create.id = span_of(crowd->ids[i]);
	}
	crowd_run(crowd);
}

/* Claims in requests of a hundred. */
static uint32_t claim_many(struct crowd *crowd, const char *worker)
{
	struct command claim = say_claim(worker);
	uint32_t claimed = 0, got;

	claim.claim.max = AT_ONCE;
	claim.claim.lease_ms = 60000;
	do {
		assert_int_equal(
			store_turn(crowd->world->store, crowd->world->now, &claim, 1, &crowd->world->result),
			0);
		got = crowd->world->result.claim_count;
		claimed += got;
	} while (got > 0);
	return claimed;
}

static uint32_t count_in(struct crowd *crowd, enum task_state state)
{
	uint32_t count = 0;

	for (int i = 0; i < MANY; i++)
		count += world_state(crowd->world, crowd->ids[i]) == state;
	return count;
}

/* Turns without a command, as long as a timer wants one. */
static void let_timers_run(struct world *world)
{
	int rounds = 0;

	do {
		world_run(world, NULL);
		assert_true(++rounds < ROUNDS_MAX);
	} while (store_idle_ms(world->store, world->now) == 0);
}

static void expect_all(struct crowd *crowd, enum task_state state)
{
	struct world *world = crowd->world;

	assert_int_equal(count_in(crowd, state), MANY);
	world_run(world, NULL); /* judges memory and fold */
	world_crash(world);
	assert_int_equal(count_in(crowd, state), MANY);
	world_run(world, NULL);
	free(crowd);
}

/* ---- parents and their dependants ---- */

static struct crowd *wait_for_parent(struct world *world)
{
	static const struct span parent = {"p", 1};
	struct crowd *crowd = crowd_of(world);
	struct command like = say_create("", "q");

	assert_int_equal(world_create(world, "p", "first"), REFUSED_NOTHING);
	like.create.parents = (struct name_list){&parent, 1};
	create_many(crowd, &like);
	assert_int_equal(count_in(crowd, TASK_WAITING), MANY);
	return crowd;
}

static void a_parent_that_is_done_frees_all_that_wait_for_it(void **state)
{
	struct crowd *crowd = wait_for_parent(*state);
	struct command claim = say_claim("w");

	uint64_t fence = world_run(crowd->world, &claim)->claims[0].task.fence;
	assert_int_equal(world_report(crowd->world, COMMAND_COMPLETE, "p", "w", fence), REFUSED_NOTHING);
	uint32_t queues[4];
	struct command last = say_about(COMMAND_RETRY, "p");
	assert_int_equal(count_in(crowd, TASK_READY), MANY);
	assert_int_equal(store_ready_work(crowd->world->store, queues, 4).queue_count, 1);
	world_run(crowd->world, &last); /* what was freed stays free */
	expect_all(crowd, TASK_READY);
}

static void a_parent_that_is_cancelled_blocks_all_and_its_retry_lets_all_wait_again(void **state)
{
	struct crowd *crowd = wait_for_parent(*state);
	struct command cancel = say_about(COMMAND_CANCEL, "p"), retry = say_about(COMMAND_RETRY, "p");

	world_run(crowd->world, &cancel);
	assert_int_equal(count_in(crowd, TASK_BLOCKED), MANY);
	world_run(crowd->world, &retry);
	expect_all(crowd, TASK_WAITING);
}

/* ---- timers that are due together ---- */

static void all_whose_time_comes_at_once_are_ready(void **state)
{
	struct crowd *crowd = crowd_of(*state);
	struct command like = say_create("", "q");

	like.create.not_before_ms = START_WALL_MS + 5000;
	create_many(crowd, &like);
	assert_int_equal(count_in(crowd, TASK_SCHEDULED), MANY);
	world_pass(crowd->world, 5000);
	let_timers_run(crowd->world);
	expect_all(crowd, TASK_READY);
}

static void all_whose_deadline_passes_at_once_fail(void **state)
{
	struct crowd *crowd = crowd_of(*state);
	struct command like = say_create("", "q");

	like.create.finish_by_ms = START_WALL_MS + 5000;
	create_many(crowd, &like);
	world_pass(crowd->world, 5001);
	let_timers_run(crowd->world);
	expect_all(crowd, TASK_FAILED);
}

static void all_claims_whose_lease_ends_at_once_are_lost(void **state)
{
	struct crowd *crowd = crowd_of(*state);
	struct command like = say_create("", "q");

	create_many(crowd, &like);
	assert_int_equal(claim_many(crowd, "w"), MANY);
	assert_int_equal(count_in(crowd, TASK_CLAIMED), MANY);
	world_pass(crowd->world, 3600000);
	let_timers_run(crowd->world);
	expect_all(crowd, TASK_READY);
}

/* ---- one worker ---- */

static void a_worker_that_leaves_gives_all_back(void **state)
{
	struct crowd *crowd = crowd_of(*state);
	struct command like = say_create("", "q"), come = say_beat("w", 0),
		       leave = {.kind = COMMAND_LEAVE, .worker = SPAN("w"), .leave = WORKER_SHUTDOWN};

	world_run(crowd->world, &come);
	create_many(crowd, &like);
	assert_int_equal(claim_many(crowd, "w"), MANY);
	world_run(crowd->world, &leave);
	expect_all(crowd, TASK_READY);
}

/* Deltas come a hundred at a time. */
static void a_worker_that_bound_all_and_is_lost_loses_all(void **state)
{
	struct crowd *crowd = crowd_of(*state);
	struct command like = say_create("", "q"), beat = say_beat("w", 0);
	struct span ids[MANY];

	uint64_t token = world_run(crowd->world, &beat)->worker.token;
	create_many(crowd, &like);
	assert_int_equal(claim_many(crowd, "w"), MANY);
	for (int i = 0; i < MANY; i++)
		ids[i] = span_of(crowd->ids[i]);
	for (int i = 0; i < MANY; i += AT_ONCE) {
		beat = say_beat("w", token);
		beat.beat.bound = (struct name_list){&ids[i], AT_ONCE};
		struct result *result = world_run(crowd->world, &beat);
		assert_int_equal(result->refusal, REFUSED_NOTHING);
		assert_int_equal(result->lost_count, 0);
		token = result->worker.token;
	}
	assert_int_equal(count_in(crowd, TASK_RUNNING), MANY);
	world_pass(crowd->world, 3600000);
	let_timers_run(crowd->world);
	expect_all(crowd, TASK_READY);
}

/* ---- claims and queues ---- */

static void claims_of_a_hundred_hand_out_each_task_once_and_in_order(void **state)
{
	struct crowd *crowd = crowd_of(*state);
	struct command like = say_create("", "q"), claim = say_claim("w");
	int64_t last = 0;
	uint32_t seen = 0;

	create_many(crowd, &like);
	claim.claim.max = AT_ONCE;
	do {
		assert_int_equal(
			store_turn(crowd->world->store, crowd->world->now, &claim, 1, &crowd->world->result),
			0);
		for (uint32_t i = 0; i < crowd->world->result.claim_count; i++, seen++) {
			assert_true(crowd->world->result.claims[i].task.seq > last);
			last = crowd->world->result.claims[i].task.seq;
		}
	} while (crowd->world->result.claim_count > 0);
	assert_int_equal(seen, MANY);
	expect_all(crowd, TASK_CLAIMED);
}

static void a_queue_that_is_resumed_offers_all_that_stood_in_it(void **state)
{
	struct crowd *crowd = crowd_of(*state);
	struct command like = say_create("", "q"),
		       pause = {.kind = COMMAND_QUEUE_SET, .queue_set = {SPAN("q"), QUEUE_PAUSED}},
		       resume = {.kind = COMMAND_QUEUE_SET, .queue_set = {SPAN("q"), QUEUE_OPEN}};
	uint32_t queues[4];

	create_many(crowd, &like);
	world_run(crowd->world, &pause);
	assert_int_equal(store_ready_work(crowd->world->store, queues, 4).tasks, 0);
	world_run(crowd->world, &resume);
	assert_int_equal(store_ready_work(crowd->world->store, queues, 4).tasks, MANY);
	expect_all(crowd, TASK_READY);
}

/* ---- events ---- */

struct page {
	int64_t last;
	uint32_t count;
};

static int take_event(void *context, const struct record *record)
{
	struct page *page = context;

	assert_int_equal(record->seq, page->last + 1); /* none is left out, none comes twice */
	page->last = record->seq;
	page->count++;
	return 0;
}

static void pages_of_a_thousand_events_have_all_of_them(void **state)
{
	struct crowd *crowd = crowd_of(*state);
	struct command like = say_create("", "q");
	struct page page = {0};
	uint32_t before;

	create_many(crowd, &like);
	do {
		before = page.count;
		assert_int_equal(
			store_page_events(crowd->world->store, page.last, 1000, take_event, &page), 0);
		assert_true(page.count - before <= 1000);
	} while (page.count > before);
	assert_int_equal(page.last, store_last_event(crowd->world->store));
	assert_true(page.count > MANY);
	expect_all(crowd, TASK_READY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(a_parent_that_is_done_frees_all_that_wait_for_it),
		ON_BOTH(a_parent_that_is_cancelled_blocks_all_and_its_retry_lets_all_wait_again),
		ON_BOTH(all_whose_time_comes_at_once_are_ready),
		ON_BOTH(all_whose_deadline_passes_at_once_fail),
		ON_BOTH(all_claims_whose_lease_ends_at_once_are_lost),
		ON_BOTH(a_worker_that_leaves_gives_all_back),
		ON_BOTH(a_worker_that_bound_all_and_is_lost_loses_all),
		ON_BOTH(claims_of_a_hundred_hand_out_each_task_once_and_in_order),
		ON_BOTH(a_queue_that_is_resumed_offers_all_that_stood_in_it),
		ON_BOTH(pages_of_a_thousand_events_have_all_of_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
