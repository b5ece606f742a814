#include "cli/frame/json_walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* "key=value;" of every member, or "value;" of every element; then "!at reason" if something is wrong. */
static void walked(const char *text, bool list, const char *expected)
{
	struct json_walk walk;
	struct span key = {0}, value;
	char told[512] = "";
	size_t len = 0;
	bool good =
		list ? json_walk_list(&walk, span_of(text), 0) : json_walk_object(&walk, span_of(text), 0);

	while (good &&
		(list ? json_walk_element(&walk, &value)
		      : json_walk_key(&walk, &key) && json_walk_value(&walk, &value)))
		len += (size_t)snprintf(told + len, sizeof told - len, "%.*s%s%.*s;", SPAN_ARGS(key),
			list ? "" : "=", SPAN_ARGS(value));
	json_walk_end(&walk);
	if (walk.wrong)
		snprintf(told + len, sizeof told - len, "!%zu %s", walk.at, walk.wrong);
	assert_string_equal(told, expected);
}

static void members_and_elements_come_one_by_one(void **state)
{
	(void)state;
	walked("{}", false, "");
	walked(" { \"a\" : 1 , \"b\":[2,{\"c\":\"}\"}] } ", false, "a=1;b=[2,{\"c\":\"}\"}];");
	walked("{\"a\":\"\\\"]\\\\\",\"b\":null}", false, "a=\"\\\"]\\\\\";b=null;");
	walked("[]", true, "");
	walked("[1,\n{\"x\":[]},\"s\", true]", true, "1;{\"x\":[]};\"s\";true;");
}

static void what_stands_wrong_between_them_is_told_with_its_place(void **state)
{
	(void)state;
	walked("", false, "!0 the text ends here, before it is complete");
	walked("[]", false, "!0 here should be an object: {");
	walked("{", false, "!1 the text ends here, before it is complete");
	walked("{\"a\" 1}", false, "!5 here should be a colon");
	walked("{a:1}", false, "!1 here should be the name of a member, in quotes");
	walked("{\"a\":1 \"b\":2}", false, "a=1;!7 here should be a comma, or the end of the object");
	walked("{\"a\":1,}", false, "a=1;!7 here should be the name of a member, in quotes");
	walked("{\"a\":}", false, "!5 here should be a value");
	walked("{\"a\":{]}", false, "!6 here should be }");
	walked("{\"a\":[1}", false, "!7 here should be ]");
	walked("{} 1", false, "!3 here is more than one value");
	walked("[1 2]", true, "1;!3 here should be a comma, or the end of the list");
	walked("[1,]", true, "1;!3 here should be a value");
	walked("[\"x", true, "!3 the text ends here, before it is complete");
	walked("[\"x\\", true, "!5 the text ends here, before it is complete");
}

static void what_is_nested_too_deep_is_not_followed(void **state)
{
	struct json_walk walk;
	struct span value;
	char text[200];

	(void)state;
	memset(text, '[', sizeof text);
	assert_true(json_walk_list(&walk, (struct span){text, sizeof text}, 0));
	assert_false(json_walk_element(&walk, &value));
	assert_string_equal(walk.wrong, "this is nested too deep");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_and_elements_come_one_by_one),
		cmocka_unit_test(what_stands_wrong_between_them_is_told_with_its_place),
		cmocka_unit_test(what_is_nested_too_deep_is_not_followed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
