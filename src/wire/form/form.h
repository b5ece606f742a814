/*
 * The one reader of typed values. A table of fields says what each value may be; the reader checks the values, stores
 * them in a struct of the caller and reports everything that is wrong at once: the name with its path, the place in the
 * file if there is one, what is allowed and what was given.
 *
 *	retry.baseMs must be a whole number of ms from 1 to 86400000; it is "soon"
 *
 * A value comes from JSON (a request, a configuration file) or is a word (a flag, an environment variable).
 *
 * Errors go to `note`; without one they are collected in `errors` as {"field","message"}. A machine without memory is
 * no error of the writer: then `fault` is set and the values are incomplete.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "wire/json/json.h"

enum field_kind {
	/* struct span, as it stands in the document */
	FIELD_ID,   /* letters, digits and ._:- after a letter or digit, up to max bytes (FORM_ID_MAX if 0) */
	FIELD_NAME, /* 1 to max bytes (FORM_NAME_MAX if 0) without control characters */
	FIELD_TEXT, /* up to max bytes */
	FIELD_NAMES, /* struct name_list: up to FORM_LIST_MAX names of up to max bytes */

	/* const char *, kept in the arena (without an arena: as it stands) */
	FIELD_STRING,  /* one of `words`; or as `accepts` wants it; or of min to max bytes (0: any number) */
	FIELD_STRINGS, /* const char *const *, NULL behind the last: min to max such strings */
	FIELD_CSV,     /* const char *: such a list, joined by commas */

	FIELD_CHOICE,  /* int or an enum: the index of the word in `words` */
	FIELD_INT,     /* int64_t from min to max; 7.0 is 7 */
	FIELD_MILLI,   /* uint64_t: a number with a fraction, in thousandths, from min to max thousandths */
	FIELD_BOOL,    /* bool */
	FIELD_DECIMAL, /* uint64_t, sent as a string of digits */

	FIELD_VALUE,   /* struct span: the JSON of any value */
	FIELD_OBJECT,  /* struct span: the JSON of an object */
	FIELD_LIST,    /* struct span: the JSON of a list of up to FORM_LIST_MAX values */
	FIELD_NODE,    /* yyjson_val *: the caller reads it */
	FIELD_GROUP,   /* a struct: an object that is read by the table `fields` */
	FIELD_BY,      /* read by the function `by` */
	FIELD_REFUSED, /* a name that has a meaning elsewhere: `allowed` is the message */
};

struct form;
struct field;

/* Reads one value; `at` is the place of the field in the struct. False: there was an error. */
typedef bool field_take(struct form *form, const struct field *field, yyjson_val *value, void *at);

struct field {
	const char *name; /* "": not a field of an object */
	enum field_kind kind;
	bool required;
	bool secret; /* the message does not repeat the value */
	bool many;   /* the flag may be given several times */
	bool bare;   /* the flag takes no value: it is the word "true" */
	int64_t min, max;
	size_t at;                         /* offset in the struct */
	const char *words;                 /* the words that are allowed, as "low|high" */
	bool (*accepts)(const char *text); /* the text is good */
	const char *allowed; /* what is allowed, if the kind cannot say it: "an absolute path" */
	const char *unit;    /* of a number */
	const char *flag;    /* name on the command line; NULL: no flag */
	field_take *by;
	const struct field *fields;
	uint32_t field_count;
};

#define FIELD(type, member, name, kind, ...) {name, kind, .at = offsetof(struct type, member), __VA_ARGS__}
#define FIELD_MUST_BE(type, member, name, kind, ...) \
	{name, kind, .required = true, .at = offsetof(struct type, member), __VA_ARGS__}
#define FIELDS(table) (table), (uint32_t)(sizeof(table) / sizeof *(table))

enum {
	FORM_ID_MAX = 128,
	FORM_NAME_MAX = 255,
	FORM_LIST_MAX = 100,
	FORM_ERRORS_MAX = 100, /* further errors are counted and not reported */
	FORM_MESSAGE_MAX = 1024,
};

/* `name` has its path before it, and neither has control characters. */
typedef void form_note(struct form *form, const char *name, const char *message);

/* A step of the path to a field. It lives in the frame of the function that reads what lies behind it. */
struct form_path {
	const struct form_path *outer;
	struct span name;
	int64_t index; /* -1: the name is not that of a list */
};

struct form {
	struct arena *arena;
	form_note *note;
	void *context;    /* of the caller */
	yyjson_val *root; /* the whole document */
	yyjson_val *
		place; /* the string in the document where an error stands: the key of the value that is read */
	const char *noun; /* what an unknown name is not: "field", "key" */
	bool tolerant;    /* unknown fields are skipped */
	bool null_is_wrong;
	bool is_word; /* the value is a word: a wrong one is named by its flag */
	int fault;
	uint32_t error_count;
	struct buf errors;            /* elements of a JSON list */
	const struct form_path *path; /* precedes the names of fields: "finish[3]." */
};

/* Allocates nothing. */
void form_start(struct form *form, struct arena *arena);
void form_done(struct form *form);

/* Reads an object. Bit i: fields[i] was given and is good. A null is no value, except for FIELD_VALUE and where
 * `null_is_wrong`. Required fields that are missing and names that are not in the table are errors. */
uint64_t form_read(
	struct form *form, yyjson_val *object, const struct field *fields, uint32_t count, void *into);

/* The same for an object under `name`, which precedes the names of its fields. Another value is an error. */
uint64_t form_read_inner(struct form *form, const char *name, yyjson_val *object, const struct field *fields,
	uint32_t count, void *into);

/* One value by one row of a table. False: there was an error. */
bool form_take(struct form *form, const struct field *field, yyjson_val *value, void *into);

/* The same for a word: digits are a number, "true" a bool, "a,b" a list. The word outlives the form if that has no arena. */
bool form_take_word(struct form *form, const struct field *field, const char *word, void *into);

/* One value by the row of that name. False: the table has no such row; an error is reported only of the value. */
bool form_take_member(struct form *form, const struct field *fields, uint32_t count, struct span name,
	yyjson_val *value, void *into);

/* An object of names that the writer chose: `take_one` gets each value with its name as the path. */
typedef void form_member_take(struct form *form, struct span name, yyjson_val *value, void *into);
void form_each(
	struct form *form, const char *name, yyjson_val *object, form_member_take *take_one, void *into);

/* Until form_leave(), "name." precedes the names of fields, or "name[index]." if the index is not negative. */
void form_enter(struct form *form, struct form_path *path, struct span name, int64_t index);
void form_leave(struct form *form);

/* An error about a field, or about the object itself if the name is "". Returns false. */
bool form_error(struct form *form, const char *field, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* "must be …; it is …". Returns false. */
bool form_wrong(struct form *form, const struct field *field, yyjson_val *value);
bool form_wrong_item(struct form *form, const struct field *field, size_t index, yyjson_val *item);
bool form_wrong_as(struct form *form, const char *name, const char *allowed, yyjson_val *value);

/* "is not a known field; did you mean …?" */
void form_unknown(struct form *form, struct span name, const struct field *fields, uint32_t count);

/* Notes that memory is missing, once. Returns false. */
bool form_short(struct form *form, int fault);

/* A copy in the arena; NULL, and the fault is set. */
const char *form_keep(struct form *form, struct span text);

/* What a field may be, for people: "a whole number of ms from 1 to 10". */
void field_describe(const struct field *field, char *out, size_t bytes);

/* What a value is, for people: 7, "abc", an object. A long text is cut. No control characters. */
void form_describe(yyjson_val *value, char *out, size_t bytes);

/* The index of the word in "low|high" or "low high"; -1: it is not there. */
int words_find(const char *words, struct span word);

/* An integer, written as 7 or as 7.0: -EINVAL if it is not one, -ERANGE if it does not fit. */
int node_int(yyjson_val *value, int64_t *ret_number);

bool text_is_id(struct span text); /* of up to FORM_ID_MAX bytes */
bool text_is_name(struct span text, size_t max);
