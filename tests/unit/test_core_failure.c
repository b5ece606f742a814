#include "core_fixture.h"

#include <string.h>

/* What the first failure with each code does to a task: hand-written from the table of the contract. */
// clang-format off
static const struct {
	const char *name;
	enum failure_class klass;
	enum event_kind event;
	enum task_state to;
	uint32_t spent, crashes, interruptions;
	int64_t wait_ms;
} table[] = {
	{"OTHER",                 CLASS_TASK,    EVENT_TASK_FAILED,  TASK_SCHEDULED, 1, 0, 0, 10000},
	{"EXECUTION_ERROR",       CLASS_TASK,    EVENT_TASK_FAILED,  TASK_SCHEDULED, 1, 0, 0, 10000},
	{"CHECK_FAILED",          CLASS_TASK,    EVENT_TASK_FAILED,  TASK_READY,     1, 0, 0, 0},
	{"TASK_TIMEOUT",          CLASS_TIMEOUT, EVENT_TASK_FAILED,  TASK_SCHEDULED, 1, 0, 0, 10000},
	{"STALLED",               CLASS_TIMEOUT, EVENT_TASK_FAILED,  TASK_SCHEDULED, 1, 0, 0, 10000},
	{"WORKER_CRASHED",        CLASS_CRASH,   EVENT_TASK_FAILED,  TASK_READY,     0, 1, 0, 0},
	{"PROTOCOL_ERROR",        CLASS_CRASH,   EVENT_TASK_FAILED,  TASK_READY,     0, 1, 0, 0},
	{"LEASE_LOST",            CLASS_CRASH,   EVENT_TASK_FAILED,  TASK_READY,     0, 1, 0, 0},
	{"WORKER_INIT_FAILED",    CLASS_HOST,    EVENT_TASK_FAILED,  TASK_READY,     0, 0, 1, 0},
	{"INTERRUPTED_TOO_OFTEN", CLASS_POLICY,  EVENT_TASK_BLOCKED, TASK_BLOCKED,   0, 0, 0, 0},
	{"QUOTA",                 CLASS_QUOTA,   EVENT_TASK_FAILED,  TASK_SCHEDULED, 0, 0, 0, 300000},
	{"EXECUTOR_NOT_FOUND",    CLASS_POLICY,  EVENT_TASK_BLOCKED, TASK_BLOCKED,   0, 0, 0, 0},
	{"ISOLATION_UNAVAILABLE", CLASS_POLICY,  EVENT_TASK_BLOCKED, TASK_BLOCKED,   0, 0, 0, 0},
	{"BAD_WORKDIR",           CLASS_POLICY,  EVENT_TASK_BLOCKED, TASK_BLOCKED,   0, 0, 0, 0},
	{"BUDGET_EXCEEDED",       CLASS_POLICY,  EVENT_TASK_BLOCKED, TASK_BLOCKED,   0, 0, 0, 0},
	{"STOPPED",               CLASS_POLICY,  EVENT_TASK_BLOCKED, TASK_BLOCKED,   0, 0, 0, 0},
	{"DEPENDENCY_FAILED",     CLASS_POLICY,  EVENT_TASK_BLOCKED, TASK_BLOCKED,   0, 0, 0, 0},
	{"DEADLINE",              CLASS_FINAL,   EVENT_TASK_FAILED,  TASK_FAILED,    0, 0, 0, 0},
	{"AUTH",                  CLASS_QUOTA,   EVENT_TASK_FAILED,  TASK_SCHEDULED, 0, 0, 0, 300000},
	{"UPSTREAM",              CLASS_QUOTA,   EVENT_TASK_FAILED,  TASK_SCHEDULED, 0, 0, 0, 300000},
	{"NOT_ALLOWED",           CLASS_POLICY,  EVENT_TASK_BLOCKED, TASK_BLOCKED,   0, 0, 0, 0},
	{"REFUSED",               CLASS_TASK,    EVENT_TASK_FAILED,  TASK_SCHEDULED, 1, 0, 0, 10000},
};
// clang-format on

enum {
	CODES = sizeof table / sizeof table[0],
};

static enum failure_code code_of(int row)
{
	return failure_code_from_name(table[row].name, strlen(table[row].name));
}

static void every_code_has_its_class_and_its_own_name(void **state)
{
	(void)state;
	assert_int_equal(CODES, FAILURE_CODE_COUNT - 1);
	for (int i = 0; i < CODES; i++) {
		enum failure_code code = code_of(i);

		assert_string_equal(failure_code_name(code), table[i].name);
		assert_int_equal(failure_code_class(code), table[i].klass);
	}
}

static void every_code_does_what_its_class_says(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < CODES; i++) {
		struct task task = running_task(w);

		task = moved(fail_with(w, &task, code_of(i)), table[i].event, table[i].to);
		assert_int_equal(task.spent, table[i].spent);
		assert_int_equal(task.crashes, table[i].crashes);
		assert_int_equal(task.interruptions, table[i].interruptions);
		assert_int_equal(task.code, code_of(i));
		assert_int_equal(task.ended, ENDED_FAIL);
		if (task.state == TASK_SCHEDULED || task.state == TASK_READY)
			assert_int_equal(task.ready_at_ms, w->given.now.wall_ms + table[i].wait_ms);
	}
}

static void classes_are_known_by_name(void **state)
{
	static const char *const names[] = {"task", "timeout", "crash", "host", "quota", "policy"};

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		enum failure_class klass = failure_class_from_name(names[i], strlen(names[i]));

		assert_int_not_equal(klass, FAILURE_CLASS_NONE);
		assert_string_equal(failure_class_name(klass), names[i]);
	}
	assert_int_equal(failure_class_from_name("tasks", 5), FAILURE_CLASS_NONE);
	assert_int_equal(failure_class_from_name("", 0), FAILURE_CLASS_NONE);
}

static const char *const class_texts[] = {
#define X(name, wire, text) [CLASS_##name] = text,
	FAILURE_CLASSES(X)
#undef X
};

static void what_the_server_finds_itself_is_told_in_words_of_its_own(void **state)
{
	static const enum failure_code codes[] = {CODE_TASK_TIMEOUT, CODE_LEASE_LOST,
		CODE_INTERRUPTED_TOO_OFTEN, CODE_EXECUTOR_NOT_FOUND, CODE_STOPPED, CODE_DEPENDENCY_FAILED,
		CODE_DEADLINE};

	(void)state;
	for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
		assert_string_not_equal(
			failure_code_text(codes[i]), class_texts[failure_code_class(codes[i])]);
	assert_string_equal(failure_code_text(CODE_CHECK_FAILED), class_texts[CLASS_TASK]);
}

static void nobody_may_name_the_class_of_the_servers_own_codes(void **state)
{
	(void)state;
	assert_int_equal(failure_class_from_name("final", 5), FAILURE_CLASS_NONE);
	assert_string_equal(failure_class_name(CLASS_FINAL), "final");
}

static void an_unknown_code_is_of_class_task(void **state)
{
	(void)state;
	assert_int_equal(failure_code_class(failure_code_from_name("E_WHATEVER", 10)), CLASS_TASK);
	assert_int_equal(failure_code_class(failure_code_from_name("", 0)), CLASS_TASK);
	assert_int_equal(failure_code_class(failure_code_from_name("quota", 5)), CLASS_TASK);
}

static void the_class_a_caller_names_decides_for_its_own_code(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);
	struct proof proof = proof_of(&task);
	struct failure failure = {.code = CODE_OTHER, .klass = CLASS_POLICY};

	moved(task_fail(&task, &proof, &failure, &w->given), EVENT_TASK_BLOCKED, TASK_BLOCKED);
}

static void back_off_doubles_from_ten_seconds_to_five_minutes(void **state)
{
	static const int64_t base_s[] = {10, 20, 40, 80, 160, 300, 300, 300, 300, 300};
	struct world *w = *state;

	for (uint32_t k = 1; k <= 10; k++) {
		int64_t base_ms = SECONDS(base_s[k - 1]);

		assert_int_equal(backoff_ms(&w->rules, k, 0), base_ms);
		assert_int_equal(backoff_ms(&w->rules, k, UINT32_MAX), base_ms + base_ms / 5);
		for (uint32_t random = 0; random < UINT32_MAX - 65537; random += 65537 * 13)
			assert_in_range(backoff_ms(&w->rules, k, random), base_ms, base_ms + base_ms / 5);
	}
	assert_int_equal(backoff_ms(&w->rules, UINT32_MAX, 0), MINUTES(5));
}

static void jitter_grows_with_the_random_number(void **state)
{
	struct world *w = *state;

	assert_int_equal(backoff_ms(&w->rules, 1, UINT32_MAX / 2), 11000);
	assert_true(backoff_ms(&w->rules, 1, 1u << 30) < backoff_ms(&w->rules, 1, 1u << 31));
}

static void the_first_back_off_is_a_setting(void **state)
{
	struct world *w = *state;

	w->rules.retry_base_ms = 100;
	assert_int_equal(backoff_ms(&w->rules, 1, 0), 100);
	assert_int_equal(backoff_ms(&w->rules, 3, 0), 400);
	w->rules.retry_base_ms = (uint32_t)MINUTES(10);
	assert_int_equal(backoff_ms(&w->rules, 1, 0), MINUTES(5));
}

/* Bring it back to running, however long that takes. */
static struct task run_again(struct world *w, struct task task)
{
	if (task.state == TASK_SCHEDULED) {
		pass_time(w, task.ready_at_ms - w->given.now.wall_ms);
		task = moved(task_due(&task, &w->given), EVENT_TASK_REQUEUED, TASK_READY);
	}
	task = moved(claim_by(w, &task, &w->beater), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	return bound(w, &task);
}

static void a_task_fails_for_good_when_its_attempts_are_spent(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	task = moved(fail_with(w, &task, CODE_EXECUTION_ERROR), EVENT_TASK_FAILED, TASK_SCHEDULED);
	assert_int_equal(task.ready_at_ms, w->given.now.wall_ms + SECONDS(10));
	task = run_again(w, task);
	task = moved(fail_with(w, &task, CODE_TASK_TIMEOUT), EVENT_TASK_FAILED, TASK_SCHEDULED);
	assert_int_equal(task.ready_at_ms, w->given.now.wall_ms + SECONDS(20));
	task = run_again(w, task);
	struct task_decision decision = fail_with(w, &task, CODE_CHECK_FAILED);
	task = moved(decision, EVENT_TASK_FAILED, TASK_FAILED);
	assert_int_equal(decision.follow, FOLLOW_PARENT_DEAD);
	assert_int_equal(task.spent, 3);
	assert_int_equal(task.code, CODE_CHECK_FAILED);
}

static void a_failed_check_costs_an_attempt_and_no_time(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	task = moved(fail_with(w, &task, CODE_CHECK_FAILED), EVENT_TASK_FAILED, TASK_READY);
	assert_int_equal(task.ready_at_ms, w->given.now.wall_ms);
	assert_int_equal(task.spent, 1);
	assert_int_equal(task.code, CODE_CHECK_FAILED);
	task = run_again(w, task);
	task = moved(fail_with(w, &task, CODE_EXECUTION_ERROR), EVENT_TASK_FAILED, TASK_SCHEDULED);
	assert_int_equal(task.ready_at_ms, w->given.now.wall_ms + SECONDS(20));
}

static void a_single_attempt_gets_no_second_one(void **state)
{
	struct world *w = *state;
	struct task draft = draft_new();

	draft.max_attempts = 1;
	struct task task = created(w, &draft, TASK_READY);
	task = run_again(w, task);
	moved(fail_with(w, &task, CODE_EXECUTION_ERROR), EVENT_TASK_FAILED, TASK_FAILED);
}

static void a_limit_lowered_to_what_is_spent_ends_with_the_next_failure(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);
	struct task_patch patch = {.set_max_attempts = true, .max_attempts = 1};

	task = moved(fail_with(w, &task, CODE_EXECUTION_ERROR), EVENT_TASK_FAILED, TASK_SCHEDULED);
	task = noted(task_update(&task, &patch, &w->given), &task, EVENT_TASK_UPDATED);
	assert_int_equal(task.max_attempts, 2);
	task = run_again(w, task);
	task = moved(fail_with(w, &task, CODE_EXECUTION_ERROR), EVENT_TASK_FAILED, TASK_FAILED);
	assert_int_equal(task.spent, 2);
}

static void a_limit_of_nothing_leaves_one_attempt(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct task_patch patch = {.set_max_attempts = true, .max_attempts = 0};

	task = noted(task_update(&task, &patch, &w->given), &task, EVENT_TASK_UPDATED);
	assert_int_equal(task.max_attempts, 1);
	task = run_again(w, task);
	moved(fail_with(w, &task, CODE_EXECUTION_ERROR), EVENT_TASK_FAILED, TASK_FAILED);
}

static void the_third_crash_in_a_row_fails_the_task(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	task = moved(fail_with(w, &task, CODE_WORKER_CRASHED), EVENT_TASK_FAILED, TASK_READY);
	task = run_again(w, task);
	task = moved(fail_with(w, &task, CODE_PROTOCOL_ERROR), EVENT_TASK_FAILED, TASK_SCHEDULED);
	assert_int_equal(task.ready_at_ms, w->given.now.wall_ms + SECONDS(10));
	task = run_again(w, task);
	struct task_decision decision = fail_with(w, &task, CODE_WORKER_CRASHED);
	task = moved(decision, EVENT_TASK_FAILED, TASK_FAILED);
	assert_int_equal(decision.follow, FOLLOW_PARENT_DEAD);
	assert_int_equal(task.crashes, 3);
	assert_int_equal(task.spent, 0);
	assert_int_equal(task.code, CODE_WORKER_CRASHED);
}

static void lost_leases_and_crashes_share_one_budget(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	task = moved(task_lose(&task, &w->given), EVENT_TASK_EXPIRED, TASK_READY);
	task = run_again(w, task);
	task = moved(fail_with(w, &task, CODE_WORKER_CRASHED), EVENT_TASK_FAILED, TASK_SCHEDULED);
	task = run_again(w, task);
	task = moved(task_lose(&task, &w->given), EVENT_TASK_EXPIRED, TASK_FAILED);
	assert_int_equal(task.code, CODE_LEASE_LOST);
}

static void the_crash_budget_is_a_setting(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	w->rules.crash_budget = 1;
	moved(fail_with(w, &task, CODE_WORKER_CRASHED), EVENT_TASK_FAILED, TASK_FAILED);
	moved(task_lose(&task, &w->given), EVENT_TASK_EXPIRED, TASK_FAILED);
}

static void a_failure_of_the_task_itself_ends_a_row_of_crashes(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	task = moved(fail_with(w, &task, CODE_WORKER_CRASHED), EVENT_TASK_FAILED, TASK_READY);
	task = run_again(w, task);
	task = moved(fail_with(w, &task, CODE_STALLED), EVENT_TASK_FAILED, TASK_SCHEDULED);
	assert_int_equal(task.crashes, 0);
	task = run_again(w, task);
	task = moved(fail_with(w, &task, CODE_WORKER_CRASHED), EVENT_TASK_FAILED, TASK_READY);
	assert_int_equal(task.crashes, 1);
	assert_int_equal(task.spent, 1);
}

static void host_trouble_and_quota_do_not_end_a_row_of_crashes(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	for (int crash = 1; crash <= 2; crash++) {
		task = moved(fail_with(w, &task, CODE_WORKER_CRASHED), EVENT_TASK_FAILED,
			crash == 1 ? TASK_READY : TASK_SCHEDULED);
		task = run_again(w, task);
		task = moved(fail_with(w, &task, CODE_WORKER_INIT_FAILED), EVENT_TASK_FAILED, TASK_READY);
		task = run_again(w, task);
		task = moved(fail_with(w, &task, CODE_QUOTA), EVENT_TASK_FAILED, TASK_SCHEDULED);
		assert_int_equal(task.crashes, crash);
		task = run_again(w, task);
	}
	moved(fail_with(w, &task, CODE_WORKER_CRASHED), EVENT_TASK_FAILED, TASK_FAILED);
}

static void the_tenth_interruption_in_a_row_blocks_the_task(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	for (int i = 1; i < 10; i++) {
		task = moved(fail_with(w, &task, CODE_WORKER_INIT_FAILED), EVENT_TASK_FAILED, TASK_READY);
		assert_int_equal(task.interruptions, i);
		task = run_again(w, task);
	}
	task = moved(fail_with(w, &task, CODE_WORKER_INIT_FAILED), EVENT_TASK_BLOCKED, TASK_BLOCKED);
	assert_int_equal(task.code, CODE_INTERRUPTED_TOO_OFTEN);
	assert_int_equal(task.spent, 0);
	assert_int_equal(task.crashes, 0);
	assert_int_equal(task.attempt, 10);
}

static void releases_and_unconfirmed_claims_are_interruptions_too(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);

	for (int i = 1; i < 10; i++) {
		task = moved(claim_by(w, &task, &w->beater), EVENT_TASK_CLAIMED, TASK_CLAIMED);
		struct proof proof = proof_of(&task);
		task = i % 2 ? task_release(&task, &proof, 0, &w->given).task
			     : task_return(&task, &w->given).task;
		assert_int_equal(task.state, TASK_READY);
	}
	task = moved(claim_by(w, &task, &w->beater), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	pass_time(w, MINUTES(2));
	task = moved(task_verify(&task, &w->given), EVENT_TASK_BLOCKED, TASK_BLOCKED);
	assert_int_equal(task.code, CODE_INTERRUPTED_TOO_OFTEN);
}

static void progress_starts_the_count_of_interruptions_again(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	for (int i = 0; i < 30; i++) {
		task = noted(progress(w, &task), &task, EVENT_TASK_PROGRESSED);
		task = moved(fail_with(w, &task, CODE_WORKER_INIT_FAILED), EVENT_TASK_FAILED, TASK_READY);
		assert_int_equal(task.interruptions, 1);
		task = run_again(w, task);
	}
}

static void quota_waits_for_the_reset_that_the_worker_names(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);
	struct proof proof = proof_of(&task);
	struct failure failure = failure_of(CODE_QUOTA);

	failure.retry_at_ms = w->given.now.wall_ms + HOURS(5);
	task = moved(task_fail(&task, &proof, &failure, &w->given), EVENT_TASK_FAILED, TASK_SCHEDULED);
	assert_int_equal(task.ready_at_ms, w->given.now.wall_ms + HOURS(5));
	assert_int_equal(task.spent, 0);
	assert_int_equal(task.crashes, 0);
	assert_int_equal(task.interruptions, 0);
}

static void a_worker_may_say_when_to_retry(void **state)
{
	static const enum failure_code codes[] = {
		CODE_EXECUTION_ERROR, CODE_TASK_TIMEOUT, CODE_WORKER_CRASHED, CODE_WORKER_INIT_FAILED};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
		struct task task = running_task(w);
		struct proof proof = proof_of(&task);
		struct failure failure = failure_of(codes[i]);

		failure.retry_at_ms = w->given.now.wall_ms + MINUTES(42);
		task = moved(
			task_fail(&task, &proof, &failure, &w->given), EVENT_TASK_FAILED, TASK_SCHEDULED);
		assert_int_equal(task.ready_at_ms, w->given.now.wall_ms + MINUTES(42));
	}
}

static void a_time_to_retry_that_has_passed_means_at_once(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);
	struct proof proof = proof_of(&task);
	struct failure failure = failure_of(CODE_EXECUTION_ERROR);

	failure.retry_at_ms = 1;
	task = moved(task_fail(&task, &proof, &failure, &w->given), EVENT_TASK_FAILED, TASK_READY);
	assert_int_equal(task.ready_at_ms, w->given.now.wall_ms);
	assert_int_equal(task.spent, 1);
}

static void assert_no_retry_fails(struct world *w, enum failure_code code)
{
	struct task task = running_task(w);
	struct proof proof = proof_of(&task);
	struct failure failure = failure_of(code);

	failure.no_retry = true;
	struct task_decision decision = task_fail(&task, &proof, &failure, &w->given);
	moved(decision, EVENT_TASK_FAILED, TASK_FAILED);
	assert_int_equal(decision.follow, FOLLOW_PARENT_DEAD);
	assert_int_equal(decision.task.code, code);
}

static void a_worker_may_say_do_not_retry(void **state)
{
	assert_no_retry_fails(*state, CODE_EXECUTION_ERROR);
	assert_no_retry_fails(*state, CODE_TASK_TIMEOUT);
	assert_no_retry_fails(*state, CODE_WORKER_CRASHED);
}

static void do_not_retry_holds_for_host_trouble_and_quota_too(void **state)
{
	assert_no_retry_fails(*state, CODE_WORKER_INIT_FAILED);
	assert_no_retry_fails(*state, CODE_QUOTA);
}

static void do_not_retry_leaves_a_policy_failure_to_a_person(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);
	struct proof proof = proof_of(&task);
	struct failure failure = failure_of(CODE_BAD_WORKDIR);

	failure.no_retry = true;
	moved(task_fail(&task, &proof, &failure, &w->given), EVENT_TASK_BLOCKED, TASK_BLOCKED);
}

static void jitter_is_added_to_the_wait_of_a_failed_task(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	w->given.random = UINT32_MAX;
	task = moved(fail_with(w, &task, CODE_EXECUTION_ERROR), EVENT_TASK_FAILED, TASK_SCHEDULED);
	assert_int_equal(task.ready_at_ms, w->given.now.wall_ms + SECONDS(12));
}

static void a_completion_ends_every_row(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	task = moved(task_lose(&task, &w->given), EVENT_TASK_EXPIRED, TASK_READY);
	task = run_again(w, task);
	task = moved(release(w, &task), EVENT_TASK_RELEASED, TASK_READY);
	task = run_again(w, task);
	task = moved(complete(w, &task), EVENT_TASK_COMPLETED, TASK_DONE);
	assert_int_equal(task.crashes, 0);
	assert_int_equal(task.interruptions, 0);
	assert_int_equal(task.code, CODE_NONE);
}

static void interruptions_are_counted_up_to_a_number_that_can_be_stored(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);
	struct failure failure = {.klass = CLASS_HOST, .code = CODE_OTHER};
	struct proof proof = proof_of(&task);

	task.interruptions = TASK_COUNT_MAX;
	task = moved(task_fail(&task, &proof, &failure, &w->given), EVENT_TASK_BLOCKED, TASK_BLOCKED);
	assert_int_equal(task.interruptions, TASK_COUNT_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_code_has_its_class_and_its_own_name),
		TEST(every_code_does_what_its_class_says),
		TEST(classes_are_known_by_name),
		TEST(what_the_server_finds_itself_is_told_in_words_of_its_own),
		TEST(nobody_may_name_the_class_of_the_servers_own_codes),
		TEST(an_unknown_code_is_of_class_task),
		TEST(the_class_a_caller_names_decides_for_its_own_code),
		TEST(back_off_doubles_from_ten_seconds_to_five_minutes),
		TEST(jitter_grows_with_the_random_number),
		TEST(the_first_back_off_is_a_setting),
		TEST(a_task_fails_for_good_when_its_attempts_are_spent),
		TEST(a_failed_check_costs_an_attempt_and_no_time),
		TEST(a_single_attempt_gets_no_second_one),
		TEST(a_limit_lowered_to_what_is_spent_ends_with_the_next_failure),
		TEST(a_limit_of_nothing_leaves_one_attempt),
		TEST(the_third_crash_in_a_row_fails_the_task),
		TEST(lost_leases_and_crashes_share_one_budget),
		TEST(the_crash_budget_is_a_setting),
		TEST(a_failure_of_the_task_itself_ends_a_row_of_crashes),
		TEST(host_trouble_and_quota_do_not_end_a_row_of_crashes),
		TEST(the_tenth_interruption_in_a_row_blocks_the_task),
		TEST(releases_and_unconfirmed_claims_are_interruptions_too),
		TEST(progress_starts_the_count_of_interruptions_again),
		TEST(quota_waits_for_the_reset_that_the_worker_names),
		TEST(a_worker_may_say_when_to_retry),
		TEST(a_time_to_retry_that_has_passed_means_at_once),
		TEST(a_worker_may_say_do_not_retry),
		TEST(do_not_retry_holds_for_host_trouble_and_quota_too),
		TEST(do_not_retry_leaves_a_policy_failure_to_a_person),
		TEST(jitter_is_added_to_the_wait_of_a_failed_task),
		TEST(a_completion_ends_every_row),
		TEST(interruptions_are_counted_up_to_a_number_that_can_be_stored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
