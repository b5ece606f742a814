#include "cli/frame/when.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/duration.h"

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
#define WEEK   (7 * DAY)

#define DURATION_MAX (INT64_C(3650) * DAY)

static const struct unit {
	const char *name;
	int64_t ms;
} units[] = {{"w", WEEK}, {"d", DAY}, {"h", HOUR}, {"m", MINUTE}, {"min", MINUTE}, {"s", SECOND}, {"ms", 1}};

enum {
	UNIT_COUNT = sizeof units / sizeof *units,
};

/* The unit at the head of the text; the largest first, each once: 1h30m, not 30m1h. */
static const struct unit *unit_at(const char *text, const struct unit *after)
{
	size_t len = 0;

	while (isalpha((unsigned char)text[len]))
		len++;
	for (const struct unit *unit = units; unit < units + UNIT_COUNT; unit++) {
		if ((!after || unit->ms < after->ms) && strlen(unit->name) == len &&
			strncmp(unit->name, text, len) == 0)
			return unit;
	}
	return NULL;
}

int when_duration(const char *text, int64_t *ret_ms)
{
	const struct unit *unit = NULL;
	int64_t sum = 0;

	if (strcmp(text, "0") == 0) {
		*ret_ms = 0;
		return 0;
	}
	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	while (*text) {
		char *end;
		if (!isdigit((unsigned char)*text))
			return -EINVAL;
		errno = 0;
		long long count = strtoll(text, &end, 10);
		end += *end == ' '; /* 41 min, as we print it */
		unit = unit_at(end, unit);
		if (errno || !unit || count > DURATION_MAX / unit->ms)
			return -EINVAL;
		sum += count * unit->ms;
		if (sum > DURATION_MAX)
			return -EINVAL;
		text = end + strlen(unit->name);
		text += text[0] == ' ' && isdigit((unsigned char)text[1]);
	}
	*ret_ms = sum;
	return 0;
}

/* So many digits, and nothing else; the text moves behind them. */
static bool take_digits(const char **text, int digits, int *ret_number)
{
	int number = 0;

	for (int i = 0; i < digits; i++, ++*text) {
		if (!isdigit((unsigned char)**text))
			return false;
		number = number * 10 + (**text - '0');
	}
	*ret_number = number;
	return true;
}

static bool take_byte(const char **text, char byte)
{
	if (**text != byte)
		return false;
	++*text;
	return true;
}

/* "Z", "+02:00", "-0530" or nothing (local time). False: something else. */
static bool read_zone(const char *text, struct tm *broken, int64_t *ret_ms)
{
	int hours, minutes;

	if (*text == 0) {
		broken->tm_isdst = -1;
		*ret_ms = (int64_t)mktime(broken) * SECOND;
		return true;
	}
	*ret_ms = (int64_t)timegm(broken) * SECOND;
	if (strcmp(text, "Z") == 0 || strcmp(text, "z") == 0)
		return true;
	char sign = *text++;
	if ((sign != '+' && sign != '-') || !take_digits(&text, 2, &hours))
		return false;
	take_byte(&text, ':');
	if (!take_digits(&text, 2, &minutes) || *text || hours > 14 || minutes > 59)
		return false;
	int64_t offset = hours * HOUR + minutes * MINUTE;
	*ret_ms += sign == '+' ? -offset : offset;
	return true;
}

static bool is_real_date(const struct tm *wanted)
{
	struct tm same = *wanted;

	timegm(&same); /* makes March of the 30th of February */
	return same.tm_mday == wanted->tm_mday && same.tm_mon == wanted->tm_mon &&
		same.tm_hour == wanted->tm_hour && same.tm_min == wanted->tm_min &&
		same.tm_sec == wanted->tm_sec;
}

/* HH:MM, and seconds if they are there; fractions of one do not count. */
static bool take_time(const char **text, struct tm *broken)
{
	if (!take_digits(text, 2, &broken->tm_hour) || !take_byte(text, ':') ||
		!take_digits(text, 2, &broken->tm_min))
		return false;
	if (take_byte(text, ':') && !take_digits(text, 2, &broken->tm_sec))
		return false;
	if (take_byte(text, '.'))
		*text += strspn(*text, "0123456789");
	return true;
}

static int read_date(const char *text, int64_t *ret_ms)
{
	struct tm broken = {0};

	if (!take_digits(&text, 4, &broken.tm_year) || !take_byte(&text, '-') ||
		!take_digits(&text, 2, &broken.tm_mon) || !take_byte(&text, '-') ||
		!take_digits(&text, 2, &broken.tm_mday))
		return -EINVAL;
	if ((take_byte(&text, 'T') || take_byte(&text, ' ')) && !take_time(&text, &broken))
		return -EINVAL;
	broken.tm_year -= 1900;
	broken.tm_mon -= 1;
	return broken.tm_mon >= 0 && is_real_date(&broken) && read_zone(text, &broken, ret_ms) ? 0 : -EINVAL;
}

/* "22:00": the next time that the clock here shows it. */
static int read_clock(const char *text, int64_t now_ms, int64_t *ret_ms)
{
	time_t now = (time_t)(now_ms / SECOND);
	struct tm broken, given = {0};

	if (!localtime_r(&now, &broken) || !take_time(&text, &given) || *text || given.tm_hour > 23 ||
		given.tm_min > 59 || given.tm_sec > 59)
		return -EINVAL;
	for (int day = 0; day < 2; day++) {
		struct tm at = broken;
		at.tm_hour = given.tm_hour;
		at.tm_min = given.tm_min;
		at.tm_sec = given.tm_sec;
		at.tm_mday += day;
		at.tm_isdst = -1;
		*ret_ms = (int64_t)mktime(&at) * SECOND;
		if (*ret_ms > now_ms)
			break;
	}
	return 0;
}

int when_moment(const char *text, int64_t now_ms, int64_t *ret_ms)
{
	int64_t from_now_ms;
	size_t digits = strspn(text, "0123456789");

	if (strcmp(text, "now") == 0) {
		*ret_ms = now_ms;
		return 0;
	}
	if (when_duration(strncmp(text, "in ", 3) == 0 ? text + 3 : text, &from_now_ms) == 0) {
		*ret_ms = now_ms + from_now_ms;
		return 0;
	}
	if (digits >= 12 && digits <= 15 && text[digits] == 0) {
		*ret_ms = strtoll(text, NULL, 10);
		return 0;
	}
	return text[digits] == ':' ? read_clock(text, now_ms, ret_ms) : read_date(text, ret_ms);
}

int when_put_duration(struct buf *out, int64_t ms, bool exact)
{
	return duration_put(out, ms, exact ? 2 : 1);
}

int when_put_relative(struct buf *out, int64_t moment_ms, int64_t now_ms)
{
	int64_t past_ms = now_ms - moment_ms;

	if (past_ms < SECOND && past_ms > -SECOND)
		return buf_printf(out, "now");
	if (past_ms < 0)
		buf_printf(out, "in ");
	when_put_duration(out, past_ms < 0 ? -past_ms : past_ms, false);
	return past_ms < 0 ? buf_fault(out) : buf_printf(out, " ago");
}

int when_put_clock(struct buf *out, int64_t moment_ms)
{
	time_t seconds = moment_ms / SECOND;
	struct tm broken;
	char text[32];

	if (!localtime_r(&seconds, &broken) || strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &broken) == 0)
		return buf_printf(out, "%lld", (long long)moment_ms);
	return buf_printf(out, "%s", text);
}

int when_put_time(struct buf *out, int64_t moment_ms, int64_t now_ms)
{
	time_t seconds = moment_ms / SECOND, now = now_ms / SECOND;
	struct tm then, today;
	char text[32];

	if (!localtime_r(&seconds, &then) || !localtime_r(&now, &today))
		return buf_printf(out, "%lld", (long long)moment_ms);
	bool same = then.tm_year == today.tm_year && then.tm_yday == today.tm_yday;
	bool year = then.tm_year == today.tm_year;
	if (strftime(text, sizeof text,
		    same           ? "%H:%M:%S"
			    : year ? "%e %b %H:%M:%S"
				   : "%e %b %Y %H:%M:%S",
		    &then) == 0)
		return buf_printf(out, "%lld", (long long)moment_ms);
	return buf_printf(out, "%s", text[0] == ' ' ? text + 1 : text);
}
