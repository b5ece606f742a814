/*
 * Subtasks, and waiting for them.
 *
 *   running ── hear(waits) ──▶ running, its time stands still ── go on ──▶ running
 *                                │ its supervisor ends the process
 *   running ── suspend ──────────┴──▶ waiting ── all have ended ──▶ ready, for its host first
 *
 * A task that waits for its subtasks waits as for parents, by the same count; but one that failed has ended like any other:
 * its parent is told, and decides.
 */
#include "core/task/subtask.h"

#include <assert.h>

#include "core/task/move.h"

void subtask_inherit(struct task *draft, const struct task *parent, bool says_priority)
{
	if (!says_priority)
		draft->priority = parent->priority;
	if (draft->queue == 0)
		draft->queue = parent->queue;
	if (draft->executor == 0)
		draft->executor = parent->executor;
	if (draft->credential == 0)
		draft->credential = parent->credential;
	draft->subtask_of = parent->seq;
}

enum subtask_excess subtask_exceeds(const struct task *draft, const struct task *parent, bool is_listed,
	const struct subtask_place *place, const struct rules *rules)
{
	if (place->level > SUBTASK_LEVELS_MAX)
		return EXCESS_LEVELS;
	if (place->children >= rules->task_children)
		return EXCESS_CHILDREN;
	if (place->in_tree >= rules->task_tree)
		return EXCESS_TREE;
	if (draft->priority > parent->priority)
		return EXCESS_PRIORITY;
	if (draft->executor != parent->executor && !is_listed)
		return EXCESS_EXECUTOR;
	if (draft->executor == 0 && draft->queue != parent->queue)
		return EXCESS_QUEUE;
	if (draft->credential != parent->credential)
		return EXCESS_CREDENTIAL;
	return EXCESS_NONE;
}

uint32_t subtask_budget_excess(
	const struct subtask_budget *budget, const double taken[SUBTASK_BUDGET_PARTS], double *ret_left)
{
	uint32_t part = 0;

	*ret_left = 0;
	for (; part < SUBTASK_BUDGET_PARTS; part++) {
		if (!(budget->limited & 1u << part))
			continue;
		*ret_left = budget->left[part] - taken[part];
		bool fits = budget->said & 1u << part && budget->wanted[part] <= *ret_left;
		if (*ret_left <= 0 || !fits)
			break;
	}
	return part;
}

/* What is about to end begins nothing. */
enum refusal subtask_refusal(const struct task *parent, const struct proof *proof)
{
	enum refusal refusal = task_proof_refusal(parent, proof);

	return refusal == REFUSED_NOTHING && parent->claim.stopping ? REFUSED_BAD_TRANSITION : refusal;
}

struct task_decision task_begin_tree(const struct task *task)
{
	struct task_decision decision = task_decide(task);

	decision.task.subtasks = SUBTASKS_MADE;
	task_move(&decision, EVENT_TASK_UPDATED, task->state);
	return task_decided(task, decision);
}

bool task_calls_off_subtasks(const struct task *before, const struct task *after)
{
	bool is_dead = after->state == TASK_FAILED || after->state == TASK_CANCELLED;
	bool is_cancelling = after->claim.stopping && after->code != CODE_STOPPED;

	if (after->subtasks == SUBTASKS_NONE)
		return false;
	return (is_dead && before->state != after->state) ||
		(is_cancelling && (!before->claim.stopping || before->code == CODE_STOPPED));
}

/* ---- waiting ---------------------------------------------------------------------------------------------------- */

/* Its time runs again. */
static void end_waiting(struct claim *claim, const struct given *given)
{
	if (claim->asked_at_ms != 0)
		claim->run_until_ms += given->now.lease_ms - claim->asked_at_ms;
	claim->asked_at_ms = 0;
}

struct task_decision task_hear(
	const struct task *task, const struct proof *proof, bool waits, const struct given *given)
{
	if (waits && task->state == TASK_ASKING && task_proof_refusal(task, proof) == REFUSED_NOTHING)
		return task_refuse(task, REFUSED_BAD_TRANSITION);

	struct task_decision decision = task_progress(task, proof, 0, given);
	struct claim *claim = &decision.task.claim;

	if (decision.refusal != REFUSED_NOTHING)
		return decision;
	claim->reported = true;
	if (!waits && task->state != TASK_ASKING)
		end_waiting(claim, given);
	else if (waits && claim->asked_at_ms == 0)
		claim->asked_at_ms = given->now.lease_ms;
	return task_decided(task, decision);
}

struct task_decision task_go_on(const struct task *task, const struct proof *proof, const struct given *given)
{
	enum refusal refusal = task_proof_refusal(task, proof);

	if (refusal != REFUSED_NOTHING)
		return task_refuse_proof(task, proof, refusal);

	struct task_decision decision = task_unchanged(task);

	if (task->state != TASK_RUNNING || task->claim.asked_at_ms == 0)
		return decision;
	end_waiting(&decision.task.claim, given);
	decision.task.claim.reported = false;
	return task_decided(task, decision);
}

void task_wait_for_subtasks(
	struct task_decision *decision, uint32_t open_subtasks, uint32_t host, const struct given *given)
{
	struct task *task = &decision->task;

	task->open_parents = open_subtasks;
	task->dead_parents = 0;
	task->ready_at_ms = given->now.wall_ms;
	task->code = CODE_NONE;
	if (open_subtasks > 0)
		task->subtasks = SUBTASKS_AWAITED;
	task_move(decision, EVENT_TASK_SUSPENDED, open_subtasks > 0 ? TASK_WAITING : TASK_READY);
	task->resume_host = host;
	task->resume_until_ms =
		open_subtasks == 0 && host != 0 ? given->now.wall_ms + given->rules->ask_resume_ms : 0;
}
