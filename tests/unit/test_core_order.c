#include "core_fixture.h"

#include "base/rng.h"

static struct task ordered(int32_t priority, int64_t created_ms, int64_t seq)
{
	return (struct task){.priority = priority, .created_ms = created_ms, .seq = seq};
}

static void assert_goes_first(struct task a, struct task b)
{
	assert_true(task_claim_order(&a, &b, 0) < 0);
	assert_true(task_claim_order(&b, &a, 0) > 0);
}

static void higher_priority_goes_first(void **state)
{
	(void)state;
	assert_goes_first(ordered(100, 9, 9), ordered(50, 1, 1));
	assert_goes_first(ordered(50, 9, 9), ordered(0, 1, 1));
	assert_goes_first(ordered(0, 9, 9), ordered(-50, 1, 1));
	assert_goes_first(ordered(INT32_MAX, 9, 9), ordered(INT32_MIN, 1, 1));
}

static void of_equal_priority_the_older_goes_first(void **state)
{
	(void)state;
	assert_goes_first(ordered(0, 1, 9), ordered(0, 2, 1));
	assert_goes_first(ordered(-7, INT64_MIN, 9), ordered(-7, INT64_MAX, 1));
}

static void of_equal_age_the_first_created_goes_first(void **state)
{
	(void)state;
	assert_goes_first(ordered(0, 1, 1), ordered(0, 1, 2));
	assert_goes_first(ordered(0, 1, 1), ordered(0, 1, INT64_MAX));
}

static void a_task_is_equal_to_itself_alone(void **state)
{
	struct task a = ordered(1, 2, 3);

	(void)state;
	assert_int_equal(task_claim_order(&a, &a, 0), 0);
}

static void queue_and_waiting_time_do_not_matter(void **state)
{
	struct task a = ordered(0, 1, 1), b = ordered(0, 1, 2);

	(void)state;
	a.queue = 9;
	b.queue = 1;
	a.ready_at_ms = 500;
	b.ready_at_ms = 100;
	assert_goes_first(a, b);
}

static void the_order_is_transitive(void **state)
{
	struct task t[3];
	struct rng rng;

	(void)state;
	rng_seed(&rng, 11);
	for (int round = 0; round < 20000; round++) {
		int64_t age_ms = round % 4;
		for (int i = 0; i < 3; i++)
			t[i] = ordered((int32_t)rng_below(&rng, 3), rng_below(&rng, 3), rng_below(&rng, 3));
		if (task_claim_order(&t[0], &t[1], age_ms) <= 0 &&
			task_claim_order(&t[1], &t[2], age_ms) <= 0)
			assert_true(task_claim_order(&t[0], &t[2], age_ms) <= 0);
		assert_true((task_claim_order(&t[0], &t[1], age_ms) < 0) ==
			(task_claim_order(&t[1], &t[0], age_ms) > 0));
	}
}

static void with_ageing_a_step_of_priority_is_worth_that_much_waiting(void **state)
{
	struct task low = ordered(0, 1000, 1), high = ordered(50, 1000 + 50 * 10, 2);

	(void)state;
	assert_true(
		task_claim_order(&low, &high, 10) < 0); /* both stand in line since 1000: the first created */
	assert_true(task_claim_order(&low, &high, 11) > 0);
	assert_true(task_claim_order(&low, &high, 9) < 0);
	assert_true(task_claim_order(&low, &high, 0) > 0);
	low.priority = INT32_MIN, high.priority = INT32_MAX;
	assert_true(task_claim_order(&low, &high, INT64_C(30) * 24 * 3600 * 1000) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(higher_priority_goes_first),
		TEST(of_equal_priority_the_older_goes_first),
		TEST(of_equal_age_the_first_created_goes_first),
		TEST(a_task_is_equal_to_itself_alone),
		TEST(queue_and_waiting_time_do_not_matter),
		TEST(the_order_is_transitive),
		TEST(with_ageing_a_step_of_priority_is_worth_that_much_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
