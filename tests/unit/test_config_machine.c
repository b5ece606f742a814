// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
// clang-format on

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/machine.h"

#define ID     "0123456789abcdef"
#define SECRET "abcdefghijklmnopqrstuvwxyz"
#define PIN    "234567abcdefghijklmnopqrst"

static void a_code_has_an_id_a_secret_and_maybe_an_authority(void **state)
{
	struct join_code code;

	(void)state;
	assert_true(join_code_read("stint_join_" ID "_" SECRET, &code));
	assert_string_equal(code.id, ID);
	assert_string_equal(code.pin, "");
	assert_true(join_code_read("stint_join_" ID "_" SECRET "_" PIN, &code));
	assert_string_equal(code.pin, PIN);
}

static void half_of_a_code_is_none(void **state)
{
	static const char whole[] = "stint_join_" ID "_" SECRET "_" PIN;
	static const char *const others[] = {"stint_join_" ID "_" SECRET "_" PIN "x",
		"stint_join_" ID "_" SECRET "x", "stint_login_" ID "_" SECRET,
		"stint_join_0123456789ABCDEF_" SECRET, " stint_join_" ID "_" SECRET,
		"stint_join_" ID "_" SECRET "_" PIN "\n", "stint_join__" SECRET};
	struct join_code code;
	char text[sizeof whole];

	(void)state;
	for (size_t len = 0; len < sizeof whole - 1; len++) {
		snprintf(text, sizeof text, "%.*s", (int)len, whole);
		assert_int_equal(join_code_read(text, &code), len == strlen("stint_join_" ID "_" SECRET));
	}
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_false(join_code_read(others[i], &code));
}

static void the_authority_is_known_by_the_beginning_of_its_hash(void **state)
{
	unsigned char hash[32] = {0};
	struct join_code code = {.pin = "aaaaaaaaaaaaaaaaaaaaaaaaaa"};

	(void)state;
	assert_true(join_code_names(&code, hash));
	for (int bit = 0; bit < 130; bit++) {
		hash[bit / 8] ^= (unsigned char)(128 >> bit % 8);
		assert_false(join_code_names(&code, hash));
		hash[bit / 8] ^= (unsigned char)(128 >> bit % 8);
	}
	hash[31] = 1; /* behind the bits that a code has */
	assert_true(join_code_names(&code, hash));
}

static void a_new_secret_keeps_kind_and_id(void **state)
{
	char token[MACHINE_TOKEN_BYTES], other[MACHINE_TOKEN_BYTES];

	(void)state;
	assert_int_equal(machine_mint((struct span){0}, token), 0);
	assert_memory_equal(token, "stint_worker_", 13);
	assert_int_equal(strlen(token), 13 + 16 + 1 + 43);
	assert_int_equal(machine_mint(span_of(token), other), 0);
	assert_memory_equal(token, other, 13 + 16 + 1);
	assert_string_not_equal(token, other);
	assert_int_equal(machine_mint(SPAN("stint_viewer_ab_x"), other), 0);
	assert_memory_equal(other, "stint_viewer_ab_", 16);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(machine_mint(span_of((const char *[]){"stint_", "x", "stint_a_b",
						      "stint__a_b", "stint_a__b", "_"}[i]),
					 other),
			-EINVAL);
}

static void what_is_hashed_is_the_whole_text(void **state)
{
	char hash[MACHINE_HASH_BYTES];

	(void)state;
	assert_int_equal(machine_hash(SPAN("abc"), hash), 0);
	assert_string_equal(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void a_secret_waits_beside_its_file_and_takes_its_place(void **state)
{
	char dir[] = "/tmp/stint-machine-XXXXXX", file[64], next[64], token[MACHINE_TOKEN_BYTES];
	struct stat about;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof file, "%s/token", dir);
	snprintf(next, sizeof next, "%s/token.next", dir);
	assert_int_equal(machine_read_next(file, token), -ENOENT);
	assert_int_equal(machine_keep_next(file, "stint_a_b_c"), 0);
	assert_int_equal(stat(next, &about), 0);
	assert_int_equal(about.st_mode & 0777, 0600);
	assert_int_equal(machine_read_next(file, token), 0);
	assert_string_equal(token, "stint_a_b_c");
	assert_int_equal(machine_take_next(file), 0);
	assert_int_equal(machine_read_next(file, token), -ENOENT);
	assert_int_equal(machine_take_next(file), -ENOENT);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_code_has_an_id_a_secret_and_maybe_an_authority),
		cmocka_unit_test(half_of_a_code_is_none),
		cmocka_unit_test(the_authority_is_known_by_the_beginning_of_its_hash),
		cmocka_unit_test(a_new_secret_keeps_kind_and_id),
		cmocka_unit_test(what_is_hashed_is_the_whole_text),
		cmocka_unit_test(a_secret_waits_beside_its_file_and_takes_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
