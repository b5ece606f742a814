#include "sim/network.h"

#include <assert.h>

#include "sim/actor.h"
#include "sim/sim.h"

enum {
	TRIES_MAX = 6,
	TRIES_MAX_STEADY = 1000,
	TRAVEL_MAX_MS = 40,
};

void network_init(struct network *network)
{
	slab_init(&network->requests, sizeof(struct request));
	slab_init(&network->replies, sizeof(struct reply));
}

void network_done(struct network *network)
{
	slab_done(&network->requests);
	slab_done(&network->replies);
}

struct request *network_at(struct sim *sim, uint32_t slot)
{
	return slab_at(&sim->network.requests, slot);
}

void network_unref(struct sim *sim, uint32_t slot)
{
	struct request *request = network_at(sim, slot);

	assert(request->refs > 0);
	if (--request->refs == 0)
		slab_free(&sim->network.requests, slot);
}

struct request *network_request(
	struct sim *sim, struct actor *actor, enum command_kind kind, uint32_t *ret_slot)
{
	if (slab_alloc(&sim->network.requests, ret_slot) < 0)
		sim_abort("no memory");

	struct request *request = network_at(sim, *ret_slot);

	request->actor = actor->index;
	request->instance = actor->instance;
	request->command.kind = kind;
	request->command.actor = span_of(actor->principal);
	return request;
}

/* How long a message travels; a long delay is what reorders. */
static int64_t travel_ms(struct sim *sim, const struct actor *actor)
{
	const struct sim_options *options = &sim->options;

	if (!sim->calm && !actor->steady && rng_chance(&sim->rng, options->delay))
		return rng_between(&sim->rng, 0, options->delay_max_ms);
	return rng_between(&sim->rng, 1, TRAVEL_MAX_MS);
}

/* A steady actor sits beside the server: its messages arrive if the server is there. */
static bool is_lost(struct sim *sim, const struct actor *actor, uint32_t one_in)
{
	return !sim->calm && !actor->steady && rng_chance(&sim->rng, one_in);
}

static void launch(struct sim *sim, uint32_t slot)
{
	struct request *request = network_at(sim, slot);
	const struct actor *actor = &sim->crowd.actors[request->actor];
	int copies = is_lost(sim, actor, sim->options.lose_request) ? 0 : 1;

	copies += is_lost(sim, actor, sim->options.duplicate);
	for (int i = 0; i < copies; i++) {
		request->refs++;
		sim_at(sim, sim->clock.true_ms + travel_ms(sim, actor), AGENDA_ARRIVE, slot);
	}
	request->tries++;
	sim_at(sim, sim->clock.true_ms + actor_patience_ms(sim, actor, request->tries), AGENDA_PATIENCE,
		slot);
}

void network_send(struct sim *sim, uint32_t slot)
{
	struct request *request = network_at(sim, slot);
	const struct actor *actor = &sim->crowd.actors[request->actor];

	request->refs = 1; /* the actor's, until it is answered or gives up */
	request->sent_ms = sim->clock.true_ms;
	if (actor->remote)
		wire_speak(request, actor);
	launch(sim, slot);
}

void network_arrive(struct sim *sim, uint32_t slot)
{
	network_at(sim, slot)->arrivals++;
	if (!server_receive(sim, slot))
		network_unref(sim, slot);
}

void network_answer(struct sim *sim, uint32_t slot, const struct reply *answer)
{
	struct request *request = network_at(sim, slot);
	const struct actor *actor = &sim->crowd.actors[request->actor];
	uint32_t reply_slot;

	if (is_lost(sim, actor, sim->options.lose_reply))
		return;
	if (slab_alloc(&sim->network.replies, &reply_slot) < 0)
		sim_abort("no memory");
	struct reply *reply = slab_at(&sim->network.replies, reply_slot);
	*reply = *answer;
	reply->request = slot;
	reply->era = sim->model.era;
	request->refs++;
	sim_at(sim, sim->clock.true_ms + travel_ms(sim, actor), AGENDA_HEAR, reply_slot);
}

/* Is there still somebody waiting for it? */
static bool is_awaited(const struct request *request, const struct actor *actor)
{
	return !request->settled && request->instance == actor->instance;
}

void network_hear(struct sim *sim, uint32_t slot)
{
	struct reply *reply = slab_at(&sim->network.replies, slot);
	struct request *request = network_at(sim, reply->request);
	struct actor *actor = &sim->crowd.actors[request->actor];

	if (is_awaited(request, actor)) {
		request->settled = true;
		model_acknowledge(sim, request, reply);
		actor_hear(sim, actor, request, reply);
	}
	network_unref(sim, reply->request);
	slab_free(&sim->network.replies, slot);
}

void network_lose_patience(struct sim *sim, uint32_t slot)
{
	struct request *request = network_at(sim, slot);
	struct actor *actor = &sim->crowd.actors[request->actor];
	uint32_t limit = actor->steady || sim->calm ? TRIES_MAX_STEADY : TRIES_MAX;

	if (is_awaited(request, actor) && request->tries < limit) {
		launch(sim, slot);
		return;
	}
	if (is_awaited(request, actor)) {
		request->settled = true;
		actor_give_up(sim, actor, request);
	}
	network_unref(sim, slot);
}
