/*
 * Tokens: never the secret, only its hash.
 */
#include <string.h>

#include "store/sqlite/sqlite_backend.h"

/* In the order of the list `token` in statements.sql. */
// clang-format off
#define TOKEN_COLUMNS(INT_, TEXT_, BLOB_) \
	TEXT_(token->id) INT_(token->principal) INT_(token->kind) BLOB_(hash) TEXT_(token->name) TEXT_(token->gate) \
	TEXT_(token->queues) INT_(token->created_ms) TEXT_(token->created_by) INT_(token->expires_ms) \
	INT_(token->revoked_ms) TEXT_(token->revoked_by)
// clang-format on

int sqlite_put_token(struct backend *backend, const struct token *token)
{
	struct span hash = {(const char *)token->hash, sizeof token->hash};

	return RUN_SEALED(sqlite_of(backend), SQL_PUT_TOKEN, TOKEN_COLUMNS(PUT_INT, PUT_TEXT, PUT_BLOB));
}

int sqlite_delete_token(struct backend *backend, struct span id)
{
	return RUN(sqlite_of(backend), SQL_DELETE_TOKEN, TEXT(id));
}

/* The row that the statement stands on; its texts are borrowed from it. */
static int read_token(struct binding *binding, struct token *token)
{
	struct columns columns = {binding->statement, 0};
	struct span hash;

	TOKEN_COLUMNS(GET_INT, GET_TEXT, GET_TEXT)
	if (!row_is_sealed(binding->statement) || token->kind < TOKEN_ADMIN ||
		token->kind >= TOKEN_KIND_COUNT || hash.len != sizeof token->hash)
		return sqlite_fault_key(binding->store, "token", token->id);
	memcpy(token->hash, hash.data, sizeof token->hash);
	return 0;
}

int sqlite_scan_tokens(
	struct backend *backend, int (*each)(void *context, const struct token *token), void *context)
{
	struct binding binding = BIND(sqlite_of(backend), SQL_SCAN_TOKENS);
	int fault = 0;

	while (bind_more(&binding, &fault)) {
		struct token token = {0};

		fault = read_token(&binding, &token);
		if (!fault)
			fault = each(context, &token);
	}
	return fault;
}
