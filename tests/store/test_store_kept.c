/*
 * What compaction keeps: the last events of each task, and those of credentials, gates, execution and the server.
 */
#include "store_fixture.h"
#include "store/kept.h"

enum {
	SEEN_MAX = 200,
};

#define DAY (24 * 3600 * INT64_C(1000))

struct seen {
	uint32_t count;
	int64_t seqs[SEEN_MAX];
	enum event_kind kinds[SEEN_MAX];
};

static int see(void *context, const struct record *record)
{
	struct seen *seen = context;

	assert_true(seen->count < SEEN_MAX);
	seen->seqs[seen->count] = record->seq;
	seen->kinds[seen->count++] = record->kind;
	return 0;
}

static struct seen kept_of(struct world *world, int64_t task)
{
	struct seen seen = {0};

	assert_int_equal(store_each_kept(world->store, task, see, &seen), 0);
	return seen;
}

static struct seen audit_after(struct world *world, int64_t after)
{
	struct seen seen = {0};

	assert_int_equal(store_page_audit(world->store, after, SEEN_MAX, see, &seen), 0);
	return seen;
}

static struct world *with_room_for(struct world *world, uint64_t events, uint64_t audit)
{
	world->options.retention.events_max = events;
	world->options.retention.audit_max = audit;
	world_crash(world);
	return world;
}

/* Many events of a task of its own. */
static void flood(struct world *world, const char *id)
{
	struct command park = say_about(COMMAND_PARK, id), unpark = say_about(COMMAND_UNPARK, id);

	assert_int_equal(world_create(world, id, "loud"), REFUSED_NOTHING);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(world_run(world, &park)->refusal, REFUSED_NOTHING);
		assert_int_equal(world_run(world, &unpark)->refusal, REFUSED_NOTHING);
	}
	while (store_has_chores(world->store))
		assert_int_equal(store_sweep(world->store, world->now), 0);
}

static void give_token(struct world *world, const char *id)
{
	struct command command = {
		.kind = COMMAND_TOKEN_PUT,
		.actor = SPAN("admin"),
		.token = {.id = span_of(id), .kind = TOKEN_VIEWER, .name = SPAN("guest")},
	};

	memset(command.token.hash, id[4], sizeof command.token.hash);
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
}

static void a_flood_of_one_task_leaves_the_last_events_of_another(void **state)
{
	struct world *world = with_room_for(*state, 20, 100);
	char complaint[256];

	world_create(world, "quiet", "q");
	int64_t quiet = world->result.task.seq, created = store_last_event(world->store);
	flood(world, "noisy");
	assert_true(store_event_base(world->store) > created);
	struct seen seen = kept_of(world, quiet);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.seqs[0], created);
	assert_int_equal(kept_of(world, world_task(world, "noisy").seq).count,
		KEPT_EVENTS_MAX); /* its own flood costs itself */
	assert_int_equal(store_check_fold(world->store, complaint, sizeof complaint), 0);
	world_crash(world);
	assert_int_equal(kept_of(world, quiet).count, 1);
}

static void what_was_kept_of_a_task_goes_with_it(void **state)
{
	struct world *world = with_room_for(*state, 20, 100);

	world_create(world, "job", "q");
	int64_t task = world->result.task.seq;
	world_pass(world, 31 * DAY);
	assert_int_equal(store_sweep(world->store, world->now), 0);
	assert_int_equal(kept_of(world, task).count, 1); /* it is open: its events may be old */
	world_report(world, COMMAND_COMPLETE, "job", "w", world_claim(world, "w"));
	world_pass(world, 31 * DAY);
	for (int i = 0; i < 3; i++)
		assert_int_equal(store_sweep(world->store, world->now), 0);
	assert_int_equal(world_state(world, "job"), TASK_NOWHERE);
	assert_int_equal(kept_of(world, task).count, 0);
}

static void events_of_credentials_outlast_a_flood(void **state)
{
	struct world *world = with_room_for(*state, 20, 100);

	give_token(world, "stk_1");
	int64_t given = store_last_event(world->store), oldest;
	flood(world, "noisy");
	struct seen seen = audit_after(world, given - 1);
	assert_true(seen.count >= 1);
	assert_int_equal(seen.seqs[0], given);
	assert_int_equal(seen.kinds[0], EVENT_TOKEN_CREATED);
	assert_int_equal(audit_after(world, 0).kinds[0], EVENT_SERVER_STARTED);
	assert_int_equal(store_audit_base(world->store, &oldest), 0);
	assert_int_equal(oldest, 0);
	world_crash(world);
	assert_int_equal(audit_after(world, given - 1).seqs[0], given);
}

static void the_audit_has_a_bound_and_refuses_a_cursor_before_it(void **state)
{
	struct world *world = with_room_for(*state, 20, 3);
	struct seen seen = {0};
	int64_t oldest;
	char id[] = "stk_a";

	for (; id[4] < 'h'; id[4]++)
		give_token(world, id);
	flood(world, "noisy");
	assert_int_equal(store_audit_base(world->store, &oldest), 0);
	assert_int_equal(audit_after(world, oldest).count, 3);
	assert_int_equal(store_page_audit(world->store, oldest - 1, 10, see, &seen), -ESTALE);
}

static void the_audit_goes_with_its_time(void **state)
{
	struct world *world = with_room_for(*state, 20, 100);
	int64_t oldest;

	give_token(world, "stk_1");
	flood(world, "noisy");
	world_pass(world, 31 * DAY);
	world_run(world, NULL);
	give_token(world, "stk_2");
	int64_t last = store_last_event(world->store);
	flood(world, "again");
	assert_int_equal(store_audit_base(world->store, &oldest), 0);
	assert_true(oldest > 0);
	assert_int_equal(audit_after(world, oldest).seqs[0], last);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(a_flood_of_one_task_leaves_the_last_events_of_another),
		ON_BOTH(what_was_kept_of_a_task_goes_with_it),
		ON_BOTH(events_of_credentials_outlast_a_flood),
		ON_BOTH(the_audit_has_a_bound_and_refuses_a_cursor_before_it),
		ON_BOTH(the_audit_goes_with_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
