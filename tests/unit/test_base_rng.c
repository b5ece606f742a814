#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

static void the_published_sequence_comes_out(void **state)
{
	struct rng rng = {{1, 2, 3, 4}};

	(void)state;
	assert_true(rng_u64(&rng) == 11520);
	assert_true(rng_u64(&rng) == 0);
	assert_true(rng_u64(&rng) == 1509978240);
	assert_true(rng_u64(&rng) == 1215971899390074240);
}

static void the_seed_is_spread_by_splitmix(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 0);
	assert_true(rng.state[0] == 0xe220a8397b1dcdaf);
	assert_true(rng.state[1] == 0x6e789e6aa1b965f4);
	assert_true(rng.state[2] == 0x06c45d188009454f);
	assert_true(rng.state[3] == 0xf88bb8a8724c81ec);
}

static void one_seed_gives_one_sequence(void **state)
{
	struct rng a, b, other;
	int same = 0;

	(void)state;
	rng_seed(&a, 42);
	rng_seed(&b, 42);
	rng_seed(&other, 43);
	for (int i = 0; i < 1000; i++) {
		uint64_t value = rng_u64(&a);

		assert_true(value == rng_u64(&b));
		same += value == rng_u64(&other);
	}
	assert_int_equal(same, 0);
}

static void below_gives_each_number_about_equally_often(void **state)
{
	int seen[10] = {0};
	struct rng rng;

	(void)state;
	rng_seed(&rng, 1);
	for (int i = 0; i < 100000; i++) {
		uint32_t value = rng_below(&rng, 10);

		assert_true(value < 10);
		seen[value]++;
	}
	for (int i = 0; i < 10; i++)
		assert_in_range(seen[i], 9500, 10500);
}

static void below_one_is_always_zero(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 1);
	for (int i = 0; i < 100; i++)
		assert_int_equal(rng_below(&rng, 1), 0);
}

static void a_chance_comes_about_as_often_as_told(void **state)
{
	struct rng rng;
	int hits = 0;

	(void)state;
	rng_seed(&rng, 9);
	for (int i = 0; i < 100000; i++) {
		assert_false(rng_chance(&rng, 0));
		assert_true(rng_chance(&rng, 1));
		hits += rng_chance(&rng, 100);
	}
	assert_in_range(hits, 850, 1150);
}

static void between_reaches_both_ends_and_not_beyond(void **state)
{
	bool low = false, high = false;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 4);
	for (int i = 0; i < 1000; i++) {
		int64_t value = rng_between(&rng, -3, 3);

		assert_true(value >= -3);
		assert_true(value <= 3);
		low |= value == -3;
		high |= value == 3;
	}
	assert_true(low);
	assert_true(high);
}

static void between_covers_the_widest_and_the_narrowest_range(void **state)
{
	bool negative = false, positive = false;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 4);
	for (int i = 0; i < 100; i++) {
		int64_t value = rng_between(&rng, INT64_MIN, INT64_MAX);

		negative |= value < 0;
		positive |= value > 0;
		assert_true(rng_between(&rng, INT64_MIN, INT64_MIN) == INT64_MIN);
		assert_true(rng_between(&rng, INT64_MAX, INT64_MAX) == INT64_MAX);
	}
	assert_true(negative);
	assert_true(positive);
}

static void a_short_draw_is_the_upper_half_of_a_long_one(void **state)
{
	struct rng rng, twin;

	(void)state;
	rng_seed(&rng, 77);
	twin = rng;
	for (int i = 0; i < 10; i++)
		assert_true(rng_u32(&rng) == rng_u64(&twin) >> 32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_published_sequence_comes_out),
		cmocka_unit_test(the_seed_is_spread_by_splitmix),
		cmocka_unit_test(one_seed_gives_one_sequence),
		cmocka_unit_test(below_gives_each_number_about_equally_often),
		cmocka_unit_test(below_one_is_always_zero),
		cmocka_unit_test(a_chance_comes_about_as_often_as_told),
		cmocka_unit_test(between_reaches_both_ends_and_not_beyond),
		cmocka_unit_test(between_covers_the_widest_and_the_narrowest_range),
		cmocka_unit_test(a_short_draw_is_the_upper_half_of_a_long_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
