/*
 * Taking secrets out of what leaves this computer.
 *
 * Nobody can know every secret, so there are four nets, one behind the other: members whose name says that they hold one ("password",
 * every value of an "env"); words of a known form (tokens of stint and of well-known services, private keys, JWTs, NAME_TOKEN=…, user and
 * password of a URL); the values of our own environment whose names say so, wherever they occur; and the home directory, which becomes ~.
 */
#pragma once

#include "wire/json/json.h"

enum {
	REDACT_KNOWN_MAX = 64,
};

struct redactor {
	struct span known[REDACT_KNOWN_MAX]; /* secrets that are known word by word */
	size_t known_count;
	const char *home; /* NULL: there is none */
	uint64_t removed; /* how many were taken out */
};

/* Knows the secrets of this environment. */
void redact_init(struct redactor *redactor);

/* One more secret: one that is short enough to occur by chance is not taken. The text must live as long as the redactor. */
void redact_know(struct redactor *redactor, struct span secret);

/* Appends the text without its secrets: each is replaced by [removed]. */
void redact_text(struct redactor *redactor, struct buf *out, struct span text);

/* The value as JSON without its secrets, keys too. `key`: the name of the member that it is, or NULL. */
void redact_value(struct redactor *redactor, struct buf *out, const char *key, yyjson_val *value);
