/*
 * Store turns: the exchanges that want one, and the turn itself. What a principal has of a turn is counted in shares.c.
 */
#pragma once

#include "server/turn/exchange.h"

enum {
	SHARES_MAX = 256,
};

struct turns {
	struct exchange_list queued; /* want the next turn */
	struct exchange_list spare;  /* exchanges of no request, for the next ones */
	uint32_t gathered;           /* so many were pending at the last look at the network */
	uint32_t looks;              /* at the network since the last turn */
	bool times_set;              /* by a turn: the timer `due` may be too late */
	bool is_running;             /* turns_run() */
	bool is_committing;          /* … and the store has not settled its turn yet */
};

/* What a principal has of the turn that is being filled. */
struct share {
	uint64_t round; /* the turn that `commands` counts for */
	uint32_t commands;
};

struct shares {
	struct share places[SHARES_MAX]; /* by the number of the principal */
	uint64_t round;
	uint32_t count; /* principals that have commands in this round */
	struct exchange_list
		later; /* want a turn after the next: their principals have their share of that */
};

void turns_run(struct server *server);
/* True if requests arrived while the pending ones were read: look at the network once more, so that they join this commit. */
bool turns_may_grow(struct server *server);
/* Take one now if much has been read: each request holds memory until its turn. */
void turns_hurry(struct server *server);
void turns_stop(struct server *server);
void turns_done(struct server *server);

/* The exchange wants a turn: the next one, or one after it if its principal has its share. */
void share_turn(struct server *server, struct exchange *exchange);
void shares_fill_up(struct server *server);    /* a principal that is alone may have more of this turn */
void shares_next_round(struct server *server); /* the turn is over */
