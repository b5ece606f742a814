/*
 * Stages and gates: what they write down, and the two ends that a workflow brings by itself.
 *
 * A stage and a verdict are notes: the state stays. What follows from them (the task is done, it goes back, it has
 * failed) is one of the other decisions, with an event of its own, in the same turn.
 */
#include <assert.h>

#include "core/task/task.h"
#include "core/task/move.h"

struct task_decision task_set_stage(const struct task *task, enum stage stage)
{
	struct task_decision decision = task_decide(task);

	assert(task->workflow != WORKFLOW_NONE);
	if (stage == task->stage)
		return decision;
	decision.task.stage = stage;
	task_move(&decision, EVENT_TASK_STAGE_CHANGED, task->state);
	return task_decided(task, decision);
}

struct task_decision task_open_gate(const struct task *task, uint32_t gate)
{
	struct task_decision decision = task_decide(task);

	assert((gate & ~task_gates_all(task)) == 0);
	task_move(&decision, EVENT_GATE_OPENED, task->state);
	return task_decided(task, decision);
}

/* A gate is open while the work waits for a verdict. Passing a gate twice is the same as once. */
struct task_decision task_verdict(const struct task *task, uint32_t gate, bool passes)
{
	assert((gate & ~task_gates_all(task)) == 0);
	if (task->state != TASK_REVIEW)
		return task_refuse(task, REFUSED_BAD_TRANSITION);

	struct task_decision decision = task_decide(task);

	if (passes && gate != 0 && (task->gates_passed & gate)) {
		decision.repeated = true;
		return decision;
	}
	if (passes)
		decision.task.gates_passed |= gate;
	task_move(&decision, passes ? EVENT_GATE_PASSED : EVENT_GATE_REJECTED, task->state);
	return task_decided(task, decision);
}

/* Nobody holds it: no word from outside takes a claim away. */
struct task_decision task_fail_outside(const struct task *task)
{
	struct task_decision decision = task_decide(task);

	assert(!task_is_claimed(task));
	if (task->state == TASK_REVIEW) /* the work that was reported is what failed */
		decision.task.spent++;
	task_move(&decision, EVENT_TASK_FAILED, TASK_FAILED);
	decision.task.code = CODE_EXECUTION_ERROR;
	decision.follow = FOLLOW_PARENT_DEAD;
	return task_decided(task, decision);
}

struct task_decision task_revive(const struct task *task)
{
	struct task_decision decision = task_decide(task);

	assert(task->state == TASK_FAILED);
	task_move(&decision, EVENT_TASK_COMPLETED, TASK_DONE);
	decision.task.code = CODE_NONE;
	decision.follow = FOLLOW_PARENT_REVIVED;
	return task_decided(task, decision);
}
