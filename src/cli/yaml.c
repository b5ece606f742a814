/*
 * Block style, two columns per level. Readers of YAML differ in what they take for a number, a date or a truth: a text is
 * plain only if none of them can take it for something else, and stands in double quotes otherwise, where the escapes are
 * those of JSON. A text of several ordinary lines is a block of lines.
 */
#include "cli/yaml.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/take.h"
#include "base/utf8.h"

enum {
	KEY_BYTES_MAX =
		1000, /* a reader looks no more than 1024 characters ahead for the colon behind a key */
	NUMBER_BYTES_MAX = 1 << 20,
};

struct writer {
	struct buf *out;
	int fault; /* the first one; later calls do nothing */
};

static void put(struct writer *writer, const char *data, size_t len)
{
	if (writer->fault == 0)
		writer->fault = buf_put(writer->out, data, len);
}

static void put_text(struct writer *writer, const char *text)
{
	put(writer, text, strlen(text));
}

static void put_indent(struct writer *writer, int indent)
{
	for (int i = 0; i < indent; i++)
		put(writer, " ", 1);
}

/* ---- texts --------------------------------------------------------------------------------------------------- */

/* The character at the beginning, which is a good one. */
static uint32_t code_point(struct span text, size_t len)
{
	static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	uint32_t code = (unsigned char)text.data[0] & masks[len];

	for (size_t i = 1; i < len; i++)
		code = code << 6 | ((unsigned char)text.data[i] & 0x3f);
	return code;
}

/* What YAML does not call printable, or takes for the end of a line. */
static bool must_be_escaped(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x2028 || code == 0x2029 ||
		code == 0xfeff || (code & 0xfffe) == 0xfffe;
}

static void put_quoted(struct writer *writer, struct span text)
{
	put(writer, "\"", 1);
	for (size_t at = 0, len; at < text.len; at += len) {
		struct span rest = {text.data + at, text.len - at};
		bool good;
		len = utf8_next(rest, &good);
		uint32_t code = good ? code_point(rest, len) : 0xfffd;
		if (code == '"' || code == '\\')
			put(writer, "\\", 1);
		if (code == '\n' || code == '\t')
			put_text(writer, code == '\n' ? "\\n" : "\\t");
		else if (must_be_escaped(code) && writer->fault == 0)
			writer->fault = buf_printf(writer->out, code > 0xffff ? "\\U%08x" : "\\u%04x", code);
		else
			put(writer, good ? rest.data : "\xef\xbf\xbd", good ? len : 3);
	}
	put(writer, "\"", 1);
}

/* Words that some version of YAML has for a truth, or for nothing. */
static bool is_reserved(struct span text)
{
	static const char *const words[] = {
		"true", "false", "yes", "no", "on", "off", "y", "n", "null", "inf", "nan"};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (strlen(words[i]) == text.len && strncasecmp(words[i], text.data, text.len) == 0)
			return true;
	}
	return false;
}

/* Letters, digits and a few marks that mean nothing anywhere, single spaces between them, and a letter first. */
static bool is_plain(struct span text)
{
	bool spaced = true;

	if (text.len == 0 || !(isalpha((unsigned char)text.data[0]) || text.data[0] == '/') ||
		is_reserved(text))
		return false;
	for (size_t i = 0; i < text.len; i++) {
		unsigned char byte = (unsigned char)text.data[i];
		bool space = byte == ' ';
		if (byte >= 0x80 || (!isalnum(byte) && !memchr("_-./+@ ", byte, 7)) || (space && spaced))
			return false;
		spaced = space || (i == 0 && byte == ' ');
	}
	return !spaced;
}

/* Several lines without anything unusual in them or at their ends. */
static bool is_lines(struct span text)
{
	char before = '\n';

	if (text.len == 0 || !memchr(text.data, '\n', text.len) || text.data[0] == ' ' ||
		text.data[0] == '\n')
		return false;
	for (size_t at = 0, len; at < text.len; at += len) {
		struct span rest = {text.data + at, text.len - at};
		bool good;
		len = utf8_next(rest, &good);
		if (!good || (rest.data[0] != '\n' && must_be_escaped(code_point(rest, len))))
			return false;
		if (rest.data[0] == '\n' && (before == ' ' || (before == '\n' && at + 1 == text.len)))
			return false;
		before = rest.data[0];
	}
	return before != ' ';
}

static void put_lines(struct writer *writer, struct span text, int indent)
{
	bool ends = text.data[text.len - 1] == '\n';

	put_text(writer, ends ? "|\n" : "|-\n");
	while (text.len > 0) {
		const char *end = memchr(text.data, '\n', text.len);
		size_t len = end ? (size_t)(end - text.data) : text.len, used = len + (end != NULL);
		put_indent(writer, len > 0 ? indent : 0);
		put(writer, text.data, len);
		text = (struct span){text.data + used, text.len - used};
		if (text.len > 0)
			put(writer, "\n", 1);
	}
}

static void put_string(struct writer *writer, struct span text)
{
	if (is_plain(text))
		put(writer, text.data, text.len);
	else
		put_quoted(writer, text);
}

/* ---- numbers --------------------------------------------------------------------------------------------------- */

/* 1e22 is a text to readers of version 1.1: they want a point, and a sign behind the e. */
static void put_number(struct writer *writer, yyjson_val *value)
{
	cleanup(buf_done) struct buf text = {0};

	buf_init(&text, NUMBER_BYTES_MAX);
	if (writer->fault == 0)
		writer->fault = json_put_value(&text, value);
	if (writer->fault < 0)
		return;
	const char *e = memchr(text.data, 'e', text.len) ? memchr(text.data, 'e', text.len)
							 : memchr(text.data, 'E', text.len);
	size_t mantissa = e ? (size_t)(e - text.data) : text.len;
	put(writer, text.data, mantissa);
	if (!e)
		return;
	if (!memchr(text.data, '.', mantissa))
		put_text(writer, ".0");
	put_text(writer, e[1] == '-' ? "e" : "e+");
	e += 1 + (e[1] == '+');
	put(writer, e, text.len - (size_t)(e - text.data));
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static void put_block(struct writer *writer, yyjson_val *value, int indent, bool begun);

static bool is_block(yyjson_val *value)
{
	return yyjson_is_ctn(value) && yyjson_get_len(value) > 0;
}

/* What stands on the line of its key or dash. `indent` is that of lines below it. */
static void put_scalar(struct writer *writer, yyjson_val *value, int indent)
{
	struct span text = json_text(value);

	if (yyjson_is_str(value) && indent > 0 && is_lines(text))
		put_lines(writer, text, indent);
	else if (yyjson_is_str(value))
		put_string(writer, text);
	else if (yyjson_is_num(value) || yyjson_is_raw(value))
		put_number(writer, value);
	else if (yyjson_is_ctn(value))
		put_text(writer, yyjson_is_arr(value) ? "[]" : "{}");
	else
		put_text(writer, yyjson_is_true(value) ? "true" : yyjson_is_false(value) ? "false" : "null");
	put(writer, "\n", 1);
}

static void put_member(struct writer *writer, yyjson_val *key, yyjson_val *value, int indent)
{
	struct span name = json_text(key);
	bool is_long = name.len > KEY_BYTES_MAX;

	put_text(writer, is_long ? "? " : "");
	put_string(writer, name);
	if (is_long) {
		put(writer, "\n", 1);
		put_indent(writer, indent);
	}
	put(writer, ":", 1);
	put(writer, is_block(value) ? "\n" : " ", 1);
	if (is_block(value))
		put_block(writer, value, indent + 2, false);
	else
		put_scalar(writer, value, indent + 2);
}

static void put_item(struct writer *writer, yyjson_val *value, int indent)
{
	put_text(writer, "- ");
	if (is_block(value))
		put_block(writer, value, indent + 2, true);
	else
		put_scalar(writer, value, indent + 2);
}

/* A list or an object that is not empty. `begun`: its first line is, and stands in its column. */
static void put_block(struct writer *writer, yyjson_val *value, int indent, bool begun)
{
	size_t index, max;
	yyjson_val *key, *inner;

	yyjson_obj_foreach(value, index, max, key, inner)
	{
		put_indent(writer, begun && index == 0 ? 0 : indent);
		put_member(writer, key, inner, indent);
	}
	yyjson_arr_foreach(value, index, max, inner)
	{
		put_indent(writer, begun && index == 0 ? 0 : indent);
		put_item(writer, inner, indent);
	}
}

int yaml_put(struct buf *out, yyjson_val *value)
{
	struct writer writer = {.out = out};

	if (is_block(value))
		put_block(&writer, value, 0, false);
	else
		put_scalar(&writer, value, 0);
	return writer.fault;
}
