/*
 * Events from outside: each becomes one event of its task, and one that has an id acts once.
 *
 * The latest ids are remembered beside the task, for as long as there is one: a row by the digest of the id, and a
 * ring of digests that says which of them is the oldest.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "store/commands.h"

/* What is remembered of one. */
struct emitted {
	unsigned char fingerprint[16];
	int64_t seq, wall_ms;
	struct span id;
};

static int encode_emitted(const struct emitted *emitted, struct buf *out)
{
	buf_clear(out);
	int r = buf_put(out, emitted->fingerprint, sizeof emitted->fingerprint);
	if (r == 0)
		r = buf_put_svarint(out, emitted->seq);
	if (r == 0)
		r = buf_put_svarint(out, emitted->wall_ms);
	return r < 0 ? r : buf_put_bytes(out, emitted->id);
}

static int decode_emitted(struct span data, struct emitted *ret_emitted)
{
	struct reader reader;

	reader_init(&reader, data);
	for (size_t i = 0; i < sizeof ret_emitted->fingerprint; i++)
		ret_emitted->fingerprint[i] = reader_byte(&reader);
	ret_emitted->seq = reader_svarint(&reader);
	ret_emitted->wall_ms = reader_svarint(&reader);
	ret_emitted->id = reader_bytes(&reader);
	return reader_is_done(&reader) ? 0 : -EPROTO;
}

/* Did it act before? Sets *ret_settled if the result is complete. */
static int emitted_before(struct turn *turn, const struct turn_task *view, const struct command_emit *emit,
	struct result *result, bool *ret_settled)
{
	struct backend *backend = turn->store->backend;
	struct emitted emitted;
	struct span data;

	*ret_settled = false;
	if (emit->id.len == 0)
		return 0;
	int r = backend->ops->get_extra(
		backend, view->task.seq, EXTRA_EMITTED, (int64_t)emit->digest, &turn->arena, &data);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = decode_emitted(data, &emitted);
	if (r < 0 || !span_equal(emitted.id, emit->id))
		return r; /* another id with the same digest: that one is forgotten */
	*ret_settled = true;
	if (memcmp(emitted.fingerprint, emit->fingerprint, sizeof emitted.fingerprint) != 0)
		return command_refuse(result, REFUSED_IDEMPOTENCY_CONFLICT);
	result->repeated = true;
	result->noted_seq = emitted.seq;
	result->noted_ms = emitted.wall_ms;
	return 0;
}

/* The number in a row of the ring; 0 if there is none. */
static int get_number(struct turn *turn, int64_t seq, int64_t n, uint64_t *ret_number)
{
	struct backend *backend = turn->store->backend;
	struct reader reader;
	struct span data;

	*ret_number = 0;
	int r = backend->ops->get_extra(backend, seq, EXTRA_EMITTED_AT, n, &turn->arena, &data);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	reader_init(&reader, data);
	*ret_number = reader_uvarint(&reader);
	return reader_is_done(&reader) ? 0 : -EPROTO;
}

static int put_number(struct turn *turn, int64_t seq, int64_t n, uint64_t number)
{
	struct backend *backend = turn->store->backend;

	buf_clear(&turn->record);
	int r = buf_put_uvarint(&turn->record, number);
	return r < 0 ? r
		     : backend->ops->put_extra(backend, seq, EXTRA_EMITTED_AT, n, buf_span(&turn->record));
}

/* The newest takes the place of the oldest. */
static int take_place(struct turn *turn, int64_t seq, uint64_t digest)
{
	struct backend *backend = turn->store->backend;
	uint64_t count, oldest;

	int r = get_number(turn, seq, -1, &count);
	int64_t place = (int64_t)(count % COMMAND_EMITS_MAX);
	if (r == 0)
		r = get_number(turn, seq, place, &oldest);
	if (r == 0 && count >= COMMAND_EMITS_MAX && oldest != digest)
		r = backend->ops->delete_extra(backend, seq, EXTRA_EMITTED, (int64_t)oldest);
	if (r == 0)
		r = put_number(turn, seq, place, digest);
	return r < 0 ? r : put_number(turn, seq, -1, count + 1);
}

static int remember(struct turn *turn, const struct turn_task *view, const struct command_emit *emit,
	const struct result *result)
{
	struct backend *backend = turn->store->backend;
	struct emitted emitted = {.seq = result->noted_seq, .wall_ms = result->noted_ms, .id = emit->id};

	if (emit->id.len == 0)
		return 0;
	memcpy(emitted.fingerprint, emit->fingerprint, sizeof emitted.fingerprint);
	int r = take_place(turn, view->task.seq, emit->digest);
	if (r == 0)
		r = encode_emitted(&emitted, &turn->record);
	if (r < 0)
		return r;
	return backend->ops->put_extra(
		backend, view->task.seq, EXTRA_EMITTED, (int64_t)emit->digest, buf_span(&turn->record));
}

int run_emit(struct turn *turn, const struct command *command, struct result *result)
{
	struct turn_task *view;
	bool settled;

	int r = command_find(turn, command, result, &view);
	if (r < 0 || !view)
		return r;
	r = emitted_before(turn, view, &command->emit, result, &settled);
	if (r < 0 || settled)
		return r;
	if (command_is_late(command, &view->task))
		return command_refuse(result, REFUSED_VERSION_MISMATCH);
	struct task_decision decision = task_note(&view->task);
	r = command_stage(turn, view, &decision, result);
	if (r < 0)
		return r;
	result->noted_seq = result->task.version;
	result->noted_ms = turn->given.now.wall_ms;
	return remember(turn, view, &command->emit, result);
}
