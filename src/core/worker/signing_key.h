/*
 * Keys that sign derived tokens: those of worker instances and of claims.
 *
 * The newest key signs, and the key before it still verifies, so a new key ends no running work. The third key ends the first. The id of a
 * key stands in every token that it signed. An id is never used again: it has the generation of the store in it, and
 * random digits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

enum {
	SIGNING_KEYS_MAX = 2,
	SIGNING_KEY_BYTES = 32,
	SIGNING_KEY_ID_BYTES = 24, /* with its NUL */
};

#define SIGNING_KEY_LIVES_MS (90 * INT64_C(24 * 60 * 60 * 1000)) /* then the server makes the next one */

/* The key that follows from the admin's token, as releases before keys in the store had it. Their tokens name no key. */
#define SIGNING_KEY_OF_ADMIN "0"

struct signing_key {
	char id[SIGNING_KEY_ID_BYTES];
	unsigned char secret[SIGNING_KEY_BYTES];
	uint64_t number; /* counts the keys of the store */
	int64_t made_ms; /* wall */
};

struct signing_keys {
	struct signing_key items[SIGNING_KEYS_MAX]; /* the newest first */
	uint32_t count;
};

/* The key of that id, if it is still valid, or NULL. */
const struct signing_key *signing_keys_find(const struct signing_keys *keys, struct span id);

/* Is it time for a new one? Also if there is none. */
bool signing_keys_are_due(const struct signing_keys *keys, int64_t wall_ms);

/* Adds the newest one. *ret_ended is the key that is no longer valid, if there is one: then true is returned. */
bool signing_keys_add(
	struct signing_keys *keys, const struct signing_key *key, struct signing_key *ret_ended);
