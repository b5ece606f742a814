/*
 * Schedules as rows: two small records of each. SMALL_SCHEDULE has what was asked for and is written when somebody changes it;
 * SMALL_SCHEDULE_STATE has what became of it and is written with every occurrence.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "core/command.h"
#include "core/flow/schedule.h"

/* What a task is made of, again and again: the parts of a create that a template may have. Times count from the planned one. */
int template_put(const struct command_create *create, struct buf *out);
/* Spans are borrowed from `data`, lists are in the arena. -EPROTO: not what we wrote; -ENOMEM. */
int template_read(struct span data, struct arena *arena, struct command_create *ret_create);

/* All but the id, which is the key. -EPROTO: not what we wrote. Spans are borrowed from `data`. */
int schedule_put(const struct schedule *schedule, struct buf *out);
int schedule_read(struct span data, struct schedule *ret_schedule);

int schedule_state_put(const struct schedule_state *state, struct buf *out);
int schedule_state_read(struct span data, struct schedule_state *ret_state);

enum {
	SCHEDULE_OF_TASK_MAX = COMMAND_ID_MAX + 24,
};

/* EXTRA_SCHEDULE of a task: the planned instant, a blank, the id of the schedule. */
struct span schedule_of_task_put(struct span id, int64_t at_ms, char text[SCHEDULE_OF_TASK_MAX]);
bool schedule_of_task_read(struct span data, struct span *ret_id, int64_t *ret_at_ms);
