/*
 * What senders of webhooks (stint-notify) tell of their last deliveries, target by target. It is kept in memory alone: a sender has
 * it on disk and tells it again when it meets the server.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"

enum {
	DELIVERIES_MAX = 128, /* targets in all; then the one that was told of the longest ago gives way */
	DELIVERIES_OF_TELLER_MAX = 32, /* of one credential */
	DELIVERIES_TELLER_BYTES = 64,
	DELIVERIES_TARGET_BYTES = 128,
	DELIVERIES_TEXT_BYTES_MAX = 64 << 10,
};

struct deliveries_entry {
	char teller[DELIVERIES_TELLER_BYTES]; /* id of its token */
	char target[DELIVERIES_TARGET_BYTES];
	uint64_t told; /* rises with each time that something is told; 0: the place is free */
	struct buf text;
};

struct deliveries {
	struct deliveries_entry entries[DELIVERIES_MAX];
	uint64_t told;
};

void deliveries_done(struct deliveries *deliveries);

/* In place of what the same teller told of that target. -E2BIG, -ENOMEM: then it is as before. */
int deliveries_keep(struct deliveries *deliveries, struct span teller, struct span target, struct span text);

/* The texts with commas between them; with `teller`, only what that one told. */
int deliveries_put(const struct deliveries *deliveries, struct span teller, struct buf *out);
