#include "wire/http/answer.h"

#include <assert.h>
#include <errno.h>
#include <llhttp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"

enum {
	INTERIM_MAX = 8, /* replies of the 1xx kind before the one that counts */
};

struct http_answer {
	llhttp_t parser;
	enum http_answer_phase phase;
	bool began, keeps_alive;
	int fault;
	uint32_t interim;
	size_t head_bytes_max, head_bytes;
	struct buf name;                            /* of the header that is being read */
	struct buf fields[HTTP_ANSWER_FIELD_COUNT]; /* a NUL behind each that was sent */
	int field;                                  /* the header that is being read; COUNT: none of ours */
	struct buf body;
	size_t body_at; /* bytes of it that were taken */
};

static const char *const names[HTTP_ANSWER_FIELD_COUNT] = {
	[HTTP_ANSWER_CONTENT_TYPE] = "content-type",
	[HTTP_ANSWER_LINK] = "link",
	[HTTP_ANSWER_LOCATION] = "location",
	[HTTP_ANSWER_RETRY_AFTER] = "retry-after",
};

struct http_answer_limits http_answer_limits_default(void)
{
	return (struct http_answer_limits){.head_bytes_max = 64 << 10, .body_bytes_max = 64 << 20};
}

/* ---- what llhttp tells us ---- */

static int stop(struct http_answer *answer, int fault)
{
	answer->fault = fault;
	return HPE_USER;
}

static int count_head(struct http_answer *answer, size_t len)
{
	answer->head_bytes += len;
	return answer->head_bytes > answer->head_bytes_max ? stop(answer, -E2BIG) : 0;
}

static int on_status(llhttp_t *parser, const char *at, size_t len)
{
	(void)at;
	return count_head(parser->data, len);
}

static int on_name(llhttp_t *parser, const char *at, size_t len)
{
	struct http_answer *answer = parser->data;
	int r = count_head(answer, len);

	if (r != 0)
		return r;
	r = buf_put(&answer->name, at, len);
	return r < 0 ? stop(answer, r) : 0;
}

static int on_name_complete(llhttp_t *parser)
{
	struct http_answer *answer = parser->data;
	struct span name = buf_span(&answer->name);

	answer->field = 0;
	while (answer->field < HTTP_ANSWER_FIELD_COUNT &&
		(strlen(names[answer->field]) != name.len ||
			strncasecmp(names[answer->field], name.data, name.len) != 0))
		answer->field++;
	if (answer->field < HTTP_ANSWER_FIELD_COUNT)
		buf_clear(&answer->fields[answer->field]); /* of two, the last counts */
	buf_clear(&answer->name);
	return 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t len)
{
	struct http_answer *answer = parser->data;
	int r = count_head(answer, len);

	if (r != 0 || answer->field == HTTP_ANSWER_FIELD_COUNT)
		return r;
	r = buf_put(&answer->fields[answer->field], at, len);
	return r < 0 ? stop(answer, r) : 0;
}

static int on_value_complete(llhttp_t *parser)
{
	struct http_answer *answer = parser->data;

	if (answer->field == HTTP_ANSWER_FIELD_COUNT)
		return 0;
	int r = buf_put_byte(&answer->fields[answer->field], 0);
	return r < 0 ? stop(answer, r) : 0;
}

static int on_headers_complete(llhttp_t *parser)
{
	struct http_answer *answer = parser->data;

	if (parser->upgrade)
		return stop(answer, -EPROTO); /* we asked for no other protocol */
	if (parser->status_code >= 200)
		answer->phase = HTTP_ANSWER_BODY;
	return 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t len)
{
	struct http_answer *answer = parser->data;
	int r = buf_put(&answer->body, at, len);

	return r < 0 ? stop(answer, r) : 0;
}

static void forget_head(struct http_answer *answer)
{
	answer->head_bytes = 0;
	buf_clear(&answer->name);
	for (int i = 0; i < HTTP_ANSWER_FIELD_COUNT; i++)
		buf_clear(&answer->fields[i]);
}

static int on_message_complete(llhttp_t *parser)
{
	struct http_answer *answer = parser->data;

	if (answer->phase == HTTP_ANSWER_HEAD) {
		forget_head(answer);
		return ++answer->interim > INTERIM_MAX ? stop(answer, -EPROTO) : 0;
	}
	answer->keeps_alive = llhttp_should_keep_alive(parser);
	answer->phase = HTTP_ANSWER_DONE;
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
	.on_status = on_status,
	.on_header_field = on_name,
	.on_header_field_complete = on_name_complete,
	.on_header_value = on_value,
	.on_header_value_complete = on_value_complete,
	.on_headers_complete = on_headers_complete,
	.on_body = on_body,
	.on_message_complete = on_message_complete,
};

/* ---- life ---- */

struct http_answer *http_answer_new(const struct http_answer_limits *limits)
{
	struct http_answer *answer = calloc(1, sizeof *answer);

	if (!answer)
		return NULL;
	answer->head_bytes_max = limits->head_bytes_max;
	buf_init(&answer->name, limits->head_bytes_max);
	for (int i = 0; i < HTTP_ANSWER_FIELD_COUNT; i++)
		buf_init(&answer->fields[i], limits->head_bytes_max + 1);
	buf_init(&answer->body, limits->body_bytes_max);
	http_answer_reset(answer);
	return answer;
}

void http_answer_free(struct http_answer *answer)
{
	if (!answer)
		return;
	buf_done(&answer->name);
	for (int i = 0; i < HTTP_ANSWER_FIELD_COUNT; i++)
		buf_done(&answer->fields[i]);
	buf_done(&answer->body);
	free(answer);
}

void http_answer_reset(struct http_answer *answer)
{
	llhttp_init(&answer->parser, HTTP_RESPONSE, &settings);
	answer->parser.data = answer;
	answer->phase = HTTP_ANSWER_HEAD;
	answer->began = answer->keeps_alive = false;
	answer->fault = 0;
	answer->interim = 0;
	answer->field = HTTP_ANSWER_FIELD_COUNT;
	forget_head(answer);
	buf_clear(&answer->body);
	answer->body_at = 0;
}

static int broken(struct http_answer *answer)
{
	if (answer->fault == 0)
		answer->fault = -EPROTO;
	return answer->fault;
}

int http_answer_feed(struct http_answer *answer, struct span bytes)
{
	if (answer->fault < 0 || bytes.len == 0)
		return answer->fault;
	answer->began = true;
	if (answer->phase == HTTP_ANSWER_DONE)
		return broken(answer);
	llhttp_errno_t said = llhttp_execute(&answer->parser, bytes.data, bytes.len);
	if (said == HPE_OK)
		return 0;
	if (said == HPE_PAUSED && llhttp_get_error_pos(&answer->parser) == bytes.data + bytes.len)
		return 0;
	return broken(answer);
}

int http_answer_end(struct http_answer *answer)
{
	if (answer->fault < 0)
		return answer->fault;
	if (answer->phase == HTTP_ANSWER_DONE)
		return 0;
	llhttp_errno_t said = llhttp_finish(&answer->parser);
	if ((said == HPE_OK || said == HPE_PAUSED) && answer->phase == HTTP_ANSWER_DONE) {
		answer->keeps_alive = false;
		return 0;
	}
	return broken(answer);
}

/* ---- looking at it ---- */

enum http_answer_phase http_answer_phase(const struct http_answer *answer)
{
	return answer->phase;
}

bool http_answer_began(const struct http_answer *answer)
{
	return answer->began;
}

int http_answer_status(const struct http_answer *answer)
{
	return answer->parser.status_code;
}

bool http_answer_keeps_alive(const struct http_answer *answer)
{
	return answer->keeps_alive;
}

struct span http_answer_field(const struct http_answer *answer, enum http_answer_field field)
{
	const struct buf *value = &answer->fields[field];

	assert(field < HTTP_ANSWER_FIELD_COUNT);
	if (value->len == 0)
		return (struct span){0};
	size_t len = value->len - (value->data[value->len - 1] == 0); /* the NUL that on_value_complete put */
	return (struct span){value->data, len};
}

struct span http_answer_body(const struct http_answer *answer)
{
	if (answer->body.len == answer->body_at)
		return (struct span){0};
	return (struct span){answer->body.data + answer->body_at, answer->body.len - answer->body_at};
}

void http_answer_take(struct http_answer *answer, size_t len)
{
	assert(len <= answer->body.len - answer->body_at);
	answer->body_at += len;
	if (answer->body_at == answer->body.len) {
		buf_clear(&answer->body);
		answer->body_at = 0;
	}
}
