/*
 * The HTTP client over real sockets. The test is the server: it accepts, reads and answers between two steps of the client, so
 * every order of events is the one that the test chose. A thread serves where the client itself waits.
 */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "wire/http/client.h"

#define OK     "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
#define STREAM "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
#define LARGE  (8 << 20)

enum {
	HEAR_MS = 2000, /* the client has sent its request before it is read: this only ends a hang */
};

static const struct http_call reading = {
	.method = HTTP_METHOD_GET, .target = SPAN("/a"), .may_repeat = true, .timeout_ms = 60000};

struct world {
	char directory[32];
	struct http_address address;
	int listener, peer;
	struct http_client *client;
	struct http_answer *answer;
	enum http_reach reach;
	pthread_t thread;
	const char *reply; /* of the thread */
};

/* ---- the server ---- */

static void listen_local(struct world *w)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	strcpy(w->directory, "/tmp/stint-client-XXXXXX");
	assert_non_null(mkdtemp(w->directory));
	w->address = (struct http_address){.local = true};
	snprintf(w->address.path, sizeof w->address.path, "%s/s", w->directory);
	strcpy(address.sun_path, w->address.path);
	w->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(w->listener, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(w->listener, 8), 0);
}

static void listen_tcp(struct world *w)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof address;

	w->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(w->listener, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(w->listener, 8), 0);
	assert_int_equal(getsockname(w->listener, (struct sockaddr *)&address, &len), 0);
	w->address = (struct http_address){.host = "127.0.0.1", .port = ntohs(address.sin_port)};
}

static void open_client(struct world *w)
{
	struct http_answer_limits limits = http_answer_limits_default();

	w->client = http_client_new(&w->address, &limits);
	assert_non_null(w->client);
}

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof *w);

	w->listener = w->peer = -1;
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	http_client_free(w->client);
	http_client_free(NULL);
	close(w->peer);
	close(w->listener);
	if (w->directory[0]) {
		unlink(w->address.path);
		rmdir(w->directory);
	}
	free(w);
	return 0;
}

static void say(struct world *w, const char *text)
{
	assert_int_equal(send(w->peer, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* The head of a request; its first line is what the test may compare. */
static void hear(struct world *w, const char *request)
{
	char text[4096] = "";
	size_t len = 0;

	if (w->peer < 0)
		w->peer = accept(w->listener, NULL, NULL);
	while (!strstr(text, "\r\n\r\n")) {
		struct pollfd ready = {.fd = w->peer, .events = POLLIN};
		assert_int_equal(poll(&ready, 1, HEAR_MS), 1);
		ssize_t got = recv(w->peer, text + len, sizeof text - 1 - len, 0);
		assert_true(got > 0);
		len += (size_t)got;
	}
	assert_memory_equal(text, request, strlen(request));
}

static void hang_up(struct world *w)
{
	close(w->peer);
	w->peer = -1;
}

/* Steps of the client until the call is over, or its state is the one that is wanted. */
static void step_until(struct world *w, enum http_transfer_state wanted)
{
	const struct http_transfer *transfer = http_client_transfer(w->client);
	struct pollfd ready;

	http_client_step(w->client);
	while (transfer->state != wanted && http_transfer_is_under_way(transfer)) {
		http_client_wait(w->client, &ready);
		poll(&ready, 1, 1000); /* the call itself has a time limit */
		http_client_step(w->client);
	}
	assert_int_equal(transfer->state, wanted);
}

static void begin(struct world *w, const struct http_call *call)
{
	assert_int_equal(http_client_begin(w->client, call), 0);
	step_until(w, HTTP_TRANSFER_TALK);
}

/* ---- dialogues ---- */

static void a_reply_over_tcp_comes_in_pieces_and_the_connection_is_kept(void **state)
{
	struct world *w = *state;

	listen_tcp(w);
	open_client(w);
	begin(w, &reading);
	hear(w, "GET /a HTTP/1.1\r\n");
	say(w, "HTTP/1.1 200 OK\r\nContent-Le");
	http_client_step(w->client);
	say(w, "ngth: 2\r\n\r\n{}");
	step_until(w, HTTP_TRANSFER_DONE);
	assert_true(http_transfer_keeps(http_client_transfer(w->client)));
	begin(w, &reading); /* over the same connection: nobody accepts another one */
	hear(w, "GET /a HTTP/1.1\r\n");
	say(w, OK);
	step_until(w, HTTP_TRANSFER_DONE);
	assert_int_equal(http_client_transfer(w->client)->fault, 0);
}

static void a_finished_call_waits_for_nothing(void **state)
{
	struct world *w = *state;
	struct pollfd ready;

	listen_local(w);
	open_client(w);
	assert_true(http_client_wait(w->client, &ready) == INT64_MAX);
	assert_int_equal(ready.fd, -1);
	http_client_step(w->client);
	begin(w, &reading);
	hear(w, "GET /a HTTP/1.1\r\n");
	say(w, OK);
	step_until(w, HTTP_TRANSFER_DONE);
	http_client_step(w->client);
	assert_true(http_client_wait(w->client, &ready) == INT64_MAX);
	assert_int_equal(http_client_more(w->client, 0), 0); /* that was no stream */
}

static void a_server_that_closes_in_the_middle_broke_the_call(void **state)
{
	struct world *w = *state;

	listen_local(w);
	open_client(w);
	begin(w, &reading);
	hear(w, "GET /a HTTP/1.1\r\n");
	say(w, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{");
	hang_up(w);
	step_until(w, HTTP_TRANSFER_DONE);
	assert_int_equal(http_client_transfer(w->client)->fault, -EPROTO);
}

static void a_kept_connection_that_was_closed_is_replaced(void **state)
{
	struct world *w = *state;

	listen_local(w);
	open_client(w);
	begin(w, &reading);
	hear(w, "GET /a HTTP/1.1\r\n");
	say(w, OK);
	step_until(w, HTTP_TRANSFER_DONE);
	hang_up(w);
	assert_int_equal(http_client_begin(w->client, &reading), 0);
	step_until(w, HTTP_TRANSFER_TALK); /* the first one is broken, the second one is sent */
	hear(w, "GET /a HTTP/1.1\r\n");
	say(w, OK);
	step_until(w, HTTP_TRANSFER_DONE);
	assert_int_equal(http_client_transfer(w->client)->fault, 0);
}

static void what_a_server_says_before_it_has_read_all_is_heard(void **state)
{
	struct world *w = *state;
	char *body = calloc(1, LARGE);
	struct http_call call = reading;
	struct pollfd ready;

	listen_local(w);
	open_client(w);
	call.method = HTTP_METHOD_POST;
	call.body = (struct span){body, LARGE};
	begin(w, &call);
	free(body);
	http_client_wait(w->client, &ready);
	assert_int_equal(ready.events, POLLIN | POLLOUT); /* not all of it is sent */
	hear(w, "POST /a HTTP/1.1\r\n");
	say(w, "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
	hang_up(w);
	step_until(w, HTTP_TRANSFER_DONE);
	assert_int_equal(http_client_transfer(w->client)->fault, 0);
	assert_int_equal(http_answer_status(http_client_transfer(w->client)->answer), 413);
}

static void a_stream_is_taken_as_it_comes_until_it_ends(void **state)
{
	struct world *w = *state;

	listen_local(w);
	open_client(w);
	begin(w, &reading);
	hear(w, "GET /a HTTP/1.1\r\n");
	say(w, STREAM);
	step_until(w, HTTP_TRANSFER_STREAM);
	assert_int_equal(http_client_more(w->client, 0), -ETIMEDOUT);
	say(w, "1\r\na\r\n");
	assert_int_equal(http_client_more(w->client, 60000), 1);
	http_answer_take(http_client_transfer(w->client)->answer, 1);
	say(w, "1\r\nb\r\n0\r\n\r\n"); /* the last of it comes with its end */
	assert_int_equal(http_client_more(w->client, 60000), 1);
	assert_int_equal(http_client_more(w->client, 60000), 0);
}

static void a_stream_that_ends_or_breaks_says_so(void **state)
{
	struct world *w = *state;

	listen_local(w);
	open_client(w);
	begin(w, &reading);
	hear(w, "GET /a HTTP/1.1\r\n");
	say(w, STREAM);
	step_until(w, HTTP_TRANSFER_STREAM);
	say(w, "0\r\n\r\n");
	assert_int_equal(http_client_more(w->client, 60000), 0);
	hang_up(w);
	begin(w, &reading);
	hear(w, "GET /a HTTP/1.1\r\n");
	say(w, STREAM);
	step_until(w, HTTP_TRANSFER_STREAM);
	say(w, "not a chunk\r\n");
	assert_int_equal(http_client_more(w->client, 60000), -EPROTO);
}

static void a_stream_that_was_left_is_not_the_connection_of_the_next_call(void **state)
{
	struct world *w = *state;

	listen_local(w);
	open_client(w);
	begin(w, &reading);
	hear(w, "GET /a HTTP/1.1\r\n");
	say(w, STREAM);
	step_until(w, HTTP_TRANSFER_STREAM);
	begin(w, &reading);
	hang_up(w);
	hear(w, "GET /a HTTP/1.1\r\n");
}

/* ---- servers that are not there ---- */

static void nobody_listens(void **state)
{
	struct world *w = *state;

	listen_tcp(w);
	close(w->listener);
	w->listener = -1;
	open_client(w);
	assert_int_equal(http_client_call(w->client, &reading, &w->answer, &w->reach), -ECONNREFUSED);
	assert_int_equal(w->reach, HTTP_REACH_NOTHING);
	http_client_free(w->client);
	w->address = (struct http_address){.local = true, .path = "/nowhere/at/all"};
	open_client(w);
	assert_int_equal(http_client_call(w->client, &reading, &w->answer, &w->reach), -ENOENT);
}

static void without_a_descriptor_nothing_was_reached(void **state)
{
	struct world *w = *state;
	struct rlimit before, none;

	listen_local(w);
	open_client(w);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	int r = http_client_call(w->client, &reading, &w->answer, &w->reach);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(r, -EMFILE);
	assert_int_equal(w->reach, HTTP_REACH_NOTHING);
}

static void a_request_that_cannot_be_written_is_not_sent(void **state)
{
	struct world *w = *state;
	struct http_call call = reading;

	listen_local(w);
	open_client(w);
	call.token = SPAN("a\nb");
	assert_int_equal(http_client_call(w->client, &call, &w->answer, &w->reach), -EINVAL);
	assert_int_equal(w->reach, HTTP_REACH_NOTHING);
}

/* ---- a client that waits ---- */

/* One request. No assertion stands here: those are for the thread of the test. */
static void *serve(void *context)
{
	struct world *w = context;
	char text[4096] = "";
	size_t len = 0;
	ssize_t got = 1;

	do {
		w->peer = accept(w->listener, NULL, NULL);
	} while (w->peer < 0 && errno != EINVAL); /* until the test shuts the listener down */
	while (got > 0 && !strstr(text, "\r\n\r\n")) {
		struct pollfd ready = {.fd = w->peer, .events = POLLIN};
		got = poll(&ready, 1, HEAR_MS) == 1 ? recv(w->peer, text + len, sizeof text - 1 - len, 0) : 0;
		len += got > 0 ? (size_t)got : 0;
	}
	if (got > 0 && w->reply)
		got = send(w->peer, w->reply, strlen(w->reply), MSG_NOSIGNAL);
	if (got <= 0)
		hang_up(w); /* the client waits for nothing more */
	return NULL;
}

static int call_served(struct world *w, const struct http_call *call, const char *reply)
{
	w->reply = reply;
	assert_int_equal(pthread_create(&w->thread, NULL, serve, w), 0);
	int r = http_client_call(w->client, call, &w->answer, &w->reach);
	shutdown(w->listener, SHUT_RDWR); /* a server whose client never came waits no longer */
	pthread_join(w->thread, NULL);
	return r;
}

static void a_call_waits_for_its_reply(void **state)
{
	struct world *w = *state;

	listen_tcp(w);
	open_client(w);
	assert_int_equal(call_served(w, &reading, OK), 0);
	assert_int_equal(w->reach, HTTP_REACH_REPLY);
	assert_true(span_equal(http_answer_body(w->answer), SPAN("{}")));
}

static void a_reply_that_does_not_come_is_given_up(void **state)
{
	struct world *w = *state;
	struct http_call call = reading;

	listen_local(w);
	open_client(w);
	call.timeout_ms = 20;
	assert_int_equal(call_served(w, &call, NULL), -ETIMEDOUT);
	assert_int_equal(w->reach, HTTP_REACH_UNKNOWN);
}

static void a_call_without_an_end_waits_as_long_as_poll_can(void **state)
{
	struct world *w = *state;
	struct http_call call = reading;

	listen_tcp(w);
	open_client(w);
	call.timeout_ms = INT64_C(1) << 40;
	assert_int_equal(call_served(w, &call, OK), 0);
}

static void a_call_that_began_has_something_to_do_at_once(void **state)
{
	struct world *w = *state;
	struct pollfd ready;

	listen_local(w);
	open_client(w);
	assert_int_equal(http_client_begin(w->client, &reading), 0);
	assert_int_equal(http_client_wait(w->client, &ready), 0);
}

static void a_server_whose_queue_is_full_is_given_up_in_time(void **state)
{
	struct world *w = *state;
	struct http_call call = reading;
	int fillers[8];

	listen_tcp(w);
	assert_int_equal(listen(w->listener, 0), 0);
	struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(w->address.port)};
	for (int i = 0; i < 8; i++) { /* one of them fills the queue, the others wait like the client */
		fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		connect(fillers[i], (struct sockaddr *)&address, sizeof address);
	}
	open_client(w);
	call.timeout_ms = 30;
	assert_int_equal(http_client_call(w->client, &call, &w->answer, &w->reach), -ETIMEDOUT);
	assert_int_equal(w->reach, HTTP_REACH_NOTHING);
	for (int i = 0; i < 8; i++)
		close(fillers[i]);
}

static void a_connection_that_was_reset_broke_the_call(void **state)
{
	struct world *w = *state;
	const struct linger at_once = {.l_onoff = 1};

	listen_tcp(w);
	open_client(w);
	begin(w, &reading);
	hear(w, "GET /a HTTP/1.1\r\n");
	setsockopt(w->peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	hang_up(w);
	step_until(w, HTTP_TRANSFER_DONE);
	assert_int_equal(http_client_transfer(w->client)->fault, -ECONNRESET);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_reply_over_tcp_comes_in_pieces_and_the_connection_is_kept),
		TEST(a_finished_call_waits_for_nothing),
		TEST(a_server_that_closes_in_the_middle_broke_the_call),
		TEST(a_kept_connection_that_was_closed_is_replaced),
		TEST(what_a_server_says_before_it_has_read_all_is_heard),
		TEST(a_stream_is_taken_as_it_comes_until_it_ends),
		TEST(a_stream_that_ends_or_breaks_says_so),
		TEST(a_stream_that_was_left_is_not_the_connection_of_the_next_call),
		TEST(nobody_listens),
		TEST(without_a_descriptor_nothing_was_reached),
		TEST(a_request_that_cannot_be_written_is_not_sent),
		TEST(a_call_waits_for_its_reply),
		TEST(a_reply_that_does_not_come_is_given_up),
		TEST(a_call_without_an_end_waits_as_long_as_poll_can),
		TEST(a_call_that_began_has_something_to_do_at_once),
		TEST(a_server_whose_queue_is_full_is_given_up_in_time),
		TEST(a_connection_that_was_reset_broke_the_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
