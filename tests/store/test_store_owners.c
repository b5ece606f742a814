/*
 * A worker id belongs to the principal that used it first, and so does every claim made under it.
 */
#include "store_fixture.h"

enum { HONEST = 20, HOSTILE = 21 };

static struct command by(uint32_t principal, struct command command)
{
	command.principal = principal;
	return command;
}

static enum refusal run(struct world *world, uint32_t principal, struct command command)
{
	struct command said = by(principal, command);

	return world_run(world, &said)->refusal;
}

static struct command say_register(const char *worker)
{
	struct command command = say_beat(worker, 0);

	command.kind = COMMAND_REGISTER;
	command.beat.describes = command.beat.any_executor = true;
	return command;
}

static struct command say_leave(const char *worker)
{
	return (struct command){.kind = COMMAND_LEAVE, .worker = span_of(worker), .leave = WORKER_SHUTDOWN};
}

static struct command say_claim_of(const char *task, const char *worker)
{
	struct command command = say_claim(worker);

	command.kind = COMMAND_CLAIM;
	command.task = span_of(task);
	return command;
}

/* The fence that the honest one got as "w1". */
static uint64_t claimed(struct world *world, const char *task)
{
	world_create(world, task, "q");
	assert_int_equal(run(world, HONEST, say_claim("w1")), REFUSED_NOTHING);
	assert_int_equal(world->result.claim_count, 1);
	return world->result.claims[0].task.fence;
}

static struct worker worker(struct world *world, const char *id)
{
	struct worker found = {0};

	store_worker(world->store, span_of(id), &found);
	return found;
}

static struct command say_log(const char *task, uint64_t fence, int64_t version)
{
	struct command command = say_about(COMMAND_LOG, task);

	command.fence = fence;
	command.data = SPAN("x");
	command.if_version = version;
	return command;
}

/* ---- workers ---- */

static void a_registered_id_is_its_owners_alone_and_after_a_crash_too(void **state)
{
	struct world *world = *state;

	run(world, HONEST, say_register("w1"));
	for (int lives = 0; lives < 2; lives++) {
		struct worker before = worker(world, "w1");
		int64_t last = store_last_event(world->store);
		world_create(world, lives == 0 ? "a" : "b", "q");
		assert_int_equal(run(world, HOSTILE, say_register("w1")), REFUSED_FORBIDDEN);
		assert_int_equal(run(world, HOSTILE, say_beat("w1", 0)), REFUSED_FORBIDDEN);
		assert_int_equal(world->result.worker.token, 0);
		assert_int_equal(run(world, HOSTILE, say_beat("w1", before.token)), REFUSED_FORBIDDEN);
		assert_int_equal(run(world, HOSTILE, say_claim("w1")), REFUSED_FORBIDDEN);
		assert_int_equal(run(world, HOSTILE, say_claim_of("a", "w1")), REFUSED_FORBIDDEN);
		assert_int_equal(run(world, HOSTILE, say_leave("w1")), REFUSED_NOT_FOUND);
		assert_int_equal(store_last_event(world->store), last + 1); /* the task */
		struct worker after = worker(world, "w1");
		assert_int_equal(after.token, before.token);
		assert_int_equal(after.lease.deadline_ms, before.lease.deadline_ms);
		assert_int_equal(after.principal, HONEST);
		world_crash(world);
	}
	assert_int_equal(run(world, HONEST, say_beat("w1", worker(world, "w1").token)), REFUSED_NOTHING);
	assert_int_equal(run(world, HONEST, say_leave("w1")), REFUSED_NOTHING);
}

static void an_operator_sends_anybodys_worker_away(void **state)
{
	struct world *world = *state;
	struct command leave = say_leave("w1");

	run(world, HONEST, say_register("w1"));
	leave.oversees = true;
	assert_int_equal(run(world, HOSTILE, leave), REFUSED_NOTHING);
	assert_int_equal(worker(world, "w1").state, WORKER_INACTIVE);
}

static void a_dead_id_keeps_its_owner(void **state)
{
	struct world *world = *state;

	run(world, HONEST, say_register("w1"));
	run(world, HONEST, say_leave("w1"));
	world_crash(world);
	assert_int_equal(run(world, HONEST, say_register("w1")), REFUSED_WORKER_INACTIVE);
	struct command put = {.kind = COMMAND_TOKEN_PUT,
		.token = {.id = SPAN("x1"), .kind = TOKEN_WORKER, .name = SPAN("n")}};
	world_run(world, &put);
	assert_int_equal(store_find_token(world->store, SPAN("x1"))->principal, PRINCIPAL_FIRST + 1);
	run(world, PRINCIPAL_FIRST + 1, say_register("w2"));
	run(world, PRINCIPAL_FIRST + 1, say_leave("w2"));
	assert_int_equal(run(world, HOSTILE, say_register("w2")), REFUSED_FORBIDDEN);
}

static void a_name_that_ended_is_free_once_its_owners_token_has_ended_too(void **state)
{
	struct world *world = *state;
	struct command put = {.kind = COMMAND_TOKEN_PUT,
		.token = {.id = SPAN("x1"), .kind = TOKEN_WORKER, .name = SPAN("n")}};
	struct command revoke = {.kind = COMMAND_TOKEN_REVOKE, .token = {.id = SPAN("x1")}};
	struct command named = say_register("agent");
	uint32_t owner = PRINCIPAL_FIRST + 1;

	named.beat.named = true;
	world_run(world, &put);
	assert_int_equal(run(world, owner, named), REFUSED_NOTHING);
	assert_int_equal(run(world, HONEST, named), REFUSED_FORBIDDEN);
	run(world, owner, say_leave("agent"));
	assert_int_equal(run(world, HONEST, named), REFUSED_FORBIDDEN);
	world_run(world, &revoke);
	assert_int_equal(run(world, HONEST, named), REFUSED_NOTHING);
	assert_int_equal(worker(world, "agent").principal, HONEST);
	assert_int_equal(run(world, owner, say_beat("agent", 0)), REFUSED_FORBIDDEN);
}

static void a_number_is_given_to_one_principal_and_never_again(void **state)
{
	struct world *world = *state;
	struct command put = {.kind = COMMAND_TOKEN_PUT,
		.token = {.id = SPAN("x1"), .kind = TOKEN_WORKER, .name = SPAN("n"), .lives_ms = 1000}};

	world_run(world, &put);
	world_pass(world, 1000 + world->options.retention.ended_token_ms);
	assert_int_equal(store_sweep(world->store, world->now), 0);
	assert_null(store_find_token(world->store, SPAN("x1")));
	world_crash(world);
	world_run(world, &put);
	assert_int_equal(store_find_token(world->store, SPAN("x1"))->principal, PRINCIPAL_FIRST + 2);
}

/* ---- claimants that never registered ---- */

static void a_plain_claimants_id_is_its_own_while_it_holds_something(void **state)
{
	struct world *world = *state;
	uint64_t fence = claimed(world, "a");

	world_create(world, "b", "q");
	for (int lives = 0; lives < 2; lives++) {
		assert_int_equal(run(world, HOSTILE, say_claim("w1")), REFUSED_FORBIDDEN);
		assert_int_equal(run(world, HOSTILE, say_register("w1")), REFUSED_FORBIDDEN);
		assert_int_equal(world_state(world, "b"), TASK_READY);
		world_crash(world);
	}
	assert_int_equal(run(world, HONEST, say_report(COMMAND_COMPLETE, "a", "w1", fence)), REFUSED_NOTHING);
	assert_int_equal(run(world, HOSTILE, say_claim("w1")), REFUSED_NOTHING);
	assert_int_equal(world->result.claim_count, 1);
	assert_int_equal(run(world, HONEST, say_claim("w1")), REFUSED_FORBIDDEN);
}

static void whoever_got_nothing_holds_no_id_not_even_for_a_turn(void **state)
{
	struct world *world = *state;
	const struct command commands[] = {
		by(HOSTILE, say_claim("w1")),
		say_create("a", "q"),
		by(HONEST, say_claim("w1")),
		by(HOSTILE, say_claim("w1")),
	};
	struct result results[4];

	assert_int_equal(store_turn(world->store, world->now, commands, 4, results), 0);
	assert_int_equal(results[0].claim_count, 0);
	assert_int_equal(results[2].claim_count, 1);
	assert_int_equal(results[3].refusal, REFUSED_FORBIDDEN);
}

/* ---- claims ---- */

static void a_stranger_reports_nothing_and_learns_nothing(void **state)
{
	static const enum command_kind kinds[] = {COMMAND_PROGRESS, COMMAND_COMPLETE, COMMAND_FAIL,
		COMMAND_REVIEW, COMMAND_BLOCK, COMMAND_ASK, COMMAND_WAIT, COMMAND_RELEASE};
	struct world *world = *state;
	uint64_t fence = claimed(world, "a");
	int64_t last = store_last_event(world->store);

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		for (uint64_t wrong = 0; wrong < 2; wrong++) {
			struct command report = say_report(kinds[i], "a", "w1", fence - wrong);
			report.data = SPAN("{}");
			assert_int_equal(run(world, HOSTILE, report), REFUSED_NOT_FOUND);
			assert_int_equal(world->result.task.seq, 0);
			report.worker = SPAN("mine");
			assert_int_equal(run(world, HOSTILE, report), REFUSED_NOT_FOUND);
			report.oversees = true; /* an operator sees it, and may not do it either */
			assert_int_equal(run(world, HOSTILE, report), REFUSED_STALE_CLAIM);
		}
	}
	assert_int_equal(store_last_event(world->store), last);
	assert_int_equal(world_state(world, "a"), TASK_CLAIMED);
}

static void a_stranger_appends_nothing_and_learns_nothing(void **state)
{
	struct world *world = *state;
	uint64_t fence = claimed(world, "a");

	for (int64_t version = -1; version <= 1; version++) {
		assert_int_equal(run(world, HOSTILE, say_log("a", fence, version)), REFUSED_NOT_FOUND);
		assert_int_equal(run(world, HOSTILE, say_log("a", fence - 1, version)), REFUSED_NOT_FOUND);
		assert_int_equal(world->result.task.seq, 0);
	}
	assert_int_equal(run(world, HONEST, say_log("a", fence, -1)), REFUSED_VERSION_MISMATCH);
	assert_int_equal(run(world, HONEST, say_log("a", fence, 0)), REFUSED_NOTHING);
}

static void a_stranger_cannot_repeat_an_outcome_to_see_the_task(void **state)
{
	struct world *world = *state;
	uint64_t fence = claimed(world, "a");
	struct command report = say_report(COMMAND_COMPLETE, "a", "w1", fence);

	run(world, HONEST, report);
	assert_int_equal(run(world, HOSTILE, report), REFUSED_NOT_FOUND);
	assert_int_equal(run(world, HONEST, report), REFUSED_NOTHING);
	assert_true(world->result.repeated);
	world_crash(world);
	assert_int_equal(run(world, HOSTILE, report), REFUSED_NOT_FOUND);
	assert_int_equal(run(world, HONEST, report), REFUSED_NOTHING);
}

static void another_worker_of_the_same_token_is_not_told_a_success_that_is_not_its_own(void **state)
{
	struct world *world = *state;
	struct command mine = say_report(COMMAND_COMPLETE, "a", "w1", claimed(world, "a")), others = mine;

	others.worker = SPAN("w3");
	run(world, HONEST, mine);
	for (int i = 0; i < 2; i++) {
		others.seen = mine.seen = i == 0 ? SEEN_NOT_SAID : SEEN_EXIT;
		assert_int_equal(run(world, HONEST, others), REFUSED_STALE_CLAIM);
		assert_int_equal(run(world, HONEST, mine), REFUSED_NOTHING);
		assert_true(world->result.repeated);
	}
}

/* w1 loses the task, and somebody else has it afterwards. */
static uint64_t lost_to_another(struct world *world)
{
	uint64_t fence = claimed(world, "a");

	world_pass(world, INT64_C(3600) * 1000);
	world_run(world, NULL);
	assert_int_equal(world_state(world, "a"), TASK_READY);
	assert_int_equal(run(world, HOSTILE, say_claim("w2")), REFUSED_NOTHING);
	assert_int_equal(world->result.claim_count, 1);
	return fence;
}

static void a_late_result_is_kept_for_whoever_had_that_fence(void **state)
{
	struct world *world = *state;
	struct command late = say_report(COMMAND_COMPLETE, "a", "w1", lost_to_another(world));
	int64_t last = store_last_event(world->store);

	late.data = SPAN("{}");
	assert_int_equal(run(world, HONEST, late), REFUSED_STALE_CLAIM);
	assert_int_equal(store_last_event(world->store), last + 1);
}

static void whoever_had_the_fence_is_told_that_its_claim_is_over(void **state)
{
	struct world *world = *state;
	uint64_t fence = lost_to_another(world);
	int64_t last = store_last_event(world->store);

	assert_int_equal(
		run(world, HONEST, say_report(COMMAND_PROGRESS, "a", "w1", fence)), REFUSED_STALE_CLAIM);
	assert_int_equal(run(world, HONEST, say_log("a", fence, 0)), REFUSED_STALE_CLAIM);
	assert_int_equal(
		run(world, HOSTILE + 1, say_report(COMMAND_PROGRESS, "a", "w1", fence)), REFUSED_NOT_FOUND);
	assert_int_equal(run(world, HOSTILE + 1, say_log("a", fence, 0)), REFUSED_NOT_FOUND);
	assert_int_equal(store_last_event(world->store), last);
}

static void a_stranger_leaves_no_late_result(void **state)
{
	struct world *world = *state;
	struct command late = say_report(COMMAND_COMPLETE, "a", "w1", lost_to_another(world));
	int64_t last = store_last_event(world->store);

	late.data = SPAN("{}");
	assert_int_equal(run(world, HOSTILE, late), REFUSED_STALE_CLAIM); /* it holds the task, and sees it */
	assert_int_equal(run(world, HOSTILE + 1, late), REFUSED_NOT_FOUND);
	assert_int_equal(store_last_event(world->store), last);
}

static void the_owner_of_a_former_claim_is_found_behind_later_events(void **state)
{
	struct world *world = *state;
	uint64_t first = lost_to_another(world), second = world->result.claims[0].task.fence;
	struct command late = say_report(COMMAND_COMPLETE, "a", "w1", first);

	run(world, HOSTILE, say_report(COMMAND_RELEASE, "a", "w2", second));
	run(world, HOSTILE, say_claim("w2"));
	late.data = SPAN("{}");
	assert_int_equal(run(world, HONEST, late), REFUSED_STALE_CLAIM);
	int64_t last = store_last_event(world->store);
	late.fence = second; /* not the honest one's */
	assert_int_equal(run(world, HONEST, late), REFUSED_NOT_FOUND);
	assert_int_equal(store_last_event(world->store), last);
}

/* ---- requests ---- */

static void an_idempotency_key_is_its_principals_whatever_that_is_called(void **state)
{
	struct world *world = *state;
	struct command create = say_create(NULL, "q");

	create.create.idempotency_key = SPAN("k");
	assert_int_equal(run(world, HONEST, create), REFUSED_NOTHING);
	int64_t first = world->result.task.seq;
	assert_int_equal(run(world, HOSTILE, create), REFUSED_NOTHING);
	assert_false(world->result.repeated);
	assert_int_not_equal(world->result.task.seq, first);
	assert_int_equal(run(world, HONEST, create), REFUSED_NOTHING);
	assert_true(world->result.repeated);
	assert_int_equal(world->result.task.seq, first);
}

/* ---- slots ---- */

static void a_stranger_neither_crashes_nor_takes_over_a_slot(void **state)
{
	struct world *world = *state;
	struct command filled = say_register("w1"), rival = say_register("w2");
	struct command crash = {.kind = COMMAND_SLOT_CRASH, .slot = SPAN("slot-1")};

	filled.beat.slot = rival.beat.slot = SPAN("slot-1");
	filled.beat.process = rival.beat.process = (struct command_process){SPAN("host-a"), 1, 2, 10, 100};
	run(world, HONEST, filled);
	assert_int_equal(run(world, HOSTILE, crash), REFUSED_FORBIDDEN);
	crash.slot = SPAN("w1/shell-1");
	assert_int_equal(run(world, HOSTILE, crash), REFUSED_FORBIDDEN);
	assert_int_equal(run(world, HONEST, crash), REFUSED_NOTHING);
	rival.beat.replaces = (struct command_replaces){SPAN("w1"), 10, 100, false};
	assert_int_equal(run(world, HOSTILE, rival), REFUSED_SLOT_TAKEN);
	assert_int_equal(worker(world, "w1").state, WORKER_ACTIVE);
	assert_int_equal(run(world, HONEST, rival), REFUSED_NOTHING);
}

/* The number of a worker's token that was just made. */
static uint32_t with_token(struct world *world, const char *id)
{
	struct command put = {.kind = COMMAND_TOKEN_PUT,
		.token = {.id = span_of(id), .kind = TOKEN_WORKER, .name = SPAN("n")}};

	assert_int_equal(world_run(world, &put)->refusal, REFUSED_NOTHING);
	return store_find_token(world->store, span_of(id))->principal;
}

static struct command say_fill(const char *worker, const char *slot)
{
	struct command command = say_register(worker);

	command.beat.slot = span_of(slot);
	return command;
}

static void an_empty_slot_is_still_its_owners_and_after_a_crash_too(void **state)
{
	struct world *world = *state;
	uint32_t owner = with_token(world, "x1");
	struct command crash = {.kind = COMMAND_SLOT_CRASH, .slot = SPAN("slot-1")};
	struct command behind = {.kind = COMMAND_SLOT_CRASH, .slot = SPAN("slot-1/shell-1")};

	run(world, owner, say_fill("w1", "slot-1"));
	run(world, owner, say_leave("w1"));
	for (int lives = 0; lives < 2; lives++) {
		assert_int_equal(run(world, HOSTILE, crash), REFUSED_FORBIDDEN);
		assert_int_equal(run(world, HOSTILE, behind), REFUSED_FORBIDDEN);
		assert_int_equal(run(world, HOSTILE, say_fill("w2", "slot-1")), REFUSED_FORBIDDEN);
		assert_true(world->result.slot_not_yours);
		world_crash(world);
	}
	crash.oversees = true;
	assert_int_equal(run(world, HOSTILE, crash), REFUSED_NOTHING);
	assert_int_equal(run(world, owner, say_fill("w3", "slot-1")), REFUSED_NOTHING);
}

static void a_slot_is_free_once_its_owners_token_has_ended(void **state)
{
	struct world *world = *state;
	uint32_t owner = with_token(world, "x1");
	struct command revoke = {.kind = COMMAND_TOKEN_REVOKE, .token = {.id = SPAN("x1")}};

	run(world, owner, say_fill("w1", "slot-1"));
	run(world, owner, say_leave("w1"));
	world_run(world, &revoke);
	assert_int_equal(run(world, HOSTILE, say_fill("w2", "slot-1")), REFUSED_NOTHING);
}

static void a_slot_is_free_once_its_worker_is_forgotten(void **state)
{
	struct world *world = *state;
	uint32_t owner = with_token(world, "x1");

	run(world, owner, say_fill("w1", "slot-1"));
	run(world, owner, say_leave("w1"));
	world_pass(world, world->options.retention.dead_worker_ms);
	assert_int_equal(store_sweep(world->store, world->now), 0);
	assert_int_equal(run(world, HOSTILE, say_fill("w2", "slot-1")), REFUSED_NOTHING);
	assert_int_equal(run(world, owner, say_fill("w3", "slot-1")), REFUSED_SLOT_TAKEN);
}

static void a_stranger_gets_no_work_of_a_slot_that_it_does_not_fill(void **state)
{
	struct world *world = *state;
	struct command create = say_create("a", "q"), filled = say_register("w1");
	struct command theft = say_claim("w2"), by_id = say_claim_of("a", "w2");

	create.create.owner = filled.beat.slot = theft.claim.slot = by_id.claim.slot = SPAN("slot-1");
	world_run(world, &create);
	run(world, HONEST, filled);
	assert_int_equal(run(world, HOSTILE, theft), REFUSED_SLOT_TAKEN);
	assert_int_equal(run(world, HOSTILE, by_id), REFUSED_SLOT_TAKEN);
	assert_int_equal(run(world, HONEST, by_id), REFUSED_NOTHING);
	assert_int_equal(run(world, HONEST, say_leave("w1")), REFUSED_NOTHING);
	theft.worker = SPAN("w3");
	assert_int_equal(run(world, HOSTILE, theft), REFUSED_NOTHING); /* anybody may fill it now */
}

/* ---- a token that was revoked ---- */

static void revoke_token(struct world *world, const char *id)
{
	struct command command = {.kind = COMMAND_TOKEN_REVOKE, .token = {.id = span_of(id)}};

	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
	assert_int_equal(store_sweep(world->store, world->now), 0);
}

static void the_leases_beneath_a_revoked_token_end_within_a_minute(void **state)
{
	struct world *world = *state;
	uint32_t owner = with_token(world, "x1");
	struct command worker_of_it = say_register("w1"), plain = say_claim("w2");

	worker_of_it.beat.lease_ms = plain.claim.lease_ms = INT64_C(3600) * 1000;
	run(world, owner, worker_of_it);
	world_create(world, "a", "q");
	run(world, owner, plain);
	assert_int_equal(world->result.claim_count, 1);
	world_pass(world, INT64_C(300) * 1000);
	revoke_token(world, "x1");
	world_pass(world, LEASE_CUT_MS - 1);
	world_run(world, NULL);
	assert_int_equal(worker(world, "w1").state, WORKER_ACTIVE);
	assert_int_equal(world_state(world, "a"), TASK_CLAIMED);
	world_pass(world, 1);
	world_run(world, NULL);
	assert_int_equal(worker(world, "w1").state, WORKER_INACTIVE);
	assert_int_equal(world_state(world, "a"), TASK_READY);
}

static void a_cut_lease_is_cut_after_a_crash_too(void **state)
{
	struct world *world = *state;
	uint32_t owner = with_token(world, "x1");
	struct command long_lived = say_register("w1");

	long_lived.beat.lease_ms = INT64_C(3600) * 1000;
	run(world, owner, long_lived);
	revoke_token(world, "x1");
	int64_t end_ms = worker(world, "w1").lease.deadline_ms;
	assert_int_equal(end_ms, world->now.lease_ms + LEASE_CUT_MS);
	world_pass(world, 1000);
	assert_int_equal(store_sweep(world->store, world->now), 0);
	assert_int_equal(worker(world, "w1").lease.deadline_ms, end_ms);
	world_crash(world);
	assert_true(worker(world, "w1").lease.deadline_ms <= world->now.lease_ms + 2 * LEASE_CUT_MS);
}

/* What a sweep writes must leave room for retention, which makes room. */
static void no_lease_is_cut_while_the_disk_is_full(void **state)
{
	struct world *world = *state;
	struct command long_lived = say_register("w1");
	struct command revoke = {.kind = COMMAND_TOKEN_REVOKE, .token = {.id = SPAN("x1")}};

	if (world->on_disk)
		skip();
	uint32_t owner = with_token(world, "x1");
	long_lived.beat.lease_ms = INT64_C(3600) * 1000;
	run(world, owner, long_lived);
	int64_t end_ms = worker(world, "w1").lease.deadline_ms;
	assert_int_equal(world_run(world, &revoke)->refusal, REFUSED_NOTHING);
	memory_set_full(world->backend, true);
	assert_int_equal(world_create(world, "a", "q"), REFUSED_UNAVAILABLE);
	memory_set_full(world->backend, false);
	assert_int_equal(store_sweep(world->store, world->now), 0);
	assert_false(store_is_degraded(world->store));
	assert_int_equal(worker(world, "w1").lease.deadline_ms, end_ms);
	assert_int_equal(store_sweep(world->store, world->now), 0);
	assert_int_equal(worker(world, "w1").lease.deadline_ms, world->now.lease_ms + LEASE_CUT_MS);
}

static void a_lease_that_ends_sooner_and_those_of_others_stay(void **state)
{
	struct world *world = *state;
	uint32_t owner = with_token(world, "x1"), other = with_token(world, "x2");
	struct command soon = say_register("w1"), others = say_register("w2");

	soon.beat.lease_ms = 30 * 1000;
	others.beat.lease_ms = INT64_C(3600) * 1000;
	run(world, owner, soon);
	run(world, other, others);
	int64_t soon_ms = worker(world, "w1").lease.deadline_ms;
	int64_t others_ms = worker(world, "w2").lease.deadline_ms;
	revoke_token(world, "x1");
	assert_int_equal(worker(world, "w1").lease.deadline_ms, soon_ms);
	assert_int_equal(worker(world, "w2").lease.deadline_ms, others_ms);
}

/* ---- names ---- */

enum { NAMES_EACH = 100 };

/* A registration of a hundred capabilities that nobody has named before, and of the set of them. */
struct crowd {
	char id[16];
	char texts[NAMES_EACH][16];
	struct span items[NAMES_EACH];
};

static struct command say_crowd(struct crowd *crowd, uint32_t number)
{
	struct command command = by(HOSTILE, say_register("w1"));

	snprintf(crowd->id, sizeof crowd->id, "w-%u", number);
	command.worker = span_of(crowd->id);
	for (uint32_t i = 0; i < NAMES_EACH; i++) {
		snprintf(crowd->texts[i], sizeof crowd->texts[i], "c%u-%u", number, i);
		crowd->items[i] = span_of(crowd->texts[i]);
	}
	command.beat.capabilities = (struct name_list){crowd->items, NAMES_EACH};
	return command;
}

/* As many names as fit, in turns of a hundred commands. The number of registrations that were accepted. */
static uint32_t spend_names(struct world *world)
{
	static struct crowd crowds[100];
	static struct command commands[100];
	static struct result results[100];
	uint32_t accepted = 0, number = 0;

	for (int turn = 0; turn < 11; turn++) {
		for (uint32_t i = 0; i < 100; i++)
			commands[i] = say_crowd(&crowds[i], number++);
		assert_int_equal(store_turn(world->store, world->now, commands, 100, results), 0);
		for (uint32_t i = 0; i < 100; i++) {
			accepted += results[i].refusal == REFUSED_NOTHING;
			if (results[i].refusal == REFUSED_NOTHING)
				continue;
			assert_int_equal(results[i].refusal, REFUSED_TOO_LARGE);
			assert_true(results[i].names_spent);
		}
	}
	return accepted;
}

static void nobody_uses_up_the_names_of_others(void **state)
{
	struct world *world = *state;

	/* 101 names each: the set is one too */
	assert_int_equal(spend_names(world), 100000 / (NAMES_EACH + 1));
	for (int lives = 0; lives < 2; lives++) {
		struct crowd crowd;
		struct command command = say_crowd(&crowd, 5000 + (uint32_t)lives);
		int64_t last = store_last_event(world->store);

		assert_int_equal(world_run(world, &command)->refusal, REFUSED_TOO_LARGE);
		assert_int_equal(store_last_event(world->store), last);
		command.oversees = true; /* an operator has no such limit */
		assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
		command = say_crowd(&crowd, 3); /* and known names are free */
		assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
		assert_false(world->result.names_spent);
		assert_int_equal(run(world, HONEST, say_create(lives ? "b" : "a", lives ? "q2" : "q1")),
			REFUSED_NOTHING);
		world_crash(world);
	}
}

static int count_name(void *context, const struct name_row *row)
{
	(void)row;
	++*(uint32_t *)context;
	return 0;
}

static uint32_t names_on_disk(struct world *world)
{
	uint32_t count = 0;

	assert_int_equal(world->backend->ops->scan_names(world->backend, count_name, &count), 0);
	return count;
}

static void a_refused_command_leaves_no_name_behind(void **state)
{
	struct world *world = *state;
	struct crowd crowd;
	struct command filled = say_register("w1"), taken = say_crowd(&crowd, 1);

	filled.beat.slot = taken.beat.slot = SPAN("s");
	taken.worker = SPAN("w2");
	assert_int_equal(run(world, HONEST, filled), REFUSED_NOTHING);
	uint32_t before = names_on_disk(world);
	struct command both[] = {taken, by(HONEST, say_create("a", "fresh"))};
	struct result results[2];
	assert_int_equal(store_turn(world->store, world->now, both, 2, results), 0);
	assert_int_equal(results[0].refusal, REFUSED_SLOT_TAKEN);
	assert_int_equal(results[1].refusal, REFUSED_NOTHING);
	assert_int_equal(names_on_disk(world), before + 1);
	world_crash(world);
	world_run(world, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(a_registered_id_is_its_owners_alone_and_after_a_crash_too),
		ON_BOTH(an_operator_sends_anybodys_worker_away),
		ON_BOTH(a_dead_id_keeps_its_owner),
		ON_BOTH(a_name_that_ended_is_free_once_its_owners_token_has_ended_too),
		ON_BOTH(a_number_is_given_to_one_principal_and_never_again),
		ON_BOTH(a_plain_claimants_id_is_its_own_while_it_holds_something),
		ON_BOTH(whoever_got_nothing_holds_no_id_not_even_for_a_turn),
		ON_BOTH(a_stranger_reports_nothing_and_learns_nothing),
		ON_BOTH(a_stranger_appends_nothing_and_learns_nothing),
		ON_BOTH(a_stranger_cannot_repeat_an_outcome_to_see_the_task),
		ON_BOTH(another_worker_of_the_same_token_is_not_told_a_success_that_is_not_its_own),
		ON_BOTH(a_late_result_is_kept_for_whoever_had_that_fence),
		ON_BOTH(whoever_had_the_fence_is_told_that_its_claim_is_over),
		ON_BOTH(a_stranger_leaves_no_late_result),
		ON_BOTH(the_owner_of_a_former_claim_is_found_behind_later_events),
		ON_BOTH(an_idempotency_key_is_its_principals_whatever_that_is_called),
		ON_BOTH(a_stranger_neither_crashes_nor_takes_over_a_slot),
		ON_BOTH(an_empty_slot_is_still_its_owners_and_after_a_crash_too),
		ON_BOTH(a_slot_is_free_once_its_owners_token_has_ended),
		ON_BOTH(a_slot_is_free_once_its_worker_is_forgotten),
		ON_BOTH(a_stranger_gets_no_work_of_a_slot_that_it_does_not_fill),
		ON_BOTH(the_leases_beneath_a_revoked_token_end_within_a_minute),
		ON_BOTH(a_cut_lease_is_cut_after_a_crash_too),
		ON_BOTH(a_lease_that_ends_sooner_and_those_of_others_stay),
		ON_BOTH(no_lease_is_cut_while_the_disk_is_full),
		ON_BOTH(nobody_uses_up_the_names_of_others),
		ON_BOTH(a_refused_command_leaves_no_name_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
