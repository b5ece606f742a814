/*
 * Search: all words must occur, in any order and in any of the texts. Upper and lower case are the same (Latin, Greek and Cyrillic
 * letters); a word is found where a word of the text begins with it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

enum {
	SEARCH_WORDS_MAX = 16,
	SEARCH_WORD_MAX = 256, /* bytes of one word */
};

struct search_words {
	uint32_t count;
	struct span words[SEARCH_WORDS_MAX]; /* borrowed from the question */
};

/* False: too many words, or a word that is too long. Without a word everything is found. */
bool search_read(struct span question, struct search_words *ret_search);

/* The words that occur in the text, a bit for each. */
uint32_t search_look(const struct search_words *search, struct span text);

static inline bool search_is_found(const struct search_words *search, uint32_t words)
{
	return words == (UINT32_C(1) << search->count) - 1;
}
