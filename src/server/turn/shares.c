/*
 * Shares: a principal that floods the server gets its share of a turn, and the others theirs. What is too much for the next
 * turn stands in `later` and wants the one after it.
 */
#include <assert.h>

#include "server/server.h"

enum {
	ALONE_TIMES = 4,
	LATER_LOOKS_MAX = 1024, /* at `later` after one turn; an exchange that does not fit goes to its end */
};

/* Two principals that meet in one place of the table share it. */
static struct share *share_of(struct server *server, uint32_t principal)
{
	struct share *share = &server->shares.places[principal % SHARES_MAX];

	if (share->round != server->shares.round) {
		*share = (struct share){.round = server->shares.round};
		server->shares.count++;
	}
	return share;
}

void share_turn(struct server *server, struct exchange *exchange)
{
	struct share *share = share_of(server, exchange->call.who.number);

	assert(share->round == server->shares.round);
	assert(server->shares.count > 0); /* at least this principal */
	assert(server->shares.count <= SHARES_MAX);
	if (share->commands >= server->options->in_flight_max) {
		exchange_move(exchange, EXCHANGE_LATER);
		exchange_list_add(&server->shares.later, exchange);
		return;
	}
	share->commands += exchange->call.command_count;
	exchange_want_turn(server, exchange);
}

/* A principal that is alone takes nothing from others; but not so much that one that comes now would notice. */
void shares_fill_up(struct server *server)
{
	uint32_t room = (ALONE_TIMES - 1) * server->options->in_flight_max;

	for (; server->shares.count == 1 && server->shares.later.first && room > 0; room--)
		exchange_want_turn(server, exchange_list_take(&server->shares.later));
}

void shares_next_round(struct server *server)
{
	struct shares *shares = &server->shares;
	uint32_t looks = shares->later.count < LATER_LOOKS_MAX ? shares->later.count : LATER_LOOKS_MAX;

	shares->round++;
	shares->count = 0;
	for (; looks > 0; looks--)
		share_turn(server, exchange_list_take(&shares->later));
}
