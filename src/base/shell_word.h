/*
 * One word of a command that may be pasted into a shell. Names come from others: a shell must find nothing in them to run.
 */
#pragma once

#include "base/buf.h"
#include "base/span.h"

/* Append it as one word that a shell reads back as it was: 'it'\''s'. Without the quotes only if nothing in it means
 * anything to a shell. */
int shell_word_put(struct buf *out, struct span text);
