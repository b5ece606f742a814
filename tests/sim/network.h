/*
 * The network between actors and server: it loses, doubles, delays and reorders requests and replies. An
 * actor waits for a reply for a while, sends the very same request again, and gives up in the end.
 */
#pragma once

#include "base/slab.h"
#include "sim/request.h"

struct sim;
struct actor;

struct network {
	struct slab requests;
	struct slab replies;
};

void network_init(struct network *network);
void network_done(struct network *network);

/* A request of this actor, to be filled in and then sent. */
struct request *network_request(
	struct sim *sim, struct actor *actor, enum command_kind kind, uint32_t *ret_slot);
void network_send(struct sim *sim, uint32_t slot);

struct request *network_at(struct sim *sim, uint32_t slot);
void network_unref(struct sim *sim, uint32_t slot);

/* The server answers; or hangs up without an answer. */
void network_answer(struct sim *sim, uint32_t slot, const struct reply *answer);

/* Entries of the agenda. */
void network_arrive(struct sim *sim, uint32_t slot);
void network_hear(struct sim *sim, uint32_t slot);
void network_lose_patience(struct sim *sim, uint32_t slot);
