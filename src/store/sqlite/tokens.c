/*
 * Tokens: never the secret, only its hash.
 */
#include <string.h>

#include "store/sqlite/sqlite_backend.h"

/* In the order of the list `token` in statements.sql. */
int sqlite_put_token(struct backend *backend, const struct token *token)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_PUT_TOKEN);

	bind_text(&binding, token->id);
	bind_int(&binding, token->principal);
	bind_int(&binding, token->kind);
	bind_blob(&binding, (struct span){(const char *)token->hash, sizeof token->hash});
	bind_text(&binding, token->name);
	bind_text(&binding, token->gate);
	bind_text(&binding, token->queues);
	bind_int(&binding, token->created_ms);
	bind_text(&binding, token->created_by);
	bind_int(&binding, token->expires_ms);
	bind_int(&binding, token->revoked_ms);
	bind_text(&binding, token->revoked_by);
	return bind_run(&binding);
}

int sqlite_delete_token(struct backend *backend, struct span id)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_DELETE_TOKEN);

	bind_text(&binding, id);
	return bind_run(&binding);
}

/* The row that the statement stands on; its texts are borrowed from it. */
static int read_token(struct binding *binding, struct token *ret_token)
{
	struct columns columns = {binding->statement, 0};
	struct token token = {.id = column_span(&columns)};

	token.principal = column_u32(&columns);
	token.kind = column_u32(&columns);
	struct span hash = column_span(&columns);
	token.name = column_span(&columns);
	token.gate = column_span(&columns);
	token.queues = column_span(&columns);
	token.created_ms = column_int(&columns);
	token.created_by = column_span(&columns);
	token.expires_ms = column_int(&columns);
	token.revoked_ms = column_int(&columns);
	token.revoked_by = column_span(&columns);
	if (token.kind < TOKEN_ADMIN || token.kind >= TOKEN_KIND_COUNT || hash.len != sizeof token.hash)
		return sqlite_fault_row(binding->store, "token", token.created_ms);
	memcpy(token.hash, hash.data, sizeof token.hash);
	*ret_token = token;
	return 0;
}

int sqlite_scan_tokens(
	struct backend *backend, int (*each)(void *context, const struct token *token), void *context)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_SCAN_TOKENS);
	int fault;

	while ((fault = bind_next(&binding)) == 0) {
		struct token token;
		int verdict = read_token(&binding, &token);

		if (!verdict)
			verdict = each(context, &token);
		if (verdict)
			return bind_stop(&binding, verdict);
	}
	return bind_end(fault);
}
