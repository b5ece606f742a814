/*
 * Limits of a queue: what they let through, and what a change of them is.
 */
#include "core/flow/limit.h"
#include "core_fixture.h"

static enum limit_kind judged(uint32_t concurrency, uint32_t live)
{
	return limits_judge(
		&(struct queue_limits){.concurrency = concurrency}, &(struct queue_load){.live = live});
}

static struct limits_decision change(uint32_t from, uint32_t set, uint32_t to)
{
	return limits_change(&(struct queue_limits){.concurrency = from},
		&(struct limits_patch){.set = set, .wanted = {.concurrency = to}});
}

static void a_queue_without_limits_lets_everything_through(void **state)
{
	(void)state;
	assert_int_equal(judged(0, 0), LIMIT_NONE);
	assert_int_equal(judged(0, UINT32_MAX), LIMIT_NONE);
	assert_int_equal(limits_room(&(struct queue_limits){0}, &(struct queue_load){.live = 9}), UINT32_MAX);
}

static void no_claim_goes_through_when_as_many_are_alive_as_may_be(void **state)
{
	(void)state;
	assert_int_equal(judged(2, 0), LIMIT_NONE);
	assert_int_equal(judged(2, 1), LIMIT_NONE);
	assert_int_equal(judged(2, 2), LIMIT_CONCURRENCY);
	assert_int_equal(judged(1, 7), LIMIT_CONCURRENCY); /* it was lowered: what runs goes on */
}

static void the_room_is_what_is_left_and_never_less_than_none(void **state)
{
	const struct queue_limits three = {.concurrency = 3};

	(void)state;
	assert_int_equal(limits_room(&three, &(struct queue_load){.live = 1}), 2);
	assert_int_equal(limits_room(&three, &(struct queue_load){.live = 3}), 0);
	assert_int_equal(limits_room(&three, &(struct queue_load){.live = 5}), 0);
}

static void a_change_has_an_event_and_the_same_limit_again_has_none(void **state)
{
	(void)state;
	assert_int_equal(change(0, LIMITS_SET_CONCURRENCY, 2).event, EVENT_QUEUE_UPDATED);
	assert_int_equal(change(0, LIMITS_SET_CONCURRENCY, 2).limits.concurrency, 2);
	assert_int_equal(change(2, LIMITS_SET_CONCURRENCY, 2).event, EVENT_NONE);
	assert_int_equal(change(2, LIMITS_SET_CONCURRENCY, 0).event, EVENT_QUEUE_UPDATED);
	assert_true(limits_are_none(&(struct queue_limits){0}));
}

static void what_a_change_does_not_name_stays(void **state)
{
	(void)state;
	assert_int_equal(change(2, 0, 5).event, EVENT_NONE);
	assert_int_equal(change(2, 0, 5).limits.concurrency, 2);
}

static void what_cannot_have_been_set_is_not_sound(void **state)
{
	(void)state;
	assert_true(limits_are_sound(&(struct queue_limits){.concurrency = LIMIT_MAX}));
	assert_false(limits_are_sound(&(struct queue_limits){.concurrency = LIMIT_MAX + 1}));
	assert_string_equal(limit_kind_name(LIMIT_CONCURRENCY), "concurrency");
	assert_string_equal(limit_kind_name(LIMIT_HOLD), "hold");
}

static enum limit_kind judged_key(
	struct queue_limits limits, uint32_t cap, uint32_t live, uint32_t begun, bool is_begun)
{
	return limits_judge_key(&limits, cap, &(struct key_load){live, begun}, is_begun);
}

static void a_key_has_its_own_number_or_that_of_all_keys(void **state)
{
	const struct queue_limits two = {.per_key = 2};

	(void)state;
	assert_int_equal(judged_key(two, 0, 1, 1, false), LIMIT_NONE);
	assert_int_equal(judged_key(two, 0, 2, 2, false), LIMIT_PER_KEY);
	assert_int_equal(judged_key(two, 3, 2, 2, false), LIMIT_NONE);
	assert_int_equal(judged_key(two, 1, 1, 1, true), LIMIT_PER_KEY);
	assert_int_equal(judged_key((struct queue_limits){0}, 1, 1, 1, false), LIMIT_PER_KEY);
	assert_int_equal(limits_key_room(&two, 0, &(struct key_load){1, 1}), 1);
	assert_int_equal(limits_key_room(&two, 5, &(struct key_load){1, 1}), 4);
	assert_int_equal(limits_key_room(&two, 0, &(struct key_load){3, 3}), 0);
	assert_int_equal(limits_key_room(&(struct queue_limits){0}, 0, &(struct key_load){9, 9}), UINT32_MAX);
}

static void a_sequential_key_waits_for_the_one_that_has_begun(void **state)
{
	const struct queue_limits one_by_one = {.sequential = true};

	(void)state;
	assert_int_equal(judged_key(one_by_one, 0, 0, 0, false), LIMIT_NONE);
	assert_int_equal(
		judged_key(one_by_one, 0, 0, 1, false), LIMIT_SEQUENTIAL); /* it backs off, or is in review */
	assert_int_equal(judged_key(one_by_one, 0, 0, 1, true), LIMIT_NONE); /* this is the one */
	assert_int_equal(judged_key(one_by_one, 0, 1, 2, true), LIMIT_SEQUENTIAL);
	assert_int_equal(limits_key_room(&one_by_one, 0, &(struct key_load){0, 1}), 1);
	assert_int_equal(limits_key_room(&one_by_one, 0, &(struct key_load){1, 1}), 0);
}

static void the_key_with_the_fewest_live_claims_is_next_then_the_one_served_longest_ago(void **state)
{
	const struct fair_turn idle = {0, 9}, busy = {1, 0}, served = {0, 3}, fresh = {0, 0};

	(void)state;
	assert_true(fair_order(&idle, &busy) < 0); /* served lately, but nothing of it is in work */
	assert_true(fair_order(&busy, &idle) > 0);
	assert_true(fair_order(&served, &idle) < 0);
	assert_true(fair_order(&fresh, &served) < 0);
	assert_int_equal(fair_order(&idle, &idle), 0);
}

static void a_queue_is_full_with_as_many_open_tasks_as_it_may_have(void **state)
{
	const struct queue_limits two = {.max_open = 2}, none = {0};

	(void)state;
	assert_false(limits_are_full(&two, 1));
	assert_true(limits_are_full(&two, 2));
	assert_true(limits_are_full(&two, 3)); /* it was lowered */
	assert_false(limits_are_full(&none, 1000000));
	assert_false(limits_are_none(&two));
	assert_false(limits_are_none(&(struct queue_limits){.fair = true}));
}

static void keys_have_numbers_that_stay(void **state)
{
	(void)state;
	assert_true(concurrency_key_number(SPAN("")) == 0);
	assert_true(concurrency_key_number(SPAN("acme")) == UINT64_C(13073564254259643107));
	assert_true(concurrency_key_number(SPAN("acme")) != concurrency_key_number(SPAN("acmf")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_key_has_its_own_number_or_that_of_all_keys),
		TEST(a_sequential_key_waits_for_the_one_that_has_begun),
		TEST(the_key_with_the_fewest_live_claims_is_next_then_the_one_served_longest_ago),
		TEST(a_queue_is_full_with_as_many_open_tasks_as_it_may_have),
		TEST(keys_have_numbers_that_stay),
		TEST(a_queue_without_limits_lets_everything_through),
		TEST(no_claim_goes_through_when_as_many_are_alive_as_may_be),
		TEST(the_room_is_what_is_left_and_never_less_than_none),
		TEST(a_change_has_an_event_and_the_same_limit_again_has_none),
		TEST(what_a_change_does_not_name_stays),
		TEST(what_cannot_have_been_set_is_not_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
