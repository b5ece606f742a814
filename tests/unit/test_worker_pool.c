/* One worker of a pool: what it says, when it is silent, how it ends; and a clock that the test moves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "pool/child.h"

struct world {
	struct pool_child worker;
	int64_t now_ms;
};

enum { SECOND = 1000 };

static int set_up(void **state)
{
	static struct world world;
	struct pool_rules rules = pool_rules_default();

	world.now_ms = 1000000;
	pool_child_init(&world.worker, &rules);
	*state = &world;
	return 0;
}

/* ---- dialogue ---- */

static void pass(struct world *w, int64_t ms)
{
	w->now_ms += ms;
}

/* Time passes; nothing happens before it is due. */
static uint32_t until_due(struct world *w)
{
	int64_t due_ms = pool_child_due_ms(&w->worker);

	assert_true(due_ms < INT64_MAX);
	if (due_ms > w->now_ms) {
		assert_int_equal(pool_child_look(&w->worker, due_ms - 1), 0);
		w->now_ms = due_ms;
	}
	return pool_child_look(&w->worker, w->now_ms);
}

static uint32_t says(struct world *w, enum pool_message_kind kind)
{
	struct pool_message message = {.kind = kind, .success = true, .percent = 50};

	return pool_child_hear(&w->worker, &message, POOL_OF_ITS_TASK, w->now_ms);
}

static uint32_t says_of_another(struct world *w, enum pool_message_kind kind)
{
	struct pool_message message = {.kind = kind, .success = true};

	return pool_child_hear(&w->worker, &message, POOL_OF_ANOTHER, w->now_ms);
}

static void spawns(struct world *w)
{
	assert_int_equal(w->worker.state, POOL_ENTERING);
	assert_int_equal(pool_child_entered(&w->worker, POOL_ENTRY_FREE, w->now_ms), POOL_DO_SPAWN);
	assert_int_equal(w->worker.state, POOL_STARTING);
}

static void becomes_ready(struct world *w)
{
	if (w->worker.state == POOL_OFF)
		assert_int_equal(pool_child_begin(&w->worker), POOL_DO_ENTER);
	else
		assert_int_equal(until_due(w), POOL_DO_ENTER);
	spawns(w);
	assert_int_equal(says(w, POOL_HELLO), POOL_DO_WORK);
}

static void becomes_busy(struct world *w)
{
	becomes_ready(w);
	pool_child_assign(&w->worker, w->now_ms);
}

static uint32_t is_gone(struct world *w)
{
	return pool_child_gone(&w->worker, false, w->now_ms);
}

static void is_told(struct world *w, enum pool_entry entry)
{
	assert_int_equal(pool_child_told(&w->worker, entry, w->now_ms), 0);
}

/* ---- tests ---- */

static void a_worker_works_off_one_task_after_the_other(void **state)
{
	struct world *w = *state;

	becomes_ready(w);
	for (int i = 0; i < 3; i++) {
		pool_child_assign(&w->worker, w->now_ms);
		assert_int_equal(says(w, POOL_PROGRESS), POOL_DO_NOTE);
		assert_int_equal(says(w, POOL_RESULT), POOL_DO_END);
		assert_int_equal(w->worker.state, POOL_ANSWERED);
		assert_int_equal(says(w, POOL_READY), POOL_DO_WORK);
	}
	assert_int_equal(w->worker.completed, 3);
	assert_int_equal(w->worker.failed, 0);
}

static void a_result_that_is_no_success_is_a_failure(void **state)
{
	struct world *w = *state;
	struct pool_message message = {.kind = POOL_RESULT, .success = false};

	becomes_busy(w);
	assert_int_equal(pool_child_hear(&w->worker, &message, POOL_OF_ITS_TASK, w->now_ms), POOL_DO_END);
	assert_int_equal(w->worker.completed, 0);
	assert_int_equal(w->worker.failed, 1);
}

static void who_says_no_hello_in_time_is_killed_and_has_crashed(void **state)
{
	struct world *w = *state;

	pool_child_begin(&w->worker);
	spawns(w);
	assert_int_equal(says(w, POOL_HEARTBEAT), 0); /* a sign of life is no hello */
	assert_int_equal(until_due(w), POOL_DO_KILL);
	assert_int_equal(w->now_ms, 1000000 + 10 * SECOND);
	assert_int_equal(is_gone(w), POOL_DO_TELL);
	assert_string_equal(pool_fault_code(&w->worker), "WORKER_INIT_FAILED");
}

static void silence_of_thirty_seconds_is_a_crash_whatever_it_does(void **state)
{
	struct world *w = *state;

	becomes_ready(w);
	pass(w, 29 * SECOND);
	assert_int_equal(says(w, POOL_HEARTBEAT), 0);
	pool_child_assign(&w->worker, w->now_ms);
	assert_int_equal(until_due(w), POOL_DO_KILL);
	assert_int_equal(w->now_ms, 1000000 + 59 * SECOND);
	assert_string_equal(pool_state_name(&w->worker), "unresponsive");
	assert_int_equal(is_gone(w), POOL_DO_END | POOL_DO_TELL);
	assert_string_equal(pool_fault_code(&w->worker), "WORKER_CRASHED");
}

static void beats_keep_it_for_a_day(void **state)
{
	struct world *w = *state;

	becomes_busy(w);
	for (int i = 0; i < 24 * 360; i++) {
		pass(w, 10 * SECOND);
		assert_int_equal(pool_child_look(&w->worker, w->now_ms), 0);
		assert_int_equal(says(w, POOL_HEARTBEAT), 0);
	}
	assert_int_equal(says(w, POOL_RESULT), POOL_DO_END);
}

static void frames_that_are_not_understood_are_no_sign_of_life(void **state)
{
	struct world *w = *state;

	becomes_ready(w);
	pass(w, 29 * SECOND);
	assert_int_equal(pool_child_hear_unknown(&w->worker, false), 0);
	pass(w, 1 * SECOND);
	assert_int_equal(pool_child_look(&w->worker, w->now_ms), POOL_DO_KILL);
}

static void a_hundred_in_a_row_that_are_not_understood_are_too_many(void **state)
{
	struct world *w = *state;

	becomes_busy(w);
	for (int i = 0; i < 99; i++)
		assert_int_equal(pool_child_hear_unknown(&w->worker, false), 0);
	assert_int_equal(says(w, POOL_HEARTBEAT), 0); /* and the row is over */
	for (int i = 0; i < 99; i++)
		assert_int_equal(pool_child_hear_unknown(&w->worker, false), 0);
	assert_int_equal(pool_child_hear_unknown(&w->worker, false), POOL_DO_KILL);
	assert_int_equal(is_gone(w), POOL_DO_END | POOL_DO_TELL);
	assert_string_equal(pool_fault_code(&w->worker), "PROTOCOL_ERROR");
	assert_int_equal(w->worker.unknown, 199);
}

static void a_second_answer_and_one_for_another_task_are_dropped(void **state)
{
	struct world *w = *state;

	becomes_busy(w);
	assert_int_equal(says_of_another(w, POOL_RESULT), 0);
	assert_int_equal(says_of_another(w, POOL_PROGRESS), 0);
	assert_int_equal(w->worker.state, POOL_BUSY);
	assert_int_equal(says(w, POOL_FAILURE), POOL_DO_END);
	assert_int_equal(says(w, POOL_RESULT), 0);
	assert_int_equal(says(w, POOL_READY), POOL_DO_WORK);
	assert_int_equal(says(w, POOL_RESULT), 0);
	assert_int_equal(w->worker.strays, 4);
	assert_int_equal(w->worker.completed, 0);
}

static void an_answer_after_its_time_does_not_count(void **state)
{
	struct world *w = *state;

	becomes_busy(w);
	assert_int_equal(
		pool_child_stop_task(&w->worker, INT64_MAX, w->now_ms), POOL_DO_CLOSE | POOL_DO_TERM);
	assert_int_equal(says(w, POOL_RESULT), 0);
	assert_int_equal(w->worker.strays, 1);
	assert_int_equal(is_gone(w), POOL_DO_END);
	assert_true(w->worker.stop_task);
	assert_int_equal(w->worker.crashes, 0);
}

static void a_ready_that_crossed_its_task_is_no_answer(void **state)
{
	struct world *w = *state;

	becomes_busy(w);
	assert_int_equal(says(w, POOL_READY), 0);
	assert_int_equal(says(w, POOL_HELLO), 0);
	assert_int_equal(w->worker.state, POOL_BUSY);
	assert_int_equal(says(w, POOL_RESULT), POOL_DO_END);
}

/* ---- ready without an answer ---- */

static void a_ready_after_a_word_of_its_task_ends_the_task_and_keeps_the_worker(void **state)
{
	struct world *w = *state;

	becomes_busy(w);
	says(w, POOL_PROGRESS);
	assert_int_equal(says(w, POOL_READY), POOL_DO_END | POOL_DO_WORK);
	assert_int_equal(w->worker.state, POOL_IDLE);
	assert_int_equal(w->worker.failed, 1);
	assert_int_equal(w->worker.crashes, 0);
	assert_int_equal(says(w, POOL_RESULT), 0); /* too late */
}

static void a_ready_after_an_answer_that_was_dropped_ends_the_task(void **state)
{
	struct world *w = *state;

	becomes_ready(w);
	pool_child_assign(&w->worker, w->now_ms);
	assert_int_equal(pool_child_hear_unknown(&w->worker, false), 0);
	assert_int_equal(says(w, POOL_READY), POOL_DO_END | POOL_DO_WORK);
	pool_child_assign(&w->worker, w->now_ms);
	assert_int_equal(says_of_another(w, POOL_RESULT), 0);
	assert_int_equal(says(w, POOL_READY), POOL_DO_END | POOL_DO_WORK);
	pool_child_assign(&w->worker, w->now_ms);
	assert_int_equal(says(w, POOL_READY), 0); /* each task for itself */
}

static void what_belongs_to_before_is_no_word_of_its_task(void **state)
{
	struct world *w = *state;
	struct pool_message again = {.kind = POOL_RESULT, .success = true};

	becomes_busy(w);
	assert_int_equal(pool_child_hear(&w->worker, &again, POOL_OF_THE_LAST, w->now_ms), 0);
	assert_int_equal(pool_child_hear_unknown(&w->worker, true), 0); /* worker.something */
	says(w, POOL_HELLO);
	says(w, POOL_HEARTBEAT);
	assert_int_equal(says(w, POOL_READY), 0);
	assert_int_equal(says(w, POOL_READY), 0);
	assert_int_equal(says(w, POOL_RESULT), POOL_DO_END);
}

static void a_ready_that_comes_late_did_not_cross_its_task(void **state)
{
	struct world *w = *state;

	becomes_busy(w);
	says(w, POOL_RESULT);
	says(w, POOL_READY);
	pool_child_assign(&w->worker, w->now_ms);
	pass(w, 10 * SECOND - 1);
	assert_int_equal(says(w, POOL_READY), 0);
	pass(w, 1);
	assert_int_equal(says(w, POOL_READY), POOL_DO_END | POOL_DO_WORK);
}

static void the_ready_of_a_hello_may_come_at_any_time(void **state)
{
	struct world *w = *state;

	becomes_busy(w);
	pass(w, 20 * SECOND);
	assert_int_equal(says(w, POOL_READY), 0); /* it has loaded what it needs */
	pass(w, 20 * SECOND);
	assert_int_equal(says(w, POOL_READY), POOL_DO_END | POOL_DO_WORK); /* that one was not its hello's */
}

static void one_that_retires_goes_when_it_is_ready_without_an_answer(void **state)
{
	struct world *w = *state;

	becomes_busy(w);
	says(w, POOL_PROGRESS);
	pool_child_retire(&w->worker, w->now_ms);
	assert_int_equal(says(w, POOL_READY), POOL_DO_END | POOL_DO_CLOSE);
	assert_int_equal(is_gone(w), 0);
	assert_int_equal(w->worker.state, POOL_OFF);
}

static void who_is_being_ended_says_in_vain_that_it_is_ready(void **state)
{
	struct world *w = *state;

	becomes_busy(w);
	says(w, POOL_PROGRESS);
	pool_child_stop_task(&w->worker, INT64_MAX, w->now_ms);
	assert_int_equal(says(w, POOL_READY), 0);
	assert_int_equal(is_gone(w), POOL_DO_END);
}

static void who_is_not_ready_in_time_after_its_answer_is_killed(void **state)
{
	struct world *w = *state;

	becomes_busy(w);
	assert_int_equal(says(w, POOL_RESULT), POOL_DO_END);
	assert_int_equal(until_due(w), POOL_DO_KILL);
	assert_int_equal(w->now_ms, 1000000 + 10 * SECOND);
	assert_int_equal(is_gone(w), POOL_DO_TELL); /* its attempt is over already */
	assert_int_equal(w->worker.completed, 1);
}

static void nothing_is_started_before_the_server_knows_of_the_crash(void **state)
{
	struct world *w = *state;

	becomes_ready(w);
	assert_int_equal(is_gone(w), POOL_DO_TELL);
	assert_int_equal(pool_child_due_ms(&w->worker), INT64_MAX);
	pass(w, 3600 * SECOND);
	assert_int_equal(pool_child_look(&w->worker, w->now_ms), 0);
	is_told(w, POOL_ENTRY_FREE);
	assert_int_equal(until_due(w), POOL_DO_ENTER);
}

static void starts_are_a_second_apart_and_crashes_in_a_row_more(void **state)
{
	static const int64_t seconds[] = {1, 2, 4, 8, 16, 32, 60, 60};
	struct world *w = *state;

	pool_child_begin(&w->worker);
	for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
		spawns(w);
		assert_int_equal(is_gone(w), POOL_DO_TELL);
		int64_t gone_ms = w->now_ms;
		is_told(w, POOL_ENTRY_FREE);
		assert_int_equal(until_due(w), POOL_DO_ENTER);
		assert_int_equal(w->now_ms - gone_ms, seconds[i] * SECOND);
	}
	spawns(w);
	says(w, POOL_HELLO);
	for (int i = 0; i < 6; i++, pass(w, 10 * SECOND))
		says(w, POOL_HEARTBEAT);
	is_gone(w);
	int64_t gone_ms = w->now_ms;
	is_told(w, POOL_ENTRY_FREE);
	until_due(w);
	assert_int_equal(w->now_ms - gone_ms, SECOND); /* who lived for a minute begins a new row */
}

static void a_quarantined_slot_asks_again_and_starts_nothing(void **state)
{
	struct world *w = *state;

	becomes_ready(w);
	is_gone(w);
	is_told(w, POOL_ENTRY_QUARANTINED);
	for (int i = 0; i < 10; i++) {
		int64_t asked_ms = w->now_ms;
		assert_string_equal(pool_state_name(&w->worker), "quarantined");
		assert_int_equal(until_due(w), POOL_DO_ENTER);
		assert_int_equal(w->now_ms - asked_ms, (i == 0 ? 1 : i == 1 ? 2 : i == 2 ? 4 : 5) * SECOND);
		assert_int_equal(pool_child_entered(&w->worker, POOL_ENTRY_QUARANTINED, w->now_ms), 0);
	}
	assert_int_equal(until_due(w), POOL_DO_ENTER);
	spawns(w);
}

static void nobody_waits_for_one_that_is_started_again_in_a_while(void **state)
{
	struct world *w = *state;

	becomes_ready(w);
	assert_true(pool_child_is_alive(&w->worker));
	for (int64_t wait_ms = SECOND; wait_ms <= 16 * SECOND; wait_ms *= 2) {
		is_gone(w);
		assert_true(pool_child_is_coming(&w->worker, w->now_ms));
		is_told(w, POOL_ENTRY_FREE);
		assert_int_equal(pool_child_due_ms(&w->worker) - w->now_ms, wait_ms);
		assert_int_equal(pool_child_is_coming(&w->worker, w->now_ms), wait_ms <= 5 * SECOND);
		assert_true(pool_child_is_coming(&w->worker, pool_child_due_ms(&w->worker) - 5 * SECOND));
		becomes_ready(w);
	}
}

static void a_server_that_is_away_is_asked_again(void **state)
{
	struct world *w = *state;

	pool_child_begin(&w->worker);
	assert_int_equal(pool_child_entered(&w->worker, POOL_ENTRY_UNKNOWN, w->now_ms), 0);
	assert_int_equal(until_due(w), POOL_DO_ENTER);
	spawns(w);
}

static void a_stop_ends_the_input_and_is_no_crash(void **state)
{
	struct world *w = *state;

	becomes_ready(w);
	assert_int_equal(pool_child_retire(&w->worker, w->now_ms), POOL_DO_CLOSE);
	assert_int_equal(says(w, POOL_SHUTDOWN), 0);
	assert_int_equal(is_gone(w), 0);
	assert_int_equal(w->worker.state, POOL_OFF);
	assert_int_equal(w->worker.crashes, 0);
}

/* We were stopped, and its shim has ended it. */
static void the_end_of_a_lease_is_no_crash_and_costs_no_wait(void **state)
{
	struct world *w = *state;

	becomes_busy(w);
	pass(w, 5 * SECOND);
	pool_child_lapse(&w->worker);
	assert_int_equal(is_gone(w), POOL_DO_END);
	assert_int_equal(w->worker.state, POOL_WAITING);
	assert_int_equal(w->worker.crashes + w->worker.crashes_in_row + w->worker.failed, 0);
	assert_int_equal(until_due(w), POOL_DO_ENTER);
	assert_int_equal(w->now_ms, 1000000 + 5 * SECOND);
}

static void who_does_not_go_within_five_seconds_is_killed(void **state)
{
	struct world *w = *state;

	becomes_ready(w);
	pool_child_retire(&w->worker, w->now_ms);
	assert_int_equal(until_due(w), POOL_DO_KILL);
	assert_int_equal(w->now_ms, 1000000 + 5 * SECOND);
	assert_int_equal(is_gone(w), 0);
	assert_int_equal(w->worker.crashes, 0);
}

static void a_busy_one_retires_when_its_task_has_ended(void **state)
{
	struct world *w = *state;

	becomes_busy(w);
	assert_int_equal(pool_child_retire(&w->worker, w->now_ms), 0);
	assert_int_equal(says(w, POOL_RESULT), POOL_DO_END | POOL_DO_CLOSE);
	assert_int_equal(says(w, POOL_READY), 0);
	assert_int_equal(is_gone(w), 0);
	assert_int_equal(w->worker.state, POOL_OFF);
}

static void an_announced_end_with_nothing_to_do_is_no_crash(void **state)
{
	struct world *w = *state;

	becomes_ready(w);
	pass(w, 20 * SECOND);
	assert_int_equal(says(w, POOL_SHUTDOWN), POOL_DO_CLOSE);
	assert_int_equal(is_gone(w), 0);
	assert_int_equal(w->worker.crashes, 0);
	int64_t gone_ms = w->now_ms;
	assert_int_equal(until_due(w), POOL_DO_ENTER);
	assert_int_equal(w->now_ms - gone_ms, SECOND);
}

static void an_announced_end_with_a_task_is_a_crash_unless_it_answers(void **state)
{
	struct world *w = *state;

	becomes_busy(w);
	assert_int_equal(says(w, POOL_SHUTDOWN), POOL_DO_CLOSE);
	assert_int_equal(is_gone(w), POOL_DO_END | POOL_DO_TELL);
	assert_int_equal(w->worker.crashes, 1);
	is_told(w, POOL_ENTRY_FREE);
	becomes_busy(w);
	says(w, POOL_SHUTDOWN);
	assert_int_equal(says(w, POOL_RESULT), POOL_DO_END);
	assert_int_equal(is_gone(w), 0);
	assert_int_equal(w->worker.crashes, 1);
}

static void a_goodbye_before_its_hello_is_a_crash(void **state)
{
	struct world *w = *state;

	pool_child_begin(&w->worker);
	spawns(w);
	assert_int_equal(says(w, POOL_SHUTDOWN), POOL_DO_CLOSE);
	assert_int_equal(is_gone(w), POOL_DO_TELL);
	assert_string_equal(pool_fault_code(&w->worker), "WORKER_INIT_FAILED");
}

static void a_goodbye_of_one_that_shall_go_is_none(void **state)
{
	struct world *w = *state;

	pool_child_begin(&w->worker);
	spawns(w);
	assert_int_equal(pool_child_retire(&w->worker, w->now_ms), POOL_DO_CLOSE);
	assert_int_equal(says(w, POOL_SHUTDOWN), 0);
	assert_int_equal(is_gone(w), 0);
}

static void who_closes_its_output_and_stays_is_killed(void **state)
{
	struct world *w = *state;
	int64_t closed_ms;

	becomes_busy(w);
	closed_ms = w->now_ms;
	assert_int_equal(pool_child_hear_end(&w->worker, false, w->now_ms), POOL_DO_CLOSE);
	assert_int_equal(pool_child_hear_end(&w->worker, false, w->now_ms), 0);
	assert_int_equal(until_due(w), POOL_DO_KILL);
	assert_int_equal(w->now_ms - closed_ms, 5 * SECOND);
	assert_int_equal(is_gone(w), POOL_DO_END | POOL_DO_TELL);
	assert_int_equal(w->worker.fault, POOL_FAULT_MUTE);
	assert_string_equal(pool_fault_code(&w->worker), "WORKER_CRASHED");
}

static void an_output_that_ends_with_its_worker_is_an_end_like_any_other(void **state)
{
	struct world *w = *state;

	becomes_busy(w);
	pool_child_hear_end(&w->worker, false, w->now_ms);
	assert_int_equal(is_gone(w), POOL_DO_END | POOL_DO_TELL);
	assert_int_equal(w->worker.fault, POOL_FAULT_ENDED);
}

static void an_output_that_ends_within_a_frame_breaks_the_protocol(void **state)
{
	struct world *w = *state;

	becomes_busy(w);
	pool_child_hear_end(&w->worker, true, w->now_ms);
	assert_int_equal(is_gone(w), POOL_DO_END | POOL_DO_TELL);
	assert_string_equal(pool_fault_code(&w->worker), "PROTOCOL_ERROR");
}

static void the_output_of_one_that_never_began_ends_too_and_that_is_no_crash(void **state)
{
	struct world *w = *state;

	pool_child_begin(&w->worker);
	spawns(w);
	assert_int_equal(pool_child_hear_end(&w->worker, false, w->now_ms), 0);
	assert_int_equal(pool_child_unspawned(&w->worker, w->now_ms), 0);
	assert_int_equal(w->worker.crashes, 0);
}

static void the_end_of_the_output_of_one_that_goes_changes_nothing(void **state)
{
	struct world *w = *state;

	becomes_ready(w);
	says(w, POOL_SHUTDOWN);
	assert_int_equal(pool_child_hear_end(&w->worker, false, w->now_ms), 0);
	assert_int_equal(is_gone(w), 0);
}

static void an_end_without_a_word_is_a_crash_even_with_nothing_to_do(void **state)
{
	struct world *w = *state;

	becomes_ready(w);
	assert_int_equal(is_gone(w), POOL_DO_TELL);
	assert_string_equal(pool_fault_code(&w->worker), "WORKER_CRASHED");
}

static void what_the_machine_cannot_start_is_no_crash(void **state)
{
	struct world *w = *state;

	pool_child_begin(&w->worker);
	spawns(w);
	assert_int_equal(pool_child_unspawned(&w->worker, w->now_ms), 0);
	assert_int_equal(w->worker.crashes, 0);
	assert_int_equal(until_due(w), POOL_DO_ENTER);
	assert_true(w->now_ms >= 1000000 + SECOND);
}

static void broken_frames_kill_once(void **state)
{
	struct world *w = *state;

	becomes_busy(w);
	assert_int_equal(pool_child_break(&w->worker, POOL_FAULT_LENGTH), POOL_DO_KILL);
	assert_int_equal(pool_child_break(&w->worker, POOL_FAULT_LENGTH), 0);
	assert_int_equal(pool_child_due_ms(&w->worker), INT64_MAX);
	assert_int_equal(says(w, POOL_RESULT), 0); /* what it says after that is not believed */
	assert_int_equal(is_gone(w), POOL_DO_END | POOL_DO_TELL);
	assert_string_equal(pool_fault_code(&w->worker), "PROTOCOL_ERROR");
}

static void an_answer_of_the_server_that_comes_too_late_starts_nothing(void **state)
{
	struct world *w = *state;

	pool_child_begin(&w->worker);
	pool_child_retire(&w->worker, w->now_ms);
	assert_int_equal(pool_child_entered(&w->worker, POOL_ENTRY_FREE, w->now_ms), 0);
	assert_int_equal(w->worker.state, POOL_OFF);
}

/* ---- lives at random ---- */

struct life {
	struct pool_child worker;
	struct rng rng;
	int64_t now_ms;
	bool asks, runs, has_task, tells; /* what whoever performs would know */
	uint32_t assigned, ended;
};

/* Nothing is done to a process that is not there, and each task ends once. */
static void performs(struct life *l, uint32_t todo)
{
	if (todo & (POOL_DO_CLOSE | POOL_DO_TERM | POOL_DO_KILL))
		assert_true(l->runs);
	if (todo & POOL_DO_NOTE)
		assert_true(l->runs && l->has_task);
	if (todo & POOL_DO_END) {
		assert_true(l->has_task);
		l->has_task = false;
		l->ended++;
	}
	if (todo & POOL_DO_TELL)
		assert_false(l->runs || l->tells);
	if (todo & POOL_DO_SPAWN)
		assert_false(l->runs || l->asks || l->tells);
	if (todo & POOL_DO_ENTER)
		assert_false(l->runs || l->asks);
	if (todo & POOL_DO_WORK)
		assert_true(l->runs && !l->has_task && l->worker.state == POOL_IDLE);
	l->runs |= (todo & POOL_DO_SPAWN) != 0;
	l->asks |= (todo & POOL_DO_ENTER) != 0;
	l->tells |= (todo & POOL_DO_TELL) && l->worker.state == POOL_TELLING;
	assert_int_equal(l->worker.has_task, l->has_task);
	assert_int_equal(pool_child_has_process(&l->worker), l->runs);
}

static void speaks(struct life *l)
{
	static const enum pool_subject subjects[] = {
		POOL_OF_ITS_TASK, POOL_OF_ITS_TASK, POOL_OF_THE_LAST, POOL_OF_ANOTHER};
	struct pool_message message = {.kind = (enum pool_message_kind)rng_below(&l->rng, POOL_FAILURE + 1),
		.success = rng_chance(&l->rng, 2)};

	if (message.kind == POOL_SHUTDOWN && !rng_chance(&l->rng, 4))
		message.kind = POOL_HELLO;
	enum pool_subject subject = message.kind < POOL_PROGRESS
		? POOL_OF_NONE
		: subjects[rng_below(&l->rng, l->has_task ? 4 : 2) + !l->has_task * 2];

	performs(l, pool_child_hear(&l->worker, &message, subject, l->now_ms));
}

static void is_answered(struct life *l)
{
	enum pool_entry entry =
		rng_chance(&l->rng, 3) ? (enum pool_entry)rng_below(&l->rng, 3) : POOL_ENTRY_FREE;

	if (l->tells) {
		l->tells = false;
		performs(l, pool_child_told(&l->worker, entry, l->now_ms));
	} else if (l->asks) {
		l->asks = false;
		performs(l, pool_child_entered(&l->worker, entry, l->now_ms));
	}
}

static void ends(struct life *l)
{
	bool unspawned = l->worker.state == POOL_STARTING && rng_chance(&l->rng, 4);

	l->runs = false;
	performs(l,
		unspawned ? pool_child_unspawned(&l->worker, l->now_ms)
			  : pool_child_gone(&l->worker, rng_chance(&l->rng, 8), l->now_ms));
}

static void lives_on(struct life *l)
{
	l->now_ms += rng_between(&l->rng, 0, rng_chance(&l->rng, 10) ? 40 * SECOND : SECOND);
	if (!l->runs && pool_child_due_ms(&l->worker) < INT64_MAX)
		l->now_ms = pool_child_due_ms(&l->worker);
	if (pool_child_due_ms(&l->worker) <= l->now_ms)
		performs(l, pool_child_look(&l->worker, l->now_ms));
	if (l->worker.state == POOL_IDLE && rng_chance(&l->rng, 2)) {
		pool_child_assign(&l->worker, l->now_ms);
		l->has_task = true;
		l->assigned++;
	}
	if (l->asks || l->tells)
		is_answered(l);
	else if (l->runs && rng_chance(&l->rng, l->worker.state == POOL_LEAVING ? 3 : 20))
		ends(l);
	else if (l->runs && rng_chance(&l->rng, 12))
		performs(l, pool_child_hear_unknown(&l->worker, rng_chance(&l->rng, 2)));
	else if (l->runs && rng_chance(&l->rng, 20))
		performs(l, pool_child_break(&l->worker, POOL_FAULT_HALF));
	else if (l->runs && rng_chance(&l->rng, 30))
		performs(l, pool_child_hear_end(&l->worker, rng_chance(&l->rng, 2), l->now_ms));
	else if (l->runs && rng_chance(&l->rng, 12))
		performs(l, pool_child_stop_task(&l->worker, rng_between(&l->rng, 0, 9 * SECOND), l->now_ms));
	else if (l->runs)
		speaks(l);
}

static void in_every_life_each_task_ends_once(void **state)
{
	struct pool_rules rules = pool_rules_default();
	uint64_t ended = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 500; seed++) {
		struct life life = {.now_ms = 1000000}, *l = &life;
		rng_seed(&l->rng, seed);
		pool_child_init(&l->worker, &rules);
		performs(l, pool_child_begin(&l->worker));
		for (int i = 0; i < 300; i++)
			lives_on(l);
		performs(l, pool_child_retire(&l->worker, l->now_ms));
		if (l->runs)
			ends(l);
		assert_int_equal(l->worker.state, POOL_OFF);
		assert_int_equal(l->assigned, l->ended);
		ended += l->ended;
	}
	assert_true(ended > 3000); /* they did live */
}

#define POOL(test) cmocka_unit_test_setup(test, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		POOL(a_worker_works_off_one_task_after_the_other),
		POOL(a_result_that_is_no_success_is_a_failure),
		POOL(who_says_no_hello_in_time_is_killed_and_has_crashed),
		POOL(silence_of_thirty_seconds_is_a_crash_whatever_it_does),
		POOL(beats_keep_it_for_a_day),
		POOL(frames_that_are_not_understood_are_no_sign_of_life),
		POOL(a_hundred_in_a_row_that_are_not_understood_are_too_many),
		POOL(a_second_answer_and_one_for_another_task_are_dropped),
		POOL(an_answer_after_its_time_does_not_count),
		POOL(a_ready_that_crossed_its_task_is_no_answer),
		POOL(a_ready_after_a_word_of_its_task_ends_the_task_and_keeps_the_worker),
		POOL(a_ready_after_an_answer_that_was_dropped_ends_the_task),
		POOL(what_belongs_to_before_is_no_word_of_its_task),
		POOL(a_ready_that_comes_late_did_not_cross_its_task),
		POOL(the_ready_of_a_hello_may_come_at_any_time),
		POOL(one_that_retires_goes_when_it_is_ready_without_an_answer),
		POOL(who_is_being_ended_says_in_vain_that_it_is_ready),
		POOL(who_is_not_ready_in_time_after_its_answer_is_killed),
		POOL(nothing_is_started_before_the_server_knows_of_the_crash),
		POOL(starts_are_a_second_apart_and_crashes_in_a_row_more),
		POOL(a_quarantined_slot_asks_again_and_starts_nothing),
		POOL(nobody_waits_for_one_that_is_started_again_in_a_while),
		POOL(a_server_that_is_away_is_asked_again),
		POOL(a_stop_ends_the_input_and_is_no_crash),
		POOL(the_end_of_a_lease_is_no_crash_and_costs_no_wait),
		POOL(who_does_not_go_within_five_seconds_is_killed),
		POOL(a_busy_one_retires_when_its_task_has_ended),
		POOL(an_announced_end_with_nothing_to_do_is_no_crash),
		POOL(an_announced_end_with_a_task_is_a_crash_unless_it_answers),
		POOL(a_goodbye_before_its_hello_is_a_crash),
		POOL(a_goodbye_of_one_that_shall_go_is_none),
		POOL(who_closes_its_output_and_stays_is_killed),
		POOL(an_output_that_ends_with_its_worker_is_an_end_like_any_other),
		POOL(an_output_that_ends_within_a_frame_breaks_the_protocol),
		POOL(the_output_of_one_that_never_began_ends_too_and_that_is_no_crash),
		POOL(the_end_of_the_output_of_one_that_goes_changes_nothing),
		POOL(an_end_without_a_word_is_a_crash_even_with_nothing_to_do),
		POOL(what_the_machine_cannot_start_is_no_crash),
		POOL(broken_frames_kill_once),
		POOL(an_answer_of_the_server_that_comes_too_late_starts_nothing),
		POOL(in_every_life_each_task_ends_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
