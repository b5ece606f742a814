/*
 * The turn: one owner, many commands, one commit.
 *
 * Rejected: changing the memory at once and undoing it when the commit fails. The undo would be a second
 * path to every change, taken only on the worst day. Copies cost a few hundred bytes per task touched.
 */
#include "store/turn.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base36.h"

enum {
	TURN_ARENA_MAX = 512 << 20,
	RECORD_MAX = 20 << 20,
};

static uint64_t task_hash(void *context, uint32_t index)
{
	const struct turn *turn = context;

	return hash_u64((uint64_t)turn->tasks[index]->task.seq);
}

static const struct map_ops task_ops = {.hash_of = task_hash};

void turn_init(struct turn *turn, struct store *store)
{
	turn->store = store;
	arena_init(&turn->arena, TURN_ARENA_MAX);
	buf_init(&turn->record, RECORD_MAX);
	map_init(&turn->task_by_seq, &task_ops, turn);
}

void turn_done(struct turn *turn)
{
	arena_done(&turn->arena);
	buf_done(&turn->record);
	map_done(&turn->task_by_seq);
	free(turn->tasks);
	free(turn->ready);
	free(turn->workers);
	free(turn->queues);
	free(turn->slots);
	free(turn->spawned);
	free(turn->tokens);
}

static void forget_tasks(struct turn *turn)
{
	for (uint32_t i = 0; i < turn->task_count; i++)
		map_remove(&turn->task_by_seq, hash_u64((uint64_t)turn->tasks[i]->task.seq), i);
	turn->task_count = 0;
	turn->ready_count = 0;
}

void turn_begin(struct turn *turn, struct moment now)
{
	struct store *store = turn->store;

	assert(!turn->begun);
	forget_tasks(turn);
	arena_reset(&turn->arena);
	turn->number++;
	turn->in_commit = false;
	turn->worker_count = 0;
	turn->queue_count = 0;
	turn->slot_count = 0;
	turn->token_count = 0;
	turn->spawned_count = 0;
	turn->timer_count = 0;
	turn->wall_timer_count = 0;
	turn->last_event = store->last_event;
	memset(turn->told, 0, sizeof turn->told);
	turn->last_task = store->last_task;
	turn->last_principal = store->last_principal;
	turn->disarmed = store->disarmed;
	turn->execution_ms = store->execution_ms;
	turn->shadow_ids = store->shadow_ids;
	turn->finals = store->finals;
	turn->handed_bytes = 0;
	turn->rescheduled = 0;
	memset(turn->unscheduled, 0, sizeof turn->unscheduled);
	turn->command = NULL;
	turn->told_seq = 0;
	turn->given = (struct given){
		.rules = &store->rules,
		.now = now,
		.grace = store->grace,
		.generation = store->generation,
		.disarmed = store->disarmed,
	};
}

int turn_write(struct turn *turn)
{
	if (turn->begun)
		return 0;
	if (turn->memory_only)
		return -ENOSPC;
	int r = turn->store->backend->ops->begin(turn->store->backend);
	if (r == 0)
		turn->begun = true;
	return r;
}

/* ---- views ------------------------------------------------------------------------------------ */

static int grow(void **items, uint32_t count, uint32_t *cap, size_t size)
{
	if (count < *cap)
		return 0;
	uint32_t wanted = *cap ? *cap * 2 : 256;
	void *grown = realloc(*items, wanted * size);
	if (!grown)
		return -ENOMEM;
	*items = grown;
	*cap = wanted;
	return 0;
}

static struct turn_task *find_view(const struct turn *turn, int64_t seq)
{
	struct map_probe probe;
	uint32_t index = map_first(&turn->task_by_seq, hash_u64((uint64_t)seq), &probe);

	for (; index != MAP_NONE; index = map_next(&turn->task_by_seq, &probe)) {
		if (turn->tasks[index]->task.seq == seq)
			return turn->tasks[index];
	}
	return NULL;
}

static int add_view(struct turn *turn, int64_t seq, struct turn_task **ret_view)
{
	struct turn_task *view = arena_alloc(&turn->arena, sizeof *view);
	if (!view)
		return -ENOMEM;
	int r = grow((void **)&turn->tasks, turn->task_count, &turn->task_cap, sizeof *turn->tasks);
	if (r < 0)
		return r;
	view->task.seq = seq;
	view->slot = MAP_NONE;
	turn->tasks[turn->task_count] = view;
	r = map_insert(&turn->task_by_seq, hash_u64((uint64_t)seq), turn->task_count);
	if (r < 0)
		return r;
	turn->task_count++;
	*ret_view = view;
	return 0;
}

static int list_ready(struct turn *turn, struct turn_task *view);

int turn_task(struct turn *turn, int64_t seq, struct turn_task **ret_task)
{
	struct store *store = turn->store;
	struct turn_task *view = find_view(turn, seq);
	struct task_row row;

	if (view) {
		*ret_task = view;
		return view->gone ? -ENOENT : 0;
	}
	uint32_t slot = hot_find(&store->hot, seq);
	if (slot == MAP_NONE) { /* final, or not there at all */
		int r = store->backend->ops->get_task(store->backend, seq, &turn->arena, &row);
		if (r < 0)
			return r;
		assert(task_state_is_final(row.task.state));
	}
	int r = add_view(turn, seq, &view);
	if (r < 0)
		return r;
	view->slot = slot;
	if (slot == MAP_NONE) {
		view->task = row.task;
		view->task.updated_ms = row.updated_ms;
		view->was_final = true;
	} else {
		hot_get(&store->hot, slot, &view->task);
		view->children = hot_children(&store->hot, slot);
	}
	*ret_task = view;
	return list_ready(turn, view);
}

void turn_peek(const struct turn *turn, int64_t seq, struct task *ret_task)
{
	const struct turn_task *view = find_view(turn, seq);

	if (view)
		*ret_task = view->task;
	else
		hot_get(&turn->store->hot, hot_find(&turn->store->hot, seq), ret_task);
}

int generated_id_seq(struct span id, int64_t *ret_seq)
{
	uint64_t seq;

	if (id.len < 3 || memcmp(id.data, "t-", 2) != 0)
		return -EINVAL;
	int r = base36_decode((struct span){id.data + 2, id.len - 2}, &seq);
	if (r < 0 || seq > INT64_MAX)
		return -EINVAL;
	*ret_seq = (int64_t)seq;
	return 0;
}

int turn_task_by_id(struct turn *turn, struct span id, struct turn_task **ret_task)
{
	struct backend *backend = turn->store->backend;
	int64_t seq;
	bool generated = generated_id_seq(id, &seq) == 0;
	int r;

	/* callers may choose ids that look like ours; while none has, ours need no look-up */
	if (!generated || turn->shadow_ids > 0) {
		int64_t own_seq;
		r = backend->ops->find_id(backend, id, &own_seq);
		if (r == 0) {
			r = turn_task(turn, own_seq, ret_task);
			if (r == 0)
				(*ret_task)->own_id = id;
			return r;
		}
		if (r != -ENOENT || !generated)
			return r;
	}
	r = turn_task(turn, seq, ret_task);
	if (r == 0 && (*ret_task)->task.named_id)
		return -ENOENT; /* it has a name of its own and answers to that alone */
	return r;
}

int turn_own_id(struct turn *turn, struct turn_task *view)
{
	struct backend *backend = turn->store->backend;

	if (!view->task.named_id || view->own_id.len > 0)
		return 0;
	return backend->ops->get_extra(backend, view->task.seq, EXTRA_ID, 0, &turn->arena, &view->own_id);
}

int turn_id_text(struct turn *turn, struct turn_task *view, struct span *ret_id)
{
	char text[2 + BASE36_MAX] = "t-";

	int r = turn_own_id(turn, view);
	if (r < 0)
		return r;
	if (view->task.named_id) {
		*ret_id = view->own_id;
		return 0;
	}
	size_t len = base36_encode((uint64_t)view->task.seq, text + 2);
	return arena_copy(&turn->arena, (struct span){text, len + 2}, ret_id);
}

struct turn_worker *turn_worker_by_number(struct turn *turn, uint32_t number)
{
	struct holder *holder = hot_holder(&turn->store->hot, number);

	if (holder->view_turn == turn->number)
		return turn->workers[holder->view_index];
	struct turn_worker *view = arena_alloc(&turn->arena, sizeof *view);
	if (!view ||
		grow((void **)&turn->workers, turn->worker_count, &turn->worker_cap, sizeof *turn->workers) <
			0)
		return NULL;
	view->worker = holder->worker;
	view->id = holder_id(holder);
	view->instance = holder->instance;
	view->stale_on_disk = holder->stale_on_disk;
	holder->view_turn = turn->number;
	holder->view_index = turn->worker_count;
	turn->workers[turn->worker_count++] = view;
	return view;
}

struct turn_worker *turn_worker(struct turn *turn, struct span id, bool make)
{
	struct hot *hot = &turn->store->hot;
	uint32_t number = hot_find_holder(hot, id);
	bool added = false;

	if (number == 0) {
		if (!make)
			return NULL;
		number = hot_add_holder(hot, id);
		if (number == 0)
			return NULL;
		added = true;
	}
	struct turn_worker *view = turn_worker_by_number(turn, number);
	if (!view && added)
		hot_drop_holder(hot, number);
	if (view && added)
		view->added = true;
	return view;
}

int turn_name(struct turn *turn, struct span text, uint32_t *ret_id)
{
	struct names *names = &turn->store->names;
	const struct command *command = turn->command;

	*ret_id = names_find(names, text);
	if (*ret_id != 0 || text.len == 0)
		return 0;
	if (!command->oversees && names_of_principal(names, command->principal) >= NAMES_PER_PRINCIPAL_MAX) {
		turn->names_spent = true;
		return -E2BIG;
	}
	return names_add(names, text, command->principal, ret_id);
}

int turn_keep_names(struct turn *turn, uint32_t count)
{
	const struct names *names = &turn->store->names;
	struct backend *backend = turn->store->backend;
	int r = count < names->count ? turn_write(turn) : 0;

	for (uint32_t id = count + 1; r == 0 && id <= names->count; id++) {
		struct name_row row = {id, names_principal(names, id), names_text(names, id)};
		r = backend->ops->put_name(backend, &row);
	}
	return r;
}

int turn_name_set(struct turn *turn, struct name_list members, uint32_t *ret_id)
{
	struct buf text;
	uint32_t member;
	int r = 0;

	*ret_id = 0;
	for (uint32_t i = 0; i < members.count && r == 0; i++)
		r = turn_name(turn, members.items[i], &member);
	if (r < 0 || members.count == 0)
		return r;
	buf_init(&text, NAME_SET_MAX * (COMMAND_NAME_MAX + 1));
	r = names_set_text(members, &text);
	if (r == 0)
		r = turn_name(turn, buf_span(&text), ret_id);
	buf_done(&text);
	return r;
}

enum queue_state turn_queue(const struct turn *turn, uint32_t name)
{
	const struct store *store = turn->store;

	for (uint32_t i = 0; i < turn->queue_count; i++) {
		if (turn->queues[i].name == name)
			return turn->queues[i].state;
	}
	for (uint32_t i = 0; i < store->queue_count; i++) {
		if (store->queues[i].name == name)
			return store->queues[i].state;
	}
	return QUEUE_OPEN;
}

bool turn_opts_in(const struct turn *turn, uint32_t queue)
{
	return store_opts_in(turn->store, queue);
}

void turn_slot(const struct turn *turn, uint32_t name, struct slot *ret_slot)
{
	const struct store *store = turn->store;

	slot_init(ret_slot);
	for (uint32_t i = 0; i < turn->slot_count; i++) {
		if (turn->slots[i].name == name) {
			*ret_slot = turn->slots[i].slot;
			return;
		}
	}
	const struct slot *known = store_find_slot(store, name);
	if (known)
		*ret_slot = *known;
}

int turn_new_principal(struct turn *turn, uint32_t *ret_principal)
{
	struct backend *backend = turn->store->backend;
	int r = turn_write(turn);

	if (r == 0)
		r = backend->ops->put_meta(backend, META_PRINCIPALS, turn->last_principal + 1);
	if (r == 0)
		*ret_principal = ++turn->last_principal;
	return r;
}

const struct token *turn_token(const struct turn *turn, struct span id)
{
	for (uint32_t i = turn->token_count; i > 0; i--) {
		if (span_equal(turn->tokens[i - 1]->id, id))
			return turn->tokens[i - 1];
	}
	return tokens_find(&turn->store->credentials, id);
}

/* What it held when the turn began and still holds, and what it took in this turn. */
int turn_held_by(struct turn *turn, const struct turn_worker *worker, struct held_tasks *ret_held)
{
	const struct hot *hot = &turn->store->hot;
	const struct holder *holder = hot_holder(hot, worker->worker.handle);
	uint32_t limit = worker->worker.held, count = 0;
	int64_t seq = 0;

	*ret_held = (struct held_tasks){0};
	if (limit == 0)
		return 0;
	int64_t *seqs = arena_alloc(&turn->arena, limit * sizeof *seqs);
	if (!seqs)
		return -ENOMEM;
	for (uint32_t at = hot_next_claim(hot, holder, MAP_NONE, &seq); at != MAP_NONE;
		at = hot_next_claim(hot, holder, at, &seq)) {
		if (!find_view(turn, seq))
			seqs[count++] = seq;
	}
	for (uint32_t i = 0; i < turn->task_count; i++) {
		if (turn->tasks[i]->task.claim.holder == worker->worker.handle)
			seqs[count++] = turn->tasks[i]->task.seq;
	}
	assert(count == limit);
	*ret_held = (struct held_tasks){seqs, count};
	return 0;
}

/* ---- staging ---------------------------------------------------------------------------------- */

void turn_record(struct turn *turn, struct record *record, enum event_kind kind)
{
	*record = (struct record){
		.kind = kind,
		.wall_ms = turn->given.now.wall_ms,
		.lease_ms = turn->given.now.lease_ms,
	};
	if (turn->command) {
		record->actor = turn->command->actor;
		record->note = turn->command->note;
	}
}

int turn_stage_event(struct turn *turn, struct record *record)
{
	struct backend *backend = turn->store->backend;
	int r = turn_write(turn);
	if (r < 0)
		return r;
	record->seq = turn->last_event + 1;
	turn->told[record->kind]++;
	buf_clear(&turn->record);
	r = record_encode(record, &turn->record);
	if (r < 0)
		return r;
	r = backend->ops->put_event(backend, record->seq, buf_span(&turn->record));
	if (r < 0)
		return r;
	turn->last_event = record->seq;
	return 0;
}

static int write_row(struct turn *turn, const struct task *task, bool fresh)
{
	struct backend *backend = turn->store->backend;
	struct task_row row = {.task = *task, .updated_ms = task->updated_ms};

	if (task->claim.holder != 0) {
		const struct turn_worker *holder = turn_worker_by_number(turn, task->claim.holder);
		if (!holder)
			return -ENOMEM;
		row.holder = holder->id;
	}
	int r = turn_write(turn);
	if (r < 0)
		return r;
	return backend->ops->put_task(backend, &row, fresh);
}

/* A unique key is held from creation until the task is final, and again after a retry. */
static int move_key(struct turn *turn, const struct turn_task *view, bool was_final, bool is_final)
{
	struct backend *backend = turn->store->backend;
	struct span key;

	if (!view->task.keyed || was_final == is_final)
		return 0;
	int r = backend->ops->get_extra(backend, view->task.seq, EXTRA_KEY, 0, &turn->arena, &key);
	if (r < 0)
		return r;
	return is_final ? backend->ops->delete_key(backend, key)
			: backend->ops->put_key(backend, key, view->task.seq);
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

/* A claim looks for tasks that this turn has not touched in the lanes, and for those it has touched here. */
static int list_ready(struct turn *turn, struct turn_task *view)
{
	struct lane_key lane;

	if (view->listed || !hot_lane_of(&view->task, &lane))
		return 0;
	int r = grow((void **)&turn->ready, turn->ready_count, &turn->ready_cap, sizeof *turn->ready);
	if (r < 0)
		return r;
	struct map_probe probe;
	uint32_t index = map_first(&turn->task_by_seq, hash_u64((uint64_t)view->task.seq), &probe);
	while (turn->tasks[index] != view)
		index = map_next(&turn->task_by_seq, &probe);
	turn->ready[turn->ready_count++] = index;
	view->listed = true;
	return 0;
}

static int stage_follow(struct turn *turn, struct turn_task *view, enum follow follow);

/* The row changes although nothing happened that an event tells: a lease moved. */
static int stage_quietly(struct turn *turn, struct turn_task *view, struct task *after)
{
	after->updated_ms = turn->given.now.wall_ms;
	int r = write_row(turn, after, false);
	if (r < 0)
		return r;
	view->task = *after;
	view->changed = true;
	return 0;
}

static bool claim_equal(const struct claim *a, const struct claim *b)
{
	return a->holder == b->holder && a->clock == b->clock &&
		a->lease.deadline_ms == b->lease.deadline_ms && a->lease.granted_ms == b->lease.granted_ms &&
		a->verify_at_ms == b->verify_at_ms && a->run_until_ms == b->run_until_ms &&
		a->run_ms == b->run_ms && a->asked_at_ms == b->asked_at_ms && a->stopping == b->stopping &&
		a->reported == b->reported && a->request == b->request && a->named == b->named &&
		a->claimed_wall_ms == b->claimed_wall_ms;
}

static int stage_change(
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
	return turn_stage_event(turn, record);
}

/* The label of the task's session, as the turn has it; empty: it is none. */
static struct span session_label(const struct turn *turn, int64_t seq)
{
	for (uint32_t i = turn->spawned_count; i > 0; i--) {
		if (turn->spawned[i - 1].seq == seq)
			return turn->spawned[i - 1].label;
	}
	const struct session *session = sessions_find(&turn->store->sessions, seq);
	return session ? session->label : (struct span){0};
}

/* A note beside the event that says what happened to the task. */
static int note_session(struct turn *turn, struct turn_task *view, enum event_kind kind, struct span label,
	struct span worker, struct span note)
{
	struct task after = view->task;
	struct record record;

	turn_record(turn, &record, kind);
	record.note = note;
	record.subject = label;
	record.worker = worker;
	int r = stage_change(turn, view, &after, &record);
	if (r < 0)
		return r;
	after.version = record.seq;
	view->task = after;
	view->changed = true;
	return write_row(turn, &after, false);
}

/* An attempt of a session began, or is over. With the session itself, whoever spawned it wanted word of it. */
static int follow_session(
	struct turn *turn, struct turn_task *view, enum event_kind event, uint64_t fence, uint32_t holder)
{
	struct span label = session_label(turn, view->task.seq);
	struct session_document session = {0};

	if (label.len == 0)
		return 0;
	enum event_kind kind = task_session_event(event, fence, holder != 0, &view->task);
	if (kind == EVENT_NONE)
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
	struct span label = session_label(turn, view->task.seq);

	if (label.len == 0)
		return 0;
	const struct turn_worker *worker = turn_worker_by_number(turn, view->task.claim.holder);
	return worker ? note_session(turn, view, EVENT_SESSION_OUTPUT, label, worker->id, turn->command->note)
		      : -ENOMEM;
}

int turn_stage_session(struct turn *turn, struct turn_task *view, const struct session *session)
{
	int r = grow((void **)&turn->spawned, turn->spawned_count, &turn->spawned_cap, sizeof *turn->spawned);

	if (r < 0)
		return r;
	turn->spawned[turn->spawned_count++] = *session;
	/* it runs already: the attempt is the session's from now on */
	return task_is_claimed(&view->task) ? follow_session(turn, view, EVENT_NONE, 0, 0) : 0;
}

/* ---- stages and gates --------------------------------------------------------------------------- */

static int stage_one(struct turn *turn, struct turn_task *view, const struct task_decision *decision,
	struct record *record);

/* Whoever held an attempt before the last one is remembered: they give no verdict on the task. */
static int keep_claimant(struct turn *turn, const struct task *before, const struct task *after)
{
	struct backend *backend = turn->store->backend;

	if (before->claimant == PRINCIPAL_NOBODY || before->claimant == after->claimant)
		return 0;
	return backend->ops->put_extra(backend, after->seq, EXTRA_CLAIMANT, before->claimant, SPAN("1"));
}

static int stage_action(struct turn *turn, enum action action)
{
	const struct command *command = turn->command;

	if (action == ACTION_NONE || !command || !command->told.actions)
		return 0;
	return command_create_action(turn, &command->told.actions[action]);
}

int turn_follow(struct turn *turn, struct turn_task *view, const struct task *before)
{
	static const struct tiding nothing;
	const struct tiding *tiding = turn->told_seq == view->task.seq ? &turn->tiding : &nothing;
	struct stage_move move = workflow_follow(before, &view->task, tiding);
	struct record record;

	if (view->task.workflow == WORKFLOW_NONE || move.stage == view->task.stage)
		return 0;
	struct task_decision decision = task_set_stage(&view->task, move.stage);
	turn_record(turn, &record, decision.event);
	record.note = turn->command ? turn->command->told.note : (struct span){0};
	record_fact(&record, FACT_STAGE_FROM, view->task.stage);
	if (move.action != ACTION_NONE)
		record_fact(&record, FACT_ACTION, move.action);
	int r = stage_one(turn, view, &decision, &record);
	return r < 0 ? r : stage_action(turn, move.action);
}

/* The work was reported: its gates are open. */
static int open_gates(struct turn *turn, struct turn_task *view)
{
	struct name_set gates;
	struct record record;
	int r = 0;

	names_set_members(&turn->store->names, view->task.gates, &gates);
	for (uint32_t i = 0; r == 0 && i < gates.count; i++) {
		struct task_decision decision = task_open_gate(&view->task, UINT32_C(1) << i);
		turn_record(turn, &record, decision.event);
		record.note = (struct span){0};
		record.subject = names_text(&turn->store->names, gates.ids[i]);
		r = stage_one(turn, view, &decision, &record);
	}
	return r;
}

/* What follows for the task itself from what was decided about it. */
static int stage_own_follow(struct turn *turn, struct turn_task *view, const struct task *before)
{
	int r = turn_follow(turn, view, before);

	if (r == 0 && view->task.gates != 0 && view->task.state == TASK_REVIEW &&
		before->state != TASK_REVIEW)
		r = open_gates(turn, view);
	return r;
}

/* ---- what a slot finds of a loss or a failure ------------------------------------------------------ */

/* When it was, and the session of then. */
static int keep_moment(struct turn *turn, int64_t seq, enum extra_kind kind)
{
	struct backend *backend = turn->store->backend;
	struct span session = {0};

	int r = backend->ops->get_extra(backend, seq, EXTRA_SESSION, 0, &turn->arena, &session);
	if (r < 0 && r != -ENOENT)
		return r;
	buf_clear(&turn->record);
	r = buf_put_decimal(&turn->record, (uint64_t)turn->given.now.wall_ms);
	if (r == 0)
		r = buf_put_byte(&turn->record, ' ');
	if (r == 0)
		r = buf_put_span(&turn->record, session);
	return r < 0 ? r : backend->ops->put_extra(backend, seq, kind, 0, buf_span(&turn->record));
}

/* Slot workers of old write into the metadata of their task when it failed, and when they took it up after a crash. What
 * the server finds out by itself is told in the same words, so it is remembered; unless the caller says it. */
static int keep_trace(struct turn *turn, const struct task *after, enum event_kind event)
{
	const struct command *command = turn->command;
	bool is_said = command && command->kind == COMMAND_UPDATE && command->update.says_failure;
	bool in_line = after->state == TASK_READY || after->state == TASK_SCHEDULED;
	bool lost = event == EVENT_TASK_EXPIRED;

	if (lost && in_line)
		return keep_moment(turn, after->seq, EXTRA_RECOVERED);
	if (is_said || after->code == CODE_NONE)
		return 0;
	return lost || event == EVENT_TASK_FAILED || event == EVENT_TASK_BLOCKED
		? keep_moment(turn, after->seq, EXTRA_FAILED)
		: 0;
}

/* ---- the one way to write a decision -------------------------------------------------------------- */

int turn_stage_task(struct turn *turn, struct turn_task *view, const struct task_decision *decision,
	struct record *record)
{
	bool has_own_follow = view->task.workflow != WORKFLOW_NONE || view->task.gates != 0;
	struct task before;

	if (!has_own_follow || decision->event == EVENT_NONE)
		return stage_one(turn, view, decision, record);
	before = view->task;
	int r = stage_one(turn, view, decision, record);
	return r < 0 || view->gone ? r : stage_own_follow(turn, view, &before);
}

static int stage_one(struct turn *turn, struct turn_task *view, const struct task_decision *decision,
	struct record *record)
{
	struct task after = decision->task;
	bool was_final = task_state_is_final(view->task.state);

	assert(decision->refusal == REFUSED_NOTHING);
	if (decision->event == EVENT_NONE)
		return claim_equal(&view->task.claim, &after.claim) ? 0 : stage_quietly(turn, view, &after);

	uint64_t fence = view->task.fence;
	uint32_t holder = view->task.claim.holder;
	int r = stage_change(turn, view, &after, record);
	if (r < 0)
		return r;
	after.version = record->seq;
	after.updated_ms = record->wall_ms;
	view->gone = after.state == TASK_NOWHERE;
	if (view->gone)
		r = session_forget(turn, after.seq);
	if (r < 0)
		return r;
	r = view->gone ? turn->store->backend->ops->delete_task(turn->store->backend, after.seq)
		       : write_row(turn, &after, false);
	if (r == 0)
		r = count_holder(turn, view->task.claim.holder, after.claim.holder);
	if (r == 0)
		r = keep_claimant(turn, &view->task, &after);
	if (r == 0 && after.owner != 0 && !view->gone)
		r = keep_trace(turn, &after, decision->event);
	if (r < 0)
		return r;
	view->task = after;
	view->changed = true;
	if (was_final && view->children == 0)
		view->children = 1; /* reopened: how many it blocks is on disk, see stage_follow() */
	bool is_final = view->gone || task_state_is_final(after.state);
	turn->finals += (int)(is_final && !view->gone) - (int)was_final;
	r = move_key(turn, view, was_final, is_final);
	if (r == 0 && turn->store->sessions.count + turn->spawned_count > 0 && !view->gone)
		r = follow_session(turn, view, decision->event, fence, holder);
	if (r == 0)
		r = list_ready(turn, view);
	if (r == 0 && decision->follow != FOLLOW_NOTHING)
		r = stage_follow(turn, view, decision->follow);
	return r;
}

int turn_stage_new(struct turn *turn, const struct task_decision *decision, struct span own_id,
	struct record *record, struct turn_task **ret_view)
{
	static const struct task nothing;
	struct turn_task *view;
	int r = add_view(turn, decision->task.seq, &view);
	if (r < 0)
		return r;
	view->task = nothing;
	view->task.seq = decision->task.seq;
	view->own_id = own_id;
	struct task after = decision->task;
	r = stage_change(turn, view, &after, record);
	if (r < 0)
		return r;
	after.version = record->seq;
	after.updated_ms = record->wall_ms;
	r = write_row(turn, &after, true);
	if (r < 0)
		return r;
	view->task = after;
	view->changed = true;
	turn->finals += task_state_is_final(after.state); /* it came from elsewhere, and is over */
	*ret_view = view;
	return list_ready(turn, view);
}

/* ---- what one task means for those it blocks ---------------------------------------------------- */

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

static int stage_child(struct turn *turn, const struct edge_row *edge, enum follow follow)
{
	struct backend *backend = turn->store->backend;
	struct edge_row changed = *edge;
	struct turn_task *child;
	struct task_decision decision;
	struct record record;
	int r = turn_task(turn, edge->child, &child);
	if (r < 0)
		return r == -ENOENT ? 0 : r;

	if (follow == FOLLOW_PARENT_DONE) {
		decision = task_parent_done(&child->task, &turn->given);
		r = backend->ops->delete_edge(backend, edge->parent, edge->child);
	} else {
		changed.dead = follow == FOLLOW_PARENT_DEAD;
		decision = changed.dead ? task_parent_dead(&child->task, &turn->given)
					: task_parent_reopened(&child->task, &turn->given);
		r = backend->ops->put_edge(backend, &changed);
	}
	if (r < 0)
		return r;
	turn_record(turn, &record, decision.event);
	return turn_stage_task(turn, child, &decision, &record);
}

static int stage_follow(struct turn *turn, struct turn_task *view, enum follow follow)
{
	struct backend *backend = turn->store->backend;
	struct edges edges = {.turn = turn};

	if (follow == FOLLOW_PARENT_REVIVED) { /* those that it blocks wait again, and then no longer */
		int opened = stage_follow(turn, view, FOLLOW_PARENT_REOPENED);
		return opened < 0 ? opened : stage_follow(turn, view, FOLLOW_PARENT_DONE);
	}
	if (view->children == 0 && !view->was_final)
		return 0;
	int r = backend->ops->children(backend, view->task.seq, collect_edge, &edges);
	if (r == 0 && follow == FOLLOW_PARENT_REOPENED)
		view->children = edges.count;
	for (uint32_t i = 0; r == 0 && i < edges.count; i++) {
		if (edges.rows[i].dead == (follow == FOLLOW_PARENT_REOPENED))
			r = stage_child(turn, &edges.rows[i], follow);
	}
	return r;
}

/* ---- workers, queues, slots --------------------------------------------------------------------- */

int turn_store_worker(struct turn *turn, struct turn_worker *view)
{
	struct backend *backend = turn->store->backend;
	const struct holder *holder = hot_holder(&turn->store->hot, view->worker.handle);
	struct worker_row row = {
		.worker = view->worker,
		.id = view->id,
		.instance = view->instance,
		.metadata = view->metadata.data ? view->metadata
						: (struct span){holder->metadata, holder->metadata_len},
		.ended_ms = holder->ended_ms,
	};

	if (view->worker.state == WORKER_INACTIVE && row.ended_ms == 0)
		row.ended_ms = turn->given.now.wall_ms;
	if (view->worker.state != WORKER_INACTIVE)
		row.ended_ms = 0;
	int r = turn_write(turn);
	if (r < 0)
		return r;
	view->stale_on_disk = false;
	view->worker.stored_deadline_ms = view->worker.lease.deadline_ms;
	return backend->ops->put_worker(backend, &row);
}

int turn_stage_worker(struct turn *turn, struct turn_worker *view, const struct worker_decision *decision,
	struct record *record)
{
	assert(decision->refusal == REFUSED_NOTHING);
	uint32_t held = view->worker.held;
	view->worker = decision->worker;
	view->worker.held = held;
	if (decision->event == EVENT_WORKER_REGISTERED)
		view->instance++;
	if (decision->event != EVENT_NONE) {
		record->worker = view->id;
		record_fact(record, FACT_INSTANCE, view->instance);
		record_fact(record, FACT_GRANTED, view->worker.lease.granted_ms);
		record->subject = names_text(&turn->store->names, view->worker.slot);
		int r = turn_stage_event(turn, record);
		if (r < 0)
			return r;
	}
	if (decision->must_store)
		return turn_store_worker(turn, view);
	view->stale_on_disk |= decision->store_soon;
	return 0;
}

int turn_stage_queue(struct turn *turn, uint32_t name, enum queue_state state, struct record *record)
{
	struct backend *backend = turn->store->backend;
	struct queue_row row = {name, state};
	uint32_t i = 0;

	while (i < turn->queue_count && turn->queues[i].name != name)
		i++;
	int r = grow((void **)&turn->queues, i, &turn->queue_cap, sizeof *turn->queues);
	if (r < 0)
		return r;
	record->subject = names_text(&turn->store->names, name);
	r = turn_stage_event(turn, record);
	if (r < 0)
		return r;
	turn->queues[i] = (struct turn_queue){name, state};
	if (i == turn->queue_count)
		turn->queue_count++;
	return backend->ops->put_queue(backend, &row);
}

int turn_stage_execution(struct turn *turn, enum execution execution, struct record *record)
{
	struct backend *backend = turn->store->backend;
	int r = turn_stage_event(turn, record);

	if (r == 0)
		r = backend->ops->put_meta(backend, META_EXECUTION, execution);
	if (r == 0)
		r = backend->ops->put_meta(backend, META_EXECUTION_MS, record->wall_ms);
	if (r < 0)
		return r;
	turn->disarmed = !execution_is_armed(execution);
	turn->execution_ms = record->wall_ms;
	turn->given.disarmed = turn->disarmed; /* from here on, in this very turn */
	return 0;
}

int turn_stage_slot(struct turn *turn, uint32_t name, const struct slot *slot, enum event_kind event,
	struct record *record)
{
	struct backend *backend = turn->store->backend;
	struct slot_row row = {name, *slot};
	uint32_t i = 0;
	int r = turn_write(turn);

	while (i < turn->slot_count && turn->slots[i].name != name)
		i++;
	if (r == 0)
		r = grow((void **)&turn->slots, i, &turn->slot_cap, sizeof *turn->slots);
	if (r == 0 && event != EVENT_NONE) {
		record->subject = names_text(&turn->store->names, name);
		r = turn_stage_event(turn, record);
	}
	if (r < 0)
		return r;
	turn->slots[i] = (struct turn_slot){name, *slot};
	if (i == turn->slot_count)
		turn->slot_count++;
	return backend->ops->put_slot(backend, &row);
}

int turn_stage_token(struct turn *turn, const struct token *token)
{
	struct backend *backend = turn->store->backend;
	int r = turn_write(turn);

	if (r == 0)
		r = grow((void **)&turn->tokens, turn->token_count, &turn->token_cap, sizeof(struct token *));
	if (r == 0)
		r = backend->ops->put_token(backend, token);
	if (r < 0)
		return r;
	struct token *copy = token_copy(token);
	if (!copy)
		return -ENOMEM;
	turn->tokens[turn->token_count++] = copy;
	return 0;
}

/* ---- the end of a turn -------------------------------------------------------------------------- */

static void rearm_timers(struct turn *turn)
{
	struct hot *hot = &turn->store->hot;

	for (uint32_t i = 0; i < turn->timer_count; i++)
		hot_rearm(hot, turn->timers[i], &turn->given);
}

static void apply_queues(struct turn *turn)
{
	struct store *store = turn->store;

	for (uint32_t i = 0; i < turn->queue_count; i++) {
		uint32_t j = 0;
		while (j < store->queue_count && store->queues[j].name != turn->queues[i].name)
			j++;
		if (grow((void **)&store->queues, j, &store->queue_cap, sizeof *store->queues) < 0)
			abort();
		store->queues[j] = turn->queues[i];
		if (j == store->queue_count)
			store->queue_count++;
	}
}

static uint32_t find_slot(const struct store *store, uint32_t name)
{
	struct map_probe probe;
	uint32_t index = map_first(&store->slot_by_name, hash_u64(name), &probe);

	while (index != MAP_NONE && store->slots[index].name != name)
		index = map_next(&store->slot_by_name, &probe);
	return index;
}

const struct slot *store_find_slot(const struct store *store, uint32_t name)
{
	uint32_t index = find_slot(store, name);

	return index != MAP_NONE ? &store->slots[index].slot : NULL;
}

int store_set_slot(struct store *store, const struct turn_slot *slot)
{
	uint32_t index = find_slot(store, slot->name);

	if (index == MAP_NONE) {
		index = store->slot_count;
		if (grow((void **)&store->slots, index, &store->slot_cap, sizeof *store->slots) < 0 ||
			map_insert(&store->slot_by_name, hash_u64(slot->name), index) < 0)
			return -ENOMEM;
		store->slots[store->slot_count++] = (struct turn_slot){.name = slot->name};
	}
	store->quarantined -= store->slots[index].slot.state == SLOT_QUARANTINED;
	store->quarantined += slot->slot.state == SLOT_QUARANTINED;
	store->slots[index] = *slot;
	return 0;
}

static void apply_slots(struct turn *turn)
{
	for (uint32_t i = 0; i < turn->slot_count; i++) {
		if (store_set_slot(turn->store, &turn->slots[i]) < 0)
			abort();
	}
}

static void apply_tokens(struct turn *turn)
{
	for (uint32_t i = 0; i < turn->token_count; i++) {
		if (tokens_set(&turn->store->credentials, turn->tokens[i]) < 0)
			abort();
	}
	turn->token_count = 0;
}

static void apply_sessions(struct turn *turn)
{
	struct sessions *sessions = &turn->store->sessions;

	for (uint32_t i = 0; i < turn->spawned_count; i++) {
		if (sessions_add(sessions, &turn->spawned[i]) < 0)
			abort();
	}
	for (uint32_t i = 0; sessions->count > 0 && i < turn->task_count; i++) {
		const struct turn_task *view = turn->tasks[i];
		struct session *session = view->changed ? sessions_find(sessions, view->task.seq) : NULL;
		if (session)
			session->ended_ms = view->gone || task_state_is_final(view->task.state)
				? turn->given.now.wall_ms
				: 0;
	}
}

const int64_t times_ends_ms[TIMES_BUCKETS - 1] = {
	10, 50, 100, 500, 1000, 5000, 10000, 60000, 300000, 1800000, 7200000};

static void times_add(struct times *times, int64_t ms)
{
	uint32_t i = 0;

	if (ms < 0) /* somebody set the clock */
		ms = 0;
	while (i < TIMES_BUCKETS - 1 && ms > times_ends_ms[i])
		i++;
	times->buckets[i]++;
	times->sum_ms += ms;
}

/* A claim was made, or is over: how long did it take? */
static void note_times(struct turn *turn, const struct turn_task *view)
{
	struct store *store = turn->store;
	const struct task *task = &view->task;
	uint64_t fence = 0;
	int64_t claimed_ms = view->slot != MAP_NONE ? hot_claimed_ms(&store->hot, view->slot, &fence) : 0;
	bool fresh = task->claim.holder != 0 && task->fence != fence;

	if (claimed_ms != 0 && (task->claim.holder == 0 || fresh))
		times_add(&store->run_times, turn->given.now.wall_ms - claimed_ms);
	if (fresh)
		times_add(&store->wait_times, task->claim.claimed_wall_ms - task->ready_at_ms);
}

static void apply_tasks(struct turn *turn)
{
	struct hot *hot = &turn->store->hot;

	for (uint32_t i = 0; i < turn->task_count; i++) {
		const struct turn_task *view = turn->tasks[i];
		if (view->gone) {
			hot_forget(hot, view->slot);
		} else if (view->changed) {
			note_times(turn, view);
			hot_set(hot, view->slot, &view->task, &turn->given);
		}
		if (view->children > 0 || view->orphaned)
			hot_set_children(hot, view->task.seq, view->children);
	}
}

static void apply_workers(struct turn *turn)
{
	struct hot *hot = &turn->store->hot;

	for (uint32_t i = 0; i < turn->worker_count; i++) {
		const struct turn_worker *view = turn->workers[i];
		struct holder *holder = hot_holder(hot, view->worker.handle);
		holder->instance = view->instance;
		holder->stale_on_disk = view->stale_on_disk;
		hot_set_worker(hot, &view->worker, view->metadata, &turn->given);
	}
}

/* The transaction is on disk: now, and only now, the memory follows. */
static void turn_apply(struct turn *turn)
{
	struct store *store = turn->store;

	apply_tasks(turn);
	apply_workers(turn);
	apply_queues(turn);
	apply_tokens(turn);
	apply_slots(turn);
	apply_sessions(turn);
	names_commit(&store->names);
	store->last_event = turn->last_event;
	store->last_task = turn->last_task;
	store->last_principal = turn->last_principal;
	store->disarmed = turn->disarmed;
	store->execution_ms = turn->execution_ms;
	store->shadow_ids = turn->shadow_ids;
	store->finals = turn->finals;
	for (int kind = 0; kind < EVENT_KIND_COUNT; kind++)
		store->told[kind] += turn->told[kind];
	store->worker_changes += turn->worker_count;
	store->rescheduled += turn->rescheduled;
	for (int type = 0; type < RESCHEDULE_ERROR_COUNT; type++)
		store->unscheduled[type] += turn->unscheduled[type];
	rearm_timers(turn);
}

int turn_commit(struct turn *turn)
{
	struct backend *backend = turn->store->backend;

	if (turn->begun) {
		turn->in_commit = true;
		int r = backend->ops->commit(backend);
		if (r < 0) {
			turn_abort(turn);
			return r;
		}
		turn->begun = false;
	}
	turn->in_commit = false;
	turn_apply(turn);
	return 0;
}

void turn_abort(struct turn *turn)
{
	struct store *store = turn->store;

	if (turn->begun)
		store->backend->ops->rollback(store->backend);
	turn->begun = false;
	turn->ready_count = 0; /* nothing to claim, in queues that may have no name */
	for (uint32_t i = 0; i < turn->token_count; i++)
		free(turn->tokens[i]);
	turn->token_count = 0;
	for (uint32_t i = 0; i < turn->worker_count; i++) {
		if (turn->workers[i]->added)
			hot_drop_holder(&store->hot, turn->workers[i]->worker.handle);
	}
	names_forget(&store->names);
	rearm_timers(turn);
	for (uint32_t i = 0; i < turn->wall_timer_count; i++) {
		if (heap_push(&store->hot.wall_timers, turn->wall_timers[i]) < 0)
			abort();
	}
	store->unscheduled[RESCHEDULE_RETRY] += turn->rescheduled + turn->unscheduled[RESCHEDULE_PERMANENT];
}
