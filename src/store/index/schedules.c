#include "store/index/schedules.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void schedules_init(struct schedules *schedules)
{
	*schedules = (struct schedules){.next_ms = INT64_MAX};
}

void schedules_done(struct schedules *schedules)
{
	for (uint32_t i = 0; i < schedules->cap; i++) {
		if (i < schedules->count)
			definition_free(schedules->items[i]->definition);
		free(schedules->items[i]);
	}
	for (uint32_t i = 0; i < schedules->zone_count; i++)
		zone_free(schedules->zones[i].zone);
	free(schedules->items);
	free(schedules->zones);
}

int schedules_zone(struct schedules *schedules, struct span name, const struct zone **ret_zone)
{
	struct known_zone known = {0};

	if (name.len == 0 || name.len > ZONE_NAME_MAX) {
		*ret_zone = name.len == 0 ? &zone_utc : NULL;
		return 0;
	}
	for (uint32_t i = 0; i < schedules->zone_count; i++) {
		if (span_is(name, schedules->zones[i].name)) {
			*ret_zone = schedules->zones[i].zone;
			return 0;
		}
	}
	int r = zone_load(NULL, name, &known.zone);
	if (r == -ENOENT || r == -EINVAL) { /* not remembered: the files may come */
		*ret_zone = NULL;
		return 0;
	}
	if (r < 0)
		return r;
	if (schedules->zone_count == schedules->zone_cap) {
		uint32_t cap = schedules->zone_cap ? schedules->zone_cap * 2 : 8;
		struct known_zone *grown = realloc(schedules->zones, cap * sizeof *grown);
		if (!grown) {
			zone_free(known.zone);
			return -ENOMEM;
		}
		schedules->zones = grown;
		schedules->zone_cap = cap;
	}
	memcpy(known.name, name.data, name.len);
	schedules->zones[schedules->zone_count++] = known;
	*ret_zone = known.zone;
	return 0;
}

static int plan_of(
	struct schedules *schedules, const struct schedule *schedule, struct schedule_plan *ret_plan)
{
	struct cron_fault ignored;
	struct schedule_plan plan = {
		.kind = schedule->kind,
		.every_ms = schedule->every_ms,
		.anchor_ms = schedule->anchor_ms,
		.at_ms = schedule->at_ms,
	};

	if (plan.kind == PLAN_CRON && cron_read(schedule->cron, &plan.cron, &ignored) < 0)
		return -EPROTO;
	int r = schedules_zone(schedules, schedule->tz, &plan.zone);
	if (r == 0)
		*ret_plan = plan;
	return r;
}

int definition_new(
	struct schedules *schedules, const struct schedule *schedule, struct definition **ret_definition)
{
	struct schedule_plan plan;
	int r = plan_of(schedules, schedule, &plan);

	if (r < 0)
		return r;
	struct definition *definition = malloc(sizeof *definition + schedule->id.len + schedule->cron.len +
		schedule->tz.len + schedule->task.len + schedule->template.len + schedule->maker.len);
	if (!definition)
		return -ENOMEM;
	*definition = (struct definition){.uses = 1, .schedule = *schedule, .plan = plan};
	struct schedule *copy = &definition->schedule;
	char *at = (char *)(definition + 1);
	struct span *const texts[] = {
		&copy->id, &copy->cron, &copy->tz, &copy->task, &copy->template, &copy->maker};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		if (texts[i]->len > 0)
			memcpy(at, texts[i]->data, texts[i]->len);
		texts[i]->data = at;
		at += texts[i]->len;
	}
	*ret_definition = definition;
	return 0;
}

struct definition *definition_use(struct definition *definition)
{
	definition->uses++;
	return definition;
}

void definition_free(struct definition *definition)
{
	if (!definition)
		return;
	assert(definition->uses > 0);
	if (--definition->uses == 0)
		free(definition);
}

/* Where the id stands, or would stand. */
static uint32_t place_of(const struct schedules *schedules, struct span id, bool *ret_there)
{
	uint32_t low = 0, high = schedules->count;

	*ret_there = false;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = span_compare(schedules->items[middle]->definition->schedule.id, id);
		if (order == 0)
			*ret_there = true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct known_schedule *schedules_find(const struct schedules *schedules, struct span id)
{
	bool there;
	uint32_t at = place_of(schedules, id, &there);

	return there ? schedules->items[at] : NULL;
}

int schedules_reserve(struct schedules *schedules, uint32_t more)
{
	while (schedules->cap < schedules->count + more) {
		uint32_t cap = schedules->cap ? schedules->cap * 2 : 8;
		struct known_schedule **grown =
			realloc(schedules->items, cap * sizeof(struct known_schedule *));
		if (!grown)
			return -ENOMEM;
		schedules->items = grown;
		while (schedules->cap < cap) {
			struct known_schedule *one = calloc(1, sizeof *one);
			if (!one)
				return -ENOMEM;
			schedules->items[schedules->cap++] = one;
		}
	}
	return 0;
}

static void look_for_next(struct schedules *schedules)
{
	schedules->next_ms = INT64_MAX;
	for (uint32_t i = 0; i < schedules->count; i++) {
		if (schedules->items[i]->next_ms < schedules->next_ms)
			schedules->next_ms = schedules->items[i]->next_ms;
	}
}

void schedules_set(
	struct schedules *schedules, struct definition *definition, const struct schedule_state *state)
{
	bool there;
	uint32_t at = place_of(schedules, definition->schedule.id, &there);

	if (!there) {
		assert(schedules->count < schedules->cap); /* schedules_reserve() was called */
		struct known_schedule *fresh = schedules->items[schedules->count];
		memmove(&schedules->items[at + 1], &schedules->items[at],
			(schedules->count - at) * sizeof *schedules->items);
		schedules->items[at] = fresh;
		schedules->count++;
		*fresh = (struct known_schedule){0};
	}
	struct known_schedule *known = schedules->items[at];
	definition_free(known->definition);
	known->definition = definition;
	known->state = *state;
	known->next_ms = schedule_next_ms(state, &definition->plan);
	look_for_next(schedules);
}

void schedules_drop(struct schedules *schedules, struct span id)
{
	bool there;
	uint32_t at = place_of(schedules, id, &there);

	if (!there)
		return;
	struct known_schedule *gone = schedules->items[at];
	schedules->count--;
	memmove(&schedules->items[at], &schedules->items[at + 1],
		(schedules->count - at) * sizeof *schedules->items);
	schedules->items[schedules->count] = gone; /* room for another */
	definition_free(gone->definition);         /* `id` may be its own: not looked at any more */
	gone->definition = NULL;
	look_for_next(schedules);
}
