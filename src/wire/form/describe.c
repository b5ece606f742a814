/*
 * What the reader of typed values says: one style for every kind of value and every program.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "base/utf8.h"
#include "wire/form/form.h"

enum {
	GIVEN_BYTES_MAX = 100, /* of a text that is repeated in a message */
	ALLOWED_BYTES = 512,
	NAME_BYTES = 1024,
	STEP_BYTES_MAX = 140, /* of one name of a path */
};

/* Appends to a text of fixed size; what does not fit is cut. */
struct sentence {
	char *text;
	size_t bytes, len;
};

__attribute__((format(printf, 2, 3))) static void add(struct sentence *sentence, const char *format, ...)
{
	va_list args;

	if (sentence->len >= sentence->bytes)
		return;
	va_start(args, format);
	int len = vsnprintf(sentence->text + sentence->len, sentence->bytes - sentence->len, format, args);
	va_end(args);
	sentence->len += len > 0 ? (size_t)len : 0;
}

/* Characters up to so many bytes. A terminal must not act on what somebody wrote. */
static void add_plain(struct sentence *sentence, struct span text, size_t max)
{
	size_t at = 0;
	bool good;

	while (at < text.len) {
		struct span rest = {text.data + at, text.len - at};
		size_t len = utf8_next(rest, &good);
		bool controls = !good || (unsigned char)*rest.data < ' ' || *rest.data == 0x7f ||
			(len == 2 && (unsigned char)rest.data[0] == 0xc2 &&
				(unsigned char)rest.data[1] < 0xa0);
		if (at + len > max)
			break;
		add(sentence, "%.*s", controls ? 1 : (int)len, controls ? "?" : rest.data);
		at += len;
	}
	if (at < text.len)
		add(sentence, "…");
}

/* ---- what is allowed --------------------------------------------------------------------------------------- */

static struct span next_word(const char **at)
{
	*at += strspn(*at, "| ");
	struct span word = {*at, strcspn(*at, "| ")};
	*at += word.len;
	return word;
}

int words_find(const char *words, struct span word)
{
	for (int index = 0;; index++) {
		struct span known = next_word(&words);
		if (known.len == 0)
			return -1;
		if (span_equal(known, word))
			return index;
	}
}

static void add_words(struct sentence *sentence, const char *words, const char *last)
{
	struct span word = next_word(&words), next;

	for (const char *before = ""; word.len > 0; word = next) {
		next = next_word(&words);
		add(sentence, "%s\"%.*s\"", next.len == 0 && before[0] ? last : before, SPAN_ARGS(word));
		before = ", ";
	}
}

static void add_string(struct sentence *sentence, const struct field *field)
{
	if (field->words)
		add_words(sentence, field->words, " or ");
	else if (field->min > 0 && field->max > 0)
		add(sentence, "a string of %" PRId64 " to %" PRId64 " bytes", field->min, field->max);
	else if (field->max > 0 || field->kind == FIELD_TEXT)
		add(sentence, "a string of at most %" PRId64 " bytes",
			field->max > 0 ? field->max : FORM_NAME_MAX);
	else
		add(sentence, "a string");
}

static void add_list(struct sentence *sentence, const struct field *field)
{
	int64_t max = field->max > 0 ? field->max : FORM_LIST_MAX;

	add(sentence, "a list of ");
	if (field->words)
		add(sentence, "%s", field->min > 0 ? "one or more of " : "");
	else if (field->min > 0)
		add(sentence, "%" PRId64 " to %" PRId64 " strings", field->min, max);
	else
		add(sentence, "at most %" PRId64 " strings", max);
	if (field->words)
		add_words(sentence, field->words, " and ");
}

static void add_allowed(struct sentence *sentence, const struct field *field)
{
	switch (field->kind) {
	case FIELD_ID:
		add(sentence,
			"1 to %" PRId64 " letters, digits, '.', '_', ':' or '-', the first a letter or digit",
			field->max > 0 ? field->max : FORM_ID_MAX);
		break;
	case FIELD_NAME:
		add(sentence, "a string of 1 to %" PRId64 " bytes without control characters",
			field->max > 0 ? field->max : FORM_NAME_MAX);
		break;
	case FIELD_TEXT:
	case FIELD_STRING:
	case FIELD_CHOICE:
		add_string(sentence, field);
		break;
	case FIELD_NAMES:
		add(sentence,
			"a list of at most %d strings of 1 to %" PRId64 " bytes without control characters",
			FORM_LIST_MAX, field->max > 0 ? field->max : FORM_NAME_MAX);
		break;
	case FIELD_STRINGS:
	case FIELD_CSV:
		add_list(sentence, field);
		break;
	case FIELD_INT:
		add(sentence, "a whole number%s%s from %" PRId64 " to %" PRId64, field->unit ? " of " : "",
			field->unit ? field->unit : "", field->min, field->max);
		break;
	case FIELD_MILLI:
		add(sentence, "a number from %g to %g", (double)field->min / 1000, (double)field->max / 1000);
		break;
	case FIELD_BOOL:
		add(sentence, "true or false");
		break;
	case FIELD_DECIMAL:
		add(sentence, "the string of digits that was given out");
		break;
	case FIELD_LIST:
		add(sentence, "a list of at most %d values", FORM_LIST_MAX);
		break;
	case FIELD_OBJECT:
	case FIELD_GROUP:
		add(sentence, "an object");
		if (field->kind == FIELD_OBJECT && field->max > 0)
			add(sentence, " of at most %" PRId64 " bytes", field->max);
		break;
	case FIELD_VALUE:
	case FIELD_NODE:
	case FIELD_BY:
	case FIELD_REFUSED:
		add(sentence, "another value");
		break;
	}
}

void field_describe(const struct field *field, char *out, size_t bytes)
{
	struct sentence sentence = {out, bytes, 0};

	if (field->allowed)
		add(&sentence, "%s", field->allowed);
	else
		add_allowed(&sentence, field);
}

/* ---- what was given ---------------------------------------------------------------------------------------- */

static void add_given(struct sentence *sentence, yyjson_val *value)
{
	if (yyjson_is_str(value)) {
		add(sentence, "\"");
		add_plain(sentence, json_text(value), GIVEN_BYTES_MAX);
		add(sentence, "\"");
		if (yyjson_get_len(value) > GIVEN_BYTES_MAX)
			add(sentence, " (%zu bytes)", yyjson_get_len(value));
	} else if (yyjson_is_raw(value)) { /* too long for a number */
		add_plain(sentence, (struct span){yyjson_get_raw(value), yyjson_get_len(value)},
			GIVEN_BYTES_MAX);
	} else if (yyjson_is_real(value)) {
		add(sentence, "%g", yyjson_get_real(value));
	} else if (yyjson_is_uint(value)) {
		add(sentence, "%" PRIu64, yyjson_get_uint(value));
	} else if (yyjson_is_int(value)) {
		add(sentence, "%" PRId64, yyjson_get_sint(value));
	} else if (yyjson_arr_size(value) > 0) {
		add(sentence, "a list of %zu", yyjson_arr_size(value));
	} else {
		add(sentence, "%s",
			yyjson_is_obj(value)           ? "an object"
				: yyjson_is_arr(value) ? "an empty list"
						       : yyjson_get_type_desc(value));
	}
}

void form_describe(yyjson_val *value, char *out, size_t bytes)
{
	struct sentence sentence = {out, bytes, 0};

	out[0] = 0;
	add_given(&sentence, value);
}

/* ---- errors ------------------------------------------------------------------------------------------------ */

static void collect(struct form *form, const char *name, const char *message)
{
	struct json_object error;
	size_t before = form->errors.len;

	if (before > 0)
		buf_put_byte(&form->errors, ',');
	json_begin(&error, &form->errors);
	json_member_string(&error, "field", span_of(name));
	json_member_string(&error, "message", span_of(message));
	int r = json_end(&error);
	if (r == -ENOMEM && form->fault == 0)
		form->fault = r;
	if (r < 0)
		buf_cut(&form->errors, before); /* there is no room for more */
}

/* The steps from the outermost on. */
static void add_path(struct sentence *sentence, const struct form_path *path)
{
	if (!path)
		return;
	add_path(sentence, path->outer);
	add_plain(sentence, path->name, STEP_BYTES_MAX);
	if (path->index >= 0)
		add(sentence, "[%" PRId64 "]", path->index);
	add(sentence, ".");
}

static void report(struct form *form, struct span field, const char *message)
{
	char name[NAME_BYTES] = "";
	struct sentence sentence = {name, sizeof name, 0};

	if (form->error_count++ >= FORM_ERRORS_MAX)
		return;
	add_path(&sentence, form->path);
	if (field.len == 0 && sentence.len > 0 && sentence.len < sizeof name)
		name[sentence.len - 1] = 0; /* the object itself: no dot */
	add_plain(&sentence, field, FORM_NAME_MAX);
	if (form->note)
		form->note(form, name, message);
	else
		collect(form, name, message);
}

bool form_error(struct form *form, const char *field, const char *format, ...)
{
	char message[FORM_MESSAGE_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	report(form, span_of(field), message);
	return false;
}

/* "must be ALLOWED", and what it is instead: the whole value, or one of its items. */
static void report_wrong(
	struct form *form, const char *name, const char *allowed, const char *given_as, yyjson_val *given)
{
	char message[FORM_MESSAGE_MAX] = "";
	struct sentence sentence = {message, sizeof message, 0};

	add(&sentence, "must be %s", allowed);
	if (given) {
		add(&sentence, "; %s is ", given_as);
		add_given(&sentence, given);
	}
	report(form, span_of(name), message);
}

bool form_wrong_as(struct form *form, const char *name, const char *allowed, yyjson_val *value)
{
	report_wrong(form, name, allowed, "it", value);
	return false;
}

static bool wrong(struct form *form, const struct field *field, const char *given_as, yyjson_val *given)
{
	char allowed[ALLOWED_BYTES] = "";

	field_describe(field, allowed, sizeof allowed);
	report_wrong(form, form->is_word && field->flag ? field->flag : field->name, allowed, given_as,
		field->secret ? NULL : given);
	return false;
}

bool form_wrong(struct form *form, const struct field *field, yyjson_val *value)
{
	return wrong(form, field, "it", value);
}

bool form_wrong_item(struct form *form, const struct field *field, size_t index, yyjson_val *item)
{
	yyjson_val *outer = form->place;
	char given_as[32];

	snprintf(given_as, sizeof given_as, "[%zu]", index);
	if (yyjson_is_str(item) && outer)
		form->place = item; /* the item has a place of its own */
	wrong(form, field, given_as, item);
	form->place = outer;
	return false;
}

static bool is_known(const struct field *field)
{
	return field->name[0] && field->kind != FIELD_REFUSED;
}

void form_unknown(struct form *form, struct span name, const struct field *fields, uint32_t count)
{
	char typed[FORM_NAME_MAX + 1], message[FORM_MESSAGE_MAX] = "";
	struct sentence word = {typed, sizeof typed, 0}, sentence = {message, sizeof message, 0};
	struct suggestion best = {0};
	uint32_t known = 0, told = 0;

	typed[0] = 0;
	add_plain(&word, name, 60);
	for (uint32_t i = 0; i < count; i++) {
		if (!is_known(&fields[i]))
			continue;
		suggest_consider(&best, typed, fields[i].name);
		known++;
	}
	add(&sentence, "is not a known %s", form->noun ? form->noun : "field");
	if (best.word)
		add(&sentence, "; did you mean %s?", best.word);
	for (uint32_t i = 0; !best.word && i < count; i++) {
		if (!is_known(&fields[i]))
			continue;
		add(&sentence, "%s%s",
			told == 0                   ? (known == 1 ? "; the known one is " : "; known are ")
				: told + 1 == known ? " and "
						    : ", ",
			fields[i].name);
		told++;
	}
	report(form, name, message);
}
