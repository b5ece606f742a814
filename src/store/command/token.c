/*
 * Tokens are given, get new secrets, and are taken back; what else admins do leaves its trace. The row of a token says who gave it and
 * took it back, and is kept for a while after it has ended; the event says it for as long as events are kept.
 */
#include <string.h>

#include "base/take.h"
#include "store/command/commands.h"

/* Who did it stands in the record, what was done in the note of the command. */
static int stage_trace(struct turn *turn, enum event_kind kind)
{
	struct record record = turn_record(turn, kind);
	return turn_write_event(turn, &record);
}

/* How many join codes are open: all, and those of one maker. */
static void count_codes(const struct turn *turn, struct span maker, uint32_t *ret_all, uint32_t *ret_own)
{
	const struct tokens *tokens = &turn->store->credentials;
	int64_t now_ms = turn->given.now.wall_ms;

	*ret_all = *ret_own = 0;
	for (uint32_t i = 0; i < tokens->count; i++) {
		const struct token *token = tokens->items[i];
		bool is_open = token->kind == TOKEN_JOIN && token_is_live(token, now_ms) &&
			token->more.used < token->more.uses;
		*ret_all += is_open;
		*ret_own += is_open && span_equal(token->created_by, maker);
	}
}

/* There are places for so many tokens; a fleet of codes must not take them all. */
static bool has_room(const struct turn *turn, const struct command *command)
{
	uint32_t all, own;

	if (turn->store->credentials.count + turn->token_count >= STORE_TOKENS_MAX)
		return false;
	if (command->kind != COMMAND_TOKEN_PUT || command->token.kind != TOKEN_JOIN)
		return true;
	count_codes(turn, command->actor, &all, &own);
	return all + turn->token_count < TOKEN_CODES_MAX && own + turn->token_count < TOKEN_CODES_OF_ONE_MAX;
}

int execute_token_put(struct turn *turn, const struct command *command, struct result *result)
{
	const struct command_token *given = &command->token;
	cleanup(buf_done) struct buf queues = {0};
	int64_t now_ms = turn->given.now.wall_ms;

	if (!has_room(turn, command))
		return command_refuse(result, REFUSED_TOO_LARGE);
	if (turn_token(turn, given->id)) /* as likely as guessing one; the next id is another */
		return command_refuse(result, REFUSED_UNAVAILABLE);
	buf_init(&queues, TOKEN_QUEUES_MAX * (COMMAND_NAME_MAX + 1));
	int r = names_set_text(given->queues, &queues);
	if (r < 0)
		return r;
	uint32_t principal;
	r = turn_new_principal(turn, &principal);
	if (r < 0)
		return r;
	struct token token = {
		.id = given->id,
		.principal = principal,
		.kind = given->kind,
		.name = given->name,
		.gate = given->gate,
		.queues = buf_span(&queues),
		.created_ms = now_ms,
		.created_by = command->actor,
		.expires_ms = given->lives_ms > 0 ? now_ms + given->lives_ms : 0,
		.more = {.uses = given->uses, .lives_ms = given->grants_ms},
	};
	memcpy(token.hash, given->hash, sizeof token.hash);
	r = turn_write_token(turn, &token);
	return r < 0 ? r : stage_trace(turn, EVENT_TOKEN_CREATED);
}

int execute_token_revoke(struct turn *turn, const struct command *command, struct result *result)
{
	const struct token *found = turn_token(turn, command->token.id);

	if (!found)
		return command_refuse(result, REFUSED_NOT_FOUND);
	if (found->revoked_ms != 0) {
		result->repeated = true;
		return 0;
	}
	struct token token = *found;
	token.revoked_ms = turn->given.now.wall_ms;
	token.revoked_by = command->actor;
	int r = turn_write_token(turn, &token);
	return r < 0 ? r : stage_trace(turn, EVENT_TOKEN_REVOKED);
}

/* ---- machines ---- */

/* What stands in the code, under the name that the machine has or was given. */
static int put_machine(struct turn *turn, const struct command *command, const struct token *code)
{
	const struct command_token *given = &command->token;
	int64_t now_ms = turn->given.now.wall_ms;
	struct token token = {
		.id = given->id,
		.kind = TOKEN_WORKER,
		.name = given->name,
		.queues = code->queues,
		.created_ms = now_ms,
		.created_by = command->actor,
		.expires_ms = now_ms + code->more.lives_ms,
		.more = {.lives_ms = code->more.lives_ms},
	};

	memcpy(token.more.join, code->id.data, code->id.len);
	memcpy(token.hash, given->hash, sizeof token.hash);
	int r = turn_new_principal(turn, &token.principal);
	return r < 0 ? r : turn_write_token(turn, &token);
}

int execute_enrol(struct turn *turn, const struct command *command, struct result *result)
{
	const struct command_token *given = &command->token;
	const struct token *code = turn_token(turn, given->code), *there = turn_token(turn, given->id);
	struct token used;

	switch (token_enrol(code, given->shown, there, given->hash, turn->given.now.wall_ms, &used)) {
	case ENROLMENT_GONE:
		return command_refuse(result, REFUSED_CODE_GONE);
	case ENROLMENT_REPEATED:
		result->repeated = true;
		return 0;
	case ENROLMENT_DONE:
		break;
	}
	if (!has_room(turn, command))
		return command_refuse(result, REFUSED_TOO_LARGE);
	int r = put_machine(turn, command, &used);
	if (r == 0)
		r = turn_write_token(turn, &used);
	return r < 0 ? r : stage_trace(turn, EVENT_TOKEN_CREATED);
}

int execute_token_renew(struct turn *turn, const struct command *command, struct result *result)
{
	const struct command_token *given = &command->token;
	const struct token *found = turn_token(turn, given->id);
	struct token token;

	if (!found)
		return command_refuse(result, REFUSED_UNAUTHORIZED);
	switch (token_renew(found, given->shown, given->hash, turn->given.now.wall_ms, &token)) {
	case RENEWAL_WRONG:
		return command_refuse(result, REFUSED_UNAUTHORIZED);
	case RENEWAL_SAME:
		return command_refuse(result, REFUSED_INVALID);
	case RENEWAL_EARLY:
		return command_refuse(result, REFUSED_RATE_LIMITED);
	case RENEWAL_REPEATED:
		result->repeated = true;
		return 0;
	case RENEWAL_DONE:
		break;
	}
	int r = turn_write_token(turn, &token);
	return r < 0 ? r : stage_trace(turn, EVENT_TOKEN_RENEWED);
}

/* The secret before the new one, which was used, is no longer valid. */
static int settle(struct turn *turn, const struct token *found)
{
	cleanup(buf_done) struct buf note = {.max = 256};
	struct record record = turn_record(turn, EVENT_TOKEN_SETTLED);
	struct token token = *found;

	token.is_settled = false;
	token.more.old_ends_ms = 0;
	memset(token.more.old_hash, 0, sizeof token.more.old_hash);
	buf_printf(&note, "\"object\":\"%.*s\"", SPAN_ARGS(found->id));
	int r = buf_fault(&note);
	record.note = buf_span(&note);
	if (r == 0)
		r = turn_write_token(turn, &token);
	return r < 0 ? r : turn_write_event(turn, &record);
}

int tokens_settle_rows(struct turn *turn, uint32_t most)
{
	const struct tokens *tokens = &turn->store->credentials;
	int r = 0;

	for (uint32_t i = 0; tokens->unsettled > 0 && r == 0 && i < tokens->count && most > 0; i++) {
		if (!tokens->items[i]->is_settled)
			continue;
		r = settle(turn, tokens->items[i]);
		most--;
	}
	return r;
}

int execute_audit(struct turn *turn, const struct command *command, struct result *result)
{
	(void)command;
	(void)result;
	return stage_trace(turn, EVENT_SERVER_AUDITED);
}
