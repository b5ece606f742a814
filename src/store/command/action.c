/*
 * Actions of workflows: a stage begins a task that does or judges something for the task that came to it, and the end of that one is
 * told as an event from outside would be.
 *
 *	action      done                               failed
 *	validate    validator.passed: the gate         validator.failed: rejected, with its error as the reason
 *	create_pr   create_pr.succeeded, checks.passed create_pr.failed; checks.failed if its code is CHECK_FAILED
 *	merge       merge.succeeded                    merge.failed
 *	verify      verify.passed                      verify.failed
 *
 * One that was called off says nothing, and a person decides. Nothing counts for an attempt that came later, nor what was done by
 * the executor whose work it judges.
 */
#include <errno.h>
#include <stdio.h>

#include "store/command/commands.h"

int action_begin(struct turn *turn, struct turn_task *of, enum action action)
{
	const struct action_tasks *tasks = &turn->store->actions;
	struct task draft = {
		.verdict_for = of->task.seq, .verdict_action = action, .verdict_attempt = of->task.attempt};
	struct turn_task *view;
	struct span id, body;

	if (tasks->queues[action].len == 0)
		return 0;
	int r = turn_id_text(turn, of, &id);
	if (r == 0)
		r = tasks->body(&turn->arena, action, id, &body);
	if (r == 0)
		r = turn_name(turn, tasks->queues[action], &draft.queue);
	if (r == 0)
		r = command_next_seq(turn, &draft.seq);
	if (r < 0)
		return r == -E2BIG ? 0 : r; /* then the event alone tells what is to be done */
	/* it goes on with what was begun: a queue that takes nothing new takes it */
	struct task_decision decision = task_create(&draft, false, QUEUE_OPEN, &turn->given);
	struct record record = turn_record(turn, decision.event);
	record.note = (struct span){0};
	r = turn_write_new(turn, &decision, (struct span){0}, &record, &view);
	return r < 0 ? r : turn_put(turn, put_body, draft.seq, body);
}

/* The event that its end is, and the one that follows; empty: it says nothing. */
static struct span event_of(const struct task *task, struct span *ret_next)
{
	bool done = task->state == TASK_DONE;

	*ret_next = (struct span){0};
	switch (task->verdict_action) {
	case ACTION_VALIDATE:
		return done ? SPAN("validator.passed") : SPAN("validator.failed");
	case ACTION_CREATE_PR:
		if (done)
			*ret_next = SPAN("checks.passed");
		return done                               ? SPAN("create_pr.succeeded")
			: task->code == CODE_CHECK_FAILED ? SPAN("checks.failed")
							  : SPAN("create_pr.failed");
	case ACTION_MERGE:
		return done ? SPAN("merge.succeeded") : SPAN("merge.failed");
	case ACTION_VERIFY:
		return done ? SPAN("verify.passed") : SPAN("verify.failed");
	case ACTION_NONE:
	case ACTION_COUNT:
		break;
	}
	return (struct span){0};
}

static bool counts(const struct task *task, const struct task *judged)
{
	bool judges_itself = task->executor != 0 && task->executor == judged->executor &&
		task->verdict_action == ACTION_VALIDATE;

	return judged->state == TASK_REVIEW && judged->attempt == task->verdict_attempt && !judges_itself &&
		task->state != TASK_CANCELLED;
}

/* "event":"merge.succeeded","by":"t-9" */
static int put_note(struct turn *turn, struct span event, struct span by, struct span *ret_note)
{
	char text[2 * COMMAND_ID_MAX];
	int len = snprintf(
		text, sizeof text, "\"event\":\"%.*s\",\"by\":\"%.*s\"", SPAN_ARGS(event), SPAN_ARGS(by));

	return arena_copy(&turn->arena, (struct span){text, (size_t)len}, ret_note);
}

/* What was said of its failure: with the command that ended it, or with its last attempt. */
static int error_of(struct turn *turn, const struct turn_task *view, struct span by, struct span *ret_error)
{
	const struct action_tasks *tasks = &turn->store->actions;
	const struct command *command = turn->command;
	bool at_hand = command && command->kind == COMMAND_FAIL && command->data.len > 0;
	struct span said = at_hand ? command->data : (struct span){0};
	int r = at_hand ? 0 : store_get_kept(turn->store, view->task.seq, EXTRA_ERROR, &turn->arena, &said);

	return r < 0 ? r : tasks->error(&turn->arena, view->task.verdict_action, by, said, ret_error);
}

int action_ended(struct turn *turn, struct turn_task *view)
{
	const struct task task = view->task;
	struct span next, by, note, error = {0}, event = event_of(&task, &next);
	struct turn_task *judged;

	int r = turn_task(turn, task.verdict_for, &judged);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (!counts(&task, &judged->task) || event.len == 0)
		return 0;
	r = turn_id_text(turn, view, &by);
	if (r == 0 && task.state != TASK_DONE)
		r = error_of(turn, view, by, &error);
	if (r == 0)
		r = put_note(turn, event, by, &note);
	if (r == 0)
		r = command_tell(turn, judged, event, note, error);
	if (r == 0 && next.len > 0)
		r = put_note(turn, next, by, &note);
	return r < 0 || next.len == 0 ? r : command_tell(turn, judged, next, note, error);
}
