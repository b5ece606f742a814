/*
 * Reading a cron line, and finding its next time.
 *
 * The zone is a row of pieces with a constant offset. Inside a piece the local clock is plain arithmetic, so the search is for
 * the next local time that matches (by day, then by second of the day), piece by piece. What a forward shift leaves out, and
 * what a backward shift shows again, is seen at the border of two pieces.
 */
#include "core/flow/cron.h"

#include <errno.h>
#include <string.h>

enum {
	DAY_S = 86400,
	LAST_OF_MONTH = 6, /* bit of cron.nth */
};

#define YEARS_MAX_S ((int64_t)CRON_YEARS_MAX * 366 * DAY_S)

/* ---- reading ----------------------------------------------------------------------------------------- */

enum cron_field {
	FIELD_SECOND,
	FIELD_MINUTE,
	FIELD_HOUR,
	FIELD_DAY,
	FIELD_MONTH,
	FIELD_WEEKDAY,
	FIELD_COUNT,
};

static const struct {
	const char *name;
	int least, most;
	const char *allowed;
} fields[FIELD_COUNT] = {
	{"second", 0, 59, "must be from 0 to 59"},
	{"minute", 0, 59, "must be from 0 to 59"},
	{"hour", 0, 23, "must be from 0 to 23"},
	{"day of the month", 1, 31, "must be from 1 to 31, or L"},
	{"month", 1, 12, "must be from 1 to 12, or from JAN to DEC"},
	{"weekday", 0, 7, "must be from 0 to 7, or from SUN to SAT; 0 and 7 are Sunday"},
};

static const char months[] = "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC";
static const char weekdays[] = "SUNMONTUEWEDTHUFRISAT";

struct parse {
	struct span left; /* of the part at hand */
	struct span part; /* between two commas */
	enum cron_field field;
	struct cron *cron;
	struct cron_fault *fault;
};

static bool wrong(struct parse *parse, const char *allowed)
{
	*parse->fault = (struct cron_fault){fields[parse->field].name, parse->part, allowed};
	return false;
}

static char upper(char byte)
{
	return byte >= 'a' && byte <= 'z' ? (char)(byte - 32) : byte;
}

static bool take(struct parse *parse, char byte)
{
	if (parse->left.len == 0 || upper(parse->left.data[0]) != byte)
		return false;
	parse->left.data++;
	parse->left.len--;
	return true;
}

static bool is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

/* Digits; -1: there are none, or too many. */
static int take_digits(struct parse *parse)
{
	int number = 0, digits = 0;

	for (; digits < 4 && parse->left.len > 0 && is_digit(parse->left.data[0]); digits++) {
		number = number * 10 + (parse->left.data[0] - '0');
		parse->left.data++;
		parse->left.len--;
	}
	return digits == 0 ? -1 : number;
}

/* The number of a name of three letters; -1: it is none. */
static int take_word(struct parse *parse, const char *words, int first)
{
	for (int i = 0; parse->left.len >= 3 && words[3 * i] != 0; i++) {
		if (upper(parse->left.data[0]) == words[3 * i] &&
			upper(parse->left.data[1]) == words[3 * i + 1] &&
			upper(parse->left.data[2]) == words[3 * i + 2]) {
			parse->left.data += 3;
			parse->left.len -= 3;
			return first + i;
		}
	}
	return -1;
}

static bool take_value(struct parse *parse, int *ret_value)
{
	int value = -1;

	if (parse->field == FIELD_MONTH)
		value = take_word(parse, months, 1);
	if (parse->field == FIELD_WEEKDAY)
		value = take_word(parse, weekdays, 0);
	if (value < 0)
		value = take_digits(parse);
	if (value < fields[parse->field].least || value > fields[parse->field].most)
		return wrong(parse, fields[parse->field].allowed);
	*ret_value = value;
	return true;
}

static void set_value(struct parse *parse, int value)
{
	struct cron *cron = parse->cron;
	uint64_t bit = UINT64_C(1) << value;

	switch (parse->field) {
	case FIELD_SECOND:
		cron->seconds |= bit;
		return;
	case FIELD_MINUTE:
		cron->minutes |= bit;
		return;
	case FIELD_HOUR:
		cron->hours |= (uint32_t)bit;
		return;
	case FIELD_DAY:
		cron->days |= (uint32_t)bit;
		return;
	case FIELD_MONTH:
		cron->months |= (uint16_t)bit;
		return;
	case FIELD_WEEKDAY:
		cron->weekdays |= (uint8_t)(1u << value % 7);
		return;
	case FIELD_COUNT:
		return;
	}
}

static void set_range(struct parse *parse, int from, int to, int step)
{
	for (int value = from; value <= to; value += step)
		set_value(parse, value);
}

/* "5#2", "FRIL": a weekday of the month, its number already taken. */
static bool take_nth(struct parse *parse, int weekday, bool *ret_taken)
{
	*ret_taken = true;
	if (take(parse, 'L')) {
		parse->cron->nth[weekday % 7] |= 1u << LAST_OF_MONTH;
		return true;
	}
	if (take(parse, '#')) {
		int nth = take_digits(parse);
		if (nth < 1 || nth > 5)
			return wrong(parse, "must have a number from 1 to 5 behind the #");
		parse->cron->nth[weekday % 7] |= (uint8_t)(1u << nth);
		return true;
	}
	*ret_taken = false;
	return true;
}

static bool take_step(struct parse *parse, int from, int to)
{
	int least = fields[parse->field].least, most = fields[parse->field].most;
	int step = take_digits(parse);

	if (parse->field == FIELD_WEEKDAY && most == 7 && to == 7 && from == 0)
		to = 6; /* Sunday once */
	if (step < 1)
		return wrong(parse, "must have a number from 1 on behind the /");
	if (step > most - least)
		return wrong(parse, "has a step that is longer than the field; write the values as a list");
	if (parse->field == FIELD_HOUR)
		parse->cron->follows_time = true;
	set_range(parse, from, to, step);
	return true;
}

static bool take_any(struct parse *parse)
{
	int least = fields[parse->field].least, most = fields[parse->field].most;

	if (take(parse, '/'))
		return take_step(parse, least, most);
	if (parse->field == FIELD_DAY)
		parse->cron->any_day = true;
	if (parse->field == FIELD_WEEKDAY)
		parse->cron->any_weekday = true;
	if (parse->field == FIELD_HOUR)
		parse->cron->follows_time = true;
	set_range(parse, least, parse->field == FIELD_WEEKDAY ? 6 : most, 1);
	return true;
}

static bool take_part(struct parse *parse)
{
	bool is_day = parse->field == FIELD_DAY || parse->field == FIELD_WEEKDAY, taken = false;
	int from, to;

	if (take(parse, '*') || (is_day && take(parse, '?')))
		return take_any(parse);
	if (parse->field == FIELD_DAY && take(parse, 'L')) {
		parse->cron->last_day = true;
		return true;
	}
	if (!take_value(parse, &from))
		return false;
	to = from;
	if (parse->field == FIELD_WEEKDAY && !take_nth(parse, from, &taken))
		return false;
	if (taken)
		return true;
	if (take(parse, '-')) {
		if (!take_value(parse, &to))
			return false;
		if (to < from)
			return wrong(parse, "is a range that goes backwards; write two ranges with a comma");
	} else if (parse->left.len > 0 && parse->left.data[0] == '/') {
		to = fields[parse->field].most; /* from there on */
	}
	if (take(parse, '/'))
		return take_step(parse, from, to);
	set_range(parse, from, to, 1);
	return true;
}

static bool take_field(struct parse *parse, struct span text)
{
	size_t at = 0;

	for (;;) {
		size_t begin = at;
		while (at < text.len && text.data[at] != ',')
			at++;
		parse->part = parse->left = (struct span){text.data + begin, at - begin};
		if (parse->part.len == 0)
			return wrong(parse, "must have a value before and behind each comma");
		if (!take_part(parse))
			return false;
		if (parse->left.len > 0)
			return wrong(parse, fields[parse->field].allowed);
		if (at == text.len)
			return true;
		at++;
	}
}

static const struct {
	const char *name, *line;
} nicknames[] = {
	{"@yearly", "0 0 1 1 *"},
	{"@annually", "0 0 1 1 *"},
	{"@monthly", "0 0 1 * *"},
	{"@weekly", "0 0 * * 0"},
	{"@daily", "0 0 * * *"},
	{"@midnight", "0 0 * * *"},
	{"@hourly", "0 * * * *"},
};

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t';
}

static bool is_nickname(struct span line, const char *name)
{
	if (line.len != strlen(name))
		return false;
	for (size_t i = 0; i < line.len; i++) {
		if (upper(line.data[i]) != upper(name[i]))
			return false;
	}
	return true;
}

/* The fields of the line, without blanks; -1: there are more than six. */
static int split(struct span line, struct span ret_parts[FIELD_COUNT])
{
	int count = 0;

	for (size_t at = 0; at < line.len;) {
		while (at < line.len && is_blank(line.data[at]))
			at++;
		size_t begin = at;
		while (at < line.len && !is_blank(line.data[at]))
			at++;
		if (at == begin)
			break;
		if (count == FIELD_COUNT)
			return -1;
		ret_parts[count++] = (struct span){line.data + begin, at - begin};
	}
	return count;
}

static int refuse_line(struct span line, const char *allowed, struct cron_fault *ret_fault)
{
	*ret_fault = (struct cron_fault){NULL, line, allowed};
	return -EINVAL;
}

static int read_nickname(struct span word, struct cron *ret_cron, struct cron_fault *ret_fault)
{
	for (size_t i = 0; i < sizeof nicknames / sizeof *nicknames; i++) {
		if (is_nickname(word, nicknames[i].name))
			return cron_read(span_of(nicknames[i].line), ret_cron, ret_fault);
	}
	return refuse_line(word, "must be @yearly, @monthly, @weekly, @daily or @hourly", ret_fault);
}

int cron_read(struct span line, struct cron *ret_cron, struct cron_fault *ret_fault)
{
	struct span parts[FIELD_COUNT];
	struct cron cron = {0};
	struct parse parse = {.cron = &cron, .fault = ret_fault};
	int count = line.len <= CRON_BYTES_MAX ? split(line, parts) : -1;

	if (count == 1 && parts[0].data[0] == '@')
		return read_nickname(parts[0], ret_cron, ret_fault);
	if (count != 5 && count != 6)
		return refuse_line(line,
			"must have five fields (minute hour day month weekday), or six with the second first",
			ret_fault);
	if (count == 5)
		cron.seconds = 1;
	for (int i = 0; i < count; i++) {
		parse.field = (enum cron_field)(FIELD_COUNT - count + i);
		if (!take_field(&parse, parts[i]))
			return -EINVAL;
	}
	*ret_cron = cron;
	return 0;
}

/* ---- the next time ------------------------------------------------------------------------------------- */

static bool weekday_matches(const struct cron *cron, int64_t days, int day, int month_days)
{
	int weekday = weekday_of_days(days);

	return (cron->weekdays & 1u << weekday) || (cron->nth[weekday] & 1u << ((day - 1) / 7 + 1)) ||
		((cron->nth[weekday] & 1u << LAST_OF_MONTH) && day + 7 > month_days);
}

static bool day_matches(const struct cron *cron, int64_t days, int64_t year, int month, int day)
{
	int month_days = days_of_month(year, month);
	bool by_day = (cron->days & UINT32_C(1) << day) || (cron->last_day && day == month_days);
	bool by_weekday = weekday_matches(cron, days, day, month_days);

	if (cron->any_day || cron->any_weekday)
		return by_day && by_weekday;
	return by_day || by_weekday;
}

/* The first value of the mask from `from` on; -1: none. */
static int first_of(uint64_t mask, int from)
{
	uint64_t left = from < 64 ? mask >> from << from : 0;

	return left != 0 ? __builtin_ctzll(left) : -1;
}

/* The first second of a day from `from` on that matches; -1: none. */
static int second_of_day(const struct cron *cron, int from)
{
	int hour = from / 3600, minute = from / 60 % 60, second = from % 60;

	for (int h; (h = first_of(cron->hours, hour)) >= 0; hour = h + 1, minute = second = 0) {
		if (h > hour)
			minute = second = 0;
		for (int m; (m = first_of(cron->minutes, minute)) >= 0; minute = m + 1, second = 0) {
			if (m > minute)
				second = 0;
			int s = first_of(cron->seconds, second);
			if (s >= 0)
				return h * 3600 + m * 60 + s;
		}
	}
	return -1;
}

static int64_t floor_days(int64_t seconds)
{
	return (seconds >= 0 ? seconds : seconds - (DAY_S - 1)) / DAY_S;
}

/* The first local time from `from_s` on that matches, if it lies before `end_s`; else INT64_MAX. */
static int64_t next_local(const struct cron *cron, int64_t from_s, int64_t end_s)
{
	int64_t days = floor_days(from_s), year;
	int from = (int)(from_s - days * DAY_S), month, day;

	while (days * DAY_S < end_s) {
		date_of_days(days, &year, &month, &day);
		if (!(cron->months & 1u << month)) {
			days += days_of_month(year, month) - day + 1;
			from = 0;
			continue;
		}
		int second = day_matches(cron, days, year, month, day) ? second_of_day(cron, from) : -1;
		if (second >= 0)
			return days * DAY_S + second < end_s ? days * DAY_S + second : INT64_MAX;
		days++;
		from = 0;
	}
	return INT64_MAX;
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Whatever the clock shows counts. */
static int64_t next_in_time(
	const struct cron *cron, const struct zone *zone, int64_t after_s, int64_t limit_s)
{
	for (uint32_t i = zone_find(zone, after_s + 1); i < zone->count; i++) {
		int64_t begin_s = larger(zone->shifts[i].at_s, after_s + 1),
			offset_s = zone->shifts[i].offset_s;
		int64_t end_s = smaller(zone_end(zone, i), limit_s);
		if (begin_s >= limit_s)
			break;
		int64_t local_s = next_local(cron, begin_s + offset_s, end_s + offset_s);
		if (local_s != INT64_MAX)
			return local_s - offset_s;
	}
	return INT64_MAX;
}

/* Times of the local clock, each once. `shown_s` is the local time that the clock had reached before the piece. */
static int64_t next_on_clock(
	const struct cron *cron, const struct zone *zone, int64_t after_s, int64_t limit_s)
{
	uint32_t i = zone_find(zone, after_s + 1);
	int64_t shown_s = i > 0 ? zone->shifts[i].at_s + zone->shifts[i - 1].offset_s : INT64_MIN;

	for (; i < zone->count; i++) {
		int64_t at_s = zone->shifts[i].at_s, offset_s = zone->shifts[i].offset_s;
		int64_t end_s = smaller(zone_end(zone, i), limit_s);
		if (at_s >= limit_s)
			break;
		/* what the shift left out happens with it */
		if (i > 0 && at_s > after_s && shown_s < at_s + offset_s &&
			next_local(cron, shown_s, at_s + offset_s) != INT64_MAX)
			return at_s;
		int64_t from_s = larger(at_s, after_s + 1) + offset_s;
		int64_t local_s = next_local(cron, larger(from_s, shown_s), end_s + offset_s);
		if (local_s != INT64_MAX)
			return local_s - offset_s;
		shown_s = larger(shown_s, end_s + offset_s);
	}
	return INT64_MAX;
}

int64_t cron_next(const struct cron *cron, const struct zone *zone, int64_t after_s)
{
	int64_t limit_s = after_s + YEARS_MAX_S;

	return cron->follows_time ? next_in_time(cron, zone, after_s, limit_s)
				  : next_on_clock(cron, zone, after_s, limit_s);
}
