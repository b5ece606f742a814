#include "store/index/logins.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void logins_done(struct logins *logins)
{
	free(logins->items);
	*logins = (struct logins){0};
}

/* Where the id stands, or would stand. */
static uint32_t place_of(const struct logins *logins, struct span id)
{
	uint32_t low = 0, high = logins->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (span_compare(span_of(logins->items[middle].id), id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_at(const struct logins *logins, uint32_t at, struct span id)
{
	return at < logins->count && span_equal(span_of(logins->items[at].id), id);
}

struct browser_login *logins_find(const struct logins *logins, struct span id)
{
	uint32_t at = place_of(logins, id);

	return is_at(logins, at, id) ? &logins->items[at] : NULL;
}

int logins_reserve(struct logins *logins, uint32_t more)
{
	uint32_t cap = logins->cap ? logins->cap : 16;

	while (cap < logins->count + more)
		cap *= 2;
	if (cap == logins->cap)
		return 0;
	struct browser_login *grown = realloc(logins->items, cap * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	logins->items = grown;
	logins->cap = cap;
	return 0;
}

void logins_set(struct logins *logins, const struct browser_login *login)
{
	struct span id = span_of(login->id);
	uint32_t at = place_of(logins, id);
	bool is_known = is_at(logins, at, id);
	/* What a turn writes was read before requests that were seen meanwhile. */
	int64_t seen_ms = is_known && logins->items[at].seen_ms > login->seen_ms ? logins->items[at].seen_ms
										 : login->seen_ms;

	if (!is_known) {
		assert(logins->count < logins->cap); /* logins_reserve() was called */
		memmove(&logins->items[at + 1], &logins->items[at],
			(logins->count - at) * sizeof *logins->items);
		logins->count++;
	}
	logins->items[at] = *login;
	logins->items[at].seen_ms = seen_ms;
}

void logins_drop(struct logins *logins, struct span id)
{
	uint32_t at = place_of(logins, id);

	if (!is_at(logins, at, id))
		return;
	logins->count--;
	memmove(&logins->items[at], &logins->items[at + 1], (logins->count - at) * sizeof *logins->items);
}
