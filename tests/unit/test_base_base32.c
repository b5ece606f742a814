// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
// clang-format on

#include "base/base32.h"

/* The vectors of RFC 4648, in lower case. */
static void bits_become_characters_as_in_the_standard(void **state)
{
	char text[27];

	(void)state;
	base32_put((const unsigned char *)"foobar\0", 9, text);
	assert_string_equal(text, "mzxw6ytbo");
	base32_put((const unsigned char *)"f\0", 2, text);
	assert_string_equal(text, "my");
	base32_put(
		(const unsigned char
				*)"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		26, text);
	assert_string_equal(text, "77777777777777777777777777");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bits_become_characters_as_in_the_standard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
