/*
 * Turns as a dialogue: say this, expect that. Each test runs on the memory and on the SQLite backend.
 */
#include "store_fixture.h"

static void a_created_task_is_ready_and_has_a_short_id(void **state)
{
	struct world *world = *state;

	assert_int_equal(world_create(world, "", "q"), REFUSED_NOTHING);
	assert_int_equal(world->result.task.state, TASK_READY);
	assert_memory_equal(world->result.id.data, "t-1", 3);
	assert_int_equal(world_state(world, "t-1"), TASK_READY);
}

static void a_task_lives_from_creation_to_done(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	uint64_t fence = world_claim(world, "w1");
	assert_int_equal(fence, UINT64_C(1000000000001));
	assert_int_equal(world_state(world, "job"), TASK_CLAIMED);
	assert_int_equal(world_report(world, COMMAND_PROGRESS, "job", "w1", fence), REFUSED_NOTHING);
	assert_int_equal(world_state(world, "job"), TASK_RUNNING);
	assert_int_equal(world_report(world, COMMAND_COMPLETE, "job", "w1", fence), REFUSED_NOTHING);
	assert_int_equal(world_state(world, "job"), TASK_DONE);
}

static void a_task_says_when_it_changed_last(void **state)
{
	struct world *world = *state;

	world_create(world, "a", "q");
	assert_int_equal(world->result.task.updated_ms, START_WALL_MS);
	world_pass(world, 10);
	uint64_t fence = world_claim(world, "w");
	assert_int_equal(world->result.claims[0].task.updated_ms, START_WALL_MS + 10);
	world_pass(world, 10);
	world_run(world, NULL); /* looking changes nothing */
	assert_int_equal(world_task(world, "a").updated_ms, START_WALL_MS + 10);
	world_report(world, COMMAND_PROGRESS, "a", "w", fence);
	assert_int_equal(world_task(world, "a").updated_ms, START_WALL_MS + 20);
	world_crash(world);
	assert_int_equal(world_task(world, "a").updated_ms, START_WALL_MS + 20);
	world_pass(world, 10);
	world_report(world, COMMAND_COMPLETE, "a", "w", fence);
	world_pass(world, 10);
	world_report(world, COMMAND_COMPLETE, "a", "w", fence); /* the same again */
	assert_int_equal(world->result.task.updated_ms, START_WALL_MS + 30);
	assert_int_equal(world_task(world, "a").updated_ms, START_WALL_MS + 30);
}

static void second_claim_of_same_task_is_refused(void **state)
{
	struct world *world = *state;
	struct command claim = say_claim("w2");

	world_create(world, "job", "q");
	world_claim(world, "w1");
	assert_int_equal(world_claim(world, "w2"), 0);
	claim.kind = COMMAND_CLAIM;
	claim.task = SPAN("job");
	assert_int_equal(world_run(world, &claim)->refusal, REFUSED_CLAIMED_BY_OTHER);
}

static void racers_in_one_turn_have_one_winner(void **state)
{
	struct world *world = *state;
	struct command racers[16];
	struct result results[16];
	uint32_t winners = 0;

	world_create(world, "job", "q");
	for (int i = 0; i < 16; i++)
		racers[i] = say_claim(i % 2 ? "odd" : "even");
	assert_int_equal(store_turn(world->store, world->now, racers, 16, results), 0);
	for (int i = 0; i < 16; i++)
		winners += results[i].claim_count;
	assert_int_equal(winners, 1);
}

static void a_task_made_claimed_and_finished_in_one_turn_is_done(void **state)
{
	struct world *world = *state;
	struct command turn[3] = {say_create("job", "q"), say_claim("w1"),
		say_report(COMMAND_COMPLETE, "job", "w1", UINT64_C(1000000000001))};
	struct result results[3];

	assert_int_equal(store_turn(world->store, world->now, turn, 3, results), 0);
	assert_int_equal(results[1].claim_count, 1);
	assert_int_equal(results[2].refusal, REFUSED_NOTHING);
	assert_int_equal(world_state(world, "job"), TASK_DONE);
}

static void a_task_that_a_command_merely_looked_at_can_be_claimed_in_the_same_turn(void **state)
{
	struct world *world = *state;
	struct command turn[2] = {say_report(COMMAND_COMPLETE, "job", "nobody", 1), say_claim("w1")};
	struct result results[2];

	world_create(world, "job", "q");
	assert_int_equal(store_turn(world->store, world->now, turn, 2, results), 0);
	assert_int_equal(results[0].refusal, REFUSED_STALE_CLAIM);
	assert_int_equal(results[1].claim_count, 1);
}

static void a_worker_gets_a_full_lease_to_be_heard_after_a_restart(void **state)
{
	struct world *world = *state;
	struct command beat = say_beat("w1", 0);
	struct worker worker;

	beat.beat.lease_ms = 5 * 60 * 1000;
	world_run(world, &beat);
	world_pass(world, 10 * 60 * 1000); /* the server was away, and with it every renewal */
	world_crash(world);
	world_pass(world, 5 * 60 * 1000 - 1);
	world_run(world, NULL);
	assert_true(store_worker(world->store, SPAN("w1"), &worker));
	assert_int_equal(worker.state, WORKER_ACTIVE);
	world_pass(world, 200);
	world_run(world, NULL);
	assert_true(store_worker(world->store, SPAN("w1"), &worker));
	assert_int_equal(worker.state, WORKER_INACTIVE);
}

static void a_quarantined_slot_lets_nobody_in_but_one_trial(void **state)
{
	struct world *world = *state;
	struct command crash = {.kind = COMMAND_SLOT_CRASH, .slot = SPAN("slot-1")};
	struct command beat = say_beat("w1", 0);

	for (int i = 0; i < 3; i++)
		world_run(world, &crash);
	beat.beat.describes = true;
	beat.beat.slot = SPAN("slot-1");
	beat.beat.process = (struct command_process){SPAN("host-a"), 1, 2, 10, 100};
	assert_int_equal(world_run(world, &beat)->refusal, REFUSED_SLOT_QUARANTINED);
	world_crash(world);
	assert_int_equal(world_run(world, &beat)->refusal, REFUSED_SLOT_QUARANTINED);
	world_pass(world, 10 * 60 * 1000);
	assert_int_equal(world_run(world, &beat)->refusal, REFUSED_NOTHING);
	world_run(world, &crash);
	beat.worker = SPAN("w2");
	beat.beat.replaces = (struct command_replaces){SPAN("w1"), 10, 100, false};
	assert_int_equal(world_run(world, &beat)->refusal, REFUSED_SLOT_QUARANTINED);
}

static uint32_t restarts_of(struct world *world, struct span slot)
{
	struct slot_document document = {0};

	assert_int_equal(store_read_slot(world->store, slot, &document), 0);
	return document.slot.restarts;
}

static void a_crash_that_is_told_again_counts_once(void **state)
{
	struct world *world = *state;
	struct command crash = {
		.kind = COMMAND_SLOT_CRASH, .slot = SPAN("slot-1"), .crash_key = SPAN("w1-crash")};

	assert_false(world_run(world, &crash)->repeated);
	for (int i = 0; i < 3; i++) {
		const struct result *result = world_run(world, &crash);
		assert_int_equal(result->refusal, REFUSED_NOTHING);
		assert_true(result->repeated);
		world_crash(world);
	}
	assert_int_equal(restarts_of(world, SPAN("slot-1")), 1);
	crash.principal = 2; /* whose key is another one, though it reads the same */
	assert_false(world_run(world, &crash)->repeated);
	crash.principal = 0;
	crash.crash_key = SPAN("w2-crash");
	assert_false(world_run(world, &crash)->repeated);
	assert_int_equal(restarts_of(world, SPAN("slot-1")), 3);
	crash.slot = SPAN("slot-2");
	crash.crash_fingerprint[0] = 1;
	assert_int_equal(world_run(world, &crash)->refusal, REFUSED_IDEMPOTENCY_CONFLICT);
	struct slot_document none;
	assert_int_equal(store_read_slot(world->store, SPAN("slot-2"), &none), -ENOENT);
	crash.crash_key = (struct span){0};
	world_run(world, &crash);
	world_run(world, &crash);
	assert_int_equal(restarts_of(world, SPAN("slot-2")), 2);
}

/* A live worker in the slot, which has crashed three times since. */
static uint64_t world_quarantine(struct world *world, const char *worker, struct span slot)
{
	struct command crash = {.kind = COMMAND_SLOT_CRASH, .slot = slot};
	struct command beat = say_beat(worker, 0);

	beat.beat.describes = true;
	beat.beat.slot = slot;
	beat.beat.lease_ms = 60 * 60 * 1000;
	const struct result *result = world_run(world, &beat);
	assert_int_equal(result->refusal, REFUSED_NOTHING);
	uint64_t token = result->worker.token;
	for (int i = 0; i < 3; i++)
		world_run(world, &crash);
	return token;
}

static void a_worker_of_a_quarantined_slot_claims_for_no_other_slot_either(void **state)
{
	struct world *world = *state;
	struct command claim = say_claim("w1"), by_id = say_claim("w1");

	world_quarantine(world, "w1", SPAN("slot-1"));
	world_create(world, "job", "q");
	claim.claim.slot = SPAN("slot-2"); /* nobody's, and never heard of */
	assert_int_equal(world_run(world, &claim)->claim_count, 0);
	by_id.kind = COMMAND_CLAIM;
	by_id.task = SPAN("job");
	by_id.claim.slot = SPAN("w1/tests-1");
	assert_int_equal(world_run(world, &by_id)->refusal, REFUSED_SLOT_QUARANTINED);
	assert_int_equal(world_state(world, "job"), TASK_READY);
	world_pass(world, 10 * 60 * 1000); /* its own slot is on trial with what it takes for the other */
	assert_int_equal(world_run(world, &claim)->claim_count, 1);
	struct slot_document slot;
	assert_int_equal(store_read_slot(world->store, SPAN("slot-1"), &slot), 0);
	assert_int_equal(slot.slot.state, SLOT_ON_TRIAL);
}

static void a_quarantined_slot_behind_a_worker_stops_what_is_claimed_for_it_alone(void **state)
{
	struct world *world = *state;
	struct command crash = {.kind = COMMAND_SLOT_CRASH, .slot = SPAN("w1/tests-1")};
	struct command beat = say_beat("w1", 0), claim = say_claim("w1");

	world_run(world, &beat);
	for (int i = 0; i < 3; i++)
		world_run(world, &crash);
	world_create(world, "job", "q");
	claim.claim.slot = SPAN("w1/tests-1");
	assert_int_equal(world_run(world, &claim)->claim_count, 0);
	claim.claim.slot = SPAN("w1/tests-2");
	assert_int_equal(world_run(world, &claim)->claim_count, 1);
}

static void a_live_worker_does_not_move_into_a_quarantined_slot(void **state)
{
	struct world *world = *state;
	struct command beat = say_beat("w2", 0);
	struct worker worker;

	world_quarantine(world, "w1", SPAN("slot-1"));
	struct command leave = {.kind = COMMAND_LEAVE, .worker = SPAN("w1"), .leave = WORKER_SHUTDOWN};
	assert_int_equal(world_run(world, &leave)->refusal, REFUSED_NOTHING);
	uint64_t token = world_run(world, &beat)->worker.token;
	beat = say_beat("w2", token);
	beat.beat.describes = true;
	beat.beat.slot = SPAN("slot-1");
	assert_int_equal(world_run(world, &beat)->refusal, REFUSED_SLOT_QUARANTINED);
	beat.kind = COMMAND_REGISTER;
	assert_int_equal(world_run(world, &beat)->refusal, REFUSED_SLOT_QUARANTINED);
	assert_true(store_worker(world->store, SPAN("w2"), &worker));
	assert_int_equal(worker.slot, 0);
	assert_int_equal(worker.token, token); /* nothing was changed */
}

static void a_worker_whose_slot_is_quarantined_goes_on_beating_and_does_not_come_again(void **state)
{
	struct world *world = *state;
	struct command beat = say_beat("w1", world_quarantine(world, "w1", SPAN("slot-1")));

	beat.beat.describes = true;
	beat.beat.slot = SPAN("slot-1");
	assert_int_equal(world_run(world, &beat)->refusal, REFUSED_NOTHING);
	beat.kind = COMMAND_REGISTER; /* its process was started again, under the same id */
	assert_int_equal(world_run(world, &beat)->refusal, REFUSED_SLOT_QUARANTINED);
}

static void what_runs_in_a_slot_without_a_registration_passes_the_same_gate(void **state)
{
	struct world *world = *state;
	struct command crash = {.kind = COMMAND_SLOT_CRASH, .slot = SPAN("host/p-1")};
	struct command enter = {
		.kind = COMMAND_SLOT_ENTER, .slot = SPAN("host/p-1"), .worker = SPAN("w1"), .principal = 1};

	assert_int_equal(world_run(world, &enter)->refusal, REFUSED_NOTHING);
	for (int i = 0; i < 3; i++)
		world_run(world, &crash);
	assert_int_equal(world_run(world, &enter)->refusal, REFUSED_SLOT_QUARANTINED);
	world_crash(world);
	assert_int_equal(world_run(world, &enter)->refusal, REFUSED_SLOT_QUARANTINED);
	world_pass(world, 10 * 60 * 1000);
	assert_int_equal(world_run(world, &enter)->refusal, REFUSED_NOTHING);
	enter.worker = SPAN("w2"); /* the trial is w1's */
	assert_int_equal(world_run(world, &enter)->refusal, REFUSED_SLOT_QUARANTINED);
	world_run(world, &crash);
	enter.worker = SPAN("w1");
	assert_int_equal(world_run(world, &enter)->refusal, REFUSED_SLOT_QUARANTINED);
}

static void slots_behind_a_worker_are_for_its_principal(void **state)
{
	struct world *world = *state;
	struct command beat = say_beat("w1", 0);
	struct command crash = {.kind = COMMAND_SLOT_CRASH, .slot = SPAN("slot-1/p-1"), .principal = 2};

	beat.principal = 1;
	beat.beat.describes = true;
	beat.beat.slot = SPAN("slot-1");
	world_run(world, &beat);
	assert_int_equal(world_run(world, &crash)->refusal, REFUSED_FORBIDDEN);
	crash.kind = COMMAND_SLOT_ENTER;
	crash.worker = SPAN("w9");
	assert_int_equal(world_run(world, &crash)->refusal, REFUSED_FORBIDDEN);
	crash.principal = 1;
	assert_int_equal(world_run(world, &crash)->refusal, REFUSED_NOTHING);
	crash.worker = SPAN("w1");
	crash.principal = 2;
	crash.slot = SPAN("elsewhere/p-1");
	assert_int_equal(world_run(world, &crash)->refusal, REFUSED_FORBIDDEN);
}

static struct command say_process(const char *worker, uint32_t pid)
{
	struct command beat = say_beat(worker, 0);

	beat.kind = COMMAND_REGISTER;
	beat.beat.describes = true;
	beat.beat.slot = SPAN("slot-1");
	beat.beat.process = (struct command_process){SPAN("host-a"), 1, 2, pid, 100};
	return beat;
}

static void a_slot_goes_to_a_newcomer_that_shows_its_predecessor_dead(void **state)
{
	struct world *world = *state;
	struct command old = say_process("w1", 10), fresh = say_process("w2", 20);
	struct worker worker;

	assert_int_equal(world_run(world, &old)->refusal, REFUSED_NOTHING);
	world_create(world, "job", "q");
	world_claim(world, "w1");
	assert_int_equal(world_run(world, &fresh)->refusal, REFUSED_SLOT_TAKEN);
	world_crash(world); /* what it said of itself is on disk */
	fresh.beat.replaces = (struct command_replaces){SPAN("w1"), 10, 100, false};
	assert_int_equal(world_run(world, &fresh)->refusal, REFUSED_NOTHING);
	assert_true(store_worker(world->store, SPAN("w1"), &worker));
	assert_int_equal(worker.ended, WORKER_REPLACED);
	assert_int_equal(world_state(world, "job"), TASK_READY);
}

static void a_lie_about_a_predecessor_changes_nothing(void **state)
{
	struct world *world = *state;
	struct command old = say_process("w1", 10), fresh = say_process("w2", 20);
	const struct {
		struct command_replaces replaces;
		struct span host;
		enum evidence evidence;
	} lies[] = {
		{{SPAN("w9"), 10, 100, false}, SPAN("host-a"), EVIDENCE_OF_ANOTHER},
		{{SPAN("w1"), 10, 100, false}, SPAN("host-b"), EVIDENCE_FROM_AFAR},
		{{SPAN("w1"), 11, 100, false}, SPAN("host-a"), EVIDENCE_OTHER_PROCESS},
		{{SPAN("w1"), 10, 100, true}, SPAN("host-a"), EVIDENCE_REFUTED},
	};
	struct worker worker;

	world_run(world, &old);
	for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
		fresh.beat.replaces = lies[i].replaces;
		fresh.beat.process.host = lies[i].host;
		assert_int_equal(world_run(world, &fresh)->refusal, REFUSED_SLOT_TAKEN);
		assert_int_equal(world->result.evidence, lies[i].evidence);
	}
	assert_true(store_worker(world->store, SPAN("w1"), &worker));
	assert_int_equal(worker.state, WORKER_ACTIVE);
	assert_false(store_worker(world->store, SPAN("w2"), &worker));
}

struct slot_notes {
	char text[512];
};

static int note_slot(void *context, const struct slot_document *slot)
{
	struct slot_notes *notes = context;
	size_t len = strlen(notes->text);

	snprintf(notes->text + len, sizeof notes->text - len, "%.*s=%.*s,%u ", SPAN_ARGS(slot->name),
		SPAN_ARGS(slot->worker), slot->slot.restarts);
	return 0;
}

static void slots_are_told_by_name_with_who_fills_them_and_what_befell_them(void **state)
{
	struct world *world = *state;
	struct command crash = {.kind = COMMAND_SLOT_CRASH, .slot = SPAN("w1/tests-1")};
	struct command worker = say_process("w1", 10);
	struct slot_notes notes = {""};

	world_run(world, &crash);
	world_run(world, &worker);
	worker.worker = SPAN("w2");
	worker.beat.slot = SPAN("a-slot");
	world_run(world, &worker);
	crash.slot = SPAN("slot-1");
	world_run(world, &crash);
	assert_int_equal(store_each_slot(world->store, note_slot, &notes), 0);
	assert_string_equal(notes.text, "a-slot=w2,0 slot-1=w1,1 w1/tests-1=,1 ");
}

static void a_stale_fence_changes_nothing_and_its_result_is_kept(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	uint64_t old = world_claim(world, "w1");
	world_pass(world, 16 * 60 * 1000);
	uint64_t fresh = world_claim(world, "w2");
	assert_int_equal(fresh, old + 1);
	struct command late = say_report(COMMAND_COMPLETE, "job", "w1", old);
	late.data = SPAN("\"late\"");
	assert_int_equal(world_run(world, &late)->refusal, REFUSED_STALE_CLAIM);
	assert_int_not_equal(world->result.event_seq, 0); /* task.orphan_result */
	assert_int_equal(world_run(world, &late)->refusal, REFUSED_STALE_CLAIM);
	assert_int_equal(world->result.event_seq, 0); /* once */
	assert_int_equal(world_report(world, COMMAND_COMPLETE, "job", "w2", fresh), REFUSED_NOTHING);
}

static void a_repeated_completion_is_answered_as_the_first(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	uint64_t fence = world_claim(world, "w1");
	world_report(world, COMMAND_COMPLETE, "job", "w1", fence);
	assert_int_equal(world_report(world, COMMAND_COMPLETE, "job", "w1", fence), REFUSED_NOTHING);
	assert_true(world->result.repeated);
	assert_int_equal(world_report(world, COMMAND_FAIL, "job", "w1", fence), REFUSED_ALREADY_TERMINAL);
}

static enum refusal about_version(
	struct world *world, enum command_kind kind, const char *worker, uint64_t fence, int64_t version)
{
	struct command command = say_report(kind, "a", worker, fence);

	command.if_version = version;
	return world_run(world, &command)->refusal;
}

static void a_command_about_another_version_changes_nothing(void **state)
{
	struct world *world = *state;

	world_create(world, "a", "q");
	int64_t version = world->result.task.version;
	assert_int_equal(about_version(world, COMMAND_PARK, "", 0, version - 1), REFUSED_VERSION_MISMATCH);
	assert_int_equal(about_version(world, COMMAND_CANCEL, "", 0, -1), REFUSED_VERSION_MISMATCH);
	assert_int_equal(world_state(world, "a"), TASK_READY);
	assert_int_equal(about_version(world, COMMAND_PARK, "", 0, version), REFUSED_NOTHING);
	assert_int_equal(about_version(world, COMMAND_UNPARK, "", 0, version), REFUSED_VERSION_MISMATCH);
	assert_int_equal(about_version(world, COMMAND_UNPARK, "", 0, 0), REFUSED_NOTHING);
}

static void a_report_about_another_version_is_refused_but_a_repeated_one_is_not(void **state)
{
	struct world *world = *state;

	world_create(world, "a", "q");
	uint64_t fence = world_claim(world, "w");
	int64_t version = world->result.claims[0].task.version;
	assert_int_equal(
		about_version(world, COMMAND_COMPLETE, "w", fence, version - 1), REFUSED_VERSION_MISMATCH);
	assert_int_equal(
		about_version(world, COMMAND_COMPLETE, "v", fence, version - 1), REFUSED_STALE_CLAIM);
	assert_int_equal(about_version(world, COMMAND_COMPLETE, "w", fence, version), REFUSED_NOTHING);
	assert_int_equal(about_version(world, COMMAND_COMPLETE, "w", fence, version), REFUSED_NOTHING);
	assert_true(world->result.repeated);
}

static enum refusal tell_progress(struct world *world, const char *task, uint64_t fence, struct span note)
{
	struct command progress = say_report(COMMAND_PROGRESS, task, "w", fence);

	progress.note = note;
	return world_run(world, &progress)->refusal;
}

/* How often until it is refused, with `most` as the limit of patience. */
static int told_of_progress(struct world *world, const char *task, uint64_t fence, struct span note, int most)
{
	int count = 0;

	while (count < most && tell_progress(world, task, fence, note) == REFUSED_NOTHING)
		count++;
	return count;
}

static void an_attempt_tells_of_its_progress_so_often_in_a_minute(void **state)
{
	struct world *world = *state;
	int most = (int)rules_default().attempt_progress;

	world_create(world, "a", "q");
	uint64_t fence = world_claim(world, "w");
	int64_t before = world->result.claims[0].task.version;
	assert_int_equal(told_of_progress(world, "a", fence, SPAN("\"x\""), 2 * most), most);
	assert_int_equal(world->result.refusal, REFUSED_RATE_LIMITED);
	assert_true(world->result.retry_ms > 0 && world->result.retry_ms <= 100);
	assert_int_equal(world->result.task.version, before + most);
	world_pass(world, 1000);
	assert_int_equal(told_of_progress(world, "a", fence, SPAN("\"x\""), most), 10);
	world_create(world, "b", "q"); /* nobody else is held back */
	uint64_t other = world_claim(world, "w");
	assert_int_equal(tell_progress(world, "b", other, SPAN("")), REFUSED_NOTHING);
	assert_int_equal(tell_progress(world, "b", other, SPAN("")), REFUSED_NOTHING);
	world_report(world, COMMAND_COMPLETE, "a", "w", fence); /* nor is its end */
	assert_int_equal(world->result.refusal, REFUSED_NOTHING);
}

/* With the token of its claim. */
static enum refusal patch(struct world *world, const char *task, uint64_t fence, enum task_status status)
{
	struct command command = say_report(COMMAND_UPDATE, task, "w", fence);

	command.update = (struct command_update){.set_body = true, .body = SPAN("{}"), .status = status};
	return world_run(world, &command)->refusal;
}

static void what_an_attempt_patches_counts_as_progress_and_its_end_is_free(void **state)
{
	struct world *world = *state;
	int most = (int)rules_default().attempt_progress, count = 0;

	world_create(world, "a", "q");
	uint64_t fence = world_claim(world, "w");
	assert_int_equal(told_of_progress(world, "a", fence, SPAN("\"x\""), most / 2), most / 2);
	while (count < most && patch(world, "a", fence, STATUS_NONE) == REFUSED_NOTHING)
		count++;
	assert_int_equal(count, most - most / 2);
	assert_int_equal(world->result.refusal, REFUSED_RATE_LIMITED);
	assert_true(world->result.retry_ms > 0);
	int64_t before = world->result.task.version;
	assert_int_equal(patch(world, "a", fence, STATUS_IN_PROGRESS), REFUSED_RATE_LIMITED);
	assert_int_equal(world->result.task.version, before);
	assert_int_equal(patch(world, "a", fence, STATUS_DONE), REFUSED_NOTHING);
}

static void a_long_note_counts_as_more_progress(void **state)
{
	static char long_note[32 << 10];
	struct world *world = *state;

	memset(long_note, '1', sizeof long_note);
	world_create(world, "a", "q");
	uint64_t fence = world_claim(world, "w");
	assert_int_equal(
		told_of_progress(world, "a", fence, (struct span){long_note, sizeof long_note}, 1000),
		600 / 9 + 1);
}

static void evidence_and_session_are_kept_and_the_session_is_handed_on(void **state)
{
	struct world *world = *state;
	struct task_document document;
	struct arena arena;

	world_create(world, "a", "q");
	uint64_t fence = world_claim(world, "w");
	struct command progress = say_report(COMMAND_PROGRESS, "a", "w", fence);
	progress.beside = SPAN("\"s1\"");
	assert_int_equal(world_run(world, &progress)->refusal, REFUSED_NOTHING);
	world_report(world, COMMAND_RELEASE, "a", "w", fence);
	world_crash(world);
	fence = world_claim(world, "v");
	assert_true(span_equal(world->result.claims[0].session, SPAN("\"s1\"")));
	struct command review = say_report(COMMAND_REVIEW, "a", "v", fence);
	review.data = SPAN("1");
	review.beside = SPAN("[\"log\"]");
	assert_int_equal(world_run(world, &review)->refusal, REFUSED_NOTHING);
	arena_init(&arena, 1 << 20);
	assert_int_equal(
		store_read_task(world->store, world->result.task.seq, world->now, &arena, &document), 0);
	assert_true(span_equal(document.evidence, SPAN("[\"log\"]")));
	assert_true(span_equal(document.session, SPAN("\"s1\"")));
	arena_done(&arena);
}

static void tasks_are_claimed_by_priority_then_age(void **state)
{
	struct world *world = *state;
	struct command urgent = say_create("urgent", "b");

	world_create(world, "first", "a");
	world_pass(world, 5);
	world_create(world, "second", "b");
	urgent.create.priority = 100;
	world_run(world, &urgent);
	struct command claim = say_claim("w1");
	claim.claim.max = 3;
	struct result *result = world_run(world, &claim);
	assert_int_equal(result->claim_count, 3);
	assert_true(span_equal(result->claims[0].id, SPAN("urgent")));
	assert_true(span_equal(result->claims[1].id, SPAN("first")));
	assert_true(span_equal(result->claims[2].id, SPAN("second")));
}

static void a_claimant_gets_only_what_it_can_run(void **state)
{
	struct world *world = *state;
	struct command task = say_create("gpu-job", "q");
	struct span gpu = SPAN("gpu"), executors[] = {SPAN("claude")};

	task.create.requires = (struct name_list){&gpu, 1};
	task.create.executor = SPAN("claude");
	task.create.owner = SPAN("slot-1");
	world_run(world, &task);
	assert_int_equal(world_claim(world, "w1"), 0);
	struct command claim = say_claim("w1");
	claim.claim.slot = SPAN("slot-1");
	claim.claim.capabilities = (struct name_list){&gpu, 1};
	claim.claim.any_executor = false;
	assert_int_equal(world_run(world, &claim)->claim_count, 0);
	claim.claim.executors = (struct name_list){executors, 1};
	assert_int_equal(world_run(world, &claim)->claim_count, 1);
}

static void an_expired_claim_comes_back_at_once_the_first_time(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	world_pass(world, 60 * 1000); /* past the grace of the start */
	world_claim(world, "w1");
	world_pass(world, 15 * 60 * 1000 - 1);
	world_run(world, NULL);
	assert_int_equal(world_state(world, "job"), TASK_CLAIMED);
	world_pass(world, 1 + 128);
	world_run(world, NULL);
	assert_int_equal(world_state(world, "job"), TASK_READY);
}

static void a_worker_that_beats_keeps_its_work_and_one_that_stops_loses_it(void **state)
{
	struct world *world = *state;
	struct command beat = say_beat("w1", 0);
	struct span job = SPAN("job");

	world_create(world, "job", "q");
	uint64_t token = world_run(world, &beat)->worker.token;
	world_claim(world, "w1");
	beat = say_beat("w1", token);
	beat.beat.bound = (struct name_list){&job, 1};
	token = world_run(world, &beat)->worker.token;
	assert_int_equal(world_state(world, "job"), TASK_RUNNING);
	for (int i = 0; i < 20; i++) {
		world_pass(world, 30 * 1000);
		beat = say_beat("w1", token);
		token = world_run(world, &beat)->worker.token;
	}
	assert_int_equal(world_state(world, "job"), TASK_RUNNING);
	world_pass(world, 61 * 1000);
	world_run(world, NULL);
	assert_int_equal(world_state(world, "job"), TASK_READY);
	beat = say_beat("w1", token);
	assert_int_equal(world_run(world, &beat)->refusal, REFUSED_WORKER_INACTIVE);
}

static void a_lost_reply_is_told_the_current_token(void **state)
{
	struct world *world = *state;
	struct command beat = say_beat("w1", 0);

	uint64_t first = world_run(world, &beat)->worker.token;
	beat = say_beat("w1", first);
	uint64_t second = world_run(world, &beat)->worker.token;
	assert_int_equal(world_run(world, &beat)->refusal, REFUSED_TOKEN_MISMATCH);
	assert_int_equal(world->result.worker.token, second);
}

static void a_child_waits_for_its_parents_and_fails_closed(void **state)
{
	struct world *world = *state;
	struct command child = say_create("child", "q");
	struct span parents[] = {SPAN("a"), SPAN("b")};

	world_create(world, "a", "q");
	world_create(world, "b", "q");
	child.create.parents = (struct name_list){parents, 2};
	world_run(world, &child);
	assert_int_equal(world_state(world, "child"), TASK_WAITING);
	uint64_t fence = world_claim(world, "w1");
	world_report(world, COMMAND_COMPLETE, "a", "w1", fence);
	assert_int_equal(world_state(world, "child"), TASK_WAITING);
	struct command cancel = say_about(COMMAND_CANCEL, "b");
	world_run(world, &cancel);
	assert_int_equal(world_state(world, "child"), TASK_BLOCKED);
	struct command retry = say_about(COMMAND_RETRY, "b");
	world_run(world, &retry);
	assert_int_equal(world_state(world, "child"), TASK_WAITING);
	fence = world_claim(world, "w1");
	world_report(world, COMMAND_COMPLETE, "b", "w1", fence);
	assert_int_equal(world_state(world, "child"), TASK_READY);
}

static void a_parent_that_was_opened_again_knows_all_its_children(void **state)
{
	struct world *world = *state;
	struct span parent = SPAN("a");
	struct command cancel = say_about(COMMAND_CANCEL, "a"), retry = say_about(COMMAND_RETRY, "a");
	struct command drops = say_about(COMMAND_UPDATE, "b");

	world_create(world, "a", "q");
	for (const char *const *id = (const char *const[]){"b", "c", NULL}; *id; id++) {
		struct command child = say_create(*id, "q");
		child.create.parents = (struct name_list){&parent, 1};
		world_run(world, &child);
	}
	world_run(world, &cancel);
	world_run(world, &retry);
	drops.update.patch.set_parents = true; /* none */
	world_run(world, &drops);
	assert_int_equal(world_state(world, "b"), TASK_READY);
	world_report(world, COMMAND_COMPLETE, "a", "w1", world_claim(world, "w1"));
	assert_int_equal(world_state(world, "a"), TASK_DONE);
	assert_int_equal(world_state(world, "c"), TASK_READY);
}

static void a_parent_done_twice_counts_once(void **state)
{
	struct world *world = *state;
	struct command child = say_create("child", "q");
	struct span parents[] = {SPAN("a"), SPAN("b")};
	struct command retry = say_about(COMMAND_RETRY, "a");

	world_create(world, "a", "q");
	world_create(world, "b", "other");
	child.create.parents = (struct name_list){parents, 2};
	world_run(world, &child);
	struct command claim = say_claim("w1");
	struct span queue = SPAN("q");
	claim.claim.queues = (struct name_list){&queue, 1};
	for (int i = 0; i < 2; i++) {
		uint64_t fence = world_run(world, &claim)->claims[0].task.fence;
		assert_int_equal(world_report(world, COMMAND_COMPLETE, "a", "w1", fence), REFUSED_NOTHING);
		world_run(world, &retry);
	}
	assert_int_equal(world_state(world, "child"), TASK_WAITING);
}

static void a_unique_key_is_held_until_its_task_is_final(void **state)
{
	struct world *world = *state;
	struct command keyed = say_create("", "q");
	struct command retry = say_about(COMMAND_RETRY, "t-1");

	keyed.create.unique_key = SPAN("nightly");
	world_run(world, &keyed);
	assert_true(world_run(world, &keyed)->deduplicated);
	assert_int_equal(world->result.task.seq, 1);
	uint64_t fence = world_claim(world, "w1");
	world_report(world, COMMAND_COMPLETE, "t-1", "w1", fence);
	assert_false(world_run(world, &keyed)->deduplicated);
	assert_int_equal(world_run(world, &retry)->refusal, REFUSED_TASK_EXISTS);
}

static void a_repeated_request_has_one_effect(void **state)
{
	struct world *world = *state;
	struct command create = say_create("", "q");

	create.create.idempotency_key = SPAN("k1");
	world_run(world, &create);
	assert_true(world_run(world, &create)->repeated);
	assert_int_equal(world->result.task.seq, 1);
	create.create.fingerprint[0] = 1;
	assert_int_equal(world_run(world, &create)->refusal, REFUSED_IDEMPOTENCY_CONFLICT);
	world_pass(world, INT64_C(24) * 3600 * 1000);
	assert_int_equal(world_run(world, &create)->refusal, REFUSED_NOTHING);
	assert_false(world->result.repeated);
}

static void the_same_request_id_gets_the_same_claim(void **state)
{
	struct world *world = *state;
	struct command claim = say_claim("w1");

	world_create(world, "a", "q");
	world_create(world, "b", "q");
	claim.claim.request = 42;
	uint64_t fence = world_run(world, &claim)->claims[0].task.fence;
	struct result *again = world_run(world, &claim);
	assert_int_equal(again->claim_count, 1);
	assert_int_equal(again->claims[0].task.fence, fence);
	assert_true(span_equal(again->claims[0].id, SPAN("a")));
}

static void the_memory_is_as_before_until_a_turn_is_settled(void **state)
{
	struct world *world = *state;
	struct command create = say_create("a", "q");

	memory_settle_after(world->backend, 2);
	assert_int_equal(store_send(world->store, world->now, &create, 1, &world->result), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(store_settle(world->store, &world->result, 1), -EAGAIN);
		assert_int_equal(store_count(world->store, TASK_READY), 0);
		assert_int_equal(store_last_event(world->store), 1); /* the start */
	}
	assert_int_equal(store_settle(world->store, &world->result, 1), 0);
	assert_int_equal(world->result.refusal, REFUSED_NOTHING);
	assert_int_equal(store_count(world->store, TASK_READY), 1);
	assert_int_equal(world_state(world, "a"), TASK_READY);
}

static void a_turn_that_does_not_settle_leaves_nothing(void **state)
{
	struct world *world = *state;
	struct command create = say_create("a", "q");

	memory_settle_after(world->backend, 1);
	memory_set_full(world->backend, true);
	assert_int_equal(store_send(world->store, world->now, &create, 1, &world->result), 0);
	assert_int_equal(store_settle(world->store, &world->result, 1), -EAGAIN);
	assert_int_equal(store_settle(world->store, &world->result, 1), 0);
	assert_int_equal(world->result.refusal, REFUSED_UNAVAILABLE);
	assert_true(store_is_degraded(world->store));
	assert_int_equal(store_count(world->store, TASK_READY), 0);
	world_crash(world);
	assert_int_equal(world_state(world, "a"), TASK_NOWHERE);
}

static void the_same_request_id_does_not_get_what_was_confirmed(void **state)
{
	struct world *world = *state;
	struct command claim = say_claim("w");

	world_create(world, "a", "q");
	world_create(world, "b", "q");
	claim.claim.request = 99;
	world_run(world, &claim);
	uint64_t fence = world->result.claims[0].task.fence;
	assert_true(span_equal(world->result.claims[0].id, SPAN("a")));
	assert_int_equal(world_report(world, COMMAND_PROGRESS, "a", "w", fence), REFUSED_NOTHING);
	world_run(world, &claim);
	assert_false(world->result.repeated);
	assert_int_equal(world->result.claim_count, 1);
	assert_true(span_equal(world->result.claims[0].id, SPAN("b")));
}

static void the_same_request_id_gets_all_its_claims_whatever_it_asks_for_by_now(void **state)
{
	struct world *world = *state;
	struct command claim = say_claim("w");
	char id[8] = "job-a";

	for (; id[4] < 'f'; id[4]++)
		world_create(world, id, "q");
	claim.claim.request = 7;
	claim.claim.max = 3;
	assert_int_equal(world_run(world, &claim)->claim_count, 3);
	claim.claim.max = 1; /* it has less room than when its reply was lost */
	assert_int_equal(world_run(world, &claim)->claim_count, 3);
	claim.claim.max = 5;
	assert_int_equal(world_run(world, &claim)->claim_count, 3);
	claim.claim.request = 8;
	assert_int_equal(world_run(world, &claim)->claim_count, 2);
}

static void resuming_ones_own_claim_makes_the_old_fence_dead(void **state)
{
	struct world *world = *state;
	struct command claim = say_claim("w1");

	world_create(world, "a", "q");
	uint64_t old = world_claim(world, "w1");
	claim.claim.resumes = true;
	uint64_t fresh = world_run(world, &claim)->claims[0].task.fence;
	assert_int_equal(fresh, old + 1);
	assert_int_equal(world_report(world, COMMAND_COMPLETE, "a", "w1", old), REFUSED_STALE_CLAIM);
	assert_int_equal(world_report(world, COMMAND_COMPLETE, "a", "w1", fresh), REFUSED_NOTHING);
}

static void resuming_hands_out_no_more_bytes_than_a_fresh_claim(void **state)
{
	enum { TASKS = 8, BODY_BYTES = 1 << 20, ENOUGH_BYTES = 4 << 20 };
	struct world *world = *state;
	struct command create = say_create("", "q"), claim = say_claim("w1");
	char *body = malloc(BODY_BYTES);

	assert_non_null(body);
	memset(body, '1', BODY_BYTES);
	create.create.body = (struct span){body, BODY_BYTES};
	for (int i = 0; i < TASKS; i++) {
		world_run(world, &create);
		world_claim(world, "w1");
	}
	claim.claim.resumes = true;
	claim.claim.max = TASKS;
	assert_int_equal(world_run(world, &claim)->claim_count, ENOUGH_BYTES / BODY_BYTES);
	free(body);
}

static void a_paused_queue_is_skipped_and_a_draining_one_takes_nothing(void **state)
{
	struct world *world = *state;
	struct command set = {.kind = COMMAND_QUEUE_SET, .queue_set = {SPAN("q"), QUEUE_PAUSED}};

	world_create(world, "a", "q");
	world_run(world, &set);
	assert_int_equal(world_claim(world, "w1"), 0);
	set.queue_set.state = QUEUE_DRAINING;
	world_run(world, &set);
	assert_int_equal(world_create(world, "b", "q"), REFUSED_QUEUE_DRAINING);
	assert_int_not_equal(world_claim(world, "w1"), 0);
}

static void nothing_is_lost_by_a_crash(void **state)
{
	struct world *world = *state;
	struct span job = SPAN("job");
	struct command beat = say_beat("w1", 0);

	world_create(world, "job", "q");
	world_create(world, "", "q");
	uint64_t token = world_run(world, &beat)->worker.token;
	uint64_t fence = world_claim(world, "w1");
	beat = say_beat("w1", token);
	beat.beat.bound = (struct name_list){&job, 1};
	world_run(world, &beat);
	world_crash(world);
	world_run(world, NULL);
	assert_int_equal(world_state(world, "job"), TASK_RUNNING);
	assert_int_equal(world_state(world, "t-2"), TASK_READY);
	assert_int_equal(world_report(world, COMMAND_COMPLETE, "job", "w1", fence), REFUSED_NOTHING);
}

static void a_restart_gives_everyone_the_grace_each_time(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	world_claim(world, "w1");
	for (int restart = 0; restart < 3; restart++) {
		world_pass(world, 20 * 60 * 1000);
		world_crash(world);
		world_pass(world, 59 * 1000);
		world_run(world, NULL);
		assert_int_equal(world_state(world, "job"), TASK_CLAIMED);
	}
	world_pass(world, 2 * 1000);
	world_run(world, NULL);
	assert_int_equal(world_state(world, "job"), TASK_READY);
}

static void a_reboot_grants_every_lease_again_once(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	world_claim(world, "w1");
	world->now.lease_ms = 1000; /* the clock began again */
	world->options.boot_lo = 2;
	world_crash(world);
	world_pass(world, 15 * 60 * 1000 - 1);
	world_run(world, NULL);
	assert_int_equal(world_state(world, "job"), TASK_CLAIMED);
	world_pass(world, 200);
	world_run(world, NULL);
	assert_int_equal(world_state(world, "job"), TASK_READY);
}

static void callers_may_choose_ids_that_look_generated(void **state)
{
	struct world *world = *state;

	assert_int_equal(world_create(world, "t-3", "q"), REFUSED_NOTHING);
	assert_int_equal(world_create(world, "", "q"), REFUSED_NOTHING);
	assert_true(span_equal(world->result.id, SPAN("t-2")));
	assert_int_equal(world_create(world, "", "q"), REFUSED_NOTHING);
	assert_true(span_equal(world->result.id, SPAN("t-4")));
	assert_int_equal(world_create(world, "t-2", "q"), REFUSED_TASK_EXISTS);
	assert_int_equal(world_create(world, "t-3", "q"), REFUSED_TASK_EXISTS);
	world_crash(world);
	assert_int_equal(world_create(world, "t-3", "q"), REFUSED_TASK_EXISTS);
}

static void retention_purges_and_compacts_in_small_steps(void **state)
{
	struct world *world = *state;
	char complaint[256];

	for (int i = 0; i < 20; i++) {
		world_create(world, "", "q");
		uint64_t fence = world_claim(world, "w1");
		char id[16];
		snprintf(id, sizeof id, "t-%s",
			(const char *[]){"1", "2", "3", "4", "5", "6", "7", "8", "9", "a", "b", "c", "d", "e",
				"f", "g", "h", "i", "j", "k"}[i]);
		world_report(world, COMMAND_COMPLETE, id, "w1", fence);
	}
	world_create(world, "stays", "q");
	world_pass(world, INT64_C(31) * 24 * 3600 * 1000);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(store_sweep(world->store, world->now), 0);
		assert_int_equal(store_check_fold(world->store, complaint, sizeof complaint), 0);
	}
	assert_int_equal(world_state(world, "t-1"), TASK_NOWHERE);
	assert_int_equal(world_state(world, "stays"), TASK_READY);
	assert_true(store_event_base(world->store) > 60);
	world_crash(world);
	world_create(world, "", "q");
	assert_int_equal(world->result.task.seq, 22);
}

static void a_renewal_that_was_not_written_counts_after_a_crash(void **state)
{
	struct world *world = *state;
	struct command beat = say_beat("w1", 0);

	beat.beat.lease_ms = 300 * 1000;
	beat = say_beat("w1", world_run(world, &beat)->worker.token);
	world_pass(world, 50 * 1000);
	uint64_t token = world_run(world, &beat)->worker.token; /* less than the grace: in memory alone */
	world_crash(world);
	world_pass(world, 299 * 1000);
	world_run(world, NULL);
	beat = say_beat("w1", token);
	assert_int_equal(
		world_run(world, &beat)->refusal, REFUSED_TOKEN_MISMATCH); /* and not WORKER_INACTIVE */
}

static void no_token_is_given_out_again_after_a_restart(void **state)
{
	struct world *world = *state;
	struct command beat = say_beat("w1", 0);

	uint64_t first = world_run(world, &beat)->worker.token;
	world_crash(world);
	beat = say_beat("w1", first);
	assert_true(world_run(world, &beat)->worker.token > first);
}

static void the_older_task_goes_first_though_it_was_written_later(void **state)
{
	struct world *world = *state;

	world_create(world, "young", "q");
	world->now.wall_ms -= 3600 * 1000; /* someone set the clock */
	world_create(world, "old", "q");
	world_claim(world, "w1");
	assert_int_equal(world_state(world, "old"), TASK_CLAIMED);
	assert_int_equal(world_state(world, "young"), TASK_READY);
}

static void a_lease_that_ended_in_a_turn_that_failed_ends_later(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	world_claim(world, "w1");
	world_pass(world, 16 * 60 * 1000);
	memory_set_full(world->backend, true);
	world_run(world, NULL);
	assert_true(store_is_degraded(world->store));
	memory_set_full(world->backend, false);
	assert_int_equal(store_sweep(world->store, world->now), 0);
	world_pass(world, 60 * 1000); /* past the window after a full disk */
	world_run(world, NULL);
	assert_int_equal(world_state(world, "job"), TASK_READY);
}

static void a_turn_that_failed_leaves_nothing_to_claim(void **state)
{
	struct world *world = *state;
	uint32_t queues[4];

	memory_set_full(world->backend, true);
	assert_int_equal(world_create(world, "job", "a-new-queue"), REFUSED_UNAVAILABLE);
	struct ready_work work = store_ready_work(world->store, queues, 4);
	assert_int_equal(work.tasks, 0);
	assert_int_equal(work.queue_count, 0);
}

static void the_number_of_the_last_task_is_not_given_out_again_after_its_purge(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	world_report(world, COMMAND_COMPLETE, "job", "w1", world_claim(world, "w1"));
	world_pass(world, INT64_C(8) * 24 * 3600 * 1000);
	assert_int_equal(store_sweep(world->store, world->now), 0);
	assert_int_equal(world_state(world, "job"), TASK_NOWHERE);
	world_crash(world);
	world_create(world, "", "q");
	assert_int_equal(world->result.task.seq, 2);
}

static void a_request_answered_by_its_unique_key_is_remembered(void **state)
{
	struct world *world = *state;
	struct command create = say_create("", "q");

	create.create.unique_key = SPAN("k");
	world_run(world, &create);
	create.create.idempotency_key = SPAN("r1");
	assert_true(world_run(world, &create)->deduplicated);
	assert_false(world->result.repeated);
	assert_true(world_run(world, &create)->deduplicated);
	assert_true(world->result.repeated);
}

static void resuming_for_ever_is_counted_without_end(void **state)
{
	struct world *world = *state;
	struct command claim = say_claim("w1");

	if (world->on_disk)
		skip(); /* nothing in it is the disk's */
	world_create(world, "job", "q");
	claim.claim.resumes = true;
	for (int i = 0; i < 66000; i++)
		assert_int_equal(store_turn(world->store, world->now, &claim, 1, &world->result), 0);
	assert_int_equal(world->result.claim_count, 1);
	world_crash(world);
	assert_int_equal(world_state(world, "job"), TASK_CLAIMED);
}

static void a_task_past_its_deadline_is_not_handed_out_again(void **state)
{
	struct world *world = *state;
	struct command create = say_create("job", "q");
	struct result results[2];

	create.create.finish_by_ms = world->now.wall_ms + 60 * 1000;
	world_run(world, &create);
	uint64_t fence = world_claim(world, "w1");
	world_pass(world, 61 * 1000);
	struct command turn[2] = {say_report(COMMAND_RELEASE, "job", "w1", fence), say_claim("w1")};
	assert_int_equal(store_turn(world->store, world->now, turn, 2, results), 0);
	assert_int_equal(results[0].refusal, REFUSED_NOTHING);
	assert_int_equal(results[1].claim_count, 0);
	world_run(world, NULL);
	assert_int_equal(world_state(world, "job"), TASK_FAILED);
}

static int see_worker(void *context, const struct record *record)
{
	char *seen = context;

	if (record->kind == EVENT_TASK_ORPHAN_RESULT)
		snprintf(seen, 16, "%.*s", SPAN_ARGS(record->worker));
	return 0;
}

static void a_late_result_is_recorded_under_the_name_of_who_sent_it(void **state)
{
	struct world *world = *state;
	char seen[16] = "";

	world_create(world, "job", "q");
	uint64_t old = world_claim(world, "w1");
	world_pass(world, 16 * 60 * 1000);
	world_claim(world, "w2");
	struct command late = say_report(COMMAND_COMPLETE, "job", "w1", old);
	late.data = SPAN("\"late\"");
	world_run(world, &late);
	assert_int_equal(store_page_events(world->store, 0, 100, see_worker, seen), 0);
	assert_string_equal(seen, "w1");
}

static int see_nothing(void *context, const struct record *record)
{
	(void)context;
	(void)record;
	return 0;
}

static void a_compacted_cursor_is_refused_and_never_skipped(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	world_pass(world, INT64_C(31) * 24 * 3600 * 1000);
	assert_int_equal(store_sweep(world->store, world->now), 0);
	int64_t base = store_event_base(world->store);
	assert_true(base > 0);
	assert_int_equal(store_page_events(world->store, base - 1, 100, see_nothing, NULL), -ESTALE);
	assert_int_equal(store_page_events(world->store, base, 100, see_nothing, NULL), 0);
}

static void a_draining_queue_takes_no_task_from_another_one(void **state)
{
	struct world *world = *state;
	struct command set = {.kind = COMMAND_QUEUE_SET, .queue_set = {SPAN("full"), QUEUE_DRAINING}};
	struct command move = say_about(COMMAND_UPDATE, "job");

	world_create(world, "job", "q");
	world_run(world, &set);
	move.update.patch.set_queue = true;
	move.update.queue = SPAN("full");
	assert_int_equal(world_run(world, &move)->refusal, REFUSED_QUEUE_DRAINING);
}

static void a_task_blocks_no_more_than_a_turn_can_decide(void **state)
{
	struct world *world = *state;
	struct command child = say_create("", "q");
	struct span parent = SPAN("parent");

	if (world->on_disk)
		skip();
	world_create(world, "parent", "first");
	child.create.parents = (struct name_list){&parent, 1};
	for (int i = 0; i < COMMAND_CHILDREN_MAX; i++)
		assert_int_equal(store_turn(world->store, world->now, &child, 1, &world->result), 0);
	assert_int_equal(world->result.refusal, REFUSED_NOTHING);
	assert_int_equal(world_run(world, &child)->refusal, REFUSED_TOO_LARGE);
	world_crash(world);
	assert_int_equal(world_run(world, &child)->refusal, REFUSED_TOO_LARGE);
	uint64_t fence = world_claim(world, "w1");
	assert_int_equal(world_report(world, COMMAND_COMPLETE, "parent", "w1", fence), REFUSED_NOTHING);
	assert_int_equal(store_count(world->store, TASK_READY), COMMAND_CHILDREN_MAX);
}

static void a_store_opens_on_a_full_disk_for_reading_and_comes_back(void **state)
{
	struct world *world = *state;
	struct command beat = say_beat("w1", 0);

	if (world->on_disk)
		skip();
	world_create(world, "job", "q");
	uint64_t token = world_run(world, &beat)->worker.token;
	memory_set_full(world->backend, true);
	memory_fail_commits_with(world->backend, -ENOSPC);
	world_crash(world);
	assert_true(store_is_degraded(world->store));
	assert_int_equal(world_state(world, "job"), TASK_READY);
	assert_int_equal(world_create(world, "more", "q"), REFUSED_UNAVAILABLE);
	beat = say_beat("w1", token);
	assert_int_equal(world_run(world, &beat)->refusal, REFUSED_UNAVAILABLE);
	memory_fail_commits_with(world->backend, 0);
	memory_set_full(world->backend, false);
	assert_int_equal(store_sweep(world->store, world->now), 0);
	assert_int_equal(world_create(world, "more", "q"), REFUSED_NOTHING);
	assert_true(world_run(world, &beat)->worker.token > token);
}

/* Many in each turn, because each turn is a sync. */
static void deadlines_of_ended_tasks_take_no_room(void **state)
{
	enum { ROUNDS = 60, TASKS = 50 };
	struct world *world = *state;
	struct command creates[TASKS], reports[TASKS], claim = say_claim("w1");
	struct result results[TASKS];
	char ids[TASKS][32];

	claim.claim.max = TASKS;
	for (int i = 0; i < TASKS; i++) {
		creates[i] = say_create("", "q");
		creates[i].create.finish_by_ms = world->now.wall_ms + INT64_C(24) * 3600 * 1000;
	}
	for (int round = 0; round < ROUNDS; round++) {
		assert_int_equal(store_turn(world->store, world->now, creates, TASKS, results), 0);
		assert_int_equal(store_turn(world->store, world->now, &claim, 1, &world->result), 0);
		assert_int_equal(world->result.claim_count, TASKS);
		for (int i = 0; i < TASKS; i++) {
			const struct claimed *claimed = &world->result.claims[i];
			snprintf(ids[i], sizeof ids[i], "%.*s", SPAN_ARGS(claimed->id));
			reports[i] = say_report(COMMAND_COMPLETE, ids[i], "w1", claimed->task.fence);
		}
		assert_int_equal(store_turn(world->store, world->now, reports, TASKS, results), 0);
	}
	assert_true(store_timers(world->store) < 1100);
}

/* What one turn hands out is bounded; whoever comes too late for it has the next, and nobody else notices. */
static void a_turn_puts_off_the_claims_that_are_too_much_for_it(void **state)
{
	enum { FIT = 16, TASKS = FIT + 2, BODY_BYTES = 4 << 20 };
	static char body[BODY_BYTES], workers[TASKS][8];
	struct world *world = *state;
	struct command commands[TASKS + 1], create = say_create("", "q");
	struct result results[TASKS + 1];

	memset(body, 'x', sizeof body);
	create.create.body = (struct span){body, sizeof body};
	for (int i = 0; i < TASKS; i++) {
		assert_int_equal(world_run(world, &create)->refusal, REFUSED_NOTHING);
		snprintf(workers[i], sizeof workers[i], "w%d", i);
		commands[i] = say_claim(workers[i]);
	}
	commands[TASKS - 1].kind = COMMAND_CLAIM; /* by id */
	commands[TASKS - 1].task = SPAN("t-i");
	commands[TASKS] = say_create("small", "q");
	int64_t last = store_last_event(world->store);
	assert_int_equal(store_turn(world->store, world->now, commands, TASKS + 1, results), 0);
	for (int i = 0; i < TASKS; i++) {
		assert_int_equal(results[i].refusal, i < FIT ? REFUSED_NOTHING : REFUSED_UNAVAILABLE);
		assert_int_equal(results[i].claim_count, i < FIT);
		assert_int_equal(results[i].put_off, i >= FIT);
	}
	assert_int_equal(results[TASKS].refusal, REFUSED_NOTHING);
	assert_int_equal(store_last_event(world->store), last + FIT + 1);
	assert_int_equal(store_turn(world->store, world->now, &commands[FIT], 2, results), 0);
	assert_int_equal(results[0].claim_count, 1);
	assert_int_equal(results[1].claim_count, 1);
	world_crash(world);
	world_run(world, NULL);
}

/* Claims by id may have gathered more under one requestId than a claim of many hands out. */
static void a_claim_that_is_repeated_hands_out_no_more_than_fits(void **state)
{
	enum { TASKS = 12, BODY_BYTES = 1 << 20, ENOUGH = 8 };
	static char body[BODY_BYTES];
	struct world *world = *state;
	struct command create = say_create("", "q"), claim = say_claim("w1");
	char id[8];

	memset(body, 'x', sizeof body);
	create.create.body = (struct span){body, sizeof body};
	claim.kind = COMMAND_CLAIM;
	claim.claim.request = 7;
	for (int i = 1; i <= TASKS; i++) {
		world_run(world, &create);
		snprintf(id, sizeof id, "t-%c", i < 10 ? '0' + i : 'a' + i - 10);
		claim.task = span_of(id);
		assert_int_equal(world_run(world, &claim)->claim_count, 1);
	}
	claim.kind = COMMAND_CLAIM_NEXT;
	claim.claim.max = COMMAND_CLAIMS_MAX;
	assert_int_equal(world_run(world, &claim)->claim_count, ENOUGH);
	assert_true(world->result.repeated);
}

static enum refusal give_back(struct world *world, const char *id, const struct task *task)
{
	struct command command = say_report(COMMAND_RETURN, id, "w1", task->fence);

	command.version = task->version;
	return world_run(world, &command)->refusal;
}

static void what_was_not_written_is_given_back(void **state)
{
	struct world *world = *state;
	struct command claim = say_claim("w1");

	world_create(world, "a", "q");
	struct task task = world_run(world, &claim)->claims[0].task;
	assert_int_equal(give_back(world, "a", &task), REFUSED_NOTHING);
	assert_int_equal(world_state(world, "a"), TASK_READY);
}

/* The connection of the first request breaks; the claimant asked again by another, and has it by that reply. */
static void what_another_reply_hands_out_too_is_not_given_back(void **state)
{
	struct world *world = *state;
	struct command claims[2] = {say_claim("w1"), say_claim("w1")};
	struct result results[2];

	for (int together = 0; together < 2; together++) { /* in one turn, or in two */
		const char *id = together ? "a" : "b";
		world_create(world, id, "q");
		claims[0].claim.request = claims[1].claim.request = 7 + (uint64_t)together;
		if (!together)
			world_run(world, &claims[0]);
		assert_int_equal(store_turn(world->store, world->now, claims, together ? 2 : 1, results), 0);
		assert_true(results[together].repeated);
		struct task task = results[together].claims[0].task;
		assert_int_equal(give_back(world, id, &task), REFUSED_STALE_CLAIM);
		assert_int_equal(
			world_report(world, COMMAND_COMPLETE, id, "w1", task.fence), REFUSED_NOTHING);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(resuming_for_ever_is_counted_without_end),
		ON_BOTH(a_task_past_its_deadline_is_not_handed_out_again),
		ON_BOTH(a_late_result_is_recorded_under_the_name_of_who_sent_it),
		ON_BOTH(a_compacted_cursor_is_refused_and_never_skipped),
		ON_BOTH(a_draining_queue_takes_no_task_from_another_one),
		ON_BOTH(a_task_blocks_no_more_than_a_turn_can_decide),
		ON_BOTH(a_store_opens_on_a_full_disk_for_reading_and_comes_back),
		ON_BOTH(deadlines_of_ended_tasks_take_no_room),
		ON_BOTH(a_created_task_is_ready_and_has_a_short_id),
		ON_BOTH(a_task_lives_from_creation_to_done),
		ON_BOTH(a_task_says_when_it_changed_last),
		ON_BOTH(second_claim_of_same_task_is_refused),
		ON_BOTH(racers_in_one_turn_have_one_winner),
		ON_BOTH(a_task_made_claimed_and_finished_in_one_turn_is_done),
		ON_BOTH(a_task_that_a_command_merely_looked_at_can_be_claimed_in_the_same_turn),
		ON_BOTH(a_worker_gets_a_full_lease_to_be_heard_after_a_restart),
		ON_BOTH(a_quarantined_slot_lets_nobody_in_but_one_trial),
		ON_BOTH(a_crash_that_is_told_again_counts_once),
		ON_BOTH(what_runs_in_a_slot_without_a_registration_passes_the_same_gate),
		ON_BOTH(slots_behind_a_worker_are_for_its_principal),
		ON_BOTH(a_worker_of_a_quarantined_slot_claims_for_no_other_slot_either),
		ON_BOTH(a_quarantined_slot_behind_a_worker_stops_what_is_claimed_for_it_alone),
		ON_BOTH(a_live_worker_does_not_move_into_a_quarantined_slot),
		ON_BOTH(a_worker_whose_slot_is_quarantined_goes_on_beating_and_does_not_come_again),
		ON_BOTH(a_slot_goes_to_a_newcomer_that_shows_its_predecessor_dead),
		ON_BOTH(a_lie_about_a_predecessor_changes_nothing),
		ON_BOTH(slots_are_told_by_name_with_who_fills_them_and_what_befell_them),
		ON_BOTH(a_stale_fence_changes_nothing_and_its_result_is_kept),
		ON_BOTH(a_repeated_completion_is_answered_as_the_first),
		ON_BOTH(a_command_about_another_version_changes_nothing),
		ON_BOTH(a_report_about_another_version_is_refused_but_a_repeated_one_is_not),
		ON_BOTH(an_attempt_tells_of_its_progress_so_often_in_a_minute),
		ON_BOTH(what_an_attempt_patches_counts_as_progress_and_its_end_is_free),
		ON_BOTH(a_long_note_counts_as_more_progress),
		ON_BOTH(evidence_and_session_are_kept_and_the_session_is_handed_on),
		ON_BOTH(tasks_are_claimed_by_priority_then_age),
		ON_BOTH(a_claimant_gets_only_what_it_can_run),
		ON_BOTH(an_expired_claim_comes_back_at_once_the_first_time),
		ON_BOTH(a_worker_that_beats_keeps_its_work_and_one_that_stops_loses_it),
		ON_BOTH(a_lost_reply_is_told_the_current_token),
		ON_BOTH(a_child_waits_for_its_parents_and_fails_closed),
		ON_BOTH(a_parent_that_was_opened_again_knows_all_its_children),
		ON_BOTH(a_parent_done_twice_counts_once),
		ON_BOTH(a_unique_key_is_held_until_its_task_is_final),
		ON_BOTH(a_repeated_request_has_one_effect),
		ON_BOTH(the_same_request_id_gets_the_same_claim),
		{"the_memory_is_as_before_until_a_turn_is_settled (memory)",
			the_memory_is_as_before_until_a_turn_is_settled, on_memory, world_over, NULL},
		{"a_turn_that_does_not_settle_leaves_nothing (memory)",
			a_turn_that_does_not_settle_leaves_nothing, on_memory, world_over, NULL},
		ON_BOTH(the_same_request_id_does_not_get_what_was_confirmed),
		ON_BOTH(the_same_request_id_gets_all_its_claims_whatever_it_asks_for_by_now),
		ON_BOTH(what_was_not_written_is_given_back),
		ON_BOTH(what_another_reply_hands_out_too_is_not_given_back),
		ON_BOTH(resuming_ones_own_claim_makes_the_old_fence_dead),
		ON_BOTH(resuming_hands_out_no_more_bytes_than_a_fresh_claim),
		ON_BOTH(a_paused_queue_is_skipped_and_a_draining_one_takes_nothing),
		ON_BOTH(nothing_is_lost_by_a_crash),
		ON_BOTH(a_restart_gives_everyone_the_grace_each_time),
		ON_BOTH(a_reboot_grants_every_lease_again_once),
		ON_BOTH(callers_may_choose_ids_that_look_generated),
		ON_BOTH(a_renewal_that_was_not_written_counts_after_a_crash),
		ON_BOTH(no_token_is_given_out_again_after_a_restart),
		ON_BOTH(the_older_task_goes_first_though_it_was_written_later),
		cmocka_unit_test_setup_teardown(
			a_lease_that_ended_in_a_turn_that_failed_ends_later, on_memory, world_over),
		cmocka_unit_test_setup_teardown(
			a_turn_that_failed_leaves_nothing_to_claim, on_memory, world_over),
		ON_BOTH(the_number_of_the_last_task_is_not_given_out_again_after_its_purge),
		ON_BOTH(a_request_answered_by_its_unique_key_is_remembered),
		ON_BOTH(retention_purges_and_compacts_in_small_steps),
		ON_BOTH(a_turn_puts_off_the_claims_that_are_too_much_for_it),
		ON_BOTH(a_claim_that_is_repeated_hands_out_no_more_than_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
