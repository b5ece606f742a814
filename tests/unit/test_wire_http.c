/* What is understood: the client's bytes on the left, what the server made of them on the right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/take.h"
#include "fuzz/http_dialogue.h"
#include "wire/http/http.h"

CLEANUP_AT(struct http_input, http_input_free);

#define TEXT_MAX ((size_t)8 << 20)
#define H        "Host: h\r\n"

static struct http_limits limits;

static int set_limits(void **state)
{
	(void)state;
	limits = http_limits_default();
	return 0;
}

static void expect_in_pieces(struct span bytes, const char *expected, struct http_pieces pieces)
{
	cleanup(buf_done) struct buf text;

	buf_init(&text, TEXT_MAX);
	http_dialogue(&limits, bytes, pieces, &text);
	assert_int_equal(buf_put_byte(&text, 0), 0);
	if (strcmp(text.data, expected) != 0)
		print_message("first piece %zu, then %zu\n", pieces.first, pieces.each);
	assert_string_equal(text.data, expected);
}

/* In one piece, cut in two at every place, and byte by byte: always the same. */
static void expect(struct span bytes, const char *expected)
{
	expect_in_pieces(bytes, expected, (struct http_pieces){0});
	for (size_t cut = 1; cut < bytes.len; cut++)
		expect_in_pieces(bytes, expected, (struct http_pieces){.first = cut});
	expect_in_pieces(bytes, expected, (struct http_pieces){.each = 1});
}

#define EXPECT(bytes, expected) expect(SPAN(bytes), expected)

/* ---- requests ---- */

static void a_get_is_a_path_a_query_and_a_host(void **state)
{
	(void)state;
	EXPECT("GET /api/tasks?a=1&b=%20 HTTP/1.1\r\nHost: localhost:8080\r\n\r\n",
		"GET /api/tasks?a=1&b=%20 host=localhost:8080 keep\nMORE\n");
	EXPECT("GET / HTTP/1.1\r\n" H "\r\n", "GET / host=h keep\nMORE\n");
	EXPECT("GET /? HTTP/1.1\r\n" H "\r\n", "GET /? host=h keep\nMORE\n");
	EXPECT("GET /a?b?c HTTP/1.1\r\n" H "\r\n", "GET /a?b?c host=h keep\nMORE\n");
	EXPECT("GET //a HTTP/1.1\r\n" H "\r\n", "GET //a host=h keep\nMORE\n");
}

static void every_method_of_ours_is_known(void **state)
{
	(void)state;
	EXPECT("HEAD / HTTP/1.1\r\n" H "\r\n", "HEAD / host=h keep\nMORE\n");
	EXPECT("POST / HTTP/1.1\r\n" H "\r\n", "POST / host=h keep\nMORE\n");
	EXPECT("PUT / HTTP/1.1\r\n" H "\r\n", "PUT / host=h keep\nMORE\n");
	EXPECT("PATCH / HTTP/1.1\r\n" H "\r\n", "PATCH / host=h keep\nMORE\n");
	EXPECT("DELETE / HTTP/1.1\r\n" H "\r\n", "DELETE / host=h keep\nMORE\n");
	EXPECT("OPTIONS / HTTP/1.1\r\n" H "\r\n", "OTHER / host=h keep\nMORE\n");
	EXPECT("TRACE / HTTP/1.1\r\n" H "Content-Length: 1\r\n\r\na", "OTHER / host=h body=a keep\nMORE\n");
	EXPECT("TRACE / HTTP/1.1\r\n" H "\r\n", "OTHER / host=h keep\nMORE\n");
}

static void header_names_have_no_case_and_values_no_blanks_around(void **state)
{
	(void)state;
	EXPECT("GET / HTTP/1.1\r\nhOsT:h\r\nAUTHORIZATION: \t Bearer x \t\r\nif-match:\"3\"\r\nIf-None-Match: \"4\"\r\n\r\n",
		"GET / host=h authorization=Bearer x if-match=\"3\" if-none-match=\"4\" keep\nMORE\n");
	EXPECT("GET / HTTP/1.1\r\n" H "Accept: a\r\nLast-Event-ID: 7\r\nSec-Fetch-Site: none\r\n\r\n",
		"GET / host=h accept=a site=none last=7 keep\nMORE\n");
	EXPECT("GET / HTTP/1.1\r\n" H
	       "Idempotency-Key: k\r\nOrigin: null\r\nX-Other: 1\r\nX-Other: 2\r\n\r\n",
		"GET / host=h origin=null key=k keep\nMORE\n");
}

static void an_empty_header_is_not_an_absent_one(void **state)
{
	(void)state;
	EXPECT("GET / HTTP/1.1\r\n" H "Origin:\r\n\r\n", "GET / host=h origin= keep\nMORE\n");
	EXPECT("GET / HTTP/1.1\r\n" H "Origin: \t \r\n\r\n", "GET / host=h origin= keep\nMORE\n");
	EXPECT("GET / HTTP/1.1\r\nHost:\r\n\r\n", "GET / host= keep\nMORE\n");
}

static void of_a_list_in_several_lines_the_first_is_kept(void **state)
{
	(void)state;
	EXPECT("GET / HTTP/1.1\r\n" H "Accept: a\r\nAccept: b\r\n\r\n", "GET / host=h accept=a keep\nMORE\n");
}

static void bytes_above_ascii_are_text_in_a_value(void **state)
{
	(void)state;
	EXPECT("GET / HTTP/1.1\r\n" H "Idempotency-Key: gr\xc3\xbc\xc3\x9f\r\n\r\n",
		"GET / host=h key=gr\xc3\xbc\xc3\x9f keep\nMORE\n");
}

static void the_connection_stays_as_version_and_header_say(void **state)
{
	(void)state;
	EXPECT("GET / HTTP/1.1\r\n" H "Connection: close\r\n\r\n", "GET / host=h close\nMORE\n");
	EXPECT("GET / HTTP/1.1\r\n" H "Connection: Keep-Alive, CLOSE\r\n\r\n", "GET / host=h close\nMORE\n");
	EXPECT("GET / HTTP/1.1\r\n" H "Connection: TE\r\nConnection: ,close ,\r\n\r\n",
		"GET / host=h close\nMORE\n");
	EXPECT("GET / HTTP/1.1\r\n" H "Connection: closed\r\n\r\n", "GET / host=h keep\nMORE\n");
	EXPECT("GET / HTTP/1.0\r\n" H "\r\n", "GET / host=h close\nMORE\n");
	EXPECT("GET / HTTP/1.0\r\n" H "Connection: keep-alive\r\n\r\n", "GET / host=h keep\nMORE\n");
}

static void one_empty_line_before_a_request_is_forgiven(void **state)
{
	(void)state;
	EXPECT("\r\nGET / HTTP/1.1\r\n" H "\r\n\r\nGET /b HTTP/1.1\r\n" H "\r\n",
		"GET / host=h keep\nGET /b host=h keep\nMORE\n");
	EXPECT("GET / HTTP/1.1\r\n" H "\r\n\r\n", "GET / host=h keep\nMORE\n");
}

/* ---- bodies ---- */

static void a_body_is_as_long_as_announced(void **state)
{
	(void)state;
	EXPECT("POST / HTTP/1.1\r\n" H
	       "Content-Type: application/json\r\nContent-Length: 8\r\n\r\n{\"a\":\r\n}",
		"POST / host=h type=application/json body={\"a\":\r\n} keep\nMORE\n");
	EXPECT("POST / HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n", "POST / host=h keep\nMORE\n");
	EXPECT("POST / HTTP/1.1\r\n" H "Content-Length: 0003 \r\n\r\nabc",
		"POST / host=h body=abc keep\nMORE\n");
	EXPECT("GET / HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\nab", "GET / host=h body=ab keep\nMORE\n");
	EXPECT("POST / HTTP/1.1\r\n" H "Content-Length: 4\r\n\r\nabc", "AMID\n");
}

#define CHUNKED "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"

static void chunks_are_put_together(void **state)
{
	(void)state;
	EXPECT(CHUNKED "3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n",
		"POST / host=h body=abc0123456789 keep\nMORE\n");
	EXPECT(CHUNKED "0\r\n\r\n", "POST / host=h keep\nMORE\n");
	EXPECT(CHUNKED "02;a=b;c=\"d\"\r\n\r\n\r\n1\r\nx\r\n00\r\n\r\n",
		"POST / host=h body=\r\nx keep\nMORE\n");
	EXPECT("POST / HTTP/1.1\r\n" H "Transfer-Encoding:  CHUNKED \r\n\r\n1\r\na\r\n0\r\n\r\n",
		"POST / host=h body=a keep\nMORE\n");
	EXPECT(CHUNKED "1;a=\"b\\\"c; d\";e\r\nx\r\n0\r\n\r\n", "POST / host=h body=x keep\nMORE\n");
	EXPECT(CHUNKED "3\r\nabc\r\n", "AMID\n");
	EXPECT(CHUNKED "3\r\nabc\r\n0\r\n", "AMID\n");
}

static void trailers_change_nothing(void **state)
{
	(void)state;
	EXPECT(CHUNKED "1\r\na\r\n0\r\nExpires: never\r\nAuthorization: me\r\nConnection: close\r\n\r\n",
		"POST / host=h body=a keep\nMORE\n");
	EXPECT(CHUNKED "1\r\na\r\n0\r\nX: y\r\n\r\nGET /b HTTP/1.1\r\n" H "\r\n",
		"POST / host=h body=a keep\nGET /b host=h keep\nMORE\n");
}

/* ---- one after the other ---- */

static void pipelined_requests_come_out_one_by_one(void **state)
{
	(void)state;
	EXPECT("POST /a HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc"
	       "GET /b HTTP/1.1\r\n" H "\r\n"
	       "PUT /c HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
	       "GET /d HTTP/1.1\r\n",
		"POST /a host=h body=abc keep\nGET /b host=h keep\nPUT /c host=h body=x keep\nAMID\n");
}

static void nothing_is_read_after_a_connection_is_to_close(void **state)
{
	(void)state;
	EXPECT("GET /a HTTP/1.1\r\n" H "Connection: close\r\n\r\nGET /b HTTP/1.1\r\n" H "\r\n",
		"GET /a host=h close\nMORE\n");
	EXPECT("GET /a HTTP/1.0\r\n" H "\r\n\x01\x02nonsense", "GET /a host=h close\nMORE\n");
}

static void a_request_before_a_bad_one_is_served(void **state)
{
	(void)state;
	EXPECT("GET /a HTTP/1.1\r\n" H "\r\nGET /b HTTP/1.1\r\n\r\n", "GET /a host=h keep\nBAD 400\n");
}

static void a_request_can_be_asked_for_again_while_more_is_read(void **state)
{
	cleanup(http_input_free_at) struct http_input *input = http_input_new(&limits);
	struct http_request request;
	struct http_complaint complaint;
	struct span bytes = SPAN(CHUNKED "1\r\na\r\n1\r\nb\r\n0\r\n\r\nGET /next HTTP/1.1\r\n" H "\r\n");
	char *at;
	size_t len;

	(void)state;
	for (size_t i = 0; i < 50000; i++) { /* many times what the first buffer holds */
		assert_int_equal(http_input_room(input, &at, &len), 0);
		*at = bytes.data[i < bytes.len ? i : 0];
		http_input_filled(input, 1);
		if (i < 100)
			http_input_next(input, &request, &complaint);
	}
	assert_int_equal(http_input_next(input, &request, &complaint), HTTP_READY);
	assert_true(span_equal(request.body, SPAN("ab")));
	http_input_drop(input);
	assert_int_equal(http_input_next(input, &request, &complaint), HTTP_READY);
	assert_true(span_equal(request.path, SPAN("/next")));
}

static void room_ends_when_nobody_takes_requests_out(void **state)
{
	cleanup(http_input_free_at) struct http_input *input = http_input_new(&limits);
	size_t sum = 0;
	char *at;
	size_t len;
	int r;

	(void)state;
	while ((r = http_input_room(input, &at, &len)) == 0) {
		memset(at, 'x', len);
		http_input_filled(input, len);
		sum += len;
	}
	assert_int_equal(r, -ENOBUFS);
	assert_true(sum >= limits.body_bytes_max + limits.head_bytes_max);
	assert_true(sum < 2 * limits.body_bytes_max);
}

static void an_input_at_rest_starts_again(void **state)
{
	cleanup(http_input_free_at) struct http_input *input = http_input_new(&limits);
	struct http_request request;
	struct http_complaint complaint;
	struct span bytes = SPAN("GET / HTTP/1.1\r\n" H "\r\n");
	char *at;
	size_t len;

	(void)state;
	for (int i = 0; i < 3; i++) {
		http_input_rest(input);
		assert_false(http_input_is_amid(input));
		assert_int_equal(http_input_room(input, &at, &len), 0);
		memcpy(at, bytes.data, bytes.len);
		http_input_filled(input, bytes.len);
		assert_true(http_input_is_amid(input));
		assert_int_equal(http_input_next(input, &request, &complaint), HTTP_READY);
		http_input_rest(input); /* not yet: the request lies in it */
		assert_true(span_equal(request.path, SPAN("/")));
		http_input_drop(input);
	}
}

static void the_head_and_the_body_of_a_request_are_told_apart(void **state)
{
	cleanup(http_input_free_at) struct http_input *input = http_input_new(&limits);
	static const struct {
		const char *bytes;
		bool in_body;
	} steps[] = {{"POST / HTTP/1.1\r\n" H, false}, {"Content-Length: 2\r\n\r\n", true}, {"a", true},
		{"b", false}};
	struct http_request request;
	struct http_complaint complaint;
	char *at;
	size_t len;

	(void)state;
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		assert_int_equal(http_input_room(input, &at, &len), 0);
		memcpy(at, steps[i].bytes, strlen(steps[i].bytes));
		http_input_filled(input, strlen(steps[i].bytes));
		http_input_next(input, &request, &complaint);
		assert_int_equal(http_input_is_in_body(input), steps[i].in_body);
	}
	assert_true(span_equal(request.body, SPAN("ab")));
}

/* ---- 100 Continue ---- */

static enum http_input_status hear(struct http_input *input, struct span bytes)
{
	struct http_request request;
	struct http_complaint complaint;
	char *at;
	size_t len;

	assert_int_equal(http_input_room(input, &at, &len), 0);
	assert_true(len >= bytes.len);
	memcpy(at, bytes.data, bytes.len);
	http_input_filled(input, bytes.len);
	return http_input_next(input, &request, &complaint);
}

#define EXPECTING "POST / HTTP/1.1\r\n" H "Expect: 100-Continue\r\n"

static void a_client_that_waits_is_told_once_to_continue(void **state)
{
	cleanup(http_input_free_at) struct http_input *input = http_input_new(&limits);

	(void)state;
	assert_int_equal(hear(input, SPAN(EXPECTING "Content-Length: 2\r\n\r")), HTTP_MORE);
	assert_int_equal(hear(input, SPAN("\n")), HTTP_CONTINUE);
	assert_int_equal(hear(input, SPAN("")), HTTP_MORE);
	assert_int_equal(hear(input, SPAN("a")), HTTP_MORE);
	assert_int_equal(hear(input, SPAN("b")), HTTP_READY);
	http_input_drop(input);
	assert_int_equal(hear(input, SPAN(EXPECTING "Transfer-Encoding: chunked\r\n\r\n")), HTTP_CONTINUE);
	assert_int_equal(hear(input, SPAN("0\r\n\r\n")), HTTP_READY);
}

static void a_client_that_does_not_wait_is_not_told(void **state)
{
	cleanup(http_input_free_at) struct http_input *input = http_input_new(&limits);

	(void)state;
	assert_int_equal(hear(input, SPAN(EXPECTING "Content-Length: 2\r\n\r\na")), HTTP_MORE);
	assert_int_equal(hear(input, SPAN("b")), HTTP_READY);
	http_input_drop(input);
	assert_int_equal(hear(input, SPAN(EXPECTING "Content-Length: 0\r\n\r\n")), HTTP_READY);
	http_input_drop(input);
	assert_int_equal(
		hear(input,
			SPAN("POST / HTTP/1.0\r\n" H "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")),
		HTTP_MORE);
}

static void too_large_a_body_is_not_waited_for(void **state)
{
	cleanup(http_input_free_at) struct http_input *input = http_input_new(&limits);

	(void)state;
	assert_int_equal(hear(input, SPAN(EXPECTING "Content-Length: 1048577\r\n\r\n")), HTTP_BAD);
}

/* ---- limits: at and above ---- */

static void a_head_may_be_as_large_as_its_limit(void **state)
{
	struct span bytes = SPAN("GET /abc HTTP/1.1\r\n" H "X-Filler: 0123456789\r\n\r\nGET");

	(void)state;
	limits.head_bytes_max = bytes.len - 3;
	expect(bytes, "GET /abc host=h keep\nAMID\n");
	for (size_t max = 0; max < bytes.len - 3; max++) {
		limits.head_bytes_max = max;
		expect(bytes, max < strlen("GET /abc HTTP/1.1\r\n") ? "BAD 414\n" : "BAD 431\n");
	}
}

static void an_endless_header_is_cut_off_before_its_end(void **state)
{
	cleanup(buf_done) struct buf bytes;

	(void)state;
	buf_init(&bytes, 20000);
	assert_int_equal(buf_printf(&bytes, "GET / HTTP/1.1\r\nX: "), 0);
	while (bytes.len < limits.head_bytes_max - 1)
		assert_int_equal(buf_put_byte(&bytes, 'x'), 0);
	expect_in_pieces(buf_span(&bytes), "AMID\n", (struct http_pieces){0});
	buf_put_byte(&bytes, 'x');
	expect_in_pieces(buf_span(&bytes), "BAD 431\n", (struct http_pieces){0});
	expect_in_pieces(buf_span(&bytes), "BAD 431\n", (struct http_pieces){.each = 1});
}

static void headers_may_be_as_many_as_their_limit(void **state)
{
	(void)state;
	limits.headers_max = 3;
	EXPECT("GET / HTTP/1.1\r\n" H "a: 1\r\na: 2\r\n\r\n", "GET / host=h keep\nMORE\n");
	EXPECT("GET / HTTP/1.1\r\n" H "a: 1\r\na: 2\r\na: 3\r\n\r\n", "BAD 431\n");
	EXPECT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\na: 1\r\n\r\n",
		"POST / host=h keep\nMORE\n");
	EXPECT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\na: 1\r\na: 2\r\n\r\n",
		"BAD 431\n");
}

static void a_url_may_be_as_long_as_its_limit(void **state)
{
	(void)state;
	limits.url_bytes_max = 8;
	EXPECT("DELETE /a?45678 HTTP/1.1\r\n" H "\r\n", "DELETE /a?45678 host=h keep\nMORE\n");
	EXPECT("DELETE /a?456789 HTTP/1.1\r\n" H "\r\n", "BAD 414\n");
	EXPECT("GET /a?4567890123456789012345678901234567890123456789", "BAD 414\n");
	EXPECT("GET /a?4567 90123456789012345678901234567890\x01", "BAD 414\n");
}

static void a_body_may_be_as_large_as_its_limit(void **state)
{
	(void)state;
	limits.body_bytes_max = 5;
	EXPECT("POST / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nabcde",
		"POST / host=h body=abcde keep\nMORE\n");
	EXPECT("POST / HTTP/1.1\r\n" H "Content-Length: 6\r\n\r\n", "BAD 413\n");
	EXPECT("POST / HTTP/1.1\r\n" H "Content-Length: 9999999999999999999\r\n\r\n", "BAD 413\n");
	EXPECT(CHUNKED "5\r\nabcde\r\n0\r\n\r\n", "POST / host=h body=abcde keep\nMORE\n");
	EXPECT(CHUNKED "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "POST / host=h body=abcde keep\nMORE\n");
	EXPECT(CHUNKED "3\r\nabc\r\n3\r\n", "BAD 413\n");
	EXPECT(CHUNKED "6\r\n", "BAD 413\n");
	EXPECT(CHUNKED "ffffffffffffffff\r\n", "BAD 413\n");
}

static void trailers_have_a_limit(void **state)
{
	(void)state;
	limits.head_bytes_max = 70;
	EXPECT(CHUNKED "0\r\na: 0123456789012345678901234567890\r\nb: 012345678901234567890123456\r\n\r\n",
		"POST / host=h keep\nMORE\n");
	EXPECT(CHUNKED "0\r\na: 0123456789012345678901234567890\r\nb: 0123456789012345678901234567\r\n\r\n",
		"BAD 431\n");
}

static void chunk_extensions_have_a_limit(void **state)
{
	(void)state;
	limits.head_bytes_max = 64;
	EXPECT(CHUNKED "1;a=01234567890123456789\r\na\r\n1;a=01234567890123456789\r\nb\r\n0\r\n\r\n",
		"POST / host=h body=ab keep\nMORE\n");
	EXPECT(CHUNKED "1;a=01234567890123456789\r\na\r\n1;a=01234567890123456789\r\nb\r\n"
		       "1;a=01234567890123456789\r\nc\r\n",
		"BAD 400\n");
	EXPECT(CHUNKED "00000000000000001\r\na\r\n0\r\n\r\n", "BAD 400\n");
}

static void tiny_chunks_need_no_more_memory_than_their_body(void **state)
{
	cleanup(buf_done) struct buf bytes, expected;

	(void)state;
	buf_init(&bytes, TEXT_MAX);
	buf_init(&expected, TEXT_MAX);
	buf_printf(&bytes, CHUNKED);
	buf_printf(&expected, "POST / host=h body=");
	for (size_t i = 0; i < limits.body_bytes_max; i++) {
		buf_put(&bytes, "1\r\nx\r\n", 6);
		buf_put_byte(&expected, 'x');
	}
	buf_printf(&bytes, "0\r\n\r\n");
	buf_put(&expected, " keep\nMORE\n", sizeof " keep\nMORE\n");
	expect_in_pieces(buf_span(&bytes), expected.data, (struct http_pieces){0});
	expect_in_pieces(buf_span(&bytes), expected.data, (struct http_pieces){.each = 1000});
}

/* ---- what the server asks of an input ---- */

static void an_input_is_idle_until_something_comes(void **state)
{
	cleanup(http_input_free_at) struct http_input *input = http_input_new(&limits);

	(void)state;
	http_input_free(NULL);
	assert_true(http_input_is_idle(input));
	assert_int_equal(http_input_path(input).len, 0);
	assert_int_equal(hear(input, SPAN("\r\n")), HTTP_MORE); /* the empty line that is forgiven */
	assert_false(http_input_is_idle(input));
	assert_int_equal(hear(input, SPAN("GET /a?b HTTP/1.1\r\n")), HTTP_MORE);
	assert_false(http_input_is_idle(input));
	assert_int_equal(hear(input, SPAN(H "\r\n")), HTTP_READY);
	assert_true(span_equal(http_input_path(input), SPAN("/a")));
	assert_int_equal(http_input_method(input), HTTP_METHOD_GET);
	http_input_rest(input); /* there is a request in it: nothing is given back */
	assert_true(span_equal(http_input_path(input), SPAN("/a")));
	http_input_drop(input);
	assert_true(http_input_is_idle(input));
	assert_int_equal(
		hear(input, SPAN("GET / HTTP/1.1\r\nHost: H\r\nConnection: close\r\n\r\n")), HTTP_READY);
	http_input_drop(input);
	assert_false(http_input_is_idle(input)); /* nothing is read behind the last request */
}

static void a_request_is_taken_out_with_bytes_of_its_own(void **state)
{
	cleanup(http_input_free_at) struct http_input *input = http_input_new(&limits);
	cleanup(arena_done) struct arena arena, tiny;
	struct http_request request;

	(void)state;
	arena_init(&arena, 4096);
	arena_init(&tiny, 16);
	assert_int_equal(
		hear(input, SPAN("QUERY /a HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\nab")), HTTP_READY);
	assert_int_equal(http_input_next(input, NULL, NULL), HTTP_READY);
	assert_int_equal(http_input_take(input, &tiny, &request), -E2BIG);
	assert_int_equal(http_input_take(input, &arena, &request), 0);
	http_input_rest(input);
	assert_int_equal(request.method, HTTP_METHOD_OTHER);
	assert_true(span_equal(request.path, SPAN("/a")));
	assert_true(span_equal(request.body, SPAN("ab")));
	assert_true(http_input_is_idle(input));
}

static void requests_behind_each_other_move_to_the_front(void **state)
{
	static const struct span get = SPAN("GET /a HTTP/1.1\r\n" H "\r\n");
	cleanup(http_input_free_at) struct http_input *input = http_input_new(&limits);

	(void)state;
	assert_int_equal(hear(input, get), HTTP_READY);
	for (int i = 0; i < 1000; i++) { /* a whole one and half of the next, again and again */
		assert_int_equal(hear(input, (struct span){get.data, 9}), HTTP_READY);
		http_input_drop(input);
		assert_int_equal(hear(input, (struct span){get.data + 9, get.len - 9}), HTTP_READY);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_limits)
	const struct CMUnitTest tests[] = {
		TEST(a_get_is_a_path_a_query_and_a_host),
		TEST(every_method_of_ours_is_known),
		TEST(header_names_have_no_case_and_values_no_blanks_around),
		TEST(an_empty_header_is_not_an_absent_one),
		TEST(of_a_list_in_several_lines_the_first_is_kept),
		TEST(bytes_above_ascii_are_text_in_a_value),
		TEST(the_connection_stays_as_version_and_header_say),
		TEST(one_empty_line_before_a_request_is_forgiven),
		TEST(a_body_is_as_long_as_announced),
		TEST(chunks_are_put_together),
		TEST(trailers_change_nothing),
		TEST(pipelined_requests_come_out_one_by_one),
		TEST(nothing_is_read_after_a_connection_is_to_close),
		TEST(a_request_before_a_bad_one_is_served),
		TEST(a_request_can_be_asked_for_again_while_more_is_read),
		TEST(room_ends_when_nobody_takes_requests_out),
		TEST(an_input_at_rest_starts_again),
		TEST(the_head_and_the_body_of_a_request_are_told_apart),
		TEST(a_client_that_waits_is_told_once_to_continue),
		TEST(a_client_that_does_not_wait_is_not_told),
		TEST(too_large_a_body_is_not_waited_for),
		TEST(a_head_may_be_as_large_as_its_limit),
		TEST(an_endless_header_is_cut_off_before_its_end),
		TEST(headers_may_be_as_many_as_their_limit),
		TEST(a_url_may_be_as_long_as_its_limit),
		TEST(a_body_may_be_as_large_as_its_limit),
		TEST(trailers_have_a_limit),
		TEST(chunk_extensions_have_a_limit),
		TEST(tiny_chunks_need_no_more_memory_than_their_body),
		cmocka_unit_test(an_input_is_idle_until_something_comes),
		cmocka_unit_test(a_request_is_taken_out_with_bytes_of_its_own),
		cmocka_unit_test(requests_behind_each_other_move_to_the_front),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
