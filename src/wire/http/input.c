/*
 * Bytes of one connection into requests.
 *
 * All bytes lie in one buffer. Each line (request line, header, chunk size, trailer) is read once, when it is whole, by
 * the rules of http/head.c, and bodies are taken as they come: so what we say about a request depends on its bytes alone
 * and not on the pieces in which the network brought them. The rules are narrower than those of llhttp; that llhttp finds
 * the same requests in the same bytes is held by tests/fuzz/http_dialogue.c. (Rejected: llhttp itself, which takes three
 * times the instructions for a request.) The phases:
 *
 *	START ──line──▶ HEADERS ──blank line──┬──────────────────────────────────▶ READY ──drop──▶ START
 *	                                      ├──▶ BODY ──all bytes──────────────▶ READY
 *	                                      └──▶ CHUNK_SIZE ──"0"──▶ TRAILERS ──▶ READY
 *	                                             ▲    └──size──▶ CHUNK_DATA ──▶ CHUNK_END ─┐
 *	                                             └─────────────────────────────────────────┘
 *	any ──complaint──▶ BAD          READY ──drop, the connection is not kept──▶ CLOSED
 *
 * The buffer, from `start`, the first byte of the message:
 *
 *	│ head │ body so far │ gap: framing of chunks read │ read, not yet understood │ room
 *	       body_at                                     at                         len
 *
 * Chunks are pushed together where they lie; the gap is closed when room is needed.
 */
#include "wire/http/http.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/scan.h"
#include "wire/http/head.h"

enum http_phase {
	PHASE_START,
	PHASE_HEADERS,
	PHASE_BODY,
	PHASE_CHUNK_SIZE,
	PHASE_CHUNK_DATA,
	PHASE_CHUNK_END,
	PHASE_TRAILERS,
	PHASE_READY,
	PHASE_BAD,
	PHASE_CLOSED,
};

enum {
	CAP_MIN = 4096,
	ROOM_WANTED = 1024,    /* less than this is not worth a read */
	START_LINE_EXTRA = 32, /* method, version, blanks and CRLF around the URL */
	CHUNK_LINE_MAX = 256,  /* the size and the extensions of one chunk */
	CHUNK_END_LEN = 2,     /* CRLF */
};

struct http_input {
	struct http_limits limits;

	char *data; /* NULL at rest */
	size_t cap;
	size_t start; /* the message in the buffer; the other positions are counted from here */
	size_t len;   /* bytes of it that were read */
	size_t at;    /* bytes of it that were understood */
	size_t seen;  /* bytes behind `at` in which no line ends */

	enum http_phase phase;
	struct http_head head;
	size_t body_at;
	size_t body_len;
	uint64_t left; /* of the body, or of the chunk */
	size_t trailer_bytes;
	size_t extension_bytes;
	bool skipped_line; /* the empty line that may stand before a request */
	bool told_continue;
	const struct http_complaint *complaint;
};

// clang-format off
static const struct http_complaint
	bad_line_end      = {400, "Lines must end in CR LF, and CR and LF may stand nowhere else."},
	bad_control       = {400, "A control byte stands where text was expected."},
	bad_chunk         = {400, "A chunk of the body is malformed."},
	bad_empty_lines   = {400, "There are empty lines before the request."},
	url_too_long      = {414, "The request line is too long."},
	head_too_large    = {431, "The headers are too large."},
	trailer_too_large = {431, "The headers after the body are too large."},
	body_too_large    = {413, "The body is too large."};
// clang-format on

/* ---- phases ---- */

#define TO(phase) (1u << PHASE_##phase)

/* Where a message may go from a phase: the arrows of the drawing above. Any phase but the last two may end in BAD. */
static const uint16_t phases_after[] = {
	[PHASE_START] = TO(HEADERS),
	[PHASE_HEADERS] = TO(HEADERS) | TO(BODY) | TO(CHUNK_SIZE) | TO(READY),
	[PHASE_BODY] = TO(BODY) | TO(READY),
	[PHASE_CHUNK_SIZE] = TO(CHUNK_DATA) | TO(TRAILERS),
	[PHASE_CHUNK_DATA] = TO(CHUNK_DATA) | TO(CHUNK_END),
	[PHASE_CHUNK_END] = TO(CHUNK_SIZE),
	[PHASE_TRAILERS] = TO(TRAILERS) | TO(READY),
	[PHASE_READY] = TO(START) | TO(CLOSED),
	[PHASE_BAD] = 0,
	[PHASE_CLOSED] = 0,
};

static void set_phase(struct http_input *input, enum http_phase phase)
{
	assert(phases_after[input->phase] & 1u << phase ||
		(phase == PHASE_BAD && input->phase < PHASE_READY));
	input->phase = phase;
}

/* ---- life ---- */

/* Ready for a message at `start`; what was read stays. The phase is the caller's to set. */
static void expect_message(struct http_input *input)
{
	*input = (struct http_input){
		.limits = input->limits,
		.data = input->data,
		.cap = input->cap,
		.start = input->start,
		.len = input->len,
		.phase = input->phase,
	};
}

struct http_input *http_input_new(const struct http_limits *limits)
{
	struct http_input *input = calloc(1, sizeof *input);

	if (!input)
		return NULL;
	input->limits = *limits;
	return input;
}

void http_input_free(struct http_input *input)
{
	if (!input)
		return;
	free(input->data);
	free(input);
}

void http_input_rest(struct http_input *input)
{
	if (input->len > 0)
		return;
	assert(input->phase != PHASE_READY); /* a request has bytes */
	free(input->data);
	input->data = NULL;
	input->cap = 0;
	input->start = 0;
}

bool http_input_is_amid(const struct http_input *input)
{
	return input->len > 0 && input->phase < PHASE_READY;
}

bool http_input_is_idle(const struct http_input *input)
{
	return input->len == 0 && input->phase == PHASE_START && !input->skipped_line;
}

bool http_input_is_in_body(const struct http_input *input)
{
	return input->phase > PHASE_HEADERS && input->phase < PHASE_READY;
}

/* ---- room ---- */

/* A head, a body, and a line that is not complete: a caller that takes the requests out never fills it. */
static size_t cap_max(const struct http_input *input)
{
	return 2 * input->limits.head_bytes_max + input->limits.body_bytes_max + CAP_MIN;
}

static void close_gap(struct http_input *input)
{
	size_t body_end = input->body_at + input->body_len;
	char *message = input->data + input->start;

	if (input->body_at == 0 || input->at == body_end)
		return;
	assert(input->at > body_end);
	assert(input->len >= input->at);
	memmove(message + body_end, message + input->at, input->len - input->at);
	input->len -= input->at - body_end;
	input->at = body_end;
}

static void compact(struct http_input *input)
{
	close_gap(input);
	if (input->start > 0)
		memmove(input->data, input->data + input->start, input->len);
	input->start = 0;
}

static int grow(struct http_input *input)
{
	size_t cap = input->cap > 0 ? input->cap * 2 : CAP_MIN;
	char *data;

	if (cap > cap_max(input))
		cap = cap_max(input);
	if (cap == input->cap)
		return -ENOBUFS;
	data = realloc(input->data, cap);
	if (!data)
		return -ENOMEM;
	input->data = data;
	input->cap = cap;
	return 0;
}

static size_t room(const struct http_input *input)
{
	return input->cap - input->start - input->len;
}

int http_input_room(struct http_input *input, char **ret_at, size_t *ret_len)
{
	int r = 0;

	if (input->cap > 0 && room(input) < ROOM_WANTED)
		compact(input);
	if (room(input) < ROOM_WANTED)
		r = grow(input);
	if (room(input) == 0)
		return r;
	*ret_at = input->data + input->start + input->len;
	*ret_len = room(input);
	return 0;
}

void http_input_filled(struct http_input *input, size_t len)
{
	assert(len <= room(input));
	input->len += len;
}

/* ---- the next piece: a line, or some of a body ---- */

static size_t complain(struct http_input *input, const struct http_complaint *complaint)
{
	set_phase(input, PHASE_BAD);
	input->complaint = complaint;
	return 0;
}

/* The length of the line at `at` with its CR LF; 0: it is not all there, or there is cause for complaint. */
static size_t line_next(struct http_input *input, size_t max, const struct http_complaint *too_long)
{
	const char *line = input->data + input->start + input->at;
	size_t here = input->len - input->at;
	size_t end = here < max ? here : max;
	size_t at = scan_text(line, input->seen, end);

	input->seen = at;
	if (at == end || (line[at] == '\r' && at + 1 == end))
		return here >= max ? complain(input, too_long) : 0;
	if (line[at] == '\r' && line[at + 1] == '\n')
		return at + 2;
	return complain(input, line[at] == '\r' || line[at] == '\n' ? &bad_line_end : &bad_control);
}

static size_t start_line_max(const struct http_limits *limits)
{
	size_t max = limits->url_bytes_max + START_LINE_EXTRA;

	return max < limits->head_bytes_max ? max : limits->head_bytes_max;
}

static size_t body_next(const struct http_input *input)
{
	size_t here = input->len - input->at;

	return here < input->left ? here : (size_t)input->left;
}

static size_t piece_next(struct http_input *input)
{
	const struct http_limits *limits = &input->limits;

	switch (input->phase) {
	case PHASE_START:
		return line_next(input, start_line_max(limits), &url_too_long);
	case PHASE_HEADERS:
		return line_next(input, limits->head_bytes_max - input->at, &head_too_large);
	case PHASE_CHUNK_SIZE:
		return line_next(input, CHUNK_LINE_MAX, &bad_chunk);
	case PHASE_CHUNK_END:
		return line_next(input, CHUNK_END_LEN, &bad_chunk);
	case PHASE_TRAILERS:
		return line_next(input, limits->head_bytes_max - input->trailer_bytes, &trailer_too_large);
	case PHASE_BODY:
	case PHASE_CHUNK_DATA:
		return body_next(input);
	case PHASE_READY:
	case PHASE_BAD:
	case PHASE_CLOSED:
		return 0;
	}
	return 0;
}

/* ---- what a piece says ---- */

static void body_add(struct http_input *input, size_t len)
{
	char *message = input->data + input->start;

	assert(len <= input->left);
	if (input->body_at + input->body_len != input->at)
		memmove(message + input->body_at + input->body_len, message + input->at, len);
	input->body_len += len;
	input->left -= len;
}

/* The blank line after the headers: what follows is a body of a length, chunks, or the next request. */
static const struct http_complaint *head_end(struct http_input *input)
{
	const struct http_complaint *complaint = http_head_end(&input->head);

	input->body_at = input->at + 2;
	if (complaint)
		return complaint;
	if (http_head_has(&input->head, HTTP_FIELD_TRANSFER_ENCODING)) {
		set_phase(input, PHASE_CHUNK_SIZE);
		return NULL;
	}
	input->left = input->head.content_length;
	if (input->left > input->limits.body_bytes_max)
		return &body_too_large;
	set_phase(input, input->left > 0 ? PHASE_BODY : PHASE_READY);
	return NULL;
}

static const struct http_complaint *chunk_begin(struct http_input *input, struct span line)
{
	size_t extension_bytes = 0;

	if (!http_chunk_read(line, &input->left, &extension_bytes))
		return &bad_chunk;
	input->extension_bytes += extension_bytes;
	if (input->extension_bytes > input->limits.head_bytes_max)
		return &bad_chunk;
	if (input->left > input->limits.body_bytes_max - input->body_len)
		return &body_too_large;
	set_phase(input, input->left > 0 ? PHASE_CHUNK_DATA : PHASE_TRAILERS);
	return NULL;
}

static const struct http_complaint *trailer_take(struct http_input *input, struct span line)
{
	input->trailer_bytes += line.len + 2;
	if (line.len > 0)
		return http_head_trailer(&input->head, line, &input->limits);
	set_phase(input, PHASE_READY);
	return NULL;
}

static const struct http_complaint *piece_read(struct http_input *input, size_t len)
{
	struct span line = {
		input->data + input->start + input->at, len - 2}; /* of the phases that have lines */

	switch (input->phase) {
	case PHASE_START:
		set_phase(input, PHASE_HEADERS);
		return http_head_start(&input->head, line, input->at, &input->limits);
	case PHASE_HEADERS:
		return line.len > 0 ? http_head_field(&input->head, line, input->at, &input->limits)
				    : head_end(input);
	case PHASE_BODY:
		body_add(input, len);
		set_phase(input, input->left > 0 ? PHASE_BODY : PHASE_READY);
		return NULL;
	case PHASE_CHUNK_SIZE:
		return chunk_begin(input, line);
	case PHASE_CHUNK_DATA:
		body_add(input, len);
		set_phase(input, input->left > 0 ? PHASE_CHUNK_DATA : PHASE_CHUNK_END);
		return NULL;
	case PHASE_CHUNK_END:
		assert(len == CHUNK_END_LEN);
		set_phase(input, PHASE_CHUNK_SIZE);
		return NULL;
	case PHASE_TRAILERS:
		return trailer_take(input, line);
	case PHASE_READY:
	case PHASE_BAD:
	case PHASE_CLOSED:
		break;
	}
	return NULL;
}

static void piece_take(struct http_input *input, size_t len)
{
	const struct http_complaint *complaint = piece_read(input, len);

	input->seen = 0;
	if (complaint)
		complain(input, complaint);
	else
		input->at += len;
}

/* RFC 9112, 2.2: some clients send an empty line after a request. One is forgiven. */
static void skip_empty_line(struct http_input *input)
{
	if (input->skipped_line) {
		complain(input, &bad_empty_lines);
		return;
	}
	input->skipped_line = true;
	input->start += 2;
	input->len -= 2;
	input->seen = 0;
}

/* ---- verdicts ---- */

static struct span marked(const char *message, struct http_mark mark)
{
	return mark.at == 0 ? (struct span){0} : (struct span){message + mark.at, mark.len};
}

/* The request, whose bytes lie at `message`. */
static void read_request(
	const struct http_input *input, const char *message, struct http_request *ret_request)
{
	const struct http_head *head = &input->head;
	const struct http_mark *fields = head->fields;

	*ret_request = (struct http_request){
		.method = head->method,
		.path = marked(message, head->path),
		.query = marked(message, head->query),
		.host = marked(message, fields[HTTP_FIELD_HOST]),
		.authorization = marked(message, fields[HTTP_FIELD_AUTHORIZATION]),
		.content_type = marked(message, fields[HTTP_FIELD_CONTENT_TYPE]),
		.accept = marked(message, fields[HTTP_FIELD_ACCEPT]),
		.origin = marked(message, fields[HTTP_FIELD_ORIGIN]),
		.fetch_site = marked(message, fields[HTTP_FIELD_FETCH_SITE]),
		.forwarded_for = marked(message, fields[HTTP_FIELD_FORWARDED_FOR]),
		.idempotency_key = marked(message, fields[HTTP_FIELD_IDEMPOTENCY_KEY]),
		.if_match = marked(message, fields[HTTP_FIELD_IF_MATCH]),
		.if_none_match = marked(message, fields[HTTP_FIELD_IF_NONE_MATCH]),
		.last_event_id = marked(message, fields[HTTP_FIELD_LAST_EVENT_ID]),
		.request_id = marked(message, fields[HTTP_FIELD_REQUEST_ID]),
		.cookie = marked(message, fields[HTTP_FIELD_COOKIE]),
		.mcp_version = marked(message, fields[HTTP_FIELD_MCP_VERSION]),
		.mcp_method = marked(message, fields[HTTP_FIELD_MCP_METHOD]),
		.mcp_name = marked(message, fields[HTTP_FIELD_MCP_NAME]),
		.traceparent = marked(message, fields[HTTP_FIELD_TRACEPARENT]),
		.page_key = marked(message, fields[HTTP_FIELD_PAGE_KEY]),
		.body = {message + input->body_at, input->body_len},
		.bytes = {message, input->body_at + input->body_len},
		.keep_alive = http_head_keeps_alive(head),
		.takes_chunks = head->is_http_1_1,
	};
}

/* Of a request that is not whole: the client waits for our word, unless it has sent some of the body already. */
static bool must_tell_continue(const struct http_input *input)
{
	assert(input->phase < PHASE_READY);
	return input->head.expects_continue && !input->told_continue && input->body_at > 0 &&
		input->len == input->body_at;
}

enum http_input_status http_input_next(
	struct http_input *input, struct http_request *ret_request, struct http_complaint *ret_complaint)
{
	size_t len;

	if (input->phase == PHASE_CLOSED)
		input->len = 0;
	if (input->len == 0)
		return HTTP_MORE;
	while ((len = piece_next(input)) > 0) {
		if (input->phase == PHASE_START && len == 2)
			skip_empty_line(input);
		else
			piece_take(input, len);
	}
	if (input->phase == PHASE_READY) {
		if (ret_request)
			read_request(input, input->data + input->start, ret_request);
		return HTTP_READY;
	}
	if (input->phase == PHASE_BAD) {
		*ret_complaint = *input->complaint;
		return HTTP_BAD;
	}
	if (must_tell_continue(input)) {
		input->told_continue = true;
		return HTTP_CONTINUE;
	}
	return HTTP_MORE;
}

struct span http_input_path(const struct http_input *input)
{
	return input->body_at > 0 ? marked(input->data + input->start, input->head.path) : (struct span){0};
}

void http_input_head(const struct http_input *input, struct http_request *ret_request)
{
	assert(http_input_is_in_body(input));
	read_request(input, input->data + input->start, ret_request);
}

uint64_t http_input_body_bytes(const struct http_input *input)
{
	return input->body_len + input->left;
}

enum http_method http_input_method(const struct http_input *input)
{
	return input->head.method;
}

int http_input_take(struct http_input *input, struct arena *arena, struct http_request *ret_request)
{
	struct span bytes = {input->data + input->start, input->body_at + input->body_len};
	int r = arena_copy(arena, bytes, &bytes);

	if (r < 0)
		return r;
	read_request(input, bytes.data, ret_request);
	http_input_drop(input);
	return 0;
}

void http_input_drop(struct http_input *input)
{
	bool keep_alive = http_head_keeps_alive(&input->head);

	assert(input->phase == PHASE_READY);
	assert(input->at <= input->len);
	input->start += input->at;
	input->len -= input->at;
	expect_message(input);
	set_phase(
		input, keep_alive ? PHASE_START : PHASE_CLOSED); /* nothing is read behind the last request */
	if (input->len == 0 || !keep_alive) {
		input->start = 0;
		input->len = 0;
	}
}
