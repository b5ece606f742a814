/*
 * Exchanges: the states of one, and the steps that each takes. See exchange.h.
 */
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "server/server.h"
#include "server/watch/server_log.h"

enum {
	EXCHANGE_ARENA_MAX = 64 << 20,
	REPLY_BYTES_MAX = 64 << 20,
	SPARE_MAX = 256,
};

/* ---- states -------------------------------------------------------------------------------------------- */

#define TO(name) (1u << EXCHANGE_##name)

/* Where each may go from here. */
static const uint16_t ways[EXCHANGE_STATE_COUNT] = {
	[EXCHANGE_SPARE] = TO(NEW),
	[EXCHANGE_NEW] =
		TO(ANSWERED) | TO(READING) | TO(STREAMING) | TO(QUEUED) | TO(LATER) | TO(WAITING) | TO(SPARE),
	[EXCHANGE_READING] = TO(NEW) | TO(READING) | TO(SPARE),
	[EXCHANGE_STREAMING] = TO(SPARE),
	[EXCHANGE_QUEUED] = TO(IN_TURN),
	[EXCHANGE_LATER] = TO(QUEUED) | TO(LATER),
	[EXCHANGE_IN_TURN] = TO(QUEUED) | TO(WAITING) | TO(BACKING_UP) | TO(ANSWERED) | TO(SPARE),
	[EXCHANGE_WAITING] = TO(TAKEN),
	[EXCHANGE_TAKEN] = TO(QUEUED) | TO(IN_TURN) | TO(ANSWERED) | TO(SPARE),
	[EXCHANGE_BACKING_UP] = TO(ANSWERED) | TO(SPARE),
	[EXCHANGE_ANSWERED] = TO(SPARE) | TO(QUEUED),
};

void exchange_move(struct exchange *exchange, enum exchange_state state)
{
	assert(exchange->state < EXCHANGE_STATE_COUNT);
	assert(ways[exchange->state] & 1u << state);
	exchange->state = state;
}

void exchange_want_turn(struct server *server, struct exchange *exchange)
{
	assert(exchange->call.command_count > 0);
	exchange_move(exchange, EXCHANGE_QUEUED);
	exchange_list_add(&server->turns.queued, exchange);
}

/* ---- lists ------------------------------------------------------------------------------------------ */

void exchange_list_insert(struct exchange_list *list, struct exchange *exchange, struct exchange *next)
{
	assert(!exchange->list); /* it stands in one list at a time */
	assert(!exchange->next);
	assert(!exchange->previous);
	assert(!next || next->list == list);
	assert(list->first != exchange);
	assert(list->last != exchange);
	exchange->list = list;
	exchange->next = next;
	exchange->previous = next ? next->previous : list->last;
	*(exchange->previous ? &exchange->previous->next : &list->first) = exchange;
	*(next ? &next->previous : &list->last) = exchange;
	list->count++;
}

void exchange_list_add(struct exchange_list *list, struct exchange *exchange)
{
	exchange_list_insert(list, exchange, NULL);
}

void exchange_list_remove(struct exchange *exchange)
{
	struct exchange_list *list = exchange->list;

	assert(list);
	assert(list->count > 0);
	assert(exchange->previous || list->first == exchange);
	assert(exchange->next || list->last == exchange);
	*(exchange->previous ? &exchange->previous->next : &list->first) = exchange->next;
	*(exchange->next ? &exchange->next->previous : &list->last) = exchange->previous;
	exchange->next = exchange->previous = NULL;
	exchange->list = NULL;
	list->count--;
	assert((list->count == 0) == !list->first);
}

struct exchange *exchange_list_take(struct exchange_list *list)
{
	struct exchange *exchange = list->first;

	if (exchange)
		exchange_list_remove(exchange);
	return exchange;
}

uint32_t exchange_list_count_of(const struct exchange_list *list, uint32_t principal)
{
	uint32_t count = 0;

	for (const struct exchange *exchange = list->first; exchange; exchange = exchange->next)
		count += exchange->call.who.number == principal;
	return count;
}

uint32_t exchange_list_count_like(const struct exchange_list *list, const struct exchange *exchange)
{
	const struct principal *who = &exchange->call.who;
	uint32_t count = 0;

	for (const struct exchange *other = list->first; other; other = other->next)
		count += other->call.who.number == who->number && other->holder == exchange->holder &&
			other->call.who.task_seq == who->task_seq;
	return count;
}

/* ---- exchanges ---------------------------------------------------------------------------------------- */

struct exchange *exchange_new(struct server *server)
{
	struct exchange *exchange = exchange_list_take(&server->turns.spare);

	assert(!exchange || exchange->state == EXCHANGE_SPARE);
	assert(!exchange || exchange->claim_count == 0);
	if (!exchange) {
		exchange = calloc(1, sizeof *exchange);
		if (!exchange)
			return NULL;
		arena_init(&exchange->arena, EXCHANGE_ARENA_MAX);
		buf_init(&exchange->body, REPLY_BYTES_MAX);
	}
	exchange_move(exchange, EXCHANGE_NEW);
	return exchange;
}

void exchange_destroy(struct exchange *exchange)
{
	arena_done(&exchange->arena);
	buf_done(&exchange->body);
	free(exchange);
}

/* What stands before `state` outlives a request (arena, body), or is made anew for the next one (call, request): clearing a call
 * twice would cost every request. */
_Static_assert(offsetof(struct exchange, call) < offsetof(struct exchange, state), "made anew");
_Static_assert(offsetof(struct exchange, request) < offsetof(struct exchange, state), "made anew");
_Static_assert(offsetof(struct exchange, arena) < offsetof(struct exchange, state), "kept");
_Static_assert(offsetof(struct exchange, body) < offsetof(struct exchange, state), "kept");
_Static_assert(EXCHANGE_SPARE == 0, "what is cleared is spare");

void exchange_free(struct server *server, struct exchange *exchange)
{
	assert(!exchange->list);
	exchange_move(exchange, EXCHANGE_SPARE);
	if (server->turns.spare.count >= SPARE_MAX || exchange->body.cap > 64 * 1024) {
		exchange_destroy(exchange);
		return;
	}
	if (exchange->is_compact) /* its first chunk is too small for others */
		arena_done(&exchange->arena);
	arena_reset(&exchange->arena);
	buf_clear(&exchange->body);
	memset(&exchange->state, 0, sizeof *exchange - offsetof(struct exchange, state));
	exchange_list_add(&server->turns.spare, exchange);
}

/* What is left of a request that waits: one of eight, which all exchanges share. */
static const struct http_request *compact_request(const struct http_request *request)
{
	static struct http_request kinds[2][2][2];
	struct http_request *kind =
		&kinds[request->method == HTTP_METHOD_GET][request->keep_alive][request->takes_chunks];

	assert(request->method == HTTP_METHOD_GET || request->method == HTTP_METHOD_POST);
	*kind = (struct http_request){.method = request->method,
		.keep_alive = request->keep_alive,
		.takes_chunks = request->takes_chunks};
	return kind;
}

void exchange_compact(struct exchange *exchange)
{
	struct arena arena;

	assert(exchange->connection);
	assert(!exchange->is_compact);
	connection_rest(exchange->connection);
	arena_init(&arena, EXCHANGE_ARENA_MAX);
	if (api_compact(&exchange->call, &arena) < 0)
		return;
	exchange->request = exchange->call.request = compact_request(exchange->request);
	arena_done(&exchange->arena);
	buf_done(&exchange->body);
	exchange->arena = arena;
	exchange->is_compact = true;
}

void exchange_answer_at(struct server *server, struct exchange *exchange, uint64_t now_ns)
{
	assert(!server->turns.is_committing); /* no reply before the commit */
	assert(!exchange->list);
	if (!exchange->has_waited)
		histogram_add(&server->metrics.request, now_ns - exchange->began_ns);
	journal_reply(exchange);
	if (!exchange->connection) {
		exchange_free(server, exchange);
		return;
	}
	exchange_move(exchange, EXCHANGE_ANSWERED);
	connection_reply(exchange->connection, exchange);
}

void exchange_answer(struct server *server, struct exchange *exchange)
{
	exchange_answer_at(server, exchange, uv_hrtime());
}

/* The page's links begin where it is: it must be beneath its path. False: the exchange has its reply. */
static bool send_to_slash(const struct server *server, struct exchange *exchange)
{
	struct api_call *call = &exchange->call;

	if (buf_printf(&exchange->body, "%s/", server->options->front.prefix) < 0)
		return true;
	call->reply = (struct http_reply){.status = 308, .location = buf_span(&exchange->body)};
	call->step = API_REPLY;
	return false;
}

void exchange_begin(struct server *server, struct exchange *exchange)
{
	struct api_call *call = &exchange->call;

	*call = host_call(server, exchange->request, &exchange->arena, &exchange->body);
	if (!server->store) {
		standby_answer(server, exchange);
		return;
	}
	if (exchange->lacks_slash && !send_to_slash(server, exchange)) {
		exchange_answer(server, exchange);
		return;
	}
	if (!lead_is_sure(server) && !span_is(exchange->request->path, "/livez"))
		api_refuse(call, REFUSED_UNAVAILABLE,
			"PostgreSQL cannot be reached, so this server cannot know whether it still leads; its log says more.");
	else if (admission_pass(server, exchange)) {
		api_begin(call);
		payer_admit(server, exchange);
	}
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

/* Without a connection nobody is left to be answered. */
void exchange_gave_back(struct server *server, struct exchange *exchange)
{
	if (exchange->connection)
		exchange_answer(server, exchange);
	else
		exchange_free(server, exchange);
}

/* The next turn gives back what it would have handed out: its commands become returns. */
void exchange_give_back(struct server *server, struct exchange *exchange)
{
	const struct command *claim = &exchange->call.commands[exchange->call.command_count - 1];
	struct command *returns = arena_alloc(&exchange->arena, exchange->claim_count * sizeof *returns);

	assert(exchange->claim_count > 0);
	assert(claim->kind == COMMAND_CLAIM_NEXT || claim->kind == COMMAND_CLAIM);
	if (!returns) { /* their leases will end by themselves */
		exchange->claim_count = 0;
		return exchange_gave_back(server, exchange);
	}
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
	exchange_want_turn(server, exchange);
}

void exchange_abandon(struct server *server, struct exchange *exchange)
{
	exchange->connection = NULL;
	switch (exchange->state) {
	case EXCHANGE_QUEUED:
	case EXCHANGE_LATER:
	case EXCHANGE_IN_TURN:
	case EXCHANGE_TAKEN:
		return; /* it is freed when it has had its turn, or its answer */
	case EXCHANGE_ANSWERED:
		if (exchange->claim_count > 0) {
			exchange_give_back(server, exchange);
			return;
		}
		break;
	case EXCHANGE_WAITING:
		waiting_remove(server, exchange);
		break;
	case EXCHANGE_BACKING_UP:
		backup_abandon(server);
		break;
	case EXCHANGE_STREAMING:
	case EXCHANGE_READING:
		exchange_list_remove(exchange);
		break;
	case EXCHANGE_NEW:
		break;
	case EXCHANGE_SPARE:
	case EXCHANGE_STATE_COUNT:
		assert(0 && "an exchange that nobody has is not abandoned");
	}
	exchange_free(server, exchange);
}

/* Its credential was revoked or has expired while it waited. */
void exchange_refuse_credential(struct server *server, struct exchange *exchange)
{
	if (exchange->state == EXCHANGE_READING) {
		exchange_list_remove(exchange);
		exchange_move(exchange, EXCHANGE_NEW);
	}
	exchange->wait_until_ms = 0;
	api_refuse(&exchange->call, REFUSED_UNAUTHORIZED, "The credential is no longer good.");
	exchange->call.reply.authenticate = SPAN("Bearer");
	exchange_answer(server, exchange);
}
