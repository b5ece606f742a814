/*
 * A client's bytes, in pieces, and what the server made of them, as text: one line per request, then the last word.
 *
 *	GET /a?b host=h body=xyz keep
 *	BAD 400                          or MORE, or AMID: a request is incomplete
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"
#include "wire/http/http.h"

/* How the bytes come: `first` of them, then `each` at a time; 0 means all the rest. With a seed, any which way. */
struct http_pieces {
	size_t first;
	size_t each;
	uint64_t seed;
};

/* Appends to `ret_text`. Aborts when a promise of http.h is broken. */
void http_dialogue(
	const struct http_limits *limits, struct span bytes, struct http_pieces pieces, struct buf *ret_text);
