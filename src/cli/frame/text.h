/*
 * Text for a terminal: how wide it is, where to cut it, and what of it may be shown.
 *
 * Titles, results and messages come from others. Whatever could move the cursor, change a colour or turn the
 * direction of writing is shown as a sign of its own and does nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/span.h"

/* Columns on a terminal. The text is clean already. */
size_t text_width(struct span text);

/* Append what may be shown: control characters, directions and broken UTF-8 become U+FFFD (? without utf8), line ends
 * and tabs a blank, unless `lines` keeps the line ends. Without `utf8` every character that is not ASCII is a ?. */
int text_clean(struct buf *out, struct span text, bool utf8, bool lines);

/*
 * The output of a program for a terminal, in pieces. Its colours stay (ESC [ … m), or go without `color`, and end with their
 * line, so that no line paints the next. All else that the terminal would obey is shown as ␛ (? without utf8) and does
 * nothing; tabs stay.
 */
enum { TEXT_ESCAPE_MAX = 32 };

struct text_output {
	bool painted; /* a colour of this line has not ended */
	bool amid_line;
	size_t held; /* bytes of an escape sequence that may go on in the next piece */
	char escape[TEXT_ESCAPE_MAX];
};

int text_put_output(struct buf *out, struct text_output *state, struct span text, bool utf8, bool color);

/* No more follows, or something else is written in between: what was held is shown, and the colour ends. */
int text_end_output(struct buf *out, struct text_output *state, bool utf8, bool color);

/* Append JSON, with what would not be shown as \u009b: it means the same. */
int text_clean_json(struct buf *out, struct span json);

/* Append at most `width` columns of clean text; what was cut ends in … (> without utf8). */
int text_fit(struct buf *out, struct span text, size_t width, bool utf8);

/* Append clean text, broken between words: no line is wider than `width` columns (0: no limit), except for one word that alone
 * is wider. The first line begins in column `at`, the others in column `indent`. Line ends in the text stay. */
int text_wrap(struct buf *out, struct span text, size_t width, size_t at, size_t indent);
