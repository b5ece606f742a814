/*
 * What the model of an agent has used: counts and money. An attempt reports its totals so far; a task has the sum of all attempts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum usage_count {
	USAGE_INPUT,
	USAGE_OUTPUT,
	USAGE_CACHE_READ,
	USAGE_CACHE_WRITE,
	USAGE_TURNS,
	USAGE_TOOL_CALLS,
	USAGE_MICRO_USD, /* millionths of a dollar; means nothing unless the price is known */
	USAGE_COUNTS,
};

struct usage {
	int64_t counts[USAGE_COUNTS];
	bool is_reported;
	bool price_is_unknown; /* of something in it: an unknown price is never 0 */
};

/* The totals of one attempt never fall: of two reports each count is the higher one. */
struct usage usage_raise(const struct usage *before, const struct usage *now);

struct usage usage_add(const struct usage *a, const struct usage *b);
