#include "worker/report/scribe.h"

#include <errno.h>
#include <string.h>

#include "base/take.h"
#include "base/utf8.h"
#include "wire/json/json.h"
#include "worker/beat/text.h"
#include "attempt/retry.h"

CLEANUP_AT(yyjson_doc, yyjson_doc_free);

enum {
	PIECE_BYTES_MAX = 48 << 10,
	BODY_BYTES_MAX = 512 << 10, /* every byte may need six to be written down */
	TIMEOUT_MS = 30 * 1000,
	AWAY_MS = 15 * 1000,
	BAD_OFFSETS_MAX = 3,
};

void scribe_init(struct scribe *scribe, uv_loop_t *loop, struct line *line, struct pulse *pulse,
	struct span target, struct span fence)
{
	*scribe = (struct scribe){.line = line, .pulse = pulse, .target = target, .fence = fence};
	buf_init(&scribe->piece, PIECE_BYTES_MAX + 8);
	buf_init(&scribe->body, BODY_BYTES_MAX);
	rng_seed(&scribe->rng, uv_hrtime());
	uv_timer_init(loop, &scribe->timer);
	scribe->timer.data = scribe;
}

void scribe_begin(struct scribe *scribe, struct process *process)
{
	scribe->process = process;
}

void scribe_begin_own(struct scribe *scribe, struct output *own)
{
	scribe->own = own;
}

void scribe_done(struct scribe *scribe)
{
	buf_done(&scribe->piece);
	buf_done(&scribe->body);
}

/* ---- bytes to text ---- */

/* Could the bytes at the end be the beginning of a character? */
static bool is_unfinished(struct span rest)
{
	unsigned char first = (unsigned char)rest.data[0];
	size_t needs = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;

	return rest.len < needs;
}

/* How many of the bytes went into the piece. */
static size_t take_text(struct scribe *scribe, struct span bytes)
{
	size_t used = 0;
	bool good;

	while (used < bytes.len && scribe->piece.len < PIECE_BYTES_MAX) {
		struct span rest = {bytes.data + used, bytes.len - used};
		size_t len = utf8_next(rest, &good);
		if (!good && is_unfinished(rest) && !scribe->finishing)
			break;
		bool text = good && rest.data[0] != 0;
		size_t before = scribe->piece.len;
		int r = text ? buf_put(&scribe->piece, rest.data, len)
			     : buf_put(&scribe->piece, "\xef\xbf\xbd", 3);
		if (r < 0) {
			buf_cut(&scribe->piece, before); /* what there is goes out, and the rest waits */
			break;
		}
		used += len;
		scribe->amid_line = rest.data[len - 1] != '\n';
	}
	return used;
}

static void take_last(struct scribe *scribe)
{
	size_t before = scribe->piece.len;

	if (scribe->amid_line && buf_put_byte(&scribe->piece, '\n') < 0)
		buf_cut(&scribe->piece, before);
	take_text(scribe, scribe->last);
	scribe->last = (struct span){0};
}

static void take_stream(struct scribe *scribe, enum process_stream stream)
{
	const struct output *output = scribe->own ? scribe->own : process_output(scribe->process, stream);
	struct span bytes;
	size_t used;

	do {
		uint64_t lost = output->dropped - scribe->dropped_seen[stream];
		if (lost > 0 && scribe->piece.len > 0)
			return; /* a gap stands between two pieces */
		scribe->dropped += (int64_t)lost;
		scribe->dropped_seen[stream] = output->dropped;
		bytes = output_unread(output, NULL);
		used = bytes.len > 0 ? take_text(scribe, bytes) : 0;
		if (scribe->own)
			output_advance(scribe->own, used);
		else
			process_advance(scribe->process, stream, used);
	} while (used > 0);
}

/* ---- sending ---- */

static void on_again(uv_timer_t *timer)
{
	scribe_look(timer->data);
}

static void close_log(struct scribe *scribe)
{
	scribe->closed = true;
	buf_clear(&scribe->piece);
}

static int64_t length_of(const struct http_answer *answer)
{
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(http_answer_body(answer), &complaint);
	yyjson_val *length = yyjson_obj_get(yyjson_doc_get_root(doc), "length");

	return yyjson_is_int(length) ? yyjson_get_sint(length) : -1;
}

static void hear(struct scribe *scribe, int fault, const struct http_answer *answer)
{
	int status = fault == 0 ? http_answer_status(answer) : 0;

	if (status == 200) {
		scribe->offset += scribe->dropped + (int64_t)scribe->piece.len;
		scribe->dropped = 0;
		scribe->failures = 0;
		buf_clear(&scribe->piece);
		return;
	}
	scribe->failures++;
	int64_t length = status == 409 ? length_of(answer) : -1;
	if (length >= 0 && scribe->failures <= BAD_OFFSETS_MAX) {
		scribe->offset = length;
		return;
	}
	if (status >= 400 && status < 500 && status != 401 && status != 429) {
		close_log(scribe);
		return;
	}
	int64_t asked_ms = fault == 0 ? retry_after_ms(answer) : 0;
	uv_timer_start(&scribe->timer, on_again,
		(uint64_t)(asked_ms > 0 ? asked_ms : retry_delay_ms(scribe->failures, AWAY_MS, &scribe->rng)),
		0);
}

static void on_answer(void *context, int fault, enum http_reach reach, const struct http_answer *answer)
{
	struct scribe *scribe = context;

	(void)reach;
	hear(scribe, fault, answer);
	if (!uv_is_active((uv_handle_t *)&scribe->timer))
		scribe_look(scribe);
}

static int send_piece(struct scribe *scribe)
{
	struct json_object object;

	buf_clear(&scribe->body);
	json_begin(&object, &scribe->body);
	json_member_string(&object, "workerId", pulse_worker_id(scribe->pulse));
	json_member_string(&object, "fence", scribe->fence);
	json_member_int(&object, "offset", scribe->offset + scribe->dropped);
	json_member_string(&object, "data", buf_span(&scribe->piece));
	if (scribe->dropped > 0)
		json_member_int(&object, "dropped", scribe->dropped);
	int r = json_end(&object);
	if (r < 0)
		return r;
	struct http_call call = {
		.method = HTTP_METHOD_POST,
		.target = scribe->target,
		.body = buf_span(&scribe->body),
		.token = pulse_token(scribe->pulse),
		.may_repeat = true,
		.timeout_ms = TIMEOUT_MS,
	};
	return line_call(scribe->line, &call, on_answer, scribe);
}

static void on_finished(uv_timer_t *timer)
{
	struct scribe *scribe = timer->data;

	scribe->finished(scribe->context);
}

void scribe_look(struct scribe *scribe)
{
	if ((!scribe->process && !scribe->own) || line_is_busy(scribe->line) ||
		uv_is_active((uv_handle_t *)&scribe->timer))
		return;
	for (int stream = scribe->own ? STREAM_ERR : STREAM_OUT; !scribe->closed && stream <= STREAM_ERR;
		stream++)
		take_stream(scribe, (enum process_stream)stream);
	if (scribe->finishing && scribe->last.len > 0 && !scribe->closed && scribe->piece.len == 0)
		take_last(scribe);
	if (scribe->piece.len > 0 && send_piece(scribe) < 0)
		close_log(scribe);
	if (scribe->finishing && scribe->piece.len == 0)
		uv_timer_start(&scribe->timer, on_finished, 0, 0);
}

void scribe_add_last(struct scribe *scribe, struct span line)
{
	scribe->last = line;
}

void scribe_finish(struct scribe *scribe, void (*finished)(void *context), void *context)
{
	scribe->finishing = true;
	scribe->finished = finished;
	scribe->context = context;
	scribe_look(scribe);
}
