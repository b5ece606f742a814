/*
 * The outbox: reports that the server must have, whatever happens to the server, to us or to the power. Each is a file
 * before it is sent (report_file.h), and is removed when the server has answered: taken, or refused for good (a claim that has
 * passed to another is such a refusal, and the server keeps the late result for the operator).
 *
 *	reserved ──▶ put ──the iteration of the loop ends──▶ on disk ──released──▶ sent, with others beside it ──answered──▶ settled
 *	    │         └──the disk refuses it───────────────▶ in memory, and tried again; it is sent all the same
 *	    └──nothing is to be reported──▶ given back
 *
 * Room for a report is reserved before the work begins whose end it tells: memory that is short later, or an outbox that is
 * full, takes no report away. What is reserved is not counted by outbox_waiting().
 *
 * All reports that were put in one iteration of the loop are synced once; the server commits together what arrives together.
 * So it costs as much to report a hundred exits as one.
 *
 * There are two ways to the server. A report of our own may ride with the next claim ("finish", outbox_send_with_claim()), so that an
 * attempt ends and the next begins in one request. All others are requests of their own, each with its name as
 * Idempotency-Key. If the answer is lost it is sent again, by either way, and counts once: the server knows the claim that it
 * ends. While the server is away it is asked again after 1, 2, 4 … 15 s, with one report.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/span.h"
#include "wire/http/client.h"

struct outbox;
struct pending_report;
struct buf;
struct yyjson_val;

enum {
	OUTBOX_REPORTS_MAX = 20000,
	OUTBOX_RESERVED_BYTES = 4096, /* a report of that length can always be put */
};

/* How a report ended: `status` and `body` are those of the answer; status 0: it could not be read, and will never be sent. */
struct outbox_answer {
	int status;
	struct span code, body;
	struct span state; /* that the task has now; empty: not said */
};

/* `owner` is that of outbox_reserve(); NULL for reports of others: a predecessor's, and those of outbox_post(). */
struct outbox_events {
	/* It is on disk; or there was a fault, and it is in memory alone: then this may come again. */
	void (*saved)(void *context, void *owner, int fault);
	/* It was taken, or will never be: from now on the report is gone. */
	void (*settled)(void *context, void *owner, const char *name, const struct outbox_answer *answer);
	/* Something can be sent: now is the time for outbox_send_with_claim(). What does not ride goes its own way. */
	void (*ready)(void *context);
};

/* The directory and the events stay the caller's. NULL: no memory. */
struct outbox *outbox_new(uv_loop_t *loop, const struct http_address *address, struct span token, int dir_fd,
	const struct outbox_events *events, void *context);

/* The credential of everything that is sent from now on; at most 512 bytes. */
void outbox_set_token(struct outbox *outbox, struct span token);

/* Tries once more to save the reports that are in memory only. */
void outbox_free(struct outbox *outbox);

/* Loads the reports that a predecessor left. Returns how many. */
int outbox_load(struct outbox *outbox);

/* Room for one report. NULL: no memory, or there are OUTBOX_REPORTS_MAX. It is put, or given back. */
struct pending_report *outbox_reserve(struct outbox *outbox, const char *name, void *owner);
void outbox_give_back(struct outbox *outbox, struct pending_report *report);

/* How many more could be reserved. */
uint32_t outbox_room(const struct outbox *outbox);

/* Where its text is written (report_put()), empty and with OUTBOX_RESERVED_BYTES of room, until it is put. */
struct buf *outbox_text(struct pending_report *report);

/* On disk soon, then sent. `held`: not before outbox_release(). */
void outbox_put(struct outbox *outbox, struct pending_report *report, bool held);
void outbox_release(struct outbox *outbox, struct pending_report *report);

/* A report that nobody owns: reserved and put at once. -ENOMEM, -E2BIG: it will not be sent. */
int outbox_post(struct outbox *outbox, const char *name, struct span target, struct span body);

/*
 * Riding: reports that have an owner, are on disk and can be sent go with a claim of that worker, as elements of its list
 * "finish" ({"id":…,"outcome":…,"fence":…, …}). Returns how many are in `list`, without brackets. They are under way then, until
 * one of the two below: the answer had a list "finished"; or it had none, and each of them is sent alone if `refused`, or may
 * ride again.
 */
uint32_t outbox_send_with_claim(struct outbox *outbox, struct span worker_id, struct buf *list);
bool outbox_is_with_claim(const struct pending_report *report);
void outbox_claim_answered(struct outbox *outbox, struct yyjson_val *finished);
void outbox_claim_failed(struct outbox *outbox, bool refused);

/* Write down now what is in memory alone; `saved` comes from the loop. */
void outbox_save(struct outbox *outbox);

uint32_t outbox_waiting(const struct outbox *outbox);

/* The last report that was sent was not answered, or not taken for now. */
bool outbox_server_is_away(const struct outbox *outbox);
