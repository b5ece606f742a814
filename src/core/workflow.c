#include "core/workflow.h"

#include <assert.h>
#include <string.h>

#include "core/task/task.h"

// clang-format off
#define S(name)   STAGE_BIT(STAGE_##name)
#define WORKING   (S(IN_PROGRESS) | S(BUILDING))
#define LIVE      (S(ALLOCATED) | WORKING | S(PR_CREATED) | S(REVIEWING) | S(VALIDATED) | S(MERGED) | S(DEPLOYING) | S(VERIFYING))

/* The first that fits is taken. */
const struct stage_rule workflow_rules[] = {
	/* activation: unparking a task does the same */
	{"lifecycle.allocated lifecycle.started commandhub.task.scheduled run.started",
		S(ALLOCATED), STAGE_IN_PROGRESS, GUARD_UNHELD, ACTION_NONE, STAGE_NONE, false},
	/* what its worker says; a repeated "started" only confirms */
	{"started claimed dispatch.accepted",
		S(IN_PROGRESS), STAGE_IN_PROGRESS, 0, ACTION_NONE, STAGE_NONE, false},
	{"building worker_backend.start worker_frontend.start",
		S(IN_PROGRESS), STAGE_BUILDING, 0, ACTION_NONE, STAGE_NONE, false},
	{"pr.created pr_created pull_request.opened create_pr.succeeded",
		WORKING, STAGE_PR_CREATED, 0, ACTION_NONE, STAGE_NONE, false},
	{"completed success",
		S(PR_CREATED), STAGE_REVIEWING, GUARD_HOLDER, ACTION_VALIDATE, STAGE_NONE, true},
	{"completed success",
		WORKING, STAGE_PR_CREATED, GUARD_HOLDER | GUARD_NO_PR, ACTION_CREATE_PR, STAGE_NONE, true},
	{"completed success",
		WORKING, STAGE_PR_CREATED, GUARD_HOLDER, ACTION_NONE, STAGE_NONE, true},
	/* the checks, the validator, the merge */
	{"ci.passed checks.passed",
		S(PR_CREATED), STAGE_REVIEWING, GUARD_REVIEW, ACTION_VALIDATE, STAGE_NONE, false},
	{"validation.passed validator.passed",
		S(PR_CREATED) | S(REVIEWING), STAGE_VALIDATED, GUARD_REVIEW | GUARD_VERDICT, ACTION_MERGE, STAGE_NONE, false},
	{"validation.failed validator.failed",
		S(PR_CREATED) | S(REVIEWING) | S(VALIDATED), STAGE_FAILED, GUARD_REVIEW, ACTION_NONE, STAGE_IN_PROGRESS, false},
	{"ci.failed checks.failed",
		S(PR_CREATED) | S(REVIEWING), STAGE_FAILED, GUARD_REVIEW, ACTION_NONE, STAGE_IN_PROGRESS, false},
	{"merge.success merge.succeeded merge.completed safe_merge.executed pull_request.merged",
		S(VALIDATED), STAGE_MERGED, GUARD_REVIEW | GUARD_GATED, ACTION_NONE, STAGE_NONE, false},
	/* the deploy */
	{"deploy.started deploy.gateway.started deploy.service.started",
		S(MERGED), STAGE_DEPLOYING, GUARD_REVIEW, ACTION_NONE, STAGE_NONE, false},
	{"deploy.succeeded deploy.completed deploy.gateway.success deploy.service.succeeded",
		S(DEPLOYING), STAGE_VERIFYING, GUARD_REVIEW, ACTION_VERIFY, STAGE_NONE, false},
	{"verification.passed verify.passed",
		S(VERIFYING), STAGE_COMPLETED, GUARD_REVIEW, ACTION_NONE, STAGE_NONE, false},
	{"verification.failed verify.failed",
		S(VERIFYING), STAGE_FAILED, GUARD_REVIEW, ACTION_NONE, STAGE_NONE, false},
	/* failures */
	{"failed worker_backend.failed worker_frontend.failed",
		LIVE, STAGE_FAILED, GUARD_HOLDER, ACTION_NONE, STAGE_NONE, false},
	{"failed worker_backend.failed worker_frontend.failed dispatch.failed create_pr.failed pr.failed",
		LIVE, STAGE_FAILED, GUARD_UNHELD, ACTION_NONE, STAGE_NONE, false},
	{"merge.failed safe_merge.failed",
		S(VALIDATED), STAGE_FAILED, GUARD_UNHELD, ACTION_NONE, STAGE_NONE, false},
	{"deploy.failed deploy.gateway.failed deploy.service.failed",
		S(MERGED) | S(DEPLOYING), STAGE_FAILED, GUARD_UNHELD, ACTION_NONE, STAGE_NONE, false},
	{"*.error *.failed",
		LIVE, STAGE_FAILED, GUARD_UNHELD | GUARD_FAILED, ACTION_NONE, STAGE_NONE, false},
	/* the one word that a final stage hears: what was called failed was a success after all */
	{"lifecycle.terminalized terminalized worker_runner.terminalized",
		S(FAILED), STAGE_COMPLETED, GUARD_SUCCESS | GUARD_VERDICT, ACTION_NONE, STAGE_NONE, false},
	{"terminalize.success", /* its name says what the status says of the others */
		S(FAILED), STAGE_COMPLETED, GUARD_VERDICT, ACTION_NONE, STAGE_NONE, false},
	{NULL, 0, STAGE_NONE, 0, ACTION_NONE, STAGE_NONE, false},
};

static const char *const prefixes[] = {
	"vtid.stage.", "vtid.", "worker_orchestrator.", "orchestrator.", "worker.", "execution.", "autopilot.", "cicd.", "github.",
};
// clang-format on

enum {
	PREFIX_COUNT = sizeof prefixes / sizeof *prefixes,
};

/* ---- names --------------------------------------------------------------------------------------- */

struct span outside_event_bare_name(struct span type)
{
	for (int i = 0; i < PREFIX_COUNT; i++) {
		size_t len = strlen(prefixes[i]);
		if (type.len > len && memcmp(type.data, prefixes[i], len) == 0) {
			type = (struct span){type.data + len, type.len - len};
			i = -1; /* another may stand behind it */
		}
	}
	return type;
}

static bool fits(struct span type, struct span name)
{
	if (name.data[0] != '*')
		return span_equal(type, name);
	/* "*.x": ends with ".x", or is "x" */
	struct span end = {name.data + 1, name.len - 1};
	if (span_equal(type, (struct span){end.data + 1, end.len - 1}))
		return true;
	return type.len > end.len && memcmp(type.data + type.len - end.len, end.data, end.len) == 0;
}

/* Does the rule know that name? With and without its prefixes. */
static bool stage_rule_names(const struct stage_rule *rule, struct span type)
{
	struct span bare = outside_event_bare_name(type);

	for (const char *at = rule->events; *at; at += strspn(at, " ")) {
		struct span name = {at, strcspn(at, " ")};
		if (fits(bare, name))
			return true;
		at += name.len;
	}
	return false;
}

static bool is_any_of(struct span status, const char *one, const char *other)
{
	return span_equal(status, span_of(one)) || span_equal(status, span_of(other));
}

/* ---- which rule ----------------------------------------------------------------------------------- */

/* All guards except the ones that refuse. */
static bool guards_hold(unsigned guards, const struct task *task, const struct outside_event *event)
{
	if ((guards & GUARD_HOLDER) && !(task_is_claimed(task) && event->by_holder))
		return false;
	if ((guards & GUARD_REVIEW) && task->state != TASK_REVIEW)
		return false;
	if ((guards & GUARD_UNHELD) && task_is_claimed(task))
		return false;
	if ((guards & GUARD_FAILED) && !is_any_of(event->status, "error", "failed"))
		return false;
	if ((guards & GUARD_SUCCESS) && !is_any_of(event->status, "success", "succeeded"))
		return false;
	return !((guards & GUARD_NO_PR) && event->has_pr);
}

/* Does the way to that stage lead through a gate that was not passed? */
static bool is_gated(const struct workflow_plan *plan, const struct stage_rule *rule, const struct task *task,
	const struct outside_event *event)
{
	bool all_passed = task->gates_passed == task_gates_all(task);
	bool validates = (rule->guards & GUARD_VERDICT) != 0;

	if (validates)
		return !event->is_verdict;
	return rule->to == plan->last && !all_passed;
}

static bool comes_too_early(const struct stage_rule *rule, enum stage stage)
{
	return (rule->guards & GUARD_GATED) != 0 && stage < STAGE_VALIDATED;
}

const struct stage_rule *workflow_find(const struct workflow_plan *plan, const struct task *task,
	const struct outside_event *event, enum refusal *ret_refusal)
{
	*ret_refusal = REFUSED_NOTHING;
	if (task->workflow == WORKFLOW_NONE || event->type.len == 0)
		return NULL;
	for (const struct stage_rule *rule = plan->rules; rule->events; rule++) {
		if (!stage_rule_names(rule, event->type))
			continue;
		if (comes_too_early(rule, task->stage)) {
			*ret_refusal = REFUSED_GATE_REQUIRED;
			return NULL;
		}
		if (!(rule->from & STAGE_BIT(task->stage)) || !guards_hold(rule->guards, task, event))
			continue;
		/* a task that is done stays so: what its workflow has no stage for is only told */
		if (task->state == TASK_DONE || task->state == TASK_CANCELLED)
			return NULL;
		if (is_gated(plan, rule, task, event)) {
			*ret_refusal = REFUSED_GATE_REQUIRED;
			return NULL;
		}
		assert(rule->to >= task->stage || rule->on_reject != STAGE_NONE ||
			task->stage == STAGE_FAILED);
		return rule;
	}
	return NULL;
}

static const struct stage_rule *first_rule(bool reports)
{
	const struct stage_rule *rule = workflow_rules;

	while (reports ? !rule->reports : rule->to != STAGE_FAILED || !(rule->guards & GUARD_HOLDER))
		rule++;
	return rule;
}

bool outside_event_says_done(const struct outside_event *event)
{
	return event->type.len > 0 && stage_rule_names(first_rule(true), event->type);
}

bool outside_event_says_failed(const struct outside_event *event)
{
	return event->type.len > 0 && stage_rule_names(first_rule(false), event->type);
}

/* ---- where that leads ------------------------------------------------------------------------------- */

enum stage workflow_first(enum task_state state)
{
	return state == TASK_READY ? STAGE_IN_PROGRESS : STAGE_ALLOCATED;
}

enum stage workflow_stage_of(const struct task *task)
{
	if (task->workflow != WORKFLOW_NONE)
		return task->stage;
	switch (task->state) {
	case TASK_PENDING:
	case TASK_SCHEDULED:
	case TASK_WAITING:
		return STAGE_ALLOCATED;
	case TASK_REVIEW:
		return STAGE_REVIEWING;
	case TASK_DONE:
		return STAGE_COMPLETED;
	case TASK_FAILED:
	case TASK_CANCELLED:
		return STAGE_FAILED;
	case TASK_READY:
	case TASK_CLAIMED:
	case TASK_RUNNING:
	case TASK_ASKING:
	case TASK_BLOCKED:
	case TASK_NOWHERE:
	case TASK_STATE_COUNT:
		break;
	}
	return STAGE_IN_PROGRESS; /* in line for a worker, or with one */
}

/* The work was reported: told with its name, or without one. */
static struct stage_move after_report(
	const struct workflow_plan *plan, const struct task *before, const struct outside_event *event)
{
	struct outside_event done = {.type = SPAN("completed"), .by_holder = true, .has_pr = event->has_pr};
	enum refusal refusal;
	const struct stage_rule *rule = workflow_find(plan, before, event, &refusal);

	if (!rule || !rule->reports)
		rule = workflow_find(plan, before, &done, &refusal);
	if (!rule) /* it was reported from further on, or from nowhere: it waits for the validator */
		return (struct stage_move){STAGE_REVIEWING, ACTION_VALIDATE};
	return (struct stage_move){rule->to, rule->action};
}

/* What was told moves the stage and nothing else. */
static struct stage_move after_outside_event(
	const struct workflow_plan *plan, const struct task *before, const struct outside_event *event)
{
	enum refusal refusal;
	const struct stage_rule *rule = workflow_find(plan, before, event, &refusal);

	if (!rule || rule->to == STAGE_FAILED || rule->reports)
		return (struct stage_move){before->stage, ACTION_NONE};
	return (struct stage_move){rule->to, rule->action};
}

/* In line again: the next attempt begins where the rule that rejected the last one says, or where work begins. One that
 * was never ready has not begun yet. */
static enum stage stage_in_line(const struct workflow_plan *plan, const struct task *before,
	const struct task *after, const struct outside_event *event)
{
	enum refusal refusal;
	const struct stage_rule *rule = workflow_find(plan, before, event, &refusal);

	if (rule && rule->on_reject != STAGE_NONE)
		return rule->on_reject;
	if (after->stage > STAGE_IN_PROGRESS)
		return STAGE_IN_PROGRESS;
	return after->state == TASK_READY ? STAGE_IN_PROGRESS : after->stage;
}

struct stage_move workflow_follow(const struct workflow_plan *plan, const struct task *before,
	const struct task *after, const struct outside_event *event)
{
	struct stage_move stay = {after->stage, ACTION_NONE};

	if (after->workflow == WORKFLOW_NONE)
		return stay;
	switch (after->state) {
	case TASK_PENDING:
		return stay;
	case TASK_SCHEDULED:
	case TASK_WAITING:
	case TASK_READY:
		if (before->state == after->state)
			return after->state == TASK_READY ? after_outside_event(plan, after, event) : stay;
		stay.stage = stage_in_line(plan, before, after, event);
		return stay;
	case TASK_CLAIMED:
	case TASK_RUNNING:
		if (after->attempt != before->attempt) {
			stay.stage = STAGE_IN_PROGRESS;
			return stay;
		}
		return after_outside_event(plan, after, event);
	case TASK_ASKING:
	case TASK_BLOCKED:
		return before->state == after->state ? after_outside_event(plan, after, event) : stay;
	case TASK_REVIEW:
		return before->state == TASK_REVIEW ? after_outside_event(plan, after, event)
						    : after_report(plan, before, event);
	case TASK_FAILED:
		stay.stage = STAGE_FAILED;
		return stay;
	case TASK_DONE:
		stay.stage = before->state == TASK_FAILED ? STAGE_COMPLETED : plan->last;
		if (before->state == TASK_DONE)
			stay.stage = after->stage;
		return stay;
	case TASK_CANCELLED:
	case TASK_NOWHERE:
	case TASK_STATE_COUNT:
		break;
	}
	return stay;
}

/* ---- tables ------------------------------------------------------------------------------------------ */

static const struct stage_rule no_rules[] = {{.events = NULL}};

const struct workflow_plan workflow_plan_unknown = {
	.name = {"unknown", sizeof "unknown" - 1}, .text = "", .last = STAGE_COMPLETED, .rules = no_rules};

const struct workflows workflows_built_in = {{
#define X(symbol, number, wire, last_stage, words) \
	[number] = {{wire, sizeof(wire) - 1}, words, STAGE_##last_stage, workflow_rules},
	WORKFLOWS(X)
#undef X
}};

static const char *const stage_names[STAGE_COUNT] = {
#define X(name, number, wire) [number] = wire,
	STAGES(X)
#undef X
};

static const char *const action_names[ACTION_COUNT] = {
#define X(name, number, wire) [number] = wire,
	ACTIONS(X)
#undef X
};

const struct workflow_plan *workflow_plan_of(const struct workflows *all, enum workflow workflow)
{
	assert(workflow > WORKFLOW_NONE);
	assert(workflow < WORKFLOW_MAX);
	return all->plans[workflow].rules ? &all->plans[workflow] : &workflow_plan_unknown;
}

enum workflow workflow_from_name(const struct workflows *all, struct span name)
{
	for (int i = WORKFLOW_NONE + 1; i < WORKFLOW_MAX && name.len > 0; i++) {
		const struct workflow_plan *plan = &all->plans[i];
		if (plan->rules && plan->rules->events && span_equal(name, plan->name))
			return (enum workflow)i;
	}
	return WORKFLOW_NONE;
}

bool stage_rule_is_common(const struct stage_rule *rule)
{
	return rule->reports || rule->to == STAGE_FAILED || (rule->guards & GUARD_VERDICT) != 0;
}

const char *stage_name(enum stage stage)
{
	assert(stage > STAGE_NONE);
	assert(stage < STAGE_COUNT);
	return stage_names[stage];
}

enum stage stage_from_name(struct span name)
{
	for (int i = STAGE_NONE + 1; i < STAGE_COUNT; i++) {
		if (span_equal(name, span_of(stage_names[i])))
			return (enum stage)i;
	}
	return STAGE_NONE;
}

const char *action_name(enum action action)
{
	assert(action > ACTION_NONE);
	assert(action < ACTION_COUNT);
	return action_names[action];
}

enum action action_from_name(struct span name)
{
	for (int i = ACTION_NONE + 1; i < ACTION_COUNT; i++) {
		if (span_equal(name, span_of(action_names[i])))
			return (enum action)i;
	}
	return ACTION_NONE;
}
