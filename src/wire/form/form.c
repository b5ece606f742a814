/*
 * Values by kind, and objects by a table of fields.
 *
 * A word becomes a value of JSON first, so that every kind is checked in one place whatever its source.
 */
#include "wire/form/form.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/take.h"

enum {
	ERRORS_BYTES_MAX = 64 << 10,
	JSON_BYTES_MAX = 2 << 20,
};

static bool is_alnum(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool text_is_id(struct span text)
{
	if (text.len == 0 || text.len > FORM_ID_MAX || !is_alnum((unsigned char)text.data[0]))
		return false;
	for (size_t i = 1; i < text.len; i++) {
		if (!is_alnum((unsigned char)text.data[i]) && !memchr("._:-", text.data[i], 4))
			return false;
	}
	return true;
}

bool text_is_name(struct span text, size_t max)
{
	if (text.len == 0 || text.len > max)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];
		if (c < 0x20 || c == 0x7f)
			return false;
		/* U+0080 to U+009F: control characters, too, and some terminals act on them */
		if (c == 0xc2 && i + 1 < text.len && (unsigned char)text.data[i + 1] < 0xa0)
			return false;
	}
	return true;
}

void form_start(struct form *form, struct arena *arena)
{
	*form = (struct form){.arena = arena};
	buf_init(&form->errors, ERRORS_BYTES_MAX);
}

void form_done(struct form *form)
{
	buf_done(&form->errors);
}

bool form_short(struct form *form, int fault)
{
	assert(fault < 0);
	if (form->fault == 0)
		form->fault = fault;
	return false;
}

const char *form_keep(struct form *form, struct span text)
{
	struct span kept = text;
	int r = form->arena ? arena_copy(form->arena, text, &kept) : 0;

	if (r < 0)
		form_short(form, r);
	return r < 0 ? NULL : kept.data;
}

/* ---- the path ---------------------------------------------------------------------------------------------- */

void form_enter(struct form *form, struct form_path *path, struct span name, int64_t index)
{
	*path = (struct form_path){form->path, name, index};
	form->path = path;
}

void form_leave(struct form *form)
{
	assert(form->path);
	form->path = form->path->outer;
}

/* ---- texts ------------------------------------------------------------------------------------------------- */

static bool take_text(struct form *form, const struct field *field, yyjson_val *value, struct span *into)
{
	size_t max = field->max > 0       ? (size_t)field->max
		: field->kind == FIELD_ID ? FORM_ID_MAX
					  : FORM_NAME_MAX;
	struct span text = json_text(value);
	bool good = yyjson_is_str(value) && text.len <= max;

	if (field->kind == FIELD_ID)
		good = good && text_is_id(text);
	else if (field->kind == FIELD_NAME)
		good = good && text_is_name(text, max);
	if (!good)
		return form_wrong(form, field, value);
	*into = text;
	return true;
}

static bool take_names(
	struct form *form, const struct field *field, yyjson_val *value, struct name_list *into)
{
	size_t count = yyjson_arr_size(value), i, limit;
	size_t max = field->max > 0 ? (size_t)field->max : FORM_NAME_MAX;
	yyjson_val *item;

	if (!yyjson_is_arr(value) || count > FORM_LIST_MAX)
		return form_wrong(form, field, value);
	struct span *items = arena_alloc(form->arena, (count + 1) * sizeof *items);
	if (!items)
		return form_short(form, arena_fault(form->arena, (count + 1) * sizeof *items));
	yyjson_arr_foreach(value, i, limit, item)
	{
		if (!yyjson_is_str(item) || !text_is_name(json_text(item), max))
			return form_wrong_item(form, field, i, item);
		items[i] = json_text(item);
	}
	*into = (struct name_list){items, (uint32_t)count};
	return true;
}

/* A text that C can carry; NULL: the value is something else. */
static const char *plain_text(yyjson_val *value)
{
	struct span text = json_text(value);

	return text.data && strlen(text.data) == text.len ? text.data : NULL;
}

static bool is_allowed(const struct field *field, const char *text)
{
	size_t len = strlen(text);

	if (field->words)
		return words_find(field->words, span_of(text)) >= 0;
	if (field->accepts && !field->accepts(text))
		return false;
	if (field->kind != FIELD_STRING)
		return true; /* the bounds are those of the list */
	return len >= (size_t)field->min && (field->max == 0 || len <= (size_t)field->max);
}

static bool take_string(struct form *form, const struct field *field, yyjson_val *value, const char **into)
{
	const char *text = plain_text(value);

	if (!text || !is_allowed(field, text))
		return form_wrong(form, field, value);
	text = form_keep(form, span_of(text));
	if (text)
		*into = text;
	return text != NULL;
}

/* The strings of a list; NULL behind the last. NULL: there was an error. */
static const char **kept_strings(struct form *form, const struct field *field, yyjson_val *value)
{
	size_t count = yyjson_arr_size(value), i, limit;
	size_t max = field->max > 0 ? (size_t)field->max : FORM_LIST_MAX;
	yyjson_val *item;

	if (!yyjson_is_arr(value) || count < (size_t)field->min || count > max) {
		form_wrong(form, field, value);
		return NULL;
	}
	const char **list = arena_alloc(form->arena, (count + 1) * sizeof *list);
	if (!list) {
		form_short(form, arena_fault(form->arena, (count + 1) * sizeof *list));
		return NULL;
	}
	yyjson_arr_foreach(value, i, limit, item)
	{
		const char *text = plain_text(item);
		if (!text || !is_allowed(field, text)) {
			form_wrong_item(form, field, i, item);
			return NULL;
		}
		list[i] = form_keep(form, span_of(text));
		if (!list[i])
			return NULL;
	}
	return list;
}

static bool take_strings(
	struct form *form, const struct field *field, yyjson_val *value, const char *const **into)
{
	const char **list = kept_strings(form, field, value);

	if (list)
		*into = list;
	return list != NULL;
}

static bool take_csv(struct form *form, const struct field *field, yyjson_val *value, const char **into)
{
	const char **list = kept_strings(form, field, value);
	size_t bytes = 1;

	for (size_t i = 0; list && list[i]; i++)
		bytes += strlen(list[i]) + 1;
	char *text = list ? arena_alloc(form->arena, bytes) : NULL, *at = text;
	if (list && !text)
		form_short(form, arena_fault(form->arena, bytes));
	for (size_t i = 0; text && list[i]; i++) {
		if (i > 0)
			*at++ = ',';
		at = stpcpy(at, list[i]);
	}
	if (text)
		*into = text;
	return text != NULL;
}

static bool take_choice(struct form *form, const struct field *field, yyjson_val *value, int *into)
{
	int index = yyjson_is_str(value) ? words_find(field->words, json_text(value)) : -1;

	if (index < 0)
		return form_wrong(form, field, value);
	*into = index;
	return true;
}

/* ---- numbers ----------------------------------------------------------------------------------------------- */

int node_int(yyjson_val *value, int64_t *ret_number)
{
	const double exact = 9007199254740992.0; /* 2^53: beyond it a double does not have every integer */
	double real;

	if (yyjson_is_int(value)) {
		if (yyjson_is_uint(value) && yyjson_get_uint(value) > INT64_MAX)
			return -ERANGE;
		*ret_number = yyjson_get_sint(value);
		return 0;
	}
	if (!json_number(value, &real))
		return -EINVAL;
	if (real < -exact || real > exact)
		return -ERANGE;
	if (real != (double)(int64_t)real)
		return -EINVAL;
	*ret_number = (int64_t)real;
	return 0;
}

static bool take_int(struct form *form, const struct field *field, yyjson_val *value, int64_t *into)
{
	int64_t number = 0;

	if (node_int(value, &number) < 0 || number < field->min || number > field->max)
		return form_wrong(form, field, value);
	*into = number;
	return true;
}

static bool take_milli(struct form *form, const struct field *field, yyjson_val *value, uint64_t *into)
{
	double number;

	if (!json_number(value, &number) || number * 1000 < (double)field->min ||
		number * 1000 > (double)field->max)
		return form_wrong(form, field, value);
	*into = (uint64_t)(number * 1000 + 0.5);
	return true;
}

static bool take_bool(struct form *form, const struct field *field, yyjson_val *value, bool *into)
{
	if (!yyjson_is_bool(value))
		return form_wrong(form, field, value);
	*into = yyjson_get_bool(value);
	return true;
}

static bool take_decimal(struct form *form, const struct field *field, yyjson_val *value, uint64_t *into)
{
	struct span text = json_text(value);
	uint64_t number = 0;
	bool good = yyjson_is_str(value) && text.len > 0 && text.len <= 20;

	for (size_t i = 0; good && i < text.len; i++) {
		uint64_t digit = (uint64_t)(text.data[i] - '0');
		good = text.data[i] >= '0' && text.data[i] <= '9' && number <= (UINT64_MAX - digit) / 10;
		number = number * 10 + digit;
	}
	if (!good)
		return form_wrong(form, field, value);
	*into = number;
	return true;
}

/* ---- JSON -------------------------------------------------------------------------------------------------- */

static bool take_json(struct form *form, const struct field *field, yyjson_val *value, struct span *into)
{
	cleanup(buf_done) struct buf text = {0};
	bool good = field->kind == FIELD_OBJECT ? yyjson_is_obj(value)
		: field->kind == FIELD_LIST ? yyjson_is_arr(value) && yyjson_arr_size(value) <= FORM_LIST_MAX
					    : true;

	if (!good)
		return form_wrong(form, field, value);
	buf_init(&text, JSON_BYTES_MAX);
	json_put_value(&text, value);
	int r = buf_fault(&text);
	if (r == 0 && field->kind == FIELD_OBJECT && field->max > 0 && text.len > (size_t)field->max)
		return form_wrong(form, field, value);
	if (r == 0)
		r = arena_copy(form->arena, buf_span(&text), into);
	if (r < 0)
		form_short(form, r);
	return r == 0;
}

bool form_take(struct form *form, const struct field *field, yyjson_val *value, void *into)
{
	void *at = (char *)into + field->at;

	switch (field->kind) {
	case FIELD_ID:
	case FIELD_NAME:
	case FIELD_TEXT:
		return take_text(form, field, value, at);
	case FIELD_NAMES:
		return take_names(form, field, value, at);
	case FIELD_STRING:
		return take_string(form, field, value, at);
	case FIELD_STRINGS:
		return take_strings(form, field, value, at);
	case FIELD_CSV:
		return take_csv(form, field, value, at);
	case FIELD_CHOICE:
		return take_choice(form, field, value, at);
	case FIELD_INT:
		return take_int(form, field, value, at);
	case FIELD_MILLI:
		return take_milli(form, field, value, at);
	case FIELD_BOOL:
		return take_bool(form, field, value, at);
	case FIELD_DECIMAL:
		return take_decimal(form, field, value, at);
	case FIELD_VALUE:
	case FIELD_OBJECT:
	case FIELD_LIST:
		return take_json(form, field, value, at);
	case FIELD_NODE:
		*(yyjson_val **)at = value;
		return true;
	case FIELD_GROUP:
		form_read_inner(form, field->name, value, field->fields, field->field_count, at);
		return yyjson_is_obj(value);
	case FIELD_BY:
		return field->by(form, field, value, at);
	case FIELD_REFUSED:
		form_error(form, field->name, "%s", field->allowed);
		return false;
	}
	return false;
}

/* ---- words ------------------------------------------------------------------------------------------------- */

/* A whole number in decimal digits: no blanks, no plus, no hexadecimal. */
static bool is_number(const char *word)
{
	const char *digits = word + (word[0] == '-');

	return digits[0] && digits[strspn(digits, "0123456789")] == 0;
}

static void set_number(yyjson_val *value, const char *word)
{
	errno = 0;
	long long number = strtoll(word, NULL, 10);
	if (errno == 0)
		yyjson_set_sint(value, number);
	else
		yyjson_set_raw(value, word, strlen(word));
}

/* "a,b" as ["a","b"]: an array stands before its elements. False: there are too many. */
static bool set_list(yyjson_val *values, size_t max, char *words)
{
	size_t count = 0;

	while (words) {
		const char *word = strsep(&words, ",");
		if (++count > max)
			return false;
		yyjson_set_strn(&values[count], word, strlen(word));
	}
	values[0].tag = (uint64_t)count << YYJSON_TAG_BIT | YYJSON_TYPE_ARR;
	values[0].uni.ofs = (count + 1) * sizeof *values;
	return true;
}

static bool take_words(struct form *form, const struct field *field, const char *word, void *into)
{
	yyjson_val values[FORM_LIST_MAX + 1] = {0};
	char *words = (char *)(uintptr_t)form_keep(form, span_of(word));

	assert(form->arena);
	if (!words)
		return false;
	if (!set_list(values, FORM_LIST_MAX, word[0] ? words : NULL))
		yyjson_set_strn(values, word, strlen(word));
	return form_take(form, field, values, into);
}

bool form_take_word(struct form *form, const struct field *field, const char *word, void *into)
{
	bool is_list = field->kind == FIELD_NAMES || field->kind == FIELD_STRINGS || field->kind == FIELD_CSV;
	bool is_bool = field->kind == FIELD_BOOL;
	bool counts = field->kind == FIELD_INT || field->kind == FIELD_MILLI;
	yyjson_val value = {0};

	form->is_word = true;
	if (is_list)
		return take_words(form, field, word, into);
	yyjson_set_strn(&value, word, strlen(word));
	if (is_bool && words_find("false|true", span_of(word)) >= 0)
		yyjson_set_bool(&value, word[0] == 't');
	else if (counts && is_number(word))
		set_number(&value, word);
	return form_take(form, field, &value, into);
}

/* ---- an object --------------------------------------------------------------------------------------------- */

static int field_index(const struct field *fields, uint32_t count, struct span name)
{
	const struct field *end = fields + count;

	if (name.len == 0)
		return -1;
	for (const struct field *field = fields; field < end; field++) {
		if (field->name[0] == name.data[0] && strlen(field->name) == name.len &&
			memcmp(field->name, name.data, name.len) == 0)
			return (int)(field - fields);
	}
	return -1;
}

uint64_t form_read(
	struct form *form, yyjson_val *object, const struct field *fields, uint32_t count, void *into)
{
	uint64_t given = 0, seen = 0;
	yyjson_val *outer = form->place, *key, *value;
	size_t i, limit;

	assert(count <= 64);
	yyjson_obj_foreach(object, i, limit, key, value)
	{
		form->place = key;
		int index = field_index(fields, count, json_text(key));
		if (index < 0) {
			if (!form->tolerant)
				form_unknown(form, json_text(key), fields, count);
			continue;
		}
		if (yyjson_is_null(value) && fields[index].kind != FIELD_VALUE && !form->null_is_wrong)
			continue;
		seen |= UINT64_C(1) << index;
		if (form_take(form, &fields[index], value, into))
			given |= UINT64_C(1) << index;
	}
	form->place = outer;
	for (const struct field *field = fields; field < fields + count; field++) {
		if (field->required && !(seen >> (field - fields) & 1))
			form_error(form, field->name, "is required");
	}
	return given;
}

bool form_take_member(struct form *form, const struct field *fields, uint32_t count, struct span name,
	yyjson_val *value, void *into)
{
	int index = field_index(fields, count, name);

	if (index >= 0)
		form_take(form, &fields[index], value, into);
	return index >= 0;
}

uint64_t form_read_inner(struct form *form, const char *name, yyjson_val *object, const struct field *fields,
	uint32_t count, void *into)
{
	struct form_path path;

	if (!yyjson_is_obj(object)) {
		form_wrong_as(form, name, "an object", object);
		return 0;
	}
	form_enter(form, &path, span_of(name), -1);
	uint64_t given = form_read(form, object, fields, count, into);
	form_leave(form);
	return given;
}

void form_each(
	struct form *form, const char *name, yyjson_val *object, form_member_take *take_one, void *into)
{
	yyjson_val *outer = form->place, *key, *value;
	struct form_path path, inner;
	size_t i, limit;

	if (!yyjson_is_obj(object)) {
		form_wrong_as(form, name, "an object", object);
		return;
	}
	form_enter(form, &path, span_of(name), -1);
	yyjson_obj_foreach(object, i, limit, key, value)
	{
		form->place = key;
		form_enter(form, &inner, json_text(key), -1);
		take_one(form, json_text(key), value, into);
		form_leave(form);
	}
	form_leave(form);
	form->place = outer;
}
