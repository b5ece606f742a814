/*
 * A thread and not a process: whoever counts the processes that a program left behind would count it. A pair has a block for each
 * direction; it is read only when it is empty, so that a side that does not read holds up the other.
 */
#include "exec/shim/loopback.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/take.h"
#include "exec/request/request.h"

enum {
	PAIRS_MAX = 64,
	BLOCK_BYTES = 16 << 10,
	THREAD_STACK_BYTES = 64 << 10,
	SHORT_OF_MS = 100, /* after an accept that failed for lack of something */
};

struct direction {
	size_t len, done;
	bool ended; /* nothing more comes */
	bool told;  /* … and the other side knows */
	char block[BLOCK_BYTES];
};

struct pair {
	int near, far; /* the program's, the supervisor's; -1: no pair */
	struct direction out, in;
};

static struct pair pairs[PAIRS_MAX];
static int listener_fd;
static const char *proxy_path;

int loopback_listen(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_port = htons(WALL_PROXY_PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	cleanup(close_at) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, PAIRS_MAX) < 0)
		return -errno;
	return take_fd(fd);
}

static int connect_far(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	cleanup(close_at) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (snprintf(address.sun_path, sizeof address.sun_path, "%s", proxy_path) >=
		(int)sizeof address.sun_path)
		return -ENAMETOOLONG;
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
		return -errno;
	return take_fd(fd);
}

static void end_pair(struct pair *pair)
{
	close(pair->near);
	close(pair->far);
	pair->near = pair->far = -1;
}

static void take_in(struct pair *pair)
{
	int near = accept4(listener_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (near < 0) {
		if (errno != EAGAIN && errno != ECONNABORTED)
			poll(NULL, 0, SHORT_OF_MS);
		return;
	}
	int far = connect_far();
	if (far < 0) { /* the supervisor is gone, or its queue is full: the program sees its connection end */
		close(near);
		return;
	}
	*pair = (struct pair){.near = near, .far = far};
}

/* False: the pair is over. */
static bool fill(struct direction *direction, int from)
{
	ssize_t got = read(from, direction->block, sizeof direction->block);

	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	direction->len = (size_t)got;
	direction->done = 0;
	direction->ended = got == 0;
	return true;
}

static bool drain(struct direction *direction, int to)
{
	ssize_t put =
		send(to, direction->block + direction->done, direction->len - direction->done, MSG_NOSIGNAL);

	if (put < 0)
		return errno == EAGAIN || errno == EINTR;
	direction->done += (size_t)put;
	if (direction->done == direction->len)
		direction->done = direction->len = 0;
	return true;
}

static bool move(struct direction *direction, int from, short from_events, int to, short to_events)
{
	if (direction->len == 0 && !direction->ended && from_events & (POLLIN | POLLHUP | POLLERR) &&
		!fill(direction, from))
		return false;
	if (direction->len > 0 && to_events & (POLLOUT | POLLERR | POLLHUP) && !drain(direction, to))
		return false;
	if (direction->len == 0 && direction->ended && !direction->told) {
		shutdown(to, SHUT_WR);
		direction->told = true;
	}
	return true;
}

static short wanted(const struct direction *from_here, const struct direction *to_here)
{
	return (short)((from_here->len == 0 && !from_here->ended ? POLLIN : 0) |
		(to_here->len > 0 ? POLLOUT : 0));
}

static void serve_pair(struct pair *pair, short near, short far)
{
	bool goes_on = move(&pair->out, pair->near, near, pair->far, far) &&
		move(&pair->in, pair->far, far, pair->near, near);
	bool over = pair->in.told || ((near | far) & POLLNVAL);

	if (!goes_on || over || (pair->out.told && pair->in.told))
		end_pair(pair);
}

/* A pair that only hangs up is read to its end; one that wants nothing is not asked. */
static int watch(const struct pair *pair, struct pollfd *near, struct pollfd *far)
{
	bool is_one = pair->near >= 0;
	short near_events = is_one ? wanted(&pair->out, &pair->in) : 0;
	short far_events = is_one ? wanted(&pair->in, &pair->out) : 0;

	*near = (struct pollfd){.fd = near_events ? pair->near : -1, .events = near_events};
	*far = (struct pollfd){.fd = far_events ? pair->far : -1, .events = far_events};
	return is_one;
}

static void *serve(void *unused)
{
	static struct pollfd polls[1 + 2 * PAIRS_MAX];

	for (;;) {
		struct pair *unoccupied = NULL;
		for (size_t i = 0; i < PAIRS_MAX; i++)
			if (!watch(&pairs[i], &polls[1 + 2 * i], &polls[2 + 2 * i]))
				unoccupied = &pairs[i];
		polls[0] = (struct pollfd){.fd = unoccupied ? listener_fd : -1, .events = POLLIN};
		if (poll(polls, sizeof polls / sizeof *polls, -1) < 0)
			continue;
		for (size_t i = 0; i < PAIRS_MAX; i++)
			if (pairs[i].near >= 0)
				serve_pair(&pairs[i], polls[1 + 2 * i].revents, polls[2 + 2 * i].revents);
		if (polls[0].revents && unoccupied)
			take_in(unoccupied);
	}
	return unused;
}

int loopback_serve(int listener, const char *path)
{
	pthread_attr_t attributes;
	pthread_t thread;

	listener_fd = listener;
	proxy_path = path;
	for (size_t i = 0; i < PAIRS_MAX; i++)
		pairs[i].near = pairs[i].far = -1;
	int r = pthread_attr_init(&attributes);
	if (r == 0)
		r = pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
	if (r == 0)
		r = pthread_create(&thread, &attributes, serve, NULL);
	return -r;
}
