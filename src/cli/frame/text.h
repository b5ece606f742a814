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

/* Append JSON, with what would not be shown as \u009b: it means the same. */
int text_clean_json(struct buf *out, struct span json);

/* Append at most `width` columns of clean text; what was cut ends in … (~ without utf8). */
int text_fit(struct buf *out, struct span text, size_t width, bool utf8);

/* Append it as one word that a shell reads back as it was: 'it'\''s'. Without the quotes only if nothing in it means
 * anything to a shell. */
int text_quote(struct buf *out, struct span text);
