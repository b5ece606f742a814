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

static int put_escaped(struct buf *buf, unsigned char byte)
{
	static const char hex[] = "0123456789abcdef";
	char escape[6] = {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};

	switch (byte) {
	case '"':
		return buf_put(buf, "\\\"", 2);
	case '\\':
		return buf_put(buf, "\\\\", 2);
	case '\n':
		return buf_put(buf, "\\n", 2);
	case '\r':
		return buf_put(buf, "\\r", 2);
	case '\t':
		return buf_put(buf, "\\t", 2);
	default:
		return buf_put(buf, escape, sizeof escape);
	}
}

/* One character that cannot be copied without a look. Returns its length in the text, or a fault. */
static int put_special(struct buf *buf, struct span text)
{
	bool good;
	size_t len = utf8_next(text, &good);
	int r;

	if (!good)
		r = buf_put(buf, "\xef\xbf\xbd", 3);
	else if (len == 1)
		r = put_escaped(buf, (unsigned char)text.data[0]);
	else
		r = buf_put(buf, text.data, len);
	return r < 0 ? r : (int)len;
}

static int put_characters(struct buf *buf, struct span text)
{
	size_t at = 0;

	while (at < text.len) {
		size_t run = plain_end(text, at);
		int r = buf_put(buf, text.data + at, run - at);

		at = run;
		if (r == 0 && at < text.len)
			r = put_special(buf, (struct span){text.data + at, text.len - at});
		if (r < 0)
			return r;
		at += (size_t)r;
	}
	return 0;
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
	size_t before = buf->len;

	if (plain_end(text, 0) == text.len)
		return put_word(buf, text);
	int r = buf_put_byte(buf, '"');

	if (r == 0)
		r = put_characters(buf, text);
	if (r == 0)
		r = buf_put_byte(buf, '"');
	if (r < 0)
		buf->len = before;
	return r;
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
	int r = buf_reserve(buf, (bytes.len + 2) / 3 * 4 + 2);

	if (r == 0)
		r = buf_put_byte(buf, '"');
	for (size_t i = 0; r == 0 && i < bytes.len; i += 3) {
		size_t left = bytes.len - i;
		uint32_t three = (uint32_t)(unsigned char)bytes.data[i] << 16;
		if (left > 1)
			three |= (uint32_t)(unsigned char)bytes.data[i + 1] << 8;
		if (left > 2)
			three |= (unsigned char)bytes.data[i + 2];
		char four[4] = {digits[three >> 18], digits[three >> 12 & 63],
			left > 1 ? digits[three >> 6 & 63] : '=', left > 2 ? digits[three & 63] : '='};
		r = buf_put(buf, four, sizeof four);
	}
	return r < 0 ? r : buf_put_byte(buf, '"');
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
		return -ENOMEM;
	}
	return buf_put(buf, text, len);
}

int json_put_strings(struct buf *buf, const struct span *items, size_t count)
{
	bool any = false;
	int r = buf_put_byte(buf, '[');

	for (size_t i = 0; r == 0 && i < count; i++) {
		r = json_put_comma(buf, &any);
		if (r == 0)
			r = json_put_string(buf, items[i]);
	}
	return r < 0 ? r : buf_put_byte(buf, ']');
}

/* ---- objects ---- */

void json_begin(struct json_object *object, struct buf *buf)
{
	*object = (struct json_object){.buf = buf};
	json_note(object, buf_put_byte(buf, '{'));
}

int json_end(struct json_object *object)
{
	if (object->fault == 0)
		json_note(object, buf_put_byte(object->buf, '}'));
	return object->fault;
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
	struct buf *buf = object->buf;

	if (object->fault == 0 && object->any)
		json_note(object, buf_put_byte(buf, ','));
	object->any = true;
	if (object->fault == 0)
		json_note(object, json_put_value(buf, key));
	if (object->fault == 0)
		json_note(object, buf_put_byte(buf, ':'));
	if (object->fault == 0)
		json_note(object, json_put_value(buf, value));
}

void json_members_raw(struct json_object *object, struct span members)
{
	if (members.len == 0)
		return;
	if (object->fault == 0 && object->any)
		json_note(object, buf_put_byte(object->buf, ','));
	object->any = true;
	if (object->fault == 0)
		json_note(object, buf_put_span(object->buf, members));
}
