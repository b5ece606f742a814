/*
 * JSON: reading within limits (yyjson), writing straight into a buffer.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/span.h"

enum {
	JSON_DEPTH_MAX = 32,
};

struct json_complaint {
	size_t at; /* byte offset */
	char reason[160];
};

/* Strict JSON of at most JSON_DEPTH_MAX levels, valid UTF-8, no repeated keys in an object. NULL: the complaint
 * says what and where. The text is not kept. Free with yyjson_doc_free(). */
yyjson_doc *json_read(struct span text, struct json_complaint *ret_complaint);

/* The same, in the arena: the document lives as long as that does, and is not freed. */
yyjson_doc *json_read_in(struct arena *arena, struct span text, struct json_complaint *ret_complaint);

/* The same for configuration files: comments and trailing commas are allowed. */
yyjson_doc *json_read_config(struct span text, struct json_complaint *ret_complaint);

/* Where a string of the document, a key or a value, stands in the text it was read from: the byte of its quote. */
size_t json_string_at(const yyjson_doc *doc, yyjson_val *string);

/* Line, and character in it, of a byte; both count from 1. */
struct json_place {
	uint32_t line, column;
};

struct json_place json_place(struct span text, size_t at);

/* Writing. All append to the buffer; -ENOMEM, -E2BIG. */
int json_put_string(
	struct buf *buf, struct span text); /* quoted and escaped; bytes that are not UTF-8 become U+FFFD */
int json_put_word(
	struct buf *buf, struct span word); /* quoted; it is known that nothing in it needs an escape */
int json_put_base64(struct buf *buf, struct span bytes); /* quoted, with padding */
int json_put_negative(struct buf *buf, int64_t value);   /* the rare half of json_put_int() */
static inline int json_put_int(struct buf *buf, int64_t value)
{
	return value < 0 ? json_put_negative(buf, value) : buf_put_decimal(buf, (uint64_t)value);
}
int json_put_decimal(struct buf *buf, uint64_t value); /* as a string of digits */
int json_put_bool(struct buf *buf, bool value);

/* A value as it was read, minified. */
int json_put_value(struct buf *buf, yyjson_val *value);

/* Members of an object: a comma goes before every one but the first. */
struct json_object {
	struct buf *buf;
	bool any;
	int fault; /* the first one; later calls do nothing */
};

void json_begin(struct json_object *object, struct buf *buf);
int json_end(struct json_object *object); /* the fault, if there was any */

static inline void json_note(struct json_object *object, int fault)
{
	if (object->fault == 0)
		object->fault = fault;
}

/* Members are compiled where they are written: of a key that is a literal, a few stores are left. */
#define JSON_MEMBER __attribute__((always_inline)) static inline

/* Keys are words of ours that need no escape. False: there was a fault, now or before, and the value is not to be
 * written. */
JSON_MEMBER bool json_put_key(struct json_object *object, const char *key)
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

JSON_MEMBER void json_member_string(struct json_object *object, const char *key, struct span value)
{
	if (json_put_key(object, key))
		json_note(object, json_put_string(object->buf, value));
}

JSON_MEMBER void json_member_int(struct json_object *object, const char *key, int64_t value)
{
	if (json_put_key(object, key))
		json_note(object, json_put_int(object->buf, value));
}

/* As a string: what does not fit into a double travels so. */
JSON_MEMBER void json_member_decimal(struct json_object *object, const char *key, uint64_t value)
{
	if (json_put_key(object, key))
		json_note(object, json_put_decimal(object->buf, value));
}

JSON_MEMBER void json_member_bool(struct json_object *object, const char *key, bool value)
{
	if (json_put_key(object, key))
		json_note(object, json_put_bool(object->buf, value));
}

JSON_MEMBER void json_member_null(struct json_object *object, const char *key)
{
	if (json_put_key(object, key))
		json_note(object, buf_put_span(object->buf, SPAN("null")));
}

/* A word of ours, that needs no escape. */
JSON_MEMBER void json_member_word(struct json_object *object, const char *key, const char *word)
{
	if (json_put_key(object, key))
		json_note(object, json_put_word(object->buf, span_of(word)));
}

/* A member of a text that somebody else wrote: any key, any value. */
void json_member_node(struct json_object *object, yyjson_val *key, yyjson_val *value);

/* Already JSON. */
void json_member_raw(struct json_object *object, const char *key, struct span json);
/* Already "key":value,… without braces. */
void json_members_raw(struct json_object *object, struct span members);
