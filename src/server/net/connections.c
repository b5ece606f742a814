/*
 * All connections together: timeouts, memory that is given back, and their end.
 */
#include <malloc.h>
#include <poll.h>

#include "server/net/connection.h"

enum {
	HEAD_TIMEOUT_MS = 5000,  /* from its first byte to its last */
	BODY_TIMEOUT_MS = 10000, /* from one byte to the next … */
	RATE_AFTER_MS = 5000,    /* … and after this time, on the average at least … */
	RATE_BYTES_PER_S = 256,
	IDLE_TIMEOUT_MS = 60000,
	WRITE_TIMEOUT_MS = 30000, /* in which the client takes nothing at all */
	LINGER_MS = 2000,         /* what a refused client still sends is thrown away that long */
	STRANGER_MS = 10000,      /* in which a connection has to show a right credential */
};

/* It sends a request, and too slowly. */
static bool is_slow(const struct connection *connection, int64_t now_ms)
{
	int64_t age_ms = now_ms - connection->since_ms;

	if (!connection->in_body)
		return age_ms > HEAD_TIMEOUT_MS;
	if (now_ms - connection->heard_ms > BODY_TIMEOUT_MS)
		return true;
	return age_ms > RATE_AFTER_MS && (int64_t)connection->heard_bytes < age_ms * RATE_BYTES_PER_S / 1000;
}

/* Bytes that the kernel took since the last look start the time anew. */
static void note_progress(struct connection *connection, int64_t now_ms)
{
	size_t left = uv_stream_get_write_queue_size(&connection->stream);

	if (left < connection->outgoing->left_bytes)
		connection->since_ms = now_ms;
	connection->outgoing->left_bytes = left;
}

static bool is_overdue(struct connection *connection, int64_t now_ms)
{
	if (connection->outgoing)
		note_progress(connection, now_ms);
	int64_t age_ms = now_ms - connection->since_ms;
	if (connection->outgoing)
		return age_ms > WRITE_TIMEOUT_MS;
	if (connection->state == CONNECTION_REFUSED || connection->state == CONNECTION_FIN_SENT)
		return age_ms > LINGER_MS;
	if (connection->current || connection->out.len > 0)
		return false; /* it waits for us, or is about to hear from us */
	if (connection_is_amid(connection))
		return is_slow(connection, now_ms);
	return age_ms > IDLE_TIMEOUT_MS;
}

/* A crowd has gone. Its memory lies in pieces between pieces that are still used, and goes back only on request. */
static void release_memory(struct server *server)
{
	struct connections *all = &server->connections;

	if (all->count > all->most)
		all->most = all->count;
	if (all->most < CROWD || all->count > all->most / 2)
		return;
	malloc_trim(0);
	all->most = all->count;
}

/* One whose request is under way may show it there: that has times of its own. */
static bool stays_stranger(const struct connection *connection)
{
	return connection->lobby_of && !connection->current && !connection_is_amid(connection) &&
		connection_unsent(connection) == 0 &&
		connection->server->now.lease_ms - connection->opened_ms > STRANGER_MS;
}

static bool is_shaking(const struct connection *connection)
{
	return connection->secure && connection->secure->state != SECURE_OPEN;
}

/* The youngest stand first. One pass, and for a crowd every other time: with ten thousand that do nothing, reaching them
 * is what it costs. */
void connections_timeout(struct server *server)
{
	struct connection *next;

	if (server->connections.count > CROWD && server->connections.sweeps++ % 2 != 0)
		return;
	for (struct connection *connection = LIST_FIRST(&server->connections.all); connection;
		connection = next) {
		next = LIST_NEXT(connection, all);
		if (is_shaking(connection)) {
			if (secure_is_late(connection->secure, server->now.lease_ms - connection->since_ms))
				connection_close(connection);
		} else if (stays_stranger(connection)) {
			server->metrics.strangers_closed++;
			connection_close(connection);
		} else if (is_overdue(connection, server->now.lease_ms)) {
			connection_close(connection);
		} else if (!connection_is_amid(connection)) {
			connection_rest(connection);
		}
	}
	for (uint32_t i = 0; i < server->connections.spare_input_count; i++)
		http_input_rest(server->connections.spare_inputs[i]);
	release_memory(server);
}

void connections_outlast_stall(struct server *server)
{
	int64_t now_ms = server->now.lease_ms;
	struct connection *connection;

	LIST_FOREACH(connection, &server->connections.all, all)
	connection->since_ms = connection->heard_ms = now_ms;
}

bool connections_are_quiet(const struct server *server)
{
	struct pollfd events = {.fd = uv_backend_fd(&server->loop), .events = POLLIN};

	return poll(&events, 1, 0) == 0;
}

bool connections_have_unsent(const struct server *server)
{
	const struct connection *connection;

	LIST_FOREACH(connection, &server->connections.all, all)
	{
		if (connection_unsent(connection) > 0)
			return true;
	}
	return false;
}

void connections_close_all(struct server *server)
{
	struct connection *connection;

	while (server->connections.spare_input_count > 0)
		http_input_free(server->connections.spare_inputs[--server->connections.spare_input_count]);
	while ((connection = LIST_FIRST(&server->connections.all)))
		connection_close(connection); /* which takes it out */
}
