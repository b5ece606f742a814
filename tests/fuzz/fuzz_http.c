/*
 * Requests. However the bytes are cut into pieces, the same requests come out with the same last word; the same
 * under small limits; and a reply made of whatever the client sent is one reply, or is refused.
 */
#include <assert.h>
#include <errno.h>
#include <llhttp.h>
#include <string.h>

#include "base/hash.h"
#include "base/take.h"
#include "fuzz/fuzz.h"
#include "fuzz/http_dialogue.h"
#include "wire/http/http.h"

#define TEXT_MAX ((size_t)64 << 20)

static const struct http_limits small_limits = {
	.head_bytes_max = 256,
	.headers_max = 6,
	.url_bytes_max = 32,
	.body_bytes_max = 64,
};

static uint64_t seed_of(struct span bytes)
{
	static const struct hash_key key = {1, 2};

	return hash_bytes(&key, bytes.data, bytes.len) | 1;
}

static void expect_same_in_pieces(const struct http_limits *limits, struct span bytes)
{
	cleanup(buf_done) struct buf whole, pieces, single;

	buf_init(&whole, TEXT_MAX);
	buf_init(&pieces, TEXT_MAX);
	buf_init(&single, TEXT_MAX);
	http_dialogue(limits, bytes, (struct http_pieces){0}, &whole);
	http_dialogue(limits, bytes, (struct http_pieces){.seed = seed_of(bytes)}, &pieces);
	http_dialogue(limits, bytes, (struct http_pieces){.each = 1}, &single);
	assert(span_equal(buf_span(&whole), buf_span(&pieces)));
	assert(span_equal(buf_span(&whole), buf_span(&single)));
}

/* The reply as another HTTP reader sees it: complete, and nothing behind it. */
struct seen {
	size_t headers;
	size_t body_bytes;
	bool complete;
};

static int on_header(llhttp_t *parser)
{
	((struct seen *)parser->data)->headers++;
	return 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t len)
{
	(void)at;
	((struct seen *)parser->data)->body_bytes += len;
	return 0;
}

static int on_complete(llhttp_t *parser)
{
	((struct seen *)parser->data)->complete = true;
	return HPE_PAUSED;
}

static void expect_one_reply(struct span out, size_t headers, size_t body_bytes)
{
	static const llhttp_settings_t settings = {
		.on_header_value_complete = on_header,
		.on_body = on_body,
		.on_message_complete = on_complete,
	};
	struct seen seen = {0};
	llhttp_t parser;

	llhttp_init(&parser, HTTP_RESPONSE, &settings);
	parser.data = &seen;
	assert(llhttp_execute(&parser, out.data, out.len) == HPE_PAUSED);
	assert(seen.complete);
	assert(llhttp_get_error_pos(&parser) == out.data + out.len);
	assert(seen.headers == headers);
	assert(seen.body_bytes == body_bytes);
}

static void reply_with(struct span text)
{
	cleanup(buf_done) struct buf out;
	struct http_reply reply = {
		.status = 200,
		.location = text,
		.body = text,
		.event_seq = 7,
	};
	int r;

	buf_init(&out, TEXT_MAX);
	r = http_put_reply(&out, &reply);
	if (r < 0) {
		assert(r == -EINVAL);
		assert(out.len == 0);
		return;
	}
	expect_one_reply(buf_span(&out), text.len > 0 ? 6 : 5, text.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span bytes = {(const char *)data, size};
	struct http_limits limits = http_limits_default();

	expect_same_in_pieces(&limits, bytes);
	expect_same_in_pieces(&small_limits, bytes);
	reply_with(bytes);
	return 0;
}
