/*
 * Each command in terms of the core's decisions: load the views, decide, stage, fill in the result.
 *
 * A command is refused before anything of it is staged, so a refusal leaves nothing behind. A fault (< 0)
 * ends the whole turn.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/base36.h"
#include "store/turn.h"

static int refuse(struct result *result, enum refusal refusal)
{
	result->refusal = refusal;
	return 0;
}

/* ---- tasks: what is common to them -------------------------------------------------------------- */

static int load_task(struct turn *turn, struct span id, struct result *result, struct turn_task **ret_view)
{
	*ret_view = NULL;
	int r = turn_task_by_id(turn, id, ret_view);
	if (r == -ENOENT) {
		*ret_view = NULL;
		result->id = id;
		return refuse(result, REFUSED_NOT_FOUND);
	}
	if (r < 0)
		return r;
	result->task = (*ret_view)->task;
	return turn_id_text(turn, *ret_view, &result->id);
}

static void add_failure_facts(struct record *record, const struct failure *failure)
{
	record_fact(record, FACT_CLASS, failure->klass);
	if (failure->retry_at_ms > 0)
		record_fact(record, FACT_RETRY_AT, failure->retry_at_ms);
}

/* Facts that explain the event of a decision; `before` is the task as it was. */
static void add_facts(struct turn *turn, struct record *record, const struct task *before,
	const struct task_decision *decision)
{
	const struct claim *claim = &decision->task.claim;

	switch (decision->event) {
	case EVENT_TASK_CLAIMED:
		record_fact(record, FACT_GRANTED, claim->lease.granted_ms);
		if (claim->named)
			record_fact(record, FACT_NAMED, 1);
		if (claim->verify_at_ms != 0) {
			record_fact(record, FACT_BEATS, 1);
			record_fact(record, FACT_VERIFY, claim->verify_at_ms);
		}
		return;
	case EVENT_TASK_FAILED:
	case EVENT_TASK_BLOCKED:
		if (turn->command && turn->command->kind == COMMAND_FAIL)
			add_failure_facts(record, &turn->command->failure);
		else if (decision->task.code != CODE_NONE)
			record_fact(record, FACT_CLASS, failure_code_class(decision->task.code));
		return;
	case EVENT_TASK_UPDATED:
		if (claim->stopping && !before->claim.stopping)
			record_fact(record, FACT_STOPPING, 1);
		return;
	default: /* the others explain themselves */
		return;
	}
}

static int stage(struct turn *turn, struct turn_task *view, const struct task_decision *decision,
	struct result *result)
{
	struct record record;

	result->repeated = decision->repeated;
	if (decision->refusal != REFUSED_NOTHING)
		return refuse(result, decision->refusal);
	turn_record(turn, &record, decision->event);
	add_facts(turn, &record, &view->task, decision);
	if (turn->command && turn->command->by_name)
		record_fact(&record, FACT_NAME_ONLY, 1);
	int r = turn_stage_task(turn, view, decision, &record);
	result->task = view->task;
	return r;
}

static int keep(struct turn *turn, const struct turn_task *view, enum extra_kind kind, struct span data)
{
	struct backend *backend = turn->store->backend;
	int r = turn_write(turn);

	return r < 0 ? r : backend->ops->put_extra(backend, view->task.seq, kind, 0, data);
}

/* Stage an accepted decision and keep what came with the command. */
static int stage_keeping(struct turn *turn, struct turn_task *view, const struct task_decision *decision,
	enum extra_kind kind, struct result *result)
{
	int r = stage(turn, view, decision, result);

	if (r < 0 || result->refusal != REFUSED_NOTHING || result->repeated || turn->command->data.len == 0)
		return r;
	return keep(turn, view, kind, turn->command->data);
}

static struct proof proof_of(const struct turn *turn, const struct command *command)
{
	return (struct proof){
		.holder = hot_find_holder(&turn->store->hot, command->worker),
		.fence = command->fence,
		.by_name = command->by_name,
	};
}

/* ---- creation ----------------------------------------------------------------------------------- */

static int find_generated(struct turn *turn, int64_t seq, bool *ret_taken)
{
	struct backend *backend = turn->store->backend;
	char text[2 + BASE36_MAX] = "t-";
	int64_t found;

	*ret_taken = false;
	if (turn->shadow_ids == 0)
		return 0;
	size_t len = base36_encode((uint64_t)seq, text + 2);
	int r = backend->ops->find_id(backend, (struct span){text, len + 2}, &found);
	*ret_taken = r == 0;
	return r == -ENOENT ? 0 : r;
}

/* The next sequence number whose generated id no caller has taken for itself. */
static int next_seq(struct turn *turn, int64_t *ret_seq)
{
	bool taken;

	do {
		*ret_seq = ++turn->last_task;
		int r = find_generated(turn, *ret_seq, &taken);
		if (r < 0)
			return r;
	} while (taken);
	return 0;
}

/* Was this request answered before? Sets *ret_settled if the result is complete. */
static int create_again(
	struct turn *turn, const struct command *command, struct result *result, bool *ret_settled)
{
	struct backend *backend = turn->store->backend;
	const struct command_create *create = &command->create;
	struct idem_row row;
	struct turn_task *view;

	*ret_settled = false;
	if (create->idempotency_key.len == 0)
		return 0;
	int r = backend->ops->get_idem(backend, command->actor, create->idempotency_key, &row);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (row.created_ms + turn->store->retention.idempotency_ms <= turn->given.now.wall_ms)
		return 0; /* past its time a key is a new request */
	*ret_settled = true;
	if (memcmp(row.fingerprint, create->fingerprint, sizeof row.fingerprint) != 0)
		return refuse(result, REFUSED_IDEMPOTENCY_CONFLICT);
	result->repeated = true;
	result->deduplicated = row.deduplicated;
	r = turn_task(turn, row.task, &view);
	if (r < 0)
		return r == -ENOENT ? refuse(result, REFUSED_NOT_FOUND) : r; /* purged since */
	result->task = view->task;
	return turn_id_text(turn, view, &result->id);
}

static int remember_request(struct turn *turn, const struct command *command, int64_t task, bool deduplicated)
{
	struct backend *backend = turn->store->backend;
	const struct command_create *create = &command->create;
	struct idem_row row = {
		.principal = command->actor,
		.key = create->idempotency_key,
		.task = task,
		.created_ms = turn->given.now.wall_ms,
		.deduplicated = deduplicated,
	};

	if (create->idempotency_key.len == 0)
		return 0;
	memcpy(row.fingerprint, create->fingerprint, sizeof row.fingerprint);
	int r = turn_write(turn);
	return r < 0 ? r : backend->ops->put_idem(backend, &row);
}

/* Is the id, or the unique key, taken? Sets *ret_settled if the result is complete. */
static int create_taken(
	struct turn *turn, const struct command *command, struct result *result, bool *ret_settled)
{
	struct backend *backend = turn->store->backend;
	const struct command_create *create = &command->create;
	struct turn_task *view;
	int64_t seq;
	int r;

	*ret_settled = true;
	if (create->id.len > 0) {
		r = load_task(turn, create->id, result, &view);
		if (r < 0 || result->refusal == REFUSED_NOTHING)
			return r < 0 ? r : refuse(result, REFUSED_TASK_EXISTS);
		*result = (struct result){0};
	}
	if (create->unique_key.len > 0) {
		r = backend->ops->find_key(backend, create->unique_key, &seq);
		if (r == 0) {
			r = turn_task(turn, seq, &view);
			if (r < 0)
				return r;
			result->deduplicated = true;
			result->task = view->task;
			r = turn_id_text(turn, view, &result->id);
			return r < 0 ? r : remember_request(turn, command, seq, true);
		}
		if (r != -ENOENT)
			return r;
	}
	*ret_settled = false;
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
		r = turn_name_set(turn, create->requires, &draft->requires);
	return r;
}

/* Look its parents up. `ret_edges` gets one row per parent that is not done. */
static int draft_parents(struct turn *turn, const struct command_create *create, struct task *draft,
	struct edge_row *ret_edges, struct result *result)
{
	struct turn_task *parent;

	draft->has_parent = create->parents.count > 0;
	for (uint32_t i = 0; i < create->parents.count; i++) {
		int r = turn_task_by_id(turn, create->parents.items[i], &parent);
		if (r == -ENOENT) {
			result->id = create->parents.items[i];
			return refuse(result, REFUSED_INVALID);
		}
		if (r < 0)
			return r;
		if (parent->task.state == TASK_DONE)
			continue;
		uint32_t known = 0;
		while (known < draft->open_parents && ret_edges[known].parent != parent->task.seq)
			known++;
		if (known < draft->open_parents)
			continue; /* named twice */
		bool dead = task_state_is_final(parent->task.state);
		ret_edges[draft->open_parents++] =
			(struct edge_row){.parent = parent->task.seq, .dead = dead};
		draft->dead_parents += dead;
	}
	return 0;
}

static int put_edges(struct turn *turn, int64_t child, struct edge_row *edges, uint32_t count)
{
	struct backend *backend = turn->store->backend;
	struct turn_task *parent;

	for (uint32_t i = 0; i < count; i++) {
		edges[i].child = child;
		int r = backend->ops->put_edge(backend, &edges[i]);
		if (r == 0)
			r = turn_task(turn, edges[i].parent, &parent);
		if (r < 0)
			return r;
		parent->is_parent = true;
	}
	return 0;
}

static int put_beside(struct turn *turn, const struct command_create *create, int64_t seq)
{
	struct backend *backend = turn->store->backend;
	int r = backend->ops->put_body(backend, seq, create->body);

	if (r == 0 && create->id.len > 0) {
		int64_t shadowed;
		if (generated_id_seq(create->id, &shadowed) == 0)
			turn->shadow_ids++;
		r = backend->ops->put_id(backend, create->id, seq);
		if (r == 0)
			r = backend->ops->put_extra(backend, seq, EXTRA_ID, 0, create->id);
	}
	if (r == 0 && create->unique_key.len > 0) {
		r = backend->ops->put_key(backend, create->unique_key, seq);
		if (r == 0)
			r = backend->ops->put_extra(backend, seq, EXTRA_KEY, 0, create->unique_key);
	}
	return r;
}

static int stage_create(struct turn *turn, const struct command *command, struct task *draft,
	struct edge_row *edges, struct result *result)
{
	const struct command_create *create = &command->create;
	struct turn_task *view;
	struct record record;

	int r = next_seq(turn, &draft->seq);
	if (r < 0)
		return r;
	struct task_decision decision =
		task_create(draft, create->parked, turn_queue(turn, draft->queue), &turn->given);
	if (decision.refusal != REFUSED_NOTHING)
		return refuse(result, decision.refusal);
	turn_record(turn, &record, decision.event);
	r = turn_stage_new(turn, &decision, create->id, &record, &view);
	if (r == 0)
		r = put_beside(turn, create, draft->seq);
	if (r == 0)
		r = put_edges(turn, draft->seq, edges, draft->open_parents);
	if (r == 0)
		r = remember_request(turn, command, draft->seq, false);
	if (r < 0)
		return r;
	result->task = view->task;
	return turn_id_text(turn, view, &result->id);
}

static int run_create(struct turn *turn, const struct command *command, struct result *result)
{
	const struct command_create *create = &command->create;
	struct edge_row *edges = NULL;
	bool settled;

	assert(create->parents.count <= COMMAND_PARENTS_MAX);
	int r = create_again(turn, command, result, &settled);
	if (r == 0 && !settled)
		r = create_taken(turn, command, result, &settled);
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
	};
	if (create->parents.count > 0) {
		edges = arena_alloc(&turn->arena, create->parents.count * sizeof *edges);
		if (!edges)
			return -ENOMEM;
	}
	r = draft_parents(turn, create, &draft, edges, result);
	if (r < 0 || result->refusal != REFUSED_NOTHING)
		return r;
	r = draft_names(turn, create, &draft);
	if (r == -E2BIG)
		return refuse(result, REFUSED_TOO_LARGE);
	return r < 0 ? r : stage_create(turn, command, &draft, edges, result);
}

static int run_update(struct turn *turn, const struct command *command, struct result *result)
{
	const struct command_update *update = &command->update;
	struct task_patch patch = update->patch;
	struct turn_task *view;

	int r = load_task(turn, command->task, result, &view);
	if (r < 0 || !view)
		return r;
	if (update->if_version != 0 && update->if_version != view->task.version)
		return refuse(result, REFUSED_VERSION_MISMATCH);
	if (patch.set_owner)
		r = turn_name(turn, update->owner, &patch.owner);
	if (r == 0 && patch.set_queue)
		r = turn_name(turn, update->queue, &patch.queue);
	if (r == 0 && patch.set_executor)
		r = turn_name(turn, update->executor, &patch.executor);
	if (r == 0 && patch.set_requires)
		r = turn_name_set(turn, update->requires, &patch.requires);
	if (r == -E2BIG)
		return refuse(result, REFUSED_TOO_LARGE);
	if (r < 0)
		return r;
	struct task_decision decision = task_update(&view->task, &patch, &turn->given);
	r = stage(turn, view, &decision, result);
	if (r < 0 || result->refusal != REFUSED_NOTHING || !update->set_body)
		return r;
	return turn->store->backend->ops->put_body(turn->store->backend, view->task.seq, update->body);
}

/* ---- operators ---------------------------------------------------------------------------------- */

static int run_cancel(struct turn *turn, const struct command *command, struct result *result)
{
	static const struct worker nobody;
	const struct worker *holder = &nobody;
	struct turn_task *view;

	int r = load_task(turn, command->task, result, &view);
	if (r < 0 || !view)
		return r;
	if (view->task.claim.holder != 0) {
		const struct turn_worker *worker = turn_worker_by_number(turn, view->task.claim.holder);
		if (!worker)
			return -ENOMEM;
		holder = &worker->worker;
	}
	struct task_decision decision = task_cancel(&view->task, holder, &turn->given);
	return stage(turn, view, &decision, result);
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

/* A retry stands above parents that failed: it no longer depends on them. */
static int forget_dead_parents(struct turn *turn, int64_t seq)
{
	struct backend *backend = turn->store->backend;
	struct dead_edges dead = {0};
	int r = backend->ops->parents(backend, seq, collect_dead, &dead);

	for (uint32_t i = 0; r == 0 && i < dead.count; i++)
		r = backend->ops->delete_edge(backend, dead.parents[i], seq);
	return r;
}

static int key_is_taken(struct turn *turn, const struct turn_task *view, bool *ret_taken)
{
	struct backend *backend = turn->store->backend;
	struct span key;
	int64_t seq;

	*ret_taken = false;
	if (!view->task.keyed || !task_state_is_final(view->task.state))
		return 0;
	int r = backend->ops->get_extra(backend, view->task.seq, EXTRA_KEY, 0, &turn->arena, &key);
	if (r == 0)
		r = backend->ops->find_key(backend, key, &seq);
	*ret_taken = r == 0;
	return r == -ENOENT ? 0 : r;
}

static int run_retry(struct turn *turn, const struct command *command, struct result *result)
{
	struct turn_task *view;
	bool key_taken = false;

	int r = load_task(turn, command->task, result, &view);
	if (r < 0 || !view)
		return r;
	r = key_is_taken(turn, view, &key_taken);
	if (r < 0)
		return r;
	uint32_t dead_parents = view->task.dead_parents;
	struct task_decision decision = task_retry(&view->task, key_taken, &turn->given);
	r = stage(turn, view, &decision, result);
	if (r < 0 || result->refusal != REFUSED_NOTHING || dead_parents == 0)
		return r;
	return forget_dead_parents(turn, view->task.seq);
}

/* Commands that need nothing but the task. */
static int run_simple(struct turn *turn, const struct command *command,
	struct task_decision (*decide)(const struct task *, const struct given *), struct result *result)
{
	struct turn_task *view;

	int r = load_task(turn, command->task, result, &view);
	if (r < 0 || !view)
		return r;
	struct task_decision decision = decide(&view->task, &turn->given);
	return stage(turn, view, &decision, result);
}

static int run_answer(struct turn *turn, const struct command *command, struct result *result)
{
	struct turn_task *view;

	int r = load_task(turn, command->task, result, &view);
	if (r < 0 || !view)
		return r;
	struct task_decision decision = task_answer(&view->task, &turn->given);
	return stage_keeping(turn, view, &decision, EXTRA_ANSWER, result);
}

static int run_queue_set(struct turn *turn, const struct command *command, struct result *result)
{
	uint32_t name;
	struct record record;

	int r = turn_name(turn, command->queue_set.queue, &name);
	if (r < 0)
		return r == -E2BIG ? refuse(result, REFUSED_TOO_LARGE) : r;
	struct queue_decision decision = queue_set(turn_queue(turn, name), command->queue_set.state);
	if (decision.event == EVENT_NONE) {
		result->repeated = true;
		return 0;
	}
	turn_record(turn, &record, decision.event);
	return turn_stage_queue(turn, name, decision.state, &record);
}

/* ---- claims ------------------------------------------------------------------------------------- */

/* A quarantined slot lets nothing through but one trial: the first registration or claim uses that up. */
struct slot_gate {
	uint32_t slot;
	struct slot_decision decision;
};

static struct slot_gate slot_gate(struct turn *turn, uint32_t slot)
{
	struct slot_gate gate = {.slot = slot};
	struct slot view;

	if (slot != 0) {
		turn_slot(turn, slot, &view);
		gate.decision = slot_enter(&view, &turn->given);
	}
	return gate;
}

static int use_up_trial(struct turn *turn, struct slot_gate *gate)
{
	struct slot_decision *decision = &gate->decision;
	struct record record;

	if (decision->event == EVENT_NONE)
		return 0;
	turn_record(turn, &record, decision->event);
	record_fact(&record, FACT_TRIAL, 1);
	int r = turn_stage_slot(turn, gate->slot, &decision->slot, decision->event, &record);
	decision->event = EVENT_NONE;
	return r;
}

/* Who claims, and what it may take. */
struct chooser {
	struct turn_worker *worker;
	const struct command_claim *wants;
	uint32_t slot;
	struct name_set capabilities, executors;
	bool any_executor;
	struct slot_gate gate;
};

static void union_with(struct name_set *set, const struct name_set *more)
{
	for (uint32_t i = 0; i < more->count && set->count < NAME_SET_MAX; i++) {
		if (!name_set_contains(set, more->ids[i]))
			set->ids[set->count++] = more->ids[i];
	}
}

/* What it says now counts beside what it said when it registered. */
static int chooser_init(struct turn *turn, const struct command *command, struct chooser *chooser)
{
	const struct names *names = &turn->store->names;
	const struct command_claim *wants = &command->claim;
	struct name_set registered;

	chooser->worker = turn_worker(turn, command->worker, true);
	if (!chooser->worker)
		return -ENOMEM;
	const struct worker *worker = &chooser->worker->worker;
	chooser->wants = wants;
	chooser->slot = wants->slot.len > 0 ? names_find(names, wants->slot) : worker->slot;
	names_resolve(names, wants->capabilities, &chooser->capabilities);
	names_set_members(names, worker->capabilities, &registered);
	union_with(&chooser->capabilities, &registered);
	if (wants->any_executor && worker->state != WORKER_UNKNOWN) {
		names_set_members(names, worker->executors, &chooser->executors);
		chooser->any_executor = worker->any_executor;
	} else {
		names_resolve(names, wants->executors, &chooser->executors);
		chooser->any_executor = wants->any_executor;
	}
	chooser->gate = slot_gate(turn, chooser->slot);
	return 0;
}

static bool may_take_from(const struct turn *turn, const struct chooser *chooser, const struct lane_key *lane)
{
	struct name_set needed;

	if (lane->pending ? !chooser->wants->takes_pending : !chooser->wants->takes_ready)
		return false;
	if (lane->owner != 0 && lane->owner != chooser->slot)
		return false;
	if (lane->executor != 0 && !chooser->any_executor &&
		!name_set_contains(&chooser->executors, lane->executor))
		return false;
	if (lane->requires == 0)
		return true;
	names_set_members(&turn->store->names, lane->requires, &needed);
	return name_set_covers(&chooser->capabilities, &needed);
}

static bool wants_queue(const struct turn *turn, const struct chooser *chooser, uint32_t queue)
{
	const struct name_list *queues = &chooser->wants->queues;

	if (turn_queue(turn, queue) == QUEUE_PAUSED)
		return false;
	if (queues->count == 0)
		return true;
	struct span text = names_text(&turn->store->names, queue);
	for (uint32_t i = 0; i < queues->count; i++) {
		if (span_equal(queues->items[i], text))
			return true;
	}
	return false;
}

/* The best task so far: in the hot state, or among those this turn has touched. */
struct candidate {
	int64_t seq;
	struct task task;
};

static void offer(struct candidate *best, const struct task *task)
{
	if (best->seq != 0 && task_claim_order(&best->task, task) <= 0)
		return;
	best->seq = task->seq;
	best->task = *task;
}

static bool turn_has(const struct turn *turn, int64_t seq)
{
	struct map_probe probe;
	uint32_t index = map_first(&turn->task_by_seq, hash_u64((uint64_t)seq), &probe);

	while (index != MAP_NONE && turn->tasks[index]->task.seq != seq)
		index = map_next(&turn->task_by_seq, &probe);
	return index != MAP_NONE;
}

/* The first task of the lane that this turn has not touched. */
static void offer_lane(
	struct turn *turn, const struct chooser *chooser, struct lane *lane, struct candidate *best)
{
	const struct hot *hot = &turn->store->hot;
	struct task task;
	uint32_t slot;

	while ((slot = lane_peek(lane, turn->number)) != MAP_NONE) {
		if (best->seq != 0 && !hot_goes_before(hot, slot, &best->task))
			return;
		hot_get(hot, slot, &task);
		if (!turn_has(turn, task.seq) &&
			task_is_claimable(&task, chooser->wants->takes_pending, &turn->given)) {
			offer(best, &task);
			return;
		}
		lane_skip(lane);
	}
}

static void offer_stand(
	struct turn *turn, const struct chooser *chooser, const struct stand *stand, struct candidate *best)
{
	const struct lanes *lanes = &turn->store->hot.lanes;

	if (!stand)
		return;
	for (struct lane *lane = lanes_first(lanes, stand); lane; lane = lanes_next(lanes, lane)) {
		if (may_take_from(turn, chooser, &lane->key))
			offer_lane(turn, chooser, lane, best);
	}
}

static void offer_committed(struct turn *turn, const struct chooser *chooser, struct candidate *best)
{
	const struct lanes *lanes = &turn->store->hot.lanes;
	const struct name_list *queues = &chooser->wants->queues;
	const struct stand *stand = NULL;

	for (uint32_t i = 0; i < queues->count; i++) {
		uint32_t queue = names_find(&turn->store->names, queues->items[i]);
		if (queue == 0 || turn_queue(turn, queue) == QUEUE_PAUSED)
			continue;
		offer_stand(turn, chooser, lanes_stand(lanes, queue, 0), best);
		if (chooser->slot != 0)
			offer_stand(turn, chooser, lanes_stand(lanes, queue, chooser->slot), best);
	}
	if (queues->count > 0)
		return;
	while ((stand = lanes_next_stand(lanes, stand))) {
		bool mine = stand->owner == 0 || stand->owner == chooser->slot;
		if (mine && turn_queue(turn, stand->queue) != QUEUE_PAUSED)
			offer_stand(turn, chooser, stand, best);
	}
}

static void offer_touched(struct turn *turn, const struct chooser *chooser, struct candidate *best)
{
	struct lane_key lane;

	for (uint32_t i = 0; i < turn->ready_count; i++) {
		struct turn_task *view = turn->tasks[turn->ready[i]];
		if (!hot_lane_of(
			    &view->task, &lane)) { /* taken meanwhile; listed again should it come back */
			view->listed = false;
			turn->ready[i--] = turn->ready[--turn->ready_count];
			continue;
		}
		if (may_take_from(turn, chooser, &lane) && wants_queue(turn, chooser, view->task.queue) &&
			task_is_claimable(&view->task, chooser->wants->takes_pending, &turn->given))
			offer(best, &view->task);
	}
}

static struct claimant claimant_of(const struct chooser *chooser)
{
	const struct command_claim *wants = chooser->wants;

	return (struct claimant){
		.worker = &chooser->worker->worker,
		.slot = chooser->slot,
		.named = wants->named,
		.takes_pending = wants->takes_pending,
		.resumes = wants->resumes,
		.confirms = wants->confirms,
		.lease_ms = wants->lease_ms,
		.run_ms = wants->run_ms,
		.request = wants->request,
	};
}

static int hand_over(struct turn *turn, struct turn_task *view, struct result *result)
{
	struct backend *backend = turn->store->backend;
	struct claimed *claimed = (struct claimed *)&result->claims[result->claim_count];
	const struct turn_worker *worker = turn_worker_by_number(turn, view->task.claim.holder);

	if (!worker)
		return -ENOMEM;
	claimed->task = view->task;
	claimed->lease_ms = task_lease_remaining_ms(&view->task, &worker->worker, &turn->given);
	int r = turn_id_text(turn, view, &claimed->id);
	if (r == 0)
		r = backend->ops->get_body(backend, view->task.seq, &turn->arena, &claimed->body);
	if (r == 0 && view->task.attempt > 1) {
		r = backend->ops->get_extra(
			backend, view->task.seq, EXTRA_CHECKPOINT, 0, &turn->arena, &claimed->checkpoint);
		if (r == -ENOENT)
			r = 0;
	}
	if (r == 0)
		result->claim_count++;
	return r;
}

/* Claim this one; a refusal goes into the result. */
static int claim_view(
	struct turn *turn, struct chooser *chooser, struct turn_task *view, struct result *result)
{
	struct claimant by = claimant_of(chooser);
	struct task_decision decision =
		task_claim(&view->task, &by, turn_queue(turn, view->task.queue), &turn->given);

	if (decision.refusal == REFUSED_NOTHING && chooser->gate.decision.refusal != REFUSED_NOTHING)
		return refuse(result, chooser->gate.decision.refusal);
	int r = decision.refusal == REFUSED_NOTHING ? use_up_trial(turn, &chooser->gate) : 0;
	if (r == 0)
		r = stage(turn, view, &decision, result);
	if (r < 0 || result->refusal != REFUSED_NOTHING)
		return r;
	return hand_over(turn, view, result);
}

/* The same requestId again: hand out what it made, as long as none of it was confirmed. */
static int claim_again(struct turn *turn, const struct chooser *chooser, struct result *result)
{
	struct held_tasks held;
	struct turn_task *view;
	int r = chooser->wants->request == 0 ? 0 : turn_held_by(turn, chooser->worker, &held);

	if (r < 0 || chooser->wants->request == 0)
		return r;
	for (uint32_t i = 0; i < held.count && result->claim_count < chooser->wants->max; i++) {
		r = turn_task(turn, held.seqs[i], &view);
		if (r < 0)
			return r;
		if (view->task.state != TASK_CLAIMED || view->task.claim.request != chooser->wants->request)
			continue;
		r = hand_over(turn, view, result);
		if (r < 0)
			return r;
		result->repeated = true;
	}
	return 0;
}

/* Its own live claims first: each gets a new fence. */
static int claim_resume(struct turn *turn, struct chooser *chooser, struct result *result)
{
	struct held_tasks held;
	struct turn_task *view, *best;
	int r = chooser->wants->resumes ? turn_held_by(turn, chooser->worker, &held) : 0;

	if (r < 0 || !chooser->wants->resumes)
		return r;
	while (result->claim_count < chooser->wants->max) {
		best = NULL;
		for (uint32_t i = 0; i < held.count; i++) {
			r = held.seqs[i] == 0 ? -ENOENT : turn_task(turn, held.seqs[i], &view);
			if (r == -ENOENT)
				continue;
			if (r < 0)
				return r;
			if (task_state_must_hold_claim(view->task.state) && !view->task.claim.stopping &&
				wants_queue(turn, chooser, view->task.queue) &&
				(!best || task_claim_order(&view->task, &best->task) < 0))
				best = view;
		}
		if (!best)
			return 0;
		for (uint32_t i = 0; i < held.count; i++) {
			if (held.seqs[i] == best->task.seq)
				held.seqs[i] = 0;
		}
		r = claim_view(turn, chooser, best, result);
		if (r < 0)
			return r;
		result->refusal = REFUSED_NOTHING; /* e.g. it belongs to another slot by now: the next one */
	}
	return 0;
}

static int claim_fresh(struct turn *turn, struct chooser *chooser, struct result *result)
{
	struct turn_task *view;

	while (result->claim_count < chooser->wants->max) {
		if (worker_may_claim(&chooser->worker->worker) != REFUSED_NOTHING)
			return 0;
		struct candidate best = {0};
		offer_committed(turn, chooser, &best);
		offer_touched(turn, chooser, &best);
		if (best.seq == 0)
			return 0;
		int r = turn_task(turn, best.seq, &view);
		if (r == 0)
			r = claim_view(turn, chooser, view, result);
		if (r < 0)
			return r;
		assert(result->refusal == REFUSED_NOTHING); /* only what it may take was offered */
	}
	return 0;
}

static int run_claim_next(struct turn *turn, const struct command *command, struct result *result)
{
	struct chooser chooser;

	assert(command->claim.max <= COMMAND_CLAIMS_MAX);
	int r = chooser_init(turn, command, &chooser);
	if (r < 0)
		return r;
	result->worker = chooser.worker->worker;
	result->claims = arena_alloc(&turn->arena, (command->claim.max + 1) * sizeof *result->claims);
	if (!result->claims)
		return -ENOMEM;
	if (chooser.worker->worker.state == WORKER_INACTIVE)
		return refuse(result, REFUSED_WORKER_INACTIVE);
	r = claim_again(turn, &chooser, result);
	if (r < 0 || result->claim_count > 0)
		return r;
	if (chooser.gate.decision.refusal != REFUSED_NOTHING)
		return 0; /* nothing for it now */
	r = claim_resume(turn, &chooser, result);
	return r < 0 ? r : claim_fresh(turn, &chooser, result);
}

static int run_claim(struct turn *turn, const struct command *command, struct result *result)
{
	struct chooser chooser;
	struct turn_task *view;

	int r = load_task(turn, command->task, result, &view);
	if (r < 0 || !view)
		return r;
	r = chooser_init(turn, command, &chooser);
	if (r < 0)
		return r;
	result->claims = arena_alloc(&turn->arena, sizeof *result->claims);
	if (!result->claims)
		return -ENOMEM;
	if (command->claim.request != 0 && view->task.state == TASK_CLAIMED &&
		view->task.claim.holder == chooser.worker->worker.handle &&
		view->task.claim.request == command->claim.request) {
		result->repeated = true;
		return hand_over(turn, view, result);
	}
	return claim_view(turn, &chooser, view, result);
}

/* ---- reports about a claim ---------------------------------------------------------------------- */

/* A result whose claim was lost meanwhile changes nothing, but is kept for a person: one per fence. */
static int keep_orphan(struct turn *turn, struct turn_task *view, const struct command *command)
{
	struct backend *backend = turn->store->backend;
	struct span kept;
	struct record record;
	struct task_decision note = {.event = EVENT_TASK_ORPHAN_RESULT, .task = view->task};

	int r = backend->ops->get_extra(
		backend, view->task.seq, EXTRA_ORPHAN, (int64_t)command->fence, &turn->arena, &kept);
	if (r != -ENOENT)
		return r;
	turn_record(turn, &record, note.event);
	record.worker = command->worker;
	r = turn_stage_task(turn, view, &note, &record);
	if (r < 0)
		return r;
	return backend->ops->put_extra(
		backend, view->task.seq, EXTRA_ORPHAN, (int64_t)command->fence, command->data);
}

static struct task_decision decide_report(
	const struct turn *turn, const struct task *task, const struct command *command)
{
	struct proof proof = proof_of(turn, command);

	switch (command->kind) {
	case COMMAND_PROGRESS:
		return task_progress(task, &proof, command->lease_ms, &turn->given);
	case COMMAND_COMPLETE:
		return task_complete(task, &proof, &turn->given);
	case COMMAND_FAIL:
		return task_fail(task, &proof, &command->failure, &turn->given);
	case COMMAND_REPORT:
		return task_report(task, &proof, &turn->given);
	case COMMAND_BLOCK:
		return task_block(task, &proof, command->failure.code, &turn->given);
	case COMMAND_ASK:
		return task_ask(task, &proof, &turn->given);
	default:
		assert(command->kind == COMMAND_RELEASE);
		return task_release(task, &proof, command->delay_ms, &turn->given);
	}
}

static enum extra_kind report_extra(enum command_kind kind)
{
	switch (kind) {
	case COMMAND_PROGRESS:
		return EXTRA_CHECKPOINT;
	case COMMAND_FAIL:
	case COMMAND_BLOCK:
		return EXTRA_ERROR;
	case COMMAND_ASK:
		return EXTRA_QUESTION;
	default:
		return EXTRA_RESULT;
	}
}

static int run_report(struct turn *turn, const struct command *command, struct result *result)
{
	struct turn_task *view;

	int r = load_task(turn, command->task, result, &view);
	if (r < 0 || !view)
		return r;
	struct task_decision decision = decide_report(turn, &view->task, command);
	if (decision.refusal != REFUSED_NOTHING) {
		result->restored = decision.refusal == REFUSED_STALE_CLAIM && command->fence != 0 &&
			command->fence / FENCE_GENERATION_STEP < turn->store->generation;
		r = decision.orphan && command->data.len > 0 ? keep_orphan(turn, view, command) : 0;
		return r < 0 ? r : refuse(result, decision.refusal);
	}
	r = stage_keeping(turn, view, &decision, report_extra(command->kind), result);
	if (r < 0 || view->task.claim.holder == 0)
		return r;
	const struct turn_worker *worker = turn_worker_by_number(turn, view->task.claim.holder);
	if (!worker)
		return -ENOMEM;
	result->worker = worker->worker;
	return 0;
}

static int run_return(struct turn *turn, const struct command *command, struct result *result)
{
	struct proof proof = proof_of(turn, command);
	struct turn_task *view;

	int r = load_task(turn, command->task, result, &view);
	if (r < 0 || !view)
		return r;
	/* its holder may have it by another reply to the same requestId: then something has happened to it since */
	bool untouched = view->task.state == TASK_CLAIMED || view->task.version == command->version;
	if (!untouched || view->task.claim.holder != proof.holder || view->task.fence != proof.fence)
		return refuse(result, REFUSED_STALE_CLAIM);
	struct task_decision decision = task_return(&view->task, &turn->given);
	return stage(turn, view, &decision, result);
}

/* ---- workers ------------------------------------------------------------------------------------ */

/* Everything the worker held, each task on its own. */
static int free_claims(struct turn *turn, const struct turn_worker *worker, bool lost)
{
	int64_t grace_end_ms = lease_end(&worker->worker.lease, &turn->given);
	struct held_tasks held;
	struct turn_task *view;
	struct record record;

	int r = turn_held_by(turn, worker, &held);
	for (uint32_t i = 0; r == 0 && i < held.count; i++) {
		r = turn_task(turn, held.seqs[i], &view);
		if (r < 0)
			return r;
		struct task_decision decision =
			lost ? task_lose(&view->task, &turn->given) : task_return(&view->task, &turn->given);
		turn_record(turn, &record, decision.event);
		if (lost && worker->worker.ended == WORKER_EXPIRED) {
			record_fact(&record, FACT_DEADLINE, worker->worker.lease.deadline_ms);
			record_fact(&record, FACT_GRANTED, worker->worker.lease.granted_ms);
			record_fact(&record, FACT_GRACE_END, grace_end_ms);
		}
		record_fact(&record, FACT_REASON, worker->worker.ended);
		r = turn_stage_task(turn, view, &decision, &record);
	}
	return r;
}

static int end_worker(struct turn *turn, struct turn_worker *view, const struct worker_decision *decision)
{
	struct record record;

	turn_record(turn, &record, decision->event);
	record_fact(&record, FACT_REASON, decision->worker.ended);
	if (decision->worker.ended == WORKER_EXPIRED) {
		record_fact(&record, FACT_DEADLINE, decision->worker.lease.deadline_ms);
		record_fact(&record, FACT_GRACE_END, lease_end(&decision->worker.lease, &turn->given));
	}
	int r = turn_stage_worker(turn, view, decision, &record);
	if (r == 0 && (decision->frees_lost || decision->frees_returned))
		r = free_claims(turn, view, decision->frees_lost);
	return r;
}

/* The live worker that fills a slot, other than `except`. */
static struct turn_worker *slot_filler(struct turn *turn, uint32_t slot, uint32_t except)
{
	const struct hot *hot = &turn->store->hot;

	for (uint32_t number = hot_next_holder(hot, 0); number != 0; number = hot_next_holder(hot, number)) {
		const struct holder *holder = hot_holder(hot, number);
		const struct worker *worker = holder->view_turn == turn->number
			? &turn->workers[holder->view_index]->worker
			: &holder->worker;
		if (number != except && worker->slot == slot && worker_is_alive(worker))
			return turn_worker_by_number(turn, number);
	}
	return NULL;
}

/* The live worker in the way of the slot that is asked for, or NULL. */
static struct turn_worker *slot_rival(
	struct turn *turn, const struct turn_worker *view, const struct beat *beat)
{
	if (!beat->describes || beat->slot == 0 || beat->named)
		return NULL;
	if (worker_is_alive(&view->worker) && view->worker.slot == beat->slot)
		return NULL;
	return slot_filler(turn, beat->slot, view->worker.handle);
}

static int beat_of(struct turn *turn, const struct command_beat *from, struct beat *ret_beat)
{
	*ret_beat = (struct beat){
		.has_token = from->has_token,
		.token = from->token,
		.lease_ms = from->lease_ms,
		.has_deltas = from->bound.count + from->unbound.count > 0,
		.describes = from->describes,
		.any_executor = from->any_executor,
		.max_concurrent = from->max_concurrent,
		.named = from->named,
	};
	if (!from->describes)
		return 0;
	int r = turn_name(turn, from->slot, &ret_beat->slot);
	if (r == 0)
		r = turn_name_set(turn, from->capabilities, &ret_beat->capabilities);
	if (r == 0)
		r = turn_name_set(turn, from->executors, &ret_beat->executors);
	return r;
}

static int apply_deltas(struct turn *turn, const struct command_beat *beat, const struct turn_worker *view,
	struct result *result)
{
	uint32_t holder = view->worker.handle;
	struct span *lost = arena_alloc(&turn->arena, (beat->bound.count + 1) * sizeof *lost);
	struct turn_task *task;
	struct result ignored;

	if (!lost)
		return -ENOMEM;
	result->lost = lost;
	for (uint32_t i = 0; i < beat->bound.count; i++) {
		ignored = (struct result){0};
		int r = turn_task_by_id(turn, beat->bound.items[i], &task);
		if (r < 0 && r != -ENOENT)
			return r;
		struct task_decision decision = {.refusal = REFUSED_NOT_FOUND};
		if (r == 0)
			decision = task_bind(&task->task, holder, &turn->given);
		if (decision.refusal != REFUSED_NOTHING)
			lost[result->lost_count++] = beat->bound.items[i];
		else if ((r = stage(turn, task, &decision, &ignored)) < 0)
			return r;
	}
	for (uint32_t i = 0; i < beat->unbound.count; i++) {
		ignored = (struct result){0};
		int r = turn_task_by_id(turn, beat->unbound.items[i], &task);
		if (r == -ENOENT)
			continue;
		if (r < 0)
			return r;
		struct task_decision decision = task_unbind(&task->task, holder, &turn->given);
		r = stage(turn, task, &decision, &ignored);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What it holds and must stop. */
static int list_stops(struct turn *turn, const struct turn_worker *view, struct result *result)
{
	struct held_tasks held;
	struct turn_task *task;

	int r = turn_held_by(turn, view, &held);
	if (r < 0 || held.count == 0)
		return r;
	struct span *stop = arena_alloc(&turn->arena, held.count * sizeof *stop);
	if (!stop)
		return -ENOMEM;
	result->stop = stop;
	for (uint32_t i = 0; i < held.count; i++) {
		r = turn_task(turn, held.seqs[i], &task);
		if (r == 0 && task_must_stop(&task->task, &turn->given))
			r = turn_id_text(turn, task, &stop[result->stop_count++]);
		if (r < 0)
			return r;
	}
	return 0;
}

static void take_metadata(struct turn *turn, const struct command_beat *from, struct turn_worker *view,
	struct worker_decision *decision)
{
	const struct holder *holder = hot_holder(&turn->store->hot, view->worker.handle);
	struct span old = {holder->metadata, holder->metadata_len};

	if (!from->describes || from->metadata.len == 0 || span_equal(old, from->metadata))
		return;
	view->metadata = from->metadata;
	decision->must_store = true;
}

/* The beat was accepted. A predecessor in its slot that was shown to be dead makes room first. */
static int accept_beat(struct turn *turn, const struct command *command, struct turn_worker *view,
	struct turn_worker *rival, struct worker_decision *decision, struct result *result)
{
	struct record record;
	int r = 0;

	if (rival) {
		struct worker_decision gone = worker_leave(&rival->worker, WORKER_REPLACED);
		r = end_worker(turn, rival, &gone);
	}
	take_metadata(turn, &command->beat, view, decision);
	turn_record(turn, &record, decision->event);
	record_fact(&record, FACT_MAX, decision->worker.max_concurrent);
	record_fact(&record, FACT_NAMED, decision->worker.named);
	if (r == 0)
		r = turn_stage_worker(turn, view, decision, &record);
	if (r == 0)
		r = apply_deltas(turn, &command->beat, view, result);
	if (r == 0)
		r = list_stops(turn, view, result);
	result->worker = view->worker;
	return r;
}

static int run_beat(struct turn *turn, const struct command *command, struct result *result)
{
	struct turn_worker *view = turn_worker(turn, command->worker, true);
	struct beat beat;

	if (!view)
		return -ENOMEM;
	int r = beat_of(turn, &command->beat, &beat);
	if (r < 0)
		return r == -E2BIG ? refuse(result, REFUSED_TOO_LARGE) : r;
	turn->given.next_token = store_next_token(turn->store);
	struct turn_worker *rival = slot_rival(turn, view, &beat);
	bool taken = rival && !command->beat.old_is_gone;
	struct slot_gate gate = slot_gate(turn, beat.slot);
	struct worker_decision decision = command->kind == COMMAND_REGISTER
		? worker_register(&view->worker, &beat, taken, &turn->given)
		: worker_beat(&view->worker, &beat, taken, &turn->given);
	if (decision.event == EVENT_WORKER_REGISTERED) {
		if (gate.decision.refusal != REFUSED_NOTHING)
			return refuse(result, gate.decision.refusal);
		r = use_up_trial(turn, &gate);
		if (r < 0)
			return r;
	}
	if (decision.refusal == REFUSED_NOTHING)
		return accept_beat(turn, command, view, rival, &decision, result);
	result->worker = view->worker;
	if (decision.refusal == REFUSED_SLOT_TAKEN)
		result->slot_holder = rival->id;
	return refuse(result, decision.refusal);
}

static int run_worker_command(struct turn *turn, const struct command *command, struct result *result)
{
	struct turn_worker *view = turn_worker(turn, command->worker, false);
	struct worker_decision decision;
	struct record record;

	if (!view)
		return refuse(result, REFUSED_NOT_FOUND);
	if (command->kind == COMMAND_LEAVE)
		decision = worker_leave(&view->worker, command->leave);
	else
		decision = command->kind == COMMAND_QUIET ? worker_quiet(&view->worker)
							  : worker_terminate(&view->worker);
	result->worker = view->worker;
	if (decision.refusal != REFUSED_NOTHING)
		return refuse(result, decision.refusal);
	if (decision.event == EVENT_NONE) {
		result->repeated = true;
		return 0;
	}
	int r;
	if (command->kind == COMMAND_LEAVE) {
		r = end_worker(turn, view, &decision);
	} else {
		turn_record(turn, &record, decision.event);
		r = turn_stage_worker(turn, view, &decision, &record);
	}
	result->worker = view->worker;
	return r;
}

static int run_slot(struct turn *turn, const struct command *command, struct result *result)
{
	uint32_t name;
	struct slot view;
	struct record record;

	int r = turn_name(turn, command->slot, &name);
	if (r < 0)
		return r == -E2BIG ? refuse(result, REFUSED_TOO_LARGE) : r;
	turn_slot(turn, name, &view);
	struct slot_decision decision = command->kind == COMMAND_SLOT_CRASH ? slot_crash(&view, &turn->given)
									    : slot_unquarantine(&view);
	turn_record(turn, &record, decision.event);
	return turn_stage_slot(turn, name, &decision.slot, decision.event, &record);
}

/* ---- all of them ---------------------------------------------------------------------------------- */

static int dispatch(struct turn *turn, const struct command *command, struct result *result)
{
	switch (command->kind) {
	case COMMAND_CREATE:
		return run_create(turn, command, result);
	case COMMAND_UPDATE:
		return run_update(turn, command, result);
	case COMMAND_CANCEL:
		return run_cancel(turn, command, result);
	case COMMAND_RETRY:
		return run_retry(turn, command, result);
	case COMMAND_PARK:
		return run_simple(turn, command, task_park, result);
	case COMMAND_UNPARK:
		return run_simple(turn, command, task_unpark, result);
	case COMMAND_ANSWER:
		return run_answer(turn, command, result);
	case COMMAND_PASS:
		return run_simple(turn, command, task_pass, result);
	case COMMAND_REJECT:
		return run_simple(turn, command, task_reject, result);
	case COMMAND_QUEUE_SET:
		return run_queue_set(turn, command, result);
	case COMMAND_CLAIM_NEXT:
		return run_claim_next(turn, command, result);
	case COMMAND_CLAIM:
		return run_claim(turn, command, result);
	case COMMAND_PROGRESS:
	case COMMAND_COMPLETE:
	case COMMAND_FAIL:
	case COMMAND_REPORT:
	case COMMAND_BLOCK:
	case COMMAND_ASK:
	case COMMAND_RELEASE:
		return run_report(turn, command, result);
	case COMMAND_RETURN:
		return run_return(turn, command, result);
	case COMMAND_REGISTER:
	case COMMAND_BEAT:
		return run_beat(turn, command, result);
	case COMMAND_QUIET:
	case COMMAND_TERMINATE:
	case COMMAND_LEAVE:
		return run_worker_command(turn, command, result);
	case COMMAND_SLOT_CRASH:
	case COMMAND_UNQUARANTINE:
		return run_slot(turn, command, result);
	case COMMAND_KIND_COUNT:
		break;
	}
	assert(0 && "a command has a kind");
	return 0;
}

int command_run(struct turn *turn, const struct command *command, struct result *result)
{
	int64_t before = turn->last_event;

	*result = (struct result){0};
	turn->command = command;
	turn->given.random = rng_u32(&turn->store->rng);
	int r = dispatch(turn, command, result);
	turn->command = NULL;
	result->event_seq = turn->last_event > before ? turn->last_event : 0;
	return r;
}

/* ---- timers: what the clocks bring ---------------------------------------------------------------- */

static void take_timer(void *context, uint32_t timer)
{
	struct turn *turn = context;

	turn->timers[turn->timer_count++] = timer;
}

static int claim_timer(struct turn *turn, int64_t seq)
{
	struct turn_task *view;
	struct record record;

	int r = turn_task(turn, seq, &view);
	if (r < 0)
		return r;
	if (!task_is_claimed(&view->task))
		return 0; /* ended by a timer before this one */
	const struct turn_worker *holder = turn_worker_by_number(turn, view->task.claim.holder);
	if (!holder)
		return -ENOMEM;
	struct lease due = view->task.claim.lease;
	struct task_decision decision = task_verify(&view->task, &turn->given);
	if (decision.event != EVENT_NONE)
		due = (struct lease){view->task.claim.verify_at_ms, turn->given.rules->verify_after_ms};
	else
		decision = task_expire(&view->task, &holder->worker, &turn->given);
	if (decision.event == EVENT_NONE)
		return 0;
	turn_record(turn, &record, decision.event);
	record_fact(&record, FACT_DEADLINE, due.deadline_ms);
	record_fact(&record, FACT_GRANTED, due.granted_ms);
	record_fact(&record, FACT_GRACE_END, lease_end(&due, &turn->given));
	return turn_stage_task(turn, view, &decision, &record);
}

static int worker_timer(struct turn *turn, uint32_t number)
{
	struct turn_worker *view = turn_worker_by_number(turn, number);

	if (!view)
		return -ENOMEM;
	struct worker_decision decision = worker_expire(&view->worker, &turn->given);
	return decision.event == EVENT_NONE ? 0 : end_worker(turn, view, &decision);
}

static int wall_timer(struct turn *turn, int64_t seq)
{
	struct turn_task *view;
	struct record record;

	if (hot_find(&turn->store->hot, seq) == MAP_NONE)
		return 0; /* it has ended since */
	int r = turn_task(turn, seq, &view);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	struct task_decision decision = task_deadline(&view->task, &turn->given);
	if (decision.event == EVENT_NONE)
		decision = task_due(&view->task, &turn->given);
	if (decision.event == EVENT_NONE)
		return 0;
	turn_record(turn, &record, decision.event);
	if (decision.event == EVENT_TASK_FAILED)
		record_fact(&record, FACT_CLASS, CLASS_FINAL);
	return turn_stage_task(turn, view, &decision, &record);
}

int timers_run(struct turn *turn)
{
	struct hot *hot = &turn->store->hot;
	const struct moment *now = &turn->given.now;
	int r = 0;

	wheel_advance(&hot->lease_timers, now->lease_ms, STORE_TIMERS_MAX, take_timer, turn);
	for (uint32_t i = 0; r == 0 && i < turn->timer_count; i++) {
		uint32_t timer = turn->timers[i];
		turn->given.random = rng_u32(&turn->store->rng);
		r = (timer & 1) == TIMER_CLAIM ? claim_timer(turn, hot_timer_task(hot, timer))
					       : worker_timer(turn, (timer >> 1) + 1);
	}
	while (r == 0 && turn->wall_timer_count < STORE_TIMERS_MAX) {
		const struct heap_entry *next = heap_peek(&hot->wall_timers);
		if (!next || next->at > now->wall_ms)
			break;
		turn->wall_timers[turn->wall_timer_count++] = heap_pop(&hot->wall_timers);
		r = wall_timer(turn, (int64_t)turn->wall_timers[turn->wall_timer_count - 1].what);
	}
	return r;
}
