/*
 * One target: the messages that wait for it, the one that is being sent, and its cursor. Senders know nothing of each other: one whose
 * target is away holds up no other.
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
#include "notify/history.h"

enum {
	SENDER_QUEUE_MAX = 64,
	SENDER_QUEUE_BYTES_MAX = 1 << 20,
	SENDER_RETRIES_MAX = 8,
};

struct queued_message {
	int64_t seq;
	int64_t time_ms;
	int64_t generation;
	char type[HISTORY_TYPE_BYTES], task[HISTORY_TASK_BYTES];
	struct buf body;
};

struct sender {
	const struct target *target;
	const struct targets *targets;
	CURLM *multi;
	struct rng *rng;
	int dir_fd;
	struct cursor cursor; /* as it is on disk, or will be after the next write */
	int64_t seen;         /* the last event that was offered to it and handled */
	int64_t seen_ms;
	bool behind;
	struct queued_message queue[SENDER_QUEUE_MAX];
	uint32_t first, count;
	size_t bytes;
	struct delivery delivery;
	bool under_way;
	uint32_t tries;  /* delivery attempts of the first message */
	int64_t due_ms;  /* when the first message is sent, or sent again */
	int64_t kept_ms; /* when the cursor was last written */
	bool moved;      /* the cursor has moved since it was written */
	struct history history;
	int64_t told_ms; /* when the server was last told of it; 0: never, or it is another server */
	uint64_t told_version;
};

/* One for each target. */
struct senders {
	struct sender items[TARGETS_MAX];
	uint32_t count;
};

/* Reads the cursor. -EPROTO: it is damaged; -ENOMEM, and what files say. */
int sender_open(struct sender *sender, const struct target *target, const struct targets *targets,
	CURLM *multi, struct rng *rng, int dir_fd);
void sender_close(struct sender *sender);

/* The server was met: its generation, and the last event it has. A sender without a cursor begins behind that event. */
int senders_meet(struct senders *senders, int64_t generation, int64_t last_seq, int64_t now_ms);

/* Events before `oldest` are gone from the server. */
void senders_skip(struct senders *senders, int64_t oldest);

/* Would one of them send it? */
bool senders_want(const struct senders *senders, yyjson_val *event);

/* Would one that sends spans? */
bool senders_want_spans(const struct senders *senders, yyjson_val *event);

/* -ENOMEM. */
int senders_offer(struct senders *senders, int64_t generation, yyjson_val *event);

/* Is a sender behind that has room again? Then the stream must begin again. */
bool senders_want_more(const struct senders *senders);

/* The event before the first that a sender needs. From there on senders that were behind are offered what they missed; one
 * that still has a full queue stays behind, and does not make the others read it all again. */
int64_t senders_begin_after(struct senders *senders);

/* Begin what is due and write what has moved; when to come again. A fault is the disk's. */
int sender_step(struct sender *sender, int64_t now_ms, int64_t wall_ms, int64_t *ret_next_ms);

/* curl is done with it. */
int sender_finish(struct sender *sender, CURLcode code, int64_t now_ms, int64_t wall_ms);

/* Write the cursor as it stands. */
int sender_keep(struct sender *sender);
