/*
 * Slot workers of an old door, and sessions: what they leave in the store.
 */
#include "store_fixture.h"

enum {
	STALE_MS = 90 * 1000,
	VERIFY_MS = 120 * 1000,
};

/* ---- slot workers ---------------------------------------------------------------------------------------- */

static void own(struct world *world, const char *id, const char *slot)
{
	struct command command = say_create(id, "q");

	command.create.owner = span_of(slot);
	world_run(world, &command);
}

static enum refusal move(struct world *world, const char *id, enum task_status status)
{
	struct command command = say_about(COMMAND_UPDATE, id);

	command.by_name = true;
	command.update.status = status;
	return world_run(world, &command)->refusal;
}

/* The heartbeat of a slot worker; `task` NULL: it is idle. */
static struct result *beat(struct world *world, const char *slot, uint32_t pid, const char *task)
{
	struct command command = say_beat(slot, 0);
	struct span bound = span_of(task);

	command.beat = (struct command_beat){
		.named = true,
		.describes = true,
		.any_executor = true,
		.tells_all = true,
		.lease_ms = STALE_MS,
		.slot = span_of(slot),
		.process.pid = pid,
		.bound = {&bound, task != NULL},
		.session = task ? SPAN("\"s-1\"") : (struct span){0},
	};
	return world_run(world, &command);
}

static struct task_document look(struct world *world, const char *id, struct arena *arena)
{
	struct task_document document;
	int64_t seq;

	arena_init(arena, 1 << 20);
	assert_int_equal(store_find_task(world->store, span_of(id), &seq), 0);
	assert_int_equal(store_read_task(world->store, seq, world->now, arena, &document), 0);
	return document;
}

static uint32_t restarts(struct world *world, const char *slot)
{
	struct slot found = {0};

	store_slot(world->store, span_of(slot), &found);
	return found.restarts;
}

static void what_a_silent_slot_worker_held_comes_back_once_and_says_so(void **state)
{
	struct world *world = *state;
	struct arena arena;

	own(world, "a", "slot-1");
	beat(world, "slot-1", 7, NULL);
	assert_int_equal(move(world, "a", STATUS_IN_PROGRESS), REFUSED_NOTHING);
	beat(world, "slot-1", 7, "a");
	world_pass(world, STALE_MS - 1);
	world_run(world, NULL);
	assert_int_equal(world_state(world, "a"), TASK_RUNNING);
	world_pass(world, 60 * 1000);
	world_run(world, NULL);
	struct task_document found = look(world, "a", &arena);
	assert_int_equal(found.task.state, TASK_READY);
	assert_int_equal(found.recovered_ms, world->now.wall_ms);
	assert_true(span_equal(found.previous_session, SPAN("\"s-1\"")));
	arena_done(&arena);
	assert_int_equal(restarts(world, "slot-1"), 1);
	int64_t last = store_last_event(world->store);
	world_run(world, NULL);
	assert_int_equal(move(world, "a", STATUS_TODO), REFUSED_NOTHING);
	assert_int_equal(store_last_event(world->store), last);
}

static void a_claim_that_never_arrived_was_no_crash(void **state)
{
	struct world *world = *state;
	struct command claim = say_claim("w");
	struct arena arena;

	own(world, "a", "slot-1");
	struct command native = say_beat("w", 0);
	native.beat.lease_ms = 10 * VERIFY_MS;
	world_run(world, &native);
	claim.claim.slot = SPAN("slot-1");
	claim.claim.lease_ms = 10 * VERIFY_MS;
	assert_int_equal(world_run(world, &claim)->claim_count, 1);
	world_pass(world, VERIFY_MS + 60 * 1000);
	world_run(world, NULL);
	struct task_document found = look(world, "a", &arena);
	assert_int_equal(found.task.state, TASK_READY);
	assert_int_equal(found.recovered_ms, 0);
	arena_done(&arena);
}

static void what_failed_under_a_slot_says_when_and_in_which_session_until_it_is_taken_again(void **state)
{
	struct world *world = *state;
	struct arena arena;

	own(world, "a", "slot-1");
	beat(world, "slot-1", 7, NULL);
	move(world, "a", STATUS_IN_PROGRESS);
	beat(world, "slot-1", 7, "a");
	world_pass(world, 1000);
	assert_int_equal(move(world, "a", STATUS_BLOCKED), REFUSED_NOTHING);
	int64_t failed_ms = world->now.wall_ms;
	world_pass(world, 1000);
	struct task_document found = look(world, "a", &arena);
	assert_int_equal(found.failed_ms, failed_ms);
	assert_true(span_equal(found.failed_session, SPAN("\"s-1\"")));
	assert_int_equal(found.recovered_ms, 0);
	arena_done(&arena);
	struct command retry = say_about(COMMAND_RETRY, "a");
	assert_int_equal(world_run(world, &retry)->refusal, REFUSED_NOTHING);
	assert_int_equal(look(world, "a", &arena).failed_ms, 0);
	arena_done(&arena);
}

static void what_was_lost_too_often_has_failed_and_says_so(void **state)
{
	struct world *world = *state;
	struct arena arena;

	own(world, "a", "slot-1");
	for (uint32_t pid = 1; pid <= 3; pid++) {
		beat(world, "slot-1", pid, NULL);
		assert_int_equal(move(world, "a", STATUS_IN_PROGRESS), REFUSED_NOTHING);
		beat(world, "slot-1", pid, "a");
		world_pass(world, STALE_MS + 60 * 1000);
		world_run(world, NULL);
		world_pass(world, 60 * 1000);
		world_run(world, NULL);
		struct task_document found = look(world, "a", &arena);
		assert_int_equal(found.task.state, pid < 3 ? TASK_READY : TASK_FAILED);
		assert_true(pid < 3 ? found.failed_ms == 0 : found.failed_ms > found.recovered_ms);
		arena_done(&arena);
	}
}

static void what_the_caller_says_of_it_takes_the_place_of_what_was_found(void **state)
{
	struct world *world = *state;
	struct command said = say_about(COMMAND_UPDATE, "a");
	struct arena arena;

	own(world, "a", "slot-1");
	move(world, "a", STATUS_IN_PROGRESS);
	said.by_name = true;
	said.update.status = STATUS_BLOCKED;
	said.update.set_body = true;
	said.update.body = SPAN("\"metadata\":{\"failedAt\":5}");
	said.update.says_failure = true;
	assert_int_equal(world_run(world, &said)->refusal, REFUSED_NOTHING);
	assert_int_equal(look(world, "a", &arena).failed_ms, 0);
	arena_done(&arena);
}

static void beats_hold_what_they_name_however_long_the_claim_was_for(void **state)
{
	struct world *world = *state;

	own(world, "a", "slot-1");
	beat(world, "slot-1", 7, NULL);
	move(world, "a", STATUS_IN_PROGRESS);
	for (int i = 0; i < 40; i++) {
		beat(world, "slot-1", 7, "a");
		world_pass(world, 60 * 1000);
	}
	assert_int_equal(world_state(world, "a"), TASK_RUNNING);
}

static void what_an_idle_beat_does_not_name_is_lost_after_a_while(void **state)
{
	struct world *world = *state;

	own(world, "a", "slot-1");
	beat(world, "slot-1", 7, NULL);
	move(world, "a", STATUS_IN_PROGRESS);
	beat(world, "slot-1", 7, "a");
	for (int i = 0; i < VERIFY_MS / (30 * 1000); i++) {
		assert_int_equal(world_state(world, "a"), TASK_RUNNING);
		beat(world, "slot-1", 7, NULL);
		world_pass(world, 30 * 1000 + 1);
	}
	beat(world, "slot-1", 7, NULL);
	assert_int_equal(world_state(world, "a"), TASK_READY);
}

static void a_beat_that_names_what_others_hold_changes_nothing(void **state)
{
	struct world *world = *state;

	own(world, "a", "slot-2");
	beat(world, "slot-2", 8, NULL);
	move(world, "a", STATUS_IN_PROGRESS);
	int64_t last = store_last_event(world->store);
	assert_int_equal(beat(world, "slot-1", 7, "a")->lost_count, 1);
	assert_int_equal(store_last_event(world->store), last + 1); /* it registered */
}

static void restarts_are_unclean_ends_and_survive(void **state)
{
	struct world *world = *state;
	struct command leave = {.kind = COMMAND_LEAVE, .worker = SPAN("slot-1"), .leave = WORKER_SHUTDOWN};

	beat(world, "slot-1", 7, NULL);
	beat(world, "slot-1", 7, NULL);
	assert_int_equal(restarts(world, "slot-1"), 0);
	beat(world, "slot-1", 8, NULL);
	assert_int_equal(restarts(world, "slot-1"), 1);
	world_run(world, &leave);
	beat(world, "slot-1", 9, NULL);
	assert_int_equal(restarts(world, "slot-1"), 1); /* it had said goodbye */
	world_crash(world);
	assert_int_equal(restarts(world, "slot-1"), 1);
}

static void an_end_that_is_told_and_then_seen_counts_once(void **state)
{
	struct world *world = *state;
	struct command crash = {.kind = COMMAND_SLOT_CRASH, .slot = SPAN("slot-1")};

	beat(world, "slot-1", 7, NULL);
	world_pass(world, 1000);
	world_run(world, &crash);
	assert_int_equal(restarts(world, "slot-1"), 1);
	beat(world, "slot-1", 8, NULL); /* its successor */
	assert_int_equal(restarts(world, "slot-1"), 1);
	world_pass(world, 1000);
	beat(world, "slot-1", 9, NULL); /* and one of which nobody has told */
	assert_int_equal(restarts(world, "slot-1"), 2);
	world_pass(world, 1000);
	world_run(world, &crash);
	world_pass(world, 10 * STALE_MS);
	world_run(world, NULL); /* nobody came after it: its lease runs out */
	assert_int_equal(restarts(world, "slot-1"), 3);
}

/* ---- sessions ---------------------------------------------------------------------------------------------- */

static struct result *spawn(struct world *world, const char *label)
{
	struct command command = say_create(NULL, "sessions");

	command.create.spawn = (struct command_spawn){.label = span_of(label), .spec = SPAN("{}")};
	return world_run(world, &command);
}

static struct result *spawn_onto(struct world *world, const char *label, const char *task)
{
	struct command command = say_about(COMMAND_UPDATE, task);

	command.update.spawn = (struct command_spawn){.label = span_of(label), .spec = SPAN("{}")};
	return world_run(world, &command);
}

struct told {
	char text[512];
	struct world *world;
};

static int note_session(void *context, int64_t seq, int64_t ended_ms)
{
	struct told *told = context;
	struct session_document session;
	struct arena arena;
	size_t len = strlen(told->text);

	arena_init(&arena, 1 << 20);
	assert_int_equal(store_read_session(told->world->store, seq, &arena, &session), 0);
	snprintf(told->text + len, sizeof told->text - len, "%.*s%s%s ", SPAN_ARGS(session.label),
		session.own ? "" : "*", ended_ms != 0 ? "." : "");
	arena_done(&arena);
	return 0;
}

static void assert_sessions(struct world *world, const char *expected)
{
	struct told told = {.world = world};
	uint32_t at = 0;

	do {
		assert_int_equal(store_page_sessions(world->store, &at, 2, note_session, &told), 0);
	} while (at != 0);
	assert_string_equal(told.text, expected);
}

static int note_kind(void *context, const struct record *record)
{
	struct told *told = context;
	size_t len = strlen(told->text);

	if (event_kind_is_of_session(record->kind))
		snprintf(told->text + len, sizeof told->text - len, "%s:%.*s ",
			event_kind_name(record->kind) + strlen("session."), SPAN_ARGS(record->subject));
	return 0;
}

static void assert_told(struct world *world, const char *expected)
{
	struct told told = {.world = world};

	assert_int_equal(store_page_events(world->store, 0, 1000, note_kind, &told), 0);
	assert_string_equal(told.text, expected);
}

static void sessions_are_there_after_a_crash_in_their_order(void **state)
{
	struct world *world = *state;
	struct command cancel = say_about(COMMAND_CANCEL, "t-1");

	spawn(world, "one");
	world_create(world, "task", "q");
	spawn_onto(world, "two", "task");
	spawn(world, NULL);
	world_run(world, &cancel);
	assert_sessions(world, "one. two* t-3 ");
	world_crash(world);
	assert_sessions(world, "one. two* t-3 ");
}

static void a_label_is_one_session_and_then_taken(void **state)
{
	struct world *world = *state;
	struct command cancel = say_about(COMMAND_CANCEL, "t-1");

	assert_false(spawn(world, "one")->deduplicated);
	int64_t last = store_last_event(world->store);
	assert_true(spawn(world, "one")->deduplicated);
	world_create(world, "task", "q");
	assert_int_equal(spawn_onto(world, "one", "task")->refusal, REFUSED_TASK_EXISTS);
	assert_int_equal(store_last_event(world->store), last + 1);
	world_run(world, &cancel);
	assert_int_equal(spawn(world, "one")->refusal, REFUSED_TASK_EXISTS);
	assert_sessions(world, "one. ");
}

static void a_task_has_its_last_label_only(void **state)
{
	struct world *world = *state;
	int64_t seq;

	world_create(world, "task", "q");
	spawn_onto(world, "one", "task");
	spawn_onto(world, "two", "task");
	assert_sessions(world, "two* ");
	assert_int_equal(store_find_session(world->store, SPAN("one"), &seq), -ENOENT);
	world_crash(world);
	assert_sessions(world, "two* ");
	assert_false(spawn(world, "one")->deduplicated);
}

static void attempts_of_a_session_are_told_by_its_label(void **state)
{
	struct world *world = *state;

	spawn(world, "one");
	world_create(world, "other", "q");
	uint64_t fence = world_claim(world, "w");
	assert_int_equal(world->result.claims[0].task.version, store_last_event(world->store));
	world_crash(world);
	world_pass(world, 16 * 60 * 1000);
	world_run(world, NULL);
	fence = world_claim(world, "w");
	assert_int_equal(world_report(world, COMMAND_COMPLETE, "t-1", "w", fence), REFUSED_NOTHING);
	fence = world_claim(world, "w");
	world_report(world, COMMAND_COMPLETE, "other", "w", fence);
	assert_told(world, "started:one gone:one started:one ended:one ");
}

static void what_a_session_prints_is_told_in_the_chain_of_its_task(void **state)
{
	struct world *world = *state;
	struct command print = say_about(COMMAND_LOG, "t-1");

	spawn(world, "one");
	print.fence = world_claim(world, "w");
	print.worker = SPAN("w");
	print.data = SPAN("hello");
	for (int i = 0; i < 2; i++) /* the second time it is known */
		assert_int_equal(world_run(world, &print)->refusal, REFUSED_NOTHING);
	int64_t last = store_last_event(world->store);
	world_crash(world);
	assert_int_equal(world_report(world, COMMAND_COMPLETE, "t-1", "w", print.fence), REFUSED_NOTHING);
	assert_true(store_last_event(world->store) > last);
	assert_told(world, "started:one output:one ended:one ");
}

static void a_label_that_is_put_onto_running_work_starts_a_session(void **state)
{
	struct world *world = *state;

	world_create(world, "task", "q");
	world_claim(world, "w");
	spawn_onto(world, "one", "task");
	assert_told(world, "started:one ");
}

static void stopping_blocks_and_ends_the_claim(void **state)
{
	struct world *world = *state;
	struct command stop = say_about(COMMAND_STOP, "task");

	world_create(world, "task", "q");
	spawn_onto(world, "one", "task");
	uint64_t fence = world_claim(world, "w");
	assert_int_equal(world_run(world, &stop)->refusal, REFUSED_NOTHING);
	assert_int_equal(world_state(world, "task"), TASK_BLOCKED);
	assert_int_equal(world_report(world, COMMAND_COMPLETE, "task", "w", fence), REFUSED_STALE_CLAIM);
	assert_told(world, "started:one ended:one ");
}

static void the_latest_are_kept_round_and_round(void **state)
{
	struct world *world = *state;
	struct command command = say_create(NULL, "sessions");
	struct result result;
	uint32_t at = 0, count = 10000 + 3;
	struct told told = {.world = world};

	for (uint32_t i = 0; i < count; i++) {
		command.create.spawn = (struct command_spawn){.spec = SPAN("{}")};
		assert_int_equal(store_turn(world->store, world->now, &command, 1, &result), 0);
	}
	assert_int_equal(store_page_sessions(world->store, &at, 2, note_session, &told), 0);
	assert_string_equal(told.text, "t-4 t-5 ");
	world_crash(world);
	at = 0;
	told.text[0] = 0;
	assert_int_equal(store_page_sessions(world->store, &at, 2, note_session, &told), 0);
	assert_string_equal(told.text, "t-4 t-5 ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(what_a_silent_slot_worker_held_comes_back_once_and_says_so),
		ON_BOTH(a_claim_that_never_arrived_was_no_crash),
		ON_BOTH(what_failed_under_a_slot_says_when_and_in_which_session_until_it_is_taken_again),
		ON_BOTH(what_was_lost_too_often_has_failed_and_says_so),
		ON_BOTH(what_the_caller_says_of_it_takes_the_place_of_what_was_found),
		ON_BOTH(beats_hold_what_they_name_however_long_the_claim_was_for),
		ON_BOTH(what_an_idle_beat_does_not_name_is_lost_after_a_while),
		ON_BOTH(a_beat_that_names_what_others_hold_changes_nothing),
		ON_BOTH(restarts_are_unclean_ends_and_survive),
		ON_BOTH(an_end_that_is_told_and_then_seen_counts_once),
		ON_BOTH(sessions_are_there_after_a_crash_in_their_order),
		ON_BOTH(a_label_is_one_session_and_then_taken),
		ON_BOTH(a_task_has_its_last_label_only),
		ON_BOTH(attempts_of_a_session_are_told_by_its_label),
		ON_BOTH(what_a_session_prints_is_told_in_the_chain_of_its_task),
		ON_BOTH(a_label_that_is_put_onto_running_work_starts_a_session),
		ON_BOTH(stopping_blocks_and_ends_the_claim),
		{"the_latest_are_kept_round_and_round (memory)", the_latest_are_kept_round_and_round,
			on_memory, world_over, NULL},
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
