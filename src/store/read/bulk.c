/*
 * Reading bulk actions between turns.
 */
#include <errno.h>

#include "store/turn/turn.h"

static struct bulk_document document_of(const struct known_bulk *known)
{
	return (struct bulk_document){&known->bulk, &known->progress};
}

int store_read_bulk(const struct store *store, uint32_t number, struct bulk_document *ret_document)
{
	const struct known_bulk *known = bulks_find(&store->bulks, number);

	if (!known)
		return -ENOENT;
	*ret_document = document_of(known);
	return 0;
}

bool store_next_bulk(const struct store *store, uint32_t *number, struct bulk_document *ret_document)
{
	const struct bulks *bulks = &store->bulks;

	for (uint32_t i = 0; i < bulks->count; i++) {
		if (bulks->items[i]->bulk.number <= *number)
			continue;
		*number = bulks->items[i]->bulk.number;
		*ret_document = document_of(bulks->items[i]);
		return true;
	}
	return false;
}

bool store_has_bulk(const struct store *store)
{
	const struct bulks *bulks = &store->bulks;

	for (uint32_t i = 0; !store->degraded && i < bulks->count; i++) {
		if (bulks->items[i]->progress.state == BULK_RUNNING)
			return true;
	}
	return false;
}
