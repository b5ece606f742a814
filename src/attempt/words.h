/*
 * The last words of a program: the line of its output that says what went wrong, without the banners, hints and stack traces
 * that follow it.
 */
#pragma once

#include <stddef.h>

#include "base/span.h"

enum {
	WORDS_BYTES = 301, /* with the NUL */
};

/* The line of `text` that says what went wrong, without colours and without the full stop at its end; of a line of JSON the
 * member that says it. If every line is a banner, a hint or a trace it is the last one. Returns its length; 0: there is no
 * line with something in it. */
size_t last_words(struct span text, char ret_words[WORDS_BYTES]);
