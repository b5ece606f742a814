#include "worker/report/log_upload.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/take.h"
#include "base/utf8.h"
#include "wire/json/json.h"
#include "worker/beat/text.h"
#include "attempt/retry.h"

enum {
	PIECE_BYTES_MAX = 48 << 10,
	BODY_BYTES_MAX = 512 << 10, /* every byte may need six to be written down */
	TIMEOUT_MS = 30 * 1000,
	AWAY_MS = 15 * 1000,
	BAD_OFFSETS_MAX = 3,
};

void log_upload_init(struct log_upload *upload, uv_loop_t *loop, struct api_client *client,
	struct heartbeat_client *heartbeat, struct span target, struct span fence)
{
	*upload = (struct log_upload){
		.client = client, .heartbeat = heartbeat, .target = target, .fence = fence};
	buf_init(&upload->piece, PIECE_BYTES_MAX + 8);
	buf_init(&upload->body, BODY_BYTES_MAX);
	rng_seed(&upload->rng, uv_hrtime());
	uv_timer_init(loop, &upload->timer);
	upload->timer.data = upload;
}

void log_upload_begin(struct log_upload *upload, struct process *process, struct output *own)
{
	assert(!process != !own);
	upload->process = process;
	upload->own = own;
}

void log_upload_done(struct log_upload *upload)
{
	buf_done(&upload->piece);
	buf_done(&upload->body);
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
static size_t take_text(struct log_upload *upload, struct span bytes)
{
	size_t used = 0;
	bool good;

	while (used < bytes.len && upload->piece.len < PIECE_BYTES_MAX) {
		struct span rest = {bytes.data + used, bytes.len - used};
		size_t len = utf8_next(rest, &good);
		if (!good && is_unfinished(rest) && !upload->finishing)
			break;
		bool text = good && rest.data[0] != 0;
		size_t before = upload->piece.len;
		int r = text ? buf_put(&upload->piece, rest.data, len)
			     : buf_put(&upload->piece, "\xef\xbf\xbd", 3);
		if (r < 0) {
			buf_cut(&upload->piece, before); /* what there is goes out, and the rest waits */
			break;
		}
		used += len;
		upload->amid_line = rest.data[len - 1] != '\n';
	}
	return used;
}

static void take_last(struct log_upload *upload)
{
	size_t before = upload->piece.len;

	if (upload->amid_line && buf_put_byte(&upload->piece, '\n') < 0)
		buf_cut(&upload->piece, before);
	take_text(upload, upload->last);
	upload->last = (struct span){0};
}

static void take_stream(struct log_upload *upload, enum process_stream stream)
{
	const struct output *output = upload->own ? upload->own : process_output(upload->process, stream);
	struct span bytes;
	size_t used;

	do {
		assert(output->dropped >= upload->dropped_seen[stream]);
		uint64_t lost = output->dropped - upload->dropped_seen[stream];
		if (lost > 0 && upload->piece.len > 0)
			return; /* a gap stands between two pieces */
		upload->dropped += (int64_t)lost;
		upload->dropped_seen[stream] = output->dropped;
		bytes = output_unread(output, NULL);
		used = bytes.len > 0 ? take_text(upload, bytes) : 0;
		if (upload->own)
			output_advance(upload->own, used);
		else
			process_advance(upload->process, stream, used);
	} while (used > 0);
}

/* ---- sending ---- */

static void on_again(uv_timer_t *timer)
{
	log_upload_look(timer->data);
}

static void close_log(struct log_upload *upload)
{
	upload->closed = true;
	buf_clear(&upload->piece);
}

static int64_t length_of(const struct http_answer *answer)
{
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;

	json_read_reply(http_answer_body(answer), &doc);
	yyjson_val *length = yyjson_obj_get(yyjson_doc_get_root(doc), "length");

	return yyjson_is_int(length) ? yyjson_get_sint(length) : -1;
}

static void hear(struct log_upload *upload, int fault, const struct http_answer *answer)
{
	int status = fault == 0 ? http_answer_status(answer) : 0;

	if (status == 200) {
		upload->offset += upload->dropped + (int64_t)upload->piece.len;
		upload->dropped = 0;
		upload->failures = 0;
		buf_clear(&upload->piece);
		return;
	}
	upload->failures++;
	int64_t length = status == 409 ? length_of(answer) : -1;
	if (length >= 0 && upload->failures <= BAD_OFFSETS_MAX) {
		upload->offset = length;
		return;
	}
	if (status >= 400 && status < 500 && status != 401 && status != 429) {
		close_log(upload);
		return;
	}
	int64_t asked_ms = fault == 0 ? retry_after_ms(answer) : 0;
	uv_timer_start(&upload->timer, on_again,
		(uint64_t)(asked_ms > 0 ? asked_ms : retry_delay_ms(upload->failures, AWAY_MS, &upload->rng)),
		0);
}

static void on_answer(void *context, int fault, const struct http_answer *answer)
{
	struct log_upload *upload = context;

	hear(upload, fault, answer);
	if (!uv_is_active((uv_handle_t *)&upload->timer))
		log_upload_look(upload);
}

static int send_piece(struct log_upload *upload)
{
	struct json_object object;

	assert(!upload->closed);
	assert(upload->piece.len > 0);
	assert(upload->offset >= 0);
	assert(upload->dropped >= 0);
	buf_clear(&upload->body);
	json_begin(&object, &upload->body);
	json_member_string(&object, "workerId", heartbeat_worker_id(upload->heartbeat));
	json_member_string(&object, "fence", upload->fence);
	json_member_int(&object, "offset", upload->offset + upload->dropped);
	json_member_string(&object, "data", buf_span(&upload->piece));
	if (upload->dropped > 0)
		json_member_int(&object, "dropped", upload->dropped);
	int r = json_end(&object);
	return r < 0 ? r
		     : api_client_post(upload->client, upload->target, buf_span(&upload->body),
			       heartbeat_token(upload->heartbeat), TIMEOUT_MS, on_answer, upload);
}

static void on_finished(uv_timer_t *timer)
{
	struct log_upload *upload = timer->data;

	upload->finished(upload->context);
}

void log_upload_look(struct log_upload *upload)
{
	if ((!upload->process && !upload->own) || api_client_is_busy(upload->client) ||
		uv_is_active((uv_handle_t *)&upload->timer))
		return;
	for (int stream = upload->own ? STREAM_ERR : STREAM_OUT; !upload->closed && stream <= STREAM_ERR;
		stream++)
		take_stream(upload, (enum process_stream)stream);
	if (upload->finishing && upload->last.len > 0 && !upload->closed && upload->piece.len == 0)
		take_last(upload);
	if (upload->piece.len > 0 && send_piece(upload) < 0)
		close_log(upload);
	if (upload->finishing && upload->piece.len == 0)
		uv_timer_start(&upload->timer, on_finished, 0, 0);
}

void log_upload_add_last(struct log_upload *upload, struct span line)
{
	upload->last = line;
}

void log_upload_finish(struct log_upload *upload, void (*finished)(void *context), void *context)
{
	assert(!upload->finishing);
	assert(upload->process || upload->own); /* it was begun */
	upload->finishing = true;
	upload->finished = finished;
	upload->context = context;
	log_upload_look(upload);
}
