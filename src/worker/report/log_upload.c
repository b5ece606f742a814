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
	CHARACTER_BYTES_MAX = 4,
	WORD_BYTES = 512, /* as long as a token may be */
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

/* The piece is nearly full, and a line has just ended: the next one begins a new piece. So no token is cut in two, which the server
 * would not recognise. */
static bool ends_here(const struct log_upload *upload)
{
	return upload->piece.len + WORD_BYTES >= PIECE_BYTES_MAX && !upload->amid_line;
}

/* How many of the bytes went into the piece. Of a character that is not complete nothing does, unless no more comes. */
static size_t take_text(struct log_upload *upload, struct span bytes, bool all)
{
	size_t used = 0;
	bool good;

	while (used < bytes.len && upload->piece.len < PIECE_BYTES_MAX && !ends_here(upload)) {
		struct span rest = {bytes.data + used, bytes.len - used};
		size_t len = utf8_next(rest, &good);
		if (!good && is_unfinished(rest) && !all)
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

/* Can the piece tell that more of this stream follows? False: its streams change too often. */
static bool has_length_for(const struct log_upload *upload, enum process_stream stream)
{
	uint32_t turn = (uint32_t)stream;

	return (upload->length_count > 0 && (upload->length_count - 1) % 2 == turn) ||
		upload->length_count + 2 <= LOG_PIECE_LENGTHS_MAX;
}

static void add_length(struct log_upload *upload, enum process_stream stream, size_t bytes)
{
	if (bytes == 0)
		return;
	while (upload->length_count == 0 || (upload->length_count - 1) % 2 != (uint32_t)stream)
		upload->lengths[upload->length_count++] = 0;
	upload->lengths[upload->length_count - 1] += (uint32_t)bytes;
}

static void take_last(struct log_upload *upload)
{
	size_t before = upload->piece.len;

	if (upload->amid_line && buf_put_byte(&upload->piece, '\n') < 0)
		buf_cut(&upload->piece, before);
	take_text(upload, upload->last, true);
	add_length(upload, STREAM_ERR, upload->piece.len - before);
	upload->last = (struct span){0};
}

static const struct output *output_of(const struct log_upload *upload, enum process_stream stream)
{
	return upload->own ? upload->own : process_output(upload->process, stream);
}

static void advance(struct log_upload *upload, enum process_stream stream, size_t bytes)
{
	if (upload->own)
		output_advance(upload->own, bytes);
	else
		process_advance(upload->process, stream, bytes);
}

/* What is unread, as far as it lies together. A character that begins at the end of the buffer's memory goes on at its
 * beginning: then its bytes are put together. */
static struct span unread(const struct output *output, char joined[2 * CHARACTER_BYTES_MAX])
{
	struct span bytes = output_unread(output, NULL);
	size_t more = output_waiting(output) - bytes.len;

	if (bytes.len == 0 || bytes.len >= CHARACTER_BYTES_MAX || more == 0)
		return bytes;
	more = more < CHARACTER_BYTES_MAX ? more : CHARACTER_BYTES_MAX;
	memcpy(joined, bytes.data, bytes.len);
	memcpy(joined + bytes.len, output->data, more);
	return (struct span){joined, bytes.len + more};
}

/* Takes what the stream has up to that position into the piece. False: the piece ends here. */
static bool take_stream(struct log_upload *upload, enum process_stream stream, uint64_t upto)
{
	const struct output *output = output_of(upload, stream);
	char joined[2 * CHARACTER_BYTES_MAX];

	for (;;) {
		assert(output->dropped >= upload->dropped_seen[stream]);
		uint64_t lost = output->dropped - upload->dropped_seen[stream];
		if (lost > 0 && upload->piece.len > 0)
			return false; /* a gap stands between two pieces */
		upload->dropped += (int64_t)lost;
		upload->dropped_seen[stream] = output->dropped;
		struct span bytes = unread(output, joined);
		if (output->read >= upto || bytes.len == 0)
			return true;
		if (bytes.len > upto - output->read)
			bytes.len = (size_t)(upto - output->read);
		if (!has_length_for(upload, stream))
			return false;
		size_t before = upload->piece.len, first = output_unread(output, NULL).len;
		size_t used = take_text(upload, bytes, upload->finishing && upto == UINT64_MAX);
		add_length(upload, stream, upload->piece.len - before);
		advance(upload, stream, used < first ? used : first);
		if (used > first)
			advance(upload, stream, used - first);
		if (used == 0) /* the piece is full; or a character that is not complete waits for its rest */
			return upload->piece.len < PIECE_BYTES_MAX && !ends_here(upload);
	}
}

/* In the order in which it was read. */
static void take_all(struct log_upload *upload)
{
	size_t before = upload->piece.len, used = take_text(upload, upload->first, true);
	add_length(upload, STREAM_ERR, upload->piece.len - before);
	upload->first = (struct span){upload->first.data + used, upload->first.len - used};
	if (upload->first.len > 0)
		return; /* there was no memory for it */
	while (upload->mark_count > 0) {
		const struct log_mark *mark = &upload->marks[upload->mark_first];
		if (!take_stream(upload, mark->stream, mark->end))
			return;
		upload->mark_first = (upload->mark_first + 1) % LOG_MARKS_MAX;
		upload->mark_count--;
	}
	/* what was read when the process had ended has no mark */
	if (upload->own || take_stream(upload, STREAM_OUT, UINT64_MAX))
		take_stream(upload, STREAM_ERR, UINT64_MAX);
}

static struct log_mark *mark_at(struct log_upload *upload, uint32_t index)
{
	return &upload->marks[(upload->mark_first + index) % LOG_MARKS_MAX];
}

void log_upload_hear(struct log_upload *upload, enum process_stream stream)
{
	uint32_t count = upload->mark_count;
	uint64_t end = output_of(upload, stream)->end;

	/* streams take turns: the last mark of this one is the last or, if no mark is free, the one before it */
	if (count > 0 && mark_at(upload, count - 1)->stream == stream)
		mark_at(upload, count - 1)->end = end;
	else if (count == LOG_MARKS_MAX)
		mark_at(upload, count - 2)->end = end;
	else
		*mark_at(upload, upload->mark_count++) = (struct log_mark){stream, end};
}

/* ---- sending ---- */

static void on_again(uv_timer_t *timer)
{
	log_upload_look(timer->data);
}

static void close_log(struct log_upload *upload)
{
	upload->closed = true;
	upload->length_count = 0;
	buf_clear(&upload->piece);
}

static int64_t length_of(const struct http_answer *answer)
{
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;

	json_read_reply(http_answer_body(answer), &doc);
	yyjson_val *length = yyjson_obj_get(yyjson_doc_get_root(doc), "length");

	return yyjson_is_int(length) ? yyjson_get_sint(length) : -1;
}

/* The server's disk is nearly full: it takes reports and no logs. */
static bool is_disk_low(const struct http_answer *answer)
{
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;

	json_read_reply(http_answer_body(answer), &doc);
	return yyjson_equals_str(yyjson_obj_get(yyjson_doc_get_root(doc), "code"), "disk_low");
}

static void hear(struct log_upload *upload, int fault, const struct http_answer *answer)
{
	int status = fault == 0 ? http_answer_status(answer) : 0;

	if (status == 200) {
		upload->offset += upload->dropped + (int64_t)upload->piece.len;
		upload->dropped = 0;
		upload->failures = 0;
		upload->length_count = 0;
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
	if (status == 503 && upload->finishing && is_disk_low(answer)) {
		close_log(upload); /* the report does not wait for it */
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

/* Without it all is output. */
static void put_streams(const struct log_upload *upload, struct json_object *object)
{
	if (upload->length_count < 2 || !json_put_key(object, "streams"))
		return;
	for (uint32_t i = 0; i < upload->length_count; i++)
		buf_printf(object->buf, "%c%u", i == 0 ? '[' : ',', upload->lengths[i]);
	buf_put_byte(object->buf, ']');
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
	put_streams(upload, &object);
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
	if (!upload->closed)
		take_all(upload);
	if (upload->finishing && upload->last.len > 0 && !upload->closed && upload->piece.len == 0)
		take_last(upload);
	if (upload->piece.len > 0 && send_piece(upload) < 0)
		close_log(upload);
	if (upload->finishing && upload->piece.len == 0)
		uv_timer_start(&upload->timer, on_finished, 0, 0);
}

void log_upload_add_first(struct log_upload *upload, struct span line)
{
	upload->first = line;
	log_upload_look(upload);
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
