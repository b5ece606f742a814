/*
 * Pools: programs that stay, and work off one task after the other (spec/stdio.md). Here the machine of pool_worker.h is run
 * over processes: one for each seat of each executor of kind "pool".
 *
 *	run ──pools_submit──▶ waits for a seat whose worker has its module ──▶ started ──▶ progress, wrote … ──▶ ended
 *	                       └──nobody here has it, or can be started────────────────────────────────────────▶
 *
 * A seat is a slot of the server, `<worker>/<executor>-<n>`: the server counts its crashes and quarantines it. <worker> is
 * the slot of the supervisor, or else its name, because its id is another one after a restart.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "worker/executor.h"
#include "worker/verdict.h"

struct supervisor;
struct pools;
struct pool_seat;

struct pool_job_end {
	bool stopped; /* as it was told to, or because its lease was over: the rest is not set */
	bool lapsed;  /* with stopped: the latter */
	enum report_verb verb;
	struct span members; /* of the report, besides workerId and fence */
};

/* All but ended() come from the loop; ended() once, also from within pools_submit(). */
struct pool_job_events {
	void (*started)(void *context);
	void (*progress)(void *context, int percent, struct span note); /* percent -1: not said */
	void (*wrote)(void *context, struct span bytes);                /* on standard error */
	void (*ended)(void *context, const struct pool_job_end *end);
};

/* The owner's memory until ended(), or until pools_withdraw() says that it was not started. */
struct pool_job {
	const struct executor *executor;
	const char *task;           /* its id */
	const char *module;         /* NULL: the only one that the worker has */
	struct span text;           /* the task as JSON */
	int64_t deadline_ms;        /* wall */
	struct process_lease lease; /* kept by pool_job_push() */
	const struct pool_job_events *events;
	void *context;
	/* of the pools */
	struct pool_seat *seat; /* NULL: it waits */
	struct pool_job *next;
	bool waits;
	int64_t since_ms;
};

/* One seat for each worker of each pool in the settings. NULL: no memory. */
struct pools *pools_new(struct supervisor *supervisor);

/* The handles must have been closed: after pools_close() the loop has run. */
void pools_free(struct pools *pools);
void pools_close(struct pools *pools);

/* The server knows us: the workers are started. */
void pools_begin(struct pools *pools);

/* How many tasks of this executor could be begun at once. */
uint32_t pools_room(const struct pools *pools, const struct executor *executor);

void pools_submit(struct pools *pools, struct pool_job *job);

/* It may go on until then, from wherever it is now. */
void pool_job_push(struct pool_job *job, const struct process_lease *lease);

/* False: it had not been started, and is the owner's again. True: ended() comes when the worker is gone. */
bool pools_withdraw(struct pools *pools, struct pool_job *job, int64_t grace_ms);

/* No more tasks. Each worker goes when it has none; supervisor_pools_changed() comes when one has. */
void pools_retire(struct pools *pools);
bool pools_are_gone(const struct pools *pools);

/* The outbox has settled a letter: was it ours? */
bool pools_settled(struct pools *pools, const char *name, int status, struct span body);

/* {"airi":{"totalWorkers":2,…}}: the counters of each pool and the state of each worker. */
int pools_put(struct buf *out, const struct pools *pools);
