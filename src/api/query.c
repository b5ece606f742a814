/*
 * Parameters of a query, and digests of what a client sent.
 *
 * A parameter that nobody knows is refused by name: a misspelt filter must not mean "everything".
 */
#include "api/call.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <strings.h>

#include "api/form.h"
#include "base/hash.h"
#include "base/take.h"

static struct query_value *value_of(struct query_value *values, uint32_t count, struct span name)
{
	for (uint32_t i = 0; i < count; i++) {
		if (span_equal(span_of(values[i].name), name))
			return &values[i];
	}
	return NULL;
}

static void refuse_parameter(struct api_call *call, struct span name, const char *message)
{
	char field[256];

	snprintf(field, sizeof field, "%.*s", (int)(name.len < 200 ? name.len : 200),
		name.data ? name.data : "");
	call_refuse_field(call, field, message);
}

static bool take_parameter(
	struct api_call *call, struct query_value *value, struct span name, struct span text)
{
	cleanup(buf_done) struct buf decoded = {.max = 8192};

	int r = http_decode(text, true, &decoded);
	if (r == -ENOMEM)
		call_refuse_request(call, r);
	else if (r < 0)
		refuse_parameter(call, name, "has an invalid percent-escape");
	return r == 0 && call_keep(call, &decoded, &value->value) == 0;
}

/* `known_only`: others are ignored, and of two with the same name the first counts. */
static bool read_query(struct api_call *call, struct query_value *values, uint32_t count, bool known_only)
{
	struct span name, text;
	size_t at = 0;

	call->query_taken = true;
	while (http_query_next(call->request->query, &at, &name, &text)) {
		struct query_value *value = value_of(values, count, name);
		bool is_new = value && !value->value.data;
		if (!is_new && !known_only) {
			refuse_parameter(
				call, name, value ? "is given twice" : "is not a parameter of this request");
			return false;
		}
		if (is_new && !take_parameter(call, value, name, text))
			return false;
	}
	return true;
}

bool query_read(struct api_call *call, struct query_value *values, uint32_t count)
{
	return read_query(call, values, count, false);
}

bool query_read_known(struct api_call *call, struct query_value *values, uint32_t count)
{
	return read_query(call, values, count, true);
}

/* -1: the text is not a decimal number of up to 18 digits. */
static int64_t decimal_of(struct span text)
{
	int64_t number = 0;

	if (text.len == 0 || text.len > 18)
		return -1;
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] < '0' || text.data[i] > '9')
			return -1;
		number = number * 10 + (text.data[i] - '0');
	}
	return number;
}

bool query_int(struct api_call *call, const struct query_value *value, int64_t min, int64_t max,
	int64_t fallback, int64_t *ret, const char *message)
{
	*ret = value->value.data ? decimal_of(value->value) : fallback;

	assert(min >= 0);
	if (value->value.data && (*ret < min || *ret > max))
		return call_refuse_field(call, value->name, message);
	return true;
}

/* Fixed keys: a digest made by one run of the server is compared by the next. */
static const struct hash_key first_key = {UINT64_C(0x7374696e742d6f6e), UINT64_C(0x65206f6620747761)};
static const struct hash_key second_key = {UINT64_C(0x7374696e742d7477), UINT64_C(0x6f206f6620747761)};

/* Each part goes in with what came before it, so that parts cannot trade bytes. */
static uint64_t digest_parts(const struct hash_key *key, const struct span *parts, uint32_t count)
{
	struct hash_key chained = *key;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t hash = hash_bytes(&chained, parts[i].data, parts[i].len);
		chained.k0 ^= hash;
		chained.k1 += hash_u64(hash ^ parts[i].len);
	}
	return chained.k0 ^ chained.k1;
}

static_assert((int)IDEMPOTENCY_KEY_MAX == (int)COMMAND_NAME_MAX, "both are refused with the same words");
#define NO_NAME "must be 1 to 255 bytes without control characters"

bool call_key_is_good(struct api_call *call)
{
	struct span key = call->request->idempotency_key;

	return call_require_field(
		call, !key.data || text_is_name(key, IDEMPOTENCY_KEY_MAX), "Idempotency-Key", NO_NAME);
}

bool call_param_is_name(struct api_call *call, const char *param)
{
	return call_require_field(call, text_is_name(call->params[0], COMMAND_NAME_MAX), param, NO_NAME);
}

void digest_request(const struct http_request *request, unsigned char ret_fingerprint[16])
{
	struct span parts[] = {span_of(http_method_name(request->method)), request->path, request->body};
	uint64_t digests[] = {digest_parts(&first_key, parts, 3), digest_parts(&second_key, parts, 3)};

	memcpy(ret_fingerprint, digests, sizeof digests);
}

void call_key(const struct api_call *call, struct command_create *create)
{
	if (!call->request->idempotency_key.data)
		return;
	create->idempotency_key = call->request->idempotency_key;
	digest_request(call->request, create->fingerprint);
}

uint64_t digest_text(struct span first, struct span second)
{
	struct span parts[] = {first, second};
	uint64_t digest = digest_parts(&first_key, parts, 2);

	return digest == 0 ? 1 : digest;
}
