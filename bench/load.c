/*
 * A load for stintd: C connections in one thread, one request outstanding on each, the next one sent when the reply
 * has been read. Ends with one line of JSON.
 *
 *   stint-bench-load --url http://127.0.0.1:PORT | https://127.0.0.1:PORT --ca FILE | unix:PATH
 *                    --token-file FILE  --mode MODE  [--connections C] [--seconds S] [--count N] [--depth D] [--keys K]
 *
 *   life      create a task, claim one, complete it                        three requests per task
 *   next      create a task, finish the last one and claim the next        two requests per task
 *   create    create tasks; with --depth D, D requests in flight on each connection
 *   fill      create --count tasks, 500 per request, to have them
 *             with --keys K each has one of K concurrency keys, in turn
 *   drain     claim and complete what is there
 *   take      claim what is there, and keep it
 *   dispatch  one connection waits for work, another brings it: the time from before the send until the task is held
 *   renew     each connection is a worker that holds a task and beats, without deltas, back to back
 *   beat      each connection is a worker that holds a task and beats every 15 s
 *   idle      each connection waits for work that does not come, and asks again when its time is up
 *
 * renew and beat end with an error if a worker is told that it, or its task, is lost.
 *
 * Replies are read with a few string searches: the server is trusted here to speak HTTP, and the client must cost
 * less than what it measures.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "wire/tls/tls.h"

enum {
	PAYLOAD_BYTES = 256,
	INPUT_BYTES = 512 << 10,
	OUTPUT_BYTES = 512 << 10,
	BATCH = 500,           /* tasks per request that fills */
	SMALL_BYTES = 8 << 10, /* in and out of a connection that says little */
	SAMPLES_MAX = 4000000,
	BEAT_EVERY_S = 15,
	IDLE_MS = 60000,
	TOGETHER = 32,
	DRAIN_S = 20, /* for what is in flight when the time is up */
};

enum step { STEP_CREATE, STEP_CLAIM, STEP_COMPLETE, STEP_BEAT, STEP_COUNT };

static const char *const step_names[STEP_COUNT] = {"put", "claim", "done", "touch"};

enum mode { LIFE, NEXT, CREATE, FILL, DRAIN, TAKE, DISPATCH, RENEW, BEAT, IDLE, MODE_COUNT };

static const char *const mode_names[MODE_COUNT] = {
	"life", "next", "create", "fill", "drain", "take", "dispatch", "renew", "beat", "idle"};

struct client {
	int fd;
	struct tls *tls; /* NULL: in the clear */
	int number;
	char *in, *out;
	size_t room; /* in each */
	size_t in_len, out_len, out_sent;
	enum step step;
	uint64_t began_ns;
	uint32_t in_flight;
	bool holds, watches_output;
	char id[160], fence[32], token[40];
};

struct samples {
	uint32_t *tens_of_ns;
	size_t count;
};

static struct {
	enum mode mode;
	const char *url, *token, *ca;
	int connections, depth;
	long count, keys;
	double seconds;
} asked = {.connections = 1, .depth = 1, .count = 1000000000, .seconds = 2};

static struct client *clients;
static struct samples samples[STEP_COUNT];
static char payload[PAYLOAD_BYTES + 1];
static int poller;
static struct tls_trust *trust;
static long tasks_done, created, empty;

static uint64_t now_ns(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

__attribute__((format(printf, 1, 2))) static _Noreturn void die(const char *format, ...)
{
	va_list args;

	fputs("stint-bench-load: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

static void note(enum step step, uint64_t began_ns)
{
	struct samples *of = &samples[step];

	if (of->count < SAMPLES_MAX)
		of->tens_of_ns[of->count++] = (uint32_t)((now_ns() - began_ns) / 10);
}

/* ---- connections ---------------------------------------------------------------------------------------- */

static int dial_local(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (strlen(path) >= sizeof address.sun_path)
		die("%s is too long for a socket", path);
	strcpy(address.sun_path, path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
		die("cannot connect to %s: %s", path, strerror(errno));
	return fd;
}

static int dial_tcp(const char *url)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	unsigned port;
	char host[64];
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	if ((sscanf(url, "http://%63[0-9.]:%u", host, &port) != 2 &&
		    sscanf(url, "https://%63[0-9.]:%u", host, &port) != 2) ||
		port > UINT16_MAX)
		die("--url must be http://127.0.0.1:PORT, https://127.0.0.1:PORT or unix:PATH, not %s", url);
	address.sin_port = htons((uint16_t)port);
	inet_pton(AF_INET, host, &address.sin_addr);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
		die("cannot connect to %s: %s", url, strerror(errno));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return fd;
}

/* What TLS has to say; false: the socket takes no more now. */
static bool send_records(struct client *client)
{
	struct span output;

	while ((output = tls_output(client->tls)).len > 0) {
		ssize_t n = write(client->fd, output.data, output.len);
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n < 0)
			die("write: %s", strerror(errno));
		tls_output_sent(client->tls, (size_t)n);
	}
	return true;
}

/* false: nothing has come. */
static bool hear_records(struct client *client)
{
	char block[TLS_RECORD_BYTES];
	ssize_t n = read(client->fd, block, sizeof block);

	if (n < 0 && errno == EAGAIN)
		return false;
	if (n <= 0)
		die("the server closed a connection");
	if (tls_hear(client->tls, (struct span){block, (size_t)n}) < 0)
		die("no memory");
	return true;
}

/* While the socket still waits for us. */
static void shake(struct client *client)
{
	int r;

	client->tls = tls_client_new(trust, "127.0.0.1");
	if (!client->tls)
		die("no memory");
	while ((r = tls_shake(client->tls)) == 0) {
		send_records(client);
		hear_records(client);
	}
	if (r < 0)
		die("TLS: %s", tls_complaint(client->tls));
	send_records(client);
}

static void open_client(struct client *client, int number)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};

	client->number = number;
	client->room =
		asked.mode == RENEW || asked.mode == BEAT || asked.mode == IDLE ? SMALL_BYTES : INPUT_BYTES;
	client->in = malloc(client->room);
	client->out = malloc(client->room);
	client->fd = strncmp(asked.url, "unix:", 5) == 0 ? dial_local(asked.url + 5) : dial_tcp(asked.url);
	if (!client->in || !client->out)
		die("no memory");
	if (trust)
		shake(client);
	fcntl(client->fd, F_SETFL, O_NONBLOCK);
	if (epoll_ctl(poller, EPOLL_CTL_ADD, client->fd, &event) < 0)
		die("epoll: %s", strerror(errno));
}

static void watch_output(struct client *client, bool on)
{
	struct epoll_event event = {.events = EPOLLIN | (on ? EPOLLOUT : 0u), .data.ptr = client};

	if (client->watches_output != on)
		epoll_ctl(poller, EPOLL_CTL_MOD, client->fd, &event);
	client->watches_output = on;
}

static void flush_records(struct client *client)
{
	while (client->out_sent < client->out_len) {
		size_t len = client->out_len - client->out_sent;
		len = len < TLS_RECORD_BYTES ? len : TLS_RECORD_BYTES;
		if (tls_write(client->tls, (struct span){client->out + client->out_sent, len}) < 0)
			die("TLS: %s", tls_complaint(client->tls));
		client->out_sent += len;
	}
	client->out_sent = client->out_len = 0;
	watch_output(client, !send_records(client));
}

static void flush(struct client *client)
{
	if (client->tls)
		return flush_records(client);
	while (client->out_sent < client->out_len) {
		ssize_t n =
			write(client->fd, client->out + client->out_sent, client->out_len - client->out_sent);
		if (n < 0 && errno == EAGAIN)
			return watch_output(client, true);
		if (n < 0)
			die("write: %s", strerror(errno));
		client->out_sent += (size_t)n;
	}
	client->out_sent = client->out_len = 0;
	watch_output(client, false);
}

/* ---- requests ------------------------------------------------------------------------------------------- */

static void ask(struct client *client, enum step step, const char *path, const char *body, int body_len)
{
	size_t room = client->room - client->out_len;
	int n = snprintf(client->out + client->out_len, room,
		"POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		path, asked.token, body_len, body);

	if ((size_t)n >= room)
		die("too much in flight on one connection");
	client->out_len += (size_t)n;
	client->step = step;
	client->began_ns = now_ns();
	client->in_flight++;
}

static void ask_create(struct client *client)
{
	char body[PAYLOAD_BYTES + 128];
	int n = snprintf(
		body, sizeof body, "{\"title\":\"b\",\"queue\":\"bench\",\"payload\":\"%s\"}", payload);

	ask(client, STEP_CREATE, "/api/tasks", body, n);
}

/* As many as are still missing, up to a batch. */
static void ask_batch(struct client *client)
{
	static char body[OUTPUT_BYTES];
	long count = asked.count - created < BATCH ? asked.count - created : BATCH;
	int n = snprintf(body, sizeof body, "[");

	for (long i = 0; i < count; i++) {
		n += snprintf(body + n, sizeof body - (size_t)n,
			"%s{\"title\":\"b\",\"queue\":\"bench\",\"payload\":\"%s\"", i > 0 ? "," : "",
			payload);
		if (asked.keys > 0)
			n += snprintf(body + n, sizeof body - (size_t)n, ",\"concurrencyKey\":\"tenant-%ld\"",
				(created + i) % asked.keys);
		n += snprintf(body + n, sizeof body - (size_t)n, "}");
	}
	n += snprintf(body + n, sizeof body - (size_t)n, "]");
	created += count;
	ask(client, STEP_CREATE, "/api/tasks/batch", body, n);
}

/* With what it holds finished in the same request, if `finishes`. */
static void ask_claim(struct client *client, const char *queue, int wait_ms, bool finishes)
{
	char body[512], finish[256] = "";

	if (finishes)
		snprintf(finish, sizeof finish,
			",\"finish\":[{\"id\":\"%s\",\"fence\":\"%s\",\"outcome\":\"complete\"}]", client->id,
			client->fence);
	int n = snprintf(body, sizeof body, "{\"workerId\":\"bench-%d\",\"queues\":[\"%s\"],\"waitMs\":%d%s}",
		client->number, queue, wait_ms, finish);
	ask(client, STEP_CLAIM, "/api/claims", body, n);
}

static void ask_complete(struct client *client)
{
	char path[256], body[128];

	snprintf(path, sizeof path, "/api/tasks/%s/complete", client->id);
	int n = snprintf(body, sizeof body, "{\"workerId\":\"bench-%d\",\"fence\":\"%s\"}", client->number,
		client->fence);
	ask(client, STEP_COMPLETE, path, body, n);
}

/* `more`: members with a comma before them. */
static void ask_beat(struct client *client, const char *more)
{
	char body[512];
	int n = client->token[0] == 0
		? snprintf(body, sizeof body, "{\"workerId\":\"bench-%d\"%s}", client->number, more)
		: snprintf(body, sizeof body, "{\"workerId\":\"bench-%d\",\"token\":\"%s\"%s}",
			  client->number, client->token, more);

	ask(client, STEP_BEAT, "/api/workers/heartbeat", body, n);
}

/* ---- replies -------------------------------------------------------------------------------------------- */

static bool read_text(const char *json, const char *key, char *into, size_t size)
{
	const char *at = strstr(json, key);
	const char *end = at ? strchr(at + strlen(key), '"') : NULL;

	if (!end)
		return false;
	snprintf(into, size, "%.*s", (int)(end - at - (int)strlen(key)), at + strlen(key));
	return true;
}

static void take_reply(struct client *client, const char *body)
{
	const char *claims;

	switch (client->step) {
	case STEP_CLAIM:
		claims = strstr(body, "\"claims\":[");
		client->holds = claims && read_text(claims, "\"id\":\"", client->id, sizeof client->id) &&
			read_text(claims, "\"fence\":\"", client->fence, sizeof client->fence);
		break;
	case STEP_BEAT:
		if (!read_text(body, "\"token\":\"", client->token, sizeof client->token))
			die("a beat without a token: %s", body);
		if (!strstr(body, "\"lost\":[]"))
			die("a task was lost: %s", body);
		break;
	case STEP_COMPLETE:
		client->holds = false;
		break;
	case STEP_CREATE:
	case STEP_COUNT:
		break;
	}
}

/* One reply, if it is there. */
static bool read_reply(struct client *client)
{
	client->in[client->in_len] = 0;
	char *head_end = strstr(client->in, "\r\n\r\n");
	if (!head_end)
		return false;
	const char *length = strcasestr(client->in, "\r\nContent-Length:");
	if (!length || length > head_end)
		die("a reply without a length: %.200s", client->in);
	size_t body_len = strtoul(length + strlen("\r\nContent-Length:"), NULL, 10);
	size_t used = (size_t)(head_end + 4 - client->in) + body_len;
	if (client->in_len < used)
		return false;
	char *body = head_end + 4, kept = body[body_len];
	body[body_len] = 0;
	if (strncmp(client->in, "HTTP/1.1 2", 10) != 0)
		die("refused: %s", body);
	take_reply(client, body);
	body[body_len] = kept;
	memmove(client->in, client->in + used, client->in_len - used);
	client->in_len -= used;
	client->in_flight--;
	return true;
}

/* All that it has said and that there is room for: what would stay in TLS wakes nobody. */
static bool fill_from_records(struct client *client)
{
	size_t before = client->in_len;

	while (hear_records(client)) {
		ssize_t n;
		while ((n = tls_read(client->tls, client->in + client->in_len,
				client->room - 1 - client->in_len)) > 0)
			client->in_len += (size_t)n;
		if (n < 0)
			die("TLS: %s", tls_complaint(client->tls));
	}
	return client->in_len > before;
}

static bool fill(struct client *client)
{
	if (client->tls)
		return fill_from_records(client);
	ssize_t n = read(client->fd, client->in + client->in_len, client->room - 1 - client->in_len);

	if (n < 0 && errno == EAGAIN)
		return false;
	if (n <= 0)
		die("the server closed a connection");
	client->in_len += (size_t)n;
	return true;
}

/* For what has no rhythm of its own: set-up, and one client at a time. */
static void await_reply(struct client *client)
{
	struct epoll_event event;

	flush(client);
	while (!read_reply(client)) {
		if (!fill(client))
			epoll_wait(poller, &event, 1, 1000);
	}
}

/* ---- the loop ------------------------------------------------------------------------------------------- */

/* What the client does next; false: nothing, it is through. `stop`: the time is up. */
static bool go_on(struct client *client, bool stop)
{
	stop |= tasks_done + asked.connections > asked.count;
	switch (client->step) {
	case STEP_CREATE:
		if (asked.mode == FILL && created < asked.count) {
			ask_batch(client);
			return true;
		}
		if (asked.mode == FILL)
			return false;
		if (asked.mode == CREATE && (stop || created >= asked.count))
			return client->in_flight > 0;
		if (asked.mode == CREATE) {
			created++;
			ask_create(client);
		} else {
			ask_claim(client, "bench", 0, asked.mode == NEXT && client->holds);
		}
		return true;
	case STEP_CLAIM:
		if (!client->holds && (stop || asked.mode == DRAIN || asked.mode == TAKE))
			return false;
		if (!client->holds || asked.mode == TAKE)
			ask_claim(client, "bench", 0, false);
		else if (asked.mode == NEXT && !stop)
			ask_create(client);
		else
			ask_complete(client);
		return true;
	case STEP_COMPLETE:
		if (stop)
			return false;
		if (asked.mode == DRAIN)
			ask_claim(client, "bench", 0, false);
		else
			ask_create(client);
		return true;
	case STEP_BEAT:
		if (!stop)
			ask_beat(client, "");
		return !stop;
	case STEP_COUNT:
		break;
	}
	return false;
}

static void count_reply(const struct client *client, bool held)
{
	bool finished = client->step == STEP_COMPLETE || client->step == STEP_BEAT ||
		(client->step == STEP_CLAIM && asked.mode == NEXT && held) ||
		(client->step == STEP_CLAIM && asked.mode == TAKE && client->holds) ||
		(client->step == STEP_CREATE && asked.mode == CREATE);

	tasks_done += finished;
	if (client->step == STEP_CLAIM && !client->holds)
		empty++;
	else if (asked.depth == 1)
		note(client->step, client->began_ns);
}

static uint32_t on_input(struct client *client, bool stop)
{
	bool more = true;

	if (!fill(client))
		return 0;
	for (;;) {
		bool held = client->holds;
		if (!read_reply(client))
			break;
		count_reply(client, held);
		more = go_on(client, stop);
	}
	flush(client);
	return more ? 0 : 1;
}

static void start_clients(void)
{
	for (int i = 0; i < asked.connections; i++) {
		struct client *client = &clients[i];
		if (asked.mode == DRAIN || asked.mode == TAKE)
			ask_claim(client, "bench", 0, false);
		else if (asked.mode == RENEW)
			ask_beat(client, "");
		else if (asked.mode == FILL)
			ask_batch(client);
		else
			for (int k = 0; k < (asked.mode == CREATE ? asked.depth : 1) && created < asked.count;
				k++, created++)
				ask_create(client);
		flush(client);
	}
}

static void run_closed_loop(uint64_t end_ns)
{
	struct epoll_event events[256];
	uint32_t through = 0;

	start_clients();
	while (through < (uint32_t)asked.connections) {
		int n = epoll_wait(poller, events, 256, 200);
		uint64_t now = now_ns();
		if (now > end_ns + UINT64_C(1000000000) * DRAIN_S)
			die("no end of what was in flight");
		for (int i = 0; i < n; i++) {
			struct client *client = events[i].data.ptr;
			if (events[i].events & EPOLLOUT)
				flush(client);
			if (events[i].events & EPOLLIN)
				through += on_input(client, now >= end_ns);
		}
	}
}

static void run_dispatch(uint64_t end_ns)
{
	struct client *worker = &clients[0], *producer = &clients[1];

	for (; tasks_done < asked.count && now_ns() < end_ns; tasks_done++) {
		ask_claim(worker, "bench", 5000, false);
		flush(worker);
		usleep(1000);
		uint64_t began_ns = now_ns();
		ask_create(producer);
		flush(producer);
		await_reply(worker);
		note(STEP_CLAIM, began_ns);
		await_reply(producer);
		ask_complete(worker);
		await_reply(worker);
	}
}

/* Spread evenly: each client once in 15 s. */
static void run_beats(uint64_t end_ns)
{
	uint64_t gap_ns = UINT64_C(1000000000) * BEAT_EVERY_S / (uint64_t)asked.connections;
	uint64_t next_ns = now_ns();

	for (; now_ns() < end_ns; tasks_done++) {
		while (now_ns() < next_ns)
			usleep(200);
		next_ns += gap_ns;
		struct client *client = &clients[tasks_done % asked.connections];
		ask_beat(client, "");
		await_reply(client);
		note(STEP_BEAT, client->began_ns);
	}
}

static void wait_for_nothing(struct client *client)
{
	ask_claim(client, "nothing-comes", IDLE_MS, false);
	flush(client);
}

static void run_idle(uint64_t end_ns)
{
	struct epoll_event events[256];

	while (now_ns() < end_ns) {
		int n = epoll_wait(poller, events, 256, 200);
		for (int i = 0; i < n; i++) {
			struct client *client = events[i].data.ptr;
			if (fill(client) && read_reply(client))
				wait_for_nothing(client);
		}
	}
}

/* All say the same and then hear the answers: that costs one commit, not one for each. */
static void say_together(struct client *some, int count, void (*say)(struct client *client))
{
	for (int i = 0; i < count; i++) {
		say(&some[i]);
		flush(&some[i]);
	}
	for (int i = 0; i < count; i++)
		await_reply(&some[i]);
}

static void say_hello(struct client *client)
{
	ask_beat(client, "");
}

static void say_claim(struct client *client)
{
	ask_claim(client, "bench", 0, false);
}

static void say_bound(struct client *client)
{
	char bound[200];

	if (!client->holds)
		die("there was nothing to hold");
	snprintf(bound, sizeof bound, ",\"boundTasks\":[\"%s\"]", client->id);
	ask_beat(client, bound);
}

/* Workers with a task of their own, which they have told the server that they run. */
static void hold_tasks(struct client *some, int count)
{
	say_together(some, count, say_hello);
	say_together(some, count, ask_create);
	say_together(some, count, say_claim);
	say_together(some, count, say_bound);
}

/* Whoever connects says who it is before many others come: strangers are not kept by the thousand. */
static void open_clients(void)
{
	bool holds = asked.mode == RENEW || asked.mode == BEAT;

	for (int i = 0; i < asked.connections; i++) {
		open_client(&clients[i], i);
		int fresh = i % TOGETHER + 1;
		if (holds && (fresh == TOGETHER || i + 1 == asked.connections))
			hold_tasks(&clients[i + 1 - fresh], fresh);
		else if (asked.mode == IDLE)
			wait_for_nothing(&clients[i]);
	}
	if (asked.mode == BEAT || asked.mode == IDLE) { /* whoever measures begins now */
		puts("ready");
		fflush(stdout);
	}
}

/* How long it took, without the set-up. */
static double run(void)
{
	uint64_t began_ns = now_ns(), end_ns = began_ns + (uint64_t)(asked.seconds * 1e9);
	if (asked.mode == DISPATCH)
		run_dispatch(end_ns);
	else if (asked.mode == BEAT)
		run_beats(end_ns);
	else if (asked.mode == IDLE)
		run_idle(end_ns);
	else
		run_closed_loop(end_ns);
	return (double)(now_ns() - began_ns) / 1e9;
}

/* ---- what came out -------------------------------------------------------------------------------------- */

static int compare(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return a < b ? -1 : a > b;
}

static double seconds_of(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static void report(double seconds)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	printf("{\"mode\":\"%s\",\"conns\":%d,\"secs\":%.3f,\"count\":%ld,\"rate\":%.1f,\"empty\":%ld",
		mode_names[asked.mode], asked.connections, seconds, tasks_done, (double)tasks_done / seconds,
		empty);
	for (int i = 0; i < STEP_COUNT; i++) {
		struct samples *of = &samples[i];
		if (of->count == 0)
			continue;
		qsort(of->tens_of_ns, of->count, sizeof *of->tens_of_ns, compare);
		printf(",\"%s_n\":%zu,\"%s_p50_us\":%.1f,\"%s_p99_us\":%.1f", step_names[i], of->count,
			step_names[i], of->tens_of_ns[of->count / 2] / 100.0, step_names[i],
			of->tens_of_ns[of->count * 99 / 100] / 100.0);
	}
	printf(",\"client_cpu_s\":%.2f}\n", seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime));
}

/* ---- arguments ------------------------------------------------------------------------------------------ */

static void trust_only(const char *path)
{
	static char pem[64 << 10];
	char complaint[TLS_COMPLAINT_BYTES];
	FILE *file = fopen(path, "re");
	size_t len = file ? fread(pem, 1, sizeof pem, file) : 0;

	if (len == 0 || tls_trust_new((struct span){pem, len}, &trust, complaint) < 0)
		die("--ca %s: no certificate of an authority", path);
	fclose(file);
}

static const char *read_token(const char *path)
{
	static char token[256];
	FILE *file = fopen(path, "re");

	if (!file || !fgets(token, sizeof token, file))
		die("cannot read %s", path);
	fclose(file);
	token[strcspn(token, "\n")] = 0;
	return token;
}

static enum mode find_mode(const char *name)
{
	for (int i = 0; i < MODE_COUNT; i++) {
		if (strcmp(mode_names[i], name) == 0)
			return (enum mode)i;
	}
	die("there is no mode %s", name);
}

static void take_option(const char *name, const char *value)
{
	if (strcmp(name, "--url") == 0)
		asked.url = value;
	else if (strcmp(name, "--token-file") == 0)
		asked.token = read_token(value);
	else if (strcmp(name, "--ca") == 0)
		asked.ca = value;
	else if (strcmp(name, "--mode") == 0)
		asked.mode = find_mode(value);
	else if (strcmp(name, "--connections") == 0)
		asked.connections = atoi(value);
	else if (strcmp(name, "--seconds") == 0)
		asked.seconds = atof(value);
	else if (strcmp(name, "--count") == 0)
		asked.count = atol(value);
	else if (strcmp(name, "--keys") == 0)
		asked.keys = atol(value);
	else if (strcmp(name, "--depth") == 0)
		asked.depth = atoi(value);
	else
		die("there is no option %s", name);
}

int main(int argc, char **argv)
{
	struct rlimit files;

	for (int i = 1; i + 1 < argc; i += 2)
		take_option(argv[i], argv[i + 1]);
	if (argc % 2 == 0 || !asked.url || !asked.token || asked.connections < 1 || asked.depth < 1)
		die("usage: --url URL --token-file FILE --mode MODE [--connections C] [--seconds S] [--count N] [--depth D] [--keys K]");
	if (asked.mode == DISPATCH)
		asked.connections = 2;
	if (strncmp(asked.url, "https:", 6) == 0)
		trust_only(asked.ca ? asked.ca : "ca.crt");
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	memset(payload, 'x', PAYLOAD_BYTES);
	for (int i = 0; i < STEP_COUNT; i++)
		samples[i].tens_of_ns = malloc(SAMPLES_MAX * sizeof *samples[i].tens_of_ns);
	poller = epoll_create1(EPOLL_CLOEXEC);
	clients = calloc((size_t)asked.connections, sizeof *clients);
	open_clients();
	report(run());
	return 0;
}
