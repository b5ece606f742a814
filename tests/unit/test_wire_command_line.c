/* The command line of a program: flags by tables, and the words beside them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "wire/form/command_line.h"

struct given {
	const char *home;
	int64_t count;
	bool json, help;
	char sets[100];
};

static bool take_set(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	char *sets = at;

	if (!strchr(yyjson_get_str(value), '='))
		return form_wrong(form, field, value);
	size_t len = strlen(sets);
	snprintf(sets + len, 100 - len, "[%s]", yyjson_get_str(value));
	return true;
}

static const struct field fields[] = {
	FIELD(given, home, "", FIELD_STRING, .flag = "--home"),
	FIELD(given, count, "count", FIELD_INT, .min = 1, .max = 9, .flag = "--count"),
	FIELD(given, sets, "", FIELD_BY, .by = take_set, .many = true, .allowed = "KEY=VALUE",
		.flag = "--set"),
	FIELD(given, json, "", FIELD_BOOL, .bare = true, .flag = "--json"),
	FIELD(given, help, "", FIELD_BOOL, .bare = true, .flag = "--help"),
	FIELD(given, count, "noFlag", FIELD_INT, .max = 1),
};

/* Of a mode of the program: its --count has other bounds. */
static const struct field mode_fields[] = {
	FIELD(given, count, "", FIELD_INT, .min = 100, .max = 200, .flag = "--count"),
};

static const char *const words[] = {"run", "run-once", "ls", NULL};

#define LINE(...) ((char *[]){"prog", __VA_ARGS__, NULL})

static struct given given;
static const char *beside[COMMAND_WORDS_MAX];
static char complaint[COMMAND_COMPLAINT_BYTES];

static int read_line(struct command_line line, char **argv)
{
	int argc = 0;

	given = (struct given){0};
	memset(beside, 0, sizeof beside);
	line.program = "prog";
	while (argv[argc])
		argc++;
	return command_line_read(&line, argc, argv, beside, complaint);
}

static struct command_line usual(void)
{
	return (struct command_line){.tables = {{FIELDS(fields), &given}}, .words = words, .word_max = 2};
}

static void expect_complaint(char **argv, const char *expected)
{
	assert_int_equal(read_line(usual(), argv), -EINVAL);
	assert_string_equal(complaint, expected);
}

static void flags_and_words_come_in_any_order(void **state)
{
	(void)state;
	assert_int_equal(read_line(usual(), LINE("ls", "--home", "a", "--json", "x")), 0);
	assert_string_equal(given.home, "a");
	assert_true(given.json);
	assert_string_equal(beside[0], "ls");
	assert_string_equal(beside[1], "x");
	assert_int_equal(read_line(usual(), LINE("--home=a=b", "-h", "--json", "--json", "--count", "9")), 0);
	assert_string_equal(given.home, "a=b");
	assert_true(given.help);
	assert_int_equal(given.count, 9);
	assert_int_equal(read_line(usual(), LINE("--set", "a=1", "--set=b=2")), 0);
	assert_string_equal(given.sets, "[a=1][b=2]");
}

static void a_value_may_be_anything_but_the_name_of_a_flag(void **state)
{
	(void)state;
	assert_int_equal(read_line(usual(), LINE("--home", "-")), 0);
	assert_string_equal(given.home, "-");
	assert_int_equal(read_line(usual(), LINE("--home", "--other")), 0);
	assert_int_equal(read_line(usual(), LINE("--home", "")), 0);
	assert_string_equal(given.home, "");
	assert_int_equal(read_line(usual(), LINE("--home=--json")), 0);
	assert_string_equal(given.home, "--json");
	expect_complaint(LINE("--home", "--json"), "--home needs a value; prog --help says which");
	expect_complaint(LINE("--home"), "--home needs a value; prog --help says which");
}

static void what_is_wrong_is_told_in_a_sentence(void **state)
{
	(void)state;
	expect_complaint(LINE("--hme=a"),
		"--hme is not a known flag; did you mean --home? prog --help lists the flags");
	expect_complaint(LINE("-x"), "-x is not a known flag; prog --help lists the flags");
	expect_complaint(LINE("--noFlag=1"), "--noFlag is not a known flag; prog --help lists the flags");
	expect_complaint(LINE("--json=1"), "--json takes no value; it is \"1\"");
	expect_complaint(LINE("--home", "a", "--home=a"), "--home is given twice; say which one you mean");
	expect_complaint(LINE("--count", "10"), "--count must be a whole number from 1 to 9; it is 10");
	expect_complaint(LINE("--set", "a"), "--set must be KEY=VALUE; it is \"a\"");
	expect_complaint(LINE("run-onse"),
		"\"run-onse\" is not a known command; did you mean run-once? Known are run, run-once and ls");
	expect_complaint(LINE("frob"), "\"frob\" is not a known command; known are run, run-once and ls");
	expect_complaint(LINE("ls", "a", "b"), "\"b\" is one word too many; prog --help");
}

static void a_dash_is_a_word_and_a_list_needs_room(void **state)
{
	static struct {
		const char *const *names;
	} into;
	const struct field lists[] = {{.name = "", .kind = FIELD_STRINGS, .flag = "--names"}};
	struct arena tiny;
	struct command_line line = {.tables = {{FIELDS(lists), &into}}, .arena = &tiny};

	(void)state;
	arena_init(&tiny, 0);
	expect_complaint(LINE("-"), "\"-\" is not a known command; known are run, run-once and ls");
	assert_int_equal(read_line(line, LINE("--names", "a,b")), -E2BIG);
	assert_string_equal(complaint, "the command line is too long, or there is no memory to read it");
}

static void the_first_table_that_has_a_flag_counts(void **state)
{
	struct command_line line = {.tables = {{FIELDS(mode_fields), &given}, {FIELDS(fields), &given}}};

	(void)state;
	assert_int_equal(read_line(line, LINE("--count", "150", "--json")), 0);
	assert_int_equal(given.count, 150);
	assert_true(given.json);
	assert_int_equal(read_line(line, LINE("--count", "5")), -EINVAL);
}

static void a_program_without_words_says_so(void **state)
{
	struct command_line line = usual();

	(void)state;
	line.word_max = 0;
	assert_int_equal(read_line(line, LINE("--json", "ls")), -EINVAL);
	assert_string_equal(complaint, "\"ls\" goes before the flags, and is said once: ls [FLAGS]");
	line.words = NULL;
	assert_int_equal(read_line(line, LINE("ls")), -EINVAL);
	assert_string_equal(
		complaint, "prog takes only flags, and \"ls\" is not one; prog --help lists the flags");
}

static void the_first_mistake_ends_the_reading(void **state)
{
	(void)state;
	expect_complaint(LINE("--count", "bad", "--json"),
		"--count must be a whole number from 1 to 9; it is \"bad\"");
	assert_false(given.json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flags_and_words_come_in_any_order),
		cmocka_unit_test(a_value_may_be_anything_but_the_name_of_a_flag),
		cmocka_unit_test(what_is_wrong_is_told_in_a_sentence),
		cmocka_unit_test(the_first_table_that_has_a_flag_counts),
		cmocka_unit_test(a_program_without_words_says_so),
		cmocka_unit_test(the_first_mistake_ends_the_reading),
		cmocka_unit_test(a_dash_is_a_word_and_a_list_needs_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
