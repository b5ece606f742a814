/*
 * The bulk actions of a store in memory, in order of their numbers.
 */
#pragma once

#include "core/flow/bulk.h"

/* In one piece with its texts, on the heap. */
struct known_bulk {
	struct bulk bulk;
	struct bulk_progress progress; /* state 0: not known yet */
};

struct bulks {
	struct known_bulk *items[BULKS_KEPT_MAX];
	uint32_t count;
};

/* A copy; -ENOMEM. free() frees it. */
int bulk_new(const struct bulk *bulk, struct known_bulk **ret_known);

void bulks_done(struct bulks *bulks);
struct known_bulk *bulks_find(const struct bulks *bulks, uint32_t number); /* NULL: none */
void bulks_add(struct bulks *bulks, struct known_bulk *known);        /* it is taken over; there is room */
void bulks_drop(struct bulks *bulks, const struct known_bulk *known); /* and freed */
