/*
 * JSON as YAML. What readers of YAML make of it is tested with one of them (tests/e2e/test_cli.py); here is how it looks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/take.h"
#include "cli/yaml.h"

CLEANUP_AT(yyjson_doc, yyjson_doc_free);

static void expect(const char *json, const char *yaml)
{
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(span_of(json), &complaint);
	cleanup(buf_done) struct buf out;

	assert_non_null(doc);
	buf_init(&out, 1 << 20);
	assert_int_equal(yaml_put(&out, yyjson_doc_get_root(doc)), 0);
	assert_int_equal(buf_put_byte(&out, 0), 0);
	assert_string_equal(out.data, yaml);
}

static void lists_and_objects_are_blocks(void **state)
{
	(void)state;
	expect("{\"a\":1,\"b\":{\"c\":[true,null]},\"d\":[],\"e\":{}}",
		"a: 1\nb:\n  c:\n    - true\n    - null\nd: []\ne: {}\n");
	expect("[{\"a\":1,\"b\":2},[3,[4]],{}]", "- a: 1\n  b: 2\n- - 3\n  - - 4\n- {}\n");
	expect("[]", "[]\n");
	expect("\"a\\nb\"", "\"a\\nb\"\n");
}

static void a_text_that_could_be_something_else_is_quoted(void **state)
{
	static const char *const quoted[] = {"true", "No", "y", "NULL", "~", "", " ", "a ", " a", "a  b", "1",
		"1e3", "0x1f", "-", "- a", "-1", ".5", ".inf", "nan", "2026-01-01", "12:30", "a: b",
		"a:", "a #b", "#a", "&a", "*a", "!a", "|", ">", "%a", "@a", "`a`", "[a]", "{a}", "a, b",
		"'a'", "?", "? a", "=", "<<", "---", "...", "http://x"};
	char json[64], yaml[64];

	(void)state;
	for (size_t i = 0; i < sizeof quoted / sizeof *quoted; i++) {
		snprintf(json, sizeof json, "[\"%s\"]", quoted[i]);
		snprintf(yaml, sizeof yaml, "- \"%s\"\n", quoted[i]);
		expect(json, yaml);
	}
	expect("{\"yes\":\"t-7k3\",\"a b\":\"say hello\",\"1\":\"/a/b.c\"}",
		"\"yes\": t-7k3\na b: say hello\n\"1\": /a/b.c\n");
}

static void what_is_not_printable_is_escaped(void **state)
{
	(void)state;
	expect("[\"\\u0000\\u001b\\u007f\\u0085\\u009b\\u2028\\ufeff\\uffff\\t\\\"\\\\\"]",
		"- \"\\u0000\\u001b\\u007f\\u0085\\u009b\\u2028\\ufeff\\uffff\\t\\\"\\\\\"\n");
	expect("[\"\\ud83f\\udfff \\ud83d\\ude00 \\u00fc\"]",
		"- \"\\U0001ffff \xf0\x9f\x98\x80 \xc3\xbc\"\n");
}

static void ordinary_lines_stand_as_lines(void **state)
{
	(void)state;
	expect("{\"a\":\"one\\n\\n  two: #\\n\",\"b\":[\"x\\ny\"]}",
		"a: |\n  one\n\n    two: #\nb:\n  - |-\n    x\n    y\n");
	expect("[\"a\\n\\n\"]", "- \"a\\n\\n\"\n");
	expect("[\" a\\nb\"]", "- \" a\\nb\"\n");
	expect("[\"a \\nb\"]", "- \"a \\nb\"\n");
	expect("[\"a\\r\\nb\"]", "- \"a\\u000d\\nb\"\n");
	expect("[\"\\n\"]", "- \"\\n\"\n");
}

static void numbers_are_numbers_to_every_reader(void **state)
{
	(void)state;
	expect("[-1,2.5,1e22,1.5e-7,123456789012345678901234567890,0.12345678901234567890,1E400]",
		"- -1\n- 2.5\n- 1.0e+22\n- 1.5e-7\n- 123456789012345678901234567890\n- 0.12345678901234567890\n- 1.0e+400\n");
}

static void a_long_key_is_told_apart_from_its_value(void **state)
{
	char key[1200], json[1300], yaml[1300];

	(void)state;
	memset(key, 'k', sizeof key);
	key[sizeof key - 1] = 0;
	snprintf(json, sizeof json, "{\"%s\":1}", key);
	snprintf(yaml, sizeof yaml, "? %s\n: 1\n", key);
	expect(json, yaml);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_and_objects_are_blocks),
		cmocka_unit_test(a_text_that_could_be_something_else_is_quoted),
		cmocka_unit_test(what_is_not_printable_is_escaped),
		cmocka_unit_test(ordinary_lines_stand_as_lines),
		cmocka_unit_test(numbers_are_numbers_to_every_reader),
		cmocka_unit_test(a_long_key_is_told_apart_from_its_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
