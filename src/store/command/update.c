/*
 * Changing what was asked for: fields, key, parents; and after that, if the caller names one, the status.
 *
 * Everything is decided before anything is staged: fields and status change together or not at all. They are two
 * decisions and so two events, in one transaction.
 */
#include <assert.h>
#include <errno.h>

#include "store/command/commands.h"
#include "store/read/sound.h"

enum {
	CYCLE_LOOKS_MAX = 10000,      /* tasks looked at for one that waits for itself */
	BODY_BYTES_OF_ONE = 64 << 10, /* a longer body counts as more changes */
};

/* What shall be written beside the row. */
struct plan {
	struct task_patch patch;
	struct span old_key;
	struct parents parents;
	struct parents old_parents;
};

/* ---- names and keys ---------------------------------------------------------------------------------- */

static int plan_names(struct turn *turn, const struct command_update *update, struct task_patch *patch)
{
	int r = patch->set_owner ? turn_name(turn, update->owner, &patch->owner) : 0;

	if (r == 0 && patch->set_queue)
		r = turn_name(turn, update->queue, &patch->queue);
	if (r == 0 && patch->set_executor)
		r = turn_name(turn, update->executor, &patch->executor);
	if (r == 0 && patch->set_credential)
		r = turn_name(turn, update->credential, &patch->credential);
	if (patch->set_concurrency_key)
		patch->concurrency_key = concurrency_key_number(update->concurrency_key);
	if (r == 0 && patch->set_requires)
		r = turn_name_set(turn, update->requires, &patch->requires);
	return r;
}

/* A key that another task holds is refused; a task that is final mostly holds none. */
static int plan_key(struct turn *turn, const struct turn_task *view, const struct command_update *update,
	struct plan *plan, struct result *result)
{
	struct turn_task *holder;

	plan->patch.keyed = update->unique_key.len > 0;
	int r = view->task.keyed ? store_rows(turn->store, get_extra, view->task.seq, EXTRA_KEY, 0,
					   &turn->arena, &plan->old_key)
				 : 0;
	struct task keyed = view->task;
	keyed.keyed = true;
	if (r < 0 || !plan->patch.keyed || !task_holds_key(&keyed, turn->given.now.wall_ms))
		return r;
	r = command_find_key(turn, update->unique_key, &holder);
	return r == 0 && holder && holder->task.seq != view->task.seq
		? command_refuse(result, REFUSED_TASK_EXISTS)
		: r;
}

static int write_key(struct turn *turn, const struct turn_task *view, struct span old, struct span new)
{
	int64_t seq = view->task.seq, holder = 0;
	struct task keyed = view->task;
	keyed.keyed = true;
	bool holds = task_holds_key(&keyed, turn->given.now.wall_ms);
	int r = old.len > 0 ? store_rows(turn->store, find_key, old, &holder) : 0;

	if (r < 0 && r != -ENOENT)
		return r;
	if (holder == seq)
		turn_put(turn, delete_key, old);
	if (new.len == 0)
		return turn_put(turn, delete_extra, seq, EXTRA_KEY, 0);
	if (holds)
		turn_put(turn, put_key, new, seq);
	return turn_put(turn, put_extra, seq, EXTRA_KEY, 0, new);
}

/* ---- parents ----------------------------------------------------------------------------------------- */

/* The tasks that somebody waits for, found by walking up. */
struct ascent {
	struct turn *turn;
	int64_t *seqs;
	uint32_t count;
	struct map seen;
};

static uint64_t ascent_hash(void *context, uint32_t index)
{
	const struct ascent *ascent = context;

	return hash_u64((uint64_t)ascent->seqs[index]);
}

static int climb_to(void *context, const struct edge_row *row)
{
	struct ascent *ascent = context;

	if (row->parent < 0 || row->done) /* a group: command_find_cycle() looks at those */
		return 0;
	struct map_probe probe;
	uint64_t hash = hash_u64((uint64_t)row->parent);
	uint32_t index = map_first(&ascent->seen, hash, &probe);

	while (index != MAP_NONE && ascent->seqs[index] != row->parent)
		index = map_next(&ascent->seen, &probe);
	if (index != MAP_NONE)
		return 0;
	if (ascent->count == CYCLE_LOOKS_MAX)
		return -E2BIG;
	ascent->seqs[ascent->count] = row->parent;
	int r = map_insert(&ascent->seen, hash, ascent->count);
	ascent->count += r == 0;
	return r;
}

static int climb(struct ascent *ascent, const struct edge_row *from, int64_t wanted, bool *ret_found)
{
	int r = climb_to(ascent, from);

	for (uint32_t i = ascent->count - 1; r == 0 && i < ascent->count; i++) {
		*ret_found |= ascent->seqs[i] == wanted;
		r = *ret_found ? 0
			       : store_rows(ascent->turn->store, parents, ascent->seqs[i], climb_to, ascent);
	}
	return r;
}

/* Would it wait for itself? Then the parent through which it would is named. */
static int refuse_cycle(
	struct turn *turn, const struct turn_task *view, const struct parents *parents, struct result *result)
{
	static const struct map_ops ops = {.hash_of = ascent_hash};
	struct ascent ascent = {.turn = turn};
	struct turn_task *parent;
	bool found = false;
	int r = 0;

	ascent.seqs = arena_alloc(&turn->arena, CYCLE_LOOKS_MAX * sizeof *ascent.seqs);
	if (!ascent.seqs)
		return -ENOMEM;
	map_init(&ascent.seen, &ops, &ascent);
	for (uint32_t i = 0; r == 0 && !found && i < parents->count; i++) {
		r = climb(&ascent, &parents->edges[i], view->task.seq, &found);
		if (r == 0 && found)
			r = turn_task(turn, parents->edges[i].parent, &parent);
		if (r == 0 && found)
			r = turn_id_text(turn, parent, &result->id);
	}
	map_done(&ascent.seen);
	if (r == -E2BIG)
		return command_refuse(result, REFUSED_TOO_LARGE);
	result->cyclic = found;
	if (r == 0 && found)
		return command_refuse(result, REFUSED_INVALID);
	int64_t through = 0;
	if (r == 0) /* its own way leads up; that of groups and trees leads down */
		r = command_find_cycle(turn, view->task.seq, view->task.group, parents, &through);
	return r < 0 || through == 0 ? r : command_refuse_cycle(turn, through, result);
}

/* The groups that it waits for stay as they are. */
static int collect_edge(void *context, const struct edge_row *row)
{
	struct plan *plan = context;
	struct parents *old = &plan->old_parents;

	if (row->parent < 0) {
		plan->patch.open_parents++;
		plan->patch.dead_parents += row->dead;
		return 0;
	}
	if (old->count == COMMAND_PARENTS_MAX)
		return -EPROTO;
	old->edges[old->count++] = *row;
	return 0;
}

static int plan_parents(struct turn *turn, const struct turn_task *view, const struct command_update *update,
	struct plan *plan, struct result *result)
{
	struct parents *old = &plan->old_parents;

	int r = command_parents(turn, update->parents, &plan->parents, result);
	if (r < 0 || result->refusal != REFUSED_NOTHING)
		return r;
	plan->patch.has_parent = update->parents.count > 0;
	plan->patch.open_parents = plan->parents.count - plan->parents.done;
	plan->patch.dead_parents = plan->parents.dead;
	old->edges = arena_alloc(&turn->arena, COMMAND_PARENTS_MAX * sizeof *old->edges);
	if (!old->edges)
		return -ENOMEM;
	r = store_rows(turn->store, parents, view->task.seq, collect_edge, plan);
	if (r == -EPROTO)
		return store_damaged(turn->store, "edge", view->task.seq);
	if (r < 0 || plan->parents.count == 0)
		return r;
	return refuse_cycle(turn, view, &plan->parents, result);
}

int command_drop_edge(struct turn *turn, const struct edge_row *edge)
{
	struct turn_task *parent;

	int r = turn_put(turn, delete_edge, edge->parent, edge->child);
	if (r < 0 || edge->done || edge->parent < 0)
		return r;
	r = turn_task(turn, edge->parent, &parent);
	if (r < 0)
		return r == -ENOENT ? 0 : r; /* it was removed */
	parent->children -= parent->children > 0;
	parent->orphaned = true;
	return 0;
}

static int write_parents(struct turn *turn, const struct turn_task *view, const struct plan *plan)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < plan->old_parents.count; i++) {
		if (!parents_have(&plan->parents, plan->old_parents.edges[i].parent))
			r = command_drop_edge(turn, &plan->old_parents.edges[i]);
	}
	for (uint32_t i = 0; r == 0 && i < plan->parents.count; i++) {
		if (!parents_have(&plan->old_parents, plan->parents.edges[i].parent))
			r = command_put_edge(turn, view->task.seq, plan->parents.edges[i]);
	}
	return r;
}

/* ---- the status -------------------------------------------------------------------------------------- */

/* A change of status, by the claim that is shown, or else by the slot that owns the task after the update. */
struct lane_move {
	struct task_decision decision;
	struct slot_entry entry;
	bool claims; /* anew */
};

/* The worker that is named like the slot. A named worker that has ended is a plain claimant here, until it beats
 * again. */
static struct worker slot_worker(const struct turn_worker *view)
{
	struct worker worker = view->worker;

	if (worker.named && worker.state == WORKER_INACTIVE)
		worker.state = WORKER_UNKNOWN;
	return worker;
}

static int plan_slot_move(struct turn *turn, const struct task *task, enum task_status status,
	struct lane_move *ret_move, struct result *result)
{
	struct span slot = names_text(&turn->store->names, task->owner);
	struct worker worker = {0};
	struct claimant by = {.worker = &worker};

	if (slot.len > COMMAND_ID_MAX)
		return command_refuse(result, REFUSED_BAD_TRANSITION); /* no worker can be called that */
	if (slot.len > 0) {
		const struct turn_worker *view = turn_worker(turn, slot, true);
		if (!view)
			return -ENOMEM;
		worker = slot_worker(view);
		ret_move->entry = slot_entry_of(turn, task->owner, slot);
	}
	ret_move->decision = task_set_status(task, status, &by, turn_queue(turn, task->queue), &turn->given);
	if (ret_move->decision.refusal != REFUSED_NOTHING)
		return command_refuse(result, ret_move->decision.refusal);
	ret_move->claims = ret_move->decision.event == EVENT_TASK_CLAIMED && !task_is_claimed(task);
	if (ret_move->claims && command_is_limited(turn, task, worker.handle, result)) {
		result->task = *task;
		return command_refuse(result, REFUSED_LIMITED);
	}
	if (ret_move->decision.event == EVENT_TASK_CLAIMED)
		return command_refuse(result, ret_move->entry.decision.refusal); /* most often nothing */
	return 0;
}

static int plan_move(struct turn *turn, const struct command *command, const struct task *task,
	struct lane_move *ret_move, struct result *result)
{
	if (command->by_name)
		return plan_slot_move(turn, task, command->update.status, ret_move, result);
	struct proof proof = command_proof(turn, command);
	ret_move->decision = task_report_status(task, command->update.status, &proof, &turn->given);
	return command_refuse(result, ret_move->decision.refusal); /* most often nothing */
}

static int stage_move(
	struct turn *turn, struct turn_task *view, struct lane_move *move, struct result *result)
{
	int r = move->decision.event == EVENT_TASK_CLAIMED ? slot_entry_pass(turn, &move->entry) : 0;

	if (r < 0 || move->decision.event == EVENT_NONE)
		return r;
	/* decided upon the task as the fields made it: version and stage are what has moved since */
	move->decision.task.version = view->task.version;
	move->decision.task.stage = view->task.stage;
	if (move->decision.event == EVENT_TASK_BLOCKED)
		return command_write_keeping(turn, view, &move->decision, EXTRA_ERROR, result);
	r = command_write(turn, view, &move->decision, result);
	if (r == 0 && move->claims && result->refusal == REFUSED_NOTHING)
		r = holds_take_permit(turn, &view->task, true);
	return r;
}

/* ---- all of it --------------------------------------------------------------------------------------- */

static bool changes_fields(const struct command_update *update)
{
	const struct task_patch *patch = &update->patch;

	return update->set_body || patch->set_priority || patch->set_owner || patch->set_queue ||
		patch->set_requires || patch->set_executor || patch->set_credential ||
		patch->set_concurrency_key || patch->set_max_attempts || patch->set_timeout ||
		patch->set_start_by || patch->set_finish_by || patch->set_not_before || patch->set_parents ||
		patch->set_keyed || patch->set_autonomous;
}

static int plan_fields(struct turn *turn, const struct turn_task *view, const struct command_update *update,
	struct plan *plan, struct result *result)
{
	const struct task_patch *patch = &plan->patch;

	int r = plan_names(turn, update, &plan->patch);
	if (r < 0)
		return r == -E2BIG ? command_refuse(result, REFUSED_TOO_LARGE) : r;
	if (patch->set_queue && patch->queue != view->task.queue &&
		turn_queue(turn, patch->queue) == QUEUE_DRAINING)
		return command_refuse(result, REFUSED_QUEUE_DRAINING);
	if (patch->set_queue && patch->queue != view->task.queue && turn_queue_is_full(turn, patch->queue) &&
		!task_state_is_final(view->task.state))
		return command_refuse(result, REFUSED_QUEUE_FULL);
	if (patch->set_keyed)
		r = plan_key(turn, view, update, plan, result);
	if (r == 0 && result->refusal == REFUSED_NOTHING && patch->set_parents)
		r = plan_parents(turn, view, update, plan, result);
	return r;
}

static int stage_fields(struct turn *turn, struct turn_task *view, const struct command_update *update,
	const struct plan *plan, const struct task_decision *decision, struct result *result)
{
	int r = command_write(turn, view, decision, result);
	if (r == 0 && plan->patch.set_keyed)
		r = write_key(turn, view, plan->old_key, update->unique_key);
	if (r == 0 && plan->patch.set_parents)
		r = write_parents(turn, view, plan);
	if (r == 0 && update->set_body)
		r = turn_put(turn, put_body, view->task.seq, update->body);
	if (r == 0 && update->says_failure)
		r = turn_put(turn, delete_extra, view->task.seq, EXTRA_FAILED, 0);
	if (r == 0 && update->says_recovery)
		r = turn_put(turn, delete_extra, view->task.seq, EXTRA_RECOVERED, 0);
	return r;
}

/* A command that shows a claim changes nothing once that claim has ended. */
static enum refusal claim_refusal(
	const struct turn *turn, const struct command *command, const struct task *task)
{
	struct proof proof = command_proof(turn, command);

	return command->fence == 0 ? REFUSED_NOTHING : task_proof_refusal(task, &proof);
}

/* It is to run as a session: that changes nothing else. A label of before is no longer its own. */
static int spawn(
	struct turn *turn, struct turn_task *view, const struct command_update *update, struct result *result)
{
	bool settled;

	int r = session_taken(turn, &update->spawn, result, &settled);
	if (r < 0 || settled) {
		if (r == 0 && result->task.seq != view->task.seq)
			command_refuse(result, REFUSED_TASK_EXISTS); /* the label is another task's */
		return r;
	}
	if (task_state_is_final(view->task.state))
		return command_refuse(result, REFUSED_ALREADY_TERMINAL);
	struct task_patch nothing = {0};
	struct task_decision decision = task_update(&view->task, &nothing, &turn->given);
	struct record record = turn_record(turn, decision.event);
	r = turn_write_task(turn, view, &decision, &record);
	if (r == 0)
		r = session_spawn(turn, view, &update->spawn, false);
	result->task = view->task;
	return r;
}

/* Does it say how the attempt ends, and is it the first to do so? */
static bool ends_first(const struct command_update *update, const struct task *task)
{
	return update->status != STATUS_NONE && update->status != STATUS_IN_PROGRESS && !task->claim.reported;
}

int execute_update(struct turn *turn, struct turn_task *view, struct result *result)
{
	const struct command *command = turn->command;
	const struct command_update *update = &command->update;
	struct plan plan = {.patch = update->patch};
	struct lane_move move = {0};
	bool heard;
	int r;

	if (update->spawn.spec.len > 0)
		return spawn(turn, view, update, result);
	if (update->body_version != 0 && update->body_version != view->task.version)
		return command_refuse(result, REFUSED_VERSION_MISMATCH);
	enum refusal refusal = claim_refusal(turn, command, &view->task);
	if (refusal != REFUSED_NOTHING)
		return command_refuse(result, refusal);
	struct task_decision fields = {.task = view->task};
	if (changes_fields(update)) {
		r = plan_fields(turn, view, update, &plan, result);
		if (r < 0 || result->refusal != REFUSED_NOTHING)
			return r;
		fields = task_update(&view->task, &plan.patch, &turn->given);
		if (fields.refusal != REFUSED_NOTHING)
			return command_refuse(result, fields.refusal);
	}
	r = command_is_from_supervised_work(turn, command, &view->task, &heard);
	if (r < 0)
		return r;
	if (update->status != STATUS_NONE && !heard) {
		r = plan_move(turn, command, &fields.task, &move, result);
		if (r < 0 || result->refusal != REFUSED_NOTHING)
			return r;
	}
	if (command->fence != 0 && !ends_first(update, &view->task) &&
		(fields.event != EVENT_NONE || move.decision.event != EVENT_NONE || heard))
		r = command_take_pace(turn, view, 1 + update->body.len / BODY_BYTES_OF_ONE, result);
	if (r < 0 || result->refusal != REFUSED_NOTHING)
		return r;
	if (fields.event != EVENT_NONE)
		r = stage_fields(turn, view, update, &plan, &fields, result);
	if (r < 0)
		return r;
	return heard ? command_keep_work_ending(turn, command, view, result)
		     : stage_move(turn, view, &move, result);
}
