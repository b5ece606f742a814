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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_queue_without_limits_lets_everything_through),
		TEST(no_claim_goes_through_when_as_many_are_alive_as_may_be),
		TEST(the_room_is_what_is_left_and_never_less_than_none),
		TEST(a_change_has_an_event_and_the_same_limit_again_has_none),
		TEST(what_a_change_does_not_name_stays),
		TEST(what_cannot_have_been_set_is_not_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
