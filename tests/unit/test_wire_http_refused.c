/*
 * What is refused: requests that are malformed, or that two readers could take for different ones (RFC 9110 and
 * 9112). Each is cut in two at every place and must be answered alike however it comes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/take.h"
#include "fuzz/http_dialogue.h"
#include "wire/http/http.h"

struct vector {
	int status;
	struct span bytes;
};

#define BAD(status, bytes) {status, {bytes, sizeof(bytes) - 1}}

#define H       "Host: h\r\n"
#define GET     "GET / HTTP/1.1\r\n"
#define POST    "POST / HTTP/1.1\r\n" H
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"
#define NEXT    "GET /smuggled HTTP/1.1\r\n" H "\r\n"

// clang-format off
static const struct vector request_lines[] = {
	BAD(400, "GET  / HTTP/1.1\r\n" H "\r\n"),
	BAD(400, "GET /  HTTP/1.1\r\n" H "\r\n"),
	BAD(400, "GET / HTTP/1.1 \r\n" H "\r\n"),
	BAD(400, " GET / HTTP/1.1\r\n" H "\r\n"),
	BAD(400, "GET\t/\tHTTP/1.1\r\n" H "\r\n"),
	BAD(400, "GET /\tHTTP/1.1\r\n" H "\r\n"),
	BAD(400, "GET / HTTP/1.1 x\r\n" H "\r\n"),
	BAD(400, "GET /a b HTTP/1.1\r\n" H "\r\n"),
	BAD(400, "GET /\r\n" H "\r\n"),
	BAD(400, "GET\r\n\r\n"),
	BAD(400, "GET \r\n\r\n"),
	BAD(400, "GET HTTP/1.1\r\n" H "\r\n"),
	BAD(400, "GET  HTTP/1.1\r\n" H "\r\n"),
	BAD(400, "GET / http/1.1\r\n" H "\r\n"),
	BAD(400, "GET / HTTP/1\r\n" H "\r\n"),
	BAD(400, "GET / HTTP/1.\r\n" H "\r\n"),
	BAD(400, "GET / HTTP/1.11\r\n" H "\r\n"),
	BAD(400, "GET / HTTP/01.1\r\n" H "\r\n"),
	BAD(400, "GET / HTTP/1,1\r\n" H "\r\n"),
	BAD(400, "GET / HTTP/a.1\r\n" H "\r\n"),
	BAD(400, "GET / HTTP//.1\r\n" H "\r\n"),
	BAD(400, "GET / HTTP/1.a\r\n" H "\r\n"),
	BAD(400, "GET / HTTP/1./\r\n" H "\r\n"),
	BAD(400, "GET / HTTP /1.1\r\n" H "\r\n"),
	BAD(400, "GET / ICE/1.0\r\n" H "\r\n"),
	BAD(400, "GET / RTSP/1.0\r\n" H "\r\n"),
	BAD(400, "G@T / HTTP/1.1\r\n" H "\r\n"),
	BAD(400, "GET: / HTTP/1.1\r\n" H "\r\n"),
	BAD(400, "\"GET\" / HTTP/1.1\r\n" H "\r\n"),
	BAD(400, "GET /\x80 HTTP/1.1\r\n" H "\r\n"),
	BAD(400, "GET /\xc3\xbc HTTP/1.1\r\n" H "\r\n"),
	BAD(400, "GET /\x7f HTTP/1.1\r\n" H "\r\n"),
	BAD(400, "GET /\0 HTTP/1.1\r\n" H "\r\n"),
	BAD(400, "GET /a#b HTTP/1.1\r\n" H "\r\n"),
	BAD(400, "GET / HTTP/1.1\n" H "\r\n"),
	BAD(400, "GET / HTTP/1.1\r" H "\r\n"),
	BAD(400, "GET / HTTP/1.1\r\r\n" H "\r\n"),
	BAD(400, "GET /\r HTTP/1.1\r\n" H "\r\n"),
	BAD(400, "\nGET / HTTP/1.1\r\n" H "\r\n"),
	BAD(400, "\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n"),
	BAD(400, "\rGET / HTTP/1.1\r\n" H "\r\n"),
	BAD(400, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
	BAD(400, "\0"),
	BAD(400, "{\"jsonrpc\":\"2.0\"}\r\n"),
};

static const struct vector targets[] = {
	BAD(400, "GET http://h/ HTTP/1.1\r\n" H "\r\n"),
	BAD(400, "GET https://other/ HTTP/1.1\r\n" H "\r\n"),
	BAD(400, "OPTIONS * HTTP/1.1\r\n" H "\r\n"),
	BAD(400, "GET * HTTP/1.1\r\n" H "\r\n"),
	BAD(400, "GET h:80 HTTP/1.1\r\n" H "\r\n"),
	BAD(400, "GET a/b HTTP/1.1\r\n" H "\r\n"),
	BAD(400, "GET ?a HTTP/1.1\r\n" H "\r\n"),
	BAD(400, "GET \\ HTTP/1.1\r\n" H "\r\n"),
};

static const struct vector unspoken[] = {
	BAD(505, "GET / HTTP/2.0\r\n" H "\r\n"),
	BAD(505, "GET / HTTP/1.2\r\n" H "\r\n"),
	BAD(505, "GET / HTTP/0.9\r\n" H "\r\n"),
	BAD(505, "GET / HTTP/3.1\r\n" H "\r\n"),
	BAD(505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
	BAD(501, "CONNECT h:443 HTTP/1.1\r\n" H "\r\n"),
	BAD(501, "CONNECT / HTTP/1.1\r\n" H "\r\n"),
	BAD(501, "BREW / HTTP/1.1\r\n" H "\r\n"),
	BAD(501, "get / HTTP/1.1\r\n" H "\r\n"),
	BAD(501, "GETT / HTTP/1.1\r\n" H "\r\n"),
	BAD(501, "GE / HTTP/1.1\r\n" H "\r\n"),
	BAD(501, GET H "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n"),
	BAD(501, GET H "Upgrade: h2c\r\n\r\n"),
	BAD(417, POST "Expect: 200-ok\r\nContent-Length: 1\r\n\r\na"),
	BAD(417, POST "Expect:\r\nContent-Length: 1\r\n\r\na"),
	BAD(417, POST "Expect: 100-continue, x\r\nContent-Length: 1\r\n\r\na"),
};

static const struct vector headers[] = {
	BAD(400, GET H "a : 1\r\n\r\n"),
	BAD(400, GET H "a\t: 1\r\n\r\n"),
	BAD(400, GET "Host : h\r\n\r\n"),
	BAD(400, GET H " a: 1\r\n\r\n"),
	BAD(400, GET " Host: h\r\n\r\n"),
	BAD(400, GET "\tHost: h\r\n\r\n"),
	BAD(400, GET H "a: 1\r\n b\r\n\r\n"),
	BAD(400, GET H "a: 1\r\n\tb\r\n\r\n"),
	BAD(400, GET H "a:\r\n b\r\n\r\n"),
	BAD(400, GET H "a: 1\r\n \r\n\r\n"),
	BAD(400, GET H "a\r\n\r\n"),
	BAD(400, GET H ": 1\r\n\r\n"),
	BAD(400, GET H "a b: 1\r\n\r\n"),
	BAD(400, GET H "a(b): 1\r\n\r\n"),
	BAD(400, GET H "a\"b: 1\r\n\r\n"),
	BAD(400, GET H "\xc3\xbc: 1\r\n\r\n"),
	BAD(400, GET H "a: \0\r\n\r\n"),
	BAD(400, GET H "a: b\x01\r\n\r\n"),
	BAD(400, GET H "a: b\x0b\r\n\r\n"),
	BAD(400, GET H "a: b\x7f\r\n\r\n"),
	BAD(400, GET H "a\0: b\r\n\r\n"),
	BAD(400, GET H "a: \x1b[0m\r\n\r\n"),
	BAD(400, GET H "a: 1\n\r\n"),
	BAD(400, GET H "a: 1\nb: 2\r\n\r\n"),
	BAD(400, GET H "a: 1\rb: 2\r\n\r\n"),
	BAD(400, GET H "a: 1\r\r\n\r\n"),
	BAD(400, GET H "a: 1\r\n\n"),
	BAD(400, GET H "a: 1\r\n\r\r\n"),
	BAD(400, GET H "\n" NEXT),
};

static const struct vector hosts[] = {
	BAD(400, GET "\r\n"),
	BAD(400, GET "X-Host: h\r\n\r\n"),
	BAD(400, GET "Host: a@b\r\n\r\n"),
	BAD(400, GET "Host: a`b\r\n\r\n"),
	BAD(400, GET "Host: a{b\r\n\r\n"),
	BAD(400, GET "Host: a\xc3\xbc\r\n\r\n"),
	BAD(400, "GET / HTTP/1.0\r\n\r\n"),
	BAD(400, GET H H "\r\n"),
	BAD(400, GET H "host: other\r\n\r\n"),
	BAD(400, GET H "Host:\r\n\r\n"),
	BAD(400, GET "Host: a b\r\n\r\n"),
	BAD(400, GET "Host: user@h\r\n\r\n"),
	BAD(400, GET "Host: h/path\r\n\r\n"),
	BAD(400, GET "Host: h?\r\n\r\n"),
	BAD(400, GET "Host: \xc3\xbc\r\n\r\n"),
	BAD(400, GET "Host: \"h\"\r\n\r\n"),
};

static const struct vector doubles[] = {
	BAD(400, GET H "Authorization: a\r\nAuthorization: b\r\n\r\n"),
	BAD(400, GET H "Authorization: a\r\nauthorization: a\r\n\r\n"),
	BAD(400, GET H "Content-Type: a\r\nContent-Type: b\r\n\r\n"),
	BAD(400, GET H "Origin: a\r\nOrigin: b\r\n\r\n"),
	BAD(400, GET H "Sec-Fetch-Site: a\r\nSec-Fetch-Site: b\r\n\r\n"),
	BAD(400, GET H "Idempotency-Key: a\r\nIdempotency-Key: b\r\n\r\n"),
	BAD(400, GET H "If-Match: a\r\nIf-Match: b\r\n\r\n"),
	BAD(400, GET H "Last-Event-ID: 1\r\nLast-Event-ID: 2\r\n\r\n"),
	BAD(400, POST "Expect: 100-continue\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na"),
};

static const struct vector lengths[] = {
	BAD(400, POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nabcde"),
	BAD(400, POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde"),
	BAD(400, POST "Content-Length: 5\r\ncontent-length: 0\r\n\r\n" NEXT),
	BAD(400, POST "Content-Length: 5, 5\r\n\r\nabcde"),
	BAD(400, POST "Content-Length: +5\r\n\r\nabcde"),
	BAD(400, POST "Content-Length: -1\r\n\r\n"),
	BAD(400, POST "Content-Length: 0x5\r\n\r\nabcde"),
	BAD(400, POST "Content-Length: 5a\r\n\r\nabcde"),
	BAD(400, POST "Content-Length: 5 5\r\n\r\nabcde"),
	BAD(400, POST "Content-Length: 5;\r\n\r\nabcde"),
	BAD(400, POST "Content-Length: \"5\"\r\n\r\nabcde"),
	BAD(400, POST "Content-Length: 5.0\r\n\r\nabcde"),
	BAD(400, POST "Content-Length: 1e1\r\n\r\nabcde"),
	BAD(400, POST "Content-Length:\r\n\r\n"),
	BAD(400, POST "Content-Length: \xd9\xa5\r\n\r\nabcde"),
	BAD(400, POST "Content-Length: 18446744073709551616\r\n\r\n"),
	BAD(400, POST "Content-Length: 00000000000000000000\r\n\r\n"),
	BAD(400, POST "Content-Length : 5\r\n\r\nabcde"),
	BAD(400, POST "Content-Length: 5\t\r\n\r\nabcde"),
	BAD(400, POST "Content-Length:\t5\r\n\r\nabcde"),
	BAD(413, POST "Content-Length: 1048577\r\n\r\n"),
	BAD(413, POST "Content-Length: 9223372036854775807\r\n\r\n"),
};

static const struct vector codings[] = {
	BAD(400, POST "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX"),
	BAD(400, POST "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\nX"),
	BAD(400, POST "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n"),
	BAD(400, POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
	BAD(400, POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n"),
	BAD(400, POST "Transfer-Encoding: identity\r\n\r\n"),
	BAD(400, POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
	BAD(400, POST "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n"),
	BAD(400, POST "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
	BAD(400, POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
	BAD(400, POST "Transfer-Encoding: chunkedx\r\n\r\n0\r\n\r\n"),
	BAD(400, POST "Transfer-Encoding: chunked;a=b\r\n\r\n0\r\n\r\n"),
	BAD(400, POST "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n"),
	BAD(400, POST "Transfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n"),
	BAD(400, POST "Transfer-Encoding:\r\n\r\n"),
	BAD(400, POST "Transfer-Encoding: \x0b" "chunked\r\n\r\n0\r\n\r\n"),
	BAD(400, POST "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"),
	BAD(400, POST "Transfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n"),
	BAD(400, POST "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
	BAD(400, POST "Transfer-Encoding\0: chunked\r\n\r\n0\r\n\r\n"),
	BAD(400, "POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
	BAD(400, POST "X: a\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
};

static const struct vector chunks[] = {
	BAD(400, CHUNKED "\r\n\r\n"),
	BAD(400, CHUNKED "x\r\n\r\n"),
	BAD(400, CHUNKED "0x1\r\na\r\n0\r\n\r\n"),
	BAD(400, CHUNKED "-1\r\na\r\n0\r\n\r\n"),
	BAD(400, CHUNKED "+1\r\na\r\n0\r\n\r\n"),
	BAD(400, CHUNKED " 1\r\na\r\n0\r\n\r\n"),
	BAD(400, CHUNKED "1 \r\na\r\n0\r\n\r\n"),
	BAD(400, CHUNKED "1\t\r\na\r\n0\r\n\r\n"),
	BAD(400, CHUNKED "1g\r\na\r\n0\r\n\r\n"),
	BAD(400, CHUNKED "1\na\r\n0\r\n\r\n"),
	BAD(400, CHUNKED "1\ra\r\n0\r\n\r\n"),
	BAD(400, CHUNKED "1\r\nab\r\n0\r\n\r\n"),
	BAD(400, CHUNKED "1\r\na0\r\n\r\n"),
	BAD(400, CHUNKED "1\r\na\n0\r\n\r\n"),
	BAD(400, CHUNKED "1\r\na\r0\r\n\r\n"),
	BAD(400, CHUNKED "2\r\na\r\n0\r\n\r\n"),
	BAD(400, CHUNKED "1;\nx\r\na\r\n0\r\n\r\n"),
	BAD(400, CHUNKED "1;a=\0\r\na\r\n0\r\n\r\n"),
	BAD(400, CHUNKED "1;=x\r\na\r\n0\r\n\r\n"),
	BAD(400, CHUNKED "1;\r\na\r\n0\r\n\r\n"),
	BAD(400, CHUNKED "1;;\r\na\r\n0\r\n\r\n"),
	BAD(400, CHUNKED "1;a=\r\na\r\n0\r\n\r\n"),
	BAD(400, CHUNKED "1;a=\"b\r\na\r\n0\r\n\r\n"),
	BAD(400, CHUNKED "1;a=\"b\\\r\na\r\n0\r\n\r\n"),
	BAD(400, CHUNKED "1;\"a\"\r\na\r\n0\r\n\r\n"),
	BAD(400, CHUNKED "1;a b\r\na\r\n0\r\n\r\n"),
	BAD(400, CHUNKED "1; a\r\na\r\n0\r\n\r\n"),
	BAD(400, CHUNKED "1a=b\r\na\r\n0\r\n\r\n"),
	BAD(400, CHUNKED "10000000000000000\r\n"),
	BAD(413, CHUNKED "fffffffffffffff\r\n"),
	BAD(413, CHUNKED "100001\r\n"),
	BAD(400, CHUNKED "0\r\n\n"),
	BAD(400, CHUNKED "0\r\n\ta: 1\r\n\r\n"),
	BAD(400, CHUNKED "0\r\n a: 1\r\n\r\n"),
	BAD(400, CHUNKED "0\n\r\n"),
	BAD(400, CHUNKED "0\r\na\r\n\r\n"),
	BAD(400, CHUNKED "0\r\n a: b\r\n\r\n"),
	BAD(400, CHUNKED "0\r\na : b\r\n\r\n"),
	BAD(400, CHUNKED "0\r\na: b\r\n c\r\n\r\n"),
	BAD(400, CHUNKED "0\r\na: b\n\r\n"),
	BAD(400, CHUNKED "0\r\nContent-Length: 5\r\n\r\n"),
	BAD(400, CHUNKED "0\r\nTransfer-Encoding: chunked\r\n\r\n"),
	BAD(400, CHUNKED "0\r\nHost: other\r\n\r\n"),
};
// clang-format on

static void check(const struct vector *vector, struct http_pieces pieces)
{
	cleanup(buf_done) struct buf text, expected;
	struct http_limits limits = http_limits_default();

	buf_init(&text, 4096);
	buf_init(&expected, 4096);
	http_dialogue(&limits, vector->bytes, pieces, &text);
	assert_int_equal(buf_printf(&expected, "BAD %d\n", vector->status), 0);
	if (!span_equal(buf_span(&text), buf_span(&expected)))
		print_message("first piece %zu of <<%.*s>>: expected %.*s, got %.*s\n", pieces.first,
			SPAN_ARGS(vector->bytes), SPAN_ARGS(buf_span(&expected)), SPAN_ARGS(buf_span(&text)));
	assert_true(span_equal(buf_span(&text), buf_span(&expected)));
}

static void check_all(const struct vector *vectors, size_t count)
{
	for (const struct vector *vector = vectors; vector < vectors + count; vector++) {
		check(vector, (struct http_pieces){0});
		for (size_t cut = 1; cut < vector->bytes.len; cut++)
			check(vector, (struct http_pieces){.first = cut});
		check(vector, (struct http_pieces){.each = 1});
	}
}

#define REFUSES(name, vectors)                                              \
	static void name(void **state)                                      \
	{                                                                   \
		(void)state;                                                \
		check_all(vectors, sizeof(vectors) / sizeof((vectors)[0])); \
	}

REFUSES(malformed_request_lines_are_refused, request_lines)
REFUSES(only_a_path_is_a_target, targets)
REFUSES(what_is_not_spoken_is_said_so, unspoken)
REFUSES(malformed_headers_are_refused, headers)
REFUSES(there_is_exactly_one_host, hosts)
REFUSES(what_has_one_value_comes_once, doubles)
REFUSES(doubtful_lengths_are_refused, lengths)
REFUSES(doubtful_transfer_codings_are_refused, codings)
REFUSES(malformed_chunks_are_refused, chunks)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(malformed_request_lines_are_refused),
		cmocka_unit_test(only_a_path_is_a_target),
		cmocka_unit_test(what_is_not_spoken_is_said_so),
		cmocka_unit_test(malformed_headers_are_refused),
		cmocka_unit_test(there_is_exactly_one_host),
		cmocka_unit_test(what_has_one_value_comes_once),
		cmocka_unit_test(doubtful_lengths_are_refused),
		cmocka_unit_test(doubtful_transfer_codings_are_refused),
		cmocka_unit_test(malformed_chunks_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
