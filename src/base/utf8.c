#include "base/utf8.h"

#include <assert.h>

static bool is_continuation(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

/* The bounds of the second byte keep out overlong forms, surrogates and what lies beyond U+10FFFF. */
static bool second_byte_fits(unsigned char first, unsigned char second)
{
	switch (first) {
	case 0xe0:
		return second >= 0xa0 && second <= 0xbf;
	case 0xed:
		return second >= 0x80 && second <= 0x9f;
	case 0xf0:
		return second >= 0x90 && second <= 0xbf;
	case 0xf4:
		return second >= 0x80 && second <= 0x8f;
	default:
		return second >= 0x80 && second <= 0xbf;
	}
}

static size_t sequence_len(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first <= 0xdf)
		return 2;
	if (first >= 0xe0 && first <= 0xef)
		return 3;
	if (first >= 0xf0 && first <= 0xf4)
		return 4;
	return 0;
}

size_t utf8_next(struct span text, bool *ret_good)
{
	assert(text.len > 0);
	size_t want = sequence_len((unsigned char)text.data[0]);
	size_t len = 1;

	*ret_good = want == 1;
	if (want < 2 || text.len < 2 ||
		!second_byte_fits((unsigned char)text.data[0], (unsigned char)text.data[1]))
		return 1;
	for (len = 2; len < want && len < text.len && is_continuation(text.data[len]);)
		len++;
	*ret_good = len == want;
	return len;
}

struct span utf8_cut(struct span text, size_t most)
{
	if (text.len <= most)
		return text;
	text.len = most;
	while (text.len > 0 && is_continuation(text.data[text.len]))
		text.len--;
	return text;
}

bool utf8_is_text(struct span text)
{
	bool good = true;

	while (good && text.len > 0) {
		size_t len = utf8_next(text, &good);
		text.data += len;
		text.len -= len;
	}
	return good;
}
