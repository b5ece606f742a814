/*
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

#include "base/buf.h"
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
	bool used; /* it has served a call: the server may have closed it since */
	bool writing;
	char block[BLOCK_BYTES];
};

struct resolution {
	uv_getaddrinfo_t request;
	struct line *line; /* NULL: dropped */
};

struct line {
	uv_loop_t *loop;
	struct http_address address;
	struct sockaddr_storage found[ADDRESSES_MAX];
	uint32_t found_count, found_at;
	struct resolution *resolution;
	struct link *link;
	struct http_answer *answer;
	struct buf out;
	uv_timer_t timer;
	bool busy, may_repeat, sent;
	bool reserves;
	int spare_fd;       /* -1: none, or it is that of the connection now */
	int64_t timeout_ms; /* of the call */
	line_answered answered;
	void *context;
};

static void start(struct line *line);

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

static enum http_reach reach_of(const struct line *line)
{
	if (http_answer_began(line->answer))
		return HTTP_REACH_REPLY;
	return line->sent ? HTTP_REACH_UNKNOWN : HTTP_REACH_NOTHING;
}

/* The end of a call. The caller may do anything in its callback: nothing of ours is touched afterwards. */
static void finish(struct line *line, int fault)
{
	line_answered answered = line->answered;
	enum http_reach reach = reach_of(line);

	assert(line->busy);
	line->busy = false;
	uv_timer_stop(&line->timer);
	drop_resolution(line);
	if (fault < 0 || !http_answer_keeps_alive(line->answer) || line->link->writing)
		drop_link(line);
	else
		line->link->used = true;
	answered(line->context, fault, reach, fault < 0 ? NULL : line->answer);
}

/* A connection that was kept may have been closed under us a moment ago: that says nothing of the server. */
static void broke(struct line *line, int fault)
{
	bool stale = line->link && line->link->used && line->may_repeat && !http_answer_began(line->answer);

	drop_link(line);
	if (stale)
		start(line);
	else
		finish(line, fault);
}

static void on_timeout(uv_timer_t *timer)
{
	struct line *line = timer->data;

	if (line->busy)
		finish(line, -ETIMEDOUT);
}

/* ---- reading and writing ---- */

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *ret_room)
{
	struct link *link = handle->data;

	(void)wanted;
	*ret_room = uv_buf_init(link->block, sizeof link->block);
}

static void on_end(struct line *line)
{
	if (!http_answer_began(line->answer)) {
		broke(line, -ECONNRESET);
		return;
	}
	finish(line, http_answer_end(line->answer));
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *room)
{
	struct link *link = stream->data;
	struct line *line = link->line;

	if (!line || got == 0)
		return;
	/* the server closes an idle connection, or says what nobody asked for; a call that is not sent yet makes a new one */
	if (!line->busy || !line->sent) {
		drop_link(line);
		return;
	}
	if (got == UV_EOF) {
		on_end(line);
		return;
	}
	if (got < 0) {
		broke(line, (int)got);
		return;
	}
	int r = http_answer_feed(line->answer, (struct span){room->base, (size_t)got});
	if (r < 0 || http_answer_phase(line->answer) == HTTP_ANSWER_DONE)
		finish(line, r);
}

/* A server that refuses early answers and closes while we still send: what it said is there to be read. So a fault of
 * writing is left to the reading side. */
static void on_written(uv_write_t *write, int status)
{
	struct link *link = write->data;

	(void)status;
	link->writing = false;
}

static void send_request(struct line *line)
{
	struct link *link = line->link;
	uv_buf_t bytes = uv_buf_init(line->out.data, (unsigned)line->out.len);

	line->sent = true;
	link->writing = true;
	int r = uv_write(&link->write, &link->stream, &bytes, 1, on_written);
	if (r < 0)
		broke(line, r);
}

/* ---- connecting ---- */

static int open_first(struct line *line);

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
		if (!line->address.local)
			uv_tcp_nodelay(&link->tcp, 1);
		send_request(line);
		return;
	}
	drop_link(line);
	if (!line->address.local && ++line->found_at < line->found_count)
		status = open_first(line);
	if (status < 0)
		finish(line, status);
}

static int open_link(struct line *line)
{
	struct link *link = calloc(1, sizeof *link);
	int r;

	if (!link)
		return -ENOMEM;
	r = line->address.local ? uv_pipe_init(line->loop, &link->pipe, 0)
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
	if (line->address.local)
		uv_pipe_connect(&link->connect, &link->pipe, line->address.path, on_connected);
	else
		r = uv_tcp_connect(&link->connect, &link->tcp,
			(const struct sockaddr *)&line->found[line->found_at], on_connected);
	if (r < 0)
		drop_link(line);
	return r;
}

/* To the first of the addresses that are left which can be tried at all: a machine without IPv6 refuses at once. */
static int open_first(struct line *line)
{
	int r = open_link(line);

	while (r < 0 && r != -ENOMEM && !line->address.local && ++line->found_at < line->found_count)
		r = open_link(line);
	return r;
}

static void keep_addresses(struct line *line, const struct addrinfo *found)
{
	line->found_count = line->found_at = 0;
	for (; found && line->found_count < ADDRESSES_MAX; found = found->ai_next) {
		if (found->ai_addrlen <= sizeof line->found[0])
			memcpy(&line->found[line->found_count++], found->ai_addr, found->ai_addrlen);
	}
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
	struct resolution *resolution = request->data;
	struct line *line = resolution->line;

	free(resolution);
	if (line) {
		line->resolution = NULL;
		keep_addresses(line, status == 0 ? found : NULL);
		int r = line->found_count > 0 ? open_first(line) : -EHOSTUNREACH;
		if (r < 0)
			finish(line, r);
	}
	uv_freeaddrinfo(found);
}

/* A number needs nobody to be asked. */
static bool parse_number(struct line *line)
{
	const struct http_address *to = &line->address;

	line->found_at = 0;
	line->found_count = uv_ip4_addr(to->host, to->port, (struct sockaddr_in *)&line->found[0]) == 0 ||
		uv_ip6_addr(to->host, to->port, (struct sockaddr_in6 *)&line->found[0]) == 0;
	return line->found_count > 0;
}

static int resolve(struct line *line)
{
	struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	struct resolution *resolution = calloc(1, sizeof *resolution);
	char port[8];

	if (!resolution)
		return -ENOMEM;
	snprintf(port, sizeof port, "%u", line->address.port);
	resolution->line = line;
	resolution->request.data = resolution;
	int r = uv_getaddrinfo(
		line->loop, &resolution->request, on_resolved, line->address.host, port, &wanted);
	if (r < 0) {
		free(resolution);
		return r;
	}
	line->resolution = resolution;
	return 0;
}

/* ---- calls ---- */

/* Sends what is in `out`, over the connection there is or a new one. */
static void start(struct line *line)
{
	int r;

	line->sent = false;
	http_answer_reset(line->answer);
	if (line->link && line->link->up) {
		send_request(line);
		return;
	}
	if (line->address.local || parse_number(line))
		r = open_first(line);
	else
		r = resolve(line);
	if (r < 0)
		finish(line, r);
}

/* Faults at once are told from the loop too: a caller gets its callback after the call, not within it. */
static void on_begin(uv_timer_t *timer)
{
	struct line *line = timer->data;

	uv_timer_start(timer, on_timeout, (uint64_t)line->timeout_ms, 0);
	start(line);
}

int line_call(struct line *line, const struct http_call *call, line_answered answered, void *context)
{
	assert(!line->busy);
	int r = http_put_request(&line->out, &line->address, call);
	if (r < 0)
		return r;
	line->busy = true;
	line->sent = false; /* until then nothing that comes is an answer to it */
	line->may_repeat = call->may_repeat;
	line->answered = answered;
	line->context = context;
	line->timeout_ms = call->timeout_ms;
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
	line->answer = http_answer_new(limits);
	if (!line->answer) {
		free(line);
		return NULL;
	}
	line->spare_fd = -1;
	line->loop = loop;
	line->address = *address;
	buf_init(&line->out, HEAD_BYTES_MAX + BODY_BYTES_MAX);
	uv_timer_init(loop, &line->timer);
	line->timer.data = line;
	return line;
}

static void on_line_closed(uv_handle_t *handle)
{
	struct line *line = handle->data;

	http_answer_free(line->answer);
	buf_done(&line->out);
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
