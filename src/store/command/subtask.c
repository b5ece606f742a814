/*
 * Subtasks: the tasks that a task has created under its claim, and waiting for them.
 *
 * Beside the parent are kept: each of them by a number, and how many there are. A subtask knows its parent by a field. Those of
 * before an operator's last retry stay in the list, and count no more: `first` is how many they were.
 *
 * A task that waits for its subtasks has an edge to each that is open, as to parents.
 */
#include "store/command/subtask.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/take.h"
#include "store/read/sound.h"

enum {
	NUMBERS_BYTES_MAX = 40,
};

/* ---- what is kept ----------------------------------------------------------------------------------------------- */

int subtasks_read(struct store *store, int64_t seq, struct arena *arena, struct subtasks *ret_subtasks)
{
	char text[NUMBERS_BYTES_MAX];
	struct subtasks subtasks = {0};
	struct span kept;
	int used = 0;

	*ret_subtasks = subtasks;
	int r = store_rows(store, get_extra, seq, EXTRA_SUBTASK, 0, arena, &kept);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	snprintf(text, sizeof text, "%.*s", SPAN_ARGS(kept));
	if (sscanf(text, "%" SCNu32 " %" SCNu32 " %" SCNu32 "%n", &subtasks.made, &subtasks.first,
		    &subtasks.in_tree, &used) != 3 ||
		(size_t)used != kept.len || subtasks.first > subtasks.made)
		return store_damaged(store, "task_extra", seq);
	*ret_subtasks = subtasks;
	return 0;
}

int subtasks_at(struct store *store, int64_t seq, uint32_t number, struct arena *arena, int64_t *ret_subtask)
{
	char text[NUMBERS_BYTES_MAX];
	struct span kept;
	int used = 0;

	int r = store_rows(store, get_extra, seq, EXTRA_SUBTASK, (int64_t)number + 1, arena, &kept);
	if (r < 0)
		return store_must_find(store, r, seq);
	snprintf(text, sizeof text, "%.*s", SPAN_ARGS(kept));
	if (sscanf(text, "%" SCNd64 "%n", ret_subtask, &used) != 1 || (size_t)used != kept.len)
		return store_damaged(store, "task_extra", seq);
	return 0;
}

int store_count_subtasks(struct store *store, int64_t seq, struct arena *arena, uint32_t *ret_made)
{
	struct subtasks subtasks;
	int r = subtasks_read(store, seq, arena, &subtasks);

	*ret_made = subtasks.made;
	return r;
}

int store_each_subtask(struct store *store, int64_t seq, struct arena *arena,
	int (*each)(void *context, int64_t subtask), void *context)
{
	struct subtasks subtasks;
	int64_t subtask;
	int r = subtasks_read(store, seq, arena, &subtasks);

	for (uint32_t i = subtasks.first; r == 0 && i < subtasks.made; i++) {
		r = subtasks_at(store, seq, i, arena, &subtask);
		if (r == 0)
			r = each(context, subtask);
	}
	return r;
}

static int put_subtasks(struct turn *turn, int64_t seq, const struct subtasks *subtasks)
{
	char text[NUMBERS_BYTES_MAX];
	int len = snprintf(text, sizeof text, "%" PRIu32 " %" PRIu32 " %" PRIu32, subtasks->made,
		subtasks->first, subtasks->in_tree);

	return turn_put(turn, put_extra, seq, EXTRA_SUBTASK, 0, (struct span){text, (size_t)len});
}

static int add_subtask(struct turn *turn, int64_t seq, struct subtasks *subtasks, int64_t subtask)
{
	char text[NUMBERS_BYTES_MAX];
	int len = snprintf(text, sizeof text, "%" PRId64, subtask);

	turn_put(turn, put_extra, seq, EXTRA_SUBTASK, (int64_t)++subtasks->made,
		(struct span){text, (size_t)len});
	return put_subtasks(turn, seq, subtasks);
}

/* ---- the tree --------------------------------------------------------------------------------------------------- */

/* The task at the top of the tree, and on which level of it the task is. A tree has few levels: one that has more is
 * damaged. */
static int find_root(
	struct turn *turn, struct turn_task *view, struct turn_task **ret_root, uint32_t *ret_level)
{
	struct turn_task *above;

	*ret_level = 1;
	*ret_root = view;
	while ((*ret_root)->task.subtask_of != 0) {
		if (++*ret_level > SUBTASK_LEVELS_MAX)
			return store_damaged(turn->store, "task", (*ret_root)->task.seq);
		int r = turn_task(turn, (*ret_root)->task.subtask_of, &above);
		if (r == -ENOENT)
			return 0; /* those above were removed long ago */
		if (r < 0)
			return r;
		*ret_root = above;
	}
	return 0;
}

static int open_subtasks(struct turn *turn, const struct turn_task *view, struct open_subtasks *ret_open)
{
	struct subtasks subtasks = {0};
	struct turn_task *subtask;
	int64_t seq;
	int r = view->task.subtasks != SUBTASKS_NONE
		? subtasks_read(turn->store, view->task.seq, &turn->arena, &subtasks)
		: 0;

	*ret_open = (struct open_subtasks){0};
	if (r < 0 || subtasks.made == subtasks.first)
		return r;
	ret_open->seqs = arena_alloc(&turn->arena, (subtasks.made - subtasks.first) * sizeof *ret_open->seqs);
	if (!ret_open->seqs)
		return -ENOMEM;
	for (uint32_t i = subtasks.first; r == 0 && i < subtasks.made; i++) {
		r = subtasks_at(turn->store, view->task.seq, i, &turn->arena, &seq);
		if (r == 0)
			r = turn_task(turn, seq, &subtask);
		if (r == 0 && !task_state_is_final(subtask->task.state))
			ret_open->seqs[ret_open->count++] = seq;
		r = r == -ENOENT ? 0 : r; /* removed: it had ended */
	}
	return r;
}

/* ---- creating one ----------------------------------------------------------------------------------------------- */

int subtask_find_parent(struct turn *turn, const struct command *command, struct result *result,
	struct turn_task **ret_parent)
{
	struct proof proof = command_proof(turn, command);
	struct turn_task *view;

	*ret_parent = NULL;
	int r = command_find(turn, command, result, &view);
	if (r < 0 || !view)
		return r;
	enum refusal refusal = subtask_refusal(&view->task, &proof);
	if (refusal != REFUSED_NOTHING)
		return command_refuse(result, refusal);
	*result = (struct result){0};
	*ret_parent = view;
	return 0;
}

static struct turn_budget *find_budget(const struct turn *turn, int64_t parent)
{
	for (uint32_t i = 0; i < turn->budget_count; i++) {
		if (turn->budgets[i].parent == parent)
			return &turn->budgets[i];
	}
	return NULL;
}

static int note_budget(struct turn *turn, int64_t parent, const struct subtask_budget *budget)
{
	struct turn_budget *taken = find_budget(turn, parent);
	int r = taken ? 0
		      : turn_grow((void **)&turn->budgets, turn->budget_count, &turn->budget_cap,
				sizeof *turn->budgets);

	if (r < 0)
		return r;
	if (!taken) {
		taken = &turn->budgets[turn->budget_count++];
		*taken = (struct turn_budget){.parent = parent};
	}
	taken->count++;
	for (uint32_t i = 0; i < SUBTASK_BUDGET_PARTS; i++)
		taken->taken[i] += budget->said & 1u << i ? budget->wanted[i] : 0;
	return 0;
}

static int refuse_excess(struct result *result, enum subtask_excess excess)
{
	result->excess = excess;
	return excess == EXCESS_NONE ? 0 : command_refuse(result, REFUSED_INVALID);
}

/* Those that block it are of its tree, and none of them is above it: that one may wait for it. */
static int check_parents(struct turn *turn, const struct command_create *create, struct turn_task *parent,
	const struct turn_task *root, struct result *result)
{
	struct turn_task *other, *top;
	uint32_t level;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < create->parents.count; i++) {
		r = turn_task_by_id(turn, create->parents.items[i], &other);
		if (r == 0)
			r = find_root(turn, other, &top, &level);
		if (r < 0 || top != root) {
			result->id = create->parents.items[i];
			return r < 0 ? r : refuse_excess(result, EXCESS_PARENTS);
		}
		for (struct turn_task *above = parent; r == 0 && above;) {
			if (above == other) {
				result->id = create->parents.items[i];
				result->cyclic = true;
				return command_refuse(result, REFUSED_INVALID);
			}
			r = above->task.subtask_of != 0 ? turn_task(turn, above->task.subtask_of, &above)
							: -ENOENT;
		}
		r = r == -ENOENT ? 0 : r;
	}
	return r;
}

/* What was left was counted before this turn: those that the turn has created since are taken off. If there are others, nobody knows
 * what they took, and the caller asks again. */
static int check_budget(struct turn *turn, const struct subtask_budget *budget, int64_t parent, uint32_t made,
	struct result *result)
{
	static const struct turn_budget nothing;
	const struct turn_budget *taken = find_budget(turn, parent);

	if (!taken)
		taken = &nothing;
	if (made != budget->seen + taken->count)
		return command_refuse(result, REFUSED_UNAVAILABLE);
	result->budget_part = subtask_budget_excess(budget, taken->taken, &result->budget_left);
	return refuse_excess(
		result, result->budget_part < SUBTASK_BUDGET_PARTS ? EXCESS_BUDGET : EXCESS_NONE);
}

/* All above it have begun and are not final. In a sequential queue one of the same key keeps it from being claimed, and may wait for it. */
static int check_key(
	struct turn *turn, const struct task *draft, struct turn_task *parent, struct result *result)
{
	struct turn_task *above = parent;
	uint32_t cap;
	int r = 0;

	if (draft->concurrency_key == 0 || !turn_limits(turn, draft->queue, 0, &cap).sequential)
		return 0;
	while (r == 0) {
		if (above->task.queue == draft->queue &&
			above->task.concurrency_key == draft->concurrency_key) {
			r = turn_id_text(turn, above, &result->id);
			return r < 0 ? r : refuse_excess(result, EXCESS_KEY);
		}
		r = above->task.subtask_of != 0 ? turn_task(turn, above->task.subtask_of, &above) : -ENOENT;
	}
	return r == -ENOENT ? 0 : r;
}

/* ---- which executors it may name ---- */

enum {
	LIST_NUMBER = -1, /* of EXTRA_SUBTASK */
	LIST_BYTES_MAX = 24 + COMMAND_LIST_MAX * (COMMAND_NAME_MAX + 1),
};

static const char list_separator = '\x1f';

int subtask_keep_list(struct turn *turn, const struct turn_task *view)
{
	const struct holder *holder = index_holder(&turn->store->index, view->task.claim.holder);
	struct span executor = names_text(&turn->store->names, view->task.executor);
	cleanup(buf_done) struct buf list = {.max = LIST_BYTES_MAX};
	bool any = false;

	if (holder->subtask_count == 0 || executor.len == 0)
		return 0;
	buf_put_decimal(&list, view->task.fence);
	for (uint32_t i = 0; i < holder->subtask_count; i++) {
		if (!span_equal(holder->subtasks[i].executor, executor))
			continue;
		buf_put_byte(&list, list_separator);
		buf_put_span(&list, holder->subtasks[i].account);
		any = true;
	}
	int r = buf_fault(&list);
	struct span kept;
	if (r == 0)
		r = any ? arena_copy(&turn->arena, buf_span(&list), &kept) : 0;
	return r == 0 && any ? turn_put(turn, put_extra, view->task.seq, EXTRA_SUBTASK, LIST_NUMBER, kept)
			     : r;
}

/* Was it in the list that was kept with this claim? */
static int is_kept_in_list(
	struct turn *turn, const struct turn_task *view, struct span executor, bool *ret_listed)
{
	char fence[24];
	struct span kept;
	int r = store_rows(
		turn->store, get_extra, view->task.seq, EXTRA_SUBTASK, LIST_NUMBER, &turn->arena, &kept);

	*ret_listed = false;
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	size_t len = (size_t)snprintf(fence, sizeof fence, "%" PRIu64, view->task.fence);
	bool is_of_claim =
		kept.len > len && memcmp(kept.data, fence, len) == 0 && kept.data[len] == list_separator;
	for (size_t at = len; is_of_claim && at < kept.len;) {
		const char *begin = kept.data + at + 1;
		const char *end = memchr(begin, list_separator, kept.len - at - 1);
		size_t one = end ? (size_t)(end - begin) : kept.len - at - 1;
		*ret_listed |= span_equal((struct span){begin, one}, executor);
		at += 1 + one;
	}
	return 0;
}

/* By what the holder announced last, or by what was kept when it claimed the task: it may not have announced itself since a restart. */
static int may_name(struct turn *turn, const struct turn_task *parent, uint32_t executor, bool *ret_may)
{
	const struct names *names = &turn->store->names;

	*ret_may = false;
	if (parent->task.executor == 0 || executor == 0 || executor == parent->task.executor)
		return 0;
	*ret_may = holder_lists(turn, parent->task.claim.holder, names_text(names, parent->task.executor),
		names_text(names, executor));
	return *ret_may ? 0 : is_kept_in_list(turn, parent, names_text(names, executor), ret_may);
}

int subtask_check(struct turn *turn, const struct command *command, struct turn_task *parent,
	struct task *draft, struct result *result)
{
	const struct command_create *create = &command->create;
	struct subtasks beneath = {0}, tree = {0};
	struct subtask_place place;
	struct turn_task *root;

	int r = find_root(turn, parent, &root, &place.level);
	if (r == 0 && parent->task.subtasks != SUBTASKS_NONE)
		r = subtasks_read(turn->store, parent->task.seq, &turn->arena, &beneath);
	if (r == 0 && root->task.subtasks != SUBTASKS_NONE)
		r = subtasks_read(turn->store, root->task.seq, &turn->arena, &tree);
	if (r < 0)
		return r;
	place.level++;
	place.children = beneath.made - beneath.first;
	place.in_tree = tree.in_tree + 1;
	subtask_inherit(draft, &parent->task, create->says_priority);
	bool is_listed;
	r = may_name(turn, parent, draft->executor, &is_listed);
	if (r < 0)
		return r;
	refuse_excess(result, subtask_exceeds(draft, &parent->task, is_listed, &place, turn->given.rules));
	if (result->refusal == REFUSED_NOTHING && create->budget)
		check_budget(turn, create->budget, parent->task.seq, beneath.made, result);
	if (result->refusal == REFUSED_NOTHING)
		r = check_key(turn, draft, parent, result);
	if (r < 0 || result->refusal != REFUSED_NOTHING)
		return r;
	return create->parents.count > 0 ? check_parents(turn, create, parent, root, result) : 0;
}

int subtask_note(
	struct turn *turn, struct turn_task *parent, int64_t subtask, const struct subtask_budget *budget)
{
	struct subtasks subtasks, tree;
	struct turn_task *root;
	uint32_t level;
	int r = budget ? note_budget(turn, parent->task.seq, budget) : 0;

	if (r == 0 && parent->task.subtasks == SUBTASKS_NONE) {
		struct task_decision decision = task_begin_tree(&parent->task);
		struct record record = turn_record(turn, decision.event);
		record.note = (struct span){0};
		r = turn_write_task(turn, parent, &decision, &record);
	}
	if (r == 0)
		r = subtasks_read(turn->store, parent->task.seq, &turn->arena, &subtasks);
	if (r == 0)
		r = find_root(turn, parent, &root, &level);
	if (r < 0)
		return r;
	subtasks.in_tree += root == parent;
	r = add_subtask(turn, parent->task.seq, &subtasks, subtask);
	if (r < 0 || root == parent)
		return r;
	r = subtasks_read(turn->store, root->task.seq, &turn->arena, &tree);
	tree.in_tree++;
	return r < 0 ? r : put_subtasks(turn, root->task.seq, &tree);
}

/* Is it in the list since the last retry by an operator? */
static int is_current(
	struct turn *turn, int64_t seq, const struct subtasks *subtasks, int64_t subtask, bool *ret_current)
{
	int64_t one = 0;
	int r = 0;

	*ret_current = false;
	for (uint32_t i = subtasks->first; r == 0 && !*ret_current && i < subtasks->made; i++) {
		r = subtasks_at(turn->store, seq, i, &turn->arena, &one);
		*ret_current = r == 0 && one == subtask;
	}
	return r;
}

/* One that failed, or was called off with its parent, is opened again. */
static int open_again(struct turn *turn, struct turn_task *view, struct result *result)
{
	if (view->task.state != TASK_FAILED && view->task.state != TASK_CANCELLED)
		return 0;
	bool taken = false;
	int r = command_key_is_taken(turn, view, &taken);
	if (r < 0)
		return r;
	struct task_decision decision = task_retry(&view->task, taken, &turn->given);
	if (decision.refusal != REFUSED_NOTHING)
		return command_refuse(result, decision.refusal);
	struct record record = turn_record(turn, decision.event);
	record.note = (struct span){0};
	return turn_write_task(turn, view, &decision, &record);
}

int subtask_take_up(
	struct turn *turn, struct turn_task *parent, struct turn_task *view, struct result *result)
{
	struct subtasks subtasks;
	bool is_known;
	int64_t seq = parent->task.seq;

	int r = subtasks_read(turn->store, seq, &turn->arena, &subtasks);
	if (r == 0)
		r = is_current(turn, seq, &subtasks, view->task.seq, &is_known);
	if (r == 0 && !is_known) {
		r = open_again(turn, view, result);
		if (r == 0 && result->refusal == REFUSED_NOTHING)
			r = add_subtask(turn, seq, &subtasks, view->task.seq);
	}
	if (r < 0 || result->refusal != REFUSED_NOTHING)
		return r;
	result->deduplicated = true;
	result->task = view->task;
	return turn_id_text(turn, view, &result->id);
}

/* ---- what goes down the tree ------------------------------------------------------------------------------------- */

static int call_off_one(struct turn *turn, struct turn_task *view)
{
	static const struct worker nobody;
	const struct worker *holder = &nobody;
	uint32_t number = view->task.claim.holder;

	if (number != 0) {
		const struct turn_worker *worker = turn_worker_by_number(turn, number);
		if (!worker)
			return -ENOMEM;
		holder = &worker->worker;
	}
	struct task_decision decision = task_cancel(&view->task, holder, &turn->given);
	if (decision.repeated)
		return 0;
	struct record record = turn_record(turn, decision.event);
	record.note = (struct span){0};
	if (decision.event == EVENT_TASK_UPDATED)
		record_fact(&record, FACT_STOPPING, 1);
	int r = turn_write_task(turn, view, &decision, &record);
	return r < 0 || number == 0 ? r : turn_notify(turn, number);
}

int subtasks_call_off(struct turn *turn, const struct turn_task *view)
{
	struct open_subtasks open;
	struct turn_task *subtask;
	int r = open_subtasks(turn, view, &open);

	for (uint32_t i = 0; r == 0 && i < open.count; i++) {
		r = turn_task(turn, open.seqs[i], &subtask);
		if (r == 0 && !task_state_is_final(subtask->task.state))
			r = call_off_one(turn, subtask);
	}
	return r;
}

int subtasks_begin_anew(struct turn *turn, int64_t seq)
{
	struct subtasks subtasks;
	int r = subtasks_read(turn->store, seq, &turn->arena, &subtasks);

	subtasks.first = subtasks.made;
	subtasks.in_tree = 0;
	return r < 0 ? r : put_subtasks(turn, seq, &subtasks);
}

static int held_beneath(struct turn *turn, const struct turn_task *view, uint32_t principal, bool *ret_held)
{
	struct subtasks subtasks = {0};
	struct turn_task *subtask;
	int64_t seq;

	int r = command_has_held_one(turn, &view->task, principal, ret_held);
	if (r == 0 && !*ret_held && view->task.subtasks != SUBTASKS_NONE)
		r = subtasks_read(turn->store, view->task.seq, &turn->arena, &subtasks);
	for (uint32_t i = 0; r == 0 && !*ret_held && i < subtasks.made; i++) {
		r = subtasks_at(turn->store, view->task.seq, i, &turn->arena, &seq);
		if (r == 0)
			r = turn_task(turn, seq, &subtask);
		if (r == 0)
			r = held_beneath(turn, subtask, principal, ret_held);
		r = r == -ENOENT ? 0 : r;
	}
	return r;
}

int subtasks_tree_held(struct turn *turn, int64_t seq, uint32_t principal, bool *ret_held)
{
	struct turn_task *view, *root;
	uint32_t level;
	int r = turn_task(turn, seq, &view);

	if (r == 0)
		r = find_root(turn, view, &root, &level);
	return r == 0 ? held_beneath(turn, root, principal, ret_held) : r;
}

/* ---- waiting for them --------------------------------------------------------------------------------------------- */

struct old_edges {
	struct turn *turn;
	struct edge_row *rows;
	uint32_t count, cap;
};

static int collect_old(void *context, const struct edge_row *row)
{
	struct old_edges *old = context;

	if (old->count == old->cap) {
		uint32_t cap = old->cap ? 2 * old->cap : 16;
		struct edge_row *rows = arena_alloc(&old->turn->arena, cap * sizeof *rows);
		if (!rows)
			return -ENOMEM;
		if (old->count > 0)
			memcpy(rows, old->rows, old->count * sizeof *rows);
		old->rows = rows;
		old->cap = cap;
	}
	old->rows[old->count++] = *row;
	return 0;
}

/* What it waited for until now, it waits for no more: what has been done is only kept for it to read. */
int subtasks_drop_edges(struct turn *turn, int64_t seq)
{
	struct old_edges old = {.turn = turn};
	int r = store_rows(turn->store, parents, seq, collect_old, &old);

	for (uint32_t i = 0; r == 0 && i < old.count; i++) {
		if (!old.rows[i].done)
			r = command_drop_edge(turn, &old.rows[i]);
	}
	return r;
}

static int put_edges(struct turn *turn, int64_t seq, const struct open_subtasks *open)
{
	int r = subtasks_drop_edges(turn, seq);

	for (uint32_t i = 0; r == 0 && i < open->count; i++)
		r = command_put_edge(turn, seq, (struct edge_row){.parent = open->seqs[i]});
	return r;
}

int subtasks_count_open(struct turn *turn, const struct turn_task *view, uint32_t *ret_count)
{
	struct open_subtasks open;
	int r = open_subtasks(turn, view, &open);

	*ret_count = r == 0 ? open.count : 0;
	return r;
}

/* The work waits in its process: all of them have ended, so that it goes on. */
int execute_go_on(
	struct turn *turn, struct turn_task *view, const struct command *command, struct result *result)
{
	struct proof proof = command_proof(turn, command);
	struct task_decision decision = task_go_on(&view->task, &proof, &turn->given);

	if (decision.refusal != REFUSED_NOTHING)
		return command_refuse_report(turn, command, view, &decision, result);
	return command_write(turn, view, &decision, result);
}

int stage_wait(
	struct turn *turn, struct turn_task *view, const struct command *command, struct result *result)
{
	struct proof proof = command_proof(turn, command);
	struct open_subtasks open;
	uint32_t host = 0;

	int r = open_subtasks(turn, view, &open);
	if (r < 0)
		return r;
	/* it goes on at once; unless its process has ended, so that nobody is there to go on */
	if (open.count == 0 && !command->wait_ends && command->seen == SEEN_NOT_SAID &&
		task_is_claimed(&view->task))
		return execute_go_on(turn, view, command, result);
	if (view->task.claim.holder != 0) {
		const struct turn_worker *worker = turn_worker_by_number(turn, view->task.claim.holder);
		if (!worker)
			return -ENOMEM;
		host = worker->worker.process.host;
	}
	struct task_decision decision = task_suspend(&view->task, &proof, open.count, host, &turn->given);
	if (decision.refusal != REFUSED_NOTHING)
		return command_refuse_report(turn, command, view, &decision, result);
	bool repeated = decision.repeated && command->if_version >= 0;
	if (!repeated && command_is_late(command, &view->task))
		return command_refuse(result, REFUSED_VERSION_MISMATCH);
	r = command_write(turn, view, &decision, result);
	if (r < 0 || result->repeated || !task_awaits(&view->task))
		return r;
	return put_edges(turn, view->task.seq, &open);
}

/* ---- what is kept for others --------------------------------------------------------------------------------------- */

enum {
	NEEDED = 1,
};

static bool is_open(const struct turn *turn, int64_t seq)
{
	const struct turn_task *view = turn_find_task(turn, seq);

	return view ? !view->gone && !task_state_is_final(view->task.state)
		    : index_find(&turn->store->index, seq) != MAP_NONE;
}

static int look_for_reader(void *context, const struct edge_row *row)
{
	return is_open(context, row->child) ? NEEDED : 0;
}

int task_is_needed(struct turn *turn, const struct turn_task *view, bool *ret_needed)
{
	int64_t seq = view->task.seq, subtask;
	struct subtasks subtasks = {0};

	*ret_needed = (view->task.subtask_of != 0 && is_open(turn, view->task.subtask_of)) ||
		task_holds_key(&view->task, turn->given.now.wall_ms);
	if (*ret_needed)
		return 0;
	int r = store_rows(turn->store, children, seq, look_for_reader, turn);
	*ret_needed = r == NEEDED;
	if (r != 0)
		return r < 0 ? r : 0;
	if (view->task.subtasks != SUBTASKS_NONE)
		r = subtasks_read(turn->store, seq, &turn->arena, &subtasks);
	for (uint32_t i = 0; r == 0 && !*ret_needed && i < subtasks.made; i++) {
		r = subtasks_at(turn->store, seq, i, &turn->arena, &subtask);
		*ret_needed = r == 0 && is_open(turn, subtask);
	}
	return r;
}
