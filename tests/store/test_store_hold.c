/*
 * Holds on accounts: which tasks they take out of the order of claims, and when those come back.
 */
#include "store_fixture.h"

#define MINUTES(n) ((int64_t)(n) * 60 * 1000)

static void create(struct world *world, const char *id, const char *credential)
{
	struct command command = say_create(id, "q");

	command.create.executor = SPAN("claude");
	command.create.credential = span_of(credential);
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
}

/* A claim of a worker that uses that account with the executor; NULL: it says nothing of accounts. */
static struct result *claim(struct world *world, const char *worker, const char *account)
{
	const struct command_account one = {SPAN("claude"), span_of(account)};
	struct command command = say_claim(worker);

	command.claim.announced.accounts = (struct command_accounts){true, account ? 1 : 0, &one};
	return world_run(world, &command);
}

static uint64_t claimed(struct world *world, const char *worker, const char *account, const char *id)
{
	struct result *result = claim(world, worker, account);

	assert_int_equal(result->claim_count, id ? 1 : 0);
	if (!id)
		return 0;
	assert_true(span_equal(result->claims[0].id, span_of(id)));
	return result->claims[0].task.fence;
}

static void exhaust(
	struct world *world, const char *id, const char *worker, uint64_t fence, const char *named)
{
	struct command command = say_report(COMMAND_FAIL, id, worker, fence);

	command.failure = (struct failure){.code = CODE_QUOTA, .klass = CLASS_QUOTA};
	command.account = span_of(named);
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
}

static void lift(struct world *world, const char *credential, enum refusal refusal)
{
	struct command command = {.kind = COMMAND_HOLD_LIFT, .actor = SPAN("tester")};

	command.hold.credential = span_of(credential);
	assert_int_equal(world_run(world, &command)->refusal, refusal);
}

static void register_worker(struct world *world, const char *worker)
{
	struct command beat = say_beat(worker, 0);

	beat.beat.describes = beat.beat.any_executor = true;
	beat.beat.lease_ms = MINUTES(600);
	assert_int_equal(world_run(world, &beat)->refusal, REFUSED_NOTHING);
}

static void tasks_of_a_held_account_are_passed_over_and_others_are_not(void **state)
{
	struct world *world = *state;

	register_worker(world, "w");
	create(world, "a", "team");
	create(world, "b", "team");
	create(world, "c", "own");
	exhaust(world, "a", "w", claimed(world, "w", NULL, "a"), NULL);
	assert_int_equal(world_state(world, "a"), TASK_READY);
	assert_int_equal(world_task(world, "a").code, CODE_QUOTA);
	claimed(world, "w", NULL, "c");
	claimed(world, "w", NULL, NULL);
	world_crash(world);
	claimed(world, "w", NULL, NULL);
	lift(world, "team", REFUSED_NOTHING);
	lift(world, "team", REFUSED_NOT_FOUND);
	claimed(world, "w", NULL, "a");
}

static void a_claim_by_id_of_a_held_task_is_refused_with_its_time(void **state)
{
	struct world *world = *state;
	struct command by_id = say_claim("w");

	register_worker(world, "w");
	create(world, "a", "team");
	exhaust(world, "a", "w", claimed(world, "w", NULL, "a"), NULL);
	by_id.kind = COMMAND_CLAIM;
	by_id.task = SPAN("a");
	assert_int_equal(world_run(world, &by_id)->refusal, REFUSED_LIMITED);
	assert_true(world->result.until_ms >= world->now.wall_ms + MINUTES(5));
}

static void then_one_task_tries_and_if_it_works_the_others_follow_slowly(void **state)
{
	struct world *world = *state;

	register_worker(world, "w");
	create(world, "a", "team");
	create(world, "b", "team");
	create(world, "c", "team");
	exhaust(world, "a", "w", claimed(world, "w", NULL, "a"), NULL);
	world_pass(world, MINUTES(6));
	uint64_t fence = claimed(world, "w", NULL, "a");
	claimed(world, "w", NULL, NULL);
	world_crash(world);
	claimed(world, "w", NULL, NULL);
	struct command progress = say_report(COMMAND_PROGRESS, "a", "w", fence);
	assert_int_equal(world_run(world, &progress)->refusal, REFUSED_NOTHING);
	claimed(world, "w", NULL, NULL); /* a note is no proof */
	progress.uses = true;
	assert_int_equal(world_run(world, &progress)->refusal, REFUSED_NOTHING);
	claimed(world, "w", NULL, "b");
	claimed(world, "w", NULL, NULL);
	world_pass(world, 2000);
	claimed(world, "w", NULL, "c");
}

/* Else a turn, the claims that it wakes, and their turn would follow each other for ever. */
static void the_time_of_the_next_claim_wakes_claims_once(void **state)
{
	struct world *world = *state;

	register_worker(world, "w");
	create(world, "a", "team");
	create(world, "b", "team");
	exhaust(world, "a", "w", claimed(world, "w", NULL, "a"), NULL);
	world_pass(world, MINUTES(6));
	struct command progress = say_report(COMMAND_PROGRESS, "a", "w", claimed(world, "w", NULL, "a"));
	progress.uses = true;
	world_run(world, &progress);
	claimed(world, "w", NULL, "b");
	assert_int_equal(store_idle_ms(world->store, world->now), 2000);
	world_pass(world, 2000);
	world_run(world, NULL);
	assert_true(store_holds_let(world->store));
	world_run(world, NULL);
	assert_false(store_holds_let(world->store));
	assert_true(store_idle_ms(world->store, world->now) > 2000);
	create(world, "c", "team");
	claimed(world, "w", NULL, "c");
	claimed(world, "w", NULL, NULL);
}

static void a_probe_that_ends_without_a_word_makes_room_for_the_next(void **state)
{
	struct world *world = *state;

	register_worker(world, "w");
	create(world, "a", "team");
	exhaust(world, "a", "w", claimed(world, "w", NULL, "a"), NULL);
	world_pass(world, MINUTES(6));
	uint64_t fence = claimed(world, "w", NULL, "a");
	assert_int_equal(world_report(world, COMMAND_RELEASE, "a", "w", fence), REFUSED_NOTHING);
	claimed(world, "w", NULL, "a");
}

static void a_claim_that_is_taken_up_again_is_not_the_one_that_tries_unless_it_was(void **state)
{
	struct world *world = *state;

	register_worker(world, "w");
	register_worker(world, "old");
	for (const char *id = "a\0b\0c\0d\0"; *id; id += 2)
		create(world, id, "team");
	claimed(world, "old", NULL, "a"); /* it ran before the hold */
	struct command used_up = say_report(COMMAND_FAIL, "b", "w", claimed(world, "w", NULL, "b"));
	used_up.failure = (struct failure){
		.code = CODE_QUOTA, .klass = CLASS_QUOTA, .retry_at_ms = world->now.wall_ms + 1000};
	assert_int_equal(world_run(world, &used_up)->refusal, REFUSED_NOTHING);
	world_pass(world, 5000);
	claimed(world, "w", NULL, "b"); /* it tries the account */
	struct command again = say_claim("old");
	again.claim.resumes = true;
	assert_int_equal(world_run(world, &again)->claim_count, 1);
	world_report(world, COMMAND_COMPLETE, "a", "old", world_task(world, "a").fence);
	claimed(world, "old", NULL, NULL); /* still one at a time */
	again = say_claim("w");
	again.claim.resumes = true;
	assert_int_equal(world_run(world, &again)->claim_count, 1);
	claimed(world, "old", NULL, NULL);
}

static void a_worker_whose_account_is_held_takes_no_task_of_its_executor(void **state)
{
	struct world *world = *state;

	register_worker(world, "w");
	register_worker(world, "v");
	create(world, "a", "");
	create(world, "b", "");
	exhaust(world, "a", "w", claimed(world, "w", "team", "a"), NULL);
	claimed(world, "w", "team", NULL);
	/* the task names no account, and that worker has another */
	uint64_t fence = claimed(world, "v", "own", "a");
	assert_int_equal(world_report(world, COMMAND_COMPLETE, "a", "v", fence), REFUSED_NOTHING);
	world_pass(world, MINUTES(6));
	claimed(world, "w", "team", "b");
}

static void a_claimant_takes_only_tasks_of_its_accounts_or_of_none(void **state)
{
	struct world *world = *state;

	register_worker(world, "w");
	create(world, "a", "team");
	create(world, "b", "");
	claimed(world, "w", "own", "b");
	claimed(world, "w", "own", NULL);
	claimed(world, "w", "team", "a");
}

static void an_error_that_names_another_account_holds_nothing(void **state)
{
	struct world *world = *state;

	register_worker(world, "w");
	create(world, "a", "team");
	create(world, "b", "team");
	exhaust(world, "a", "w", claimed(world, "w", "team", "a"), "another");
	assert_int_equal(world_state(world, "a"), TASK_SCHEDULED);
	claimed(world, "w", "team", "b");
}

static void an_announced_account_is_not_held_by_a_worker_that_did_not_announce_it(void **state)
{
	struct world *world = *state;

	register_worker(world, "w");
	register_worker(world, "stranger");
	create(world, "a", "team");
	create(world, "b", "team");
	create(world, "c", "team");
	claimed(world, "w", "team", "a");
	exhaust(world, "b", "stranger", claimed(world, "stranger", NULL, "b"), NULL);
	claimed(world, "w", "team", "c");
}

static void two_failures_in_one_turn_open_one_hold(void **state)
{
	struct world *world = *state;
	struct result results[2];

	register_worker(world, "w");
	create(world, "a", "team");
	create(world, "b", "team");
	struct command both[2] = {say_report(COMMAND_FAIL, "a", "w", claimed(world, "w", NULL, "a")),
		say_report(COMMAND_FAIL, "b", "w", claimed(world, "w", NULL, "b"))};
	both[0].failure = both[1].failure = (struct failure){.code = CODE_UPSTREAM, .klass = CLASS_QUOTA};
	assert_int_equal(store_turn(world->store, world->now, both, 2, results), 0);
	world_pass(world, MINUTES(1) + 15000);
	claimed(world, "w", NULL, "a");
	claimed(world, "w", NULL, NULL);
}

static void more_than_a_hundred_accounts_are_held_one_by_one(void **state)
{
	struct world *world = *state;
	char id[16], account[16];

	register_worker(world, "w");
	for (int i = 0; i < 150; i++) {
		snprintf(id, sizeof id, "t%d", i);
		snprintf(account, sizeof account, "a%d", i);
		create(world, id, account);
		exhaust(world, id, "w", claimed(world, "w", NULL, id), NULL);
	}
	world_crash(world);
	claimed(world, "w", NULL, NULL);
	lift(world, "a149", REFUSED_NOTHING);
	lift(world, "a7", REFUSED_NOTHING);
	claimed(world, "w", NULL, "t7");
	claimed(world, "w", NULL, "t149");
	claimed(world, "w", NULL, NULL);
}

/* A claim of a worker whose executor "codex" takes the place of "claude". */
static struct result *claim_either(struct world *world, const char *worker)
{
	const struct command_account accounts[] = {
		{SPAN("claude"), SPAN("team")}, {SPAN("codex"), SPAN("other")}};
	const struct command_account fallback[] = {{SPAN("claude"), SPAN("codex")}};
	struct command command = say_claim(worker);

	command.claim.announced.accounts = (struct command_accounts){true, 2, accounts};
	command.claim.announced.fallback = (struct command_accounts){true, 1, fallback};
	return world_run(world, &command);
}

static uint64_t claimed_with(struct world *world, const char *id, const char *fallback)
{
	struct result *result = claim_either(world, "w");

	assert_int_equal(result->claim_count, 1);
	assert_true(span_equal(result->claims[0].id, span_of(id)));
	assert_true(span_equal(result->claims[0].fallback, span_of(fallback)));
	return result->claims[0].task.fence;
}

static void while_an_account_is_held_a_fallback_serves(void **state)
{
	struct world *world = *state;

	register_worker(world, "w");
	create(world, "a", "team");
	create(world, "b", "");
	create(world, "c", "");
	exhaust(world, "a", "w", claimed_with(world, "a", ""), "team");
	claimed_with(world, "a", "codex");
	claimed_with(world, "b", "codex");
	lift(world, "team", REFUSED_NOTHING);
	claimed_with(world, "c", "");
}

static void a_fallback_that_is_used_up_is_held_itself_and_nothing_else(void **state)
{
	struct world *world = *state;

	register_worker(world, "w");
	create(world, "a", "team");
	exhaust(world, "a", "w", claimed_with(world, "a", ""), "team");
	exhaust(world, "a", "w", claimed_with(world, "a", "codex"), "other");
	assert_int_equal(claim_either(world, "w")->claim_count, 0);
	lift(world, "other", REFUSED_NOTHING);
	claimed_with(world, "a", "codex");
}

static void the_task_that_tries_an_account_runs_with_it_and_the_others_with_the_fallback(void **state)
{
	struct world *world = *state;

	register_worker(world, "w");
	create(world, "a", "team");
	create(world, "b", "team");
	create(world, "c", "team");
	exhaust(world, "a", "w", claimed_with(world, "a", ""), "team");
	world_pass(world, MINUTES(6));
	uint64_t fence = claimed_with(world, "a", "");
	claimed_with(world, "b", "codex");
	assert_int_equal(world_report(world, COMMAND_COMPLETE, "a", "w", fence), REFUSED_NOTHING);
	claimed_with(world, "c", "");
}

static void without_a_hold_nobody_takes_the_place_of_another(void **state)
{
	struct world *world = *state;

	register_worker(world, "w");
	create(world, "a", "elsewhere"); /* which the worker has not */
	create(world, "b", "team");
	claimed_with(world, "b", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(tasks_of_a_held_account_are_passed_over_and_others_are_not),
		ON_BOTH(a_claim_by_id_of_a_held_task_is_refused_with_its_time),
		ON_BOTH(then_one_task_tries_and_if_it_works_the_others_follow_slowly),
		ON_BOTH(the_time_of_the_next_claim_wakes_claims_once),
		ON_BOTH(a_probe_that_ends_without_a_word_makes_room_for_the_next),
		ON_BOTH(a_claim_that_is_taken_up_again_is_not_the_one_that_tries_unless_it_was),
		ON_BOTH(a_worker_whose_account_is_held_takes_no_task_of_its_executor),
		ON_BOTH(a_claimant_takes_only_tasks_of_its_accounts_or_of_none),
		ON_BOTH(an_error_that_names_another_account_holds_nothing),
		ON_BOTH(an_announced_account_is_not_held_by_a_worker_that_did_not_announce_it),
		ON_BOTH(two_failures_in_one_turn_open_one_hold),
		ON_BOTH(more_than_a_hundred_accounts_are_held_one_by_one),
		ON_BOTH(while_an_account_is_held_a_fallback_serves),
		ON_BOTH(a_fallback_that_is_used_up_is_held_itself_and_nothing_else),
		ON_BOTH(the_task_that_tries_an_account_runs_with_it_and_the_others_with_the_fallback),
		ON_BOTH(without_a_hold_nobody_takes_the_place_of_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
