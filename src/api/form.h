/*
 * Reading the fields of a JSON object by a table, and saying everything that is wrong with them at once.
 *
 * Values go into a struct of the caller's at the offsets that the table names. The document lies in the arena of the
 * call, and texts are where they stand in it. A field that is absent or null leaves its target as it was.
 */
#pragma once

#include "api/call.h"

enum field_kind {
	FIELD_ID,      /* struct span: the id of a task as a caller may choose it */
	FIELD_NAME,    /* struct span: 1 to max bytes (COMMAND_NAME_MAX if 0), no control characters */
	FIELD_TEXT,    /* struct span: up to max bytes */
	FIELD_INT,     /* int64_t within [min, max] */
	FIELD_BOOL,    /* bool */
	FIELD_NAMES,   /* struct name_list of up to COMMAND_LIST_MAX names of up to max bytes */
	FIELD_DECIMAL, /* uint64_t, sent as a string of digits */
	FIELD_TOKEN,   /* uint64_t: the token of a heartbeat, 0 if the text is none of ours; "" is as null */
	FIELD_VALUE,   /* struct span: the JSON of any value */
	FIELD_OBJECT,  /* struct span: the JSON of an object */
	FIELD_LIST,    /* struct span: the JSON of a list of up to COMMAND_LIST_MAX values */
	FIELD_NODE,    /* yyjson_val *: the caller looks into it itself */
};

struct field {
	const char *name;
	enum field_kind kind;
	bool required;
	int64_t min, max;
	size_t at;
};

#define FIELD(type, member, name, kind, ...) {name, kind, .at = offsetof(struct type, member), __VA_ARGS__}
#define FIELD_MUST_BE(type, member, name, kind, ...) \
	{name, kind, .required = true, .at = offsetof(struct type, member), __VA_ARGS__}

enum {
	FORM_ERRORS_MAX = 100, /* more are not told */
};

struct form {
	struct api_call *call;
	yyjson_val *root;
	bool tolerant;     /* a door of old clients: fields that it does not know are left out */
	char prefix[32];   /* stands before the names of fields in what is told: "finish[3]." */
	struct buf errors; /* elements of a JSON list */
	uint32_t error_count;
	int fault;
};

/* Reads the body of the request; no body is an empty object. False: it is not JSON, or no object, and the call was
 * refused. Always form_done(). `list_too`: a list will do as well. */
bool form_open(struct form *form, struct api_call *call, bool list_too);
void form_init(struct form *form, struct api_call *call); /* for values that come from elsewhere */
void form_done(struct form *form);

/* Bit i: fields[i] was given and is not null. Fields that are not in the table are errors. */
uint64_t form_read(
	struct form *form, yyjson_val *object, const struct field *fields, uint32_t count, void *into);

/* One value by one row of the table; no error: true. */
bool form_take(struct form *form, const struct field *field, yyjson_val *value, void *into);

void form_error(struct form *form, const char *field, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Nothing was wrong; else the call was refused with all that was. */
bool form_is_good(struct form *form);

/* open, read by the table, judge, done */
bool form_read_body(
	struct api_call *call, const struct field *fields, uint32_t count, void *into, uint64_t *ret_given);

#define FIELDS(table) (table), (uint32_t)(sizeof(table) / sizeof *(table))

/* An integer, be it written as 7 or as 7.0: -EINVAL if it is none, -ERANGE if it is larger than it can be. */
int node_int(yyjson_val *value, int64_t *ret_number);

bool text_is_id(struct span text);
bool text_is_name(struct span text, size_t max);
