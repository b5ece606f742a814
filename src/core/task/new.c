/*
 * Creation, what a producer or an operator may do to a task, and what time and other tasks do to it.
 */
#include <assert.h>

#include "core/task/task.h"
#include "core/task/move.h"

static void draft_complete(struct task *task, const struct given *given)
{
	assert(task->state == TASK_NOWHERE);
	if (task->created_ms == 0) /* else it has the place of the one that it takes the key of */
		task->created_ms = given->now.wall_ms;
	if (task->max_attempts == 0)
		task->max_attempts = given->rules->max_attempts;
	if (task->max_attempts > TASK_ATTEMPTS_MAX)
		task->max_attempts = TASK_ATTEMPTS_MAX;
	if (task->timeout_ms == 0)
		task->timeout_ms = given->rules->timeout_ms;
	if (task->timeout_ms > given->rules->timeout_max_ms)
		task->timeout_ms = given->rules->timeout_max_ms;
}

struct task_decision task_create(
	const struct task *draft, bool parked, enum queue_state queue, const struct given *given)
{
	if (queue == QUEUE_DRAINING)
		return task_refuse(draft, REFUSED_QUEUE_DRAINING);

	struct task_decision decision = task_decide(draft);
	struct task *task = &decision.task;

	draft_complete(task, given);
	if (parked)
		task_move(&decision, EVENT_TASK_CREATED, TASK_PENDING);
	else
		task_rest(&decision, EVENT_TASK_CREATED, task->ready_at_ms, given);
	if (task->workflow != WORKFLOW_NONE)
		task->stage = workflow_first(task->state);
	task_check(task);
	return decision;
}

/* It comes from another system and has a past there. No claim of that system lives on: nobody here could prove it. A
 * queue that drains takes in what is over; the future of others has no effect on it. */
struct task_decision task_import(const struct task *draft, const struct task_past *past,
	enum queue_state queue, const struct given *given)
{
	bool final = task_state_is_final(past->state);

	if (queue == QUEUE_DRAINING && !final)
		return task_refuse(draft, REFUSED_QUEUE_DRAINING);

	struct task_decision decision = task_decide(draft);
	struct task *task = &decision.task;

	draft_complete(task, given);
	if (past->created_ms != 0 && past->created_ms < given->now.wall_ms)
		task->created_ms = past->created_ms;
	task->attempt = past->attempt;
	if (past->attempt > 0) { /* fences go on where the claims so far would have left them */
		task->fence = given->generation * FENCE_GENERATION_STEP + past->attempt;
		task->ended = ENDED_LOST;
	}
	if (final || past->state == TASK_PENDING)
		task_move(&decision, EVENT_TASK_CREATED, past->state);
	else
		task_rest(&decision, EVENT_TASK_CREATED, 0, given);
	if (past->state == TASK_FAILED)
		task->code = CODE_EXECUTION_ERROR;
	task_check(task);
	return decision;
}

static void patch_apply(struct task *task, const struct task_patch *patch, const struct rules *rules)
{
	if (patch->set_priority)
		task->priority = patch->priority;
	if (patch->set_owner)
		task->owner = patch->owner;
	if (patch->set_queue)
		task->queue = patch->queue;
	if (patch->set_requires)
		task->requires = patch->requires;
	if (patch->set_executor)
		task->executor = patch->executor;
	if (patch->set_credential)
		task->credential = patch->credential;
	if (patch->set_concurrency_key)
		task->concurrency_key = patch->concurrency_key;
	if (patch->set_keyed)
		task->keyed = patch->keyed;
	if (patch->set_autonomous)
		task->autonomous = patch->autonomous;
	if (patch->set_not_before)
		task->ready_at_ms = patch->not_before_ms;
	if ((patch->set_queue || patch->set_executor) && task->session_host != 0) {
		/* who runs it now may be elsewhere */
		if (task->state == TASK_READY)
			task->resume_host = 0, task->resume_until_ms = 0;
		task->session_host = 0;
	}
	if (patch->set_parents) {
		task->has_parent = patch->has_parent;
		task->open_parents = patch->open_parents;
		task->dead_parents = patch->dead_parents;
	}
	if (patch->set_start_by)
		task->start_by_ms = patch->start_by_ms;
	if (patch->set_finish_by)
		task->finish_by_ms = patch->finish_by_ms;
	/* at least one more than were spent: an open task always has its next try */
	if (patch->set_max_attempts)
		task->max_attempts =
			patch->max_attempts > task->spent ? patch->max_attempts : task->spent + 1;
	if (task->max_attempts > TASK_ATTEMPTS_MAX)
		task->max_attempts = TASK_ATTEMPTS_MAX;
	if (patch->set_timeout)
		task->timeout_ms =
			patch->timeout_ms < rules->timeout_max_ms ? patch->timeout_ms : rules->timeout_max_ms;
	if (task->timeout_ms == 0)
		task->timeout_ms = rules->timeout_ms;
}

/* Its time or its parents changed: it stands where it now belongs. */
static void rest_again(struct task_decision *decision, const struct task *before,
	const struct task_patch *patch, const struct given *given)
{
	struct task *task = &decision->task;
	bool by_parent = task->state == TASK_BLOCKED && task->code == CODE_DEPENDENCY_FAILED;

	/* its time has come once: a wall clock that was set back does not undo that */
	if (task->state == TASK_READY && !patch->set_not_before && task->ready_at_ms > given->now.wall_ms)
		task->ready_at_ms = given->now.wall_ms;
	if (task->state == TASK_PENDING || (task->state == TASK_BLOCKED && !by_parent)) {
		task_move(decision, EVENT_TASK_UPDATED,
			task->state); /* it counts when a person lets it go on */
	} else if (task->state == TASK_READY && task_resting_state(task, given) == TASK_READY) {
		task->ready_at_ms = before->ready_at_ms; /* since then, and still */
		task->open_parents = task->dead_parents = 0;
		task_move(decision, EVENT_TASK_UPDATED, TASK_READY);
	} else {
		task_rest(decision, EVENT_TASK_UPDATED, task->ready_at_ms, given);
	}
}

static bool is_in_line(const struct task *task)
{
	return task->state == TASK_PENDING || task->state == TASK_SCHEDULED || task->state == TASK_WAITING ||
		task->state == TASK_READY || task->state == TASK_BLOCKED;
}

/* The fields of a task may change at any time; a live claim keeps the limits it was made with. When it may begin, and
 * after which others, is settled once it has begun. */
struct task_decision task_update(
	const struct task *task, const struct task_patch *patch, const struct given *given)
{
	bool rests = patch->set_not_before || patch->set_parents;
	struct task_decision decision = task_decide(task);

	if (rests && (!is_in_line(task) || task_awaits(task)))
		return task_refuse(task, REFUSED_BAD_TRANSITION);
	patch_apply(&decision.task, patch, given->rules);
	if (rests)
		rest_again(&decision, task, patch, given);
	else
		task_move(&decision, EVENT_TASK_UPDATED, task->state);
	return task_decided(task, decision);
}

/* Work under a beating worker is only called off once the worker has stopped it, or its lease has ended. */
static bool cancel_must_wait(const struct task *task, const struct worker *holder)
{
	return task_is_claimed(task) && task->claim.clock == CLOCK_WORKER && worker_is_alive(holder);
}

struct task_decision task_cancel(
	const struct task *task, const struct worker *holder, const struct given *given)
{
	bool stops = task->claim.stopping && task->code == CODE_STOPPED; /* then a cancel means more */

	(void)given;
	if (task->state == TASK_CANCELLED || (task->claim.stopping && !stops)) {
		struct task_decision again = task_unchanged(task);
		again.repeated = true;
		return again;
	}
	if (task_state_is_final(task->state))
		return task_refuse(task, REFUSED_ALREADY_TERMINAL);

	struct task_decision decision = task_decide(task);

	if (cancel_must_wait(task, holder)) {
		decision.task.claim.stopping = true;
		decision.task.code = CODE_NONE;
		task_move(&decision, EVENT_TASK_UPDATED, task->state);
		return task_decided(task, decision);
	}
	if (task_is_claimed(task)) {
		task_undo_crash(&decision);
		task_drop_claim(&decision, ENDED_LOST);
	}
	task_move(&decision, EVENT_TASK_CANCELLED, TASK_CANCELLED);
	decision.follow = FOLLOW_PARENT_DEAD;
	return task_decided(task, decision);
}

/* What waits for its worker to stop has its code already: that tells it from a cancel. */
void task_call_off(struct task_decision *decision)
{
	if (decision->task.code == CODE_STOPPED) {
		task_move(decision, EVENT_TASK_BLOCKED, TASK_BLOCKED);
		return;
	}
	task_move(decision, EVENT_TASK_CANCELLED, TASK_CANCELLED);
	decision->follow = FOLLOW_PARENT_DEAD;
}

struct task_decision task_stop(const struct task *task, const struct worker *holder)
{
	/* nothing of it runs, or it is being seen to */
	bool over =
		task_state_is_final(task->state) || task->state == TASK_BLOCKED || task->state == TASK_REVIEW;
	if (over || task->claim.stopping) {
		struct task_decision again = task_unchanged(task);
		again.repeated = true;
		return again;
	}

	struct task_decision decision = task_decide(task);

	decision.task.code = CODE_STOPPED;
	if (cancel_must_wait(task, holder)) {
		decision.task.claim.stopping = true;
		task_move(&decision, EVENT_TASK_UPDATED, task->state);
		return task_decided(task, decision);
	}
	if (task_is_claimed(task)) {
		task_undo_crash(&decision);
		task_drop_claim(&decision, ENDED_LOST);
	}
	task_call_off(&decision);
	return task_decided(task, decision);
}

struct task_decision task_retry(const struct task *task, bool key_taken, const struct given *given)
{
	bool was_dead = task->state == TASK_FAILED || task->state == TASK_CANCELLED;

	if (!task_state_is_final(task->state) && task->state != TASK_BLOCKED)
		return task_refuse(task, REFUSED_BAD_TRANSITION);
	if (task_state_is_final(task->state) && key_taken)
		return task_refuse(task, REFUSED_TASK_EXISTS);

	struct task_decision decision = task_decide(task);

	decision.task.spent = 0;
	decision.task.crashes = 0;
	decision.task.interruptions = 0;
	decision.task.gates_passed = 0;
	/* the operator's word stands above a parent that failed: it is no longer waited for */
	decision.task.open_parents -= decision.task.dead_parents;
	decision.task.dead_parents = 0;
	if (decision.task.occurrence == OCCURRENCE_HELD)
		decision.task.occurrence = OCCURRENCE_MADE;
	if (task_state_is_final(task->state)) /* whatever it had to do with others of its key is over */
		decision.task.predecessor = decision.task.superseded_by = 0;
	/* and above deadlines that have passed: else it would fail again at once */
	if (decision.task.start_by_ms <= given->now.wall_ms)
		decision.task.start_by_ms = 0;
	if (decision.task.finish_by_ms <= given->now.wall_ms)
		decision.task.finish_by_ms = 0;
	task_rest(&decision, EVENT_TASK_RETRIED, 0, given);
	if (was_dead)
		decision.follow = FOLLOW_PARENT_REOPENED;
	return task_decided(task, decision);
}

void task_begin_anew(struct task_decision *decision)
{
	struct task *task = &decision->task;

	assert(decision->event == EVENT_TASK_RETRIED);
	task->resume_host = task->session_host = 0;
	task->resume_until_ms = 0;
	task->begins_anew = true;
}

struct task_decision task_park(const struct task *task, const struct given *given)
{
	(void)given;
	if (task->state != TASK_SCHEDULED && task->state != TASK_WAITING && task->state != TASK_READY)
		return task_refuse(task, REFUSED_BAD_TRANSITION);

	struct task_decision decision = task_decide(task);

	task_move(&decision, EVENT_TASK_PARKED, TASK_PENDING);
	return task_decided(task, decision);
}

struct task_decision task_unpark(const struct task *task, const struct given *given)
{
	if (task->state != TASK_PENDING)
		return task_refuse(task, REFUSED_BAD_TRANSITION);

	struct task_decision decision = task_decide(task);

	task_rest(&decision, EVENT_TASK_UNPARKED, task->ready_at_ms, given);
	return task_decided(task, decision);
}

/* The world goes on after a task is final: a deploy fails, a build is withdrawn. It may be told at any time. */
struct task_decision task_note(const struct task *task)
{
	struct task_decision decision = task_decide(task);

	task_move(&decision, EVENT_TASK_NOTED, task->state);
	return task_decided(task, decision);
}

struct task_decision task_purge(const struct task *task, const struct given *given)
{
	(void)given;
	if (!task_state_is_final(task->state))
		return task_refuse(task, REFUSED_BAD_TRANSITION);

	struct task_decision decision = task_decide(task);

	task_move(&decision, EVENT_TASK_PURGED, TASK_NOWHERE);
	return decision;
}

/* Its host has had its time: now it is anyone's. */
static struct task_decision open_to_all(const struct task *task)
{
	struct task_decision decision = task_decide(task);

	task_move(&decision, EVENT_TASK_REQUEUED, TASK_READY);
	decision.task.session_host = 0;
	decision.task.resume_host = 0;
	decision.task.resume_until_ms = 0;
	return task_decided(task, decision);
}

bool task_host_is_due(const struct task *task, const struct given *given)
{
	return task->state == TASK_READY && task->resume_until_ms != 0 &&
		task->resume_until_ms <= given->now.wall_ms;
}

struct task_decision task_keep_for_host(const struct task *task, const struct given *given)
{
	if (!task_host_is_due(task, given) || task->session_host != task->resume_host)
		return task_unchanged(task);

	struct task_decision decision = task_decide(task);

	task_move(&decision, EVENT_TASK_REQUEUED, TASK_READY);
	decision.task.resume_until_ms = given->now.wall_ms + given->rules->ask_resume_ms;
	return task_decided(task, decision);
}

struct task_decision task_due(const struct task *task, const struct given *given)
{
	if (task_host_is_due(task, given))
		return open_to_all(task);
	if (task->state != TASK_SCHEDULED || task->ready_at_ms > given->now.wall_ms)
		return task_unchanged(task);

	struct task_decision decision = task_decide(task);

	task_rest(&decision, EVENT_TASK_REQUEUED, task->ready_at_ms, given);
	return task_decided(task, decision);
}

struct task_decision task_strand(const struct task *task, const struct given *given)
{
	int64_t waited_ms = given->now.wall_ms - task->ready_at_ms;

	if (task->state != TASK_READY || task->executor == 0 || waited_ms < given->rules->executor_missing_ms)
		return task_unchanged(task);

	struct task_decision decision = task_decide(task);

	task_move(&decision, EVENT_TASK_BLOCKED, TASK_BLOCKED);
	decision.task.code = CODE_EXECUTOR_NOT_FOUND;
	return task_decided(task, decision);
}

struct task_decision task_deadline(const struct task *task, const struct given *given)
{
	if (task_state_is_final(task->state) || task_is_claimed(task) || !task_is_past_deadline(task, given))
		return task_unchanged(task);

	struct task_decision decision = task_decide(task);

	task_move(&decision, EVENT_TASK_FAILED, TASK_FAILED);
	decision.task.code = CODE_DEADLINE;
	decision.follow = FOLLOW_PARENT_DEAD;
	return task_decided(task, decision);
}

struct task_decision task_parent_done(const struct task *task, const struct given *given)
{
	if (task->open_parents == task->dead_parents)
		return task_unchanged(task); /* an operator let it go on without that parent */

	struct task_decision decision = task_decide(task);

	decision.task.open_parents--;
	if (task->state == TASK_WAITING && task_resting_state(&decision.task, given) != TASK_WAITING)
		task_rest(&decision, EVENT_TASK_REQUEUED, task->ready_at_ms, given);
	else
		task_move(&decision, EVENT_TASK_UPDATED, task->state);
	return task_decided(task, decision);
}

struct task_decision task_parent_dead(const struct task *task, const struct given *given)
{
	if (task->open_parents == task->dead_parents)
		return task_unchanged(task);

	struct task_decision decision = task_decide(task);

	decision.task.dead_parents++;
	enum task_state to = task_resting_state(&decision.task, given);
	if (task->state == TASK_WAITING && to != TASK_WAITING && to != TASK_BLOCKED) {
		task_rest(&decision, EVENT_TASK_REQUEUED, task->ready_at_ms, given);
	} else if (task->state == TASK_WAITING && to == TASK_BLOCKED) {
		task_move(&decision, EVENT_TASK_BLOCKED, TASK_BLOCKED);
		decision.task.code = CODE_DEPENDENCY_FAILED;
	} else {
		task_move(&decision, EVENT_TASK_UPDATED, task->state);
	}
	return task_decided(task, decision);
}

struct task_decision task_parent_reopened(const struct task *task, const struct given *given)
{
	(void)given;
	if (task->dead_parents == 0)
		return task_unchanged(task);

	struct task_decision decision = task_decide(task);

	decision.task.dead_parents--;
	if (task->state == TASK_BLOCKED && task->code == CODE_DEPENDENCY_FAILED &&
		decision.task.dead_parents == 0) {
		task_move(&decision, EVENT_TASK_REQUEUED, TASK_WAITING);
		decision.task.code = CODE_NONE;
	} else {
		task_move(&decision, EVENT_TASK_UPDATED, task->state);
	}
	return task_decided(task, decision);
}

struct task_decision task_schedule_free(const struct task *task, const struct given *given)
{
	if (task->occurrence != OCCURRENCE_HELD || task_state_is_final(task->state))
		return task_unchanged(task);

	struct task_decision decision = task_decide(task);

	decision.task.occurrence = OCCURRENCE_MADE;
	if (task->state == TASK_WAITING && !task_is_held_back(&decision.task))
		task_rest(&decision, EVENT_TASK_REQUEUED, task->ready_at_ms, given);
	else
		task_move(&decision, EVENT_TASK_UPDATED, task->state);
	return task_decided(task, decision);
}
