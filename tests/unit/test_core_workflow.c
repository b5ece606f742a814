/*
 * Workflows: every rule and every name of it, forward only, gates, and what the stages mean for the state.
 */
#include "core_fixture.h"

#include <stdio.h>
#include <string.h>

enum {
	GATE = 1, /* the bit of the gate of the workflow */
};

static const struct workflow_plan *plan_of(const struct task *task)
{
	return task->workflow == WORKFLOW_NONE ? &workflow_plan_unknown
					       : workflow_plan_of(&workflows_built_in, task->workflow);
}

/* ---- a task of a workflow ----------------------------------------------------------------------------- */

static struct task with_workflow(struct task task, enum workflow workflow, enum stage stage)
{
	task.workflow = workflow;
	task.stage = stage;
	task.gates = 5;
	task.gate_count = 1;
	return task;
}

/* In that stage, and in the state that goes with it. */
static struct task at(struct world *w, enum stage stage)
{
	switch (stage) {
	case STAGE_ALLOCATED:
		return with_workflow(pending_task(w), WORKFLOW_AUTOPILOT, stage);
	case STAGE_IN_PROGRESS:
	case STAGE_BUILDING:
		return with_workflow(running_task(w), WORKFLOW_AUTOPILOT, stage);
	case STAGE_PR_CREATED:
	case STAGE_REVIEWING:
	case STAGE_VALIDATED:
		return with_workflow(review_task(w), WORKFLOW_AUTOPILOT, stage);
	case STAGE_MERGED:
	case STAGE_DEPLOYING:
	case STAGE_VERIFYING:
		return with_workflow(review_task(w), WORKFLOW_AUTOPILOT_DEPLOY, stage);
	case STAGE_COMPLETED:
		return with_workflow(done_task(w), WORKFLOW_AUTOPILOT_DEPLOY, stage);
	case STAGE_FAILED:
		return with_workflow(failed_task(w), WORKFLOW_AUTOPILOT, stage);
	case STAGE_NONE:
	case STAGE_COUNT:
		break;
	}
	fail_msg("no stage %d", (int)stage);
	return draft_new();
}

static struct outside_event told(const char *type)
{
	return (struct outside_event){.type = span_of(type), .by_holder = true};
}

static enum stage leads_to(const struct task *task, struct outside_event event)
{
	enum refusal refusal;
	const struct stage_rule *rule = workflow_find(plan_of(task), task, &event, &refusal);

	if (refusal != REFUSED_NOTHING)
		return STAGE_COUNT; /* a gate is in the way */
	return rule ? rule->to : STAGE_NONE;
}

/* ---- names -------------------------------------------------------------------------------------------- */

/* Every name of the seed and of the system behind it, in the stage it is for. */
static const struct {
	const char *type;
	enum stage from, to;
	enum action action;
} names[] = {
	{"vtid.lifecycle.allocated", STAGE_ALLOCATED, STAGE_IN_PROGRESS, ACTION_NONE},
	{"vtid.lifecycle.started", STAGE_ALLOCATED, STAGE_IN_PROGRESS, ACTION_NONE},
	{"lifecycle.started", STAGE_ALLOCATED, STAGE_IN_PROGRESS, ACTION_NONE},
	{"commandhub.task.scheduled", STAGE_ALLOCATED, STAGE_IN_PROGRESS, ACTION_NONE},
	{"autopilot.run.started", STAGE_ALLOCATED, STAGE_IN_PROGRESS, ACTION_NONE},
	{"worker.execution.started", STAGE_IN_PROGRESS, STAGE_IN_PROGRESS, ACTION_NONE},
	{"execution.started", STAGE_IN_PROGRESS, STAGE_IN_PROGRESS, ACTION_NONE},
	{"worker.dispatch.accepted", STAGE_IN_PROGRESS, STAGE_IN_PROGRESS, ACTION_NONE},
	{"autopilot.worker.started", STAGE_IN_PROGRESS, STAGE_IN_PROGRESS, ACTION_NONE},
	{"worker.orchestrator.dispatch.accepted", STAGE_IN_PROGRESS, STAGE_IN_PROGRESS, ACTION_NONE},
	{"vtid.stage.worker_orchestrator.claimed", STAGE_IN_PROGRESS, STAGE_IN_PROGRESS, ACTION_NONE},
	{"worker.building", STAGE_IN_PROGRESS, STAGE_BUILDING, ACTION_NONE},
	{"worker.execution.building", STAGE_IN_PROGRESS, STAGE_BUILDING, ACTION_NONE},
	{"building", STAGE_IN_PROGRESS, STAGE_BUILDING, ACTION_NONE},
	{"autopilot.worker.building", STAGE_IN_PROGRESS, STAGE_BUILDING, ACTION_NONE},
	{"vtid.stage.worker_orchestrator.building", STAGE_IN_PROGRESS, STAGE_BUILDING, ACTION_NONE},
	{"vtid.stage.worker_backend.start", STAGE_IN_PROGRESS, STAGE_BUILDING, ACTION_NONE},
	{"vtid.stage.worker_frontend.start", STAGE_IN_PROGRESS, STAGE_BUILDING, ACTION_NONE},
	{"worker.pr.created", STAGE_BUILDING, STAGE_PR_CREATED, ACTION_NONE},
	{"pr.created", STAGE_BUILDING, STAGE_PR_CREATED, ACTION_NONE},
	{"github.pull_request.opened", STAGE_BUILDING, STAGE_PR_CREATED, ACTION_NONE},
	{"cicd.github.create_pr.succeeded", STAGE_BUILDING, STAGE_PR_CREATED, ACTION_NONE},
	{"cicd.pr.created", STAGE_BUILDING, STAGE_PR_CREATED, ACTION_NONE},
	{"github.pr.created", STAGE_BUILDING, STAGE_PR_CREATED, ACTION_NONE},
	{"autopilot.pr.created", STAGE_BUILDING, STAGE_PR_CREATED, ACTION_NONE},
	{"vtid.stage.worker_orchestrator.pr_created", STAGE_BUILDING, STAGE_PR_CREATED, ACTION_NONE},
	{"worker.execution.completed", STAGE_BUILDING, STAGE_PR_CREATED, ACTION_CREATE_PR},
	{"worker.execution.completed", STAGE_IN_PROGRESS, STAGE_PR_CREATED, ACTION_CREATE_PR},
	{"worker.completed", STAGE_BUILDING, STAGE_PR_CREATED, ACTION_CREATE_PR},
	{"completed", STAGE_BUILDING, STAGE_PR_CREATED, ACTION_CREATE_PR},
	{"autopilot.worker.completed", STAGE_BUILDING, STAGE_PR_CREATED, ACTION_CREATE_PR},
	{"worker.orchestrator.completed", STAGE_BUILDING, STAGE_PR_CREATED, ACTION_CREATE_PR},
	{"vtid.stage.worker_orchestrator.success", STAGE_BUILDING, STAGE_PR_CREATED, ACTION_CREATE_PR},
	{"cicd.ci.passed", STAGE_PR_CREATED, STAGE_REVIEWING, ACTION_VALIDATE},
	{"ci.passed", STAGE_PR_CREATED, STAGE_REVIEWING, ACTION_VALIDATE},
	{"cicd.checks.passed", STAGE_PR_CREATED, STAGE_REVIEWING, ACTION_VALIDATE},
	{"github.checks.passed", STAGE_PR_CREATED, STAGE_REVIEWING, ACTION_VALIDATE},
	{"autopilot.ci.passed", STAGE_PR_CREATED, STAGE_REVIEWING, ACTION_VALIDATE},
	{"autopilot.validation.failed", STAGE_REVIEWING, STAGE_FAILED, ACTION_NONE},
	{"validator.failed", STAGE_VALIDATED, STAGE_FAILED, ACTION_NONE},
	{"validation.failed", STAGE_PR_CREATED, STAGE_FAILED, ACTION_NONE},
	{"cicd.deploy.service.started", STAGE_MERGED, STAGE_DEPLOYING, ACTION_NONE},
	{"deploy.gateway.started", STAGE_MERGED, STAGE_DEPLOYING, ACTION_NONE},
	{"cicd.deploy.started", STAGE_MERGED, STAGE_DEPLOYING, ACTION_NONE},
	{"autopilot.deploy.started", STAGE_MERGED, STAGE_DEPLOYING, ACTION_NONE},
	{"deploy.gateway.success", STAGE_DEPLOYING, STAGE_VERIFYING, ACTION_VERIFY},
	{"cicd.deploy.service.succeeded", STAGE_DEPLOYING, STAGE_VERIFYING, ACTION_VERIFY},
	{"autopilot.deploy.completed", STAGE_DEPLOYING, STAGE_VERIFYING, ACTION_VERIFY},
	{"verification.failed", STAGE_VERIFYING, STAGE_FAILED, ACTION_NONE},
	{"worker.execution.failed", STAGE_IN_PROGRESS, STAGE_FAILED, ACTION_NONE},
	{"worker.execution.failed", STAGE_BUILDING, STAGE_FAILED, ACTION_NONE},
	{"worker.execution.failed", STAGE_REVIEWING, STAGE_FAILED, ACTION_NONE},
	{"worker.orchestrator.failed", STAGE_BUILDING, STAGE_FAILED, ACTION_NONE},
	{"vtid.stage.worker_orchestrator.failed", STAGE_BUILDING, STAGE_FAILED, ACTION_NONE},
	{"vtid.stage.worker_backend.failed", STAGE_BUILDING, STAGE_FAILED, ACTION_NONE},
	{"worker.dispatch.failed", STAGE_ALLOCATED, STAGE_FAILED, ACTION_NONE},
	{"cicd.github.create_pr.failed", STAGE_PR_CREATED, STAGE_FAILED, ACTION_NONE},
	{"github.checks.failed", STAGE_REVIEWING, STAGE_FAILED, ACTION_NONE},
	{"github.merge.failed", STAGE_VALIDATED, STAGE_FAILED, ACTION_NONE},
	{"deploy.gateway.failed", STAGE_DEPLOYING, STAGE_FAILED, ACTION_NONE},
};

static void every_name_moves_the_stage_it_is_for(void **state)
{
	struct world *w = *state;
	enum refusal refusal;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct task task = at(w, names[i].from);
		struct outside_event event = told(names[i].type);
		const struct stage_rule *rule = workflow_find(plan_of(&task), &task, &event, &refusal);
		if (!rule || rule->to != names[i].to || rule->action != names[i].action)
			fail_msg("%s from %s", names[i].type, stage_name(names[i].from));
		assert_int_equal(refusal, REFUSED_NOTHING);
	}
}

static void a_name_that_no_rule_has_moves_nothing(void **state)
{
	struct world *w = *state;
	struct task task = at(w, STAGE_IN_PROGRESS);
	static const char *const strangers[] = {"", "worker.", "worker", "buildin", "buildingx", "xbuilding",
		"worker.building.x", "building worker"};

	for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++)
		assert_int_equal(leads_to(&task, told(strangers[i])), STAGE_NONE);
}

/* ---- the seed's own table ------------------------------------------------------------------------------ */

static void the_way_of_the_seed_is_gone_step_by_step(void **state)
{
	struct world *w = *state;
	struct task pr = with_workflow(running_task(w), WORKFLOW_AUTOPILOT, STAGE_PR_CREATED);
	struct outside_event completed = told("worker.execution.completed");
	enum refusal refusal;
	const struct stage_rule *rule = workflow_find(plan_of(&pr), &pr, &completed, &refusal);

	assert_non_null(rule);
	assert_int_equal(rule->to, STAGE_REVIEWING);
	assert_int_equal(rule->action, ACTION_VALIDATE);
	assert_true(rule->reports);
	struct task task = at(w, STAGE_IN_PROGRESS); /* not every worker says that it builds */
	assert_int_equal(leads_to(&task, told("worker.pr.created")), STAGE_PR_CREATED);
}

static void a_completed_word_with_a_pull_request_asks_for_none(void **state)
{
	struct world *w = *state;
	struct task task = at(w, STAGE_BUILDING);
	struct outside_event event = told("worker.execution.completed");
	enum refusal refusal;

	event.has_pr = true;
	const struct stage_rule *rule = workflow_find(plan_of(&task), &task, &event, &refusal);
	assert_int_equal(rule->to, STAGE_PR_CREATED);
	assert_int_equal(rule->action, ACTION_NONE);
}

/* ---- forward only ---------------------------------------------------------------------------------------- */

static void every_rule_leads_forward_or_ends(void **state)
{
	(void)state;
	for (const struct stage_rule *rule = workflow_rules; rule->events; rule++) {
		assert_true(rule->from != 0);
		for (int stage = STAGE_NONE + 1; stage < STAGE_COUNT; stage++) {
			if (!(rule->from & STAGE_BIT(stage)))
				continue;
			bool lifts = stage == STAGE_FAILED && rule->to == STAGE_COMPLETED;
			assert_true((int)rule->to >= stage || lifts);
		}
		if (rule->on_reject != STAGE_NONE)
			assert_int_equal(rule->to, STAGE_FAILED);
	}
}

static void no_word_leads_back(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		for (int stage = STAGE_NONE + 1; stage < STAGE_COUNT; stage++) {
			struct task task = at(w, (enum stage)stage);
			enum stage to = leads_to(&task, told(names[i].type));
			if (to != STAGE_NONE && to != STAGE_COUNT && (int)to < stage)
				fail_msg("%s leads from %s to %s", names[i].type,
					stage_name((enum stage)stage), stage_name(to));
		}
	}
}

static void final_stages_hear_nothing_more(void **state)
{
	struct world *w = *state;
	struct task failed = at(w, STAGE_FAILED), completed = at(w, STAGE_COMPLETED);
	struct task merged = with_workflow(done_task(w), WORKFLOW_AUTOPILOT, STAGE_MERGED);

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct outside_event event = told(names[i].type);
		event.status = SPAN("failed");
		assert_int_equal(leads_to(&failed, event), STAGE_NONE);
		assert_int_equal(leads_to(&completed, event), STAGE_NONE);
		assert_int_equal(leads_to(&merged, event), STAGE_NONE);
	}
}

/* ---- guards ---------------------------------------------------------------------------------------------- */

static void any_failure_counts_when_its_status_says_so(void **state)
{
	struct world *w = *state;
	struct task task = at(w, STAGE_REVIEWING);
	struct outside_event event = told("cicd.lint.failed");

	assert_int_equal(leads_to(&task, event), STAGE_NONE);
	event.status = SPAN("warning");
	assert_int_equal(leads_to(&task, event), STAGE_NONE);
	event.status = SPAN("failed");
	assert_int_equal(leads_to(&task, event), STAGE_FAILED);
	event = (struct outside_event){.type = SPAN("some.error"), .status = SPAN("error")};
	assert_int_equal(leads_to(&task, event), STAGE_FAILED);
	event.type = SPAN("someerror");
	assert_int_equal(leads_to(&task, event), STAGE_NONE);
}

static void nobody_outside_ends_a_workers_claim(void **state)
{
	struct world *w = *state;
	struct task task = at(w, STAGE_BUILDING);
	static const char *const words[] = {"worker.execution.completed", "worker.execution.failed",
		"cicd.lint.failed", "dispatch.failed"};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		struct outside_event event = {.type = span_of(words[i]), .status = SPAN("failed")};
		assert_int_equal(leads_to(&task, event), STAGE_NONE);
	}
	struct outside_event built = {.type = SPAN("github.pull_request.opened")};
	assert_int_equal(leads_to(&task, built), STAGE_PR_CREATED);
}

static void the_checks_move_what_was_reported_and_not_what_is_held(void **state)
{
	struct world *w = *state;
	struct task held = with_workflow(running_task(w), WORKFLOW_AUTOPILOT, STAGE_PR_CREATED);
	struct task reported = at(w, STAGE_PR_CREATED);

	assert_int_equal(leads_to(&held, told("ci.passed")), STAGE_NONE);
	assert_int_equal(leads_to(&reported, told("ci.passed")), STAGE_REVIEWING);
}

/* ---- gates ----------------------------------------------------------------------------------------------- */

static void only_a_verdict_validates(void **state)
{
	struct world *w = *state;
	struct task task = at(w, STAGE_REVIEWING);
	struct outside_event event = told("autopilot.validation.passed");

	assert_int_equal(leads_to(&task, event), STAGE_COUNT);
	event.is_verdict = true;
	assert_int_equal(leads_to(&task, event), STAGE_VALIDATED);
	event.type = SPAN("validator.passed");
	assert_int_equal(leads_to(&task, event), STAGE_VALIDATED);
}

static void a_merge_leads_on_from_validated_alone(void **state)
{
	struct world *w = *state;
	static const char *const merges[] = {"github.merge.success", "cicd.github.safe_merge.executed",
		"cicd.merge.success", "autopilot.merge.completed", "cicd.github.merge.succeeded",
		"merge.success"};

	for (size_t i = 0; i < sizeof merges / sizeof *merges; i++) {
		for (int stage = STAGE_ALLOCATED; stage < STAGE_VALIDATED; stage++) {
			struct task task = at(w, (enum stage)stage);
			assert_int_equal(leads_to(&task, told(merges[i])), STAGE_COUNT);
		}
		struct task task = at(w, STAGE_VALIDATED);
		task.gates_passed = GATE;
		assert_int_equal(leads_to(&task, told(merges[i])), STAGE_MERGED);
	}
}

static void every_other_gate_must_be_passed_before_the_last_stage(void **state)
{
	struct world *w = *state;
	struct task task = at(w, STAGE_VALIDATED);

	task.gate_count = 2;
	task.gates_passed = GATE;
	assert_int_equal(leads_to(&task, told("merge.success")), STAGE_COUNT);
	task.gates_passed |= 2;
	assert_int_equal(leads_to(&task, told("merge.success")), STAGE_MERGED);
	/* where more stages follow they must be passed before the last of those */
	task.workflow = WORKFLOW_AUTOPILOT_DEPLOY;
	task.gates_passed = GATE;
	assert_int_equal(leads_to(&task, told("merge.success")), STAGE_MERGED);
	task.stage = STAGE_VERIFYING;
	assert_int_equal(leads_to(&task, told("verification.passed")), STAGE_COUNT);
	task.gates_passed |= 2;
	assert_int_equal(leads_to(&task, told("verification.passed")), STAGE_COMPLETED);
}

static void what_failed_is_lifted_by_an_authority_that_says_success(void **state)
{
	struct world *w = *state;
	struct task failed = at(w, STAGE_FAILED), running = at(w, STAGE_BUILDING);
	struct outside_event event = {.type = SPAN("vtid.lifecycle.terminalized"), .status = SPAN("success")};

	assert_int_equal(leads_to(&failed, event), STAGE_COUNT);
	event.is_verdict = true;
	assert_int_equal(leads_to(&failed, event), STAGE_COMPLETED);
	assert_int_equal(leads_to(&running, event), STAGE_NONE);
	event.type = SPAN("worker_runner.terminalized");
	assert_int_equal(leads_to(&failed, event), STAGE_COMPLETED);
	event.status = SPAN("failed");
	assert_int_equal(leads_to(&failed, event), STAGE_NONE);
	event = (struct outside_event){.type = SPAN("vtid.terminalize.success")};
	assert_int_equal(leads_to(&failed, event), STAGE_COUNT);
	event.is_verdict = true;
	assert_int_equal(leads_to(&failed, event), STAGE_COMPLETED);
	struct task_decision decision = task_revive(&failed);
	moved(decision, EVENT_TASK_COMPLETED, TASK_DONE);
	assert_int_equal(decision.follow, FOLLOW_PARENT_REVIVED);
}

static void who_did_the_work_cannot_call_it_done(void **state)
{
	struct world *w = *state;
	struct task task = at(w, STAGE_BUILDING);

	refused(complete(w, &task), &task, REFUSED_GATE_REQUIRED);
	task.workflow = WORKFLOW_NONE;
	task.stage = STAGE_NONE;
	refused(complete(w, &task), &task, REFUSED_GATE_REQUIRED);
	task = moved(report(w, &task), EVENT_TASK_REVIEWED, TASK_REVIEW);
	refused(task_pass(&task, &w->given), &task, REFUSED_GATE_REQUIRED);
	task = noted(task_verdict(&task, GATE, true), &task, EVENT_GATE_PASSED);
	struct task_decision again = task_verdict(&task, GATE, true);
	assert_true(again.repeated);
	moved(task_pass(&task, &w->given), EVENT_TASK_COMPLETED, TASK_DONE);
}

static void a_verdict_is_for_work_that_was_reported(void **state)
{
	struct world *w = *state;

	for (int s = TASK_PENDING; s < TASK_STATE_COUNT; s++) {
		struct task task = task_in(w, (enum task_state)s);
		task.gates = 5;
		task.gate_count = 1;
		if (s == TASK_REVIEW)
			noted(task_verdict(&task, GATE, false), &task, EVENT_GATE_REJECTED);
		else
			refused(task_verdict(&task, GATE, true), &task, REFUSED_BAD_TRANSITION);
	}
}

static void a_rejection_and_a_retry_forget_the_verdicts(void **state)
{
	struct world *w = *state;
	struct task task = at(w, STAGE_VALIDATED);

	task.gates_passed = GATE;
	struct task rejected = moved(task_reject(&task, &w->given), EVENT_TASK_FAILED, TASK_READY);
	assert_int_equal(rejected.gates_passed, 0);
	task = at(w, STAGE_FAILED);
	task.gates_passed = GATE;
	task = moved(task_retry(&task, false, &w->given), EVENT_TASK_RETRIED, TASK_READY);
	assert_int_equal(task.gates_passed, 0);
}

/* ---- what a decision means for the stage --------------------------------------------------------------- */

static enum stage follows(const struct task *before, const struct task *after, struct outside_event event)
{
	return workflow_follow(plan_of(before), before, after, &event).stage;
}

static void a_parked_task_is_allocated_and_begins_when_it_is_activated(void **state)
{
	struct world *w = *state;
	struct task draft = draft_new();
	const struct outside_event nothing = {0};

	draft.workflow = WORKFLOW_AUTOPILOT;
	draft.gates = 5;
	draft.gate_count = 1;
	struct task parked = created(w, &draft, TASK_PENDING);
	assert_int_equal(parked.stage, STAGE_ALLOCATED);
	struct task ready = moved(task_unpark(&parked, &w->given), EVENT_TASK_UNPARKED, TASK_READY);
	assert_int_equal(follows(&parked, &ready, nothing), STAGE_IN_PROGRESS);
	assert_int_equal(created(w, &draft, TASK_READY).stage, STAGE_IN_PROGRESS);
	draft.ready_at_ms = w->given.now.wall_ms + HOURS(1);
	assert_int_equal(created(w, &draft, TASK_SCHEDULED).stage, STAGE_ALLOCATED);
}

static void a_report_goes_to_review_however_it_was_said(void **state)
{
	struct world *w = *state;
	const struct outside_event nothing = {0};
	struct task building = at(w, STAGE_BUILDING);
	struct task pr = with_workflow(running_task(w), WORKFLOW_AUTOPILOT, STAGE_PR_CREATED);
	struct task reported = moved(report(w, &building), EVENT_TASK_REVIEWED, TASK_REVIEW);

	struct stage_move move = workflow_follow(plan_of(&building), &building, &reported, &nothing);
	assert_int_equal(move.stage, STAGE_PR_CREATED);
	assert_int_equal(move.action, ACTION_CREATE_PR);
	reported = moved(report(w, &pr), EVENT_TASK_REVIEWED, TASK_REVIEW);
	move = workflow_follow(plan_of(&pr), &pr, &reported, &nothing);
	assert_int_equal(move.stage, STAGE_REVIEWING);
	assert_int_equal(move.action, ACTION_VALIDATE);
}

static void the_next_attempt_starts_where_work_starts(void **state)
{
	struct world *w = *state;
	const struct outside_event nothing = {0};
	struct task task = with_workflow(running_plain(w), WORKFLOW_AUTOPILOT, STAGE_PR_CREATED);
	struct task lost = moved(task_lose(&task, &w->given), EVENT_TASK_EXPIRED, TASK_READY);

	assert_int_equal(follows(&task, &lost, nothing), STAGE_IN_PROGRESS);
	task = at(w, STAGE_REVIEWING);
	struct task rejected = moved(task_reject(&task, &w->given), EVENT_TASK_FAILED, TASK_READY);
	assert_int_equal(follows(&task, &rejected, told("validator.failed")), STAGE_IN_PROGRESS);
	task = at(w, STAGE_FAILED);
	struct task retried = moved(task_retry(&task, false, &w->given), EVENT_TASK_RETRIED, TASK_READY);
	assert_int_equal(follows(&task, &retried, nothing), STAGE_IN_PROGRESS);
}

static void the_ends_have_their_stages(void **state)
{
	struct world *w = *state;
	const struct outside_event nothing = {0};
	struct task task = at(w, STAGE_BUILDING), review = at(w, STAGE_VALIDATED);
	struct task failed = moved(fail_for_ever(w, &task), EVENT_TASK_FAILED, TASK_FAILED);

	assert_int_equal(follows(&task, &failed, nothing), STAGE_FAILED);
	review.gates_passed = GATE;
	struct task done = moved(task_pass(&review, &w->given), EVENT_TASK_COMPLETED, TASK_DONE);
	assert_int_equal(follows(&review, &done, nothing), STAGE_MERGED);
	review.workflow = done.workflow = WORKFLOW_AUTOPILOT_DEPLOY;
	assert_int_equal(follows(&review, &done, nothing), STAGE_COMPLETED);
}

static void a_failure_from_outside_is_the_end_and_costs_what_was_reported(void **state)
{
	struct world *w = *state;
	struct task parked = at(w, STAGE_ALLOCATED), review = at(w, STAGE_REVIEWING);
	struct task_decision decision = task_fail_outside(&review);

	assert_int_equal(moved(task_fail_outside(&parked), EVENT_TASK_FAILED, TASK_FAILED).spent, 0);
	assert_int_equal(moved(decision, EVENT_TASK_FAILED, TASK_FAILED).spent, 1);
	assert_int_equal(decision.follow, FOLLOW_PARENT_DEAD);
}

static void a_task_without_a_workflow_has_no_stage(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);
	struct outside_event event = told("worker.building");

	assert_int_equal(leads_to(&task, event), STAGE_NONE);
	assert_int_equal(follows(&task, &task, event), STAGE_NONE);
	event = told("worker.execution.completed");
	assert_true(outside_event_says_done(&event));
	event = told("worker.execution.failed");
	assert_true(outside_event_says_failed(&event));
	assert_false(outside_event_says_done(&event));
	event = told("worker.building");
	assert_false(outside_event_says_failed(&event));
}

static void names_are_found_again(void **state)
{
	(void)state;
	for (int i = WORKFLOW_NONE + 1; i < WORKFLOW_COUNT; i++)
		assert_int_equal(
			workflow_from_name(&workflows_built_in, workflows_built_in.plans[i].name), i);
	for (int i = STAGE_NONE + 1; i < STAGE_COUNT; i++)
		assert_int_equal(stage_from_name(span_of(stage_name((enum stage)i))), i);
	assert_int_equal(workflow_from_name(&workflows_built_in, SPAN("")), WORKFLOW_NONE);
	assert_int_equal(stage_from_name(SPAN("shipping")), STAGE_NONE);
}

static void a_plan_has_rules_of_its_own(void **state)
{
	static const struct stage_rule rules[] = {
		{.events = "written",
			.from = STAGE_BIT(STAGE_IN_PROGRESS),
			.to = STAGE_REVIEWING,
			.guards = GUARD_HOLDER,
			.action = ACTION_VALIDATE,
			.reports = true},
		{.events = NULL},
	};
	const struct workflow_plan plan = {SPAN("docs"), "", STAGE_MERGED, rules};
	const struct outside_event written = {.type = SPAN("worker.execution.written"), .by_holder = true};
	const struct outside_event building = {.type = SPAN("building"), .by_holder = true};
	struct world *w = *state;
	struct task task = with_workflow(running_task(w), WORKFLOW_CONFIGURED, STAGE_IN_PROGRESS);
	struct task review = with_workflow(review_task(w), WORKFLOW_CONFIGURED, STAGE_IN_PROGRESS);
	enum refusal refusal;

	assert_ptr_equal(workflow_find(&plan, &task, &written, &refusal), &rules[0]);
	assert_null(workflow_find(&plan, &task, &building, &refusal));
	struct stage_move move = workflow_follow(&plan, &task, &review, &written);
	assert_int_equal(move.stage, STAGE_REVIEWING);
	assert_int_equal(move.action, ACTION_VALIDATE);
	assert_null(workflow_find(&workflow_plan_unknown, &task, &written, &refusal));
}

static void a_task_without_a_workflow_is_shown_in_the_stage_of_its_state(void **state)
{
	static const enum stage stages[TASK_STATE_COUNT] = {
		[TASK_PENDING] = STAGE_ALLOCATED,
		[TASK_SCHEDULED] = STAGE_ALLOCATED,
		[TASK_WAITING] = STAGE_ALLOCATED,
		[TASK_REVIEW] = STAGE_REVIEWING,
		[TASK_DONE] = STAGE_COMPLETED,
		[TASK_FAILED] = STAGE_FAILED,
		[TASK_CANCELLED] = STAGE_FAILED,
	};

	for (int i = TASK_NOWHERE + 1; i < TASK_STATE_COUNT; i++) {
		struct task task = task_in(*state, (enum task_state)i);
		enum stage wanted = stages[i] != STAGE_NONE ? stages[i] : STAGE_IN_PROGRESS;
		assert_int_equal(workflow_stage_of(&task), wanted);
	}
	struct task own = at(*state, STAGE_BUILDING);
	assert_int_equal(workflow_stage_of(&own), STAGE_BUILDING);
}

static enum stage stage_after(const struct task *before, const struct task *after, const char *type)
{
	struct outside_event event = told(type);

	return workflow_follow(plan_of(after), before, after, &event).stage;
}

static void what_is_told_while_it_rests_moves_its_stage_only_if_it_is_in_line(void **state)
{
	struct task ready = with_workflow(ready_task(*state), WORKFLOW_AUTOPILOT, STAGE_IN_PROGRESS);
	struct task waiting = with_workflow(waiting_task(*state, 1), WORKFLOW_AUTOPILOT, STAGE_ALLOCATED);
	struct task parked = with_workflow(pending_task(*state), WORKFLOW_AUTOPILOT, STAGE_ALLOCATED);

	assert_int_equal(stage_after(&ready, &ready, "nothing that a rule has"), STAGE_IN_PROGRESS);
	assert_int_equal(stage_after(&waiting, &waiting, "building"), STAGE_ALLOCATED);
	assert_int_equal(stage_after(&parked, &parked, "building"), STAGE_ALLOCATED);
	assert_int_equal(stage_after(&parked, &waiting, "building"), STAGE_ALLOCATED);
}

static void a_question_and_a_block_leave_the_stage_where_it_is(void **state)
{
	struct task running = at(*state, STAGE_BUILDING);
	struct task asking = with_workflow(asking_task(*state), WORKFLOW_AUTOPILOT, STAGE_BUILDING);
	struct task blocked = with_workflow(blocked_task(*state), WORKFLOW_AUTOPILOT, STAGE_BUILDING);

	assert_int_equal(stage_after(&running, &asking, ""), STAGE_BUILDING);
	assert_int_equal(stage_after(&asking, &asking, ""), STAGE_BUILDING);
	assert_int_equal(stage_after(&running, &blocked, ""), STAGE_BUILDING);
}

static void an_end_that_stays_keeps_its_stage(void **state)
{
	struct task done = at(*state, STAGE_COMPLETED);
	struct task running = at(*state, STAGE_BUILDING);
	struct task cancelled = with_workflow(cancelled_task(*state), WORKFLOW_AUTOPILOT, STAGE_BUILDING);

	done.stage = STAGE_MERGED;
	assert_int_equal(stage_after(&done, &done, ""), STAGE_MERGED);
	assert_int_equal(stage_after(&running, &cancelled, ""), STAGE_BUILDING);
}

static void a_word_for_what_has_ended_moves_nothing(void **state)
{
	struct task done = at(*state, STAGE_COMPLETED);
	struct outside_event building = told("building");
	enum refusal refusal;

	done.stage = STAGE_IN_PROGRESS;
	assert_null(workflow_find(plan_of(&done), &done, &building, &refusal));
	done.state = TASK_CANCELLED;
	assert_null(workflow_find(plan_of(&done), &done, &building, &refusal));
	assert_int_equal(refusal, REFUSED_NOTHING);
}

static void a_report_from_further_on_waits_for_the_validator(void **state)
{
	struct task before = with_workflow(running_task(*state), WORKFLOW_AUTOPILOT_DEPLOY, STAGE_DEPLOYING);
	struct task after = at(*state, STAGE_REVIEWING);
	struct outside_event silence = {0};
	struct stage_move move = workflow_follow(plan_of(&before), &before, &after, &silence);

	assert_int_equal(move.stage, STAGE_REVIEWING);
	assert_int_equal(move.action, ACTION_VALIDATE);
}

static void an_empty_word_says_neither_done_nor_failed(void **state)
{
	struct outside_event silence = {0}, done = told("completed"), other = told("building");

	(void)state;
	assert_false(outside_event_says_done(&silence));
	assert_false(outside_event_says_failed(&silence));
	assert_true(outside_event_says_done(&done));
	assert_false(outside_event_says_done(&other));
}

static void actions_have_names_and_are_found_by_them(void **state)
{
	(void)state;
	for (int i = ACTION_NONE + 1; i < ACTION_COUNT; i++)
		assert_int_equal(action_from_name(span_of(action_name((enum action)i))), i);
	assert_int_equal(action_from_name(span_of("no action")), ACTION_NONE);
}

static void a_workflow_that_nobody_defined_has_no_rules(void **state)
{
	struct workflows none = {0};

	(void)state;
	assert_ptr_equal(workflow_plan_of(&none, WORKFLOW_AUTOPILOT), &workflow_plan_unknown);
}

static void a_workflow_without_rules_has_no_name_and_an_unknown_plan(void **state)
{
	static const struct stage_rule none[] = {{.events = NULL}};
	struct workflows all = workflows_built_in;

	(void)state;
	all.plans[WORKFLOW_CONFIGURED] = (struct workflow_plan){.name = SPAN("emptied"), .rules = none};
	assert_int_equal(workflow_from_name(&all, SPAN("emptied")), WORKFLOW_NONE);
	assert_int_equal(workflow_from_name(&all, SPAN("unheard-of")), WORKFLOW_NONE);
	assert_ptr_equal(workflow_plan_of(&all, WORKFLOW_CONFIGURED + 1), &workflow_plan_unknown);
}

static void rules_that_report_fail_or_judge_are_common_to_all_workflows(void **state)
{
	(void)state;
	assert_true(stage_rule_is_common(&(struct stage_rule){.reports = true}));
	assert_true(stage_rule_is_common(&(struct stage_rule){.to = STAGE_FAILED}));
	assert_true(stage_rule_is_common(&(struct stage_rule){.guards = GUARD_VERDICT}));
	assert_false(stage_rule_is_common(&(struct stage_rule){.to = STAGE_BUILDING}));
}

/* The stage after that, and its action. */
static void expect_follow(
	struct task before, struct task after, const char *type, enum stage stage, enum action action)
{
	struct outside_event event = told(type);
	struct stage_move move = workflow_follow(plan_of(&after), &before, &after, &event);

	assert_int_equal(move.stage, stage);
	assert_int_equal(move.action, action);
}

static void while_it_runs_only_a_word_about_the_work_moves_the_stage(void **state)
{
	struct task task = at(*state, STAGE_IN_PROGRESS), next = task;

	expect_follow(task, task, "worker.building", STAGE_BUILDING, ACTION_NONE);
	expect_follow(task, task, "completed", STAGE_IN_PROGRESS, ACTION_NONE); /* the report does that */
	expect_follow(task, task, "failed", STAGE_IN_PROGRESS, ACTION_NONE);
	expect_follow(task, task, "unheard.of", STAGE_IN_PROGRESS, ACTION_NONE);
	next.attempt++;
	next.stage = STAGE_BUILDING;
	expect_follow(task, next, "worker.building", STAGE_IN_PROGRESS, ACTION_NONE);
}

static void a_report_with_another_word_is_a_report_all_the_same(void **state)
{
	struct task running = at(*state, STAGE_IN_PROGRESS), review = at(*state, STAGE_PR_CREATED);

	review.stage = STAGE_IN_PROGRESS;
	expect_follow(running, review, "worker.building", STAGE_PR_CREATED, ACTION_CREATE_PR);
	expect_follow(running, review, "unheard.of", STAGE_PR_CREATED, ACTION_CREATE_PR);
	review.stage = STAGE_PR_CREATED;
	expect_follow(review, review, "ci.passed", STAGE_REVIEWING, ACTION_VALIDATE);
}

static void in_line_again_work_begins_where_it_was_rejected_or_at_its_start(void **state)
{
	struct task verifying = at(*state, STAGE_VERIFYING), reviewing = at(*state, STAGE_REVIEWING);
	struct task ready = with_workflow(ready_task(*state), WORKFLOW_AUTOPILOT_DEPLOY, STAGE_VERIFYING);

	expect_follow(verifying, ready, "verification.failed", STAGE_IN_PROGRESS, ACTION_NONE);
	expect_follow(reviewing, ready, "validation.failed", STAGE_IN_PROGRESS, ACTION_NONE);
}

static void what_failed_and_is_done_after_all_is_completed(void **state)
{
	struct task failed = at(*state, STAGE_FAILED), done = at(*state, STAGE_COMPLETED);
	struct task review = at(*state, STAGE_VALIDATED);

	expect_follow(failed, done, "terminalized", STAGE_COMPLETED, ACTION_NONE);
	expect_follow(done, done, "unheard.of", STAGE_COMPLETED, ACTION_NONE);
	done.workflow = WORKFLOW_AUTOPILOT;
	expect_follow(review, done, "merge.success", plan_of(&done)->last, ACTION_NONE);
}

static void a_verdict_without_a_gate_is_a_note(void **state)
{
	struct task task = review_task(*state);

	task = noted(task_verdict(&task, 0, true), &task, EVENT_GATE_PASSED);
	noted(task_verdict(&task, 0, true), &task, EVENT_GATE_PASSED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_name_moves_the_stage_it_is_for),
		TEST(a_name_that_no_rule_has_moves_nothing),
		TEST(the_way_of_the_seed_is_gone_step_by_step),
		TEST(a_completed_word_with_a_pull_request_asks_for_none),
		TEST(every_rule_leads_forward_or_ends),
		TEST(no_word_leads_back),
		TEST(final_stages_hear_nothing_more),
		TEST(any_failure_counts_when_its_status_says_so),
		TEST(nobody_outside_ends_a_workers_claim),
		TEST(the_checks_move_what_was_reported_and_not_what_is_held),
		TEST(only_a_verdict_validates),
		TEST(a_merge_leads_on_from_validated_alone),
		TEST(every_other_gate_must_be_passed_before_the_last_stage),
		TEST(what_failed_is_lifted_by_an_authority_that_says_success),
		TEST(who_did_the_work_cannot_call_it_done),
		TEST(a_verdict_is_for_work_that_was_reported),
		TEST(a_rejection_and_a_retry_forget_the_verdicts),
		TEST(a_parked_task_is_allocated_and_begins_when_it_is_activated),
		TEST(a_report_goes_to_review_however_it_was_said),
		TEST(the_next_attempt_starts_where_work_starts),
		TEST(the_ends_have_their_stages),
		TEST(a_failure_from_outside_is_the_end_and_costs_what_was_reported),
		TEST(a_task_without_a_workflow_has_no_stage),
		TEST(names_are_found_again),
		TEST(a_plan_has_rules_of_its_own),
		TEST(a_task_without_a_workflow_is_shown_in_the_stage_of_its_state),
		TEST(what_is_told_while_it_rests_moves_its_stage_only_if_it_is_in_line),
		TEST(a_question_and_a_block_leave_the_stage_where_it_is),
		TEST(an_end_that_stays_keeps_its_stage),
		TEST(a_word_for_what_has_ended_moves_nothing),
		TEST(a_report_from_further_on_waits_for_the_validator),
		TEST(an_empty_word_says_neither_done_nor_failed),
		TEST(actions_have_names_and_are_found_by_them),
		TEST(a_workflow_that_nobody_defined_has_no_rules),
		TEST(a_workflow_without_rules_has_no_name_and_an_unknown_plan),
		TEST(rules_that_report_fail_or_judge_are_common_to_all_workflows),
		TEST(while_it_runs_only_a_word_about_the_work_moves_the_stage),
		TEST(a_report_with_another_word_is_a_report_all_the_same),
		TEST(in_line_again_work_begins_where_it_was_rejected_or_at_its_start),
		TEST(what_failed_and_is_done_after_all_is_completed),
		TEST(a_verdict_without_a_gate_is_a_note),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
