/*
 * Status: clients of slot workers know five words and move tasks between them. Each move is one of the decisions that
 * everybody else asks for by its own name; any other move is refused with the state that was found.
 *
 * Rejected: letting an operator push a task out of anybody's hands this way. Its holder would go on with the work;
 * cancel stops the worker, or its lease runs out.
 */
#include <assert.h>

#include "core/task/task.h"
#include "core/task/move.h"

/* `in-progress`: the slot takes it, as confirmed work. A slot that owns nothing here cannot. */
static struct task_decision take(
	const struct task *task, const struct claimant *by, enum queue_state queue, const struct given *given)
{
	struct claimant confirming = *by;

	if (task->state != TASK_READY || task->owner == 0)
		return task_refuse(task, REFUSED_BAD_TRANSITION);
	confirming.slot = task->owner;
	confirming.named = true;
	confirming.confirms = true;
	confirming.lease_ms = task->timeout_ms;
	return task_claim(task, &confirming, queue, given);
}

static struct task_decision repeat(const struct task *task)
{
	struct task_decision again = task_unchanged(task);

	again.repeated = true;
	return again;
}

/* The other statuses: the holder says how its claim ended. */
static struct task_decision end(const struct task *task, enum task_status status, const struct proof *proof,
	const struct given *given)
{
	switch (status) {
	case STATUS_TODO:
		/* an open question stays open: it is answered, not given back */
		if (!task_state_must_hold_claim(task->state))
			break;
		return task_release(task, proof, 0, given);
	case STATUS_REVIEW:
		return task_report(task, proof, given);
	case STATUS_BLOCKED:
		return task_block(task, proof, CODE_EXECUTION_ERROR, given);
	case STATUS_DONE:
		return task_complete(task, proof, given);
	case STATUS_NONE:
	case STATUS_IN_PROGRESS:
	case STATUS_CANCELLED:
	case TASK_STATUS_COUNT:
		break;
	}
	return task_refuse(task, REFUSED_BAD_TRANSITION);
}

struct task_decision task_set_status(const struct task *task, enum task_status status,
	const struct claimant *by, enum queue_state queue, const struct given *given)
{
	bool held = task_is_claimed(task);
	bool own = held && task->claim.holder == by->worker->handle;

	assert(status != STATUS_NONE);
	if (held && !own)
		return task_refuse(task, REFUSED_CLAIMED_BY_OTHER);
	if (task_status_of(task->state) == status && (own || status != STATUS_IN_PROGRESS))
		return repeat(task);
	if (status == STATUS_IN_PROGRESS)
		return take(task, by, queue, given);
	struct proof proof = {
		.holder = by->worker->handle,
		.principal = task->claimant, /* the slot is whose it is; its claim was compared above */
		.by_name = true,
	};
	return own ? end(task, status, &proof, given) : task_refuse(task, REFUSED_BAD_TRANSITION);
}

struct task_decision task_report_status(const struct task *task, enum task_status status,
	const struct proof *proof, const struct given *given)
{
	enum refusal refusal = task_proof_refusal(task, proof);

	assert(status != STATUS_NONE);
	if (refusal != REFUSED_NOTHING)
		return task_refuse_proof(task, proof, refusal);
	return task_status_of(task->state) == status ? repeat(task) : end(task, status, proof, given);
}
