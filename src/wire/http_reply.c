/*
 * Replies into bytes. No Date: a server without a clock it trusts need not send one, and nobody here reads it.
 */
#include "wire/http.h"

#include <assert.h>
#include <errno.h>

#include "base/scan.h"

enum {
	FIXED_BYTES_MAX = 512, /* all header names, numbers and fixed lines together stay below this */
	CHUNK_FRAME_MAX = 20,  /* 16 digits and two line ends */
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

static int put_status_line(struct buf *out, int status)
{
	struct span line = status_line(status);
	int r;

	assert(status >= 200);
	assert(status <= 999);
	if (line.len > 0)
		return buf_put_span(out, line);
	r = buf_put_span(out, SPAN("HTTP/1.1 "));
	if (r == 0)
		r = buf_put_decimal(out, (uint64_t)status);
	if (r == 0)
		r = buf_put_span(out, SPAN(" \r\n"));
	return r;
}

/* Headers are compiled where they are written: of a name that is a literal, a few stores are left. */
#define HTTP_HEADER __attribute__((always_inline)) static inline

HTTP_HEADER void put_line(struct buf *out, char *at, struct span name, struct span value)
{
	memcpy(at, name.data, name.len);
	at += name.len;
	memcpy(at, value.data, value.len);
	at += value.len;
	memcpy(at, "\r\n", 2);
	out->len = (size_t)(at + 2 - out->data);
}

/* `name` is "Name: "; an empty value is no header at all. */
HTTP_HEADER int put_text(struct buf *out, struct span name, struct span value)
{
	if (value.len == 0)
		return 0;
	if (scan_text(value.data, 0, value.len) < value.len)
		return -EINVAL;
	int r = buf_reserve(out, name.len + value.len + 2);
	if (r == 0)
		put_line(out, out->data + out->len, name, value);
	return r;
}

HTTP_HEADER int put_count(struct buf *out, struct span name, uint64_t value)
{
	char digits[DECIMAL_DIGITS_MAX];
	struct span text = {digits, (size_t)(decimal_write(digits, value) - digits)};
	int r = buf_reserve(out, name.len + text.len + 2);

	if (r == 0)
		put_line(out, out->data + out->len, name, text);
	return r;
}

static bool has_no_body(int status)
{
	return status == 204 || status == 304;
}

static int put_headers(struct buf *out, const struct http_reply *reply)
{
	int r = put_text(out, SPAN("Content-Type: "), reply->content_type);

	if (r == 0 && reply->chunked)
		r = buf_put_span(out, SPAN("Transfer-Encoding: chunked\r\n"));
	else if (r == 0 && !reply->stream && !has_no_body(reply->status))
		r = put_count(out, SPAN("Content-Length: "), reply->body.len);
	if (r == 0)
		r = put_text(out, SPAN("Location: "), reply->location);
	if (r == 0)
		r = put_text(out, SPAN("ETag: "), reply->etag);
	if (r == 0)
		r = put_text(out, SPAN("Allow: "), reply->allow);
	if (r == 0)
		r = put_text(out, SPAN("Link: "), reply->link);
	if (r == 0)
		r = put_text(out, SPAN("WWW-Authenticate: "), reply->authenticate);
	if (r == 0 && reply->retry_after_s > 0)
		r = put_count(out, SPAN("Retry-After: "), (uint64_t)reply->retry_after_s);
	if (r == 0 && reply->event_seq > 0)
		r = put_count(out, SPAN("Stint-Seq: "), (uint64_t)reply->event_seq);
	return r;
}

/* What stands in every reply. HTTP/1.0 clients want to be told that the connection stays. */
static int put_fixed(struct buf *out, bool revalidate, bool close)
{
	int r = buf_put_span(out,
		revalidate ? SPAN("X-Content-Type-Options: nosniff\r\nCache-Control: private, no-cache\r\n")
			   : SPAN("X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n"));

	if (r < 0)
		return r;
	return buf_put_span(
		out, close ? SPAN("Connection: close\r\n\r\n") : SPAN("Connection: keep-alive\r\n\r\n"));
}

static int put_all(struct buf *out, const struct http_reply *reply)
{
	int r = put_status_line(out, reply->status);

	if (r == 0)
		r = put_headers(out, reply);
	if (r == 0)
		r = put_fixed(out, reply->revalidate, reply->close || reply->stream);
	if (r == 0 && !reply->head && !reply->chunked && !has_no_body(reply->status))
		r = buf_put_span(out, reply->body);
	return r;
}

/* Memory for all of it at once: a reply should not make the buffer grow in steps. */
static int make_room(struct buf *out, const struct http_reply *reply)
{
	size_t want = FIXED_BYTES_MAX + reply->body.len + reply->content_type.len + reply->location.len +
		reply->etag.len + reply->allow.len + reply->link.len + reply->authenticate.len;
	int r = buf_reserve(out, want);

	return r == -E2BIG ? 0 : r; /* it may still fit: `want` is generous */
}

int http_put_reply(struct buf *out, const struct http_reply *reply)
{
	size_t before = out->len;
	int r = make_room(out, reply);

	if (r == 0)
		r = put_all(out, reply);
	if (r < 0)
		out->len = before;
	return r;
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
