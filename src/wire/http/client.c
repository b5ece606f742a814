#include "wire/http/client.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/take.h"
#include "wire/tls/tls.h"

enum {
	HEAD_BYTES_MAX = 64 << 10,
	BODY_BYTES_MAX = 32 << 20,
	ADDRESSES_MAX = 8, /* of one host name */
	CROWDED_MS = 10,   /* until a socket whose queue is full is tried again */
};

struct http_client {
	struct http_transfer transfer;
	int fd;                 /* -1: no connection, not even one that is being made */
	size_t sent_bytes;      /* of the request */
	bool is_refused;        /* the server takes no more of it: what it said is there to be read */
	int64_t again_ms;       /* when the queue of a local server is tried again */
	struct addrinfo *found; /* from getaddrinfo(); NULL for a local server */
	struct tls *tls;        /* of the connection, once it is made; NULL: it has none */
	char complaint[TLS_COMPLAINT_BYTES];
};

static int64_t now_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC);
}

/* ---- life ------------------------------------------------------------------------------------------------ */

struct http_client *http_client_new(
	const struct http_address *address, const struct http_answer_limits *limits)
{
	struct http_client *client = calloc(1, sizeof *client);

	if (!client)
		return NULL;
	client->fd = -1;
	if (http_transfer_init(&client->transfer, address, limits, HEAD_BYTES_MAX + BODY_BYTES_MAX) < 0) {
		free(client);
		return NULL;
	}
	return client;
}

void http_client_hang_up(struct http_client *client)
{
	close_at(&client->fd);
	client->fd = -1;
	tls_free(client->tls);
	client->tls = NULL;
}

const char *http_client_complaint(const struct http_client *client)
{
	return client->complaint;
}

static void forget_addresses(struct http_client *client)
{
	if (client->found)
		freeaddrinfo(client->found);
	client->found = NULL;
}

void http_client_free(struct http_client *client)
{
	if (!client)
		return;
	http_client_hang_up(client);
	forget_addresses(client);
	http_transfer_done(&client->transfer);
	free(client);
}

/* ---- connecting ------------------------------------------------------------------------------------------ */

static void find(struct http_client *client)
{
	struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	const struct http_address *to = &client->transfer.address;
	uint32_t places = to->local;
	char port[8];

	http_client_hang_up(client); /* of a server that does not lead */
	forget_addresses(client);
	snprintf(port, sizeof port, "%u", to->port);
	if (!to->local && getaddrinfo(to->host, port, &wanted, &client->found) != 0)
		client->found = NULL;
	for (struct addrinfo *at = client->found; at && places < ADDRESSES_MAX; at = at->ai_next)
		places++;
	http_transfer_found(&client->transfer, places, now_ms());
}

static void unconnected(struct http_client *client, int fault)
{
	http_client_hang_up(client);
	http_transfer_unconnected(&client->transfer, fault, now_ms());
}

static void shake(struct http_client *client);

static void ready(struct http_client *client)
{
	client->sent_bytes = 0;
	client->is_refused = false;
	http_transfer_connected(&client->transfer);
}

static void connected(struct http_client *client)
{
	const struct http_address *to = &client->transfer.address;
	int yes = 1;

	if (!to->local)
		setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
	if (!to->secure) {
		ready(client);
		return;
	}
	client->tls = to->trust ? tls_client_new(to->trust, to->host) : NULL;
	if (client->tls)
		shake(client);
	else
		unconnected(client, to->trust ? -ENOMEM : -ENOSYS);
}

static void connect_to(struct http_client *client, const struct sockaddr *address, socklen_t len)
{
	client->fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (client->fd < 0) {
		unconnected(client, -errno);
		return;
	}
	if (connect(client->fd, address, len) == 0) {
		connected(client);
		return;
	}
	/* A local server that has not yet taken those who came before says "again", and there is nothing under way then
	 * that poll() could tell the end of. */
	if (errno == EAGAIN && address->sa_family == AF_UNIX) {
		http_client_hang_up(client);
		client->again_ms = now_ms() + CROWDED_MS;
	} else if (errno != EINPROGRESS) {
		unconnected(client, -errno);
	}
}

static void connect_begin(struct http_client *client)
{
	struct sockaddr_un local = {.sun_family = AF_UNIX};
	const struct addrinfo *at = client->found;

	if (client->transfer.address.local) {
		strcpy(local.sun_path, client->transfer.address.path);
		connect_to(client, (struct sockaddr *)&local, sizeof local);
		return;
	}
	for (uint32_t i = 0; i < client->transfer.place; i++)
		at = at->ai_next;
	connect_to(client, at->ai_addr, at->ai_addrlen);
}

/* Is the connection made, or has it failed? */
static void connect_look(struct http_client *client)
{
	struct pollfd ready = {.fd = client->fd, .events = POLLOUT};
	int fault = 0;
	socklen_t len = sizeof fault;

	if (poll(&ready, 1, 0) <= 0)
		return;
	if (getsockopt(client->fd, SOL_SOCKET, SO_ERROR, &fault, &len) < 0)
		fault = errno;
	if (fault != 0)
		unconnected(client, -fault);
	else
		connected(client);
}

/* ---- TLS ------------------------------------------------------------------------------------------------- */

/* What it has for the server. 0, also if some of it has to wait; or the fault of the socket. */
static int send_records(struct http_client *client)
{
	struct span out;

	while ((out = tls_output(client->tls)).len > 0) {
		ssize_t sent = send(client->fd, out.data, out.len, MSG_NOSIGNAL);
		if (sent < 0 && errno == EAGAIN)
			return 0;
		if (sent < 0 && errno != EINTR)
			return -errno;
		tls_output_sent(client->tls, sent > 0 ? (size_t)sent : 0);
	}
	return 0;
}

/* 1: something came; 0: nothing for now; or how the connection ended: -ECONNRESET if nobody says. */
static int receive_records(struct http_client *client)
{
	char block[32 << 10];
	ssize_t got = recv(client->fd, block, sizeof block, 0);

	if (got < 0 && errno == EINTR)
		return 1;
	if (got <= 0)
		return got == 0 ? -ECONNRESET : errno == EAGAIN ? 0 : -errno;
	int r = tls_hear(client->tls, (struct span){block, (size_t)got});
	return r < 0 ? r : 1;
}

/* As far as it goes now. The alert that says why we refuse a server is sent before the connection is closed. */
static void shake(struct http_client *client)
{
	int heard = 1, done = 0, r = 0;

	while (done == 0 && heard == 1 && r == 0) {
		done = tls_shake(client->tls);
		r = send_records(client);
		if (done == 0 && r == 0)
			heard = receive_records(client);
	}
	if (done < 0)
		snprintf(client->complaint, sizeof client->complaint, "%s", tls_complaint(client->tls));
	if (done < 0 || r < 0 || heard < 0)
		unconnected(client, done < 0 ? done : r < 0 ? r : heard);
	else if (done == 1)
		ready(client);
}

/* ---- talking --------------------------------------------------------------------------------------------- */

static bool is_sent(const struct http_client *client)
{
	return client->is_refused ||
		(client->sent_bytes == client->transfer.out.len &&
			(!client->tls || tls_output(client->tls).len == 0));
}

static void broke(struct http_client *client, int fault)
{
	http_client_hang_up(client);
	http_transfer_closed(&client->transfer, fault);
}

/* A record at a time, so that no second copy of a long request is made. */
static void send_sealed(struct http_client *client)
{
	struct span out = buf_span(&client->transfer.out);
	int r = 0;

	while (r == 0 && !is_sent(client)) {
		size_t len = out.len - client->sent_bytes;
		if (tls_output(client->tls).len == 0) {
			len = len < TLS_RECORD_BYTES ? len : TLS_RECORD_BYTES;
			r = tls_write(client->tls, (struct span){out.data + client->sent_bytes, len});
			client->sent_bytes += r == 0 ? len : 0;
		}
		if (r == 0)
			r = send_records(client);
		if (tls_output(client->tls).len > 0)
			break;
	}
	client->is_refused |= r == -EPIPE || r == -ECONNRESET;
	if (r < 0 && !client->is_refused)
		broke(client, r);
}

/* A server that refuses early answers and closes while we still send: what it said is there to be read. */
static void send_some(struct http_client *client)
{
	struct span out = buf_span(&client->transfer.out);

	http_transfer_sent(&client->transfer);
	if (client->tls) {
		send_sealed(client);
		return;
	}
	while (!is_sent(client)) {
		ssize_t sent = send(client->fd, out.data + client->sent_bytes, out.len - client->sent_bytes,
			MSG_NOSIGNAL);
		if (sent < 0 && errno == EAGAIN)
			return;
		if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
			client->is_refused = true;
		else if (sent < 0 && errno != EINTR) {
			broke(client, -errno);
			return;
		}
		client->sent_bytes += sent > 0 ? (size_t)sent : 0;
	}
}

static bool hears(const struct http_client *client)
{
	return client->transfer.state == HTTP_TRANSFER_TALK || client->transfer.state == HTTP_TRANSFER_STREAM;
}

/* A body whose end is that of the connection ends with a goodbye: without one, somebody has cut it. */
static bool receive_sealed(struct http_client *client)
{
	char block[TLS_RECORD_BYTES];
	int heard = receive_records(client);
	ssize_t got = 1;

	if (heard == 0)
		return false;
	while ((got = tls_read(client->tls, block, sizeof block)) > 0 && hears(client))
		http_transfer_received(&client->transfer, (struct span){block, (size_t)got});
	if (!hears(client))
		return false;
	if (got < 0 || heard < 0) {
		broke(client, got == -EPIPE ? 0 : got < 0 ? (int)got : heard);
		return false;
	}
	return http_transfer_is_under_way(&client->transfer);
}

/* What is there. True: there may be more. */
static bool receive_some(struct http_client *client)
{
	if (client->tls)
		return receive_sealed(client);
	char block[32 << 10];
	ssize_t got = recv(client->fd, block, sizeof block, 0);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return errno == EINTR;
	if (got <= 0) {
		broke(client, got < 0 ? -errno : 0);
		return false;
	}
	http_transfer_received(&client->transfer, (struct span){block, (size_t)got});
	return client->transfer.state == HTTP_TRANSFER_TALK;
}

static void talk(struct http_client *client)
{
	if (!is_sent(client))
		send_some(client);
	while (client->fd >= 0 && receive_some(client))
		;
}

/* ---- steps ----------------------------------------------------------------------------------------------- */

int http_client_begin(struct http_client *client, const struct http_call *call)
{
	if (client->fd >= 0 && !http_transfer_keeps(&client->transfer))
		http_client_hang_up(client); /* a stream that was left */
	client->sent_bytes = 0;
	client->is_refused = false;
	client->again_ms = 0;
	client->complaint[0] = 0;
	int r = http_transfer_prepare(&client->transfer, call);
	if (r == 0)
		http_transfer_start(&client->transfer, client->fd >= 0, now_ms());
	return r;
}

int64_t http_client_wait(const struct http_client *client, struct pollfd *ret_poll)
{
	const struct http_transfer *transfer = &client->transfer;
	int64_t until_ms = http_transfer_until(transfer);

	*ret_poll = (struct pollfd){.fd = client->fd};
	switch (transfer->state) {
	case HTTP_TRANSFER_FIND:
		return 0;
	case HTTP_TRANSFER_CONNECT:
		ret_poll->events = !client->tls           ? POLLOUT
			: tls_output(client->tls).len > 0 ? POLLIN | POLLOUT
							  : POLLIN;
		return client->fd < 0 && client->again_ms < until_ms ? client->again_ms : until_ms;
	case HTTP_TRANSFER_TALK:
		ret_poll->events = POLLIN | (is_sent(client) ? 0 : POLLOUT);
		return until_ms;
	case HTTP_TRANSFER_STREAM:
		ret_poll->events = POLLIN;
		return INT64_MAX;
	case HTTP_TRANSFER_IDLE:
	case HTTP_TRANSFER_DONE:
		break;
	}
	ret_poll->fd = -1;
	return INT64_MAX;
}

static void act(struct http_client *client)
{
	switch (client->transfer.state) {
	case HTTP_TRANSFER_FIND:
		find(client);
		break;
	case HTTP_TRANSFER_CONNECT:
		if (client->tls)
			shake(client);
		else if (client->fd >= 0)
			connect_look(client);
		else if (now_ms() >= client->again_ms)
			connect_begin(client);
		break;
	case HTTP_TRANSFER_TALK:
		talk(client);
		break;
	case HTTP_TRANSFER_STREAM:
		receive_some(client);
		break;
	case HTTP_TRANSFER_IDLE:
	case HTTP_TRANSFER_DONE:
		break;
	}
}

void http_client_step(struct http_client *client)
{
	struct http_transfer *transfer = &client->transfer;
	enum http_transfer_state before;

	do {
		before = transfer->state;
		act(client);
	} while (transfer->state != before && http_transfer_is_under_way(transfer));
	if (http_transfer_is_under_way(transfer) && now_ms() >= http_transfer_until(transfer)) {
		http_client_hang_up(client);
		http_transfer_late(transfer, now_ms());
	}
	if (transfer->state == HTTP_TRANSFER_DONE && !http_transfer_keeps(transfer))
		http_client_hang_up(client);
}

const struct http_transfer *http_client_transfer(const struct http_client *client)
{
	return &client->transfer;
}

/* ---- waiting --------------------------------------------------------------------------------------------- */

/* Until there is something to do, or the time is up: false. */
static bool await(const struct http_client *client, int64_t until_ms)
{
	struct pollfd ready;
	int64_t least_ms = http_client_wait(client, &ready);
	int r;

	if (least_ms > until_ms)
		least_ms = until_ms;
	do {
		int64_t left_ms = least_ms - now_ms();
		r = poll(&ready, ready.fd >= 0,
			left_ms < 0                   ? 0
				: left_ms > INT32_MAX ? INT32_MAX
						      : (int)left_ms);
	} while (r < 0 && errno == EINTR);
	return r != 0;
}

int http_client_call(struct http_client *client, const struct http_call *call,
	struct http_answer **ret_answer, enum http_reach *ret_reach)
{
	struct http_transfer *transfer = &client->transfer;

	*ret_reach = HTTP_REACH_NOTHING;
	int r = http_client_begin(client, call);
	if (r < 0)
		return r;
	http_client_step(client);
	while (http_transfer_is_under_way(transfer)) {
		await(client, INT64_MAX);
		http_client_step(client);
	}
	*ret_reach = http_transfer_reach(transfer);
	*ret_answer = transfer->answer;
	return transfer->fault;
}

int http_client_more(struct http_client *client, int64_t timeout_ms)
{
	if (client->transfer.state != HTTP_TRANSFER_STREAM)
		return 0;
	if (!await(client, now_ms() + timeout_ms))
		return -ETIMEDOUT;
	http_client_step(client);
	if (client->transfer.fault < 0)
		return client->transfer.fault;
	/* the last bytes of a stream may come with its end: the next call reports the end */
	return client->transfer.state == HTTP_TRANSFER_STREAM ||
		http_answer_body(client->transfer.answer).len > 0;
}
