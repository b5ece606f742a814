/*
 * Tokens: credentials that were given out, and the part of them that is kept.
 *
 * A token is stint_<kind>_<id>_<secret>. The secret is never kept: a row has the id, by which it is found, and the
 * hash of the whole text, with which it is compared. A row changes once, when the token is revoked, and says who
 * made the token and who revoked it, and when.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

/* Stored numbers. */
enum token_kind {
	TOKEN_ADMIN = 1,
	TOKEN_OPERATOR = 2,
	TOKEN_PRODUCER = 3,
	TOKEN_WORKER = 4,
	TOKEN_VIEWER = 5,
	TOKEN_METRICS = 6,
	TOKEN_APPROVER = 7,
	TOKEN_GATE = 8, /* an approver for one gate */
	TOKEN_EMIT = 9,
	TOKEN_KIND_COUNT,
};

enum {
	TOKEN_HASH_BYTES = 32,
	TOKEN_ID_TEXT_MAX = 17, /* 16 digits and a NUL */
	TOKEN_QUEUES_MAX = 100,
};

/* Each caller has a number, which workers and claims remember: the number of its token, given out once and never again. */
enum principal_number {
	PRINCIPAL_NOBODY = 0,
	PRINCIPAL_ADMIN = 1, /* the holder of admin.token */
	PRINCIPAL_OPEN = 2,  /* a caller without a credential, where the server asks for none */
	PRINCIPAL_FIRST = 16,
};

struct token {
	struct span id;
	uint32_t principal;
	enum token_kind kind;
	unsigned char hash[TOKEN_HASH_BYTES];
	struct span name;
	struct span gate;                           /* of TOKEN_GATE */
	struct span queues;                         /* in order, each after the character 31; empty: all */
	int64_t created_ms, expires_ms, revoked_ms; /* wall; 0: never */
	struct span created_by, revoked_by;
};

const char *token_kind_name(enum token_kind kind);

/* The kind of that name, or 0. */
enum token_kind token_kind_find(struct span name);

/* May a token of this kind be limited to certain queues? */
bool token_kind_has_queues(enum token_kind kind);

/* Neither revoked nor expired. */
bool token_is_live(const struct token *token, int64_t wall_ms);

/* When it was revoked or expired; INT64_MAX: it is still live. */
int64_t token_ended_ms(const struct token *token, int64_t wall_ms);

/* The token's queues; returns how many. They borrow from the token. */
uint32_t token_queues(const struct token *token, struct span ret_queues[TOKEN_QUEUES_MAX]);
