/*
 * Creating a task once.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base36.h"
#include "store/command/commands.h"
#include "store/command/subtask.h"
#include "store/record/schedule.h"

static int find_generated(struct turn *turn, int64_t seq, bool *ret_taken)
{
	char text[2 + BASE36_MAX] = "t-";
	int64_t found;

	*ret_taken = false;
	if (turn->facts.shadow_ids == 0)
		return 0;
	size_t len = base36_encode((uint64_t)seq, text + 2);
	int r = store_rows(turn->store, find_id, (struct span){text, len + 2}, &found);
	*ret_taken = r == 0;
	return r == -ENOENT ? 0 : r;
}

/* The next sequence number whose generated id no caller has taken for itself. */
int command_next_seq(struct turn *turn, int64_t *ret_seq)
{
	bool taken;

	do {
		*ret_seq = ++turn->facts.last_task;
		int r = find_generated(turn, *ret_seq, &taken);
		if (r < 0)
			return r;
	} while (taken);
	return 0;
}

enum {
	ASKER_BYTES_MAX = 16,
};

/* Whose keys they are: two tokens may have the same name. */
static struct span asker_of(const struct command *command, char text[ASKER_BYTES_MAX])
{
	if (command->principal == PRINCIPAL_NOBODY)
		return command->actor;
	return (struct span){text, (size_t)snprintf(text, ASKER_BYTES_MAX, "#%u", command->principal)};
}

int command_get_request(
	struct turn *turn, const struct command *command, struct span key, struct idem_row *ret_row)
{
	char asker[ASKER_BYTES_MAX];

	if (key.len == 0)
		return -ENOENT;
	int r = store_rows(turn->store, get_idem, asker_of(command, asker), key, ret_row);
	if (r < 0)
		return r;
	/* past its time a key is a new request */
	return ret_row->created_ms <= turn->given.now.wall_ms - turn->store->retention.idempotency_ms
		? -ENOENT
		: 0;
}

int command_keep_request(
	struct turn *turn, const struct command *command, struct span key, struct idem_row row)
{
	char asker[ASKER_BYTES_MAX];

	if (key.len == 0)
		return 0;
	row.principal = asker_of(command, asker);
	row.key = key;
	row.created_ms = turn->given.now.wall_ms;
	return turn_put(turn, put_idem, &row);
}

/* Was this request answered before? Sets *ret_is_answered if the result is complete. */
static int create_again(
	struct turn *turn, const struct command *command, struct result *result, bool *ret_is_answered)
{
	const struct command_create *create = &command->create;
	struct idem_row row;
	struct turn_task *view;

	*ret_is_answered = false;
	int r = command_get_request(turn, command, create->idempotency_key, &row);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	*ret_is_answered = true;
	if (memcmp(row.fingerprint, create->fingerprint, sizeof row.fingerprint) != 0)
		return command_refuse(result, REFUSED_IDEMPOTENCY_CONFLICT);
	result->repeated = true;
	result->deduplicated = row.deduplicated;
	r = turn_task(turn, row.task, &view);
	if (r < 0)
		return r == -ENOENT ? command_refuse(result, REFUSED_NOT_FOUND) : r; /* purged since */
	result->task = view->task;
	return turn_id_text(turn, view, &result->id);
}

static int remember_request(struct turn *turn, const struct command *command, int64_t task, bool deduplicated)
{
	const struct command_create *create = &command->create;
	struct idem_row row = {.task = task, .deduplicated = deduplicated};

	memcpy(row.fingerprint, create->fingerprint, sizeof row.fingerprint);
	return command_keep_request(turn, command, create->idempotency_key, row);
}

/* The result names the task that has the id, if the caller may see that task. */
static int refuse_taken(struct turn *turn, struct turn_task *view, struct result *result)
{
	int r = 0;

	if (command_sees(turn, &view->task)) {
		result->task = view->task;
		r = turn_id_text(turn, view, &result->id);
	}
	return r < 0 ? r : command_refuse(result, REFUSED_TASK_EXISTS);
}

/* Who may cancel a task may put another one in its place: operators, and the one that created it. */
static bool may_cancel(const struct turn *turn, const struct command *command, const struct task *task)
{
	uint32_t creator = task_charged(task);

	return command_sees(turn, task) &&
		(command->oversees || (creator != PRINCIPAL_NOBODY && creator == command->principal));
}

/* Another task holds the unique key: that one is the answer, or the create is refused, or *ret_replaced gives way. */
static int meet_key(struct turn *turn, const struct command *command, struct turn_task *holder,
	struct result *result, struct turn_task **ret_replaced)
{
	switch (task_meet_key(
		&holder->task, command->create.on_conflict, may_cancel(turn, command, &holder->task))) {
	case MEETING_REFUSED:
		return refuse_taken(turn, holder, result);
	case MEETING_REPLACES:
		*ret_replaced = holder;
		return 0;
	case MEETING_EXISTS:
		break;
	}
	if (!command_sees(turn, &holder->task))
		return command_refuse(result, REFUSED_TASK_EXISTS);
	result->deduplicated = true;
	result->task = holder->task;
	int r = turn_id_text(turn, holder, &result->id);
	return r < 0 ? r : remember_request(turn, command, holder->task.seq, true);
}

/* Is the id, or the unique key, taken? Sets *ret_is_answered if the result is complete. */
static int create_taken(struct turn *turn, const struct command *command, struct turn_task *parent,
	struct result *result, bool *ret_is_answered, struct turn_task **ret_replaced)
{
	const struct command_create *create = &command->create;
	struct turn_task *view;
	int r;

	*ret_is_answered = true;
	if (create->id.len > 0) {
		r = turn_task_by_id(turn, create->id, &view);
		if (r == 0 && parent && view->task.subtask_of == parent->task.seq)
			return subtask_take_up(turn, parent, view, result);
		if (r != -ENOENT)
			return r < 0 ? r : refuse_taken(turn, view, result);
	}
	if (create->unique_key.len > 0) {
		r = command_find_key(turn, create->unique_key, &view);
		if (r == 0 && view)
			r = meet_key(turn, command, view, result, ret_replaced);
		if (r < 0 || (view && !*ret_replaced))
			return r;
	}
	*ret_is_answered = false;
	return 0;
}

static int draft_gates(struct turn *turn, struct name_list gates, struct task *draft)
{
	struct name_set set;
	int r = turn_name_set(turn, gates, &draft->gates);

	if (r < 0)
		return r;
	names_set_members(&turn->store->names, draft->gates, &set);
	assert(set.count <= TASK_GATES_MAX);
	draft->gate_count = set.count;
	return 0;
}

static int draft_names(struct turn *turn, const struct command_create *create, struct task *draft)
{
	int r = turn_name(turn, create->queue, &draft->queue);

	if (r == 0)
		r = turn_name(turn, create->owner, &draft->owner);
	if (r == 0)
		r = turn_name(turn, create->executor, &draft->executor);
	if (r == 0)
		r = turn_name(turn, create->credential, &draft->credential);
	if (r == 0)
		r = turn_name_set(turn, create->requires, &draft->requires);
	if (r == 0 && create->gates.count > 0)
		r = draft_gates(turn, create->gates, draft);
	return r;
}

/* No such parent, or one that has too many children. */
static int refuse_parent(struct result *result, struct span id, enum refusal refusal)
{
	result->id = id;
	return command_refuse(result, refusal);
}

bool parents_have(const struct parents *parents, int64_t parent)
{
	for (uint32_t i = 0; i < parents->count; i++) {
		if (parents->edges[i].parent == parent)
			return true;
	}
	return false;
}

int command_parents(
	struct turn *turn, struct name_list ids, struct parents *ret_parents, struct result *result)
{
	struct turn_task *parent;

	assert(ids.count <= COMMAND_PARENTS_MAX);
	*ret_parents = (struct parents){0};
	if (ids.count == 0)
		return 0;
	ret_parents->edges = arena_alloc(&turn->arena, ids.count * sizeof *ret_parents->edges);
	if (!ret_parents->edges)
		return -ENOMEM;
	for (uint32_t i = 0; i < ids.count; i++) {
		int r = turn_task_by_id(turn, ids.items[i], &parent);
		if (r == -ENOENT || (r == 0 && !command_sees(turn, &parent->task)))
			return refuse_parent(result, ids.items[i], REFUSED_INVALID);
		if (r < 0)
			return r;
		if (parents_have(ret_parents, parent->task.seq))
			continue;
		/* what ends with one task is decided in one turn, so there is a limit to it */
		bool done = parent->task.state == TASK_DONE;
		if (!done && parent->children >= COMMAND_CHILDREN_MAX)
			return refuse_parent(result, ids.items[i], REFUSED_TOO_LARGE);
		bool dead = !done && task_state_is_final(parent->task.state);
		ret_parents->edges[ret_parents->count++] =
			(struct edge_row){.parent = parent->task.seq, .dead = dead, .done = done};
		ret_parents->dead += dead;
		ret_parents->done += done;
	}
	return 0;
}

int command_put_edge(struct turn *turn, int64_t child, struct edge_row edge)
{
	struct turn_task *parent;

	edge.child = child;
	int r = turn_put(turn, put_edge, &edge);
	if (r == 0 && edge.parent < 0)
		return group_add_waiter(turn, edge.parent);
	if (r < 0 || edge.done)
		return r;
	r = turn_task(turn, edge.parent, &parent);
	if (r == 0)
		parent->children++;
	return r;
}

/* ---- in the place of another task --------------------------------------------------------------------------------- */

struct waiting_edges {
	struct edge_row rows[COMMAND_CHILDREN_MAX];
	uint32_t count;
	int64_t parent; /* of a subtask, its own: that one waits for this very task */
};

static int collect_waiting(void *context, const struct edge_row *row)
{
	struct waiting_edges *edges = context;

	if (row->child == edges->parent || row->done)
		return 0;
	if (edges->count == COMMAND_CHILDREN_MAX)
		return -EPROTO;
	edges->rows[edges->count++] = *row;
	return 0;
}

/* What waits for the one waits for the other: nothing changes for those that wait. */
static int move_waiting(struct turn *turn, struct turn_task *from, struct turn_task *to)
{
	struct waiting_edges *edges = from->children > 0 ? arena_alloc(&turn->arena, sizeof *edges) : NULL;

	if (from->children == 0)
		return 0;
	if (!edges)
		return -ENOMEM;
	edges->count = 0;
	edges->parent = from->task.subtask_of;
	int r = store_rows(turn->store, children, from->task.seq, collect_waiting, edges);
	for (uint32_t i = 0; r == 0 && i < edges->count; i++) {
		struct edge_row edge = edges->rows[i];
		r = command_drop_edge(turn, &edge);
		edge.parent = to->task.seq;
		if (r == 0)
			r = command_put_edge(turn, edge.child, edge);
	}
	return r;
}

static int supersede(struct turn *turn, struct turn_task *view, int64_t successor)
{
	struct task_decision decision = task_supersede(&view->task, successor);
	struct record record = turn_record(turn, decision.event);

	record.note = (struct span){0};
	return turn_write_task(turn, view, &decision, &record);
}

/* The one that is replaced may itself wait for the attempt of another one: from now on that one names the new task. */
static int take_place(struct turn *turn, struct turn_task *replaced, struct turn_task *view)
{
	int64_t first = replaced->task.predecessor;
	struct turn_task *runs = NULL;

	int r = first != 0 ? turn_task(turn, first, &runs) : 0;
	if (r == 0 && runs && !task_state_is_final(runs->task.state))
		r = supersede(turn, runs, view->task.seq);
	if (r == 0 || r == -ENOENT)
		r = move_waiting(turn, replaced, view);
	return r < 0 ? r : supersede(turn, replaced, view->task.seq);
}

static int put_edges(struct turn *turn, int64_t child, const struct parents *parents)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < parents->count; i++)
		r = command_put_edge(turn, child, parents->edges[i]);
	return r;
}

static int put_beside(struct turn *turn, const struct command_create *create, int64_t seq)
{
	char schedule[SCHEDULE_OF_TASK_MAX];
	int64_t shadowed;

	if (create->id.len > 0) {
		turn->facts.shadow_ids += generated_id_seq(create->id, &shadowed) == 0;
		turn_put(turn, put_id, create->id, seq);
		turn_put(turn, put_extra, seq, EXTRA_ID, 0, create->id);
	}
	if (create->unique_key.len > 0) {
		if (!task_state_is_final(create->past.state)) /* only then is it held */
			turn_put(turn, put_key, create->unique_key, seq);
		turn_put(turn, put_extra, seq, EXTRA_KEY, 0, create->unique_key);
	}
	if (create->schedule.len > 0)
		turn_put(turn, put_extra, seq, EXTRA_SCHEDULE, 0,
			schedule_of_task_put(create->schedule, create->planned_ms, schedule));
	return turn_put(turn, put_body, seq, create->body);
}

/* What was said and done before it came here. */
static int put_past(struct turn *turn, const struct command_create *create, int64_t seq)
{
	const struct last_holder last = {
		create->past_holder, create->past.claimed_ms, create->past.lease_until_ms};
	char text[LAST_HOLDER_BYTES_MAX];
	struct span holder = create->past_holder.len > 0 ? last_holder_put(&last, text) : (struct span){0};
	const struct {
		enum extra_kind kind;
		struct span data;
	} extras[] = {
		{EXTRA_RESULT, create->past_result},
		{EXTRA_ERROR, create->past_error},
		{EXTRA_WORDS, create->past_note},
		{EXTRA_LAST_HOLDER, holder},
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof extras / sizeof *extras; i++) {
		if (extras[i].data.len > 0)
			r = turn_put(turn, put_extra, seq, extras[i].kind, 0, extras[i].data);
	}
	return r;
}

/* A queue that drains takes what its own tasks create: it goes on with what was begun. */
static enum queue_state queue_for(
	const struct turn *turn, const struct task *draft, const struct turn_task *parent)
{
	return parent && parent->task.queue == draft->queue ? QUEUE_OPEN : turn_queue(turn, draft->queue);
}

static struct task_decision decide_create(const struct turn *turn, const struct command_create *create,
	const struct task *draft, const struct turn_task *parent)
{
	enum queue_state queue = queue_for(turn, draft, parent);

	return create->past.state == TASK_NOWHERE ? task_create(draft, create->parked, queue, &turn->given)
						  : task_import(draft, &create->past, queue, &turn->given);
}

/* What it names of groups begins with the task: nothing refuses it after this. */
static int stage_groups(
	struct turn *turn, const struct command_create *create, struct task *draft, struct parents *parents)
{
	return create->group.len > 0 || create->blocked_by_groups.count > 0
		? command_name_groups(turn, create, draft, parents)
		: 0;
}

static int stage_create(struct turn *turn, const struct command *command, struct task *draft,
	struct parents *parents, struct turn_task *parent, struct turn_task *replaced, struct result *result)
{
	const struct command_create *create = &command->create;
	struct turn_task *view;

	int r = command_next_seq(turn, &draft->seq);
	if (r == 0 && queue_for(turn, draft, parent) != QUEUE_DRAINING)
		r = stage_groups(turn, create, draft, parents);
	if (r < 0)
		return r;
	struct task_decision decision = decide_create(turn, create, draft, parent);
	if (decision.refusal != REFUSED_NOTHING)
		return command_refuse(result, decision.refusal);
	struct record record = turn_record(turn, decision.event);
	r = turn_write_new(turn, &decision, create->id, &record, &view);
	if (r == 0 && replaced) /* it gives its key up before the new one takes it */
		r = take_place(turn, replaced, view);
	if (r == 0)
		r = put_beside(turn, create, draft->seq);
	if (r == 0 && create->past.state != TASK_NOWHERE)
		r = put_past(turn, create, draft->seq);
	if (r == 0)
		r = put_edges(turn, draft->seq, parents);
	if (r == 0 && parent)
		r = subtask_note(turn, parent, draft->seq, create->budget);
	if (r == 0 && create->spawn.spec.len > 0)
		r = session_spawn(turn, view, &create->spawn, true);
	if (r == 0)
		r = remember_request(turn, command, draft->seq, false);
	if (r < 0)
		return r;
	result->task = view->task;
	return turn_id_text(turn, view, &result->id);
}

/* What its own tasks create, and what takes the place of one, does not make a queue fuller than what was begun. */
static bool finds_full(const struct turn *turn, const struct command_create *create, const struct task *draft,
	const struct turn_task *parent, const struct turn_task *replaced)
{
	if (task_state_is_final(create->past.state) || (parent && parent->task.queue == draft->queue) ||
		(replaced && replaced->task.queue == draft->queue))
		return false;
	return turn_queue_is_full(turn, draft->queue);
}

/* Open tasks of a principal, and their bytes, are limited, except an operator's. Those that meet in one turn count together. */
static int take_quota(struct turn *turn, const struct command *command, const struct turn_task *replaced,
	struct task *draft, struct result *result)
{
	const struct rules *rules = turn->given.rules;
	uint32_t kib = (uint32_t)(command->create.body.len / 1024 + 1);

	if (command->oversees || command->principal == PRINCIPAL_NOBODY)
		return 0;
	struct account *account = turn_account(turn, command->principal);
	if (!account)
		return -ENOMEM;
	bool frees = replaced && !task_is_claimed(&replaced->task) && replaced->task.charge != 0;
	bool many =
		!frees && rules->open_tasks != 0 && account->tasks + account->more_tasks >= rules->open_tasks;
	if (many || (rules->open_kib != 0 && account->kib + account->more_kib + kib > rules->open_kib)) {
		turn->store->counts.creates_refused++;
		return command_refuse(result, REFUSED_QUOTA_EXCEEDED);
	}
	account->more_tasks++;
	account->more_kib += kib;
	draft->charge = task_charge(command->principal, kib);
	return 0;
}

int execute_create(struct turn *turn, const struct command *command, struct result *result)
{
	const struct command_create *create = &command->create;
	struct turn_task *parent = NULL, *replaced = NULL;
	struct parents parents;
	bool settled;

	int r = create->subtask ? subtask_find_parent(turn, command, result, &parent) : 0;
	if (r < 0 || (create->subtask && !parent))
		return r;
	r = create_again(turn, command, result, &settled);
	if (r == 0 && !settled && create->spawn.spec.len > 0)
		r = session_taken(turn, &create->spawn, result, &settled);
	if (r == 0 && !settled)
		r = create_taken(turn, command, parent, result, &settled, &replaced);
	if (r < 0 || settled)
		return r;
	struct task draft = {
		.priority = create->priority,
		.timeout_ms = create->timeout_ms,
		.max_attempts = create->max_attempts,
		.ready_at_ms = create->not_before_ms,
		.start_by_ms = create->start_by_ms,
		.finish_by_ms = create->finish_by_ms,
		.keyed = create->unique_key.len > 0,
		.named_id = create->id.len > 0,
		.autonomous = create->autonomous,
		.runs_anyway = create->runs_anyway,
		.workflow = create->workflow,
		.concurrency_key = concurrency_key_number(create->concurrency_key),
	};
	if (create->unique_for_ms != 0)
		draft.unique_until_ms = (replaced ? replaced->task.created_ms : turn->given.now.wall_ms) +
			create->unique_for_ms;
	if (replaced)
		task_succeed(&draft, &replaced->task);
	if (create->schedule.len > 0)
		draft.occurrence = create->held ? OCCURRENCE_HELD : OCCURRENCE_MADE;
	r = command_parents(turn, create->parents, &parents, result);
	if (r < 0 || result->refusal != REFUSED_NOTHING)
		return r;
	draft.has_parent = create->parents.count > 0;
	draft.open_parents = parents.count - parents.done;
	draft.dead_parents = parents.dead;
	parents.replaces = replaced ? replaced->task.seq : 0;
	r = draft_names(turn, create, &draft);
	if (r == -E2BIG)
		return command_refuse(result, REFUSED_TOO_LARGE);
	if (r == 0 && parent) {
		parents.own_group = parent->task.group;
		parents.subtask_of = parent->task.seq;
		r = subtask_check(turn, command, parent, &draft, result);
	}
	if (r < 0 || result->refusal != REFUSED_NOTHING)
		return r;
	if (create->group.len > 0 || create->blocked_by_groups.count > 0)
		r = command_check_groups(turn, create, &parents, result);
	else if ((parent || replaced) && create->parents.count > 0)
		r = command_check_tree(turn, &parents, result);
	if (r < 0 || result->refusal != REFUSED_NOTHING)
		return r;
	if (finds_full(turn, create, &draft, parent, replaced))
		return command_refuse(result, REFUSED_QUEUE_FULL);
	if (r == 0)
		r = take_quota(turn, command, replaced, &draft, result);
	if (r < 0 || result->refusal != REFUSED_NOTHING)
		return r;
	return stage_create(turn, command, &draft, &parents, parent, replaced, result);
}
