/*
 * Tokens: credentials that were given out, and the part of them that is kept.
 *
 * A token is stint_<kind>_<id>_<secret>. The secret is never kept: a row has the id, by which it is found, and the
 * hash of the whole text, with which it is compared. The row says who made the token and who revoked it, and when.
 *
 * A join code is a token that opens nothing. A machine shows it, and gets a token of a worker for it:
 *
 *	join code ──enrol, by a machine that made its own secret──▶ token of a worker
 *	token ──renew──▶ two secrets are valid ──the new one is used, or 24 h──▶ the new one is
 *
 * The holder makes the new secret and shows its hash, so that a reply that was lost loses nothing: it asks again.
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
	TOKEN_JOIN = 10, /* a code for machines that shall become workers; it has no scope */
	TOKEN_KIND_COUNT,
};

enum {
	TOKEN_HASH_BYTES = 32,
	TOKEN_ID_TEXT_MAX = 17, /* 16 digits and a NUL */
	TOKEN_QUEUES_MAX = 100,
	TOKEN_USES_MAX = 10000, /* of a join code */
	TOKEN_OLD_LIVES_MS = 24 * 3600 *
		1000, /* how long the secret before a renewal is valid, if the new one is not used */
	TOKEN_RENEW_AGAIN_MS = 60 * 1000, /* between two renewals */
	TOKEN_REPEAT_MS = 15 * 60 * 1000, /* how long an enrolment may be repeated */
	TOKEN_CODES_MAX = 1024,           /* open join codes … */
	TOKEN_CODES_OF_ONE_MAX = 64,      /* … of one maker */
};

/* Each caller has a number, which workers and claims remember: the number of its token, given out once and never again. */
enum principal_number {
	PRINCIPAL_NOBODY = 0,
	PRINCIPAL_ADMIN = 1, /* the holder of admin.token */
	PRINCIPAL_OPEN = 2,  /* a caller without a credential, where the server asks for none */
	PRINCIPAL_FIRST = 16,
};

/* What most tokens do not have. */
struct token_more {
	char join
		[TOKEN_ID_TEXT_MAX]; /* of a machine: the code that it showed; empty: it was given by an admin */
	int64_t lives_ms; /* of a machine, and what a join code gives: each secret lives for so long; 0: see expires_ms */
	int64_t renewed_ms;  /* wall; 0: its secret is the first one */
	int64_t old_ends_ms; /* wall; until then the secret before is valid, too; 0: it is not */
	unsigned char old_hash[TOKEN_HASH_BYTES];
	uint32_t uses, used; /* of a join code */
	int64_t used_ms;     /* wall */
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
	struct token_more more;
	bool is_settled; /* in memory only: the new secret was used, and the one before is not valid any more */
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

/* Is there anything in `more`? */
bool token_has_more(const struct token *token);

/* Is the secret before the last renewal still valid? */
bool token_has_old(const struct token *token, int64_t wall_ms);

/* The sound values of `more`, for a token of that kind. */
bool token_is_sound(const struct token *token);

enum token_renewal {
	RENEWAL_DONE,
	RENEWAL_REPEATED, /* it was done before: nothing changes */
	RENEWAL_WRONG,    /* the secret that was shown is not valid */
	RENEWAL_SAME,     /* the new secret is one of before */
	RENEWAL_EARLY,    /* the last renewal was less than a minute ago */
};

/* A new secret for a token whose holder showed the secret of the hash `shown`. *ret_token borrows from `token`. */
enum token_renewal token_renew(const struct token *token, const unsigned char shown[TOKEN_HASH_BYTES],
	const unsigned char fresh[TOKEN_HASH_BYTES], int64_t wall_ms, struct token *ret_token);

enum token_enrolment {
	ENROLMENT_DONE,
	ENROLMENT_REPEATED, /* the same machine asks again */
	ENROLMENT_GONE,     /* the code is unknown, too old, used up or revoked */
};

/* May a machine that shows the code of the hash `shown` have a token with the hash `fresh`? `there` is the token of the id
 * that it wants, or NULL. *ret_code is the code afterwards. */
enum token_enrolment token_enrol(const struct token *code, const unsigned char shown[TOKEN_HASH_BYTES],
	const struct token *there, const unsigned char fresh[TOKEN_HASH_BYTES], int64_t wall_ms,
	struct token *ret_code);
