#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/take.h"
#include "wire/http/http.h"

#define FIXED "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n"
#define KEEP  FIXED "Connection: keep-alive\r\n\r\n"
#define CLOSE FIXED "Connection: close\r\n\r\n"

static void expect(struct http_reply reply, const char *expected)
{
	cleanup(buf_done) struct buf out;

	buf_init(&out, 4096);
	assert_int_equal(http_put_reply(&out, &reply), 0);
	assert_int_equal(buf_put_byte(&out, 0), 0);
	assert_string_equal(out.data, expected);
}

static void a_reply_has_its_status_length_and_body(void **state)
{
	(void)state;
	expect(
		(struct http_reply){
			.status = 200, .content_type = SPAN("application/json"), .body = SPAN("{}")},
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n" KEEP "{}");
	expect((struct http_reply){.status = 404}, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n" KEEP);
	expect((struct http_reply){.status = 400, .body = SPAN("no"), .close = true},
		"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n" CLOSE "no");
}

static void every_header_is_written_when_it_is_given(void **state)
{
	(void)state;
	expect((struct http_reply){.status = 429,
		       .location = SPAN("/api/tasks/1"),
		       .etag = SPAN("\"7\""),
		       .allow = SPAN("GET, HEAD"),
		       .link = SPAN("</a>; rel=next"),
		       .authenticate = SPAN("Bearer"),
		       .retry_after_s = 9223372036854775807,
		       .event_seq = 42},
		"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\nLocation: /api/tasks/1\r\nETag: \"7\"\r\n"
		"Allow: GET, HEAD\r\nLink: </a>; rel=next\r\nWWW-Authenticate: Bearer\r\n"
		"Retry-After: 9223372036854775807\r\nStint-Seq: 42\r\n" KEEP);
}

static void what_may_be_kept_says_so_and_is_asked_for_again(void **state)
{
	(void)state;
	expect((struct http_reply){.status = 304, .etag = SPAN("\"7\""), .revalidate = true},
		"HTTP/1.1 304 Not Modified\r\nETag: \"7\"\r\nX-Content-Type-Options: nosniff\r\n"
		"Cache-Control: private, no-cache\r\nConnection: keep-alive\r\n\r\n");
}

static void a_head_reply_tells_the_length_and_keeps_the_body(void **state)
{
	(void)state;
	expect((struct http_reply){.status = 200, .body = SPAN("12345"), .head = true},
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n" KEEP);
}

static void replies_without_body_have_no_length(void **state)
{
	(void)state;
	expect((struct http_reply){.status = 204, .body = SPAN("x")}, "HTTP/1.1 204 No Content\r\n" KEEP);
	expect((struct http_reply){.status = 304, .etag = SPAN("\"1\"")},
		"HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n" KEEP);
}

static void a_stream_ends_with_its_connection(void **state)
{
	(void)state;
	expect((struct http_reply){.status = 200,
		       .content_type = SPAN("text/event-stream"),
		       .body = SPAN(": hi\n\n"),
		       .stream = true},
		"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" CLOSE ": hi\n\n");
}

static void a_body_in_chunks_follows_its_head(void **state)
{
	cleanup(buf_done) struct buf out;

	(void)state;
	expect((struct http_reply){.status = 200, .body = SPAN("left out"), .chunked = true},
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" KEEP);
	buf_init(&out, 64);
	assert_int_equal(http_put_chunk(&out, SPAN("0123456789abcdef!")), 0);
	assert_int_equal(http_put_chunk(&out, (struct span){0}), 0);
	assert_true(span_equal(buf_span(&out), SPAN("11\r\n0123456789abcdef!\r\n0\r\n\r\n")));
	size_t before = out.len;
	assert_int_equal(http_put_chunk(&out, SPAN("0123456789abcdef0123456789abcdef")), -E2BIG);
	assert_int_equal(out.len, before);
}

static void every_status_of_ours_has_its_words(void **state)
{
	static const int statuses[] = {200, 201, 202, 204, 304, 400, 401, 403, 404, 405, 408, 409, 410, 412,
		413, 414, 415, 417, 421, 422, 429, 431, 500, 501, 503, 505};

	(void)state;
	for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
		cleanup(buf_done) struct buf out;
		struct http_reply reply = {.status = statuses[i]};
		char number[8];

		buf_init(&out, 4096);
		assert_int_equal(http_put_reply(&out, &reply), 0);
		snprintf(number, sizeof number, " %d ", statuses[i]);
		assert_memory_equal(out.data + 8, number, 5);
		assert_true(out.data[13] >= 'A' && out.data[13] <= 'Z');
	}
	expect((struct http_reply){.status = 299}, "HTTP/1.1 299 \r\nContent-Length: 0\r\n" KEEP);
}

static void control_bytes_never_reach_a_header(void **state)
{
	static const struct span evil[] = {{"a\r\nSet-Cookie: b", 16}, {"a\nb", 3}, {"a\rb", 3}, {"a\0b", 3},
		{"\x7f", 1}, {"\x1b[0m", 4}};

	(void)state;
	for (size_t i = 0; i < sizeof evil / sizeof evil[0]; i++) {
		const struct http_reply replies[] = {
			{.status = 200, .content_type = evil[i]},
			{.status = 200, .location = evil[i]},
			{.status = 200, .etag = evil[i]},
			{.status = 200, .allow = evil[i]},
			{.status = 200, .link = evil[i]},
			{.status = 200, .authenticate = evil[i]},
		};
		for (size_t j = 0; j < sizeof replies / sizeof replies[0]; j++) {
			cleanup(buf_done) struct buf out;
			buf_init(&out, 4096);
			assert_int_equal(buf_put(&out, "before", 6), 0);
			assert_int_equal(http_put_reply(&out, &replies[j]), -EINVAL);
			assert_true(span_equal(buf_span(&out), SPAN("before")));
		}
	}
}

static void a_reply_that_does_not_fit_leaves_nothing_behind(void **state)
{
	struct http_reply reply = {.status = 200, .body = SPAN("0123456789"), .etag = SPAN("\"1\"")};
	cleanup(buf_done) struct buf whole;

	(void)state;
	buf_init(&whole, 4096);
	assert_int_equal(http_put_reply(&whole, &reply), 0);
	size_t room = HTTP_HEAD_BYTES_MAX + reply.etag.len + reply.body.len;
	assert_true(whole.len < room);
	for (size_t max = 0; max <= room; max++) {
		cleanup(buf_done) struct buf out;
		buf_init(&out, max);
		assert_int_equal(http_put_reply(&out, &reply), max < room ? -E2BIG : 0);
		assert_int_equal(out.len, max < room ? 0 : whole.len);
	}
}

static void the_longest_head_has_room(void **state)
{
	struct http_reply reply = {.status = 431,
		.content_type = SPAN("c"),
		.location = SPAN("l"),
		.etag = SPAN("e"),
		.allow = SPAN("a"),
		.link = SPAN("k"),
		.authenticate = SPAN("w"),
		.retry_after_s = INT64_MAX,
		.event_seq = INT64_MAX,
		.revalidate = true,
		.chunked = true};
	cleanup(buf_done) struct buf out;

	(void)state;
	buf_init(&out, 4096);
	assert_int_equal(http_put_reply(&out, &reply), 0);
	/* instead of a coding there may be a length, of which eight digits are written at once */
	assert_true(out.len - 6 + DECIMAL_DIGITS_MAX + 8 <= HTTP_HEAD_BYTES_MAX);
}

static void the_interim_reply_is_one_line(void **state)
{
	cleanup(buf_done) struct buf out;

	(void)state;
	buf_init(&out, 100);
	assert_int_equal(http_put_continue(&out), 0);
	assert_true(span_equal(buf_span(&out), SPAN("HTTP/1.1 100 Continue\r\n\r\n")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reply_has_its_status_length_and_body),
		cmocka_unit_test(every_header_is_written_when_it_is_given),
		cmocka_unit_test(what_may_be_kept_says_so_and_is_asked_for_again),
		cmocka_unit_test(a_head_reply_tells_the_length_and_keeps_the_body),
		cmocka_unit_test(replies_without_body_have_no_length),
		cmocka_unit_test(a_stream_ends_with_its_connection),
		cmocka_unit_test(a_body_in_chunks_follows_its_head),
		cmocka_unit_test(every_status_of_ours_has_its_words),
		cmocka_unit_test(control_bytes_never_reach_a_header),
		cmocka_unit_test(a_reply_that_does_not_fit_leaves_nothing_behind),
		cmocka_unit_test(the_longest_head_has_room),
		cmocka_unit_test(the_interim_reply_is_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
