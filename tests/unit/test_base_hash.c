#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/hash.h"

static const struct hash_key zero_key;

/* The bytes 0, 1, 2, ... and what SipHash-1-3 makes of their beginnings. */
static const struct {
	size_t len;
	uint64_t hash;
} vectors[] = {
	{1, 0x68a914128e01e473},
	{7, 0x2f098ab0c751325a},
	{8, 0xead411e67ebe2eea},
	{9, 0x75927f9d95124362},
	{15, 0xf30eb725bb91c9ea},
	{16, 0x8972188433a5c5b7},
	{17, 0x4883c49a2c009c1d},
	{31, 0x169739443111d49b},
	{63, 0x385d3e39e5f37359},
};

static void known_vectors_come_out(void **state)
{
	unsigned char bytes[64];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)i;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		assert_true(hash_bytes(&zero_key, bytes, vectors[i].len) == vectors[i].hash);
}

static void a_known_vector_with_a_key_comes_out(void **state)
{
	const struct hash_key key = {0x0706050403020100, 0x0f0e0d0c0b0a0908};

	(void)state;
	assert_true(hash_bytes(&key, "", 0) == 0xabac0158050fc4dc);
	assert_true(hash_bytes(&key, NULL, 0) == 0xabac0158050fc4dc);
}

static void the_hash_does_not_depend_on_alignment(void **state)
{
	char shifted[32];

	(void)state;
	for (size_t shift = 0; shift < 8; shift++) {
		memcpy(shifted + shift, "a name of twenty-two b", 22);
		assert_true(hash_bytes(&zero_key, shifted + shift, 22) ==
			hash_bytes(&zero_key, "a name of twenty-two b", 22));
	}
}

static void each_half_of_the_key_matters(void **state)
{
	const struct hash_key k0 = {1, 0};
	const struct hash_key k1 = {0, 1};
	uint64_t plain = hash_bytes(&zero_key, "stint", 5);

	(void)state;
	assert_true(hash_bytes(&k0, "stint", 5) != plain);
	assert_true(hash_bytes(&k1, "stint", 5) != plain);
	assert_true(hash_bytes(&k0, "stint", 5) != hash_bytes(&k1, "stint", 5));
}

static void trailing_zero_bytes_change_the_hash(void **state)
{
	const char zeros[16] = {0};

	(void)state;
	for (size_t len = 0; len < sizeof(zeros); len++)
		assert_true(hash_bytes(&zero_key, zeros, len) != hash_bytes(&zero_key, zeros, len + 1));
}

/* How many of 64 bits change on average when one bit of the input does. */
static double avalanche(uint64_t (*hash)(uint64_t value))
{
	int changed = 0;

	for (uint64_t value = 0; value < 256; value++)
		for (int bit = 0; bit < 64; bit++)
			changed += __builtin_popcountll(hash(value) ^ hash(value ^ 1ull << bit));
	return changed / (256.0 * 64.0);
}

static uint64_t hash_value_bytes(uint64_t value)
{
	return hash_bytes(&zero_key, &value, sizeof(value));
}

static void one_changed_bit_changes_half_the_hash(void **state)
{
	(void)state;
	assert_true(avalanche(hash_value_bytes) > 31.5);
	assert_true(avalanche(hash_value_bytes) < 32.5);
	assert_true(avalanche(hash_u64) > 31.0);
	assert_true(avalanche(hash_u64) < 33.0);
}

static void neighbouring_numbers_spread_over_the_low_bits(void **state)
{
	int cells[256] = {0};

	(void)state;
	for (uint64_t i = 0; i < 25600; i++)
		cells[hash_u64(i) & 255]++;
	for (int i = 0; i < 256; i++)
		assert_in_range(cells[i], 50, 150);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_vectors_come_out),
		cmocka_unit_test(a_known_vector_with_a_key_comes_out),
		cmocka_unit_test(the_hash_does_not_depend_on_alignment),
		cmocka_unit_test(each_half_of_the_key_matters),
		cmocka_unit_test(trailing_zero_bytes_change_the_hash),
		cmocka_unit_test(one_changed_bit_changes_half_the_hash),
		cmocka_unit_test(neighbouring_numbers_spread_over_the_low_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
