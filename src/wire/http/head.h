/*
 * The head of a request, line by line: what we make of a request line and of a header, and which ones we refuse.
 * Private to http/input.c, which hands in whole lines and remembers where in the message they lie.
 *
 * Each function returns NULL when all is well, or the complaint to send.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "wire/http/http.h"

/* Bytes of the message by position: the buffer they lie in may move. At 0 there is the method, and nothing else. */
struct http_mark {
	uint32_t at; /* 0: it was not sent */
	uint32_t len;
};

/* What most requests have comes first: a name is looked for in this order. */
enum http_field {
	HTTP_FIELD_HOST,
	HTTP_FIELD_AUTHORIZATION,
	HTTP_FIELD_CONTENT_TYPE,
	HTTP_FIELD_CONTENT_LENGTH,
	HTTP_FIELD_ACCEPT,
	HTTP_FIELD_ORIGIN,
	HTTP_FIELD_FETCH_SITE,
	HTTP_FIELD_IDEMPOTENCY_KEY,
	HTTP_FIELD_IF_MATCH,
	HTTP_FIELD_IF_NONE_MATCH,
	HTTP_FIELD_LAST_EVENT_ID,
	HTTP_FIELD_REQUEST_ID,
	HTTP_FIELD_TRANSFER_ENCODING,
	HTTP_FIELD_EXPECT,
	HTTP_FIELD_CONNECTION,
	HTTP_FIELD_UPGRADE,
	HTTP_FIELD_COUNT, /* and for all others: not ours */
};

struct http_head {
	enum http_method method;
	bool is_http_1_1;
	struct http_mark path;
	struct http_mark query;
	struct http_mark fields[HTTP_FIELD_COUNT];
	uint64_t content_length;
	uint32_t headers; /* trailers too */
	bool says_close;
	bool says_keep_alive;
	bool expects_continue;
};

/* The line is without its CRLF and holds no control byte but HTAB; `at` is its place in the message. */
const struct http_complaint *http_head_start(
	struct http_head *head, struct span line, size_t at, const struct http_limits *limits);
const struct http_complaint *http_head_field(
	struct http_head *head, struct span line, size_t at, const struct http_limits *limits);

/* After the last header: do they go together? */
const struct http_complaint *http_head_end(const struct http_head *head);

/* A header after a chunked body is looked at and forgotten. */
const struct http_complaint *http_head_trailer(
	struct http_head *head, struct span line, const struct http_limits *limits);

static inline bool http_head_has(const struct http_head *head, enum http_field field)
{
	return head->fields[field].at != 0;
}

/* It says all there is to know about where its body ends, in a way that has one reading. */
static inline bool http_head_is_plain(const struct http_head *head)
{
	return head->method != HTTP_METHOD_OTHER && !http_head_has(head, HTTP_FIELD_TRANSFER_ENCODING);
}

static inline bool http_head_keeps_alive(const struct http_head *head)
{
	return !head->says_close && (head->is_http_1_1 || head->says_keep_alive);
}
