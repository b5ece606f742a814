/*
 * One target: what waits for it, what is under way, and how far it is told. Couriers know nothing of each other: one whose
 * target is away holds up nobody.
 *
 *	offered ──wanted──▶ queue ──due──▶ under way ──2xx──▶ delivered ──▶ the cursor moves
 *	                      ▲                 └──else──▶ again after a while, eight times ──▶ given up ──▶ the cursor moves
 *	                      └── full: it is behind, and takes nothing until the stream comes by once more
 *
 * So nothing is kept but what fits into the queue: the server has the rest.
 */
#pragma once

#include "base/rng.h"
#include "notify/cursor.h"
#include "notify/delivery.h"

enum {
	COURIER_QUEUE_MAX = 64,
	COURIER_QUEUE_BYTES_MAX = 1 << 20,
	COURIER_RETRIES_MAX = 8,
};

struct queued_message {
	int64_t seq;
	int64_t time_ms;
	int64_t generation;
	struct buf body;
};

struct courier {
	const struct target *target;
	const struct targets *targets;
	CURLM *multi;
	struct rng *rng;
	int dir_fd;
	struct cursor cursor; /* as it is on disk, or will be at the next chance */
	int64_t seen;         /* the last event that it was offered and dealt with */
	int64_t seen_ms;
	bool behind;
	struct queued_message queue[COURIER_QUEUE_MAX];
	uint32_t first, count;
	size_t bytes;
	struct delivery delivery;
	bool under_way;
	uint32_t tries; /* of the first letter */
	int64_t due_ms; /* when it is sent, or sent again */
	int64_t kept_ms;
	bool moved; /* since the cursor was written */
};

/* Reads the cursor. -EPROTO: it is damaged; -ENOMEM, and what files say. */
int courier_open(struct courier *courier, const struct target *target, const struct targets *targets,
	CURLM *multi, struct rng *rng, int dir_fd);
void courier_close(struct courier *courier);

/* The server was met: its generation, and the last event it has. One that knows no place begins behind that event. */
int courier_meet(struct courier *courier, int64_t generation, int64_t last_seq, int64_t now_ms);

/* What lies before `oldest` is gone from the server. */
void courier_skip(struct courier *courier, int64_t oldest);

/* -ENOMEM. */
int courier_offer(struct courier *courier, int64_t generation, yyjson_val *event);

static inline bool courier_has_room(const struct courier *courier)
{
	return courier->count == 0 || !courier->behind;
}

/* Begin what is due and write what has moved; when to come again. A fault is the disk's. */
int courier_step(struct courier *courier, int64_t now_ms, int64_t wall_ms, int64_t *ret_next_ms);

/* curl is done with it. */
int courier_finish(struct courier *courier, CURLcode code, int64_t now_ms, int64_t wall_ms);

/* The end: the cursor is written as it stands. */
int courier_keep(struct courier *courier);
