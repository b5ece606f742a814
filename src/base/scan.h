/*
 * Looking for a byte of some kind, eight bytes at a time.
 *
 * Eight bytes of text are one number, the first one lowest. scan_below() and scan_equal() set the high bit of every
 * byte that is such, and maybe of some behind the first one that is: so only the first mark counts, and marks of
 * several kinds may be put together with |.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
	SCAN_BYTES = 8,
};

#define SCAN_EACH(byte) (UINT64_C(0x0101010101010101) * (unsigned char)(byte))
#define SCAN_HIGH       SCAN_EACH(0x80) /* marks every byte that is not ASCII */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first byte is the lowest");

static inline uint64_t scan_load(const char *eight)
{
	uint64_t number;

	memcpy(&number, eight, sizeof number);
	return number;
}

/* Bytes below the limit, which is at most 0x80. */
static inline uint64_t scan_below(uint64_t eight, unsigned char limit)
{
	return (eight - SCAN_EACH(limit)) & ~eight & SCAN_HIGH;
}

static inline uint64_t scan_equal(uint64_t eight, unsigned char byte)
{
	return scan_below(eight ^ SCAN_EACH(byte), 1);
}

/* The index of the first marked byte; there must be one. */
static inline size_t scan_first(uint64_t marks)
{
	return (size_t)__builtin_ctzll(marks) / 8;
}

/* From `at`, the first control byte that is no tab, or the end. Heads of requests are read by it, so it looks at sixteen
 * bytes at a time where the machine can. */
static inline size_t scan_text(const char *text, size_t at, size_t end)
{
#ifdef __SSE2__
	const __m128i last_control = _mm_set1_epi8(0x1f), delete = _mm_set1_epi8(0x7f);

	while (at + sizeof(__m128i) <= end) {
		__m128i bytes = _mm_loadu_si128((const __m128i *)(text + at));
		__m128i below = _mm_cmpeq_epi8(_mm_min_epu8(bytes, last_control), bytes);
		unsigned marks = (unsigned)_mm_movemask_epi8(below | _mm_cmpeq_epi8(bytes, delete));

		at += marks ? (size_t)__builtin_ctz(marks) : sizeof bytes;
		if (marks && text[at] != '\t')
			return at;
		at += marks != 0;
	}
#endif
	while (at + SCAN_BYTES <= end) {
		uint64_t eight = scan_load(text + at);
		uint64_t marks = scan_below(eight, ' ') | scan_equal(eight, 0x7f);

		at += marks ? scan_first(marks) : SCAN_BYTES;
		if (marks && text[at] != '\t')
			return at;
		at += marks != 0;
	}
	while (at < end && ((unsigned char)text[at] >= ' ' || text[at] == '\t') && text[at] != 0x7f)
		at++;
	return at;
}
