#include "notify/signature.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

int secret_parse(struct span text, struct secret *ret_secret)
{
	static const char prefix[] = "whsec_";
	size_t before = sizeof prefix - 1;
	struct secret secret = {0};

	if (text.len < before || memcmp(text.data, prefix, before) != 0)
		return -EINVAL;
	if (sodium_base642bin(secret.bytes, sizeof secret.bytes, text.data + before, text.len - before, NULL,
		    &secret.len, NULL, sodium_base64_VARIANT_ORIGINAL) != 0 ||
		secret.len < SECRET_BYTES_MIN)
		return -EINVAL;
	*ret_secret = secret;
	return 0;
}

static void put_one(struct buf *out, const struct secret *secret, struct span head, struct span body)
{
	unsigned char mac[crypto_auth_hmacsha256_BYTES];
	char text[sodium_base64_ENCODED_LEN(sizeof mac, sodium_base64_VARIANT_ORIGINAL)];
	crypto_auth_hmacsha256_state state;

	crypto_auth_hmacsha256_init(&state, secret->bytes, secret->len);
	crypto_auth_hmacsha256_update(&state, (const unsigned char *)head.data, head.len);
	crypto_auth_hmacsha256_update(&state, (const unsigned char *)body.data, body.len);
	crypto_auth_hmacsha256_final(&state, mac);
	sodium_bin2base64(text, sizeof text, mac, sizeof mac, sodium_base64_VARIANT_ORIGINAL);
	sodium_memzero(&state, sizeof state);
	buf_printf(out, "v1,%s", text);
}

int signature_put(struct buf *out, const struct secret *secrets, uint32_t count, const char *id,
	int64_t timestamp_s, struct span body)
{
	char head[256];
	int len = snprintf(head, sizeof head, "%s.%lld.", id, (long long)timestamp_s);

	if (len >= (int)sizeof head)
		return buf_fail(out, -E2BIG);
	for (uint32_t i = 0; i < count; i++) {
		if (i > 0)
			buf_put_byte(out, ' ');
		put_one(out, &secrets[i], (struct span){head, (size_t)len}, body);
	}
	return buf_fault(out);
}
