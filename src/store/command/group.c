/*
 * Groups: begun by the tasks that name them, counted with every move of a member, closed and removed by people.
 *
 * The count of a group moves in the transaction that moves the member. A turn that moves many members of a group writes its row
 * once, before the commit. What waits for a group hangs on it by an edge whose parent is the number of the group, below 0.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/command/commands.h"
#include "store/record/small.h"

/* ---- views ------------------------------------------------------------------------------------------------ */

static uint64_t name_hash(const struct turn *turn, struct span name)
{
	return hash_bytes(&turn->store->index.key, name.data, name.len);
}

static int add_view(struct turn *turn, struct span name, struct turn_group **ret_view)
{
	int r = turn_grow((void **)&turn->groups, turn->group_count, &turn->group_cap, sizeof *turn->groups);
	struct turn_group *view = r == 0 ? arena_alloc(&turn->arena, sizeof *view) : NULL;

	if (!view)
		return -ENOMEM;
	*view = (struct turn_group){.name = name};
	turn->groups[turn->group_count] = view;
	r = map_insert(&turn->group_by_name, name_hash(turn, name), turn->group_count);
	if (r < 0)
		return r;
	turn->group_count++;
	*ret_view = view;
	return 0;
}

/* NULL: the turn has not looked at it. One that is gone may stand before one that came after it. */
static struct turn_group *find_view(const struct turn *turn, struct span name)
{
	struct map_probe probe;
	uint32_t at = map_first(&turn->group_by_name, name_hash(turn, name), &probe);
	struct turn_group *found = NULL;

	for (; at != MAP_NONE; at = map_next(&turn->group_by_name, &probe)) {
		struct turn_group *view = turn->groups[at];
		if (span_equal(view->name, name) && (!found || !view->gone))
			found = view;
	}
	return found;
}

static int view_of(struct turn *turn, const struct known_group *known, struct turn_group **ret_view)
{
	*ret_view = find_view(turn, known->name);
	if (*ret_view)
		return 0;
	int r = add_view(turn, known->name, ret_view);
	if (r < 0)
		return r;
	(*ret_view)->group = known->group;
	(*ret_view)->waiters = known->waiters;
	return 0;
}

/* *ret_view is NULL if there is none of that name. */
static int find_group(struct turn *turn, struct span name, struct turn_group **ret_view)
{
	const struct known_group *known = groups_find(&turn->store->groups, name);

	*ret_view = find_view(turn, name);
	int r = !*ret_view && known ? view_of(turn, known, ret_view) : 0;
	if (*ret_view && (*ret_view)->gone)
		*ret_view = NULL;
	return r;
}

/* By number: *ret_view is NULL if it was removed. */
static int find_numbered(struct turn *turn, uint32_t number, struct turn_group **ret_view)
{
	const struct known_group *known = groups_find_number(&turn->store->groups, number);

	*ret_view = NULL;
	if (known) {
		int r = view_of(turn, known, ret_view);
		if (r < 0 || (*ret_view)->group.number == number)
			return r;
		*ret_view = NULL; /* that name is another group's by now */
	}
	for (uint32_t i = turn->group_count; !*ret_view && i-- > 0;) {
		if (turn->groups[i]->group.number == number && !turn->groups[i]->gone)
			*ret_view = turn->groups[i];
	}
	return 0;
}

/* The group of that name; it begins here if there is none. */
static int name_group(struct turn *turn, struct span name, struct turn_group **ret_view)
{
	const struct command *command = turn->command;
	struct span copy;

	int r = find_group(turn, name, ret_view);
	if (r < 0 || *ret_view)
		return r;
	r = arena_copy(&turn->arena, name, &copy);
	if (r == 0)
		r = turn_put(turn, put_meta, META_GROUPS, turn->facts.last_group + 1);
	if (r == 0)
		r = add_view(turn, copy, ret_view);
	if (r < 0)
		return r;
	struct turn_group *view = *ret_view;
	assert(view);
	view->added = view->changed = true;
	view->group = (struct group_state){
		.number = ++turn->facts.last_group,
		.principal = command->principal,
		.created_ms = turn->given.now.wall_ms,
	};
	turn->groups_new++;
	return 0;
}

/* ---- what a decision means --------------------------------------------------------------------------------- */

static int tell(struct turn *turn, const struct turn_group *view, enum event_kind kind, bool keeps_note)
{
	struct record record = turn_record(turn, kind);

	record.subject = view->name;
	if (!keeps_note)
		record.note = (struct span){0};
	return turn_write_event(turn, &record);
}

static int write_decision(struct turn *turn, struct turn_group *view, const struct group_decision *decision)
{
	int r = 0;

	assert(decision->refusal == REFUSED_NOTHING);
	view->group = decision->group;
	view->changed = true;
	if (decision->event != EVENT_NONE)
		r = tell(turn, view, decision->event, true);
	if (r == 0 && decision->ends)
		r = tell(turn, view, EVENT_GROUP_ENDED, false);
	if (r == 0 && decision->follow != FOLLOW_NOTHING && view->waiters > 0)
		r = turn_follow_group(turn, view->group.number, decision->follow, &view->waiters);
	return r;
}

int group_follow_task(struct turn *turn, uint32_t number, enum task_state from, enum task_state to)
{
	struct turn_group *view;
	int r = find_numbered(turn, number, &view);

	if (r < 0 || !view)
		return r; /* it was removed: its members are counted no more */
	struct group_decision decision = group_move(&view->group, from, to, turn->given.now.wall_ms);
	return write_decision(turn, view, &decision);
}

int group_leave_if_gone(struct turn *turn, uint32_t *group)
{
	struct turn_group *view;
	int r = find_numbered(turn, *group, &view);

	if (r == 0 && !view)
		*group = 0;
	return r;
}

int groups_write(struct turn *turn)
{
	char text[SMALL_BYTES_MAX];
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < turn->group_count; i++) {
		const struct turn_group *view = turn->groups[i];
		if (view->changed && !view->gone)
			r = turn_put(turn, put_small, SMALL_GROUP, view->name,
				small_group_put(&view->group, text));
	}
	return r;
}

/* ---- creating a task ------------------------------------------------------------------------------------------ */

static int refuse_group(struct result *result, struct span name, enum refusal refusal)
{
	result->group = name;
	return command_refuse(result, refusal);
}

/* Each name may begin a group. */
static bool fits(const struct turn *turn, uint32_t names)
{
	return turn->store->groups.count + turn->groups_new + names <= GROUPS_MAX;
}

static int check_one(
	struct turn *turn, struct span name, bool joins, const struct parents *parents, struct result *result)
{
	const struct command *command = turn->command;
	struct turn_group *view;
	int r = find_group(turn, name, &view);

	if (joins && parents->subtask_of != 0 &&
		(r < 0 || !view || view->group.number != parents->own_group)) {
		result->excess = EXCESS_GROUP;
		return r < 0 ? r : command_refuse(result, REFUSED_INVALID);
	}
	/* a closed group takes the subtasks of its members that have not ended */
	if (r < 0 || !view || (joins && parents->subtask_of != 0))
		return r;
	enum refusal refusal = joins ? group_join_refusal(&view->group, command->principal, command->oversees)
				     : group_use_refusal(&view->group, command->principal, command->oversees);
	if (refusal == REFUSED_NOTHING && !joins && view->waiters >= GROUP_WAITERS_MAX)
		refusal = REFUSED_TOO_LARGE;
	return refusal != REFUSED_NOTHING ? refuse_group(result, name, refusal) : 0;
}

/* The task that those wait for which will wait for the new one too: of a subtask its parent. 0: none. */
static int64_t waited_as(const struct parents *parents)
{
	return parents->subtask_of != 0 ? parents->subtask_of : parents->replaces;
}

/* A new task is waited for by nobody but through its group, and by what waits for the task whose place it takes. */
static int check_cycle(struct turn *turn, const struct command_create *create, const struct parents *parents,
	struct result *result)
{
	struct name_list waits = create->blocked_by_groups;
	struct parents all = {.count = parents->count};
	struct turn_group *group, *other;
	int64_t through;

	for (uint32_t i = 0; create->group.len > 0 && i < waits.count; i++) {
		if (span_equal(waits.items[i], create->group)) {
			result->cyclic = true;
			return refuse_group(result, create->group, REFUSED_INVALID);
		}
	}
	int r = find_group(turn, create->group, &group);
	uint32_t waited_group = r == 0 && group && group->waiters > 0 ? group->group.number : 0;
	if (r < 0 || (waited_group == 0 && waited_as(parents) == 0))
		return r;
	all.edges = arena_alloc(&turn->arena, (parents->count + waits.count + 1) * sizeof *all.edges);
	if (!all.edges)
		return -ENOMEM;
	if (parents->count > 0)
		memcpy(all.edges, parents->edges, parents->count * sizeof *all.edges);
	for (uint32_t i = 0; r == 0 && i < waits.count; i++) {
		r = find_group(turn, waits.items[i], &other);
		if (r == 0 && other)
			all.edges[all.count++].parent = group_edge(other->group.number);
	}
	if (r < 0 || all.count == 0)
		return r;
	r = command_find_cycle(turn, waited_as(parents), waited_group, &all, &through);
	return r < 0 || through == 0 ? r : command_refuse_cycle(turn, through, result);
}

int command_check_tree(struct turn *turn, const struct parents *parents, struct result *result)
{
	int64_t through;
	int r = command_find_cycle(turn, waited_as(parents), 0, parents, &through);

	return r < 0 || through == 0 ? r : command_refuse_cycle(turn, through, result);
}

int command_check_groups(struct turn *turn, const struct command_create *create,
	const struct parents *parents, struct result *result)
{
	struct name_list waits = create->blocked_by_groups;
	int r = 0;

	assert(waits.count <= TASK_GROUPS_MAX);
	if (create->group.len > 0)
		r = check_one(turn, create->group, true, parents, result);
	for (uint32_t i = 0; r == 0 && result->refusal == REFUSED_NOTHING && i < waits.count; i++)
		r = check_one(turn, waits.items[i], false, parents, result);
	if (r < 0 || result->refusal != REFUSED_NOTHING)
		return r;
	if (!fits(turn, waits.count + 1))
		return refuse_group(
			result, create->group.len > 0 ? create->group : waits.items[0], REFUSED_TOO_LARGE);
	return create->group.len > 0 || parents->replaces != 0 ? check_cycle(turn, create, parents, result)
							       : 0;
}

/* The groups that the task is to wait for, as edges: those that have ended well hold nobody back. */
static int plan_edges(struct turn *turn, struct name_list names, struct parents *parents)
{
	struct turn_group *view;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < names.count; i++) {
		r = name_group(turn, names.items[i], &view);
		if (r < 0)
			break;
		enum group_verdict verdict = group_verdict(&view->group);
		int64_t parent = group_edge(view->group.number);
		if (verdict == GROUP_DONE || parents_have(parents, parent))
			continue;
		parents->edges[parents->count++] =
			(struct edge_row){.parent = parent, .dead = verdict == GROUP_DEAD};
		parents->dead += verdict == GROUP_DEAD;
	}
	return r;
}

int command_name_groups(
	struct turn *turn, const struct command_create *create, struct task *draft, struct parents *parents)
{
	struct name_list names = create->blocked_by_groups;
	struct turn_group *view;
	int r = 0;

	if (names.count > 0) {
		struct edge_row *edges =
			arena_alloc(&turn->arena, (parents->count + names.count) * sizeof *edges);
		if (!edges)
			return -ENOMEM;
		if (parents->count > 0)
			memcpy(edges, parents->edges, parents->count * sizeof *edges);
		parents->edges = edges;
		r = plan_edges(turn, names, parents);
	}
	if (r == 0 && create->group.len > 0) {
		r = name_group(turn, create->group, &view);
		draft->group = r == 0 ? view->group.number : 0;
	}
	draft->open_parents = parents->count - parents->done;
	draft->dead_parents = parents->dead;
	return r;
}

int group_add_waiter(struct turn *turn, int64_t edge)
{
	struct turn_group *view;
	int r = find_numbered(turn, group_of_edge(edge), &view);

	if (r == 0 && view)
		view->waiters++;
	return r;
}

/* ---- what would wait for itself ---------------------------------------------------------------------------------- */

/* Everything that waits for a task or a group, found by walking down the edges. */
struct descent {
	struct turn *turn;
	int64_t *ends; /* tasks, and groups as the parents of edges */
	uint32_t count;
	struct map seen;
};

static uint64_t descent_hash(void *context, uint32_t at)
{
	const struct descent *descent = context;

	return hash_u64((uint64_t)descent->ends[at]);
}

/* Past the limit nothing is added: what a longer way hides is not found. */
static int descend_to(struct descent *descent, int64_t end)
{
	uint64_t hash = hash_u64((uint64_t)end);
	struct map_probe probe;
	uint32_t at = map_first(&descent->seen, hash, &probe);

	while (at != MAP_NONE && descent->ends[at] != end)
		at = map_next(&descent->seen, &probe);
	if (at != MAP_NONE || descent->count == GROUP_CYCLE_LOOKS_MAX)
		return 0;
	descent->ends[descent->count] = end;
	int r = map_insert(&descent->seen, hash, descent->count);
	descent->count += r == 0;
	return r;
}

static bool find_open(const struct turn *turn, int64_t seq, struct task *ret_task)
{
	const struct turn_task *view = turn_find_task(turn, seq);
	uint32_t place = view ? MAP_NONE : index_find(&turn->store->index, seq);

	if (!view && place == MAP_NONE)
		return false;
	if (view)
		*ret_task = view->task;
	else
		index_get(&turn->store->index, place, ret_task);
	return !task_state_is_final(ret_task->state);
}

/* A task that waits, and the group that waits for it in turn. What is final waits for nothing. */
static int descend_to_task(struct descent *descent, int64_t seq)
{
	struct task task;

	if (!find_open(descent->turn, seq, &task))
		return 0;
	int r = descend_to(descent, task.seq);
	return r == 0 && task.group != 0 ? descend_to(descent, group_edge(task.group)) : r;
}

static int descend_edge(void *context, const struct edge_row *row)
{
	return row->done ? 0 : descend_to_task(context, row->child);
}

/* A task may wait for each of its subtasks. */
static int descend_from(struct descent *descent, int64_t end)
{
	struct task task;
	int r = end > 0 && find_open(descent->turn, end, &task) && task.subtask_of != 0
		? descend_to_task(descent, task.subtask_of)
		: 0;

	return r < 0 ? r : store_rows(descent->turn->store, children, end, descend_edge, descent);
}

int command_find_cycle(
	struct turn *turn, int64_t task, uint32_t group, const struct parents *parents, int64_t *ret_through)
{
	static const struct map_ops ops = {.hash_of = descent_hash};
	struct descent descent = {.turn = turn};
	int r = 0;

	*ret_through = 0;
	descent.ends = arena_alloc(&turn->arena, GROUP_CYCLE_LOOKS_MAX * sizeof *descent.ends);
	if (!descent.ends)
		return -ENOMEM;
	map_init(&descent.seen, &ops, &descent);
	if (task != 0)
		r = descend_to(&descent, task);
	if (r == 0 && group != 0)
		r = descend_to(&descent, group_edge(group));
	for (uint32_t i = 0; r == 0 && *ret_through == 0 && i < descent.count; i++) {
		if (parents_have(parents, descent.ends[i]))
			*ret_through = descent.ends[i];
		else
			r = descend_from(&descent, descent.ends[i]);
	}
	map_done(&descent.seen);
	return r;
}

int command_refuse_cycle(struct turn *turn, int64_t through, struct result *result)
{
	struct turn_group *group;
	struct turn_task *task;

	result->cyclic = true;
	int r = through < 0 ? find_numbered(turn, group_of_edge(through), &group)
			    : turn_task(turn, through, &task);
	if (r == 0 && through > 0)
		r = turn_id_text(turn, task, &result->id);
	if (r == 0 && through < 0 && group)
		result->group = group->name;
	return r < 0 ? r : command_refuse(result, REFUSED_INVALID);
}

/* ---- people, and retention --------------------------------------------------------------------------------------- */

static int drop_group(struct turn *turn, struct turn_group *view)
{
	view->gone = true;
	return turn_put(turn, delete_small, SMALL_GROUP, view->name);
}

enum {
	WAITED_FOR = 1,
};

static int find_waiter(void *context, const struct edge_row *row)
{
	const struct turn *turn = context;
	const struct turn_task *view = turn_find_task(turn, row->child);
	bool open = view ? !view->gone && !task_state_is_final(view->task.state)
			 : index_find(&turn->store->index, row->child) != MAP_NONE;

	return open ? WAITED_FOR : 0;
}

int execute_group(struct turn *turn, const struct command *command, struct result *result)
{
	struct turn_group *view;
	int waited = 0;
	int r = find_group(turn, command->group.name, &view);

	if (r < 0)
		return r;
	if (!view)
		return command_refuse(result, REFUSED_NOT_FOUND);
	bool removes = command->kind == COMMAND_GROUP_REMOVE;
	if (removes && view->waiters > 0)
		waited = store_rows(turn->store, children, group_edge(view->group.number), find_waiter, turn);
	if (waited < 0)
		return waited;
	struct group_decision decision = removes
		? group_remove(&view->group, command->principal, command->oversees, waited != 0)
		: group_close(&view->group, command->principal, command->oversees, turn->given.now.wall_ms);
	if (decision.refusal != REFUSED_NOTHING)
		return refuse_group(result, view->name, decision.refusal);
	result->repeated = decision.repeated;
	if (decision.repeated)
		return 0;
	r = write_decision(turn, view, &decision);
	return r == 0 && removes ? drop_group(turn, view) : r;
}

int groups_sweep(struct turn *turn, uint32_t step)
{
	struct store *store = turn->store;
	struct turn_group *view;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < step && store->groups.count > 0; i++) {
		const struct known_group *known = groups_at(&store->groups, store->group_cursor++);
		if (!known) {
			store->group_cursor = 0;
			break;
		}
		if (known->waiters > 0 ||
			!group_is_past(&known->group, turn->given.now.wall_ms, store->retention.final_ms))
			continue;
		r = view_of(turn, known, &view);
		if (r == 0)
			r = tell(turn, view, EVENT_GROUP_REMOVED, false);
		if (r == 0)
			r = drop_group(turn, view);
	}
	return r;
}

/* ---- the end of a turn --------------------------------------------------------------------------------------------- */

int groups_prepare(struct turn *turn)
{
	int r = groups_reserve(&turn->store->groups, turn->groups_new);

	for (uint32_t i = 0; r == 0 && i < turn->group_count; i++) {
		struct turn_group *view = turn->groups[i];
		if (view->added && !view->gone) {
			view->kept_name = index_copy(view->name);
			r = view->kept_name ? 0 : -ENOMEM;
		}
	}
	return r;
}

void groups_apply(struct turn *turn)
{
	struct groups *groups = &turn->store->groups;

	for (uint32_t i = 0; i < turn->group_count; i++) {
		struct turn_group *view = turn->groups[i];
		struct known_group *known = groups_find_number(groups, view->group.number);
		if (view->gone) {
			if (known)
				groups_drop(groups, known);
			continue;
		}
		if (!known && view->added)
			known = groups_add(
				groups, view->group.number, (struct span){view->kept_name, view->name.len});
		assert(known);
		known->group = view->group;
		known->waiters = view->waiters;
		view->kept_name = NULL;
	}
}

void groups_forget(struct turn *turn)
{
	for (uint32_t i = 0; i < turn->group_count; i++) {
		free(turn->groups[i]->kept_name);
		turn->groups[i]->kept_name = NULL;
	}
}

void groups_clear(struct turn *turn)
{
	if (turn->group_count == 0)
		return;
	map_done(&turn->group_by_name);
	turn->group_count = turn->groups_new = 0;
}
