/*
 * The texts of tokens: making one, and finding the id in one.
 *
 * Tokens that an admin creates are random, and a row of the store has their hash. The token of a worker instance or of a
 * claim is derived from another token: its id says what it is for and which key signed it, its secret is the MAC of the id under
 * that key of the store, and it has no row. It ends with the instance or claim, with its parent, and with its key.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/span.h"
#include "core/worker/signing_key.h"

enum {
	TOKEN_BYTES_MAX = 128,
	TOKEN_ID_BYTES_MAX = 17,     /* 16 digits and a NUL */
	MINT_WORKER_BYTES_MAX = 128, /* of a worker's id */
	TOKEN_PIN_HASH_BYTES = 32,
	TOKEN_PIN_BYTES_MAX = 27, /* 26 characters and a NUL */
};

void mint_token(const char *kind, char ret_token[TOKEN_BYTES_MAX], char ret_id[TOKEN_ID_BYTES_MAX]);

/* The same for an id that is there already. */
void mint_secret(const char *kind, struct span id, char ret_token[TOKEN_BYTES_MAX]);
/* A code for machines: stint_join_ID_SECRET, and _PIN behind it if `pin` is not empty. */
void mint_join(const char *pin, char ret_code[TOKEN_BYTES_MAX], char ret_id[TOKEN_ID_BYTES_MAX]);

/* The first 130 bits of a hash, as a code has them. */
void mint_pin(const unsigned char hash[TOKEN_PIN_HASH_BYTES], char ret_pin[TOKEN_PIN_BYTES_MAX]);
void mint_id(char ret_id[TOKEN_ID_BYTES_MAX]);

/* The id in stint_<kind>_<id>_<secret>; empty if the text has no such form. It borrows from the text. */
struct span token_id(struct span token);

/* Does the text have that form, with a secret that is at least as long as ours? */
bool token_is_whole(struct span token);

/* The MAC key that follows from the admin token: releases before keys in the store signed derived tokens with it. */
void mint_key_of_admin(const char *admin_token, unsigned char ret_key[SIGNING_KEY_BYTES]);

enum derived_kind {
	DERIVED_NOT,
	DERIVED_INSTANCE, /* stint_worker_<parent>.<number>.<worker>.<key>_<MAC> */
	DERIVED_CLAIM, /* stint_claim_<parent>.<task>.<fence>.<key>_<MAC>; <fence>-<reissued> if it was replaced */
};

struct derived {
	enum derived_kind kind;
	struct span parent; /* id of the token it comes from */
	uint64_t number;    /* DERIVED_INSTANCE: of the worker's credential; DERIVED_CLAIM: of the task */
	uint64_t fence;
	uint64_t reissued; /* how often the token of this claim was replaced before */
	char worker[MINT_WORKER_BYTES_MAX];
	size_t worker_len;
};

/* Signed with the newest key. -ENOMEM; -EAGAIN: there is no key yet. */
int derived_text(const struct derived *derived, const struct signing_keys *keys, struct arena *arena,
	struct span *ret_text);

/* Does the text of this token_id() claim to be derived? */
bool derived_looks_like(struct span id);

/* False: it is not of our making, or its key is no longer valid. The parent borrows from the text. `is_known`: the MAC was right
 * before, and is not computed again. */
bool derived_read(
	struct span text, const struct signing_keys *keys, bool is_known, struct derived *ret_derived);
