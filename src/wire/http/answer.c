/*
 * The bytes of a connection into one reply. Lines are gathered and read when they are whole, by the rules that requests
 * have too (http/head.c); the body is taken as it comes.
 *
 *	START ──line──▶ HEADERS ──blank line──┬──204, 304, or a length of 0──────────▶ DONE
 *	  ▲                │                  ├──▶ LENGTH ──all bytes────────────────▶ DONE
 *	  └──blank, 1xx────┘                  ├──▶ TO_END ──the server closes─────────▶ DONE
 *	                                      └──▶ CHUNK_SIZE ──"0"──▶ TRAILERS ─blank▶ DONE
 *	                                             ▲    └──size──▶ CHUNK_DATA ──▶ CHUNK_END ─┐
 *	                                             └─────────────────────────────────────────┘
 */
#include "wire/http/answer.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/scan.h"
#include "wire/http/head.h"

enum {
	INTERIM_MAX = 8,      /* replies of the 1xx kind before the one that counts */
	CHUNK_LINE_MAX = 256, /* the size and the extensions of one chunk */
};

enum answer_state {
	ANSWER_START,
	ANSWER_HEADERS,
	ANSWER_LENGTH, /* from here on the head is complete */
	ANSWER_TO_END,
	ANSWER_CHUNK_SIZE,
	ANSWER_CHUNK_DATA,
	ANSWER_CHUNK_END,
	ANSWER_TRAILERS,
	ANSWER_DONE,
};

struct http_answer {
	enum answer_state state;
	int fault;  /* the first one */
	bool began; /* something of it has come */
	bool ended; /* by the end of the connection */
	int status; /* 0: not known yet */
	bool is_http_1_1, says_close, says_keep_alive;
	bool has_length, is_chunked;
	uint64_t left;    /* of the body, or of the chunk */
	uint32_t interim; /* replies of the 1xx kind so far */
	size_t head_bytes_max;
	size_t head_bytes; /* of lines; those of chunk sizes count by their extensions alone */
	struct buf line;   /* that is not whole yet */
	struct buf fields[HTTP_ANSWER_FIELD_COUNT]; /* a NUL behind each that was sent */
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

/* ---- states ---- */

#define TO(state) (1u << ANSWER_##state)

/* The arrows of the drawing above. */
static const uint16_t states_after[] = {
	[ANSWER_START] = TO(HEADERS),
	[ANSWER_HEADERS] = TO(START) | TO(LENGTH) | TO(TO_END) | TO(CHUNK_SIZE) | TO(DONE),
	[ANSWER_LENGTH] = TO(DONE),
	[ANSWER_TO_END] = TO(DONE),
	[ANSWER_CHUNK_SIZE] = TO(CHUNK_DATA) | TO(TRAILERS),
	[ANSWER_CHUNK_DATA] = TO(CHUNK_END),
	[ANSWER_CHUNK_END] = TO(CHUNK_SIZE),
	[ANSWER_TRAILERS] = TO(DONE),
	[ANSWER_DONE] = 0,
};

static void set_state(struct http_answer *answer, enum answer_state state)
{
	assert(states_after[answer->state] & 1u << state);
	answer->state = state;
}

static int fail(struct http_answer *answer, int fault)
{
	if (answer->fault == 0)
		answer->fault = fault;
	return answer->fault;
}

/* ---- lines ---- */

static void forget_head(struct http_answer *answer)
{
	answer->status = 0;
	answer->is_http_1_1 = answer->says_close = answer->says_keep_alive = false;
	answer->has_length = answer->is_chunked = false;
	answer->left = 0;
	answer->head_bytes = 0;
	for (int i = 0; i < HTTP_ANSWER_FIELD_COUNT; i++)
		buf_clear(&answer->fields[i]);
}

/* "HTTP/1.1 200 OK"; the text behind the number may be missing. */
static int take_status_line(struct http_answer *answer, struct span line)
{
	uint64_t status = 0;
	const char *at = line.data; /* begins_as_http() has looked at the first seven bytes */

	if (line.len < 12 || (at[7] != '0' && at[7] != '1') || at[8] != ' ' ||
		!http_length_read((struct span){at + 9, 3}, &status) || status < 100 ||
		(line.len > 12 && at[12] != ' '))
		return fail(answer, -EPROTO);
	answer->is_http_1_1 = at[7] == '1';
	answer->status = (int)status;
	set_state(answer, ANSWER_HEADERS);
	return 0;
}

/* One of the headers that callers look at; of two with the same name the last counts. */
static int take_field(struct http_answer *answer, struct span name, struct span value)
{
	for (int i = 0; i < HTTP_ANSWER_FIELD_COUNT; i++) {
		struct buf *field = &answer->fields[i];
		if (!http_is_word(name, names[i]))
			continue;
		buf_clear(field);
		buf_put_span(field, value);
		buf_put_byte(field, 0);
		return buf_fault(field) ? fail(answer, buf_fault(field)) : 0;
	}
	return 0;
}

static int take_header(struct http_answer *answer, struct span line)
{
	struct span name, value;

	if (!http_line_split(line, &name, &value))
		return fail(answer, -EPROTO);
	bool frames = http_is_word(name, "content-length") || http_is_word(name, "transfer-encoding");
	/* twice, or both: readers differ about where such a reply ends */
	if (frames && (answer->has_length || answer->is_chunked || memchr(line.data, '\t', line.len)))
		return fail(answer, -EPROTO);
	if (http_is_word(name, "content-length")) {
		answer->has_length = true;
		return http_length_read(value, &answer->left) ? 0 : fail(answer, -EPROTO);
	}
	if (http_is_word(name, "transfer-encoding")) {
		answer->is_chunked = true;
		return answer->is_http_1_1 && http_is_word(value, "chunked") ? 0 : fail(answer, -EPROTO);
	}
	if (http_is_word(name, "connection")) {
		answer->says_close |= http_list_has(value, "close");
		answer->says_keep_alive |= http_list_has(value, "keep-alive");
	}
	return take_field(answer, name, value);
}

/* The blank line after the headers. */
static int end_head(struct http_answer *answer)
{
	bool has_no_body = answer->status == 204 || answer->status == 304;

	answer->head_bytes = 0;
	if (answer->status < 200) { /* a word in between: the reply is still to come */
		/* we asked for no other protocol; and behind the last word of a connection nothing is to come */
		if (answer->status == 101 || !answer->is_http_1_1 || answer->says_close ||
			++answer->interim > INTERIM_MAX)
			return fail(answer, -EPROTO);
		forget_head(answer);
		set_state(answer, ANSWER_START);
	} else if (has_no_body || (answer->has_length && answer->left == 0)) {
		set_state(answer, ANSWER_DONE);
	} else if (answer->is_chunked) {
		set_state(answer, ANSWER_CHUNK_SIZE);
	} else {
		set_state(answer, answer->has_length ? ANSWER_LENGTH : ANSWER_TO_END);
	}
	return 0;
}

static int take_chunk_size(struct http_answer *answer, struct span line)
{
	size_t extension_bytes = 0;

	if (!http_chunk_read(line, &answer->left, &extension_bytes))
		return fail(answer, -EPROTO);
	answer->head_bytes += extension_bytes;
	if (answer->head_bytes > answer->head_bytes_max)
		return fail(answer, -E2BIG);
	set_state(answer, answer->left > 0 ? ANSWER_CHUNK_DATA : ANSWER_TRAILERS);
	return 0;
}

static int take_trailer(struct http_answer *answer, struct span line)
{
	struct span name, value;

	if (line.len > 0)
		return http_line_split(line, &name, &value) ? 0 : fail(answer, -EPROTO);
	set_state(answer, ANSWER_DONE);
	return 0;
}

static int take_line(struct http_answer *answer, struct span line)
{
	if (scan_text(line.data, 0, line.len) < line.len)
		return fail(answer, -EPROTO);
	switch (answer->state) {
	case ANSWER_START:
		return take_status_line(answer, line);
	case ANSWER_HEADERS:
		return line.len > 0 ? take_header(answer, line) : end_head(answer);
	case ANSWER_CHUNK_SIZE:
		return take_chunk_size(answer, line);
	case ANSWER_CHUNK_END:
		if (line.len > 0)
			return fail(answer, -EPROTO);
		set_state(answer, ANSWER_CHUNK_SIZE);
		return 0;
	case ANSWER_TRAILERS:
		return take_trailer(answer, line);
	case ANSWER_LENGTH:
	case ANSWER_TO_END:
	case ANSWER_CHUNK_DATA:
	case ANSWER_DONE:
		break;
	}
	return 0;
}

/* A line of at least one byte that begins otherwise is no reply: that is seen at once, and not when the line ends. */
static bool begins_as_http(struct span line)
{
	static const char begin[] = "HTTP/1.";
	size_t len = line.len < sizeof begin - 1 ? line.len : sizeof begin - 1;

	return memcmp(line.data, begin, len) == 0;
}

/* Bytes up to the end of the line. Returns how many were taken. */
static size_t feed_line(struct http_answer *answer, struct span bytes)
{
	const char *end = memchr(bytes.data, '\n', bytes.len);
	size_t len = end ? (size_t)(end - bytes.data) + 1 : bytes.len;
	bool frames = answer->state == ANSWER_CHUNK_SIZE || answer->state == ANSWER_CHUNK_END;

	buf_put(&answer->line, bytes.data, len);
	if (!frames)
		answer->head_bytes += len;
	if (answer->head_bytes > answer->head_bytes_max || (frames && answer->line.len > CHUNK_LINE_MAX))
		fail(answer, -E2BIG);
	if (buf_fault(&answer->line))
		fail(answer, buf_fault(&answer->line));
	if (answer->fault)
		return len;
	struct span line = buf_span(&answer->line);
	if (answer->state == ANSWER_START && !begins_as_http(line))
		fail(answer, -EPROTO);
	if (!end || answer->fault)
		return len;
	if (line.len < 2 || line.data[line.len - 2] != '\r')
		fail(answer, -EPROTO);
	else
		take_line(answer, (struct span){line.data, line.len - 2});
	buf_clear(&answer->line);
	return len;
}

/* ---- the body ---- */

static size_t feed_body(struct http_answer *answer, struct span bytes)
{
	bool counted = answer->state != ANSWER_TO_END;
	size_t len = counted && answer->left < bytes.len ? (size_t)answer->left : bytes.len;

	buf_put(&answer->body, bytes.data, len);
	if (buf_fault(&answer->body)) {
		fail(answer, buf_fault(&answer->body));
		return len;
	}
	if (!counted)
		return len;
	answer->left -= len;
	if (answer->left == 0)
		set_state(answer, answer->state == ANSWER_LENGTH ? ANSWER_DONE : ANSWER_CHUNK_END);
	return len;
}

/* ---- life ---- */

struct http_answer *http_answer_new(const struct http_answer_limits *limits)
{
	struct http_answer *answer = calloc(1, sizeof *answer);

	if (!answer)
		return NULL;
	answer->head_bytes_max = limits->head_bytes_max;
	buf_init(&answer->line, limits->head_bytes_max + CHUNK_LINE_MAX);
	for (int i = 0; i < HTTP_ANSWER_FIELD_COUNT; i++)
		buf_init(&answer->fields[i], limits->head_bytes_max + 1);
	buf_init(&answer->body, limits->body_bytes_max);
	return answer;
}

void http_answer_free(struct http_answer *answer)
{
	if (!answer)
		return;
	buf_done(&answer->line);
	for (int i = 0; i < HTTP_ANSWER_FIELD_COUNT; i++)
		buf_done(&answer->fields[i]);
	buf_done(&answer->body);
	free(answer);
}

void http_answer_reset(struct http_answer *answer)
{
	answer->state = ANSWER_START;
	answer->fault = 0;
	answer->began = answer->ended = false;
	answer->interim = 0;
	forget_head(answer);
	buf_clear(&answer->line);
	buf_clear(&answer->body);
	answer->body_at = 0;
}

int http_answer_feed(struct http_answer *answer, struct span bytes)
{
	if (bytes.len > 0)
		answer->began = true;
	while (answer->fault == 0 && bytes.len > 0) {
		size_t used = 0;

		if (answer->state == ANSWER_DONE)
			fail(answer, -EPROTO);
		else if (answer->state == ANSWER_LENGTH || answer->state == ANSWER_TO_END ||
			answer->state == ANSWER_CHUNK_DATA)
			used = feed_body(answer, bytes);
		else
			used = feed_line(answer, bytes);
		bytes = (struct span){bytes.data + used, bytes.len - used};
	}
	return answer->fault;
}

int http_answer_end(struct http_answer *answer)
{
	if (answer->fault < 0 || answer->state == ANSWER_DONE)
		return answer->fault;
	if (answer->state != ANSWER_TO_END)
		return fail(answer, -EPROTO);
	answer->ended = true;
	set_state(answer, ANSWER_DONE);
	return 0;
}

/* ---- looking at it ---- */

enum http_answer_phase http_answer_phase(const struct http_answer *answer)
{
	if (answer->state == ANSWER_DONE)
		return HTTP_ANSWER_DONE;
	return answer->state < ANSWER_LENGTH ? HTTP_ANSWER_HEAD : HTTP_ANSWER_BODY;
}

bool http_answer_began(const struct http_answer *answer)
{
	return answer->began;
}

int http_answer_status(const struct http_answer *answer)
{
	return answer->status;
}

bool http_answer_keeps_alive(const struct http_answer *answer)
{
	bool kept =
		answer->is_http_1_1 ? !answer->says_close : answer->says_keep_alive && !answer->says_close;

	return answer->state == ANSWER_DONE && kept && !answer->ended;
}

struct span http_answer_field(const struct http_answer *answer, enum http_answer_field field)
{
	const struct buf *value = &answer->fields[field];

	assert(field < HTTP_ANSWER_FIELD_COUNT);
	if (value->len == 0)
		return (struct span){0};
	size_t len = value->len - (value->data[value->len - 1] == 0); /* the NUL that take_field() put */
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
