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
	free(table->extras);
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
		if (cells)
			table->cells = cells;
		struct row_extra *extras = reallocarray(table->extras, room, sizeof *extras);
		if (extras)
			table->extras = extras;
		if (!cells || !extras) {
			table->fault = -ENOMEM;
			return;
		}
		table->row_room = room;
	}
	table->extras[table->row_count] = (struct row_extra){0};
	memset(table->cells + table->row_count++ * table->column_count, 0, row_bytes);
}

static struct shown_cell *cell_at(const struct table *table, size_t row, size_t column)
{
	return &table->cells[row * table->column_count + column];
}

/* The text, clean and kept. */
static struct span keep(struct table *table, struct span text)
{
	cleanup(buf_done) struct buf clean = {0};
	struct span kept = {0};

	buf_init(&clean, CELL_BYTES_MAX);
	if (text.len > CELL_BYTES_MAX / 4)
		text.len = CELL_BYTES_MAX / 4;
	int r = text_clean(&clean, text, table->utf8, false);
	if (r == 0)
		r = arena_copy(&table->arena, buf_span(&clean), &kept);
	if (r < 0)
		table->fault = r;
	return kept;
}

void table_cell(struct table *table, size_t column, struct span text, enum paint paint)
{
	if (table->fault < 0)
		return;
	assert(table->row_count > 0);
	assert(column < table->column_count);
	*cell_at(table, table->row_count - 1, column) = (struct shown_cell){keep(table, text), paint, false};
}

void table_glyph_cell(struct table *table, size_t column, struct span text, enum paint paint)
{
	table_cell(table, column, text, paint);
	if (table->fault == 0)
		cell_at(table, table->row_count - 1, column)->glyph = true;
}

void table_group(struct table *table, struct span head)
{
	table_row(table);
	if (table->fault == 0)
		table->extras[table->row_count - 1].head = keep(table, head);
}

void table_under(struct table *table, size_t column, struct span text, enum paint paint)
{
	if (table->fault < 0 || text.len == 0)
		return;
	assert(table->row_count > 0);
	struct row_extra *extra = &table->extras[table->row_count - 1];
	*extra = (struct row_extra){.under = keep(table, text), .paint = paint, .column = (uint8_t)column};
}

/* ---- on a terminal ---- */

struct layout {
	size_t width[TABLE_COLUMNS_MAX];
	bool shown[TABLE_COLUMNS_MAX];
	size_t last; /* of the columns that are shown: nothing is padded behind it */
};

static void measure(const struct table *table, struct layout *layout, size_t width)
{
	for (size_t c = 0; c < table->column_count; c++) {
		const struct column *column = &table->columns[c];
		layout->shown[c] = width == 0 || width >= column->from;
		layout->width[c] = table->bare ? 0 : text_width(span_of(column->name));
		for (size_t r = 0; r < table->row_count; r++) {
			size_t columns = text_width(cell_at(table, r, c)->text);
			if (columns > layout->width[c])
				layout->width[c] = columns;
		}
		if (column->most > 0 && layout->width[c] > column->most)
			layout->width[c] = column->most;
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
		size_t least = table->columns[c].least > 0 ? table->columns[c].least : SHRUNK_WIDTH;
		if (!table->columns[c].shrinks || !layout->shown[c] || sum <= width ||
			layout->width[c] <= least)
			continue;
		size_t spare = layout->width[c] - least, over = sum - width;
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

/* The text in its colour. */
static void put_painted(
	struct buf *out, const struct shown_cell *cell, struct span text, const struct term *term)
{
	size_t painted = cell->glyph && text.len > 0 ? strcspn(text.data, " ") : text.len;

	painted = painted < text.len ? painted : text.len;
	buf_printf(out, "%s%.*s%s%.*s", term_paint(term->color, cell->paint), (int)painted, text.data,
		term_plain(term->color, cell->paint), (int)(text.len - painted), text.data + painted);
}

static void put_cell(struct buf *out, const struct column *column, size_t width, bool last,
	const struct shown_cell *cell, const struct term *term)
{
	cleanup(buf_done) struct buf text = {0};

	buf_init(&text, CELL_BYTES_MAX + 8);
	text_fit(&text, cell->text, width, term->utf8);
	buf_put_byte(&text, 0);
	if (buf_fault(&text)) {
		buf_fail(out, buf_fault(&text));
		return;
	}
	struct span shown = {text.data, text.len - 1};
	size_t blanks = width - text_width(shown);
	if (column->right)
		put_blanks(out, blanks);
	put_painted(out, cell, shown, term);
	if (!column->right && !last)
		put_blanks(out, blanks);
	if (!last)
		put_blanks(out, GAP);
}

static size_t next_shown(const struct table *table, const struct layout *layout, size_t c)
{
	do
		c++;
	while (c < table->column_count && !layout->shown[c]);
	return c;
}

static void put_row(struct buf *out, const struct table *table, const struct layout *layout, size_t row,
	const struct term *term)
{
	for (size_t c = 0; c < table->column_count; c++) {
		const struct shown_cell *cell = cell_at(table, row, c);
		size_t width = layout->width[c], next = next_shown(table, layout, c);
		if (!layout->shown[c])
			continue;
		bool flows = table->columns[c].flows && next < table->column_count &&
			cell_at(table, row, next)->text.len == 0;
		if (flows)
			width += GAP + layout->width[next];
		put_cell(out, &table->columns[c], width, (flows ? next : c) == layout->last, cell, term);
		if (flows)
			c = next;
	}
	while (out->len > 0 && out->data[out->len - 1] == ' ') /* the last cells are empty */
		buf_drop(out, 1);
	buf_put_byte(out, '\n');
}

static void put_under(
	struct buf *out, const struct layout *layout, const struct row_extra *extra, const struct term *term)
{
	size_t indent = 0;

	for (size_t c = 0; c < extra->column; c++)
		indent += layout->shown[c] ? layout->width[c] + GAP : 0;
	put_blanks(out, indent);
	buf_printf(out, "%s", term_paint(term->color, extra->paint));
	text_wrap(out, extra->under, term->width, indent, indent);
	buf_printf(out, "%s\n", term_plain(term->color, extra->paint));
}

static void put_header(
	struct buf *out, const struct table *table, const struct layout *layout, const struct term *term)
{
	for (size_t c = 0; c < table->column_count; c++) {
		struct shown_cell head = {span_of(table->columns[c].name), PAINT_DIM, false};
		if (layout->shown[c])
			put_cell(out, &table->columns[c], layout->width[c], c == layout->last, &head, term);
	}
	buf_put_byte(out, '\n');
}

int table_put(struct buf *out, const struct table *table, const struct term *term)
{
	struct layout layout = {0};

	if (table->fault < 0)
		return buf_fail(out, table->fault);
	measure(table, &layout, term->width);
	fit(table, &layout, term->width);
	for (size_t c = 0; c < table->column_count; c++)
		layout.last = layout.shown[c] ? c : layout.last;
	if (!table->bare)
		put_header(out, table, &layout, term);
	for (size_t row = 0; row < table->row_count; row++) {
		const struct row_extra *extra = &table->extras[row];
		if (extra->head.len > 0) {
			buf_printf(out, "%s%.*s%s\n", term_paint(term->color, PAINT_BOLD),
				SPAN_ARGS(extra->head), term_plain(term->color, PAINT_BOLD));
			continue;
		}
		put_row(out, table, &layout, row, term);
		if (extra->under.len > 0)
			put_under(out, &layout, extra, term);
	}
	return buf_fault(out);
}

/* ---- elsewhere ---- */

int table_put_tabs(struct buf *out, const struct table *table)
{
	if (table->fault < 0)
		return buf_fail(out, table->fault);
	for (size_t row = 0; row < table->row_count; row++) {
		if (table->extras[row].head.len > 0)
			continue;
		for (size_t c = 0; c < table->column_count; c++) {
			if (c > 0)
				buf_put_byte(out, '\t');
			buf_put_span(out, cell_at(table, row, c)->text);
		}
		buf_put_byte(out, '\n');
	}
	return buf_fault(out);
}
