/*
 * One request on its way: from its last byte to the last byte of its reply. It is in one state at a time, and exchange_move() is
 * the only way from one to another.
 *
 *   SPARE ──new──▶ NEW ─┬───────────────────────────────────────────────▶ ANSWERED ──written──▶ SPARE
 *                       ├─ a read ───▶ READING ──▶ NEW                      ▲  │ not written, and it hands out claims
 *                       ├─ a stream ─▶ STREAMING ──▶ SPARE                  │  ▼
 *                       ├─ a change ─▶ QUEUED  ──▶ IN_TURN ──────────────▶─┤ QUEUED  (gives them back)
 *                       │              ▲  LATER ◀── NEW      │              │
 *                       │              │                     ├▶ BACKING_UP ─┤
 *                       │              └─────────────────────┤              │
 *                       └─ for news ─▶ WAITING ◀─────────────┘              │
 *                                        └──▶ TAKEN ──▶ QUEUED, IN_TURN ───▶┘
 *
 * If its client goes away the exchange leaves its list and is freed. Two are freed later: one that is QUEUED still gets its turn,
 * and one that is TAKEN belongs to the function that took it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"

struct connection;
struct server;

/* What a credential turned out to be. */
enum caller_kind { CALLER_UNKNOWN, CALLER_OPEN, CALLER_TOKEN, CALLER_INSTANCE, CALLER_CLAIM, CALLER_BROWSER };

enum exchange_state {
	EXCHANGE_SPARE,      /* belongs to no request */
	EXCHANGE_NEW,        /* is being looked at */
	EXCHANGE_READING,    /* a read that is not finished */
	EXCHANGE_STREAMING,  /* among the streams of events */
	EXCHANGE_QUEUED,     /* wants the next turn */
	EXCHANGE_LATER,      /* wants a later turn: its principal has its share of the next one */
	EXCHANGE_IN_TURN,    /* its commands are in the turn that runs */
	EXCHANGE_WAITING,    /* for work, or for news */
	EXCHANGE_TAKEN,      /* waits no longer: it is about to be answered, or to have a turn */
	EXCHANGE_BACKING_UP, /* for the backup */
	EXCHANGE_ANSWERED,   /* its reply is complete and waits for those before it, or to be written */
	EXCHANGE_STATE_COUNT,
};

struct handed_claim {
	struct span id; /* of the task */
	uint64_t fence;
	int64_t version;
};

struct exchange {
	struct api_call call;
	const struct http_request *request; /* a copy in the arena: the connection reads on */
	struct arena arena;
	struct buf body;
	enum exchange_state state;
	struct connection *connection;    /* NULL: the client is gone */
	struct exchange_list *list;       /* the list that it is in; NULL: none */
	struct exchange *next, *previous; /* in that list */
	uint32_t first_result;
	enum caller_kind caller;
	uint64_t
		credential; /* of CALLER_TOKEN: which of its secrets; of CALLER_INSTANCE: its number; of CALLER_CLAIM: how often its token was replaced */
	uint32_t holder; /* of CALLER_INSTANCE and CALLER_CLAIM: the store's number of the worker; 0: none */
	int64_t wait_until_ms;        /* lease clock */
	uint64_t place;               /* in the order of waiting */
	struct exchange *of_claimant; /* the next claim that waits with the same hash of its worker */
	uint64_t tried;               /* the wake-up it was last asked in */
	uint32_t claim_count;         /* handed out by its reply: given back if that is never written */
	struct handed_claim *claims;
	const struct inbox_row
		*inbox_row;      /* it is no request of a client, but a row of the inbox; else NULL */
	uint64_t began_ns;       /* the request was complete */
	bool lacks_slash;        /* its path is that of publicUrl, without the slash behind it */
	struct exchange *behind; /* the next request of its connection that is under way with it */
	int64_t last_sent_ms;    /* lease clock: when the stream, or the reader, was last given something */
	bool is_compact;         /* it waits, and its arena has just what it needs for that */
	bool has_waited;         /* its time says nothing about how long requests take */
	bool joined;             /* a claim that waits: taken along by a turn that creates work for it */
	bool is_begun;           /* a read: the head of its reply is out; the body follows in pieces */
	bool closes;             /* its connection has no place and is closed behind the reply */
};

struct exchange_list {
	struct exchange *first, *last;
	uint32_t count;
};

/* Inserts before `next`, which is in the list; NULL: at the end. */
void exchange_list_insert(struct exchange_list *list, struct exchange *exchange, struct exchange *next);
void exchange_list_add(struct exchange_list *list, struct exchange *exchange); /* at the end */
void exchange_list_remove(struct exchange *exchange); /* from the list that it is in */
uint32_t exchange_list_count_of(const struct exchange_list *list, uint32_t principal);
/* Of the same principal, worker instance and claim. */
uint32_t exchange_list_count_like(const struct exchange_list *list, const struct exchange *exchange);
struct exchange *exchange_list_take(struct exchange_list *list); /* NULL: it is empty */

void exchange_move(struct exchange *exchange, enum exchange_state state);
void exchange_want_turn(struct server *server, struct exchange *exchange); /* the next one */

struct exchange *exchange_new(struct server *server); /* NULL: no memory */
void exchange_free(struct server *server, struct exchange *exchange);
void exchange_destroy(struct exchange *exchange); /* wherever it is: when the server ends */
void exchange_begin(struct server *server, struct exchange *exchange);
void exchange_go_on(struct server *server, struct exchange *exchange); /* with the step that its call is at */
void exchange_answer(struct server *server, struct exchange *exchange); /* its reply is complete */
void exchange_answer_at(struct server *server, struct exchange *exchange, uint64_t now_ns);
void exchange_give_back(struct server *server, struct exchange *exchange); /* the claims of its reply */
void exchange_gave_back(
	struct server *server, struct exchange *exchange); /* the turn that did that is over */
/* The exchange will wait, and frees memory that it does not need for that; its credential is no longer valid; its client went
 * away. */
void exchange_compact(struct exchange *exchange);
void exchange_refuse_credential(struct server *server, struct exchange *exchange);
void exchange_abandon(struct server *server, struct exchange *exchange);
