#include "store_fixture.h"

static const struct span two_queues[] = {{"b", 1}, {"a", 1}};

static struct command say_token(const char *id, enum token_kind kind, int64_t lives_ms)
{
	struct command command = {
		.kind = COMMAND_TOKEN_PUT,
		.actor = SPAN("admin"),
		.token = {.id = span_of(id), .kind = kind, .name = SPAN("builder"), .lives_ms = lives_ms},
	};

	memset(command.token.hash, id[0], sizeof command.token.hash);
	if (token_kind_has_queues(kind))
		command.token.queues = (struct name_list){two_queues, 2};
	return command;
}

static struct command say_revoke(const char *id)
{
	return (struct command){
		.kind = COMMAND_TOKEN_REVOKE, .actor = SPAN("admin:second"), .token = {.id = span_of(id)}};
}

static enum refusal give(struct world *world, const char *id)
{
	struct command command = say_token(id, TOKEN_WORKER, 1000);

	return world_run(world, &command)->refusal;
}

static enum refusal take_back(struct world *world, const char *id)
{
	struct command command = say_revoke(id);

	return world_run(world, &command)->refusal;
}

static const struct token *token(struct world *world, const char *id)
{
	return store_find_token(world->store, span_of(id));
}

static int count(void *context, const struct token *token)
{
	(void)token;
	++*(uint32_t *)context;
	return 0;
}

static uint32_t tokens_in(struct world *world)
{
	uint32_t found = 0;

	assert_int_equal(store_each_token(world->store, count, &found), 0);
	return found;
}

/* ---- given and taken back ---- */

static void a_token_is_known_by_its_id_and_survives_a_crash(void **state)
{
	struct world *world = *state;

	assert_int_equal(give(world, "x1"), REFUSED_NOTHING);
	for (int lives = 0; lives < 2; lives++) {
		const struct token *found = token(world, "x1");
		assert_non_null(found);
		assert_int_equal(found->kind, TOKEN_WORKER);
		assert_int_equal(found->hash[31], 'x');
		assert_true(span_equal(found->name, SPAN("builder")));
		assert_true(span_equal(found->queues,
			SPAN("\x1f"
			     "a\x1f"
			     "b")));
		assert_true(span_equal(found->created_by, SPAN("admin")));
		assert_int_equal(found->created_ms, START_WALL_MS);
		assert_int_equal(found->expires_ms, START_WALL_MS + 1000);
		assert_int_equal(found->revoked_ms, 0);
		world_crash(world);
	}
	assert_null(token(world, "x"));
	assert_null(token(world, ""));
}

static void a_revoked_token_stays_revoked_and_says_by_whom(void **state)
{
	struct world *world = *state;

	give(world, "x1");
	give(world, "x2");
	world_pass(world, 10);
	assert_int_equal(take_back(world, "x1"), REFUSED_NOTHING);
	assert_false(token_is_live(token(world, "x1"), world->now.wall_ms));
	world_crash(world);
	world_pass(world, 10);
	assert_int_equal(take_back(world, "x1"), REFUSED_NOTHING);
	assert_true(world->result.repeated);
	assert_int_equal(token(world, "x1")->revoked_ms, START_WALL_MS + 10);
	assert_true(span_equal(token(world, "x1")->revoked_by, SPAN("admin:second")));
	assert_true(token_is_live(token(world, "x2"), world->now.wall_ms));
}

static void a_token_that_is_not_there_cannot_be_revoked(void **state)
{
	struct world *world = *state;

	assert_int_equal(take_back(world, "x1"), REFUSED_NOT_FOUND);
}

static void an_id_is_given_once(void **state)
{
	struct world *world = *state;
	struct command other = say_token("x1", TOKEN_ADMIN, 0);

	give(world, "x1");
	assert_int_equal(world_run(world, &other)->refusal, REFUSED_UNAVAILABLE);
	assert_int_equal(token(world, "x1")->kind, TOKEN_WORKER);
	take_back(world, "x1");
	assert_int_equal(give(world, "x1"), REFUSED_UNAVAILABLE);
	assert_int_not_equal(token(world, "x1")->revoked_ms, 0);
}

static void a_token_given_and_revoked_in_one_turn_is_revoked(void **state)
{
	struct world *world = *state;
	const struct command commands[] = {say_token("x1", TOKEN_VIEWER, 0), say_revoke("x1")};
	struct result results[2];

	assert_int_equal(store_turn(world->store, world->now, commands, 2, results), 0);
	assert_int_equal(results[1].refusal, REFUSED_NOTHING);
	assert_int_not_equal(token(world, "x1")->revoked_ms, 0);
	world_crash(world);
	assert_int_not_equal(token(world, "x1")->revoked_ms, 0);
	assert_int_equal(tokens_in(world), 1);
}

static int look(void *context, const struct record *record)
{
	*(struct record *)context = *record;
	return 0;
}

/* The kind of the one event after `last`; 0: there is none, or more than one. */
static enum event_kind told_since(struct world *world, int64_t last, const char *actor, const char *note)
{
	struct record record = {0};

	if (store_last_event(world->store) != last + 1)
		return EVENT_NONE;
	assert_int_equal(store_page_events(world->store, last, 1, look, &record), 0);
	assert_int_equal(record.task, 0);
	assert_int_equal(record.actor.len, strlen(actor));
	assert_int_equal(record.note.len, strlen(note));
	return record.kind;
}

static void giving_and_taking_back_leave_one_event_each(void **state)
{
	struct world *world = *state;
	struct command put = say_token("x1", TOKEN_WORKER, 1000), revoke = say_revoke("x1");
	int64_t last = store_last_event(world->store);

	put.note = SPAN("\"a\":1");
	world_run(world, &put);
	assert_int_equal(told_since(world, last, "admin", "\"a\":1"), EVENT_TOKEN_CREATED);
	world_run(world, &revoke);
	assert_int_equal(told_since(world, last + 1, "admin:second", ""), EVENT_TOKEN_REVOKED);
	world_run(world, &revoke);
	assert_int_equal(give(world, "x1"), REFUSED_UNAVAILABLE);
	assert_int_equal(store_last_event(world->store), last + 2);
}

static void what_an_admin_does_elsewhere_leaves_an_event(void **state)
{
	struct world *world = *state;
	struct command audit = {.kind = COMMAND_AUDIT, .actor = SPAN("admin"), .note = SPAN("\"b\":2")};
	int64_t last = store_last_event(world->store);

	assert_int_equal(world_run(world, &audit)->refusal, REFUSED_NOTHING);
	assert_int_equal(world->result.event_seq, last + 1);
	assert_int_equal(told_since(world, last, "admin", "\"b\":2"), EVENT_SERVER_AUDITED);
	world_crash(world);
	assert_true(store_last_event(world->store) > last);
}

static void a_turn_that_cannot_be_committed_gives_and_revokes_nothing(void **state)
{
	struct world *world = *state;
	const struct command commands[] = {say_token("x2", TOKEN_VIEWER, 0), say_revoke("x1")};
	struct result results[2];

	give(world, "x1");
	memory_set_full(world->backend, true);
	assert_int_equal(store_turn(world->store, world->now, commands, 2, results), 0);
	assert_int_equal(results[0].refusal, REFUSED_UNAVAILABLE);
	assert_int_equal(results[1].refusal, REFUSED_UNAVAILABLE);
	assert_null(token(world, "x2"));
	assert_int_equal(token(world, "x1")->revoked_ms, 0);
	world_crash(world);
	assert_null(token(world, "x2"));
	assert_int_equal(token(world, "x1")->revoked_ms, 0);
}

static void a_token_that_ended_long_ago_is_forgotten(void **state)
{
	struct world *world = *state;
	struct command for_ever = say_token("x3", TOKEN_ADMIN, 0);

	give(world, "x1");
	world_run(world, &for_ever);
	world_pass(world, 1000 + world->options.retention.ended_token_ms - 1);
	assert_int_equal(store_sweep(world->store, world->now), 0);
	assert_int_equal(tokens_in(world), 2);
	world_pass(world, 1);
	assert_int_equal(store_sweep(world->store, world->now), 0);
	assert_null(token(world, "x1"));
	world_crash(world);
	assert_null(token(world, "x1"));
	assert_non_null(token(world, "x3"));
}

/* Whoever keeps what it found of a token goes by it: the memory of one that is replaced or forgotten is free. */
static void the_tokens_say_whenever_one_of_them_changed(void **state)
{
	struct world *world = *state;

	uint64_t before = store_token_changes(world->store);
	assert_int_equal(give(world, "x1"), REFUSED_NOTHING);
	uint64_t given = store_token_changes(world->store);
	assert_true(given != before);
	assert_int_equal(take_back(world, "nobody"), REFUSED_NOT_FOUND);
	assert_true(store_token_changes(world->store) == given);
	assert_int_equal(take_back(world, "x1"), REFUSED_NOTHING);
	uint64_t revoked = store_token_changes(world->store);
	assert_true(revoked != given);
	world_pass(world, world->options.retention.ended_token_ms + 1);
	assert_int_equal(store_sweep(world->store, world->now), 0);
	assert_int_equal(tokens_in(world), 0);
	assert_true(store_token_changes(world->store) != revoked);
}

static void there_is_an_end_to_how_many_tokens_are_kept(void **state)
{
	struct world *world = *state;
	char id[16];

	for (int i = 0; i < STORE_TOKENS_MAX; i++) {
		snprintf(id, sizeof id, "x%d", i);
		struct command command = say_token(id, TOKEN_VIEWER, 0);
		assert_int_equal(store_turn(world->store, world->now, &command, 1, &world->result), 0);
		assert_int_equal(world->result.refusal, REFUSED_NOTHING);
	}
	assert_int_equal(give(world, "one more"), REFUSED_TOO_LARGE);
	assert_int_equal(tokens_in(world), STORE_TOKENS_MAX);
}

/* ---- commands within certain queues ---- */

static struct command within(struct command command)
{
	command.within = (struct name_list){two_queues, 2};
	return command;
}

static void a_task_of_another_queue_is_not_there(void **state)
{
	struct world *world = *state;
	struct command claim = within(say_claim("w1"));

	world_create(world, "mine", "a");
	world_create(world, "other", "q");
	claim.kind = COMMAND_CLAIM;
	claim.task = SPAN("other");
	assert_int_equal(world_run(world, &claim)->refusal, REFUSED_NOT_FOUND);
	assert_int_equal(world->result.task.seq, 0);
	assert_int_equal(world_state(world, "other"), TASK_READY);
	claim.task = SPAN("mine");
	assert_int_equal(world_run(world, &claim)->refusal, REFUSED_NOTHING);
}

static void a_report_about_a_task_of_another_queue_changes_nothing(void **state)
{
	struct world *world = *state;

	world_create(world, "other", "q");
	uint64_t fence = world_claim(world, "w1");
	struct command report = within(say_report(COMMAND_COMPLETE, "other", "w1", fence));
	assert_int_equal(world_run(world, &report)->refusal, REFUSED_NOT_FOUND);
	report.within = (struct name_list){0};
	assert_int_equal(world_run(world, &report)->refusal, REFUSED_NOTHING);
}

static void a_beat_binds_and_gives_back_nothing_of_another_queue(void **state)
{
	struct world *world = *state;
	struct span other = SPAN("other");

	world_create(world, "other", "q");
	struct command beat = say_beat("w1", 0);
	uint64_t token = world_run(world, &beat)->worker.token;
	world_claim(world, "w1");
	beat = within(say_beat("w1", token));
	beat.beat.bound = (struct name_list){&other, 1};
	token = world_run(world, &beat)->worker.token;
	assert_int_equal(world->result.lost_count, 1);
	assert_int_equal(world_state(world, "other"), TASK_CLAIMED);
	beat = within(say_beat("w1", token));
	beat.beat.unbound = (struct name_list){&other, 1};
	world_run(world, &beat);
	assert_int_equal(world_state(world, "other"), TASK_CLAIMED);
}

static void the_same_request_id_hands_out_nothing_of_another_queue(void **state)
{
	struct world *world = *state;
	struct command claim = say_claim("w1");

	world_create(world, "other", "q");
	claim.claim.request = 7;
	assert_int_equal(world_run(world, &claim)->claim_count, 1);
	claim = within(claim);
	claim.claim.queues = claim.within;
	assert_int_equal(world_run(world, &claim)->claim_count, 0);
}

static void a_taken_id_or_key_of_another_queue_is_refused_without_showing_the_task(void **state)
{
	struct world *world = *state;
	struct command keyed = say_create("other", "q");

	keyed.create.unique_key = SPAN("k");
	world_run(world, &keyed);
	struct command create = within(say_create("other", "a"));
	assert_int_equal(world_run(world, &create)->refusal, REFUSED_TASK_EXISTS);
	assert_int_equal(world->result.task.seq, 0);
	create = within(say_create("mine", "a"));
	create.create.unique_key = SPAN("k");
	assert_int_equal(world_run(world, &create)->refusal, REFUSED_TASK_EXISTS);
	assert_int_equal(world->result.task.seq, 0);
	create.within = (struct name_list){0};
	assert_int_equal(world_run(world, &create)->refusal, REFUSED_NOTHING);
	assert_true(world->result.deduplicated);
}

static void a_parent_in_another_queue_is_as_one_that_is_not_there(void **state)
{
	struct world *world = *state;
	struct span parents[] = {SPAN("other")};
	struct command create = within(say_create("child", "a"));
	int64_t last;

	world_create(world, "other", "q");
	world_create(world, "mine", "b");
	last = store_last_event(world->store);
	create.create.parents = (struct name_list){parents, 1};
	for (int i = 0; i < 2; i++) { /* hidden, then absent */
		struct result *result = world_run(world, &create);

		assert_int_equal(result->refusal, REFUSED_INVALID);
		assert_true(span_equal(result->id, parents[0]));
		assert_int_equal(result->task.seq, 0);
		parents[0] = SPAN("nowhere");
	}
	assert_int_equal(store_last_event(world->store), last);
	parents[0] = SPAN("mine");
	assert_int_equal(world_run(world, &create)->refusal, REFUSED_NOTHING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(a_token_is_known_by_its_id_and_survives_a_crash),
		ON_BOTH(a_revoked_token_stays_revoked_and_says_by_whom),
		ON_BOTH(a_token_that_is_not_there_cannot_be_revoked),
		ON_BOTH(an_id_is_given_once),
		ON_BOTH(a_token_given_and_revoked_in_one_turn_is_revoked),
		ON_BOTH(giving_and_taking_back_leave_one_event_each),
		ON_BOTH(what_an_admin_does_elsewhere_leaves_an_event),
		cmocka_unit_test_setup_teardown(
			a_turn_that_cannot_be_committed_gives_and_revokes_nothing, on_memory, world_over),
		ON_BOTH(a_token_that_ended_long_ago_is_forgotten),
		ON_BOTH(the_tokens_say_whenever_one_of_them_changed),
		cmocka_unit_test_setup_teardown(
			there_is_an_end_to_how_many_tokens_are_kept, on_memory, world_over),
		ON_BOTH(a_task_of_another_queue_is_not_there),
		ON_BOTH(a_report_about_a_task_of_another_queue_changes_nothing),
		ON_BOTH(a_beat_binds_and_gives_back_nothing_of_another_queue),
		ON_BOTH(the_same_request_id_hands_out_nothing_of_another_queue),
		ON_BOTH(a_taken_id_or_key_of_another_queue_is_refused_without_showing_the_task),
		ON_BOTH(a_parent_in_another_queue_is_as_one_that_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
