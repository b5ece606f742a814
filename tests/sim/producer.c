/*
 * Producers make tasks of every shape and change them later. A key that was used once is sometimes used for
 * another request, and an id that is taken for another task: both must be refused.
 */
#include <stdio.h>

#include "sim/sim.h"

static struct span some_word(struct sim *sim, const struct span *words, uint32_t count, uint32_t none_in)
{
	if (none_in > 1 && !rng_chance(&sim->rng, none_in))
		return (struct span){0};
	return words[rng_below(&sim->rng, count)];
}

static void add_requires(struct sim *sim, struct request *request, struct name_list *list)
{
	*list = request_begin_list(request);
	for (int i = 0; i < WORD_CAPABILITIES; i++) {
		if (rng_chance(&sim->rng, 6))
			request_add(request, list, word_capabilities[i]);
	}
}

static void add_parents(struct sim *sim, struct request *request, struct name_list *parents)
{
	*parents = request_begin_list(request);
	if (!rng_chance(&sim->rng, 4))
		return;
	for (uint32_t left = 1 + rng_below(&sim->rng, 3); left > 0; left--) {
		const struct model_task *parent = some_task(sim);
		if (parent && parent->fold.task.state != TASK_NOWHERE)
			request_add(request, parents, request_text(request, span_of(parent->id)));
	}
}

/* Members and those that wait for them; an account that may be held. */
static void add_flow(struct sim *sim, struct request *request)
{
	struct command_create *create = &request->command.create;

	create->group = some_word(sim, word_groups, WORD_GROUPS, 4);
	create->credential = some_word(sim, word_accounts, WORD_ACCOUNTS, 4);
	create->blocked_by_groups = request_words(request, word_groups, WORD_GROUPS,
		rng_chance(&sim->rng, 8) ? rng_below(&sim->rng, 1 << WORD_GROUPS) : 0);
}

/* Times are by the producer's own idea of the wall clock, which is the server's. */
static void add_times(struct sim *sim, struct command_create *create)
{
	int64_t wall_ms = clocks_now(&sim->clock).wall_ms;

	if (rng_chance(&sim->rng, 5))
		create->not_before_ms = wall_ms + sim_paced_between(sim, -10000, 120000);
	if (rng_chance(&sim->rng, 10))
		create->start_by_ms = wall_ms + sim_paced_between(sim, 1000, 300000);
	if (rng_chance(&sim->rng, 10))
		create->finish_by_ms = wall_ms + sim_paced_between(sim, 1000, 600000);
	if (rng_chance(&sim->rng, 4))
		create->timeout_ms = (uint32_t)sim_paced_between(sim, 5000, 200000);
}

static void add_keys(struct sim *sim, struct actor *actor, struct request *request)
{
	struct command_create *create = &request->command.create;

	if (rng_chance(&sim->rng, 4))
		create->id = request_printf(
			request, "job-%u-%llu", actor->index, (unsigned long long)actor->numbers);
	if (rng_chance(&sim->rng, 5)) {
		create->unique_key = request_printf(request, "key-%u", rng_below(&sim->rng, 12));
		create->on_conflict = (enum on_conflict)rng_below(&sim->rng, CONFLICT_REPLACE + 1);
		create->unique_for_ms = rng_chance(&sim->rng, 3) ? sim_paced_between(sim, 1000, 600000) : 0;
		request->command.oversees = rng_chance(&sim->rng, 2);
	}
	if (rng_chance(&sim->rng, 2))
		create->idempotency_key = request_printf(
			request, "idem-%u-%llu", actor->index, (unsigned long long)actor->numbers);
	for (size_t i = 0; i < sizeof create->fingerprint; i++)
		create->fingerprint[i] = (unsigned char)(actor->numbers >> (i % 8) ^ i);
}

/* Some have stages, some have gates, some have both; a workflow always has the first. */
static void add_workflow(struct sim *sim, struct request *request)
{
	struct command_create *create = &request->command.create;
	uint32_t gates = 0;

	create->autonomous = rng_chance(&sim->rng, 4);
	if (rng_chance(&sim->rng, 6)) {
		create->workflow = rng_chance(&sim->rng, 2) ? WORKFLOW_AUTOPILOT : WORKFLOW_AUTOPILOT_DEPLOY;
		gates = 1;
	}
	if (rng_chance(&sim->rng, 12))
		gates |= 2;
	create->gates = request_words(request, word_gates, WORD_GATES, gates);
}

static void create(struct sim *sim, struct actor *actor)
{
	uint32_t slot;
	struct request *request = network_request(sim, actor, COMMAND_CREATE, &slot);
	struct command_create *create = &request->command.create;

	actor->numbers++;
	create->queue = some_word(sim, word_queues, WORD_QUEUES, 1);
	create->owner = some_word(sim, word_slots, WORD_SLOTS, 6);
	create->executor = some_word(sim, word_executors, WORD_EXECUTORS, 3);
	create->priority = (int32_t)rng_between(&sim->rng, -2, 2) * 50;
	create->max_attempts = rng_chance(&sim->rng, 3) ? 1 + rng_below(&sim->rng, 4) : 0;
	create->parked = rng_chance(&sim->rng, 8);
	create->body = request_printf(
		request, "\"title\":\"t\",\"payload\":%llu", (unsigned long long)actor->numbers);
	create->concurrency_key = some_word(sim, word_keys, WORD_KEYS, 2);
	if (rng_chance(&sim->rng, 5)) /* a session, labelled like its task */
		create->spawn.spec = SPAN("{}");
	add_requires(sim, request, &create->requires);
	add_parents(sim, request, &create->parents);
	create->runs_anyway = create->parents.count > 0 && rng_chance(&sim->rng, 3);
	add_flow(sim, request);
	add_times(sim, create);
	add_keys(sim, actor, request);
	add_workflow(sim, request);
	network_send(sim, slot);
}

/* E2: the key of an earlier request, for another one. */
static void misuse_key(struct sim *sim, struct actor *actor)
{
	uint32_t slot;

	if (actor->last_key[0] == 0)
		return;
	struct request *request = network_request(sim, actor, COMMAND_CREATE, &slot);
	struct command_create *create = &request->command.create;
	create->queue = word_queues[0];
	create->body = SPAN("\"title\":\"again\"");
	create->idempotency_key = request_text(request, span_of(actor->last_key));
	memset(create->fingerprint, 0xff, sizeof create->fingerprint);
	network_send(sim, slot);
}

/* An id that is taken, by somebody who forgot: it must be refused whatever became of its task. Ids of the store's
 * own making are left alone: once purged, they would be a caller's own. */
static void create_again(struct sim *sim, struct actor *actor)
{
	const struct model_task *task = NULL;
	uint32_t slot;

	for (uint32_t tries = 0; tries < 8; tries++) {
		task = some_rare_task(sim);
		if (task && task->fold.task.state != TASK_NOWHERE && strncmp(task->id, "job-", 4) == 0)
			break;
		task = NULL;
	}
	if (!task)
		return;
	struct request *request = network_request(sim, actor, COMMAND_CREATE, &slot);
	struct command_create *create = &request->command.create;
	create->queue = some_word(sim, word_queues, WORD_QUEUES, 1);
	create->body = SPAN("\"title\":\"again\"");
	create->id = request_text(request, span_of(task->id));
	network_send(sim, slot);
}

static void update_names(struct sim *sim, struct request *request)
{
	struct command_update *update = &request->command.update;
	struct task_patch *patch = &update->patch;

	patch->set_owner = rng_chance(&sim->rng, 8);
	update->owner = some_word(sim, word_slots, WORD_SLOTS, 2);
	patch->set_queue = rng_chance(&sim->rng, 6);
	update->queue = some_word(sim, word_queues, WORD_QUEUES, 1);
	patch->set_executor = rng_chance(&sim->rng, 8);
	update->executor = some_word(sim, word_executors, WORD_EXECUTORS, 2);
	patch->set_concurrency_key = rng_chance(&sim->rng, 6);
	update->concurrency_key = some_word(sim, word_keys, WORD_KEYS, 2);
	patch->set_requires = rng_chance(&sim->rng, 8);
	add_requires(sim, request, &update->requires);
}

static void update(struct sim *sim, struct actor *actor)
{
	const struct model_task *task = some_task(sim);
	int64_t wall_ms = clocks_now(&sim->clock).wall_ms;
	uint32_t slot;

	if (!task)
		return;
	struct request *request = network_request(sim, actor, COMMAND_UPDATE, &slot);
	struct command_update *update = &request->command.update;
	struct task_patch *patch = &update->patch;

	request->command.task = request_text(request, span_of(task->id));
	update_names(sim, request);
	patch->set_priority = rng_chance(&sim->rng, 2);
	patch->priority = (int32_t)rng_between(&sim->rng, -2, 2) * 50;
	patch->set_max_attempts = rng_chance(&sim->rng, 6);
	patch->max_attempts = rng_below(&sim->rng, 5);
	patch->set_timeout = rng_chance(&sim->rng, 6);
	patch->timeout_ms = (uint32_t)sim_paced_between(sim, 5000, 200000);
	patch->set_finish_by = rng_chance(&sim->rng, 12);
	patch->finish_by_ms = rng_chance(&sim->rng, 2) ? 0 : wall_ms + sim_paced_between(sim, 1000, 300000);
	patch->set_start_by = rng_chance(&sim->rng, 12);
	patch->start_by_ms = rng_chance(&sim->rng, 2) ? 0 : wall_ms + sim_paced_between(sim, 1000, 300000);
	patch->set_not_before = rng_chance(&sim->rng, 8);
	patch->not_before_ms = rng_chance(&sim->rng, 2) ? 0 : wall_ms + sim_paced_between(sim, 1000, 60000);
	patch->set_parents = rng_chance(&sim->rng, 6);
	if (patch->set_parents)
		add_parents(sim, request, &update->parents);
	patch->set_keyed = rng_chance(&sim->rng, 8);
	if (rng_chance(&sim->rng, 2))
		update->unique_key = request_printf(request, "key-%u", rng_below(&sim->rng, 12));
	if (rng_chance(&sim->rng, 8)) {
		update->status = (enum task_status)rng_between(&sim->rng, STATUS_TODO, STATUS_DONE);
		request->command.by_name = true;
	}
	update->set_body = rng_chance(&sim->rng, 4);
	update->body = SPAN("\"title\":\"changed\"");
	request->command.if_version = rng_chance(&sim->rng, 4) ? task->fold.task.version : 0;
	network_send(sim, slot);
}

void producer_act(struct sim *sim, struct actor *actor)
{
	if (sim->calm)
		return;
	if (rng_chance(&sim->rng, 6))
		update(sim, actor);
	else if (rng_chance(&sim->rng, 30))
		misuse_key(sim, actor);
	else if (rng_chance(&sim->rng, 15))
		create_again(sim, actor);
	else if (sim->model.live_count < sim->options.live_max)
		create(sim, actor);
	actor_wake_in(sim, actor, sim_paced_between(sim, 2000, 24000));
}

void producer_hear(
	struct sim *sim, struct actor *actor, const struct request *request, const struct reply *reply)
{
	struct span key = request->command.create.idempotency_key;

	if (reply->kind != COMMAND_CREATE || key.len == 0)
		return;
	bool misused = request->command.create.fingerprint[0] == 0xff &&
		request->command.create.fingerprint[1] == 0xff;
	if (misused && reply->refusal == REFUSED_NOTHING && reply->era == sim->model.era &&
		sim->options.wall_jump_max_ms < sim->options.retention.idempotency_ms / 100 &&
		reply->seq != 0 && actor->last_key_era == sim->model.era &&
		span_equal(key, span_of(actor->last_key)))
		sim_violate(sim, "E2", reply->seq, "a key was accepted for another request");
	if (!misused && reply->refusal == REFUSED_NOTHING) {
		id_copy(actor->last_key, key);
		actor->last_key_era = reply->era;
	}
}
