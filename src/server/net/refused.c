/*
 * Connections for which there is no memory: taken from the kernel and closed.
 *
 * libuv stops watching a listener as soon as one of its connections is not taken, so to leave a connection where it is would
 * make the listener deaf for ever. One handle that needs no allocation takes them one after the other. While that handle is
 * being closed, a listener with another such connection stands in `waiting`, and its turn comes when the handle is free.
 */
#include <assert.h>

#include "server/server.h"

static void on_closed(uv_handle_t *handle);

static void take(struct server *server, uv_stream_t *listener)
{
	struct refused_connections *refused = &server->connections.refused;

	assert(!refused->is_busy);
	refused->is_busy = true;
	if (listener->type == UV_TCP)
		uv_tcp_init(&server->loop, &refused->tcp);
	else
		uv_pipe_init(&server->loop, &refused->pipe, 0);
	refused->stream.data = server;
	uv_accept(listener, &refused->stream); /* if it fails libuv has closed the connection */
	uv_close((uv_handle_t *)&refused->stream, on_closed);
}

static void on_closed(uv_handle_t *handle)
{
	struct server *server = handle->data;
	struct refused_connections *refused = &server->connections.refused;

	refused->is_busy = false;
	if (refused->waiting_count > 0)
		take(server, refused->waiting[--refused->waiting_count]);
}

void connection_refuse(struct server *server, uv_stream_t *listener)
{
	struct refused_connections *refused = &server->connections.refused;

	if (!refused->is_busy) {
		take(server, listener);
		return;
	}
	assert(refused->waiting_count < LISTENERS_MAX); /* libuv tells of no other before this one is taken */
	refused->waiting[refused->waiting_count++] = listener;
}
