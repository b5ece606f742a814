/*
 * The output of attempts: the holder of the task appends it, and anyone with the scope reads it.
 *
 * Positions are bytes of UTF-8. A piece never crosses a gap, so a reader always knows what is missing and where: as
 * JSON by its numbers, as text by a line in between.
 */
#include "api/task/log_records.h"
#include "api/call.h"

#include <errno.h>
#include <string.h>

#include "api/form.h"
#include "api/task/view.h"
#include "base/take.h"
#include "core/task/log.h"

enum {
	PIECE_DEFAULT = 64 << 10,
	PIECE_MIN = 16, /* the longest character, and then some */
	PIECE_MAX = 256 << 10,
};

#define STREAMS_ALLOWED \
	"a list of at most 1024 lengths in bytes: of standard output, of standard error, and so on by turns; only the first may be 0"

struct log_body {
	struct span worker, data;
	uint64_t fence;
	int64_t offset, dropped;
	struct log_streams streams;
};

/* Lengths by turns, standard output first. */
static bool take_streams(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	struct log_streams *streams = at;
	size_t i, count = yyjson_arr_size(value);
	yyjson_val *item;
	int64_t bytes;

	if (!yyjson_is_arr(value) || count > LOG_APPEND_STREAMS_MAX)
		return form_wrong_as(form, field->name, STREAMS_ALLOWED, value);
	streams->max = (uint32_t)count;
	streams->lengths = arena_alloc(form->arena, (count + 1) * sizeof *streams->lengths);
	if (!streams->lengths)
		return form_short(form, -ENOMEM);
	yyjson_arr_foreach(value, i, count, item)
	{
		if (node_int(item, &bytes) < 0 || bytes < (i > 0) || bytes > LOG_APPEND_MAX)
			return form_wrong_as(form, field->name, STREAMS_ALLOWED, value);
		streams->lengths[streams->count++] = (uint32_t)bytes;
	}
	return true;
}

static const struct field log_fields[] = {
	FIELD(log_body, worker, "workerId", FIELD_NAME, .max = COMMAND_ID_MAX),
	FIELD(log_body, fence, "fence", FIELD_DECIMAL, .max = 0),
	FIELD_MUST_BE(log_body, offset, "offset", FIELD_INT, .max = LOG_LENGTH_MAX),
	FIELD_MUST_BE(log_body, data, "data", FIELD_TEXT, .max = LOG_APPEND_MAX),
	FIELD(log_body, dropped, "dropped", FIELD_INT, .max = LOG_LENGTH_MAX),
	FIELD(log_body, streams, "streams", FIELD_BY, .by = take_streams),
};

/* As for reports: what the credential says need not be said again. */
static void check_append(struct form *form, struct log_body *body)
{
	const struct principal *who = &form_call(form)->who;

	if (body->worker.len == 0)
		body->worker = who->worker;
	if (body->fence == 0)
		body->fence = who->fence;
	if (body->fence == 0 && form->error_count == 0)
		form_error(form, "fence", "is required");
	if (body->dropped > body->offset)
		form_error(form, "dropped", "must not be more than lies before \"offset\"");
	if (body->streams.count > 0 && log_streams_bytes(&body->streams) != body->data.len)
		form_error(form, "streams", "must add up to the bytes of \"data\"");
}

/* The end of it, for those who follow the events of a session. */
static void keep_told(struct api_call *call, const struct log_body *body, struct span *ret_note)
{
	cleanup(buf_done) struct buf note = {.max = 8 * LOG_TOLD_MAX};
	struct json_object members = {.buf = &note};
	struct span text = body->data;

	if (text.len > LOG_TOLD_MAX)
		text = (struct span){text.data + text.len - LOG_TOLD_MAX, LOG_TOLD_MAX};
	while (text.len > 0 && ((unsigned char)text.data[0] & 0xc0) == 0x80) /* amid a character */
		text = (struct span){text.data + 1, text.len - 1};
	json_member_int(&members, "offset", body->offset + (int64_t)(body->data.len - text.len));
	json_member_string(&members, "text", text);
	call_keep(call, &note, ret_note);
}

void log_append_begin(struct api_call *call)
{
	struct log_body body = {0};
	cleanup(form_done) struct form form = {0};

	if (!form_open(&form, call, false))
		return;
	form_read(&form, form.root, FIELDS(log_fields), &body);
	check_append(&form, &body);
	struct command *command = form_is_good(&form) ? call_command(call, COMMAND_LOG) : NULL;
	if (!command)
		return;
	command->task = call->params[0];
	command->worker = body.worker;
	command->fence = body.fence;
	command->data = body.data;
	command->log.offset = body.offset;
	command->log.dropped = body.dropped;
	command->log.streams = body.streams;
	keep_told(call, &body, &command->note);
}

/* The client goes on from where the log is. */
static void refuse_offset(struct api_call *call, const struct result *result)
{
	cleanup(buf_done) struct buf members = {.max = 64};

	buf_printf(&members, "\"length\":%lld", (long long)result->log_length);
	call_refuse_with(call, REFUSED_BAD_OFFSET,
		"Nothing was appended. The log of this attempt is \"length\" bytes long: go on from there, with \"dropped\" for what cannot be sent any more.",
		&members);
}

void log_append_finish(struct api_call *call, const struct result *results)
{
	const struct command *command = &call->commands[0];

	if (results[0].refusal == REFUSED_BAD_OFFSET) {
		refuse_offset(call, &results[0]);
		return;
	}
	if (call_is_refused(call, &results[0]))
		return;
	int r = buf_printf(call->body, "{\"attempt\":%u,\"next\":%lld}", results[0].task.attempt,
		(long long)command->log.offset + (long long)command->data.len);
	call->reply.event_seq = results[0].event_seq;
	call_reply(call, 200, r);
}

/* ---- reading ---------------------------------------------------------------------------------------- */

enum log_parameter { P_ATTEMPT, P_AFTER, P_LIMIT, P_STREAM, P_AS, P_COUNT };

struct log_query {
	int64_t seq, attempt, after, limit;
	bool only; /* what was written to one stream */
	bool records;
	enum log_stream stream;
};

static bool read_stream(struct api_call *call, const struct query_value *value, struct log_query *ret)
{
	ret->only = value->value.data != NULL;
	ret->stream = span_equal(value->value, SPAN("stderr")) ? LOG_ERR : LOG_OUT;
	return !ret->only || ret->stream == LOG_ERR || span_equal(value->value, SPAN("stdout")) ||
		call_refuse_field(call, value->name, "must be stdout or stderr");
}

static bool read_as(struct api_call *call, const struct query_value *value, struct log_query *ret)
{
	ret->records = span_equal(value->value, SPAN("records"));
	return !value->value.data || ret->records || span_equal(value->value, SPAN("text")) ||
		call_refuse_field(call, value->name, "must be text or records");
}

static bool read_query(struct api_call *call, int64_t limit_default, int64_t limit_max, struct log_query *ret)
{
	struct query_value values[P_COUNT] = {[P_ATTEMPT] = {.name = "attempt"},
		[P_AFTER] = {.name = "after"},
		[P_LIMIT] = {.name = "limit"},
		[P_STREAM] = {.name = "stream"},
		[P_AS] = {.name = "as"}};

	return query_read(call, values, P_COUNT) &&
		query_int(call, &values[P_ATTEMPT], 1, UINT32_MAX, 0, &ret->attempt,
			"must be the number of an attempt, from 1 on") &&
		query_int(call, &values[P_AFTER], 0, LOG_LENGTH_MAX, 0, &ret->after,
			"must be a position in bytes") &&
		query_int(call, &values[P_LIMIT], PIECE_MIN, limit_max, limit_default, &ret->limit,
			"must be a number of bytes from 16 to 262144, as text to 4194304") &&
		read_stream(call, &values[P_STREAM], ret) && read_as(call, &values[P_AS], ret);
}

/* What of the piece goes out: all of it, or what was written to one stream. */
static int choose(struct api_call *call, const struct log_query *query, const struct log_piece *piece,
	struct span *ret_text)
{
	const struct log_streams *streams = &piece->streams;
	char *text = query->only && streams->count > 0 ? arena_alloc(call->arena, piece->data.len + 1) : NULL;
	size_t at = 0, len = 0;

	if (!query->only || streams->count == 0) {
		*ret_text = query->only && query->stream == LOG_ERR ? (struct span){0} : piece->data;
		return 0;
	}
	if (!text)
		return -ENOMEM;
	for (uint32_t i = 0; i < streams->count; i++) {
		if (i % 2 == (uint32_t)query->stream && streams->lengths[i] > 0) {
			memcpy(text + len, piece->data.data + at, streams->lengths[i]);
			len += streams->lengths[i];
		}
		at += streams->lengths[i];
	}
	*ret_text = (struct span){text, len};
	return 0;
}

static void put_streams(struct json_object *object, const struct log_streams *streams)
{
	if (!log_streams_has_errors(streams) || !json_put_key(object, "streams"))
		return;
	for (uint32_t i = 0; i < streams->count; i++)
		buf_printf(object->buf, "%c%u", i == 0 ? '[' : ',', streams->lengths[i]);
	buf_put_byte(object->buf, ']');
}

/* Does nothing follow? Then a record at the end is whole, unless more comes: of the part of one stream nobody knows where the next is. */
static bool is_end(const struct log_query *query, const struct log_piece *piece)
{
	return query->only || piece->offset + (int64_t)piece->data.len >= piece->length;
}

static int put_piece(struct api_call *call, const struct log_query *query, const struct log_piece *piece)
{
	struct json_object object;
	struct span text;
	int r = choose(call, query, piece, &text);

	if (r < 0)
		return r;
	size_t taken = piece->data.len;
	json_begin(&object, call->body);
	json_member_int(&object, "attempt", piece->attempt);
	json_member_int(&object, "offset", piece->offset);
	json_member_string(&object, "data", query->records ? SPAN("") : text);
	if (query->records && json_put_key(&object, "records"))
		json_note(&object, log_records_put(call->body, text, is_end(query, piece), &taken));
	if (!query->only && !query->records)
		put_streams(&object, &piece->streams);
	json_member_int(&object, "dropped", piece->dropped);
	json_member_int(&object, "length", piece->length);
	json_member_int(&object, "next", piece->offset + (int64_t)taken);
	return json_end(&object);
}

static int read_piece(struct api_call *call, const struct log_query *query, struct log_piece *ret_piece)
{
	return store_read_log(call->store, query->seq, (uint32_t)query->attempt, query->after,
		(uint32_t)query->limit, call->arena, ret_piece);
}

/* The pieces one after the other, with a line for each gap. */
static int put_text(struct api_call *call, struct log_query query)
{
	struct log_piece piece;
	struct span text = {0};
	int64_t left = query.limit;
	int r;

	do {
		query.limit = left < PIECE_MAX ? left : PIECE_MAX;
		r = read_piece(call, &query, &piece);
		if (r == 0 && piece.dropped > 0)
			r = buf_printf(call->body, "%s[%lld bytes were dropped]\n",
				call->body->len > 0 ? "\n" : "", (long long)piece.dropped);
		if (r == 0)
			r = choose(call, &query, &piece, &text);
		if (r == 0)
			r = buf_put_span(call->body, text);
		query.attempt = piece.attempt;
		query.after = piece.offset + (int64_t)piece.data.len;
		left -= (int64_t)piece.data.len;
	} while (r == 0 && piece.data.len > 0 && left >= PIECE_MIN && query.after < piece.length);
	return r;
}

void log_read(struct api_call *call)
{
	bool as_text = http_accepts(call->request->accept, "text/plain");
	struct task_document document;
	struct log_query query;
	struct log_piece piece;

	if (!read_query(call, as_text ? LOG_KEEP_MAX : PIECE_DEFAULT, as_text ? LOG_KEEP_MAX : PIECE_MAX,
		    &query) ||
		!task_find(call, &document))
		return;
	query.seq = document.task.seq;
	int r = as_text ? put_text(call, query) : read_piece(call, &query, &piece);
	if (call_has_failed(call, r))
		return;
	call_reply(call, 200, as_text ? 0 : put_piece(call, &query, &piece));
	if (as_text)
		call->reply.content_type = SPAN("text/plain; charset=utf-8");
}
