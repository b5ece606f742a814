#include "fuzz/http_dialogue.h"

#include <assert.h>
#include <llhttp.h>

#include "base/rng.h"
#include "base/take.h"

CLEANUP_AT(struct http_input, http_input_free);

static void say(struct buf *text, const char *name, struct span value)
{
	if (!value.data)
		return;
	assert(buf_printf(text, " %s=", name) == 0);
	assert(buf_put_span(text, value) == 0);
}

static void say_request(struct buf *text, const struct http_request *request)
{
	assert(request->path.len > 0);
	assert(request->path.data[0] == '/');
	assert(request->host.data);
	assert(buf_printf(text, "%s ", http_method_name(request->method)) == 0);
	assert(buf_put_span(text, request->path) == 0);
	if (request->query.data)
		assert(buf_printf(text, "?%.*s", SPAN_ARGS(request->query)) == 0);
	say(text, "host", request->host);
	say(text, "authorization", request->authorization);
	say(text, "type", request->content_type);
	say(text, "accept", request->accept);
	say(text, "origin", request->origin);
	say(text, "site", request->fetch_site);
	say(text, "key", request->idempotency_key);
	say(text, "if-match", request->if_match);
	say(text, "if-none-match", request->if_none_match);
	say(text, "last", request->last_event_id);
	say(text, "id", request->request_id);
	say(text, "cookie", request->cookie);
	say(text, "page", request->page_key);
	if (request->body.len > 0)
		say(text, "body", request->body);
	assert(buf_printf(text, request->keep_alive ? " keep\n" : " close\n") == 0);
}

/* Another HTTP reader, over the bytes as they came: what ours takes for a request is one for that reader too. */
struct second_reader {
	struct span left; /* behind the last request */
	struct buf body;
	bool complete;
};

static int on_body(llhttp_t *parser, const char *at, size_t len)
{
	struct second_reader *second = parser->data;

	return buf_put(&second->body, at, len);
}

static int on_complete(llhttp_t *parser)
{
	struct second_reader *second = parser->data;

	second->complete = true;
	return HPE_PAUSED;
}

static void expect_second_reader_agrees(struct second_reader *second, const struct http_request *request)
{
	static const llhttp_settings_t settings = {.on_body = on_body, .on_message_complete = on_complete};
	llhttp_t parser;

	second->complete = false;
	buf_clear(&second->body);
	llhttp_init(&parser, HTTP_REQUEST, &settings);
	parser.data = second;
	llhttp_errno_t error = llhttp_execute(&parser, second->left.data, second->left.len);
	assert(error == HPE_PAUSED);
	assert(second->complete);
	assert(span_equal(buf_span(&second->body), request->body));
	/* that one obeys trailers, and for us they change nothing */
	assert(parser.flags & F_CHUNKED || llhttp_should_keep_alive(&parser) == request->keep_alive);
	const char *end = llhttp_get_error_pos(&parser);
	second->left.len -= (size_t)(end - second->left.data);
	second->left.data = end;
}

/* Takes out all that is complete. False after the last word. */
static bool listen(struct http_input *input, struct second_reader *second, struct buf *text)
{
	struct http_request request;
	struct http_complaint complaint;

	for (;;) {
		switch (http_input_next(input, &request, &complaint)) {
		case HTTP_MORE:
			return true;
		case HTTP_CONTINUE:
			assert(http_input_is_amid(input));
			assert(http_input_next(input, &request, &complaint) == HTTP_MORE);
			return true;
		case HTTP_READY:
			assert(!http_input_is_amid(input));
			expect_second_reader_agrees(second, &request);
			say_request(text, &request);
			http_input_drop(input);
			break;
		case HTTP_BAD:
			assert(complaint.status >= 400);
			assert(complaint.reason[0]);
			assert(buf_printf(text, "BAD %d\n", complaint.status) == 0);
			return false;
		}
	}
}

/* Puts the bytes in, as many reads as the room makes necessary. False after the last word. */
static bool tell(struct http_input *input, struct span bytes, struct second_reader *second, struct buf *text)
{
	while (bytes.len > 0) {
		char *at;
		size_t len;

		assert(http_input_room(input, &at, &len) == 0);
		assert(len > 0);
		if (len > bytes.len)
			len = bytes.len;
		memcpy(at, bytes.data, len);
		http_input_filled(input, len);
		bytes.data += len;
		bytes.len -= len;
		if (!listen(input, second, text))
			return false;
	}
	return true;
}

static size_t next_piece(struct http_pieces *pieces, struct rng *rng, size_t left)
{
	size_t len = pieces->first > 0 ? pieces->first : pieces->each;

	pieces->first = 0;
	if (pieces->seed)
		len = 1 + rng_below(rng, rng_chance(rng, 4) ? 1000 : 9);
	return len > 0 && len < left ? len : left;
}

void http_dialogue(
	const struct http_limits *limits, struct span bytes, struct http_pieces pieces, struct buf *ret_text)
{
	cleanup(http_input_free_at) struct http_input *input = http_input_new(limits);
	struct second_reader second = {.left = bytes};
	struct rng rng;

	assert(input);
	buf_init(&second.body, bytes.len);
	rng_seed(&rng, pieces.seed);
	while (bytes.len > 0) {
		size_t len = next_piece(&pieces, &rng, bytes.len);

		if (!tell(input, (struct span){bytes.data, len}, &second, ret_text)) {
			buf_done(&second.body);
			return;
		}
		bytes.data += len;
		bytes.len -= len;
		if (!http_input_is_amid(input))
			http_input_rest(input);
	}
	buf_done(&second.body);
	assert(buf_printf(ret_text, http_input_is_amid(input) ? "AMID\n" : "MORE\n") == 0);
}
