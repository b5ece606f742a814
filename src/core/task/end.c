/*
 * How an attempt ends: complete, fail, review, block, release; and the verdicts on what was reported.
 *
 * A report repeated with the same fence and the same outcome is answered as the first time; another outcome
 * is refused. A report whose claim the server has ended before is stale: it changes nothing, and its
 * result is kept apart for the operator.
 */
#include <assert.h>

#include "base/take.h"
#include "core/task/task.h"
#include "core/task/move.h"

/* May this report end the claim? REFUSED_NOTHING with *ret_repeated set means that it already has. */
static enum refusal report_refusal(
	const struct task *task, const struct proof *proof, enum claim_end outcome, bool *ret_repeated)
{
	if (task_is_claimed(task)) {
		bool holds = task_is_held_by(task, proof);
		if (proof->by_name)
			return holds ? REFUSED_NOTHING : REFUSED_CLAIMED_BY_OTHER;
		return holds && task->fence == proof->fence ? REFUSED_NOTHING : REFUSED_STALE_CLAIM;
	}
	if (proof->by_name)
		return task_state_is_final(task->state) ? REFUSED_ALREADY_TERMINAL : REFUSED_NOT_CLAIMED;
	if (task->fence != proof->fence || task->fence == 0 || task->claimant != proof->principal)
		return REFUSED_STALE_CLAIM;
	if (task->ended == outcome) {
		*ret_repeated = true;
		return REFUSED_NOTHING;
	}
	return task->ended == ENDED_LOST ? REFUSED_STALE_CLAIM : REFUSED_ALREADY_TERMINAL;
}

/* Was this fence really handed out? Only then is a late result worth keeping. */
static bool fence_was_issued(const struct task *task, uint64_t fence)
{
	const uint64_t step = FENCE_GENERATION_STEP;

	if (fence % step == 0 || fence > task->fence)
		return false;
	/* of an older generation the counter alone is known */
	return fence / step == task->fence / step ? task->fence - fence < task->attempt
						  : fence % step <= task->attempt;
}

/* Opens a report: true if the decision is already made (a refusal or a repeat). */
static bool report_is_settled(const struct task *task, const struct proof *proof, enum claim_end outcome,
	struct task_decision *ret_decision)
{
	bool repeated = false;
	enum refusal refusal = report_refusal(task, proof, outcome, &repeated);

	if (refusal != REFUSED_NOTHING) {
		*ret_decision = task_refuse(task, refusal);
		ret_decision->orphan = refusal == REFUSED_STALE_CLAIM && fence_was_issued(task, proof->fence);
		ret_decision->foreign = task->claimant != proof->principal;
		return true;
	}
	*ret_decision = task_decide(task);
	ret_decision->repeated = repeated;
	return repeated;
}

struct task_decision task_complete(
	const struct task *task, const struct proof *proof, const struct given *given)
{
	unset struct task_decision decision;

	(void)given;
	if (report_is_settled(task, proof, ENDED_COMPLETE, &decision))
		return decision;
	if (task->gate_count > 0) /* nobody is judge of their own work */
		return task_refuse(task, REFUSED_GATE_REQUIRED);
	decision.task.crashes = 0;
	decision.task.interruptions = 0;
	decision.task.code = CODE_NONE;
	/* even if a cancel was under way: the work is done, and saying otherwise would be a lie */
	task_drop_claim(&decision, ENDED_COMPLETE);
	task_move(&decision, EVENT_TASK_COMPLETED, TASK_DONE);
	decision.follow = FOLLOW_PARENT_DONE;
	return task_decided(task, decision);
}

struct task_decision task_report(
	const struct task *task, const struct proof *proof, const struct given *given)
{
	unset struct task_decision decision;

	(void)given;
	if (report_is_settled(task, proof, ENDED_REVIEW, &decision))
		return decision;
	if (task->claim.stopping && task->code == CODE_STOPPED)
		task_undo_crash(&decision); /* that is all that is known of it: it does not count as work */
	else
		decision.task.crashes = 0;
	decision.task.interruptions = 0;
	task_drop_claim(&decision, ENDED_REVIEW);
	if (task->claim.stopping) {
		task_call_off(&decision);
	} else {
		task_move(&decision, EVENT_TASK_REVIEWED, TASK_REVIEW);
		decision.task.code = CODE_NONE;
	}
	return task_decided(task, decision);
}

static void fail_for_good(struct task_decision *decision, enum failure_code code)
{
	task_move(decision, EVENT_TASK_FAILED, TASK_FAILED);
	decision->task.code = code;
	decision->follow = FOLLOW_PARENT_DEAD;
}

static void block(struct task_decision *decision, enum failure_code code)
{
	task_move(decision, EVENT_TASK_BLOCKED, TASK_BLOCKED);
	decision->task.code = code;
}

/* Back in line at the time the worker named, or after `wait_ms`. */
static void try_again(struct task_decision *decision, const struct failure *failure, int64_t wait_ms,
	const struct given *given)
{
	int64_t at_ms = failure->retry_at_ms > 0 ? failure->retry_at_ms : given->now.wall_ms + wait_ms;

	task_rest(decision, EVENT_TASK_FAILED, at_ms, given);
	decision->task.code = failure->code;
}

/* The work itself failed, or took too long. */
static void fail_task(
	struct task_decision *decision, const struct failure *failure, const struct given *given)
{
	struct task *task = &decision->task;

	task->spent++;
	task->crashes = 0;
	task->interruptions = 0;
	if (failure->no_retry || task->spent >= task->max_attempts)
		fail_for_good(decision, failure->code);
	else if (failure->code == CODE_CHECK_FAILED) /* as after a rejection: waiting mends no work */
		try_again(decision, failure, 0, given);
	else
		try_again(decision, failure, backoff_ms(given->rules, task->spent, given->random), given);
}

/* The supervisor saw its child die: the crash that was counted at the claim stands. */
static void fail_crash(
	struct task_decision *decision, const struct failure *failure, const struct given *given)
{
	struct task *task = &decision->task;
	uint32_t k = task->crashes - 1;

	if (failure->no_retry || task->crashes >= given->rules->crash_budget)
		fail_for_good(decision, failure->code);
	else
		try_again(decision, failure, k == 0 ? 0 : backoff_ms(given->rules, k, given->random), given);
}

static void fail_host(
	struct task_decision *decision, const struct failure *failure, const struct given *given)
{
	struct task *task = &decision->task;

	task_undo_crash(decision);
	task_count_interruption(decision);
	if (failure->no_retry)
		fail_for_good(decision, failure->code);
	else if (task->interruptions >= given->rules->interruption_budget)
		block(decision, CODE_INTERRUPTED_TOO_OFTEN);
	else
		try_again(decision, failure, 0, given);
}

static void fail_quota(
	struct task_decision *decision, const struct failure *failure, const struct given *given)
{
	task_undo_crash(decision);
	struct failure at_once = *failure;

	at_once.retry_at_ms = 0;
	if (failure->no_retry)
		fail_for_good(decision, failure->code);
	else if (failure->is_held) /* it stays in line: claims pass it over as long as its account is held */
		try_again(decision, &at_once, 0, given);
	else
		try_again(decision, failure, given->rules->retry_max_ms, given);
}

static void fail_by_class(
	struct task_decision *decision, const struct failure *failure, const struct given *given)
{
	switch (failure->klass) {
	case CLASS_TASK:
	case CLASS_TIMEOUT:
		fail_task(decision, failure, given);
		return;
	case CLASS_CRASH:
		fail_crash(decision, failure, given);
		return;
	case CLASS_HOST:
		fail_host(decision, failure, given);
		return;
	case CLASS_QUOTA:
		fail_quota(decision, failure, given);
		return;
	case CLASS_POLICY:
		task_undo_crash(decision);
		block(decision, failure->code);
		return;
	case CLASS_FINAL:
		task_undo_crash(decision);
		fail_for_good(decision, failure->code);
		return;
	case FAILURE_CLASS_NONE:
	case FAILURE_CLASS_COUNT:
		break;
	}
	assert(0 && "a failure has a class");
}

struct task_decision task_fail(const struct task *task, const struct proof *proof,
	const struct failure *failure, const struct given *given)
{
	struct task_decision decision;

	if (report_is_settled(task, proof, ENDED_FAIL, &decision))
		return decision;
	/* its process is gone, and the question waits without it, as after a lost lease */
	if (task->state == TASK_ASKING && failure->klass == CLASS_CRASH && !failure->no_retry) {
		task_give_back(&decision, EVENT_TASK_FAILED, ENDED_FAIL, 0, given);
		return task_decided(task, decision);
	}
	task_drop_claim(&decision, ENDED_FAIL);
	if (task->claim.stopping) {
		task_undo_crash(&decision);
		task_call_off(&decision);
	} else {
		fail_by_class(&decision, failure, given);
	}
	return task_decided(task, decision);
}

struct task_decision task_block(
	const struct task *task, const struct proof *proof, enum failure_code code, const struct given *given)
{
	unset struct task_decision decision;

	(void)given;
	if (report_is_settled(task, proof, ENDED_BLOCK, &decision))
		return decision;
	task_undo_crash(&decision);
	task_drop_claim(&decision, ENDED_BLOCK);
	if (task->claim.stopping)
		task_call_off(&decision);
	else
		block(&decision, code);
	return task_decided(task, decision);
}

struct task_decision task_release(
	const struct task *task, const struct proof *proof, int64_t delay_ms, const struct given *given)
{
	struct task_decision decision;

	if (report_is_settled(task, proof, ENDED_RELEASE, &decision))
		return decision;
	int64_t delayed_ms = delay_ms < TASK_DELAY_MS_MAX ? delay_ms : TASK_DELAY_MS_MAX;
	task_give_back(&decision, EVENT_TASK_RELEASED, ENDED_RELEASE, given->now.wall_ms + delayed_ms, given);
	return task_decided(task, decision);
}

struct task_decision task_suspend(const struct task *task, const struct proof *proof, uint32_t open_subtasks,
	uint32_t host, const struct given *given)
{
	struct task_decision decision;

	if (report_is_settled(task, proof, ENDED_WAIT, &decision))
		return decision;
	if (task->state == TASK_ASKING) /* one thing at a time: the question is open */
		return task_refuse(task, REFUSED_BAD_TRANSITION);
	task_undo_crash(&decision);
	task_drop_claim(&decision, ENDED_WAIT);
	if (task->claim.stopping)
		task_call_off(&decision);
	else
		task_wait_for_subtasks(&decision, open_subtasks, host, given);
	return task_decided(task, decision);
}

struct task_decision task_pass(const struct task *task, const struct given *given)
{
	(void)given;
	if (task->state != TASK_REVIEW)
		return task_refuse(task, REFUSED_BAD_TRANSITION);
	if (task->gates_passed != task_gates_all(task))
		return task_refuse(task, REFUSED_GATE_REQUIRED);

	struct task_decision decision = task_decide(task);

	task_move(&decision, EVENT_TASK_COMPLETED, TASK_DONE);
	decision.follow = FOLLOW_PARENT_DONE;
	return task_decided(task, decision);
}

/* A rejection spends an attempt and goes on at once: the same session takes it up. */
struct task_decision task_reject(const struct task *task, const struct given *given)
{
	if (task->state != TASK_REVIEW)
		return task_refuse(task, REFUSED_BAD_TRANSITION);

	struct task_decision decision = task_decide(task);

	decision.task.spent++;
	decision.task.gates_passed = 0; /* the next attempt is judged anew */
	if (decision.task.spent >= task->max_attempts) {
		fail_for_good(&decision, CODE_CHECK_FAILED);
	} else {
		task_rest(&decision, EVENT_TASK_FAILED, 0, given);
		decision.task.code = CODE_CHECK_FAILED;
	}
	return task_decided(task, decision);
}
