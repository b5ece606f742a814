/*
 * Taking a task, confirming it, renewing it, losing it and giving it back.
 *
 * One clock per claim: it starts on a lease of its own, renewed by progress; the first bind moves it to its
 * worker's lease; unbind moves it back. A crash is counted when the claim is made and taken back when the
 * holder reports any end, so that a task which kills its worker at once is counted even if nobody lives to
 * tell. Age alone never frees a task: only a lost lease, a report, or an operator does.
 */

#include <assert.h>

#include "core/task/task.h"
#include "core/task/move.h"

/* The next fence: one more than the last, or the first of a new generation. */
static uint64_t fence_next(uint64_t last, uint32_t generation)
{
	uint64_t floor = generation * FENCE_GENERATION_STEP;

	return (last > floor ? last : floor) + 1;
}

bool task_is_claimable(const struct task *task, bool takes_pending, const struct given *given)
{
	if (task_is_past_deadline(task, given))
		return false;
	if (task->state == TASK_PENDING && takes_pending)
		return task_resting_state(task, given) == TASK_READY;
	return task->state == TASK_READY;
}

enum refusal task_claim_refusal(
	const struct task *task, const struct claimant *by, enum queue_state queue, const struct given *given)
{
	bool own = task_is_claimed(task) && task->claim.holder == by->worker->handle;

	if (given->disarmed)
		return REFUSED_EXECUTION_DISARMED;
	if (task_state_is_final(task->state))
		return REFUSED_ALREADY_TERMINAL;
	if (task_is_claimed(task) && !own)
		return REFUSED_CLAIMED_BY_OTHER;
	if (own && !(by->resumes && task_state_must_hold_claim(task->state) && !task->claim.stopping))
		return REFUSED_CLAIMED_BY_OTHER;
	if (!own && !task_is_claimable(task, by->takes_pending, given))
		return REFUSED_BAD_TRANSITION;
	if (by->opted_in && !task->autonomous)
		return REFUSED_NOT_AUTONOMOUS;
	if (task->owner != 0 && task->owner != by->slot)
		return REFUSED_FORBIDDEN;
	if (!own && (by->unfit || !task_is_for_host(task, by->worker->process.host)))
		return REFUSED_FORBIDDEN;
	if (own)
		return by->worker->state == WORKER_INACTIVE ? REFUSED_WORKER_INACTIVE : REFUSED_NOTHING;
	if (queue == QUEUE_PAUSED)
		return REFUSED_QUEUE_PAUSED;
	return worker_may_claim(by->worker);
}

static struct claim claim_new(const struct task *task, const struct claimant *by, const struct given *given)
{
	bool beats = worker_beats(by->worker) && !by->named;
	uint32_t fallback = beats ? given->rules->claim_lease_ms : given->rules->claim_lease_plain_ms;
	int64_t run_ms = by->run_ms > 0 ? by->run_ms : task->timeout_ms;
	if (run_ms > TASK_DELAY_MS_MAX)
		run_ms = TASK_DELAY_MS_MAX;
	struct claim claim = {
		.holder = by->worker->handle,
		.clock = CLOCK_CLAIM,
		.lease = lease_grant(lease_clamp(given->rules, by->lease_ms, fallback), given),
		.run_until_ms = given->now.lease_ms + run_ms,
		.run_ms = run_ms,
		.claimed_wall_ms = given->now.wall_ms,
		.request = by->request,
		.named = by->named,
	};

	/* only an instance that beats can be asked what it holds; a name cannot */
	if (beats && !by->confirms)
		claim.verify_at_ms = given->now.lease_ms + given->rules->verify_after_ms;
	return claim;
}

struct task_decision task_claim(
	const struct task *task, const struct claimant *by, enum queue_state queue, const struct given *given)
{
	enum refusal refusal = task_claim_refusal(task, by, queue, given);
	if (refusal != REFUSED_NOTHING)
		return task_refuse(task, refusal);

	struct task_decision decision = task_decide(task);

	if (task_is_claimed(task)) {
		/* taken up again: the old fence is dead, the crash it foresaw did not count */
		task_undo_crash(&decision);
		task_count_interruption(&decision);
	}
	decision.task.fence = fence_next(task->fence, given->generation);
	decision.task.claimant = by->worker->principal;
	decision.task.attempt++;
	decision.task.crashes++;
	decision.task.ended = ENDED_NOT;
	decision.task.code = CODE_NONE;
	decision.task.claim = claim_new(task, by, given);
	decision.task.open_parents = decision.task.dead_parents =
		0; /* parents that failed, if it runs anyway */
	task_move(&decision, EVENT_TASK_CLAIMED, by->confirms ? TASK_RUNNING : TASK_CLAIMED);
	return task_decided(task, decision);
}

struct task_decision task_extend(
	const struct task *task, const struct claimant *by, const struct given *given)
{
	if (given->disarmed)
		return task_refuse(task, REFUSED_EXECUTION_DISARMED);
	if (!task_is_claimed(task) || task->claim.holder != by->worker->handle || task->claim.stopping)
		return task_refuse(task, REFUSED_CLAIMED_BY_OTHER);

	struct task_decision decision = task_decide(task);
	struct claim *claim = &decision.task.claim;
	struct claim fresh = claim_new(task, by, given);

	claim->run_ms = fresh.run_ms;
	claim->run_until_ms = fresh.run_until_ms;
	if (claim->clock == CLOCK_CLAIM)
		claim->lease = fresh.lease;
	decision.repeated = true;
	return task_decided(task, decision);
}

/* A heartbeat says that its worker runs the task. If the worker is not the holder, it is refused: the answer says that the worker lost the task. */
struct task_decision task_bind(const struct task *task, uint32_t holder, const struct given *given)
{
	(void)given;
	if (!task_is_claimed(task) || task->claim.holder != holder)
		return task_refuse(task, REFUSED_STALE_CLAIM);

	struct task_decision decision = task_decide(task);

	decision.task.claim.clock = CLOCK_WORKER;
	decision.task.claim.verify_at_ms = 0;
	if (task->state == TASK_CLAIMED)
		task_move(&decision, EVENT_TASK_CONFIRMED, TASK_RUNNING);
	return task_decided(task, decision);
}

/* The worker no longer runs it, and has not reported an end: it has that long to do so. */
struct task_decision task_unbind(const struct task *task, uint32_t holder, const struct given *given)
{
	if (!task_is_claimed(task) || task->claim.holder != holder || task->claim.clock != CLOCK_WORKER)
		return task_unchanged(task);

	struct task_decision decision = task_decide(task);

	decision.task.claim.clock = CLOCK_CLAIM;
	decision.task.claim.lease = lease_grant(given->rules->verify_after_ms, given);
	return task_decided(task, decision);
}

/* The id of its worker, said by whom that worker belongs to. */
bool task_is_held_by(const struct task *task, const struct proof *proof)
{
	return task_is_claimed(task) && task->claim.holder == proof->holder &&
		task->claimant == proof->principal;
}

enum refusal task_proof_refusal(const struct task *task, const struct proof *proof)
{
	bool holds = task_is_held_by(task, proof);

	if (proof->by_name) {
		if (!task_is_claimed(task))
			return task_state_is_final(task->state) ? REFUSED_ALREADY_TERMINAL
								: REFUSED_NOT_CLAIMED;
		return holds ? REFUSED_NOTHING : REFUSED_CLAIMED_BY_OTHER;
	}
	return holds && task->fence == proof->fence ? REFUSED_NOTHING : REFUSED_STALE_CLAIM;
}

struct task_decision task_refuse_proof(
	const struct task *task, const struct proof *proof, enum refusal refusal)
{
	struct task_decision decision = task_refuse(task, refusal);

	decision.foreign = task->claimant != proof->principal;
	return decision;
}

struct task_decision task_append_log(const struct task *task, const struct proof *proof)
{
	enum refusal refusal = task_proof_refusal(task, proof);

	return refusal == REFUSED_NOTHING ? task_unchanged(task) : task_refuse_proof(task, proof, refusal);
}

/* Past its time, or past the time that its process may wait for an answer, it is left to run out. */
static bool may_be_renewed(const struct task *task, const struct given *given)
{
	return !task_must_stop(task, given) && !task_must_park(task, given);
}

void task_begin_session(struct task_decision *decision, uint32_t host)
{
	assert(task_is_claimed(&decision->task));
	decision->task.session_host = host;
	decision->task.begins_anew = false;
}

struct task_decision task_progress(
	const struct task *task, const struct proof *proof, int64_t lease_ms, const struct given *given)
{
	enum refusal refusal = task_proof_refusal(task, proof);
	if (refusal != REFUSED_NOTHING)
		return task_refuse_proof(task, proof, refusal);

	struct task_decision decision = task_decide(task);
	struct claim *claim = &decision.task.claim;

	claim->verify_at_ms = 0;
	if (claim->clock == CLOCK_CLAIM && may_be_renewed(task, given))
		claim->lease =
			lease_grant(lease_clamp(given->rules, lease_ms, claim->lease.granted_ms), given);
	decision.task.interruptions = 0;
	task_move(&decision, EVENT_TASK_PROGRESSED, task->state == TASK_CLAIMED ? TASK_RUNNING : task->state);
	return task_decided(task, decision);
}

struct task_decision task_renew(const struct task *task, const struct given *given)
{
	if (!task_is_claimed(task) || task->claim.clock != CLOCK_CLAIM || !may_be_renewed(task, given))
		return task_unchanged(task);

	struct task_decision decision = task_decide(task);

	decision.task.claim.lease = lease_grant(task->claim.lease.granted_ms, given);
	return task_decided(task, decision);
}

bool task_is_supervised(const struct task *task, const struct worker *holder)
{
	return task_is_claimed(task) && !task->claim.named && worker_beats(holder);
}

struct task_decision task_reissue(const struct task *task)
{
	struct task_decision decision = task_decide(task);

	assert(task_is_claimed(task));
	decision.task.claim.reissued++;
	return task_decided(task, decision);
}

/* The claim ends and nothing is spent; too often in a row and a person must look. */
void task_give_back(struct task_decision *decision, enum event_kind kind, enum claim_end how,
	int64_t not_before_ms, const struct given *given)
{
	struct task *task = &decision->task;
	bool stopping = task->claim.stopping;

	task_undo_crash(decision);
	task_drop_claim(decision, how);
	if (task->state != TASK_ASKING)
		task_count_interruption(decision);
	if (stopping) {
		task_call_off(decision);
	} else if (task->state == TASK_ASKING) {
		task_move(decision, kind, TASK_ASKING); /* the question is still open */
	} else if (task->interruptions >= given->rules->interruption_budget) {
		task_move(decision, EVENT_TASK_BLOCKED, TASK_BLOCKED);
		task->code = CODE_INTERRUPTED_TOO_OFTEN;
	} else {
		if (task->resume_until_ms <= given->now.wall_ms) { /* the time of its host is over */
			task->resume_host = 0;
			task->resume_until_ms = 0;
		}
		task_rest(decision, kind, not_before_ms, given);
	}
}

/* Its worker left in peace, or the reply that would have handed it over was never written. */
struct task_decision task_return(const struct task *task, const struct given *given)
{
	if (!task_is_claimed(task))
		return task_unchanged(task);

	struct task_decision decision = task_decide(task);

	task_give_back(&decision, EVENT_TASK_RELEASED, ENDED_LOST, 0, given);
	return task_decided(task, decision);
}

/* The holder is gone and has not said why: that is a crash. */
static void lose(struct task_decision *decision, const struct given *given)
{
	struct task *task = &decision->task;
	bool stopping = task->claim.stopping;

	if (stopping && task->code == CODE_STOPPED)
		task_undo_crash(decision); /* it was told to end */
	task_drop_claim(decision, ENDED_LOST);
	if (stopping) {
		task_call_off(decision);
	} else if (task->state == TASK_ASKING) {
		task_undo_crash(decision);
		task_move(decision, EVENT_TASK_EXPIRED, TASK_ASKING);
	} else if (task->crashes >= given->rules->crash_budget) {
		task_move(decision, EVENT_TASK_EXPIRED, TASK_FAILED);
		task->code = CODE_LEASE_LOST;
		decision->follow = FOLLOW_PARENT_DEAD;
	} else {
		/* the first loss comes back at once, from the second on there is back-off */
		uint32_t k = task->crashes - 1;
		int64_t wait_ms = k == 0 ? 0 : backoff_ms(given->rules, k, given->random);
		task_rest(decision, EVENT_TASK_EXPIRED, given->now.wall_ms + wait_ms, given);
		task->code = CODE_LEASE_LOST;
	}
}

struct task_decision task_lose(const struct task *task, const struct given *given)
{
	if (!task_is_claimed(task))
		return task_unchanged(task);

	struct task_decision decision = task_decide(task);

	lose(&decision, given);
	return task_decided(task, decision);
}

/* The worker was heard after the claim was made, and did not bind it: it never received it. */
static bool never_arrived(const struct task *task, const struct worker *holder, const struct given *given)
{
	int64_t claimed_ms = task->claim.verify_at_ms - given->rules->verify_after_ms;

	return task->claim.verify_at_ms != 0 && worker_is_alive(holder) && holder->heard_ms > claimed_ms;
}

/* The claim's own lease ran out; a claim on its worker's lease ends only with that. */
struct task_decision task_expire(
	const struct task *task, const struct worker *holder, const struct given *given)
{
	if (!task_is_claimed(task) || task->claim.clock != CLOCK_CLAIM)
		return task_unchanged(task);
	if (!lease_is_expired(&task->claim.lease, given))
		return task_unchanged(task);

	struct task_decision decision = task_decide(task);

	if (never_arrived(task, holder, given))
		task_give_back(&decision, EVENT_CLAIM_UNCONFIRMED, ENDED_LOST, 0, given);
	else
		lose(&decision, given);
	return task_decided(task, decision);
}

/* Handed to an instance that beats, and neither bound, progressed nor finished: it never arrived. */
struct task_decision task_verify(const struct task *task, const struct given *given)
{
	struct lease verification = {task->claim.verify_at_ms, given->rules->verify_after_ms};

	if (!task_is_claimed(task) || task->claim.verify_at_ms == 0)
		return task_unchanged(task);
	if (!lease_is_expired(&verification, given))
		return task_unchanged(task);

	struct task_decision decision = task_decide(task);

	task_give_back(&decision, EVENT_CLAIM_UNCONFIRMED, ENDED_LOST, 0, given);
	return task_decided(task, decision);
}

/* A restore made every fence of before stale: no holder could ever report, so the task is set free. */
struct task_decision task_void(const struct task *task, const struct given *given)
{
	if (!task_is_claimed(task))
		return task_unchanged(task);

	struct task_decision decision = task_decide(task);

	task_undo_crash(&decision);
	task_drop_claim(&decision, ENDED_LOST);
	if (task->claim.stopping) {
		task_call_off(&decision);
	} else if (task->state == TASK_ASKING) {
		task_move(&decision, EVENT_TASK_REQUEUED, TASK_ASKING);
	} else {
		task_rest(&decision, EVENT_TASK_REQUEUED, 0, given);
	}
	return task_decided(task, decision);
}

/* The lease clock began again at zero: grant the same length once more. */
struct task_decision task_rebase(const struct task *task, const struct given *given)
{
	if (!task_is_claimed(task))
		return task_unchanged(task);

	struct task_decision decision = task_decide(task);
	struct claim *claim = &decision.task.claim;

	claim->lease = lease_grant(claim->lease.granted_ms, given);
	claim->run_until_ms = given->now.lease_ms + claim->run_ms;
	if (claim->verify_at_ms != 0)
		claim->verify_at_ms = given->now.lease_ms + given->rules->verify_after_ms;
	if (claim->asked_at_ms != 0)
		claim->asked_at_ms = given->now.lease_ms;
	task_move(&decision, EVENT_CLAIM_REBASED, task->state);
	return task_decided(task, decision);
}

struct task_decision task_cut(const struct task *task, const struct given *given)
{
	struct task_decision decision = task_decide(task);

	if (!task_is_claimed(task) || task->claim.clock != CLOCK_CLAIM ||
		!lease_cut(&decision.task.claim.lease, given))
		return task_unchanged(task);
	task_move(&decision, EVENT_CLAIM_REBASED, task->state);
	return task_decided(task, decision);
}
