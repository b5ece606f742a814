/*
 * A span borrows bytes: it never owns them, need not end in NUL and may hold
 * any byte. The function that hands out a span says how long the bytes live. The empty
 * span may have data NULL.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
	const char *data;
	size_t len;
};

/* A borrowed list of names. */
struct name_list {
	const struct span *items;
	uint32_t count;
};

/* Only a string literal compiles here; its NUL is not part of the span. */
#define SPAN(literal) ((struct span){"" literal, sizeof(literal) - 1})

/* For printf: printf("%.*s", SPAN_ARGS(name)). */
#define SPAN_ARGS(span) (int)(span).len, (span).data ? (span).data : ""

/* Borrow a C string without its NUL; NULL gives the empty span. */
static inline struct span span_of(const char *cstr)
{
	return (struct span){cstr, cstr ? strlen(cstr) : 0};
}

static inline bool span_is_empty(struct span span)
{
	return span.len == 0;
}

/* The lengths are looked at before memcmp is called: most spans differ there, and an empty one may have no address. */
static inline bool span_equal(struct span a, struct span b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* Is it that word, which is not empty? For tables of words: most differ in the first byte. */
static inline bool span_is(struct span span, const char *word)
{
	return span.len > 0 && span.data[0] == word[0] && strlen(word) == span.len &&
		memcmp(span.data, word, span.len) == 0;
}

/* The value of a hexadecimal digit, in upper or lower case; -1: any other byte. */
static inline int hex_digit(char byte)
{
	int letter = byte | ' ';

	if (byte >= '0' && byte <= '9')
		return byte - '0';
	return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* Below, at or above 0: bytes compare unsigned, and a prefix sorts first. */
int span_compare(struct span a, struct span b);
