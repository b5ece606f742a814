/* Budgets of a day: what is counted, when it is told, and when a day has ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/flow/budget.h"

#define DAY_MS INT64_C(86400000)

static const int64_t noon_ms = 20000 * DAY_MS + DAY_MS / 2;

static struct usage used(int64_t micro_usd, int64_t input, int64_t output)
{
	struct usage usage = {.is_reported = true};

	usage.counts[USAGE_MICRO_USD] = micro_usd;
	usage.counts[USAGE_INPUT] = input;
	usage.counts[USAGE_OUTPUT] = output;
	usage.counts[USAGE_CACHE_READ] = 1000000;
	return usage;
}

static struct day_budget limited(enum day_part part, int64_t most)
{
	struct day_budget budget = {0};
	struct day_budget_patch patch = {.set = 1u << part};

	patch.wanted[part] = most;
	struct day_budget_decision decision = day_budget_change(&budget, &patch, noon_ms);
	assert_int_equal(decision.event, EVENT_BUDGET_UPDATED);
	return decision.budget;
}

/* Uses so many output tokens more. */
static enum event_kind use(struct day_budget *budget, int64_t tokens, int64_t at_ms)
{
	struct usage none = {0}, more = used(0, 0, tokens);

	more.counts[USAGE_CACHE_READ] = 0;
	struct day_budget_decision decision = day_budget_use(budget, &none, &more, at_ms);
	*budget = decision.budget;
	assert_true(day_budget_is_sound(budget));
	return decision.event;
}

static void what_an_attempt_uses_is_the_difference_of_its_totals(void **state)
{
	struct day_budget budget = {0};
	struct usage before = used(100, 10, 20), after = used(250, 15, 40);

	(void)state;
	budget = day_budget_use(&budget, &before, &after, noon_ms).budget;
	assert_int_equal(budget.used[DAY_USD], 150);
	assert_int_equal(budget.used[DAY_TOKENS], 25); /* of a cache nothing is read anew */
}

static void four_fifths_and_the_end_are_told_once_a_day(void **state)
{
	struct day_budget budget = limited(DAY_TOKENS, 100);

	(void)state;
	assert_int_equal(use(&budget, 79, noon_ms), EVENT_NONE);
	assert_int_equal(use(&budget, 1, noon_ms), EVENT_BUDGET_NEAR);
	assert_int_equal(use(&budget, 19, noon_ms), EVENT_NONE);
	assert_false(day_budget_is_spent(&budget, noon_ms));
	assert_int_equal(use(&budget, 1, noon_ms), EVENT_BUDGET_SPENT);
	assert_true(day_budget_is_spent(&budget, noon_ms));
	assert_int_equal(use(&budget, 50, noon_ms), EVENT_NONE);
}

static void one_step_over_both_tells_the_end(void **state)
{
	struct day_budget budget = limited(DAY_TOKENS, 100);

	(void)state;
	assert_int_equal(use(&budget, 200, noon_ms), EVENT_BUDGET_SPENT);
	assert_int_equal(use(&budget, 1, noon_ms), EVENT_NONE);
}

static void at_midnight_of_utc_nothing_is_used(void **state)
{
	struct day_budget budget = limited(DAY_TOKENS, 100);
	int64_t end_ms = day_end_ms(noon_ms);

	(void)state;
	assert_int_equal(end_ms, 20001 * DAY_MS);
	use(&budget, 100, end_ms - 1);
	assert_true(day_budget_is_spent(&budget, end_ms - 1));
	assert_false(day_budget_is_spent(&budget, end_ms));
	assert_int_equal(use(&budget, 80, end_ms), EVENT_BUDGET_NEAR);
	assert_int_equal(budget.used[DAY_TOKENS], 80);
}

static void a_clock_that_is_set_back_gives_nothing_back(void **state)
{
	struct day_budget budget = limited(DAY_TOKENS, 100);

	(void)state;
	use(&budget, 100, noon_ms);
	assert_true(day_budget_is_spent(&budget, noon_ms - 2 * DAY_MS));
	assert_int_equal(use(&budget, 1, noon_ms - DAY_MS), EVENT_NONE);
	assert_int_equal(budget.used[DAY_TOKENS], 101);
}

static void a_larger_budget_is_not_spent_and_a_smaller_one_is(void **state)
{
	struct day_budget budget = limited(DAY_TOKENS, 100);
	struct day_budget_patch patch = {.set = 1u << DAY_TOKENS, .wanted = {[DAY_TOKENS] = 300}};

	(void)state;
	use(&budget, 100, noon_ms);
	budget = day_budget_change(&budget, &patch, noon_ms).budget;
	assert_false(day_budget_is_spent(&budget, noon_ms));
	assert_int_equal(day_budget_change(&budget, &patch, noon_ms).event, EVENT_NONE);
	patch.wanted[DAY_TOKENS] = 50;
	budget = day_budget_change(&budget, &patch, noon_ms).budget;
	assert_true(day_budget_is_spent(&budget, noon_ms));
	patch.wanted[DAY_TOKENS] = 0;
	budget = day_budget_change(&budget, &patch, noon_ms).budget;
	assert_false(day_budget_is_spent(&budget, noon_ms));
	assert_false(day_budget_limits(&budget));
	assert_false(day_budget_is_idle(&budget, noon_ms));
	assert_true(day_budget_is_idle(&budget, noon_ms + DAY_MS));
}

static void each_part_is_spent_by_itself(void **state)
{
	struct day_budget budget = limited(DAY_USD, 1000000);
	struct day_budget_patch patch = {.set = 1u << DAY_TURNS, .wanted = {[DAY_TURNS] = 10}};
	struct usage none = {0}, more = used(1000000, 0, 0);

	(void)state;
	budget = day_budget_change(&budget, &patch, noon_ms).budget;
	struct day_budget_decision decision = day_budget_use(&budget, &none, &more, noon_ms);
	assert_int_equal(decision.event, EVENT_BUDGET_SPENT);
	assert_int_equal(decision.part, DAY_USD);
	more.counts[USAGE_MICRO_USD] = 0;
	more.counts[USAGE_TURNS] = 9;
	decision = day_budget_use(&decision.budget, &none, &more, noon_ms);
	assert_int_equal(decision.event, EVENT_BUDGET_NEAR);
	assert_int_equal(decision.part, DAY_TURNS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_an_attempt_uses_is_the_difference_of_its_totals),
		cmocka_unit_test(four_fifths_and_the_end_are_told_once_a_day),
		cmocka_unit_test(one_step_over_both_tells_the_end),
		cmocka_unit_test(at_midnight_of_utc_nothing_is_used),
		cmocka_unit_test(a_clock_that_is_set_back_gives_nothing_back),
		cmocka_unit_test(a_larger_budget_is_not_spent_and_a_smaller_one_is),
		cmocka_unit_test(each_part_is_spent_by_itself),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
