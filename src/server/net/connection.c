/*
 * Connections: bytes in, requests out to the turns, replies back.
 *
 * Requests of a connection that only want a turn go into the same one, as many as have come; their replies keep their
 * order and are written together. Every other request is under way alone; what the client sends behind it waits in the input,
 * and what does not fit there waits in the client. While replies pile up unread, no more is taken from the client.
 * A client that reads slowly, sends slowly or not at all costs its own connection and nothing else.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/take.h"
#include "server/net/connection.h"
#include "server/watch/server_log.h"

enum {
	LINGER_BYTES_MAX = 4 << 20,   /* what a refused client still sends is thrown away, up to that much */
	UNSENT_BYTES_MAX = 256 << 10, /* with more on the way to the client, its next request waits */
	OUTPUT_BYTES_MAX = 66 << 20,  /* that, and the largest reply there is */
	KEPT_BYTES_MAX = 64 << 10,    /* of a buffer that is empty */
	LONG_BODY_BYTES = 4096, /* beyond which a body needs a right credential, and counts for its payer */
	BUSY_RETRY_AFTER_S = 1,
	ACCEPTS_MAX = 64, /* connections taken in one tick of the loop, then those at hand are served */
	SEALED_BYTES_MAX = 64 << 10, /* of TLS, that the kernel has not taken */
	AHEAD_MAX = 64,              /* requests of one connection that are under way before the last one */
};

static void serve(struct connection *connection);

/* ---- states -------------------------------------------------------------------------------------------- */

#define TO(name) (1u << CONNECTION_##name)

static void connection_move(struct connection *connection, enum connection_state state)
{
	static const uint8_t ways[] = {
		[CONNECTION_OPEN] = TO(ENDING) | TO(REFUSED) | TO(CLOSED),
		[CONNECTION_ENDING] = TO(CLOSED),
		[CONNECTION_REFUSED] = TO(FIN_SENT) | TO(CLOSED),
		[CONNECTION_FIN_SENT] = TO(CLOSED),
		[CONNECTION_CLOSED] = 0,
	};

	assert(ways[connection->state] & 1u << state);
	connection->state = state;
}

/* The connection closes after the output and the request under way. */
static void connection_end_after(struct connection *connection)
{
	if (connection->state == CONNECTION_OPEN)
		connection_move(connection, CONNECTION_ENDING);
}

static bool is_closed(const struct connection *connection)
{
	return connection->state == CONNECTION_CLOSED;
}

static bool is_ending(const struct connection *connection)
{
	return connection->state != CONNECTION_OPEN && connection->state != CONNECTION_CLOSED;
}

static bool discards_input(const struct connection *connection)
{
	return connection->state == CONNECTION_REFUSED || connection->state == CONNECTION_FIN_SENT;
}

/* ---- with something to flush ---- */

static void mark_dirty(struct connection *connection)
{
	assert(!is_closed(connection));
	if (connection->is_dirty)
		return;
	connection->is_dirty = true;
	LIST_INSERT_HEAD(&connection->server->connections.dirty, connection, dirty);
}

static void unmark_dirty(struct connection *connection)
{
	if (!connection->is_dirty)
		return;
	connection->is_dirty = false;
	LIST_REMOVE(connection, dirty);
}

struct span connection_passed_host(const struct connection *connection)
{
	return connection->passed ? span_of(connection->passed->host) : (struct span){0};
}

const struct source_key *connection_source(const struct connection *connection)
{
	return &connection->client;
}

void connection_peer(const struct connection *connection, char ret_address[API_PEER_BYTES])
{
	struct sockaddr_storage address;
	int len = sizeof address;

	snprintf(ret_address, API_PEER_BYTES, "socket");
	if (connection->stream.type != UV_TCP ||
		uv_tcp_getpeername((const uv_tcp_t *)&connection->stream, (struct sockaddr *)&address, &len) <
			0)
		return;
	uv_ip_name((const struct sockaddr *)&address, ret_address, API_PEER_BYTES);
}

static struct connection *of_handle(void *handle)
{
	return ((uv_handle_t *)handle)->data;
}

/* ---- closing ------------------------------------------------------------------------------------------- */

static void abandon_all(struct connection *connection, struct exchange_list *list)
{
	struct exchange *exchange;

	while ((exchange = exchange_list_take(list)))
		exchange_abandon(connection->server, exchange);
}

/* The one that is to be answered first; NULL: none is under way. */
static struct exchange *oldest(const struct connection *connection)
{
	return connection->ahead_first ? connection->ahead_first : connection->current;
}

static struct exchange *take_oldest(struct connection *connection)
{
	struct exchange *exchange = oldest(connection);

	assert((connection->ahead_count == 0) == !connection->ahead_first);
	if (connection->ahead_first) {
		connection->ahead_first = connection->ahead_first->behind;
		connection->ahead_count--;
	} else {
		connection->current = NULL;
	}
	return exchange;
}

/* The current one lets another request come behind it. */
static void let_another_come(struct connection *connection)
{
	struct exchange *exchange = connection->current;

	assert(exchange->connection == connection);
	assert(exchange->state == EXCHANGE_QUEUED);
	assert(connection->ahead_count < AHEAD_MAX);
	exchange->behind = NULL;
	if (connection->ahead_first)
		connection->ahead_last->behind = exchange;
	else
		connection->ahead_first = exchange;
	connection->ahead_last = exchange;
	connection->ahead_count++;
	connection->current = NULL;
}

static void outgoing_free(struct outgoing *outgoing)
{
	if (outgoing)
		buf_done(&outgoing->bytes);
	free(outgoing);
}

static void on_closed(uv_handle_t *handle)
{
	struct connection *connection = of_handle(handle);

	secure_leave(connection->secure);
	http_input_free(connection->input);
	buf_done(&connection->out);
	outgoing_free(connection->outgoing);
	free(connection->passed);
	free(connection);
}

/* Without it the client takes the end of a body for a cut. It need not arrive. */
static void say_goodbye(struct connection *connection)
{
	struct secure *secure = connection->secure;

	if (!secure || secure->state != SECURE_OPEN || connection->outgoing)
		return;
	tls_say_goodbye(secure->tls);
	struct span last = tls_output(secure->tls);
	uv_buf_t bytes = uv_buf_init((char *)last.data, (unsigned)last.len);
	int sent = last.len > 0 ? uv_try_write(&connection->stream, &bytes, 1) : 0;
	tls_output_sent(secure->tls, sent > 0 ? (size_t)sent : 0);
}

void connection_close(struct connection *connection)
{
	struct server *server = connection->server;

	if (connection->state == CONNECTION_CLOSED)
		return;
	say_goodbye(connection);
	connection_move(connection, CONNECTION_CLOSED);
	LIST_REMOVE(connection, all);
	payer_hold(connection, 0);
	connection_unseat(connection);
	assert(server->connections.count > 0);
	server->connections.count--;
	unmark_dirty(connection);
	struct exchange *exchange;
	while ((exchange = take_oldest(connection)))
		exchange_abandon(server, exchange);
	abandon_all(connection, &connection->unwritten);
	if (connection->outgoing)
		abandon_all(connection, &connection->outgoing->unwritten);
	uv_close((uv_handle_t *)&connection->stream, on_closed);
}

/* ---- writing ------------------------------------------------------------------------------------------- */

static void free_written(struct connection *connection, struct exchange_list *list)
{
	struct exchange *exchange;

	while ((exchange = exchange_list_take(list)))
		exchange_free(connection->server, exchange);
}

static void start_write(struct connection *connection);
static void serve_all(struct connection *connection);

/* Is there something to write? While a thread has the TLS of the connection, nothing is. */
static bool has_output(const struct connection *connection)
{
	const struct secure *secure = connection->secure;

	if (secure && secure->state == SECURE_AWAY)
		return false;
	return connection->out.len > 0 || (secure && tls_output(secure->tls).len > 0);
}

/* Empty it, and do not keep much memory for what was once in it. */
static void buf_rest(struct buf *buf, size_t kept_max)
{
	if (buf->cap > kept_max)
		buf_done(buf);
	else
		buf_clear(buf);
}

static void on_fin_sent(uv_shutdown_t *shutdown, int status)
{
	(void)status;
	free(shutdown);
}

static bool send_fin(struct connection *connection)
{
	uv_shutdown_t *shutdown = calloc(1, sizeof *shutdown);
	bool is_sent = shutdown && uv_shutdown(shutdown, &connection->stream, on_fin_sent) == 0;

	if (!is_sent)
		free(shutdown);
	return is_sent;
}

/* Everything was written. A client that was refused while it sends must be able to read why: if we closed with bytes of it
 * unread, the kernel would throw our reply away. */
static void finish_closing(struct connection *connection)
{
	if (connection->state == CONNECTION_FIN_SENT)
		return;
	if (connection->state == CONNECTION_REFUSED)
		say_goodbye(connection);
	if (connection->state == CONNECTION_REFUSED && send_fin(connection))
		connection_move(connection, CONNECTION_FIN_SENT);
	else
		connection_close(connection);
}

static void after_write(struct connection *connection)
{
	connection->since_ms = connection->server->now.lease_ms;
	connection->server->streams.has_work |=
		connection->current && connection->current->state == EXCHANGE_STREAMING;
	connection->server->readers.has_work |= connection->current && connection->current->is_begun;
	if (has_output(connection))
		start_write(connection);
	else if (is_ending(connection))
		finish_closing(connection);
}

/* The next piece of a long reply need not grow a buffer anew. */
static void take_bytes_back(struct connection *connection)
{
	struct buf *bytes = &connection->outgoing->bytes;

	if (connection->out.data || bytes->cap > KEPT_BYTES_MAX)
		return;
	connection->out = *bytes;
	buf_clear(&connection->out);
	buf_init(bytes, OUTPUT_BYTES_MAX);
}

static void on_written(uv_write_t *write, int status)
{
	struct connection *connection = of_handle(write->handle);

	if (is_closed(connection))
		return;
	if (status < 0) {
		connection_close(connection);
		return;
	}
	assert(connection->outgoing);
	free_written(connection, &connection->outgoing->unwritten);
	take_bytes_back(connection);
	outgoing_free(connection->outgoing);
	connection->outgoing = NULL;
	after_write(connection);
	if (!is_closed(connection) && !connection->current)
		serve_all(connection);
}

/* The kernel took `done` bytes; the rest follows as it makes room. */
static void write_on(struct connection *connection, size_t done)
{
	struct outgoing *outgoing = calloc(1, sizeof *outgoing);
	struct exchange *exchange;

	assert(!connection->outgoing); /* one write at a time: replies keep their order */
	assert(done < connection->out.len);
	if (!outgoing) {
		connection_close(connection);
		return;
	}
	outgoing->bytes = connection->out;
	outgoing->left_bytes = SIZE_MAX;
	while ((exchange = exchange_list_take(&connection->unwritten)))
		exchange_list_add(&outgoing->unwritten, exchange);
	connection->outgoing = outgoing;
	buf_init(&connection->out, OUTPUT_BYTES_MAX);
	connection->since_ms = connection->server->now.lease_ms;
	uv_buf_t rest = uv_buf_init(outgoing->bytes.data + done, (unsigned)(outgoing->bytes.len - done));
	if (uv_write(&outgoing->write, &connection->stream, &rest, 1, on_written) < 0)
		connection_close(connection);
}

/* The kernel has all of the output. */
static void all_is_written(struct connection *connection)
{
	bool is_crowded = connection->server->connections.count > CROWD;

	buf_rest(&connection->out, is_crowded ? 0 : KEPT_BYTES_MAX);
	free_written(connection, &connection->unwritten);
	after_write(connection);
}

/* ---- writing through TLS ---- */

/* The next part of the output, when all that TLS has made before is written. */
static int seal_some(struct connection *connection)
{
	struct secure *secure = connection->secure;
	int r = 0;

	while (r == 0 && secure->sealed < connection->out.len &&
		tls_output(secure->tls).len < SEALED_BYTES_MAX) {
		size_t len = connection->out.len - secure->sealed;
		len = len < TLS_RECORD_BYTES ? len : TLS_RECORD_BYTES;
		r = tls_write(secure->tls, (struct span){connection->out.data + secure->sealed, len});
		secure->sealed += len;
	}
	return r;
}

/* The kernel takes no more for now. The records go into a buffer of their own, because TLS moves its own; replies of which a part
 * is not sealed yet stay where they are. */
static void write_sealed_on(struct connection *connection)
{
	struct outgoing *outgoing = calloc(1, sizeof *outgoing);
	struct secure *secure = connection->secure;
	struct span records = tls_output(secure->tls);
	struct exchange *exchange;

	assert(!connection->outgoing);
	if (!outgoing) {
		connection_close(connection);
		return;
	}
	buf_init(&outgoing->bytes, OUTPUT_BYTES_MAX);
	outgoing->left_bytes = SIZE_MAX;
	connection->outgoing = outgoing;
	if (buf_put_span(&outgoing->bytes, records) < 0) {
		connection_close(connection);
		return;
	}
	tls_output_sent(secure->tls, records.len);
	if (secure->sealed == connection->out.len) {
		while ((exchange = exchange_list_take(&connection->unwritten)))
			exchange_list_add(&outgoing->unwritten, exchange);
		buf_rest(&connection->out, KEPT_BYTES_MAX);
		secure->sealed = 0;
	}
	connection->since_ms = connection->server->now.lease_ms;
	uv_buf_t rest = uv_buf_init(outgoing->bytes.data, (unsigned)outgoing->bytes.len);
	if (uv_write(&outgoing->write, &connection->stream, &rest, 1, on_written) < 0)
		connection_close(connection);
}

static void start_write_sealed(struct connection *connection)
{
	struct secure *secure = connection->secure;
	int written = 0, r = 0;

	assert(secure->state != SECURE_AWAY);
	assert(secure->state == SECURE_OPEN || connection->out.len == 0);
	while (r == 0 && (written >= 0)) {
		r = seal_some(connection);
		struct span records = tls_output(secure->tls);
		if (r < 0 || records.len == 0)
			break;
		uv_buf_t bytes = uv_buf_init((char *)records.data, (unsigned)records.len);
		written = uv_try_write(&connection->stream, &bytes, 1);
		tls_output_sent(secure->tls, written > 0 ? (size_t)written : 0);
	}
	if (r < 0 || (written < 0 && written != UV_EAGAIN)) {
		connection_close(connection);
	} else if (written < 0) {
		write_sealed_on(connection);
	} else {
		secure->sealed = 0;
		all_is_written(connection);
	}
}

/* Hand everything to the kernel; what it does not take at once is written as it makes room. */
static void start_write(struct connection *connection)
{
	uv_buf_t bytes = uv_buf_init(connection->out.data, (unsigned)connection->out.len);

	assert(!connection->outgoing);
	if (connection->secure) {
		start_write_sealed(connection);
		return;
	}
	assert(connection->out.len > 0);
	int written = uv_try_write(&connection->stream, &bytes, 1);

	if (written == (int)connection->out.len) {
		all_is_written(connection);
		return;
	}
	if (written < 0 && written != UV_EAGAIN) {
		connection_close(connection);
		return;
	}
	write_on(connection, written > 0 ? (size_t)written : 0);
}

void connections_flush(struct server *server)
{
	struct connection *connection;

	while ((connection = LIST_FIRST(&server->connections.dirty))) {
		unmark_dirty(connection);
		if (!connection->outgoing && has_output(connection))
			start_write(connection);
		if (!is_closed(connection) && !connection->current)
			serve_all(connection);
	}
}

size_t connection_unsent(const struct connection *connection)
{
	return connection->out.len - (connection->secure ? connection->secure->sealed : 0) +
		(connection->outgoing ? connection->outgoing->bytes.len : 0);
}

struct buf *connection_output(struct connection *connection)
{
	assert(!is_closed(connection));
	mark_dirty(connection);
	return &connection->out;
}

/* The head, and the body if it is there. */
static int begin_reply(struct connection *connection, struct exchange *exchange)
{
	struct http_reply *reply = &exchange->call.reply;

	assert(exchange->connection == connection);
	reply->close = !exchange->request->keep_alive || connection->server->stopping || reply->stream ||
		exchange->closes;
	metrics_count_reply(&connection->server->metrics, reply->status);
	mark_dirty(connection);
	return http_put_reply(&connection->out, reply);
}

static void put_reply(struct connection *connection, struct exchange *exchange)
{
	assert(exchange->state == EXCHANGE_ANSWERED);
	if (begin_reply(connection, exchange) < 0) {
		exchange_abandon(connection->server, exchange);
		connection_close(connection);
		return;
	}
	if (exchange->call.reply.close)
		connection_end_after(connection);
	exchange_list_add(&connection->unwritten, exchange);
}

void connection_reply(struct connection *connection, struct exchange *exchange)
{
	assert(exchange->state == EXCHANGE_ANSWERED);
	assert(!is_closed(connection));
	while (!is_closed(connection) && (exchange = oldest(connection)) &&
		exchange->state == EXCHANGE_ANSWERED) {
		take_oldest(connection);
		put_reply(connection, exchange);
	}
}

void connection_begin_stream(struct connection *connection)
{
	if (begin_reply(connection, connection->current) < 0 || api_put_stream_start(&connection->out) < 0)
		connection_end_stream(connection);
}

void connection_end_stream(struct connection *connection)
{
	assert(connection->current);
	assert(connection->current->state == EXCHANGE_STREAMING);
	exchange_abandon(connection->server, connection->current);
	connection->current = NULL;
	connection_end_after(connection);
	if (connection_unsent(connection) == 0)
		connection_close(connection);
	else
		mark_dirty(connection);
}

/* ---- replies in pieces ---------------------------------------------------------------------------------- */

bool connection_begin_pieces(struct connection *connection)
{
	struct exchange *exchange = connection->current;
	struct http_reply *reply = &exchange->call.reply;

	reply->chunked = exchange->request->takes_chunks;
	reply->stream = !reply->chunked; /* its end is that of the connection */
	reply->body = (struct span){0};
	histogram_add(&connection->server->metrics.request, uv_hrtime() - exchange->began_ns);
	if (begin_reply(connection, exchange) == 0)
		return true;
	connection_close(connection);
	return false;
}

bool connection_put_piece(struct connection *connection, struct span bytes)
{
	struct buf *out = connection_output(connection);
	bool chunked = connection->current->call.reply.chunked;

	if ((chunked ? http_put_chunk(out, bytes) : buf_put_span(out, bytes)) == 0)
		return true;
	connection_close(connection);
	return false;
}

void connection_end_pieces(struct connection *connection)
{
	struct exchange *exchange = connection->current;
	const struct http_reply *reply = &exchange->call.reply;

	if (reply->chunked && !reply->head && !connection_put_piece(connection, (struct span){0}))
		return;
	connection->current = NULL;
	if (reply->close)
		connection_end_after(connection);
	exchange_abandon(connection->server, exchange); /* all of it is in the output */
	if (is_ending(connection) && connection_unsent(connection) == 0)
		connection_close(connection);
	else
		mark_dirty(connection);
}

/* A connection that is idle, or waits for us, costs little. */
void connection_rest(struct connection *connection)
{
	if (connection_unsent(connection) == 0)
		buf_rest(&connection->out, 0);
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static void refuse_input(struct connection *connection, const struct http_complaint *complaint)
{
	struct http_request request = {.path = http_input_path(connection->input)};
	cleanup(buf_done) struct buf body = {0};
	struct api_call call = {.request = &request, .body = &body};

	buf_init(&body, 4096);
	if (complaint->status == 401)
		api_refuse(&call, REFUSED_UNAUTHORIZED, complaint->reason);
	else if (complaint->status == 503)
		api_refuse(&call, REFUSED_BUSY, complaint->reason);
	else if (complaint->status == 413)
		api_refuse(&call, REFUSED_TOO_LARGE, complaint->reason);
	else
		api_refuse_early(&call, complaint->status, complaint->reason);
	if (complaint->status == 401)
		call.reply.authenticate = SPAN("Bearer");
	if (complaint->status == 503)
		call.reply.retry_after_s = BUSY_RETRY_AFTER_S;
	call.reply.close = true;
	http_put_reply(&connection->out, &call.reply);
	connection_move(connection, CONNECTION_REFUSED);
	journal_refused_request(complaint);
	metrics_count_reply(&connection->server->metrics, call.reply.status);
	mark_dirty(connection);
}

/* Who is asking. Only peers that are named as proxies get so far where any is, and what one says is believed. */
static struct source_key client_of(const struct connection *connection, const struct http_request *request)
{
	const struct front *front = &connection->server->options->front;
	unsigned char address[ADDRESS_BYTES];

	if (front->proxy_count > 0 && connection->stream.type == UV_TCP &&
		front_client(front, request->forwarded_for, address))
		return source_at(address);
	return connection->source;
}

static bool take_request(struct connection *connection)
{
	struct exchange *exchange = exchange_new(connection->server);
	struct http_request *copy = exchange ? arena_alloc(&exchange->arena, sizeof *copy) : NULL;

	if (!copy || http_input_take(connection->input, &exchange->arena, copy) < 0) {
		if (exchange)
			exchange_free(connection->server, exchange);
		connection_close(connection);
		return false;
	}
	assert(!connection->current);
	exchange->request = copy;
	exchange->connection = connection;
	connection->current = exchange;
	connection->since_ms = connection->server->now.lease_ms;
	connection->in_body = false;
	connection->taken_bytes = connection->held_bytes;
	connection->heard_bytes = 0;
	exchange->began_ns = connection->server->now_ns;
	connection->client = client_of(connection, copy);
	exchange->lacks_slash =
		front_strip(&connection->server->options->front, &copy->path) == FRONT_PATH_SLASH;
	exchange_begin(connection->server, exchange);
	return !is_closed(connection);
}

/* ---- inputs: a connection with nothing to read has none, so that a few serve all ---- */

bool connection_is_amid(const struct connection *connection)
{
	return connection->input && http_input_is_amid(connection->input);
}

/* False: no memory. */
static bool take_input(struct connection *connection)
{
	struct connections *all = &connection->server->connections;
	struct http_limits limits = http_limits_default();

	if (!connection->input)
		connection->input = all->spare_input_count > 0 ? all->spare_inputs[--all->spare_input_count]
							       : http_input_new(&limits);
	return connection->input != NULL;
}

static void give_input_back(struct connection *connection)
{
	struct connections *all = &connection->server->connections;

	if (!connection->input || !http_input_is_idle(connection->input))
		return;
	assert(all->spare_input_count <= SPARE_INPUTS_MAX);
	if (all->spare_input_count < SPARE_INPUTS_MAX)
		all->spare_inputs[all->spare_input_count++] = connection->input;
	else
		http_input_free(connection->input);
	connection->input = NULL;
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_bytes);
static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *bytes);

/* ---- long bodies: who sends one shows a right credential first, and it counts for the payer ---- */

/* A stranger whose credential is right has its place from here on. */
static bool is_vouched(struct connection *connection)
{
	struct http_request head;
	struct payer_key key;
	uint32_t scopes;

	if (!connection->lobby_of || connection->held_bytes > connection->taken_bytes)
		return true;
	http_input_head(connection->input, &head);
	struct source_key client = client_of(connection, &head);
	if (!admission_payer(connection->server, &client, &head, &key, &scopes))
		return false;
	payer_seat(connection, &key, scopes);
	return true;
}

/* May the body under way come? */
static bool takes_body(struct connection *connection)
{
	static const struct http_complaint unasked = {
		401, "The credential is wrong, or there is none: the body was not read."};
	static const struct http_complaint busy = {503,
		"This credential, or the whole server, has as many bytes of long requests under way as it may: the body was not read."};
	uint64_t bytes = http_input_body_bytes(connection->input);

	if (bytes <= LONG_BODY_BYTES)
		return true;
	bool vouched = is_vouched(connection);
	if (vouched && payer_hold(connection, connection->taken_bytes + bytes))
		return true;
	if (!oldest(connection)) /* else its reply has to wait for theirs, and the body may be taken then */
		refuse_input(connection, vouched ? &busy : &unasked);
	return false;
}

/* Its requests have been answered. */
static void let_go(struct connection *connection)
{
	connection->taken_bytes = 0;
	payer_hold(connection, connection->in_body ? http_input_body_bytes(connection->input) : 0);
}

/* Nobody here would read the body. */
static void refuse_on_standby(struct connection *connection)
{
	standby_put_refusal(connection->server, http_input_path(connection->input), &connection->out);
	connection_move(connection, CONNECTION_REFUSED);
	mark_dirty(connection);
}

/* Whatever was complete in the input has been taken out: there is room. */
static void read_on(struct connection *connection)
{
	if (!connection->in_body && http_input_is_in_body(connection->input)) {
		connection->in_body = true;
		connection->since_ms = connection->heard_ms = connection->server->now.lease_ms;
	}
	if (connection->in_body && !connection->server->store && !oldest(connection)) {
		refuse_on_standby(connection);
		return;
	}
	bool goes_on = !connection->in_body || takes_body(connection) || discards_input(connection);
	if (!goes_on)
		uv_read_stop(&connection->stream);
	else if (connection->paused)
		uv_read_start(&connection->stream, on_room, on_read);
	connection->paused = !goes_on;
}

static bool may_serve(const struct connection *connection)
{
	return !oldest(connection) && !is_ending(connection) && !is_closed(connection) &&
		connection_unsent(connection) <= UNSENT_BYTES_MAX;
}

/* May the next request join the current one? Only where that one has its place in the next turn, and cannot wait. */
static bool may_join(const struct connection *connection)
{
	const struct exchange *current = connection->current;

	return current && current->state == EXCHANGE_QUEUED && current->call.wait_ms == 0 &&
		connection->ahead_count < AHEAD_MAX && !is_ending(connection) && !is_closed(connection);
}

static void put_continue(struct connection *connection)
{
	connection->owes_continue = false;
	http_put_continue(&connection->out);
	mark_dirty(connection);
}

/* What comes while another one is under way: a request that changes something joins it, all else waits. */
static bool serve_joined(struct connection *connection)
{
	struct http_complaint complaint;
	enum http_input_status verdict = http_input_next(connection->input, NULL, &complaint);

	if (verdict == HTTP_MORE)
		read_on(connection);
	connection->owes_continue |= verdict == HTTP_CONTINUE;
	if (verdict != HTTP_READY || http_input_method(connection->input) != HTTP_METHOD_POST)
		return false;
	let_another_come(connection);
	return take_request(connection);
}

static bool serve_alone(struct connection *connection)
{
	struct http_complaint complaint;

	if (connection->owes_continue)
		put_continue(connection);
	switch (http_input_next(connection->input, NULL, &complaint)) {
	case HTTP_MORE:
		read_on(connection);
		return false;
	case HTTP_CONTINUE:
		put_continue(connection);
		return true;
	case HTTP_BAD:
		refuse_input(connection, &complaint);
		return false;
	case HTTP_READY:
		return take_request(connection);
	}
	return false;
}

/* Take up the requests that lie in the input. */
static void serve(struct connection *connection)
{
	bool more = connection->input != NULL;

	if (connection->taken_bytes > 0 && !oldest(connection))
		let_go(connection);
	while (more) {
		if (may_serve(connection))
			more = serve_alone(connection);
		else
			more = may_join(connection) && serve_joined(connection);
	}
	if (!is_closed(connection))
		give_input_back(connection);
}

/* Bytes that nobody keeps: those of TLS, which are taken from here at once, and what a refused client still sends. */
static char passing[SECURE_BLOCK_BYTES];

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_bytes)
{
	struct connection *connection = of_handle(handle);
	char *at = passing;
	size_t len = sizeof passing;

	(void)suggested;
	if (!connection->secure && !discards_input(connection) &&
		(!take_input(connection) || http_input_room(connection->input, &at, &len) < 0))
		len = 0;
	*ret_bytes = uv_buf_init(at, (unsigned)len);
}

static void hear(struct connection *connection, size_t got)
{
	struct server *server = connection->server;

	clock_tick(server);
	if (!connection_is_amid(connection) && !connection->current) {
		connection->since_ms = server->now.lease_ms;
		connection->heard_bytes = 0;
	}
	connection->heard_ms = server->now.lease_ms;
	connection->heard_bytes += got;
}

/* It sends faster than it is answered. If nothing is under way that would make it read on afterwards, there is no memory for what
 * it says. */
static void stop_reading(struct connection *connection)
{
	if (!connection->input || may_serve(connection)) {
		connection_close(connection);
		return;
	}
	connection->paused = true;
	uv_read_stop(&connection->stream);
}

static void throw_away(struct connection *connection, size_t len)
{
	connection->heard_bytes += len;
	if (connection->heard_bytes > LINGER_BYTES_MAX)
		connection_close(connection);
}

/* ---- reading through TLS ---- */

/* Requests out of the records that have come. */
static void take_sealed(struct connection *connection)
{
	struct tls *tls = connection->secure->tls;
	char *at;
	size_t room;

	while (!is_closed(connection) && !connection->paused && !discards_input(connection)) {
		if (!take_input(connection) || http_input_room(connection->input, &at, &room) < 0) {
			stop_reading(connection);
			return;
		}
		ssize_t got = tls_read(tls, at, room);
		if (got < 0) { /* the client went away */
			connection_close(connection);
			return;
		}
		if (got == 0) {
			give_input_back(connection);
			break;
		}
		hear(connection, (size_t)got);
		http_input_filled(connection->input, (size_t)got);
		serve(connection);
	}
	if (!is_closed(connection) && !connection->outgoing && has_output(connection))
		mark_dirty(connection);
}

static void serve_all(struct connection *connection)
{
	serve(connection);
	if (connection->secure && connection->secure->state == SECURE_OPEN && !is_closed(connection) &&
		connection->input)
		take_sealed(connection);
}

/* Something that is no TLS came to a port that speaks nothing else. A client of HTTP can read why. */
static void refuse_plain(struct connection *connection)
{
	static const char detail[] = "This port speaks TLS: the address begins with https://";
	struct http_request request = {0};
	cleanup(buf_done) struct buf body = {.max = 4096};
	struct api_call call = {.request = &request, .body = &body};

	secure_leave(connection->secure);
	connection->secure = NULL;
	api_refuse_early(&call, 400, detail);
	call.reply.close = true;
	http_put_reply(&connection->out, &call.reply);
	connection_move(connection, CONNECTION_REFUSED);
	journal_refused_connection("a client speaks no TLS to a port that speaks nothing else");
	metrics_count_reply(&connection->server->metrics, call.reply.status);
	mark_dirty(connection);
}

/* A record of a handshake begins with this byte, and no request does. */
#define TLS_HANDSHAKE_BYTE 0x16

static void on_sealed(struct connection *connection, struct span bytes)
{
	struct secure *secure = connection->secure;
	bool is_first = !secure->has_heard;

	secure->has_heard = true;
	if (is_first && bytes.data[0] != TLS_HANDSHAKE_BYTE) {
		refuse_plain(connection);
		return;
	}
	clock_tick(connection->server);
	if (secure->state == SECURE_OPEN) {
		if (tls_hear(secure->tls, bytes) < 0)
			connection_close(connection);
		else
			take_sealed(connection);
		return;
	}
	if (secure_hear(secure, bytes)) {
		uv_read_stop(&connection->stream); /* until the step is made */
	} else {
		journal_refused_connection("too many TLS handshakes of this source wait");
		connection_close(connection);
	}
}

/* What a failed handshake has for the client is an alert that says why. */
void connection_shaken(struct connection *connection, int result)
{
	struct secure *secure = connection->secure;

	if (is_closed(connection))
		return;
	clock_tick(connection->server);
	connection->since_ms = connection->opened_ms = connection->server->now.lease_ms;
	if (result < 0) {
		struct span alert = tls_output(secure->tls);
		uv_buf_t bytes = uv_buf_init((char *)alert.data, (unsigned)alert.len);
		if (alert.len > 0)
			uv_try_write(&connection->stream, &bytes, 1);
		journal_refused_connection(tls_complaint(secure->tls));
		connection_close(connection);
		return;
	}
	uv_read_start(&connection->stream, on_room, on_read);
	if (!connection->outgoing && has_output(connection))
		start_write(connection);
	if (result == 1 && !is_closed(connection))
		take_sealed(connection); /* a request may have come with the last step */
	turns_hurry(connection->server);
}

/* ---- servers that stand by ---- */

/* Between two requests, and with nothing to say. */
static bool is_at_rest(const struct connection *connection)
{
	return connection->state == CONNECTION_OPEN && !oldest(connection) &&
		!connection_is_amid(connection) && !connection->owes_continue && !connection->outgoing &&
		connection_unsent(connection) == 0;
}

/* What a server that does not lead says itself. */
static bool is_for_us(struct span first)
{
	static const char *const paths[] = {"/livez", "/healthz", "/readyz", "/health/leader", "/metrics"};
	const char *at = memchr(first.data, ' ', first.len), *end = first.data + first.len;

	at = at ? at + 1 : end;
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		size_t len = strlen(paths[i]);
		if ((size_t)(end - at) > len && memcmp(at, paths[i], len) == 0 &&
			(at[len] == ' ' || at[len] == '?'))
			return true;
	}
	return !memchr(at, ' ',
		(size_t)(end - at)); /* its first line comes in pieces: it is refused, and comes again */
}

static bool is_passed_word(struct span first)
{
	return first.len >= sizeof PASSED_WORD - 1 &&
		memcmp(first.data, PASSED_WORD, sizeof PASSED_WORD - 1) == 0;
}

/* Its client talks to the leader from now on. One that was passed on to us is not passed on again. */
static bool passes_on(struct connection *connection, struct span first)
{
	struct server *server = connection->server;

	if (!server->standby.is_on || !is_at_rest(connection) || is_for_us(first) || is_passed_word(first) ||
		!pass_on(server, &connection->stream, first))
		return false;
	connection_close(connection);
	return true;
}

/* It was passed on to the leader of before: the lead has changed hands, or this server has taken it over from itself. The client asks again,
 * and by then whoever passes on knows. */
static bool is_passed_too_late(struct connection *connection, struct span first)
{
	if (!connection->server->options->store_url || !is_passed_word(first) || connection->passed ||
		!is_at_rest(connection))
		return false;
	standby_put_refusal(connection->server, (struct span){0}, &connection->out);
	connection_move(connection, CONNECTION_REFUSED);
	mark_dirty(connection);
	throw_away(connection, first.len);
	return true;
}

static int64_t term_of(const struct server *server)
{
	struct postgres_leader leader;

	return server->backend && postgres_leads(server->backend, &leader) ? leader.term : 0;
}

/* The first line of a connection that was passed on to us, which comes in one piece: how long it is; 0: there is none. */
static size_t take_passed(struct connection *connection, struct span first)
{
	struct passed passed;

	if (first.data[0] != PASSED_WORD[0] || connection->passed || !is_at_rest(connection))
		return 0;
	int len = passed_read(first, term_of(connection->server), &passed);
	if (len <= 0)
		return 0;
	connection->passed = malloc(sizeof *connection->passed);
	if (!connection->passed) {
		connection_close(connection);
		return 0;
	}
	*connection->passed = passed;
	connection_unseat(connection);
	connection->source = passed.source;
	lobby_enter(connection);
	return (size_t)len;
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *bytes)
{
	struct connection *connection = of_handle(stream);

	if (got == 0) {
		give_input_back(connection);
		return;
	}
	if (got == UV_ENOBUFS) {
		stop_reading(connection);
		return;
	}
	if (got < 0) { /* the client went away */
		connection_close(connection);
		return;
	}
	if (discards_input(connection)) {
		throw_away(connection, (size_t)got);
		return;
	}
	if (connection->secure) {
		on_sealed(connection, (struct span){bytes->base, (size_t)got});
		turns_hurry(connection->server);
		return;
	}
	struct span heard = {bytes->base, (size_t)got};
	if (passes_on(connection, heard))
		return;
	size_t line = take_passed(connection, heard);
	if (is_closed(connection) || (line == 0 && is_passed_too_late(connection, heard)))
		return;
	if (line > 0)
		memmove(bytes->base, bytes->base + line, (size_t)got - line);
	got -= (ssize_t)line;
	bool is_tls = line == 0 && bytes->base[0] == TLS_HANDSHAKE_BYTE;
	hear(connection, (size_t)got);
	http_input_filled(connection->input, (size_t)got);
	serve(connection);
	if (is_tls && connection->state == CONNECTION_REFUSED)
		journal_refused_connection(
			"a client speaks TLS to a port without TLS: set tls.cert and tls.key");
	turns_hurry(connection->server);
}

/* libuv takes connections as long as some come, so a client that only connects would keep the loop from everything else. One that
 * is not taken makes it stop, until uv_accept(). */
static bool is_late(struct server *server, uv_stream_t *listener)
{
	struct connections *all = &server->connections;
	bool is_full = listener->type == UV_TCP && handshakes_are_full(&server->handshakes);

	if (!is_full && all->accepted++ < ACCEPTS_MAX)
		return false;
	assert(all->late_count < LISTENERS_MAX);
	all->late[all->late_count++] = listener;
	return true;
}

/* Where proxies are named, nobody else is let in by TCP. */
static bool may_connect(struct connection *connection)
{
	const struct front *front = &connection->server->options->front;
	unsigned char address[ADDRESS_BYTES];

	return front->proxy_count == 0 || connection->stream.type != UV_TCP ||
		(address_of(&connection->stream, address) && front_is_proxy(front, address));
}

void connection_accept(uv_stream_t *listener, int status)
{
	struct server *server = listener->data;

	if (status < 0) {
		journal_refused_connection(uv_strerror(status));
		return;
	}
	if (is_late(server, listener))
		return;
	struct connection *connection = calloc(1, sizeof *connection);
	if (!connection) {
		journal_refused_connection("no memory");
		connection_refuse(server, listener);
		return;
	}
	connection->server = server;
	buf_init(&connection->out, OUTPUT_BYTES_MAX);
	if (listener->type == UV_TCP)
		uv_tcp_init(&server->loop, &connection->tcp);
	else
		uv_pipe_init(&server->loop, &connection->pipe, 0);
	connection->stream.data = connection;
	LIST_INSERT_HEAD(&server->connections.all, connection, all);
	server->connections.count++;
	connection->since_ms = connection->opened_ms = server->now.lease_ms;
	connection->born = server->connections.tick;
	if (uv_accept(listener, &connection->stream) < 0 || server->stopping) {
		connection_close(connection);
		return;
	}
	if (!may_connect(connection)) {
		journal_refused_connection("proxy.from does not name this peer");
		connection_close(connection);
		return;
	}
	connection->source = source_of(&connection->stream);
	lobby_enter(connection);
	if (listener->type == UV_TCP)
		uv_tcp_nodelay(&connection->tcp, 1);
	if (listener->type == UV_TCP && server->certificate.identity) {
		connection->secure = secure_new(connection, server->certificate.identity);
		if (!connection->secure) {
			journal_refused_connection("no memory");
			connection_close(connection);
			return;
		}
	}
	uv_read_start(&connection->stream, on_room, on_read);
}

void connections_tick(struct server *server)
{
	struct connections *all = &server->connections;
	uint32_t late = all->late_count;

	all->tick++;
	all->accepted = all->late_count = 0;
	for (uint32_t i = 0; i < late && !server->stopping; i++)
		connection_accept(all->late[i], 0);
	lobby_trim(server);
}
