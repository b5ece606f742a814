/*
 * The heartbeat of a worker over libuv: runs the machine of beat.h against a server, and tells its owner what follows.
 */
#pragma once

#include <uv.h>

#include "wire/http/client.h"
#include "worker/beat/beat.h"

enum pulse_kind {
	PULSE_REGISTERED, /* the server knows us now, under the id we have */
	PULSE_LOST,       /* `id`: not ours (any more): stop it, report nothing */
	PULSE_CANCEL,     /* `id`: stop it. Told with every beat until it is done */
	PULSE_REPORTED,   /* `id`: the work itself has said how it ended. Told with every beat */
	PULSE_PARK, /* `id`: it has waited long enough for an answer. Told with every beat until it is done */
	PULSE_STANDING, /* `standing` is new */
	PULSE_LAPSED,   /* no answer for nine tenths of the lease: stop everything before `until_ms` */
	PULSE_VOUCHED,  /* pulse_lease() counts from now on */
	PULSE_OVER,     /* the server has given up on us: stop everything, then pulse_renew() */
	PULSE_REFUSED,  /* `status`, `code`, `detail`, `holder` */
	PULSE_AWAY,     /* no answer: told once; `fault` */
	PULSE_BACK,
};

struct pulse_news {
	enum pulse_kind kind;
	struct span id;
	enum beat_standing standing;
	int64_t until_ms; /* on the clock of worker_clock_ms() */
	int status, fault;
	struct span code, detail, holder;
};

/* From the loop. The texts live until it returns. It may call pulse_renew() and the others here, but not free. */
typedef void (*pulse_tell)(void *context, const struct pulse_news *news);

struct pulse_options {
	struct http_address address;
	struct span worker_id;
	struct span token; /* credential to register with; empty: none */
	struct span about; /* who it is: members of the registration ("slot":"s","pid":7), without braces */
	struct beat_rules rules; /* idle_ms and working_ms as in beat.h */
	bool plain; /* it does not register and does not beat: a claimant, whose claims have leases of their own */
	uint32_t tasks_max;
	uint64_t seed; /* of the jitter */
};

struct pulse;

/* Begins with the next turn of the loop. NULL: no memory, or a text is too long. */
struct pulse *pulse_new(uv_loop_t *loop, const struct pulse_options *options, pulse_tell tell, void *context);

/* Ends it, as far as the loop lets it; no more news. */
void pulse_free(struct pulse *pulse);

/* As in beat.h. */
int pulse_bind(struct pulse *pulse, struct span id);
void pulse_unbind(struct pulse *pulse, struct span id);
void pulse_forget(struct pulse *pulse, struct span id);

/* Who it is has changed: told with a beat that comes soon. -E2BIG, -ENOMEM. */
int pulse_describe(struct pulse *pulse, struct span about);

/* Of PULSE_AWAY: we are short of descriptors or memory, and nothing is known of the server. */
bool pulse_fault_is_ours(int fault);

/* Beat now: something said that we may be over. */
void pulse_hurry(struct pulse *pulse);

/* It is about to say goodbye: nothing of what others do with it is news any more. */
void pulse_leave(struct pulse *pulse);

/* After PULSE_OVER: register anew, under an id that was never used. -EINVAL: it is too long. */
int pulse_renew(struct pulse *pulse, struct span worker_id);

struct span pulse_worker_id(const struct pulse *pulse);

/* What to show with every request as this worker: the credential of its registration, else the token it came with. */
struct span pulse_token(const struct pulse *pulse);

bool pulse_is_alive(const struct pulse *pulse);       /* registered, and not over */
bool pulse_is_away(const struct pulse *pulse);        /* the last beat was not answered */
bool pulse_is_registering(const struct pulse *pulse); /* the server may know us already, or soon */

/* What it holds may run so long after that moment without a further word: the lease as it was granted, and from when on it
 * counts. False: it has none. And whether a task is under it already, and not only under the lease of its claim. */
bool pulse_lease(const struct pulse *pulse, int64_t *ret_from_ms, int64_t *ret_lease_ms);
bool pulse_is_bound(const struct pulse *pulse, struct span id);

/* When the last beat was sent that was accepted; INT64_MIN: none was, or it does not beat. */
int64_t pulse_heard_ms(const struct pulse *pulse);

/* The clock of leases: it counts from boot, suspend included, and cannot be set. */
int64_t worker_clock_ms(void);
