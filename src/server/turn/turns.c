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

enum {
	EXCHANGE_ARENA_MAX = 64 << 20,
	REPLY_BYTES_MAX = 64 << 20,
	SPARE_MAX = 256,
	GATHERED_MAX = 512, /* requests that are read before a turn is taken, … */
	LOOKS_MAX = 8,      /* … and looks at the network for more of them */
	JOIN_MAX = 256,     /* creates of one turn that are looked at for claims that wait for them */
	STALL_MS = 2000,
};

/* ---- lists ------------------------------------------------------------------------------------------ */

void exchange_list_add(struct exchange_list *list, struct exchange *exchange)
{
	exchange->next = NULL;
	exchange->previous = list->last;
	if (list->last)
		list->last->next = exchange;
	else
		list->first = exchange;
	list->last = exchange;
	list->count++;
}

void exchange_list_remove(struct exchange_list *list, struct exchange *exchange)
{
	if (exchange->previous)
		exchange->previous->next = exchange->next;
	else
		list->first = exchange->next;
	if (exchange->next)
		exchange->next->previous = exchange->previous;
	else
		list->last = exchange->previous;
	exchange->next = exchange->previous = NULL;
	list->count--;
}

struct exchange *exchange_list_take(struct exchange_list *list)
{
	struct exchange *exchange = list->first;

	if (exchange)
		exchange_list_remove(list, exchange);
	return exchange;
}

/* ---- exchanges ---------------------------------------------------------------------------------------- */

struct exchange *exchange_new(struct server *server)
{
	struct exchange *exchange = exchange_list_take(&server->spare);

	if (exchange)
		return exchange;
	exchange = calloc(1, sizeof *exchange);
	if (!exchange)
		return NULL;
	arena_init(&exchange->arena, EXCHANGE_ARENA_MAX);
	buf_init(&exchange->body, REPLY_BYTES_MAX);
	return exchange;
}

static void exchange_destroy(struct exchange *exchange)
{
	arena_done(&exchange->arena);
	buf_done(&exchange->body);
	free(exchange);
}

void exchange_free(struct server *server, struct exchange *exchange)
{
	if (server->spare.count >= SPARE_MAX || exchange->body.cap > 64 * 1024) {
		exchange_destroy(exchange);
		return;
	}
	if (exchange->is_settled) /* its first chunk is too small for others */
		arena_done(&exchange->arena);
	arena_reset(&exchange->arena);
	buf_clear(&exchange->body);
	*exchange = (struct exchange){.arena = exchange->arena, .body = exchange->body};
	exchange_list_add(&server->spare, exchange);
}

#define SETTLED(said)                                                                        \
	{                                                                                    \
		[false][true] = {.method = (said), .takes_chunks = true},                    \
		[true][false] = {.method = (said), .keep_alive = true},                      \
		[true][true] = {.method = (said), .keep_alive = true, .takes_chunks = true}, \
		[false][false] = {.method = (said)},                                         \
	}

/* What is left of a request that waits: a claim, or one for news. */
static const struct http_request *settled_request(const struct http_request *request)
{
	static const struct http_request claims[2][2] = SETTLED(HTTP_METHOD_POST);
	static const struct http_request news[2][2] = SETTLED(HTTP_METHOD_GET);
	const struct http_request(*kinds)[2] = request->method == HTTP_METHOD_GET ? news : claims;

	return &kinds[request->keep_alive][request->takes_chunks];
}

void exchange_settle(struct exchange *exchange)
{
	struct arena arena;

	connection_rest(exchange->connection);
	arena_init(&arena, EXCHANGE_ARENA_MAX);
	if (api_settle(&exchange->call, &arena) < 0)
		return;
	exchange->request = exchange->call.request = settled_request(exchange->request);
	arena_done(&exchange->arena);
	buf_done(&exchange->body);
	exchange->arena = arena;
	exchange->is_settled = true;
}

static void answer_at(struct server *server, struct exchange *exchange, uint64_t now_ns)
{
	if (!exchange->has_waited)
		histogram_add(&server->metrics.request, now_ns - exchange->began_ns);
	journal_reply(exchange);
	if (exchange->connection)
		connection_reply(exchange->connection, exchange);
	else
		exchange_free(server, exchange);
}

void exchange_answer(struct server *server, struct exchange *exchange)
{
	answer_at(server, exchange, uv_hrtime());
}

void exchange_begin(struct server *server, struct exchange *exchange)
{
	struct api_call *call = &exchange->call;

	*call = (struct api_call){
		.request = exchange->request,
		.arena = &exchange->arena,
		.body = &exchange->body,
		.rules = &server->options->storage.rules,
		.now = server->now,
		.reads = &server->reads,
		.action_queues = server->options->action_queues,
	};
	if (gate_pass(server, exchange))
		api_begin(call);
	exchange_go_on(server, exchange);
}

void exchange_go_on(struct server *server, struct exchange *exchange)
{
	struct api_call *call = &exchange->call;

	if (call->step == API_TURN && server->stopping)
		api_refuse(call, REFUSED_UNAVAILABLE, "the server is stopping; try again in a moment");
	if (call->step == API_NEWS && server->stopping)
		api_finish_news(call, false);
	if (call->step == API_READ)
		reader_begin(server, exchange);
	else if (call->step == API_TURN)
		share_turn(server, exchange);
	else if (call->step == API_NEWS)
		waiting_add(server, exchange);
	else if (call->step != API_STREAM || !stream_begin(server, exchange))
		exchange_answer(server, exchange);
}

/* The next turn gives back what it would have handed out: its commands become returns. */
static void give_back(struct server *server, struct exchange *exchange)
{
	const struct command *claim = &exchange->call.commands[exchange->call.command_count - 1];
	struct command *returns = arena_alloc(&exchange->arena, exchange->claim_count * sizeof *returns);

	if (!returns) /* their leases will end by themselves */
		return exchange_free(server, exchange);
	for (uint32_t i = 0; i < exchange->claim_count; i++) {
		const struct handed_claim *handed = &exchange->claims[i];
		returns[i] = (struct command){
			.kind = COMMAND_RETURN,
			.actor = claim->actor,
			.principal = claim->principal,
			.worker = claim->worker,
			.task = handed->id,
			.fence = handed->fence,
			.version = handed->version,
		};
	}
	exchange->call.commands = returns;
	exchange->call.command_count = exchange->claim_count;
	exchange->claim_count = 0;
	exchange->connection = NULL;
	exchange_list_add(&server->pending, exchange);
}

void exchange_abandon(struct server *server, struct exchange *exchange)
{
	exchange->connection = NULL;
	if (exchange->claim_count > 0) { /* answered, and the answer was not written */
		give_back(server, exchange);
	} else if (exchange->waits) {
		waiting_remove(server, exchange);
		exchange_free(server, exchange);
	} else if (exchange->backs_up) {
		backup_abandon(server);
		exchange_free(server, exchange);
	} else if (exchange->streams) {
		exchange_list_remove(&server->streams, exchange);
		exchange_free(server, exchange);
	} else if (exchange->stands) {
		exchange_list_remove(exchange->stands, exchange);
		exchange_free(server, exchange);
	} else if (exchange->call.step != API_TURN) {
		exchange_free(server, exchange);
	}
	/* otherwise it waits for its turn, and is freed after it */
}

/* Its credential was revoked or has expired while it waited. */
void exchange_turn_away(struct server *server, struct exchange *exchange)
{
	if (exchange->stands)
		exchange_list_remove(exchange->stands, exchange);
	exchange->stands = NULL;
	exchange->wait_until_ms = 0;
	api_refuse(&exchange->call, REFUSED_UNAUTHORIZED, "The credential is no longer good.");
	exchange->call.reply.authenticate = SPAN("Bearer");
	exchange_answer(server, exchange);
}

/* ---- what came of it -------------------------------------------------------------------------------------- */

/* Remember what the reply hands out, in case it is never written. */
static void note_claims(struct exchange *exchange, const struct result *results)
{
	const struct result *last = &results[exchange->call.command_count - 1];
	struct handed_claim *handed;

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

/* It was taken along for work that could not be written: there is none, and it was not asked for an answer. */
static bool joined_in_vain(struct exchange *exchange, const struct result *results)
{
	bool joined = exchange->joined;

	exchange->joined = false;
	return joined && results[0].refusal == REFUSED_UNAVAILABLE;
}

static void finish(struct server *server, struct exchange *exchange, const struct result *results)
{
	struct api_call *call = &exchange->call;

	if (call->commands[0].kind == COMMAND_RETURN) {
		exchange_free(server, exchange);
		return;
	}
	if (api_put_off(call, results)) {
		exchange_list_add(&server->pending, exchange);
		return;
	}
	if (may_wait(server, exchange) && (joined_in_vain(exchange, results) || api_waits(call, results))) {
		waiting_add(server, exchange);
		return;
	}
	exchange->wait_until_ms = 0;
	note_claims(exchange, results);
	count_claim(&server->metrics, exchange, results);
	api_finish(call, results);
	if (call->step == API_BACKUP && exchange->connection)
		backup_start(server, exchange);
	else if (call->step == API_TURN)
		exchange_list_add(&server->pending, exchange);
	else if (!exchange->connection && exchange->claim_count > 0)
		give_back(server, exchange);
	else
		answer_at(server, exchange, server->now_ns);
}

/* ---- the turn -------------------------------------------------------------------------------------------- */

static void join(
	struct exchange_list *taken, struct exchange *exchange, struct command *commands, uint32_t *count)
{
	exchange_list_add(taken, exchange);
	exchange->first_result = *count;
	for (uint32_t i = 0; i < exchange->call.command_count; i++) {
		const struct command *command = &exchange->call.commands[i];
		memcpy(&commands[(*count)++], command, command_bytes(command));
	}
}

/* Whoever waits for work that this turn creates takes it in the same turn: one sync instead of two. If it was not to
 * be had after all, it waits on. */
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
		if (gate_still_knows(server, exchange))
			join(taken, exchange, commands, count);
		else
			exchange_turn_away(server, exchange);
	}
}

/* As many of those that want a turn as it has room for. */
static uint32_t gather(struct server *server, struct exchange_list *taken, struct command *commands)
{
	uint32_t count = 0;

	while (server->pending.first) {
		struct exchange *exchange = server->pending.first;
		if (count + exchange->call.command_count > STORE_COMMANDS_MAX)
			break;
		exchange_list_remove(&server->pending, exchange);
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

	int r = store_turn(server->store, server->now, commands, count, ret_results);
	if (r < 0)
		server_die(server, r);
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
 * and want a sync of their own. Nobody waits for what is not there, and a look that brings nothing is the last. */
bool turns_may_grow(struct server *server)
{
	bool has_grown = server->pending.count > server->gathered;

	server->gathered = server->pending.count;
	if (!has_grown || server->looks == LOOKS_MAX || server->connection_count < 2 ||
		connections_are_quiet(server))
		return false;
	server->looks++;
	return true;
}

void turns_run(struct server *server)
{
	static struct command commands[STORE_COMMANDS_MAX];
	static struct result results[STORE_COMMANDS_MAX];

	server->gathered = server->looks = 0;
	look_at_clock(server);
	shares_fill_up(server);
	do {
		struct exchange_list taken = {0};
		struct exchange *exchange;
		uint32_t count = gather(server, &taken, commands);
		take_turn(server, commands, count, results);
		server->times_set |= count > 0;
		while ((exchange = exchange_list_take(&taken)))
			finish(server, exchange, &results[exchange->first_result]);
		waiting_tell(server);
		connections_flush(server);
	} while (waiting_wake(server) || server->pending.first);
	shares_next_round(server);
	int r = store_checkpoint(server->store);
	if (r < 0)
		server_die(server, r);
}

void turns_hurry(struct server *server)
{
	if (server->pending.count + server->later.count >= GATHERED_MAX)
		turns_run(server);
}

void turns_stop(struct server *server)
{
	while (server->pending.first)
		turns_run(server);
	waiting_sweep(server);
}

void turns_done(struct server *server)
{
	struct exchange *exchange;

	assert(server->waiting.count == 0);
	assert(server->waiting.news_count == 0);
	while ((exchange = exchange_list_take(&server->pending)) ||
		(exchange = exchange_list_take(&server->later)) ||
		(exchange = exchange_list_take(&server->spare)))
		exchange_destroy(exchange);
}
