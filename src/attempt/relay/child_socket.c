#include "attempt/relay/child_socket.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/take.h"

enum {
	BACKLOG = 64,
	AGAIN_MS = 200, /* after an accept that failed for lack of descriptors or memory */
};

struct child_socket {
	uv_poll_t poll;
	uv_timer_t again;
	int fd;
	struct accept_share *share;
	struct http_address server;
	struct relay_way way;
	struct relay *relays[PROXY_RELAYS];
	uint32_t relay_count, relays_max, open_handles;
};

/* ---- the share ------------------------------------------------------------------------------------------------------ */

static void on_tick(uv_prepare_t *tick)
{
	struct accept_share *share = tick->data;

	share->left = ACCEPTS_A_TICK;
}

void accept_share_init(struct accept_share *share, uv_loop_t *loop)
{
	share->left = ACCEPTS_A_TICK;
	uv_prepare_init(loop, &share->tick);
	share->tick.data = share;
	uv_prepare_start(&share->tick, on_tick);
	uv_unref((uv_handle_t *)&share->tick);
}

/* ---- accepting ------------------------------------------------------------------------------------------------------ */

static void listen_on(struct child_socket *socket);

static void on_relay_ended(void *context, struct relay *relay)
{
	struct child_socket *socket = context;
	uint32_t i = 0;

	while (socket->relays[i] != relay)
		i++;
	assert(i < socket->relay_count);
	socket->relays[i] = socket->relays[--socket->relay_count];
	socket->relays[socket->relay_count] = NULL;
	listen_on(socket);
}

static void on_again(uv_timer_t *timer)
{
	listen_on(timer->data);
}

static void take_one(struct child_socket *socket)
{
	int fd = accept4(socket->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), r;

	if (fd < 0) {
		bool short_of = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
		if (short_of) { /* it would be asked again and again */
			uv_poll_stop(&socket->poll);
			uv_timer_start(&socket->again, on_again, AGAIN_MS, 0);
		}
		return;
	}
	socket->share->left--;
	r = relay_open(socket->poll.loop, fd, &socket->way, on_relay_ended, socket,
		&socket->relays[socket->relay_count]);
	if (r == 0 && ++socket->relay_count == socket->relays_max)
		uv_poll_stop(&socket->poll);
}

static void on_waiting(uv_poll_t *poll, int status, int events)
{
	struct child_socket *socket = poll->data;

	(void)events;
	assert(socket->relay_count < socket->relays_max);
	if (status == 0 && socket->share->left > 0) /* else in the next iteration */
		take_one(socket);
}

static void listen_on(struct child_socket *socket)
{
	if (socket->relay_count < socket->relays_max && !uv_is_closing((uv_handle_t *)&socket->poll))
		uv_poll_start(&socket->poll, UV_READABLE, on_waiting);
}

/* ---- life ----------------------------------------------------------------------------------------------------------- */

/* By the open directory: the path of a run dir may be longer than an address of a socket. */
static int bind_in(int run_fd, const char *name, int fd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", run_fd, name);
	if (fchmod(fd, 0600) == 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0)
		return 0;
	return errno == EADDRINUSE ? -EEXIST : -errno;
}

static int make_socket(int run_fd, const char *name, int *ret_fd)
{
	cleanup(close_at) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = fd < 0 ? -errno : bind_in(run_fd, name, fd);

	if (r < 0)
		return r;
	if (listen(fd, BACKLOG) < 0) {
		r = -errno;
		unlinkat(run_fd, name, 0);
		return r;
	}
	*ret_fd = take_fd(fd);
	return 0;
}

static void on_closed(uv_handle_t *handle)
{
	struct child_socket *socket = handle->data;

	if (--socket->open_handles > 0)
		return;
	close_at(&socket->fd);
	free(socket);
}

int child_socket_open(const struct child_socket_options *options, struct child_socket **ret_socket)
{
	const char *name = options->server ? CHILD_SOCKET_NAME : PROXY_SOCKET_NAME;
	struct child_socket *socket = calloc(1, sizeof *socket);
	int r;

	if (!socket)
		return -ENOMEM;
	socket->fd = -1;
	r = make_socket(options->run_fd, name, &socket->fd);
	if (r == 0)
		r = uv_poll_init(options->loop, &socket->poll, socket->fd);
	if (r < 0) {
		if (socket->fd >= 0)
			unlinkat(options->run_fd, name, 0);
		close_at(&socket->fd);
		free(socket);
		return r;
	}
	socket->share = options->share;
	if (options->server)
		socket->server = *options->server;
	socket->relays_max = options->server ? CHILD_SOCKET_RELAYS : PROXY_RELAYS;
	socket->way = (struct relay_way){.server = options->server ? &socket->server : NULL,
		.hosts = options->hosts,
		.dials = &options->share->dials,
		.barred = options->barred,
		.context = options->context};
	uv_timer_init(options->loop, &socket->again);
	socket->poll.data = socket->again.data = socket;
	socket->open_handles = 2;
	listen_on(socket);
	*ret_socket = socket;
	return 0;
}

void child_socket_close(struct child_socket *socket)
{
	if (!socket)
		return;
	while (socket->relay_count > 0)
		relay_close(socket->relays[--socket->relay_count]);
	uv_close((uv_handle_t *)&socket->poll, on_closed);
	uv_close((uv_handle_t *)&socket->again, on_closed);
}
