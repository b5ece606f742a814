#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/command_line.h"

static const struct command_flag flags[] = {
	{"--home", COMMAND_VALUE},
	{"--set", COMMAND_VALUES},
	{"--json", COMMAND_SWITCH},
	{"--help", COMMAND_SWITCH},
};

static const char *const words[] = {"run", "run-once", "ls", NULL};

static int take_flag(void *context, const char *flag, const char *value)
{
	char *heard = context;
	size_t len = strlen(heard);

	snprintf(heard + len, 200 - len, "[%s%s%s]", flag, value ? "=" : "", value ? value : "");
	return value && strcmp(value, "bad") == 0 ? 7 : 0;
}

static int take_word(void *context, const char *word)
{
	char *heard = context;
	size_t len = strlen(heard);

	snprintf(heard + len, 200 - len, "<%s>", word);
	return 0;
}

/* Up to five words behind the name of the program. */
static int read_line(char **argv, bool takes_words, char heard[200], char complaint[COMMAND_COMPLAINT_BYTES])
{
	struct command_line line = {.program = "prog",
		.flags = flags,
		.flag_count = sizeof flags / sizeof *flags,
		.words = words,
		.context = heard,
		.take_flag = take_flag,
		.take_word = takes_words ? take_word : NULL};
	int argc = 0;

	heard[0] = 0;
	while (argv[argc])
		argc++;
	return command_line_read(&line, argc, argv, complaint);
}

#define LINE(...) ((char *[]){"prog", __VA_ARGS__, NULL})

static void expect_heard(char **argv, const char *expected)
{
	char heard[200], complaint[COMMAND_COMPLAINT_BYTES];

	assert_int_equal(read_line(argv, true, heard, complaint), 0);
	assert_string_equal(heard, expected);
}

static void expect_complaint(char **argv, const char *expected)
{
	char heard[200], complaint[COMMAND_COMPLAINT_BYTES];

	assert_int_equal(read_line(argv, false, heard, complaint), -EINVAL);
	assert_string_equal(complaint, expected);
}

static void flags_and_words_come_in_any_order(void **state)
{
	(void)state;
	expect_heard(LINE("ls", "--home", "a", "--json", "x"), "<ls>[--home=a][--json]<x>");
	expect_heard(LINE("--home=a=b", "-h"), "[--home=a=b][--help]");
	expect_heard(LINE("--set", "a=1", "--set=b=2"), "[--set=a=1][--set=b=2]");
	expect_heard(LINE("--json", "--json"), "[--json][--json]");
}

static void a_value_may_be_anything_but_the_name_of_a_flag(void **state)
{
	(void)state;
	expect_heard(LINE("--home", "-"), "[--home=-]");
	expect_heard(LINE("--home", "--other"), "[--home=--other]");
	expect_heard(LINE("--home", ""), "[--home=]");
	expect_heard(LINE("--home=--json"), "[--home=--json]");
	expect_complaint(LINE("--home", "--json"), "--home needs a value; prog --help says which");
	expect_complaint(LINE("--home"), "--home needs a value; prog --help says which");
}

static void what_is_wrong_is_told_in_a_sentence(void **state)
{
	(void)state;
	expect_complaint(
		LINE("--hme=a"), "there is no flag --hme; did you mean --home? prog --help lists them all");
	expect_complaint(LINE("-x"), "there is no flag -x; prog --help lists those there are");
	expect_complaint(LINE("--homes-of-others"),
		"there is no flag --homes-of-others; prog --help lists those there are");
	expect_complaint(LINE("--json=1"), "--json takes no value; it is \"1\"");
	expect_complaint(LINE("--home", "a", "--home=a"), "--home is given twice; say which one you mean");
	expect_complaint(LINE("run-onse"),
		"there is no command \"run-onse\"; did you mean run-once? There are run, run-once and ls");
	expect_complaint(LINE("frob"), "there is no command \"frob\"; there are run, run-once and ls");
}

static void a_program_without_words_says_so(void **state)
{
	struct command_line line = {.program = "prog"};
	char complaint[COMMAND_COMPLAINT_BYTES];

	(void)state;
	assert_int_equal(command_line_unknown_word(&line, "ls", complaint), -EINVAL);
	assert_string_equal(complaint, "prog takes flags only, and \"ls\" is none; prog --help lists them");
}

static void what_is_no_good_ends_the_reading(void **state)
{
	char heard[200], complaint[COMMAND_COMPLAINT_BYTES];

	(void)state;
	assert_int_equal(read_line(LINE("--home", "bad", "--json"), true, heard, complaint), 7);
	assert_string_equal(heard, "[--home=bad]");
	assert_string_equal(complaint, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flags_and_words_come_in_any_order),
		cmocka_unit_test(a_value_may_be_anything_but_the_name_of_a_flag),
		cmocka_unit_test(what_is_wrong_is_told_in_a_sentence),
		cmocka_unit_test(a_program_without_words_says_so),
		cmocka_unit_test(what_is_no_good_ends_the_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
