#include "store_fixture.h"

enum {
	DAY_MS = 24 * 3600 * 1000,
	MINUTE_MS = 60 * 1000,
};

static struct command say(enum command_kind kind, const char *id, char secret)
{
	struct command command = {
		.kind = kind, .actor = SPAN("admin"), .token = {.id = span_of(id), .name = SPAN("ci 7")}};

	memset(command.token.hash, secret, sizeof command.token.hash);
	return command;
}

static struct result invite(struct world *world, const char *id, char secret, uint32_t uses)
{
	static const struct span queues[] = {{"ci", 2}};
	struct command command = say(COMMAND_TOKEN_PUT, id, secret);

	command.token.kind = TOKEN_JOIN;
	command.token.queues = (struct name_list){queues, 1};
	command.token.lives_ms = 15 * MINUTE_MS;
	command.token.uses = uses;
	command.token.grants_ms = 30 * (int64_t)DAY_MS;
	return *world_run(world, &command);
}

static struct result enrol(struct world *world, const char *code, char shown, const char *id, char secret)
{
	struct command command = say(COMMAND_ENROL, id, secret);

	command.token.kind = TOKEN_WORKER;
	command.token.code = span_of(code);
	memset(command.token.shown, shown, sizeof command.token.shown);
	return *world_run(world, &command);
}

static struct result renew(struct world *world, const char *id, char shown, char fresh)
{
	struct command command = say(COMMAND_TOKEN_RENEW, id, fresh);

	memset(command.token.shown, shown, sizeof command.token.shown);
	return *world_run(world, &command);
}

static const struct token *token_of(struct world *world, const char *id)
{
	return store_find_token(world->store, span_of(id));
}

static void a_machine_gets_what_stands_in_the_code_and_a_crash_changes_nothing(void **state)
{
	struct world *world = *state;

	assert_int_equal(invite(world, "0c", 'c', 1).refusal, REFUSED_NOTHING);
	assert_int_equal(enrol(world, "0c", 'c', "0a", 'a').refusal, REFUSED_NOTHING);
	for (int lives = 0; lives < 2; lives++) {
		const struct token *token = token_of(world, "0a");
		assert_int_equal(token->kind, TOKEN_WORKER);
		assert_true(span_equal(token->queues, token_of(world, "0c")->queues));
		assert_string_equal(token->more.join, "0c");
		assert_int_equal(token->expires_ms, token->created_ms + 30 * (int64_t)DAY_MS);
		assert_true(token->principal != token_of(world, "0c")->principal);
		assert_int_equal(token_of(world, "0c")->more.used, 1);
		world_crash(world);
	}
}

static void a_code_is_used_once_and_the_same_machine_may_ask_again(void **state)
{
	struct world *world = *state;

	invite(world, "0c", 'c', 1);
	assert_int_equal(enrol(world, "0c", 'x', "0a", 'a').refusal, REFUSED_CODE_GONE);
	assert_int_equal(enrol(world, "0c", 'c', "0a", 'a').refusal, REFUSED_NOTHING);
	assert_true(enrol(world, "0c", 'c', "0a", 'a').repeated);
	assert_int_equal(enrol(world, "0c", 'c', "0b", 'b').refusal, REFUSED_CODE_GONE);
	assert_int_equal(enrol(world, "0c", 'c', "0a", 'b').refusal, REFUSED_CODE_GONE);
	world_pass(world, 15 * MINUTE_MS);
	assert_int_equal(enrol(world, "0c", 'c', "0a", 'a').refusal, REFUSED_CODE_GONE);
}

static void an_old_code_and_a_revoked_one_are_gone(void **state)
{
	struct world *world = *state;
	struct command revoke = {
		.kind = COMMAND_TOKEN_REVOKE, .actor = SPAN("admin"), .token = {.id = SPAN("0d")}};

	invite(world, "0c", 'c', 1);
	invite(world, "0d", 'd', 1);
	assert_int_equal(world_run(world, &revoke)->refusal, REFUSED_NOTHING);
	assert_int_equal(enrol(world, "0d", 'd', "0a", 'a').refusal, REFUSED_CODE_GONE);
	world_pass(world, 15 * MINUTE_MS);
	assert_int_equal(enrol(world, "0c", 'c', "0a", 'a').refusal, REFUSED_CODE_GONE);
}

static void two_machines_in_one_turn_share_no_single_code(void **state)
{
	struct world *world = *state;

	invite(world, "0c", 'c', 1);
	struct command both[2] = {say(COMMAND_ENROL, "0a", 'a'), say(COMMAND_ENROL, "0b", 'b')};
	for (int i = 0; i < 2; i++) {
		both[i].token.code = SPAN("0c");
		memset(both[i].token.shown, 'c', sizeof both[i].token.shown);
	}
	struct result results[2];
	assert_int_equal(store_turn(world->store, world->now, both, 2, results), 0);
	assert_int_equal(results[0].refusal, REFUSED_NOTHING);
	assert_int_equal(results[1].refusal, REFUSED_CODE_GONE);
}

static void a_renewed_token_has_both_secrets_until_the_new_one_is_seen(void **state)
{
	struct world *world = *state;

	invite(world, "0c", 'c', 1);
	enrol(world, "0c", 'c', "0a", 'a');
	assert_int_equal(renew(world, "0a", 'x', 'b').refusal, REFUSED_UNAUTHORIZED);
	assert_int_equal(renew(world, "0a", 'a', 'b').refusal, REFUSED_NOTHING);
	assert_true(renew(world, "0a", 'a', 'b').repeated);
	world_crash(world);
	assert_int_equal(token_of(world, "0a")->more.old_hash[5], 'a');
	assert_true(token_has_old(token_of(world, "0a"), world->now.wall_ms));
	store_see_secret(world->store, SPAN("0a"));
	assert_false(token_has_old(token_of(world, "0a"), world->now.wall_ms));
	world_pass(world, MINUTE_MS); /* with a sweep */
	assert_int_equal(store_sweep(world->store, world->now), 0);
	world_crash(world);
	assert_false(token_has_old(token_of(world, "0a"), world->now.wall_ms));
	assert_int_equal(token_of(world, "0a")->more.old_hash[5], 0);
	assert_int_equal(renew(world, "0a", 'a', 'd').refusal, REFUSED_UNAUTHORIZED);
}

static void there_is_a_most_of_open_codes(void **state)
{
	struct world *world = *state;
	char id[8];

	for (int i = 0; i < TOKEN_CODES_OF_ONE_MAX; i++) {
		snprintf(id, sizeof id, "c%d", i);
		assert_int_equal(invite(world, id, 'c', 1).refusal, REFUSED_NOTHING);
	}
	assert_int_equal(invite(world, "one more", 'c', 1).refusal, REFUSED_TOO_LARGE);
	assert_int_equal(enrol(world, "c0", 'c', "0a", 'a').refusal, REFUSED_NOTHING);
	assert_int_equal(invite(world, "one more", 'c', 1).refusal, REFUSED_NOTHING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(a_machine_gets_what_stands_in_the_code_and_a_crash_changes_nothing),
		ON_BOTH(a_code_is_used_once_and_the_same_machine_may_ask_again),
		ON_BOTH(an_old_code_and_a_revoked_one_are_gone),
		ON_BOTH(two_machines_in_one_turn_share_no_single_code),
		ON_BOTH(a_renewed_token_has_both_secrets_until_the_new_one_is_seen),
		ON_BOTH(there_is_a_most_of_open_codes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
