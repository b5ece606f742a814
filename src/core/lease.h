/*
 * Leases: how long a worker, or a claim, counts as alive. All times are on the lease clock.
 *
 * The deadline is the server's alone: a worker's clock is never trusted. A deadline may pass while the
 * server was not there to hear the renewal, so what counts is lease_end(), never the bare deadline.
 */
#pragma once

#include <stdint.h>

#include "core/task/given.h"

struct lease {
	int64_t deadline_ms;
	uint32_t granted_ms; /* the length that was granted: what a rebase grants again */
};

/* The length granted to a request: `fallback_ms` when none is asked for, always within the limits. */
uint32_t lease_clamp(const struct rules *rules, int64_t asked_ms, uint32_t fallback_ms);

/* A lease of that length from now. */
struct lease lease_grant(uint32_t granted_ms, const struct given *given);

enum {
	LEASE_CUT_MS = 60 * 1000,
};

/* The token beneath which it was granted was revoked: at most LEASE_CUT_MS are left from now. False: it is not longer than that. */
bool lease_cut(struct lease *lease, const struct given *given);

/* The first moment at which the lease may be called lost, with every grace window counted;
 * INT64_MAX while nobody may expire. */
int64_t lease_end(const struct lease *lease, const struct given *given);

bool lease_is_expired(const struct lease *lease, const struct given *given);

/* The time left of the lease, at least 0. */
int64_t lease_remaining_ms(const struct lease *lease, const struct given *given);
