/* The line that says what went wrong, out of what programs write when they fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "attempt/words.h"

static void says(const char *text, const char *wanted)
{
	char words[WORDS_BYTES];

	assert_int_equal(last_words(span_of(text), words), strlen(wanted));
	assert_string_equal(words, wanted);
}

static void the_last_line_with_something_in_it_is_said(void **state)
{
	(void)state;
	says("", "");
	says("\n \n\t\r\n", "");
	says("one\ntwo\n\n", "two");
	says("  one\r\n", "one");
}

static void node_is_quoted_without_its_frames_and_its_version(void **state)
{
	(void)state;
	says("/srv/job.js:1\nthrow new Error('boom')\n^\n\nError: boom\n    at Object.<anonymous> (/srv/job.js:1:7)\n"
	     "    at node:internal/main/run_main_module:28:49\n\nNode.js v20.20.2\n",
		"Error: boom");
	says("Error: EACCES: permission denied, open '/x'\n    at Object.openSync (node:fs:601:3) {\n  errno: -13,\n"
	     "  code: 'EACCES',\n  path: '/x'\n}\n\nNode.js v20.20.2\n",
		"Error: EACCES: permission denied, open '/x'");
}

static void python_is_quoted_by_its_last_line(void **state)
{
	(void)state;
	says("Traceback (most recent call last):\n  File \"x.py\", line 1, in <module>\n    f()\n    ~^^\nValueError: no rows\n",
		"ValueError: no rows");
	says("  File \"x.py\", line 1\n    f(\n     ^\nSyntaxError: '(' was never closed\n",
		"SyntaxError: '(' was never closed");
}

static void git_and_go_say_it_above_their_prose(void **state)
{
	(void)state;
	says("fatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\n"
	     "and the repository exists.\n",
		"fatal: Could not read from remote repository");
	says("error: failed to push some refs to 'x'\nhint: Updates were rejected\nhint: See the note\n",
		"error: failed to push some refs to 'x'");
	says("panic: no such key\n\ngoroutine 1 [running]:\nmain.main()\n\t/tmp/x.go:4 +0x18\nexit status 2\n",
		"panic: no such key");
}

static void what_is_far_above_the_end_is_not_taken(void **state)
{
	char text[1000] = "fatal: long ago\n";

	(void)state;
	for (int i = 0; i < 20; i++)
		strcat(text, "a line\n");
	says(strcat(text, "the end"), "the end");
}

static void a_hint_is_not_the_reason(void **state)
{
	(void)state;
	says("stint: there is no task \"t-1\" (not_found)\n  try: stint ls --all\n",
		"stint: there is no task \"t-1\" (not_found)");
	says("no server answers\n  try  stint up\n", "no server answers");
	says("try again tomorrow\n", "try again tomorrow");
}

static void make_and_rust_are_passed_over(void **state)
{
	(void)state;
	says("2 tests failed\nmake: *** [Makefile:2: test] Error 1\n", "2 tests failed");
	says("thread 'main' panicked at src/main.rs:2:5:\nboom\nnote: run with `RUST_BACKTRACE=1` environment variable\n",
		"boom");
}

static void of_json_the_member_is_taken(void **state)
{
	(void)state;
	says("{\"type\":\"result\",\"is_error\":true,\"result\":\"Invalid API key\",\"session_id\":\"x\"}\n",
		"Invalid API key");
	says("{\"error\":\"no quota.\"}\n", "no quota");
	says("{\"error\":{\"message\":\"overloaded\",\"code\":529}}\n", "overloaded");
	says("it broke\n{\"level\":\"info\"}\n", "it broke");
	says("{\"level\":\"info\"}\n", "{\"level\":\"info\"}");
	says("{not json}\n", "{not json}");
}

static void colours_and_the_last_full_stop_are_left_out(void **state)
{
	(void)state;
	says("\033[31mno disk.\033[0m\n", "no disk");
	says("waiting...\n", "waiting...");
}

static void a_banner_alone_is_better_than_nothing(void **state)
{
	(void)state;
	says("Node.js v20.20.2\n", "Node.js v20.20.2");
	says("    at f (x.js:1:1)\n}\n", "}");
}

static void a_long_line_is_cut_between_characters(void **state)
{
	char text[1000] = "x", words[WORDS_BYTES];

	(void)state;
	for (int i = 0; i < 300; i++)
		strcat(text, "é");
	assert_int_equal(last_words(span_of(text), words), 299);
	assert_int_equal((unsigned char)words[298], 0xa9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_line_with_something_in_it_is_said),
		cmocka_unit_test(node_is_quoted_without_its_frames_and_its_version),
		cmocka_unit_test(python_is_quoted_by_its_last_line),
		cmocka_unit_test(git_and_go_say_it_above_their_prose),
		cmocka_unit_test(what_is_far_above_the_end_is_not_taken),
		cmocka_unit_test(a_hint_is_not_the_reason),
		cmocka_unit_test(make_and_rust_are_passed_over),
		cmocka_unit_test(of_json_the_member_is_taken),
		cmocka_unit_test(colours_and_the_last_full_stop_are_left_out),
		cmocka_unit_test(a_banner_alone_is_better_than_nothing),
		cmocka_unit_test(a_long_line_is_cut_between_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
