/*
 * Turns: take everything that is ready, decide, commit once, answer.
 *
 * A reply that hands out claims is remembered until it has been written: if the client is gone by then, the claims are
 * given back at once.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/server.h"
#include "server/watch/server_log.h"

enum {
	GATHERED_MAX = 512, /* requests that are read before a turn is taken, … */
	LOOKS_MAX = 8,      /* … and looks at the network for more of them */
	JOIN_MAX = 256,     /* creates of one turn that are looked at for claims that wait for them */
	STALL_MS = 2000,
};

/* ---- what came of it -------------------------------------------------------------------------------------- */

/* Remember what the reply hands out, in case it is never written. */
static void note_claims(struct exchange *exchange, const struct result *results)
{
	const struct result *last = &results[exchange->call.command_count - 1];
	struct handed_claim *handed;

	assert(exchange->claim_count == 0);
	if (last->claim_count == 0)
		return;
	handed = arena_alloc(&exchange->arena, last->claim_count * sizeof *handed);
	if (!handed)
		return;
	for (uint32_t i = 0; i < last->claim_count; i++) {
		const struct claimed *claimed = &last->claims[i];
		handed[i] =
			(struct handed_claim){.fence = claimed->task.fence, .version = claimed->task.version};
		if (arena_copy(&exchange->arena, claimed->id, &handed[i].id) < 0)
			return;
	}
	exchange->claims = handed;
	exchange->claim_count = last->claim_count;
}

static void count_claim(
	struct metrics *metrics, const struct exchange *exchange, const struct result *results)
{
	uint32_t last = exchange->call.command_count - 1;
	enum command_kind kind = exchange->call.commands[last].kind;

	if (kind != COMMAND_CLAIM_NEXT && kind != COMMAND_CLAIM)
		return;
	if (results[last].refusal != REFUSED_NOTHING)
		metrics->claims[CLAIM_REFUSED]++;
	else
		metrics->claims[results[last].claim_count > 0 ? CLAIM_GRANTED : CLAIM_EMPTY]++;
}

static bool may_wait(const struct server *server, const struct exchange *exchange)
{
	if (exchange->call.wait_ms == 0 || !exchange->connection || server->stopping)
		return false;
	return exchange->wait_until_ms == 0 || server->now.lease_ms < exchange->wait_until_ms;
}

static void finish(struct server *server, struct exchange *exchange, const struct result *results)
{
	struct api_call *call = &exchange->call;
	/* It waited and joined this turn for work that could not be written. It has not asked again, so it waits on. */
	bool joined_in_vain = exchange->joined &&
		(results[0].refusal == REFUSED_UNAVAILABLE || results[0].refusal == REFUSED_DISK_LOW);

	exchange->joined = false;
	assert(!server->turns.is_committing);
	assert(exchange->state == EXCHANGE_IN_TURN);
	assert(!exchange->list);
	assert(exchange->claim_count == 0); /* nothing is handed out twice by one reply */
	if (exchange->inbox_row) {
		inbox_finish(server, exchange, results);
		return;
	}
	if (call->commands[0].kind == COMMAND_RETURN) {
		exchange_gave_back(server, exchange);
		return;
	}
	if (api_retry_next_turn(call, results)) {
		exchange_want_turn(server, exchange);
		return;
	}
	if (may_wait(server, exchange) && (joined_in_vain || api_begin_wait(call, results))) {
		waiting_add(server, exchange);
		return;
	}
	exchange->wait_until_ms = 0;
	call->now = server->now;
	note_claims(exchange, results);
	count_claim(&server->metrics, exchange, results);
	api_finish(call, results);
	if (call->step == API_BACKUP && exchange->connection)
		backup_start(server, exchange);
	else if (call->step == API_TURN)
		exchange_want_turn(server, exchange);
	else if (exchange->claim_count > 0 && (!exchange->connection || call->reply.status >= 500))
		exchange_give_back(server, exchange); /* nobody learns of the claims */
	else
		exchange_answer_at(server, exchange, server->now_ns);
}

/* ---- the turn -------------------------------------------------------------------------------------------- */

static void join(
	struct exchange_list *taken, struct exchange *exchange, struct command *commands, uint32_t *count)
{
	assert(exchange->call.command_count > 0);
	assert(*count + exchange->call.command_count <= STORE_COMMANDS_MAX);
	exchange_move(exchange, EXCHANGE_IN_TURN);
	exchange_list_add(taken, exchange);
	exchange->first_result = *count;
	for (uint32_t i = 0; i < exchange->call.command_count; i++) {
		const struct command *command = &exchange->call.commands[i];
		memcpy(&commands[(*count)++], command, command_bytes(command));
	}
}

/* A claim that waits for work which this turn creates takes it in the same turn: one sync instead of two. If it gets nothing
 * after all, it waits on. */
static void join_waiting(
	struct server *server, struct exchange_list *taken, struct command *commands, uint32_t *count)
{
	uint32_t created = *count;

	for (uint32_t i = 0; i < created && i < JOIN_MAX && server->waiting.count > 0; i++) {
		if (commands[i].kind != COMMAND_CREATE)
			continue;
		struct exchange *exchange = waiting_first_for(server, commands[i].create.queue);
		if (!exchange)
			continue;
		if (*count + exchange->call.command_count > STORE_COMMANDS_MAX)
			return;
		waiting_remove(server, exchange);
		exchange->joined = true;
		if (admission_is_still_good(server, exchange))
			join(taken, exchange, commands, count);
		else
			exchange_refuse_credential(server, exchange);
	}
}

/* As many pending exchanges as one turn has room for. */
static uint32_t gather(struct server *server, struct exchange_list *taken, struct command *commands)
{
	uint32_t count = steps_take(server, commands);

	while (server->turns.queued.first) {
		struct exchange *exchange = server->turns.queued.first;
		if (count + exchange->call.command_count > STORE_COMMANDS_MAX)
			break;
		exchange_list_remove(exchange);
		join(taken, exchange, commands, &count);
	}
	join_waiting(server, taken, commands, &count);
	return count;
}

/* One turn of the store; its time counts if it wrote something. */
static void take_turn(
	struct server *server, const struct command *commands, uint32_t count, struct result *ret_results)
{
	int64_t last = store_last_event(server->store);
	uint64_t began_ns = uv_hrtime();

	assert(!server->turns.is_committing);
	server->turns.is_committing = true;
	int r = store_turn(server->store, server->now, commands, count, ret_results);
	if (r < 0)
		server_die(server, r);
	server->turns.is_committing = false;
	server->now_ns = uv_hrtime();
	uint64_t took_ns = server->now_ns - began_ns;
	if (store_last_event(server->store) != last)
		histogram_add(&server->metrics.turn, took_ns);
	journal_turn(server, count, took_ns);
	journal_store(server);
}

/* Nobody is called lost for what the server itself slept through. The turn that comes first after it must know: its
 * timers would not wait for a sweep to find out. */
static void look_at_clock(struct server *server)
{
	int64_t asleep_ms = clock_asleep_ms();

	server->now = clock_now();
	if (asleep_ms - server->asleep_ms > STALL_MS ||
		server->now.lease_ms - server->last_sweep_ms >
			(int64_t)server->options->sweep_ms + STALL_MS) {
		log_warn("the machine slept, or the server stalled",
			log_int("ms", server->now.lease_ms - server->last_sweep_ms));
		store_woke(server->store, server->now);
		server->last_sweep_ms = server->now.lease_ms;
		server->slept = true;
	}
	server->asleep_ms = asleep_ms;
}

/* To read sixty requests takes as long as a client needs for its next one: without another look those would miss the turn
 * and want a sync of their own. This never waits: it looks again only while each look brings new requests. */
bool turns_may_grow(struct server *server)
{
	bool has_grown = server->turns.queued.count > server->turns.gathered;

	server->turns.gathered = server->turns.queued.count;
	if (!has_grown || server->turns.looks == LOOKS_MAX || server->connections.count < 2 ||
		connections_are_quiet(server))
		return false;
	server->turns.looks++;
	return true;
}

void turns_run(struct server *server)
{
	static struct command commands[STORE_COMMANDS_MAX];
	static struct result results[STORE_COMMANDS_MAX];

	assert(!server->turns.is_running); /* there is one array of commands */
	server->turns.is_running = true;
	server->turns.gathered = server->turns.looks = 0;
	look_at_clock(server);
	shares_fill_up(server);
	do {
		struct exchange_list taken = {0};
		struct exchange *exchange;
		uint32_t count = gather(server, &taken, commands);
		take_turn(server, commands, count, results);
		steps_finish(server, &results[0]);
		server->turns.times_set |= count > 0;
		while ((exchange = exchange_list_take(&taken)))
			finish(server, exchange, &results[exchange->first_result]);
		waiting_tell(server);
		connections_flush(server);
	} while (waiting_wake(server) || server->turns.queued.first);
	shares_next_round(server);
	server->turns.is_running = false;
	int r = store_checkpoint(server->store);
	if (r < 0)
		server_die(server, r);
}

void turns_hurry(struct server *server)
{
	if (server->turns.queued.count + server->shares.later.count >= GATHERED_MAX)
		turns_run(server);
}

void turns_stop(struct server *server)
{
	while (server->turns.queued.first)
		turns_run(server);
	waiting_sweep(server);
}

void turns_done(struct server *server)
{
	struct exchange *exchange;

	assert(server->waiting.count == 0);
	assert(server->waiting.news_count == 0);
	while ((exchange = exchange_list_take(&server->turns.queued)) ||
		(exchange = exchange_list_take(&server->shares.later)) ||
		(exchange = exchange_list_take(&server->turns.spare)))
		exchange_destroy(exchange);
}
