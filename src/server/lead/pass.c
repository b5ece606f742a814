#include "server/lead/pass.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/take.h"
#include "server/net/passed.h"
#include "server/server.h"
#include "wire/http/transfer.h"

enum {
	BLOCK_BYTES = 64 << 10,
	FIRST_BYTES_MAX = 128 << 10, /* what was read of a client before it was passed on */
	CONNECT_MS = 5000,
	LAST_WORD_MS = 30000, /* for the leader's last word to reach the client, … */
	LINGER_MS = 2000,     /* … and then for what the client still sends */
};

struct side {
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	};
	struct leader_pass *pass;
	uv_write_t write; /* of bytes to this side, that its kernel did not take at once */
	char *unsent;     /* which are here */
};

struct leader_pass {
	LIST_ENTRY(leader_pass) all;
	struct server *server;
	struct side client, leader;
	uv_connect_t connect;
	uv_shutdown_t shutdown;
	struct buf first; /* for the leader, once there is a connection */
	int64_t until_ms; /* lease clock: while it is connected to the leader, or after its end; 0: no limit */
	bool is_up, is_ending, is_closed;
	int handles; /* that are not closed yet */
};

/* ---- the end ----------------------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
	struct side *side = handle->data;
	struct leader_pass *pass = side->pass;

	free(side->unsent);
	side->unsent = NULL;
	if (--pass->handles > 0)
		return;
	buf_done(&pass->first);
	free(pass);
}

static void pass_close(struct leader_pass *pass)
{
	if (pass->is_closed)
		return;
	pass->is_closed = true;
	LIST_REMOVE(pass, all);
	pass->server->standby.passing.count--;
	uv_close(&pass->client.handle, on_closed);
	uv_close(&pass->leader.handle, on_closed);
}

static void on_shut(uv_shutdown_t *shutdown, int status)
{
	struct side *client = shutdown->handle->data;

	(void)status;
	client->pass->until_ms = client->pass->server->now.lease_ms + LINGER_MS;
}

/* The leader has said all. A client that still sends must be able to read it: if we closed with bytes of the client unread, the kernel
 * would throw the last ones away. */
static void end_client(struct leader_pass *pass)
{
	pass->is_ending = true;
	pass->until_ms = pass->server->now.lease_ms + LAST_WORD_MS;
	if (uv_shutdown(&pass->shutdown, &pass->client.stream, on_shut) < 0)
		pass_close(pass);
}

/* ---- bytes ------------------------------------------------------------------------------------------------ */

static char block[BLOCK_BYTES]; /* what is read is written at once, or copied */

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *ret_room)
{
	(void)handle;
	(void)wanted;
	*ret_room = uv_buf_init(block, sizeof block);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *room);

static void on_written(uv_write_t *write, int status)
{
	struct side *to = write->handle->data;
	struct leader_pass *pass = to->pass;
	struct side *from = to == &pass->client ? &pass->leader : &pass->client;

	free(to->unsent);
	to->unsent = NULL;
	if (pass->is_closed || pass->is_ending)
		return;
	if (status < 0 || uv_read_start(&from->stream, on_room, on_read) < 0)
		pass_close(pass);
}

/* What the kernel does not take at once waits, and until then no more is read from the other side. */
static void put(struct side *to, struct side *from, struct span bytes)
{
	uv_buf_t out = uv_buf_init((char *)bytes.data, (unsigned)bytes.len);
	int sent = uv_try_write(&to->stream, &out, 1);

	assert(!to->unsent);
	if (sent == (int)bytes.len)
		return;
	if (sent < 0 && sent != UV_EAGAIN) {
		pass_close(to->pass);
		return;
	}
	size_t done = sent > 0 ? (size_t)sent : 0;
	to->unsent = malloc(bytes.len - done);
	if (!to->unsent) {
		pass_close(to->pass);
		return;
	}
	memcpy(to->unsent, bytes.data + done, bytes.len - done);
	out = uv_buf_init(to->unsent, (unsigned)(bytes.len - done));
	uv_read_stop(&from->stream);
	if (uv_write(&to->write, &to->stream, &out, 1, on_written) < 0)
		pass_close(to->pass);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *room)
{
	struct side *from = stream->data;
	struct leader_pass *pass = from->pass;
	bool is_client = from == &pass->client;

	if (got == 0 || pass->is_closed)
		return;
	if (pass->is_ending && is_client && got > 0)
		return; /* nobody is there to hear it */
	if (got > 0)
		put(is_client ? &pass->leader : &pass->client, from, (struct span){room->base, (size_t)got});
	else if (is_client || got != UV_EOF || pass->is_ending)
		pass_close(pass); /* the client went away, or the leader died */
	else
		end_client(pass);
}

/* ---- the beginning -------------------------------------------------------------------------------------------- */

/* The request path, for the form of a refusal. */
static struct span path_of(struct span first)
{
	const char *line = memmem(first.data, first.len, "\r\n", 2); /* behind our own */
	const char *end = first.data + first.len;
	const char *at = line ? memchr(line, ' ', (size_t)(end - line)) : NULL;

	if (!at)
		return SPAN("/");
	at++;
	size_t len = 0;
	while (at + len < end && at[len] > ' ' && at[len] != '?')
		len++;
	return (struct span){at, len};
}

/* Nobody answers at the leader's address: the client hears what a server on standby says. */
static void refuse(struct leader_pass *pass)
{
	cleanup(buf_done) struct buf out = {.max = 16 << 10};

	standby_put_refusal(pass->server, path_of(buf_span(&pass->first)), &out);
	uv_buf_t bytes = uv_buf_init(out.data, (unsigned)out.len);
	if (buf_fault(&out) < 0 || uv_try_write(&pass->client.stream, &bytes, 1) != (int)out.len)
		pass_close(pass);
	else
		end_client(pass);
	if (!pass->is_closed && uv_read_start(&pass->client.stream, on_room, on_read) < 0)
		pass_close(pass);
}

static void on_connected(uv_connect_t *connect, int status)
{
	struct side *side = connect->handle->data;
	struct leader_pass *pass = side->pass;

	if (pass->is_closed)
		return;
	if (status < 0) {
		pass->server->standby.passing.is_known = false; /* its name may mean another address by now */
		refuse(pass);
		return;
	}
	pass->is_up = true;
	pass->until_ms = 0;
	uv_tcp_nodelay(&pass->leader.tcp, 1);
	if (uv_read_start(&pass->client.stream, on_room, on_read) < 0 ||
		uv_read_start(&pass->leader.stream, on_room, on_read) < 0) {
		pass_close(pass);
		return;
	}
	put(&pass->leader, &pass->client, buf_span(&pass->first));
	buf_done(&pass->first);
}

/* HOST:PORT where the client connected; through the Unix socket that has no name of its own. */
static void name_host(const struct server *server, const uv_stream_t *client, char host[PASSED_HOST_BYTES])
{
	const char *at = strstr(server->standby.url, "://");

	if (client->type == UV_TCP && at)
		snprintf(host, PASSED_HOST_BYTES, "%.*s", (int)strcspn(at + 3, "/\n"), at + 3);
	else
		snprintf(host, PASSED_HOST_BYTES, "localhost");
}

static int put_first(struct leader_pass *pass, uv_stream_t *client, struct span first)
{
	struct server *server = pass->server;
	struct passed passed = {.source = source_of(client)};
	char line[PASSED_LINE_MAX];

	name_host(server, client, passed.host);
	size_t len = passed_put(line, server->standby.leader.term, &passed);
	buf_init(&pass->first, FIRST_BYTES_MAX);
	buf_put(&pass->first, line, len);
	buf_put_span(&pass->first, first);
	return buf_fault(&pass->first);
}

/* The same socket by another descriptor: the caller closes its own. */
static int adopt(struct leader_pass *pass, const uv_stream_t *client)
{
	uv_os_fd_t fd;
	int r = uv_fileno((const uv_handle_t *)client, &fd);

	if (r < 0)
		return r;
	int ours = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (ours < 0)
		return -errno;
	r = client->type == UV_TCP ? uv_tcp_open(&pass->client.tcp, ours)
				   : uv_pipe_open(&pass->client.pipe, ours);
	if (r < 0)
		close(ours);
	return r;
}

static void init_side(struct leader_pass *pass, struct side *side, bool is_tcp)
{
	if (is_tcp)
		uv_tcp_init(&pass->server->loop, &side->tcp);
	else
		uv_pipe_init(&pass->server->loop, &side->pipe, 0);
	side->handle.data = side;
	side->pass = pass;
	pass->handles++;
}

static void look_up(struct server *server);

bool pass_on(struct server *server, uv_stream_t *client, struct span first)
{
	struct leader_passes *passing = &server->standby.passing;

	if (!passing->is_known)
		look_up(server);
	if (!passing->is_known || passing->count >= passing->most || first.len > BLOCK_BYTES)
		return false;
	struct leader_pass *pass = calloc(1, sizeof *pass);
	if (!pass)
		return false;
	pass->server = server;
	init_side(pass, &pass->client, client->type == UV_TCP);
	init_side(pass, &pass->leader, true);
	LIST_INSERT_HEAD(&passing->all, pass, all);
	passing->count++;
	pass->until_ms = server->now.lease_ms + CONNECT_MS;
	int r = put_first(pass, client, first);
	if (r == 0)
		r = uv_tcp_connect(&pass->connect, &pass->leader.tcp,
			(const struct sockaddr *)&passing->leader, on_connected);
	if (r == 0)
		r = adopt(pass, client); /* last: from here on nobody else answers the client */
	if (r < 0)
		pass_close(pass);
	return r == 0;
}

/* ---- to whom ------------------------------------------------------------------------------------------------- */

struct resolving {
	uv_getaddrinfo_t request;
	struct server *server; /* NULL: it is about another leader than the one of now */
};

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
	struct resolving *resolving = request->data;
	struct server *server = resolving->server;

	free(resolving);
	if (server) {
		struct leader_passes *passing = &server->standby.passing;
		passing->resolving = NULL;
		passing->is_known = status == 0 && found->ai_addrlen <= sizeof passing->leader;
		if (passing->is_known)
			memcpy(&passing->leader, found->ai_addr, found->ai_addrlen);
	}
	uv_freeaddrinfo(found);
}

static void resolve(struct server *server, const struct http_address *address)
{
	struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	struct resolving *resolving = calloc(1, sizeof *resolving);
	char port[8];

	if (!resolving)
		return;
	snprintf(port, sizeof port, "%u", address->port);
	*resolving = (struct resolving){.server = server};
	resolving->request.data = resolving;
	if (uv_getaddrinfo(&server->loop, &resolving->request, on_resolved, address->host, port, &wanted) < 0)
		free(resolving);
	else
		server->standby.passing.resolving = resolving;
}

static void look_up(struct server *server)
{
	struct leader_passes *passing = &server->standby.passing;
	struct http_address address;
	const char *complaint;

	if (!passing->url[0] || passing->resolving ||
		http_address_parse(passing->url, &address, &complaint) < 0 || address.local || address.secure)
		return;
	passing->is_known =
		uv_ip4_addr(address.host, address.port, (struct sockaddr_in *)&passing->leader) == 0 ||
		uv_ip6_addr(address.host, address.port, (struct sockaddr_in6 *)&passing->leader) == 0;
	if (!passing->is_known)
		resolve(server, &address);
}

void passing_turn_to(struct server *server, const char *url)
{
	struct leader_passes *passing = &server->standby.passing;

	if (strcmp(passing->url, url) == 0)
		return;
	snprintf(passing->url, sizeof passing->url, "%s", url);
	passing->is_known = false;
	if (passing->resolving)
		passing->resolving->server = NULL;
	passing->resolving = NULL;
	passing_end_all(server);
	look_up(server);
}

void passing_sweep(struct server *server)
{
	struct leader_pass *pass, *next;

	for (pass = LIST_FIRST(&server->standby.passing.all); pass; pass = next) {
		next = LIST_NEXT(pass, all);
		if (pass->until_ms != 0 && server->now.lease_ms > pass->until_ms)
			pass_close(pass);
	}
}

void passing_end_all(struct server *server)
{
	struct leader_pass *pass;

	while ((pass = LIST_FIRST(&server->standby.passing.all)))
		pass_close(pass);
}
