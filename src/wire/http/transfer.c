#include "wire/http/transfer.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/take.h"

enum {
	PORT_PLAIN = 80,
	PORT_SECURE = 443,
	PORT_MAX = 65535,
};

/* ---- addresses ------------------------------------------------------------------------------------------ */

static int parse_local(const char *path, struct http_address *address, const char **ret_complaint)
{
	if (path[0] != '/' || strlen(path) >= sizeof address->path) {
		*ret_complaint = "a socket is written unix:/PATH, with a path of at most 107 bytes";
		return -EINVAL;
	}
	address->local = true;
	strcpy(address->path, path);
	return 0;
}

static int parse_port(const char *text, size_t len, uint16_t *ret_port)
{
	unsigned long port = 0;

	if (len == 0 || len > 5)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		port = port * 10 + (unsigned long)(text[i] - '0');
	}
	if (port == 0 || port > PORT_MAX)
		return -EINVAL;
	*ret_port = (uint16_t)port;
	return 0;
}

/* HOST[:PORT] or [ADDRESS][:PORT] */
static int parse_authority(const char *text, size_t len, struct http_address *address)
{
	const char *host = text, *end = text + len;
	const char *host_end = memchr(text, ':', len);

	if (len > 0 && text[0] == '[') {
		host = text + 1;
		host_end = memchr(text, ']', len);
		if (!host_end)
			return -EINVAL;
	}
	size_t host_len = (size_t)((host_end ? host_end : end) - host);
	const char *rest = host + host_len + (host != text); /* behind the bracket */
	if (host_len == 0 || host_len >= sizeof address->host || memchr(host, '@', host_len))
		return -EINVAL;
	for (size_t i = 0; i < host_len; i++) {
		if ((unsigned char)host[i] <= ' ' || host[i] == 127)
			return -EINVAL;
	}
	memcpy(address->host, host, host_len);
	address->host[host_len] = 0;
	address->port = address->secure ? PORT_SECURE : PORT_PLAIN;
	if (rest == end)
		return 0;
	return *rest == ':' ? parse_port(rest + 1, (size_t)(end - rest - 1), &address->port) : -EINVAL;
}

static int parse_prefix(const char *text, struct http_address *address)
{
	size_t len = strlen(text);

	while (len > 0 && text[len - 1] == '/')
		len--;
	if (len >= sizeof address->prefix)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)text[i] <= ' ' || text[i] == 127 || text[i] == '?' || text[i] == '#')
			return -EINVAL;
	}
	memcpy(address->prefix, text, len);
	address->prefix[len] = 0;
	return 0;
}

int http_address_parse(const char *url, struct http_address *ret_address, const char **ret_complaint)
{
	struct http_address address = {0};

	if (strncmp(url, "unix:", 5) == 0) {
		int r = parse_local(url + 5, &address, ret_complaint);
		if (r == 0)
			*ret_address = address;
		return r;
	}
	address.secure = strncasecmp(url, "https://", 8) == 0;
	const char *authority = url + (address.secure ? 8 : 7);
	if (!address.secure && strncasecmp(url, "http://", 7) != 0) {
		*ret_complaint = "an address is https://HOST:PORT, http://HOST:PORT or unix:/PATH";
		return -EINVAL;
	}
	size_t len = strcspn(authority, "/?#");
	if (parse_authority(authority, len, &address) < 0 || parse_prefix(authority + len, &address) < 0) {
		*ret_complaint = "an address is https://HOST:PORT, without user, query or fragment";
		return -EINVAL;
	}
	*ret_address = address;
	return 0;
}

/* One of several: `len` bytes at `text`, which may have spaces in front. */
static int parse_one(const char *text, int len, struct http_address *ret_address, const char **ret_complaint)
{
	char url[sizeof ret_address->host + sizeof ret_address->prefix + 32];

	while (len > 0 && *text == ' ')
		text++, len--;
	if ((size_t)snprintf(url, sizeof url, "%.*s", len, text) >= sizeof url) {
		*ret_complaint = "an address is too long";
		return -EINVAL;
	}
	return http_address_parse(url, ret_address, ret_complaint);
}

int http_address_parse_all(const char *urls, struct http_address *ret_address, const char **ret_complaint)
{
	struct http_address first = {0}, *address = &first;
	uint32_t count = 0;
	int r = 0;

	for (const char *at = urls, *end; at && r == 0; at = end) {
		end = strchr(at, ',');
		r = parse_one(at, end ? (int)(end++ - at) : (int)strlen(at), address, ret_complaint);
		if (r < 0 || !end)
			continue;
		if (++count == HTTP_SERVERS_MAX) {
			*ret_complaint = "there are more than 16 addresses";
			r = -EINVAL;
			continue;
		}
		address->next = calloc(1, sizeof *address);
		address = address->next;
		if (!address) {
			*ret_complaint = "no memory";
			r = -ENOMEM;
		}
	}
	if (r < 0)
		http_address_done(&first);
	else
		*ret_address = first;
	return r;
}

void http_address_done(struct http_address *address)
{
	for (struct http_address *next = address ? address->next : NULL, *after; next; next = after) {
		after = next->next;
		free(next);
	}
	if (address)
		address->next = NULL;
}

static bool is_loopback(const struct http_address *address)
{
	struct in_addr four;
	struct in6_addr six;

	if (address->local || strcasecmp(address->host, "localhost") == 0)
		return true;
	if (inet_pton(AF_INET, address->host, &four) == 1)
		return ntohl(four.s_addr) >> 24 == 127;
	return inet_pton(AF_INET6, address->host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

bool http_address_is_loopback(const struct http_address *address)
{
	while (address && is_loopback(address))
		address = address->next;
	return !address;
}

/* ---- requests -------------------------------------------------------------------------------------------- */

static bool is_plain(struct span text)
{
	for (size_t i = 0; i < text.len; i++) {
		if ((unsigned char)text.data[i] < ' ' || text.data[i] == 127)
			return false;
	}
	return true;
}

/* A header; none if there is nothing to say. */
static void put_header(struct buf *out, const char *name, const char *before, struct span value)
{
	if (!value.data)
		return;
	if (is_plain(value))
		buf_printf(out, "%s: %s%.*s\r\n", name, before, SPAN_ARGS(value));
	else
		buf_fail(out, -EINVAL);
}

void http_put_host(struct buf *out, const struct http_address *address)
{
	bool bare = strchr(address->host, ':') != NULL;

	if (address->local)
		buf_printf(out, "Host: localhost\r\n");
	else
		buf_printf(out, bare ? "Host: [%s]:%u\r\n" : "Host: %s:%u\r\n", address->host, address->port);
}

int http_put_request(struct buf *out, const struct http_address *address, const struct http_call *call)
{
	struct span type = call->content_type.data ? call->content_type : SPAN("application/json");

	buf_clear(out);
	if (!is_plain(call->target) || memchr(call->target.data, ' ', call->target.len))
		return buf_fail(out, -EINVAL);
	buf_printf(out, "%s %s%.*s HTTP/1.1\r\n", http_method_name(call->method), address->prefix,
		SPAN_ARGS(call->target));
	if (call->host.data)
		put_header(out, "Host", "", call->host);
	else
		http_put_host(out, address);
	put_header(out, "Authorization", "Bearer ", call->token);
	put_header(out, "Accept", "", call->accept);
	put_header(out, "Idempotency-Key", "", call->idempotency_key);
	put_header(out, "traceparent", "", call->traceparent);
	put_header(out, "Last-Event-ID", "", call->last_event_id);
	put_header(out, "Origin", "", call->origin);
	if (call->body.data)
		put_header(out, "Content-Type", "", type);
	if (call->body.data || call->method != HTTP_METHOD_GET)
		buf_printf(out, "Content-Length: %zu\r\n", call->body.len);
	buf_printf(out, "\r\n");
	buf_put_span(out, call->body);
	return buf_fault(out);
}

/* ---- states ---------------------------------------------------------------------------------------------- */

#define TO(state) (1u << HTTP_TRANSFER_##state)

/* The arrows of the drawing in the header; any call may end, and a new one begins where the last one was left. */
static const unsigned states_after[] = {
	[HTTP_TRANSFER_IDLE] = TO(FIND) | TO(TALK),
	[HTTP_TRANSFER_FIND] = TO(FIND) | TO(CONNECT) | TO(DONE),
	[HTTP_TRANSFER_CONNECT] = TO(FIND) | TO(CONNECT) | TO(TALK) | TO(DONE),
	[HTTP_TRANSFER_TALK] = TO(STREAM) | TO(FIND) | TO(DONE),
	[HTTP_TRANSFER_STREAM] = TO(DONE),
	[HTTP_TRANSFER_DONE] = 0,
};

static void set_state(struct http_transfer *transfer, enum http_transfer_state state)
{
	assert(states_after[transfer->state] & 1u << state);
	transfer->state = state;
}

/* ---- several servers ---- */

static void turn_to_next(struct http_transfer *transfer)
{
	transfer->address = transfer->address.next ? *transfer->address.next : transfer->first;
}

/* A server that broke off is not the first one that the next call goes to. */
static void finish(struct http_transfer *transfer, int fault)
{
	assert(fault <= 0);
	transfer->fault = fault;
	if (fault < 0)
		turn_to_next(transfer);
	set_state(transfer, HTTP_TRANSFER_DONE);
}

/* The request is for another server: the prefix of its path, and the Host header behind its first line. */
static int readdress(struct http_transfer *transfer, const struct http_address *from)
{
	const struct http_address *to = &transfer->address;
	cleanup(buf_done) struct buf out = {.max = transfer->out.max};
	const char *text = transfer->out.data, *end = text + transfer->out.len;
	const char *path = memchr(text, ' ', transfer->out.len);
	const char *host = memmem(text, transfer->out.len, "\r\n", 2);

	assert(path && host);
	path++;
	host += 2;
	const char *rest = memmem(host, (size_t)(end - host), "\r\n", 2);
	assert(rest);
	rest += 2;
	buf_put(&out, text, (size_t)(path - text));
	buf_put_span(&out, span_of(to->prefix));
	path += strlen(from->prefix);
	buf_put(&out, path, (size_t)(host - path));
	if (transfer->own_host)
		buf_put(&out, host, (size_t)(rest - host));
	else
		http_put_host(&out, to);
	buf_put(&out, rest, (size_t)(end - rest));
	if (buf_fault(&out) < 0)
		return buf_fault(&out);
	struct buf old = transfer->out;
	transfer->out = out;
	out = old;
	return 0;
}

static bool has_another(const struct http_transfer *transfer)
{
	return transfer->given_up + 1 < transfer->servers;
}

static void ask_another(struct http_transfer *transfer)
{
	struct http_address from = transfer->address;

	transfer->given_up++;
	turn_to_next(transfer);
	transfer->over_kept = transfer->sent = false;
	http_answer_reset(transfer->answer);
	int r = readdress(transfer, &from);
	if (r < 0)
		finish(transfer, r);
	else
		set_state(transfer, HTTP_TRANSFER_FIND);
}

/* This server was not reached. */
static void give_up_server(struct http_transfer *transfer, int fault)
{
	if (has_another(transfer))
		ask_another(transfer);
	else
		finish(transfer, fault);
}

/* It has done nothing, and another one leads. */
static bool does_not_lead(const struct http_answer *answer)
{
	static const char code[] = "\"code\":\"not_leader\"";
	struct span body = http_answer_body(answer);

	return http_answer_status(answer) == 503 &&
		memmem(body.data ? body.data : "", body.len, code, sizeof code - 1);
}

int http_transfer_init(struct http_transfer *transfer, const struct http_address *address,
	const struct http_answer_limits *limits, size_t request_bytes_max)
{
	*transfer = (struct http_transfer){
		.address = *address, .first = *address, .answer = http_answer_new(limits)};
	for (; address; address = address->next)
		transfer->servers++;
	buf_init(&transfer->out, request_bytes_max);
	return transfer->answer ? 0 : -ENOMEM;
}

void http_transfer_done(struct http_transfer *transfer)
{
	http_answer_free(transfer->answer);
	buf_done(&transfer->out);
}

int http_transfer_prepare(struct http_transfer *transfer, const struct http_call *call)
{
	transfer->state = HTTP_TRANSFER_IDLE;
	transfer->sent = false;
	transfer->given_up = 0;
	transfer->own_host = call->host.data != NULL;
	transfer->may_repeat = call->may_repeat;
	transfer->timeout_ms = call->timeout_ms;
	return http_put_request(&transfer->out, &transfer->address, call);
}

void http_transfer_start(struct http_transfer *transfer, bool connected, int64_t now_ms)
{
	assert(transfer->state == HTTP_TRANSFER_IDLE);
	http_answer_reset(transfer->answer);
	transfer->until_ms = now_ms + transfer->timeout_ms;
	transfer->over_kept = connected;
	transfer->fault = 0;
	set_state(transfer, connected ? HTTP_TRANSFER_TALK : HTTP_TRANSFER_FIND);
}

/* An equal share of the time that is left for this address and each one behind it, and each server behind this one. */
static void try_place(struct http_transfer *transfer, int64_t now_ms)
{
	int64_t left_ms = transfer->until_ms > now_ms ? transfer->until_ms - now_ms : 0;

	assert(transfer->place < transfer->places);
	transfer->place_until_ms = now_ms +
		left_ms / (transfer->places - transfer->place + transfer->servers - 1 - transfer->given_up);
	set_state(transfer, HTTP_TRANSFER_CONNECT);
}

void http_transfer_found(struct http_transfer *transfer, uint32_t places, int64_t now_ms)
{
	transfer->place = 0;
	transfer->places = places;
	if (places == 0)
		give_up_server(transfer, -EHOSTUNREACH);
	else
		try_place(transfer, now_ms);
}

void http_transfer_unconnected(struct http_transfer *transfer, int fault, int64_t now_ms)
{
	assert(transfer->state == HTTP_TRANSFER_CONNECT);
	if (++transfer->place < transfer->places && now_ms < transfer->until_ms)
		try_place(transfer, now_ms);
	else
		give_up_server(transfer, fault);
}

void http_transfer_connected(struct http_transfer *transfer)
{
	assert(transfer->state == HTTP_TRANSFER_CONNECT);
	set_state(transfer, HTTP_TRANSFER_TALK);
}

void http_transfer_sent(struct http_transfer *transfer)
{
	assert(transfer->state == HTTP_TRANSFER_TALK);
	transfer->sent = true;
}

static bool is_stream(const struct http_answer *answer)
{
	static const char type[] = "text/event-stream";
	struct span said = http_answer_field(answer, HTTP_ANSWER_CONTENT_TYPE);

	return http_answer_phase(answer) == HTTP_ANSWER_BODY && http_answer_status(answer) == 200 &&
		said.len >= sizeof type - 1 && strncasecmp(said.data, type, sizeof type - 1) == 0;
}

void http_transfer_received(struct http_transfer *transfer, struct span bytes)
{
	assert(transfer->state == HTTP_TRANSFER_TALK || transfer->state == HTTP_TRANSFER_STREAM);
	int r = http_answer_feed(transfer->answer, bytes);

	bool is_done = r == 0 && http_answer_phase(transfer->answer) == HTTP_ANSWER_DONE;
	if (is_done && has_another(transfer) && does_not_lead(transfer->answer))
		ask_another(transfer);
	else if (r < 0 || is_done)
		finish(transfer, r);
	else if (transfer->state == HTTP_TRANSFER_TALK && is_stream(transfer->answer))
		set_state(transfer, HTTP_TRANSFER_STREAM);
}

void http_transfer_closed(struct http_transfer *transfer, int fault)
{
	assert(transfer->state == HTTP_TRANSFER_TALK || transfer->state == HTTP_TRANSFER_STREAM);
	/* A connection that was kept may have been closed under us a moment ago: that says nothing of the server. */
	bool stale = transfer->over_kept && transfer->may_repeat && !http_answer_began(transfer->answer);

	if (stale) {
		transfer->over_kept = transfer->sent = false;
		set_state(transfer, HTTP_TRANSFER_FIND);
	} else if (fault == 0 && http_answer_began(transfer->answer)) {
		finish(transfer, http_answer_end(transfer->answer));
	} else {
		finish(transfer, fault < 0 ? fault : -ECONNRESET);
	}
}

void http_transfer_late(struct http_transfer *transfer, int64_t now_ms)
{
	if (transfer->state == HTTP_TRANSFER_CONNECT)
		http_transfer_unconnected(transfer, -ETIMEDOUT, now_ms);
	else
		finish(transfer, -ETIMEDOUT);
}

void http_transfer_fail(struct http_transfer *transfer, int fault)
{
	assert(fault < 0);
	finish(transfer, fault);
}

int64_t http_transfer_until(const struct http_transfer *transfer)
{
	return transfer->state == HTTP_TRANSFER_CONNECT ? transfer->place_until_ms : transfer->until_ms;
}

enum http_reach http_transfer_reach(const struct http_transfer *transfer)
{
	if (http_answer_began(transfer->answer))
		return HTTP_REACH_REPLY;
	return transfer->sent ? HTTP_REACH_UNKNOWN : HTTP_REACH_NOTHING;
}

bool http_transfer_keeps(const struct http_transfer *transfer)
{
	return transfer->state == HTTP_TRANSFER_DONE && transfer->fault == 0 &&
		http_answer_keeps_alive(transfer->answer);
}
