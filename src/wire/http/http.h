/*
 * HTTP/1.1 as a server sees it: bytes in, requests out; replies in, bytes out.
 *
 * Narrower than the RFCs where two readers could disagree: refused are two Hosts or none, Content-Length beside
 * Transfer-Encoding, any transfer coding but exactly chunked, folded headers, control bytes, lines that do not end in
 * CR LF, and more of anything than the limits allow. A request that cannot be understood is answered once and the
 * connection is closed, because nobody knows where the next request begins.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/span.h"

enum http_method {
	HTTP_METHOD_OTHER = 0, /* well-formed, and not one of ours */
	HTTP_METHOD_GET,
	HTTP_METHOD_HEAD,
	HTTP_METHOD_POST,
	HTTP_METHOD_PUT,
	HTTP_METHOD_PATCH,
	HTTP_METHOD_DELETE,
};

const char *http_method_name(enum http_method method);

struct http_limits {
	size_t head_bytes_max; /* request line and headers */
	uint32_t headers_max;
	size_t url_bytes_max;
	size_t body_bytes_max;
};

struct http_limits http_limits_default(void); /* 16 KiB, 64, 4 KiB, 1 MiB */

/* One request. Spans lie in the input and live until http_input_drop() or the next http_input_room(). A header
 * that was not sent is an empty span with data NULL; one that was sent empty has data. */
struct http_request {
	enum http_method method;
	struct span path;  /* as sent: not decoded; begins with '/' */
	struct span query; /* what follows '?', as sent */
	struct span host;
	struct span authorization;
	struct span content_type;
	struct span accept;
	struct span origin;
	struct span fetch_site;    /* Sec-Fetch-Site */
	struct span forwarded_for; /* X-Forwarded-For: its last line */
	struct span idempotency_key;
	struct span if_match;
	struct span if_none_match;
	struct span last_event_id;
	struct span request_id; /* X-Request-Id */
	struct span cookie;
	struct span mcp_version, mcp_method, mcp_name; /* MCP-Protocol-Version, Mcp-Method, Mcp-Name */
	struct span traceparent;
	struct span page_key; /* Stint-Page-Key: what a browser's cookie needs beside it */
	struct span body;     /* unchunked */
	bool keep_alive;
	bool takes_chunks; /* HTTP/1.1 */
	struct span bytes; /* in which all of these lie */
};

enum http_input_status {
	HTTP_MORE,     /* nothing complete yet: read on */
	HTTP_CONTINUE, /* the client waits for "100 Continue" before it sends the body; told once per request */
	HTTP_READY,    /* a request */
	HTTP_BAD,      /* answer with status and reason, then close */
};

struct http_complaint {
	int status;         /* 400, 413, 414, 417, 431, 501 or 505 */
	const char *reason; /* a sentence for the client; static */
};

struct http_input;

/* NULL: no memory. */
struct http_input *http_input_new(const struct http_limits *limits);
void http_input_free(struct http_input *input);

/* Room to read into: at least one byte, as much as there is. -ENOMEM. The limits bound what it ever holds:
 * -ENOBUFS while more was read than they allow, and until http_input_next() and http_input_drop() take some out. */
int http_input_room(struct http_input *input, char **ret_at, size_t *ret_len);
void http_input_filled(struct http_input *input, size_t len);

/* What the bytes read so far amount to. After HTTP_READY the request stays until http_input_drop(); several
 * requests may lie in the input one after the other. After HTTP_BAD the input is of no further use. `ret_request` may
 * be NULL, for those who will take the request out. */
enum http_input_status http_input_next(
	struct http_input *input, struct http_request *ret_request, struct http_complaint *ret_complaint);
void http_input_drop(struct http_input *input);

/* The path of the request, as sent, once the whole head is there; also after HTTP_BAD. Empty: it is not known. */
struct span http_input_path(const struct http_input *input);

/* After HTTP_READY: its method; and the request with bytes of its own, dropped from the input. -ENOMEM. */
enum http_method http_input_method(const struct http_input *input);
int http_input_take(struct http_input *input, struct arena *arena, struct http_request *ret_request);

/* Is a request under way: some of its bytes are here, and not all? (For timeouts.) */
bool http_input_is_amid(const struct http_input *input);

/* Nothing is in it, and nothing was: what comes next may as well be read into another one of the same limits. */
bool http_input_is_idle(const struct http_input *input);

/* And of that request, is the head complete and only the body under way? */
bool http_input_is_in_body(const struct http_input *input);

/* … then: the request as far as it is here, and how long its body is, as far as that is known. */
void http_input_head(const struct http_input *input, struct http_request *ret_request);
uint64_t http_input_body_bytes(const struct http_input *input);

/* Give the memory back while there is nothing in it: thousands of idle connections cost little. */
void http_input_rest(struct http_input *input);

/* A reply. Zero and empty fields are left out. */
struct http_reply {
	int status;
	struct span content_type;
	struct span body;
	struct span location;
	struct span etag;  /* with its quotes */
	struct span allow; /* methods, for 405 */
	struct span link;
	struct span authenticate; /* WWW-Authenticate, for 401 */
	struct span policy; /* Content-Security-Policy, for a page; with it the page is cut off from others */
	struct span cookie; /* Set-Cookie */
	struct span encoding; /* Content-Encoding */
	struct span leader;   /* Stint-Leader: the URL of the server that leads */
	int64_t retry_after_s;
	int64_t event_seq; /* Stint-Seq: the last event this reply reflects */
	bool revalidate;   /* the client may keep it, and asks with its ETag whether it is still good */
	bool immutable;    /* what is at this path never changes: the client may keep it */
	bool close;
	bool head;    /* send the headers of the reply without its body */
	bool stream;  /* the body has no end: no Content-Length, close at its end */
	bool chunked; /* `body` is left out and follows in chunks; for those who take them */
};

/* The head of a reply without the texts in it: all header names, numbers and fixed lines together stay below this. */
enum {
	HTTP_HEAD_BYTES_MAX = 512,
};

/* Appends it to the output, all of it or nothing. -ENOMEM. -E2BIG: there is no room for HTTP_HEAD_BYTES_MAX, its texts and
 * its body. -EINVAL: a control byte in a header, which could end it and begin another. */
int http_put_reply(struct buf *out, const struct http_reply *reply);
int http_put_continue(struct buf *out);

/* A part of the body of a chunked reply, all of it or nothing; an empty one ends the body. */
int http_put_chunk(struct buf *out, struct span bytes);

/* Does an Accept header name this type, and not with a weight of 0? (A range, as of all kinds of text, names none.) */
bool http_accepts(struct span accept, const char *type);

/* Percent-decoding of one path segment or query value, appended to `out`, all of it or nothing. -ENOMEM, -E2BIG.
 * -EINVAL: a bad escape, or a NUL. '+' is a space only in a query. */
int http_decode(struct span text, bool in_query, struct buf *out);

/* The other way: whatever is not a letter, a digit or one of -._~ becomes an escape. All of it or nothing. */
int http_encode(struct span text, struct buf *out);

/* A path with a name in it: "/api/tasks/" ID "/log". */
int http_put_path(struct buf *out, const char *before, struct span name, const char *after);

/* Walk a query: "a=1&b=2". Start with *at = 0; false at the end. Name and value are not decoded; empty pieces are
 * passed over; the value of a name without '=' is an empty span with data NULL. */
bool http_query_next(struct span query, size_t *at, struct span *ret_name, struct span *ret_value);
