#include "base/iso_time.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#define SECOND_MS INT64_C(1000)
#define DAY_MS    (24 * 3600 * SECOND_MS)
#define LEAST_MS  INT64_C(-62167219200000) /* 0000-01-01T00:00:00.000Z */
#define MOST_MS   INT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */

enum {
	ERA_DAYS = 146097, /* of 400 years */
	EPOCH_SHIFT =
		719468, /* from 0000-03-01 to 1970-01-01: years that begin in March have their odd day last */
	FRACTION_DIGITS_MAX = 9,
};

struct date {
	int64_t year;
	int month, day;
};

static int64_t days_of(const struct date *date)
{
	int64_t year = date->year - (date->month <= 2);
	int64_t era = (year >= 0 ? year : year - 399) / 400, of_era = year - era * 400;
	int64_t of_year = (153 * (date->month + (date->month > 2 ? -3 : 9)) + 2) / 5 + date->day - 1;

	return era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year - EPOCH_SHIFT;
}

static struct date date_of(int64_t days)
{
	days += EPOCH_SHIFT;
	int64_t era = (days >= 0 ? days : days - (ERA_DAYS - 1)) / ERA_DAYS, of_era = days - era * ERA_DAYS;
	int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
	int64_t month = (5 * of_year + 2) / 153;
	struct date date = {.day = (int)(of_year - (153 * month + 2) / 5 + 1)};

	date.month = (int)(month < 10 ? month + 3 : month - 9);
	date.year = year + era * 400 + (date.month <= 2);
	return date;
}

void iso_time_put(int64_t wall_ms, char text[ISO_TIME_BYTES + 1])
{
	wall_ms = wall_ms < LEAST_MS ? LEAST_MS : wall_ms > MOST_MS ? MOST_MS : wall_ms;
	int64_t days = (wall_ms >= 0 ? wall_ms : wall_ms - (DAY_MS - 1)) / DAY_MS,
		ms = wall_ms - days * DAY_MS;
	struct date date = date_of(days);
	char room[64];
	int len = snprintf(room, sizeof room, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", (int)date.year,
		date.month, date.day, (int)(ms / 3600000), (int)(ms / 60000 % 60), (int)(ms / 1000 % 60),
		(int)(ms % 1000));

	assert(len == ISO_TIME_BYTES);
	memcpy(text, room, ISO_TIME_BYTES + 1);
}

/* So many digits at `*at`, which moves along; -EINVAL. */
static int take_digits(struct span text, size_t *at, int digits)
{
	int number = 0;

	for (int i = 0; i < digits; i++, ++*at) {
		if (*at >= text.len || text.data[*at] < '0' || text.data[*at] > '9')
			return -EINVAL;
		number = number * 10 + (text.data[*at] - '0');
	}
	return number;
}

static bool take_byte(struct span text, size_t *at, char byte)
{
	return *at < text.len && text.data[(*at)++] == byte;
}

/* ".6821" → 682; no point: 0. */
static int take_fraction(struct span text, size_t *at, int *ret_ms)
{
	int scale = 100, digits = 0;

	*ret_ms = 0;
	if (*at >= text.len || text.data[*at] != '.')
		return 0;
	for (++*at; *at < text.len && text.data[*at] >= '0' && text.data[*at] <= '9'; ++*at, digits++) {
		*ret_ms += scale * (text.data[*at] - '0');
		scale /= 10;
	}
	return digits >= 1 && digits <= FRACTION_DIGITS_MAX ? 0 : -EINVAL;
}

int iso_time_read(struct span text, int64_t *ret_wall_ms)
{
	static const struct {
		int digits, least, most;
		char after;
	} parts[] = {{4, 0, 9999, '-'}, {2, 1, 12, '-'}, {2, 1, 31, 'T'}, {2, 0, 23, ':'}, {2, 0, 59, ':'},
		{2, 0, 59, 0}};
	int values[6], ms;
	size_t at = 0;

	for (int i = 0; i < 6; i++) {
		values[i] = take_digits(text, &at, parts[i].digits);
		if (values[i] < parts[i].least || values[i] > parts[i].most)
			return -EINVAL;
		if (parts[i].after && !take_byte(text, &at, parts[i].after))
			return -EINVAL;
	}
	if (take_fraction(text, &at, &ms) < 0 || !take_byte(text, &at, 'Z') || at != text.len)
		return -EINVAL;
	struct date date = {values[0], values[1], values[2]};
	int64_t days = days_of(&date);
	struct date back = date_of(days);
	if (back.month != date.month) /* the 30th of February is no day */
		return -EINVAL;
	*ret_wall_ms = days * DAY_MS + values[3] * 3600 * SECOND_MS + values[4] * 60 * SECOND_MS +
		values[5] * SECOND_MS + ms;
	return 0;
}
