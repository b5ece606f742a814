/*
 * Reading JSON: yyjson does the grammar and the UTF-8; depth and repeated keys are ours.
 *
 * yyjson keeps its own stack on the heap, so depth cannot hurt it; the limit is for those who walk the values
 * afterwards. It is checked here after reading, together with the keys, in one bounded recursion.
 *
 * A number that no machine type holds stays the text that it was, so that what somebody sent comes out as it went in:
 * yyjson does that for integers of more than 64 bits, and for what is larger than a double. Decimals of more digits
 * than a double has are ours; they are looked for only where the document has a decimal at all.
 */
#include "wire/json/json.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/take.h"

enum {
	KEYS_PAIRWISE_MAX = 16, /* up to here comparing all with all is quicker than sorting */
	EXACT_DIGITS = 15,      /* a double has every decimal of so many, and of an exponent of two digits */
};

struct json_reading {
	struct span text;
	const yyjson_doc *doc;
	struct json_complaint *complaint;
	int depth_max;
	bool has_decimals;
};

__attribute__((format(printf, 3, 4))) static void complain(
	struct json_complaint *complaint, size_t at, const char *format, ...)
{
	va_list arguments;

	complaint->at = at;
	complaint->fault = 0;
	va_start(arguments, format);
	vsnprintf(complaint->reason, sizeof complaint->reason, format, arguments);
	va_end(arguments);
}

/* ---- repeated keys ---- */

static int compare_keys(const void *a, const void *b)
{
	yyjson_val *first = *(yyjson_val *const *)a;
	yyjson_val *second = *(yyjson_val *const *)b;
	size_t first_len = yyjson_get_len(first), second_len = yyjson_get_len(second);

	if (first_len != second_len)
		return first_len < second_len ? -1 : 1;
	return memcmp(yyjson_get_str(first), yyjson_get_str(second), first_len);
}

static void complain_repeated(struct json_reading *reading, yyjson_val *key)
{
	size_t len = yyjson_get_len(key);
	const char *text = yyjson_get_str(key);

	complain(reading->complaint, json_string_at(reading->doc, key), "The key \"%.*s\" is repeated.",
		len < 64 ? (int)len : 64, text);
}

static bool few_keys_differ(struct json_reading *reading, yyjson_val *object)
{
	yyjson_val *keys[KEYS_PAIRWISE_MAX];
	size_t count = 0;
	size_t index, max;
	yyjson_val *key, *value;

	yyjson_obj_foreach(object, index, max, key, value)
	{
		for (size_t i = 0; i < count; i++)
			if (compare_keys(&keys[i], &key) == 0) {
				complain_repeated(reading, key);
				return false;
			}
		keys[count++] = key;
	}
	return true;
}

static bool many_keys_differ(struct json_reading *reading, yyjson_val *object)
{
	cleanup(free_at) yyjson_val **keys = malloc(yyjson_obj_size(object) * sizeof *keys);
	size_t index, max;
	yyjson_val *key, *value;

	if (!keys) {
		complain(reading->complaint, 0, "There is no memory to read this.");
		reading->complaint->fault = -ENOMEM;
		return false;
	}
	yyjson_obj_foreach(object, index, max, key, value)
	{
		keys[index] = key;
	}
	qsort(keys, max, sizeof *keys, compare_keys);
	for (size_t i = 1; i < max; i++)
		if (compare_keys(&keys[i - 1], &keys[i]) == 0) {
			complain_repeated(reading, keys[i - 1] > keys[i] ? keys[i - 1] : keys[i]);
			return false;
		}
	return true;
}

static bool keys_differ(struct json_reading *reading, yyjson_val *object)
{
	if (yyjson_obj_size(object) <= KEYS_PAIRWISE_MAX)
		return few_keys_differ(reading, object);
	return many_keys_differ(reading, object);
}

/* ---- depth ---- */

/* Behind the string or the comment that begins at `at`, or `at` itself if none does. The text is known to be good. */
static size_t skip_opaque(struct span text, size_t at)
{
	const char *end = text.data + text.len;
	const char *p = text.data + at;

	if (*p == '"') {
		for (p++; *p != '"'; p++)
			p += *p == '\\';
		p++;
	} else if (*p == '/' && p[1] == '/') {
		while (p < end && *p != '\n' && *p != '\r')
			p++;
	} else if (*p == '/') {
		p = memmem(p + 2, (size_t)(end - p) - 2, "*/", 2);
		assert(p);
		p += 2;
	}
	return (size_t)(p - text.data);
}

/* Where a text that is known to be too deep becomes so. */
static size_t locate_depth(struct span text, int depth_max)
{
	int depth = 0;

	for (size_t at = 0;; at++) {
		assert(at < text.len);
		size_t next = skip_opaque(text, at);
		if (next > at) {
			at = next - 1;
			continue;
		}
		if ((text.data[at] == '[' || text.data[at] == '{') && ++depth > depth_max)
			return at;
		if (text.data[at] == ']' || text.data[at] == '}')
			depth--;
	}
}

static bool check_container(struct json_reading *reading, yyjson_val *value, int depth);

/* `depth` counts the arrays and objects around the value. */
static inline bool check_value(struct json_reading *reading, yyjson_val *value, int depth)
{
	if (yyjson_is_ctn(value))
		return check_container(reading, value, depth);
	reading->has_decimals |= yyjson_is_real(value);
	return true;
}

static bool check_object(struct json_reading *reading, yyjson_val *object, int depth)
{
	size_t index, max;
	yyjson_val *key, *value;

	if (!keys_differ(reading, object))
		return false;
	yyjson_obj_foreach(object, index, max, key, value)
	{
		if (!check_value(reading, value, depth))
			return false;
	}
	return true;
}

static bool check_array(struct json_reading *reading, yyjson_val *array, int depth)
{
	size_t index, max;
	yyjson_val *value;

	yyjson_arr_foreach(array, index, max, value)
	{
		if (!check_value(reading, value, depth))
			return false;
	}
	return true;
}

static bool check_container(struct json_reading *reading, yyjson_val *value, int depth)
{
	if (depth >= reading->depth_max) {
		complain(reading->complaint, locate_depth(reading->text, reading->depth_max),
			"Arrays and objects may be nested %d deep at most.", reading->depth_max);
		return false;
	}
	if (yyjson_is_obj(value))
		return check_object(reading, value, depth + 1);
	return check_array(reading, value, depth + 1);
}

/* ---- decimals ---- */

/* The number that begins at `at`, or nothing. The text is known to be good. */
static struct span number_at(struct span text, size_t at)
{
	struct span rest = {text.data + at, text.len - at};
	size_t len = 0;

	if (*rest.data != '-' && (*rest.data < '0' || *rest.data > '9'))
		return (struct span){0};
	while (len < rest.len && memchr("+-.0123456789Ee", rest.data[len], 15))
		len++;
	return (struct span){rest.data, len};
}

/* Would it come out as another one if it went through a double? Some that would not are counted too: they keep their
 * text without need. */
static bool is_too_fine(struct span number)
{
	const char *end = number.data + number.len, *p = number.data;
	size_t digits = 0;
	bool whole = true;

	for (; p < end && *p != 'e' && *p != 'E'; p++) {
		whole &= *p != '.';
		digits += *p >= '1'; /* the others are signs, the point and zeros */
		digits += *p == '0' && digits > 0;
	}
	if (p == end)
		return !whole && digits > EXACT_DIGITS; /* yyjson knows the whole ones */
	p += 1 + (p[1] == '+' || p[1] == '-');
	return digits > EXACT_DIGITS || end - p > 2;
}

/* Decimals that a double does not hold become texts again. The values lie one behind the other as the text has them,
 * so the numbers of both are counted together. */
static void keep_fine_decimals(yyjson_doc *doc, struct span text)
{
	yyjson_val *value = doc->root;

	for (size_t at = 0; at < text.len; at++) {
		size_t next = skip_opaque(text, at);
		if (next > at) {
			at = next - 1;
			continue;
		}
		struct span number = number_at(text, at);
		if (number.len == 0)
			continue;
		while (!yyjson_is_num(value) && !yyjson_is_raw(value))
			value++;
		assert((size_t)(value - doc->root) < yyjson_doc_get_val_count(doc));
		if (is_too_fine(number)) {
			doc->str_pool[at + number.len] = 0; /* behind it, in a copy that is not read again */
			yyjson_set_raw(value, doc->str_pool + at, number.len);
		}
		value++;
		at += number.len - 1;
	}
}

bool json_number(yyjson_val *value, double *ret_number)
{
	if (yyjson_is_raw(value))
		*ret_number = strtod(yyjson_get_raw(value), NULL);
	else if (yyjson_is_num(value))
		*ret_number = yyjson_get_num(value);
	else
		return false;
	return true;
}

/* ---- reading ---- */

static yyjson_doc *read_with(struct span text, yyjson_read_flag flags, int depth_max,
	const yyjson_alc *memory, struct json_complaint *ret_complaint)
{
	yyjson_read_err error;
	yyjson_doc *doc;
	struct json_reading reading = {.text = text, .complaint = ret_complaint, .depth_max = depth_max};

	if (text.len == 0) {
		complain(ret_complaint, 0, "The text is empty.");
		return NULL;
	}
	/* Without YYJSON_READ_INSITU it does not write to the text. */
	doc = yyjson_read_opts(
		(char *)(uintptr_t)text.data, text.len, flags | YYJSON_READ_BIGNUM_AS_RAW, memory, &error);
	if (!doc) {
		complain(ret_complaint, error.pos, "This is not JSON: %s.", error.msg);
		if (error.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
			ret_complaint->fault = -ENOMEM;
		return NULL;
	}
	reading.doc = doc;
	if (!check_value(&reading, yyjson_doc_get_root(doc), 0)) {
		yyjson_doc_free(doc);
		return NULL;
	}
	if (reading.has_decimals)
		keep_fine_decimals(doc, text);
	return doc;
}

yyjson_doc *json_read(struct span text, struct json_complaint *ret_complaint)
{
	return json_read_to(text, JSON_DEPTH_MAX, ret_complaint);
}

int json_read_reply(struct span text, yyjson_doc **ret_doc)
{
	struct json_complaint complaint;
	yyjson_doc *doc = json_read_to(text, JSON_REPLY_DEPTH_MAX, &complaint);

	if (!doc)
		return complaint.fault < 0 ? complaint.fault : -EPROTO;
	*ret_doc = doc;
	return 0;
}

yyjson_doc *json_read_to(struct span text, int depth_max, struct json_complaint *ret_complaint)
{
	return read_with(text, YYJSON_READ_NOFLAG, depth_max, NULL, ret_complaint);
}

/* The arena that a document is read into. */
struct json_memory {
	struct arena *arena;
	int fault;
};

static void *take_memory(void *context, size_t bytes)
{
	struct json_memory *memory = context;
	void *new = arena_take(memory->arena, bytes);

	if (!new)
		memory->fault = arena_fault(memory->arena, bytes);
	return new;
}

static void *take_more_memory(void *memory, void *old, size_t old_bytes, size_t bytes)
{
	void *new = take_memory(memory, bytes);

	return new ? memcpy(new, old, old_bytes < bytes ? old_bytes : bytes) : NULL;
}

static void leave_memory(void *memory, void *old)
{
	(void)memory;
	(void)old;
}

yyjson_doc *json_read_in(struct arena *arena, struct span text, struct json_complaint *ret_complaint)
{
	struct json_memory memory = {arena, 0};
	const yyjson_alc hands = {take_memory, take_more_memory, leave_memory, &memory};

	yyjson_doc *doc = read_with(text, YYJSON_READ_NOFLAG, JSON_DEPTH_MAX, &hands, ret_complaint);
	if (!doc && ret_complaint->fault < 0 && memory.fault < 0)
		ret_complaint->fault = memory.fault;
	return doc;
}

yyjson_doc *json_read_config(struct span text, struct json_complaint *ret_complaint)
{
	return read_with(text, YYJSON_READ_ALLOW_COMMENTS | YYJSON_READ_ALLOW_TRAILING_COMMAS, JSON_DEPTH_MAX,
		NULL, ret_complaint);
}

/* ---- places ---- */

size_t json_string_at(const yyjson_doc *doc, yyjson_val *string)
{
	/* yyjson unescapes strings where they lie in its copy of the text, so they tell their own position. */
	return (size_t)(yyjson_get_str(string) - doc->str_pool) - 1;
}

struct json_place json_place(struct span text, size_t at)
{
	struct json_place place = {1, 1};

	for (size_t i = 0; i < at && i < text.len; i++) {
		bool continues = ((unsigned char)text.data[i] & 0xc0) == 0x80; /* a character counts once */
		place.column = text.data[i] == '\n' ? 1 : place.column + !continues;
		place.line += text.data[i] == '\n';
	}
	return place;
}

void json_copy_text(yyjson_val *object, const char *key, char *ret_text, size_t room)
{
	struct span text = json_text(yyjson_obj_get(object, key));

	snprintf(ret_text, room, "%.*s", SPAN_ARGS(text));
}

/* ---- base64 ---- */

/* 0 to 63, or 64: no digit. */
static uint32_t digit_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (uint32_t)(c - 'A');
	if (c >= 'a' && c <= 'z')
		return (uint32_t)(c - 'a') + 26;
	if (c >= '0' && c <= '9')
		return (uint32_t)(c - '0') + 52;
	return c == '+' ? 62 : c == '/' ? 63 : 64;
}

int json_read_base64(struct span text, struct buf *out)
{
	size_t padding = 0;

	while (padding < 2 && padding < text.len && text.data[text.len - 1 - padding] == '=')
		padding++;
	if (text.len % 4 != 0)
		return -EINVAL;
	for (size_t i = 0; i < text.len; i += 4) {
		size_t digits = i + 4 == text.len ? 4 - padding : 4;
		uint32_t bits = 0;
		for (size_t j = 0; j < 4; j++) {
			uint32_t digit = j < digits ? digit_of(text.data[i + j]) : 0;
			if (digit > 63)
				return -EINVAL;
			bits = bits << 6 | digit;
		}
		const char three[3] = {(char)(bits >> 16), (char)(bits >> 8), (char)bits};
		buf_put(out, three, digits - 1);
	}
	return buf_fault(out);
}
