#include "core/flow/budget.h"

#include <assert.h>

#define DAY_MS (INT64_C(24) * 3600 * 1000)

static int64_t day_of(int64_t wall_ms)
{
	return wall_ms / DAY_MS;
}

int64_t day_end_ms(int64_t wall_ms)
{
	return (day_of(wall_ms) + 1) * DAY_MS;
}

struct day_budget day_budget_at(const struct day_budget *budget, int64_t wall_ms)
{
	struct day_budget now = *budget;

	/* a clock that was set back counts on in the later day: what was spent stays spent */
	if (day_of(wall_ms) <= budget->day)
		return now;
	now.day = day_of(wall_ms);
	now.told = now.spent = 0;
	for (int i = 0; i < DAY_PARTS; i++)
		now.used[i] = 0;
	return now;
}

static int64_t part_of(const struct usage *usage, enum day_part part)
{
	switch (part) {
	case DAY_USD:
		return usage->counts[USAGE_MICRO_USD];
	case DAY_TOKENS: /* what is read from a cache is no work of the model */
		return usage->counts[USAGE_INPUT] + usage->counts[USAGE_OUTPUT] +
			usage->counts[USAGE_CACHE_WRITE];
	case DAY_TURNS:
		return usage->counts[USAGE_TURNS];
	case DAY_TOOL_CALLS:
		return usage->counts[USAGE_TOOL_CALLS];
	case DAY_PARTS:
		break;
	}
	return 0;
}

static bool is_spent(const struct day_budget *budget, int part)
{
	return budget->most[part] != 0 && budget->used[part] >= budget->most[part];
}

/* Four fifths; without a product that could be too large. */
static bool is_near(const struct day_budget *budget, int part)
{
	return budget->most[part] != 0 && budget->used[part] >= budget->most[part] - budget->most[part] / 5;
}

/* What became true just now; the end of a budget before the approach to it. */
static struct day_budget_decision look(struct day_budget budget)
{
	struct day_budget_decision decision = {.event = EVENT_NONE};

	for (int i = 0; i < DAY_PARTS; i++) {
		bool spent = is_spent(&budget, i), near = is_near(&budget, i);
		if (spent && !(budget.spent & 1u << i) && decision.event != EVENT_BUDGET_SPENT) {
			decision.event = EVENT_BUDGET_SPENT;
			decision.part = (enum day_part)i;
		} else if (near && !spent && !(budget.told & 1u << i) && decision.event == EVENT_NONE) {
			decision.event = EVENT_BUDGET_NEAR;
			decision.part = (enum day_part)i;
		}
		budget.spent = spent ? budget.spent | 1u << i : budget.spent & ~(1u << i);
		budget.told = near ? budget.told | 1u << i : budget.told & ~(1u << i);
	}
	decision.budget = budget;
	return decision;
}

struct day_budget_decision day_budget_use(const struct day_budget *budget, const struct usage *before,
	const struct usage *after, int64_t wall_ms)
{
	struct day_budget now = day_budget_at(budget, wall_ms);

	for (int i = 0; i < DAY_PARTS; i++) {
		int64_t more = part_of(after, (enum day_part)i) - part_of(before, (enum day_part)i);
		assert(more >= 0); /* totals of an attempt never fall */
		now.used[i] = more < DAY_BUDGET_MAX - now.used[i] ? now.used[i] + more : DAY_BUDGET_MAX;
	}
	return look(now);
}

struct day_budget_decision day_budget_change(
	const struct day_budget *budget, const struct day_budget_patch *patch, int64_t wall_ms)
{
	struct day_budget now = day_budget_at(budget, wall_ms);
	bool changes = false;

	for (int i = 0; i < DAY_PARTS; i++) {
		if (!(patch->set & 1u << i))
			continue;
		assert(patch->wanted[i] >= 0);
		assert(patch->wanted[i] <= DAY_BUDGET_MAX);
		changes |= now.most[i] != patch->wanted[i];
		now.most[i] = patch->wanted[i];
	}
	struct day_budget_decision decision = look(now); /* who sets it sees what is used */
	decision.event = changes ? EVENT_BUDGET_UPDATED : EVENT_NONE;
	return decision;
}

bool day_budget_is_spent(const struct day_budget *budget, int64_t wall_ms)
{
	return day_budget_at(budget, wall_ms).spent != 0;
}

bool day_budget_limits(const struct day_budget *budget)
{
	for (int i = 0; i < DAY_PARTS; i++) {
		if (budget->most[i] != 0)
			return true;
	}
	return false;
}

bool day_budget_is_idle(const struct day_budget *budget, int64_t wall_ms)
{
	struct day_budget now = day_budget_at(budget, wall_ms);

	for (int i = 0; i < DAY_PARTS; i++) {
		if (now.used[i] != 0)
			return false;
	}
	return !day_budget_limits(&now);
}

bool day_budget_is_sound(const struct day_budget *budget)
{
	for (int i = 0; i < DAY_PARTS; i++) {
		if (budget->most[i] < 0 || budget->most[i] > DAY_BUDGET_MAX || budget->used[i] < 0 ||
			budget->used[i] > DAY_BUDGET_MAX)
			return false;
	}
	return budget->day >= 0 && budget->told < 1u << DAY_PARTS && budget->spent < 1u << DAY_PARTS;
}

const char *day_part_name(enum day_part part)
{
	static const char *const names[DAY_PARTS] = {"usd", "tokens", "turns", "toolCalls"};

	assert(part >= 0);
	assert(part < DAY_PARTS);
	return names[part];
}
