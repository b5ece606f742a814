/*
 * Workers that beat: they register, renew their lease, tell what they run until that is acknowledged, crash,
 * hang past their lease, leave, and come back under a new id.
 */
#include <stdio.h>

#include "sim/sim.h"

void worker_init(struct sim *sim, struct actor *actor)
{
	actor->capabilities = rng_below(&sim->rng, 1u << WORD_CAPABILITIES);
	actor->any_executor = rng_chance(&sim->rng, 2);
	actor->executors = rng_below(&sim->rng, 1u << WORD_EXECUTORS);
	actor->slot = rng_chance(&sim->rng, 2) ? -1 : (int)rng_below(&sim->rng, WORD_SLOTS);
	actor->max = 1 + rng_below(&sim->rng, 3);
	actor->lease_ms = sim_paced_between(sim, 10000, 300000);
	if (actor->lease_ms < sim->options.rules.lease_min_ms)
		actor->lease_ms = sim->options.rules.lease_min_ms;
	actor_reborn(sim, actor);
}

static void describe(struct request *request, const struct actor *actor)
{
	struct command_beat *beat = &request->command.beat;

	beat->describes = true;
	if (actor->slot >= 0)
		beat->slot = word_slots[actor->slot];
	beat->process = (struct command_process){
		word_host_of(span_of(actor->worker)), 1, 2, actor->index + 1, actor->instance};
	if (actor->replaces && actor->instance > 1)
		beat->replaces = (struct command_replaces){
			request_printf(request, "%s-%u", actor->principal, actor->instance - 1),
			actor->index + 1, actor->instance - 1, false};
	beat->capabilities =
		request_words(request, word_capabilities, WORD_CAPABILITIES, actor->capabilities);
	beat->executors = request_words(request, word_executors, WORD_EXECUTORS, actor->executors);
	beat->any_executor = actor->any_executor;
	beat->max_concurrent = actor->max;
	beat->metadata = SPAN("{\"pid\":1}");
}

/* A registration, or the first beat of an unknown key, which is one too. */
static void come_to_life(struct sim *sim, struct actor *actor)
{
	uint32_t slot;
	bool beats = rng_chance(&sim->rng, 3);
	struct request *request = network_request(sim, actor, beats ? COMMAND_BEAT : COMMAND_REGISTER, &slot);

	request->command.worker = request_text(request, span_of(actor->worker));
	request->command.beat.lease_ms = actor->lease_ms;
	describe(request, actor);
	actor->life_busy = true;
	network_send(sim, slot);
}

/* A remote worker does not contradict itself within one beat. */
static bool is_unbinding(const struct actor *actor, const struct holding *hold)
{
	bool found = false;

	for (uint32_t i = 0; i < actor->unbind_count; i++)
		found |= strcmp(actor->unbinds[i], hold->id) == 0;
	return actor->remote && found;
}

/* Everything it runs that was not acknowledged yet; sometimes all of it, because twice is once. */
static void add_deltas(struct sim *sim, struct actor *actor, struct request *request)
{
	struct command_beat *beat = &request->command.beat;
	bool all = rng_chance(&sim->rng, 10);

	beat->bound = request_begin_list(request);
	for (uint32_t i = 0; i < actor->hold_count; i++) {
		const struct holding *hold = &actor->holds[i];
		if ((hold->bind_due || all) && !is_unbinding(actor, hold))
			request_add(request, &beat->bound, request_text(request, span_of(hold->id)));
	}
	beat->unbound = request_begin_list(request);
	for (uint32_t i = 0; i < actor->unbind_count; i++)
		request_add(request, &beat->unbound, request_text(request, span_of(actor->unbinds[i])));
}

static void beat(struct sim *sim, struct actor *actor)
{
	uint32_t slot;
	struct request *request = network_request(sim, actor, COMMAND_BEAT, &slot);
	struct command_beat *beat = &request->command.beat;

	request->command.worker = request_text(request, span_of(actor->worker));
	beat->has_token = actor->has_token;
	beat->token = actor->token;
	beat->lease_ms = rng_chance(&sim->rng, 4) ? 0 : actor->lease_ms;
	if (rng_chance(&sim->rng, 20))
		describe(request, actor);
	add_deltas(sim, actor, request);
	actor->beat_busy = true;
	network_send(sim, slot);
}

static void leave(struct sim *sim, struct actor *actor)
{
	uint32_t slot;
	struct request *request = network_request(sim, actor, COMMAND_LEAVE, &slot);

	request->command.worker = request_text(request, span_of(actor->worker));
	request->command.leave = WORKER_SHUTDOWN;
	actor->life_busy = true;
	network_send(sim, slot);
}

static void crash(struct sim *sim, struct actor *actor)
{
	actor_reborn(sim, actor);
	actor->replaces = true;
	actor_wake_in(sim, actor, sim_paced_between(sim, 500, 60000));
}

/* What befalls a worker that is not steady; true: nothing else happens now. */
static bool misfortune(struct sim *sim, struct actor *actor)
{
	if (sim->calm || actor->steady)
		return false;
	if (rng_chance(&sim->rng, 150)) {
		crash(sim, actor);
		return true;
	}
	if (rng_chance(&sim->rng, 120)) { /* hangs, perhaps past its lease */
		actor_wake_in(sim, actor, sim_paced_between(sim, 1000, 60000) + actor->lease_ms);
		return true;
	}
	return false;
}

/* Not run any more, and no end reported: an unbind, which starts a clock. */
static void abandon_one(struct sim *sim, struct actor *actor)
{
	if (sim->calm || actor->hold_count == 0 || actor->unbind_count == HOLDS_MAX ||
		!rng_chance(&sim->rng, 60))
		return;
	struct holding *hold = &actor->holds[rng_below(&sim->rng, actor->hold_count)];
	if (hold->busy || hold->bind_due)
		return;
	id_copy(actor->unbinds[actor->unbind_count++], span_of(hold->id));
	hold->bound = false;
	if (rng_chance(&sim->rng, 2))
		actor_drop(actor, hold);
}

static void work(struct sim *sim, struct actor *actor)
{
	uint32_t slot;

	abandon_one(sim, actor);
	for (uint32_t i = 0; i < actor->hold_count; i++)
		hold_step(sim, actor, &actor->holds[i]);
	if (!actor->claim_busy && !sim->calm && actor->hold_count < actor->max && rng_chance(&sim->rng, 2)) {
		claim_request(sim, actor, &slot);
		network_send(sim, slot);
	}
}

/* Its lease may be over by now, and its work somebody else's: it ends it, and says so when it is heard again. */
static void stop_itself(struct actor *actor)
{
	while (actor->hold_count > 0) {
		if (actor->unbind_count < HOLDS_MAX)
			id_copy(actor->unbinds[actor->unbind_count++], span_of(actor->holds[0].id));
		actor_drop(actor, &actor->holds[0]);
	}
}

void worker_act(struct sim *sim, struct actor *actor)
{
	int64_t now_ms = sim->clock.true_ms;

	if (actor->remote && actor->registered && now_ms >= actor->stops_at_ms)
		stop_itself(actor);

	if (misfortune(sim, actor))
		return;
	if (!actor->registered) {
		if (sim->calm)
			return; /* it does not come back */
		if (!actor->life_busy)
			come_to_life(sim, actor);
		actor_wake_in(sim, actor, sim_paced_between(sim, 500, 3000));
		return;
	}
	if (!actor->beat_busy && now_ms >= actor->beat_at_ms)
		beat(sim, actor);
	work(sim, actor);
	bool goes = sim->calm ? actor->hold_count == 0 : rng_chance(&sim->rng, 200);
	if (goes && !actor->life_busy)
		leave(sim, actor);
	int64_t rest_ms = sim_paced_between(sim, 2000, 20000);
	if (!actor->beat_busy && actor->beat_at_ms - now_ms < rest_ms)
		rest_ms = actor->beat_at_ms - now_ms;
	actor_wake_in(sim, actor, rest_ms);
}

/* ---- replies -------------------------------------------------------------------------------------- */

/* A quarter of the lease; those that are not steady let it slide. */
static void plan_beat(struct sim *sim, struct actor *actor, int64_t granted_ms)
{
	int64_t rest_ms = granted_ms / 4;

	if (!actor->steady)
		rest_ms = rng_between(&sim->rng, granted_ms / 8, granted_ms * 3 / 4);
	actor->beat_at_ms = sim->clock.true_ms + rest_ms;
}

/* Too early to say more than "soon": it wakes at once to beat. */
static void beat_soon(struct sim *sim, struct actor *actor, int64_t ms)
{
	actor->beat_at_ms = sim->clock.true_ms + ms;
	actor_wake_in(sim, actor, ms);
}

static void forget_lost(struct actor *actor, const struct reply *reply)
{
	for (uint32_t i = 0; i < reply->lost_count; i++) {
		struct holding *hold = actor_hold(actor, span_of(reply->lost[i]));
		if (hold)
			actor_drop(actor, hold);
	}
	for (uint32_t i = 0; i < reply->stop_count; i++) {
		struct holding *hold = actor_hold(actor, span_of(reply->stop[i]));
		if (hold)
			hold->stop = true;
	}
	for (uint32_t i = 0; i < reply->park_count; i++) {
		struct holding *hold = actor_hold(actor, span_of(reply->park[i]));
		if (hold)
			hold->park = true;
	}
}

/* What was acknowledged is the claim it had when it beat: one that was taken up again since is another. */
static bool is_about(const struct actor *actor, const struct holding *hold, const struct request *request)
{
	return !actor->remote || hold->since_ms < request->sent_ms;
}

static void forget_deltas(struct actor *actor, const struct request *request)
{
	const struct command_beat *beat = &request->command.beat;

	for (uint32_t i = 0; i < beat->bound.count; i++) {
		struct holding *hold = actor_hold(actor, beat->bound.items[i]);
		if (hold && is_about(actor, hold, request)) {
			hold->bind_due = false;
			hold->bound = true;
		}
	}
	for (uint32_t i = 0; i < beat->unbound.count; i++) {
		for (uint32_t j = 0; j < actor->unbind_count; j++) {
			if (span_equal(span_of(actor->unbinds[j]), beat->unbound.items[i]))
				memcpy(actor->unbinds[j], actor->unbinds[--actor->unbind_count], ID_MAX);
		}
	}
}

static void accepted(
	struct sim *sim, struct actor *actor, const struct request *request, const struct reply *reply)
{
	actor->registered = true;
	actor->has_token = true;
	actor->token = reply->token;
	memcpy(actor->token_text, reply->token_text, sizeof actor->token_text);
	actor->lives_until_ms = request->sent_ms + reply->granted_ms;
	actor->stops_at_ms = request->sent_ms + reply->granted_ms / 10 * 9;
	actor->lives_era = reply->era;
	actor->replaces = false;
	forget_deltas(actor, request);
	forget_lost(actor, reply);
	plan_beat(sim, actor, reply->granted_ms);
	if (reply->worker_state == WORKER_TERMINATING && !actor->life_busy && actor->hold_count == 0)
		leave(sim, actor);
	if (actor->steady) /* the old plan may have been later */
		actor_wake_in(sim, actor, sim_paced_between(sim, 100, 1000));
}

static void refused(struct sim *sim, struct actor *actor, const struct reply *reply)
{
	switch (reply->refusal) {
	case REFUSED_TOKEN_MISMATCH: /* our last reply was lost: it stands there */
		actor->registered = true;
		actor->has_token = true;
		actor->token = reply->token;
		memcpy(actor->token_text, reply->token_text, sizeof actor->token_text);
		beat_soon(sim, actor, 1);
		return;
	case REFUSED_WORKER_INACTIVE:
		crash(sim, actor);
		return;
	case REFUSED_SLOT_TAKEN:
		actor->replaces = rng_chance(&sim->rng, 6);
		if (!actor->steady)
			actor->slot = rng_chance(&sim->rng, 3) ? -1 : (int)rng_below(&sim->rng, WORD_SLOTS);
		beat_soon(sim, actor, actor->lease_ms / 10);
		return;
	default:
		beat_soon(sim, actor, actor->lease_ms / 10);
	}
}

void worker_hear(
	struct sim *sim, struct actor *actor, const struct request *request, const struct reply *reply)
{
	switch (reply->kind) {
	case COMMAND_CLAIM:
	case COMMAND_CLAIM_NEXT:
		claim_heard(sim, actor, reply);
		if (reply->claim_count > 0 && !actor->beat_busy) /* what it runs is told soon */
			beat_soon(sim, actor, sim_paced_between(sim, 100, 5000));
		return;
	case COMMAND_REGISTER:
	case COMMAND_BEAT:
		actor->life_busy = false;
		actor->beat_busy = false;
		if (reply->refusal == REFUSED_NOTHING)
			accepted(sim, actor, request, reply);
		else
			refused(sim, actor, reply);
		return;
	case COMMAND_LEAVE:
		actor->life_busy = false;
		if (reply->refusal == REFUSED_NOTHING)
			crash(sim, actor);
		return;
	default:
		hold_heard(sim, actor, request, reply);
	}
}

void worker_give_up(struct sim *sim, struct actor *actor, const struct request *request)
{
	switch (request->command.kind) {
	case COMMAND_BEAT:
	case COMMAND_REGISTER:
	case COMMAND_LEAVE:
		actor->life_busy = false;
		actor->beat_busy = false;
		return;
	default:
		claimant_give_up(sim, actor, request);
	}
}
