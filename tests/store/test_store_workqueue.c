/*
 * What the door of an older queue keeps in the store: assignments, tasks with a past, last words and last holders.
 */
#include "store_fixture.h"

struct told {
	char text[256];
	size_t len;
};

static int tell(void *context, struct span slot, struct span queues)
{
	struct told *told = context;

	told->len += (size_t)snprintf(
		told->text + told->len, sizeof told->text - told->len, "%.*s:", SPAN_ARGS(slot));
	for (size_t i = 0; i < queues.len; i++)
		told->text[told->len++] = queues.data[i] == ASSIGNMENT_SEPARATOR ? ' ' : queues.data[i];
	told->text[told->len++] = ';';
	told->text[told->len] = 0;
	return 0;
}

static void assert_assigned(struct world *world, const char *expected)
{
	struct told told = {0};
	int64_t after = 0;

	do
		assert_int_equal(store_page_assignments(world->store, &after, 1, tell, &told), 0);
	while (after != 0);
	assert_string_equal(told.text, expected);
}

static enum refusal assign(struct world *world, const char *slot, const struct span *queues, uint32_t count)
{
	struct command command = {.kind = COMMAND_SLOT_ASSIGN, .actor = SPAN("tester")};

	command.assign.slot = span_of(slot);
	command.assign.queues = (struct name_list){queues, count};
	return world_run(world, &command)->refusal;
}

static void an_assignment_keeps_order_and_repetitions_and_outlives_a_crash(void **state)
{
	struct world *world = *state;
	struct span queues[] = {SPAN("b"), SPAN("a"), SPAN("b")};
	int64_t before = store_last_event(world->store);

	assert_int_equal(assign(world, "dev-1", queues, 3), REFUSED_NOTHING);
	assert_int_equal(assign(world, "dev-2", queues, 1), REFUSED_NOTHING);
	assert_int_equal(store_last_event(world->store), before + 2);
	world_crash(world);
	assert_assigned(world, "dev-1: b a b;dev-2: b;");
	assert_int_equal(assign(world, "dev-1", queues + 1, 1), REFUSED_NOTHING);
	assert_assigned(world, "dev-1: a;dev-2: b;");
}

static void a_slot_that_nobody_assigned_has_no_queues(void **state)
{
	struct world *world = *state;
	struct arena arena;
	struct span queues;

	arena_init(&arena, 4096);
	world_create(world, "job", "q");
	assert_int_equal(store_assignment(world->store, SPAN("nobody"), &arena, &queues), -ENOENT);
	assert_int_equal(store_assignment(world->store, SPAN("q"), &arena, &queues), -ENOENT);
	arena_done(&arena);
}

static struct command say_import(const char *id, enum task_state past)
{
	struct command command = say_create(id, "q");

	command.create.past = (struct task_past){
		.state = past, .created_ms = 1000, .attempt = 2, .claimed_ms = 7, .lease_until_ms = 8};
	command.create.past_result = SPAN("{\"a\":1}");
	command.create.past_note = SPAN("shipped");
	command.create.past_holder = SPAN("dev 1");
	return command;
}

static void read_document(
	struct world *world, const char *id, struct arena *arena, struct task_document *ret_document)
{
	int64_t seq;

	assert_int_equal(store_find_task(world->store, span_of(id), &seq), 0);
	assert_int_equal(store_read_task(world->store, seq, world->now, arena, ret_document), 0);
	assert_int_equal(store_read_last(world->store, arena, ret_document), 0);
}

static void a_task_with_a_past_is_one_event_and_has_what_it_brought(void **state)
{
	struct world *world = *state;
	struct command import = say_import("old", TASK_DONE);
	struct task_document document;
	struct arena arena;
	int64_t before = store_last_event(world->store);

	arena_init(&arena, 1 << 20);
	assert_int_equal(world_run(world, &import)->refusal, REFUSED_NOTHING);
	assert_int_equal(store_last_event(world->store), before + 1);
	world_crash(world);
	world_run(world, NULL);
	read_document(world, "old", &arena, &document);
	assert_int_equal(document.task.state, TASK_DONE);
	assert_int_equal(document.task.created_ms, 1000);
	assert_int_equal(document.task.attempt, 2);
	assert_true(span_equal(document.result, SPAN("{\"a\":1}")));
	assert_true(span_equal(document.words, SPAN("shipped")));
	assert_true(span_equal(document.last.worker, SPAN("dev 1")));
	assert_int_equal(document.last.claimed_ms, 7);
	assert_int_equal(document.last.until_ms, 8);
	assert_int_equal(world_run(world, &import)->refusal, REFUSED_TASK_EXISTS);
	arena_done(&arena);
}

static void what_is_over_holds_no_key_until_it_is_opened_again(void **state)
{
	struct world *world = *state;
	struct command import = say_import("old", TASK_FAILED), create = say_create("new", "q");
	struct command retry = say_about(COMMAND_RETRY, "old");

	import.create.unique_key = create.create.unique_key = SPAN("k");
	assert_int_equal(world_run(world, &import)->refusal, REFUSED_NOTHING);
	world_run(world, &create);
	assert_false(world->result.deduplicated);
	assert_int_equal(world_run(world, &retry)->refusal, REFUSED_TASK_EXISTS);
}

static void imported_tasks_are_claimed_by_their_age(void **state)
{
	struct world *world = *state;
	struct command import = say_import("old", TASK_READY);

	world_create(world, "new", "q");
	assert_int_equal(world_run(world, &import)->refusal, REFUSED_NOTHING);
	world_crash(world);
	world_claim(world, "w1");
	assert_true(span_equal(world->result.claims[0].id, SPAN("old")));
}

static void imported_ends_are_kept_for_as_long_as_others(void **state)
{
	struct world *world = *state;
	struct command import = say_import("old", TASK_DONE);

	world_run(world, &import);
	assert_int_equal(store_sweep(world->store, world->now), 0);
	assert_int_equal(world_state(world, "old"), TASK_DONE);
	world_pass(world, INT64_C(8) * 24 * 3600 * 1000);
	assert_int_equal(store_sweep(world->store, world->now), 0);
	assert_int_equal(world_state(world, "old"), TASK_NOWHERE);
}

static void who_ended_a_task_by_name_is_remembered(void **state)
{
	struct world *world = *state;
	struct command claim = say_claim("dev-3"), done = say_report(COMMAND_COMPLETE, "job", "dev-3", 0);
	struct task_document document;
	struct arena arena;

	arena_init(&arena, 1 << 20);
	world_create(world, "job", "q");
	claim.claim.named = true;
	claim.claim.lease_ms = 60000;
	world_run(world, &claim);
	int64_t claimed_ms = world->now.wall_ms;
	world_pass(world, 1000);
	done.by_name = true;
	done.words = SPAN("it went well");
	assert_int_equal(world_run(world, &done)->refusal, REFUSED_NOTHING);
	read_document(world, "job", &arena, &document);
	assert_true(span_equal(document.last.worker, SPAN("dev-3")));
	assert_int_equal(document.last.claimed_ms, claimed_ms);
	assert_int_equal(document.last.until_ms, claimed_ms + 60000);
	assert_true(span_equal(document.words, SPAN("it went well")));
	arena_done(&arena);
}

static void a_purge_takes_what_is_over_and_nothing_else(void **state)
{
	struct world *world = *state;
	struct command purge = say_about(COMMAND_PURGE, "job"), cancel = say_about(COMMAND_CANCEL, "job");

	world_create(world, "job", "q");
	assert_int_equal(world_run(world, &purge)->refusal, REFUSED_BAD_TRANSITION);
	world_run(world, &cancel);
	assert_int_equal(world_run(world, &purge)->refusal, REFUSED_NOTHING);
	assert_int_equal(world_state(world, "job"), TASK_NOWHERE);
	assert_int_equal(world_run(world, &purge)->refusal, REFUSED_NOT_FOUND);
	world_crash(world);
	assert_int_equal(world_state(world, "job"), TASK_NOWHERE);
}

static int note_row(void *context, const struct task_outline *outline)
{
	struct told *told = context;

	told->len += (size_t)snprintf(
		told->text + told->len, sizeof told->text - told->len, "%lld ", (long long)outline->seq);
	return 0;
}

static void rows_are_paged_from_both_ends(void **state)
{
	struct world *world = *state;
	struct command import = say_import("over", TASK_DONE);
	struct told newest = {0}, oldest = {0};
	int64_t down = INT64_MAX, up = 0;

	world_create(world, "a", "q");
	world_run(world, &import);
	world_create(world, "b", "q");
	while (down != 0)
		assert_int_equal(store_page_rows(world->store, false, &down, 2, note_row, &newest), 0);
	while (up != INT64_MAX)
		assert_int_equal(store_page_rows(world->store, true, &up, 2, note_row, &oldest), 0);
	assert_string_equal(newest.text, "3 2 1 ");
	assert_string_equal(oldest.text, "1 2 3 ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(an_assignment_keeps_order_and_repetitions_and_outlives_a_crash),
		ON_BOTH(a_slot_that_nobody_assigned_has_no_queues),
		ON_BOTH(a_task_with_a_past_is_one_event_and_has_what_it_brought),
		ON_BOTH(what_is_over_holds_no_key_until_it_is_opened_again),
		ON_BOTH(imported_tasks_are_claimed_by_their_age),
		ON_BOTH(imported_ends_are_kept_for_as_long_as_others),
		ON_BOTH(who_ended_a_task_by_name_is_remembered),
		ON_BOTH(a_purge_takes_what_is_over_and_nothing_else),
		ON_BOTH(rows_are_paged_from_both_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
