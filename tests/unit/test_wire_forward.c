#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/take.h"
#include "wire/http/forward.h"

static const struct http_address server = {.host = "queue.example", .port = 8443, .prefix = "/stint"};

/* The bytes come in pieces of that size. */
static void expect_in(const char *in, const char *expected, size_t piece)
{
	static struct http_forward forward;
	cleanup(buf_done) struct buf out;
	size_t len = strlen(in);

	forward = (struct http_forward){0};
	buf_init(&out, 1 << 20);
	for (size_t at = 0; at < len; at += piece) {
		struct span part = {in + at, len - at < piece ? len - at : piece};
		assert_int_equal(http_forward(&forward, &server, part, &out), 0);
	}
	assert_int_equal(out.len, strlen(expected));
	assert_memory_equal(out.data, expected, out.len);
}

static void expect_forwarded(const char *in, const char *expected)
{
	for (size_t piece = 1; piece < 40; piece++)
		expect_in(in, expected, piece);
	expect_in(in, expected, strlen(in));
}

static void path_and_host_are_those_of_the_server(void **state)
{
	(void)state;
	expect_forwarded("GET /api/tasks?a=b HTTP/1.1\r\nhOST: localhost\r\nAccept: */*\r\n\r\n",
		"GET /stint/api/tasks?a=b HTTP/1.1\r\nHost: queue.example:8443\r\nAccept: */*\r\n\r\n");
}

static void a_body_passes_and_the_next_request_is_one(void **state)
{
	(void)state;
	expect_forwarded(
		"POST /a HTTP/1.1\r\nContent-Length: 19\r\n\r\nGET /x HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n",
		"POST /stint/a HTTP/1.1\r\nHost: queue.example:8443\r\nContent-Length: 19\r\n\r\n"
		"GET /x HTTP/1.1\r\n\r\nGET /stint/b HTTP/1.1\r\nHost: queue.example:8443\r\n\r\n");
}

static void behind_a_body_without_a_length_nothing_is_changed(void **state)
{
	(void)state;
	expect_forwarded(
		"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /b HTTP/1.1\r\n\r\n",
		"POST /stint/a HTTP/1.1\r\nHost: queue.example:8443\r\nTransfer-Encoding: chunked\r\n\r\n"
		"0\r\n\r\nGET /b HTTP/1.1\r\n\r\n");
	expect_forwarded("POST /a HTTP/1.1\r\nContent-Length: 1x\r\n\r\nGET /b HTTP/1.1\r\n\r\n",
		"POST /stint/a HTTP/1.1\r\nHost: queue.example:8443\r\nContent-Length: 1x\r\n\r\n"
		"GET /b HTTP/1.1\r\n\r\n");
}

static void what_is_no_request_passes_for_the_server_to_judge(void **state)
{
	(void)state;
	expect_forwarded("nonsense\r\n\r\n", "nonsense\r\nHost: queue.example:8443\r\n\r\n");
	expect_forwarded("\r\n\r\n", "\r\n\r\n");
	expect_forwarded(
		"OPTIONS * HTTP/1.1\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: queue.example:8443\r\n\r\n");
}

static void a_head_that_does_not_end_passes_as_it_is(void **state)
{
	static char in[HTTP_FORWARD_HEAD_MAX + 100];

	(void)state;
	memset(in, 'x', sizeof in - 1);
	expect_in(in, in, 1000);
	expect_in(in, in, sizeof in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(path_and_host_are_those_of_the_server),
		cmocka_unit_test(a_body_passes_and_the_next_request_is_one),
		cmocka_unit_test(behind_a_body_without_a_length_nothing_is_changed),
		cmocka_unit_test(what_is_no_request_passes_for_the_server_to_judge),
		cmocka_unit_test(a_head_that_does_not_end_passes_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
