/*
 * Writing JSON straight into a buffer: the shapes we write are known, so no tree is built first.
 */
#include "wire/json/json.h"

#include <assert.h>
#include <errno.h>

#include "base/scan.h"
#include "base/take.h"
#include "base/utf8.h"

/* ---- strings ---- */

/* Bytes that need a look: quotes, backslashes, control bytes and all that is not ASCII. */
static const bool is_special[256] = {
	[0x00 ... 0x1f] = true,
	['"'] = true,
	['\\'] = true,
	[0x80 ... 0xff] = true,
};

/* The first of them from `at` on, or the end. */
static size_t plain_end(struct span text, size_t at)
{
	for (; at + SCAN_BYTES <= text.len; at += SCAN_BYTES) {
		uint64_t eight = scan_load(text.data + at);
		uint64_t marks = scan_below(eight, ' ') | scan_equal(eight, '"') | scan_equal(eight, '\\') |
			(eight & SCAN_HIGH);

		if (marks)
			return at + scan_first(marks);
	}
	while (at < text.len && !is_special[(unsigned char)text.data[at]])
		at++;
	return at;
}

static void put_escaped(struct buf *buf, unsigned char byte)
{
	static const char hex[] = "0123456789abcdef";
	char escape[6] = {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};

	switch (byte) {
	case '"':
		buf_put(buf, "\\\"", 2);
		return;
	case '\\':
		buf_put(buf, "\\\\", 2);
		return;
	case '\n':
		buf_put(buf, "\\n", 2);
		return;
	case '\r':
		buf_put(buf, "\\r", 2);
		return;
	case '\t':
		buf_put(buf, "\\t", 2);
		return;
	default:
		buf_put(buf, escape, sizeof escape);
	}
}

/* One character that cannot be copied without a look. Returns its length in the text. */
static size_t put_special(struct buf *buf, struct span text)
{
	bool good;
	size_t len = utf8_next(text, &good);

	if (!good)
		buf_put(buf, "\xef\xbf\xbd", 3);
	else if (len == 1)
		put_escaped(buf, (unsigned char)text.data[0]);
	else
		buf_put(buf, text.data, len);
	return len;
}

static void put_characters(struct buf *buf, struct span text)
{
	size_t at = 0;

	while (at < text.len) {
		size_t run = plain_end(text, at);

		buf_put(buf, text.data + at, run - at);
		at = run;
		if (at < text.len)
			at += put_special(buf, (struct span){text.data + at, text.len - at});
	}
}

/* It is known that nothing in it needs an escape. */
static int put_word(struct buf *buf, struct span word)
{
	int r = buf_reserve(buf, word.len + 2);

	if (r < 0)
		return r;
	char *at = buf->data + buf->len;
	*at++ = '"';
	if (word.len > 0)
		memcpy(at, word.data, word.len);
	at[word.len] = '"';
	buf->len += word.len + 2;
	return 0;
}

int json_put_string(struct buf *buf, struct span text)
{
	if (plain_end(text, 0) == text.len)
		return put_word(buf, text);
	buf_put_byte(buf, '"');
	put_characters(buf, text);
	return buf_put_byte(buf, '"');
}

char *json_write_string(char *at, struct span text)
{
	struct buf room = {.data = at, .cap = json_string_max(text) + 2, .max = json_string_max(text) + 2};
	int r = json_put_string(&room, text);

	assert(r == 0); /* there is room for the worst */
	return at + room.len;
}

/* ---- other values ---- */

int json_put_base64(struct buf *buf, struct span bytes)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	if (buf_reserve(buf, (bytes.len + 2) / 3 * 4 + 2) < 0)
		return buf_fault(buf);
	buf_put_byte(buf, '"');
	for (size_t i = 0; i < bytes.len; i += 3) {
		size_t left = bytes.len - i;
		uint32_t three = (uint32_t)(unsigned char)bytes.data[i] << 16;
		if (left > 1)
			three |= (uint32_t)(unsigned char)bytes.data[i + 1] << 8;
		if (left > 2)
			three |= (unsigned char)bytes.data[i + 2];
		char four[4] = {digits[three >> 18], digits[three >> 12 & 63],
			left > 1 ? digits[three >> 6 & 63] : '=', left > 2 ? digits[three & 63] : '='};
		buf_put(buf, four, sizeof four);
	}
	return buf_put_byte(buf, '"');
}

int json_put_value(struct buf *buf, yyjson_val *value)
{
	size_t len;
	yyjson_write_err error;

	if (yyjson_is_str(value)) { /* the most common one needs no text of its own */
		bool is_plain = yyjson_get_subtype(value) == YYJSON_SUBTYPE_NOESC; /* as the reader saw */
		return is_plain ? put_word(buf, json_text(value)) : json_put_string(buf, json_text(value));
	}
	cleanup(free_at) char *text = yyjson_val_write_opts(value, YYJSON_WRITE_NOFLAG, NULL, &len, &error);
	if (!text) {
		assert(error.code == YYJSON_WRITE_ERROR_MEMORY_ALLOCATION); /* what was read can be written */
		return buf_fail(buf, -ENOMEM);
	}
	return buf_put(buf, text, len);
}

int json_put_strings(struct buf *buf, const struct span *items, size_t count)
{
	bool any = false;

	buf_put_byte(buf, '[');
	for (size_t i = 0; i < count; i++) {
		json_put_comma(buf, &any);
		json_put_string(buf, items[i]);
	}
	return buf_put_byte(buf, ']');
}

/* ---- objects ---- */

void json_begin(struct json_object *object, struct buf *buf)
{
	*object = (struct json_object){.buf = buf};
	buf_put_byte(buf, '{');
}

int json_end(struct json_object *object)
{
	return buf_put_byte(object->buf, '}');
}

void json_member_buf(struct json_object *object, const char *key, const struct buf *json)
{
	if (buf_fault(json))
		json_note(object, buf_fault(json));
	else
		json_member_raw(object, key, buf_span(json));
}

void json_member_int_or_null(struct json_object *object, const char *key, int64_t value)
{
	if (value != 0)
		json_member_int(object, key, value);
	else
		json_member_null(object, key);
}

void json_member_string_or_null(struct json_object *object, const char *key, struct span value)
{
	if (value.len > 0)
		json_member_string(object, key, value);
	else
		json_member_null(object, key);
}

void json_member_string_if_any(struct json_object *object, const char *key, struct span value)
{
	if (value.len > 0)
		json_member_string(object, key, value);
}

void json_member_node(struct json_object *object, yyjson_val *key, yyjson_val *value)
{
	json_put_comma(object->buf, &object->any);
	json_put_value(object->buf, key);
	buf_put_byte(object->buf, ':');
	json_put_value(object->buf, value);
}

void json_members_raw(struct json_object *object, struct span members)
{
	if (members.len == 0)
		return;
	json_put_comma(object->buf, &object->any);
	buf_put_span(object->buf, members);
}
