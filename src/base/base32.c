#include "base/base32.h"

void base32_put(const unsigned char *bytes, size_t chars, char *ret_text)
{
	static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";

	for (size_t i = 0; i < chars; i++) {
		size_t bit = 5 * i;
		unsigned pair = (unsigned)(bytes[bit / 8] << 8 | bytes[bit / 8 + 1]);
		ret_text[i] = digits[pair >> (11 - bit % 8) & 31];
	}
	ret_text[chars] = 0;
}
