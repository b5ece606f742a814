/*
 * Is a row that was read one that we wrote?
 *
 * The disk is the world: what it says may be wrong, and that is a fault and never a bug. Every row that goes into memory
 * or into a decision is asked here first; behind that the assertions hold, whatever a file contained.
 */
#pragma once

#include "store/turn/turn.h"

/* Moments, and numbers that are counted up, lie between these: a sum of two is still a number. */
#define SOUND_NUMBER_MAX (INT64_MAX / 4)

static inline bool number_is_sound(int64_t number)
{
	return number >= -SOUND_NUMBER_MAX && number <= SOUND_NUMBER_MAX;
}

/* A task that is not final has its holder already as claim.holder; the others have none. */
bool task_row_is_sound(const struct names *names, const struct task_row *row, const struct task *task);
bool outline_is_sound(const struct names *names, const struct task_outline *outline);
bool worker_row_is_sound(const struct names *names, const struct worker_row *row);
bool slot_is_sound(const struct slot *slot);

/* The row of a task that is final, because the memory does not have it. -ENOENT: no such task. */
int store_get_final(struct store *store, int64_t seq, struct arena *arena, struct task_row *ret_row);

/* The row is damaged: -EBADMSG, and the complaint says which one it is. */
/* Can everything else be served? History, final tasks and logs are read by those who ask for them, and by nobody else. */
bool damage_is_of_history(const struct store *store, const struct damage *damage);

int store_damaged(const struct store *store, const char *table, int64_t row);

/* What a look-up gave that must find something: without it the row of the task is damaged. */
int store_must_find(const struct store *store, int fault, int64_t task);
