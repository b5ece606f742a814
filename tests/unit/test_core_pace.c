#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/task/pace.h"

#define NOW INT64_C(5000000)

static void a_whole_minute_may_be_used_up_at_once(void **state)
{
	struct pace pace = {0};

	(void)state;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(pace_wait_ms(&pace, 20, NOW), 0);
		pace_take(&pace, 20, NOW);
	}
	assert_int_equal(pace_wait_ms(&pace, 20, NOW), 3000);
	assert_int_equal(pace_wait_ms(&pace, 20, NOW + 2999), 1);
	assert_int_equal(pace_wait_ms(&pace, 20, NOW + 3000), 0);
}

static void then_it_goes_on_one_by_one(void **state)
{
	struct pace pace = {0};
	int64_t now_ms = NOW;
	uint32_t taken = 0;

	(void)state;
	for (; now_ms < NOW + 600000; now_ms += 100) {
		if (pace_wait_ms(&pace, 20, now_ms) > 0)
			continue;
		pace_take(&pace, 20, now_ms);
		taken++;
	}
	assert_in_range(taken, 200 + 19, 200 + 20); /* ten minutes, and the first one at once */
}

static void what_was_not_used_does_not_pile_up(void **state)
{
	struct pace pace = {0};

	(void)state;
	pace_take(&pace, 1, NOW);
	assert_int_equal(pace_wait_ms(&pace, 1, NOW), 60000);
	assert_int_equal(pace_wait_ms(&pace, 1, NOW + 3600000), 0);
	pace_take(&pace, 1, NOW + 3600000);
	assert_int_equal(pace_wait_ms(&pace, 1, NOW + 3600000), 60000);
}

static void what_is_given_back_was_not_taken(void **state)
{
	struct pace pace = {0};

	(void)state;
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(pace_wait_ms(&pace, 2, NOW + i), 0);
		pace_take(&pace, 2, NOW + i);
		pace_give_back(&pace, 2);
	}
}

static void nought_is_no_limit(void **state)
{
	struct pace pace = {0};

	(void)state;
	for (int i = 0; i < 1000; i++)
		pace_take(&pace, 0, NOW);
	assert_int_equal(pace_wait_ms(&pace, 0, NOW), 0);
}

static void what_is_given_back_may_be_taken_again_and_without_a_limit_nothing_is(void **state)
{
	struct pace pace = {0}, before;

	(void)state;
	pace_take(&pace, 60, 1000);
	before = pace;
	pace_take(&pace, 60, 1000);
	pace_give_back(&pace, 60);
	assert_int_equal(pace.free_at_us, before.free_at_us);
	pace_give_back(&pace, 0);
	assert_int_equal(pace.free_at_us, before.free_at_us);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_minute_may_be_used_up_at_once),
		cmocka_unit_test(then_it_goes_on_one_by_one),
		cmocka_unit_test(what_was_not_used_does_not_pile_up),
		cmocka_unit_test(what_is_given_back_was_not_taken),
		cmocka_unit_test(nought_is_no_limit),
		cmocka_unit_test(what_is_given_back_may_be_taken_again_and_without_a_limit_nothing_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
