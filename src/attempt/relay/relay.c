#include "attempt/relay/relay.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attempt/relay/dial.h"
#include "base/buf.h"
#include "wire/http/forward.h"
#include "wire/json/json.h"
#include "wire/network.h"
#include "wire/tls/tls.h"

enum {
	BLOCK_BYTES = 16 << 10,
	FIRST_MS = 10 * 1000,     /* a connection that says nothing is closed, as the server does it */
	REFUSING_MS = 1000,       /* for a child to read why it was refused */
	REFUSAL_BYTES_MAX = 2048, /* head and body */
	/* a block may hold many heads, the shortest of 18 bytes, and each grows by at most a kilobyte */
	FORWARDED_BYTES_MAX = 2 << 20,
	SEALED_BYTES_MAX = FORWARDED_BYTES_MAX + (FORWARDED_BYTES_MAX >> 6),
	SHAKE_MS = 10 * 1000,
	DIALS_MAX =
		12, /* at a time, by all proxies: a lookup takes a thread, of which the worker needs some itself */
	DIAL_AGAIN_MS = 20,
};

enum relay_state {
	RELAY_WAITING,
	RELAY_CONNECTING,
	RELAY_PASSING,
	RELAY_REFUSING,
	RELAY_CLOSING,
};

union stream {
	uv_handle_t handle;
	uv_stream_t stream;
	uv_tcp_t tcp;
	uv_pipe_t pipe;
};

/* One direction. `block` is being filled or being written, never both. */
struct flow {
	uv_stream_t *from, *to;
	uv_write_t write;
	char block[BLOCK_BYTES];
};

struct relay {
	enum relay_state state;
	const struct relay_way *way;
	const struct http_address *server; /* NULL: a proxy */
	struct proxy_wish wish;            /* of a proxy */
	bool counted;                      /* among the dials of all proxies */
	char address[NETWORK_TEXT_BYTES];  /* of the host, that was refused; "": none */
	relay_ended ended;
	void *context;
	union stream child, up;
	bool up_is_open; /* `up` is a handle of the loop */
	uv_timer_t clock;
	uint32_t open_handles;
	struct dial *dial;
	size_t first_len; /* bytes in `out.block` that wait for the connection */
	uv_shutdown_t shutdown;
	struct flow out, in; /* to the server, to the child */
	/* Of a server that has a name: what it is called there and here differs. NULL: bytes pass as they are. */
	struct http_forward *forward;
	struct buf forwarded;
	struct tls *tls; /* with a server of https; NULL: bytes pass in the clear */
	struct buf sealed;
};

/* ---- the end -------------------------------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
	struct relay *relay = handle->data;

	if (--relay->open_handles > 0)
		return;
	free(relay->forward);
	buf_done(&relay->forwarded);
	buf_done(&relay->sealed);
	tls_free(relay->tls);
	free(relay);
}

static void stop_counting(struct relay *relay)
{
	if (relay->counted)
		--*relay->way->dials;
	relay->counted = false;
}

void relay_close(struct relay *relay)
{
	assert(relay->state != RELAY_CLOSING);
	relay->state = RELAY_CLOSING;
	dial_cancel(relay->dial);
	relay->dial = NULL;
	stop_counting(relay);
	uv_close(&relay->child.handle, on_closed);
	uv_close((uv_handle_t *)&relay->clock, on_closed);
	if (relay->up_is_open)
		uv_close(&relay->up.handle, on_closed);
}

/* Callbacks of libuv come for handles that are being closed, too. */
static void end(struct relay *relay)
{
	if (relay->state == RELAY_CLOSING)
		return;
	relay_close(relay);
	relay->ended(relay->context, relay);
}

static void on_late(uv_timer_t *clock)
{
	end(clock->data);
}

/* ---- refusing ------------------------------------------------------------------------------------------------------- */

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *ret_room)
{
	struct relay *relay = handle->data;
	struct flow *flow = handle == &relay->child.handle ? &relay->out : &relay->in;

	(void)wanted;
	size_t used = relay->state == RELAY_WAITING ? relay->first_len : 0; /* a head comes in pieces */
	*ret_room = uv_buf_init(flow->block + used, (unsigned)(sizeof flow->block - used));
}

/* libuv wants one. */
static void on_shut(uv_shutdown_t *shutdown, int status)
{
	(void)shutdown;
	(void)status;
}

static void on_dropped(uv_stream_t *stream, ssize_t got, const uv_buf_t *room)
{
	(void)room;
	if (got < 0)
		end(stream->data);
}

/* A close with unread bytes would take the reply back: the rest of the request is read and dropped. */
static void on_refused(uv_write_t *write, int status)
{
	struct relay *relay = write->handle->data;

	if (relay->state == RELAY_REFUSING &&
		(status < 0 || uv_shutdown(&relay->shutdown, &relay->child.stream, on_shut) < 0 ||
			uv_read_start(&relay->child.stream, on_room, on_dropped) < 0))
		end(relay);
}

struct refusal {
	const char *line, *code, *title; /* `line`: the status and its words */
	int status;
	char detail[PROXY_WHY_BYTES];
};

static int put_refusal(struct relay *relay, const struct refusal *refusal, size_t *ret_len)
{
	struct json_object problem;
	char type[64];
	struct buf body;

	buf_init(&body, REFUSAL_BYTES_MAX);
	snprintf(type, sizeof type, "urn:stint:problem:%s", refusal->code);
	json_begin(&problem, &body);
	json_member_word(&problem, "type", type);
	json_member_word(&problem, "title", refusal->title);
	json_member_int(&problem, "status", refusal->status);
	json_member_word(&problem, "code", refusal->code);
	json_member_string(&problem, "detail", span_of(refusal->detail));
	int r = json_end(&problem);
	if (r == 0)
		*ret_len = (size_t)snprintf(relay->in.block, sizeof relay->in.block,
			"HTTP/1.1 %s\r\nContent-Type: application/problem+json\r\nContent-Length: %zu\r\n"
			"%sConnection: close\r\n\r\n%.*s",
			refusal->line, body.len, refusal->status == 503 ? "Retry-After: 1\r\n" : "",
			SPAN_ARGS(buf_span(&body)));
	buf_done(&body);
	return r;
}

static void refuse(struct relay *relay, const struct refusal *refusal)
{
	size_t len = 0;
	int r = put_refusal(relay, refusal, &len);
	uv_buf_t bytes = uv_buf_init(relay->in.block, (unsigned)len);

	stop_counting(relay);
	relay->state = RELAY_REFUSING;
	uv_timer_start(&relay->clock, on_late, REFUSING_MS, 0);
	if (r < 0 || uv_write(&relay->in.write, &relay->child.stream, &bytes, 1, on_refused) < 0)
		end(relay);
}

/* The server has heard nothing of the request. */
static void refuse_away(struct relay *relay)
{
	const struct http_address *server = relay->server;
	struct refusal refusal = {"503 Service Unavailable", "server_away", "the server is away", 503, ""};

	const char *why = relay->tls ? tls_complaint(relay->tls) : "";
	snprintf(refusal.detail, sizeof refusal.detail,
		"the worker cannot reach its server (%s%.200s): nothing was sent%s%.200s; try again in a moment",
		server->local ? "unix:" : "", server->local ? server->path : server->host, why[0] ? ": " : "",
		why);
	refuse(relay, &refusal);
}

static void refuse_barred(struct relay *relay)
{
	struct refusal refusal = {
		"403 Forbidden", "host_not_listed", "this task may not reach that host", 403, ""};
	const struct proxy_wish *wish = &relay->wish;

	if (relay->address[0])
		snprintf(refusal.detail, sizeof refusal.detail,
			"%s has the address %s, which is not public: \"network\" of the executor must list that address",
			wish->host, relay->address);
	else
		snprintf(refusal.detail, sizeof refusal.detail,
			"\"network\" of the executor does not list %s", wish->host);
	relay->way->barred(relay->way->context, wish->host, wish->port, relay->address);
	refuse(relay, &refusal);
}

static void refuse_unreached(struct relay *relay, int fault)
{
	struct refusal refusal = {
		"502 Bad Gateway", "host_not_reached", "that host cannot be reached", 502, ""};

	snprintf(refusal.detail, sizeof refusal.detail, "%s port %u cannot be reached: %s", relay->wish.host,
		relay->wish.port, uv_strerror(fault));
	refuse(relay, &refusal);
}

static void refuse_unknown(struct relay *relay)
{
	struct refusal refusal = {"400 Bad Request", "not_for_a_proxy", "this is no request for a proxy", 400,
		"the proxy of this task takes CONNECT HOST:PORT and requests for http://HOST/, with a head of at most 16 KiB"};

	refuse(relay, &refusal);
}

/* ---- passing -------------------------------------------------------------------------------------------------------- */

static void on_passed_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *room);

static void on_written(uv_write_t *write, int status);

static struct flow *flow_from(struct relay *relay, const uv_stream_t *stream)
{
	return stream == &relay->child.stream ? &relay->out : &relay->in;
}

/* What TLS has opened already; then what is to come. */
static bool pass_opened(struct relay *relay)
{
	ssize_t got = tls_read(relay->tls, relay->in.block, sizeof relay->in.block);
	uv_buf_t bytes = uv_buf_init(relay->in.block, (unsigned)(got > 0 ? got : 0));

	if (got < 0 || (got > 0 && uv_write(&relay->in.write, relay->in.to, &bytes, 1, on_written) < 0))
		end(relay);
	return got != 0;
}

static void read_more(struct relay *relay, struct flow *flow)
{
	if (relay->tls && flow == &relay->in && pass_opened(relay))
		return;
	if (uv_read_start(flow->from, on_room, on_passed_read) < 0)
		end(relay);
}

static void on_written(uv_write_t *write, int status)
{
	struct relay *relay = write->handle->data;
	struct flow *flow = write == &relay->out.write ? &relay->out : &relay->in;

	if (relay->state == RELAY_CLOSING)
		return;
	if (status == 0)
		read_more(relay, flow);
	else if (flow == &relay->in)
		end(relay);
	/* A server that refuses early answers and closes while the child still sends: its answer is passed on first. */
}

/* As its server knows it. */
static int forward(struct relay *relay, struct span part, uv_buf_t *ret_bytes)
{
	buf_clear(&relay->forwarded);
	int r = http_forward(relay->forward, relay->server, part, &relay->forwarded);
	*ret_bytes = uv_buf_init(relay->forwarded.data, (unsigned)relay->forwarded.len);
	return r;
}

/* Records, in the place of the bytes. */
static int seal(struct relay *relay, uv_buf_t *bytes)
{
	int r = 0;

	for (size_t at = 0, len; r == 0 && at < bytes->len; at += len) {
		len = bytes->len - at < TLS_RECORD_BYTES ? bytes->len - at : TLS_RECORD_BYTES;
		r = tls_write(relay->tls, (struct span){bytes->base + at, len});
	}
	struct span records = tls_output(relay->tls);
	buf_clear(&relay->sealed);
	if (r == 0)
		r = buf_put_span(&relay->sealed, records);
	tls_output_sent(relay->tls, records.len);
	*bytes = uv_buf_init(relay->sealed.data, (unsigned)relay->sealed.len);
	return r;
}

static void pass_on(struct relay *relay, struct flow *flow, size_t len)
{
	uv_buf_t bytes = uv_buf_init(flow->block, (unsigned)len);
	int r = 0;

	if (relay->tls && flow == &relay->in) {
		r = tls_hear(relay->tls, (struct span){flow->block, len});
		if (r < 0)
			end(relay);
		else
			read_more(relay, flow);
		return;
	}
	if (flow == &relay->out && relay->forward)
		r = forward(relay, (struct span){flow->block, len}, &bytes);
	if (r == 0 && relay->tls && bytes.len > 0)
		r = seal(relay, &bytes);
	if (r == 0 && bytes.len == 0)
		read_more(relay, flow);
	else if (r < 0 || uv_write(&flow->write, flow->to, &bytes, 1, on_written) < 0)
		end(relay);
}

static void on_passed_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *room)
{
	struct relay *relay = stream->data;
	struct flow *flow = flow_from(relay, stream);

	(void)room;
	if (got == 0)
		return;
	uv_read_stop(stream);
	/* the child has sent all that it wants to send, and reads; everything else is the end of both */
	if (got == UV_EOF && flow == &relay->out) {
		if (uv_shutdown(&relay->shutdown, flow->to, on_shut) < 0)
			end(relay);
	} else if (got < 0) {
		end(relay);
	} else {
		pass_on(relay, flow, (size_t)got);
	}
}

/* ---- connecting ----------------------------------------------------------------------------------------------------- */

static int open_up(struct relay *relay, int fd)
{
	bool local = relay->server && relay->server->local;
	uv_loop_t *loop = relay->clock.loop;
	int r = local ? uv_pipe_init(loop, &relay->up.pipe, 0) : uv_tcp_init(loop, &relay->up.tcp);

	if (r < 0) {
		close(fd);
		return r;
	}
	relay->up.handle.data = relay;
	relay->up_is_open = true;
	relay->open_handles++;
	r = local ? uv_pipe_open(&relay->up.pipe, fd) : uv_tcp_open(&relay->up.tcp, fd);
	if (r < 0)
		close(fd);
	return r;
}

/* What the child has sent so far goes on; and in a tunnel the child is told that it stands. */
static void begin_tunnel(struct relay *relay)
{
	static const char stands[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	size_t rest = relay->first_len - relay->wish.head_len;

	memcpy(relay->in.block, stands, sizeof stands - 1);
	memmove(relay->out.block, relay->out.block + relay->wish.head_len, rest);
	pass_on(relay, &relay->in, sizeof stands - 1);
	if (relay->state == RELAY_PASSING)
		pass_on(relay, &relay->out, rest);
}

static void begin_plain(struct relay *relay)
{
	struct span head = {relay->out.block, relay->wish.head_len};

	buf_init(&relay->forwarded, FORWARDED_BYTES_MAX);
	int r = proxy_put_head(head, &relay->wish, &relay->forwarded);
	if (r == 0)
		r = buf_put(&relay->forwarded, head.data + head.len, relay->first_len - head.len);
	uv_buf_t bytes = uv_buf_init(relay->forwarded.data, (unsigned)relay->forwarded.len);
	if (r < 0 || uv_write(&relay->out.write, relay->out.to, &bytes, 1, on_written) < 0)
		end(relay);
	else
		read_more(relay, &relay->in);
}

static void begin_to_server(struct relay *relay)
{
	read_more(relay, &relay->in);
	if (relay->state == RELAY_PASSING)
		pass_on(relay, &relay->out, relay->first_len);
}

static void begin_passing(struct relay *relay)
{
	relay->state = RELAY_PASSING;
	relay->in.from = relay->out.to = &relay->up.stream;
	relay->in.to = relay->out.from = &relay->child.stream;
	if (relay->server)
		begin_to_server(relay);
	else if (relay->wish.tunnel)
		begin_tunnel(relay);
	else
		begin_plain(relay);
}

/* ---- a server of https: it shows who it is before it hears anything ---------------------------------------------------- */

static void refuse_server(struct relay *relay)
{
	uv_read_stop(&relay->up.stream);
	refuse_away(relay);
}

static void on_shake_late(uv_timer_t *clock)
{
	refuse_server(clock->data);
}

/* A socket that was just connected has room for what a handshake sends. */
static void shake(struct relay *relay)
{
	int done = tls_shake(relay->tls);
	struct span out = tls_output(relay->tls);
	uv_buf_t bytes = uv_buf_init((char *)out.data, (unsigned)out.len);
	int sent = out.len > 0 ? uv_try_write(&relay->up.stream, &bytes, 1) : 0;

	if (done < 0 || sent != (int)out.len) {
		refuse_server(relay);
		return;
	}
	tls_output_sent(relay->tls, out.len);
	if (done == 0)
		return;
	uv_read_stop(&relay->up.stream);
	uv_timer_stop(&relay->clock);
	begin_passing(relay);
}

static void on_shake_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *room)
{
	struct relay *relay = stream->data;

	if (got == 0 || relay->state != RELAY_CONNECTING)
		return;
	if (got < 0 || tls_hear(relay->tls, (struct span){room->base, (size_t)got}) < 0)
		refuse_server(relay);
	else
		shake(relay);
}

static void begin_tls(struct relay *relay)
{
	const struct http_address *server = relay->server;

	buf_init(&relay->sealed, SEALED_BYTES_MAX);
	relay->tls = server->trust ? tls_client_new(server->trust, server->host) : NULL;
	if (!relay->tls || uv_read_start(&relay->up.stream, on_room, on_shake_read) < 0) {
		refuse_away(relay);
		return;
	}
	uv_timer_start(&relay->clock, on_shake_late, SHAKE_MS, 0);
	shake(relay);
}

static void on_dialled(void *context, int fd_or_fault)
{
	struct relay *relay = context;

	relay->dial = NULL;
	stop_counting(relay);
	if (fd_or_fault < 0 && relay->server) {
		refuse_away(relay);
	} else if (fd_or_fault == -EACCES && relay->address[0]) {
		refuse_barred(relay);
	} else if (fd_or_fault < 0) {
		refuse_unreached(relay, fd_or_fault);
	} else if (open_up(relay, fd_or_fault) < 0) {
		end(relay);
	} else if (relay->server && relay->server->secure) {
		begin_tls(relay);
	} else {
		begin_passing(relay);
	}
}

static void dial_server(struct relay *relay)
{
	const struct http_address *server = relay->server;
	struct dial_wish wish = {
		.path = server->local ? server->path : NULL, .host = server->host, .port = server->port};
	int r = 0;

	if (!server->local) {
		relay->forward = calloc(1, sizeof *relay->forward);
		buf_init(&relay->forwarded, FORWARDED_BYTES_MAX);
		r = relay->forward ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = dial_start(relay->clock.loop, &wish, on_dialled, relay, &relay->dial);
	if (r < 0)
		refuse_away(relay);
}

static bool may_reach(void *context, const struct sockaddr *address)
{
	struct relay *relay = context;
	bool may = proxy_lists_address(relay->way->hosts, address);

	if (!may)
		address_put(address, relay->address);
	return may;
}

static void dial_host(struct relay *relay);

static void on_dial_again(uv_timer_t *clock)
{
	dial_host(clock->data);
}

static void dial_host(struct relay *relay)
{
	struct dial_wish wish = {
		.host = relay->wish.host, .port = relay->wish.port, .may = may_reach, .may_context = relay};

	if (*relay->way->dials >= DIALS_MAX) {
		uv_timer_start(&relay->clock, on_dial_again, DIAL_AGAIN_MS, 0);
		return;
	}
	++*relay->way->dials;
	relay->counted = true;
	int r = dial_start(relay->clock.loop, &wish, on_dialled, relay, &relay->dial);
	if (r < 0)
		refuse_unreached(relay, r);
}

/* ---- the first bytes ------------------------------------------------------------------------------------------------ */

/* Nothing more is read until there is somewhere to put it. */
static void hold(struct relay *relay)
{
	uv_read_stop(&relay->child.stream);
	uv_timer_stop(&relay->clock);
	relay->state = RELAY_CONNECTING;
}

static void read_wish(struct relay *relay)
{
	int r = proxy_read((struct span){relay->out.block, relay->first_len}, &relay->wish);

	if (r == -EAGAIN && relay->first_len < sizeof relay->out.block)
		return;
	hold(relay);
	if (r < 0)
		refuse_unknown(relay);
	else if (!proxy_lists(relay->way->hosts, relay->wish.host))
		refuse_barred(relay);
	else
		dial_host(relay);
}

static void on_first_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *room)
{
	struct relay *relay = stream->data;

	(void)room;
	if (got == 0)
		return;
	if (got < 0) {
		end(relay);
		return;
	}
	relay->first_len += (size_t)got;
	if (!relay->server) {
		read_wish(relay);
		return;
	}
	hold(relay);
	dial_server(relay);
}

int relay_open(uv_loop_t *loop, int fd, const struct relay_way *way, relay_ended ended, void *context,
	struct relay **ret_relay)
{
	struct relay *relay = calloc(1, sizeof *relay);
	int r = relay ? uv_pipe_init(loop, &relay->child.pipe, 0) : -ENOMEM;

	if (r < 0) {
		free(relay);
		close(fd);
		return r;
	}
	relay->way = way;
	relay->server = way->server;
	relay->ended = ended;
	relay->context = context;
	relay->child.handle.data = relay;
	uv_timer_init(loop, &relay->clock);
	relay->clock.data = relay;
	relay->open_handles = 2;
	r = uv_pipe_open(&relay->child.pipe, fd);
	if (r < 0)
		close(fd);
	else
		r = uv_read_start(&relay->child.stream, on_room, on_first_read);
	if (r < 0) {
		relay_close(relay);
		return r;
	}
	uv_timer_start(&relay->clock, on_late, FIRST_MS, 0);
	*ret_relay = relay;
	return 0;
}
