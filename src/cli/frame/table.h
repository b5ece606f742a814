/*
 * Rows in columns. On a terminal: a header, and no line wider than it is. The columns that may shrink give way first, from the
 * left; when that is not enough, columns go, the least needed first. Rows may stand in groups, and have a sentence on a line of its
 * own below them. Elsewhere: one line per row, cells between tabs, whole, without a header, for `cut` and `read`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/span.h"
#include "cli/frame/term.h"

struct cli;
struct yyjson_val;

enum {
	TABLE_COLUMNS_MAX = 16,
	TABLE_ROWS_MAX = 100000,
};

/* How a column of a list shows a member of the server's document (verb/task_view.h). */
enum column_kind {
	COLUMN_TEXT,  /* as it is */
	COLUMN_DASH,  /* … and "-" where the member is missing */
	COLUMN_STATE, /* in the colour of the state */
	COLUMN_NUMBER,
	COLUMN_DURATION, /* of milliseconds: 5m */
	COLUMN_AGE,      /* since a moment: 5m */
	COLUMN_MOMENT,   /* in 5m, 5m ago */
	COLUMN_NAMES,    /* of a list: a,b */
	COLUMN_WORDS,    /* … and a b */
};

struct column {
	const char *name;
	/* Only for the columns of lists. */
	const char *member; /* of the document; "task.id" is a member of a member */
	enum column_kind kind;
	enum paint paint;
	struct span (*make)(struct cli *cli, struct yyjson_val *item); /* the text, if it is not a member */
	/* For every table. */
	bool right;    /* numbers */
	bool shrinks;  /* down to `least` columns */
	uint8_t rank;  /* 0: always there; the highest go first when there is no room */
	uint8_t least; /* 0: 12 */
	uint8_t most;  /* widest it gets; 0: no limit */
	uint8_t from;  /* shown on terminals of at least so many columns */
	bool flows;    /* goes on into the next column if the cell there is empty */
};

struct shown_cell {
	struct span text; /* no control characters */
	enum paint paint;
	bool glyph; /* only the first character is painted */
};

/* What a row has beside its cells. */
struct row_extra {
	struct span head;  /* of a group: nothing else stands on the line */
	struct span under; /* a sentence below the row … */
	enum paint paint;  /* … its colour … */
	uint8_t column;    /* … and the column that it begins in */
};

struct table {
	const struct column *columns;
	size_t column_count;
	struct shown_cell *cells;
	struct row_extra *extras; /* one per row */
	size_t row_count, row_room;
	bool utf8;          /* letters beyond ASCII may be shown */
	bool bare;          /* without a line of names above it */
	struct arena arena; /* of the texts */
	int fault;          /* the first one; later calls do nothing */
};

void table_init(struct table *table, const struct column *columns, size_t count, bool utf8);
void table_done(struct table *table);

/* A new row, its cells empty. */
void table_row(struct table *table);

/* A cell of the last row. The text is cleaned and copied. */
void table_cell(struct table *table, size_t column, struct span text, enum paint paint);

/* The same, with colour on the first character alone: "● running". */
void table_glyph_cell(struct table *table, size_t column, struct span text, enum paint paint);

/* A line of its own above the rows that follow: "Needs you 2". */
void table_group(struct table *table, struct span head);

/* A sentence below the last row, from that column on; it is broken between words. */
void table_under(struct table *table, size_t column, struct span text, enum paint paint);

/* -ENOMEM, -E2BIG: rows beyond the limit. Groups and sentences below rows are for people: tabs leave them out. */
int table_put(struct buf *out, const struct table *table, const struct term *term);
int table_put_tabs(struct buf *out, const struct table *table);
