/*
 * An attempt that ends by its report: what the work said under its supervisor, what the supervisor saw, and what became of the
 * task; and the tokens of a claim that is handed out more than once.
 */
#include "store_fixture.h"

#include "base/take.h"

/* A supervisor that beats holds the task and has bound it. */
static uint64_t hold(struct world *world)
{
	struct span job = SPAN("job");
	struct command beat = say_beat("w1", 0);

	beat.beat.describes = true;
	beat.beat.any_executor = true;
	assert_int_equal(world_run(world, &beat)->refusal, REFUSED_NOTHING);
	uint64_t fence = world_claim(world, "w1");
	beat = say_beat("w1", world->result.worker.token);
	beat.beat.bound = (struct name_list){&job, 1};
	assert_int_equal(world_run(world, &beat)->refusal, REFUSED_NOTHING);
	return fence;
}

/* The work itself says how it ended, with the token of its claim. */
static void report(struct world *world, uint64_t fence, enum command_kind kind, struct ending ending)
{
	struct command command = say_report(kind, "job", "w1", fence);
	cleanup(buf_done) struct buf word = {0};

	buf_init(&word, 1 << 16);
	assert_int_equal(ending_put(&word, &ending), 0);
	command.report = buf_span(&word);
	command.data = ending.data;
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
	assert_true(world->result.heard);
}

static struct command by_report(enum command_kind kind, uint64_t fence, enum seen_end seen)
{
	struct command command = say_report(kind, "job", "w1", fence);

	command.seen = seen;
	command.data = SPAN("\"the supervisor's\"");
	return command;
}

static enum task_state end(struct world *world, enum command_kind kind, uint64_t fence, enum seen_end seen)
{
	struct command command = by_report(kind, fence, seen);
	const struct result *result = world_run(world, &command);

	assert_int_equal(result->refusal, REFUSED_NOTHING);
	return result->task.state;
}

static struct task_document document(struct world *world, struct arena *arena)
{
	struct task_document read;
	int64_t seq;

	assert_int_equal(store_find_task(world->store, SPAN("job"), &seq), 0);
	assert_int_equal(store_read_task(world->store, seq, world->now, arena, &read), 0);
	return read;
}

static bool has_result(struct world *world, const char *result)
{
	cleanup(arena_done) struct arena arena;

	arena_init(&arena, 1 << 20);
	return span_equal(document(world, &arena).result, span_of(result));
}

static bool has_error(struct world *world, const char *error)
{
	cleanup(arena_done) struct arena arena;

	arena_init(&arena, 1 << 20);
	return span_equal(document(world, &arena).error, span_of(error));
}

static void a_reported_failure_beats_an_exit_of_0(void **state)
{
	struct world *world = *state;
	struct failure quota = {.code = CODE_QUOTA, .klass = CLASS_QUOTA, .no_retry = true};

	world_create(world, "job", "q");
	uint64_t fence = hold(world);
	report(world, fence, COMMAND_FAIL,
		(struct ending){
			.outcome = ENDED_FAIL, .failure = quota, .data = SPAN("{\"code\":\"QUOTA\"}")});
	assert_int_equal(end(world, COMMAND_COMPLETE, fence, SEEN_EXIT), TASK_FAILED);
	assert_true(has_error(world, "{\"code\":\"QUOTA\"}"));
	assert_int_equal(world_task(world, "job").code, CODE_QUOTA);
}

static void a_reported_success_beats_a_bad_exit_and_keeps_its_result(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	uint64_t fence = hold(world);
	report(world, fence, COMMAND_COMPLETE,
		(struct ending){.outcome = ENDED_COMPLETE, .data = SPAN("\"the work's\"")});
	assert_int_equal(end(world, COMMAND_FAIL, fence, SEEN_EXIT), TASK_DONE);
	assert_true(has_result(world, "\"the work's\""));
}

static void a_success_without_a_result_has_the_one_of_the_supervisor(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	uint64_t fence = hold(world);
	report(world, fence, COMMAND_COMPLETE, (struct ending){.outcome = ENDED_COMPLETE});
	assert_int_equal(end(world, COMMAND_COMPLETE, fence, SEEN_EXIT), TASK_DONE);
	assert_true(has_result(world, "\"the supervisor's\""));
}

static void a_crash_beats_a_reported_success_also_after_a_restart(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	uint64_t fence = hold(world);
	report(world, fence, COMMAND_COMPLETE, (struct ending){.outcome = ENDED_COMPLETE});
	world_crash(world);
	assert_int_equal(end(world, COMMAND_FAIL, fence, SEEN_FAULT), TASK_SCHEDULED);
	assert_true(has_error(world, "\"the supervisor's\""));
}

static void a_report_that_outlived_the_server_decides(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	uint64_t fence = hold(world);
	report(world, fence, COMMAND_REVIEW,
		(struct ending){.outcome = ENDED_REVIEW, .evidence = SPAN("[\"pr\"]"), .data = SPAN("7")});
	world_crash(world);
	assert_int_equal(end(world, COMMAND_COMPLETE, fence, SEEN_EXIT), TASK_REVIEW);
	assert_true(has_result(world, "7"));
}

static void without_a_report_it_ends_as_the_supervisor_says(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	assert_int_equal(end(world, COMMAND_COMPLETE, hold(world), SEEN_EXIT), TASK_DONE);
	assert_true(has_result(world, "\"the supervisor's\""));
}

static void an_open_question_stays_and_nothing_is_spent(void **state)
{
	struct world *world = *state;
	struct command ask;

	world_create(world, "job", "q");
	uint64_t fence = hold(world);
	ask = say_report(COMMAND_ASK, "job", "w1", fence);
	ask.data = SPAN("\"which?\"");
	assert_int_equal(world_run(world, &ask)->refusal, REFUSED_NOTHING);
	assert_int_equal(end(world, COMMAND_FAIL, fence, SEEN_FAULT), TASK_ASKING);
	struct task task = world_task(world, "job");
	assert_int_equal(task.claim.holder, 0);
	assert_int_equal(task.spent + task.crashes, 0);
}

static void done_with_gates_is_review_and_a_plain_complete_is_refused(void **state)
{
	struct world *world = *state;
	struct command create = say_create("job", "q");
	struct span gate = SPAN("merge");

	create.create.gates = (struct name_list){&gate, 1};
	assert_int_equal(world_run(world, &create)->refusal, REFUSED_NOTHING);
	uint64_t fence = hold(world);
	assert_int_equal(world_report(world, COMMAND_COMPLETE, "job", "w1", fence), REFUSED_GATE_REQUIRED);
	report(world, fence, COMMAND_COMPLETE, (struct ending){.outcome = ENDED_COMPLETE});
	assert_int_equal(end(world, COMMAND_COMPLETE, fence, SEEN_EXIT), TASK_REVIEW);
}

static void the_same_end_again_is_answered_as_the_first_time(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	uint64_t fence = hold(world);
	report(world, fence, COMMAND_BLOCK,
		(struct ending){.outcome = ENDED_BLOCK,
			.failure = {.code = CODE_EXECUTION_ERROR, .klass = CLASS_TASK}});
	assert_int_equal(end(world, COMMAND_COMPLETE, fence, SEEN_EXIT), TASK_BLOCKED);
	int64_t version = world_task(world, "job").version;
	assert_int_equal(end(world, COMMAND_COMPLETE, fence, SEEN_EXIT), TASK_BLOCKED);
	assert_true(world->result.repeated);
	assert_int_equal(world_task(world, "job").version, version);
}

static void a_claim_that_was_lost_is_stale(void **state)
{
	struct world *world = *state;
	struct command command;

	world_create(world, "job", "q");
	uint64_t fence = hold(world);
	report(world, fence, COMMAND_COMPLETE, (struct ending){.outcome = ENDED_COMPLETE});
	world_pass(world, 10 * 60 * 1000);
	world_run(world, NULL);
	command = by_report(COMMAND_COMPLETE, fence, SEEN_EXIT);
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_STALE_CLAIM);
	assert_int_equal(world_state(world, "job"), TASK_READY);
}

/* ---- tokens of a claim ---- */

static uint32_t claim_again(struct world *world, bool tokens)
{
	struct command claim = say_claim("w1");

	claim.claim.request = 77;
	claim.claim.tokens = tokens;
	assert_int_equal(world_run(world, &claim)->refusal, REFUSED_NOTHING);
	assert_int_equal(world->result.claim_count, 1);
	return world->result.claims[0].task.claim.reissued;
}

static void a_claim_that_is_handed_out_again_has_a_new_token_and_the_old_one_stays_dead(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	assert_int_equal(claim_again(world, true), 0);
	uint64_t fence = world->result.claims[0].task.fence;
	assert_int_equal(claim_again(world, true), 1);
	assert_int_equal(world->result.claims[0].task.fence, fence);
	world_crash(world);
	assert_int_equal(world_task(world, "job").claim.reissued, 1);
	assert_int_equal(claim_again(world, true), 2);
}

static void who_wants_no_token_leaves_those_that_were_made(void **state)
{
	struct world *world = *state;

	world_create(world, "job", "q");
	assert_int_equal(claim_again(world, true), 0);
	assert_int_equal(claim_again(world, false), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(a_reported_failure_beats_an_exit_of_0),
		ON_BOTH(a_reported_success_beats_a_bad_exit_and_keeps_its_result),
		ON_BOTH(a_success_without_a_result_has_the_one_of_the_supervisor),
		ON_BOTH(a_crash_beats_a_reported_success_also_after_a_restart),
		ON_BOTH(a_report_that_outlived_the_server_decides),
		ON_BOTH(without_a_report_it_ends_as_the_supervisor_says),
		ON_BOTH(an_open_question_stays_and_nothing_is_spent),
		ON_BOTH(done_with_gates_is_review_and_a_plain_complete_is_refused),
		ON_BOTH(the_same_end_again_is_answered_as_the_first_time),
		ON_BOTH(a_claim_that_was_lost_is_stale),
		ON_BOTH(a_claim_that_is_handed_out_again_has_a_new_token_and_the_old_one_stays_dead),
		ON_BOTH(who_wants_no_token_leaves_those_that_were_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
