/*
 * A treap against a sorted array.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/treap.h"

enum {
	NUMBERS = 400,
};

static struct item {
	struct treap_links links;
	int64_t rank;
	int is_in;
} items[NUMBERS];

static struct treap_links *links_of(const void *context, uint32_t number)
{
	(void)context;
	return &items[number].links;
}

static int order(const void *context, uint32_t a, uint32_t b)
{
	(void)context;
	if (items[a].rank != items[b].rank)
		return items[a].rank < items[b].rank ? -1 : 1;
	return a < b ? -1 : a > b;
}

static const struct treap treap = {links_of, order, NULL};

/* The first number behind `number` in order, by looking at all; TREAP_NONE as `number`: the first of all. */
static uint32_t model_after(uint32_t number)
{
	uint32_t best = TREAP_NONE;

	for (uint32_t i = 0; i < NUMBERS; i++) {
		if (items[i].is_in && (number == TREAP_NONE || order(NULL, number, i) < 0) &&
			(best == TREAP_NONE || order(NULL, i, best) < 0))
			best = i;
	}
	return best;
}

static void an_empty_tree_has_no_first(void **state)
{
	(void)state;
	assert_int_equal(treap_first(&treap, TREAP_NONE), TREAP_NONE);
}

static void random_changes_keep_the_order(void **state)
{
	struct rng rng;
	uint32_t root = TREAP_NONE;

	(void)state;
	rng_seed(&rng, 7);
	memset(items, 0, sizeof items);
	for (int step = 0; step < 6000; step++) {
		uint32_t number = (uint32_t)rng_below(&rng, NUMBERS);
		if (items[number].is_in) {
			treap_remove(&treap, &root, number);
		} else {
			items[number].rank = rng_between(&rng, -20, 20);
			treap_insert(&treap, &root, number);
		}
		items[number].is_in = !items[number].is_in;
		assert_int_equal(treap_first(&treap, root), model_after(TREAP_NONE));
		if (items[number].is_in)
			assert_int_equal(treap_after(&treap, root, number), model_after(number));
	}
	uint32_t count = 0, at = treap_first(&treap, root);
	for (; at != TREAP_NONE; at = treap_after(&treap, root, at))
		count += (uint32_t)items[at].is_in;
	for (uint32_t i = 0; i < NUMBERS; i++)
		count -= (uint32_t)items[i].is_in;
	assert_int_equal(count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_tree_has_no_first),
		cmocka_unit_test(random_changes_keep_the_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
