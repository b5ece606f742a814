/*
 * A screen of cells in memory. A frame is drawn into one, compared with the frame that the terminal shows, and only the cells
 * that differ are sent: nothing flickers, and a slow line carries little.
 *
 * Each run of cells is sent with the column that it begins in, and so is every ASCII cell behind one that is not: a terminal that
 * draws a sign wider than we think shears nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"
#include "cli/frame/term.h"

enum {
	SCREEN_CELL_BYTES = 13, /* a character and the marks that are drawn over it */
	SCREEN_SIDE_MAX = 1000, /* rows, and columns: a terminal that says more is not believed */
};

struct screen_cell {
	char bytes[SCREEN_CELL_BYTES];
	uint8_t len; /* 0: the second half of a wide character */
	uint8_t paint;
};

struct screen {
	size_t rows, columns;
	struct screen_cell *cells;
	bool utf8;
};

void screen_done(struct screen *screen);

/* So many rows and columns, all blank. -ENOMEM: it has none. */
int screen_resize(struct screen *screen, size_t rows, size_t columns);

/* Text from that cell on, in at most `width` columns, clean; what is cut ends in …. Returns the columns that were taken. What lies
 * outside the screen is not drawn. */
size_t screen_put(
	struct screen *screen, size_t row, size_t column, size_t width, struct span text, enum paint paint);

/* The same against the right edge of the field. */
void screen_put_right(
	struct screen *screen, size_t row, size_t column, size_t width, struct span text, enum paint paint);

/* Paints cells that were drawn before, where they are plain. */
void screen_emphasize(struct screen *screen, size_t row, enum paint paint);

/* What a terminal that shows `shown` must be sent to show `wanted`; the same size, or else all of it. */
int screen_put_changes(struct buf *out, const struct screen *shown, const struct screen *wanted, bool color);

/* A row as text, without the blanks at its end. */
int screen_put_row(struct buf *out, const struct screen *screen, size_t row);
