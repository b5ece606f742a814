#include "core/flow/group.h"

#include <assert.h>

static uint32_t sum(const uint32_t counts[TASK_STATE_COUNT], bool final_only, bool open_only)
{
	uint32_t members = 0;

	for (int i = TASK_NOWHERE + 1; i < TASK_STATE_COUNT; i++) {
		bool final = task_state_is_final((enum task_state)i);
		if (final ? !open_only : !final_only)
			members += counts[i];
	}
	return members;
}

uint32_t group_members(const struct group_state *group)
{
	return sum(group->count, false, false);
}

uint32_t group_open_members(const struct group_state *group)
{
	return sum(group->count, false, true);
}

bool group_has_ended(const struct group_state *group)
{
	return group->closed && group_open_members(group) == 0;
}

enum refusal group_use_refusal(const struct group_state *group, uint32_t principal, bool oversees)
{
	return oversees || principal == group->principal ? REFUSED_NOTHING : REFUSED_FORBIDDEN;
}

enum refusal group_join_refusal(const struct group_state *group, uint32_t principal, bool oversees)
{
	enum refusal refusal = group_use_refusal(group, principal, oversees);

	return refusal == REFUSED_NOTHING && group->closed ? REFUSED_GROUP_CLOSED : refusal;
}

enum group_verdict group_verdict(const struct group_state *group)
{
	if (!group_has_ended(group))
		return GROUP_OPEN;
	return group->count[TASK_FAILED] + group->count[TASK_CANCELLED] > 0 ? GROUP_DEAD : GROUP_DONE;
}

/* What the change means for those that wait. What was let go is not called back: only what the group blocked waits again. */
static void judge(struct group_decision *decision, const struct group_state *before, int64_t now_ms)
{
	enum group_verdict was = group_verdict(before), is = group_verdict(&decision->group);

	if (was == is)
		return;
	decision->ends = was == GROUP_OPEN;
	if (is == GROUP_OPEN)
		decision->follow = was == GROUP_DEAD ? FOLLOW_PARENT_REOPENED : FOLLOW_NOTHING;
	else if (is == GROUP_DEAD)
		decision->follow = FOLLOW_PARENT_DEAD;
	else
		decision->follow = was == GROUP_DEAD ? FOLLOW_PARENT_REVIVED : FOLLOW_PARENT_DONE;
	decision->group.ended_ms = is == GROUP_OPEN ? 0 : was == GROUP_OPEN ? now_ms : before->ended_ms;
}

static struct group_decision refuse(const struct group_state *group, enum refusal refusal)
{
	return (struct group_decision){.refusal = refusal, .group = *group};
}

struct group_decision group_move(
	const struct group_state *group, enum task_state from, enum task_state to, int64_t now_ms)
{
	struct group_decision decision = {.group = *group};

	if (to == TASK_NOWHERE && task_state_is_final(from)) {
		decision.group.purged[from]++;
		return decision;
	}
	if (from != TASK_NOWHERE) {
		assert(group->count[from] > group->purged[from]); /* it was counted where it stood */
		decision.group.count[from]--;
	}
	if (to != TASK_NOWHERE)
		decision.group.count[to]++;
	judge(&decision, group, now_ms);
	return decision;
}

struct group_decision group_close(
	const struct group_state *group, uint32_t principal, bool oversees, int64_t now_ms)
{
	enum refusal refusal = group_use_refusal(group, principal, oversees);
	struct group_decision decision = {.group = *group};

	if (refusal != REFUSED_NOTHING)
		return refuse(group, refusal);
	decision.repeated = group->closed;
	if (group->closed)
		return decision;
	decision.group.closed = true;
	decision.event = EVENT_GROUP_CLOSED;
	judge(&decision, group, now_ms);
	return decision;
}

struct group_decision group_remove(
	const struct group_state *group, uint32_t principal, bool oversees, bool waited_for)
{
	enum refusal refusal = group_use_refusal(group, principal, oversees);

	if (refusal == REFUSED_NOTHING && (!group_has_ended(group) || waited_for))
		refusal = REFUSED_IN_USE;
	if (refusal != REFUSED_NOTHING)
		return refuse(group, refusal);
	return (struct group_decision){.event = EVENT_GROUP_REMOVED, .group = *group};
}

bool group_is_past(const struct group_state *group, int64_t now_ms, int64_t keep_ms)
{
	uint32_t members = group_members(group);

	if (!group_has_ended(group) || sum(group->purged, true, false) != members)
		return false;
	return members > 0 || group->ended_ms <= now_ms - keep_ms;
}

bool group_is_sound(const struct group_state *group)
{
	bool sound = group->number != 0 && (group->ended_ms != 0) == group_has_ended(group);

	for (int i = TASK_NOWHERE; i < TASK_STATE_COUNT; i++) {
		bool final = i != TASK_NOWHERE && task_state_is_final((enum task_state)i);
		sound = sound && group->purged[i] <= (final ? group->count[i] : 0);
	}
	return sound && group->count[TASK_NOWHERE] == 0;
}
