/*
 * What is true of every task and of every worker, always: each invariant is broken once, and a row like that is called damaged.
 */
#include "core_fixture.h"

/* A copy with one thing changed is not sound any more. */
#define BROKEN(whole, is_sound, change)         \
	do {                                    \
		__typeof__(whole) it = (whole); \
		assert_true(is_sound(&it));     \
		change;                         \
		assert_false(is_sound(&it));    \
	} while (0)
#define BROKEN_TASK(task, change)     BROKEN(task, task_is_sound, change)
#define BROKEN_WORKER(worker, change) BROKEN(worker, worker_is_sound, change)

static void a_task_in_any_state_is_sound(void **state)
{
	struct world *w = *state;

	for (int i = TASK_NOWHERE + 1; i < TASK_STATE_COUNT; i++) {
		struct task task = task_in(w, (enum task_state)i);
		assert_true(task_is_sound(&task));
	}
}

static void a_task_with_an_impossible_number_is_damaged(void **state)
{
	struct task ready = ready_task(*state), failed = failed_task(*state);

	BROKEN_TASK(ready, it.seq = 0);
	BROKEN_TASK(ready, it.queue = 0);
	BROKEN_TASK(ready, it.max_attempts = 0);
	BROKEN_TASK(ready, it.max_attempts = TASK_ATTEMPTS_MAX + 1);
	BROKEN_TASK(ready, it.spent = it.max_attempts + 1);
	BROKEN_TASK(ready, it.spent = it.attempt + 1);
	BROKEN_TASK(ready, it.crashes = TASK_COUNT_MAX + 1);
	BROKEN_TASK(ready, it.interruptions = TASK_COUNT_MAX + 1);
	BROKEN_TASK(ready, it.open_parents = TASK_COUNT_MAX + 1);
	BROKEN_TASK(ready, it.dead_parents = 1);
	BROKEN_TASK(failed, it.fence = 0);
}

static void a_task_in_an_impossible_state_is_damaged(void **state)
{
	struct task ready = ready_task(*state), waiting = waiting_task(*state, 1);
	struct task blocked = blocked_task(*state), failed = failed_task(*state);

	BROKEN_TASK(ready, it.state = TASK_NOWHERE);
	BROKEN_TASK(ready, it.state = TASK_STATE_COUNT);
	BROKEN_TASK(waiting, it.open_parents = 0);
	BROKEN_TASK(blocked, it.code = CODE_NONE);
	BROKEN_TASK(failed, it.code = CODE_NONE);
}

static void a_task_with_half_a_workflow_is_damaged(void **state)
{
	struct task ready = ready_task(*state);

	BROKEN_TASK(ready, it.stage = STAGE_BUILDING);
	BROKEN_TASK(ready, it.workflow = WORKFLOW_AUTOPILOT);
	BROKEN_TASK(ready, (it.workflow = WORKFLOW_MAX, it.stage = STAGE_BUILDING));
	BROKEN_TASK(ready, (it.workflow = WORKFLOW_AUTOPILOT, it.stage = STAGE_COUNT));
	BROKEN_TASK(ready, (it.gates = 5, it.gate_count = TASK_GATES_MAX + 1));
	BROKEN_TASK(ready, it.gate_count = 1);
	BROKEN_TASK(ready, it.gates = 5);
	BROKEN_TASK(ready, it.gates_passed = 1);
}

static void a_task_that_is_kept_for_no_host_or_in_the_wrong_state_is_damaged(void **state)
{
	struct task ready = ready_task(*state), done = done_task(*state);

	BROKEN_TASK(done, it.resume_host = HOST);
	BROKEN_TASK(ready, it.resume_until_ms = 1);
	BROKEN_TASK(ready, it.resume_host = HOST);
}

static void a_claim_that_is_half_there_is_damaged(void **state)
{
	struct task ready = ready_task(*state), claimed = claimed_task(*state);

	BROKEN_TASK(claimed, it.claim.holder = 0);
	BROKEN_TASK(ready, it.claim.clock = CLOCK_CLAIM);
	BROKEN_TASK(ready, it.claim.stopping = true);
	BROKEN_TASK(ready, it.claim.holder = BEATER);
}

static void a_claim_with_an_impossible_part_is_damaged(void **state)
{
	struct task claimed = claimed_task(*state), running = running_task(*state);

	BROKEN_TASK(claimed, it.claim.clock = 0);
	BROKEN_TASK(claimed, it.claim.lease.granted_ms = 0);
	BROKEN_TASK(running, it.claim.verify_at_ms = 1);
	BROKEN_TASK(claimed, it.claim.clock = CLOCK_WORKER);
	BROKEN_TASK(claimed, it.claim.asked_at_ms = 1);
	BROKEN_TASK(claimed, (it.fence = 0, it.attempt = 0));
	BROKEN_TASK(claimed, it.open_parents = 1);
	BROKEN_TASK(claimed, it.ended = ENDED_COMPLETE);
	BROKEN_TASK(claimed, it.crashes = 0);
}

static void a_worker_with_an_impossible_part_is_damaged(void **state)
{
	struct world *w = *state;

	assert_true(worker_is_sound(&w->plain));
	BROKEN_WORKER(w->beater, it.state = (enum worker_state)(WORKER_INACTIVE + 1));
	BROKEN_WORKER(w->beater, it.ended = WORKER_EXPIRED);
	BROKEN_WORKER(w->beater, it.ended = (enum worker_end)(WORKER_REPLACED + 1));
	BROKEN_WORKER(w->beater, it.token = 0);
	BROKEN_WORKER(w->beater, it.lease.granted_ms = 0);
	BROKEN_WORKER(w->plain, it.token = 1);
}

static void flags_come_back_as_they_were_packed(void **state)
{
	struct task task = {0};
	struct claim claim = {0};

	(void)state;
	for (unsigned flags = 0; flags < 16; flags++) {
		task_set_flags(&task, flags);
		assert_int_equal(task_flags(&task), flags);
	}
	for (uint64_t flags = 0; flags < UINT64_C(4) << CLAIM_FLAG_BITS; flags++) {
		claim_set_flags(&claim, flags);
		assert_int_equal(claim_flags(&claim), flags);
	}
}

static void a_task_may_be_kept_for_a_host_while_it_asks_runs_or_is_ready(void **state)
{
	struct task asking = asking_task(*state), running = running_task(*state), ready = ready_task(*state);

	asking.resume_host = running.resume_host = ready.resume_host = HOST;
	running.resume_until_ms = ready.resume_until_ms = 1;
	asking.resume_until_ms = 0;
	assert_true(task_is_sound(&asking));
	assert_true(task_is_sound(&running));
	assert_true(task_is_sound(&ready));
	asking.resume_until_ms = 1; /* it must be answered by then */
	assert_true(task_is_sound(&asking));
	asking.resume_host = 0;
	assert_true(task_is_sound(&asking));
	BROKEN_TASK(ready, it.state = TASK_PENDING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_task_in_any_state_is_sound),
		TEST(a_task_with_an_impossible_number_is_damaged),
		TEST(a_task_in_an_impossible_state_is_damaged),
		TEST(a_task_with_half_a_workflow_is_damaged),
		TEST(a_task_that_is_kept_for_no_host_or_in_the_wrong_state_is_damaged),
		TEST(a_claim_that_is_half_there_is_damaged),
		TEST(a_claim_with_an_impossible_part_is_damaged),
		TEST(a_worker_with_an_impossible_part_is_damaged),
		TEST(flags_come_back_as_they_were_packed),
		TEST(a_task_may_be_kept_for_a_host_while_it_asks_runs_or_is_ready),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
