#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "cli/verb/checklist.h"

static struct arena arena;

static int set_up(void **state)
{
	(void)state;
	arena_init(&arena, 16 << 20);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_done(&arena);
	return 0;
}

static struct checklist parse(const char *text)
{
	struct checklist list = {0};
	struct checklist_complaint complaint;

	assert_int_equal(checklist_parse(span_of(text), &arena, &list, &complaint), 0);
	return list;
}

static void expect_item(
	const struct checklist *list, uint32_t index, const char *title, int32_t parent, int32_t before)
{
	assert_true(index < list->count);
	assert_true(span_equal(list->items[index].title, span_of(title)));
	assert_int_equal(list->items[index].parent, parent);
	assert_int_equal(list->items[index].before, before);
}

static void indentation_makes_a_tree(void **state)
{
	struct checklist list = parse(
		"# Release\n\n- [ ] release\n  - [ ] build\n    * [ ] compile\n  - [ ] test\n- [ ] rest\n");

	(void)state;
	assert_int_equal(list.count, 5);
	expect_item(&list, 0, "release", CHECKLIST_NONE, CHECKLIST_NONE);
	expect_item(&list, 1, "build", 0, CHECKLIST_NONE);
	expect_item(&list, 2, "compile", 1, CHECKLIST_NONE);
	expect_item(&list, 3, "test", 0, CHECKLIST_NONE);
	expect_item(&list, 4, "rest", CHECKLIST_NONE, CHECKLIST_NONE);
	assert_int_equal(list.items[4].line, 7);
}

static void numbers_go_one_after_the_other(void **state)
{
	struct checklist list = parse("1. one\n2. two\n   - below\n3) three\n- apart\n4. four\n");

	(void)state;
	expect_item(&list, 0, "one", CHECKLIST_NONE, CHECKLIST_NONE);
	expect_item(&list, 1, "two", CHECKLIST_NONE, 0);
	expect_item(&list, 2, "below", 1, CHECKLIST_NONE);
	expect_item(&list, 3, "three", CHECKLIST_NONE, 1);
	expect_item(&list, 4, "apart", CHECKLIST_NONE, CHECKLIST_NONE);
	expect_item(&list, 5, "four", CHECKLIST_NONE, CHECKLIST_NONE);
}

static void what_is_done_is_done_with_all_below(void **state)
{
	struct checklist list = parse("- [x] a\n  - [ ] b\n- [X] c\n- [ ] d\n");

	(void)state;
	assert_true(list.items[0].done);
	assert_true(list.items[1].done);
	assert_true(list.items[2].done);
	assert_false(list.items[3].done);
}

static void text_below_an_item_is_its_own(void **state)
{
	struct checklist list =
		parse("before\n- [ ] a\n  first line\n\n  second line\nnot indented\n\t- [ ] b\n");

	(void)state;
	assert_int_equal(list.count, 2);
	assert_true(span_equal(list.items[0].text, SPAN("first line\nsecond line")));
	expect_item(&list, 1, "b", 0, CHECKLIST_NONE);
	assert_int_equal(list.items[1].text.len, 0);
}

static void code_between_fences_is_text(void **state)
{
	struct checklist list = parse("- a\n  ```sh\n  - b\n  ~~~\n  1. c\n  ```\n~~~\n- d\n~~~~\n- e\n");

	(void)state;
	assert_int_equal(list.count, 2);
	assert_true(span_equal(list.items[0].text, SPAN("```sh\n- b\n~~~\n1. c\n```")));
	expect_item(&list, 1, "e", CHECKLIST_NONE, CHECKLIST_NONE);
}

static void windows_line_ends_and_no_last_one_do_no_harm(void **state)
{
	struct checklist list = parse("- [ ] a\r\n- [ ] b");

	(void)state;
	expect_item(&list, 0, "a", CHECKLIST_NONE, CHECKLIST_NONE);
	expect_item(&list, 1, "b", CHECKLIST_NONE, CHECKLIST_NONE);
}

static void what_looks_like_an_item_and_is_none(void **state)
{
	struct checklist list = parse("-5 degrees\n--flag\n3.14 is pi\n*bold*\n- real\n");

	(void)state;
	assert_int_equal(list.count, 1);
	expect_item(&list, 0, "real", CHECKLIST_NONE, CHECKLIST_NONE);
}

static void expect_complaint(struct span text, uint32_t line)
{
	struct checklist list;
	struct checklist_complaint complaint;

	assert_int_equal(checklist_parse(text, &arena, &list, &complaint), -EINVAL);
	assert_int_equal(complaint.line, line);
	assert_non_null(complaint.reason);
}

static void what_cannot_be_is_refused_with_its_line(void **state)
{
	char deep[4096] = "", many[8 * 1100] = "", *at = deep;

	(void)state;
	expect_complaint(SPAN(""), 0);
	expect_complaint(SPAN("just text\n"), 0);
	expect_complaint(SPAN("- [ ] a\n- [ ] \n"), 2);
	for (int i = 0; i < 34; i++)
		at += sprintf(at, "%*s- x\n", i, "");
	expect_complaint(span_of(deep), 33);
	at = many;
	for (int i = 0; i < 1001; i++)
		at += sprintf(at, "- x\n");
	expect_complaint(span_of(many), 1001);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(indentation_makes_a_tree),
		TEST(numbers_go_one_after_the_other),
		TEST(what_is_done_is_done_with_all_below),
		TEST(text_below_an_item_is_its_own),
		TEST(code_between_fences_is_text),
		TEST(windows_line_ends_and_no_last_one_do_no_harm),
		TEST(what_looks_like_an_item_and_is_none),
		TEST(what_cannot_be_is_refused_with_its_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
