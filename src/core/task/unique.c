/*
 * Unique keys: who holds one, and what a new task with the key means for its holder.
 *
 *   holder, in line ── supersede ──▶ cancelled                 the successor has its key, its place in line and its dependants
 *   holder, claimed ── supersede ──▶ claimed ── done ──▶ done
 *                                       └── any other end ──▶ cancelled        until then the successor waits
 *
 * A key is held until the task is final. With a time of its own it is held past `done`, and past nothing else: what failed may be
 * created again.
 */
#include "core/task/task.h"

#include <assert.h>

#include "core/task/move.h"

bool task_holds_key(const struct task *task, int64_t now_ms)
{
	if (!task->keyed || task->superseded_by != 0 || task->state == TASK_NOWHERE)
		return false;
	return !task_state_is_final(task->state) ||
		(task->state == TASK_DONE && task->unique_until_ms > now_ms);
}

enum key_meeting task_meet_key(const struct task *holder, enum on_conflict on_conflict, bool may_cancel)
{
	switch (on_conflict) {
	case CONFLICT_EXISTING:
		return MEETING_EXISTS;
	case CONFLICT_REJECT:
		return MEETING_REFUSED;
	case CONFLICT_REPLACE:
		break;
	}
	if (task_state_is_final(holder->state)) /* it is done, and its time is not over */
		return MEETING_EXISTS;
	return may_cancel ? MEETING_REPLACES : MEETING_REFUSED;
}

void task_succeed(struct task *draft, const struct task *holder)
{
	draft->created_ms = holder->created_ms;
	draft->predecessor = task_is_claimed(holder) ? holder->seq : holder->predecessor;
	/* one that is put off again and again runs in the end */
	if (holder->unique_until_ms != 0 && draft->ready_at_ms > holder->unique_until_ms)
		draft->ready_at_ms = holder->unique_until_ms;
}

struct task_decision task_supersede(const struct task *holder, int64_t successor)
{
	struct task_decision decision = task_decide(holder);

	assert(!task_state_is_final(holder->state));
	assert(successor > holder->seq);
	decision.task.superseded_by = successor;
	if (task_is_claimed(holder)) {
		task_move(&decision, EVENT_TASK_UPDATED, holder->state);
	} else {
		task_move(&decision, EVENT_TASK_CANCELLED, TASK_CANCELLED);
		decision.follow = FOLLOW_PARENT_DEAD;
	}
	return task_decided(holder, decision);
}

struct task_decision task_predecessor_ended(const struct task *task, const struct given *given)
{
	if (task->predecessor == 0 || task_state_is_final(task->state))
		return task_unchanged(task);

	struct task_decision decision = task_decide(task);

	decision.task.predecessor = 0;
	if (task->state == TASK_WAITING && !task_is_held_back(&decision.task))
		task_rest(&decision, EVENT_TASK_REQUEUED, task->ready_at_ms, given);
	else
		task_move(&decision, EVENT_TASK_UPDATED, task->state);
	return task_decided(task, decision);
}

bool task_counts_in_group(const struct task *task)
{
	return task->group != 0 && !(task->state == TASK_CANCELLED && task->superseded_by != 0);
}
