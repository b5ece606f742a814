#include "cli/top/screen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/take.h"
#include "base/utf8.h"
#include "cli/frame/text.h"

enum {
	TEXT_BYTES_MAX = 1 << 20,
};

static const struct screen_cell blank = {.bytes = " ", .len = 1};

void screen_done(struct screen *screen)
{
	free(screen->cells);
	*screen = (struct screen){.utf8 = screen->utf8};
}

int screen_resize(struct screen *screen, size_t rows, size_t columns)
{
	rows = rows < SCREEN_SIDE_MAX ? rows : SCREEN_SIDE_MAX;
	columns = columns < SCREEN_SIDE_MAX ? columns : SCREEN_SIDE_MAX;
	if (rows != screen->rows || columns != screen->columns) {
		screen_done(screen);
		screen->cells = calloc(rows * columns + 1, sizeof *screen->cells);
		if (!screen->cells)
			return -ENOMEM;
		screen->rows = rows;
		screen->columns = columns;
	}
	for (size_t i = 0; i < rows * columns; i++)
		screen->cells[i] = blank;
	return 0;
}

static struct screen_cell *cell_at(const struct screen *screen, size_t row, size_t column)
{
	return &screen->cells[row * screen->columns + column];
}

/* A mark that is drawn over the character before it; one too many is left out. */
static void add_mark(struct screen_cell *cell, struct span mark)
{
	if (cell->len + mark.len > SCREEN_CELL_BYTES)
		return;
	memcpy(cell->bytes + cell->len, mark.data, mark.len);
	cell->len = (uint8_t)(cell->len + mark.len);
}

/* The text is clean and fits. Returns the columns that it took. */
static size_t draw(struct screen *screen, size_t row, size_t column, struct span text, enum paint paint)
{
	size_t at = column;

	while (text.len > 0) {
		bool good;
		size_t len = utf8_next(text, &good);
		struct span character = {text.data, len};
		size_t width = text_width(character);
		if (at + width > screen->columns)
			break;
		if (width == 0 && at > column) {
			size_t back = cell_at(screen, row, at - 1)->len == 0 && at - column > 1 ? 2 : 1;
			add_mark(cell_at(screen, row, at - back), character);
		} else if (width > 0) {
			struct screen_cell *cell = cell_at(screen, row, at);
			*cell = (struct screen_cell){.paint = (uint8_t)paint};
			add_mark(cell, character);
			if (width == 2)
				*cell_at(screen, row, at + 1) = (struct screen_cell){.paint = (uint8_t)paint};
		}
		at += width;
		text = (struct span){text.data + len, text.len - len};
	}
	return at - column;
}

static size_t put(struct screen *screen, size_t row, size_t column, size_t width, struct span text,
	enum paint paint, bool right)
{
	cleanup(buf_done) struct buf clean = {0}, fits = {0};

	if (row >= screen->rows || column >= screen->columns || width == 0)
		return 0;
	if (column + width > screen->columns)
		width = screen->columns - column;
	buf_init(&clean, TEXT_BYTES_MAX);
	buf_init(&fits, TEXT_BYTES_MAX);
	/* more than this is never seen: one character may have several marks */
	text = utf8_cut(text, SCREEN_SIDE_MAX * SCREEN_CELL_BYTES);
	if (text_clean(&clean, text, screen->utf8, false) < 0 ||
		text_fit(&fits, buf_span(&clean), width, screen->utf8) < 0)
		return 0; /* no memory: this frame lacks the text */
	size_t taken = text_width(buf_span(&fits));
	return draw(screen, row, right && taken < width ? column + width - taken : column, buf_span(&fits),
		paint);
}

size_t screen_put(
	struct screen *screen, size_t row, size_t column, size_t width, struct span text, enum paint paint)
{
	return put(screen, row, column, width, text, paint, false);
}

void screen_put_right(
	struct screen *screen, size_t row, size_t column, size_t width, struct span text, enum paint paint)
{
	put(screen, row, column, width, text, paint, true);
}

void screen_emphasize(struct screen *screen, size_t row, enum paint paint)
{
	for (size_t i = 0; row < screen->rows && i < screen->columns; i++) {
		if (cell_at(screen, row, i)->paint == PAINT_NONE)
			cell_at(screen, row, i)->paint = (uint8_t)paint;
	}
}

/* ---- to the terminal ------------------------------------------------------------------------------------------ */

static bool same(const struct screen_cell *one, const struct screen_cell *other)
{
	return one->len == other->len && one->paint == other->paint &&
		memcmp(one->bytes, other->bytes, one->len) == 0;
}

static bool is_ascii(const struct screen_cell *cell)
{
	return cell->len == 1 && (unsigned char)cell->bytes[0] < 0x80;
}

/* Where the cursor is and what it paints with, as far as is known. */
struct pen {
	bool known;
	size_t row, column;
	enum paint paint;
};

static void put_cell(struct buf *out, struct pen *pen, const struct screen_cell *cell, size_t row,
	size_t column, bool color)
{
	if (!pen->known || pen->row != row || pen->column != column)
		buf_printf(out, "\033[%zu;%zuH", row + 1, column + 1);
	if (pen->paint != cell->paint) {
		buf_printf(out, "%s%s", term_plain(color, pen->paint),
			term_paint(color, (enum paint)cell->paint));
		pen->paint = (enum paint)cell->paint;
	}
	buf_put(out, cell->bytes, cell->len);
}

int screen_put_changes(struct buf *out, const struct screen *shown, const struct screen *wanted, bool color)
{
	bool all = shown->rows != wanted->rows || shown->columns != wanted->columns;
	struct pen pen = {0};

	for (size_t row = 0; row < wanted->rows; row++) {
		for (size_t column = 0; column < wanted->columns; column++) {
			const struct screen_cell *cell = cell_at(wanted, row, column),
						 *next = column + 1 < wanted->columns ? cell + 1 : NULL;
			if (cell->len == 0)
				continue; /* it came with its first half */
			bool wide = next && next->len == 0, changed = all;
			changed = changed || !same(cell, cell_at(shown, row, column)) ||
				(wide && !same(next, cell_at(shown, row, column + 1)));
			if (!changed)
				continue;
			put_cell(out, &pen, cell, row, column, color);
			bool sure = is_ascii(cell) || (next && !wide && !is_ascii(next));
			pen = (struct pen){sure && next, row, column + 1, pen.paint};
		}
	}
	buf_printf(out, "%s", term_plain(color, pen.paint));
	return buf_fault(out);
}

int screen_put_row(struct buf *out, const struct screen *screen, size_t row)
{
	size_t end = screen->columns;

	while (end > 0 && cell_at(screen, row, end - 1)->len == 1 &&
		cell_at(screen, row, end - 1)->bytes[0] == ' ')
		end--;
	for (size_t i = 0; i < end; i++)
		buf_put(out, cell_at(screen, row, i)->bytes, cell_at(screen, row, i)->len);
	return buf_fault(out);
}
