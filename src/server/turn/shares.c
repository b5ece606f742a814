/*
 * Shares: a principal that floods the server gets its share of a turn, and the others theirs; so does each claim and each worker
 * instance among those of one principal. What is too much for the next turn stands in `later` and wants the one after it.
 * Operators, heartbeats and reports do not wait for others of their principal.
 */
#include <assert.h>

#include "base/hash.h"
#include "server/server.h"

enum {
	ALONE_TIMES = 4,
	CLAIM_COMMANDS = 4,
	INSTANCE_COMMANDS = 16,
	BODY_BYTES_OF_ONE = 64 << 10, /* a longer body counts as more commands */
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

/* NULL: it shows the token itself. Those that meet in one place share it. */
static struct share *leaf_of(struct server *server, const struct exchange *exchange)
{
	if (exchange->caller != CALLER_INSTANCE && exchange->caller != CALLER_CLAIM)
		return NULL;
	uint64_t number = (uint64_t)exchange->holder << 32 ^ (uint64_t)exchange->call.who.task_seq;
	struct share *leaf = &server->shares.leaves[hash_u64(number) % LEAVES_MAX];
	if (leaf->round != server->shares.round)
		*leaf = (struct share){.round = server->shares.round};
	return leaf;
}

static uint32_t weight_of(const struct exchange *exchange)
{
	return exchange->call.command_count + (uint32_t)(exchange->request->body.len / BODY_BYTES_OF_ONE);
}

void share_turn(struct server *server, struct exchange *exchange)
{
	struct share *share = share_of(server, exchange->call.who.number), *leaf = leaf_of(server, exchange);
	uint32_t leaf_max = exchange->caller == CALLER_CLAIM ? CLAIM_COMMANDS : INSTANCE_COMMANDS;

	assert(share->round == server->shares.round);
	assert(server->shares.count > 0); /* at least this principal */
	assert(server->shares.count <= SHARES_MAX);
	if ((leaf && leaf->commands >= leaf_max) ||
		(share->commands >= server->options->in_flight_max && !payer_has_reserve(exchange))) {
		exchange_move(exchange, EXCHANGE_LATER);
		exchange_list_add(&server->shares.later, exchange);
		return;
	}
	uint32_t commands = weight_of(exchange);
	share->commands += commands;
	if (leaf)
		leaf->commands += commands;
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
