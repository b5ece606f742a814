#include "core/worker/slot.h"

#include <assert.h>

static void forget_crashes(struct slot *slot)
{
	for (int i = 0; i < SLOT_CRASHES_KEPT; i++)
		slot->crashed_ms[i] = INT64_MIN;
}

void slot_init(struct slot *slot)
{
	*slot = (struct slot){.state = SLOT_FREE_TO_RUN};
	forget_crashes(slot);
}

static void remember_crash(struct slot *slot, int64_t now_ms)
{
	for (int i = SLOT_CRASHES_KEPT - 1; i > 0; i--)
		slot->crashed_ms[i] = slot->crashed_ms[i - 1];
	slot->crashed_ms[0] = now_ms;
	slot->restarts++;
}

static bool crashed_too_often(const struct slot *slot, const struct given *given)
{
	uint32_t limit = given->rules->quarantine_crashes;

	assert(limit >= 1);
	assert(limit <= SLOT_CRASHES_KEPT);
	int64_t oldest_ms = slot->crashed_ms[limit - 1];
	return oldest_ms != INT64_MIN &&
		given->now.lease_ms - oldest_ms <= given->rules->quarantine_window_ms;
}

static bool on_trial(const struct slot *slot, const struct given *given)
{
	return slot->state == SLOT_ON_TRIAL &&
		given->now.lease_ms - slot->since_ms <= given->rules->quarantine_window_ms;
}

struct slot_decision slot_crash(const struct slot *slot, const struct given *given)
{
	struct slot_decision decision = {.slot = *slot};

	remember_crash(&decision.slot, given->now.lease_ms);
	if (slot->state == SLOT_QUARANTINED)
		return decision;
	if (on_trial(slot, given) || crashed_too_often(&decision.slot, given)) {
		decision.slot.state = SLOT_QUARANTINED;
		decision.slot.since_ms = given->now.lease_ms;
		decision.event = EVENT_SLOT_QUARANTINED;
	}
	return decision;
}

struct slot slot_lost(const struct slot *slot)
{
	struct slot lost = *slot;

	lost.restarts++;
	return lost;
}

struct slot_decision slot_unquarantine(const struct slot *slot)
{
	struct slot_decision decision = {.slot = *slot};

	if (slot->state == SLOT_FREE_TO_RUN)
		return decision;
	decision.slot.state = SLOT_FREE_TO_RUN;
	forget_crashes(&decision.slot);
	decision.event = EVENT_SLOT_UNQUARANTINED;
	return decision;
}

struct slot_decision slot_enter(const struct slot *slot, uint64_t who, const struct given *given)
{
	struct slot_decision decision = {.slot = *slot};
	uint32_t trial_ms = given->rules->quarantine_trial_ms;

	assert(who != 0);
	if (on_trial(slot, given) && slot->trial_by != who)
		decision.refusal = REFUSED_SLOT_QUARANTINED;
	if (slot->state != SLOT_QUARANTINED)
		return decision;
	if (trial_ms == 0 || given->now.lease_ms - slot->since_ms < trial_ms) {
		decision.refusal = REFUSED_SLOT_QUARANTINED;
		return decision;
	}
	decision.slot.state = SLOT_ON_TRIAL;
	decision.slot.since_ms = given->now.lease_ms;
	decision.slot.trial_by = who;
	decision.event = EVENT_SLOT_UNQUARANTINED;
	return decision;
}

enum slot_state slot_state_now(const struct slot *slot, const struct given *given)
{
	return slot->state == SLOT_ON_TRIAL && !on_trial(slot, given) ? SLOT_FREE_TO_RUN : slot->state;
}

struct slot slot_rebase(const struct slot *slot, const struct given *given)
{
	struct slot rebased = *slot;

	forget_crashes(&rebased);
	rebased.since_ms = given->now.lease_ms;
	return rebased;
}

bool slot_split_pool(struct span name, struct span *ret_worker, struct span *ret_executor)
{
	size_t digits = 0;

	while (digits < name.len && name.data[name.len - digits - 1] >= '0' &&
		name.data[name.len - digits - 1] <= '9')
		digits++;
	if (digits == 0 || digits == name.len) /* an empty name, too */
		return false;
	const char *slash = memrchr(name.data, '/', name.len);
	const char *end = name.data + name.len - digits - 1; /* the hyphen */
	if (*end != '-' || !slash || slash == name.data || end <= slash + 1)
		return false;
	*ret_worker = (struct span){name.data, (size_t)(slash - name.data)};
	*ret_executor = (struct span){slash + 1, (size_t)(end - slash - 1)};
	return true;
}

const char *slot_state_name(enum slot_state state)
{
	switch (state) {
	case SLOT_FREE_TO_RUN:
		return "free";
	case SLOT_QUARANTINED:
		return "quarantined";
	case SLOT_ON_TRIAL:
		return "trial";
	}
	assert(0 && "a slot has a state");
	return "";
}
