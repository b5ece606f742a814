#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/wheel.h"

enum {
	TIMERS = 300,
};

#define TURN_MS ((int64_t)WHEEL_SPOKES * WHEEL_TICK_MS)

/* A wheel beside a plain list of what hangs in it. */
struct clockwork {
	struct wheel wheel;
	struct wheel_node nodes[TIMERS];
	bool set[TIMERS];
	int64_t at_ms[TIMERS];
	uint32_t count;
	int64_t now_ms;
	uint32_t given; /* in the current advance */
	struct rng rng;
};

static struct wheel_node *node_of(void *context, uint32_t timer)
{
	struct clockwork *c = context;

	assert_in_range(timer, 0, TIMERS - 1);
	return &c->nodes[timer];
}

static struct clockwork *clockwork_at(int64_t now_ms)
{
	static struct clockwork c;

	c = (struct clockwork){.now_ms = now_ms};
	wheel_init(&c.wheel, node_of, &c, now_ms);
	return &c;
}

static void set(struct clockwork *c, uint32_t timer, int64_t at_ms)
{
	wheel_set(&c->wheel, timer, at_ms);
	c->count += !c->set[timer];
	c->set[timer] = true;
	c->at_ms[timer] = at_ms;
}

static void drop(struct clockwork *c, uint32_t timer)
{
	wheel_drop(&c->wheel, timer);
	c->count -= c->set[timer];
	c->set[timer] = false;
}

/* What is given out hung there, and its time has come. */
static void take(void *context, uint32_t timer)
{
	struct clockwork *c = context;

	assert_in_range(timer, 0, TIMERS - 1);
	assert_true(c->set[timer]);
	assert_true(c->at_ms[timer] <= c->now_ms);
	c->set[timer] = false;
	c->count--;
	c->given++;
}

static uint32_t advance(struct clockwork *c, uint32_t limit)
{
	c->given = 0;
	uint32_t given = wheel_advance(&c->wheel, c->now_ms, limit, take, c);
	assert_int_equal(given, c->given);
	assert_true(given <= limit);
	return given;
}

static int64_t earliest_ms(const struct clockwork *c)
{
	int64_t earliest = INT64_MAX;

	for (int i = 0; i < TIMERS; i++)
		if (c->set[i] && c->at_ms[i] < earliest)
			earliest = c->at_ms[i];
	return earliest;
}

static void an_empty_wheel_never_wants_to_be_asked(void **state)
{
	struct clockwork *c = clockwork_at(1000);

	(void)state;
	assert_true(wheel_idle_ms(&c->wheel, c->now_ms) == INT64_MAX);
	c->now_ms += 10 * TURN_MS;
	assert_int_equal(advance(c, 10), 0);
	set(c, 0, c->now_ms + 1);
	drop(c, 0);
	assert_true(wheel_idle_ms(&c->wheel, c->now_ms) == INT64_MAX);
}

static void a_timer_is_given_out_once_and_never_early(void **state)
{
	struct clockwork *c = clockwork_at(1000000);
	int64_t at_ms = c->now_ms + 1001;

	(void)state;
	set(c, 7, at_ms);
	while (c->now_ms < at_ms + WHEEL_TICK_MS && c->count > 0) {
		c->now_ms++;
		advance(c, 10);
	}
	assert_int_equal(c->count, 0);
	c->now_ms += 2 * TURN_MS;
	assert_int_equal(advance(c, 10), 0);
}

static void a_timer_of_the_past_is_given_out_at_once(void **state)
{
	struct clockwork *c = clockwork_at(5 * TURN_MS + 3);

	(void)state;
	set(c, 0, 0);
	set(c, 1, c->now_ms);
	set(c, 2, c->now_ms - TURN_MS);
	set(c, 3, -1);
	assert_int_equal(wheel_idle_ms(&c->wheel, c->now_ms), 0);
	c->now_ms += WHEEL_TICK_MS;
	assert_int_equal(advance(c, 10), 4);
}

static void a_timer_more_than_a_turn_away_is_passed_over(void **state)
{
	struct clockwork *c = clockwork_at(1000000);
	int64_t at_ms = c->now_ms + 3 * TURN_MS + 500;

	(void)state;
	set(c, 0, at_ms);
	set(c, 1, at_ms - 2 * TURN_MS);
	for (; c->now_ms < at_ms - WHEEL_TICK_MS; c->now_ms += WHEEL_TICK_MS)
		advance(c, 10);
	assert_false(c->set[1]);
	assert_true(c->set[0]);
	c->now_ms = at_ms + WHEEL_TICK_MS;
	assert_int_equal(advance(c, 10), 1);
}

static void a_jump_over_several_turns_misses_nothing(void **state)
{
	struct clockwork *c = clockwork_at(77);

	(void)state;
	for (uint32_t i = 0; i < TIMERS; i++)
		set(c, i, c->now_ms + i * TURN_MS / 50);
	c->now_ms += 100 * TURN_MS;
	assert_int_equal(advance(c, TIMERS + 1), TIMERS);
	assert_int_equal(c->wheel.count, 0);
}

static void a_timer_that_is_moved_keeps_only_its_last_time(void **state)
{
	struct clockwork *c = clockwork_at(0);

	(void)state;
	set(c, 0, 1000);
	set(c, 0, 5000);
	c->now_ms = 4999;
	assert_int_equal(advance(c, 10), 0);
	set(c, 0, 5000);
	set(c, 0, 2000);
	assert_int_equal(c->wheel.count, 1);
	c->now_ms = 5000;
	assert_int_equal(advance(c, 10), 1);
}

static void no_more_than_the_limit_is_given_out_and_the_rest_follows(void **state)
{
	struct clockwork *c = clockwork_at(0);

	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		set(c, i, 1 + i % 3 * 1000);
	c->now_ms = 2 * TURN_MS;
	for (int left = 100; left > 0; left -= 10) {
		assert_int_equal(c->wheel.count, left);
		assert_int_equal(advance(c, 10), 10);
	}
	assert_int_equal(advance(c, 10), 0);
}

static void it_sleeps_until_the_tick_of_its_first_timer(void **state)
{
	struct clockwork *c = clockwork_at(64 * WHEEL_TICK_MS);

	(void)state;
	for (int64_t in_ms = 1; in_ms < TURN_MS - WHEEL_TICK_MS; in_ms = in_ms * 3 / 2 + 1) {
		set(c, 0, c->now_ms + in_ms);
		int64_t idle_ms = wheel_idle_ms(&c->wheel, c->now_ms);
		assert_true(idle_ms >= in_ms);
		assert_true(idle_ms < in_ms + WHEEL_TICK_MS);
		c->now_ms += idle_ms;
		assert_int_equal(advance(c, 1), 1);
	}
}

/* ---- random operations -------------------------------------------------------------------------- */

/* Mostly close together and whole turns apart, so that lists grow long and turns mix in them. */
static int64_t any_time(struct clockwork *c)
{
	int64_t turns = rng_chance(&c->rng, 3) ? rng_between(&c->rng, 0, 4) : 0;

	if (rng_chance(&c->rng, 10))
		return c->now_ms - rng_between(&c->rng, 0, 2 * TURN_MS);
	if (rng_chance(&c->rng, 4))
		return c->now_ms + rng_between(&c->rng, 0, 5 * TURN_MS);
	return c->now_ms + turns * TURN_MS + rng_between(&c->rng, 0, 1000);
}

static int64_t any_step(struct clockwork *c)
{
	switch (rng_below(&c->rng, 12)) {
	case 0:
		return rng_between(&c->rng, 0, 7 * TURN_MS);
	case 1:
		return rng_between(&c->rng, TURN_MS - 300, TURN_MS + 300);
	case 2:
	case 3:
		return rng_between(&c->rng, 0, 20000);
	default:
		return rng_between(&c->rng, 0, 300);
	}
}

static void check_sleep(const struct clockwork *c)
{
	int64_t idle_ms = wheel_idle_ms(&c->wheel, c->now_ms);

	if (c->count == 0) {
		assert_true(idle_ms == INT64_MAX);
		return;
	}
	int64_t latest_ms = earliest_ms(c) + WHEEL_TICK_MS - c->now_ms;
	assert_true(idle_ms >= 0);
	assert_true(idle_ms <= (latest_ms > 0 ? latest_ms : 0));
}

static void step(struct clockwork *c)
{
	uint32_t limit = 1 + rng_below(&c->rng, rng_chance(&c->rng, 3) ? 4 : 2 * TIMERS);
	uint32_t timer = rng_below(&c->rng, TIMERS);

	if (rng_chance(&c->rng, 4))
		drop(c, timer);
	else if (!rng_chance(&c->rng, 3))
		set(c, timer, any_time(c));
	else
		c->now_ms += any_step(c);
	if (rng_chance(&c->rng, 3) && advance(c, limit) < limit)
		assert_true(c->count == 0 || earliest_ms(c) > c->now_ms - WHEEL_TICK_MS);
	assert_int_equal(c->wheel.count, c->count);
	check_sleep(c);
}

static void random_operations_match_a_plain_list(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct clockwork *c = clockwork_at((int64_t)seed * 100000007);

		rng_seed(&c->rng, seed);
		for (int i = 0; i < 10000; i++)
			step(c);
		c->now_ms += 100 * TURN_MS;
		while (advance(c, 7) == 7)
			;
		assert_int_equal(c->count, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_wheel_never_wants_to_be_asked),
		cmocka_unit_test(a_timer_is_given_out_once_and_never_early),
		cmocka_unit_test(a_timer_of_the_past_is_given_out_at_once),
		cmocka_unit_test(a_timer_more_than_a_turn_away_is_passed_over),
		cmocka_unit_test(a_jump_over_several_turns_misses_nothing),
		cmocka_unit_test(a_timer_that_is_moved_keeps_only_its_last_time),
		cmocka_unit_test(no_more_than_the_limit_is_given_out_and_the_rest_follows),
		cmocka_unit_test(it_sleeps_until_the_tick_of_its_first_timer),
		cmocka_unit_test(random_operations_match_a_plain_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
