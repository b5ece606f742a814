/*
 * The libuv side of wire/http/transfer.h: go_on() does what the state of the call asks for, and the callbacks report what
 * came of it.
 *
 * A connection (struct link) lives until libuv has closed its handle; a line has one or none. A link that was dropped
 * knows no line any more, and whatever libuv still tells it goes nowhere.
 */
#include "worker/line.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/take.h"

enum {
	HEAD_BYTES_MAX = 64 << 10,
	BODY_BYTES_MAX = 4 << 20,
	ADDRESSES_MAX = 8, /* of one host name */
	BLOCK_BYTES = 16 << 10,
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
	struct line *line; /* NULL: dropped */
	bool up;
	bool writing;
	char block[BLOCK_BYTES];
};

struct resolution {
	uv_getaddrinfo_t request;
	struct line *line; /* NULL: dropped */
};

struct line {
	uv_loop_t *loop;
	struct http_transfer transfer;
	struct sockaddr_storage found[ADDRESSES_MAX];
	struct resolution *resolution;
	struct link *link;
	uv_timer_t timer;
	bool busy; /* a call was taken, and its callback is still to come */
	bool reserves;
	int spare_fd; /* -1: none, or it is that of the connection now */
	line_answered answered;
	void *context;
};

static void go_on(struct line *line);

static int64_t now_of(const struct line *line)
{
	return (int64_t)uv_now(line->loop);
}

/* ---- links ---- */

static void on_link_closed(uv_handle_t *handle)
{
	free(handle->data);
}

/* Between the two nobody else comes to run who could take it. */
static void give_spare(struct line *line)
{
	close_at(&line->spare_fd);
	line->spare_fd = -1;
}

static void keep_spare(struct line *line)
{
	if (line->reserves && line->spare_fd < 0)
		line->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void line_reserve(struct line *line)
{
	line->reserves = true;
	if (!line->link)
		keep_spare(line);
}

static void drop_link(struct line *line)
{
	struct link *link = line->link;

	if (!link)
		return;
	line->link = NULL;
	link->line = NULL;
	uv_close(&link->handle, on_link_closed);
	keep_spare(line);
}

static void drop_resolution(struct line *line)
{
	if (!line->resolution)
		return;
	line->resolution->line = NULL;
	uv_cancel((uv_req_t *)&line->resolution->request); /* if it cannot, it will find nobody */
	line->resolution = NULL;
}

/* The end of a call. The caller may do anything in its callback: nothing of ours is touched afterwards. */
static void finish(struct line *line)
{
	const struct http_transfer *transfer = &line->transfer;

	assert(line->busy);
	assert(transfer->state == HTTP_TRANSFER_DONE);
	line->busy = false;
	uv_timer_stop(&line->timer);
	drop_resolution(line);
	if (!http_transfer_keeps(transfer) || line->link->writing)
		drop_link(line);
	line->answered(line->context, transfer->fault, http_transfer_reach(transfer),
		transfer->fault < 0 ? NULL : transfer->answer);
}

static void on_timeout(uv_timer_t *timer)
{
	struct line *line = timer->data;

	if (!line->busy)
		return;
	drop_resolution(line);
	drop_link(line);
	http_transfer_late(&line->transfer, now_of(line));
	go_on(line);
}

/* As long as the state of the call allows. */
static void set_timer(struct line *line)
{
	int64_t left_ms = http_transfer_until(&line->transfer) - now_of(line);

	uv_timer_start(&line->timer, on_timeout, left_ms > 0 ? (uint64_t)left_ms : 0, 0);
}

/* ---- reading and writing ---- */

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *ret_room)
{
	struct link *link = handle->data;

	(void)wanted;
	*ret_room = uv_buf_init(link->block, sizeof link->block);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *room)
{
	struct link *link = stream->data;
	struct line *line = link->line;

	if (!line || got == 0)
		return;
	/* the server closes an idle connection, or says what nobody asked for; a call that is not sent yet makes a new one */
	if (!line->busy || !line->transfer.sent) {
		drop_link(line);
		return;
	}
	if (got < 0) {
		drop_link(line);
		http_transfer_closed(&line->transfer, got == UV_EOF ? 0 : (int)got);
	} else {
		http_transfer_received(&line->transfer, (struct span){room->base, (size_t)got});
	}
	go_on(line);
}

/* A server that refuses early answers and closes while we still send: what it said is there to be read. So a fault of
 * writing is left to the reading side. */
static void on_written(uv_write_t *write, int status)
{
	struct link *link = write->data;

	(void)status;
	link->writing = false;
}

static int send_request(struct line *line)
{
	struct link *link = line->link;
	struct span out = buf_span(&line->transfer.out);
	uv_buf_t bytes = uv_buf_init((char *)out.data, (unsigned)out.len);

	http_transfer_sent(&line->transfer);
	link->writing = true;
	return uv_write(&link->write, &link->stream, &bytes, 1, on_written);
}

/* ---- connecting ---- */

static void on_connected(uv_connect_t *connect, int status)
{
	struct link *link = connect->data;
	struct line *line = link->line;

	if (!line)
		return;
	if (status == 0)
		status = uv_read_start(&link->stream, on_room, on_read);
	if (status == 0) {
		link->up = true;
		if (!line->transfer.address.local)
			uv_tcp_nodelay(&link->tcp, 1);
		http_transfer_connected(&line->transfer);
	} else {
		drop_link(line);
		http_transfer_unconnected(&line->transfer, status, now_of(line));
	}
	go_on(line);
}

static int open_link(struct line *line)
{
	struct link *link = calloc(1, sizeof *link);
	int r;

	if (!link)
		return -ENOMEM;
	r = line->transfer.address.local ? uv_pipe_init(line->loop, &link->pipe, 0)
					 : uv_tcp_init(line->loop, &link->tcp);
	if (r < 0) {
		free(link);
		return r;
	}
	give_spare(line);
	link->handle.data = link;
	link->connect.data = link->write.data = link;
	link->line = line;
	line->link = link;
	if (line->transfer.address.local)
		uv_pipe_connect(&link->connect, &link->pipe, line->transfer.address.path, on_connected);
	else
		r = uv_tcp_connect(&link->connect, &link->tcp,
			(const struct sockaddr *)&line->found[line->transfer.place], on_connected);
	if (r < 0)
		drop_link(line);
	return r;
}

static uint32_t keep_addresses(struct line *line, const struct addrinfo *found)
{
	uint32_t count = 0;

	for (; found && count < ADDRESSES_MAX; found = found->ai_next) {
		if (found->ai_addrlen <= sizeof line->found[0])
			memcpy(&line->found[count++], found->ai_addr, found->ai_addrlen);
	}
	return count;
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
	struct resolution *resolution = request->data;
	struct line *line = resolution->line;

	free(resolution);
	if (line) {
		line->resolution = NULL;
		http_transfer_found(
			&line->transfer, keep_addresses(line, status == 0 ? found : NULL), now_of(line));
		go_on(line);
	}
	uv_freeaddrinfo(found);
}

/* A number needs nobody to be asked. */
static bool parse_number(struct line *line)
{
	const struct http_address *to = &line->transfer.address;

	return uv_ip4_addr(to->host, to->port, (struct sockaddr_in *)&line->found[0]) == 0 ||
		uv_ip6_addr(to->host, to->port, (struct sockaddr_in6 *)&line->found[0]) == 0;
}

static int resolve(struct line *line)
{
	struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	struct resolution *resolution = calloc(1, sizeof *resolution);
	char port[8];

	if (!resolution)
		return -ENOMEM;
	snprintf(port, sizeof port, "%u", line->transfer.address.port);
	resolution->line = line;
	resolution->request.data = resolution;
	int r = uv_getaddrinfo(
		line->loop, &resolution->request, on_resolved, line->transfer.address.host, port, &wanted);
	if (r < 0) {
		free(resolution);
		return r;
	}
	line->resolution = resolution;
	return 0;
}

/* ---- calls ---- */

static void find(struct line *line)
{
	if (line->transfer.address.local || parse_number(line)) {
		http_transfer_found(&line->transfer, 1, now_of(line));
		return;
	}
	int r = resolve(line);
	if (r < 0)
		http_transfer_fail(&line->transfer, r);
}

/* Whatever can be done now, up to where something must be waited for. */
static void go_on(struct line *line)
{
	struct http_transfer *transfer = &line->transfer;
	int r;

	for (;;) {
		switch (transfer->state) {
		case HTTP_TRANSFER_FIND:
			find(line);
			if (transfer->state == HTTP_TRANSFER_FIND) {
				set_timer(line);
				return;
			}
			break;
		case HTTP_TRANSFER_CONNECT:
			set_timer(line);
			r = open_link(line);
			if (r == 0)
				return;
			/* a machine without IPv6 refuses at once */
			http_transfer_unconnected(transfer, r, now_of(line));
			break;
		case HTTP_TRANSFER_TALK:
			if (transfer->sent)
				return;
			set_timer(line);
			r = send_request(line);
			if (r == 0)
				return;
			drop_link(line);
			http_transfer_closed(transfer, r);
			break;
		case HTTP_TRANSFER_DONE:
			finish(line);
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
	struct line *line = timer->data;

	http_transfer_start(&line->transfer, line->link && line->link->up, now_of(line));
	go_on(line);
}

int line_call(struct line *line, const struct http_call *call, line_answered answered, void *context)
{
	assert(!line->busy);
	int r = http_transfer_prepare(&line->transfer, call);
	if (r < 0)
		return r;
	line->busy = true;
	line->answered = answered;
	line->context = context;
	uv_timer_start(&line->timer, on_begin, 0, 0);
	return 0;
}

bool line_is_busy(const struct line *line)
{
	return line->busy;
}

void line_drop(struct line *line)
{
	uv_timer_stop(&line->timer);
	drop_resolution(line);
	if (line->busy)
		drop_link(line);
	line->busy = false;
}

/* ---- life ---- */

struct line *line_new(
	uv_loop_t *loop, const struct http_address *address, const struct http_answer_limits *limits)
{
	struct line *line = calloc(1, sizeof *line);

	if (!line)
		return NULL;
	if (http_transfer_init(&line->transfer, address, limits, HEAD_BYTES_MAX + BODY_BYTES_MAX) < 0) {
		free(line);
		return NULL;
	}
	line->spare_fd = -1;
	line->loop = loop;
	uv_timer_init(loop, &line->timer);
	line->timer.data = line;
	return line;
}

static void on_line_closed(uv_handle_t *handle)
{
	struct line *line = handle->data;

	http_transfer_done(&line->transfer);
	free(line);
}

void line_free(struct line *line)
{
	if (!line)
		return;
	line->reserves = false;
	line_drop(line);
	drop_link(line);
	give_spare(line);
	uv_close((uv_handle_t *)&line->timer, on_line_closed);
}
