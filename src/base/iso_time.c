#include "base/iso_time.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#define SECOND_MS INT64_C(1000)
#define LEAST_MS  INT64_C(-62167219200000) /* 0000-01-01T00:00:00.000Z */
#define MOST_MS   INT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */

enum {
	FRACTION_DIGITS_MAX = 9,
};

void iso_time_put(int64_t wall_ms, char text[ISO_TIME_BYTES + 1])
{
	wall_ms = wall_ms < LEAST_MS ? LEAST_MS : wall_ms > MOST_MS ? MOST_MS : wall_ms;
	time_t seconds = (wall_ms >= 0 ? wall_ms : wall_ms - (SECOND_MS - 1)) / SECOND_MS;
	struct tm parts;
	char room[96];

	gmtime_r(&seconds, &parts);
	int len = snprintf(room, sizeof room, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", parts.tm_year + 1900,
		parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
		(int)(wall_ms - seconds * SECOND_MS));

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
	struct tm moment = {.tm_year = values[0] - 1900,
		.tm_mon = values[1] - 1,
		.tm_mday = values[2],
		.tm_hour = values[3],
		.tm_min = values[4],
		.tm_sec = values[5]};
	int64_t seconds = timegm(&moment);
	if (moment.tm_mon != values[1] - 1) /* the 30th of February became one of March */
		return -EINVAL;
	*ret_wall_ms = seconds * SECOND_MS + ms;
	return 0;
}
