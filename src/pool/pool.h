/*
 * Pools: programs that stay, and work off one task after the other (spec/stdio.md). Here the machine of child.h is run
 * over processes: one for each member of each pool (an executor of kind "pool").
 *
 *	run ──pools_submit──▶ waits for a member whose worker has its module ──▶ started ──▶ progress, wrote … ──▶ ended
 *	                       └──nobody here has it, or can be started────────────────────────────────────────▶
 *
 * Each member has a slot on the server, `<worker>/<executor>-<n>`: the server counts its crashes and quarantines it. <worker> is
 * the slot of the supervisor, or else its name, because its id is another one after a restart.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "exec/host.h"
#include "exec/process.h"
#include "attempt/program.h"
#include "attempt/relay/child_socket.h"
#include "attempt/verdict.h"

struct pools;
struct pool_member;

struct pool_job_end {
	bool stopped; /* we stopped it, or its lease was over: `verb` and `report` are not set */
	bool lapsed;  /* with `stopped`: its lease was over */
	enum report_verb verb;
	struct span report; /* its members, besides workerId and fence */
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
	const char *module;         /* NULL: the only module of the worker */
	struct span text;           /* the task as JSON */
	int64_t deadline_ms;        /* wall */
	struct process_lease lease; /* kept by pool_job_push() */
	const struct pool_job_events *events;
	void *context;
	/* set by the pools */
	struct pool_member *member; /* that runs it; NULL: it waits */
	struct pool_job *next;
	bool waits;
	int64_t since_ms;
};

/* The server's answer to ask() of the pools' owner; `status` 0: it did not answer. */
typedef void (*pools_answered)(void *context, int status);

/* The worker that the pools belong to: what they need of it. */
struct pools_owner {
	/* A name for a process that no other process on this machine has. */
	void (*name_run)(void *context, char name[PROCESS_RUN_BYTES_MAX + 1]);
	/* Writes a process down for a successor; and removes its files and its record, -EAGAIN: there is more. */
	int (*note_run)(void *context, const struct process_identity *identity);
	int (*forget_run)(void *context, const char *run);
	/* POST `body` to `target`; one at a time. A fault: nothing was asked. */
	int (*ask)(void *context, struct span target, struct span body, pools_answered answered, void *asker);
	/* The same as a report that is kept until the server has it: pools_settled() comes. */
	int (*post)(void *context, const char *name, struct span target, struct span body);
	/* Something has changed; what follows comes from the loop. */
	void (*changed)(void *context);
	/* A task was given back because its module is busy: wait a little before the next claim. */
	void (*claim_later)(void *context);
};

/* Borrowed as long as the pools live. */
struct pools_site {
	uv_loop_t *loop;
	struct host *host;
	const struct executor *executors;
	uint32_t executor_count;
	const struct program_place *place; /* PATH, as tasks have it, and the home of the person */
	const char *home;                  /* the state directory */
	int runs_fd;                       /* its directory of runs */
	const char *slot;                  /* the first part of the slots' names */
	const char *worker_id;             /* the text may change between two calls */
	bool lazy;                    /* a worker is started when there is a task for it, and not before */
	struct accept_share *accepts; /* for the proxies of its workers */
	const struct pools_owner *owner;
	void *context;
};

/* With as many members for each pool among the executors as it shall have workers. NULL: no memory. */
struct pools *pools_new(const struct pools_site *site);

/* Only when the owner of the loop has closed the handles of all timers, and the loop has run since. */
void pools_free(struct pools *pools);

/* The server knows us: the workers are started. */
void pools_begin(struct pools *pools);

/* How many tasks of this executor could be begun at once. */
uint32_t pools_room(const struct pools *pools, const struct executor *executor);

void pools_submit(struct pools *pools, struct pool_job *job);

/* Extends the lease of the job, waiting or started. */
void pool_job_push(struct pool_job *job, const struct process_lease *lease);

/* False: it had not been started, and is the owner's again. True: ended() comes when the worker is gone. */
bool pools_withdraw(struct pools *pools, struct pool_job *job, int64_t grace_ms);

/* No more tasks. Each worker goes when it has no task; changed() comes when a worker has gone. */
void pools_retire(struct pools *pools);
bool pools_are_gone(const struct pools *pools);

/* The outbox has settled a report: was it one of post()? */
bool pools_settled(struct pools *pools, const char *name, int status, struct span body);

/* {"airi":{"totalWorkers":2,…}}: the counters of each pool and the state of each worker. */
int pools_put(struct buf *out, const struct pools *pools);
