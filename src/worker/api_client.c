/*
 * The libuv side of wire/http/transfer.h: go_on() does what the state of the call asks for, and the callbacks report what
 * came of it.
 *
 * A connection (struct link) lives until libuv has closed its handle; a client has one or none. A link that was dropped
 * knows no client any more, and whatever libuv still tells it goes nowhere.
 */
#include "worker/api_client.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/take.h"
#include "wire/tls/tls.h"

enum {
	HEAD_BYTES_MAX = 64 << 10,
	BODY_BYTES_MAX = 4 << 20,
	ADDRESSES_MAX = 8, /* of one host name */
	BLOCK_BYTES = 16 << 10,
	SEALED_BYTES_MAX = 4 * TLS_RECORD_BYTES,
};

struct link {
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	};
	uv_connect_t connect;
	uv_write_t write;
	struct api_client *client; /* NULL: dropped */
	struct tls *tls;           /* NULL: the server is not spoken to by https */
	bool up;
	bool writing;
	struct buf sealed; /* what is being written of it */
	char block[BLOCK_BYTES];
};

struct resolution {
	uv_getaddrinfo_t request;
	struct api_client *client; /* NULL: dropped */
};

struct api_client {
	uv_loop_t *loop;
	struct http_transfer transfer;
	struct sockaddr_storage found[ADDRESSES_MAX];
	struct resolution *resolution;
	struct link *link;
	size_t sent_bytes; /* of the request, that TLS has */
	uv_timer_t timer;
	char complaint[TLS_COMPLAINT_BYTES];
	bool busy; /* a call was taken, and its callback is still to come */
	bool reserves;
	int reserve_fd; /* -1: none, or it is that of the connection now */
	api_client_answered answered;
	void *context;
};

static void go_on(struct api_client *client);

static int64_t now_of(const struct api_client *client)
{
	return (int64_t)uv_now(client->loop);
}

/* ---- links ---- */

static void on_link_closed(uv_handle_t *handle)
{
	struct link *link = handle->data;

	tls_free(link->tls);
	buf_done(&link->sealed);
	free(link);
}

/* Between the two nobody else comes to run who could take it. */
static void give_reserve(struct api_client *client)
{
	close_at(&client->reserve_fd);
	client->reserve_fd = -1;
}

static void keep_reserve(struct api_client *client)
{
	if (client->reserves && client->reserve_fd < 0)
		client->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void api_client_reserve(struct api_client *client)
{
	client->reserves = true;
	if (!client->link)
		keep_reserve(client);
}

static void drop_link(struct api_client *client)
{
	struct link *link = client->link;

	if (!link)
		return;
	client->link = NULL;
	link->client = NULL;
	uv_close(&link->handle, on_link_closed);
	keep_reserve(client);
}

static void drop_resolution(struct api_client *client)
{
	if (!client->resolution)
		return;
	client->resolution->client = NULL;
	uv_cancel((uv_req_t *)&client->resolution->request); /* if it cannot, it will find nobody */
	client->resolution = NULL;
}

/* The end of a call. The caller may do anything in its callback: nothing of ours is touched afterwards. */
static void finish(struct api_client *client)
{
	const struct http_transfer *transfer = &client->transfer;

	assert(client->busy);
	assert(transfer->state == HTTP_TRANSFER_DONE);
	assert(!http_transfer_keeps(transfer) || client->link);
	client->busy = false;
	uv_timer_stop(&client->timer);
	drop_resolution(client);
	if (!http_transfer_keeps(transfer) || client->link->writing)
		drop_link(client);
	client->answered(client->context, transfer->fault, transfer->fault < 0 ? NULL : transfer->answer);
}

static void on_timeout(uv_timer_t *timer)
{
	struct api_client *client = timer->data;

	if (!client->busy)
		return;
	drop_resolution(client);
	drop_link(client);
	http_transfer_late(&client->transfer, now_of(client));
	go_on(client);
}

/* As long as the state of the call allows. */
static void set_timer(struct api_client *client)
{
	int64_t left_ms = http_transfer_until(&client->transfer) - now_of(client);

	uv_timer_start(&client->timer, on_timeout, left_ms > 0 ? (uint64_t)left_ms : 0, 0);
}

/* ---- reading and writing ---- */

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *ret_room)
{
	struct link *link = handle->data;

	(void)wanted;
	*ret_room = uv_buf_init(link->block, sizeof link->block);
}

static void shake(struct api_client *client);
static int seal_more(struct link *link);

/* What was meant by what came. `got` < 0: nothing more comes; without a goodbye somebody has cut the connection. */
static void receive_sealed(struct api_client *client, ssize_t got, const uv_buf_t *room)
{
	struct http_transfer *transfer = &client->transfer;
	struct tls *tls = client->link->tls;
	char block[TLS_RECORD_BYTES];
	ssize_t opened = 1;
	int r = got < 0 ? 0 : tls_hear(tls, (struct span){room->base, (size_t)got});

	while (r == 0 && (opened = tls_read(tls, block, sizeof block)) > 0 &&
		transfer->state == HTTP_TRANSFER_TALK)
		http_transfer_received(transfer, (struct span){block, (size_t)opened});
	if (transfer->state != HTTP_TRANSFER_TALK || (r == 0 && opened == 0 && got >= 0))
		return;
	drop_link(client);
	http_transfer_closed(transfer,
		opened == -EPIPE        ? 0
			: r < 0         ? r
			: opened < 0    ? (int)opened
			: got == UV_EOF ? -ECONNRESET
					: (int)got);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *room)
{
	struct link *link = stream->data;
	struct api_client *client = link->client;

	if (!client || got == 0)
		return;
	if (link->tls && !link->up) {
		int r = got < 0 ? (got == UV_EOF ? -ECONNRESET : (int)got)
				: tls_hear(link->tls, (struct span){room->base, (size_t)got});
		if (r == 0) {
			shake(client);
			return;
		}
		drop_link(client);
		http_transfer_unconnected(&client->transfer, r, now_of(client));
		go_on(client);
		return;
	}
	/* a ticket of TLS comes when it comes; it says nothing of HTTP */
	if (link->tls && got > 0 && (!client->busy || !client->transfer.sent)) {
		char nothing[1];
		if (tls_hear(link->tls, (struct span){room->base, (size_t)got}) == 0 &&
			tls_read(link->tls, nothing, sizeof nothing) == 0)
			return;
	}
	/* the server closes an idle connection, or says what nobody asked for; a call that is not sent yet makes a new one */
	if (!client->busy || !client->transfer.sent) {
		drop_link(client);
		return;
	}
	if (link->tls) {
		receive_sealed(client, got, room);
	} else if (got < 0) {
		drop_link(client);
		http_transfer_closed(&client->transfer, got == UV_EOF ? 0 : (int)got);
	} else {
		http_transfer_received(&client->transfer, (struct span){room->base, (size_t)got});
	}
	go_on(client);
}

/* A server that refuses early answers and closes while we still send: what it said is there to be read. So a fault of
 * writing is left to the reading side. */
static void on_written(uv_write_t *write, int status)
{
	struct link *link = write->data;

	link->writing = false;
	if (link->tls && link->client && status == 0)
		seal_more(link);
}

/* ---- TLS ---- */

/* The next record of the request, and whatever TLS itself has for the server: one write at a time. */
static int seal_more(struct link *link)
{
	struct api_client *client = link->client;
	struct span out = buf_span(&client->transfer.out);
	int r = 0;

	if (link->writing)
		return 0;
	if (link->up && client->busy && client->transfer.sent && client->sent_bytes < out.len) {
		size_t len = out.len - client->sent_bytes;
		len = len < TLS_RECORD_BYTES ? len : TLS_RECORD_BYTES;
		r = tls_write(link->tls, (struct span){out.data + client->sent_bytes, len});
		client->sent_bytes += len;
	}
	struct span records = tls_output(link->tls);
	if (r < 0 || records.len == 0)
		return r;
	buf_clear(&link->sealed);
	r = buf_put_span(&link->sealed, records);
	if (r < 0)
		return r;
	tls_output_sent(link->tls, records.len);
	uv_buf_t bytes = uv_buf_init(link->sealed.data, (unsigned)link->sealed.len);
	link->writing = true;
	r = uv_write(&link->write, &link->stream, &bytes, 1, on_written);
	link->writing = r == 0;
	return r;
}

/* The alert that says why we refuse a server need not arrive. */
static void send_alert(struct link *link)
{
	struct span alert = tls_output(link->tls);
	uv_buf_t bytes = uv_buf_init((char *)alert.data, (unsigned)alert.len);

	if (!link->writing && alert.len > 0)
		uv_try_write(&link->stream, &bytes, 1);
}

static void shake(struct api_client *client)
{
	struct link *link = client->link;
	int done = tls_shake(link->tls), r = 0;

	if (done >= 0)
		r = seal_more(link);
	else
		send_alert(link);
	if (done == 0 && r == 0)
		return;
	if (done < 0 || r < 0) {
		snprintf(client->complaint, sizeof client->complaint, "%s", tls_complaint(link->tls));
		drop_link(client);
		http_transfer_unconnected(&client->transfer, done < 0 ? done : r, now_of(client));
	} else {
		link->up = true;
		http_transfer_connected(&client->transfer);
	}
	go_on(client);
}

static int begin_tls(struct api_client *client)
{
	const struct http_address *to = &client->transfer.address;
	struct link *link = client->link;

	buf_init(&link->sealed, SEALED_BYTES_MAX);
	link->tls = to->trust ? tls_client_new(to->trust, to->host) : NULL;
	return link->tls ? 0 : to->trust ? -ENOMEM : -ENOSYS;
}

static int send_request(struct api_client *client)
{
	struct link *link = client->link;
	struct span out = buf_span(&client->transfer.out);
	uv_buf_t bytes = uv_buf_init((char *)out.data, (unsigned)out.len);

	assert(link->up);
	assert(link->client == client);
	http_transfer_sent(&client->transfer);
	client->sent_bytes = 0;
	if (link->tls)
		return seal_more(link);
	assert(!link->writing); /* what a call before left to write went with its connection */
	link->writing = true;
	return uv_write(&link->write, &link->stream, &bytes, 1, on_written);
}

/* ---- connecting ---- */

static void on_connected(uv_connect_t *connect, int status)
{
	struct link *link = connect->data;
	struct api_client *client = link->client;

	if (!client)
		return;
	if (status == 0)
		status = uv_read_start(&link->stream, on_room, on_read);
	if (status == 0 && !client->transfer.address.local)
		uv_tcp_nodelay(&link->tcp, 1);
	if (status == 0 && client->transfer.address.secure)
		status = begin_tls(client);
	if (status == 0 && link->tls) {
		shake(client);
		return;
	}
	if (status == 0) {
		link->up = true;
		http_transfer_connected(&client->transfer);
	} else {
		drop_link(client);
		http_transfer_unconnected(&client->transfer, status, now_of(client));
	}
	go_on(client);
}

static int open_link(struct api_client *client)
{
	struct link *link = calloc(1, sizeof *link);
	int r;

	assert(!client->link);
	assert(client->busy);
	if (!link)
		return -ENOMEM;
	r = client->transfer.address.local ? uv_pipe_init(client->loop, &link->pipe, 0)
					   : uv_tcp_init(client->loop, &link->tcp);
	if (r < 0) {
		free(link);
		return r;
	}
	give_reserve(client);
	link->handle.data = link;
	link->connect.data = link->write.data = link;
	link->client = client;
	client->link = link;
	if (client->transfer.address.local)
		uv_pipe_connect(&link->connect, &link->pipe, client->transfer.address.path, on_connected);
	else
		r = uv_tcp_connect(&link->connect, &link->tcp,
			(const struct sockaddr *)&client->found[client->transfer.place], on_connected);
	if (r < 0)
		drop_link(client);
	return r;
}

static uint32_t keep_addresses(struct api_client *client, const struct addrinfo *found)
{
	uint32_t count = 0;

	for (; found && count < ADDRESSES_MAX; found = found->ai_next) {
		if (found->ai_addrlen <= sizeof client->found[0])
			memcpy(&client->found[count++], found->ai_addr, found->ai_addrlen);
	}
	return count;
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
	struct resolution *resolution = request->data;
	struct api_client *client = resolution->client;

	free(resolution);
	if (client) {
		client->resolution = NULL;
		http_transfer_found(&client->transfer, keep_addresses(client, status == 0 ? found : NULL),
			now_of(client));
		go_on(client);
	}
	uv_freeaddrinfo(found);
}

/* A number needs nobody to be asked. */
static bool parse_number(struct api_client *client)
{
	const struct http_address *to = &client->transfer.address;

	return uv_ip4_addr(to->host, to->port, (struct sockaddr_in *)&client->found[0]) == 0 ||
		uv_ip6_addr(to->host, to->port, (struct sockaddr_in6 *)&client->found[0]) == 0;
}

static int resolve(struct api_client *client)
{
	struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	struct resolution *resolution = calloc(1, sizeof *resolution);
	char port[8];

	if (!resolution)
		return -ENOMEM;
	snprintf(port, sizeof port, "%u", client->transfer.address.port);
	resolution->client = client;
	resolution->request.data = resolution;
	int r = uv_getaddrinfo(client->loop, &resolution->request, on_resolved, client->transfer.address.host,
		port, &wanted);
	if (r < 0) {
		free(resolution);
		return r;
	}
	client->resolution = resolution;
	return 0;
}

/* ---- calls ---- */

static void find(struct api_client *client)
{
	if (client->transfer.address.local || parse_number(client)) {
		http_transfer_found(&client->transfer, 1, now_of(client));
		return;
	}
	int r = resolve(client);
	if (r < 0)
		http_transfer_fail(&client->transfer, r);
}

/* Whatever can be done now, up to where something must be waited for. */
static void go_on(struct api_client *client)
{
	struct http_transfer *transfer = &client->transfer;
	int r;

	for (;;) {
		switch (transfer->state) {
		case HTTP_TRANSFER_FIND:
			drop_link(client); /* of a server that does not lead */
			find(client);
			if (transfer->state == HTTP_TRANSFER_FIND) {
				set_timer(client);
				return;
			}
			break;
		case HTTP_TRANSFER_CONNECT:
			set_timer(client);
			r = open_link(client);
			if (r == 0)
				return;
			/* a machine without IPv6 refuses at once */
			http_transfer_unconnected(transfer, r, now_of(client));
			break;
		case HTTP_TRANSFER_TALK:
			if (transfer->sent)
				return;
			set_timer(client);
			r = send_request(client);
			if (r == 0)
				return;
			drop_link(client);
			http_transfer_closed(transfer, r);
			break;
		case HTTP_TRANSFER_DONE:
			finish(client);
			return;
		case HTTP_TRANSFER_STREAM: /* nobody asks for one here: it must end in time */
		case HTTP_TRANSFER_IDLE:
			return;
		}
	}
}

/* Faults at once are told from the loop too: a caller gets its callback after the call, not within it. */
static void on_begin(uv_timer_t *timer)
{
	struct api_client *client = timer->data;

	http_transfer_start(&client->transfer, client->link && client->link->up, now_of(client));
	go_on(client);
}

int api_client_call(
	struct api_client *client, const struct http_call *call, api_client_answered answered, void *context)
{
	assert(!client->busy);
	int r = http_transfer_prepare(&client->transfer, call);
	if (r < 0)
		return r;
	client->busy = true;
	client->complaint[0] = 0;
	client->answered = answered;
	client->context = context;
	uv_timer_start(&client->timer, on_begin, 0, 0);
	return 0;
}

int api_client_get(struct api_client *client, struct span target, struct span token, int64_t timeout_ms,
	api_client_answered answered, void *context)
{
	struct http_call call = {
		.method = HTTP_METHOD_GET,
		.target = target,
		.token = token,
		.may_repeat = true,
		.timeout_ms = timeout_ms,
	};

	return api_client_call(client, &call, answered, context);
}

int api_client_post(struct api_client *client, struct span target, struct span body, struct span token,
	int64_t timeout_ms, api_client_answered answered, void *context)
{
	struct http_call call = {
		.method = HTTP_METHOD_POST,
		.target = target,
		.body = body,
		.token = token,
		.may_repeat = true,
		.timeout_ms = timeout_ms,
	};

	return api_client_call(client, &call, answered, context);
}

const char *api_client_complaint(const struct api_client *client)
{
	return client->complaint;
}

bool api_client_is_busy(const struct api_client *client)
{
	return client->busy;
}

void api_client_drop(struct api_client *client)
{
	uv_timer_stop(&client->timer);
	drop_resolution(client);
	if (client->busy)
		drop_link(client);
	client->busy = false;
}

/* ---- life ---- */

struct api_client *api_client_new(
	uv_loop_t *loop, const struct http_address *address, const struct http_answer_limits *limits)
{
	struct http_answer_limits usual = http_answer_limits_default();
	struct api_client *client = calloc(1, sizeof *client);

	if (!client)
		return NULL;
	if (http_transfer_init(&client->transfer, address, limits ? limits : &usual,
		    HEAD_BYTES_MAX + BODY_BYTES_MAX) < 0) {
		free(client);
		return NULL;
	}
	client->reserve_fd = -1;
	client->loop = loop;
	uv_timer_init(loop, &client->timer);
	client->timer.data = client;
	return client;
}

static void on_client_closed(uv_handle_t *handle)
{
	struct api_client *client = handle->data;

	http_transfer_done(&client->transfer);
	free(client);
}

void api_client_free(struct api_client *client)
{
	if (!client)
		return;
	client->reserves = false;
	api_client_drop(client);
	drop_link(client);
	give_reserve(client);
	uv_close((uv_handle_t *)&client->timer, on_client_closed);
}
