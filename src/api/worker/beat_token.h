/*
 * The token of a heartbeat as it travels: 8 bytes, lowest first, in base64. It is opaque: a worker that shows another text than
 * the last one it was given, of whatever length, has missed a reply.
 */
#pragma once

#include <stdint.h>

#include "base/span.h"

enum {
	BEAT_TOKEN_CHARS = 12,
};

void beat_token_write(uint64_t token, char ret_text[BEAT_TOKEN_CHARS]);

/* 0, which no worker ever has: the server did not make the text. */
uint64_t beat_token_read(struct span text);
