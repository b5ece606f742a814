/*
 * Queries and percent-decoding. The pieces of a query are what lies between the '&'s, in order; decoding never
 * makes text longer, and takes back what encoding every byte makes of it.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/take.h"
#include "fuzz/fuzz.h"
#include "wire/http/http.h"

#define TEXT_MAX ((size_t)64 << 20)

static void decode(struct span text, bool in_query)
{
	cleanup(buf_done) struct buf out;
	int r;

	buf_init(&out, TEXT_MAX);
	r = http_decode(text, in_query, &out);
	assert(r == 0 || r == -EINVAL);
	assert(r == 0 ? out.len <= text.len : out.len == 0);
	if (r == 0 && out.len > 0)
		assert(!memchr(out.data, 0, out.len));
}

static void encode_and_decode(struct span text)
{
	cleanup(buf_done) struct buf encoded, decoded;
	bool has_nul = text.len > 0 && memchr(text.data, 0, text.len);

	buf_init(&encoded, TEXT_MAX);
	buf_init(&decoded, TEXT_MAX);
	for (size_t i = 0; i < text.len; i++)
		assert(buf_printf(&encoded, i % 2 ? "%%%02x" : "%%%02X", (unsigned char)text.data[i]) == 0);
	assert(http_decode(buf_span(&encoded), true, &decoded) == (has_nul ? -EINVAL : 0));
	if (!has_nul)
		assert(span_equal(buf_span(&decoded), text));
}

static void walk(struct span query)
{
	cleanup(buf_done) struct buf walked, stripped;
	struct span name, value;
	size_t at = 0, before = 0;

	buf_init(&walked, TEXT_MAX);
	buf_init(&stripped, TEXT_MAX);
	for (; http_query_next(query, &at, &name, &value); before = at) {
		assert(at > before);
		assert(at <= query.len);
		assert(name.len + value.len > 0 || value.data);
		assert(buf_put_span(&walked, name) == 0);
		if (value.data)
			assert(buf_put_byte(&walked, '=') == 0);
		assert(buf_put_span(&walked, value) == 0);
		decode(name, true);
		decode(value, true);
	}
	for (size_t i = 0; i < query.len; i++)
		if (query.data[i] != '&')
			assert(buf_put_byte(&stripped, (unsigned char)query.data[i]) == 0);
	assert(span_equal(buf_span(&walked), buf_span(&stripped)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = {(const char *)data, size};

	decode(text, false);
	decode(text, true);
	encode_and_decode(text);
	walk(text);
	return 0;
}
