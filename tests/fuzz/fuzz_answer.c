/*
 * What a server sends: a reply, and the events of a stream. However the bytes are cut into pieces, the same comes out;
 * nothing is held beyond the limits; and what we read as a reply another reader of HTTP reads as the same one.
 */
#include <assert.h>
#include <errno.h>
#include <llhttp.h>
#include <string.h>

#include "base/hash.h"
#include "base/rng.h"
#include "base/take.h"
#include "fuzz/fuzz.h"
#include "wire/http/answer.h"
#include "wire/sse.h"

#define TEXT_MAX ((size_t)64 << 20)

static const struct http_answer_limits large = {.head_bytes_max = 4096, .body_bytes_max = 1 << 20};
static const struct http_answer_limits small = {.head_bytes_max = 64, .body_bytes_max = 32};

static size_t next_piece(struct rng *rng, size_t each, size_t left)
{
	size_t len = each > 0 ? each : 1 + rng_below(rng, 16);

	return len < left ? len : left;
}

/* ---- another reader ---- */

struct second_reader {
	struct buf body;
	bool complete; /* the reply itself, not one of the 1xx kind before it */
};

static int on_body(llhttp_t *parser, const char *at, size_t len)
{
	struct second_reader *second = parser->data;

	return buf_put(&second->body, at, len);
}

static int on_complete(llhttp_t *parser)
{
	struct second_reader *second = parser->data;

	second->complete = parser->status_code >= 200;
	return second->complete ? HPE_PAUSED : 0;
}

static void expect_second_reader_agrees(struct span bytes, const struct http_answer *answer)
{
	static const llhttp_settings_t settings = {.on_body = on_body, .on_message_complete = on_complete};
	struct second_reader second = {0};
	llhttp_t parser;

	buf_init(&second.body, TEXT_MAX);
	llhttp_init(&parser, HTTP_RESPONSE, &settings);
	parser.data = &second;
	llhttp_errno_t error = llhttp_execute(&parser, bytes.data, bytes.len);
	if (error == HPE_OK) {
		error = llhttp_finish(&parser);
		assert(error == HPE_OK || error == HPE_PAUSED);
	} else {
		assert(error == HPE_PAUSED);
		assert(llhttp_get_error_pos(&parser) == bytes.data + bytes.len);
	}
	assert(second.complete);
	assert(parser.status_code == http_answer_status(answer));
	assert(span_equal(buf_span(&second.body), http_answer_body(answer)));
	/* that one obeys trailers, and for us they change nothing */
	assert(parser.flags & F_CHUNKED || !http_answer_keeps_alive(answer) ||
		llhttp_should_keep_alive(&parser));
	buf_done(&second.body);
}

/* ---- ours ---- */

/* The reply as text. A fault may be noticed a piece earlier or later: what was said before it does not count. */
static void tell_answer(
	const struct http_answer_limits *limits, struct span bytes, size_t each, struct buf *told)
{
	struct http_answer *answer = http_answer_new(limits);
	struct span all = bytes;
	struct rng rng;
	int r = 0;

	assert(answer);
	rng_seed(&rng, bytes.len + 1);
	while (r == 0 && bytes.len > 0) {
		size_t len = next_piece(&rng, each, bytes.len);
		r = http_answer_feed(answer, (struct span){bytes.data, len});
		assert(http_answer_body(answer).len <= limits->body_bytes_max);
		bytes = (struct span){bytes.data + len, bytes.len - len};
	}
	if (r == 0)
		r = http_answer_end(answer);
	assert(r == 0 || r == -EPROTO || r == -E2BIG);
	/* which limit or rule it broke first is a matter of the pieces; that it broke one is not */
	buf_printf(told, "%s", r < 0 ? "refused" : "read");
	if (r == 0) {
		assert(http_answer_phase(answer) == HTTP_ANSWER_DONE);
		expect_second_reader_agrees(all, answer);
		buf_printf(told, " %d %d", http_answer_status(answer), http_answer_keeps_alive(answer));
		for (int i = 0; i < HTTP_ANSWER_FIELD_COUNT; i++)
			buf_printf(told, " [%.*s]",
				SPAN_ARGS(http_answer_field(answer, (enum http_answer_field)i)));
		buf_put_span(told, http_answer_body(answer));
	}
	http_answer_free(answer);
}

static int note_event(void *context, const struct sse_event *event)
{
	assert(event->data.len <= TEXT_MAX);
	return buf_printf(context, "[%.*s|%.*s|%.*s]", SPAN_ARGS(event->id), SPAN_ARGS(event->type),
		SPAN_ARGS(event->data));
}

static void tell_events(struct span bytes, size_t each, struct buf *told)
{
	struct sse sse;
	struct rng rng;
	int r = 0;

	rng_seed(&rng, bytes.len + 7);
	sse_init(&sse, 256);
	while (r == 0 && bytes.len > 0) {
		size_t len = next_piece(&rng, each, bytes.len);
		r = sse_feed(&sse, (struct span){bytes.data, len}, note_event, told);
		bytes = (struct span){bytes.data + len, bytes.len - len};
	}
	assert(r == 0 || r == -E2BIG);
	sse_done(&sse);
}

static void expect_same(struct span bytes, const struct http_answer_limits *limits)
{
	cleanup(buf_done) struct buf whole, pieces, single;

	buf_init(&whole, TEXT_MAX);
	buf_init(&pieces, TEXT_MAX);
	buf_init(&single, TEXT_MAX);
	if (limits) {
		tell_answer(limits, bytes, SIZE_MAX, &whole);
		tell_answer(limits, bytes, 0, &pieces);
		tell_answer(limits, bytes, 1, &single);
	} else {
		tell_events(bytes, SIZE_MAX, &whole);
		tell_events(bytes, 0, &pieces);
		tell_events(bytes, 1, &single);
	}
	assert(span_equal(buf_span(&whole), buf_span(&pieces)));
	assert(span_equal(buf_span(&whole), buf_span(&single)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span bytes = {(const char *)data, size};

	expect_same(bytes, &large);
	expect_same(bytes, &small);
	expect_same(bytes, NULL);
	return 0;
}
