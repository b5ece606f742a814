/*
 * The first line of a connection that a server on standby passes on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "server/net/passed.h"

enum { TERM = 123456789 };

static const struct passed given = {.source = {.bytes = {0xff, 1, 2, [15] = 0xab}}, .host = "b.example:8787"};

static int read_text(const char *text, struct passed *ret_passed)
{
	return passed_read((struct span){text, strlen(text)}, TERM, ret_passed);
}

static void what_is_put_is_read(void **state)
{
	char line[PASSED_LINE_MAX];
	struct passed found;

	(void)state;
	size_t len = passed_put(line, TERM, &given);
	strcpy(line + len, "GET / HTTP/1.1\r\n");
	assert_int_equal(read_text(line, &found), len);
	assert_memory_equal(&found.source, &given.source, sizeof found.source);
	assert_string_equal(found.host, given.host);
	for (size_t i = 0; i < len; i++) /* it has not all come */
		assert_int_equal(passed_read((struct span){line, i}, TERM, &found), 0);
}

static void another_term_is_no_pass(void **state)
{
	char line[PASSED_LINE_MAX];
	struct passed found;

	(void)state;
	passed_put(line, TERM + 1, &given);
	assert_int_equal(read_text(line, &found), -EINVAL);
	passed_put(line, TERM / 10, &given);
	assert_int_equal(read_text(line, &found), -EINVAL);
}

static void what_is_no_such_line_is_refused(void **state)
{
	static const char *const lines[] = {
		"GET / HTTP/1.1\r\n",
		"STINT-PASS/1 123456789\r\n",
		"STINT-PASS/1 123456789 00 a:1\r\n",
		"STINT-PASS/1 123456789 000102030405060708090a0b0c0d0e0g a:1\r\n",
		"STINT-PASS/1 123456789 000102030405060708090a0b0c0d0e0f \r\n",
		"STINT-PASS/1 123456789 000102030405060708090a0b0c0d0e0f a:1 b\r\n",
		"STINT-PASS/1 123456789 000102030405060708090a0b0c0d0e0f00 a:1\r\n",
	};
	struct passed found;
	char longest[2 * PASSED_LINE_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		assert_int_equal(read_text(lines[i], &found), -EINVAL);
	memset(longest, 'a', sizeof longest);
	memcpy(longest, PASSED_WORD, sizeof PASSED_WORD - 1);
	assert_int_equal(passed_read((struct span){longest, sizeof longest}, TERM, &found), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_put_is_read),
		cmocka_unit_test(another_term_is_no_pass),
		cmocka_unit_test(what_is_no_such_line_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
