/*
 * New tokens: stint_<kind>_<id>_<secret>. The prefix lets scanners find one where it should not be; the secret is
 * 256 random bits, so a plain hash of the whole is enough to keep.
 */
#include "server/mint.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/base32.h"
#include "base/base36.h"

enum {
	SECRET_BYTES = 32,
	SECRET_LEN = 43,        /* in base64url */
	JOIN_SECRET_BYTES = 18, /* 130 bits, and what the reader of pairs looks at behind them */
	DERIVED_MAX = 512,      /* bytes of the text of a derived one */
	MARKS_MAX = 3,          /* in its id; 2 in one that names no key */
};

_Static_assert(SIGNING_KEY_BYTES == crypto_auth_hmacsha256_KEYBYTES, "a key is that long");
_Static_assert(crypto_auth_hmacsha256_BYTES == SECRET_BYTES, "a MAC is as long as a secret");

static const char *const derived_kinds[] = {
	[DERIVED_INSTANCE] = "stint_worker_",
	[DERIVED_CLAIM] = "stint_claim_",
};

void mint_id(char ret_id[TOKEN_ID_BYTES_MAX])
{
	unsigned char id[(TOKEN_ID_BYTES_MAX - 1) / 2];

	randombytes_buf(id, sizeof id);
	sodium_bin2hex(ret_id, TOKEN_ID_BYTES_MAX, id, sizeof id);
}

void mint_secret(const char *kind, struct span id, char ret_token[TOKEN_BYTES_MAX])
{
	unsigned char secret[SECRET_BYTES];
	char text[sodium_base64_ENCODED_LEN(sizeof secret, sodium_base64_VARIANT_URLSAFE_NO_PADDING)];

	randombytes_buf(secret, sizeof secret);
	sodium_bin2base64(text, sizeof text, secret, sizeof secret, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
	snprintf(ret_token, TOKEN_BYTES_MAX, "stint_%s_%.*s_%s", kind, SPAN_ARGS(id), text);
	sodium_memzero(secret, sizeof secret);
	sodium_memzero(text, sizeof text);
}

void mint_token(const char *kind, char ret_token[TOKEN_BYTES_MAX], char ret_id[TOKEN_ID_BYTES_MAX])
{
	mint_id(ret_id);
	mint_secret(kind, span_of(ret_id), ret_token);
}

void mint_pin(const unsigned char hash[TOKEN_PIN_HASH_BYTES], char ret_pin[TOKEN_PIN_BYTES_MAX])
{
	base32_put(hash, TOKEN_PIN_BYTES_MAX - 1, ret_pin);
}

void mint_join(const char *pin, char ret_code[TOKEN_BYTES_MAX], char ret_id[TOKEN_ID_BYTES_MAX])
{
	unsigned char secret[JOIN_SECRET_BYTES];
	char text[TOKEN_PIN_BYTES_MAX];

	mint_id(ret_id);
	randombytes_buf(secret, sizeof secret);
	base32_put(secret, TOKEN_PIN_BYTES_MAX - 1, text);
	snprintf(ret_code, TOKEN_BYTES_MAX, "stint_join_%s_%s%s%s", ret_id, text, pin[0] ? "_" : "", pin);
	sodium_memzero(secret, sizeof secret);
	sodium_memzero(text, sizeof text);
}

struct span token_id(struct span token)
{
	const char *end = token.data + token.len;
	const char *kind = token.len > 0 ? memchr(token.data, '_', token.len) : NULL;
	const char *id = kind ? memchr(kind + 1, '_', (size_t)(end - kind - 1)) : NULL;
	const char *secret = id ? memchr(id + 1, '_', (size_t)(end - id - 1)) : NULL;

	return secret ? (struct span){id + 1, (size_t)(secret - id - 1)} : (struct span){0};
}

bool token_is_whole(struct span token)
{
	struct span id = token_id(token);

	if (id.len == 0)
		return false;
	size_t before = (size_t)(id.data - token.data) + id.len + 1;
	return token.len - before >= SECRET_LEN;
}

/* ---- derived ------------------------------------------------------------------------------------------- */

void mint_key_of_admin(const char *admin_token, unsigned char ret_key[SIGNING_KEY_BYTES])
{
	static const char what[] = "stint: the key of derived tokens, 1";
	crypto_hash_sha256_state state;

	crypto_hash_sha256_init(&state);
	crypto_hash_sha256_update(&state, (const unsigned char *)what, sizeof what);
	crypto_hash_sha256_update(&state, (const unsigned char *)admin_token, strlen(admin_token));
	crypto_hash_sha256_final(&state, ret_key);
}

static void put_fence(const struct derived *derived, char ret_text[2 * BASE36_MAX + 2])
{
	size_t len = base36_encode(derived->fence, ret_text);

	if (derived->reissued > 0) {
		ret_text[len++] = '-';
		len += base36_encode(derived->reissued, ret_text + len);
	}
	ret_text[len] = 0;
}

int derived_text(const struct derived *derived, const struct signing_keys *keys, struct arena *arena,
	struct span *ret_text)
{
	char text[DERIVED_MAX], number[BASE36_MAX + 1], last[2 * MINT_WORKER_BYTES_MAX + 1];
	unsigned char mac[SECRET_BYTES];

	if (keys->count == 0)
		return -EAGAIN;
	const struct signing_key *key = &keys->items[0];
	number[base36_encode(derived->number, number)] = 0;
	if (derived->kind == DERIVED_CLAIM)
		put_fence(derived, last);
	else
		sodium_bin2hex(
			last, sizeof last, (const unsigned char *)derived->worker, derived->worker_len);
	int len = snprintf(text, sizeof text, "%s%.*s.%s.%s.%s", derived_kinds[derived->kind],
		SPAN_ARGS(derived->parent), number, last, key->id);
	if (len < 0 || (size_t)len + 2 + SECRET_LEN > sizeof text)
		return -ENOMEM;
	crypto_auth_hmacsha256(mac, (const unsigned char *)text, (size_t)len, key->secret);
	text[len++] = '_';
	sodium_bin2base64(text + len, sizeof text - (size_t)len, mac, sizeof mac,
		sodium_base64_VARIANT_URLSAFE_NO_PADDING);
	int r = arena_copy(arena, (struct span){text, (size_t)len + SECRET_LEN}, ret_text);
	sodium_memzero(mac, sizeof mac);
	sodium_memzero(text, sizeof text);
	return r;
}

bool derived_looks_like(struct span id)
{
	return id.len > 0 && memchr(id.data, '.', id.len) != NULL;
}

/* The parts of an id: three, and the key. */
static bool split(struct span id, struct span ret_parts[MARKS_MAX + 1])
{
	const char *at = id.data, *end = id.data + id.len;
	int count = 0;

	while (at && count <= MARKS_MAX) {
		const char *mark = count < MARKS_MAX ? memchr(at, '.', (size_t)(end - at)) : NULL;
		ret_parts[count++] = (struct span){at, (size_t)((mark ? mark : end) - at)};
		at = mark ? mark + 1 : NULL;
	}
	if (count == MARKS_MAX)
		ret_parts[count++] = span_of(SIGNING_KEY_OF_ADMIN);
	return count == MARKS_MAX + 1;
}

static bool read_last(struct span part, struct derived *derived)
{
	const char *end = part.data + part.len,
		   *dash = part.len > 0 ? memchr(part.data, '-', part.len) : NULL;

	if (derived->kind == DERIVED_CLAIM && dash)
		return base36_decode((struct span){part.data, (size_t)(dash - part.data)}, &derived->fence) ==
			0 &&
			base36_decode(
				(struct span){dash + 1, (size_t)(end - dash - 1)}, &derived->reissued) == 0;
	if (derived->kind == DERIVED_CLAIM)
		return base36_decode(part, &derived->fence) == 0;
	return sodium_hex2bin((unsigned char *)derived->worker, sizeof derived->worker, part.data, part.len,
		       NULL, &derived->worker_len, NULL) == 0;
}

static bool mac_is_right(struct span text, const struct signing_key *key)
{
	unsigned char mac[SECRET_BYTES], shown[SECRET_BYTES];
	size_t signed_len = text.len - SECRET_LEN - 1, len;

	crypto_auth_hmacsha256(mac, (const unsigned char *)text.data, signed_len, key->secret);
	bool read = sodium_base642bin(shown, sizeof shown, text.data + signed_len + 1, SECRET_LEN, NULL, &len,
			    NULL, sodium_base64_VARIANT_URLSAFE_NO_PADDING) == 0 &&
		len == sizeof shown;
	return read && sodium_memcmp(mac, shown, sizeof mac) == 0;
}

bool derived_read(
	struct span text, const struct signing_keys *keys, bool is_known, struct derived *ret_derived)
{
	struct derived derived = {0};
	struct span parts[MARKS_MAX + 1];

	if (text.len <= SECRET_LEN + 1 || text.len > DERIVED_MAX ||
		text.data[text.len - SECRET_LEN - 1] != '_' || !split(token_id(text), parts))
		return false;
	const struct signing_key *key = signing_keys_find(keys, parts[MARKS_MAX]);
	if (!key || (!is_known && !mac_is_right(text, key)))
		return false;
	for (int kind = DERIVED_INSTANCE; kind <= DERIVED_CLAIM; kind++) {
		size_t len = strlen(derived_kinds[kind]);
		if (text.len > len && memcmp(text.data, derived_kinds[kind], len) == 0)
			derived.kind = (enum derived_kind)kind;
	}
	if (derived.kind == DERIVED_NOT || base36_decode(parts[1], &derived.number) < 0 ||
		!read_last(parts[2], &derived))
		return false;
	derived.parent = parts[0];
	*ret_derived = derived;
	return true;
}
