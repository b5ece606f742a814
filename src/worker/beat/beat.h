/*
 * The heartbeat of a worker, as a client sees it: when to beat, what to say, and what the answer means. No socket, no
 * clock, no memory of its own: time is an argument, so a day of leases is tested in a millisecond.
 *
 *     new ──accepted──▶ alive ◀─┐ beats; takes the token of every answer
 *      ▲                 │ └────┘
 *      │                 ▼ WORKER_INACTIVE
 *  beat_renew() ◀────── over   everything must stop; it comes back under another key
 *
 * One request at a time: until its answer, or the word that none comes, there is no next. What it holds is told in
 * differences. Each is repeated until an answer has acknowledged it: the server takes them twice as gladly as once.
 *
 *   while it holds nothing   a beat in every third of the lease
 *   while it holds work      in every quarter at the latest
 *   no answer, or a 5xx      again after 1, 2, 4 s, then every 15 s, but within a quarter of the lease; a worker that
 *                            holds nothing and whose lease is over anyway, from another machine: up to 5 min. Beside
 *                            the server, with work: within an eighth, because each try vouches for that
 *   429, 503 with a time     after that time, but within a quarter of the lease while it holds work
 *   any other 4xx            the same request is not repeated: the next beat comes in its time
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "base/span.h"

enum {
	BEAT_DELTAS_MAX = 100, /* in one beat: the rest goes with the next */
	BEAT_ID_BYTES_MAX = 128,
	BEAT_TOKEN_BYTES_MAX = 64,
	BEAT_MISMATCHES_MAX =
		3, /* in a row, answered at once; more means that somebody else beats with our key */
	BEAT_DELTA_DELAY_MS = 1000, /* work that is done before costs no beat */
	BEAT_AWAY_MS = 15 * 1000,
	BEAT_IDLE_AWAY_MS = 5 * 60 * 1000,
};

struct beat_rules {
	int64_t lease_ms;            /* to ask for */
	int64_t idle_ms, working_ms; /* at the most between two beats; 0: as the lease says */
	bool same_host;              /* as the server: work goes on while it is away */
};

/* What the server knows of a task that we hold. */
enum beat_known { BEAT_KNOWN_NOT, BEAT_KNOWN_BOUND, BEAT_KNOWN_PERHAPS };
enum beat_sent { BEAT_SENT_NOTHING, BEAT_SENT_BIND, BEAT_SENT_UNBIND };

struct beat_task {
	char id[BEAT_ID_BYTES_MAX + 1];
	uint8_t id_len;
	bool held; /* by our own word */
	enum beat_known known;
	enum beat_sent sent; /* with the request that is under way */
};

enum beat_phase { BEAT_NEW, BEAT_ALIVE, BEAT_OVER };
enum beat_standing { BEAT_ACTIVE, BEAT_QUIET, BEAT_TERMINATING };

struct beat_state {
	struct beat_rules rules;
	enum beat_phase phase;
	enum beat_standing standing;
	char token[BEAT_TOKEN_BYTES_MAX + 1];
	bool under_way; /* a request is … */
	bool hurried;   /* … and another one is to follow at once */
	bool lapsed;    /* told to stop; until the next answer */
	bool refused; /* the last answer was a refusal: the server is there and does not want us; or it was not even asked */
	int64_t sent_ms;   /* the request under way, or the last one */
	int64_t leased_ms; /* when the beat that was answered last had been sent: the lease counts from there */
	int64_t lease_ms; /* as granted; 0: none yet */
	int64_t vouched_ms; /* as leased_ms; also of one that was not answered, after which we went on all the same */
	int64_t next_ms;
	uint32_t failures;   /* in a row */
	uint32_t mismatches; /* in a row */
	struct beat_task *tasks;
	uint32_t task_count, task_max;
	struct rng rng; /* for jitter */
};

/* The tasks are the caller's memory: room for all that are held or to be told of. */
void beat_init(struct beat_state *beat, const struct beat_rules *rules, struct beat_task *tasks,
	uint32_t task_max, uint64_t seed, int64_t now_ms);

/* Under another key, after it was over. It holds nothing. */
void beat_renew(struct beat_state *beat, int64_t now_ms);

/* ---- what it holds ---------------------------------------------------------------------------------------- */

/* -ENOSPC: there is no room; -EINVAL: that is no id. */
int beat_bind(struct beat_state *beat, struct span id, int64_t now_ms);

/* It lets go of a task that the server still counts as its own. */
void beat_unbind(struct beat_state *beat, struct span id, int64_t now_ms);

/* The server knows already that this has ended: nothing is to be told. */
void beat_forget(struct beat_state *beat, struct span id);

uint32_t beat_held(const struct beat_state *beat);

/* By the server's word: it lives as long as we do. */
bool beat_is_bound(const struct beat_state *beat, struct span id);

/* ---- when, and what --------------------------------------------------------------------------------------- */

/* When to look again: beat_lapses() first, then beat_send(). */
int64_t beat_due_ms(const struct beat_state *beat);

/* Nine tenths of the lease have passed without an answer: what it holds must stop, before the server gives it to
 * somebody else. Told once. Never of a worker on the server's own host while the server is merely away. */
bool beat_lapses(struct beat_state *beat, int64_t now_ms);

/* What of a lease is kept for stopping the work before it is over: a tenth, but enough for that. */
int64_t lease_spare_ms(int64_t lease_ms);

/* When the lease will be over for the server, at the earliest; INT64_MAX: there is none. */
int64_t beat_lease_end_ms(const struct beat_state *beat);

/* The spans are the tasks' and live until a task is added or taken away. */
struct beat_request {
	bool registers; /* the first: who we are goes with it */
	bool describes; /* the caller's: who we are has changed, and goes with it too */
	struct span token;
	int64_t lease_ms;
	struct span bound[BEAT_DELTAS_MAX], unbound[BEAT_DELTAS_MAX];
	uint32_t bound_count, unbound_count;
};

/* Something to send now? From then on a request is under way until beat_hear(). */
bool beat_send(struct beat_state *beat, int64_t now_ms, struct beat_request *ret_request);

/* Now, whatever the time: the description has changed, or there are news. What is under way may have been read before
 * that: then once more. */
void beat_hurry(struct beat_state *beat, int64_t now_ms);

enum beat_outcome {
	BEAT_ACCEPTED,
	BEAT_TOKEN_MISMATCH,
	BEAT_WORKER_INACTIVE,
	BEAT_REFUSED,    /* another 4xx */
	BEAT_BUSY,       /* 429 or 503, with a time */
	BEAT_UNANSWERED, /* no connection, no answer, 5xx */
};

/* What the server says of a task that we hold. */
struct beat_command {
	enum {
		BEAT_CANCEL,   /* it must stop */
		BEAT_REPORTED, /* its work has said how it ended */
		BEAT_PARK,     /* its process has waited long enough for a person's answer */
	} kind;
	struct span task;
};

struct beat_answer {
	enum beat_outcome outcome;
	struct span token; /* of accepted and mismatched */
	int64_t lease_ms;  /* of accepted, as the next two */
	enum beat_standing standing;
	struct span *lost; /* what we said we hold and do not */
	uint32_t lost_count;
	const struct beat_command *commands;
	uint32_t command_count;
	int64_t retry_after_ms; /* of busy */
	bool unsent;            /* of unanswered: for a reason of our own it was not even asked */
};

struct beat_effects {
	bool standing; /* it has changed */
	bool vouched;  /* what it holds may run for a lease from vouched_ms on */
	bool over;     /* everything must stop */
};

/* `lost` and `commands` are for the owner to act upon. What is lost is no longer held; left in the list are those that the
 * owner has to stop, and not what has ended or was claimed anew since the beat was sent. */
void beat_hear(
	struct beat_state *beat, int64_t now_ms, struct beat_answer *answer, struct beat_effects *ret_news);
