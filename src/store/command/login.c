/*
 * Browsers come in and go: see core/worker/login.h. Each step leaves one event, as tokens do.
 */
#include <stdio.h>
#include <string.h>

#include "store/command/commands.h"

static void copy_text(char *to, size_t size, struct span text)
{
	snprintf(to, size, "%.*s", SPAN_ARGS(text));
}

static int stage_trace(struct turn *turn, enum event_kind kind)
{
	struct record record = turn_record(turn, kind);
	return turn_write_event(turn, &record);
}

/* Records that nobody needs make room when somebody makes a new one. */
static int forget_stale(struct turn *turn, struct span maker, uint32_t *ret_codes)
{
	const struct logins *logins = &turn->store->logins;
	int64_t now_ms = turn->given.now.wall_ms;
	int r = 0;

	*ret_codes = 0;
	for (uint32_t i = 0; r == 0 && i < logins->count; i++) {
		const struct browser_login *login = turn_login(turn, span_of(logins->items[i].id));
		if (!login)
			continue;
		if (login_is_stale(login, now_ms))
			r = turn_drop_login(turn, login);
		else
			*ret_codes += login->state == LOGIN_CODE && span_equal(span_of(login->maker), maker);
	}
	return r;
}

int execute_login_code(struct turn *turn, const struct command *command, struct result *result)
{
	const struct command_login *given = &command->login;
	struct browser_login login = {
		.state = LOGIN_CODE,
		.role = given->role,
		.principal = command->principal,
		.made_ms = turn->given.now.wall_ms,
	};
	uint32_t codes;

	int r = forget_stale(turn, given->maker, &codes);
	if (r < 0)
		return r;
	if (codes >= LOGIN_CODES_MAX || turn->store->logins.count + turn->login_count >= LOGINS_MAX)
		return command_refuse(result, REFUSED_TOO_LARGE);
	if (turn_login(turn, given->id)) /* as likely as guessing one; the next id is another */
		return command_refuse(result, REFUSED_UNAVAILABLE);
	copy_text(login.id, sizeof login.id, given->id);
	copy_text(login.maker, sizeof login.maker, given->maker);
	copy_text(login.name, sizeof login.name, given->name);
	memcpy(login.code_hash, given->code_hash, sizeof login.code_hash);
	r = turn_write_login(turn, &login);
	return r < 0 ? r : stage_trace(turn, EVENT_TOKEN_CREATED);
}

static int end_session(struct turn *turn, const struct browser_login *found)
{
	struct browser_login login = *found;

	login.state = LOGIN_ENDED;
	login.ended_ms = turn->given.now.wall_ms;
	int r = turn_write_login(turn, &login);
	return r < 0 ? r : stage_trace(turn, EVENT_TOKEN_REVOKED);
}

/* A code that is shown again was seen by somebody else: the session made with it ends. The caller is told by `repeated`. */
int execute_login(struct turn *turn, const struct command *command, struct result *result)
{
	const struct command_login *given = &command->login;
	const struct browser_login *found = turn_login(turn, given->id);
	bool is_right = found && memcmp(found->code_hash, given->code_hash, sizeof found->code_hash) == 0;

	if (is_right && found->state == LOGIN_SESSION) {
		result->repeated = true;
		return end_session(turn, found);
	}
	if (!is_right || !login_takes_code(found, turn->given.now.wall_ms))
		return command_refuse(result, REFUSED_CODE_GONE);
	struct browser_login login = *found;
	login.state = LOGIN_SESSION;
	login.used_ms = turn->given.now.wall_ms;
	login.seen_ms = turn->given.now.lease_ms;
	memcpy(login.cookie_hash, given->cookie_hash, sizeof login.cookie_hash);
	memcpy(login.key_hash, given->key_hash, sizeof login.key_hash);
	int r = turn_write_login(turn, &login);
	if (r == 0)
		r = stage_trace(turn, EVENT_TOKEN_CREATED);
	const struct browser_login *before =
		r == 0 && given->replaces.len > 0 ? turn_login(turn, given->replaces) : NULL;
	return before && before->state == LOGIN_SESSION ? end_session(turn, before) : r;
}

int execute_logout(struct turn *turn, const struct command *command, struct result *result)
{
	const struct browser_login *found = turn_login(turn, command->login.id);

	if (!found || found->state == LOGIN_CODE)
		return command_refuse(result, REFUSED_NOT_FOUND);
	if (found->state == LOGIN_ENDED) {
		result->repeated = true;
		return 0;
	}
	return end_session(turn, found);
}
