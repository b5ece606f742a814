/*
 * TZif files, read into a table of shifts.
 *
 * Rejected: localtime() and mktime(). They know one zone for the whole process, say nothing about gaps and repeated hours, and
 * what they answer cannot be replayed from a seed.
 */
#include "base/zone.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/take.h"

enum {
	FILE_BYTES_MAX = 256 << 10,
	HEAD_BYTES = 44,
	TYPE_BYTES = 6,
	DAY_S = 86400,
	OFFSET_MAX_S = 26 * 3600,
	RULE_TIME_MAX_H = 167,
};

#define SYSTEM_DIRECTORY "/usr/share/zoneinfo"

const struct zone zone_utc = {.count = 1, .shifts = {{ZONE_BEGIN, 0}}};

/* ---- the calendar ----------------------------------------------------------------------------------- */

/* Years begin in March here, so that the leap day is the last one of its year. An era is 400 years. */
int64_t days_of_date(int64_t year, int month, int day)
{
	int64_t y = month <= 2 ? year - 1 : year;
	int64_t era = (y >= 0 ? y : y - 399) / 400;
	int64_t of_era = y - era * 400;
	int64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

void date_of_days(int64_t days, int64_t *ret_year, int *ret_month, int *ret_day)
{
	int64_t z = days + 719468;
	int64_t era = (z >= 0 ? z : z - 146096) / 146097;
	int64_t day = z - era * 146097;
	int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	int64_t of_year = day - (365 * year + year / 4 - year / 100);
	int64_t month = (5 * of_year + 2) / 153;

	*ret_day = (int)(of_year - (153 * month + 2) / 5 + 1);
	*ret_month = (int)(month < 10 ? month + 3 : month - 9);
	*ret_year = year + era * 400 + (*ret_month <= 2);
}

int days_of_month(int64_t year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month - 1] + (month == 2 && leap);
}

/* ---- a table that grows ----------------------------------------------------------------------------- */

static int add_shift(struct zone *zone, int64_t at_s, int64_t offset_s)
{
	const struct zone_shift *last = zone->count > 0 ? &zone->shifts[zone->count - 1] : NULL;

	if (offset_s < -OFFSET_MAX_S || offset_s > OFFSET_MAX_S || at_s < ZONE_BEGIN || at_s > ZONE_END)
		return -EINVAL;
	if (last && at_s <= last->at_s)
		return -EINVAL; /* shifts stand in order */
	if (last && last->offset_s == offset_s)
		return 0; /* only its name changes, or whether it counts as summer time */
	if (zone->count == ZONE_SHIFTS_MAX)
		return -EINVAL;
	zone->shifts[zone->count++] = (struct zone_shift){at_s, (int32_t)offset_s};
	return 0;
}

/* ---- the rule at the end of a file: CET-1CEST,M3.5.0,M10.5.0/3 -------------------------------------------- */

/* One end of summer time. */
struct turn_day {
	char kind; /* 'M': month, week, weekday; 'J': day 1 to 365, no leap days; 'N': day 0 to 365 */
	int month, week, day;
	int64_t time_s; /* of the local clock before it */
};

struct rule {
	const char *at, *end;
	bool broken;
	int64_t standard_s, summer_s; /* ahead of UTC */
	bool has_summer;
	struct turn_day begins, ends;
};

static bool take_byte(struct rule *rule, char byte)
{
	bool there = rule->at < rule->end && *rule->at == byte;

	rule->at += there;
	return there;
}

static int64_t take_number(struct rule *rule, int64_t most)
{
	int64_t number = 0;
	const char *first = rule->at;

	while (rule->at < rule->end && *rule->at >= '0' && *rule->at <= '9' && number <= most)
		number = number * 10 + (*rule->at++ - '0');
	if (rule->at == first || number > most)
		rule->broken = true;
	return rule->broken ? 0 : number;
}

/* "CET" or "<+03>" */
static void skip_name(struct rule *rule)
{
	const char *first = rule->at;
	bool quoted = take_byte(rule, '<');

	while (rule->at < rule->end &&
		(quoted ? *rule->at != '>' : ((*rule->at | 32) >= 'a' && (*rule->at | 32) <= 'z')))
		rule->at++;
	if ((quoted && !take_byte(rule, '>')) || rule->at - first < 3)
		rule->broken = true;
}

/* hh[:mm[:ss]] with a sign, in seconds. */
static int64_t take_time(struct rule *rule)
{
	bool minus = take_byte(rule, '-');

	if (!minus)
		take_byte(rule, '+');
	int64_t seconds = take_number(rule, RULE_TIME_MAX_H) * 3600;
	if (take_byte(rule, ':'))
		seconds += take_number(rule, 59) * 60;
	if (take_byte(rule, ':'))
		seconds += take_number(rule, 59);
	return minus ? -seconds : seconds;
}

static struct turn_day take_day(struct rule *rule)
{
	struct turn_day turn = {.kind = 'N', .time_s = 2 * 3600};

	if (take_byte(rule, 'M')) {
		turn.kind = 'M';
		turn.month = (int)take_number(rule, 12);
		rule->broken |= !take_byte(rule, '.');
		turn.week = (int)take_number(rule, 5);
		rule->broken |= !take_byte(rule, '.');
		turn.day = (int)take_number(rule, 6);
		rule->broken |= turn.month == 0 || turn.week == 0;
	} else {
		turn.kind = take_byte(rule, 'J') ? 'J' : 'N';
		turn.day = (int)take_number(rule, 365);
		rule->broken |= turn.kind == 'J' && turn.day == 0;
	}
	if (take_byte(rule, '/'))
		turn.time_s = take_time(rule);
	return turn;
}

static bool rule_read(struct span text, struct rule *ret_rule)
{
	struct rule rule = {.at = text.data, .end = text.data + text.len};

	skip_name(&rule);
	rule.standard_s = -take_time(&rule);
	rule.has_summer = !rule.broken && rule.at < rule.end;
	if (rule.has_summer) {
		skip_name(&rule);
		rule.summer_s =
			rule.at < rule.end && *rule.at != ',' ? -take_time(&rule) : rule.standard_s + 3600;
		rule.broken |= !take_byte(&rule, ',');
		rule.begins = take_day(&rule);
		rule.broken |= !take_byte(&rule, ',');
		rule.ends = take_day(&rule);
	}
	*ret_rule = rule;
	return !rule.broken && rule.at == rule.end;
}

/* Days since 1970 of that day in that year. */
static int64_t turn_days(const struct turn_day *turn, int64_t year)
{
	int64_t first = days_of_date(year, turn->kind == 'M' ? turn->month : 1, 1);

	if (turn->kind == 'N')
		return first + turn->day;
	if (turn->kind == 'J') /* day 60 is always the first of March */
		return first + turn->day - 1 + (turn->day >= 60 && days_of_month(year, 2) == 29);
	int day = 1 + (turn->day - weekday_of_days(first) + 7) % 7 + (turn->week - 1) * 7;
	while (day > days_of_month(year, turn->month))
		day -= 7; /* week 5 is the last one */
	return first + day - 1;
}

/* The rule, from the year of the last shift on. */
static int write_out(struct zone *zone, const struct rule *rule)
{
	int64_t last_s = zone->shifts[zone->count - 1].at_s, year = 1970;
	int month, day, r = 0;

	if (!rule->has_summer)
		return last_s == ZONE_BEGIN ? 0 : add_shift(zone, last_s + 1, rule->standard_s);
	if (last_s > 0)
		date_of_days(last_s / DAY_S, &year, &month, &day);
	for (; r == 0 && year <= ZONE_LAST_YEAR; year++) {
		struct zone_shift summer = {
			turn_days(&rule->begins, year) * DAY_S + rule->begins.time_s - rule->standard_s,
			(int32_t)rule->summer_s};
		struct zone_shift winter = {
			turn_days(&rule->ends, year) * DAY_S + rule->ends.time_s - rule->summer_s,
			(int32_t)rule->standard_s};
		bool south = winter.at_s < summer.at_s;
		const struct zone_shift both[2] = {south ? winter : summer, south ? summer : winter};
		for (int i = 0; r == 0 && i < 2; i++) {
			if (both[i].at_s > zone->shifts[zone->count - 1].at_s && both[i].at_s > last_s)
				r = add_shift(zone, both[i].at_s, both[i].offset_s);
		}
	}
	return r;
}

/* ---- the file ------------------------------------------------------------------------------------------ */

struct tzif {
	const unsigned char *at, *end;
	uint32_t ut_count, std_count, leap_count, time_count, type_count, char_count;
};

static int64_t big_endian(const unsigned char *at, int bytes)
{
	uint64_t value = at[0] & 0x80 ? UINT64_MAX : 0;

	for (int i = 0; i < bytes; i++)
		value = value << 8 | at[i];
	return (int64_t)value;
}

static bool take_head(struct tzif *file, unsigned char *ret_version)
{
	uint32_t *const counts[] = {&file->ut_count, &file->std_count, &file->leap_count, &file->time_count,
		&file->type_count, &file->char_count};

	if (file->end - file->at < HEAD_BYTES || memcmp(file->at, "TZif", 4) != 0)
		return false;
	*ret_version = file->at[4];
	for (int i = 0; i < 6; i++)
		*counts[i] = (uint32_t)big_endian(file->at + 20 + 4 * i, 4);
	file->at += HEAD_BYTES;
	return file->time_count < ZONE_SHIFTS_MAX && file->type_count >= 1 && file->type_count <= 256 &&
		file->char_count <= 4096 && file->leap_count <= 4096 && file->ut_count <= 256 &&
		file->std_count <= 256;
}

static size_t body_bytes(const struct tzif *file, size_t width)
{
	return file->time_count * (width + 1) + file->type_count * TYPE_BYTES + file->char_count +
		file->leap_count * (width + 4) + file->std_count + file->ut_count;
}

static int take_shifts(const struct tzif *file, int width, struct zone *zone)
{
	const unsigned char *times = file->at, *indices = times + file->time_count * (size_t)width;
	const unsigned char *types = indices + file->time_count;
	int r = add_shift(zone, ZONE_BEGIN, big_endian(types, 4));

	for (uint32_t i = 0; r == 0 && i < file->time_count; i++) {
		int64_t at_s = big_endian(times + i * (size_t)width, width);
		if (indices[i] >= file->type_count)
			return -EINVAL;
		/* some files begin with the age of the universe */
		if (at_s > -(INT64_C(1) << 40))
			r = add_shift(zone, at_s, big_endian(types + indices[i] * (size_t)TYPE_BYTES, 4));
		else
			zone->shifts[0].offset_s =
				(int32_t)big_endian(types + indices[i] * (size_t)TYPE_BYTES, 4);
	}
	return r;
}

static int read_into(struct tzif *file, struct zone *zone)
{
	unsigned char version;
	struct rule rule;
	int width = 4;

	if (!take_head(file, &version) || (size_t)(file->end - file->at) < body_bytes(file, 4))
		return -EINVAL;
	if (version >= '2') { /* the same again with more room */
		width = 8;
		file->at += body_bytes(file, 4);
		if (!take_head(file, &version) || (size_t)(file->end - file->at) < body_bytes(file, 8))
			return -EINVAL;
	}
	if (file->leap_count > 0)
		return -EINVAL; /* its seconds are not those of our clock */
	int r = take_shifts(file, width, zone);
	if (r < 0 || width == 4)
		return r;
	file->at += body_bytes(file, 8);
	struct span footer = {(const char *)file->at, (size_t)(file->end - file->at)};
	if (footer.len < 2 || footer.data[0] != '\n' || footer.data[footer.len - 1] != '\n')
		return -EINVAL;
	footer = (struct span){footer.data + 1, footer.len - 2};
	if (footer.len == 0)
		return 0;
	return rule_read(footer, &rule) ? write_out(zone, &rule) : -EINVAL;
}

int zone_read(struct span text, struct zone **ret_zone)
{
	struct tzif file = {
		.at = (const unsigned char *)text.data, .end = (const unsigned char *)text.data + text.len};
	struct zone *zone = calloc(1, sizeof *zone + ZONE_SHIFTS_MAX * sizeof *zone->shifts);
	int r = zone ? read_into(&file, zone) : -ENOMEM;

	if (r < 0) {
		free(zone);
		return r;
	}
	struct zone *fit = realloc(zone, sizeof *zone + zone->count * sizeof *zone->shifts);
	*ret_zone = fit ? fit : zone;
	return 0;
}

/* Letters, digits and _+- in parts between slashes: nothing that leads out of the directory. */
static bool is_zone_name(struct span name)
{
	bool begins = true;

	if (name.len == 0 || name.len > ZONE_NAME_MAX)
		return false;
	for (size_t i = 0; i < name.len; i++) {
		char byte = name.data[i], lower = (char)(byte | 32);
		bool plain = (lower >= 'a' && lower <= 'z') || (byte >= '0' && byte <= '9') || byte == '_' ||
			byte == '+' || byte == '-';
		if (byte == '/' ? begins : !plain)
			return false;
		begins = byte == '/';
	}
	return !begins;
}

static int load_file(const char *directory, struct span name, struct zone **ret_zone)
{
	cleanup(buf_done) struct buf file = {.max = FILE_BYTES_MAX};
	char path[ZONE_NAME_MAX + 1];
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOTDIR || errno == EACCES ? -ENOENT : -errno;
	snprintf(path, sizeof path, "%.*s", SPAN_ARGS(name));
	/* most names are links to a file of another name: file_read() would refuse those */
	int file_fd = openat(fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int r = file_fd < 0 ? -errno : 0;
	close(fd);
	while (r == 0) {
		char piece[4096];
		ssize_t got = read(file_fd, piece, sizeof piece);
		if (got <= 0) {
			r = got < 0 ? -errno : 1;
			break;
		}
		r = buf_put(&file, piece, (size_t)got);
	}
	if (file_fd >= 0)
		close(file_fd);
	if (r == -ENOTDIR || r == -EACCES || r == -ELOOP)
		return -ENOENT;
	if (r == -EISDIR || r == -E2BIG)
		return -EINVAL;
	return r < 0 ? r : zone_read(buf_span(&file), ret_zone);
}

int zone_load(const char *directory, struct span name, struct zone **ret_zone)
{
	if (!is_zone_name(name))
		return -EINVAL;
	if (!directory && (span_is(name, "UTC") || span_is(name, "Etc/UTC"))) {
		struct zone *utc = malloc(sizeof *utc + sizeof *utc->shifts);
		if (!utc)
			return -ENOMEM;
		*utc = (struct zone){.count = 1};
		utc->shifts[0] = (struct zone_shift){ZONE_BEGIN, 0};
		*ret_zone = utc;
		return 0;
	}
	return load_file(directory ? directory : SYSTEM_DIRECTORY, name, ret_zone);
}

void zone_free(struct zone *zone)
{
	free(zone);
}

uint32_t zone_find(const struct zone *zone, int64_t at_s)
{
	uint32_t low = 0, high = zone->count;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (zone->shifts[middle].at_s <= at_s)
			low = middle;
		else
			high = middle;
	}
	return low;
}
