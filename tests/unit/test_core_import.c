#include "core_fixture.h"

#define LONG_AGO INT64_C(1600000000000)

static struct task imported(struct world *w, struct task_past past)
{
	struct task draft = draft_new();
	struct task_decision decision = task_import(&draft, &past, QUEUE_OPEN, &w->given);

	return moved(decision, EVENT_TASK_CREATED, past.state);
}

static void what_comes_from_elsewhere_keeps_its_state_its_age_and_its_attempts(void **state)
{
	static const enum task_state states[] = {TASK_READY, TASK_PENDING, TASK_DONE, TASK_FAILED};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
		struct task task = imported(
			w, (struct task_past){.state = states[i], .created_ms = LONG_AGO, .attempt = 2});
		assert_int_equal(task.created_ms, LONG_AGO);
		assert_int_equal(task.attempt, 2);
		assert_int_equal(task.spent, 0);
		assert_false(task_is_claimed(&task));
	}
}

static void a_failed_one_has_a_code(void **state)
{
	struct task task = imported(*state, (struct task_past){.state = TASK_FAILED});

	assert_int_equal(task.code, CODE_EXECUTION_ERROR);
}

static void it_cannot_come_from_the_future(void **state)
{
	struct world *w = *state;
	struct task task = imported(
		w, (struct task_past){.state = TASK_READY, .created_ms = w->given.now.wall_ms + HOURS(1)});

	assert_int_equal(task.created_ms, w->given.now.wall_ms);
}

static void its_fences_go_on_above_those_it_would_have_had(void **state)
{
	struct world *w = *state;
	struct task task = imported(w, (struct task_past){.state = TASK_READY, .attempt = 5});
	struct claimant by = {.worker = &w->named, .named = true};

	assert_int_equal(task.fence, FENCE_GENERATION_STEP + 5);
	task = moved(task_claim(&task, &by, QUEUE_OPEN, &w->given), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	assert_int_equal(task.fence, FENCE_GENERATION_STEP + 6);
	assert_int_equal(task.attempt, 6);
}

static void nobody_can_report_on_a_claim_of_elsewhere(void **state)
{
	struct world *w = *state;
	struct task task = imported(w, (struct task_past){.state = TASK_DONE, .attempt = 1});
	struct proof proof = {.holder = NAMED, .fence = task.fence};

	assert_int_equal(task_complete(&task, &proof, &w->given).refusal, REFUSED_STALE_CLAIM);
	proof = (struct proof){.holder = NAMED, .by_name = true};
	assert_int_equal(task_complete(&task, &proof, &w->given).refusal, REFUSED_ALREADY_TERMINAL);
}

static void an_operator_may_open_it_again(void **state)
{
	struct world *w = *state;
	struct task task = imported(w, (struct task_past){.state = TASK_DONE, .attempt = 1});

	task = moved(task_retry(&task, false, &w->given), EVENT_TASK_RETRIED, TASK_READY);
	assert_int_equal(task.attempt, 1);
}

static void a_queue_that_drains_takes_only_what_is_over(void **state)
{
	struct world *w = *state;
	struct task draft = draft_new();
	struct task_past past = {.state = TASK_READY};

	assert_int_equal(
		task_import(&draft, &past, QUEUE_DRAINING, &w->given).refusal, REFUSED_QUEUE_DRAINING);
	past.state = TASK_DONE;
	moved(task_import(&draft, &past, QUEUE_DRAINING, &w->given), EVENT_TASK_CREATED, TASK_DONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_comes_from_elsewhere_keeps_its_state_its_age_and_its_attempts),
		TEST(a_failed_one_has_a_code),
		TEST(it_cannot_come_from_the_future),
		TEST(its_fences_go_on_above_those_it_would_have_had),
		TEST(nobody_can_report_on_a_claim_of_elsewhere),
		TEST(an_operator_may_open_it_again),
		TEST(a_queue_that_drains_takes_only_what_is_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
