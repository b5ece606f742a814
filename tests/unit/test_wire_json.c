#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/take.h"
#include "wire/json/json.h"

static void expect_read(struct span text, const char *minified)
{
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(text, &complaint);
	cleanup(buf_done) struct buf out;

	assert_non_null(doc);
	buf_init(&out, 1 << 20);
	assert_int_equal(json_put_value(&out, yyjson_doc_get_root(doc)), 0);
	assert_int_equal(buf_put_byte(&out, 0), 0);
	assert_string_equal(out.data, minified);
}

static void expect_refused(struct span text, size_t at)
{
	struct json_complaint complaint = {.at = 999};

	assert_null(json_read(text, &complaint));
	assert_true(strlen(complaint.reason) > 0);
	assert_int_equal(complaint.at, at);
}

/* ---- reading ---- */

static void values_are_read_and_written_back(void **state)
{
	(void)state;
	expect_read(SPAN(" {\"a\" : [1, -2.5, true, false, null, \"\\u00fc\"]} \n"),
		"{\"a\":[1,-2.5,true,false,null,\"\xc3\xbc\"]}");
	expect_read(SPAN("7"), "7");
	expect_read(SPAN("\"\""), "\"\"");
	expect_read(SPAN("-9223372036854775808"), "-9223372036854775808");
	expect_read(SPAN("18446744073709551615"), "18446744073709551615");
}

static void expect_kept(const char *number)
{
	char text[300], minified[300];

	snprintf(text, sizeof text, " { \"0.12345678901234567890\" : [ -1.5e1, %s , 7 ] } ", number);
	snprintf(minified, sizeof minified, "{\"0.12345678901234567890\":[-15.0,%s,7]}", number);
	expect_read(span_of(text), minified);
	snprintf(text, sizeof text, "\n%s\t", number);
	expect_read(span_of(text), number);
}

static void a_number_that_no_machine_type_holds_comes_out_as_it_went_in(void **state)
{
	static const char *const numbers[] = {
		"18446744073709551616",
		"-9223372036854775809",
		"123456789012345678901234567890123456789012345678901234567890",
		"0.1234567890123456789012345",
		"-1234567890.12345678901234567890",
		"100000000000000000000000.5",
		"3.14159265358979323846264338327950288e0",
		"0.30000000000000004",
		"1.2345678901234567890E+5",
		"1e400",
		"-1E+400",
		"1e-400",
		"1.5e-310",
		"2.5E100",
	};

	(void)state;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		expect_kept(numbers[i]);
}

static void a_configuration_keeps_long_numbers_behind_comments_too(void **state)
{
	static const char text[] =
		"{/* 1.5 */ \"a\": 0.12345678901234567890, // 2 \"3\"\n \"b\": [1.5, 2,],}";
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read_config(span_of(text), &complaint);
	cleanup(buf_done) struct buf out;

	(void)state;
	assert_non_null(doc);
	buf_init(&out, 1 << 10);
	assert_int_equal(json_put_value(&out, yyjson_doc_get_root(doc)), 0);
	assert_int_equal(buf_put_byte(&out, 0), 0);
	assert_string_equal(out.data, "{\"a\":0.12345678901234567890,\"b\":[1.5,2]}");
}

static void a_number_is_the_nearest_there_is_however_long_it_was(void **state)
{
	static const char text[] =
		"[7,-2,0.5,18446744073709551616,0.500000000000000000001,1e999,-1e999,\"8\",null]";
	static const double expected[] = {7, -2, 0.5, 18446744073709551616.0, 0.5, HUGE_VAL, -HUGE_VAL};
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(span_of(text), &complaint);
	size_t index, max;
	yyjson_val *value;
	double number;

	(void)state;
	assert_non_null(doc);
	yyjson_arr_foreach(yyjson_doc_get_root(doc), index, max, value)
	{
		if (index >= sizeof expected / sizeof *expected) {
			assert_false(json_number(value, &number));
			continue;
		}
		assert_true(json_number(value, &number));
		assert_true(number == expected[index]);
	}
	assert_false(json_number(NULL, &number));
}

static void what_is_not_json_is_refused_with_its_place(void **state)
{
	(void)state;
	expect_refused(SPAN(""), 0);
	expect_refused((struct span){0}, 0);
	expect_refused(SPAN("{\"a\":1,}"), 6);
	expect_refused(SPAN("[1] // one"), 4);
	expect_refused(SPAN("[1]]"), 3);
	expect_refused(SPAN("{a:1}"), 1);
	expect_refused(SPAN("['a']"), 1);
	expect_refused(SPAN("[01]"), 1);
	expect_refused(SPAN("[NaN]"), 1);
	expect_refused(SPAN("\"a\nb\""), 2);
}

static void text_that_is_not_utf8_is_refused(void **state)
{
	struct json_complaint complaint;

	(void)state;
	assert_null(json_read(SPAN("\"\xff\""), &complaint));
	assert_null(json_read(SPAN("\"\xc0\xaf\""), &complaint));
	assert_null(json_read(SPAN("\"\xed\xa0\x80\""), &complaint));
	assert_null(json_read(SPAN("\"\xf4\x90\x80\x80\""), &complaint));
	assert_null(json_read(SPAN("\"\\ud800\""), &complaint));
	assert_null(json_read(SPAN("\xef\xbb\xbf{}"), &complaint));
}

static void a_repeated_key_is_refused_however_it_is_spelt(void **state)
{
	(void)state;
	expect_refused(SPAN("{\"a\":1,\"b\":2,\"a\":3}"), 13);
	expect_refused(SPAN("[{\"x\":{\"a\":1,\"\\u0061\":2}}]"), 13);
	expect_refused(SPAN("{\"\":1,\"\":2}"), 6);
	expect_read(SPAN("{\"a\":{\"a\":1},\"A\":{\"a\":2},\"a \":0}"),
		"{\"a\":{\"a\":1},\"A\":{\"a\":2},\"a \":0}");
}

static void keys_of_a_large_object_are_compared_too(void **state)
{
	cleanup(buf_done) struct buf text;
	struct json_complaint complaint;
	size_t len;

	(void)state;
	buf_init(&text, 1 << 20);
	for (int i = 0; i < 5000; i++)
		assert_int_equal(buf_printf(&text, "%c\"k%d\":%d", i ? ',' : '{', i, i), 0);
	len = text.len;
	assert_int_equal(buf_put_byte(&text, '}'), 0);
	yyjson_doc *doc = json_read(buf_span(&text), &complaint);
	assert_non_null(doc);
	yyjson_doc_free(doc);
	text.len = len;
	assert_int_equal(buf_printf(&text, ",\"k77\":0}"), 0);
	expect_refused(buf_span(&text), len + 1);
}

static struct span nested(struct buf *text, int depth, const char *first)
{
	buf_clear(text);
	assert_int_equal(buf_printf(text, "%s", first), 0);
	for (int i = 1; i < depth; i++)
		assert_int_equal(buf_put_byte(text, '['), 0);
	for (int i = 1; i < depth; i++)
		assert_int_equal(buf_put_byte(text, ']'), 0);
	assert_int_equal(buf_put_byte(text, ']'), 0);
	return buf_span(text);
}

static void nesting_has_a_limit(void **state)
{
	cleanup(buf_done) struct buf text;
	struct json_complaint complaint;
	yyjson_doc *doc;

	(void)state;
	buf_init(&text, 1 << 20);
	doc = json_read(nested(&text, JSON_DEPTH_MAX, "["), &complaint);
	assert_non_null(doc);
	yyjson_doc_free(doc);
	expect_refused(nested(&text, JSON_DEPTH_MAX + 1, "["), 32);
	expect_refused(nested(&text, JSON_DEPTH_MAX + 1, "[{\"[\\\"[\":1}, "), 13 + 31);
	expect_refused(nested(&text, 300000, "["), 32);
}

static void a_configuration_may_have_comments_and_trailing_commas(void **state)
{
	struct json_complaint complaint;
	yyjson_doc *doc =
		json_read_config(SPAN("// stint\n{\n  \"a\": [1, 2,], /* \"[[\" */\n}\n// end"), &complaint);

	(void)state;
	assert_non_null(doc);
	assert_int_equal(yyjson_arr_size(yyjson_obj_get(yyjson_doc_get_root(doc), "a")), 2);
	yyjson_doc_free(doc);
}

static void expect_config_refused(struct span text, uint32_t line, uint32_t column)
{
	struct json_complaint complaint;

	assert_null(json_read_config(text, &complaint));
	struct json_place place = json_place(text, complaint.at);
	assert_int_equal(place.line, line);
	assert_int_equal(place.column, column);
}

static void a_bad_configuration_is_told_by_line_and_column(void **state)
{
	cleanup(buf_done) struct buf text;

	(void)state;
	expect_config_refused(SPAN("{\n  \"a\": 1,\n  \"b\" 2\n}"), 3, 7);
	expect_config_refused(SPAN("{\"a\":1,\n\"a\":1}"), 2, 1);
	expect_config_refused(SPAN("{\"\xc3\xbc\":1, x}"), 1, 9);
	buf_init(&text, 1000);
	expect_config_refused(nested(&text, 33, "// \"[\n/* [\n\" */["), 3, 37);
}

static void strings_know_their_place_in_the_text(void **state)
{
	struct span text = SPAN("// \"b\": \n{ /* \"b\" */ \"\\u0061\": {\r\n\t\"b\": \"c\" }, }");
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read_config(text, &complaint);
	yyjson_val *root = yyjson_doc_get_root(doc);
	yyjson_obj_iter outer = yyjson_obj_iter_with(root);
	yyjson_val *a = yyjson_obj_iter_next(&outer);
	yyjson_obj_iter inner = yyjson_obj_iter_with(yyjson_obj_iter_get_val(a));
	yyjson_val *b = yyjson_obj_iter_next(&inner);

	(void)state;
	assert_non_null(doc);
	assert_int_equal(json_place(text, json_string_at(doc, a)).line, 2);
	assert_int_equal(json_place(text, json_string_at(doc, a)).column, 13);
	assert_int_equal(json_place(text, json_string_at(doc, b)).line, 3);
	assert_int_equal(json_place(text, json_string_at(doc, b)).column, 2);
	assert_int_equal(json_place(text, json_string_at(doc, yyjson_obj_iter_get_val(b))).column, 7);
}

static void a_long_key_does_not_break_the_complaint(void **state)
{
	cleanup(buf_done) struct buf text;
	struct json_complaint complaint;

	(void)state;
	buf_init(&text, 10000);
	for (int twice = 0; twice < 2; twice++)
		assert_int_equal(buf_printf(&text, "%s\"%03000d\":1", twice ? "," : "{", 7), 0);
	assert_int_equal(buf_put_byte(&text, '}'), 0);
	assert_null(json_read_config(buf_span(&text), &complaint));
	assert_true(strlen(complaint.reason) < sizeof complaint.reason);
}

/* ---- writing ---- */

static void expect_quoted(struct span text, const char *expected)
{
	cleanup(buf_done) struct buf out;
	struct json_complaint complaint;
	yyjson_doc *doc;

	buf_init(&out, 1000);
	assert_int_equal(json_put_string(&out, text), 0);
	doc = json_read(buf_span(&out), &complaint);
	assert_non_null(doc);
	yyjson_doc_free(doc);
	assert_int_equal(buf_put_byte(&out, 0), 0);
	assert_string_equal(out.data, expected);
}

static void strings_are_quoted_and_escaped(void **state)
{
	(void)state;
	expect_quoted(SPAN("plain"), "\"plain\"");
	expect_quoted((struct span){0}, "\"\"");
	expect_quoted(SPAN("a\"b\\c/d"), "\"a\\\"b\\\\c/d\"");
	expect_quoted(SPAN("\n\r\t\b\f\0\x1f"), "\"\\n\\r\\t\\u0008\\u000c\\u0000\\u001f\"");
	expect_quoted(SPAN("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\x9d\x7f"),
		"\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\x9d\x7f\"");
}

#define R "\xef\xbf\xbd" /* U+FFFD */

static void bytes_that_are_not_utf8_are_replaced(void **state)
{
	(void)state;
	expect_quoted(SPAN("a\xff"
			   "b"),
		"\"a" R "b\"");
	expect_quoted(SPAN("\x80\xbf"), "\"" R R "\"");
	expect_quoted(SPAN("\xc0\xaf"), "\"" R R "\"");
	expect_quoted(SPAN("\xe2\x82"), "\"" R "\"");
	expect_quoted(SPAN("\xe2\x82\""), "\"" R "\\\"\"");
	expect_quoted(SPAN("\xed\xa0\x80"), "\"" R R R "\"");
	expect_quoted(SPAN("\xf0\x9f\x90x"), "\"" R "x\"");
	expect_quoted(SPAN("\xf4\x90\x80\x80"), "\"" R R R R "\"");
	expect_quoted(SPAN("\xf5\xc3"), "\"" R R "\"");
}

static void bytes_are_told_in_base64(void **state)
{
	static const struct {
		struct span bytes;
		const char *text;
	} rows[] = {
		{{NULL, 0}, "\"\""},
		{SPAN("f"), "\"Zg==\""},
		{SPAN("fo"), "\"Zm8=\""},
		{SPAN("foo"), "\"Zm9v\""},
		{SPAN("foob"), "\"Zm9vYg==\""},
		{SPAN("fooba"), "\"Zm9vYmE=\""},
		{SPAN("foobar"), "\"Zm9vYmFy\""},
		{SPAN("\0\377\376"), "\"AP/+\""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct buf buf;
		buf_init(&buf, 64);
		assert_int_equal(json_put_base64(&buf, rows[i].bytes), 0);
		assert_true(span_equal(buf_span(&buf), span_of(rows[i].text)));
		buf_clear(&buf);
		struct span coded = {rows[i].text + 1, strlen(rows[i].text) - 2};
		assert_int_equal(json_read_base64(coded, &buf), 0);
		assert_true(span_equal(buf_span(&buf), rows[i].bytes));
		buf_done(&buf);
	}
}

static void what_is_no_base64_is_refused(void **state)
{
	static const char *const rows[] = {
		"Zg", "Zg=", "=", "====", "Zg===", "Z===", "Zg==Zg==", "Zm9 ", "Zm-_", "Zm9v\n"};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct buf buf;
		buf_init(&buf, 64);
		assert_int_equal(json_read_base64(span_of(rows[i]), &buf), -EINVAL);
		buf_done(&buf);
	}
}

static void an_object_has_commas_between_its_members(void **state)
{
	cleanup(buf_done) struct buf out;
	struct json_object object;

	(void)state;
	buf_init(&out, 1000);
	json_begin(&object, &out);
	json_members_raw(&object, SPAN(""));
	json_member_string(&object, "s", SPAN("x\"y"));
	json_member_int(&object, "min", INT64_MIN);
	json_member_int(&object, "max", INT64_MAX);
	json_member_int(&object, "zero", 0);
	json_member_bool(&object, "t", true);
	json_member_bool(&object, "f", false);
	json_members_raw(&object, SPAN("\"p\":1,\"q\":2"));
	json_member_null(&object, "n");
	json_member_raw(&object, "r", SPAN("[1]"));
	assert_int_equal(json_end(&object), 0);
	assert_int_equal(buf_put_byte(&out, 0), 0);
	assert_string_equal(out.data,
		"{\"s\":\"x\\\"y\",\"min\":-9223372036854775808,\"max\":9223372036854775807,"
		"\"zero\":0,\"t\":true,\"f\":false,\"p\":1,\"q\":2,\"n\":null,\"r\":[1]}");
}

static void an_empty_object_is_two_braces(void **state)
{
	cleanup(buf_done) struct buf out;
	struct json_object object;

	(void)state;
	buf_init(&out, 1000);
	json_begin(&object, &out);
	assert_int_equal(json_end(&object), 0);
	assert_true(span_equal(buf_span(&out), SPAN("{}")));
}

static void the_first_fault_stays_and_nothing_follows_it(void **state)
{
	cleanup(buf_done) struct buf out;
	struct json_object object;

	(void)state;
	buf_init(&out, 8);
	json_begin(&object, &out);
	json_member_string(&object, "a", SPAN("0123456789"));
	json_member_int(&object, "b", 1);
	assert_int_equal(json_end(&object), -E2BIG);
	assert_true(span_is_empty(buf_span(&out)));
	assert_memory_equal(out.data, "{\"a\":", 5);
	assert_int_equal(out.len, 5);
}

static void room_for_members_is_not_found_behind_a_fault(void **state)
{
	cleanup(buf_done) struct buf out;
	struct json_object object;

	(void)state;
	buf_init(&out, 4);
	json_begin(&object, &out);
	json_member_string(&object, "name", SPAN("0123456789"));
	assert_null(json_room(&object, 8));
	assert_int_equal(json_end(&object), -E2BIG);
}

static void a_value_that_could_not_be_made_is_a_fault_of_the_whole_text(void **state)
{
	cleanup(buf_done) struct buf out, inner;
	struct json_object object;

	(void)state;
	buf_init(&out, 1000);
	buf_init(&inner, 2);
	json_begin(&object, &out);
	json_put_string(&inner, SPAN("long"));
	json_member_buf(&object, "a", &inner);
	json_member_int(&object, "b", 1);
	json_note(&object, -ENOENT);
	assert_int_equal(json_end(&object), -E2BIG);
	assert_true(span_is_empty(buf_span(&out)));
}

static void a_string_that_does_not_fit_is_a_fault(void **state)
{
	(void)state;
	for (size_t max = 0; max < 13; max++) {
		cleanup(buf_done) struct buf out;
		buf_init(&out, max);
		assert_int_equal(json_put_string(&out, SPAN("a\n\x01\xff")), -E2BIG);
		assert_int_equal(buf_fault(&out), -E2BIG);
	}
}

static void a_reply_may_be_deeper_than_what_somebody_sent(void **state)
{
	char deep[2 * 40 + 1] = "";
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;

	(void)state;
	memset(deep, '[', 40);
	memset(deep + 40, ']', 40);
	assert_int_equal(json_read_reply(span_of(deep), &doc), 0);
	assert_non_null(doc);
	expect_refused(span_of(deep), JSON_DEPTH_MAX);
	assert_int_equal(json_read_reply(SPAN("<html>"), &doc), -EPROTO);
}

static void what_is_closed_before_does_not_count_as_depth(void **state)
{
	char deep[100] = "[[],{},\"]\",";

	(void)state;
	memset(deep + 11, '[', 40);
	memset(deep + 51, ']', 41);
	expect_refused(span_of(deep), 11 + JSON_DEPTH_MAX - 1);
}

static void a_comment_ends_with_its_line_or_with_the_text(void **state)
{
	static const char *const texts[] = {"// a\r\n[0.1234567890123456789]",
		"// a\n[0.1234567890123456789]", "[0.1234567890123456789]// a"};
	struct json_complaint complaint;

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read_config(span_of(texts[i]), &complaint);
		assert_non_null(doc);
		assert_true(yyjson_is_raw(yyjson_arr_get_first(yyjson_doc_get_root(doc))));
	}
}

static void a_place_behind_the_text_is_its_end(void **state)
{
	(void)state;
	assert_int_equal(json_place(SPAN("a\nb"), 99).line, 2);
	assert_int_equal(json_place(SPAN("a\nb"), 99).column, 2);
}

static void members_are_read_by_key_and_cut_to_the_room(void **state)
{
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(SPAN("{\"a\":\"text\",\"n\":7}"), &complaint);
	yyjson_val *root = yyjson_doc_get_root(doc);
	char text[4];

	(void)state;
	assert_int_equal(json_int(root, "n"), 7);
	assert_int_equal(json_int(root, "a"), 0);
	assert_int_equal(json_int(root, "missing"), 0);
	json_copy_text(root, "a", text, sizeof text);
	assert_string_equal(text, "tex");
	json_copy_text(root, "n", text, sizeof text);
	assert_string_equal(text, "");
}

static void an_arena_that_is_too_small_is_no_fault_of_the_text(void **state)
{
	cleanup(arena_done) struct arena arena;
	struct json_complaint complaint;

	(void)state;
	arena_init(&arena, 64);
	assert_null(json_read_in(&arena, SPAN("[1,2,3,4,5,6,7,8,9]"), &complaint));
	assert_int_equal(complaint.fault, -E2BIG);
	assert_null(json_read_in(&arena, SPAN("nonsense"), &complaint));
}

/* Everything that a member can be; into a buffer that ends anywhere. */
static int put_all(struct buf *out, const struct buf *ready)
{
	static const struct span two[] = {SPAN("a"), SPAN("b")};
	struct json_object object;

	json_begin(&object, out);
	json_member_int_or_null(&object, "i", 0);
	json_member_int_or_null(&object, "j", -5);
	json_member_string_or_null(&object, "s", SPAN(""));
	json_member_string_or_null(&object, "t", SPAN("x"));
	json_member_string_if_any(&object, "no", SPAN(""));
	json_member_string_if_any(&object, "u", SPAN("y"));
	json_member_word(&object, "w", "word");
	json_member_decimal(&object, "d", 12);
	json_member_bool(&object, "b", true);
	json_member_raw_or_null(&object, "r", SPAN(""));
	json_member_raw_or_null(&object, "R", SPAN("[]"));
	json_member_buf(&object, "f", ready);
	json_members_raw(&object, SPAN(""));
	json_members_raw(&object, SPAN("\"m\":1"));
	json_note(&object, 0);
	if (json_put_key(&object, "l"))
		json_put_strings(out, two, 2);
	if (json_put_key(&object, "B"))
		json_put_base64(out, SPAN("ab"));
	return json_end(&object);
}

static void every_member_is_written_or_is_a_fault(void **state)
{
	static const char expected[] =
		"{\"i\":null,\"j\":-5,\"s\":null,\"t\":\"x\",\"u\":\"y\",\"w\":\"word\",\"d\":\"12\",\"b\":true,"
		"\"r\":null,\"R\":[],\"f\":{},\"m\":1,\"l\":[\"a\",\"b\"],\"B\":\"YWI=\"}";
	cleanup(buf_done) struct buf ready, out;

	(void)state;
	buf_init(&ready, 10);
	buf_init(&out, 1000);
	buf_put_span(&ready, SPAN("{}"));
	assert_int_equal(put_all(&out, &ready), 0);
	assert_true(span_equal(buf_span(&out), span_of(expected)));
	for (size_t max = 0; max < strlen(expected); max++) {
		cleanup(buf_done) struct buf small;
		buf_init(&small, max);
		assert_int_equal(put_all(&small, &ready), -E2BIG);
	}
}

static void members_are_written_into_room_that_is_asked_for_once(void **state)
{
	static const struct span text = SPAN("a\"\x01\xff");
	cleanup(buf_done) struct buf out;
	struct json_object object;

	(void)state;
	buf_init(&out, 1000);
	json_begin(&object, &out);
	json_member_bool(&object, "a", false);
	char *at = json_room(&object, 6 * (1 + JSON_VALUE_MAX) + json_string_max(text) + 10);
	assert_non_null(at);
	at = json_write_int(at, "i", INT64_MIN);
	at = json_write_int(at, "j", 7);
	at = json_write_decimal(at, "d", UINT64_MAX);
	at = json_write_word(at, "w", "word");
	at = json_write_text_or_null(at, "n", SPAN(""));
	at = json_write_text_or_null(at, "t", text);
	json_wrote(&object, at);
	assert_int_equal(json_end(&object), 0);
	assert_true(span_equal(buf_span(&out),
		SPAN("{\"a\":false,\"i\":-9223372036854775808,\"j\":7,\"d\":\"18446744073709551615\","
		     "\"w\":\"word\",\"n\":null,\"t\":\"a\\\"\\u0001\xef\xbf\xbd\"}")));
	assert_null(json_room(&object, 1000));
}

static void room_after_a_fault_is_none(void **state)
{
	cleanup(buf_done) struct buf out;
	struct json_object object;

	(void)state;
	buf_init(&out, 0);
	json_begin(&object, &out);
	json_member_bool(
		&object, "a", false); /* it was not written, so that no member stands before the room */
	assert_null(json_room(&object, 10));
	assert_int_equal(json_end(&object), -E2BIG);
}

static void members_that_somebody_else_wrote_are_passed_on(void **state)
{
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc =
		json_read(SPAN("{\"a\\n\":[1, 2],\"b\":\"\\u00fc\"}"), &complaint);
	cleanup(buf_done) struct buf out;
	struct json_object object;
	size_t i, max;
	yyjson_val *key, *value;

	(void)state;
	buf_init(&out, 1000);
	json_begin(&object, &out);
	yyjson_obj_foreach(yyjson_doc_get_root(doc), i, max, key, value)
	{
		json_member_node(&object, key, value);
	}
	assert_int_equal(json_end(&object), 0);
	assert_true(span_equal(buf_span(&out), SPAN("{\"a\\n\":[1,2],\"b\":\"\xc3\xbc\"}")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_read_and_written_back),
		cmocka_unit_test(a_number_that_no_machine_type_holds_comes_out_as_it_went_in),
		cmocka_unit_test(a_configuration_keeps_long_numbers_behind_comments_too),
		cmocka_unit_test(a_number_is_the_nearest_there_is_however_long_it_was),
		cmocka_unit_test(what_is_not_json_is_refused_with_its_place),
		cmocka_unit_test(text_that_is_not_utf8_is_refused),
		cmocka_unit_test(a_repeated_key_is_refused_however_it_is_spelt),
		cmocka_unit_test(keys_of_a_large_object_are_compared_too),
		cmocka_unit_test(nesting_has_a_limit),
		cmocka_unit_test(a_configuration_may_have_comments_and_trailing_commas),
		cmocka_unit_test(a_bad_configuration_is_told_by_line_and_column),
		cmocka_unit_test(strings_know_their_place_in_the_text),
		cmocka_unit_test(a_long_key_does_not_break_the_complaint),
		cmocka_unit_test(strings_are_quoted_and_escaped),
		cmocka_unit_test(bytes_that_are_not_utf8_are_replaced),
		cmocka_unit_test(bytes_are_told_in_base64),
		cmocka_unit_test(what_is_no_base64_is_refused),
		cmocka_unit_test(an_object_has_commas_between_its_members),
		cmocka_unit_test(an_empty_object_is_two_braces),
		cmocka_unit_test(the_first_fault_stays_and_nothing_follows_it),
		cmocka_unit_test(room_for_members_is_not_found_behind_a_fault),
		cmocka_unit_test(a_value_that_could_not_be_made_is_a_fault_of_the_whole_text),
		cmocka_unit_test(a_string_that_does_not_fit_is_a_fault),
		cmocka_unit_test(a_reply_may_be_deeper_than_what_somebody_sent),
		cmocka_unit_test(what_is_closed_before_does_not_count_as_depth),
		cmocka_unit_test(a_comment_ends_with_its_line_or_with_the_text),
		cmocka_unit_test(a_place_behind_the_text_is_its_end),
		cmocka_unit_test(members_are_read_by_key_and_cut_to_the_room),
		cmocka_unit_test(an_arena_that_is_too_small_is_no_fault_of_the_text),
		cmocka_unit_test(every_member_is_written_or_is_a_fault),
		cmocka_unit_test(members_are_written_into_room_that_is_asked_for_once),
		cmocka_unit_test(room_after_a_fault_is_none),
		cmocka_unit_test(members_that_somebody_else_wrote_are_passed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
