/*
 * Workflows, gates and opting in, in the store: what is told moves the task, and every move is one event.
 */
#include "store_fixture.h"

enum {
	WORKER = 20, /* principals */
	CI,
	JUDGE,
	OTHER,
};

static void create(struct world *world, const char *id, enum workflow workflow, const char *gate)
{
	struct command command = say_create(id, "q");
	struct span gates[2] = {SPAN(WORKFLOW_GATE), span_of(gate)};

	command.create.workflow = workflow;
	command.create.gates = (struct name_list){workflow ? gates : gates + 1, !!workflow + !!gate};
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
}

static uint64_t claim_as(struct world *world, const char *worker, uint32_t principal)
{
	struct command command = say_claim(worker);

	command.principal = principal;
	assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
	assert_int_equal(world->result.claim_count, 1);
	return world->result.claims[0].task.fence;
}

static enum refusal progress(struct world *world, const char *task, uint64_t fence, const char *event)
{
	struct command command = say_report(COMMAND_PROGRESS, task, "w", fence);

	command.principal = WORKER;
	command.told.event.type = span_of(event);
	command.told.note = SPAN("\"event\":\"x\"");
	return world_run(world, &command)->refusal;
}

static enum refusal emit_as(struct world *world, const char *task, const char *event, uint32_t principal)
{
	struct command command = say_about(COMMAND_EMIT, task);

	command.principal = principal;
	command.told.event.type = span_of(event);
	command.told.may_judge = principal == JUDGE;
	return world_run(world, &command)->refusal;
}

static enum refusal emit(struct world *world, const char *task, const char *event)
{
	return emit_as(world, task, event, CI);
}

static enum refusal judge(
	struct world *world, const char *task, const char *gate, bool passes, uint32_t principal)
{
	struct command command = say_about(COMMAND_VERDICT, task);

	command.principal = principal;
	command.verdict = (struct command_verdict){.gate = span_of(gate), .passes = passes};
	command.note = SPAN("\"verdict\":\"x\"");
	return world_run(world, &command)->refusal;
}

static void expect(struct world *world, const char *id, enum stage stage, enum task_state state)
{
	struct task task = world_task(world, id);

	if (task.stage != stage)
		fail_msg("%s is at %s", id, task.stage ? stage_name(task.stage) : "none");
	if (task.state != state)
		fail_msg("%s is %s", id, task_state_name(task.state));
}

/* The kinds of the events after `seq`, one after the other. */
struct kinds {
	enum event_kind items[32];
	uint32_t count;
};

static int note_kind(void *context, const struct record *record)
{
	struct kinds *kinds = context;

	assert_true(kinds->count < 32);
	kinds->items[kinds->count++] = record->kind;
	return 0;
}

static struct kinds kinds_after(struct world *world, int64_t seq)
{
	struct kinds kinds = {0};

	assert_int_equal(store_page_events(world->store, seq, 32, note_kind, &kinds), 0);
	return kinds;
}

#define EXPECT_EVENTS(world, seq, ...)                                         \
	do {                                                                   \
		const enum event_kind wanted[] = {__VA_ARGS__};                \
		struct kinds kinds = kinds_after(world, seq);                  \
		assert_int_equal(kinds.count, sizeof wanted / sizeof *wanted); \
		for (uint32_t i = 0; i < kinds.count; i++)                     \
			assert_int_equal(kinds.items[i], wanted[i]);           \
	} while (0)

/* ---- the whole way -------------------------------------------------------------------------------------- */

static uint64_t build(struct world *world, const char *id)
{
	uint64_t fence = claim_as(world, "w", WORKER);

	progress(world, id, fence, "worker.execution.started");
	expect(world, id, STAGE_IN_PROGRESS, TASK_RUNNING);
	progress(world, id, fence, "worker.building");
	expect(world, id, STAGE_BUILDING, TASK_RUNNING);
	progress(world, id, fence, "worker.pr.created");
	expect(world, id, STAGE_PR_CREATED, TASK_RUNNING);
	return fence;
}

static void report_work(struct world *world, const char *id)
{
	uint64_t fence = build(world, id);

	assert_int_equal(progress(world, id, fence, "worker.execution.completed"), REFUSED_NOTHING);
	expect(world, id, STAGE_REVIEWING, TASK_REVIEW);
}

static void from_activation_to_merge(void **state)
{
	struct world *world = *state;
	struct command parked = say_create("a", "q"), unpark = say_about(COMMAND_UNPARK, "a");
	struct span gate = SPAN(WORKFLOW_GATE);

	parked.create.workflow = WORKFLOW_AUTOPILOT;
	parked.create.gates = (struct name_list){&gate, 1};
	parked.create.parked = true;
	world_run(world, &parked);
	expect(world, "a", STAGE_ALLOCATED, TASK_PENDING);
	int64_t seq = store_last_event(world->store);
	world_run(world, &unpark);
	EXPECT_EVENTS(world, seq, EVENT_TASK_UNPARKED, EVENT_TASK_STAGE_CHANGED);
	uint64_t fence = build(world, "a");
	seq = store_last_event(world->store);
	assert_int_equal(progress(world, "a", fence, "worker.execution.completed"), REFUSED_NOTHING);
	expect(world, "a", STAGE_REVIEWING, TASK_REVIEW);
	EXPECT_EVENTS(world, seq, EVENT_TASK_REVIEWED, EVENT_TASK_STAGE_CHANGED, EVENT_GATE_OPENED);
	world_crash(world);
	seq = store_last_event(world->store);
	assert_int_equal(judge(world, "a", WORKFLOW_GATE, true, JUDGE), REFUSED_NOTHING);
	expect(world, "a", STAGE_VALIDATED, TASK_REVIEW);
	EXPECT_EVENTS(world, seq, EVENT_GATE_PASSED, EVENT_TASK_STAGE_CHANGED);
	world_crash(world);
	seq = store_last_event(world->store);
	assert_int_equal(emit(world, "a", "github.merge.success"), REFUSED_NOTHING);
	expect(world, "a", STAGE_MERGED, TASK_DONE);
	EXPECT_EVENTS(world, seq, EVENT_TASK_NOTED, EVENT_TASK_STAGE_CHANGED, EVENT_TASK_COMPLETED);
}

static void with_a_deploy_merged_is_not_the_end(void **state)
{
	struct world *world = *state;

	create(world, "a", WORKFLOW_AUTOPILOT_DEPLOY, NULL);
	report_work(world, "a");
	judge(world, "a", WORKFLOW_GATE, true, JUDGE);
	emit(world, "a", "merge.success");
	expect(world, "a", STAGE_MERGED, TASK_REVIEW);
	emit(world, "a", "deploy.gateway.started");
	emit(world, "a", "deploy.gateway.success");
	expect(world, "a", STAGE_VERIFYING, TASK_REVIEW);
	emit(world, "a", "verification.passed");
	expect(world, "a", STAGE_COMPLETED, TASK_DONE);
}

/* ---- gates ------------------------------------------------------------------------------------------------ */

static void who_held_an_attempt_gives_no_verdict_now_or_later(void **state)
{
	struct world *world = *state;

	create(world, "a", WORKFLOW_AUTOPILOT, NULL);
	report_work(world, "a");
	int64_t seq = store_last_event(world->store);
	assert_int_equal(judge(world, "a", WORKFLOW_GATE, true, WORKER), REFUSED_FORBIDDEN);
	assert_true(world->result.own_work);
	assert_int_equal(store_last_event(world->store), seq);
	assert_int_equal(judge(world, "a", WORKFLOW_GATE, false, JUDGE), REFUSED_NOTHING);
	expect(world, "a", STAGE_IN_PROGRESS, TASK_READY);
	uint64_t fence = claim_as(world, "v", OTHER);
	struct command done = say_report(COMMAND_REVIEW, "a", "v", fence);
	done.principal = OTHER;
	world_run(world, &done);
	world_crash(world);
	assert_int_equal(judge(world, "a", WORKFLOW_GATE, true, WORKER), REFUSED_FORBIDDEN);
	assert_int_equal(judge(world, "a", WORKFLOW_GATE, true, OTHER), REFUSED_FORBIDDEN);
	assert_int_equal(judge(world, "a", WORKFLOW_GATE, true, JUDGE), REFUSED_NOTHING);
	expect(world, "a", STAGE_VALIDATED, TASK_REVIEW);
}

static void a_word_that_needs_a_verdict_is_refused_and_leaves_nothing(void **state)
{
	struct world *world = *state;

	create(world, "a", WORKFLOW_AUTOPILOT, NULL);
	report_work(world, "a");
	int64_t seq = store_last_event(world->store);
	assert_int_equal(emit(world, "a", "validation.passed"), REFUSED_GATE_REQUIRED);
	assert_int_equal(emit(world, "a", "github.merge.success"), REFUSED_GATE_REQUIRED);
	assert_int_equal(store_last_event(world->store), seq);
	assert_int_equal(emit_as(world, "a", "validation.passed", JUDGE), REFUSED_NOTHING);
	EXPECT_EVENTS(world, seq, EVENT_TASK_NOTED, EVENT_GATE_PASSED, EVENT_TASK_STAGE_CHANGED);
	expect(world, "a", STAGE_VALIDATED, TASK_REVIEW);
	assert_int_equal(emit(world, "a", "github.merge.success"), REFUSED_NOTHING);
}

static void a_rejection_starts_the_next_attempt_until_none_is_left(void **state)
{
	struct world *world = *state;

	create(world, "a", WORKFLOW_AUTOPILOT, NULL);
	for (int attempt = 1; attempt <= 3; attempt++) {
		report_work(world, "a");
		int64_t seq = store_last_event(world->store);
		if (attempt == 2) {
			assert_int_equal(emit(world, "a", "validation.failed"), REFUSED_NOTHING);
			EXPECT_EVENTS(
				world, seq, EVENT_TASK_NOTED, EVENT_TASK_FAILED, EVENT_TASK_STAGE_CHANGED);
		} else {
			assert_int_equal(judge(world, "a", WORKFLOW_GATE, false, JUDGE), REFUSED_NOTHING);
			EXPECT_EVENTS(
				world, seq, EVENT_GATE_REJECTED, EVENT_TASK_FAILED, EVENT_TASK_STAGE_CHANGED);
		}
		expect(world, "a", attempt < 3 ? STAGE_IN_PROGRESS : STAGE_FAILED,
			attempt < 3 ? TASK_READY : TASK_FAILED);
	}
}

static void gates_of_its_own_must_all_be_passed(void **state)
{
	struct world *world = *state;

	create(world, "a", WORKFLOW_NONE, "security");
	uint64_t fence = claim_as(world, "w", WORKER);
	struct command report = say_report(COMMAND_COMPLETE, "a", "w", fence);
	report.principal = WORKER;
	assert_int_equal(world_run(world, &report)->refusal, REFUSED_GATE_REQUIRED);
	assert_int_equal(judge(world, "a", "security", true, JUDGE), REFUSED_BAD_TRANSITION);
	report.kind = COMMAND_REVIEW;
	int64_t seq = store_last_event(world->store);
	assert_int_equal(world_run(world, &report)->refusal, REFUSED_NOTHING);
	EXPECT_EVENTS(world, seq, EVENT_TASK_REVIEWED, EVENT_GATE_OPENED);
	assert_int_equal(judge(world, "a", "style", true, JUDGE), REFUSED_NOT_FOUND);
	assert_int_equal(judge(world, "a", "review", true, JUDGE), REFUSED_NOT_FOUND);
	seq = store_last_event(world->store);
	assert_int_equal(judge(world, "a", "security", true, JUDGE), REFUSED_NOTHING);
	EXPECT_EVENTS(world, seq, EVENT_GATE_PASSED, EVENT_TASK_COMPLETED);
	expect(world, "a", STAGE_NONE, TASK_DONE);
}

static void the_gates_of_a_workflow_and_its_own_are_both_needed(void **state)
{
	struct world *world = *state;

	create(world, "a", WORKFLOW_AUTOPILOT, "security");
	report_work(world, "a");
	assert_int_equal(judge(world, "a", WORKFLOW_GATE, true, JUDGE), REFUSED_NOTHING);
	assert_int_equal(emit(world, "a", "merge.success"), REFUSED_GATE_REQUIRED);
	assert_int_equal(judge(world, "a", "security", true, OTHER), REFUSED_NOTHING);
	expect(world, "a", STAGE_VALIDATED, TASK_REVIEW);
	assert_int_equal(judge(world, "a", "security", true, OTHER), REFUSED_NOTHING);
	assert_true(world->result.repeated);
	assert_int_equal(emit(world, "a", "merge.success"), REFUSED_NOTHING);
	expect(world, "a", STAGE_MERGED, TASK_DONE);
}

static void a_review_that_nobody_asked_a_gate_for_is_decided_once(void **state)
{
	struct world *world = *state;

	world_create(world, "a", "q");
	uint64_t fence = world_claim(world, "w");
	world_report(world, COMMAND_REVIEW, "a", "w", fence);
	assert_int_equal(judge(world, "a", "review", true, JUDGE), REFUSED_NOTHING);
	expect(world, "a", STAGE_NONE, TASK_DONE);
	assert_int_equal(judge(world, "a", "review", true, JUDGE), REFUSED_BAD_TRANSITION);
}

/* ---- workers ------------------------------------------------------------------------------------------------ */

static void a_lost_worker_starts_over(void **state)
{
	struct world *world = *state;

	create(world, "a", WORKFLOW_AUTOPILOT, NULL);
	build(world, "a");
	int64_t seq = store_last_event(world->store);
	world_pass(world, 3600 * 1000);
	world_run(world, NULL);
	EXPECT_EVENTS(world, seq, EVENT_TASK_EXPIRED, EVENT_TASK_STAGE_CHANGED);
	expect(world, "a", STAGE_IN_PROGRESS, TASK_READY);
	report_work(world, "a");
}

static void a_workers_failure_is_the_end_and_an_authority_may_lift_it(void **state)
{
	struct world *world = *state;
	struct command lift = say_about(COMMAND_EMIT, "a");
	struct span parent = SPAN("a");
	struct command child = say_create("child", "q");

	create(world, "a", WORKFLOW_AUTOPILOT, NULL);
	child.create.parents = (struct name_list){&parent, 1};
	world_run(world, &child);
	uint64_t fence = build(world, "a");
	assert_int_equal(progress(world, "a", fence, "worker.execution.failed"), REFUSED_NOTHING);
	expect(world, "a", STAGE_FAILED, TASK_FAILED);
	assert_int_equal(world_state(world, "child"), TASK_BLOCKED);
	lift.told.event = (struct outside_event){
		.type = SPAN("vtid.lifecycle.terminalized"), .status = SPAN("success")};
	lift.principal = CI;
	assert_int_equal(world_run(world, &lift)->refusal, REFUSED_GATE_REQUIRED);
	lift.principal = WORKER;
	lift.told.may_judge = true;
	assert_int_equal(world_run(world, &lift)->refusal, REFUSED_GATE_REQUIRED);
	lift.principal = JUDGE;
	assert_int_equal(world_run(world, &lift)->refusal, REFUSED_NOTHING);
	expect(world, "a", STAGE_COMPLETED, TASK_DONE);
	assert_int_equal(world_state(world, "child"), TASK_READY);
}

static void a_word_from_outside_ends_no_claim(void **state)
{
	struct world *world = *state;

	create(world, "a", WORKFLOW_AUTOPILOT, NULL);
	build(world, "a");
	int64_t seq = store_last_event(world->store);
	assert_int_equal(emit(world, "a", "worker.execution.completed"), REFUSED_NOTHING);
	assert_int_equal(emit(world, "a", "worker.execution.failed"), REFUSED_NOTHING);
	EXPECT_EVENTS(world, seq, EVENT_TASK_NOTED, EVENT_TASK_NOTED);
	expect(world, "a", STAGE_PR_CREATED, TASK_RUNNING);
	assert_int_equal(emit_as(world, "a", "worker.execution.completed", WORKER), REFUSED_NOTHING);
	expect(world, "a", STAGE_REVIEWING, TASK_REVIEW);
}

static void the_same_event_moves_once(void **state)
{
	struct world *world = *state;
	struct command event = say_about(COMMAND_EMIT, "a");

	event.principal = CI;
	event.told.event.type = SPAN("worker.building");
	event.emit.id = SPAN("e1");
	event.emit.digest = 1;
	create(world, "a", WORKFLOW_AUTOPILOT, NULL);
	world_run(world, &event);
	expect(world, "a", STAGE_BUILDING, TASK_READY);
	build(world, "a"); /* another attempt, from the start */
	int64_t seq = store_last_event(world->store);
	assert_int_equal(world_run(world, &event)->refusal, REFUSED_NOTHING);
	assert_true(world->result.repeated);
	assert_int_equal(store_last_event(world->store), seq);
}

static void the_last_word_through_a_door_ends_a_claim_without_a_workflow(void **state)
{
	struct world *world = *state;
	struct command command;

	world_create(world, "a", "q");
	world_create(world, "b", "q");
	for (int i = 0; i < 2; i++) {
		command = say_report(COMMAND_PROGRESS, i ? "b" : "a", "w", world_claim(world, "w"));
		command.told.ends = true;
		command.told.event.type =
			i ? SPAN("worker.execution.failed") : SPAN("worker.execution.completed");
		assert_int_equal(world_run(world, &command)->refusal, REFUSED_NOTHING);
	}
	assert_int_equal(world_state(world, "a"), TASK_REVIEW);
	assert_int_equal(world_state(world, "b"), TASK_FAILED);
}

/* ---- actions ------------------------------------------------------------------------------------------------ */

static int action_body(struct arena *arena, enum action action, struct span id, struct span *ret_body)
{
	char text[100];
	int len = snprintf(text, sizeof text, "\"title\":\"%s %.*s\"", action_name(action), SPAN_ARGS(id));

	return arena_copy(arena, (struct span){text, (size_t)len}, ret_body);
}

static int action_error(
	struct arena *arena, enum action action, struct span id, struct span said, struct span *ret_error)
{
	(void)action;
	(void)id;
	return arena_copy(arena, said, ret_error);
}

/* From now on such actions are tasks in a queue of that name. */
static void begin_actions(struct world *world)
{
	world->options.actions = (struct action_tasks){.body = action_body, .error = action_error};
	world->options.actions.queues[ACTION_VALIDATE] = SPAN("validators");
	world->options.actions.queues[ACTION_MERGE] = SPAN("mergers");
	world_crash(world);
}

/* "a" has been built and reported; the fence of whoever has claimed the next task of that queue, which has that id. */
static uint64_t take_action(struct world *world, struct span queue, char id[32])
{
	struct command work = say_claim("judge");

	work.claim.queues = (struct name_list){&queue, 1};
	assert_int_equal(world_run(world, &work)->claim_count, 1);
	snprintf(id, 32, "%.*s", SPAN_ARGS(world->result.claims[0].id));
	return world->result.claims[0].task.fence;
}

static void report_built(struct world *world)
{
	uint64_t fence = build(world, "a");
	struct command done = say_report(COMMAND_PROGRESS, "a", "w", fence);

	done.principal = WORKER;
	done.told.event.type = SPAN("worker.execution.completed");
	done.told.ends = true;
	assert_int_equal(world_run(world, &done)->refusal, REFUSED_NOTHING);
}

static void end_action(struct world *world, enum command_kind how, const char *id, uint64_t fence)
{
	struct command end = say_report(how, id, "judge", fence);

	end.failure.no_retry = true;
	end.data = SPAN("{\"message\":\"no\"}");
	assert_int_equal(world_run(world, &end)->refusal, REFUSED_NOTHING);
}

static void an_action_that_is_done_moves_its_task_on_to_the_end(void **state)
{
	struct world *world = *state;
	char id[32];

	begin_actions(world);
	create(world, "a", WORKFLOW_AUTOPILOT, NULL);
	report_built(world);
	uint64_t fence = take_action(world, SPAN("validators"), id);
	assert_int_equal(world_task(world, id).verdict_for, world_task(world, "a").seq);
	end_action(world, COMMAND_COMPLETE, id, fence);
	assert_int_equal(world_task(world, "a").stage, STAGE_VALIDATED);
	world_crash(world);
	fence = take_action(world, SPAN("mergers"), id);
	end_action(world, COMMAND_COMPLETE, id, fence);
	assert_int_equal(world_state(world, "a"), TASK_DONE);
	assert_int_equal(world_task(world, "a").stage, STAGE_MERGED);
}

static void a_judgement_that_fails_rejects_the_work_and_one_of_before_counts_no_more(void **state)
{
	struct world *world = *state;
	char first[32], second[32];

	begin_actions(world);
	create(world, "a", WORKFLOW_AUTOPILOT, NULL);
	report_built(world);
	uint64_t fence = take_action(world, SPAN("validators"), first);
	end_action(world, COMMAND_FAIL, first, fence);
	assert_int_equal(world_state(world, "a"), TASK_READY);
	assert_int_equal(world_task(world, "a").stage, STAGE_IN_PROGRESS);
	report_built(world);
	fence = take_action(world, SPAN("validators"), second);
	struct command reject = say_about(COMMAND_VERDICT, "a");
	reject.verdict = (struct command_verdict){.gate = SPAN("validate")};
	assert_int_equal(world_run(world, &reject)->refusal, REFUSED_NOTHING);
	report_built(world);
	end_action(world, COMMAND_COMPLETE, second, fence);
	assert_int_equal(world_state(world, "a"), TASK_REVIEW);
	assert_int_equal(world_task(world, "a").gates_passed, 0);
}

static void an_action_that_is_called_off_says_nothing(void **state)
{
	struct world *world = *state;
	char id[32];

	begin_actions(world);
	create(world, "a", WORKFLOW_AUTOPILOT, NULL);
	report_built(world);
	uint64_t fence = take_action(world, SPAN("validators"), id);
	world_report(world, COMMAND_RELEASE, id, "judge", fence);
	struct command cancel = say_about(COMMAND_CANCEL, id);
	assert_int_equal(world_run(world, &cancel)->refusal, REFUSED_NOTHING);
	assert_int_equal(world_state(world, "a"), TASK_REVIEW);
	assert_int_equal(world_task(world, "a").stage, STAGE_REVIEWING);
}

static void an_action_with_a_queue_is_a_task_in_it(void **state)
{
	struct world *world = *state;
	struct command queue = {.kind = COMMAND_QUEUE_SET,
		.queue_set = {.queue = SPAN("validators"), .state = QUEUE_DRAINING}};
	struct command work = say_claim("judge");
	struct span queues = SPAN("validators");

	begin_actions(world);
	create(world, "a", WORKFLOW_AUTOPILOT, NULL);
	world_run(world, &queue);
	uint64_t fence = build(world, "a");
	struct command done = say_report(COMMAND_PROGRESS, "a", "w", fence);
	done.principal = WORKER;
	done.told.event.type = SPAN("worker.execution.completed");
	int64_t seq = store_last_event(world->store);
	assert_int_equal(world_run(world, &done)->refusal, REFUSED_NOTHING);
	EXPECT_EVENTS(world, seq, EVENT_TASK_REVIEWED, EVENT_TASK_STAGE_CHANGED, EVENT_TASK_CREATED,
		EVENT_GATE_OPENED);
	world_crash(world);
	work.claim.queues = (struct name_list){&queues, 1};
	assert_int_equal(world_run(world, &work)->claim_count, 1);
	assert_memory_equal(world->result.claims[0].body.data, "\"title\":\"validate a\"", 20);
}

/* ---- opting in ------------------------------------------------------------------------------------------------ */

static void a_queue_may_hand_out_only_what_may_run_on_its_own(void **state)
{
	struct world *world = *state;
	struct command free_one = say_create("free", "careful"), claim = say_about(COMMAND_CLAIM, "bound");

	world->options.opt_in_queues = "other careful";
	world_crash(world);
	world_create(world, "bound", "careful");
	free_one.create.autonomous = true;
	free_one.create.priority = -5;
	world_run(world, &free_one);
	world_create(world, "elsewhere", "q");
	claim.worker = SPAN("w");
	claim.claim = (struct command_claim){.any_executor = true, .takes_ready = true};
	assert_int_equal(world_run(world, &claim)->refusal, REFUSED_NOT_AUTONOMOUS);
	world_claim(world, "w");
	assert_memory_equal(world->result.claims[0].id.data, "elsewhere", 9);
	world_claim(world, "w");
	assert_memory_equal(world->result.claims[0].id.data, "free", 4);
	assert_int_equal(world_claim(world, "w"), 0);
	struct command opt = say_about(COMMAND_UPDATE, "bound");
	opt.update.patch = (struct task_patch){.set_autonomous = true, .autonomous = true};
	assert_int_equal(world_run(world, &opt)->refusal, REFUSED_NOTHING);
	world_crash(world);
	world_claim(world, "w");
	assert_memory_equal(world->result.claims[0].id.data, "bound", 5);
}

/* ---- configured -------------------------------------------------------------------------------------------- */

static const struct stage_rule own_rules[] = {
	{.events = "drafted", .from = STAGE_BIT(STAGE_IN_PROGRESS), .to = STAGE_BUILDING},
	{.events = NULL},
};

/* The server starts again, with these. */
static void configure(struct world *world, const struct workflow_plan *plans, uint32_t count)
{
	world->options.workflows = plans;
	world->options.workflow_count = count;
	world_crash(world);
}

static enum workflow number_of(struct world *world, const char *name)
{
	return workflow_from_name(store_workflows(world->store), span_of(name));
}

static void a_name_keeps_its_number_whatever_else_is_configured(void **state)
{
	const struct workflow_plan one[] = {{SPAN("docs"), "", STAGE_MERGED, own_rules}};
	const struct workflow_plan two[] = {
		{SPAN("art"), "", STAGE_MERGED, own_rules}, {SPAN("docs"), "", STAGE_MERGED, own_rules}};
	struct world *world = *state;

	configure(world, one, 1);
	enum workflow docs = number_of(world, "docs");
	create(world, "a", docs, NULL);
	configure(world, two, 2);
	assert_int_equal(number_of(world, "docs"), docs);
	assert_int_not_equal(number_of(world, "art"), docs);
	configure(world, two, 1);
	assert_int_equal(number_of(world, "docs"), WORKFLOW_NONE);
	assert_true(span_equal(workflow_plan_of(store_workflows(world->store), docs)->name, SPAN("docs")));
	emit(world, "a", "drafted");
	expect(world, "a", STAGE_IN_PROGRESS, TASK_READY); /* nothing moves it while it is away */
	configure(world, one, 1);
	emit(world, "a", "drafted");
	expect(world, "a", STAGE_BUILDING, TASK_READY);
}

static void there_is_an_end_to_names(void **state)
{
	struct world *world = *state;
	struct workflow_plan plan = {.text = "", .last = STAGE_MERGED, .rules = own_rules};
	char name[16];

	world->options.workflows = &plan;
	world->options.workflow_count = 1;
	for (int i = WORKFLOW_CONFIGURED; i < WORKFLOW_MAX; i++) {
		snprintf(name, sizeof name, "w%d", i);
		plan.name = span_of(name);
		world_crash(world);
		assert_int_equal(number_of(world, name), i);
	}
	struct backend *backend = store_abandon(world->store);
	if (world->on_disk)
		backend->ops->close(backend);
	world->backend = world_backend(world);
	plan.name = SPAN("one-more");
	assert_int_equal(store_open(world->backend, &world->options, &world->store), -E2BIG);
	plan.name = SPAN("w20");
	assert_int_equal(store_open(world->backend, &world->options, &world->store), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(from_activation_to_merge),
		ON_BOTH(with_a_deploy_merged_is_not_the_end),
		ON_BOTH(who_held_an_attempt_gives_no_verdict_now_or_later),
		ON_BOTH(a_word_that_needs_a_verdict_is_refused_and_leaves_nothing),
		ON_BOTH(a_rejection_starts_the_next_attempt_until_none_is_left),
		ON_BOTH(gates_of_its_own_must_all_be_passed),
		ON_BOTH(the_gates_of_a_workflow_and_its_own_are_both_needed),
		ON_BOTH(a_review_that_nobody_asked_a_gate_for_is_decided_once),
		ON_BOTH(a_lost_worker_starts_over),
		ON_BOTH(a_workers_failure_is_the_end_and_an_authority_may_lift_it),
		ON_BOTH(a_word_from_outside_ends_no_claim),
		ON_BOTH(the_same_event_moves_once),
		ON_BOTH(the_last_word_through_a_door_ends_a_claim_without_a_workflow),
		ON_BOTH(an_action_with_a_queue_is_a_task_in_it),
		ON_BOTH(an_action_that_is_done_moves_its_task_on_to_the_end),
		ON_BOTH(a_judgement_that_fails_rejects_the_work_and_one_of_before_counts_no_more),
		ON_BOTH(an_action_that_is_called_off_says_nothing),
		ON_BOTH(a_queue_may_hand_out_only_what_may_run_on_its_own),
		ON_BOTH(a_name_keeps_its_number_whatever_else_is_configured),
		ON_BOTH(there_is_an_end_to_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
