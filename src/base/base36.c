/*
 * One spelling per number: the decoder refuses capitals, leading zeros and
 * whatever does not fit in 64 bits, so that an id cannot be written two ways.
 */
#include "base/base36.h"

#include <assert.h>
#include <errno.h>

size_t base36_encode(uint64_t value, char out[BASE36_MAX])
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
	char reversed[BASE36_DIGITS_MAX];
	size_t len = 0;

	do {
		assert(len < BASE36_DIGITS_MAX);
		reversed[len++] = digits[value % 36];
		value /= 36;
	} while (value > 0);
	for (size_t i = 0; i < len; i++)
		out[i] = reversed[len - 1 - i];
	out[len] = '\0';
	return len;
}

static int base36_digit(char c, unsigned int *ret)
{
	if (c >= '0' && c <= '9')
		*ret = (unsigned int)(c - '0');
	else if (c >= 'a' && c <= 'z')
		*ret = (unsigned int)(c - 'a') + 10;
	else
		return -EINVAL;
	return 0;
}

int base36_decode(struct span text, uint64_t *ret)
{
	uint64_t value = 0;

	if (text.len == 0 || text.len > BASE36_DIGITS_MAX)
		return -EINVAL;
	if (text.data[0] == '0' && text.len > 1)
		return -EINVAL;
	for (size_t i = 0; i < text.len; i++) {
		unsigned int digit;

		if (base36_digit(text.data[i], &digit))
			return -EINVAL;
		if (value > (UINT64_MAX - digit) / 36)
			return -EINVAL;
		value = value * 36 + digit;
	}
	*ret = value;
	return 0;
}
