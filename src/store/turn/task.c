/*
 * The one way to write a decision about a task: its event, its row, and what follows from it for others.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "core/task/subtask.h"
#include "store/turn/parts.h"
#include "store/read/sound.h"

struct record turn_record(const struct turn *turn, enum event_kind kind)
{
	const struct command *command = turn->command;

	return (struct record){
		.kind = kind,
		.wall_ms = turn->given.now.wall_ms,
		.lease_ms = turn->given.now.lease_ms,
		.actor = command ? command->actor : (struct span){0},
		.note = command ? command->note : (struct span){0},
	};
}

int turn_write_event(struct turn *turn, struct record *record)
{
	assert(record->kind != EVENT_NONE);
	assert(turn->facts.last_event >= turn->store->facts.last_event); /* numbers only rise */
	record->seq = turn->facts.last_event + 1;
	turn->told[record->kind]++;
	turn->told_kinds[record->kind / 64] |= UINT64_C(1) << record->kind % 64;
	buf_clear(&turn->record);
	int r = record_encode(record, &turn->record);
	if (r == 0)
		r = turn_put(turn, put_event, record->seq, buf_span(&turn->record));
	if (r == 0)
		turn->facts.last_event = record->seq;
	return r;
}

int turn_write_row(struct turn *turn, const struct task *task, bool fresh)
{
	struct task_row row = {.task = *task};

	if (task->claim.holder != 0) {
		const struct turn_worker *holder = turn_worker_by_number(turn, task->claim.holder);
		if (!holder)
			return -ENOMEM;
		row.holder = holder->id;
	}
	return turn_put(turn, put_task, &row, fresh);
}

/* The row of a unique key follows the task that holds it. That of a task which is done stays while its time lasts, and past it until another
 * task takes the key, or the task is retried or removed. */
static int move_key(struct turn *turn, const struct task *before, const struct task *after)
{
	int64_t now_ms = turn->given.now.wall_ms, holder;
	bool may_have = before->state == TASK_DONE && before->unique_until_ms != 0;
	bool has = task_holds_key(after, now_ms), had = task_holds_key(before, now_ms);
	struct span key;

	if (!before->keyed || !after->keyed || (has == had && !may_have))
		return 0;
	int r = store_rows(turn->store, get_extra, after->seq, EXTRA_KEY, 0, &turn->arena, &key);
	if (r < 0)
		return store_must_find(turn->store, r, after->seq);
	if (may_have) {
		r = store_rows(turn->store, find_key, key, &holder);
		had = r == 0 && holder == after->seq;
		if (r < 0 && r != -ENOENT)
			return r;
	}
	if (has == had)
		return 0;
	return has ? turn_put(turn, put_key, key, after->seq) : turn_put(turn, delete_key, key);
}

static int count_holder(struct turn *turn, uint32_t before, uint32_t after)
{
	if (before == after)
		return 0;
	if (before != 0) {
		struct turn_worker *holder = turn_worker_by_number(turn, before);
		if (!holder)
			return -ENOMEM;
		assert(holder->worker.held > 0);
		if (worker_is_full(&holder->worker))
			holder->widened = turn->any_widened = true;
		holder->worker.held--;
	}
	if (after != 0) {
		struct turn_worker *holder = turn_worker_by_number(turn, after);
		if (!holder)
			return -ENOMEM;
		holder->worker.held++;
	}
	return 0;
}

static int stage_follow(struct turn *turn, struct turn_task *view, enum follow follow);

/* The row changes although nothing happened that an event tells: a lease moved. */
static int stage_quietly(struct turn *turn, struct turn_task *view, struct task *after)
{
	after->updated_ms = turn->given.now.wall_ms;
	int r = turn_write_row(turn, after, false);
	if (r < 0)
		return r;
	view->task = *after;
	view->changed = true;
	return 0;
}

static bool claim_equal(const struct claim *a, const struct claim *b)
{
#define X(name, field, row) a->field == b->field &&
	return CLAIM_FIELDS(X) a->holder == b->holder && claim_flags(a) == claim_flags(b);
#undef X
}

int turn_write_change(
	struct turn *turn, struct turn_task *view, const struct task *after, struct record *record)
{
	uint32_t holder = after->claim.holder != 0 ? after->claim.holder : view->task.claim.holder;
	int r = turn_own_id(turn, view);
	if (r < 0)
		return r;
	record->task = view->task.seq;
	record->previous = view->task.version;
	record->id = view->own_id;
	if (holder != 0 && record->worker.len == 0) {
		const struct turn_worker *worker = turn_worker_by_number(turn, holder);
		if (!worker)
			return -ENOMEM;
		record->worker = worker->id;
	}
	record_diff(record, &view->task, after);
	return turn_write_event(turn, record);
}

/* The principals that held earlier attempts are remembered: they give no verdict on the task. */
static int keep_claimant(struct turn *turn, const struct task *before, const struct task *after)
{
	if (before->claimant == PRINCIPAL_NOBODY || before->claimant == after->claimant)
		return 0;
	return turn_put(turn, put_extra, after->seq, EXTRA_CLAIMANT, before->claimant, SPAN("1"));
}

/* ---- what a slot finds of a loss or a failure ------------------------------------------------------ */

/* When it was, and the session of then. */
static int keep_moment(struct turn *turn, int64_t seq, enum extra_kind kind)
{
	struct span session;

	int r = store_get_kept(turn->store, seq, EXTRA_SESSION, &turn->arena, &session);
	if (r < 0)
		return r;
	buf_clear(&turn->record);
	buf_put_decimal(&turn->record, (uint64_t)turn->given.now.wall_ms);
	buf_put_byte(&turn->record, ' ');
	buf_put_span(&turn->record, session);
	return turn_put_record(turn, seq, kind, 0);
}

/* Older slot workers write into the metadata of their task when it failed, and when they resumed it after a crash. The server
 * keeps the same for failures and losses that it finds itself, unless the caller gives them. */
static int keep_trace(struct turn *turn, const struct task *after, enum event_kind event)
{
	const struct command *command = turn->command;
	bool is_said = command && command->kind == COMMAND_UPDATE && command->update.says_failure;
	bool in_line = after->state == TASK_READY || after->state == TASK_SCHEDULED;
	/* a successor of its worker reports the crash before the lease is over */
	bool crashed = event == EVENT_TASK_FAILED && after->code != CODE_NONE &&
		failure_code_class(after->code) == CLASS_CRASH;
	bool lost = event == EVENT_TASK_EXPIRED || crashed;

	if (lost && in_line)
		return keep_moment(turn, after->seq, EXTRA_RECOVERED);
	if (is_said || after->code == CODE_NONE)
		return 0;
	return lost || event == EVENT_TASK_FAILED || event == EVENT_TASK_BLOCKED
		? keep_moment(turn, after->seq, EXTRA_FAILED)
		: 0;
}

/* ---- who is to hear of it -------------------------------------------------------------------------- */

/* Somebody else than the holder, or the clock, has done something to what it holds: a word of the worker itself needs no
 * telling. */
static bool concerns_holder(const struct turn *turn, const struct task *before, const struct task *after)
{
	_Static_assert(COMMAND_CLAIM_NEXT == COMMAND_EXECUTION_SET + 1,
		"the commands of producers and operators stand before those of workers");
	if (turn->command && turn->command->kind >= COMMAND_CLAIM_NEXT)
		return false;
	return after->claim.holder != before->claim.holder ||
		after->claim.stopping > before->claim.stopping ||
		(before->state == TASK_ASKING && after->state != TASK_ASKING);
}

int turn_notify(struct turn *turn, uint32_t holder)
{
	struct span id = holder_id(index_holder(&turn->store->index, holder));

	if (holder == turn->notified_last) /* a worker that loses thousands of tasks is notified once */
		return 0;
	int r = turn_grow(
		(void **)&turn->notified, turn->notified_count, &turn->notified_cap, sizeof *turn->notified);
	if (r == 0)
		r = arena_copy(&turn->arena, id, &turn->notified[turn->notified_count]);
	if (r < 0)
		return r;
	turn->notified_count++;
	turn->notified_last = holder;
	return 0;
}

/* ---- edges ------------------------------------------------------------------------------------------- */

struct edges {
	struct turn *turn;
	struct edge_row *rows;
	uint32_t count, cap;
};

static int collect_edge(void *context, const struct edge_row *row)
{
	struct edges *edges = context;

	if (edges->count == edges->cap) {
		uint32_t cap = edges->cap ? edges->cap * 2 : 16;
		struct edge_row *rows = arena_alloc(&edges->turn->arena, cap * sizeof *rows);
		if (!rows)
			return -ENOMEM;
		if (edges->count > 0)
			memcpy(rows, edges->rows, edges->count * sizeof *rows);
		edges->rows = rows;
		edges->cap = cap;
	}
	edges->rows[edges->count++] = *row;
	return 0;
}

/* The result of a parent that is done is there until the child has ended; see task_is_needed(). */
static bool edge_is_kept(const struct edge_row *edge, const struct task *child)
{
	return edge->parent > 0 && child->has_parent && !task_awaits(child) &&
		!task_state_is_final(child->state);
}

/* What it has read of its parents it needs no more. */
static int forget_done_parents(struct turn *turn, int64_t seq)
{
	struct edges edges = {.turn = turn};
	int r = store_rows(turn->store, parents, seq, collect_edge, &edges);

	for (uint32_t i = 0; r == 0 && i < edges.count; i++) {
		if (edges.rows[i].done)
			r = turn_put(turn, delete_edge, edges.rows[i].parent, seq);
	}
	return r;
}

/* What it waits for it waits for no more; and those that it has created are called off with it. */
static int follow_subtasks(struct turn *turn, const struct turn_task *view, const struct task *before)
{
	int r = task_awaits(before) && !task_awaits(&view->task) ? subtasks_drop_edges(turn, before->seq) : 0;

	return r == 0 && task_calls_off_subtasks(before, &view->task) ? subtasks_call_off(turn, view) : r;
}

/* The attempt of the task whose key it took has ended. */
static int let_successor_go(struct turn *turn, int64_t seq)
{
	struct turn_task *view;
	int r = turn_task(turn, seq, &view);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	struct task_decision decision = task_predecessor_ended(&view->task, &turn->given);
	if (decision.event == EVENT_NONE)
		return 0;
	struct record record = turn_record(turn, decision.event);
	record.note = (struct span){0};
	return turn_write_task(turn, view, &decision, &record);
}

/* ---- the one way to write a decision -------------------------------------------------------------- */

int turn_write_task(struct turn *turn, struct turn_task *view, const struct task_decision *decision,
	struct record *record)
{
	bool has_own_follow = view->task.workflow != WORKFLOW_NONE || view->task.gates != 0;

	if (!has_own_follow || decision->event == EVENT_NONE)
		return turn_write_one(turn, view, decision, record);
	struct task before = view->task;
	int r = turn_write_one(turn, view, decision, record);
	return r < 0 || view->gone ? r : turn_follow_own(turn, view, &before);
}

int turn_write_one(struct turn *turn, struct turn_task *view, const struct task_decision *decision,
	struct record *record)
{
	struct task after = decision->task, before = view->task;
	enum task_state from = before.state;
	bool was_final = task_state_is_final(from);

	assert(decision->refusal == REFUSED_NOTHING); /* a refusal is answered and never written */
	assert(!view->gone);                          /* nothing happens to a task that was removed */
	assert(decision->task.seq == view->task.seq);
	if (decision->event == EVENT_NONE)
		return claim_equal(&view->task.claim, &after.claim) ? 0 : stage_quietly(turn, view, &after);
	if (was_final && after.group != 0 && !task_state_is_final(after.state) &&
		after.state != TASK_NOWHERE) {
		int lost = group_leave_if_gone(turn, &after.group);
		if (lost < 0)
			return lost;
	}

	uint64_t fence = view->task.fence;
	uint32_t holder = view->task.claim.holder;
	if (view->task.claim.named && after.claim.holder == 0)
		record_fact(record, FACT_EXPIRES,
			turn->given.now.wall_ms + task_run_remaining_ms(&view->task, &turn->given));
	int r = turn_write_change(turn, view, &after, record);
	if (r < 0)
		return r;
	assert(record->previous == view->task.version); /* the events of a task are one chain … */
	assert(record->seq > record->previous);         /* … and go forward */
	assert(after.fence >= fence);                   /* a fence is never given out again */
	after.version = record->seq;
	after.updated_ms = record->wall_ms;
	view->gone = after.state == TASK_NOWHERE;
	if (view->gone)
		r = session_forget(turn, after.seq);
	if (r == 0)
		r = move_key(turn, &before, &after);
	if (r < 0)
		return r;
	r = view->gone ? turn_put(turn, delete_task, after.seq) : turn_write_row(turn, &after, false);
	if (r == 0)
		r = count_holder(turn, view->task.claim.holder, after.claim.holder);
	if (r == 0)
		r = limits_follow(turn, &view->task, &after);
	if (r == 0)
		r = keep_claimant(turn, &view->task, &after);
	if (r == 0 && after.owner != 0 && !view->gone)
		r = keep_trace(turn, &after, decision->event);
	if (r == 0 && holder != 0 && concerns_holder(turn, &view->task, &after))
		r = turn_notify(turn, holder);
	if (r < 0)
		return r;
	view->task = after;
	view->changed = true;
	if (was_final && view->children == 0)
		view->children = 1; /* reopened: how many it blocks is on disk, see stage_follow() */
	bool is_final = view->gone || task_state_is_final(after.state);
	turn->facts.finals += (int)(is_final && !view->gone) - (int)was_final;
	r = 0;
	if (is_final && turn_is_told(turn, after.seq)) /* nobody will hear it any more */
		r = tellings_heard(turn, after.seq, UINT32_MAX);
	if (r == 0 && is_final && !was_final && after.has_parent)
		r = forget_done_parents(turn, after.seq);
	if (r == 0 && after.subtasks != SUBTASKS_NONE)
		r = follow_subtasks(turn, view, &before);
	if (r == 0 && after.occurrence != OCCURRENCE_NONE && was_final != is_final)
		r = schedule_follow_task(turn, view);
	if (r == 0 && !was_final)
		r = queue_follow_task(turn, &before, &after);
	if (r == 0 && after.verdict_for != 0 && is_final && !was_final)
		r = action_ended(turn, view);
	if (r == 0 && after.superseded_by != 0 && is_final && task_is_claimed(&before))
		r = let_successor_go(turn, after.superseded_by);
	if (r == 0 && after.group != 0 && from != after.state)
		r = group_follow_task(turn, after.group, task_counts_in_group(&before) ? from : TASK_NOWHERE,
			task_counts_in_group(&after) ? after.state : TASK_NOWHERE);
	if (r == 0 && turn->store->sessions.count + turn->spawned_count > 0 && !view->gone)
		r = turn_follow_session(turn, view, decision->event, fence, holder);
	if (r == 0)
		r = turn_list_ready(turn, view);
	if (r == 0 && decision->follow != FOLLOW_NOTHING)
		r = stage_follow(turn, view, decision->follow);
	return r;
}

int turn_write_new(struct turn *turn, const struct task_decision *decision, struct span own_id,
	struct record *record, struct turn_task **ret_view)
{
	static const struct task nothing;
	struct turn_task *view;
	assert(decision->task.seq > turn->store->facts.last_task); /* its number is new … */
	assert(decision->task.seq <= turn->facts.last_task);       /* … and was given out by this turn */
	int r = turn_add_view(turn, decision->task.seq, &view);
	if (r < 0)
		return r;
	view->task = nothing;
	view->task.seq = decision->task.seq;
	view->own_id = own_id;
	struct task after = decision->task;
	r = turn_write_change(turn, view, &after, record);
	if (r < 0)
		return r;
	after.version = record->seq;
	after.updated_ms = record->wall_ms;
	r = turn_write_row(turn, &after, true);
	if (r == 0)
		r = limits_follow(turn, &view->task, &after);
	if (r < 0)
		return r;
	view->task = after;
	view->changed = true;
	turn->facts.finals += task_state_is_final(after.state); /* it came from elsewhere, and is over */
	*ret_view = view;
	r = turn_list_ready(turn, view);
	return r < 0 || after.group == 0 ? r
					 : group_follow_task(turn, after.group, TASK_NOWHERE, after.state);
}

/* ---- what one task means for those it blocks ---------------------------------------------------- */

static int stage_child(struct turn *turn, const struct edge_row *edge, enum follow follow)
{
	struct edge_row changed = *edge;
	struct turn_task *child;
	struct task_decision decision;
	int r = turn_task(turn, edge->child, &child);
	if (r < 0)
		return r == -ENOENT ? 0 : r;

	if (follow == FOLLOW_PARENT_DONE) {
		decision = task_parent_done(&child->task, &turn->given);
		changed.done = true;
		r = edge_is_kept(edge, &child->task) ? turn_put(turn, put_edge, &changed)
						     : turn_put(turn, delete_edge, edge->parent, edge->child);
	} else {
		changed.dead = follow == FOLLOW_PARENT_DEAD;
		decision = changed.dead ? task_parent_dead(&child->task, &turn->given)
					: task_parent_reopened(&child->task, &turn->given);
		r = turn_put(turn, put_edge, &changed);
	}
	if (r < 0)
		return r;
	struct record record = turn_record(turn, decision.event);
	return turn_write_task(turn, child, &decision, &record);
}

static int stage_follow(struct turn *turn, struct turn_task *view, enum follow follow)
{
	struct edges edges = {.turn = turn};

	if (follow == FOLLOW_PARENT_REVIVED) { /* its children wait again, and then no longer */
		int opened = stage_follow(turn, view, FOLLOW_PARENT_REOPENED);
		return opened < 0 ? opened : stage_follow(turn, view, FOLLOW_PARENT_DONE);
	}
	if (view->children == 0 && !view->was_final)
		return 0;
	int r = store_rows(turn->store, children, view->task.seq, collect_edge, &edges);
	if (r == 0 && follow == FOLLOW_PARENT_REOPENED)
		view->children = edges.count;
	for (uint32_t i = 0; r == 0 && i < edges.count; i++) {
		if (!edges.rows[i].done && edges.rows[i].dead == (follow == FOLLOW_PARENT_REOPENED))
			r = stage_child(turn, &edges.rows[i], follow);
	}
	return r;
}

int turn_follow_group(struct turn *turn, uint32_t group, enum follow follow, uint32_t *waiters)
{
	struct edges edges = {.turn = turn};

	if (follow == FOLLOW_PARENT_REVIVED) { /* what it blocked waits again, and then no longer */
		int opened = turn_follow_group(turn, group, FOLLOW_PARENT_REOPENED, waiters);
		return opened < 0 ? opened : turn_follow_group(turn, group, FOLLOW_PARENT_DONE, waiters);
	}
	int r = store_rows(turn->store, children, group_edge(group), collect_edge, &edges);
	if (follow == FOLLOW_PARENT_DONE)
		*waiters = 0;
	for (uint32_t i = 0; r == 0 && i < edges.count; i++) {
		if (edges.rows[i].dead == (follow == FOLLOW_PARENT_REOPENED))
			r = stage_child(turn, &edges.rows[i], follow);
	}
	return r;
}
