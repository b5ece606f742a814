/*
 * The bodies of the latest tasks, in memory: a task is mostly claimed soon after it was made, and finished soon after
 * that, and both want its body. One place per number, the newest takes it; large bodies are not kept. Of tasks that
 * have waited for long the bodies are kept when they are read, and those behind them, because tasks are mostly claimed
 * in the order in which they were made.
 *
 * It knows what was put, not what was committed, so it forgets everything when something is rolled back. There is no
 * other writer.
 */
#include <stdlib.h>
#include <string.h>

#include "store/sqlite/sqlite_backend.h"

enum {
	PLACES = 512,
	KEPT_BYTES_MAX = 500,
};

struct kept_body {
	int64_t seq; /* 0: none */
	uint32_t len;
	char bytes[KEPT_BYTES_MAX];
};

static struct kept_body *place_of(const struct sqlite *store, int64_t seq)
{
	return store->bodies ? &store->bodies[(uint64_t)seq % PLACES] : NULL;
}

bool bodies_keep(struct sqlite *store, int64_t seq, struct span body)
{
	if (!store->bodies)
		store->bodies = calloc(PLACES, sizeof *store->bodies); /* without memory nothing is kept */
	struct kept_body *place = place_of(store, seq);
	if (!place)
		return false;
	place->seq = body.len <= KEPT_BYTES_MAX ? seq : 0;
	if (place->seq == 0)
		return false;
	place->len = (uint32_t)body.len;
	if (body.len > 0)
		memcpy(place->bytes, body.data, body.len);
	return true;
}

bool bodies_find(const struct sqlite *store, int64_t seq, struct span *ret_body)
{
	const struct kept_body *place = place_of(store, seq);

	if (!place || place->seq != seq)
		return false;
	*ret_body = (struct span){place->bytes, place->len};
	return true;
}

void bodies_drop(struct sqlite *store, int64_t seq)
{
	struct kept_body *place = place_of(store, seq);

	if (place && place->seq == seq)
		place->seq = 0;
}

void bodies_clear(struct sqlite *store)
{
	for (uint32_t i = 0; store->bodies && i < PLACES; i++)
		store->bodies[i].seq = 0;
}
