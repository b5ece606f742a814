/*
 * Store turns: the exchanges that want one, and the turn itself. What a principal has of a turn is counted in shares.c.
 */
#pragma once

#include "server/turn/exchange.h"

enum {
	SHARES_MAX = 256,
	LEAVES_MAX = 4096,
};

struct turns {
	struct exchange_list queued; /* want the next turn */
	struct exchange_list spare;  /* unused exchanges, for the next requests */
	uint32_t gathered;           /* how many were pending at the last look at the network */
	uint32_t looks;              /* looks at the network since the last turn */
	bool times_set;              /* a turn has set times: the timer `due` may be too late */
	bool is_running;             /* turns_run() is on the stack */
	bool is_committing;          /* the store has not settled the turn yet */
};

/* What a principal, or one of its claims or worker instances, has of the turn that is being filled. */
struct share {
	uint64_t round; /* the turn that `commands` counts for */
	uint32_t commands;
};

struct shares {
	struct share places[SHARES_MAX]; /* by the number of the principal */
	struct share leaves[LEAVES_MAX]; /* of its claims and worker instances, by their hash */
	uint64_t round;
	uint32_t count;             /* principals that have commands in this round */
	struct exchange_list later; /* want a later turn: their principals have their share of the next one */
};

void turns_run(struct server *server);
/* True if requests arrived while the pending ones were read: look at the network once more, so that they join this commit. */
bool turns_may_grow(struct server *server);
/* Run a turn now if many requests have been read: each holds memory until its turn. */
void turns_hurry(struct server *server);
void turns_stop(struct server *server);
void turns_done(struct server *server);

/* The exchange wants a turn: the next one, or one after it if its claim, worker instance or principal has its share. */
void share_turn(struct server *server, struct exchange *exchange);
void shares_fill_up(struct server *server);    /* a principal that is alone may have more of this turn */
void shares_next_round(struct server *server); /* the turn is over */
