/*
 * The texts of tokens: making one, and finding the id in one.
 */
#pragma once

#include "base/span.h"

enum {
	TOKEN_BYTES_MAX = 128,
	TOKEN_ID_BYTES_MAX = 17, /* 16 digits and a NUL */
};

void mint_token(const char *kind, char ret_token[TOKEN_BYTES_MAX], char ret_id[TOKEN_ID_BYTES_MAX]);

/* The id in stint_<kind>_<id>_<secret>; empty if the text has no such form. It borrows from the text. */
struct span token_id(struct span token);
