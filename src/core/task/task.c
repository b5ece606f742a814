#include "core/task/task.h"

#include <assert.h>
#include <string.h>

#include "core/task/move.h"

struct task_decision task_refuse(const struct task *task, enum refusal refusal)
{
	assert(refusal != REFUSED_NOTHING);
	return (struct task_decision){.refusal = refusal, .task = *task};
}

struct task_decision task_unchanged(const struct task *task)
{
	return (struct task_decision){.task = *task};
}

struct task_decision task_decide(const struct task *task)
{
	return (struct task_decision){.task = *task};
}

/* A host waits for an answer and for what follows at once from it; whatever else happens is for anyone. An answer that
 * was too late for its process waits with the claim, until that is given back. */
static bool host_is_kept(const struct task *task, enum event_kind kind, enum task_state to)
{
	if (to == TASK_READY)
		return kind == EVENT_TASK_ANSWERED || kind == EVENT_TASK_RELEASED || task->state == to;
	if (to == TASK_WAITING || to == TASK_PENDING)
		return task_awaits(task);
	return to == TASK_ASKING || (to == TASK_RUNNING && task->state == to && kind != EVENT_TASK_CLAIMED);
}

/* What an agent has on its host is no reason any more to wait for that host. */
static bool is_let_go(const struct task *task, enum task_state to)
{
	return task_state_is_final(to) || to == TASK_NOWHERE || (to == TASK_PENDING && !task_awaits(task));
}

static void stop_waiting(struct task *task)
{
	task->subtasks = SUBTASKS_MADE;
	task->open_parents = task->dead_parents = 0;
}

void task_move(struct task_decision *decision, enum event_kind kind, enum task_state to)
{
	assert(decision->event == EVENT_NONE); /* one event per decision */
	assert(transition_is_legal(kind, decision->task.state, to));
	bool kept = host_is_kept(&decision->task, kind, to);
	if (!kept)
		decision->task.resume_host = 0;
	if (!kept || (to == TASK_ASKING && decision->task.state != to))
		decision->task.resume_until_ms = 0;
	if (is_let_go(&decision->task, to)) {
		decision->task.session_host = 0;
		decision->task.begins_anew = false;
	}
	decision->event = kind;
	decision->task.state = to;
	if (task_awaits(&decision->task) && to != TASK_WAITING && to != TASK_PENDING)
		stop_waiting(&decision->task);
}

/* A parent that failed counts as one that has ended: for subtasks, and for a task that runs however its parents ended. */
static bool is_lenient(const struct task *task)
{
	return task->runs_anyway || task_awaits(task);
}

bool task_is_held_back(const struct task *task)
{
	return task->open_parents > (is_lenient(task) ? task->dead_parents : 0) ||
		task->occurrence == OCCURRENCE_HELD || task->predecessor != 0;
}

enum task_state task_resting_state(const struct task *task, const struct given *given)
{
	if (task->dead_parents > 0 && !is_lenient(task))
		return TASK_BLOCKED;
	if (task_is_held_back(task))
		return TASK_WAITING;
	if (task->ready_at_ms > given->now.wall_ms)
		return TASK_SCHEDULED;
	return TASK_READY;
}

void task_rest(struct task_decision *decision, enum event_kind kind, int64_t not_before_ms,
	const struct given *given)
{
	struct task *task = &decision->task;

	uint32_t host = task->session_host ? task->session_host : task_awaits(task) ? task->resume_host : 0;

	task->ready_at_ms = not_before_ms > given->now.wall_ms ? not_before_ms : given->now.wall_ms;
	enum task_state to = task_resting_state(task, given);
	if (to == TASK_READY || to == TASK_SCHEDULED) /* it waits for none of them any more */
		task->open_parents = task->dead_parents = 0;
	task_move(decision, kind, to);
	task->code = to == TASK_BLOCKED ? CODE_DEPENDENCY_FAILED : CODE_NONE;
	if (to == TASK_READY && host != 0) { /* what the work has on its host is there when it goes on */
		task->resume_host = host;
		task->resume_until_ms = given->now.wall_ms + given->rules->ask_resume_ms;
	}
}

void task_drop_claim(struct task_decision *decision, enum claim_end how)
{
	assert(task_is_claimed(&decision->task));
	assert(how != ENDED_NOT);
	memset(&decision->task.claim, 0, sizeof decision->task.claim);
	decision->task.ended = how;
}

void task_undo_crash(struct task_decision *decision)
{
	assert(decision->task.crashes > 0);
	decision->task.crashes--;
}

void task_count_interruption(struct task_decision *decision)
{
	if (decision->task.interruptions <
		TASK_COUNT_MAX) /* one can be interrupted for ever without being stopped */
		decision->task.interruptions++;
}

bool task_is_past_deadline(const struct task *task, const struct given *given)
{
	int64_t now_ms = given->now.wall_ms;

	/* startBy is kept by starting, however that start ended */
	if (task->start_by_ms != 0 && task->attempt == 0 && now_ms >= task->start_by_ms)
		return true;
	return task->finish_by_ms != 0 && now_ms >= task->finish_by_ms;
}

enum event_kind task_session_event(
	enum event_kind event, uint64_t fence_before, bool held_before, const struct task *after)
{
	bool holds = task_is_claimed(after), other = after->fence != fence_before;

	if (holds && (!held_before || other))
		return EVENT_SESSION_STARTED;
	if (!held_before || holds)
		return EVENT_NONE;
	return event == EVENT_TASK_EXPIRED || event == EVENT_CLAIM_UNCONFIRMED || event == EVENT_TASK_REQUEUED
		? EVENT_SESSION_GONE
		: EVENT_SESSION_ENDED;
}

bool task_session_is_over(enum task_state state)
{
	return state == TASK_REVIEW || state == TASK_BLOCKED || task_state_is_final(state);
}

bool task_is_claimed(const struct task *task)
{
	return task->claim.holder != 0;
}

bool task_has_begun(const struct task *task)
{
	return task->attempt > 0 && task->state != TASK_NOWHERE && !task_state_is_final(task->state);
}

uint32_t task_gates_all(const struct task *task)
{
	return (UINT32_C(1) << task->gate_count) - 1;
}

bool task_must_stop(const struct task *task, const struct given *given)
{
	const struct claim *claim = &task->claim;

	if (!task_is_claimed(task))
		return false;
	if (claim->stopping)
		return true;
	if (task->finish_by_ms != 0 && given->now.wall_ms >= task->finish_by_ms)
		return true;
	/* while its process waits for a person its time stands still */
	return claim->asked_at_ms == 0 && given->now.lease_ms >= claim->run_until_ms;
}

bool task_must_park(const struct task *task, const struct given *given)
{
	const struct claim *claim = &task->claim;
	int64_t after_ms = given->rules->ask_park_ms;

	return task_is_claimed(task) && claim->asked_at_ms != 0 && after_ms != 0 &&
		given->now.lease_ms - claim->asked_at_ms >= after_ms;
}

bool task_is_for_host(const struct task *task, uint32_t host)
{
	return task->resume_until_ms == 0 || task->resume_host == host;
}

int64_t task_run_remaining_ms(const struct task *task, const struct given *given)
{
	const struct claim *claim = &task->claim;

	return claim->run_until_ms - (claim->asked_at_ms != 0 ? claim->asked_at_ms : given->now.lease_ms);
}

static int64_t sooner(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static struct lease verification_of(const struct task *task, const struct given *given)
{
	return (struct lease){task->claim.verify_at_ms, given->rules->verify_after_ms};
}

int64_t task_lease_remaining_ms(
	const struct task *task, const struct worker *worker, const struct given *given)
{
	if (!task_is_claimed(task))
		return 0;
	if (task->claim.clock == CLOCK_WORKER)
		return lease_remaining_ms(&worker->lease, given);
	int64_t left_ms = lease_remaining_ms(&task->claim.lease, given);
	struct lease verification = verification_of(task, given);
	return task->claim.verify_at_ms == 0 ? left_ms
					     : sooner(left_ms, lease_remaining_ms(&verification, given));
}

int64_t task_next_wall_ms(const struct task *task)
{
	int64_t next = task_answer_by_ms(task) != 0 ? task_answer_by_ms(task) : INT64_MAX;

	/* a deadline of the task ends no live claim: it is looked at again when the claim has ended */
	if (task_state_is_final(task->state) || task_is_claimed(task))
		return next;
	if (task->state == TASK_SCHEDULED)
		next = task->ready_at_ms;
	if (task->resume_until_ms != 0)
		next = task->resume_until_ms;
	if (task->start_by_ms != 0 && task->attempt == 0)
		next = sooner(next, task->start_by_ms);
	if (task->finish_by_ms != 0)
		next = sooner(next, task->finish_by_ms);
	return next;
}

int64_t task_next_lease_ms(const struct task *task, const struct given *given)
{
	int64_t next = INT64_MAX;

	if (!task_is_claimed(task))
		return next;
	if (task->claim.clock == CLOCK_CLAIM)
		next = lease_end(&task->claim.lease, given);
	if (task->claim.verify_at_ms != 0) {
		struct lease verification = verification_of(task, given);
		next = sooner(next, lease_end(&verification, given));
	}
	return next;
}

int task_claim_order(const struct task *a, const struct task *b, int64_t age_ms)
{
	if (age_ms == 0 && a->priority != b->priority)
		return a->priority > b->priority ? -1 : 1;
	int64_t since_a = task_line_ms(a->priority, a->created_ms, age_ms);
	int64_t since_b = task_line_ms(b->priority, b->created_ms, age_ms);
	if (since_a != since_b)
		return since_a < since_b ? -1 : 1;
	if (a->seq != b->seq)
		return a->seq < b->seq ? -1 : 1;
	return 0;
}

/*
 * What is true of every task, always. A decision that breaks one of these is a bug; a row that does is a damaged row.
 */
// clang-format off
#define TASK_INVARIANTS(X) \
	X(task->seq > 0) \
	X(task->queue != 0) \
	X(task->state > TASK_NOWHERE) \
	X(task->state < TASK_STATE_COUNT) \
	X(task->max_attempts > 0) \
	X(task->max_attempts <= TASK_ATTEMPTS_MAX) \
	X(task->spent <= task->max_attempts) \
	X(task->spent <= task->attempt) \
	X(task->crashes <= TASK_COUNT_MAX) \
	X(task->interruptions <= TASK_COUNT_MAX) \
	X(task->open_parents <= TASK_COUNT_MAX) \
	X(task->dead_parents <= task->open_parents) \
	X(task->attempt == 0 || task->fence != 0) \
	X(task->occurrence <= OCCURRENCE_HELD) \
	X(task->state != TASK_WAITING || task->open_parents > 0 || task->occurrence == OCCURRENCE_HELD || task->predecessor != 0) \
	X(task->state != TASK_BLOCKED || task->code != CODE_NONE) \
	X(task->state != TASK_FAILED || task->code != CODE_NONE) \
	X((task->workflow == WORKFLOW_NONE) == (task->stage == STAGE_NONE)) \
	X(task->workflow < WORKFLOW_MAX) \
	X(task->stage < STAGE_COUNT) \
	X(task->gate_count <= TASK_GATES_MAX) \
	X((task->gates == 0) == (task->gate_count == 0)) \
	X((task->gates_passed & ~task_gates_all(task)) == 0) \
	X(task->resume_host == 0 || task->state == TASK_ASKING || task->state == TASK_READY || task->state == TASK_RUNNING || \
		task_awaits(task)) \
	X(task->state == TASK_ASKING || task_awaits(task) || (task->resume_until_ms != 0) == (task->resume_host != 0)) \
	X(!task_awaits(task) || task->state == TASK_WAITING || task->state == TASK_PENDING) \
	X(task->subtasks <= SUBTASKS_AWAITED)

#define UNCLAIMED_INVARIANTS(X) \
	X(!task_state_must_hold_claim(task->state)) \
	X(task->claim.clock == 0) \
	X(task->superseded_by == 0 || task->state == TASK_DONE || task->state == TASK_CANCELLED) \
	X(!task->claim.stopping)

#define CLAIMED_INVARIANTS(X) \
	X(task_state_may_hold_claim(task->state)) \
	X(task->claim.clock == CLOCK_CLAIM || task->claim.clock == CLOCK_WORKER) \
	X(task->claim.lease.granted_ms > 0) \
	X(task->claim.verify_at_ms == 0 || task->state == TASK_CLAIMED) \
	X(task->claim.clock == CLOCK_CLAIM || task->state != TASK_CLAIMED) \
	X(task->claim.asked_at_ms != 0 || task->state != TASK_ASKING) \
	X(task->claim.asked_at_ms == 0 || task->state == TASK_ASKING || (task->state == TASK_RUNNING && task->claim.reported)) \
	X(task->fence != 0) \
	X(task->open_parents == 0) \
	X(task->predecessor == 0) \
	X(task->ended == ENDED_NOT) \
	X(task->crashes > 0)
// clang-format on

void task_check(const struct task *task)
{
#define X(invariant) assert(invariant);
	TASK_INVARIANTS(X)
	if (!task_is_claimed(task)) {
		UNCLAIMED_INVARIANTS(X)
	} else {
		CLAIMED_INVARIANTS(X)
	}
#undef X
}

bool task_is_sound(const struct task *task)
{
#define X(invariant)      \
	if (!(invariant)) \
		return false;
	TASK_INVARIANTS(X)
	if (!task_is_claimed(task)) {
		UNCLAIMED_INVARIANTS(X)
	} else {
		CLAIMED_INVARIANTS(X)
	}
#undef X
	return true;
}

/* What no decision may do, whatever it decides. */
static void decision_check(const struct task *before, const struct task_decision *decision)
{
	const struct task *after = &decision->task;

	assert(after->seq == before->seq);
	assert(after->attempt >= before->attempt);
	assert(after->fence >= before->fence);
	assert((after->fence != before->fence) == (after->attempt != before->attempt));
	assert(after->created_ms == before->created_ms);
	if (decision->event == EVENT_NONE) {
		assert(after->state == before->state);
		assert(after->claim.holder == before->claim.holder);
		assert(after->spent == before->spent);
	}
}

/* Another task waits for the end of this attempt. Unless the task is done, that one has its place. */
static void give_way(const struct task *before, struct task_decision *decision)
{
	struct task *task = &decision->task;
	bool ends = task_is_claimed(before) && !task_is_claimed(task);

	if (task->superseded_by == 0 || !ends || task->state == TASK_DONE || task->state == TASK_CANCELLED)
		return;
	decision->event = EVENT_NONE;
	task->state = before->state;
	if (task->spent != before->spent) { /* nothing is spent: as when a cancel has waited for this end */
		task->spent = before->spent;
		task->crashes = before->crashes;
		task->interruptions = before->interruptions;
		task_undo_crash(decision);
	}
	task_move(decision, EVENT_TASK_CANCELLED, TASK_CANCELLED);
	task->code = CODE_NONE;
	task->ready_at_ms = before->ready_at_ms;
	decision->follow = FOLLOW_PARENT_DEAD;
}

struct task_decision task_decided(const struct task *before, struct task_decision decision)
{
	assert(decision.refusal == REFUSED_NOTHING);
	give_way(before, &decision);
	task_check(&decision.task);
	decision_check(before, &decision);
	return decision;
}
