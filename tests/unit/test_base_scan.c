#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/scan.h"

enum {
	ROUNDS = 20000,
};

/* Bytes of which many are near the bounds. */
static void fill(struct rng *rng, char bytes[SCAN_BYTES])
{
	static const unsigned char near[] = {0, 8, 9, 0x1f, 0x20, '"', '\\', 0x7e, 0x7f, 0x80, 0x9f, 0xff};

	for (int i = 0; i < SCAN_BYTES; i++)
		bytes[i] =
			(char)(rng_chance(rng, 2) ? near[rng_below(rng, sizeof near)] : rng_below(rng, 256));
}

static void assert_first(uint64_t marks, size_t expected)
{
	if (expected == SCAN_BYTES)
		assert_true(marks == 0);
	else
		assert_int_equal(scan_first(marks), expected);
}

static void the_first_byte_below_a_limit_is_found(void **state)
{
	static const unsigned char limits[] = {1, 0x20, 0x7f, 0x80};
	char bytes[SCAN_BYTES];
	struct rng rng;

	(void)state;
	rng_seed(&rng, 1);
	for (int round = 0; round < ROUNDS; round++) {
		unsigned char limit = limits[round % 4];
		size_t at = 0;
		fill(&rng, bytes);
		while (at < SCAN_BYTES && (unsigned char)bytes[at] >= limit)
			at++;
		assert_first(scan_below(scan_load(bytes), limit), at);
	}
}

static void the_first_byte_of_two_kinds_is_found(void **state)
{
	char bytes[SCAN_BYTES];
	struct rng rng;

	(void)state;
	rng_seed(&rng, 2);
	for (int round = 0; round < ROUNDS; round++) {
		size_t at = 0;
		fill(&rng, bytes);
		while (at < SCAN_BYTES && (unsigned char)bytes[at] >= 0x20 &&
			(unsigned char)bytes[at] != 0x7f)
			at++;
		uint64_t eight = scan_load(bytes);
		assert_first(scan_below(eight, 0x20) | scan_equal(eight, 0x7f), at);
	}
}

static bool ends_text(unsigned char byte)
{
	return (byte < 0x20 && byte != '\t') || byte == 0x7f;
}

/* From anywhere, of any length: whole blocks, and what is left behind them. */
static void the_end_of_a_text_is_found(void **state)
{
	static const unsigned char near[] = {'\t', 0x20, 0x7e, 0x80, 0xff, 'a'};
	char bytes[64];
	struct rng rng;

	(void)state;
	rng_seed(&rng, 3);
	for (int round = 0; round < ROUNDS; round++) {
		size_t end = rng_below(&rng, sizeof bytes + 1), from = rng_below(&rng, (uint32_t)end + 1),
		       at = from;
		for (size_t i = 0; i < end; i++)
			bytes[i] = (char)(rng_chance(&rng, 40) ? rng_below(&rng, 256)
							       : near[rng_below(&rng, sizeof near)]);
		while (at < end && !ends_text((unsigned char)bytes[at]))
			at++;
		assert_int_equal(scan_text(bytes, from, end), at);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_byte_below_a_limit_is_found),
		cmocka_unit_test(the_first_byte_of_two_kinds_is_found),
		cmocka_unit_test(the_end_of_a_text_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
