/*
 * What follows for the task itself from what happened to it: its session gets events, its stage moves, its gates open.
 * Each is a note beside the event that caused it.
 */
#include <errno.h>

#include "store/turn/parts.h"

/* ---- sessions ---- */

/* The task's session, as the turn has it; NULL: the task is no session. */
static const struct session *find_session(const struct turn *turn, int64_t seq)
{
	for (uint32_t i = turn->spawned_count; i > 0; i--) {
		if (turn->spawned[i - 1].seq == seq)
			return &turn->spawned[i - 1];
	}
	return sessions_find(&turn->store->sessions, seq);
}

struct span turn_session_label(const struct turn *turn, int64_t seq)
{
	const struct session *session = find_session(turn, seq);

	return session ? session->label : (struct span){0};
}

/* A session that nobody asked for begins when its worker says so, and is that attempt alone. */
static bool is_silent(const struct session *session, enum event_kind kind, uint64_t fence)
{
	return session->found &&
		((kind == EVENT_SESSION_STARTED && fence != 0) ||
			(session->fence != 0 && fence != 0 && session->fence != fence));
}

/* A note beside the event that says what happened to the task. */
static int note_session(struct turn *turn, struct turn_task *view, enum event_kind kind, struct span label,
	struct span worker, struct span note)
{
	struct task after = view->task;

	struct record record = turn_record(turn, kind);
	record.note = note;
	record.subject = label;
	record.worker = worker;
	int r = turn_write_change(turn, view, &after, &record);
	if (r < 0)
		return r;
	after.version = record.seq;
	view->task = after;
	view->changed = true;
	return turn_write_row(turn, &after, false);
}

/* An attempt of a session began, or is over. With the end of the session goes the notice that was asked for when it was spawned. */
int turn_follow_session(
	struct turn *turn, struct turn_task *view, enum event_kind event, uint64_t fence, uint32_t holder)
{
	const struct session *of = find_session(turn, view->task.seq);
	struct session_document session = {0};

	if (!of)
		return 0;
	struct span label = of->label;
	enum event_kind kind = task_session_event(event, fence, holder != 0, &view->task);
	if (kind == EVENT_NONE || is_silent(of, kind, fence))
		return 0;
	uint32_t who = view->task.claim.holder != 0 ? view->task.claim.holder : holder;
	const struct turn_worker *worker = turn_worker_by_number(turn, who);
	if (!worker)
		return -ENOMEM;
	int r = task_session_is_over(view->task.state)
		? store_read_session(turn->store, view->task.seq, &turn->arena, &session)
		: 0;
	return r < 0 ? r : note_session(turn, view, kind, label, worker->id, session.notice);
}

int turn_tell_output(struct turn *turn, struct turn_task *view)
{
	const struct session *session = find_session(turn, view->task.seq);

	if (!session || session->found) /* the log of an agent's attempt is read there */
		return 0;
	const struct turn_worker *worker = turn_worker_by_number(turn, view->task.claim.holder);
	return worker ? note_session(turn, view, EVENT_SESSION_OUTPUT, session->label, worker->id,
				turn->command->note)
		      : -ENOMEM;
}

int turn_tell_usage(struct turn *turn, struct turn_task *view)
{
	const struct session *session = find_session(turn, view->task.seq);

	if (!session || view->task.claim.holder == 0)
		return 0;
	const struct turn_worker *worker = turn_worker_by_number(turn, view->task.claim.holder);
	return worker ? note_session(turn, view, EVENT_SESSION_USAGE, session->label, worker->id,
				turn->command->note)
		      : -ENOMEM;
}

int turn_write_session(struct turn *turn, struct turn_task *view, const struct session *session)
{
	int r = turn_grow(
		(void **)&turn->spawned, turn->spawned_count, &turn->spawned_cap, sizeof *turn->spawned);

	char *label = r == 0 ? index_copy(session->label) : NULL;
	if (!label)
		return -ENOMEM;
	turn->spawned[turn->spawned_count] = *session;
	turn->spawned[turn->spawned_count++].label.data = label;
	/* it runs already: the attempt is the session's from now on */
	return task_is_claimed(&view->task) ? turn_follow_session(turn, view, EVENT_NONE, 0, 0) : 0;
}

/* ---- stages and gates ---- */

const struct workflow_plan *turn_plan(const struct turn *turn, const struct task *task)
{
	return task->workflow == WORKFLOW_NONE ? &workflow_plan_unknown
					       : workflow_plan_of(&turn->store->workflows, task->workflow);
}

int turn_follow(struct turn *turn, struct turn_task *view, const struct task *before)
{
	static const struct outside_event nothing;
	const struct outside_event *outside =
		turn->outside_event_task == view->task.seq ? &turn->outside_event : &nothing;

	if (view->task.workflow == WORKFLOW_NONE)
		return 0;
	struct stage_move move = workflow_follow(turn_plan(turn, before), before, &view->task, outside);
	if (move.stage == view->task.stage)
		return 0;
	struct task_decision decision = task_set_stage(&view->task, move.stage);
	struct record record = turn_record(turn, decision.event);
	record.note = turn->command ? turn->command->told.note : (struct span){0};
	record_fact(&record, FACT_STAGE_FROM, view->task.stage);
	if (move.action != ACTION_NONE)
		record_fact(&record, FACT_ACTION, move.action);
	int r = turn_write_one(turn, view, &decision, &record);
	return r < 0 || move.action == ACTION_NONE ? r : action_begin(turn, view, move.action);
}

/* The work was reported: its gates are open. */
static int open_gates(struct turn *turn, struct turn_task *view)
{
	struct name_set gates;
	int r = 0;

	names_set_members(&turn->store->names, view->task.gates, &gates);
	for (uint32_t i = 0; r == 0 && i < gates.count; i++) {
		struct task_decision decision = task_open_gate(&view->task, UINT32_C(1) << i);
		struct record record = turn_record(turn, decision.event);
		record.note = (struct span){0};
		record.subject = names_text(&turn->store->names, gates.ids[i]);
		r = turn_write_one(turn, view, &decision, &record);
	}
	return r;
}

/* What follows for the task itself from what was decided about it. */
int turn_follow_own(struct turn *turn, struct turn_task *view, const struct task *before)
{
	int r = turn_follow(turn, view, before);

	if (r == 0 && view->task.gates != 0 && view->task.state == TASK_REVIEW &&
		before->state != TASK_REVIEW)
		r = open_gates(turn, view);
	return r;
}
