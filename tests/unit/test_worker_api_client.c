/*
 * An API client, and a connection that ends when it likes. The server is a socket that is looked at between two turns of the loop.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "worker/api_client.h"

enum { TURNS_MAX = 100000 };

static struct world {
	uv_loop_t loop;
	uv_idle_t idle; /* where a call is made while the loop turns, before it looks at its sockets */
	struct api_client *client;
	char place[64];
	int listener, guest; /* guest -1: nobody is here */
	int requests, answers, fault;
	char body[64]; /* of the last answer */
} world;

/* ---- the server ---- */

/* Whoever knocks is let in; who asks is told how many have asked. */
static void serve(void)
{
	char request[4096], reply[200], body[32];

	if (world.guest < 0)
		world.guest = accept4(world.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (world.guest < 0 || recv(world.guest, request, sizeof request, 0) <= 0)
		return;
	snprintf(body, sizeof body, "{\"n\":%d}", ++world.requests);
	int len = snprintf(
		reply, sizeof reply, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
	assert_int_equal(send(world.guest, reply, (size_t)len, MSG_NOSIGNAL), len);
}

static void hang_up(void)
{
	close(world.guest);
	world.guest = -1;
}

/* ---- the client ---- */

static void on_answer(void *context, int fault, const struct http_answer *answer)
{
	(void)context;
	world.answers++;
	world.fault = fault;
	if (fault == 0)
		snprintf(world.body, sizeof world.body, "%.*s", SPAN_ARGS(http_answer_body(answer)));
}

static void call(void)
{
	struct http_call call = {.method = HTTP_METHOD_POST,
		.target = SPAN("/"),
		.body = SPAN("{}"),
		.may_repeat = true,
		.timeout_ms = 60 * 1000};

	assert_int_equal(api_client_call(world.client, &call, on_answer, NULL), 0);
}

static void on_idle(uv_idle_t *idle)
{
	uv_idle_stop(idle);
	call();
}

static void until_answered(int answers)
{
	for (int i = 0; i < TURNS_MAX && world.answers < answers; i++) {
		uv_run(&world.loop, UV_RUN_NOWAIT);
		serve();
	}
	assert_int_equal(world.answers, answers);
	assert_int_equal(world.fault, 0);
}

static int set_up(void **state)
{
	struct http_answer_limits limits = {.head_bytes_max = 4096, .body_bytes_max = 4096};
	struct http_address address = {.local = true};
	struct sockaddr_un name = {.sun_family = AF_UNIX};

	(void)state;
	world = (struct world){.guest = -1, .place = "/tmp/stint-client-XXXXXX"};
	assert_non_null(mkdtemp(world.place));
	snprintf(name.sun_path, sizeof name.sun_path, "%s/socket", world.place);
	snprintf(address.path, sizeof address.path, "%s", name.sun_path);
	world.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(world.listener, (struct sockaddr *)&name, sizeof name), 0);
	assert_int_equal(listen(world.listener, 4), 0);
	uv_loop_init(&world.loop);
	uv_idle_init(&world.loop, &world.idle);
	world.client = api_client_new(&world.loop, &address, &limits);
	assert_non_null(world.client);
	return 0;
}

static int tear_down(void **state)
{
	char path[80];

	(void)state;
	api_client_free(world.client);
	uv_close((uv_handle_t *)&world.idle, NULL);
	uv_run(&world.loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&world.loop), 0);
	if (world.guest >= 0)
		hang_up();
	close(world.listener);
	snprintf(path, sizeof path, "%s/socket", world.place);
	unlink(path);
	return rmdir(world.place);
}

/* ---- what is expected of it ---- */

static void a_connection_is_kept(void **state)
{
	(void)state;
	call();
	until_answered(1);
	call();
	until_answered(2);
	assert_string_equal(world.body, "{\"n\":2}");
}

static void one_that_was_closed_meanwhile_is_made_anew(void **state)
{
	(void)state;
	call();
	until_answered(1);
	hang_up();
	call();
	until_answered(2);
	assert_string_equal(world.body, "{\"n\":2}");
	assert_int_equal(world.requests, 2);
}

static void what_was_answered_before_is_no_answer_to_what_was_not_sent_yet(void **state)
{
	(void)state;
	call();
	until_answered(1);
	hang_up(); /* the loop sees it after the call was made, and before it is sent */
	uv_idle_start(&world.idle, on_idle);
	until_answered(2);
	assert_string_equal(world.body, "{\"n\":2}");
	assert_int_equal(world.requests, 2);
}

enum { DESCRIPTORS_MAX = 64 };

/* All that there are; how many. */
static int take_descriptors(int fds[DESCRIPTORS_MAX])
{
	int count = 0, fd;

	while (count < DESCRIPTORS_MAX && (fd = dup(world.listener)) >= 0)
		fds[count++] = fd;
	assert_in_range(count, 1, DESCRIPTORS_MAX - 1);
	return count;
}

/* The call goes out while no descriptor is left; how it went, or 0 if nothing was told so far. */
static int call_without_descriptors(void)
{
	struct rlimit before, few;
	int fds[DESCRIPTORS_MAX];

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){.rlim_cur = DESCRIPTORS_MAX, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	int count = take_descriptors(fds);
	call();
	for (int i = 0; i < 100; i++)
		uv_run(&world.loop, UV_RUN_NOWAIT);
	while (count > 0)
		close(fds[--count]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	return world.fault;
}

static void one_with_a_descriptor_in_reserve_connects_when_there_is_no_other(void **state)
{
	(void)state;
	api_client_reserve(world.client);
	for (int answers = 1; answers < 4; answers++) {
		assert_int_equal(call_without_descriptors(), 0);
		until_answered(answers);
		hang_up(); /* the next connection is a new one, with a reserve of its own */
	}
}

static void one_without_is_told_so(void **state)
{
	(void)state;
	assert_int_equal(call_without_descriptors(), -EMFILE);
	assert_int_equal(world.answers, 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(a_connection_is_kept),
		T(one_that_was_closed_meanwhile_is_made_anew),
		T(one_with_a_descriptor_in_reserve_connects_when_there_is_no_other),
		T(one_without_is_told_so),
		T(what_was_answered_before_is_no_answer_to_what_was_not_sent_yet),
	};

	signal(SIGPIPE, SIG_IGN); /* as the supervisor does */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
