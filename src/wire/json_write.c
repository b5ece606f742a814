/*
 * Writing JSON straight into a buffer: the shapes we write are known, so no tree is built first.
 */
#include "wire/json.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

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
		size_t run = at;
		int r;

		while (run < text.len && !is_special[(unsigned char)text.data[run]])
			run++;
		r = buf_put(buf, text.data + at, run - at);
		at = run;
		if (r == 0 && at < text.len)
			r = put_special(buf, (struct span){text.data + at, text.len - at});
		if (r < 0)
			return r;
		at += (size_t)r;
	}
	return 0;
}

int json_put_string(struct buf *buf, struct span text)
{
	size_t before = buf->len;
	int r = buf_put_byte(buf, '"');

	if (r == 0)
		r = put_characters(buf, text);
	if (r == 0)
		r = buf_put_byte(buf, '"');
	if (r < 0)
		buf->len = before;
	return r;
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

int json_put_int(struct buf *buf, int64_t value)
{
	size_t before = buf->len;
	int r = value < 0 ? buf_put_byte(buf, '-') : 0;

	if (r == 0)
		r = buf_put_decimal(buf, value < 0 ? -(uint64_t)value : (uint64_t)value);
	if (r < 0)
		buf->len = before;
	return r;
}

int json_put_bool(struct buf *buf, bool value)
{
	return buf_put_span(buf, value ? SPAN("true") : SPAN("false"));
}

int json_put_value(struct buf *buf, yyjson_val *value)
{
	size_t len;
	yyjson_write_err error;
	cleanup(free_at) char *text = yyjson_val_write_opts(value, YYJSON_WRITE_NOFLAG, NULL, &len, &error);

	if (!text) {
		assert(error.code == YYJSON_WRITE_ERROR_MEMORY_ALLOCATION); /* what was read can be written */
		return -ENOMEM;
	}
	return buf_put(buf, text, len);
}

/* ---- objects ---- */

static void note(struct json_object *object, int fault)
{
	if (object->fault == 0)
		object->fault = fault;
}

void json_begin(struct json_object *object, struct buf *buf)
{
	*object = (struct json_object){.buf = buf};
	note(object, buf_put_byte(buf, '{'));
}

int json_end(struct json_object *object)
{
	if (object->fault == 0)
		note(object, buf_put_byte(object->buf, '}'));
	return object->fault;
}

static bool put_comma(struct json_object *object)
{
	if (object->fault == 0 && object->any)
		note(object, buf_put_byte(object->buf, ','));
	object->any = true;
	return object->fault == 0;
}

/* Keys are words of ours that need no escape. False: there was a fault, now or before, and the value is not to be
 * written. */
static bool put_key(struct json_object *object, const char *key)
{
	struct buf *buf = object->buf;
	size_t len = strlen(key);

	if (object->fault == 0)
		object->fault = buf_reserve(buf, len + 4);
	if (object->fault != 0)
		return false;
	char *at = buf->data + buf->len;
	if (object->any)
		*at++ = ',';
	*at++ = '"';
	memcpy(at, key, len);
	at += len;
	*at++ = '"';
	*at++ = ':';
	buf->len = (size_t)(at - buf->data);
	object->any = true;
	return true;
}

void json_member_string(struct json_object *object, const char *key, struct span value)
{
	if (put_key(object, key))
		note(object, json_put_string(object->buf, value));
}

void json_member_int(struct json_object *object, const char *key, int64_t value)
{
	if (put_key(object, key))
		note(object, json_put_int(object->buf, value));
}

void json_member_decimal(struct json_object *object, const char *key, uint64_t value)
{
	if (!put_key(object, key))
		return;
	note(object, buf_put_byte(object->buf, '"'));
	note(object, buf_put_decimal(object->buf, value));
	note(object, buf_put_byte(object->buf, '"'));
}

void json_member_bool(struct json_object *object, const char *key, bool value)
{
	if (put_key(object, key))
		note(object, json_put_bool(object->buf, value));
}

void json_member_null(struct json_object *object, const char *key)
{
	if (put_key(object, key))
		note(object, buf_put_span(object->buf, SPAN("null")));
}

void json_member_raw(struct json_object *object, const char *key, struct span json)
{
	assert(json.len > 0);
	if (put_key(object, key))
		note(object, buf_put_span(object->buf, json));
}

void json_members_raw(struct json_object *object, struct span members)
{
	if (members.len > 0 && put_comma(object))
		note(object, buf_put_span(object->buf, members));
}
