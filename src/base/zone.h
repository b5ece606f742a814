/*
 * Time zones: the shifts of a zone's clock as a table, from the system's TZif files (RFC 8536).
 *
 * A table is loaded once and never changes. Its last rule is written out until ZONE_LAST_YEAR, so that a look-up is a search
 * in the table and nothing else. UTC needs no file.
 */
#pragma once

#include <stdint.h>

#include "base/span.h"

enum {
	ZONE_NAME_MAX = 64,     /* bytes */
	ZONE_LAST_YEAR = 2150,  /* the rule of a zone is written out so far */
	ZONE_SHIFTS_MAX = 4000, /* of one zone */
};

/* From this second on the local clock is that much ahead of UTC. */
struct zone_shift {
	int64_t at_s; /* the first of a zone is at ZONE_BEGIN */
	int32_t offset_s;
};

#define ZONE_BEGIN (INT64_MIN / 4)
#define ZONE_END   (INT64_MAX / 4)

struct zone {
	uint32_t count;
	struct zone_shift shifts[];
};

/* UTC, without a file. */
extern const struct zone zone_utc;

/* A zone by its name, as in Europe/Berlin; to be freed by zone_free(). -ENOENT: the system has no such zone; -EINVAL: that is
 * no name of a zone, or its file is none that we can read. `directory` is where the files are; NULL: the system's. */
int zone_load(const char *directory, struct span name, struct zone **ret_zone);

/* The table of a TZif file. -EINVAL, -ENOMEM. */
int zone_read(struct span file, struct zone **ret_zone);

void zone_free(struct zone *zone); /* NULL is fine */

/* The index of the shift that holds at that second. */
uint32_t zone_find(const struct zone *zone, int64_t at_s);

/* When the shift of that index ends: where the next one begins. */
static inline int64_t zone_end(const struct zone *zone, uint32_t index)
{
	return index + 1 < zone->count ? zone->shifts[index + 1].at_s : ZONE_END;
}

/* Days since 1970 of a date of the Gregorian calendar, and back. Months are 1 to 12. */
int64_t days_of_date(int64_t year, int month, int day);
void date_of_days(int64_t days, int64_t *ret_year, int *ret_month, int *ret_day);
int days_of_month(int64_t year, int month);

/* 0 is Sunday. */
static inline int weekday_of_days(int64_t days)
{
	return (int)(((days + 4) % 7 + 7) % 7);
}
