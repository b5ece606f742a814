/*
 * Budgets of a day: what the agents of a queue, or on an account, may use between two midnights of UTC.
 *
 * What attempts report is added to the day in which they report it. At four fifths of a part, and at all of it, there is one event a
 * day. When a part is spent nothing new is begun until the day has ended; work that is under way goes on, so a day may end above its
 * budget by what runs at that time. A price that is not known adds nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/event.h"
#include "core/task/usage.h"

/* Whose. Stored numbers. */
enum budget_scope {
	BUDGET_OF_QUEUE = 1,
	BUDGET_OF_ACCOUNT = 2,
};

enum day_part {
	DAY_USD, /* millionths of a dollar */
	DAY_TOKENS,
	DAY_TURNS,
	DAY_TOOL_CALLS,
	DAY_PARTS,
};

#define DAY_BUDGET_MAX (INT64_C(1) << 53)

struct day_budget {
	int64_t most[DAY_PARTS]; /* 0: no limit */
	int64_t used[DAY_PARTS];
	int64_t day;    /* since 1970, of what is counted */
	uint32_t told;  /* bits of parts whose four fifths were told in that day */
	uint32_t spent; /* … that are spent */
};

struct day_budget_patch {
	uint32_t set;              /* bits of parts that change */
	int64_t wanted[DAY_PARTS]; /* 0 lifts the limit */
};

struct day_budget_decision {
	enum event_kind event; /* EVENT_NONE: nothing to tell, though the budget may have changed */
	enum day_part part;    /* of the event */
	struct day_budget budget;
};

/* An attempt has used that much more since it said so last: `before` and `after` are its totals. */
struct day_budget_decision day_budget_use(const struct day_budget *budget, const struct usage *before,
	const struct usage *after, int64_t wall_ms);

struct day_budget_decision day_budget_change(
	const struct day_budget *budget, const struct day_budget_patch *patch, int64_t wall_ms);

/* As it is now: the next day begins with nothing used. */
struct day_budget day_budget_at(const struct day_budget *budget, int64_t wall_ms);

/* Is a part of it spent? Then nothing is begun before its day has ended. */
bool day_budget_is_spent(const struct day_budget *budget, int64_t wall_ms);

/* Nothing is limited and nothing was used. */
bool day_budget_is_idle(const struct day_budget *budget, int64_t wall_ms);

/* Has it any limit? */
bool day_budget_limits(const struct day_budget *budget);

/* The end of that day, wall clock. */
int64_t day_end_ms(int64_t wall_ms);

/* Is one that was read from disk consistent? */
bool day_budget_is_sound(const struct day_budget *budget);

/* As the API calls it. */
const char *day_part_name(enum day_part part);
