/*
 * Taking work and reporting about it: what all workers do; and those that do nothing else, on claim leases,
 * with an id of their own or by a name.
 */
#include <stdio.h>

#include "core/task/failure.h"
#include "sim/sim.h"

enum {
	RETRY_AT_ONE_IN = 6,
	FENCES_AHEAD = 1000000,
};

/* ---- claiming ------------------------------------------------------------------------------------- */

/* In the end somebody must be able to do everything. */
static void claim_anything(struct sim *sim, struct request *request)
{
	struct command_claim *claim = &request->command.claim;

	claim->queues = request_begin_list(request);
	claim->capabilities =
		request_words(request, word_capabilities, WORD_CAPABILITIES, (1u << WORD_CAPABILITIES) - 1);
	claim->executors = request_begin_list(request);
	claim->any_executor = true;
	claim->slot = word_slots[rng_below(&sim->rng, WORD_SLOTS)];
	claim->takes_ready = true;
	claim->max = 4;
}

static void claim_by_nature(struct sim *sim, struct actor *actor, struct request *request)
{
	struct command_claim *claim = &request->command.claim;
	bool all = rng_chance(&sim->rng, 2);

	claim->queues = request_words(
		request, word_queues, WORD_QUEUES, all ? 0 : rng_below(&sim->rng, 1u << WORD_QUEUES));
	claim->capabilities =
		request_words(request, word_capabilities, WORD_CAPABILITIES, actor->capabilities);
	claim->executors = request_words(request, word_executors, WORD_EXECUTORS, actor->executors);
	claim->any_executor = actor->any_executor;
	if (actor->slot >= 0)
		claim->slot = word_slots[actor->slot];
	claim->takes_pending = rng_chance(&sim->rng, 6);
	claim->takes_ready = !claim->takes_pending || rng_chance(&sim->rng, 2);
	claim->resumes = rng_chance(&sim->rng, 6);
	claim->confirms = rng_chance(&sim->rng, 8);
	claim->max = 1 + rng_below(&sim->rng, actor->max);
	claim->lease_ms = rng_chance(&sim->rng, 2) ? 0 : sim_paced_between(sim, 5000, 120000);
	claim->run_ms = rng_chance(&sim->rng, 8) ? sim_paced_between(sim, 10000, 300000) : 0;
	if (rng_chance(&sim->rng, 2))
		claim->request = rng_u64(&sim->rng) | 1;
}

struct request *claim_request(struct sim *sim, struct actor *actor, uint32_t *ret_slot)
{
	bool calm = sim->calm;
	const struct model_task *task = !calm && rng_chance(&sim->rng, 5) ? some_task(sim) : NULL;
	struct request *request =
		network_request(sim, actor, task ? COMMAND_CLAIM : COMMAND_CLAIM_NEXT, ret_slot);

	request->command.worker = request_text(request, span_of(actor->worker));
	request->command.claim.named = actor->kind == ACTOR_NAMED;
	if (task)
		request->command.task = request_text(request, span_of(task->id));
	if (calm && actor->kind == ACTOR_CLAIMANT)
		claim_anything(sim, request);
	else
		claim_by_nature(sim, actor, request);
	actor->claim_busy = true;
	return request;
}

void claim_heard(struct sim *sim, struct actor *actor, const struct reply *reply)
{
	actor->claim_busy = false;
	for (uint32_t i = 0; i < reply->claim_count; i++)
		actor_take(sim, actor, &reply->claims[i]);
}

/* ---- reporting ------------------------------------------------------------------------------------ */

static struct failure some_failure(struct sim *sim)
{
	static const enum failure_code codes[] = {CODE_OTHER, CODE_EXECUTION_ERROR, CODE_CHECK_FAILED,
		CODE_TASK_TIMEOUT, CODE_STALLED, CODE_WORKER_CRASHED, CODE_PROTOCOL_ERROR,
		CODE_WORKER_INIT_FAILED, CODE_WORKER_INIT_FAILED, CODE_QUOTA, CODE_EXECUTOR_NOT_FOUND,
		CODE_BAD_WORKDIR, CODE_BUDGET_EXCEEDED, CODE_DEADLINE};
	struct failure failure = {.code = codes[rng_below(&sim->rng, sizeof codes / sizeof *codes)]};

	failure.klass = failure_code_class(failure.code);
	if (failure.code == CODE_OTHER)
		failure.klass = (enum failure_class)rng_between(&sim->rng, CLASS_TASK, CLASS_POLICY);
	failure.no_retry = rng_chance(&sim->rng, 10);
	if (rng_chance(&sim->rng, RETRY_AT_ONE_IN))
		failure.retry_at_ms = clocks_now(&sim->clock).wall_ms + sim_paced_between(sim, 1000, 60000);
	return failure;
}

static void fill_report(struct sim *sim, struct request *request)
{
	struct command *command = &request->command;

	switch (command->kind) {
	case COMMAND_FAIL:
	case COMMAND_BLOCK:
		command->failure = some_failure(sim);
		if (command->kind == COMMAND_BLOCK)
			command->failure = (struct failure){.code = CODE_BAD_WORKDIR, .klass = CLASS_POLICY};
		return;
	case COMMAND_PROGRESS:
		command->lease_ms = rng_chance(&sim->rng, 2) ? 0 : sim_paced_between(sim, 5000, 120000);
		return;
	case COMMAND_ASK:
		command->ask = (struct command_ask){0};
		if (rng_chance(&sim->rng, 3))
			command->ask.answer_by_ms =
				clocks_now(&sim->clock).wall_ms + sim_paced_between(sim, 1000, 120000);
		return;
	case COMMAND_WAIT:
		command->wait_ends = true; /* its process has ended, whatever became of its subtasks */
		return;
	case COMMAND_RELEASE:
		command->delay_ms = rng_chance(&sim->rng, 2) ? 0 : sim_paced_between(sim, 0, 30000);
		return;
	default:
		return;
	}
}

/* A fence that is not the holder's own must change nothing: one of an earlier claim, or one that no claim of this run will
 * have. It is not the next one: a late copy of the request would then end the claim that gets that fence, by right, and
 * the worker would not know. */
static uint64_t shown_fence(struct sim *sim, const struct holding *hold)
{
	if (sim->calm || !rng_chance(&sim->rng, 40))
		return hold->fence;
	return rng_chance(&sim->rng, 2) ? hold->fence - 1 : hold->fence + FENCES_AHEAD;
}

static void report(struct sim *sim, struct actor *actor, struct holding *hold, enum command_kind kind)
{
	uint32_t slot;
	struct request *request = network_request(sim, actor, kind, &slot);
	struct command *command = &request->command;

	request->task = hold->seq;
	command->task = request_text(request, span_of(hold->id));
	command->worker = request_text(request, span_of(actor->worker));
	command->by_name = actor->kind == ACTOR_NAMED && !rng_chance(&sim->rng, 3);
	command->fence = command->by_name ? 0 : shown_fence(sim, hold);
	if (!rng_chance(&sim->rng, 3))
		command->data = request_printf(request, "\"%s\"", hold->id);
	fill_report(sim, request);
	if (kind == COMMAND_PROGRESS && rng_chance(&sim->rng, 2))
		command->told.event.type = word_events[rng_below(&sim->rng, WORD_EVENTS)];
	hold->busy = true;
	hold->end_sent |= kind != COMMAND_PROGRESS && kind != COMMAND_ASK;
	network_send(sim, slot);
}

static enum command_kind some_end(struct sim *sim, const struct actor *actor, const struct holding *hold)
{
	static const enum command_kind ends[] = {COMMAND_COMPLETE, COMMAND_COMPLETE, COMMAND_COMPLETE,
		COMMAND_COMPLETE, COMMAND_FAIL, COMMAND_FAIL, COMMAND_RELEASE, COMMAND_REVIEW, COMMAND_BLOCK,
		COMMAND_ASK, COMMAND_WAIT};

	if (hold->gated && (sim->calm || rng_chance(&sim->rng, 2)))
		return COMMAND_REVIEW;
	enum command_kind end =
		sim->calm ? COMMAND_COMPLETE : ends[rng_below(&sim->rng, sizeof ends / sizeof *ends)];
	/* by HTTP it keeps its claim as long as none of its subtasks is open, and that is no end */
	return end == COMMAND_WAIT && (actor->remote || actor->kind == ACTOR_NAMED) ? COMMAND_RELEASE : end;
}

/* The same again every few times, as the next attempt would say it. */
static void make_subtask(struct sim *sim, struct actor *actor, struct holding *hold)
{
	uint32_t slot;
	struct request *request = network_request(sim, actor, COMMAND_CREATE, &slot);
	struct command *command = &request->command;

	command->task = request_text(request, span_of(hold->id));
	command->worker = request_text(request, span_of(actor->worker));
	command->fence = shown_fence(sim, hold);
	command->create.subtask = true;
	command->create.body = SPAN("\"title\":\"part\"");
	command->create.max_attempts = rng_chance(&sim->rng, 2) ? 1 : 0;
	if (rng_chance(&sim->rng, 2))
		command->create.id =
			request_printf(request, "sub-%lld-%u", (long long)hold->seq, rng_below(&sim->rng, 3));
	if (rng_chance(&sim->rng, 8)) { /* more than it may have, most often */
		command->create.priority = 200;
		command->create.says_priority = true;
	}
	hold->busy = true;
	network_send(sim, slot);
}

void hold_step(struct sim *sim, struct actor *actor, struct holding *hold)
{
	if (hold->busy)
		return;
	if (hold->stop)
		report(sim, actor, hold, rng_chance(&sim->rng, 2) ? COMMAND_FAIL : COMMAND_RELEASE);
	else if (hold->park && rng_chance(&sim->rng, 2))
		report(sim, actor, hold, COMMAND_RELEASE);
	else if (sim->calm || sim->clock.true_ms >= hold->until_ms)
		report(sim, actor, hold, some_end(sim, actor, hold));
	else if (!actor->remote && actor->kind != ACTOR_NAMED && rng_chance(&sim->rng, 6))
		make_subtask(sim, actor, hold);
	else if (rng_chance(&sim->rng, 4))
		report(sim, actor, hold, COMMAND_PROGRESS);
}

/* After an end somebody may still report another one: by mistake, or from a forgotten process. */
static void contradict(struct sim *sim, struct actor *actor, const struct request *request)
{
	uint32_t slot;

	if (sim->calm || !rng_chance(&sim->rng, 12))
		return;
	struct request *other = network_request(
		sim, actor, rng_chance(&sim->rng, 2) ? COMMAND_FAIL : COMMAND_COMPLETE, &slot);
	other->command.task = request_text(other, request->command.task);
	other->command.worker = request_text(other, request->command.worker);
	other->command.fence = request->command.fence;
	other->command.by_name = request->command.by_name;
	other->command.data = SPAN("\"late\"");
	fill_report(sim, other);
	network_send(sim, slot);
}

static bool keeps_hold(const struct reply *reply)
{
	if (reply->kind == COMMAND_CREATE)
		return reply->refusal != REFUSED_STALE_CLAIM && reply->refusal != REFUSED_NOT_FOUND;
	if (reply->refusal == REFUSED_NOTHING)
		return reply->kind == COMMAND_PROGRESS || reply->kind == COMMAND_ASK;
	return reply->refusal == REFUSED_UNAVAILABLE || reply->refusal == REFUSED_BAD_TRANSITION ||
		reply->refusal == REFUSED_GATE_REQUIRED;
}

void hold_heard(
	struct sim *sim, struct actor *actor, const struct request *request, const struct reply *reply)
{
	struct holding *hold = actor_hold(actor, request->command.task);

	if (!hold || !hold->busy)
		return;
	hold->busy = false;
	hold->park = false; /* it is told again, as long as that is so */
	hold->gated |= reply->refusal == REFUSED_GATE_REQUIRED;
	if (reply->kind == COMMAND_ASK && reply->refusal == REFUSED_NOTHING)
		hold->until_ms = sim->clock.true_ms + sim_paced_between(sim, 5000, 60000);
	if (keeps_hold(reply))
		return;
	if (actor->kind == ACTOR_WORKER && actor->unbind_count < HOLDS_MAX)
		id_copy(actor->unbinds[actor->unbind_count++], span_of(hold->id));
	actor_drop(actor, hold);
	if (reply->refusal == REFUSED_NOTHING)
		contradict(sim, actor, request);
}

/* ---- those that only claim ------------------------------------------------------------------------ */

static void register_name(struct sim *sim, struct actor *actor)
{
	uint32_t slot;
	struct request *request = network_request(sim, actor, COMMAND_REGISTER, &slot);
	struct command_beat *beat = &request->command.beat;

	request->command.worker = request_text(request, span_of(actor->worker));
	beat->named = true;
	beat->describes = true;
	beat->lease_ms = actor->lease_ms;
	beat->capabilities =
		request_words(request, word_capabilities, WORD_CAPABILITIES, actor->capabilities);
	beat->executors = request_words(request, word_executors, WORD_EXECUTORS, actor->executors);
	beat->any_executor = actor->any_executor;
	beat->max_concurrent = actor->max;
	actor->life_busy = true;
	network_send(sim, slot);
}

/* The process dies; what it held is forgotten, but its id is the same. */
static bool fall_over(struct sim *sim, struct actor *actor)
{
	if (sim->calm || !rng_chance(&sim->rng, 80))
		return false;
	actor_reborn(sim, actor);
	actor_wake_in(sim, actor, sim_paced_between(sim, 1000, 60000));
	return true;
}

void claimant_act(struct sim *sim, struct actor *actor)
{
	uint32_t slot;

	if (fall_over(sim, actor))
		return;
	for (uint32_t i = 0; i < actor->hold_count; i++)
		hold_step(sim, actor, &actor->holds[i]);
	if (actor->kind == ACTOR_NAMED && !actor->life_busy && !sim->calm && rng_chance(&sim->rng, 6))
		register_name(sim, actor);
	bool wants = sim->calm ? actor->kind == ACTOR_CLAIMANT : !rng_chance(&sim->rng, 3);
	if (wants && !actor->claim_busy && actor->hold_count < actor->max) {
		claim_request(sim, actor, &slot);
		network_send(sim, slot);
	}
	actor_wake_in(sim, actor, sim_paced_between(sim, 2000, 20000));
}

void claimant_hear(
	struct sim *sim, struct actor *actor, const struct request *request, const struct reply *reply)
{
	switch (reply->kind) {
	case COMMAND_CLAIM:
	case COMMAND_CLAIM_NEXT:
		claim_heard(sim, actor, reply);
		return;
	case COMMAND_REGISTER:
		actor->life_busy = false;
		return;
	default:
		hold_heard(sim, actor, request, reply);
	}
}

void claimant_give_up(struct sim *sim, struct actor *actor, const struct request *request)
{
	struct holding *hold = actor_hold(actor, request->command.task);

	(void)sim;
	switch (request->command.kind) {
	case COMMAND_CLAIM:
	case COMMAND_CLAIM_NEXT:
		actor->claim_busy = false;
		return;
	case COMMAND_REGISTER:
		actor->life_busy = false;
		return;
	default:
		if (hold && hold->busy)
			actor_drop(actor, hold);
	}
}
