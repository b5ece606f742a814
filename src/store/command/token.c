/*
 * Tokens are given and taken back, and what else admins do leaves its trace. The row of a token says who gave it and
 * took it back, and is kept for a while after it has ended; the event says it for as long as events are kept.
 */

#include "base/take.h"
#include "store/command/commands.h"

/* Who did it stands in the record, what was done in the note of the command. */
static int stage_trace(struct turn *turn, enum event_kind kind)
{
	struct record record = turn_record(turn, kind);
	return turn_write_event(turn, &record);
}

int execute_token_put(struct turn *turn, const struct command *command, struct result *result)
{
	const struct command_token *given = &command->token;
	cleanup(buf_done) struct buf queues = {0};
	int64_t now_ms = turn->given.now.wall_ms;

	if (turn->store->credentials.count + turn->token_count >= STORE_TOKENS_MAX)
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

int execute_audit(struct turn *turn, const struct command *command, struct result *result)
{
	(void)command;
	(void)result;
	return stage_trace(turn, EVENT_SERVER_AUDITED);
}
