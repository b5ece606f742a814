/*
 * The sockets are plain descriptors under uv_poll: libuv's own connecting handles cannot be used for a second address before the
 * loop has closed them. A dial is over when it has told its result or was cancelled; its memory goes with its last handle.
 */
#include "attempt/relay/dial.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/take.h"

enum {
	ADDRESSES_MAX = 8,
	HOST_BYTES_MAX = 256,
	DIAL_MS = 10 * 1000, /* for all of it */
};

struct attempted {
	uv_poll_t poll;
	int fd;
	struct dial *dial; /* NULL: given up */
};

struct lookup {
	uv_getaddrinfo_t request;
	struct dial *dial; /* NULL: given up */
};

struct dial {
	uv_loop_t *loop;
	uv_timer_t clock;
	bool local;
	char host[HOST_BYTES_MAX];
	uint16_t port;
	struct sockaddr_storage found[ADDRESSES_MAX];
	socklen_t found_len[ADDRESSES_MAX];
	uint32_t count, next;
	bool barred; /* an address was not allowed */
	int fault;   /* of the last address */
	struct lookup *lookup;
	struct attempted *attempted;
	dial_done done;
	void *context;
	bool (*may)(void *context, const struct sockaddr *address);
	void *may_context;
};

static void on_dial_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void on_attempted_closed(uv_handle_t *handle)
{
	struct attempted *attempted = handle->data;

	close_at(&attempted->fd);
	free(attempted);
}

static void drop_attempted(struct dial *dial)
{
	if (!dial->attempted)
		return;
	dial->attempted->dial = NULL;
	uv_close((uv_handle_t *)&dial->attempted->poll, on_attempted_closed);
	dial->attempted = NULL;
}

void dial_cancel(struct dial *dial)
{
	if (!dial)
		return;
	drop_attempted(dial);
	if (dial->lookup) {
		dial->lookup->dial = NULL;
		uv_cancel((uv_req_t *)&dial->lookup->request); /* if it cannot, it will find nobody */
	}
	uv_close((uv_handle_t *)&dial->clock, on_dial_closed);
}

static void finish(struct dial *dial, int fd_or_fault)
{
	dial_done done = dial->done;
	void *context = dial->context;

	dial_cancel(dial);
	done(context, fd_or_fault);
}

static void on_late(uv_timer_t *clock)
{
	finish(clock->data, -ETIMEDOUT);
}

/* ---- connecting ----------------------------------------------------------------------------------------------------- */

static void try_next(struct dial *dial);

static void on_writable(uv_poll_t *poll, int status, int events)
{
	struct attempted *attempted = poll->data;
	struct dial *dial = attempted->dial;
	int error = 0;
	socklen_t len = sizeof error;

	(void)events;
	/* libuv calls every fault of a socket EBADF */
	int fault = getsockopt(attempted->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 ? -errno : -error;
	if (fault == 0)
		fault = status;
	if (fault == 0) {
		uv_poll_stop(poll);
		finish(dial, take_fd(attempted->fd));
		return;
	}
	dial->fault = fault;
	drop_attempted(dial);
	try_next(dial);
}

/* 0: under way. */
static int begin_attempt(struct dial *dial, const struct sockaddr *address, socklen_t len)
{
	cleanup(close_at) int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;

	if (fd < 0)
		return -errno;
	if (address->sa_family != AF_UNIX)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (connect(fd, address, len) < 0 && errno != EINPROGRESS)
		return -errno;
	struct attempted *attempted = calloc(1, sizeof *attempted);
	if (!attempted)
		return -ENOMEM;
	int r = uv_poll_init(dial->loop, &attempted->poll, fd);
	if (r < 0) {
		free(attempted);
		return r;
	}
	attempted->fd = take_fd(fd);
	attempted->dial = dial;
	attempted->poll.data = attempted;
	dial->attempted = attempted;
	return uv_poll_start(&attempted->poll, UV_WRITABLE, on_writable);
}

static void try_next(struct dial *dial)
{
	while (dial->next < dial->count) {
		uint32_t i = dial->next++;
		const struct sockaddr *address = (const struct sockaddr *)&dial->found[i];
		if (dial->may && !dial->may(dial->may_context, address)) {
			dial->barred = true;
			continue;
		}
		int r = begin_attempt(dial, address, dial->found_len[i]);
		if (r == 0)
			return;
		dial->fault = r;
		drop_attempted(dial);
	}
	finish(dial, dial->fault ? dial->fault : dial->barred ? -EACCES : -EHOSTUNREACH);
}

/* ---- finding -------------------------------------------------------------------------------------------------------- */

static void keep(struct dial *dial, const struct sockaddr *address, socklen_t len)
{
	if (dial->count < ADDRESSES_MAX && len <= sizeof dial->found[0]) {
		memcpy(&dial->found[dial->count], address, len);
		dial->found_len[dial->count++] = len;
	}
}

static void on_found(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
	struct lookup *lookup = request->data;
	struct dial *dial = lookup->dial;

	free(lookup);
	if (dial) {
		dial->lookup = NULL;
		for (struct addrinfo *one = status == 0 ? found : NULL; one; one = one->ai_next)
			keep(dial, one->ai_addr, one->ai_addrlen);
	}
	uv_freeaddrinfo(found);
	if (dial)
		try_next(dial);
}

static int look_up(struct dial *dial)
{
	struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	struct lookup *lookup = calloc(1, sizeof *lookup);
	char port[8];

	if (!lookup)
		return -ENOMEM;
	snprintf(port, sizeof port, "%u", dial->port);
	lookup->dial = dial;
	lookup->request.data = lookup;
	int r = uv_getaddrinfo(dial->loop, &lookup->request, on_found, dial->host, port, &wanted);
	if (r < 0) {
		free(lookup);
		return r;
	}
	dial->lookup = lookup;
	return 0;
}

static bool is_number(struct dial *dial)
{
	struct sockaddr_in four;
	struct sockaddr_in6 six;

	if (uv_ip4_addr(dial->host, dial->port, &four) == 0)
		keep(dial, (struct sockaddr *)&four, sizeof four);
	else if (uv_ip6_addr(dial->host, dial->port, &six) == 0)
		keep(dial, (struct sockaddr *)&six, sizeof six);
	return dial->count > 0;
}

/* From the loop, so that no result comes within dial_start(). */
static void on_begin(uv_timer_t *clock)
{
	struct dial *dial = clock->data;

	uv_timer_start(clock, on_late, DIAL_MS, 0);
	if (dial->local || is_number(dial)) {
		try_next(dial);
		return;
	}
	int r = look_up(dial);
	if (r < 0)
		finish(dial, r);
}

int dial_start(
	uv_loop_t *loop, const struct dial_wish *wish, dial_done done, void *context, struct dial **ret_dial)
{
	struct sockaddr_un local = {.sun_family = AF_UNIX};
	struct dial *dial;

	if (wish->path ? strlen(wish->path) >= sizeof local.sun_path : strlen(wish->host) >= HOST_BYTES_MAX)
		return -ENAMETOOLONG;
	dial = calloc(1, sizeof *dial);
	if (!dial)
		return -ENOMEM;
	dial->loop = loop;
	dial->local = wish->path != NULL;
	dial->port = wish->port;
	dial->may = wish->may;
	dial->may_context = wish->may_context;
	dial->done = done;
	dial->context = context;
	if (wish->path) {
		strcpy(local.sun_path, wish->path);
		keep(dial, (struct sockaddr *)&local, sizeof local);
	} else {
		strcpy(dial->host, wish->host);
	}
	uv_timer_init(loop, &dial->clock);
	dial->clock.data = dial;
	uv_timer_start(&dial->clock, on_begin, 0, 0);
	*ret_dial = dial;
	return 0;
}
