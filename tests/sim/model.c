/*
 * Folding and judging events. The order matters: an event is judged against the model as it was just before,
 * which inside a turn is exactly the moment at which the store decided.
 */
#include "sim/model.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "sim/judge.h"
#include "sim/sim.h"

static const struct hash_key model_key = {0x5eed, 0x5eed};

static uint64_t task_hash(void *context, uint32_t index)
{
	const struct model *model = context;
	return hash_u64((uint64_t)model->tasks[index].fold.task.seq);
}

static uint64_t id_hash(void *context, uint32_t index)
{
	const struct model *model = context;
	const char *id = model->tasks[index].id;
	return hash_bytes(&model_key, id, strlen(id));
}

static uint64_t worker_hash(void *context, uint32_t index)
{
	const struct model *model = context;
	const char *id = model->workers[index].id;
	return hash_bytes(&model_key, id, strlen(id));
}

static const struct map_ops task_ops = {.hash_of = task_hash};
static const struct map_ops id_ops = {.hash_of = id_hash};
static const struct map_ops worker_ops = {.hash_of = worker_hash};

void model_init(struct model *model)
{
	*model = (struct model){.wall_high_ms = INT64_MIN, .generation = 1};
	map_init(&model->task_by_seq, &task_ops, model);
	map_init(&model->task_by_id, &id_ops, model);
	map_init(&model->worker_by_id, &worker_ops, model);
	for (int slot = 0; slot < WORD_SLOTS; slot++)
		model_forget_crashes(model, slot);
}

void model_forget_crashes(struct model *model, int slot)
{
	model->crashed_ms[slot][0] = INT64_MIN;
	model->crashed_ms[slot][1] = INT64_MIN;
}

void model_done(struct model *model)
{
	map_done(&model->task_by_seq);
	map_done(&model->task_by_id);
	map_done(&model->worker_by_id);
	free(model->tasks);
	free(model->live);
	free(model->workers);
	free(model->outcomes);
	free(model->acks);
}

static void *grown(void *items, uint32_t count, uint32_t *cap, size_t size)
{
	if (count < *cap)
		return items;
	*cap = *cap ? *cap * 2 : 64;
	items = realloc(items, *cap * size);
	if (!items)
		sim_abort("no memory");
	return items;
}

static void *copied(const void *items, uint32_t count, size_t size)
{
	void *copy = malloc(count * size + 1);

	if (!copy)
		sim_abort("no memory");
	if (count > 0)
		memcpy(copy, items, count * size);
	return copy;
}

static void must_insert(struct map *map, uint64_t hash, uint32_t index)
{
	if (map_insert(map, hash, index) < 0)
		sim_abort("no memory");
}

void model_copy(struct model *to, const struct model *from)
{
	model_done(to);
	*to = *from;
	to->tasks = copied(from->tasks, from->task_count, sizeof *from->tasks);
	to->live = copied(from->live, from->live_count, sizeof *from->live);
	to->workers = copied(from->workers, from->worker_count, sizeof *from->workers);
	to->outcomes = copied(from->outcomes, from->outcome_count, sizeof *from->outcomes);
	to->acks = copied(from->acks, from->ack_count, sizeof *from->acks);
	to->task_cap = from->task_count;
	to->live_cap = from->live_count;
	to->worker_cap = from->worker_count;
	to->outcome_cap = from->outcome_count;
	to->ack_cap = from->ack_count;
	map_init(&to->task_by_seq, &task_ops, to);
	map_init(&to->task_by_id, &id_ops, to);
	map_init(&to->worker_by_id, &worker_ops, to);
	for (uint32_t i = 0; i < to->task_count; i++) {
		must_insert(&to->task_by_seq, task_hash(to, i), i);
		must_insert(&to->task_by_id, id_hash(to, i), i);
	}
	for (uint32_t i = 0; i < to->worker_count; i++)
		must_insert(&to->worker_by_id, worker_hash(to, i), i);
}

struct model_task *model_task(const struct model *model, int64_t seq)
{
	struct map_probe probe;
	uint32_t index = map_first(&model->task_by_seq, hash_u64((uint64_t)seq), &probe);

	while (index != MAP_NONE && model->tasks[index].fold.task.seq != seq)
		index = map_next(&model->task_by_seq, &probe);
	return index == MAP_NONE ? NULL : &model->tasks[index];
}

struct model_task *model_task_by_id(const struct model *model, struct span id)
{
	struct map_probe probe;
	uint32_t index = map_first(&model->task_by_id, hash_bytes(&model_key, id.data, id.len), &probe);

	/* an id of the caller's own may be used again after the purge */
	for (; index != MAP_NONE; index = map_next(&model->task_by_id, &probe)) {
		if (span_equal(span_of(model->tasks[index].id), id) &&
			model->tasks[index].fold.task.state != TASK_NOWHERE)
			return &model->tasks[index];
	}
	return NULL;
}

struct model_worker *model_worker(const struct model *model, struct span id)
{
	struct map_probe probe;
	uint32_t index = map_first(&model->worker_by_id, hash_bytes(&model_key, id.data, id.len), &probe);

	while (index != MAP_NONE && !span_equal(span_of(model->workers[index].id), id))
		index = map_next(&model->worker_by_id, &probe);
	return index == MAP_NONE ? NULL : &model->workers[index];
}

struct model_worker *model_worker_made(struct model *model, struct span id)
{
	struct model_worker *worker = model_worker(model, id);

	if (worker)
		return worker;
	model->workers =
		grown(model->workers, model->worker_count, &model->worker_cap, sizeof *model->workers);
	worker = &model->workers[model->worker_count];
	*worker = (struct model_worker){.slot = -1};
	id_copy(worker->id, id);
	must_insert(&model->worker_by_id, hash_bytes(&model_key, id.data, id.len), model->worker_count++);
	return worker;
}

/* ---- folding ------------------------------------------------------------------------------------- */

static void enlist(struct model *model, struct model_task *task)
{
	bool live = !task_state_is_final(task->fold.task.state) && task->fold.task.state != TASK_NOWHERE;

	if (live && task->live_at == MODEL_NONE) {
		model->live = grown(model->live, model->live_count, &model->live_cap, sizeof *model->live);
		task->live_at = model->live_count;
		model->live[model->live_count++] = (uint32_t)(task - model->tasks);
	} else if (!live && task->live_at != MODEL_NONE) {
		uint32_t last = model->live[--model->live_count];
		model->live[task->live_at] = last;
		model->tasks[last].live_at = task->live_at;
		task->live_at = MODEL_NONE;
	}
}

static struct model_task *new_task(struct sim *sim, const struct record *record)
{
	struct model *model = &sim->model;

	model->tasks = grown(model->tasks, model->task_count, &model->task_cap, sizeof *model->tasks);
	struct model_task *task = &model->tasks[model->task_count];
	*task = (struct model_task){.live_at = MODEL_NONE, .outcome = MODEL_NONE};
	task->fold.task.seq = record->task;
	must_insert(&model->task_by_seq, hash_u64((uint64_t)record->task), model->task_count++);
	model->existing++;
	return task;
}

/* The id as people know it: the caller's own, or the one the store generates. */
static void learn_id(struct sim *sim, struct model_task *task, const struct record *record)
{
	struct arena arena;
	struct span id = record->id;

	arena_init(&arena, 4096);
	if (id.len == 0 && store_task_id(sim->server.store, &task->fold.task, &arena, &id) < 0)
		sim_violate(sim, "A7", record->task, "a new task has no id");
	id_copy(task->id, id);
	must_insert(&sim->model.task_by_id, hash_bytes(&model_key, id.data, id.len),
		(uint32_t)(task - sim->model.tasks));
	arena_done(&arena);
}

static void fold_outcome(struct model *model, struct model_task *task, uint64_t fence, enum claim_end ended,
	enum task_state to)
{
	model->outcomes =
		grown(model->outcomes, model->outcome_count, &model->outcome_cap, sizeof *model->outcomes);
	model->outcomes[model->outcome_count] = (struct outcome){
		.task = task->fold.task.seq,
		.fence = fence,
		.ended = ended,
		.to = to,
		.previous = task->outcome,
	};
	task->outcome = model->outcome_count++;
}

/* Who holds what, and how claims end; `before` is the task before the event. */
static void fold_claim(struct model *model, struct model_task *task, const struct fold *before)
{
	bool held = before->holder[0] != 0;
	bool holds = task->fold.holder[0] != 0;
	bool resumed = held && holds && before->task.fence != task->fold.task.fence;

	if (held && (!holds || resumed))
		fold_outcome(model, task, before->task.fence, resumed ? ENDED_LOST : task->fold.task.ended,
			task->fold.task.state);
	if (held && !holds)
		model_worker_made(model, span_of(before->holder))->held--;
	if (!held && holds)
		model_worker_made(model, span_of(task->fold.holder))->held++;
	if (!holds || resumed || !held)
		task->lease = (struct model_lease){0};
}

/* ---- groups and holds ------------------------------------------------------------------------------ */

enum {
	RELEASE_MS = 11 * 60 * 1000, /* an account that works again is released for ten minutes */
};

void model_note_groups(struct sim *sim, struct model_task *task, const struct command_create *create)
{
	int own = create->group.len > 0 ? word_find(word_groups, WORD_GROUPS, create->group) : -1;
	int64_t number = task->fold.task.group;

	if (own >= 0 && number > sim->model.groups[own].removed)
		sim->model.groups[own].number = number;
	for (uint32_t i = 0; i < create->blocked_by_groups.count; i++) {
		int at = word_find(word_groups, WORD_GROUPS, create->blocked_by_groups.items[i]);
		task->groups |= 1u << at;
		task->waits |= sim->model.groups[at].ended ? 0 : 1u << at;
	}
}

/* A member that is opened again opens its group, and what it blocked waits again. A person's retry of a task forgets what blocks it. */
static void fold_groups(
	struct model *model, struct model_task *task, const struct fold *before, const struct record *record)
{
	const struct task *now = &task->fold.task;

	for (int i = 0; i < WORD_GROUPS; i++) {
		struct model_group *group = &model->groups[i];
		if (group->number == now->group && now->group != 0 && now->superseded_by == 0 &&
			!task_state_is_final(now->state) && now->state != TASK_NOWHERE)
			group->ended = false;
	}
	task->succeeds |= now->predecessor != 0;
	if (record->kind == EVENT_TASK_RETRIED)
		task->groups = task->waits = 0;
	if (before->task.state != TASK_BLOCKED || now->state != TASK_WAITING)
		return;
	for (int i = 0; i < WORD_GROUPS; i++)
		task->waits |= model->groups[i].ended ? 0 : task->groups & 1u << i;
}

/* Has a member failed, or was it cancelled? Of members that were purged nobody knows. */
static bool has_dead_member(const struct model *model, int64_t group)
{
	for (uint32_t i = 0; i < model->task_count; i++) {
		const struct task *task = &model->tasks[i].fold.task;
		if (task->group == group && task->superseded_by == 0 &&
			(task->state == TASK_FAILED || task->state == TASK_CANCELLED))
			return true;
	}
	return false;
}

static void follow_group(struct sim *sim, const struct record *record)
{
	struct model *model = &sim->model;
	int at = word_find(word_groups, WORD_GROUPS, record->subject);
	struct model_group *group = &model->groups[at];
	bool is_gone = record->kind == EVENT_GROUP_REMOVED, has_ended = record->kind == EVENT_GROUP_ENDED;

	if (!is_gone && !has_ended)
		return;
	if (has_ended)
		judge_group(sim, group, record);
	/* what a group has let go is not called back; what it blocked waits again when it is opened again */
	bool lets_go = is_gone || !has_dead_member(model, group->number);
	for (uint32_t i = 0; i < model->task_count; i++) {
		model->tasks[i].waits &= ~(1u << at);
		model->tasks[i].groups &= lets_go ? ~(1u << at) : UINT32_MAX;
	}
	group->ended = true;
	if (is_gone)
		*group = (struct model_group){
			.removed = group->number > group->removed ? group->number : group->removed};
}

struct model_hold *model_hold(struct sim *sim, const struct task *task)
{
	if (task->credential == 0)
		return NULL;
	struct span name = store_name(sim->server.store, task->credential);
	return &sim->model.holds[word_find(word_accounts, WORD_ACCOUNTS, name)];
}

bool model_hold_decides(struct sim *sim, const struct task *task, int64_t wall_ms)
{
	const struct model_hold *hold = model_hold(sim, task);

	if (hold && hold->state == MODEL_RELEASING)
		return wall_ms < hold->until_ms;
	return hold && hold->state == MODEL_PROBING;
}

static void follow_hold(struct sim *sim, const struct record *record)
{
	struct model_hold *hold = &sim->model.holds[word_find(word_accounts, WORD_ACCOUNTS, record->subject)];

	hold->state = record->kind == EVENT_HOLD_PROBING ? MODEL_PROBING
		: record->kind == EVENT_HOLD_CLOSED      ? MODEL_RELEASING
							 : MODEL_HELD;
	hold->probing_event = record->seq;
	hold->until_ms = record->wall_ms + RELEASE_MS;
}

static void follow_task(struct sim *sim, const struct record *record)
{
	struct model *model = &sim->model;
	struct model_task *task = model_task(model, record->task);

	judge_existence(sim, task, record);
	if (sim->violation.found)
		return;
	if (!task)
		task = new_task(sim, record);
	struct fold before = task->fold;
	judge_before(sim, task, record);
	fold_apply(&task->fold, record);
	if (record->kind == EVENT_TASK_ASKED && record_has(record, FACT_QUESTION))
		task->question = (uint32_t)record->fact[FACT_QUESTION];
	if (record->kind == EVENT_TASK_CREATED)
		learn_id(sim, task, record);
	if (record->kind == EVENT_TASK_PURGED)
		model->existing--;
	coverage_event(sim->coverage, record->kind, before.task.state, task->fold.task.state);
	judge_after(sim, task, &before, record);
	fold_claim(model, task, &before);
	fold_groups(model, task, &before, record);
	if (record->kind == EVENT_TASK_CLAIMED && before.holder[0] == 0) /* not one that is taken up again */
		task->claimed_event = record->seq;
	enlist(model, task);
}

static void follow_worker(struct sim *sim, const struct record *record)
{
	struct model_worker *worker = model_worker_made(&sim->model, record->worker);

	judge_worker(sim, worker, record);
	if (record->kind == EVENT_WORKER_REGISTERED) {
		worker->state = WORKER_ACTIVE;
		worker->named = record->fact[FACT_NAMED] != 0;
		worker->max = (uint32_t)record->fact[FACT_MAX];
		worker->granted_ms = (uint32_t)record->fact[FACT_GRANTED];
		worker->accepted_true_ms = sim->clock.true_ms;
		worker->slot = word_find(word_slots, WORD_SLOTS, record->subject);
	} else if (record->kind == EVENT_WORKER_UPDATED) {
		worker->max = (uint32_t)record->fact[FACT_MAX];
		worker->slot = word_find(word_slots, WORD_SLOTS, record->subject);
	} else if (record->kind == EVENT_WORKER_QUIET) {
		worker->state = WORKER_QUIET;
	} else if (record->kind == EVENT_WORKER_TERMINATING) {
		worker->state = WORKER_TERMINATING;
	} else {
		worker->state = WORKER_INACTIVE;
		worker->ended = (enum worker_end)record->fact[FACT_REASON];
	}
}

void model_note_clock(struct model *model, int64_t wall_ms)
{
	for (int i = 0; i < WORD_QUEUES; i++) {
		const struct rate *rate = &model->limits[i].rate;
		double most_ms = rate->count > 0
			? (double)wall_ms + rate->burst * ((double)rate->per_ms / rate->count)
			: 0;
		if (model->full_ms[i] <= (double)wall_ms)
			model->full_ms[i] = 0; /* and full it stays, wherever the clock is set to then */
		if (rate->count > 0 && model->full_ms[i] > most_ms)
			model->full_ms[i] = most_ms;
	}
}

static void follow_noun(struct sim *sim, const struct record *record)
{
	struct model *model = &sim->model;
	int queue = word_find(word_queues, WORD_QUEUES, record->subject);
	int slot = word_find(word_slots, WORD_SLOTS, record->subject);

	sim->server.scenery_moved = true;
	switch (record->kind) {
	case EVENT_QUEUE_PAUSED:
		model->queues[queue] = QUEUE_PAUSED;
		return;
	case EVENT_QUEUE_RESUMED:
		model->queues[queue] = QUEUE_OPEN;
		return;
	case EVENT_QUEUE_DRAINING:
		model->queues[queue] = QUEUE_DRAINING;
		return;
	case EVENT_QUEUE_UPDATED:
		model->limits[queue] = (struct queue_limits){
			.concurrency = (uint32_t)record->fact[FACT_CONCURRENCY],
			.per_key = (uint32_t)record->fact[FACT_PER_KEY],
			.sequential = record->fact[FACT_SEQUENTIAL] != 0,
			.review = (uint32_t)record->fact[FACT_REVIEW_MOST],
			.fair = record->fact[FACT_FAIR] != 0,
			.max_open = (uint32_t)record->fact[FACT_MAX_OPEN],
			.rate = {(uint32_t)record->fact[FACT_RATE], (uint32_t)record->fact[FACT_BURST],
				record->fact[FACT_RATE_MS], record->fact[FACT_RATE_PER_KEY] != 0},
		};
		model->full_ms[queue] = 0;
		return;
	case EVENT_SLOT_QUARANTINED:
		model->quarantined[slot] = true;
		return;
	case EVENT_SLOT_UNQUARANTINED:
		model->quarantined[slot] = false;
		model_forget_crashes(model, slot);
		return;
	case EVENT_SERVER_RESTORED:
		judge_generation(sim, record);
		judge_forget_occurrences(sim, record->wall_ms);
		model->generation = (uint32_t)record->fact[FACT_GENERATION];
		return;
	case EVENT_SCHEDULE_FIRED:
		judge_occurrence(sim, record);
		return;
	case EVENT_BULK_ENDED:
		model->bulks_ended[model->bulk_count++ % MODEL_BULKS_MAX] = bulk_id_read(record->subject);
		return;
	case EVENT_QUEUE_LIMITED:
	case EVENT_QUEUE_IDLE:
		return;
	case EVENT_GROUP_CLOSED:
	case EVENT_GROUP_ENDED:
	case EVENT_GROUP_REMOVED:
		follow_group(sim, record);
		return;
	case EVENT_HOLD_OPENED:
	case EVENT_HOLD_EXTENDED:
	case EVENT_HOLD_PROBING:
	case EVENT_HOLD_CLOSED:
		follow_hold(sim, record);
		return;
	case EVENT_QUEUE_DRAINED:
		judge_drained(sim, queue, record);
		return;
	case EVENT_BULK_STARTED:
	case EVENT_BUDGET_NEAR:
	case EVENT_BUDGET_SPENT:
	case EVENT_BUDGET_UPDATED:
	case EVENT_SERVER_STARTED:
	case EVENT_SERVER_DEGRADED:
	case EVENT_SCHEDULE_CREATED:
	case EVENT_SCHEDULE_UPDATED:
	case EVENT_SCHEDULE_REMOVED:
	case EVENT_SCHEDULE_SKIPPED:
	case EVENT_SCHEDULE_FAILING:
	case EVENT_TOKEN_CREATED:
	case EVENT_TOKEN_REVOKED:
	case EVENT_TOKEN_RENEWED:
	case EVENT_TOKEN_SETTLED:
	case EVENT_TOKEN_KEY_ROTATED:
	case EVENT_TOKEN_ADMIN_REPLACED:
	case EVENT_SERVER_AUDITED:
		return;
	default:
		follow_worker(sim, record);
	}
}

static void hash_event(struct model *model, const struct record *record, const struct fold *fold)
{
	const uint64_t parts[] = {(uint64_t)record->seq, (uint64_t)record->kind, (uint64_t)record->task,
		(uint64_t)record->lease_ms, (uint64_t)record->wall_ms, record->changed, record->facts,
		fold ? fold->task.fence : 0, fold ? (uint64_t)fold->task.ready_at_ms : 0};

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		model->hash = hash_u64(model->hash ^ parts[i]);
	model->hash ^= hash_bytes(&model_key, record->worker.data, record->worker.len);
	model->hash ^= hash_bytes(&model_key, record->actor.data, record->actor.len);
}

static int follow_event(void *context, const struct record *record)
{
	struct sim *sim = context;
	struct model *model = &sim->model;

	if (record->seq != model->last_event + 1)
		sim_violate(sim, "A1", record->task, "event %lld follows event %lld", (long long)record->seq,
			(long long)model->last_event);
	model->last_event = record->seq;
	if (record->wall_ms > model->wall_high_ms)
		model->wall_high_ms = record->wall_ms;
	if (record->task != 0) {
		follow_task(sim, record);
	} else {
		follow_noun(sim, record);
		coverage_event(sim->coverage, record->kind, TASK_NOWHERE, TASK_NOWHERE);
	}
	if (sim->violation.found)
		return -EPROTO;
	const struct model_task *task = record->task != 0 ? model_task(model, record->task) : NULL;
	hash_event(model, record, task ? &task->fold : NULL);
	if (history_event(
		    &sim->history, sim->server.store, sim->clock.boot, record, task ? &task->fold : NULL) < 0)
		sim_abort("the history is too long");
	return 0;
}

void model_follow(struct sim *sim)
{
	struct store *store = sim->server.store;
	struct model *model = &sim->model;

	while (!sim->violation.found && model->last_event < store_last_event(store)) {
		int64_t before = model->last_event;
		int r = store_page_events(store, before, 256, follow_event, sim);
		if (r < 0 && !sim->violation.found)
			sim_violate(
				sim, "A6", 0, "events after %lld cannot be read: %d", (long long)before, r);
		else if (model->last_event == before && !sim->violation.found)
			sim_violate(sim, "A1", 0, "no event after %lld, though there are some",
				(long long)before);
	}
}

/* ---- what actors were told ------------------------------------------------------------------------ */

static void remember(struct model *model, struct ack ack)
{
	model->acks = grown(model->acks, model->ack_count, &model->ack_cap, sizeof *model->acks);
	model->acks[model->ack_count++] = ack;
}

static enum claim_end end_of(enum command_kind kind)
{
	switch (kind) {
	case COMMAND_COMPLETE:
		return ENDED_COMPLETE;
	case COMMAND_FAIL:
		return ENDED_FAIL;
	case COMMAND_REVIEW:
		return ENDED_REVIEW;
	case COMMAND_BLOCK:
		return ENDED_BLOCK;
	case COMMAND_RELEASE:
		return ENDED_RELEASE;
	case COMMAND_WAIT:
		return ENDED_WAIT;
	default:
		return ENDED_NOT;
	}
}

static const char *ack_word(enum command_kind kind)
{
	switch (kind) {
	case COMMAND_CREATE:
		return "enqueue";
	case COMMAND_PROGRESS:
		return "progress";
	case COMMAND_COMPLETE:
		return "complete";
	case COMMAND_FAIL:
		return "fail";
	case COMMAND_REVIEW:
		return "review";
	case COMMAND_BLOCK:
		return "block";
	case COMMAND_RELEASE:
		return "release";
	case COMMAND_WAIT:
		return "wait";
	default:
		return NULL;
	}
}

/* For the checker: it explains every acknowledgement by an event, on its own. */
static void write_acks(struct sim *sim, const struct request *request, const struct reply *reply)
{
	const char *word = ack_word(reply->kind);
	char client[ID_MAX];
	int r = 0;

	id_copy(client, request->command.worker.len > 0 ? request->command.worker : request->command.actor);
	if (word && !request->command.by_name)
		r = history_ack(&sim->history, client, word, reply->seq, reply->fence);
	for (uint32_t i = 0; i < reply->claim_count && r == 0; i++)
		r = history_ack(&sim->history, client, "claim", reply->claims[i].seq, reply->claims[i].fence);
	if (r < 0)
		sim_abort("the history is too long");
}

void model_acknowledge(struct sim *sim, const struct request *request, const struct reply *reply)
{
	enum claim_end ended = end_of(reply->kind);

	if (reply->refusal != REFUSED_NOTHING || reply->era != sim->model.era)
		return;
	write_acks(sim, request, reply);
	if (reply->kind == COMMAND_CREATE)
		remember(&sim->model, (struct ack){.kind = reply->kind, .task = reply->seq});
	else if (ended != ENDED_NOT && !request->command.by_name)
		remember(&sim->model,
			(struct ack){.kind = reply->kind,
				.task = reply->seq,
				.fence = reply->fence,
				.ended = ended});
}

static const struct outcome *outcome_of(
	const struct model *model, const struct model_task *task, uint64_t fence)
{
	for (uint32_t i = task->outcome; i != MODEL_NONE; i = model->outcomes[i].previous) {
		if (model->outcomes[i].fence == fence)
			return &model->outcomes[i];
	}
	return NULL;
}

static void check_ack(struct sim *sim, const struct ack *ack)
{
	const struct model_task *task = model_task(&sim->model, ack->task);

	if (!task) {
		sim_violate(sim, "D1", ack->task, "an acknowledged task is not there");
		return;
	}
	if (ack->kind == COMMAND_CREATE)
		return;
	const struct outcome *outcome = outcome_of(&sim->model, task, ack->fence);
	if (!outcome)
		sim_violate(sim, "D1", ack->task, "an acknowledged report left no trace");
	else if (outcome->ended != ack->ended)
		sim_violate(sim, "E5", ack->task, "one outcome was acknowledged, another is recorded");
	else if (ack->ended == ENDED_COMPLETE && outcome->to != TASK_DONE)
		sim_violate(sim, "D1", ack->task, "an acknowledged completion did not make it done");
}

void model_check_acks(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->model.ack_count && !sim->violation.found; i++)
		check_ack(sim, &sim->model.acks[i]);
}

/* ---- claim order ---------------------------------------------------------------------------------- */

static bool lists(const struct name_list *list, struct span text)
{
	return word_find(list->items, (int)list->count, text) >= 0;
}

static bool covers(struct sim *sim, const struct command_claim *claim, uint32_t set)
{
	struct span needed = store_name(sim->server.store, set);

	for (int i = 0; i < WORD_CAPABILITIES && set != 0; i++) {
		struct span word = word_capabilities[i];
		bool needs = memmem(needed.data, needed.len, word.data, word.len) != NULL;
		if (needs && !lists(&claim->capabilities, word))
			return false;
	}
	return true;
}

static bool stands_ready(const struct task *task, const struct command_claim *claim, int64_t wall_ms)
{
	/* past its deadline it waits only for the timer that says so */
	bool too_late_to_start = task->start_by_ms != 0 && task->attempt == 0 && wall_ms >= task->start_by_ms;
	if (too_late_to_start || (task->finish_by_ms != 0 && wall_ms >= task->finish_by_ms))
		return false;
	if (task->state == TASK_READY)
		return claim->takes_ready;
	return task->state == TASK_PENDING && claim->takes_pending && !task_is_held_back(task) &&
		task->occurrence != OCCURRENCE_HELD && task->ready_at_ms <= wall_ms;
}

/* The slot that it claims for: the one it names, or its own. */
static struct span slot_of(const struct model *model, const struct command *command)
{
	const struct model_worker *worker = model_worker(model, command->worker);

	if (command->claim.slot.len > 0 || !worker || worker->slot < 0)
		return command->claim.slot;
	return word_slots[worker->slot];
}

/* Plain claimants and names have not said where they are. */
static bool is_on_host(struct sim *sim, struct span id, uint32_t host)
{
	const struct model_worker *worker = model_worker(&sim->model, id);

	return worker && worker->state != WORKER_UNKNOWN && !worker->named &&
		span_equal(store_name(sim->server.store, host), word_host_of(id));
}

const struct queue_limits *model_limits(const struct sim *sim, const struct model_task *task)
{
	struct span queue = store_name(sim->server.store, task->fold.task.queue);

	return &sim->model.limits[word_find(word_queues, WORD_QUEUES, queue)];
}

/* In floating point, with a millisecond of grace. Keys are judged by nobody here. */
bool model_take_permit(struct sim *sim, const struct model_task *task, int64_t wall_ms)
{
	const struct queue_limits *limits = model_limits(sim, task);
	const struct rate *rate = &limits->rate;
	double *full_ms = &sim->model.full_ms[limits - sim->model.limits], now_ms = (double)wall_ms;

	if (rate->count == 0 || rate->per_key)
		return true;
	double step_ms = (double)rate->per_ms / rate->count;
	/* While the clock is behind what it was, nobody here knows when the server noticed that and how empty the bucket was then: at the
	 * least it has lost this permit. */
	if (wall_ms < sim->model.wall_high_ms) {
		*full_ms = now_ms + step_ms;
		return true;
	}
	bool allowed = now_ms + 1 >= *full_ms - (rate->burst - 1) * step_ms;
	*full_ms = (*full_ms > now_ms ? *full_ms : now_ms) + step_ms;
	return allowed;
}

uint32_t model_live_of_key(const struct sim *sim, const struct task *task)
{
	const struct model *model = &sim->model;
	uint32_t live = 0;

	for (uint32_t i = 0; i < model->live_count; i++) {
		const struct model_task *other = &model->tasks[model->live[i]];
		live += other->fold.holder[0] != 0 && other->fold.task.queue == task->queue &&
			other->fold.task.concurrency_key == task->concurrency_key;
	}
	return live;
}

enum limit_kind model_limit(const struct sim *sim, const struct model_task *task)
{
	const struct model *model = &sim->model;
	const struct task *stands = &task->fold.task;
	const struct queue_limits *limits = model_limits(sim, task);
	struct queue_load load = {0};
	struct key_load key = {0};

	for (uint32_t i = 0; i < model->live_count; i++) {
		const struct model_task *other = &model->tasks[model->live[i]];
		const struct task *its = &other->fold.task;
		bool held = other->fold.holder[0] != 0;
		if (its->queue != stands->queue)
			continue;
		load.live += held;
		load.review += its->state == TASK_REVIEW;
		key.live += held && its->concurrency_key == stands->concurrency_key;
		key.begun += its->attempt > 0 && its->concurrency_key == stands->concurrency_key;
	}
	if (limits->concurrency != 0 && load.live >= limits->concurrency)
		return LIMIT_CONCURRENCY;
	if (limits->review != 0 && load.review >= limits->review)
		return LIMIT_REVIEW;
	if (stands->concurrency_key == 0)
		return LIMIT_NONE;
	if (limits->per_key != 0 && key.live >= limits->per_key)
		return LIMIT_PER_KEY;
	if (limits->sequential && (stands->attempt > 0 ? key.live : key.begun) > 0)
		return LIMIT_SEQUENTIAL;
	return LIMIT_NONE;
}

bool model_is_claimable(
	struct sim *sim, const struct model_task *task, const struct command *command, int64_t wall_ms)
{
	const struct command_claim *claim = &command->claim;
	const struct task *stands = &task->fold.task;
	struct store *store = sim->server.store;

	if (!stands_ready(stands, claim, wall_ms))
		return false;
	struct span queue = store_name(store, stands->queue);
	if (sim->model.queues[word_find(word_queues, WORD_QUEUES, queue)] == QUEUE_PAUSED)
		return false;
	if (claim->queues.count > 0 && !lists(&claim->queues, queue))
		return false;
	if (stands->owner != 0 &&
		!span_equal(store_name(store, stands->owner), slot_of(&sim->model, command)))
		return false;
	if (stands->executor != 0 && !claim->any_executor &&
		!lists(&claim->executors, store_name(store, stands->executor)))
		return false;
	if (stands->resume_until_ms != 0 && !is_on_host(sim, command->worker, stands->resume_host))
		return false;
	const struct model_hold *hold = model_hold(sim, stands);
	if (hold && hold->state == MODEL_HELD)
		return false;
	return covers(sim, claim, stands->requires) && model_limit(sim, task) == LIMIT_NONE;
}
