#include "core/lease.h"

#include <assert.h>

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

uint32_t lease_clamp(const struct rules *rules, int64_t asked_ms, uint32_t fallback_ms)
{
	int64_t granted = asked_ms > 0 ? asked_ms : fallback_ms;
	if (granted < rules->lease_min_ms)
		return rules->lease_min_ms;
	if (granted > rules->lease_max_ms)
		return rules->lease_max_ms;
	return (uint32_t)granted;
}

struct lease lease_grant(uint32_t granted_ms, const struct given *given)
{
	assert(granted_ms > 0);
	return (struct lease){.deadline_ms = given->now.lease_ms + granted_ms, .granted_ms = granted_ms};
}

bool lease_cut(struct lease *lease, const struct given *given)
{
	if (lease_remaining_ms(lease, given) <= LEASE_CUT_MS)
		return false;
	*lease = lease_grant(LEASE_CUT_MS, given);
	return true;
}

int64_t lease_end(const struct lease *lease, const struct given *given)
{
	const struct grace *grace = &given->grace;

	if (grace->frozen)
		return INT64_MAX;

	int64_t end = later(lease->deadline_ms, grace->started_ms + given->rules->restart_grace_ms);
	if (grace->woke_ms != INT64_MIN) {
		uint32_t window = given->rules->resume_grace_ms;
		if (lease->granted_ms < window)
			window = lease->granted_ms;
		end = later(end, grace->woke_ms + window);
	}
	return end;
}

bool lease_is_expired(const struct lease *lease, const struct given *given)
{
	return given->now.lease_ms >= lease_end(lease, given);
}

int64_t lease_remaining_ms(const struct lease *lease, const struct given *given)
{
	return later(0, lease->deadline_ms - given->now.lease_ms);
}
