/*
 * HTTP/1.1 as a client sees it: bytes in, one reply at a time out.
 *
 * Strict: what readers could understand in two ways is no reply. One that is larger than the limits, or that is
 * followed by more, is refused too: nobody asked for it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"

struct http_answer_limits {
	size_t head_bytes_max;
	size_t body_bytes_max; /* of what is held at once: a stream is taken out as it comes */
};

struct http_answer_limits http_answer_limits_default(void); /* 64 KiB, 64 MiB */

enum http_answer_phase {
	HTTP_ANSWER_HEAD, /* not even the headers are complete */
	HTTP_ANSWER_BODY, /* the headers are; some of the body may be */
	HTTP_ANSWER_DONE,
};

/* The headers that clients of ours look at. */
enum http_answer_field {
	HTTP_ANSWER_CONTENT_TYPE,
	HTTP_ANSWER_LINK,
	HTTP_ANSWER_LOCATION,
	HTTP_ANSWER_RETRY_AFTER,
	HTTP_ANSWER_FIELD_COUNT,
};

struct http_answer;

/* NULL: no memory. */
struct http_answer *http_answer_new(const struct http_answer_limits *limits);
void http_answer_free(struct http_answer *answer);

/* Forget the reply: the next one begins. */
void http_answer_reset(struct http_answer *answer);

/* What came from the server. -EPROTO: that is not a reply, or something after its end. -E2BIG: more than the limits
 * allow. -ENOMEM. After a fault the answer is good for nothing but reset and free. */
__attribute__((warn_unused_result)) int http_answer_feed(struct http_answer *answer, struct span bytes);

/* The server closed. A reply without a length is complete by that; any other one is cut: -EPROTO. */
int http_answer_end(struct http_answer *answer);

enum http_answer_phase http_answer_phase(const struct http_answer *answer);
bool http_answer_began(const struct http_answer *answer); /* has anything of it come? */
int http_answer_status(const struct http_answer *answer);
bool http_answer_keeps_alive(const struct http_answer *answer); /* once it is done */

/* Borrowed until the next feed, reset or free. A header that was not sent has data NULL. */
struct span http_answer_field(const struct http_answer *answer, enum http_answer_field field);
struct span http_answer_body(const struct http_answer *answer);

/* Take the first bytes of the body out: they were dealt with. */
void http_answer_take(struct http_answer *answer, size_t len);
