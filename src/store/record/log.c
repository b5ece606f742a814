/*
 * The logs of attempts: where their chunks lie is one small row per attempt, each chunk is another. All of them hang
 * on the task and go with it.
 *
 * A log is data and not state: appending leaves the task as it is, and only the output of a session is also written as
 * events, up to a limit. An append is durable before it is answered, like everything else.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/secret.h"
#include "core/task/log.h"
#include "store/command/commands.h"
#include "store/read/sound.h"

enum {
	ATTEMPT_MAX = 1 << 22, /* so that attempt and offset fit into one number */
	BORDER_BYTES =
		512, /* on each side of the border of two appends, where a token may lie: none is longer */
};

/* The attempts of a task that have a log, in order. */
struct logged {
	uint32_t count;
	uint32_t attempts[LOG_ATTEMPTS_MAX];
};

static int64_t chunk_number(uint32_t attempt, int64_t offset)
{
	assert(attempt < ATTEMPT_MAX);
	assert(offset < LOG_LENGTH_MAX);
	return (int64_t)attempt * LOG_LENGTH_MAX + offset;
}

/* ---- rows -------------------------------------------------------------------------------------------- */

static void put_bucket(const struct log_bucket *bucket, struct buf *out)
{
	buf_put_svarint(out, bucket->at_ms);
	buf_put_uvarint(out, bucket->level);
}

static struct log_bucket read_bucket(struct reader *reader)
{
	int64_t at_ms = reader_svarint(reader);

	return (struct log_bucket){at_ms, (uint32_t)reader_uvarint(reader)};
}

static void encode_log(const struct log *log, struct buf *out)
{
	int64_t end = 0;

	buf_clear(out);
	buf_put_uvarint(out, (uint64_t)log->length);
	put_bucket(&log->said, out);
	put_bucket(&log->told, out);
	buf_put_uvarint(out, log->count);
	for (uint32_t i = 0; i < log->count; i++) {
		assert(log->chunks[i].offset >= end); /* chunks lie in order and apart */
		buf_put_uvarint(out, (uint64_t)(log->chunks[i].offset - end));
		buf_put_uvarint(out, log->chunks[i].bytes);
		end = log->chunks[i].offset + log->chunks[i].bytes;
	}
	assert(end <= log->length);
}

/* A number that is not above `most`; a larger one breaks the reader. */
static int64_t read_upto(struct reader *reader, int64_t most)
{
	uint64_t number = reader_uvarint(reader);

	if (number <= (uint64_t)most)
		return (int64_t)number;
	reader->broken = true;
	return 0;
}

/* False: no log that we wrote. */
static bool decode_log(struct span data, struct log *ret_log)
{
	struct reader reader;
	int64_t end = 0;

	reader_init(&reader, data);
	ret_log->length = read_upto(&reader, LOG_LENGTH_MAX);
	ret_log->said = read_bucket(&reader);
	ret_log->told = read_bucket(&reader);
	ret_log->count = (uint32_t)read_upto(&reader, LOG_CHUNKS_MAX);
	for (uint32_t i = 0; i < ret_log->count && end < ret_log->length; i++) {
		ret_log->chunks[i].offset = end + read_upto(&reader, ret_log->length - end - 1);
		ret_log->chunks[i].bytes =
			(uint32_t)read_upto(&reader, ret_log->length - ret_log->chunks[i].offset);
		end = ret_log->chunks[i].offset + ret_log->chunks[i].bytes;
	}
	return reader_is_done(&reader) && number_is_sound(ret_log->said.at_ms) &&
		number_is_sound(ret_log->told.at_ms);
}

static int get_log(
	struct store *store, int64_t seq, uint32_t attempt, struct arena *arena, struct log *ret_log)
{
	struct span data;

	*ret_log = (struct log){0};
	if (attempt >= ATTEMPT_MAX) /* it has no log: see execute_log() */
		return 0;
	int r = store_rows(store, get_extra, seq, EXTRA_LOG, attempt, arena, &data);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return decode_log(data, ret_log) ? 0 : store_damaged(store, extra_table(EXTRA_LOG), seq);
}

static int get_logged(struct store *store, int64_t seq, struct arena *arena, struct logged *ret_logged)
{
	struct reader reader;
	struct span data;

	*ret_logged = (struct logged){0};
	int r = store_rows(store, get_extra, seq, EXTRA_LOG, 0, arena, &data);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	reader_init(&reader, data);
	while (reader.at < reader.end && !reader.broken && ret_logged->count < LOG_ATTEMPTS_MAX)
		ret_logged->attempts[ret_logged->count++] = (uint32_t)read_upto(&reader, ATTEMPT_MAX - 1);
	return reader_is_done(&reader) ? 0 : store_damaged(store, extra_table(EXTRA_LOG), seq);
}

/* ---- a chunk ----------------------------------------------------------------------------------------- */

/*
 * The row of a chunk is its text. If some of it was written to standard error, the lengths of its streams come behind the
 * text, as varints; they add up to the text.
 */
struct log_row {
	struct span text;
	struct log_streams streams;
};

/* -EBADMSG: no chunk that we wrote. -ENOMEM. */
static int decode_chunk(struct span row, uint32_t bytes, struct arena *arena, struct log_row *ret_chunk)
{
	struct log_streams *streams = &ret_chunk->streams;
	struct reader reader;

	*ret_chunk = (struct log_row){.text = {row.data, bytes}};
	if (row.len <= bytes)
		return row.len == bytes ? 0 : -EBADMSG;
	reader_init(&reader, (struct span){row.data + bytes, row.len - bytes});
	streams->max = (uint32_t)(row.len - bytes);
	streams->lengths = arena_alloc(arena, streams->max * sizeof *streams->lengths);
	if (!streams->lengths)
		return -ENOMEM;
	while (reader.at < reader.end && !reader.broken) {
		streams->lengths[streams->count] = (uint32_t)read_upto(&reader, bytes);
		reader.broken |= streams->count > 0 && streams->lengths[streams->count] == 0;
		streams->count++;
	}
	bool is_sound = reader_is_done(&reader) && log_streams_has_errors(streams) &&
		log_streams_bytes(streams) == bytes;
	return is_sound ? 0 : -EBADMSG;
}

static int get_chunk(struct store *store, int64_t seq, uint32_t attempt, const struct log_chunk *chunk,
	struct arena *arena, struct log_row *ret_chunk)
{
	struct span row;
	int r = store_rows(
		store, get_extra, seq, EXTRA_LOG_CHUNK, chunk_number(attempt, chunk->offset), arena, &row);

	if (r < 0 && r != -ENOENT)
		return r;
	r = r == 0 ? decode_chunk(row, chunk->bytes, arena, ret_chunk) : -EBADMSG;
	return r == -EBADMSG ? store_damaged(store, extra_table(EXTRA_LOG), seq) : r;
}

static void encode_streams(const struct log_streams *streams, struct buf *out)
{
	for (uint32_t i = 0; log_streams_has_errors(streams) && i < streams->count; i++)
		buf_put_uvarint(out, streams->lengths[i]);
}

/* ---- appending --------------------------------------------------------------------------------------- */

/* What was blanked of the kept bytes cannot be compared. */
static bool is_same(const char *given, const char *kept, size_t bytes)
{
	size_t i = 0;

	while (i < bytes && (given[i] == kept[i] || kept[i] == '*'))
		i++;
	return i == bytes;
}

/* Are the repeated bytes of the append the same as the kept ones? */
static int compare(struct turn *turn, const struct turn_task *view, const struct log *log, int64_t offset,
	struct span data, bool *ret_same)
{
	int64_t end = offset + (int64_t)data.len;
	struct log_row kept;

	*ret_same = true;
	for (uint32_t i = log_find(log, offset); i < log->count && log->chunks[i].offset < end; i++) {
		const struct log_chunk *chunk = &log->chunks[i];
		int r = get_chunk(
			turn->store, view->task.seq, view->task.attempt, chunk, &turn->arena, &kept);
		if (r < 0)
			return r;
		int64_t from = offset > chunk->offset ? offset : chunk->offset;
		int64_t upto = end < chunk->offset + chunk->bytes ? end : chunk->offset + chunk->bytes;
		*ret_same &= is_same(data.data + (from - offset), kept.text.data + (from - chunk->offset),
			(size_t)(upto - from));
	}
	return 0;
}

/* The oldest log gives way. */
static int forget_log(struct turn *turn, int64_t seq, uint32_t attempt)
{
	struct log log;
	int r = get_log(turn->store, seq, attempt, &turn->arena, &log);

	for (uint32_t i = 0; r == 0 && i < log.count; i++)
		r = turn_put(turn, delete_extra, seq, EXTRA_LOG_CHUNK,
			chunk_number(attempt, log.chunks[i].offset));
	return r < 0 ? r : turn_put(turn, delete_extra, seq, EXTRA_LOG, attempt);
}

/* The first append of an attempt: note that it has a log. */
static int note_attempt(struct turn *turn, int64_t seq, uint32_t attempt)
{
	struct logged logged;

	int r = get_logged(turn->store, seq, &turn->arena, &logged);
	if (r == 0 && logged.count == LOG_ATTEMPTS_MAX) {
		r = forget_log(turn, seq, logged.attempts[0]);
		memmove(logged.attempts, logged.attempts + 1, --logged.count * sizeof *logged.attempts);
	}
	if (r < 0)
		return r;
	logged.attempts[logged.count++] = attempt;
	buf_clear(&turn->record);
	for (uint32_t i = 0; i < logged.count; i++)
		buf_put_uvarint(&turn->record, logged.attempts[i]);
	return turn_put_record(turn, seq, EXTRA_LOG, 0);
}

/* Chunks that were kept and are not any more: those at the beginning and at the end are in both lists. */
static int delete_dropped(
	struct turn *turn, const struct turn_task *view, const struct log *before, const struct log *after)
{
	uint32_t j = 0;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < before->count; i++) {
		int64_t offset = before->chunks[i].offset;
		while (j < after->count && after->chunks[j].offset < offset)
			j++;
		if (j == after->count || after->chunks[j].offset != offset)
			r = turn_put(turn, delete_extra, view->task.seq, EXTRA_LOG_CHUNK,
				chunk_number(view->task.attempt, offset));
	}
	return r;
}

/* Blanks the secret of a token that lies across the place `border` of the text. A token within one append was blanked before it
 * came here. */
static void blank_across(char *text, size_t len, size_t border)
{
	size_t from = border > BORDER_BYTES ? border - BORDER_BYTES : 0;
	size_t end = len - border > BORDER_BYTES ? border + BORDER_BYTES : len;

	secret_blank(text + from, end - from);
}

/* Text that the last chunk begins with. If a token lies across the border to the chunk before, that chunk is written again, and what
 * lies in the text is blanked. */
static int blank_before(
	struct turn *turn, const struct turn_task *view, const struct log *log, char *text, size_t len)
{
	const struct log_chunk *last = &log->chunks[log->count - 1], *before = last - 1;
	int64_t seq = view->task.seq;
	struct log_row kept;

	if (log->count < 2 || before->offset + before->bytes != last->offset)
		return 0;
	int r = get_chunk(turn->store, seq, view->task.attempt, before, &turn->arena, &kept);
	if (r < 0)
		return r;
	char *both = arena_take(&turn->arena, kept.text.len + len);
	if (!both)
		return -ENOMEM;
	memcpy(both, kept.text.data, kept.text.len);
	memcpy(both + kept.text.len, text, len);
	blank_across(both, kept.text.len + len, kept.text.len);
	if (memcmp(both, kept.text.data, kept.text.len) == 0)
		return 0;
	memcpy(text, both + kept.text.len, len);
	buf_clear(&turn->record);
	buf_put(&turn->record, both, kept.text.len);
	encode_streams(&kept.streams, &turn->record);
	return turn_put_record(turn, seq, EXTRA_LOG_CHUNK, chunk_number(view->task.attempt, before->offset));
}

static int put_chunk(struct turn *turn, const struct turn_task *view, const struct log_decision *decision,
	struct span fresh)
{
	const struct log_chunk *last = &decision->log.chunks[decision->log.count - 1];
	const struct log_streams *given = &turn->command->log.streams;
	struct log_chunk before = {last->offset, last->bytes - (uint32_t)fresh.len};
	struct log_row kept = {0};

	int r = decision->joins
		? get_chunk(turn->store, view->task.seq, view->task.attempt, &before, &turn->arena, &kept)
		: 0;
	if (r < 0)
		return r;
	size_t len = kept.text.len + fresh.len;
	char *text = arena_take(&turn->arena, len);
	struct log_streams streams = {.max = kept.streams.count + given->count + 3};
	streams.lengths = arena_alloc(&turn->arena, streams.max * sizeof *streams.lengths);
	if (!text || !streams.lengths)
		return -ENOMEM;
	if (kept.text.len > 0)
		memcpy(text, kept.text.data, kept.text.len);
	memcpy(text + kept.text.len, fresh.data, fresh.len);
	blank_across(text, len, kept.text.len);
	if (kept.text.len < BORDER_BYTES) /* else no token reaches from the chunk before to the fresh bytes */
		r = blank_before(turn, view, &decision->log, text, len);
	if (r < 0)
		return r;
	log_streams_add_part(&streams, &kept.streams, 0, (uint32_t)kept.text.len);
	log_streams_add_part(&streams, given, decision->known, (uint32_t)fresh.len);
	assert(log_streams_bytes(&streams) == last->bytes);
	buf_clear(&turn->record);
	buf_put(&turn->record, text, len);
	encode_streams(&streams, &turn->record);
	return turn_put_record(
		turn, view->task.seq, EXTRA_LOG_CHUNK, chunk_number(view->task.attempt, last->offset));
}

static int write_log(struct turn *turn, const struct turn_task *view, const struct log *before,
	const struct log_decision *decision, struct span fresh)
{
	int64_t seq = view->task.seq;
	uint32_t attempt = view->task.attempt;

	int r = before->length == 0 ? note_attempt(turn, seq, attempt) : 0;
	if (r == 0)
		r = delete_dropped(turn, view, before, &decision->log);
	if (r == 0 && fresh.len > 0)
		r = put_chunk(turn, view, decision, fresh);
	if (r < 0)
		return r;
	encode_log(&decision->log, &turn->record);
	return turn_put_record(turn, seq, EXTRA_LOG, attempt);
}

static int refuse_log(struct result *result, enum refusal refusal, const struct log *log)
{
	result->log_length = log->length;
	return command_refuse(result, refusal);
}

/* Whole characters only: what was dropped cannot be compared, and might end within one. */
static bool begins_a_character(struct span text)
{
	return text.len == 0 || ((unsigned char)text.data[0] & 0xc0) != 0x80;
}

static int append(
	struct turn *turn, struct turn_task *view, const struct command *command, struct result *result)
{
	struct log_append wanted = {
		.offset = command->log.offset,
		.dropped = command->log.dropped,
		.bytes = (uint32_t)command->data.len,
	};
	struct log log;
	bool same;

	int r = get_log(turn->store, view->task.seq, view->task.attempt, &turn->arena, &log);
	if (r < 0)
		return r;
	struct log_decision decision = log_append(&log, &wanted, &turn->given);
	if (decision.refusal != REFUSED_NOTHING)
		return refuse_log(result, decision.refusal, &log);
	struct span known = {command->data.data, decision.known};
	struct span fresh = {command->data.data + decision.known, command->data.len - decision.known};
	r = known.len > 0 ? compare(turn, view, &log, wanted.offset, known, &same) : 0;
	if (r < 0)
		return r;
	if ((known.len > 0 && !same) || !begins_a_character(fresh))
		return refuse_log(result, REFUSED_BAD_OFFSET, &log);
	result->repeated = !decision.grows;
	if (!decision.grows)
		return 0;
	r = write_log(turn, view, &log, &decision, fresh);
	return r == 0 && decision.tells ? turn_tell_output(turn, view) : r;
}

int execute_log(struct turn *turn, struct turn_task *view, struct result *result)
{
	const struct command *command = turn->command;
	struct proof proof = command_proof(turn, command);

	assert(command->data.len <= LOG_APPEND_MAX);
	if (command->worker.len == 0) /* the fence alone will do */
		proof.holder = view->task.claim.holder;
	struct task_decision decision = task_append_log(&view->task, &proof);
	if (decision.refusal != REFUSED_NOTHING)
		return command_refuse_report(turn, command, view, &decision, result);
	if (command_is_late(command, &view->task))
		return command_refuse(result, REFUSED_VERSION_MISMATCH);
	if (view->task.attempt >= ATTEMPT_MAX)
		return command_refuse(result, REFUSED_TOO_LARGE);
	return append(turn, view, command, result);
}

/* ---- reading ----------------------------------------------------------------------------------------- */

/* What is gathered of a piece. */
struct gathering {
	struct buf text;
	struct log_streams streams;
	bool full; /* the streams change too often: it ends here */
};

static int add_chunk(struct store *store, int64_t seq, const struct log_chunk *chunk, struct arena *arena,
	const struct log_piece *piece, struct gathering *gathering, size_t limit)
{
	struct buf *out = &gathering->text;
	struct log_row kept;
	int64_t from = piece->offset + (int64_t)out->len - chunk->offset;

	int r = get_chunk(store, seq, piece->attempt, chunk, arena, &kept);
	if (r == 0 && (from < 0 || from > chunk->bytes))
		r = store_damaged(store, extra_table(EXTRA_LOG), seq);
	if (r < 0)
		return r;
	size_t bytes = kept.text.len - (size_t)from;
	bytes = bytes < limit - out->len ? bytes : limit - out->len;
	uint32_t taken =
		log_streams_add_part(&gathering->streams, &kept.streams, (uint32_t)from, (uint32_t)bytes);
	gathering->full = taken < bytes;
	return buf_put(out, kept.text.data + from, taken);
}

/* The streams of the text between `before` bytes of it and its end, in the arena. */
static int keep_streams(
	const struct log_streams *all, uint32_t before, struct arena *arena, struct log_piece *piece)
{
	struct log_streams *kept = &piece->streams;

	if (!log_streams_has_errors(all))
		return 0;
	kept->max = all->count + 1;
	kept->lengths = arena_alloc(arena, kept->max * sizeof *kept->lengths);
	if (!kept->lengths)
		return -ENOMEM;
	log_streams_add_part(kept, all, before, (uint32_t)piece->data.len);
	return 0;
}

/* Cut it so that it begins and ends between characters. */
static void cut_characters(struct log_piece *piece, bool ends)
{
	struct span *data = &piece->data;

	while (!begins_a_character(*data)) {
		data->data++;
		data->len--;
		piece->offset++;
	}
	if (ends || data->len == 0)
		return;
	size_t tail = data->len;
	while (tail > 0 && !begins_a_character((struct span){data->data + tail - 1, 1}))
		tail--;
	unsigned char lead = tail > 0 ? (unsigned char)data->data[tail - 1] : 0;
	size_t wanted = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
	if (tail > 0 && data->len - (tail - 1) < wanted)
		data->len = tail - 1;
}

static int read_piece(struct store *store, int64_t seq, const struct log *log, int64_t after, uint32_t limit,
	struct arena *arena, struct log_piece *piece)
{
	uint32_t i = log_find(log, after), lengths[LOG_PIECE_STREAMS_MAX];
	struct gathering gathering = {.streams = {.max = LOG_PIECE_STREAMS_MAX, .lengths = lengths}};
	struct buf *out = &gathering.text;
	int r = 0;

	piece->length = log->length;
	piece->offset = after < log->length ? after : log->length;
	if (i < log->count && log->chunks[i].offset > piece->offset)
		piece->offset = log->chunks[i].offset;
	else if (i == log->count)
		piece->offset = log->length;
	buf_init(out, limit);
	while (r == 0 && i < log->count && out->len < limit && !gathering.full &&
		log->chunks[i].offset <= piece->offset + (int64_t)out->len)
		r = add_chunk(store, seq, &log->chunks[i++], arena, piece, &gathering, limit);
	if (r == 0)
		r = arena_copy(arena, buf_span(out), &piece->data);
	buf_done(out);
	if (r < 0)
		return r;
	int64_t began = piece->offset;
	cut_characters(piece, piece->data.len < limit && !gathering.full);
	piece->dropped = piece->offset > after ? piece->offset - after : 0;
	return keep_streams(&gathering.streams, (uint32_t)(piece->offset - began), arena, piece);
}

int store_read_log(struct store *store, int64_t seq, uint32_t attempt, int64_t after, uint32_t limit,
	struct arena *arena, struct log_piece *ret_piece)
{
	struct log_piece piece = {.attempt = attempt};
	struct logged logged;
	struct task task;
	struct log log;

	int r = store_load_task(store, seq, arena, &task);
	if (r == 0 && attempt > task.attempt)
		return -ENOENT;
	if (r == 0 && attempt == 0)
		r = get_logged(store, seq, arena, &logged);
	if (r < 0)
		return r;
	if (attempt == 0)
		piece.attempt = logged.count > 0 ? logged.attempts[logged.count - 1] : task.attempt;
	r = get_log(store, seq, piece.attempt, arena, &log);
	if (r == 0)
		r = read_piece(store, seq, &log, after, limit, arena, &piece);
	if (r == 0)
		*ret_piece = piece;
	return r;
}
