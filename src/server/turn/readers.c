/*
 * Reads, a slice at a time, so that no read delays a commit.
 *
 * A read is a step of a call that may have to be taken many times: api_read() does a bounded piece of it and says
 * whether there is more. A short one is answered as soon as it has come in, as long as the tick of the loop has time
 * for that; everything else is done after the replies of the turn have gone out: a little of it in any case, and more for a
 * bounded time while no request arrives; then the network is looked at again. There is no thread, and so nothing to lock:
 * between two slices anything may change.
 *
 *   fresh    has had no slice yet: there was no time for it
 *   reading  is under way, one slice each in turn. What it has gathered takes memory: there are few of them
 *   queued   wants to be under way
 *
 * A reply that grows long is sent in pieces while it is made, and goes on when the client has taken most of them: a
 * client that does not read costs one full output and its place. It loses both to the write timeout of its connection;
 * or sooner, if somebody is queued.
 */
#include <assert.h>

#include "server/server.h"

enum {
	QUICK_NS = 500 * 1000,      /* of one tick of the loop for reads that have just come in … */
	SLICES_NS = 1500 * 1000,    /* … and for the others after its replies; … */
	SLICES_MIN_NS = 250 * 1000, /* … only so long if there is something else to do */
	READING_MAX = 64,
	READING_RESERVE = 8, /* of these for operators */
	READING_PER_PRINCIPAL_MAX = 16,
	READING_PER_INSTANCE_MAX = 4,
	READING_PER_CLAIM_MAX = 2,
	WAITING_MAX = 256,
	WAITING_RESERVE = 32,
	WAITING_PER_PRINCIPAL_MAX = 128,
	RETRY_AFTER_S = 1,
	PIECE_BYTES_MIN = 64 << 10,
	UNSENT_BYTES_MAX = 256 << 10,
	PATIENCE_MS = 5000,
};

/* ---- pieces of a reply ----------------------------------------------------------------------------------- */

/* Send what there is of the body. The exchange may end with that. */
static void send_piece(const struct server *server, struct exchange *exchange)
{
	struct connection *connection = exchange->connection;

	assert(exchange->state == EXCHANGE_READING);
	assert(connection);
	if (!exchange->is_begun && !connection_begin_pieces(connection))
		return;
	exchange->is_begun = true;
	exchange->last_sent_ms = server->now.lease_ms;
	if (exchange->call.reply.head) /* that was all it asked for */
		connection_end_pieces(connection);
	else if (connection_put_piece(connection, buf_span(&exchange->body)))
		buf_clear(&exchange->body);
}

/* A reply that was begun is at its end. One that failed on the way is broken off: then the client knows. */
static void finish_pieces(struct exchange *exchange)
{
	struct connection *connection = exchange->connection;

	if (exchange->call.reply.status >= 400)
		connection_close(connection);
	else if (exchange->body.len == 0 || connection_put_piece(connection, buf_span(&exchange->body)))
		connection_end_pieces(connection);
}

/* ---- slices ------------------------------------------------------------------------------------------------ */

static void stand_in(struct exchange_list *list, struct exchange *exchange)
{
	if (exchange->list)
		exchange_list_remove(exchange);
	else if (!list)
		return;
	exchange_move(exchange, list ? EXCHANGE_READING : EXCHANGE_NEW);
	if (list)
		exchange_list_add(list, exchange);
}

static void take_slice(struct server *server, struct exchange *exchange)
{
	uint64_t began_ns = uv_hrtime();

	assert(exchange->call.step == API_READ);
	assert(!server->turns.is_committing); /* a read sees what is committed */
	exchange->call.now = server->now;
	api_read(&exchange->call);
	server->readers.spent_ns += uv_hrtime() - began_ns;
}

/* It has read what it wanted to. */
static void finish(struct server *server, struct exchange *exchange)
{
	stand_in(NULL, exchange);
	if (exchange->is_begun)
		finish_pieces(exchange);
	else
		exchange_go_on(server, exchange);
}

/* Places that are kept free for operators. */
static uint32_t reserve_for(const struct exchange *exchange, uint32_t reserve)
{
	return payer_has_reserve(exchange) ? 0 : reserve;
}

static bool may_go_in(const struct server *server, const struct exchange *exchange)
{
	const struct exchange_list *reading = &server->readers.reading;
	uint32_t leaf_max = exchange->caller == CALLER_CLAIM ? READING_PER_CLAIM_MAX
		: exchange->caller == CALLER_INSTANCE        ? READING_PER_INSTANCE_MAX
							     : READING_PER_PRINCIPAL_MAX;

	return reading->count < READING_MAX - reserve_for(exchange, READING_RESERVE) &&
		exchange_list_count_of(reading, exchange->call.who.number) < READING_PER_PRINCIPAL_MAX &&
		exchange_list_count_like(reading, exchange) < leaf_max;
}

static bool may_queue(const struct server *server, const struct exchange *exchange)
{
	const struct exchange_list *queued = &server->readers.queued;

	return queued->count < WAITING_MAX - reserve_for(exchange, WAITING_RESERVE) &&
		(payer_has_reserve(exchange) ||
			exchange_list_count_of(queued, exchange->call.who.number) <
				WAITING_PER_PRINCIPAL_MAX);
}

/* It has had its first slice, and there is more. Nothing of its reply has been sent. */
static void go_in(struct server *server, struct exchange *exchange)
{
	server->readers.has_work = true;
	exchange->last_sent_ms = server->now.lease_ms;
	if (may_go_in(server, exchange)) {
		stand_in(&server->readers.reading, exchange);
	} else if (may_queue(server, exchange)) {
		stand_in(&server->readers.queued, exchange);
	} else {
		stand_in(NULL, exchange);
		api_refuse(&exchange->call, REFUSED_RATE_LIMITED, "Too many lists are being read.");
		exchange->call.reply.retry_after_s = RETRY_AFTER_S;
		exchange_go_on(server, exchange);
	}
}

static void take_first_slice(struct server *server, struct exchange *exchange)
{
	take_slice(server, exchange);
	if (exchange->call.step == API_READ)
		go_in(server, exchange);
	else
		finish(server, exchange);
}

void reader_begin(struct server *server, struct exchange *exchange)
{
	if (server->readers.spent_ns >= QUICK_NS) {
		server->readers.has_work = true;
		stand_in(&server->readers.fresh, exchange);
		return;
	}
	take_first_slice(server, exchange);
}

/* First come, first served, unless a principal has its share. */
static void let_in(struct server *server)
{
	struct exchange *next;

	for (struct exchange *exchange = server->readers.queued.first;
		exchange && server->readers.reading.count < READING_MAX; exchange = next) {
		next = exchange->next;
		if (may_go_in(server, exchange))
			stand_in(&server->readers.reading, exchange);
	}
}

static bool slice_of_fresh(struct server *server)
{
	struct exchange *exchange = server->readers.fresh.first;

	if (exchange)
		take_first_slice(server, exchange);
	return exchange != NULL;
}

static bool has_room(const struct exchange *reader)
{
	return connection_unsent(reader->connection) <= UNSENT_BYTES_MAX;
}

/* The first that has room for more; all that were looked at stand last. */
static struct exchange *next_reading(struct server *server)
{
	for (uint32_t left = server->readers.reading.count; left > 0; left--) {
		struct exchange *reader = server->readers.reading.first;
		stand_in(&server->readers.reading, reader);
		if (has_room(reader))
			return reader;
	}
	return NULL;
}

static bool slice_of_reading(struct server *server)
{
	struct exchange *reader = next_reading(server);

	if (!reader)
		return false;
	if (!admission_is_still_good(server, reader)) {
		if (reader->is_begun)
			connection_close(reader->connection);
		else
			exchange_refuse_credential(server, reader);
		return true;
	}
	take_slice(server, reader);
	if (reader->call.step != API_READ)
		finish(server, reader);
	else if (reader->call.reply.status != 0 && reader->body.len >= PIECE_BYTES_MIN)
		send_piece(server, reader);
	return true;
}

static bool has_time(const struct server *server)
{
	return server->readers.spent_ns < SLICES_MIN_NS ||
		(server->readers.spent_ns < SLICES_NS && connections_are_quiet(server));
}

void readers_run(struct server *server)
{
	bool more = true;

	server->readers.spent_ns = 0;
	if (!server->readers.has_work)
		return;
	server->now = clock_now();
	if (server->readers.queued.first)
		let_in(server);
	while (more && has_time(server)) /* one of each kind: neither starves the other */
		more = (int)slice_of_fresh(server) | (int)slice_of_reading(server);
	server->readers.has_work = more;
	server->readers.spent_ns = 0;
	connections_flush(server);
}

/* ---- time and the end ---------------------------------------------------------------------------------------- */

/* Readers whose client has not read for a while are ended, to make room for the queued ones. */
void readers_sweep(struct server *server)
{
	struct exchange *next;
	uint32_t wanted = server->readers.queued.count;

	for (struct exchange *reader = server->readers.reading.first; reader && wanted > 0; reader = next) {
		next = reader->next;
		if (has_room(reader) || server->now.lease_ms - reader->last_sent_ms <= PATIENCE_MS)
			continue;
		connection_close(reader->connection);
		server->readers.has_work = true;
		wanted--;
	}
}

void readers_stop(struct server *server)
{
	struct readers *readers = &server->readers;
	struct exchange *exchange;

	while ((exchange = readers->fresh.first) || (exchange = readers->reading.first) ||
		(exchange = readers->queued.first)) {
		api_refuse(&exchange->call, REFUSED_UNAVAILABLE,
			"The server is stopping; try again in a moment.");
		finish(server, exchange);
	}
}
