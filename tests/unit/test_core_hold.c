/*
 * Holds: how long an account is held, who tries it, and how it is let go.
 */
#include "core/flow/hold.h"
#include "core_fixture.h"

static const struct hold none;

static struct hold held(const struct hold_decision decision, enum event_kind event, enum hold_state state)
{
	assert_int_equal(decision.event, event);
	assert_int_equal(decision.hold.state, state);
	return decision.hold;
}

static struct hold opened(struct world *w, enum failure_code code, int64_t retry_at_ms)
{
	return held(hold_fail(&none, code, retry_at_ms, &w->given), EVENT_HOLD_OPENED, HOLD_HELD);
}

static struct hold probing(struct world *w, struct hold hold)
{
	pass_time(w, hold.until_ms - w->given.now.wall_ms);
	return held(hold_due(&hold, &w->given), EVENT_HOLD_PROBING, HOLD_PROBING);
}

static void a_time_that_the_service_names_counts_up_to_eight_days(void **state)
{
	struct world *w = *state;
	int64_t now_ms = w->given.now.wall_ms;

	w->given.random = 0;
	assert_int_equal(opened(w, CODE_QUOTA, now_ms + HOURS(3)).until_ms, now_ms + HOURS(3));
	assert_int_equal(opened(w, CODE_QUOTA, now_ms + HOURS(24 * 30)).until_ms, now_ms + HOURS(24 * 8));
	assert_int_equal(opened(w, CODE_QUOTA, INT64_MAX / 2).until_ms, now_ms + HOURS(24 * 8));
	assert_int_equal(opened(w, CODE_QUOTA, now_ms - 1).until_ms, now_ms + MINUTES(5));
}

static void jitter_is_at_most_a_fifth_and_at_most_a_minute(void **state)
{
	struct world *w = *state;
	int64_t now_ms = w->given.now.wall_ms;

	w->given.random = UINT32_MAX;
	assert_in_range(opened(w, CODE_UPSTREAM, 0).until_ms, now_ms + SECONDS(71), now_ms + SECONDS(72));
	assert_in_range(opened(w, CODE_QUOTA, now_ms + HOURS(3)).until_ms, now_ms + HOURS(3) + SECONDS(59),
		now_ms + HOURS(3) + SECONDS(60));
}

static void holds_in_a_row_double_up_to_their_bound(void **state)
{
	static const struct {
		enum failure_code code;
		int64_t minutes[7];
	} rows[] = {{CODE_QUOTA, {5, 10, 20, 40, 60, 60, 60}}, {CODE_UPSTREAM, {1, 2, 4, 8, 15, 15, 15}}};
	struct world *w = *state;

	w->given.random = 0;
	for (size_t i = 0; i < 2; i++) {
		struct hold hold = none;
		for (int k = 0; k < 7; k++) {
			hold = held(
				hold_fail(&hold, rows[i].code, 0, &w->given), EVENT_HOLD_OPENED, HOLD_HELD);
			assert_int_equal(hold.until_ms, w->given.now.wall_ms + MINUTES(rows[i].minutes[k]));
			hold = probing(w, hold);
		}
	}
}

static void what_ran_when_it_was_opened_extends_it_and_does_not_double_it(void **state)
{
	struct world *w = *state;

	w->given.random = 0;
	struct hold hold = opened(w, CODE_QUOTA, 0);
	held(hold_fail(&hold, CODE_UPSTREAM, 0, &w->given), EVENT_NONE, HOLD_HELD);
	pass_time(w, MINUTES(1));
	hold = held(hold_fail(&hold, CODE_QUOTA, 0, &w->given), EVENT_HOLD_EXTENDED, HOLD_HELD);
	assert_int_equal(hold.until_ms, w->given.now.wall_ms + MINUTES(5));
	assert_int_equal(hold.in_row, 1);
}

static void a_lost_login_is_held_until_a_person_acts(void **state)
{
	struct world *w = *state;
	struct hold hold = opened(w, CODE_AUTH, w->given.now.wall_ms + HOURS(1));

	assert_int_equal(hold.until_ms, 0);
	assert_int_equal(hold_next_ms(&hold), INT64_MAX);
	held(hold_fail(&hold, CODE_QUOTA, 0, &w->given), EVENT_NONE, HOLD_HELD);
	pass_time(w, HOURS(24 * 100));
	held(hold_due(&hold, &w->given), EVENT_NONE, HOLD_HELD);
	held(hold_lift(&hold), EVENT_HOLD_CLOSED, HOLD_NONE);
	hold = opened(w, CODE_QUOTA, 0);
	held(hold_fail(&hold, CODE_AUTH, 0, &w->given), EVENT_HOLD_EXTENDED, HOLD_HELD);
}

static void then_one_claim_at_a_time_tries(void **state)
{
	struct world *w = *state;
	struct hold hold = opened(w, CODE_QUOTA, 0);

	assert_false(hold_lets(&hold, false, &w->given));
	hold = probing(w, hold);
	assert_true(hold_lets(&hold, false, &w->given));
	hold = hold_claimed(&hold, 7, 70, &w->given);
	assert_false(hold_lets(&hold, true, &w->given));
	assert_true(hold_lets(&hold, false, &w->given)); /* its claim is over, and it has proved nothing */
}

static void only_the_claim_that_tries_proves_that_it_works(void **state)
{
	struct world *w = *state;
	struct hold hold = probing(w, opened(w, CODE_QUOTA, 0));

	hold = hold_claimed(&hold, 7, 70, &w->given);
	held(hold_prove(&hold, 8, 70, &w->given), EVENT_NONE, HOLD_PROBING);
	held(hold_prove(&hold, 7, 69, &w->given), EVENT_NONE, HOLD_PROBING);
	held(hold_prove(&hold, 7, 70, &w->given), EVENT_HOLD_CLOSED, HOLD_RELEASING);
}

static void the_time_of_the_next_claim_comes_once(void **state)
{
	struct world *w = *state;
	struct hold hold = probing(w, opened(w, CODE_QUOTA, 0));

	hold = hold_claimed(&hold, 7, 70, &w->given);
	hold = hold_prove(&hold, 7, 70, &w->given).hold;
	int64_t end_ms = hold_next_ms(&hold);
	hold = hold_claimed(&hold, 8, 80, &w->given);
	assert_int_equal(hold_next_ms(&hold), w->given.now.wall_ms + SECONDS(2));
	pass_time(w, SECONDS(2));
	hold = held(hold_due(&hold, &w->given), EVENT_NONE, HOLD_RELEASING);
	assert_int_equal(hold_next_ms(&hold), end_ms);
	assert_true(hold_lets(&hold, false, &w->given));
}

static void it_is_released_a_few_claims_a_minute_for_ten_minutes(void **state)
{
	struct world *w = *state;
	struct hold hold = probing(w, opened(w, CODE_QUOTA, 0));
	int claims = 0;

	hold = hold_claimed(&hold, 7, 70, &w->given);
	hold = hold_prove(&hold, 7, 70, &w->given).hold;
	for (int second = 0; second < 60; second++, pass_time(w, SECONDS(1))) {
		while (hold_lets(&hold, false, &w->given)) {
			hold = hold_claimed(&hold, 8, 80, &w->given);
			claims++;
		}
	}
	assert_int_equal(claims, 30);
	pass_time(w, MINUTES(9));
	held(hold_due(&hold, &w->given), EVENT_NONE, HOLD_NONE);
}

static void a_failure_while_it_is_released_is_the_next_hold_in_a_row(void **state)
{
	struct world *w = *state;

	w->given.random = 0;
	struct hold hold = probing(w, opened(w, CODE_QUOTA, 0));
	hold = hold_claimed(&hold, 7, 70, &w->given);
	hold = hold_prove(&hold, 7, 70, &w->given).hold;
	hold = held(hold_fail(&hold, CODE_QUOTA, 0, &w->given), EVENT_HOLD_OPENED, HOLD_HELD);
	assert_int_equal(hold.until_ms, w->given.now.wall_ms + MINUTES(10));
}

static void a_task_of_a_held_account_stays_in_line_with_its_error(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);
	struct proof proof = proof_of(&task);
	struct failure failure = failure_of(CODE_QUOTA);

	failure.retry_at_ms = w->given.now.wall_ms + HOURS(5);
	moved(task_fail(&task, &proof, &failure, &w->given), EVENT_TASK_FAILED, TASK_SCHEDULED);
	failure.is_held = true;
	task = moved(task_fail(&task, &proof, &failure, &w->given), EVENT_TASK_FAILED, TASK_READY);
	assert_int_equal(task.code, CODE_QUOTA);
	assert_int_equal(task.spent, 0);
	assert_int_equal(task.crashes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_time_that_the_service_names_counts_up_to_eight_days),
		TEST(jitter_is_at_most_a_fifth_and_at_most_a_minute),
		TEST(holds_in_a_row_double_up_to_their_bound),
		TEST(what_ran_when_it_was_opened_extends_it_and_does_not_double_it),
		TEST(a_lost_login_is_held_until_a_person_acts),
		TEST(then_one_claim_at_a_time_tries),
		TEST(only_the_claim_that_tries_proves_that_it_works),
		TEST(the_time_of_the_next_claim_comes_once),
		TEST(it_is_released_a_few_claims_a_minute_for_ten_minutes),
		TEST(a_failure_while_it_is_released_is_the_next_hold_in_a_row),
		TEST(a_task_of_a_held_account_stays_in_line_with_its_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
