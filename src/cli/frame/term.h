/*
 * What we write to: a terminal or not, how wide, which colours and letters it takes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* In the order of the words of --color. */
enum color_wish { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

enum paint {
	PAINT_NONE,
	PAINT_BOLD,
	PAINT_DIM,
	PAINT_RED,
	PAINT_GREEN,
	PAINT_YELLOW,
	PAINT_BLUE,
	PAINT_CYAN,
	PAINT_RUN,      /* it moves */
	PAINT_YOU_BOLD, /* a person's move, first of all */
	PAINT_REVERSE,
	PAINT_YOU_REVERSE,
};

struct term {
	bool tty;      /* standard output is a terminal */
	bool talk_tty; /* standard error is a terminal */
	bool color, talk_color;
	bool moves;      /* lines on standard output may be drawn over: a terminal that is not dumb */
	bool talk_moves; /* … on standard error */
	bool utf8;
	bool glyphs; /* signs beyond ASCII may stand for states: with letters beyond ASCII, and not on a dumb terminal */
	bool titles;       /* standard error's terminal has a window title that may be set and put back */
	size_t width;      /* columns; 0: no limit */
	size_t talk_width; /* … of standard error */
	size_t height;     /* lines of standard output; 0: no limit */
};

/* By the descriptors, and NO_COLOR, CLICOLOR_FORCE, TERM, COLUMNS and the locale of the environment. */
void term_look(struct term *term, enum color_wish wish);

/* A line that is drawn on standard error over and over is wiped, and the window title put back, when INT or TERM ends us. */
void term_wipe_at_signals(void);

/* The title of the window, until term_title_back(): a clean text. */
void term_title(const char *text);
void term_title_back(void);

/* The escape that begins a colour, and the one that ends it; empty without colour. */
const char *term_paint(bool color, enum paint paint);
const char *term_plain(bool color, enum paint paint);
