/*
 * The parts that a frame of stint top is drawn from: draw.c has the frame and its edges, list.c the rows, pane.c what is said of the row
 * in focus.
 */
#pragma once

#include "cli/top/board.h"

extern const struct board_view {
	const char *name, *key; /* key: the member that names a row */
	const char *groups[STAND_GROUPS];
} board_views[TAB_COUNT];

/* One frame in the making. */
struct frame {
	struct board *board;
	struct cli *cli;
	struct screen *screen;
	size_t width; /* no wider than is read with ease */
	bool roomy, stale;
	int64_t age_ms; /* of what the server said */
};

/* A pen that goes to the right along a row. */
struct line {
	struct frame *frame;
	size_t row, column;
};

/* The sign, or what stands for it in ASCII. */
const char *frame_sign(const struct frame *frame, const char *glyph, const char *ascii);

/* Against the right edge of the frame, over whatever stands there. */
void frame_put_at_edge(struct frame *frame, size_t row, const char *text, enum paint paint);

void line_put(struct line *line, struct span text, enum paint paint);
void line_put_text(struct line *line, const char *text, enum paint paint);

/* A cell of a column: it takes its whole width. */
void line_put_cell(struct line *line, size_t width, struct span text, enum paint paint, bool right);

/* A bar that empties; hatched while there is no news. */
void line_put_lease(struct line *line, yyjson_val *worker, size_t cells);

/* What is left of the lease now; -1: the worker has none. */
int64_t frame_lease_left(const struct frame *frame, yyjson_val *worker);

/* How long ago it was heard. */
const char *frame_beat_text(struct frame *frame, yyjson_val *worker);

/* The worker that has the task; NULL: none that is known. */
yyjson_val *board_worker_of(const struct board *board, yyjson_val *task);

/* Why the task is where it is. */
struct span board_why(yyjson_val *task);

/* The names of the columns, then the rows that are seen; returns in words what lies below them. */
void list_draw_names(struct frame *frame, size_t row);
const char *list_draw(struct frame *frame, size_t row, size_t room);

/* How many lines the pane has, its rule, and what is in it. */
size_t pane_rows(const struct board *board, size_t screen_rows);
void pane_draw_rule(struct frame *frame, size_t row, const char *name, const char *note);
void pane_draw(struct frame *frame, size_t row, size_t room, const struct board_row *focus);
