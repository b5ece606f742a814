/*
 * The schedules of a store in memory, in order of id, and the time zones that they use.
 */
#pragma once

#include "core/flow/schedule.h"

/* What was asked for, in one piece with its texts. It never changes; turns and the memory share it by counting. */
struct definition {
	uint32_t uses;
	struct schedule schedule;
	struct schedule_plan plan;
};

struct known_schedule {
	struct definition *definition;
	struct schedule_state state;
	int64_t next_ms;
};

struct known_zone {
	struct zone *zone; /* NULL: there is none of that name */
	char name[ZONE_NAME_MAX + 1];
};

struct schedules {
	struct known_schedule **items;
	uint32_t count, cap;
	int64_t next_ms; /* of the first that is due; INT64_MAX: none */
	struct known_zone *zones;
	uint32_t zone_count, zone_cap;
};

void schedules_init(struct schedules *schedules);
void schedules_done(struct schedules *schedules);

/* The zone of that name, loaded once. *ret_zone is NULL if there is none. -ENOMEM, and faults of reading. */
int schedules_zone(struct schedules *schedules, struct span name, const struct zone **ret_zone);

/* Used once. -ENOMEM; -EPROTO: its cron line is none. */
int definition_new(
	struct schedules *schedules, const struct schedule *schedule, struct definition **ret_definition);
struct definition *definition_use(struct definition *definition);
void definition_free(struct definition *definition); /* one use less; NULL is fine */

/* NULL: no such schedule. Valid until the next turn. */
struct known_schedule *schedules_find(const struct schedules *schedules, struct span id);

/* Room for so many more, an item for each included: schedules_set() cannot fail then. -ENOMEM. */
int schedules_reserve(struct schedules *schedules, uint32_t more);

/* Takes a use of the definition over. It replaces the schedule of that id. */
void schedules_set(
	struct schedules *schedules, struct definition *definition, const struct schedule_state *state);
void schedules_drop(struct schedules *schedules, struct span id);
