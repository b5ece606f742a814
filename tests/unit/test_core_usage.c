#include "core/task/usage.h"
#include "core_fixture.h"

static struct usage said(int64_t output, int64_t micro_usd)
{
	struct usage usage = {.is_reported = true, .price_is_unknown = micro_usd < 0};

	usage.counts[USAGE_OUTPUT] = output;
	usage.counts[USAGE_MICRO_USD] = micro_usd < 0 ? 0 : micro_usd;
	return usage;
}

static void totals_of_an_attempt_never_fall(void **state)
{
	struct usage nothing = {0}, high = said(10, 50), low = said(3, 60);

	(void)state;
	struct usage usage = usage_raise(&nothing, &high);
	usage = usage_raise(&usage, &low);
	assert_int_equal(usage.counts[USAGE_OUTPUT], 10);
	assert_int_equal(usage.counts[USAGE_MICRO_USD], 60);
	usage = usage_raise(&usage, &high);
	assert_int_equal(usage.counts[USAGE_MICRO_USD], 60);
}

static void a_sum_with_an_unknown_price_has_an_unknown_price(void **state)
{
	struct usage priced = said(1, 5), unpriced = said(2, -1);

	(void)state;
	struct usage sum = usage_add(&priced, &priced);
	assert_false(sum.price_is_unknown);
	assert_int_equal(sum.counts[USAGE_MICRO_USD], 10);
	sum = usage_add(&sum, &unpriced);
	assert_true(sum.price_is_unknown);
	assert_int_equal(sum.counts[USAGE_OUTPUT], 4);
}

static void a_sum_beyond_every_number_stays_at_the_highest(void **state)
{
	struct usage most = said(INT64_MAX, 0), one = said(1, 0);

	(void)state;
	assert_int_equal(usage_add(&most, &one).counts[USAGE_OUTPUT], INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(totals_of_an_attempt_never_fall),
		TEST(a_sum_with_an_unknown_price_has_an_unknown_price),
		TEST(a_sum_beyond_every_number_stays_at_the_highest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
