#include "core/worker/signing_key.h"

#include <assert.h>

const struct signing_key *signing_keys_find(const struct signing_keys *keys, struct span id)
{
	for (uint32_t i = 0; i < keys->count; i++) {
		if (span_equal(span_of(keys->items[i].id), id))
			return &keys->items[i];
	}
	return NULL;
}

bool signing_keys_are_due(const struct signing_keys *keys, int64_t wall_ms)
{
	return keys->count == 0 || wall_ms - keys->items[0].made_ms >= SIGNING_KEY_LIVES_MS;
}

bool signing_keys_add(struct signing_keys *keys, const struct signing_key *key, struct signing_key *ret_ended)
{
	bool is_full = keys->count == SIGNING_KEYS_MAX;

	assert(keys->count == 0 || key->number > keys->items[0].number);
	if (is_full)
		*ret_ended = keys->items[SIGNING_KEYS_MAX - 1];
	else
		keys->count++;
	for (uint32_t i = keys->count - 1; i > 0; i--)
		keys->items[i] = keys->items[i - 1];
	keys->items[0] = *key;
	return is_full;
}
