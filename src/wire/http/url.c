/*
 * Paths and queries: percent-decoding, and the walk over a query's pieces. Splitting comes before decoding, so
 * that an encoded '/' or '&' stays part of its piece.
 */
#include "wire/http/http.h"

#include <errno.h>
#include <string.h>

/* The byte at *at, which moves behind it. -EINVAL. */
static int decode_byte(struct span text, bool in_query, size_t *at)
{
	char byte = text.data[(*at)++];

	if (byte == 0)
		return -EINVAL;
	if (byte == '+' && in_query)
		return ' ';
	if (byte != '%')
		return (unsigned char)byte;
	if (text.len - *at < 2)
		return -EINVAL;
	int high = hex_digit(text.data[(*at)++]);
	int low = hex_digit(text.data[(*at)++]);
	if (high < 0 || low < 0 || (high == 0 && low == 0))
		return -EINVAL;
	return high * 16 + low;
}

int http_decode(struct span text, bool in_query, struct buf *out)
{
	size_t before = out->len;
	size_t at = 0;
	int r = 0;

	while (r >= 0 && at < text.len) {
		r = decode_byte(text, in_query, &at);
		if (r >= 0)
			r = buf_put_byte(out, (unsigned char)r);
	}
	if (r < 0)
		buf_cut(out, before);
	return r;
}

int http_encode(struct span text, struct buf *out)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char byte = (unsigned char)text.data[i], letter = byte | 32;
		bool plain = (byte >= '0' && byte <= '9') || (byte < 128 && letter >= 'a' && letter <= 'z') ||
			(byte != 0 && strchr("-._~", byte));
		if (plain)
			buf_put_byte(out, byte);
		else
			buf_printf(out, "%%%02X", byte);
	}
	return buf_fault(out);
}

int http_put_path(struct buf *out, const char *before, struct span name, const char *after)
{
	buf_put_span(out, span_of(before));
	http_encode(name, out);
	return buf_put_span(out, span_of(after));
}

static void split_at_equals(struct span piece, struct span *ret_name, struct span *ret_value)
{
	const char *equals = memchr(piece.data, '=', piece.len);

	*ret_name = piece;
	*ret_value = (struct span){0};
	if (!equals)
		return;
	ret_name->len = (size_t)(equals - piece.data);
	*ret_value = (struct span){equals + 1, piece.len - ret_name->len - 1};
}

bool http_query_next(struct span query, size_t *at, struct span *ret_name, struct span *ret_value)
{
	while (*at < query.len) {
		struct span piece = {query.data + *at, query.len - *at};
		const char *end = memchr(piece.data, '&', piece.len);

		if (end)
			piece.len = (size_t)(end - piece.data);
		*at += piece.len + (end ? 1 : 0);
		if (piece.len == 0)
			continue;
		split_at_equals(piece, ret_name, ret_value);
		return true;
	}
	return false;
}
