#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/take.h"
#include "wire/http/answer.h"
#include "wire/http/client.h"
#include "wire/sse.h"

static const struct http_answer_limits limits = {.head_bytes_max = 256, .body_bytes_max = 64};

static int set_up(void **state)
{
	*state = http_answer_new(&limits);
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	http_answer_free(*state);
	return 0;
}

static void expect_body(struct http_answer *answer, const char *body)
{
	struct span said = http_answer_body(answer);

	assert_int_equal(said.len, strlen(body));
	assert_memory_equal(said.data ? said.data : "", body, said.len);
}

static void a_reply_is_read_whole_or_byte_by_byte(void **state)
{
	static const char reply[] =
		"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nLocation: /api/tasks/t-1\r\n"
		"Content-Length: 2\r\n\r\n{}";
	struct http_answer *answer = *state;

	for (size_t step = 1; step <= sizeof reply; step += sizeof reply - 1) {
		http_answer_reset(answer);
		for (size_t at = 0; at < sizeof reply - 1; at += step) {
			size_t left = sizeof reply - 1 - at;
			assert_int_equal(http_answer_feed(answer,
						 (struct span){reply + at, step < left ? step : left}),
				0);
		}
		assert_int_equal(http_answer_phase(answer), HTTP_ANSWER_DONE);
		assert_int_equal(http_answer_status(answer), 201);
		assert_true(http_answer_keeps_alive(answer));
		expect_body(answer, "{}");
		struct span location = http_answer_field(answer, HTTP_ANSWER_LOCATION);
		assert_true(span_equal(location, SPAN("/api/tasks/t-1")));
		assert_null(http_answer_field(answer, HTTP_ANSWER_LINK).data);
	}
}

static void chunks_are_put_together(void **state)
{
	struct http_answer *answer = *state;

	assert_int_equal(
		http_answer_feed(answer,
			SPAN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")),
		0);
	assert_int_equal(http_answer_phase(answer), HTTP_ANSWER_DONE);
	expect_body(answer, "abcde");
}

static void a_reply_without_a_length_ends_with_the_connection(void **state)
{
	struct http_answer *answer = *state;

	assert_int_equal(
		http_answer_feed(answer, SPAN("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc")), 0);
	assert_int_equal(http_answer_phase(answer), HTTP_ANSWER_BODY);
	assert_int_equal(http_answer_end(answer), 0);
	assert_int_equal(http_answer_phase(answer), HTTP_ANSWER_DONE);
	assert_false(http_answer_keeps_alive(answer));
}

static void a_reply_that_is_cut_is_no_reply(void **state)
{
	struct http_answer *answer = *state;

	assert_int_equal(
		http_answer_feed(answer, SPAN("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc")), 0);
	assert_int_equal(http_answer_end(answer), -EPROTO);
	http_answer_reset(answer);
	assert_int_equal(http_answer_feed(answer, SPAN("HTTP/1.1 200 OK\r\nContent-")), 0);
	assert_int_equal(http_answer_end(answer), -EPROTO);
}

static void what_comes_after_the_end_is_refused(void **state)
{
	struct http_answer *answer = *state;

	assert_int_equal(http_answer_feed(answer,
				 SPAN("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\n")),
		-EPROTO);
	http_answer_reset(answer);
	assert_int_equal(http_answer_feed(answer, SPAN("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")), 0);
	assert_int_equal(http_answer_feed(answer, SPAN("x")), -EPROTO);
}

static void what_is_too_large_is_refused(void **state)
{
	struct http_answer *answer = *state;
	char head[600] = "HTTP/1.1 200 OK\r\nX: ";

	memset(head + strlen(head), 'a', 400);
	assert_int_equal(http_answer_feed(answer, (struct span){head, 500}), -E2BIG);
	http_answer_reset(answer);
	memset(head, 'a', sizeof head);
	assert_int_equal(http_answer_feed(answer, SPAN("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")), 0);
	assert_int_equal(http_answer_feed(answer, (struct span){head, 65}), -E2BIG);
}

static void a_stream_is_taken_out_as_it_comes(void **state)
{
	struct http_answer *answer = *state;
	char some[40];

	memset(some, 'a', sizeof some);
	assert_int_equal(
		http_answer_feed(answer, SPAN("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")),
		0);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(http_answer_feed(answer, (struct span){some, sizeof some}), 0);
		assert_int_equal(http_answer_body(answer).len, sizeof some);
		http_answer_take(answer, sizeof some);
	}
	assert_int_equal(http_answer_body(answer).len, 0);
}

#define OK      "HTTP/1.1 200 OK\r\n"
#define CHUNKED OK "Transfer-Encoding: chunked\r\n\r\n"

static void what_is_not_http_is_refused(void **state)
{
	static const char *const texts[] = {"hello\r\n", "HTTP/1.1 abc\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
		"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", "HTTX",
		"HTTP/2.0 200 OK\r\n", "HTTP/1.1 2000 OK\r\n", "HTTP/1.1 20\r\n", "HTTP/1.1 200OK\r\n",
		OK "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		OK "Transfer-Encoding: gzip\r\n\r\n", OK "Content-Length: 1\t\r\n\r\n",
		OK "Content-Length: x\r\n\r\n", OK "no colon\r\n\r\n", OK "a: 1\r\n b\r\n\r\n",
		OK "a: \x01\r\n\r\n", OK "a: 1\rb: 2\r\n\r\n", CHUNKED "x\r\n", CHUNKED "3\r\nabcX\r\n",
		CHUNKED "3\r\nabc\r\n\r\n", CHUNKED "1;=x\r\n", CHUNKED "0\r\nno colon\r\n",
		CHUNKED "0\r\n\r\nx", "HTTP/1.0 100 Continue\r\n\r\n" OK "\r\n",
		"HTTP/1.1 100 Continue\r\nConnection: close\r\n\r\n" OK "\r\n"};
	struct http_answer *answer = *state;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		http_answer_reset(answer);
		assert_int_equal(http_answer_feed(answer, span_of(texts[i])), -EPROTO);
		assert_int_equal(http_answer_feed(answer, SPAN("more")), -EPROTO);
	}
}

static void only_some_replies_leave_the_connection_open(void **state)
{
	static const struct {
		const char *text;
		bool keeps;
	} replies[] = {
		{OK "Content-Length: 0\r\n\r\n", true},
		{OK "Content-Length: 0\r\nConnection: x, Close\r\n\r\n", false},
		{"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", false},
		{"HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n", true},
		{"HTTP/1.1 304\r\nContent-Length: 7\r\n\r\n", true},
		{CHUNKED "1;a=b\r\nx\r\n0\r\nConnection: close\r\n\r\n", true},
	};
	struct http_answer *answer = *state;

	for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
		http_answer_reset(answer);
		assert_int_equal(http_answer_feed(answer, span_of(replies[i].text)), 0);
		assert_int_equal(http_answer_phase(answer), HTTP_ANSWER_DONE);
		assert_int_equal(http_answer_keeps_alive(answer), replies[i].keeps);
	}
}

static void a_word_in_between_is_passed_over(void **state)
{
	struct http_answer *answer = *state;

	assert_int_equal(
		http_answer_feed(answer,
			SPAN("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n")),
		0);
	assert_int_equal(http_answer_phase(answer), HTTP_ANSWER_DONE);
	assert_int_equal(http_answer_status(answer), 204);
}

/* ---- server-sent events ---- */

static int note_event(void *context, const struct sse_event *event)
{
	return buf_printf(context, "[%.*s|%.*s|%.*s]", SPAN_ARGS(event->id), SPAN_ARGS(event->type),
		SPAN_ARGS(event->data));
}

static void expect_events(const char *stream, const char *events)
{
	struct sse sse;
	struct buf told;

	for (size_t step = 1; step < 8; step += 3) {
		sse_init(&sse, 1000);
		buf_init(&told, 1000);
		for (size_t at = 0; at < strlen(stream); at += step) {
			size_t left = strlen(stream) - at;
			assert_int_equal(sse_feed(&sse, (struct span){stream + at, step < left ? step : left},
						 note_event, &told),
				0);
		}
		assert_int_equal(told.len, strlen(events));
		assert_memory_equal(told.data ? told.data : "", events, told.len);
		sse_done(&sse);
		buf_done(&told);
	}
}

static void events_come_out_of_a_stream(void **state)
{
	(void)state;
	expect_events("retry: 2000\n\nid: 7\nevent: task.created\ndata: {\"a\":1}\n\n",
		"[7|task.created|{\"a\":1}]");
	expect_events(":\n\nid: 1\r\ndata:x\r\ndata: y\r\n\r\ndata: z\n\n", "[1||x\ny][1||z]");
	expect_events("data: cut off\n", "");
	expect_events("\n\n\n", "");
}

static void the_id_of_an_event_that_was_cut_off_is_not_where_to_go_on(void **state)
{
	cleanup(buf_done) struct buf told = {0};
	struct sse sse;

	(void)state;
	buf_init(&told, 1000);
	sse_init(&sse, 1000);
	assert_int_equal(
		sse_feed(&sse, SPAN("id: 7\ndata: a\n\nid: 8\nevent: b\ndata: {"), note_event, &told), 0);
	assert_true(span_equal(buf_span(&sse.id), SPAN("7")));
	sse_restart(&sse);
	assert_true(span_equal(buf_span(&sse.id), SPAN("7")));
	assert_int_equal(sse_feed(&sse, SPAN("data: c\n\nid: 8\ndata: b\n\n"), note_event, &told), 0);
	assert_true(span_equal(buf_span(&told), SPAN("[7||a][7||c][8||b]")));
	assert_true(span_equal(buf_span(&sse.id), SPAN("8")));
	sse_done(&sse);
}

static void an_event_that_is_too_long_is_refused(void **state)
{
	struct sse sse;

	(void)state;
	sse_init(&sse, 4);
	assert_int_equal(sse_feed(&sse, SPAN("data: long\n\n"), note_event, NULL), -E2BIG);
	sse_done(&sse);
}

/* ---- a server that is there ---- */

/* Takes nobody in, until no more fit into its queue. The directory is the caller's to remove. */
static int crowded_server(char *directory, struct http_address *ret_address)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), others = 0;

	assert_non_null(mkdtemp(directory));
	*ret_address = (struct http_address){.local = true};
	snprintf(ret_address->path, sizeof ret_address->path, "%s/s", directory);
	strcpy(address.sun_path, ret_address->path);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(listener, 0), 0);
	while (others < 10 &&
		connect(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
			(struct sockaddr *)&address, sizeof address) == 0)
		others++;
	assert_int_equal(errno, EAGAIN);
	return listener;
}

static void a_socket_whose_queue_is_full_was_not_reached(void **state)
{
	const struct http_call call = {
		.method = HTTP_METHOD_POST, .target = SPAN("/"), .body = SPAN("{}"), .timeout_ms = 30};
	char directory[] = "/tmp/stint-crowd-XXXXXX";
	struct http_address address;
	struct http_answer *answer;
	enum http_reach reach;

	(void)state;
	int listener = crowded_server(directory, &address);
	struct http_client *client = http_client_new(&address, &limits);
	assert_int_equal(http_client_begin(client, &call), 0);
	http_client_step(client);
	http_client_step(client); /* too soon: it is not asked again yet */
	int r = http_client_call(client, &call, &answer, &reach);
	http_client_free(client);
	close(listener);
	unlink(address.path);
	rmdir(directory);
	assert_int_equal(r, -ETIMEDOUT);
	assert_int_equal(reach, HTTP_REACH_NOTHING);
}

/* ---- addresses ---- */

static void addresses_are_understood(void **state)
{
	struct http_address address;
	const char *complaint;

	(void)state;
	assert_int_equal(http_address_parse("http://127.0.0.1:8787", &address, &complaint), 0);
	assert_string_equal(address.host, "127.0.0.1");
	assert_int_equal(address.port, 8787);
	assert_true(http_address_is_loopback(&address));
	assert_int_equal(http_address_parse("http://[::1]:99/stint/", &address, &complaint), 0);
	assert_string_equal(address.host, "::1");
	assert_string_equal(address.prefix, "/stint");
	assert_true(http_address_is_loopback(&address));
	assert_int_equal(http_address_parse("http://example.org", &address, &complaint), 0);
	assert_int_equal(address.port, 80);
	assert_false(http_address_is_loopback(&address));
	assert_int_equal(http_address_parse("http://127.0.0.1.example.org/", &address, &complaint), 0);
	assert_false(http_address_is_loopback(&address));
	assert_int_equal(http_address_parse("https://example.org/a", &address, &complaint), 0);
	assert_true(address.secure);
	assert_int_equal(address.port, 443);
	assert_int_equal(http_address_parse("unix:/run/stint.sock", &address, &complaint), 0);
	assert_true(address.local);
}

static void what_is_no_address_is_refused_with_a_reason(void **state)
{
	static const char *const texts[] = {"", "8787", "ftp://x", "https:/example.org", "https://",
		"http://", "http://:80", "http://host:", "http://host:0", "http://host:65536",
		"http://host:8x", "http://user@host", "http://[::1", "http://[::1]x", "http://host/a?b",
		"http://ho st", "unix:relative", "unix:"};
	struct http_address address;
	const char *complaint;

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		complaint = NULL;
		assert_int_equal(http_address_parse(texts[i], &address, &complaint), -EINVAL);
		assert_non_null(complaint);
	}
}

static void a_status_line_is_read_to_the_byte(void **state)
{
	static const char *const bad[] = {"HTTP/1./ 200\r\n", "HTTP/1.2 200\r\n", "HTTP/1.1\t200\r\n",
		"HTTP/1.1 099\r\n", "HTTP/1.1 :00\r\n", "HTTP/1.1 2/0\r\n", "HTTP/1.1 20:\r\n", "\n",
		"HTTP/1.1 200\n", "\tHTTP"};
	struct http_answer *answer = *state;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		http_answer_reset(answer);
		assert_int_equal(http_answer_feed(answer, span_of(bad[i])), -EPROTO);
		assert_int_equal(http_answer_end(answer), -EPROTO);
	}
	http_answer_reset(answer);
	assert_int_equal(http_answer_feed(answer, SPAN("")), 0);
	assert_false(http_answer_began(answer));
	assert_int_equal(http_answer_feed(answer, SPAN("HTTP/1.0 999\r\n")), 0);
	assert_int_equal(http_answer_status(answer), 999);
}

static void a_head_that_readers_differ_about_is_refused(void **state)
{
	static const char *const bad[] = {OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
		OK "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n", OK "\tfolded: 1\r\n",
		OK "a b: 1\r\n", OK "a: \x7f\r\n", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n",
		OK "\n", CHUNKED "123456789012345678\r\n"};
	struct http_answer *answer = *state;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		http_answer_reset(answer);
		assert_int_equal(http_answer_feed(answer, span_of(bad[i])), -EPROTO);
	}
}

static void lines_that_are_too_long_are_refused(void **state)
{
	struct http_answer *answer = *state;
	char line[1000];

	memset(line, 'a', sizeof line);
	assert_int_equal(http_answer_feed(answer, SPAN(OK)), 0);
	assert_int_equal(http_answer_feed(answer, (struct span){line, sizeof line}), -E2BIG);
	http_answer_reset(answer);
	assert_int_equal(http_answer_feed(answer, SPAN(CHUNKED "1;")), 0);
	assert_int_equal(http_answer_feed(answer, (struct span){line, 300}), -E2BIG);
	http_answer_reset(answer);
	assert_int_equal(http_answer_feed(answer, SPAN(CHUNKED)), 0);
	int r = 0;
	for (int i = 0; r == 0 && i < 10; i++) /* short ones add up */
		r = http_answer_feed(
			answer, SPAN("1;name=0123456789012345678901234567890123456789\r\nx\r\n"));
	assert_int_equal(r, -E2BIG);
}

static void words_in_between_have_a_limit(void **state)
{
	struct http_answer *answer = *state;
	int count = 0;

	http_answer_free(NULL);
	while (http_answer_feed(answer, SPAN("HTTP/1.1 103 Early\r\n\r\n")) == 0)
		count++;
	assert_int_equal(count, 8);
	assert_int_equal(http_answer_end(answer), -EPROTO);
}

static void an_old_server_keeps_the_connection_only_if_it_says_so(void **state)
{
	static const struct {
		const char *head;
		bool keeps;
	} heads[] = {{"", false}, {"Connection: keep-alive\r\n", true},
		{"Connection: keep-alive, close\r\n", false}};
	struct http_answer *answer = *state;
	char text[100];

	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		http_answer_reset(answer);
		snprintf(text, sizeof text, "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n%s\r\n", heads[i].head);
		assert_false(http_answer_keeps_alive(answer));
		assert_int_equal(http_answer_feed(answer, span_of(text)), 0);
		assert_int_equal(http_answer_keeps_alive(answer), heads[i].keeps);
		assert_int_equal(http_answer_end(answer), 0);
	}
}

static void a_body_is_taken_out_piece_by_piece(void **state)
{
	struct http_answer *answer = *state;

	assert_int_equal(http_answer_feed(answer, SPAN(OK "\r\nabc")), 0);
	http_answer_take(answer, 1);
	expect_body(answer, "bc");
	http_answer_take(answer, 2);
	expect_body(answer, "");
	assert_int_equal(http_answer_feed(answer, SPAN("d")), 0);
	assert_int_equal(http_answer_end(answer), 0); /* by the end of the connection, which is not kept */
	assert_false(http_answer_keeps_alive(answer));
	expect_body(answer, "d");
}

static void an_id_with_a_zero_in_it_is_passed_over(void **state)
{
	cleanup(buf_done) struct buf told = {0};
	struct sse sse;

	(void)state;
	buf_init(&told, 1000);
	sse_init(&sse, 1000);
	assert_int_equal(
		sse_feed(&sse, SPAN("id: 7\ndata: a\n\nid: 8\0\ndata: b\n\nid\ndata\n\n"), note_event, &told),
		0);
	assert_true(span_equal(buf_span(&told), SPAN("[7||a][7||b][||]")));
	sse_done(&sse);
}

static void addresses_have_limits(void **state)
{
	static const char *const bad[] = {"http://host:123456", "http://host:8/", "http://host:/80",
		"http://ho\x7fst", "http://host/a b", "http://host/\x7f", "http://host/a#b",
		"http://host:8:", "http://host:8-"};
	struct http_address address;
	const char *complaint;
	char text[600] = "http://";

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(http_address_parse(bad[i], &address, &complaint), i == 1 ? 0 : -EINVAL);
	memset(text + 7, 'h', 256);
	assert_int_equal(http_address_parse(text, &address, &complaint), -EINVAL);
	text[7 + 255] = 0;
	assert_int_equal(http_address_parse(text, &address, &complaint), 0);
	memset(text, '/', sizeof text - 1);
	memcpy(text, "http://h/", 9);
	memset(text + 9, 'p', 255);
	assert_int_equal(http_address_parse(text, &address, &complaint), -EINVAL);
	memcpy(text, "unix:/", 6);
	assert_int_equal(http_address_parse(text, &address, &complaint), -EINVAL);
}

static void only_this_machine_is_loopback(void **state)
{
	struct http_address address = {.host = "LocalHost"};

	(void)state;
	assert_true(http_address_is_loopback(&address));
	strcpy(address.host, "::2");
	assert_false(http_address_is_loopback(&address));
	strcpy(address.host, "1::1");
	assert_false(http_address_is_loopback(&address));
	strcpy(address.host, "0:1::1");
	assert_false(http_address_is_loopback(&address));
	strcpy(address.host, "0:0:1::1");
	assert_false(http_address_is_loopback(&address));
	strcpy(address.host, "::1:0:1");
	assert_false(http_address_is_loopback(&address));
	strcpy(address.host, "128.0.0.1");
	assert_false(http_address_is_loopback(&address));
	address.local = true;
	assert_true(http_address_is_loopback(&address));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_reply_is_read_whole_or_byte_by_byte, set_up, tear_down),
		cmocka_unit_test_setup_teardown(chunks_are_put_together, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_reply_without_a_length_ends_with_the_connection, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_reply_that_is_cut_is_no_reply, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_comes_after_the_end_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_too_large_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_stream_is_taken_out_as_it_comes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_not_http_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			only_some_replies_leave_the_connection_open, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_word_in_between_is_passed_over, set_up, tear_down),
		cmocka_unit_test(events_come_out_of_a_stream),
		cmocka_unit_test(the_id_of_an_event_that_was_cut_off_is_not_where_to_go_on),
		cmocka_unit_test(an_event_that_is_too_long_is_refused),
		cmocka_unit_test(a_socket_whose_queue_is_full_was_not_reached),
		cmocka_unit_test(addresses_are_understood),
		cmocka_unit_test(what_is_no_address_is_refused_with_a_reason),
		cmocka_unit_test_setup_teardown(a_status_line_is_read_to_the_byte, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_head_that_readers_differ_about_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lines_that_are_too_long_are_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(words_in_between_have_a_limit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			an_old_server_keeps_the_connection_only_if_it_says_so, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_body_is_taken_out_piece_by_piece, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_id_with_a_zero_in_it_is_passed_over, set_up, tear_down),
		cmocka_unit_test_setup_teardown(addresses_have_limits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(only_this_machine_is_loopback, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
