/*
 * What the files of this folder share. Only they include this.
 *
 *	supervisor.c   its runs, the events of heartbeat and outbox, and its start
 *	claims.c       its claims
 *	credential.c   the token that it works with
 *	renewal.c      … which renews itself
 *	about.c        its registration: who it is, and what it has
 *	pools.c        what its pools need of it
 *	stop.c         its end
 */
#pragma once

#include "wire/json/json.h"
#include "worker/supervisor/supervisor.h"
#include "attempt/verdict.h"

enum {
	SUPERVISOR_BODY_BYTES_MAX = 64 << 10,
	SUPERVISOR_CLAIM_BYTES_MAX = 1 << 20,
};

/* claims.c: does the claim that waits ask for tasks of this executor? */
bool supervisor_offers(const struct supervisor *supervisor, const struct executor *executor);

/* For pools: something in them has changed; what follows comes from the loop. */
void supervisor_pools_changed(void *supervisor);

/* For pools: a task was given back because its module is busy. The next claim waits a little. */
void supervisor_claim_later(void *supervisor);

/* claims.c: the pass of a run-once ends, because the server does not answer, or refuses it with this document. */
void supervisor_fail_unanswered(struct supervisor *supervisor, const char *why);
void supervisor_fail_refused(struct supervisor *supervisor, struct yyjson_val *problem);

/* credential.c: finds the token, asks the server for one if need be, and calls supervisor_serve(). */
void supervisor_find_credential(struct supervisor *supervisor);

/* The server does not know the token. True: it was kept from before, and another one is made; then supervisor_serve(). */
bool supervisor_renew_credential(struct supervisor *supervisor);

/* renewal.c: the token gets a new secret when half of its life is over. */
void supervisor_begin_renewals(struct supervisor *supervisor);
void supervisor_end_renewals(struct supervisor *supervisor);

/* The server refuses the token. True: its file has another secret now, or a new one waits beside it, and that is used from now on. */
bool supervisor_reread_token(struct supervisor *supervisor);
bool supervisor_reread_file(struct supervisor *supervisor); /* its file alone */

/* supervisor.c: the token is known: reports that were left behind, and the registration. */
void supervisor_serve(struct supervisor *supervisor);

/* pools.c: -ENOMEM. */
int supervisor_open_pools(struct supervisor *supervisor);

/* about.c: lists of names, "key":["a","b"]; of all executors, or of those with room. */
void supervisor_put_executors(struct supervisor *supervisor, struct json_object *object, bool offered);
void supervisor_put_capabilities(struct supervisor *supervisor, struct json_object *object);

/* The members of a registration: who we are; and, in a slot, whom we replace. */
int supervisor_put_about(struct supervisor *supervisor, struct buf *about);

/* stop.c: no new claims; running work may end within drain_ms. */
void supervisor_stop(struct supervisor *supervisor, int status);

/* SIGTERM, SIGINT: the second one skips every wait for others. */
void supervisor_hear_signal(struct supervisor *supervisor);

/* The time to drain is over: stops all runs. */
void supervisor_hurry(struct supervisor *supervisor);
void supervisor_stop_all(struct supervisor *supervisor, enum stop_reason reason, int64_t grace_ms);

/* Our registration was answered while we leave. */
void supervisor_heard_late(struct supervisor *supervisor);

/* Goes on with the end of the supervisor, if it waited for the last run. */
void supervisor_look_for_end(struct supervisor *supervisor);
