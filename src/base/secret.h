/*
 * Tokens of stint in a text: stint_<kind>_<id>_<secret>.
 *
 * Only a whole token is one here. Names of metrics (stint_worker_count), and a token without its secret, stay as they are.
 */
#pragma once

#include <stdbool.h>

#include "base/span.h"

/* Where the letters and digits that stand there end, with what of `others` stands between them. */
size_t secret_word_end(struct span text, size_t at, const char *others);

/* Might there be one? A cheap question that says no for nearly every text. */
bool secret_may_be_in(struct span text);

/* Overwrites the secrets of all tokens with asterisks. Nothing moves: positions in the text stay what they are. */
void secret_blank(char *text, size_t len);
