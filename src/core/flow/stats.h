/*
 * What a queue did over time: the tasks that ended in it, and how long tasks waited for their claim.
 *
 * A cell counts one stretch of time: a minute, ten minutes, an hour. Cells are added up, so that longer stretches, and several
 * queues together, are made of shorter ones. Waits are kept as a number per bucket, each bucket twice as long as the one before:
 * a percentile of a sum of cells is as good as that of one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/task/task.h"

enum {
	WAIT_BUCKETS =
		32, /* bucket 0: below 1 ms; n: from 2^(n-1) ms to below 2^n; the last has everything longer */
};

struct stats_cell {
	uint32_t done, failed, cancelled;
	uint32_t waits[WAIT_BUCKETS];
};

uint32_t wait_bucket(int64_t ms);

/* A task has come to that final state; other states count nothing. */
void stats_note_end(struct stats_cell *cell, enum task_state state);
void stats_note_wait(struct stats_cell *cell, int64_t ms);

/* No count runs over: it stays at its maximum. */
void stats_add(struct stats_cell *cell, const struct stats_cell *more);
bool stats_are_none(const struct stats_cell *cell);

uint64_t stats_waited(const struct stats_cell *cell); /* number of claims */

/* So many of a thousand waited no longer than this, as far as the buckets tell; -1: nobody waited. */
int64_t stats_wait_ms(const struct stats_cell *cell, uint32_t of_thousand);
