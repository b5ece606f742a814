/*
 * Cron lines: five fields (minute hour day month weekday), or six with the second first, or @daily and its kin.
 *
 *   * or ?         any; ? in the two day fields alone
 *   1,5 or 1-5     a list, a range
 *   1-9/2 or 3/2   every second one; 3/2 goes on to the end of the field, and a star may stand before the slash
 *   JAN · MON      names of months and weekdays; 0 and 7 are Sunday
 *   L              the last day of the month; 5L or FRIL the last Friday of it
 *   5#2 · FRI#2    the second Friday of the month
 *
 * If both day fields are set, a day that matches either of them counts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "base/zone.h"

enum {
	CRON_BYTES_MAX = 256,
	CRON_YEARS_MAX = 40, /* what does not happen within these years never happens */
};

struct cron {
	uint64_t seconds, minutes; /* bit per value */
	uint32_t hours, days;
	uint16_t months;
	uint8_t weekdays;
	uint8_t nth[7]; /* per weekday: bits 1 to 5, the first to the fifth of the month; bit 6, the last */
	bool last_day;
	bool any_day, any_weekday; /* the field is * */
	bool follows_time;         /* the hour is * or has a step: see cron_next() */
};

/* Why a line is no cron line: in which field, at which text, and what would be right. */
struct cron_fault {
	const char *field; /* "hour"; NULL: the line as a whole */
	struct span at;
	const char *allowed; /* "must be from 0 to 23" */
};

/* 0, or -EINVAL and *ret_fault. */
int cron_read(struct span line, struct cron *ret_cron, struct cron_fault *ret_fault);

/*
 * The first second after `after_s` that the line names on the clock of the zone; INT64_MAX: none within CRON_YEARS_MAX years.
 *
 * A line with fixed hours names times of the local clock: one that a forward shift leaves out happens when the shift does, and
 * one that the clock shows twice happens the first time. A line whose hour is * or has a step follows real time: whatever the
 * clock shows counts, each time that it is shown.
 */
int64_t cron_next(const struct cron *cron, const struct zone *zone, int64_t after_s);
