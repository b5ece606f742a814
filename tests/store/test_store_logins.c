#include "store_fixture.h"

static struct command say(enum command_kind kind, const char *id, const char *code)
{
	struct command command = {
		.kind = kind,
		.actor = SPAN("admin"),
		.login = {.id = span_of(id),
			.role = TOKEN_OPERATOR,
			.maker = SPAN("admin"),
			.name = SPAN("mara of x")},
	};

	memset(command.login.code_hash, code[0], sizeof command.login.code_hash);
	memset(command.login.cookie_hash, 'c', sizeof command.login.cookie_hash);
	memset(command.login.key_hash, 'k', sizeof command.login.key_hash);
	return command;
}

static struct result run(struct world *world, enum command_kind kind, const char *id, const char *code)
{
	struct command command = say(kind, id, code);

	return *world_run(world, &command);
}

static const struct browser_login *login(struct world *world, const char *id)
{
	return store_find_login(world->store, span_of(id));
}

static void a_code_becomes_a_session_that_survives_a_crash(void **state)
{
	struct world *world = *state;

	assert_int_equal(run(world, COMMAND_LOGIN_CODE, "0a", "x").refusal, REFUSED_NOTHING);
	assert_int_equal(login(world, "0a")->state, LOGIN_CODE);
	assert_int_equal(run(world, COMMAND_LOGIN, "0a", "x").refusal, REFUSED_NOTHING);
	for (int lives = 0; lives < 2; lives++) {
		assert_int_equal(login(world, "0a")->state, LOGIN_SESSION);
		assert_int_equal(login(world, "0a")->cookie_hash[31], 'c');
		assert_int_equal(login(world, "0a")->key_hash[0], 'k');
		assert_string_equal(login(world, "0a")->name, "mara of x");
		world_crash(world);
	}
}

static void a_wrong_code_is_gone_and_spends_nothing(void **state)
{
	struct world *world = *state;

	run(world, COMMAND_LOGIN_CODE, "0a", "x");
	assert_int_equal(run(world, COMMAND_LOGIN, "0a", "y").refusal, REFUSED_CODE_GONE);
	assert_int_equal(run(world, COMMAND_LOGIN, "0b", "x").refusal, REFUSED_CODE_GONE);
	assert_int_equal(run(world, COMMAND_LOGIN, "0a", "x").refusal, REFUSED_NOTHING);
}

static void a_code_shown_again_ends_the_session_that_it_became(void **state)
{
	struct world *world = *state;

	run(world, COMMAND_LOGIN_CODE, "0a", "x");
	run(world, COMMAND_LOGIN, "0a", "x");
	assert_true(run(world, COMMAND_LOGIN, "0a", "x").repeated);
	assert_int_equal(login(world, "0a")->state, LOGIN_ENDED);
	assert_int_equal(run(world, COMMAND_LOGIN, "0a", "x").refusal, REFUSED_CODE_GONE);
}

static void a_code_is_good_for_five_minutes(void **state)
{
	struct world *world = *state;

	run(world, COMMAND_LOGIN_CODE, "0a", "x");
	run(world, COMMAND_LOGIN_CODE, "0b", "x");
	world_pass(world, LOGIN_CODE_MS - 1);
	assert_int_equal(run(world, COMMAND_LOGIN, "0a", "x").refusal, REFUSED_NOTHING);
	world_pass(world, 1);
	assert_int_equal(run(world, COMMAND_LOGIN, "0b", "x").refusal, REFUSED_CODE_GONE);
}

static void a_new_code_makes_the_server_forget_those_that_are_over(void **state)
{
	struct world *world = *state;

	run(world, COMMAND_LOGIN_CODE, "0a", "x");
	run(world, COMMAND_LOGIN_CODE, "0b", "x");
	run(world, COMMAND_LOGIN, "0b", "x");
	world_pass(world, LOGIN_CODE_MS);
	run(world, COMMAND_LOGIN_CODE, "0c", "x");
	assert_null(login(world, "0a"));
	assert_non_null(login(world, "0b"));
	world_crash(world);
	assert_null(login(world, "0a"));
	world_pass(world, LOGIN_LIVES_MS);
	run(world, COMMAND_LOGIN_CODE, "0d", "x");
	assert_null(login(world, "0b"));
}

static void a_maker_has_so_many_open_codes_and_no_more(void **state)
{
	struct world *world = *state;
	char id[8];

	for (int i = 0; i < LOGIN_CODES_MAX; i++) {
		snprintf(id, sizeof id, "%04x", i);
		assert_int_equal(run(world, COMMAND_LOGIN_CODE, id, "x").refusal, REFUSED_NOTHING);
	}
	assert_int_equal(run(world, COMMAND_LOGIN_CODE, "ffff", "x").refusal, REFUSED_TOO_LARGE);
	run(world, COMMAND_LOGIN, "0000", "x"); /* a session is no open code */
	assert_int_equal(run(world, COMMAND_LOGIN_CODE, "ffff", "x").refusal, REFUSED_NOTHING);
}

static void a_session_ends_once(void **state)
{
	struct world *world = *state;

	assert_int_equal(run(world, COMMAND_LOGOUT, "0a", "x").refusal, REFUSED_NOT_FOUND);
	run(world, COMMAND_LOGIN_CODE, "0a", "x");
	assert_int_equal(
		run(world, COMMAND_LOGOUT, "0a", "x").refusal, REFUSED_NOT_FOUND); /* a code is no session */
	run(world, COMMAND_LOGIN, "0a", "x");
	assert_false(run(world, COMMAND_LOGOUT, "0a", "x").repeated);
	assert_true(run(world, COMMAND_LOGOUT, "0a", "x").repeated);
	assert_int_equal(login(world, "0a")->state, LOGIN_ENDED);
}

static void a_new_session_ends_the_one_that_the_browser_had(void **state)
{
	struct world *world = *state;

	run(world, COMMAND_LOGIN_CODE, "0a", "x");
	run(world, COMMAND_LOGIN_CODE, "0b", "x");
	run(world, COMMAND_LOGIN, "0a", "x");
	struct command command = say(COMMAND_LOGIN, "0b", "x");
	command.login.replaces = SPAN("0a");
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
	assert_int_equal(login(world, "0a")->state, LOGIN_ENDED);
	assert_int_equal(login(world, "0b")->state, LOGIN_SESSION);
}

static void an_admin_s_session_is_an_operator_s_once_its_code_is_old(void **state)
{
	struct browser_login admin = {.role = TOKEN_ADMIN, .made_ms = 1000};

	(void)state;
	assert_int_equal(login_role(&admin, 1000 + LOGIN_ADMIN_MS - 1), TOKEN_ADMIN);
	assert_int_equal(login_role(&admin, 1000 + LOGIN_ADMIN_MS), TOKEN_OPERATOR);
	admin.role = TOKEN_VIEWER;
	assert_int_equal(login_role(&admin, 1000 + LOGIN_ADMIN_MS), TOKEN_VIEWER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(a_code_becomes_a_session_that_survives_a_crash),
		ON_BOTH(a_wrong_code_is_gone_and_spends_nothing),
		ON_BOTH(a_code_shown_again_ends_the_session_that_it_became),
		ON_BOTH(a_code_is_good_for_five_minutes),
		ON_BOTH(a_new_code_makes_the_server_forget_those_that_are_over),
		ON_BOTH(a_maker_has_so_many_open_codes_and_no_more),
		ON_BOTH(a_session_ends_once),
		ON_BOTH(a_new_session_ends_the_one_that_the_browser_had),
		ON_BOTH(an_admin_s_session_is_an_operator_s_once_its_code_is_old),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
