/*
 * JSON: reading within limits (yyjson), writing straight into a buffer.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/span.h"
#include "base/take.h"

enum {
	JSON_DEPTH_MAX = 32,
	JSON_REPLY_DEPTH_MAX =
		48, /* of what the server says: around what somebody sent there are levels of its own */
};

/* For cleanup(): yyjson_doc_free_at frees the document when the scope ends. */
CLEANUP_AT(yyjson_doc, yyjson_doc_free);

struct json_complaint {
	size_t at; /* byte offset */
	int fault; /* 0: the text is wrong; -ENOMEM, -E2BIG: the machine or the arena has no room to read it */
	char reason[160];
};

/* Strict JSON of at most JSON_DEPTH_MAX levels, valid UTF-8, no repeated keys in an object. NULL: the complaint
 * says what and where. The text is not kept. Free with yyjson_doc_free(). */
yyjson_doc *json_read(struct span text, struct json_complaint *ret_complaint);

/* The same, of at most so many levels. */
yyjson_doc *json_read_to(struct span text, int depth_max, struct json_complaint *ret_complaint);

/* What a server of ours said, of at most JSON_REPLY_DEPTH_MAX levels. -EPROTO: it is not JSON; -ENOMEM. */
int json_read_reply(struct span text, yyjson_doc **ret_doc);

/* The same, in the arena: the document lives as long as that does, and is not freed. */
yyjson_doc *json_read_in(struct arena *arena, struct span text, struct json_complaint *ret_complaint);

/* The same for configuration files: comments and trailing commas are allowed. */
yyjson_doc *json_read_config(struct span text, struct json_complaint *ret_complaint);

/* A number, if it is one. What no int64_t, uint64_t or double holds exactly is raw in the document, its own text, and is
 * written as it was read; here it is the nearest one there is. So yyjson_is_num() is false of it: ask this. */
bool json_number(yyjson_val *value, double *ret_number);

/* Where a string of the document, a key or a value, stands in the text it was read from: the byte of its quote. */
size_t json_string_at(const yyjson_doc *doc, yyjson_val *string);

/* Line, and character in it, of a byte; both count from 1. */
struct json_place {
	uint32_t line, column;
};

struct json_place json_place(struct span text, size_t at);

/* The text of a string, where it stands in its document; empty: it is no string, or not there. */
static inline struct span json_text(yyjson_val *value)
{
	return yyjson_is_str(value) ? (struct span){yyjson_get_str(value), yyjson_get_len(value)}
				    : (struct span){0};
}

/* The integer of a member; 0: the member is something else, or missing. */
static inline int64_t json_int(yyjson_val *object, const char *key)
{
	return yyjson_get_sint(yyjson_obj_get(object, key));
}

/* The text of a member, with a zero behind it; cut if there is no room for all, empty if the member is missing. */
void json_copy_text(yyjson_val *object, const char *key, char *ret_text, size_t room);

/*
 * Writing. All append to the buffer, and the first fault stays in it (base/buf.h): write everything, then ask once, by
 * json_end() of the outermost object or by buf_fault(). New code does not look at what the puts return.
 *
 *	json_begin(&object, &out);
 *	json_member_string(&object, "name", name);
 *	if (json_put_key(&object, "tags"))
 *		json_put_strings(&out, tags, count);
 *	return json_end(&object);
 */

/* A string is quoted and escaped; bytes in it that are not UTF-8 become U+FFFD. */
int json_put_string(struct buf *buf, struct span text);
int json_put_base64(struct buf *buf, struct span bytes); /* quoted, with padding */

/* Append the bytes of a text in base64, with its padding. -EINVAL: it is none; then some of them may be there. */
int json_read_base64(struct span text, struct buf *out);

/* ["a","b"] */
int json_put_strings(struct buf *buf, const struct span *items, size_t count);

/* The comma before every value of a list but its first. */
static inline int json_put_comma(struct buf *buf, bool *any)
{
	int r = *any ? buf_put_byte(buf, ',') : 0;

	*any = true;
	return r;
}

/* A value as it was read, minified. */
int json_put_value(struct buf *buf, yyjson_val *value);

/* Members of an object: a comma goes before every one but the first. */
struct json_object {
	struct buf *buf;
	bool any;
};

void json_begin(struct json_object *object, struct buf *buf);
int json_end(struct json_object *object); /* the fault of the buffer, if there was any */

/* The value of a member could not be made: a fault of the buffer, if it has none yet. 0 changes nothing. */
static inline void json_note(struct json_object *object, int fault)
{
	if (fault)
		buf_fail(object->buf, fault);
}

/* Members are compiled where they are written: of a key that is a literal, a few stores are left. Without optimization they
 * are functions, so that the coverage counts each of them once. */
#ifdef __OPTIMIZE__
#define JSON_MEMBER __attribute__((always_inline)) static inline
#else
#define JSON_MEMBER static inline
#endif

/* Bytes of ours, which need no escape, at a place that has room for them. Each of these returns its end. */
JSON_MEMBER char *json_write_bytes(char *at, const char *bytes, size_t len)
{
	memcpy(at, bytes, len);
	return at + len;
}

JSON_MEMBER char *json_write_key(char *at, const char *key)
{
	*at++ = '"';
	at = json_write_bytes(at, key, strlen(key));
	*at++ = '"';
	*at++ = ':';
	return at;
}

JSON_MEMBER char *json_write_quoted(char *at, const char *word)
{
	*at++ = '"';
	at = json_write_bytes(at, word, strlen(word));
	*at++ = '"';
	return at;
}

JSON_MEMBER char *json_write_number(char *at, int64_t value)
{
	if (value < 0)
		*at++ = '-';
	return decimal_write(at, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

/* Where the value of a member is to be written, up to so many bytes of it; json_wrote() ends it. Keys are words of ours
 * that need no escape. NULL: there was a fault, now or before. */
JSON_MEMBER char *json_member_at(struct json_object *object, const char *key, size_t value_max)
{
	struct buf *buf = object->buf;

	if (buf_reserve(buf, strlen(key) + 4 + value_max) < 0)
		return NULL;
	char *at = buf->data + buf->len;
	if (object->any)
		*at++ = ',';
	object->any = true;
	return json_write_key(at, key);
}

JSON_MEMBER void json_wrote(struct json_object *object, const char *end)
{
	object->buf->len = (size_t)(end - object->buf->data);
}

/* Already JSON. */
JSON_MEMBER void json_member_raw(struct json_object *object, const char *key, struct span json)
{
	char *at = json_member_at(object, key, json.len);

	if (!at)
		return;
	assert(json.len > 0);
	json_wrote(object, json_write_bytes(at, json.data, json.len));
}

/* The key alone: the caller writes the value behind it. False: there was a fault, now or before. */
JSON_MEMBER bool json_put_key(struct json_object *object, const char *key)
{
	char *at = json_member_at(object, key, 0);

	if (at)
		json_wrote(object, at);
	return at != NULL;
}

/* Whatever text it is: escaped. */
JSON_MEMBER void json_member_string(struct json_object *object, const char *key, struct span value)
{
	if (json_put_key(object, key))
		json_put_string(object->buf, value);
}

JSON_MEMBER void json_member_int(struct json_object *object, const char *key, int64_t value)
{
	char *at = json_member_at(object, key, 1 + DECIMAL_DIGITS_MAX);

	if (at)
		json_wrote(object, json_write_number(at, value));
}

/* As a string: what does not fit into a double travels so. */
JSON_MEMBER void json_member_decimal(struct json_object *object, const char *key, uint64_t value)
{
	char *at = json_member_at(object, key, DECIMAL_DIGITS_MAX + 2);

	if (!at)
		return;
	*at++ = '"';
	at = decimal_write(at, value);
	*at++ = '"';
	json_wrote(object, at);
}

JSON_MEMBER void json_member_bool(struct json_object *object, const char *key, bool value)
{
	json_member_raw(object, key, value ? SPAN("true") : SPAN("false"));
}

JSON_MEMBER void json_member_null(struct json_object *object, const char *key)
{
	json_member_raw(object, key, SPAN("null"));
}

/* Already JSON, in a buffer of its own; a fault of that one is handed on. */
void json_member_buf(struct json_object *object, const char *key, const struct buf *json);

/* Already JSON, or missing. */
JSON_MEMBER void json_member_raw_or_null(struct json_object *object, const char *key, struct span json)
{
	json_member_raw(object, key, json.len > 0 ? json : SPAN("null"));
}

/* A word of ours, that needs no escape. */
JSON_MEMBER void json_member_word(struct json_object *object, const char *key, const char *word)
{
	char *at = json_member_at(object, key, strlen(word) + 2);

	if (at)
		json_wrote(object, json_write_quoted(at, word));
}

/*
 * For what stands in every reply: members one after the other into room that is asked for once. Each begins with a
 * comma, and takes no more than its key, JSON_VALUE_MAX bytes, and what its text does: json_string_max().
 */
enum {
	JSON_VALUE_MAX = DECIMAL_DIGITS_MAX + 8,
};

/* The place of the first one, of which there must be one before it; json_wrote() ends the last. NULL after a fault. */
JSON_MEMBER char *json_room(struct json_object *object, size_t bytes_max)
{
	assert(bytes_max > 0);
	if (buf_reserve(object->buf, bytes_max) < 0)
		return NULL; /* an earlier fault may have kept the member before this one from being written */
	assert(object->any);
	return object->buf->data + object->buf->len;
}

/* The most that a text may take: each byte of it may need an escape. */
static inline size_t json_string_max(struct span text)
{
	return 6 * text.len;
}

/* What json_put_string() does, where there is room for it. */
char *json_write_string(char *at, struct span text);

JSON_MEMBER char *json_write_raw(char *at, const char *key, struct span json)
{
	*at++ = ',';
	return json_write_bytes(json_write_key(at, key), json.data, json.len);
}

JSON_MEMBER char *json_write_int(char *at, const char *key, int64_t value)
{
	return json_write_number(json_write_raw(at, key, SPAN("")), value);
}

JSON_MEMBER char *json_write_decimal(char *at, const char *key, uint64_t value)
{
	at = decimal_write(json_write_raw(at, key, SPAN("\"")), value);
	*at++ = '"';
	return at;
}

JSON_MEMBER char *json_write_word(char *at, const char *key, const char *word)
{
	return json_write_quoted(json_write_raw(at, key, SPAN("")), word);
}

JSON_MEMBER char *json_write_text_or_null(char *at, const char *key, struct span text)
{
	if (text.len == 0)
		return json_write_raw(at, key, SPAN("null"));
	return json_write_string(json_write_raw(at, key, SPAN("")), text);
}

/* Optional values: 0 and the empty text are written as null. */
void json_member_int_or_null(struct json_object *object, const char *key, int64_t value);
void json_member_string_or_null(struct json_object *object, const char *key, struct span value);

/* … or are left out. */
void json_member_string_if_any(struct json_object *object, const char *key, struct span value);

/* A member of a text that somebody else wrote: any key, any value. */
void json_member_node(struct json_object *object, yyjson_val *key, yyjson_val *value);

/* Already "key":value,… without braces. */
void json_members_raw(struct json_object *object, struct span members);
