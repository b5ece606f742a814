#include "store/record/stats_row.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static void put_number(struct buf *out, char before, uint32_t number)
{
	buf_put_byte(out, (unsigned char)before);
	buf_put_decimal(out, number);
}

static void put_cell(const struct stats_cell *cell, uint32_t place, struct buf *out)
{
	put_number(out, ';', place);
	put_number(out, ' ', cell->done);
	put_number(out, ' ', cell->failed);
	put_number(out, ' ', cell->cancelled);
	for (uint32_t i = 0; i < WAIT_BUCKETS; i++) {
		if (cell->waits[i] == 0)
			continue;
		put_number(out, ' ', i);
		put_number(out, ':', cell->waits[i]);
	}
}

void stats_row_put(const struct stats_row *row, struct buf *out)
{
	assert(row->step == 1 || row->step == 10 || row->step == HOUR_MINUTES);
	buf_put_decimal(out, row->step);
	for (uint32_t i = 0; i < HOUR_MINUTES / row->step; i++) {
		if (!stats_are_none(&row->cells[i]))
			put_cell(&row->cells[i], i, out);
	}
}

/* A number, and the character behind it is looked at by others. */
static bool take_number(struct span *rest, uint32_t *ret_number)
{
	uint64_t number = 0;
	size_t i = 0;

	while (i < rest->len && rest->data[i] >= '0' && rest->data[i] <= '9' && number <= UINT32_MAX)
		number = number * 10 + (uint64_t)(rest->data[i++] - '0');
	if (i == 0 || number > UINT32_MAX)
		return false;
	*rest = (struct span){rest->data + i, rest->len - i};
	*ret_number = (uint32_t)number;
	return true;
}

static bool take_byte(struct span *rest, char byte)
{
	if (rest->len == 0 || rest->data[0] != byte)
		return false;
	*rest = (struct span){rest->data + 1, rest->len - 1};
	return true;
}

static bool take_cell(struct span *rest, struct stats_row *row)
{
	struct stats_cell cell = {0};
	uint32_t place, bucket;

	if (!take_byte(rest, ';') || !take_number(rest, &place) || place >= HOUR_MINUTES / row->step ||
		!take_byte(rest, ' ') || !take_number(rest, &cell.done) || !take_byte(rest, ' ') ||
		!take_number(rest, &cell.failed) || !take_byte(rest, ' ') ||
		!take_number(rest, &cell.cancelled))
		return false;
	while (take_byte(rest, ' ')) {
		if (!take_number(rest, &bucket) || bucket >= WAIT_BUCKETS || !take_byte(rest, ':') ||
			!take_number(rest, &cell.waits[bucket]))
			return false;
	}
	row->cells[place] = cell;
	return true;
}

bool stats_row_read(struct span data, struct stats_row *ret_row)
{
	*ret_row = (struct stats_row){0};
	if (!take_number(&data, &ret_row->step) ||
		(ret_row->step != 1 && ret_row->step != 10 && ret_row->step != HOUR_MINUTES))
		return false;
	while (data.len > 0) {
		if (!take_cell(&data, ret_row))
			return false;
	}
	return true;
}

void stats_row_fold(struct stats_row *row, uint32_t step)
{
	assert(step >= row->step);
	assert(step % row->step == 0);
	uint32_t many = step / row->step;
	struct stats_row folded = {.step = step};

	for (uint32_t i = 0; i < HOUR_MINUTES / row->step; i++)
		stats_add(&folded.cells[i / many], &row->cells[i]);
	*row = folded;
}

bool stats_key_read(struct span key, int64_t *ret_hour, struct span *ret_queue)
{
	int64_t hour = 0;

	if (key.len < STATS_KEY_HOUR_BYTES)
		return false;
	for (int i = 0; i < STATS_KEY_HOUR_BYTES; i++) {
		if (key.data[i] < '0' || key.data[i] > '9')
			return false;
		hour = hour * 10 + (key.data[i] - '0');
	}
	*ret_hour = hour;
	*ret_queue = (struct span){key.data + STATS_KEY_HOUR_BYTES, key.len - STATS_KEY_HOUR_BYTES};
	return true;
}

void stats_key_put(int64_t hour, struct span queue, struct buf *out)
{
	char text[STATS_KEY_HOUR_BYTES + 1];

	assert(hour >= 0);
	assert(hour <= 9999999); /* the year 3110 */
	snprintf(text, sizeof text, "%07d", (int)hour);
	buf_put(out, text, STATS_KEY_HOUR_BYTES);
	buf_put_span(out, queue);
}
