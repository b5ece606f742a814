#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/rng.h"

/* From RFC 3720, B.4. */
static void known_texts_have_their_known_sums(void **state)
{
	static const char zeros[32];
	char ones[32], up[32];

	(void)state;
	for (int i = 0; i < 32; i++) {
		ones[i] = (char)0xff;
		up[i] = (char)i;
	}
	assert_int_equal(crc32c(0, SPAN("123456789")), 0xe3069283);
	assert_int_equal(crc32c(0, (struct span){zeros, 32}), 0x8a9136aa);
	assert_int_equal(crc32c(0, (struct span){ones, 32}), 0x62a8ab43);
	assert_int_equal(crc32c(0, (struct span){up, 32}), 0x46dd794e);
	assert_int_equal(crc32c(0, (struct span){0}), 0);
}

static void a_sum_goes_on_from_another(void **state)
{
	(void)state;
	assert_int_equal(crc32c(crc32c(0, SPAN("1234")), SPAN("56789")), 0xe3069283);
}

static void the_instruction_and_the_table_agree_for_every_length(void **state)
{
	struct rng rng;
	char bytes[300];

	(void)state;
	rng_seed(&rng, 1);
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (char)rng_u64(&rng);
	for (size_t len = 0; len < sizeof bytes; len++) {
		struct span part = {bytes + len % 7, len - len % 7 % (len + 1)};
		assert_int_equal(crc32c(3, part), crc32c_by_table(3, part));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_texts_have_their_known_sums),
		cmocka_unit_test(a_sum_goes_on_from_another),
		cmocka_unit_test(the_instruction_and_the_table_agree_for_every_length),
	};

	return cmocka_run_group_tests_name("CRC32C", tests, NULL, NULL);
}
