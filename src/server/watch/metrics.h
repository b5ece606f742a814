/*
 * What the server counts about itself, and all of it as text for Prometheus. Fixed arrays: counting costs an
 * increment and allocates nothing. The counters begin at zero with every start; figures that survive a restart are in the store.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct server;

enum {
	METRICS_BUCKETS = 12, /* the last one is for everything longer */
	METRICS_STATUS_MAX = 600,
};

struct histogram {
	uint64_t buckets[METRICS_BUCKETS];
	uint64_t sum_ns;
};

enum claim_outcome {
	CLAIM_GRANTED,
	CLAIM_EMPTY, /* there was nothing to hand out */
	CLAIM_REFUSED,
	CLAIM_OUTCOME_COUNT,
};

struct metrics {
	uint64_t replies[METRICS_STATUS_MAX]; /* by status */
	struct histogram request; /* from the last byte in to the reply, without waiting for work */
	struct histogram turn;    /* of the turns that wrote something */
	uint64_t claims[CLAIM_OUTCOME_COUNT];
	uint64_t auth_failures;       /* credentials that were checked and are invalid */
	uint64_t connections_ended;   /* for others, because all places were taken */
	uint64_t connections_refused; /* because all places were taken, or those of the credential */
	uint64_t auth_barred;         /* invalid ones that were answered 429: too many had come from there */
	uint64_t strangers_closed;
};

void histogram_add(struct histogram *histogram, uint64_t ns);
void metrics_count_reply(struct metrics *metrics, int status);

/* All metrics, with those of the store and the connections, in the text format of Prometheus or of OpenMetrics. -ENOMEM,
 * -E2BIG. */
int metrics_put(const struct server *server, bool open, struct buf *out);
