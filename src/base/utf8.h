/*
 * One character of UTF-8 at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"

/* How many bytes at the beginning belong together (at least one; the text is not empty), and whether they are a valid
 * character. Overlong forms, surrogates and numbers beyond U+10FFFF are invalid. */
size_t utf8_next(struct span text, bool *ret_good);

/* The beginning of the text: at most so many bytes, cut at the end of a character. */
struct span utf8_cut(struct span text, size_t most);

/* Is all of it characters? */
bool utf8_is_text(struct span text);
