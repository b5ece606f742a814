#include "api/worker/beat_token.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Of 8 bytes the last group of three lacks one: 64 bits are ten digits of six and one of four, and an equals sign. */
void beat_token_write(uint64_t token, char ret_text[BEAT_TOKEN_CHARS])
{
	uint64_t bytes = __builtin_bswap64(token); /* the first byte is now the highest */

	for (int i = 0; i < 10; i++)
		ret_text[i] = alphabet[bytes >> (58 - 6 * i) & 63];
	ret_text[10] = alphabet[(bytes & 15) << 2];
	ret_text[11] = '=';
}

static int digit_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

uint64_t beat_token_read(struct span text)
{
	uint64_t bytes = 0;

	if (text.len != BEAT_TOKEN_CHARS || text.data[11] != '=')
		return 0;
	for (int i = 0; i < 11; i++) {
		int digit = digit_of(text.data[i]);
		if (digit < 0 || (i == 10 && (digit & 3) != 0))
			return 0;
		bytes = i < 10 ? bytes << 6 | (uint64_t)digit : bytes << 4 | (uint64_t)digit >> 2;
	}
	return __builtin_bswap64(bytes);
}
