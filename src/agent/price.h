/*
 * Prices of models, for agents that count tokens and say no money: a dated table of the configuration. There is no price but one that
 * an operator has written down, and what has none costs an unknown sum, which is not 0.
 */
#pragma once

#include "agent/session/session.h"

enum { PRICES_MAX = 200 };

/* Dollars for a million tokens. */
struct price {
	const char *model; /* a name, or a pattern as gpt-5* */
	double input, output, cache_read, cache_write;
};

struct prices {
	const char *as_of; /* the day that they were written down: "2026-11-01"; NULL: there are none */
	const struct price *items;
	size_t count;
};

/* The first that fits the model; NULL: there is none. */
const struct price *price_find(const struct prices *prices, const char *model);

/* The dollars of so many tokens. `input_has_cache`: what was read from the cache is counted among the input, too. */
double price_of(const struct price *price, const struct session_usage *usage, bool input_has_cache);
