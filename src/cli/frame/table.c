#include "cli/frame/table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/take.h"
#include "cli/frame/text.h"

enum {
	GAP = 2,
	SHRUNK_WIDTH = 12,
	CELL_BYTES_MAX = 1 << 20,
	TEXT_BYTES_MAX = 256 << 20,
};

void table_init(struct table *table, const struct column *columns, size_t count, bool utf8)
{
	assert(count <= TABLE_COLUMNS_MAX);
	*table = (struct table){.columns = columns, .column_count = count, .utf8 = utf8};
	arena_init(&table->arena, TEXT_BYTES_MAX);
}

void table_done(struct table *table)
{
	free(table->cells);
	arena_done(&table->arena);
}

void table_row(struct table *table)
{
	size_t row_bytes = table->column_count * sizeof *table->cells;

	if (table->fault < 0)
		return;
	if (table->row_count == TABLE_ROWS_MAX) {
		table->fault = -E2BIG;
		return;
	}
	if (table->row_count == table->row_room) {
		size_t room = table->row_room == 0 ? 32 : 2 * table->row_room;
		struct shown_cell *cells = reallocarray(table->cells, room, row_bytes);
		if (!cells) {
			table->fault = -ENOMEM;
			return;
		}
		table->cells = cells;
		table->row_room = room;
	}
	memset(table->cells + table->row_count++ * table->column_count, 0, row_bytes);
}

static struct shown_cell *cell_at(const struct table *table, size_t row, size_t column)
{
	return &table->cells[row * table->column_count + column];
}

void table_cell(struct table *table, size_t column, struct span text, enum paint paint)
{
	cleanup(buf_done) struct buf clean = {0};

	if (table->fault < 0)
		return;
	assert(table->row_count > 0);
	assert(column < table->column_count);
	struct shown_cell *cell = cell_at(table, table->row_count - 1, column);
	buf_init(&clean, CELL_BYTES_MAX);
	if (text.len > CELL_BYTES_MAX / 4)
		text.len = CELL_BYTES_MAX / 4;
	int r = text_clean(&clean, text, table->utf8, false);
	if (r == 0)
		r = arena_copy(&table->arena, buf_span(&clean), &cell->text);
	cell->paint = paint;
	if (r < 0)
		table->fault = r;
}

/* ---- on a terminal ---- */

struct layout {
	size_t width[TABLE_COLUMNS_MAX];
	bool shown[TABLE_COLUMNS_MAX];
	size_t last; /* of the columns that are shown: nothing is padded behind it */
};

static void measure(const struct table *table, struct layout *layout)
{
	for (size_t c = 0; c < table->column_count; c++) {
		layout->shown[c] = true;
		layout->width[c] = text_width(span_of(table->columns[c].name));
		for (size_t r = 0; r < table->row_count; r++) {
			size_t width = text_width(cell_at(table, r, c)->text);
			if (width > layout->width[c])
				layout->width[c] = width;
		}
	}
}

static size_t total(const struct table *table, const struct layout *layout)
{
	size_t sum = 0;

	for (size_t c = 0; c < table->column_count; c++)
		sum += layout->shown[c] ? layout->width[c] + GAP : 0;
	return sum > 0 ? sum - GAP : 0;
}

static void shrink(const struct table *table, struct layout *layout, size_t width)
{
	for (size_t c = 0; c < table->column_count; c++) {
		size_t sum = total(table, layout);
		if (!table->columns[c].shrinks || !layout->shown[c] || sum <= width ||
			layout->width[c] <= SHRUNK_WIDTH)
			continue;
		size_t spare = layout->width[c] - SHRUNK_WIDTH, over = sum - width;
		layout->width[c] -= spare < over ? spare : over;
	}
}

/* The least needed column that is still shown; false: all that are left must stay. */
static bool drop_one(const struct table *table, struct layout *layout)
{
	size_t worst = table->column_count;

	for (size_t c = 0; c < table->column_count; c++) {
		if (layout->shown[c] && table->columns[c].rank > 0 &&
			(worst == table->column_count || table->columns[c].rank > table->columns[worst].rank))
			worst = c;
	}
	if (worst == table->column_count)
		return false;
	layout->shown[worst] = false;
	return true;
}

/* If the remaining columns are still too wide, they are cut, the last one first: a narrow table beats a broken one. */
static void squeeze(const struct table *table, struct layout *layout, size_t width)
{
	for (size_t c = table->column_count; c-- > 0;) {
		size_t sum = total(table, layout);
		if (!layout->shown[c] || sum <= width)
			continue;
		size_t over = sum - width;
		layout->width[c] = layout->width[c] > over + 1 ? layout->width[c] - over : 1;
	}
}

static void fit(const struct table *table, struct layout *layout, size_t width)
{
	if (width == 0)
		return;
	shrink(table, layout, width);
	while (total(table, layout) > width && drop_one(table, layout)) {
		continue;
	}
	squeeze(table, layout, width);
}

static void put_blanks(struct buf *out, size_t count)
{
	buf_printf(out, "%*s", (int)count, "");
}

static void put_cell(struct buf *out, const struct table *table, const struct layout *layout, size_t c,
	const struct shown_cell *cell, const struct term *term)
{
	cleanup(buf_done) struct buf text = {0};

	buf_init(&text, CELL_BYTES_MAX + 8);
	if (text_fit(&text, cell->text, layout->width[c], term->utf8) < 0) {
		buf_fail(out, buf_fault(&text));
		return;
	}
	size_t blanks = layout->width[c] - text_width(buf_span(&text));
	if (table->columns[c].right)
		put_blanks(out, blanks);
	buf_printf(out, "%s%.*s%s", term_paint(term->color, cell->paint), SPAN_ARGS(buf_span(&text)),
		term_plain(term->color, cell->paint));
	if (!table->columns[c].right && c != layout->last)
		put_blanks(out, blanks);
	if (c != layout->last)
		put_blanks(out, GAP);
}

int table_put(struct buf *out, const struct table *table, const struct term *term)
{
	struct layout layout = {0};

	if (table->fault < 0)
		return buf_fail(out, table->fault);
	measure(table, &layout);
	fit(table, &layout, term->width);
	for (size_t c = 0; c < table->column_count; c++)
		layout.last = layout.shown[c] ? c : layout.last;
	for (size_t c = 0; c < table->column_count; c++) {
		struct shown_cell head = {span_of(table->columns[c].name), PAINT_BOLD};
		if (layout.shown[c])
			put_cell(out, table, &layout, c, &head, term);
	}
	buf_put_byte(out, '\n');
	for (size_t row = 0; row < table->row_count; row++) {
		for (size_t c = 0; c < table->column_count; c++) {
			if (layout.shown[c])
				put_cell(out, table, &layout, c, cell_at(table, row, c), term);
		}
		buf_put_byte(out, '\n');
	}
	return buf_fault(out);
}

/* ---- elsewhere ---- */

int table_put_tabs(struct buf *out, const struct table *table)
{
	if (table->fault < 0)
		return buf_fail(out, table->fault);
	for (size_t row = 0; row < table->row_count; row++) {
		for (size_t c = 0; c < table->column_count; c++) {
			if (c > 0)
				buf_put_byte(out, '\t');
			buf_put_span(out, cell_at(table, row, c)->text);
		}
		buf_put_byte(out, '\n');
	}
	return buf_fault(out);
}
