/*
 * The row of a queue and an hour: what SMALL_STATS says. Text: the minutes of a cell, then for each cell that is not empty a
 * semicolon, its place in the hour, how many tasks were done, failed and cancelled, and waits as BUCKET:COUNT.
 *
 *	1;12 3 0 0 5:2 9:1;13 1 1 0 4:2
 */
#pragma once

#include "base/buf.h"
#include "core/flow/stats.h"

enum {
	HOUR_MINUTES = 60,
	HOUR_MS = 3600000,
	MINUTE_MS = 60000,
	STATS_KEY_HOUR_BYTES = 7, /* the hour since 1970, with zeros before it: keys are in order of time */
	STATS_ROW_BYTES_MAX = HOUR_MINUTES * 512,
};

/* Cell n covers `step` minutes from minute n * step of the hour on. */
struct stats_row {
	uint32_t step; /* minutes: 1, 10 or 60 */
	struct stats_cell cells[HOUR_MINUTES];
};

void stats_row_put(const struct stats_row *row, struct buf *out);

/* False: not what we wrote. */
bool stats_row_read(struct span data, struct stats_row *ret_row);

/* Cells of `step` minutes; `step` is not below that of the row. */
void stats_row_fold(struct stats_row *row, uint32_t step);

/* The hour and the queue of a key. False: not what we wrote. */
bool stats_key_read(struct span key, int64_t *ret_hour, struct span *ret_queue);
void stats_key_put(int64_t hour, struct span queue, struct buf *out);
