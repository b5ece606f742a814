/*
 * Workflows: the stages of a task, and what moves it from one to the next, as data.
 *
 *   allocated ▶ in_progress ▶ building ▶ pr_created ▶ reviewing ▶ validated ▶ merged ▶ deploying ▶ verifying ▶ completed
 *                                                                                                   failed, from any
 *
 * A workflow is an ordered table of rules: what somebody tells (a worker with its progress, CI, a code host, a person)
 * is compared with the names of each rule, from its first to its last, and the first that fits the stage and its guards
 * moves the task. Stages move forward within an attempt; a rejection or a retry starts the next one further back.
 * What nobody has a rule for is recorded and moves nothing.
 *
 * States stay what they are for every task; a stage says more. Before `reviewing` the task is where its claims put it,
 * from there on it is in review, the last stage of its workflow is done, and `failed` is failed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "core/refusal.h"
#include "core/task/state.h"

struct task;

// clang-format off
#define STAGES(X) \
	X(ALLOCATED,    1, "allocated") \
	X(IN_PROGRESS,  2, "in_progress") \
	X(BUILDING,     3, "building") \
	X(PR_CREATED,   4, "pr_created") \
	X(REVIEWING,    5, "reviewing") \
	X(VALIDATED,    6, "validated") \
	X(MERGED,       7, "merged") \
	X(DEPLOYING,    8, "deploying") \
	X(VERIFYING,    9, "verifying") \
	X(COMPLETED,   10, "completed") \
	X(FAILED,      11, "failed")

#define WORKFLOWS(X) \
	X(AUTOPILOT,        1, "autopilot",        MERGED,    "merged is done") \
	X(AUTOPILOT_DEPLOY, 2, "autopilot-deploy", COMPLETED, "goes on with deploying and verifying; completed is done")

#define ACTIONS(X) \
	X(CREATE_PR, 1, "create_pr") \
	X(VALIDATE,  2, "validate") \
	X(MERGE,     3, "merge") \
	X(VERIFY,    4, "verify")
// clang-format on

/* Stored numbers; also the order of the stages. */
enum stage {
	STAGE_NONE = 0,
#define X(name, number, wire) STAGE_##name = number,
	STAGES(X)
#undef X
		STAGE_COUNT
};

/* Stored numbers. */
enum workflow {
	WORKFLOW_NONE = 0,
#define X(name, number, wire, last, text) WORKFLOW_##name = number,
	WORKFLOWS(X)
#undef X
		WORKFLOW_COUNT,
	WORKFLOW_CONFIGURED = 16, /* the first workflow of a configuration; see struct workflows */
	WORKFLOW_MAX = 64,        /* a byte in memory */
};

/* What a move sets going. Stored numbers. */
enum action {
	ACTION_NONE = 0,
#define X(name, number, wire) ACTION_##name = number,
	ACTIONS(X)
#undef X
		ACTION_COUNT
};

#define STAGE_BIT(stage) (1u << (stage))

enum {
	WORKFLOW_NAME_MAX = 64, /* bytes */
};

/* The gate in front of `validated`; every task of a workflow has it. */
#define WORKFLOW_GATE "validate"

/* All that a rule asks for must be so. */
enum guard {
	GUARD_HOLDER = 1 << 0,  /* the holder of the claim says it, or whose worker that is */
	GUARD_REVIEW = 1 << 1,  /* the task is in review */
	GUARD_UNHELD = 1 << 2,  /* nobody holds it: no word from outside ends a worker's claim */
	GUARD_FAILED = 1 << 3,  /* what was told has the status "error" or "failed" */
	GUARD_SUCCESS = 1 << 4, /* … "success" */
	GUARD_NO_PR = 1 << 5,   /* it names no pull request */
	GUARD_VERDICT = 1 << 6, /* it is a verdict: a caller that may not give one is refused */
	GUARD_GATED = 1 << 7,   /* told before its stage was reached it is refused: the gate was not passed */
};

struct stage_rule {
	const char *events; /* names without prefixes, a blank between them; "*.x" is any that ends with x */
	uint32_t from;      /* bits of stages */
	enum stage to;
	unsigned guards;
	enum action action;
	enum stage on_reject; /* the move rejects the attempt, and the next one starts there */
	bool reports;         /* the claim ends with it: the work waits for a verdict */
};

extern const struct stage_rule workflow_rules[]; /* of the built-in workflows; the last row has no events */

/* A workflow, all of it. */
struct workflow_plan {
	struct span name;
	const char *text;
	enum stage last;                /* the stage that is done */
	const struct stage_rule *rules; /* in order; the last one has no events */
};

/* What a task follows whose workflow is not configured any more: its first rule is the one without events. */
extern const struct workflow_plan workflow_plan_unknown;

/* All workflows, by number. A name keeps its number: tasks store the number of their workflow. */
struct workflows {
	struct workflow_plan plans[WORKFLOW_MAX]; /* rules NULL: no workflow has that number */
};

extern const struct workflows workflows_built_in;

/* Never NULL. */
const struct workflow_plan *workflow_plan_of(const struct workflows *all, enum workflow workflow);

/* Its number; WORKFLOW_NONE: no workflow has that name now. */
enum workflow workflow_from_name(const struct workflows *all, struct span name);

/* Must every workflow have that rule? The report of a worker, the verdict of the gate and failures are always heard. */
bool stage_rule_is_common(const struct stage_rule *rule);

/* An event from outside: what CI, a code host, a person or a worker says about a task. */
struct outside_event {
	struct span type; /* empty: no event */
	struct span status;
	bool has_pr;     /* it names a pull request */
	bool is_verdict; /* its sender may give the verdict, and has held no attempt of the task */
	bool by_holder;  /* its sender holds the claim, or owns the worker that holds it */
};

/* The rule that moves the task, NULL if none does; a refusal if one would, were its gate passed. */
const struct stage_rule *workflow_find(const struct workflow_plan *plan, const struct task *task,
	const struct outside_event *event, enum refusal *ret_refusal);

/* The type of an event without its prefixes. */
struct span outside_event_bare_name(struct span type);

/* Does a worker say that its work is done, or has failed? For tasks without a workflow. */
bool outside_event_says_done(const struct outside_event *event);
bool outside_event_says_failed(const struct outside_event *event);

/* The stage of a task after a decision about it, and the actions that follow. */
struct stage_move {
	enum stage stage;
	enum action action;
};

struct stage_move workflow_follow(const struct workflow_plan *plan, const struct task *before,
	const struct task *after, const struct outside_event *event);

/* Where a task stands, for those who know only stages: its own, or the one that goes with its state. */
enum stage workflow_stage_of(const struct task *task);

/* Where a new task of a workflow begins. */
enum stage workflow_first(enum task_state state);

const char *stage_name(enum stage stage);
enum stage stage_from_name(struct span name); /* STAGE_NONE: unknown */
const char *action_name(enum action action);
enum action action_from_name(struct span name); /* ACTION_NONE: unknown */
