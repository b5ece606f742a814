/*
 * The heartbeat of a worker, as a client sees it: when to beat, what to say, and what the answer means. No socket, no
 * clock, no memory of its own: time is an argument, so a day of leases is tested in a millisecond.
 *
 *     new ──accepted──▶ alive ◀─┐ beats; takes the token of every answer
 *      ▲                 │ └────┘
 *      │                 ▼ WORKER_INACTIVE
 *  beat_renew() ◀────── over   everything must stop; it comes back under another key
 *
 * One request at a time: the next one follows its answer or its failure. A beat carries the differences in what the worker
 * holds. Each is repeated until an answer has acknowledged it: the server accepts repetitions.
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
	BEAT_DELTAS_MAX = 100, /* differences in one beat; the rest goes with the next */
	BEAT_ID_BYTES_MAX = 128,
	BEAT_TOKEN_BYTES_MAX = 64,
	BEAT_MISMATCHES_MAX = 3,    /* in a row, answered at once; more: another process beats with our key */
	BEAT_DELTA_DELAY_MS = 1000, /* work that ends sooner costs no beat */
	BEAT_AWAY_MS = 15 * 1000,
	BEAT_IDLE_AWAY_MS = 5 * 60 * 1000,
};

struct beat_rules {
	int64_t lease_ms;            /* to ask for */
	int64_t idle_ms, working_ms; /* the longest time between two beats; 0: a part of the lease */
	bool same_host;              /* the server runs on this host: work goes on while the server is away */
};

/* What the server knows of a task that we hold. */
enum beat_known { BEAT_KNOWN_NOT, BEAT_KNOWN_BOUND, BEAT_KNOWN_PERHAPS };
enum beat_sent { BEAT_SENT_NOTHING, BEAT_SENT_BIND, BEAT_SENT_UNBIND };

struct beat_task {
	char id[BEAT_ID_BYTES_MAX + 1];
	uint8_t id_len;
	bool held; /* we hold it, whatever the server knows */
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
	bool under_way; /* a request is under way */
	bool hurried;   /* another request follows at once */
	bool lapsed;    /* beat_lapses() was true; until the next answer */
	bool refused; /* the last answer was a refusal, or the last request could not be sent: the server is not away */
	int64_t sent_ms;    /* when the request under way, or the last one, was sent */
	int64_t leased_ms;  /* when the last answered beat was sent: the lease counts from there */
	int64_t lease_ms;   /* as granted; 0: none yet */
	int64_t vouched_ms; /* like leased_ms; also set by an unanswered beat after which work goes on */
	int64_t next_ms;
	uint32_t failures;   /* in a row */
	uint32_t mismatches; /* in a row */
	struct beat_task *tasks;
	uint32_t task_count, task_max;
	struct rng rng; /* for jitter */
};

/* `tasks` is the caller's memory: for all tasks that are held, or whose end the server does not know yet. */
void beat_init(struct beat_state *beat, const struct beat_rules *rules, struct beat_task *tasks,
	uint32_t task_max, uint64_t seed, int64_t now_ms);

/* Under another key, after it was over. It holds nothing. */
void beat_renew(struct beat_state *beat, int64_t now_ms);

/* ---- what it holds ---------------------------------------------------------------------------------------- */

/* -ENOSPC: too many tasks; -EINVAL: not a valid id. */
int beat_bind(struct beat_state *beat, struct span id, int64_t now_ms);

/* Lets go of a task that the server still counts as ours. */
void beat_unbind(struct beat_state *beat, struct span id, int64_t now_ms);

/* The server knows already that the task has ended: no beat mentions it. */
void beat_forget(struct beat_state *beat, struct span id);

uint32_t beat_held(const struct beat_state *beat);

/* Has the server acknowledged the task? Then its claim lives under our lease. */
bool beat_is_bound(const struct beat_state *beat, struct span id);

/* ---- when, and what --------------------------------------------------------------------------------------- */

/* When to look again: beat_lapses() first, then beat_send(). */
int64_t beat_due_ms(const struct beat_state *beat);

/* Nine tenths of the lease have passed without an answer: what it holds must stop, before the server gives it to
 * somebody else. True once. Never true for a worker on the server's own host while the server is merely away. */
bool beat_lapses(struct beat_state *beat, int64_t now_ms);

/* The end of a lease that is kept for stopping the work: a tenth of it, but at least enough time to stop. */
int64_t lease_spare_ms(int64_t lease_ms);

/* When the lease will be over for the server, at the earliest; INT64_MAX: no lease yet. */
int64_t beat_lease_end_ms(const struct beat_state *beat);

/* The spans are the tasks' and live until a task is added or taken away. */
struct beat_request {
	bool registers; /* the first beat: it carries our description */
	bool describes; /* set by the caller: our description has changed, and is sent, too */
	struct span token;
	int64_t lease_ms;
	struct span bound[BEAT_DELTAS_MAX], unbound[BEAT_DELTAS_MAX];
	uint32_t bound_count, unbound_count;
};

/* Is a beat due? If true, a request is under way until beat_hear(). */
bool beat_send(struct beat_state *beat, int64_t now_ms, struct beat_request *ret_request);

/* Beat at once: the description has changed, or there are news. The request under way may be older than that: then another
 * one follows. */
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
		BEAT_TOLD,     /* people told it something that its holder has not heard */
	} kind;
	struct span task;
};

struct beat_answer {
	enum beat_outcome outcome;
	struct span token; /* BEAT_ACCEPTED, BEAT_TOKEN_MISMATCH */
	int64_t lease_ms;  /* BEAT_ACCEPTED, like `standing` and `lost` */
	enum beat_standing standing;
	struct span *lost; /* tasks that we reported as held and do not hold */
	uint32_t lost_count;
	const struct beat_command *commands;
	uint32_t command_count;
	int64_t retry_after_ms; /* BEAT_BUSY */
	bool unsent;            /* BEAT_UNANSWERED: the request could not be sent, for a reason of our own */
};

struct beat_effects {
	bool standing; /* `standing` has changed */
	bool vouched;  /* held work may run for a lease from vouched_ms on */
	bool over;     /* everything must stop */
};

/* The owner acts upon `lost` and `commands`. Lost tasks are no longer held. Tasks that ended or were claimed again since the
 * beat was sent are removed from `lost`; the owner has to stop the others. */
void beat_hear(
	struct beat_state *beat, int64_t now_ms, struct beat_answer *answer, struct beat_effects *ret_news);
