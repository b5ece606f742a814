#include "sim/judge.h"

#include <assert.h>

#include "sim/sim.h"

static const uint64_t fence_generation_step = 1000000000000u;

void judge_existence(struct sim *sim, const struct model_task *task, const struct record *record)
{
	if ((record->kind == EVENT_TASK_CREATED) != (task == NULL))
		sim_violate(sim, "A5", record->task, "%s of a task that is %s", event_kind_name(record->kind),
			task ? "there already" : "unknown");
}

/* ---- claim order ---------------------------------------------------------------------------------- */

/* The CLAIM_NEXT of this turn that was answered with that claim. */
static const struct command *claim_command(struct sim *sim, int64_t seq, uint64_t fence)
{
	const struct server *server = &sim->server;

	for (uint32_t i = 0; i < server->count; i++) {
		const struct result *result = &server->results[i];
		if (server->commands[i].kind != COMMAND_CLAIM_NEXT)
			continue;
		for (uint32_t j = 0; j < result->claim_count; j++) {
			if (result->claims[j].task.seq == seq && result->claims[j].task.fence == fence)
				return &server->commands[i];
		}
	}
	return NULL;
}

/* Must `other` be handed out before `task`? What two keys of a fair queue were served last is known to the server alone, and whether a
 * task of another queue is the next one of that queue, too. */
static bool goes_before(const struct sim *sim, const struct model_task *other, const struct model_task *task)
{
	const struct task *a = &other->fold.task, *b = &task->fold.task;

	if (!model_limits(sim, other)->fair)
		return task_claim_order(a, b, sim->options.rules.queue_age_ms) < 0;
	if (a->queue != b->queue)
		return false;
	if (a->priority != b->priority)
		return a->priority > b->priority;
	if (a->concurrency_key == b->concurrency_key)
		return task_claim_order(a, b, 0) < 0;
	return model_live_of_key(sim, a) < model_live_of_key(sim, b);
}

/* B10: nothing that this claimant might have had goes before what it got. */
static void judge_order(struct sim *sim, const struct model_task *task, const struct record *record)
{
	const struct model *model = &sim->model;
	const struct command *command = claim_command(sim, record->task, record->columns.fence);

	if (!command || task->fold.holder[0] != 0) /* by id, or its own taken up again */
		return;
	if (!model_is_claimable(sim, task, command, record->wall_ms))
		sim_violate(sim, "B10", record->task, "%.*s was given a task that it may not have",
			SPAN_ARGS(command->worker));
	for (uint32_t i = 0; i < model->live_count; i++) {
		const struct model_task *other = &model->tasks[model->live[i]];
		if (goes_before(sim, other, task) &&
			model_limits(sim, other)->rate.count == 0 && /* that would be for its bucket to say */
			!model_hold_decides(sim, &other->fold.task, record->wall_ms) &&
			model_is_claimable(sim, other, command, record->wall_ms))
			sim_violate(sim, "B10", record->task, "%s goes before it", other->id);
	}
}

void judge_drained(struct sim *sim, int queue, const struct record *record)
{
	const struct model *model = &sim->model;

	if (model->queues[queue] != QUEUE_DRAINING)
		sim_violate(sim, "F1", 0, "queue %d has drained and is not draining", queue);
	for (uint32_t i = 0; i < model->live_count; i++) {
		const struct model_task *task = &model->tasks[model->live[i]];
		struct span its = store_name(sim->server.store, task->fold.task.queue);
		if (span_equal(its, record->subject) && !task_state_is_final(task->fold.task.state))
			sim_violate(sim, "F1", task->fold.task.seq, "%s is open in a queue that has drained",
				task->id);
	}
}

/* ---- one event ------------------------------------------------------------------------------------ */

/* No task changes hands while its holder lives by what it was told; whether it does is judged with its worker. */
static void judge_handover(struct sim *sim, const struct model_task *task, const struct record *record)
{
	const struct crowd *crowd = &sim->crowd;

	for (uint32_t i = 0; i < crowd->count; i++) {
		const struct actor *actor = &crowd->actors[i];
		const struct model_worker *worker = model_worker(&sim->model, span_of(actor->worker));
		if (!actor->remote || !worker || worker->state == WORKER_INACTIVE ||
			span_equal(span_of(actor->worker), record->worker))
			continue;
		if (actor_is_told_to_hold(sim, actor, record->task, task->fold.task.fence))
			sim_violate(sim, "W2", record->task, "%.*s gets it; %s was told that it holds it",
				SPAN_ARGS(record->worker), actor->worker);
	}
}

/* B12: nothing is claimed on an account that is held, and while the account is tried one claim at a time. */
static void judge_hold(struct sim *sim, const struct task *task, const struct record *record)
{
	const struct model *model = &sim->model;
	const struct model_hold *hold = model_hold(sim, task);

	if (hold && hold->state == MODEL_HELD)
		sim_violate(sim, "B12", record->task, "claimed on an account that is held");
	for (uint32_t i = 0; hold && hold->state == MODEL_PROBING && i < model->live_count; i++) {
		const struct model_task *other = &model->tasks[model->live[i]];
		if (model_hold(sim, &other->fold.task) == hold && other->fold.holder[0] != 0 &&
			other->claimed_event > hold->probing_event)
			sim_violate(
				sim, "B12", record->task, "claimed while %s tries its account", other->id);
	}
}

static uint32_t flows_of(struct sim *sim, const struct model_task *task)
{
	const struct queue_limits *limits = model_limits(sim, task);
	const struct task *its = &task->fold.task;
	const struct model_hold *hold = model_hold(sim, its);
	const bool flows[FLOW_COUNT] = {
		[FLOW_CONCURRENCY] = limits->concurrency != 0,
		[FLOW_PER_KEY] = limits->per_key != 0 && its->concurrency_key != 0,
		[FLOW_SEQUENTIAL] = limits->sequential && its->concurrency_key != 0,
		[FLOW_RATE] = limits->rate.count != 0,
		[FLOW_REVIEW] = limits->review != 0,
		[FLOW_FAIR] = limits->fair,
		[FLOW_MAX_OPEN] = limits->max_open != 0,
		[FLOW_AGEING] = sim->options.rules.queue_age_ms != 0,
		[FLOW_HOLD] = hold && hold->state != MODEL_FREE,
		[FLOW_UNIQUE] = its->keyed,
		[FLOW_SUCCESSOR] = task->succeeds,
		[FLOW_PARENTS] = its->has_parent,
		[FLOW_MEMBER] = its->group != 0,
		[FLOW_WAITED] = task->groups != 0,
		[FLOW_SUBTASK] = its->subtask_of != 0,
		[FLOW_SCHEDULE] = its->occurrence != OCCURRENCE_NONE,
		[FLOW_BULK] = task->bulk != 0,
	};
	uint32_t bits = 0;

	for (int flow = 0; flow < FLOW_COUNT; flow++)
		bits |= flows[flow] ? UINT32_C(1) << flow : 0;
	return bits;
}

static void judge_claim(struct sim *sim, const struct model_task *task, const struct record *record)
{
	const struct task *stands = &task->fold.task;
	uint64_t floor = sim->model.generation * fence_generation_step;
	uint64_t last = stands->fence > floor ? stands->fence : floor;
	const struct model_worker *worker = model_worker(&sim->model, record->worker);
	bool resumes = task->fold.holder[0] != 0;

	if (resumes && !span_equal(span_of(task->fold.holder), record->worker))
		sim_violate(sim, "B1", record->task, "%.*s claims what %s holds", SPAN_ARGS(record->worker),
			task->fold.holder);
	if (record->columns.fence != last + 1)
		sim_violate(sim, "B2", record->task, "fence %llu follows %llu",
			(unsigned long long)record->columns.fence, (unsigned long long)stands->fence);
	if (record->columns.attempt != stands->attempt + 1)
		sim_violate(sim, "C1", record->task, "attempt %u follows %u", record->columns.attempt,
			stands->attempt);
	if (!resumes && stands->ready_at_ms > sim->model.wall_high_ms)
		sim_violate(sim, "C4", record->task, "claimed before its time");
	if (worker && worker->state == WORKER_INACTIVE)
		sim_violate(sim, "A4", record->task, "claimed by an inactive worker");
	if (worker && worker->slot >= 0 && sim->model.quarantined[worker->slot])
		sim_violate(sim, "C3", record->task, "claimed by %s, whose slot is quarantined", worker->id);
	if (worker && !resumes && worker->max != 0 &&
		worker_is_alive(&(struct worker){.state = worker->state}) && worker->held >= worker->max)
		sim_violate(
			sim, "B9", record->task, "%s holds %u of %u", worker->id, worker->held, worker->max);
	if (!resumes && model_limit(sim, task) != LIMIT_NONE)
		sim_violate(sim, "B11", record->task, "claimed over the limit %s of its queue",
			limit_kind_name(model_limit(sim, task)));
	if (!resumes && !model_take_permit(sim, task, record->wall_ms))
		sim_violate(sim, "B11", record->task, "claimed faster than the rate of its queue");
	if (!resumes) {
		judge_hold(sim, stands, record);
		coverage_flow(sim->coverage, flows_of(sim, task));
	}
	judge_order(sim, task, record);
	judge_handover(sim, task, record);
}

/* G3: nobody is called lost while the server could not have heard. */
static void judge_grace(struct sim *sim, const struct record *record, uint32_t granted_ms)
{
	const struct server *server = &sim->server;
	const struct rules *rules = &sim->options.rules;
	uint32_t window = granted_ms < rules->resume_grace_ms ? granted_ms : rules->resume_grace_ms;

	if (record->lease_ms < server->started_ms + rules->restart_grace_ms)
		sim_violate(sim, "G3", record->task, "lost %lld ms after a start",
			(long long)(record->lease_ms - server->started_ms));
	if (server->woke_ms != INT64_MIN && record->lease_ms < server->woke_ms + window)
		sim_violate(sim, "G3", record->task, "lost %lld ms after the server came back",
			(long long)(record->lease_ms - server->woke_ms));
	if (server->full && server->degraded)
		sim_violate(sim, "D6", record->task, "lost while the disk was full");
}

static void judge_expiry(struct sim *sim, const struct model_task *task, const struct record *record)
{
	const struct model_worker *holder = model_worker(&sim->model, span_of(task->fold.holder));
	int64_t age_ms = sim->clock.true_ms - task->lease.since_true_ms;

	if (holder && holder->state == WORKER_INACTIVE) /* judged with its worker */
		return;
	uint32_t granted_ms = (uint32_t)record->fact[FACT_GRANTED];
	judge_grace(sim, record, granted_ms);
	if (task->lease.granted_ms == 0)
		return;
	if (task->lease.worker_clock)
		sim_violate(sim, "B7", record->task, "it lives on its worker's lease, and that is not over");
	if (record->kind == EVENT_TASK_EXPIRED && age_ms < task->lease.granted_ms)
		sim_violate(sim, "B7", record->task, "expired %lld ms after %u ms were granted",
			(long long)age_ms, task->lease.granted_ms);
}

/* The bulk action that made the event; 0: none did. What follows for other tasks does not count. */
static uint32_t bulk_of(const struct record *record)
{
	static const char before[] = "\"bulk\":\"";
	size_t len = sizeof before - 1;
	bool direct = record->kind == EVENT_TASK_RETRIED || record->kind == EVENT_TASK_CANCELLED ||
		record->kind == EVENT_TASK_PARKED || record->kind == EVENT_TASK_UNPARKED ||
		record->kind == EVENT_TASK_PURGED;

	if (!direct || record->note.len <= len + 1 || memcmp(record->note.data, before, len) != 0)
		return 0;
	return bulk_id_read((struct span){record->note.data + len, record->note.len - len - 1});
}

/* D7: a bulk action changes a task once, and none after its end. */
static void judge_bulk(struct sim *sim, struct model_task *task, const struct record *record)
{
	const struct model *model = &sim->model;
	uint32_t bulk = bulk_of(record);

	if (bulk == 0)
		return;
	if (task->bulk == bulk)
		sim_violate(sim, "D7", record->task, "bulk action %u changed it twice", bulk);
	for (uint32_t i = 0; i < MODEL_BULKS_MAX; i++) {
		if (model->bulks_ended[i] == bulk)
			sim_violate(sim, "D7", record->task, "bulk action %u has ended and goes on", bulk);
	}
	task->bulk = bulk;
}

void judge_before(struct sim *sim, const struct model_task *task, const struct record *record)
{
	struct moment now = clocks_now(&sim->clock);

	if (record->from != task->fold.task.state)
		sim_violate(sim, "A5", record->task, "%s leads from another state than the last event left",
			event_kind_name(record->kind));
	if (record->previous != task->fold.task.version)
		sim_violate(sim, "A5", record->task, "the chain of its events is broken");
	if (record->lease_ms != now.lease_ms || record->wall_ms != now.wall_ms)
		sim_violate(sim, "A5", record->task, "the event is not of this moment");
	judge_bulk(sim, model_task(&sim->model, record->task), record);
	if (record->kind == EVENT_TASK_CLAIMED)
		judge_claim(sim, task, record);
	if (record->kind == EVENT_TASK_EXPIRED || record->kind == EVENT_CLAIM_UNCONFIRMED)
		judge_expiry(sim, task, record);
}

/* A4: what ended stays so, but for an operator's retry and the purge. */
static void judge_final(
	struct sim *sim, const struct fold *before, const struct task *after, const struct record *record)
{
	if (!task_state_is_final(before->task.state) || before->task.state == after->state)
		return;
	bool revived = record->kind == EVENT_TASK_COMPLETED && before->task.state == TASK_FAILED &&
		after->workflow != WORKFLOW_NONE;
	if (record->kind != EVENT_TASK_RETRIED && record->kind != EVENT_TASK_PURGED && !revived)
		sim_violate(sim, "A4", record->task, "%s led out of %s", event_kind_name(record->kind),
			task_state_name(before->task.state));
}

/* Remember who held it, for the result that comes with this event. */
static void note_move(struct server *server, const struct fold *before, const struct record *record)
{
	bool beside = event_kind_is_of_session(record->kind);
	/* a stage and an open gate follow from the event before them, which knows who held it */
	beside = beside || record->kind == EVENT_TASK_STAGE_CHANGED || record->kind == EVENT_GATE_OPENED;

	if (beside || server->move_count == SERVER_MOVES_MAX) /* the event that it stands beside tells */
		return;
	struct move *move = &server->moves[server->move_count++];
	*move = (struct move){.event = record->seq, .task = record->task, .fence = before->task.fence};
	id_copy(move->holder, span_of(before->holder));
}

/* W1: forward within an attempt; back only to where work begins, and from `failed` only by a retry or the last word.
 * W2: nothing is merged that nobody validated. */
static void judge_stage(
	struct sim *sim, const struct fold *before, const struct task *after, const struct record *record)
{
	const struct task *was = &before->task;
	bool back = after->stage < was->stage && after->stage != STAGE_IN_PROGRESS;
	bool lifted = was->stage == STAGE_FAILED && after->stage == STAGE_COMPLETED;

	if (after->stage == was->stage || was->state == TASK_NOWHERE)
		return;
	if (record->kind != EVENT_TASK_STAGE_CHANGED)
		sim_violate(sim, "W1", record->task, "%s changed its stage", event_kind_name(record->kind));
	if (back && !lifted)
		sim_violate(sim, "W1", record->task, "from %s back to %s", stage_name(was->stage),
			stage_name(after->stage));
	if (after->stage == STAGE_MERGED && was->stage != STAGE_VALIDATED)
		sim_violate(sim, "W2", record->task, "merged from %s", stage_name(was->stage));
	if (after->stage == STAGE_VALIDATED && after->gates_passed == 0)
		sim_violate(sim, "W2", record->task, "validated by nobody");
}

void judge_after(struct sim *sim, const struct model_task *task, const struct fold *before,
	const struct record *record)
{
	const struct task *after = &task->fold.task;

	note_move(&sim->server, before, record);
	if (before->task.state == TASK_WAITING && after->state == TASK_READY && task->waits != 0)
		sim_violate(sim, "G2", record->task, "ready, and a group that it waits for has not ended");
	if (!transition_is_legal(record->kind, before->task.state, after->state))
		sim_violate(sim, "A3", record->task, "%s is no such move", event_kind_name(record->kind));
	judge_final(sim, before, after, record);
	if (record->kind != EVENT_TASK_CLAIMED && before->task.fence != after->fence)
		sim_violate(sim, "B2", record->task, "the fence changed without a claim");
	if (after->spent > after->max_attempts || after->attempt < before->task.attempt)
		sim_violate(sim, "C1", record->task, "attempts: spent %u of %u", after->spent,
			after->max_attempts);
	if (before->holder[0] == 0 && task->fold.holder[0] != 0 && record->kind != EVENT_TASK_CLAIMED)
		sim_violate(sim, "B1", record->task, "held without a claim");
	judge_stage(sim, before, after, record);
	if (after->superseded_by != 0 && task->fold.holder[0] == 0 && after->state != TASK_DONE &&
		after->state != TASK_CANCELLED && after->state != TASK_NOWHERE)
		sim_violate(
			sim, "F1", record->task, "another task has its key and its place, and it goes on");
	if (after->predecessor != 0 && task->fold.holder[0] != 0)
		sim_violate(sim, "F1", record->task, "claimed while the attempt that it waits for goes on");
	if (after->crashes > sim->options.rules.crash_budget)
		sim_violate(sim, "C5", record->task, "%u crashes in a row", after->crashes);
}

/* ---- workers -------------------------------------------------------------------------------------- */

static void judge_worker_expiry(
	struct sim *sim, const struct model_worker *worker, const struct record *record)
{
	int64_t age_ms = sim->clock.true_ms - worker->accepted_true_ms;

	judge_grace(sim, record, worker->granted_ms);
	if (worker->granted_ms != 0 && age_ms < worker->granted_ms)
		sim_violate(sim, "G2", 0, "%s expired %lld ms after %u ms were granted", worker->id,
			(long long)age_ms, worker->granted_ms);
	const struct actor *remote = crowd_remote(&sim->crowd, span_of(worker->id));
	if (remote && remote->registered && remote->lives_era == sim->model.era &&
		sim->clock.true_ms < remote->lives_until_ms)
		sim_violate(sim, "W2", 0, "%s expired %lld ms before the end that it was told", worker->id,
			(long long)(remote->lives_until_ms - sim->clock.true_ms));
	if (crowd_is_steady(&sim->crowd, worker->id))
		sim_violate(sim, "G3", 0, "%s always beats in time and was called lost", worker->id);
}

void judge_worker(struct sim *sim, const struct model_worker *worker, const struct record *record)
{
	bool alive = worker_is_alive(&(struct worker){.state = worker->state});

	bool tells_slot = record->kind == EVENT_WORKER_REGISTERED || record->kind == EVENT_WORKER_UPDATED;
	int slot = tells_slot ? word_find(word_slots, WORD_SLOTS, record->subject) : -1;
	bool enters = record->kind == EVENT_WORKER_REGISTERED || slot != worker->slot;

	if (slot >= 0 && enters && sim->model.quarantined[slot])
		sim_violate(sim, "C3", 0, "%s enters a quarantined slot", worker->id);
	if (record->kind == EVENT_WORKER_REGISTERED) {
		if (alive)
			sim_violate(sim, "A5", 0, "%s is registered already", worker->id);
		if (worker->state == WORKER_INACTIVE && !record->fact[FACT_NAMED])
			sim_violate(sim, "A4", 0, "%s was inactive and comes back", worker->id);
		return;
	}
	if (!alive)
		sim_violate(sim, "A4", 0, "%s of %s, which is not alive", event_kind_name(record->kind),
			worker->id);
	if (record->kind == EVENT_WORKER_INACTIVE && record->fact[FACT_REASON] == WORKER_EXPIRED)
		judge_worker_expiry(sim, worker, record);
}

void judge_group(struct sim *sim, const struct model_group *group, const struct record *record)
{
	const struct model *model = &sim->model;

	for (uint32_t i = 0; group->number != 0 && i < model->live_count; i++) {
		const struct task *task = &model->tasks[model->live[i]].fold.task;
		if (task->group == group->number && task->superseded_by == 0)
			sim_violate(sim, "G1", task->seq, "group %.*s has ended, and this member is open",
				SPAN_ARGS(record->subject));
	}
}

void judge_generation(struct sim *sim, const struct record *record)
{
	if (record->fact[FACT_GENERATION] <= sim->model.generation)
		sim_violate(sim, "D7", 0, "a restore that raises no generation");
}

/* ---- results -------------------------------------------------------------------------------------- */

static bool carries_proof(enum command_kind kind)
{
	switch (kind) {
	case COMMAND_PROGRESS:
	case COMMAND_COMPLETE:
	case COMMAND_FAIL:
	case COMMAND_REVIEW:
	case COMMAND_BLOCK:
	case COMMAND_ASK:
	case COMMAND_WAIT:
	case COMMAND_RELEASE:
		return true;
	default:
		return false;
	}
}

/* A refusal changes nothing: no event, but the note that a result came too late. */
static void judge_refusal(struct sim *sim, const struct command *command, const struct result *result)
{
	bool may_note = result->refusal == REFUSED_STALE_CLAIM && carries_proof(command->kind);

	if (result->event_seq != 0 && !may_note)
		sim_violate(sim, "B3", result->task.seq, "%s refused, and there is an event",
			refusal_code(result->refusal));
	if (result->refusal == REFUSED_UNAVAILABLE && !sim->server.full && !sim->server.was_degraded)
		sim_violate(sim, "D6", result->task.seq, "unavailable, though the disk has room");
}

/* E1: one effect per key, and the same answer. */
static void judge_create(struct sim *sim, struct request *request, const struct result *result)
{
	const struct command_create *create = &request->command.create;
	struct moment now = clocks_now(&sim->clock);
	bool kept = now.wall_ms - request->made_wall_ms < sim->options.retention.idempotency_ms;
	bool keyed = create->idempotency_key.len > 0;

	if (request->made == 0 || request->made_era != sim->model.era) {
		struct model_task *fresh = model_task(&sim->model, result->task.seq);
		if (fresh && result->event_seq != 0 && !result->repeated)
			model_note_groups(sim, fresh, &request->command.create);
		request->made = result->task.seq;
		request->made_era = sim->model.era;
		request->made_wall_ms = now.wall_ms;
		return;
	}
	if (keyed && kept && result->task.seq != request->made)
		sim_violate(sim, "E1", result->task.seq, "the same key made task %lld before",
			(long long)request->made);
	if (keyed && kept && result->event_seq != 0)
		sim_violate(sim, "E1", result->task.seq, "the same request had a second effect");
}

/* What the claim lives on from now, as far as results tell. */
static void note_lease(struct sim *sim, const struct task *task)
{
	struct model_task *known = model_task(&sim->model, task->seq);

	if (!known || task->claim.holder == 0 || known->fold.task.fence != task->fence)
		return;
	bool moved = known->lease.granted_ms != task->claim.lease.granted_ms ||
		known->lease.worker_clock != (task->claim.clock == CLOCK_WORKER);
	bool fresh = task->claim.lease.deadline_ms ==
		clocks_now(&sim->clock).lease_ms + task->claim.lease.granted_ms;
	if (!moved && !fresh)
		return;
	known->lease = (struct model_lease){
		.since_true_ms = fresh ? sim->clock.true_ms : known->lease.since_true_ms,
		.granted_ms = task->claim.lease.granted_ms,
		.worker_clock = task->claim.clock == CLOCK_WORKER,
	};
}

static void judge_claims(struct sim *sim, const struct command *command, const struct result *result)
{
	for (uint32_t i = 0; i < result->claim_count; i++) {
		const struct task *given = &result->claims[i].task;
		const struct model_task *task = model_task(&sim->model, given->seq);
		if (!task) {
			sim_violate(sim, "B1", given->seq, "a claim of an unknown task");
			return;
		}
		if (task->fold.task.fence < given->fence)
			sim_violate(sim, "A5", given->seq, "a claim was handed out without its event");
		note_lease(sim, given);
	}
	(void)command;
}

/* Might it have held all it may at some moment of this turn? */
static bool was_full(const struct sim *sim, const struct model_worker *worker)
{
	uint32_t held = worker->held;

	for (uint32_t i = 0; i < sim->server.move_count; i++)
		held += strcmp(sim->server.moves[i].holder, worker->id) == 0;
	return worker->max != 0 && held >= worker->max;
}

/* A trial belongs to one worker; the others go away empty. */
static bool is_on_trial(struct sim *sim, int word)
{
	struct slot slot;

	return store_slot(sim->server.store, word_slots[word], &slot) && slot.state == SLOT_ON_TRIAL;
}

/* Is the slot closed to somebody: quarantined, or on a trial that may be another's? */
static bool is_closed(struct sim *sim, int slot)
{
	return slot >= 0 && (sim->model.quarantined[slot] || is_on_trial(sim, slot));
}

/* Might a limit have kept the task back at some moment of this turn? That is not known if anything but this claim happened. */
static bool was_limited(const struct sim *sim, const struct model_task *task, const struct result *result)
{
	const struct queue_limits *limits = model_limits(sim, task);

	if (limits->rate.count != 0)
		return true;
	return !limits_are_none(limits) && sim->model.last_event > sim->server.before + result->claim_count;
}

/* B10: it got fewer than it wanted, so there was nothing more. Only what no event of this turn touched is
 * certain to have been there all the time. */
static void judge_empty_claim(struct sim *sim, const struct command *command, const struct result *result)
{
	const struct model *model = &sim->model;
	const struct model_worker *worker = model_worker(model, command->worker);
	int slot = word_find(word_slots, WORD_SLOTS, command->claim.slot);
	bool barred = worker && worker->state != WORKER_UNKNOWN && worker->state != WORKER_ACTIVE;

	if (result->repeated || result->claim_count >= command->claim.max || sim->server.scenery_moved)
		return;
	if (barred || (worker && (was_full(sim, worker) || is_closed(sim, worker->slot))) ||
		is_closed(sim, slot))
		return;
	for (uint32_t i = 0; i < model->live_count; i++) {
		const struct model_task *task = &model->tasks[model->live[i]];
		if (task->fold.task.version <= sim->server.before && !was_limited(sim, task, result) &&
			!model_hold_decides(sim, &task->fold.task, clocks_now(&sim->clock).wall_ms) &&
			model_is_claimable(sim, task, command, clocks_now(&sim->clock).wall_ms))
			sim_violate(sim, "B10", task->fold.task.seq,
				"%.*s asked for %u and got %u, not this one (slot '%.*s', request %llx, worker %s)",
				SPAN_ARGS(command->worker), command->claim.max, result->claim_count,
				SPAN_ARGS(command->claim.slot), (unsigned long long)command->claim.request,
				worker ? worker_state_name(worker->state) : "unknown");
	}
}

/* The last event of that task up to `event`; what follows for other tasks comes after it. */
static const struct move *find_move(const struct server *server, int64_t task, int64_t event)
{
	for (uint32_t i = server->move_count; i-- > 0;) {
		if (server->moves[i].event <= event && server->moves[i].task == task)
			return &server->moves[i];
	}
	return NULL;
}

/* B3, B8: whoever changed the task held it under that fence just before. */
static void judge_proof(struct sim *sim, const struct command *command, const struct result *result)
{
	if (result->repeated) {
		if (result->event_seq != 0)
			sim_violate(sim, "E5", result->task.seq, "a repeated report had an effect");
		return;
	}
	const struct move *move = find_move(&sim->server, result->task.seq, result->event_seq);
	if (result->event_seq == 0 || !move) {
		sim_violate(sim, "A5", result->task.seq, "accepted without an event");
		return;
	}
	if (!span_equal(span_of(move->holder), command->worker))
		sim_violate(sim, "B3", result->task.seq, "%.*s acted on what '%s' held",
			SPAN_ARGS(command->worker), move->holder);
	if (!command->by_name && move->fence != command->fence)
		sim_violate(sim, "B3", result->task.seq, "a stale fence was accepted");
	note_lease(sim, &result->task);
}

/* A beat that was accepted: the worker counts as alive from now. */
static void judge_beat(struct sim *sim, const struct command *command, const struct result *result)
{
	struct model_worker *worker = model_worker_made(&sim->model, command->worker);

	/* a start may have forgotten the last beats, and then an older token is the last one again */
	if (command->beat.has_token && worker->accepted_true_ms > sim->server.started_true_ms &&
		command->kind == COMMAND_BEAT && command->beat.token != worker->token)
		sim_violate(sim, "E6", 0, "%s beats with a token that is not its last one", worker->id);
	worker->accepted_true_ms = sim->clock.true_ms;
	worker->granted_ms = result->worker.lease.granted_ms;
	worker->token = result->worker.token;
	for (uint32_t i = 0; i < command->beat.bound.count; i++) {
		struct model_task *task = model_task_by_id(&sim->model, command->beat.bound.items[i]);
		if (task && span_equal(span_of(task->fold.holder), command->worker))
			task->lease = (struct model_lease){sim->clock.true_ms, 1, true};
	}
	for (uint32_t i = 0; i < command->beat.unbound.count; i++) {
		struct model_task *task = model_task_by_id(&sim->model, command->beat.unbound.items[i]);
		if (task && span_equal(span_of(task->fold.holder), command->worker))
			task->lease = (struct model_lease){0};
	}
}

/* C3: the third crash within the window stops the slot. */
static void judge_slot_crash(struct sim *sim, const struct command *command, const struct result *result)
{
	const struct rules *rules = &sim->options.rules;
	int64_t now_ms = clocks_now(&sim->clock).lease_ms;
	int slot = word_find(word_slots, WORD_SLOTS, command->slot);
	int64_t *crashed_ms = sim->model.crashed_ms[slot];
	bool third = crashed_ms[1] != INT64_MIN && now_ms - crashed_ms[1] <= rules->quarantine_window_ms;

	assert(rules->quarantine_crashes == 3);
	if (sim->server.scenery_moved) { /* perhaps let go in this very turn: count anew */
		model_forget_crashes(&sim->model, slot);
		return;
	}
	if (third && result->event_seq == 0 && !sim->model.quarantined[slot])
		sim_violate(sim, "C3", 0, "%.*s crashed three times and goes on", SPAN_ARGS(command->slot));
	crashed_ms[1] = crashed_ms[0];
	crashed_ms[0] = now_ms;
}

static void judge_accepted(struct sim *sim, uint32_t i)
{
	const struct command *command = &sim->server.commands[i];
	const struct result *result = &sim->server.results[i];

	if (carries_proof(command->kind))
		judge_proof(sim, command, result);
	switch (command->kind) {
	case COMMAND_CREATE:
		judge_create(sim, network_at(sim, sim->server.slots[i]), result);
		return;
	case COMMAND_CLAIM_NEXT:
		judge_claims(sim, command, result);
		judge_empty_claim(sim, command, result);
		return;
	case COMMAND_CLAIM:
		judge_claims(sim, command, result);
		return;
	case COMMAND_REGISTER:
	case COMMAND_BEAT:
		judge_beat(sim, command, result);
		return;
	case COMMAND_SLOT_CRASH:
		judge_slot_crash(sim, command, result);
		return;
	default:
		return;
	}
}

void judge_results(struct sim *sim)
{
	int64_t last = sim->server.before;

	for (uint32_t i = 0; i < sim->server.count && !sim->violation.found; i++) {
		const struct result *result = &sim->server.results[i];
		if (result->event_seq != 0 && result->event_seq <= last)
			sim_violate(sim, "A5", result->task.seq, "two commands share an event");
		if (result->event_seq != 0)
			last = result->event_seq;
		if (last > sim->model.last_event)
			sim_violate(sim, "A5", result->task.seq, "an event was promised that is not there");
		sim->coverage->refusals[result->refusal]++;
		if (result->refusal != REFUSED_NOTHING)
			judge_refusal(sim, &sim->server.commands[i], result);
		else
			judge_accepted(sim, i);
	}
}

void judge_occurrence(struct sim *sim, const struct record *record)
{
	struct fired fired = {record->fact[FACT_PLANNED], 0};

	for (size_t i = 0; i < record->subject.len; i++)
		fired.schedule = fired.schedule * 31 + (unsigned char)record->subject.data[i];
	for (uint32_t i = 0; i < sim->fired_count; i++) {
		if (sim->fired[i].planned_ms == fired.planned_ms && sim->fired[i].schedule == fired.schedule)
			sim_violate(sim, "D1", 0, "schedule %.*s made a second task for %lld",
				SPAN_ARGS(record->subject), (long long)fired.planned_ms);
	}
	if (sim->fired_count < SIM_FIRED_MAX)
		sim->fired[sim->fired_count++] = fired;
}

void judge_forget_occurrences(struct sim *sim, int64_t wall_ms)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < sim->fired_count; i++) {
		if (sim->fired[i].planned_ms <= wall_ms)
			sim->fired[kept++] = sim->fired[i];
	}
	sim->fired_count = kept;
}
