/*
 * What an enrolment leaves in the state directory of a worker, and new secrets for tokens in files.
 *
 *	machine/url          the server
 *	machine/token        the credential of this machine (0600)
 *	machine/token.next   a secret that was made and that the server may not know yet
 *	machine/ca.crt       the authority of the server; without it those of the system are trusted
 *
 * A secret is on disk before its hash is sent, so that a reply that was lost can be asked for again. It takes the place of the one
 * before when the server has it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"

#define MACHINE_DIR   "machine"
#define MACHINE_URL   "url"
#define MACHINE_TOKEN "token"
#define MACHINE_CA    "ca.crt"

enum {
	MACHINE_PATH_BYTES = 4300,
	MACHINE_TOKEN_BYTES = 128, /* with its NUL */
	MACHINE_HASH_BYTES = 65,   /* in hexadecimal digits, with a NUL */
	MACHINE_ID_BYTES = 17,
	MACHINE_PIN_BYTES = 27, /* of a join code: the beginning of the hash of the authority */
};

/* The path of one of these files; cut off if it is too long. */
void machine_path(const char *home, const char *name, char ret_path[MACHINE_PATH_BYTES]);

/* Is there a credential of an enrolment? Not in the state directory of a server. */
bool machine_is_enrolled(const char *home);

/* A token of the same kind and id with a new secret; of kind worker with a new id if `token` is empty. -EINVAL: it is no token. */
int machine_mint(struct span token, char ret_token[MACHINE_TOKEN_BYTES]);

/* The id of stint_KIND_ID_SECRET; empty: it is no such text. */
struct span machine_token_id(struct span token);

/* What a server is shown of a new secret. -ENOSYS: there is no OpenSSL on this computer. */
int machine_hash(struct span token, char ret_hash[MACHINE_HASH_BYTES]);

/* The secret that waits beside a token's file, in FILE.next. -ENOENT: none. */
int machine_read_next(const char *file, char ret_token[MACHINE_TOKEN_BYTES]);
int machine_keep_next(const char *file, const char *token); /* durable */
int machine_take_next(const char *file);                    /* in the place of FILE, durable */
void machine_drop_next(const char *file);

/* A join code: stint_join_ID_SECRET[_PIN]. */
struct join_code {
	char id[MACHINE_ID_BYTES];
	char pin[MACHINE_PIN_BYTES]; /* "": the code knows no authority */
};

/* False: the text is not a whole code. */
bool join_code_read(const char *text, struct join_code *ret_code);

/* Is it the hash of the authority that the code names? */
bool join_code_names(const struct join_code *code, const unsigned char *hash);
