/*
 * What people do to tasks, queues, slots and the whole: cancel, retry, pause, assign, disarm. Answers are in ask.c.
 */
#include <errno.h>

#include "store/command/commands.h"
#include "store/read/sound.h"

/* Cancel and stop: whether the task waits for its holder depends on what the holder is. */
int execute_call_off(struct turn *turn, struct turn_task *view, struct result *result)
{
	const struct command *command = turn->command;
	static const struct worker nobody;
	const struct worker *holder = &nobody;

	if (view->task.claim.holder != 0) {
		const struct turn_worker *worker = turn_worker_by_number(turn, view->task.claim.holder);
		if (!worker)
			return -ENOMEM;
		holder = &worker->worker;
	}
	bool stops = command->kind == COMMAND_STOP;
	struct task_decision decision =
		stops ? task_stop(&view->task, holder) : task_cancel(&view->task, holder, &turn->given);
	return stops ? command_write_keeping(turn, view, &decision, EXTRA_ERROR, result)
		     : command_write(turn, view, &decision, result);
}

struct dead_edges {
	int64_t parents[COMMAND_PARENTS_MAX];
	uint32_t count;
};

static int collect_dead(void *context, const struct edge_row *row)
{
	struct dead_edges *dead = context;

	if (row->dead && dead->count < COMMAND_PARENTS_MAX)
		dead->parents[dead->count++] = row->parent;
	return 0;
}

/* A retry ignores parents that failed: the task no longer depends on them. */
static int forget_dead_parents(struct turn *turn, int64_t seq)
{
	struct dead_edges dead = {0};
	int r = store_rows(turn->store, parents, seq, collect_dead, &dead);

	for (uint32_t i = 0; r == 0 && i < dead.count; i++)
		r = turn_put(turn, delete_edge, dead.parents[i], seq);
	return r;
}

int command_find_key(struct turn *turn, struct span key, struct turn_task **ret_holder)
{
	struct turn_task *view;
	int64_t seq;

	*ret_holder = NULL;
	int r = store_rows(turn->store, find_key, key, &seq);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = turn_task(turn, seq, &view);
	if (r < 0)
		return store_must_find(turn->store, r, seq);
	/* the time of one that is done may be over */
	*ret_holder = task_holds_key(&view->task, turn->given.now.wall_ms) ? view : NULL;
	return 0;
}

int command_key_is_taken(struct turn *turn, const struct turn_task *view, bool *ret_taken)
{
	struct turn_task *holder;
	struct span key;

	*ret_taken = false;
	if (!view->task.keyed || !task_state_is_final(view->task.state))
		return 0;
	int r = store_rows(turn->store, get_extra, view->task.seq, EXTRA_KEY, 0, &turn->arena, &key);
	if (r < 0)
		return store_must_find(turn->store, r, view->task.seq);
	r = command_find_key(turn, key, &holder);
	*ret_taken = r == 0 && holder && holder->task.seq != view->task.seq;
	return r;
}

int execute_retry(struct turn *turn, struct turn_task *view, struct result *result)
{
	bool key_taken = false;

	int r = command_key_is_taken(turn, view, &key_taken);
	if (r < 0)
		return r;
	uint32_t dead_parents = view->task.dead_parents;
	struct task_decision decision = task_retry(&view->task, key_taken, &turn->given);
	if (turn->command->anew && decision.refusal == REFUSED_NOTHING)
		task_begin_anew(&decision);
	bool was_final = task_state_is_final(view->task.state);
	r = command_write(turn, view, &decision, result);
	if (r == 0 && result->refusal == REFUSED_NOTHING && was_final)
		r = questions_forget_allowed(turn, view->task.seq);
	if (r == 0 && result->refusal == REFUSED_NOTHING && view->task.subtasks != SUBTASKS_NONE)
		r = subtasks_begin_anew(turn, view->task.seq);
	if (r < 0 || result->refusal != REFUSED_NOTHING || dead_parents == 0)
		return r;
	return forget_dead_parents(turn, view->task.seq);
}

int execute_purge(struct turn *turn, struct turn_task *view, struct result *result)
{
	bool needed = false;
	int r = task_state_is_final(view->task.state) ? task_is_needed(turn, view, &needed) : 0;
	if (r < 0 || needed)
		return r < 0 ? r : command_refuse(result, REFUSED_IN_USE);
	struct task_decision decision = task_purge(&view->task, &turn->given);
	r = command_write(turn, view, &decision, result);

	if (r < 0 || result->refusal != REFUSED_NOTHING)
		return r;
	return turn_put(
		turn, put_meta, META_TASK_FLOOR, turn->facts.last_task); /* no number is given out twice */
}

int execute_queue_set(struct turn *turn, const struct command *command, struct result *result)
{
	uint32_t name;

	int r = turn_name(turn, command->queue_set.queue, &name);
	if (r < 0)
		return r == -E2BIG ? command_refuse(result, REFUSED_TOO_LARGE) : r;
	struct queue_decision decision = queue_set(turn_queue(turn, name), command->queue_set.state);
	if (decision.event == EVENT_NONE) {
		result->repeated = true;
		return 0;
	}
	struct record record = turn_record(turn, decision.event);
	r = turn_write_queue(turn, name, decision.state, &record);
	if (r == 0 && decision.state == QUEUE_DRAINING && queue_is_empty(turn, name))
		r = queue_tell_drained(turn, name);
	return r;
}

int execute_execution_set(struct turn *turn, const struct command *command, struct result *result)
{
	struct execution_decision decision = execution_set(!turn->facts.disarmed, command->armed);

	if (decision.event == EVENT_NONE) {
		result->repeated = true;
		return 0;
	}
	struct record record = turn_record(turn, decision.event);
	return turn_write_execution(turn, decision.execution, &record);
}
