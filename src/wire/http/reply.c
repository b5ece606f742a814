/*
 * Replies into bytes. No Date: a server without a clock it trusts need not send one, and nobody here reads it.
 */
#include "wire/http/http.h"

#include <assert.h>
#include <errno.h>

#include "base/scan.h"

enum {
	CHUNK_FRAME_MAX = 20, /* 16 digits and two line ends */
};

// clang-format off
#define STATUSES(X) \
	X(200, "OK") \
	X(201, "Created") \
	X(202, "Accepted") \
	X(204, "No Content") \
	X(303, "See Other") \
	X(304, "Not Modified") \
	X(307, "Temporary Redirect") \
	X(308, "Permanent Redirect") \
	X(400, "Bad Request") \
	X(401, "Unauthorized") \
	X(403, "Forbidden") \
	X(404, "Not Found") \
	X(405, "Method Not Allowed") \
	X(406, "Not Acceptable") \
	X(408, "Request Timeout") \
	X(409, "Conflict") \
	X(410, "Gone") \
	X(411, "Length Required") \
	X(412, "Precondition Failed") \
	X(413, "Content Too Large") \
	X(414, "URI Too Long") \
	X(415, "Unsupported Media Type") \
	X(417, "Expectation Failed") \
	X(421, "Misdirected Request") \
	X(422, "Unprocessable Content") \
	X(429, "Too Many Requests") \
	X(431, "Request Header Fields Too Large") \
	X(500, "Internal Server Error") \
	X(501, "Not Implemented") \
	X(503, "Service Unavailable") \
	X(504, "Gateway Timeout") \
	X(505, "HTTP Version Not Supported") \
	X(507, "Insufficient Storage")
// clang-format on

/* The whole first line; a status that is not in the table goes without its words, as RFC 9112 allows. */
static struct span status_line(int status)
{
	switch (status) {
#define X(number, words) \
	case number:     \
		return SPAN("HTTP/1.1 " #number " " words "\r\n");
		STATUSES(X)
#undef X
	}
	return (struct span){0};
}

/* Headers are compiled where they are written, into room that is there: of a name that is a literal, a few stores are
 * left. Without optimization they are functions, so that the coverage counts each of them once. */
#ifdef __OPTIMIZE__
#define HTTP_HEADER __attribute__((always_inline)) static inline
#else
#define HTTP_HEADER static inline
#endif

HTTP_HEADER char *write_span(char *at, struct span text)
{
	if (text.len > 0)
		memcpy(at, text.data, text.len);
	return at + text.len;
}

static char *write_status_line(char *at, int status)
{
	struct span line = status_line(status);

	assert(status >= 200);
	assert(status <= 999);
	if (line.len > 0)
		return write_span(at, line);
	at = write_span(at, SPAN("HTTP/1.1 "));
	at = decimal_write(at, (uint64_t)status);
	return write_span(at, SPAN(" \r\n"));
}

/* `name` is "Name: "; an empty value is no header at all. */
HTTP_HEADER char *write_text(char *at, struct span name, struct span value)
{
	if (value.len == 0)
		return at;
	return write_span(write_span(write_span(at, name), value), SPAN("\r\n"));
}

HTTP_HEADER char *write_count(char *at, struct span name, uint64_t value)
{
	return write_span(decimal_write(write_span(at, name), value), SPAN("\r\n"));
}

static bool has_no_body(int status)
{
	return status == 204 || status == 304;
}

static char *write_headers(char *at, const struct http_reply *reply)
{
	at = write_text(at, SPAN("Content-Type: "), reply->content_type);
	if (reply->chunked)
		at = write_span(at, SPAN("Transfer-Encoding: chunked\r\n"));
	else if (!reply->stream && !has_no_body(reply->status))
		at = write_count(at, SPAN("Content-Length: "), reply->body.len);
	at = write_text(at, SPAN("Location: "), reply->location);
	at = write_text(at, SPAN("ETag: "), reply->etag);
	at = write_text(at, SPAN("Allow: "), reply->allow);
	at = write_text(at, SPAN("Link: "), reply->link);
	at = write_text(at, SPAN("WWW-Authenticate: "), reply->authenticate);
	at = write_text(at, SPAN("Content-Security-Policy: "), reply->policy);
	if (reply->policy.len > 0)
		at = write_span(at,
			SPAN("Referrer-Policy: no-referrer\r\nCross-Origin-Opener-Policy: same-origin\r\n"));
	at = write_text(at, SPAN("Set-Cookie: "), reply->cookie);
	at = write_text(at, SPAN("Content-Encoding: "), reply->encoding);
	at = write_text(at, SPAN("Stint-Leader: "), reply->leader);
	if (reply->retry_after_s > 0)
		at = write_count(at, SPAN("Retry-After: "), (uint64_t)reply->retry_after_s);
	if (reply->event_seq > 0)
		at = write_count(at, SPAN("Stint-Seq: "), (uint64_t)reply->event_seq);
	return at;
}

/* What stands in every reply. HTTP/1.0 clients want to be told that the connection stays. */
static char *write_fixed(char *at, const struct http_reply *reply, bool close)
{
	at = write_span(at, SPAN("X-Content-Type-Options: nosniff\r\n"));
	if (reply->immutable)
		at = write_span(at, SPAN("Cache-Control: public, max-age=31536000, immutable\r\n"));
	else
		at = reply->revalidate ? write_span(at, SPAN("Cache-Control: private, no-cache\r\n"))
				       : write_span(at, SPAN("Cache-Control: no-store\r\n"));
	return close ? write_span(at, SPAN("Connection: close\r\n\r\n"))
		     : write_span(at, SPAN("Connection: keep-alive\r\n\r\n"));
}

static bool is_one_line(struct span value)
{
	return scan_text(value.data, 0, value.len) == value.len;
}

int http_put_reply(struct buf *out, const struct http_reply *reply)
{
	bool has_body = !reply->head && !reply->chunked && !has_no_body(reply->status);
	size_t texts = reply->content_type.len + reply->location.len + reply->etag.len + reply->allow.len +
		reply->link.len + reply->authenticate.len + reply->policy.len + reply->cookie.len +
		reply->encoding.len + reply->leader.len;

	if (!is_one_line(reply->content_type) || !is_one_line(reply->location) || !is_one_line(reply->etag) ||
		!is_one_line(reply->allow) || !is_one_line(reply->link) ||
		!is_one_line(reply->authenticate) || !is_one_line(reply->policy) ||
		!is_one_line(reply->cookie) || !is_one_line(reply->encoding) || !is_one_line(reply->leader))
		return -EINVAL;
	int r = buf_reserve(out, HTTP_HEAD_BYTES_MAX + texts + (has_body ? reply->body.len : 0));
	if (r < 0)
		return r;
	char *at = write_status_line(out->data + out->len, reply->status);
	at = write_headers(at, reply);
	at = write_fixed(at, reply, reply->close || reply->stream);
	if (has_body)
		at = write_span(at, reply->body);
	out->len = (size_t)(at - out->data);
	assert(out->len <= out->cap);
	return 0;
}

int http_put_continue(struct buf *out)
{
	return buf_put_span(out, SPAN("HTTP/1.1 100 Continue\r\n\r\n"));
}

int http_put_chunk(struct buf *out, struct span bytes)
{
	int r = buf_reserve(out, bytes.len + CHUNK_FRAME_MAX);

	if (r < 0)
		return r;
	buf_printf(out, "%zx\r\n", bytes.len); /* nothing of this can fail any more */
	buf_put_span(out, bytes);
	buf_put_span(out, SPAN("\r\n"));
	return 0;
}
