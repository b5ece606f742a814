/*
 * Payers and the lobby; see payers.h.
 *
 * The tree has a node for every payer with a connection, and no other. The usual request finds its connection seated at the
 * right node: it costs one comparison. Who is the largest is looked for only when all places are taken, one fork at a time.
 */
#include "server/net/payers.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "server/net/connection.h"
#include "server/watch/server_log.h"

enum {
	FILES_MAX = 65536,
	FILES_OWN = 128, /* the server's: store, logs, backups, connections that are just being accepted */
	CLAIM_MAX = 8,
	INSTANCE_MAX = 16,
	OPERATOR_MAX = 2048,
	METRICS_MAX = 16,
	TOKEN_MAX = 512,
	KNOWN_MIN = 16,
	CLAIM_HELD_MAX = 1 << 20, /* bytes: one body of the largest size */
	INSTANCE_HELD_MAX = 4 << 20,
	TOKEN_HELD_MAX = 16 << 20,
	HELD_MAX = 64 << 20,
	OPERATORS_HELD_MAX = 16 << 20, /* beyond that */
	IDLE_LOOKS_MAX = 256, /* at connections of one payer, for the one that is idle for the longest time */
	BUSY_RETRY_AFTER_S = 1,
};

static uint32_t within(uint64_t value, uint32_t least, uint32_t most)
{
	return value < least ? least : value > most ? most : (uint32_t)value;
}

void payers_init(struct payers *payers, uint64_t files)
{
	files = files < FILES_MAX ? files : FILES_MAX;
	payers->lobby_max = within(files / 8, 64, 4096);
	payers->lobby_reserve = within(files / 64, 16, 512);
	uint64_t taken = FILES_OWN + payers->lobby_max;
	payers->known_max = within(files > taken ? files - taken : 0, KNOWN_MIN, FILES_MAX);
}

/* ---- the tree -------------------------------------------------------------------------------------------- */

static struct payer_key key_of(const struct exchange *exchange)
{
	const struct principal *who = &exchange->call.who;

	switch (exchange->caller) {
	case CALLER_UNKNOWN:
	case CALLER_OPEN:
	case CALLER_TOKEN:
	case CALLER_BROWSER:
		break;
	case CALLER_INSTANCE:
		return (struct payer_key){.principal = who->number, .holder = exchange->holder};
	case CALLER_CLAIM:
		return (struct payer_key){.principal = who->number,
			.holder = exchange->holder,
			.task = who->task_seq,
			.fence = who->fence};
	}
	return (struct payer_key){.principal = who->number};
}

static bool is_same(const struct payer_key *a, const struct payer_key *b)
{
	return a->principal == b->principal && a->holder == b->holder && a->task == b->task &&
		a->fence == b->fence;
}

static struct payer_list *bucket_of(struct payers *payers, const struct payer_key *key)
{
	uint64_t hash = hash_u64((uint64_t)key->principal << 32 | key->holder);

	hash = hash_u64(hash ^ (uint64_t)key->task);
	return &payers->by_hash[hash_u64(hash ^ key->fence) % PAYERS_BUCKETS];
}

static struct payer *find(struct payers *payers, const struct payer_key *key)
{
	struct payer *payer;

	LIST_FOREACH(payer, bucket_of(payers, key), same_hash)
	{
		if (is_same(&payer->key, key))
			return payer;
	}
	return NULL;
}

static enum payer_kind kind_of(const struct payer_key *key)
{
	return key->fence != 0 ? PAYER_CLAIM : key->holder != 0 ? PAYER_INSTANCE : PAYER_TOKEN;
}

static uint32_t cap_of(const struct payer *payer, uint32_t scopes)
{
	if (payer->kind != PAYER_TOKEN)
		return payer->kind == PAYER_CLAIM ? CLAIM_MAX : INSTANCE_MAX;
	if (payer->key.principal == PRINCIPAL_OPEN)
		return 0;
	if (payer->operates)
		return OPERATOR_MAX;
	if (scopes & (SCOPE_BIT(SCOPE_WORK) | SCOPE_BIT(SCOPE_CLAIM)))
		return 0;
	return scopes == SCOPE_BIT(SCOPE_METRICS) ? METRICS_MAX : TOKEN_MAX;
}

static void drop_unused(struct payer *payer)
{
	while (payer && payer->all == 0) {
		struct payer *parent = payer->parent;
		assert(payer->own == 0);
		assert(LIST_EMPTY(&payer->children));
		assert(payer->held_bytes == 0);
		LIST_REMOVE(payer, sibling);
		LIST_REMOVE(payer, same_hash);
		free(payer);
		payer = parent;
	}
}

/* With the payers above it; NULL: no memory. One that gets no connection is for drop_unused(). */
static struct payer *make(struct payers *payers, const struct payer_key *key)
{
	struct payer *payer = find(payers, key), *parent = NULL;
	enum payer_kind kind = kind_of(key);

	if (payer)
		return payer;
	if (kind != PAYER_TOKEN) {
		struct payer_key above = {
			.principal = key->principal, .holder = kind == PAYER_CLAIM ? key->holder : 0};
		parent = make(payers, &above);
		if (!parent)
			return NULL;
	}
	payer = calloc(1, sizeof *payer);
	if (!payer) {
		drop_unused(parent);
		return NULL;
	}
	payer->key = *key;
	payer->kind = kind;
	payer->parent = parent;
	TAILQ_INIT(&payer->seated);
	LIST_INSERT_HEAD(parent ? &parent->children : &payers->tokens, payer, sibling);
	LIST_INSERT_HEAD(bucket_of(payers, key), payer, same_hash);
	return payer;
}

static void sit_down(struct connection *connection, struct payer *payer)
{
	assert(!connection->payer);
	assert(!connection->lobby_of);
	connection->payer = payer;
	TAILQ_INSERT_TAIL(&payer->seated, connection, seat);
	payer->own++;
	connection->server->payers.known++;
	for (; payer; payer = payer->parent) {
		payer->all++;
		payer->held_bytes += connection->held_bytes;
	}
}

/* ---- the lobby -------------------------------------------------------------------------------------------- */

void lobby_enter(struct connection *connection)
{
	struct server *server = connection->server;

	assert(!connection->payer);
	assert(!connection->lobby_of);
	connection->lobby_of = source_take(&server->sources, &connection->source, server->now.lease_ms);
	TAILQ_INSERT_TAIL(&connection->lobby_of->strangers, connection, seat);
	server->payers.lobby++;
}

void connection_unseat(struct connection *connection)
{
	struct server *server = connection->server;
	struct payer *payer = connection->payer;

	if (connection->lobby_of) {
		TAILQ_REMOVE(&connection->lobby_of->strangers, connection, seat);
		source_release(connection->lobby_of);
		connection->lobby_of = NULL;
		server->payers.lobby--;
	}
	if (!payer)
		return;
	TAILQ_REMOVE(&payer->seated, connection, seat);
	connection->payer = NULL;
	payer->own--;
	server->payers.known--;
	for (struct payer *above = payer; above; above = above->parent) {
		above->all--;
		above->held_bytes -= connection->held_bytes;
	}
	drop_unused(payer);
}

/* A client that has just been accepted may have sent its request already: it is not silent before that could be read. */
static bool is_silent(const struct connection *connection)
{
	return !connection->current && !connection->is_dirty &&
		connection->born + 1 < connection->server->connections.tick;
}

/* The oldest that is silent goes. False: none is. */
static bool end_stranger(struct server *server, struct source *source)
{
	struct connection *connection;

	TAILQ_FOREACH(connection, &source->strangers, seat)
	{
		if (is_silent(connection)) {
			server->metrics.strangers_closed++;
			journal_refused_connection("too many without a token from one source");
			connection_close(connection);
			return true;
		}
	}
	return false;
}

/* One source in each tick of the loop: no more come in a tick than go. */
void lobby_trim(struct server *server)
{
	const struct payers *payers = &server->payers;

	if (payers->lobby <= payers->lobby_max / 2)
		return;
	struct source *source = sources_most_strangers(&server->sources);
	while (payers->lobby > payers->lobby_max / 2 && source->count > server->options->strangers_max &&
		end_stranger(server, source))
		;
	while (payers->lobby > payers->lobby_max - payers->lobby_reserve && source->count > 0 &&
		end_stranger(server, source))
		;
}

/* ---- when all is taken ------------------------------------------------------------------------------------- */

enum { AS_IDLE = 1, AS_WAITING };

/* May it be ended, and how soon? A claim that waits, and a stream, go on elsewhere and lose nothing; 0: it has something under
 * way. */
static int endable(const struct connection *connection)
{
	const struct exchange *current = connection->current;

	if (connection->ahead_first || connection_unsent(connection) > 0 || connection->is_dirty)
		return 0;
	if (!current)
		return connection_is_amid(connection) ? 0 : AS_IDLE;
	return current->state == EXCHANGE_WAITING || current->state == EXCHANGE_STREAMING ? AS_WAITING : 0;
}

/* One of its own, the longest idle first. */
static bool end_one(struct payer *payer, int most)
{
	struct connection *connection, *found = NULL;
	uint32_t looks = 0;
	int how = most;

	TAILQ_FOREACH(connection, &payer->seated, seat)
	{
		int as = endable(connection);
		if (looks++ == IDLE_LOOKS_MAX)
			break;
		if (as == 0 || as > how || (found && as == how && connection->since_ms >= found->since_ms))
			continue;
		found = connection;
		how = as;
	}
	if (!found)
		return false;
	found->server->metrics.connections_ended++;
	connection_close(found);
	return true;
}

static struct payer *largest_of(const struct payer_list *list)
{
	struct payer *payer, *largest = NULL;

	LIST_FOREACH(payer, list, sibling)
	{
		if (!largest || payer->all > largest->all)
			largest = payer;
	}
	return largest;
}

/* The one at this fork, or beneath it, that leads to the payer; NULL: the fork is the payer itself. */
static const struct payer *branch_of(const struct payer *payer, const struct payer *fork)
{
	if (payer == fork)
		return NULL;
	while (payer->parent != fork)
		payer = payer->parent;
	return payer;
}

/* Down to where most of its connections are. */
static struct payer *heaviest_beneath(struct payer *payer)
{
	struct payer *child;

	while ((child = largest_of(&payer->children)) && child->all > payer->own)
		payer = child;
	return payer;
}

/* The payer that gives way to a newcomer: at the first fork where another branch is larger than the newcomer's. NULL: the
 * newcomer itself is the largest. */
static struct payer *largest_beside(struct payers *payers, const struct payer *newcomer)
{
	const struct payer *fork = NULL;

	for (;;) {
		const struct payer *mine = branch_of(newcomer, fork);
		struct payer *largest = largest_of(fork ? &fork->children : &payers->tokens);
		uint32_t count = mine ? mine->all : newcomer->own;
		if (largest && largest != mine && largest->all > count)
			return heaviest_beneath(largest);
		if (fork && mine && fork->own > count)
			return (struct payer *)fork;
		if (!mine)
			return NULL;
		fork = mine;
	}
}

bool payer_has_reserve(const struct exchange *exchange)
{
	static const bool reserved[COMMAND_KIND_COUNT] = {
		[COMMAND_BEAT] = true,
		[COMMAND_COMPLETE] = true,
		[COMMAND_FAIL] = true,
		[COMMAND_REVIEW] = true,
		[COMMAND_BLOCK] = true,
		[COMMAND_RELEASE] = true,
		[COMMAND_RETURN] = true,
		[COMMAND_LEAVE] = true,
	};
	const struct api_call *call = &exchange->call;

	if (call->who.scopes & (SCOPE_BIT(SCOPE_OPERATE) | SCOPE_BIT(SCOPE_ADMIN)) &&
		call->who.number != PRINCIPAL_OPEN)
		return true;
	return call->command_count > 0 && reserved[call->commands[0].kind];
}

/* A token's cap binds while connections are scarce. */
static bool is_capped(const struct payers *payers, const struct payer *payer)
{
	if (payer->own_max == 0 || payer->own <= payer->own_max)
		return false;
	return payer->kind != PAYER_TOKEN || payers->known > payers->known_max / 2;
}

/* For the connection that has just sat down there. NULL: there is room; else why there is not. */
static const char *make_room(struct payers *payers, struct payer *payer)
{
	if (is_capped(payers, payer) && !end_one(payer, AS_IDLE))
		return "this credential has as many connections under way as it may; end some of them first";
	if (payers->known <= payers->known_max)
		return NULL;
	struct payer *largest = largest_beside(payers, payer);
	if (largest ? end_one(largest, AS_WAITING) : end_one(payer, AS_IDLE))
		return NULL;
	return "all connections of this server are taken, and no one has more of them than this credential";
}

static void turn_away(struct exchange *exchange, const char *why)
{
	exchange->closes = true;
	if (exchange->call.step == API_REPLY || payer_has_reserve(exchange))
		return;
	journal_refused_payer(exchange->call.who.name, why);
	exchange->connection->server->metrics.connections_refused++;
	api_refuse(&exchange->call, REFUSED_BUSY, why);
	exchange->call.reply.retry_after_s = BUSY_RETRY_AFTER_S;
}

/* NULL: it has a place. Else why there is none; it is in the lobby then. */
static const char *seat(struct connection *connection, const struct payer_key *key, uint32_t scopes)
{
	struct payers *payers = &connection->server->payers;

	connection_unseat(connection); /* from the lobby, or from the payer of another credential */
	struct payer *payer = make(payers, key);
	const char *why = "there is no memory for another connection";
	if (payer) {
		payer->operates = payer->key.principal != PRINCIPAL_OPEN &&
			(scopes & (SCOPE_BIT(SCOPE_OPERATE) | SCOPE_BIT(SCOPE_ADMIN))) != 0;
		payer->own_max = cap_of(payer, scopes);
		sit_down(connection, payer);
		why = make_room(payers, payer);
	}
	if (!why)
		return NULL;
	connection_unseat(connection);
	lobby_enter(connection);
	return why;
}

void payer_admit(struct server *server, struct exchange *exchange)
{
	struct connection *connection = exchange->connection;
	struct payer_key key = key_of(exchange);

	assert(connection->server == server);
	if (exchange->call.who.scopes == 0 || (connection->payer && is_same(&connection->payer->key, &key)))
		return;
	const char *why = seat(connection, &key, exchange->call.who.scopes);
	if (why)
		turn_away(exchange, why);
}

void payer_seat(struct connection *connection, const struct payer_key *key, uint32_t scopes)
{
	assert(connection->lobby_of);
	(void)seat(connection, key, scopes);
}

/* ---- bytes ------------------------------------------------------------------------------------------------- */

/* A token may be a whole fleet: its share binds while half of all is taken. */
static uint64_t held_max_of(const struct payers *payers, const struct payer *payer)
{
	switch (payer->kind) {
	case PAYER_CLAIM:
		return CLAIM_HELD_MAX;
	case PAYER_INSTANCE:
		return INSTANCE_HELD_MAX;
	case PAYER_TOKEN:
		break;
	}
	return payers->held_bytes > HELD_MAX / 2 ? TOKEN_HELD_MAX : HELD_MAX;
}

static bool may_hold(const struct connection *connection, uint64_t more)
{
	const struct payers *payers = &connection->server->payers;

	bool operates = connection->payer && connection->payer->operates;
	if (payers->held_bytes + more > HELD_MAX + (operates ? OPERATORS_HELD_MAX : 0))
		return false;
	for (const struct payer *payer = connection->payer; payer; payer = payer->parent) {
		if (payer->held_bytes + more > held_max_of(payers, payer))
			return false;
	}
	return true;
}

bool payer_hold(struct connection *connection, uint64_t bytes)
{
	uint64_t before = connection->held_bytes;

	if (bytes > before && !may_hold(connection, bytes - before))
		return false;
	connection->held_bytes = bytes;
	connection->server->payers.held_bytes += bytes - before;
	for (struct payer *payer = connection->payer; payer; payer = payer->parent)
		payer->held_bytes += bytes - before;
	return true;
}
