#include "store/index/bulks.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t text_bytes(const struct bulk *bulk)
{
	size_t bytes = bulk->queue.len + bulk->filter.len + bulk->actor.len + bulk->token.len;

	for (uint32_t i = 0; i < bulk->within.count; i++)
		bytes += bulk->within.items[i].len;
	return bytes;
}

static struct span copy_text(char **at, struct span text)
{
	struct span copy = {*at, text.len};

	if (text.len > 0)
		memcpy(*at, text.data, text.len);
	*at += text.len;
	return copy;
}

int bulk_new(const struct bulk *bulk, struct known_bulk **ret_known)
{
	size_t names = bulk->within.count * sizeof(struct span);
	struct known_bulk *known = malloc(sizeof *known + names + text_bytes(bulk));

	if (!known)
		return -ENOMEM;
	*known = (struct known_bulk){.bulk = *bulk};
	struct span *within = (struct span *)(known + 1);
	char *at = (char *)(within + bulk->within.count);
	struct span *const texts[] = {
		&known->bulk.queue, &known->bulk.filter, &known->bulk.actor, &known->bulk.token};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		*texts[i] = copy_text(&at, *texts[i]);
	for (uint32_t i = 0; i < bulk->within.count; i++)
		within[i] = copy_text(&at, bulk->within.items[i]);
	known->bulk.within.items = within;
	*ret_known = known;
	return 0;
}

void bulks_done(struct bulks *bulks)
{
	while (bulks->count > 0)
		free(bulks->items[--bulks->count]);
}

static uint32_t place_of(const struct bulks *bulks, uint32_t number)
{
	uint32_t at = 0;

	while (at < bulks->count && bulks->items[at]->bulk.number < number)
		at++;
	return at;
}

struct known_bulk *bulks_find(const struct bulks *bulks, uint32_t number)
{
	uint32_t at = place_of(bulks, number);

	return at < bulks->count && bulks->items[at]->bulk.number == number ? bulks->items[at] : NULL;
}

void bulks_add(struct bulks *bulks, struct known_bulk *known)
{
	uint32_t at = place_of(bulks, known->bulk.number);

	assert(bulks->count < BULKS_KEPT_MAX);
	assert(!bulks_find(bulks, known->bulk.number));
	memmove(&bulks->items[at + 1], &bulks->items[at], (bulks->count - at) * sizeof *bulks->items);
	bulks->items[at] = known;
	bulks->count++;
}

void bulks_drop(struct bulks *bulks, const struct known_bulk *known)
{
	uint32_t at = place_of(bulks, known->bulk.number);

	assert(bulks->items[at] == known);
	free(bulks->items[at]);
	bulks->count--;
	memmove(&bulks->items[at], &bulks->items[at + 1], (bulks->count - at) * sizeof *bulks->items);
}
