#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>

#include "base/buf.h"
#include "base/rng.h"
#include "base/take.h"
#include "store/index/names.h"

enum { SOMEBODY = 16, ANOTHER = 17 };

static int names_setup(void **state)
{
	static struct names names;

	names_init(&names, (struct hash_key){1, 2});
	*state = &names;
	return 0;
}

static int names_teardown(void **state)
{
	names_done(*state);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, names_setup, names_teardown)

/* The number of a name, which must be new, or known. */
static uint32_t added(struct names *names, struct span text, bool expected)
{
	uint32_t id = 0, before = names->count;

	assert_int_equal(names_add(names, text, SOMEBODY, &id), 0);
	assert_int_equal(names->count > before, expected);
	assert_int_equal(names_find(names, text), id);
	assert_true(span_equal(names_text(names, id), text));
	return id;
}

static void numbers_are_given_in_order_from_one(void **state)
{
	assert_int_equal(added(*state, SPAN("red"), true), 1);
	assert_int_equal(added(*state, SPAN("green"), true), 2);
	assert_int_equal(added(*state, SPAN("blue"), true), 3);
}

static void a_name_keeps_its_number(void **state)
{
	uint32_t red = added(*state, SPAN("red"), true);

	added(*state, SPAN("green"), true);
	assert_int_equal(added(*state, SPAN("red"), false), red);
}

static void no_text_is_no_name(void **state)
{
	struct names *names = *state;

	assert_int_equal(added(names, SPAN(""), false), 0);
	assert_int_equal(added(names, (struct span){0}, false), 0);
	assert_int_equal(names->count, 0);
	assert_int_equal(names_text(names, 0).len, 0);
}

static void what_was_never_added_is_not_found(void **state)
{
	added(*state, SPAN("red"), true);
	assert_int_equal(names_find(*state, SPAN("re")), 0);
	assert_int_equal(names_find(*state, SPAN("redd")), 0);
	assert_int_equal(names_find(*state, SPAN("Red")), 0);
}

static void names_are_bytes_and_may_hold_any(void **state)
{
	uint32_t a = added(*state, SPAN("a\0b"), true);
	uint32_t b = added(*state, SPAN("a\0c"), true);
	uint32_t c = added(*state, SPAN("a"), true);

	assert_int_not_equal(a, b);
	assert_int_not_equal(a, c);
	added(*state, SPAN("\xff\xfe"), true);
}

static void a_text_is_copied(void **state)
{
	char text[] = "red";
	uint32_t red = added(*state, span_of(text), true);

	text[0] = 'b';
	assert_true(span_equal(names_text(*state, red), SPAN("red")));
}

static void names_are_loaded_in_the_order_of_their_numbers(void **state)
{
	struct names *names = *state;

	assert_int_equal(names_load(names, 2, SPAN("red"), SOMEBODY), -EPROTO);
	assert_int_equal(names_load(names, 0, SPAN("red"), SOMEBODY), -EPROTO);
	assert_int_equal(names_load(names, 1, SPAN("red"), SOMEBODY), 0);
	assert_int_equal(names_load(names, 1, SPAN("green"), SOMEBODY), -EPROTO);
	assert_int_equal(names_load(names, 2, SPAN("green"), SOMEBODY), 0);
	assert_int_equal(names_find(names, SPAN("green")), 2);
}

static void what_was_loaded_is_never_forgotten(void **state)
{
	struct names *names = *state;

	assert_int_equal(names_load(names, 1, SPAN("red"), SOMEBODY), 0);
	names_forget(names);
	assert_int_equal(names_find(names, SPAN("red")), 1);
}

static void a_turn_that_fails_forgets_exactly_what_it_added(void **state)
{
	struct names *names = *state;

	added(names, SPAN("red"), true);
	names_commit(names);
	added(names, SPAN("red"), false);
	added(names, SPAN("green"), true);
	added(names, SPAN("blue"), true);
	names_forget(names);
	assert_int_equal(names_find(names, SPAN("red")), 1);
	assert_int_equal(names_find(names, SPAN("green")), 0);
	assert_int_equal(names_find(names, SPAN("blue")), 0);
	assert_int_equal(added(names, SPAN("blue"), true), 2);
}

static void names_are_on_the_account_of_whoever_brought_them_in(void **state)
{
	struct names *names = *state;
	uint32_t id;

	assert_int_equal(names_load(names, 1, SPAN("red"), ANOTHER), 0);
	added(names, SPAN("red"), false); /* what is known costs nothing */
	assert_int_equal(names_of_principal(names, SOMEBODY), 0);
	assert_int_equal(names_of_principal(names, ANOTHER), 1);
	added(names, SPAN("green"), true);
	names_commit(names);
	assert_int_equal(names_add(names, SPAN("blue"), ANOTHER, &id), 0);
	added(names, SPAN("grey"), true);
	assert_int_equal(names_principal(names, id), ANOTHER);
	assert_int_equal(names_of_principal(names, SOMEBODY), 2);
	assert_int_equal(names_of_principal(names, ANOTHER), 2);
	names_rewind(names, id);
	assert_int_equal(names_find(names, SPAN("grey")), 0);
	assert_int_equal(names_find(names, SPAN("blue")), id);
	assert_int_equal(names_of_principal(names, SOMEBODY), 1);
	names_forget(names);
	assert_int_equal(names_of_principal(names, ANOTHER), 1);
}

static void many_principals_are_told_apart(void **state)
{
	struct names *names = *state;
	char text[16];
	uint32_t id;

	for (uint32_t i = 0; i < 3000; i++) {
		int len = snprintf(text, sizeof text, "n%u", i);
		assert_int_equal(
			names_add(names, (struct span){text, (size_t)len}, i % 1000 + i % 3, &id), 0);
	}
	for (uint32_t i = 2; i < 1000; i++)
		assert_int_equal(names_of_principal(names, i), 3);
}

static void a_million_names_are_enough(void **state)
{
	struct names *names = *state;
	char text[16];
	uint32_t id;

	for (int i = 1; i <= NAMES_MAX; i++) {
		int len = snprintf(text, sizeof text, "n%d", i);
		assert_int_equal(names_add(names, (struct span){text, (size_t)len}, SOMEBODY, &id), 0);
	}
	assert_int_equal(id, NAMES_MAX);
	assert_int_equal(names_add(names, SPAN("another"), SOMEBODY, &id), -E2BIG);
	assert_int_equal(added(names, SPAN("n1"), false), 1);
	assert_int_equal(added(names, SPAN("n1000000"), false), NAMES_MAX);
}

static void random_turns_match_a_plain_list(void **state)
{
	struct names *names = *state;
	uint32_t numbers[500] = {0}, next = 1, committed = 1;
	struct rng rng;

	rng_seed(&rng, 3);
	for (int i = 0; i < 50000; i++) {
		uint32_t which = rng_below(&rng, 500);
		uint32_t *number = &numbers[which];

		added(names, (struct span){(const char *)&which, sizeof which}, *number == 0);
		*number = *number == 0 ? next++ : *number;
		assert_int_equal(
			names_find(names, (struct span){(const char *)&which, sizeof which}), *number);
		if (rng_chance(&rng, 50)) {
			names_commit(names);
			committed = next;
		} else if (rng_chance(&rng, 10)) {
			names_forget(names);
			for (int j = 0; j < 500; j++)
				numbers[j] = numbers[j] < committed ? numbers[j] : 0;
			next = committed;
		}
	}
}

/* ---- sets --------------------------------------------------------------------------------------- */

/* Add the members, then the set of them. */
static uint32_t set_of(struct names *names, const struct span *items, uint32_t count)
{
	cleanup(buf_done) struct buf text;
	uint32_t id;

	buf_init(&text, 100000);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(names_add(names, items[i], SOMEBODY, &id), 0);
	assert_int_equal(names_set_text((struct name_list){items, count}, &text), 0);
	assert_int_equal(names_add(names, buf_span(&text), SOMEBODY, &id), 0);
	return id;
}

static void a_set_does_not_know_the_order_or_number_of_its_mentions(void **state)
{
	struct span one[] = {SPAN("gpu"), SPAN("arm"), SPAN("net")};
	struct span other[] = {SPAN("net"), SPAN("gpu"), SPAN("arm"), SPAN("gpu"), SPAN("net")};
	struct span smaller[] = {SPAN("net"), SPAN("gpu")};

	uint32_t set = set_of(*state, one, 3);
	assert_int_equal(set_of(*state, other, 5), set);
	assert_int_not_equal(set_of(*state, smaller, 2), set);
}

static void a_set_of_one_is_not_its_member(void **state)
{
	struct span gpu[] = {SPAN("gpu")};
	uint32_t set = set_of(*state, gpu, 1);

	assert_int_not_equal(set, names_find(*state, SPAN("gpu")));
}

static void the_empty_set_is_nothing(void **state)
{
	struct name_set set = {.count = 7};

	assert_int_equal(set_of(*state, NULL, 0), 0);
	names_set_members(*state, 0, &set);
	assert_int_equal(set.count, 0);
}

static void the_members_of_a_set_are_ascending(void **state)
{
	struct names *names = *state;
	struct span items[] = {SPAN("c"), SPAN("a"), SPAN("ab"), SPAN("b")};
	struct name_set set;

	uint32_t number = set_of(names, items, 4);
	names_set_members(names, number, &set);
	assert_int_equal(set.count, 4);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(set.ids[i], i + 1);
		assert_true(name_set_contains(&set, names_find(names, items[i])));
	}
	assert_false(name_set_contains(&set, number));
}

static void a_set_may_have_as_many_members_as_a_command_may_name(void **state)
{
	static char texts[NAME_SET_MAX][8];
	struct span items[NAME_SET_MAX];
	struct name_set set;

	for (int i = 0; i < NAME_SET_MAX; i++) {
		snprintf(texts[i], sizeof texts[i], "c%d", i);
		items[i] = span_of(texts[i]);
	}
	names_set_members(*state, set_of(*state, items, NAME_SET_MAX), &set);
	assert_int_equal(set.count, NAME_SET_MAX);
}

static void resolving_leaves_out_what_has_no_number(void **state)
{
	struct span items[] = {SPAN("zeta"), SPAN("never"), SPAN("alpha"), SPAN("")};
	struct name_set set;

	added(*state, SPAN("alpha"), true);
	added(*state, SPAN("zeta"), true);
	names_resolve(*state, (struct name_list){items, 4}, &set);
	assert_int_equal(set.count, 2);
	assert_int_equal(set.ids[0], 1);
	assert_int_equal(set.ids[1], 2);
	assert_int_equal(names_find(*state, SPAN("never")), 0);
}

static void a_set_covers_its_subsets_and_nothing_else(void **state)
{
	struct name_set none = {.count = 0}, few = {{2, 5}, 2}, many = {{1, 2, 5, 9}, 4},
			others = {{2, 6}, 2};

	(void)state;
	assert_true(name_set_covers(&many, &few));
	assert_true(name_set_covers(&few, &few));
	assert_true(name_set_covers(&none, &none));
	assert_true(name_set_covers(&few, &none));
	assert_false(name_set_covers(&none, &few));
	assert_false(name_set_covers(&few, &many));
	assert_false(name_set_covers(&many, &others));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(numbers_are_given_in_order_from_one),
		TEST(a_name_keeps_its_number),
		TEST(no_text_is_no_name),
		TEST(what_was_never_added_is_not_found),
		TEST(names_are_bytes_and_may_hold_any),
		TEST(a_text_is_copied),
		TEST(names_are_loaded_in_the_order_of_their_numbers),
		TEST(what_was_loaded_is_never_forgotten),
		TEST(a_turn_that_fails_forgets_exactly_what_it_added),
		TEST(names_are_on_the_account_of_whoever_brought_them_in),
		TEST(many_principals_are_told_apart),
		TEST(a_million_names_are_enough),
		TEST(random_turns_match_a_plain_list),
		TEST(a_set_does_not_know_the_order_or_number_of_its_mentions),
		TEST(a_set_of_one_is_not_its_member),
		TEST(the_empty_set_is_nothing),
		TEST(the_members_of_a_set_are_ascending),
		TEST(a_set_may_have_as_many_members_as_a_command_may_name),
		TEST(resolving_leaves_out_what_has_no_number),
		TEST(a_set_covers_its_subsets_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
