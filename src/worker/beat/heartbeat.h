/*
 * The heartbeat of a worker over libuv: runs the machine of beat.h against a server, and tells its owner what follows.
 */
#pragma once

#include <uv.h>

#include "wire/http/client.h"
#include "worker/beat/beat.h"

enum heartbeat_kind {
	HEARTBEAT_REGISTERED,   /* the server knows us now, under the id we have */
	HEARTBEAT_LOST,         /* task `id` is not ours (any more): stop it, report nothing */
	HEARTBEAT_CANCEL,       /* stop task `id`. Repeated with every beat until it is done */
	HEARTBEAT_REPORTED,     /* the work of task `id` has reported its end. Repeated with every beat */
	HEARTBEAT_STOP_WAITING, /* task `id` has waited long enough for an answer. Repeated until it is done */
	HEARTBEAT_TOLD,         /* people told task `id` something. Repeated until it has heard all of it */
	HEARTBEAT_STANDING,     /* `standing` has changed */
	HEARTBEAT_LAPSED,  /* no answer for nine tenths of the lease: stop everything before `until_ms` */
	HEARTBEAT_VOUCHED, /* heartbeat_lease() counts from now on */
	HEARTBEAT_OVER,    /* the server has given up on us: stop everything, then heartbeat_renew() */
	HEARTBEAT_REFUSED, /* `status`, `code`, `detail`, `holder` */
	HEARTBEAT_AWAY, /* no answer, with `fault`; or only that it cannot, with `status` and `detail`; once until HEARTBEAT_BACK */
	HEARTBEAT_BACK,
	HEARTBEAT_NOTIFIED, /* for a plain claimant: somebody has changed a task that it holds */
};

struct heartbeat_event {
	enum heartbeat_kind kind;
	struct span id;
	enum beat_standing standing;
	int64_t until_ms; /* on the clock of worker_clock_ms() */
	int status, fault;
	struct span code, detail, holder;
};

/* From the loop. The texts live until it returns. It may call heartbeat_renew() and the others here, but not free. */
typedef void (*heartbeat_tell)(void *context, const struct heartbeat_event *news);

struct heartbeat_options {
	struct http_address address;
	struct span worker_id;
	struct span token; /* credential to register with; empty: none */
	struct span about; /* who it is: members of the registration ("slot":"s","pid":7), without braces */
	struct beat_rules rules; /* idle_ms and working_ms as in beat.h */
	bool plain; /* a claimant, whose claims have leases of their own: it does not register or beat, and waits for news */
	uint32_t tasks_max;
	uint64_t seed; /* of the jitter */
};

struct heartbeat_client;

/* Begins with the next iteration of the loop. NULL: no memory, or a text is too long. */
struct heartbeat_client *heartbeat_new(
	uv_loop_t *loop, const struct heartbeat_options *options, heartbeat_tell tell, void *context);

/* Ends the client; no more events. The memory goes when the loop has closed its handles. */
void heartbeat_free(struct heartbeat_client *heartbeat);

/* Register with this from now on. */
void heartbeat_set_token(struct heartbeat_client *heartbeat, struct span token);

/* As in beat.h. */
int heartbeat_bind(struct heartbeat_client *heartbeat, struct span id);

/* It does not hold the task any more: beat_forget() if the server `knows` that, else beat_unbind(). */
void heartbeat_let_go(struct heartbeat_client *heartbeat, struct span id, bool knows);

/* The description of the worker has changed: a beat soon carries it. -E2BIG, -ENOMEM. */
int heartbeat_describe(struct heartbeat_client *heartbeat, struct span about);

/* Of HEARTBEAT_AWAY: we are short of descriptors or memory, and nothing is known of the server. */
bool heartbeat_fault_is_ours(int fault);

/* Beat now: the server has news for us, or says that we may be over. */
void heartbeat_hurry(struct heartbeat_client *heartbeat);

/* The worker is about to say goodbye: changes by others are no longer reported. */
void heartbeat_leave(struct heartbeat_client *heartbeat);

/* After HEARTBEAT_OVER: register anew, under an id that was never used. -EINVAL: it is too long. */
int heartbeat_renew(struct heartbeat_client *heartbeat, struct span worker_id);

struct span heartbeat_worker_id(const struct heartbeat_client *heartbeat);

/* What to show with every request as this worker: the credential of its registration, else the token it came with. */
struct span heartbeat_token(const struct heartbeat_client *heartbeat);

bool heartbeat_is_alive(const struct heartbeat_client *heartbeat); /* registered, and not over */
bool heartbeat_is_away(const struct heartbeat_client *heartbeat);  /* the last beat was not answered */
bool heartbeat_is_registering(
	const struct heartbeat_client *heartbeat); /* the server may know us already, or soon */

/* The lease as it was granted, and the moment from which it counts: held work may run so long without another beat. False: no
 * lease. heartbeat_is_bound(): is the task under this lease already, and not only under the lease of its claim? */
bool heartbeat_lease(const struct heartbeat_client *heartbeat, int64_t *ret_from_ms, int64_t *ret_lease_ms);
bool heartbeat_is_bound(const struct heartbeat_client *heartbeat, struct span id);

/* When the last accepted beat was sent; INT64_MIN: none was accepted, or the worker does not beat. */
int64_t heartbeat_heard_ms(const struct heartbeat_client *heartbeat);

/* The clock of leases: it counts from boot, suspend included, and cannot be set. */
int64_t worker_clock_ms(void);
