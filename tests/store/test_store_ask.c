/*
 * Questions: who waits for the answer, who gets it, and for how long it is kept for the host that asked.
 */
#include "store_fixture.h"

#define MINUTES(n) ((int64_t)(n) * 60 * 1000)

static void register_on(struct world *world, const char *worker, const char *host)
{
	struct command beat = say_beat(worker, 0);

	beat.beat.describes = true;
	beat.beat.any_executor = true;
	beat.beat.lease_ms = MINUTES(60);
	beat.beat.process = (struct command_process){span_of(host), 1, 2, 10, 100};
	assert_int_equal(world_run(world, &beat)->refusal, REFUSED_NOTHING);
}

static struct result *ask(struct world *world, const char *worker, uint64_t fence, const char *question)
{
	struct command command = say_report(COMMAND_ASK, "job", worker, fence);

	command.data = span_of(question);
	return world_run(world, &command);
}

static void answer(struct world *world, const char *text)
{
	struct command command = say_about(COMMAND_ANSWER, "job");

	command.data = span_of(text);
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
}

/* It asked there, was released, and has its answer. */
static void answered_on(struct world *world, const char *worker, const char *host)
{
	world_create(world, "job", "q");
	register_on(world, worker, host);
	uint64_t fence = world_claim(world, worker);
	assert_int_equal(ask(world, worker, fence, "\"which?\"")->refusal, REFUSED_NOTHING);
	assert_int_equal(world_report(world, COMMAND_RELEASE, "job", worker, fence), REFUSED_NOTHING);
	assert_int_equal(world_state(world, "job"), TASK_ASKING);
	answer(world, "{\"text\":\"that\"}");
	assert_int_equal(world_state(world, "job"), TASK_READY);
}

static void an_answered_task_goes_to_the_host_that_asked(void **state)
{
	struct world *world = *state;

	answered_on(world, "w1", "host-a");
	register_on(world, "w2", "host-b");
	register_on(world, "w3", "host-a");
	assert_int_equal(world_claim(world, "w2"), 0);
	assert_int_equal(world_claim(world, "script"), 0);
	assert_int_not_equal(world_claim(world, "w3"), 0);
	assert_int_equal(world_state(world, "job"), TASK_CLAIMED);
}

static void a_claim_by_its_name_from_another_host_is_refused(void **state)
{
	struct world *world = *state;
	struct command claim = say_claim("w2");

	answered_on(world, "w1", "host-a");
	register_on(world, "w2", "host-b");
	claim.kind = COMMAND_CLAIM;
	claim.task = SPAN("job");
	assert_int_equal(world_run(world, &claim)->refusal, REFUSED_FORBIDDEN);
	claim.worker = SPAN("w1");
	assert_int_equal(world_run(world, &claim)->refusal, REFUSED_NOTHING);
}

static void an_answer_that_meets_a_process_on_its_way_out_is_kept_for_its_host(void **state)
{
	struct world *world = *state;
	struct command claim = say_claim("w1");

	world_create(world, "job", "q");
	register_on(world, "w1", "host-a");
	register_on(world, "w2", "host-b");
	claim.claim.lease_ms = MINUTES(60);
	struct result *result = world_run(world, &claim);
	assert_int_equal(result->claim_count, 1);
	uint64_t fence = result->claims[0].task.fence;
	ask(world, "w1", fence, "\"which?\"");
	world_pass(world, MINUTES(2)); /* ask.parkMs */
	answer(world, "{\"text\":\"that\"}");
	assert_int_equal(world_state(world, "job"), TASK_RUNNING);
	world_crash(world);
	assert_int_equal(world_report(world, COMMAND_RELEASE, "job", "w1", fence), REFUSED_NOTHING);
	assert_int_equal(world_state(world, "job"), TASK_READY);
	assert_int_equal(world_claim(world, "w2"), 0);
	world_crash(world);
	assert_int_equal(world_claim(world, "script"), 0);
	assert_int_not_equal(world_claim(world, "w1"), 0);
}

static void a_restart_does_not_forget_for_whom_it_is_kept(void **state)
{
	struct world *world = *state;

	answered_on(world, "w1", "host-a");
	register_on(world, "w2", "host-b");
	world_crash(world);
	assert_int_equal(world_claim(world, "w2"), 0);
	assert_int_not_equal(world_claim(world, "w1"), 0);
}

static void after_ten_minutes_it_is_anyones_and_a_restart_does_not_begin_them_anew(void **state)
{
	struct world *world = *state;

	answered_on(world, "w1", "host-a");
	world_pass(world, MINUTES(10) - 1);
	world_crash(world);
	assert_int_equal(world_claim(world, "script"), 0);
	world_pass(world, 1);
	assert_int_not_equal(world_claim(world, "script"), 0);
}

/* An agent has worked on it there, and its check failed. */
static void began_on(struct world *world, const char *worker, const char *host)
{
	world_create(world, "job", "q");
	register_on(world, worker, host);
	uint64_t fence = world_claim(world, worker);
	struct command command = say_report(COMMAND_PROGRESS, "job", worker, fence);
	command.agent = SPAN("{\"host\":\"host-a\"}");
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
	command = say_report(COMMAND_FAIL, "job", worker, fence);
	command.failure.code = CODE_CHECK_FAILED;
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
	assert_int_equal(world_state(world, "job"), TASK_READY);
}

static void what_an_agent_began_waits_while_a_worker_of_its_host_is_alive_and_no_longer_than_ten_minutes_then(
	void **state)
{
	struct world *world = *state;

	began_on(world, "w1", "host-a");
	register_on(world, "w2", "host-b");
	for (int i = 0; i < 3; i++) {
		world_pass(world, MINUTES(10));
		assert_int_equal(world_claim(world, "w2"), 0);
		world_crash(world);
	}
	struct command leave = {.kind = COMMAND_LEAVE, .worker = SPAN("w1"), .leave = WORKER_SHUTDOWN};
	assert_int_equal(world_run(world, &leave)->refusal, REFUSED_NOTHING);
	assert_int_equal(world_claim(world, "w2"), 0);
	world_pass(world, MINUTES(10));
	assert_int_not_equal(world_claim(world, "w2"), 0);
}

static void what_is_kept_holds_up_nothing_behind_it(void **state)
{
	struct world *world = *state;

	answered_on(world, "w1", "host-a");
	world_create(world, "next", "q");
	assert_int_not_equal(world_claim(world, "script"), 0);
	assert_int_equal(world_state(world, "next"), TASK_CLAIMED);
}

static void a_claimant_without_a_host_leaves_its_question_to_anyone(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	uint64_t fence = world_claim(world, "script");
	ask(world, "script", fence, "\"which?\"");
	world_report(world, COMMAND_RELEASE, "job", "script", fence);
	answer(world, "{\"text\":\"that\"}");
	assert_int_not_equal(world_claim(world, "other"), 0);
}

static void the_next_attempt_gets_question_and_answer(void **state)
{
	struct world *world = *state;
	struct command claim = say_claim("w1");

	answered_on(world, "w1", "host-a");
	struct result *result = world_run(world, &claim);
	assert_int_equal(result->claim_count, 1);
	assert_true(span_equal(result->claims[0].question, SPAN("\"which?\"")));
	assert_true(span_equal(result->claims[0].answer, SPAN("{\"text\":\"that\"}")));
}

static void the_same_question_of_the_next_attempt_is_answered_at_once_and_only_once(void **state)
{
	struct world *world = *state;

	answered_on(world, "w1", "host-a");
	uint64_t fence = world_claim(world, "w1");
	struct result *result = ask(world, "w1", fence, "\"which?\"");
	assert_int_equal(result->refusal, REFUSED_NOTHING);
	assert_int_not_equal(result->event_seq, 0);
	assert_int_equal(world_state(world, "job"), TASK_RUNNING);
	ask(world, "w1", fence, "\"which?\"");
	assert_int_equal(world_state(world, "job"), TASK_ASKING);
}

static void every_attempt_after_the_answer_gets_it(void **state)
{
	struct world *world = *state;

	answered_on(world, "w1", "host-a");
	for (int i = 0; i < 2; i++) {
		uint64_t fence = world_claim(world, "w1");
		ask(world, "w1", fence, "\"which?\"");
		assert_int_equal(world_state(world, "job"), TASK_RUNNING);
		assert_int_equal(world_report(world, COMMAND_RELEASE, "job", "w1", fence), REFUSED_NOTHING);
	}
}

static void another_question_is_asked_and_takes_the_answer_away(void **state)
{
	struct world *world = *state;
	struct command claim = say_claim("w1");

	answered_on(world, "w1", "host-a");
	uint64_t fence = world_claim(world, "w1");
	ask(world, "w1", fence, "\"when?\"");
	assert_int_equal(world_state(world, "job"), TASK_ASKING);
	world_report(world, COMMAND_FAIL, "job", "w1", fence); /* and never learns it */
	world_pass(world, MINUTES(10));
	struct result *result = world_run(world, &claim);
	assert_int_equal(result->claim_count, 1);
	assert_int_equal(result->claims[0].answer.len, 0);
	fence = result->claims[0].task.fence;
	ask(world, "w1", fence, "\"when?\"");
	assert_int_equal(world_state(world, "job"), TASK_ASKING);
}

static void a_question_that_is_sent_again_while_it_is_open_is_the_same_one(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	uint64_t fence = world_claim(world, "script");
	ask(world, "script", fence, "\"which?\"");
	struct result *again = ask(world, "script", fence, "\"which?\"");
	assert_int_equal(again->refusal, REFUSED_NOTHING);
	assert_true(again->repeated);
	assert_int_equal(again->event_seq, 0);
	assert_int_equal(ask(world, "script", fence, "\"when?\"")->refusal, REFUSED_BAD_TRANSITION);
	assert_int_equal(ask(world, "thief", fence, "\"which?\"")->refusal, REFUSED_STALE_CLAIM);
}

/* A slot's task: the trace that a slot finds of a crash is for a task that is back in line, and this one still asks. */
static void a_crash_of_who_asked_leaves_the_question_open(void **state)
{
	struct world *world = *state;
	struct command create = say_create("job", "q"), claim = say_claim("w1"), crash;

	create.create.owner = claim.claim.slot = SPAN("slot-1");
	assert_int_equal(world_run(world, &create)->refusal, REFUSED_NOTHING);
	uint64_t fence = world_run(world, &claim)->claims[0].task.fence;
	ask(world, "w1", fence, "\"which?\"");
	crash = say_report(COMMAND_FAIL, "job", "w1", fence);
	crash.failure = (struct failure){.code = CODE_WORKER_CRASHED, .klass = CLASS_CRASH};
	assert_int_equal(world_run(world, &crash)->refusal, REFUSED_NOTHING);
	assert_int_equal(world_state(world, "job"), TASK_ASKING);
}

static void a_worker_is_told_to_park_what_has_waited_long_enough(void **state)
{
	struct world *world = *state;
	struct span job = SPAN("job");
	struct command bind = say_beat("w1", 0), beat;

	world_create(world, "job", "q");
	register_on(world, "w1", "host-a");
	uint64_t fence = world_claim(world, "w1");
	bind.beat.token = world->result.worker.token;
	bind.beat.has_token = true;
	bind.beat.bound = (struct name_list){&job, 1};
	bind.beat.lease_ms = MINUTES(60);
	assert_int_equal(world_run(world, &bind)->refusal, REFUSED_NOTHING);
	beat = say_beat("w1", world->result.worker.token);
	ask(world, "w1", fence, "\"which?\"");
	world_pass(world, MINUTES(2) - 1);
	assert_int_equal(world_run(world, &beat)->park_count, 0);
	beat.beat.token = world->result.worker.token;
	world_pass(world, 1);
	assert_int_equal(world_run(world, &beat)->park_count, 1);
	assert_true(span_equal(world->result.park[0], job));
	assert_int_equal(world->result.stop_count, 0);
}

/* ---- which question is meant ---- */

static enum refusal answer_to(struct world *world, uint32_t question, const char *text)
{
	struct command command = say_about(COMMAND_ANSWER, "job");

	command.data = span_of(text);
	command.answer.question = question;
	return world_run(world, &command)->refusal;
}

static void an_answer_never_reaches_the_question_after_the_one_it_was_for(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	uint64_t fence = world_claim(world, "script");
	assert_int_equal(ask(world, "script", fence, "\"one?\"")->question, 1);
	assert_int_equal(answer_to(world, 1, "1"), REFUSED_NOTHING);
	assert_int_equal(ask(world, "script", fence, "\"two?\"")->question, 2);
	world_crash(world);
	assert_int_equal(answer_to(world, 1, "1"), REFUSED_QUESTION_CHANGED);
	assert_int_equal(world->result.question, 2);
	assert_int_equal(answer_to(world, 0, "1"), REFUSED_QUESTION_CHANGED);
	assert_int_equal(world_state(world, "job"), TASK_ASKING);
	assert_int_equal(answer_to(world, 2, "2"), REFUSED_NOTHING);
	assert_int_equal(answer_to(world, 2, "2"), REFUSED_BAD_TRANSITION);
}

static void of_two_answers_in_one_turn_the_first_counts(void **state)
{
	struct world *world = *state;
	struct command both[2] = {say_about(COMMAND_ANSWER, "job"), say_about(COMMAND_ANSWER, "job")};
	struct result results[2];

	world_create(world, "job", "q");
	uint64_t fence = world_claim(world, "script");
	ask(world, "script", fence, "\"one?\"");
	both[0].data = SPAN("1");
	both[1].data = SPAN("2");
	both[0].answer.question = both[1].answer.question = 1;
	assert_int_equal(store_turn(world->store, world->now, both, 2, results), 0);
	assert_int_equal(results[0].refusal, REFUSED_NOTHING);
	assert_int_equal(results[1].refusal, REFUSED_BAD_TRANSITION);
	world_report(world, COMMAND_RELEASE, "job", "script", fence);
	struct command claim = say_claim("script");
	assert_true(span_equal(world_run(world, &claim)->claims[0].answer, SPAN("1")));
}

static void a_question_that_was_withdrawn_is_asked_anew_and_handed_to_nobody(void **state)
{
	struct world *world = *state;
	struct command claim = say_claim("script");

	world_create(world, "job", "q");
	uint64_t fence = world_claim(world, "script");
	ask(world, "script", fence, "\"one?\"");
	struct command withdraw = say_report(COMMAND_ASK, "job", "script", fence);
	withdraw.ask.withdraws = 1;
	assert_int_equal(world_run(world, &withdraw)->refusal, REFUSED_NOTHING);
	assert_int_equal(world_state(world, "job"), TASK_RUNNING);
	assert_true(world_run(world, &withdraw)->repeated);
	assert_int_equal(answer_to(world, 1, "1"), REFUSED_BAD_TRANSITION);
	world_report(world, COMMAND_RELEASE, "job", "script", fence);
	struct result *result = world_run(world, &claim);
	assert_int_equal(result->claims[0].question.len, 0);
	assert_int_equal(result->claims[0].answered_count, 0);
	assert_int_equal(ask(world, "script", result->claims[0].task.fence, "\"one?\"")->question, 2);
	assert_int_equal(world_state(world, "job"), TASK_ASKING);
}

static void a_question_past_its_time_is_denied_whoever_holds_it_and_whatever_restarts(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	uint64_t fence = world_claim(world, "script");
	struct command timed = say_report(COMMAND_ASK, "job", "script", fence);
	timed.data = SPAN("\"one?\"");
	timed.ask.answer_by_ms = world->now.wall_ms + MINUTES(5);
	assert_int_equal(world_run(world, &timed)->refusal, REFUSED_NOTHING);
	world_report(world, COMMAND_RELEASE, "job", "script", fence);
	world_crash(world);
	world_pass(world, MINUTES(5) - 1);
	world_run(world, NULL);
	assert_int_equal(world_state(world, "job"), TASK_ASKING);
	world_pass(world, 1);
	world_run(world, NULL);
	assert_int_equal(world_state(world, "job"), TASK_READY);
	struct command claim = say_claim("script");
	assert_true(span_equal(world_run(world, &claim)->claims[0].answer, ANSWER_LATE));
}

static void the_next_attempt_gets_every_answer_in_order_and_of_more_than_fifty_the_last(void **state)
{
	struct world *world = *state;
	struct command claim = say_claim("script");
	char text[24];
	uint64_t fence = 0;

	world_create(world, "job", "q");
	for (uint32_t i = 1; i <= 120; i++) {
		if (i % 40 == 1) {
			if (fence != 0)
				world_report(world, COMMAND_RELEASE, "job", "script", fence);
			fence = world_claim(world, "script");
		}
		world_pass(world, MINUTES(1) / 10);
		snprintf(text, sizeof text, "\"%u?\"", i);
		assert_int_equal(ask(world, "script", fence, text)->question, i);
		snprintf(text, sizeof text, "%u", i);
		assert_int_equal(answer_to(world, i, text), REFUSED_NOTHING);
	}
	world_report(world, COMMAND_RELEASE, "job", "script", fence);
	world_crash(world);
	struct result *result = world_run(world, &claim);
	assert_int_equal(result->claims[0].answered_count, 50);
	assert_int_equal(result->claims[0].answered[0].number, 71);
	assert_true(span_equal(result->claims[0].answered[49].answer, SPAN("120")));
}

/* ---- what is allowed for the whole task ---- */

static struct result *ask_for(struct world *world, uint64_t fence, const char *permission)
{
	struct command command = say_report(COMMAND_ASK, "job", "script", fence);

	command.data = SPAN("\"may I?\"");
	command.ask.what = command.ask.permission = span_of(permission);
	command.ask.granted = SPAN("granted");
	return world_run(world, &command);
}

static void what_was_allowed_for_the_task_is_not_asked_again_until_it_is_final(void **state)
{
	struct world *world = *state;
	struct command allow = say_about(COMMAND_ANSWER, "job"), claim = say_claim("script");

	world_create(world, "job", "q");
	uint64_t fence = world_claim(world, "script");
	ask_for(world, fence, "push");
	allow.data = SPAN("yes");
	allow.answer = (struct command_answer){1, true};
	assert_int_equal(world_run(world, &allow)->refusal, REFUSED_NOTHING);
	world_crash(world);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ask_for(world, fence, "push")->refusal, REFUSED_NOTHING);
		assert_int_equal(world_state(world, "job"), TASK_RUNNING);
	}
	ask_for(world, fence, "pull");
	assert_int_equal(world_state(world, "job"), TASK_ASKING);
	world_report(world, COMMAND_COMPLETE, "job", "script", fence);
	struct command retry = say_about(COMMAND_RETRY, "job");
	assert_int_equal(world_run(world, &retry)->refusal, REFUSED_NOTHING);
	struct result *result = world_run(world, &claim);
	assert_int_equal(result->claims[0].allowed_count, 0);
	ask_for(world, result->claims[0].task.fence, "push");
	assert_int_equal(world_state(world, "job"), TASK_ASKING);
}

static void what_was_allowed_once_is_asked_again_by_the_same_attempt(void **state)
{
	struct world *world = *state;
	struct command claim = say_claim("script");

	world_create(world, "job", "q");
	uint64_t fence = world_claim(world, "script");
	ask_for(world, fence, "push");
	assert_int_equal(answer_to(world, 1, "yes"), REFUSED_NOTHING);
	ask_for(world, fence, "push");
	assert_int_equal(world_state(world, "job"), TASK_ASKING);
	assert_int_equal(answer_to(world, 2, "yes"), REFUSED_NOTHING);
	world_report(world, COMMAND_RELEASE, "job", "script", fence);
	struct result *result = world_run(world, &claim);
	assert_int_equal(result->claims[0].allowed_count, 0);
	fence = result->claims[0].task.fence;
	ask_for(world, fence, "push");
	assert_int_equal(world_state(world, "job"), TASK_RUNNING);
	ask_for(world, fence, "push");
	assert_int_equal(world_state(world, "job"), TASK_ASKING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(an_answered_task_goes_to_the_host_that_asked),
		ON_BOTH(a_claim_by_its_name_from_another_host_is_refused),
		ON_BOTH(an_answer_that_meets_a_process_on_its_way_out_is_kept_for_its_host),
		ON_BOTH(a_restart_does_not_forget_for_whom_it_is_kept),
		ON_BOTH(after_ten_minutes_it_is_anyones_and_a_restart_does_not_begin_them_anew),
		ON_BOTH(what_an_agent_began_waits_while_a_worker_of_its_host_is_alive_and_no_longer_than_ten_minutes_then),
		ON_BOTH(what_is_kept_holds_up_nothing_behind_it),
		ON_BOTH(a_claimant_without_a_host_leaves_its_question_to_anyone),
		ON_BOTH(the_next_attempt_gets_question_and_answer),
		ON_BOTH(the_same_question_of_the_next_attempt_is_answered_at_once_and_only_once),
		ON_BOTH(every_attempt_after_the_answer_gets_it),
		ON_BOTH(another_question_is_asked_and_takes_the_answer_away),
		ON_BOTH(a_question_that_is_sent_again_while_it_is_open_is_the_same_one),
		ON_BOTH(a_crash_of_who_asked_leaves_the_question_open),
		ON_BOTH(a_worker_is_told_to_park_what_has_waited_long_enough),
		ON_BOTH(an_answer_never_reaches_the_question_after_the_one_it_was_for),
		ON_BOTH(of_two_answers_in_one_turn_the_first_counts),
		ON_BOTH(a_question_that_was_withdrawn_is_asked_anew_and_handed_to_nobody),
		ON_BOTH(a_question_past_its_time_is_denied_whoever_holds_it_and_whatever_restarts),
		ON_BOTH(the_next_attempt_gets_every_answer_in_order_and_of_more_than_fifty_the_last),
		ON_BOTH(what_was_allowed_for_the_task_is_not_asked_again_until_it_is_final),
		ON_BOTH(what_was_allowed_once_is_asked_again_by_the_same_attempt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
