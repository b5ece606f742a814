/*
 * The lines of HTTP/1.1: the head of a request (for http/input.c), and the lines that requests and replies share (for
 * http/answer.c too). Private to this folder. The caller hands in whole lines, without their CR LF, that hold no control
 * byte but HTAB, and remembers where in the message they lie.
 *
 * Functions that return a complaint return NULL when all is well.
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
	HTTP_FIELD_COOKIE,
	HTTP_FIELD_PAGE_KEY,
	HTTP_FIELD_FORWARDED_FOR,
	HTTP_FIELD_MCP_VERSION,
	HTTP_FIELD_MCP_METHOD,
	HTTP_FIELD_MCP_NAME,
	HTTP_FIELD_TRACEPARENT,
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

/* "name: value", the value without the blanks around it. False: the line is folded, or not of this form. */
bool http_line_split(struct span line, struct span *ret_name, struct span *ret_value);

/* The value of Content-Length. False: it is not a number, or one of more than 19 digits. */
bool http_length_read(struct span value, uint64_t *ret_length);

/* "1f;name=value": the size of a chunk, and how many bytes the extensions behind it take. False: not of this form. */
bool http_chunk_read(struct span line, uint64_t *ret_size, size_t *ret_extension_bytes);

/* Is the word among the values of a list, as "close" in "Connection: keep-alive, close"? In upper or lower case. */
bool http_list_has(struct span list, const char *word);
bool http_is_word(struct span text, const char *word); /* it alone */

/* `at` is the line's place in the message. */
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

static inline bool http_head_keeps_alive(const struct http_head *head)
{
	return !head->says_close && (head->is_http_1_1 || head->says_keep_alive);
}
