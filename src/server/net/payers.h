/*
 * Payers: for whom a connection counts.
 *
 *     token ──▶ instance of a worker ──▶ claim
 *
 * A connection is a stranger, in the lobby, until it shows a right credential; from then on it counts for the last right one, and
 * for the payers above that. A claim and an instance have a cap; a token has one while connections are scarce, except a
 * worker's: a fleet may be one token. When all places are taken, a newcomer ends the longest idle connection of the largest
 * payer, if that is larger than its own; at each fork of the tree the larger branch gives way. Otherwise only what must not
 * wait is served (operators, heartbeats, reports), once, and its connection is closed; everything else is `busy`.
 *
 * Strangers are kept few per source while the lobby is more than half full: the oldest that are silent go.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "server/net/sources.h"

struct connection;
struct exchange;
struct server;

enum {
	PAYERS_BUCKETS = 4096,
};

enum payer_kind { PAYER_TOKEN, PAYER_INSTANCE, PAYER_CLAIM };

/* Zero in a field: not of that kind. */
struct payer_key {
	uint32_t principal;
	uint32_t holder; /* the store's number of the worker */
	int64_t task;
	uint64_t fence;
};

LIST_HEAD(payer_list, payer);

struct payer {
	struct payer_key key;
	enum payer_kind kind;
	struct payer *parent; /* NULL: of a token */
	struct payer_list children;
	LIST_ENTRY(payer) sibling;
	LIST_ENTRY(payer) same_hash;
	struct seated seated; /* the connections of its own, in the order in which they came */
	uint32_t own;         /* number of these */
	uint32_t own_max;     /* 0: no cap */
	uint32_t all;         /* its own and those of the payers beneath it */
	uint64_t held_bytes;  /* of requests that these connections have under way */
	bool operates;        /* may have what is kept free for operators */
};

struct payers {
	struct payer_list by_hash[PAYERS_BUCKETS];
	struct payer_list tokens;
	uint32_t known;     /* connections that have a payer */
	uint32_t known_max; /* places for these */
	uint32_t lobby;     /* connections that have none */
	uint32_t lobby_max;
	uint32_t lobby_reserve; /* of these, places that silent strangers do not keep */
	uint64_t held_bytes;    /* of requests that all connections have under way: see payer_hold() */
};

/* The places, out of `files` descriptors. */
void payers_init(struct payers *payers, uint64_t files);

void lobby_enter(struct connection *connection);
void connection_unseat(struct connection *connection); /* out of the lobby, or from its payer */
/* Once in each tick of the loop: of the source with the most strangers, silent ones beyond its share are closed. */
void lobby_trim(struct server *server);

/* The connection counts for the credential that the exchange has shown, whose call has begun. If there is no place for it, it
 * stays a stranger and is closed behind this exchange, which is refused unless it must not wait. */
void payer_admit(struct server *server, struct exchange *exchange);

/* The same, before the body of the request under way is there. Without a place the connection stays a stranger. */
void payer_seat(struct connection *connection, const struct payer_key *key, uint32_t scopes);

/* The connection holds so many bytes of requests with long bodies: they count for its payer and for those above it. Fewer than
 * before is always right. False: they have as many as they may, and nothing has changed. */
bool payer_hold(struct connection *connection, uint64_t bytes);

/* Is it an operator's, a heartbeat, or a report, which ends something? */
bool payer_has_reserve(const struct exchange *exchange);
