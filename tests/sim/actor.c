#include "sim/actor.h"

#include <assert.h>
#include <stdio.h>

#include "sim/sim.h"

static struct actor *add(struct sim *sim, enum actor_kind kind, const char *word)
{
	struct crowd *crowd = &sim->crowd;
	struct actor *actor = &crowd->actors[crowd->count];

	assert(crowd->count < ACTORS_MAX);
	*actor = (struct actor){.kind = kind, .index = crowd->count++, .slot = -1, .wake_ms = INT64_MAX};
	snprintf(actor->principal, sizeof actor->principal, "%s-%u", word, actor->index);
	snprintf(actor->worker, sizeof actor->worker, "%s-%u", word, actor->index);
	actor_wake_in(sim, actor, rng_below(&sim->rng, 2000));
	return actor;
}

static void add_worker(struct sim *sim, bool steady, bool remote)
{
	struct actor *actor = add(sim, ACTOR_WORKER, remote ? "remote" : steady ? "steady" : "worker");

	actor->steady = steady;
	actor->remote = remote;
	worker_init(sim, actor);
}

static struct actor *add_claimant(struct sim *sim, enum actor_kind kind)
{
	struct actor *actor = add(sim, kind, kind == ACTOR_NAMED ? "agent" : "plain");

	actor->capabilities = rng_below(&sim->rng, 1u << WORD_CAPABILITIES);
	actor->any_executor = rng_chance(&sim->rng, 2);
	actor->executors = rng_below(&sim->rng, 1u << WORD_EXECUTORS);
	actor->slot = rng_chance(&sim->rng, 2) ? -1 : (int)rng_below(&sim->rng, WORD_SLOTS);
	actor->max = 1 + rng_below(&sim->rng, 3);
	actor->lease_ms = rng_chance(&sim->rng, 2) ? 0 : sim_paced_between(sim, 10000, 120000);
	return actor;
}

/* Every second one is another process under the name of the one before: what tells them apart is the fence alone, as
 * long as they show it. */
static void add_named(struct sim *sim, bool twin)
{
	const struct actor *before = &sim->crowd.actors[sim->crowd.count - 1];
	struct actor *actor = add_claimant(sim, ACTOR_NAMED);

	if (!twin)
		return;
	id_copy(actor->worker, span_of(before->worker));
	actor->capabilities = before->capabilities; /* the same program */
	actor->executors = before->executors;
	actor->any_executor = before->any_executor;
	actor->slot = before->slot;
	actor->max = before->max;
	actor->lease_ms = before->lease_ms;
}

void crowd_init(struct sim *sim)
{
	const struct sim_options *options = &sim->options;

	for (uint32_t i = 0; i < options->producers; i++)
		add(sim, ACTOR_PRODUCER, "producer");
	for (uint32_t i = 0; i < options->operators; i++)
		add(sim, ACTOR_OPERATOR, "operator");
	for (uint32_t i = 0; i < options->impostors; i++)
		add(sim, ACTOR_IMPOSTOR, "impostor");
	for (uint32_t i = 0; i < options->steady + options->workers; i++)
		add_worker(sim, i < options->steady, false);
	for (uint32_t i = 0; i < options->plain; i++)
		add_claimant(sim, ACTOR_CLAIMANT);
	for (uint32_t i = 0; i < options->named; i++)
		add_named(sim, i % 2 == 1);
	for (uint32_t i = 0; i < options->remote; i++)
		add_worker(sim, i == 0 && options->steady > 1, true);
}

const struct actor *crowd_remote(const struct crowd *crowd, struct span worker)
{
	for (uint32_t i = 0; i < crowd->count; i++) {
		const struct actor *actor = &crowd->actors[i];
		if (actor->remote && span_equal(span_of(actor->worker), worker))
			return actor;
	}
	return NULL;
}

bool actor_is_told_to_hold(const struct sim *sim, const struct actor *actor, int64_t seq, uint64_t fence)
{
	if (sim->clock.true_ms >= actor->lives_until_ms || actor->lives_era != sim->model.era ||
		actor->life_busy)
		return false;
	for (uint32_t i = 0; i < actor->unbind_count; i++) {
		const struct model_task *task = model_task_by_id(&sim->model, span_of(actor->unbinds[i]));
		if (task && task->fold.task.seq == seq)
			return false;
	}
	for (uint32_t i = 0; i < actor->hold_count; i++) {
		const struct holding *hold = &actor->holds[i];
		if (hold->seq == seq && hold->fence == fence)
			return hold->bound && !hold->busy && !hold->end_sent && !hold->stop;
	}
	return false;
}

bool crowd_is_steady(const struct crowd *crowd, const char *worker)
{
	for (uint32_t i = 0; i < crowd->count; i++) {
		const struct actor *actor = &crowd->actors[i];
		if (actor->steady && actor->registered && strcmp(actor->worker, worker) == 0)
			return true;
	}
	return false;
}

void actor_wake_in(struct sim *sim, struct actor *actor, int64_t ms)
{
	actor->wake_ms = sim->clock.true_ms + (ms > 0 ? ms : 1);
	sim_at(sim, actor->wake_ms, AGENDA_ACT, actor->index);
}

/* A steady worker asks again within a tenth of its lease, less eagerly each time. */
int64_t actor_patience_ms(const struct sim *sim, const struct actor *actor, uint32_t tries)
{
	int64_t eager_ms = (int64_t)tries * 200;

	if (actor->steady)
		return actor->lease_ms / 10 < eager_ms ? actor->lease_ms / 10 : eager_ms;
	return sim_paced(sim, 5000) + 200;
}

void actor_reborn(struct sim *sim, struct actor *actor)
{
	(void)sim;
	actor->instance++;
	actor->hold_count = 0;
	actor->unbind_count = 0;
	actor->registered = false;
	actor->has_token = false;
	actor->beat_busy = false;
	actor->claim_busy = false;
	actor->life_busy = false;
	if (actor->kind == ACTOR_WORKER)
		snprintf(actor->worker, sizeof actor->worker, "%s-%u", actor->principal, actor->instance);
}

struct holding *actor_hold(struct actor *actor, struct span id)
{
	for (uint32_t i = 0; i < actor->hold_count; i++) {
		if (span_equal(span_of(actor->holds[i].id), id))
			return &actor->holds[i];
	}
	return NULL;
}

static void forget_unbind(struct actor *actor, const char *id)
{
	for (uint32_t i = 0; i < actor->unbind_count; i++) {
		if (strcmp(actor->unbinds[i], id) == 0)
			memcpy(actor->unbinds[i--], actor->unbinds[--actor->unbind_count], ID_MAX);
	}
}

struct holding *actor_take(struct sim *sim, struct actor *actor, const struct told_claim *claim)
{
	struct holding *hold = actor_hold(actor, span_of(claim->id));

	if (actor->remote) /* what it no longer runs it runs again: an unbind would be about this claim */
		forget_unbind(actor, claim->id);
	if (!hold && actor->hold_count == HOLDS_MAX)
		return NULL; /* it forgets this one, as a program with a bug would */
	if (!hold)
		hold = &actor->holds[actor->hold_count++];
	*hold = (struct holding){
		.seq = claim->seq,
		.fence = claim->fence,
		.since_ms = sim->clock.true_ms,
		.until_ms = sim->clock.true_ms + sim_paced_between(sim, 1000, 100000),
		.bind_due = actor->kind == ACTOR_WORKER,
	};
	id_copy(hold->id, span_of(claim->id));
	return hold;
}

void actor_drop(struct actor *actor, struct holding *hold)
{
	*hold = actor->holds[--actor->hold_count];
}

struct model_task *some_task(struct sim *sim)
{
	struct model *model = &sim->model;

	if (model->live_count > 0 && !rng_chance(&sim->rng, 3))
		return &model->tasks[model->live[rng_below(&sim->rng, model->live_count)]];
	if (model->task_count == 0)
		return NULL;
	uint32_t recent = model->task_count < 64 ? model->task_count : 64;
	return &model->tasks[model->task_count - 1 - rng_below(&sim->rng, recent)];
}

struct model_task *some_rare_task(struct sim *sim)
{
	struct model *model = &sim->model;
	enum task_state state = (enum task_state)rng_below(&sim->rng, TASK_STATE_COUNT);
	uint32_t recent = model->task_count < 64 ? model->task_count : 64;
	uint32_t first = recent > 0 ? rng_below(&sim->rng, recent) : 0;

	for (uint32_t i = 0; i < recent; i++) {
		struct model_task *task = &model->tasks[model->task_count - 1 - (first + i) % recent];
		if (task->fold.task.state == state)
			return task;
	}
	return some_task(sim);
}

void actor_act(struct sim *sim, struct actor *actor)
{
	if (actor->wake_ms != sim->clock.true_ms)
		return;
	actor->wake_ms = INT64_MAX;
	switch (actor->kind) {
	case ACTOR_PRODUCER:
		producer_act(sim, actor);
		return;
	case ACTOR_WORKER:
		worker_act(sim, actor);
		return;
	case ACTOR_CLAIMANT:
	case ACTOR_NAMED:
		claimant_act(sim, actor);
		return;
	case ACTOR_OPERATOR:
		operator_act(sim, actor);
		return;
	case ACTOR_IMPOSTOR:
		impostor_act(sim, actor);
		return;
	}
}

void actor_hear(
	struct sim *sim, struct actor *actor, const struct request *request, const struct reply *reply)
{
	switch (actor->kind) {
	case ACTOR_PRODUCER:
		producer_hear(sim, actor, request, reply);
		return;
	case ACTOR_WORKER:
		worker_hear(sim, actor, request, reply);
		return;
	case ACTOR_CLAIMANT:
	case ACTOR_NAMED:
		claimant_hear(sim, actor, request, reply);
		return;
	case ACTOR_OPERATOR:
	case ACTOR_IMPOSTOR:
		return;
	}
}

void actor_give_up(struct sim *sim, struct actor *actor, const struct request *request)
{
	if (actor->kind == ACTOR_WORKER)
		worker_give_up(sim, actor, request);
	else if (actor->kind == ACTOR_CLAIMANT || actor->kind == ACTOR_NAMED)
		claimant_give_up(sim, actor, request);
}
