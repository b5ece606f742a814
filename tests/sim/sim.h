/*
 * One simulated world: a server over the memory store, a crowd of actors, a bad network between them, and a
 * model that watches every event. One thread, virtual time, one source of randomness: a seed is a replay.
 *
 *   sim.c      the agenda and its steps       server.c   turns, starts, crashes     faults.c  what goes wrong
 *   actor.c    what all actors share          producer.c worker.c claimant.c operator.c
 *   wire.c     the protocol of remote workers, through the API of the product
 *   network.c  what travels                   model.c    the events, folded         judge.c   results against it
 *   audit.c    rows, memory and leases        calm.c     the end: everything must come to rest
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"
#include "base/rng.h"
#include "history/history.h"
#include "sim/actor.h"
#include "sim/clock.h"
#include "sim/coverage.h"
#include "sim/faults.h"
#include "sim/model.h"
#include "sim/network.h"
#include "sim/options.h"
#include "sim/server.h"

/* What an entry of the agenda is about; the number that comes with it is a slot or an actor. */
enum agenda {
	AGENDA_ARRIVE = 1, /* a request reaches the server */
	AGENDA_HEAR,       /* a reply reaches its actor */
	AGENDA_PATIENCE,   /* an actor has waited long enough */
	AGENDA_ACT,        /* an actor wants to do something */
	AGENDA_TURN,       /* the server takes what has arrived, or a timer is due */
	AGENDA_SWEEP,      /* its upkeep */
	AGENDA_BACK,       /* it returns */
	AGENDA_RELIEF,     /* the disk has room again */
};

struct violation {
	bool found;
	const char *invariant;
	char sentence[8192];
	int64_t task;
};

/* An occurrence that made a task. */
struct fired {
	int64_t planned_ms;
	uint32_t schedule; /* of its id */
};

enum {
	SIM_FIRED_MAX = 4096,
};

struct sim {
	struct fired fired[SIM_FIRED_MAX];
	uint32_t fired_count;
	struct sim_options options;
	struct rng rng;
	struct clocks clock;
	struct heap agenda;
	struct network network;
	struct server server;
	struct crowd crowd;
	struct model model;
	struct history history;
	struct faults faults;
	struct coverage *coverage;
	struct violation violation;
	uint64_t step;
	bool calm; /* faults have stopped and everybody behaves */
};

/* Run one seed. 0, or -EPROTO: a violation, printed. */
int sim_run(const struct sim_options *options, struct coverage *coverage, uint64_t *ret_hash,
	uint64_t *ret_steps);

/* One entry of the agenda; false when a violation was found. */
bool sim_step(struct sim *sim);

void sim_at(struct sim *sim, int64_t true_ms, enum agenda what, uint32_t number);

/* The first violation stands. Does not return control to the loop: whoever finds one goes on and returns. */
void sim_violate(struct sim *sim, const char *invariant, int64_t task, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* A time as actors feel it, at the pace of the run. */
int64_t sim_paced(const struct sim *sim, int64_t ms);
int64_t sim_paced_between(struct sim *sim, int64_t lo_ms, int64_t hi_ms);

/* The simulator itself cannot go on. */
_Noreturn void sim_abort(const char *why);
