/*
 * New tokens: stint_<kind>_<id>_<secret>. The prefix lets scanners find one where it should not be; the secret is
 * 256 random bits, so a plain hash of the whole is enough to keep.
 */
#include "server/mint.h"

#include <sodium.h>
#include <stdio.h>

void mint_token(const char *kind, char ret_token[TOKEN_BYTES_MAX], char ret_id[TOKEN_ID_BYTES_MAX])
{
	unsigned char id[(TOKEN_ID_BYTES_MAX - 1) / 2], secret[32];
	char text[sodium_base64_ENCODED_LEN(sizeof secret, sodium_base64_VARIANT_URLSAFE_NO_PADDING)];

	randombytes_buf(id, sizeof id);
	randombytes_buf(secret, sizeof secret);
	sodium_bin2hex(ret_id, TOKEN_ID_BYTES_MAX, id, sizeof id);
	sodium_bin2base64(text, sizeof text, secret, sizeof secret, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
	snprintf(ret_token, TOKEN_BYTES_MAX, "stint_%s_%s_%s", kind, ret_id, text);
	sodium_memzero(secret, sizeof secret);
	sodium_memzero(text, sizeof text);
}

struct span token_id(struct span token)
{
	size_t from = 0, at = 0, marks = 0;

	for (; at < token.len && marks < 3; at++) {
		if (token.data[at] != '_')
			continue;
		if (++marks == 2)
			from = at + 1;
	}
	return marks < 3 ? (struct span){0} : (struct span){token.data + from, at - 1 - from};
}
