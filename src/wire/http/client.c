#include "wire/http/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/take.h"

enum {
	PORT_DEFAULT = 80,
	PORT_MAX = 65535,
	HEAD_BYTES_MAX = 64 << 10,
	BODY_BYTES_MAX = 32 << 20,
	ADDRESSES_MAX = 8, /* of one host name */
	CROWDED_MS = 10,   /* until a socket whose queue is full is tried again */
};

struct http_client {
	struct http_address address;
	struct http_answer *answer;
	struct buf out;
	int fd;
	bool used; /* the connection has served a call: the server may have closed it since */
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
	address->port = PORT_DEFAULT;
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
	if (strncasecmp(url, "https:", 6) == 0) {
		*ret_complaint =
			"https is not spoken here: reach the server through a tunnel or a local proxy, "
			"as http://127.0.0.1:PORT";
		return -EINVAL;
	}
	const char *authority = url + 7;
	if (strncasecmp(url, "http://", 7) != 0) {
		*ret_complaint = "an address is http://HOST:PORT or unix:/PATH";
		return -EINVAL;
	}
	size_t len = strcspn(authority, "/?#");
	if (parse_authority(authority, len, &address) < 0 || parse_prefix(authority + len, &address) < 0) {
		*ret_complaint = "an address is http://HOST:PORT, without user, query or fragment";
		return -EINVAL;
	}
	*ret_address = address;
	return 0;
}

bool http_address_is_loopback(const struct http_address *address)
{
	struct in_addr four;
	struct in6_addr six;

	if (address->local || strcasecmp(address->host, "localhost") == 0)
		return true;
	if (inet_pton(AF_INET, address->host, &four) == 1)
		return ntohl(four.s_addr) >> 24 == 127;
	return inet_pton(AF_INET6, address->host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

/* ---- sockets -------------------------------------------------------------------------------------------- */

/* Until the socket is ready for `events`, or the time is up: -ETIMEDOUT. */
static int await(int fd, short events, int64_t until_ms)
{
	struct pollfd poll_fd = {.fd = fd, .events = events};

	for (;;) {
		int64_t left_ms = until_ms - clock_ms(CLOCK_MONOTONIC);
		int r = poll(&poll_fd, 1, left_ms < 0 ? 0 : left_ms > INT32_MAX ? INT32_MAX : (int)left_ms);
		if (r > 0)
			return 0;
		if (r < 0 && errno != EINTR)
			return -errno;
		if (r == 0 && clock_ms(CLOCK_MONOTONIC) >= until_ms)
			return -ETIMEDOUT;
	}
}

/* Begun, or done. A local server that has not yet taken those who came before says "again", and there is nothing under way
 * then that poll() could tell the end of. */
static int connect_begin(int fd, const struct sockaddr *address, socklen_t len, int64_t until_ms)
{
	while (connect(fd, address, len) < 0) {
		if (errno != EAGAIN || address->sa_family != AF_UNIX)
			return errno == EINPROGRESS ? 0 : -errno;
		if (clock_ms(CLOCK_MONOTONIC) >= until_ms)
			return -ETIMEDOUT;
		poll(NULL, 0, CROWDED_MS);
	}
	return 0;
}

static int connect_to(const struct sockaddr *address, socklen_t len, int64_t until_ms, int *ret_fd)
{
	cleanup(close_at) int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int fault = 0;
	socklen_t fault_len = sizeof fault;

	if (fd < 0)
		return -errno;
	int r = connect_begin(fd, address, len, until_ms);
	if (r == 0)
		r = await(fd, POLLOUT, until_ms);
	if (r < 0)
		return r;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &fault, &fault_len) < 0)
		return -errno;
	if (fault != 0)
		return -fault;
	if (address->sa_family != AF_UNIX) {
		int yes = 1;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
	}
	*ret_fd = take_fd(fd);
	return 0;
}

static int connect_local(const struct http_address *to, int64_t until_ms, int *ret_fd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	strcpy(address.sun_path, to->path);
	return connect_to((struct sockaddr *)&address, sizeof address, until_ms, ret_fd);
}

static int connect_host(const struct http_address *to, int64_t until_ms, int *ret_fd)
{
	struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found = NULL;
	char port[8];
	int r = -EHOSTUNREACH, tried = 0;

	snprintf(port, sizeof port, "%u", to->port);
	if (getaddrinfo(to->host, port, &wanted, &found) != 0)
		return -EHOSTUNREACH;
	for (struct addrinfo *at = found; at && tried < ADDRESSES_MAX; at = at->ai_next, tried++) {
		r = connect_to(at->ai_addr, at->ai_addrlen, until_ms, ret_fd);
		if (r == 0 || r == -ETIMEDOUT)
			break;
	}
	freeaddrinfo(found);
	return r;
}

static int connect_client(struct http_client *client, int64_t until_ms)
{
	client->used = false;
	if (client->address.local)
		return connect_local(&client->address, until_ms, &client->fd);
	return connect_host(&client->address, until_ms, &client->fd);
}

static int send_all(int fd, struct span bytes, int64_t until_ms)
{
	while (bytes.len > 0) {
		ssize_t sent = send(fd, bytes.data, bytes.len, MSG_NOSIGNAL);
		if (sent > 0) {
			bytes.data += sent;
			bytes.len -= (size_t)sent;
			continue;
		}
		if (sent < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		int r = await(fd, POLLOUT, until_ms);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What is there, into the answer. 1; 0 when the server closed; a fault. */
static int receive(struct http_client *client, int64_t until_ms)
{
	char block[32 << 10];

	for (;;) {
		ssize_t got = recv(client->fd, block, sizeof block, 0);
		if (got > 0) {
			int r = http_answer_feed(client->answer, (struct span){block, (size_t)got});
			return r < 0 ? r : 1;
		}
		if (got == 0)
			return 0;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		int r = await(client->fd, POLLIN, until_ms);
		if (r < 0)
			return r;
	}
}

/* ---- calls ---------------------------------------------------------------------------------------------- */

struct http_client *http_client_new(
	const struct http_address *address, const struct http_answer_limits *limits)
{
	struct http_client *client = calloc(1, sizeof *client);

	if (!client)
		return NULL;
	client->address = *address;
	client->fd = -1;
	client->answer = http_answer_new(limits);
	buf_init(&client->out, HEAD_BYTES_MAX + BODY_BYTES_MAX);
	if (!client->answer) {
		free(client);
		return NULL;
	}
	return client;
}

void http_client_hang_up(struct http_client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
}

void http_client_free(struct http_client *client)
{
	if (!client)
		return;
	http_client_hang_up(client);
	http_answer_free(client->answer);
	buf_done(&client->out);
	free(client);
}

static bool is_plain(struct span text)
{
	for (size_t i = 0; i < text.len; i++) {
		if ((unsigned char)text.data[i] < ' ' || text.data[i] == 127)
			return false;
	}
	return true;
}

/* A header; none if there is nothing to say. */
static int put_header(struct buf *out, const char *name, const char *before, struct span value)
{
	if (!value.data)
		return 0;
	return is_plain(value) ? buf_printf(out, "%s: %s%.*s\r\n", name, before, SPAN_ARGS(value)) : -EINVAL;
}

static int put_host(struct buf *out, const struct http_address *address, struct span instead)
{
	if (instead.data)
		return put_header(out, "Host", "", instead);
	if (address->local)
		return buf_printf(out, "Host: localhost\r\n");
	bool bare = strchr(address->host, ':') != NULL;
	return buf_printf(out, bare ? "Host: [%s]:%u\r\n" : "Host: %s:%u\r\n", address->host, address->port);
}

static int put_body(struct buf *out, const struct http_call *call)
{
	struct span type = call->content_type.data ? call->content_type : SPAN("application/json");
	int r = call->body.data ? put_header(out, "Content-Type", "", type) : 0;

	if (r == 0 && call->body.data)
		r = buf_printf(out, "Content-Length: %zu\r\n", call->body.len);
	else if (r == 0 && call->method != HTTP_METHOD_GET)
		r = buf_printf(out, "Content-Length: 0\r\n");
	if (r == 0)
		r = buf_printf(out, "\r\n");
	return r < 0 ? r : buf_put_span(out, call->body);
}

int http_put_request(struct buf *out, const struct http_address *address, const struct http_call *call)
{
	buf_clear(out);
	if (!is_plain(call->target) || memchr(call->target.data, ' ', call->target.len))
		return -EINVAL;
	int r = buf_printf(out, "%s %s%.*s HTTP/1.1\r\n", http_method_name(call->method), address->prefix,
		SPAN_ARGS(call->target));
	if (r == 0)
		r = put_host(out, address, call->host);
	if (r == 0)
		r = put_header(out, "Authorization", "Bearer ", call->token);
	if (r == 0)
		r = put_header(out, "Accept", "", call->accept);
	if (r == 0)
		r = put_header(out, "Idempotency-Key", "", call->idempotency_key);
	if (r == 0)
		r = put_header(out, "Last-Event-ID", "", call->last_event_id);
	if (r == 0)
		r = put_header(out, "Origin", "", call->origin);
	return r < 0 ? r : put_body(out, call);
}

static bool is_stream(const struct http_answer *answer)
{
	static const char type[] = "text/event-stream";
	struct span said = http_answer_field(answer, HTTP_ANSWER_CONTENT_TYPE);

	return http_answer_status(answer) == 200 && said.len >= sizeof type - 1 &&
		strncasecmp(said.data, type, sizeof type - 1) == 0;
}

/* The reply to what was sent. */
static int read_reply(struct http_client *client, int64_t until_ms)
{
	struct http_answer *answer = client->answer;

	while (http_answer_phase(answer) != HTTP_ANSWER_DONE) {
		if (http_answer_phase(answer) == HTTP_ANSWER_BODY && is_stream(answer))
			return 0;
		int r = receive(client, until_ms);
		if (r < 0)
			return r;
		if (r == 0)
			return http_answer_began(answer) ? http_answer_end(answer) : -ECONNRESET;
	}
	return 0;
}

static int attempt(struct http_client *client, int64_t until_ms, enum http_reach *ret_reach)
{
	http_answer_reset(client->answer);
	*ret_reach = HTTP_REACH_NOTHING;
	int r = client->fd < 0 ? connect_client(client, until_ms) : 0;
	if (r < 0)
		return r;
	*ret_reach = HTTP_REACH_UNKNOWN;
	r = send_all(client->fd, buf_span(&client->out), until_ms);
	/* A server that refuses early answers and closes while we still send: what it said is there to be read. */
	if (r == 0 || r == -EPIPE || r == -ECONNRESET) {
		int read = read_reply(client, until_ms);
		r = r < 0 && read < 0 ? r : read;
	}
	if (http_answer_began(client->answer))
		*ret_reach = HTTP_REACH_REPLY;
	return r;
}

int http_client_call(struct http_client *client, const struct http_call *call,
	struct http_answer **ret_answer, enum http_reach *ret_reach)
{
	int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + call->timeout_ms;

	*ret_reach = HTTP_REACH_NOTHING;
	int r = http_put_request(&client->out, &client->address, call);
	if (r < 0)
		return r;
	if (client->fd >= 0 && http_answer_phase(client->answer) != HTTP_ANSWER_DONE)
		http_client_hang_up(client); /* a stream that was left */
	bool kept = client->fd >= 0 && client->used;
	r = attempt(client, until_ms, ret_reach);
	/* A connection that was kept may have been closed under us a moment ago: that says nothing of the server. */
	if (r < 0 && r != -ETIMEDOUT && kept && call->may_repeat && *ret_reach != HTTP_REACH_REPLY) {
		http_client_hang_up(client);
		r = attempt(client, until_ms, ret_reach);
	}
	if (r < 0) {
		http_client_hang_up(client);
		return r;
	}
	client->used = true;
	if (http_answer_phase(client->answer) == HTTP_ANSWER_DONE && !http_answer_keeps_alive(client->answer))
		http_client_hang_up(client);
	*ret_answer = client->answer;
	return 0;
}

int http_client_more(struct http_client *client, int64_t timeout_ms)
{
	if (client->fd < 0 || http_answer_phase(client->answer) == HTTP_ANSWER_DONE)
		return 0;
	int r = receive(client, clock_ms(CLOCK_MONOTONIC) + timeout_ms);
	if (r == 0)
		http_answer_end(client->answer);
	if (r < 0 && r != -ETIMEDOUT)
		http_client_hang_up(client);
	return r;
}
