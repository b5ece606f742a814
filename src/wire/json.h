/*
 * JSON: reading within limits (yyjson), writing straight into a buffer.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>

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
int json_put_base64(struct buf *buf, struct span bytes); /* quoted, with padding */
int json_put_int(struct buf *buf, int64_t value);
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
void json_member_string(struct json_object *object, const char *key, struct span value);
void json_member_int(struct json_object *object, const char *key, int64_t value);
void json_member_decimal(struct json_object *object, const char *key,
	uint64_t value); /* as a string: what does not fit into a double travels so */
void json_member_bool(struct json_object *object, const char *key, bool value);
void json_member_null(struct json_object *object, const char *key);
void json_member_raw(struct json_object *object, const char *key, struct span json); /* already JSON */
void json_members_raw(
	struct json_object *object, struct span members); /* already "key":value,… without braces */
