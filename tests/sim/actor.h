/*
 * The crowd: producers, workers of three kinds, operators. Each acts when its time has come, hears replies,
 * and knows only what it was told.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/request.h"

struct sim;

enum actor_kind {
	ACTOR_PRODUCER,
	ACTOR_WORKER,   /* beats */
	ACTOR_CLAIMANT, /* plain: claim leases only */
	ACTOR_NAMED,    /* known by a name, as old doors do */
	ACTOR_OPERATOR,
	ACTOR_IMPOSTOR,
};

enum {
	HOLDS_MAX = 8,
	ACTORS_MAX = 48,
};

/* A task that a worker believes to hold. */
struct holding {
	char id[ID_MAX];
	int64_t seq;
	uint64_t fence;
	int64_t since_ms; /* true time at which it was told of it */
	int64_t until_ms; /* … and at which its work is finished */
	bool bind_due;    /* to be told with the next beats, until one is acknowledged */
	bool bound;       /* … as it was */
	bool busy;        /* a request about it is under way */
	bool end_sent; /* it said that it ended; of a copy of that which arrived it may have heard nothing */
	bool stop;     /* it was told to stop it */
	bool park;     /* … to let its question wait without it */
	bool gated;    /* it cannot call it done: others judge */
};

struct actor {
	enum actor_kind kind;
	uint32_t index, instance;
	bool steady; /* never fails, and its network is sound: it must never be called lost */
	bool remote; /* it speaks the real protocol (wire.c) and stops by itself before its lease can be over */
	char principal[16];
	char worker[ID_MAX];
	int64_t wake_ms;  /* true time */
	uint64_t numbers; /* for ids, keys and requestIds of its own */

	/* workers */
	uint32_t capabilities, executors; /* bit per word */
	bool any_executor;
	int slot; /* -1 = none */
	uint32_t max;
	int64_t lease_ms;
	bool registered, has_token;
	uint64_t token;
	char token_text[TOKEN_TEXT_MAX];
	int64_t lives_until_ms; /* true time: by the last answer, counted from before it was asked */
	int64_t stops_at_ms;
	uint32_t lives_era; /* the life of the store in which that was said */
	int64_t beat_at_ms, hung_until_ms;
	bool beat_busy, claim_busy, life_busy;
	bool replaces; /* it knows that its predecessor in the slot is dead */
	struct holding holds[HOLDS_MAX];
	uint32_t hold_count;
	char unbinds[HOLDS_MAX][ID_MAX]; /* no longer run; told until acknowledged */
	uint32_t unbind_count;

	/* producers: the last request, to be repeated with a twist */
	char last_key[ID_MAX];
	uint32_t last_key_era;
};

struct crowd {
	struct actor actors[ACTORS_MAX];
	uint32_t count;
};

void crowd_init(struct sim *sim);

/* The remote worker of that id as it lives now, or NULL. */
const struct actor *crowd_remote(const struct crowd *crowd, struct span worker);

/* Does it believe to hold that task, and has every reason to? */
bool actor_is_told_to_hold(const struct sim *sim, const struct actor *actor, int64_t seq, uint64_t fence);

/* Is that the worker id of an actor that never misses a beat, since it knows that it is registered? */
bool crowd_is_steady(const struct crowd *crowd, const char *worker);

/* Entry of the agenda: the actor's time has come. */
void actor_act(struct sim *sim, struct actor *actor);
void actor_hear(
	struct sim *sim, struct actor *actor, const struct request *request, const struct reply *reply);
void actor_give_up(struct sim *sim, struct actor *actor, const struct request *request);

void actor_wake_in(struct sim *sim, struct actor *actor, int64_t ms);
int64_t actor_patience_ms(const struct sim *sim, const struct actor *actor, uint32_t tries);

/* A new instance: whatever was under way is none of its business. */
void actor_reborn(struct sim *sim, struct actor *actor);

struct holding *actor_hold(struct actor *actor, struct span id);
struct holding *actor_take(struct sim *sim, struct actor *actor, const struct told_claim *claim);
void actor_drop(struct actor *actor, struct holding *hold);

/* What claims and reports of all kinds of workers share (claimant.c). */
struct request *claim_request(struct sim *sim, struct actor *actor, uint32_t *ret_slot);
void hold_step(struct sim *sim, struct actor *actor, struct holding *hold);
void hold_heard(
	struct sim *sim, struct actor *actor, const struct request *request, const struct reply *reply);
void claim_heard(struct sim *sim, struct actor *actor, const struct reply *reply);

/* Each kind's own. */
void producer_act(struct sim *sim, struct actor *actor);
void producer_hear(
	struct sim *sim, struct actor *actor, const struct request *request, const struct reply *reply);
void worker_init(struct sim *sim, struct actor *actor);
void worker_act(struct sim *sim, struct actor *actor);
void worker_hear(
	struct sim *sim, struct actor *actor, const struct request *request, const struct reply *reply);
void worker_give_up(struct sim *sim, struct actor *actor, const struct request *request);
void claimant_act(struct sim *sim, struct actor *actor);
void claimant_hear(
	struct sim *sim, struct actor *actor, const struct request *request, const struct reply *reply);
void claimant_give_up(struct sim *sim, struct actor *actor, const struct request *request);
void operator_act(struct sim *sim, struct actor *actor);
void impostor_act(struct sim *sim, struct actor *actor);

/* Anything but what is there: a task of the model, NULL if there is none. */
struct model_task;
struct model_task *some_task(struct sim *sim);

/* One of a state that is drawn first (purged is one), so that what is soon over is met as often as what lasts. */
struct model_task *some_rare_task(struct sim *sim);
