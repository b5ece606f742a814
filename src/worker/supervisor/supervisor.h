/*
 * The supervisor: claims what it can run, runs it, and reports how it ended, until a signal or the server stops it.
 *
 *	claim ──▶ run ──▶ the tree is gone ──▶ report on disk ──▶ the server has it
 *	  ▲ long poll, while there is room      (worker/report/outbox.c)
 *	  └ not while: the server is away · quiet · stopping
 *
 * One thread, one loop; nothing in it waits. The heartbeat (worker/beat/heartbeat.c) goes its own way beside it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "attempt/relay/child_socket.h"
#include "base/rng.h"
#include "exec/host.h"
#include "worktree/leftovers.h"
#include "worker/api_client.h"
#include "worker/state_dir.h"
#include "worker/once/once.h"
#include "worker/report/outbox.h"
#include "pool/pool.h"
#include "worker/beat/heartbeat.h"
#include "worker/settings/settings.h"

/* What stint-worker ends with, besides 0 and 1. */
enum {
	EXIT_USAGE = 2,
	EXIT_UNAVAILABLE = 69,
	EXIT_TEMPORARY = 75,
	EXIT_NO_PERMISSION = 77,
	EXIT_CONFIG = 78,
};

enum {
	CONCURRENCY_MAX = 1000,
	CAPABILITIES_MAX = 64,
	IDLE_CLIENTS_MAX = 8,
	SUPERVISOR_TOKEN_BYTES_MAX = 512,
};

struct supervisor_options {
	struct http_address address;
	const char *url;        /* of the server, for children */
	const char *token;      /* as given; NULL: none. An admin's is exchanged for supervisor.token */
	const char *token_file; /* that it comes from; NULL: from none */
	const char *home;
	const char *slot; /* NULL: none */
	const char *name; /* the first part of its id */
	const char *capabilities[CAPABILITIES_MAX];
	uint32_t capability_count;
	uint32_t concurrency; /* runs at a time, without those of pools, which have their own sizes */
	int64_t lease_ms;
	int64_t drain_ms; /* how long running work may go on after the first signal */
	bool same_host;
	const struct settings *settings;
	const struct once_config *once; /* run-once: one pass or a few; NULL: until it is stopped */
};

struct run;

/* How far the supervisor is with its end. Only supervisor_move() in stop.c changes it. */
enum supervisor_stage {
	SUPERVISOR_SERVING,  /* it claims and runs */
	SUPERVISOR_DRAINING, /* no new claims; running work may come to its end */
	SUPERVISOR_HURRYING, /* running work is being stopped */
	SUPERVISOR_WAITING,  /* nothing runs; goodbye waits for the answer to our registration */
	SUPERVISOR_LEAVING,  /* goodbye is said, or was not needed */
};

struct supervisor {
	const struct supervisor_options *options;
	const struct settings *settings;
	uv_loop_t *loop;
	struct state_dir state_dir;
	char token[SUPERVISOR_TOKEN_BYTES_MAX + 1];         /* for all requests; empty: none */
	char refused_token[SUPERVISOR_TOKEN_BYTES_MAX + 1]; /* that the server did not know; empty: none */
	int credential_fd;                                  /* while the token is exchanged; else -1 */
	struct api_client *renewals;                        /* NULL: nothing renews the token */
	uv_timer_t renewal_timer;
	char next_token[SUPERVISOR_TOKEN_BYTES_MAX + 1]; /* a new secret that the server may not know yet */
	int renewal_fd;            /* the lock of the token's file; -1: we have it not */
	uint32_t renewal_failures; /* in a row */
	bool has_fresh_token;      /* a request that was refused may have shown the secret before */
	bool credential_proved;    /* the server has known the token since we started, or it is a new one */
	bool served;               /* what was left behind is loaded */
	struct host *host;
	struct heartbeat_client *heartbeat;
	struct outbox *outbox;
	struct api_client *claims;
	struct accept_share accepts; /* of the sockets of all runs */
	struct api_client
		*idle[IDLE_CLIENTS_MAX]; /* connected clients of runs that are over, for the next runs */
	uint32_t idle_count;
	struct once *once; /* NULL: not run-once */
	struct pools *pools;
	struct api_client *pool_client; /* for requests of the pools; NULL: none so far */
	pools_answered pool_answered;
	void *pool_asker;
	uv_timer_t pools_timer, drain_timer; /* the pools have changed; the pools' time to drain is over */
	uint64_t offered;                    /* executors that the waiting claim asks for, a bit each */
	uint32_t offered_max;                /* tasks that the waiting claim asks for */
	int64_t described_ms;                /* when the pools were last described to the server */
	struct buf body;
	uv_timer_t claim_timer, stop_timer, watchdog;
	int64_t drain_until_ms, kill_until_ms, last_ran_ms; /* while it stops */
	uv_idle_t cleaner;
	struct leftovers leftovers;
	uv_signal_t term, interrupt;
	struct rng rng;
	char worker_id[BEAT_ID_BYTES_MAX + 1];
	char program
		[4096]; /* our own command line, for children that report by themselves; "": not looked up yet */
	char instance[12];                 /* in the names of its runs: nobody else on this machine has it */
	struct run *runs[CONCURRENCY_MAX]; /* in the order of their claims */
	uint32_t run_count;
	uint64_t run_number, request_number;
	uint32_t claim_failures;
	uint64_t claim_asked_ms; /* the loop's clock */
	bool claim_waits;
	bool hearing;      /* the answer to a claim is being read: the next claim is made after that */
	uint32_t troubles; /* starts in a row that failed for lack of resources */
	bool asked_one;    /* the next claim asks all queues: the last asked one queue, which was empty */
	enum beat_standing standing;
	enum supervisor_stage step;
	bool impatient; /* a second signal came: nothing waits for a server that is away */
	bool over;      /* the server counts us as lost: all runs must end, then we register anew */
	int status;     /* to end with */
};

/* Runs until it is stopped. Returns the status to end with. */
int supervisor_run(struct supervisor *supervisor, const struct supervisor_options *options);

/* For once.c: claim now; and end, unless it is ending already. */
void supervisor_claim(struct supervisor *supervisor);
/* Gives up the claim under way. Reports that ride with it are sent again: the server recognises those it has. */
void supervisor_drop_claim(struct supervisor *supervisor);
void supervisor_end(struct supervisor *supervisor);

/* For runs and pools: a name for a process that no other on this machine has. */
void supervisor_name_run(void *supervisor, char name[PROCESS_RUN_BYTES_MAX + 1]);

/* For runs: there are files to remove. It is done from the loop, some at a time: everything else comes first. */
void supervisor_clean_up(struct supervisor *supervisor);

/* For runs: a client of the server, which stays connected from one attempt to the next. NULL: no memory. Given back, what is under
 * way is dropped; NULL is fine. */
struct api_client *supervisor_take_client(struct supervisor *supervisor);
void supervisor_give_client(struct supervisor *supervisor, struct api_client *client);

/* For runs: add a run to the list; and remove a run that is over. */
void supervisor_list(struct supervisor *supervisor, struct run *run);
void supervisor_forget(struct supervisor *supervisor, struct run *run);

/* For runs: a start failed for lack of resources. Nothing is claimed for a while, so that other hosts take the work. */
void supervisor_back_off(struct supervisor *supervisor);

/* For runs: is there another run of the same task, which was lost and is not gone yet? */
bool supervisor_has_other(const struct supervisor *supervisor, const struct run *run);
