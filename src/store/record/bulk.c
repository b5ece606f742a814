#include "store/record/bulk.h"

#include <errno.h>

#include "core/command.h"

enum {
	BULK_FORM = 1,
	PROGRESS_FORM = 1,
};

int bulk_row_put(const struct bulk *bulk, struct buf *out)
{
	buf_put_uvarint(out, BULK_FORM);
	buf_put_uvarint(out, (uint64_t)bulk->action);
	buf_put_svarint(out, bulk->priority);
	buf_put_bytes(out, bulk->queue);
	buf_put_bytes(out, bulk->filter);
	buf_put_bytes(out, bulk->actor);
	buf_put_bytes(out, bulk->token);
	buf_put_uvarint(out, bulk->principal);
	buf_put_uvarint(out, bulk->oversees);
	buf_put_svarint(out, bulk->created_ms);
	buf_put_uvarint(out, bulk->within.count);
	for (uint32_t i = 0; i < bulk->within.count; i++)
		buf_put_bytes(out, bulk->within.items[i]);
	return buf_fault(out);
}

static bool bulk_row_is_sound(const struct bulk *bulk)
{
	return bulk->action >= BULK_RETRY && bulk->action < BULK_ACTION_COUNT &&
		bulk->filter.len <= BULK_FILTER_BYTES_MAX && bulk->queue.len <= COMMAND_NAME_MAX &&
		(bulk->action == BULK_MOVE) == (bulk->queue.len > 0);
}

static int read_within(struct reader *reader, struct arena *arena, struct name_list *ret_within)
{
	uint64_t count = reader_uvarint(reader);
	struct span *items;

	reader->broken |= count > TOKEN_QUEUES_MAX;
	if (reader->broken || count == 0)
		return 0;
	items = arena_alloc(arena, count * sizeof *items);
	if (!items)
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++)
		items[i] = reader_bytes(reader);
	*ret_within = (struct name_list){items, (uint32_t)count};
	return 0;
}

int bulk_row_read(struct span data, struct arena *arena, struct bulk *ret_bulk)
{
	struct bulk bulk = {0};
	struct reader reader;

	reader_init(&reader, data);
	reader.broken |= reader_uvarint(&reader) != BULK_FORM;
	uint64_t action = reader_uvarint(&reader);
	int64_t priority = reader_svarint(&reader);
	bulk.queue = reader_bytes(&reader);
	bulk.filter = reader_bytes(&reader);
	bulk.actor = reader_bytes(&reader);
	bulk.token = reader_bytes(&reader);
	uint64_t principal = reader_uvarint(&reader), oversees = reader_uvarint(&reader);
	bulk.created_ms = reader_svarint(&reader);
	int r = read_within(&reader, arena, &bulk.within);
	if (r < 0)
		return r;
	if (!reader_is_done(&reader) || action >= BULK_ACTION_COUNT || priority < INT32_MIN ||
		priority > INT32_MAX || principal > UINT32_MAX || oversees > 1)
		return -EPROTO;
	bulk.action = (enum bulk_action)action;
	bulk.priority = (int32_t)priority;
	bulk.principal = (uint32_t)principal;
	bulk.oversees = oversees != 0;
	if (!bulk_row_is_sound(&bulk))
		return -EPROTO;
	*ret_bulk = bulk;
	return 0;
}

/* Refusals by their codes: their numbers in the program may change. */
int bulk_progress_put(const struct bulk_progress *progress, struct buf *out)
{
	uint32_t kinds = 0;

	for (int i = 0; i < REFUSAL_COUNT; i++)
		kinds += progress->skipped[i] > 0;
	buf_put_uvarint(out, PROGRESS_FORM);
	buf_put_uvarint(out, (uint64_t)progress->state);
	buf_put_uvarint(out, (uint64_t)progress->stop);
	buf_put_svarint(out, progress->cursor);
	buf_put_svarint(out, progress->last);
	buf_put_uvarint(out, progress->matched);
	buf_put_uvarint(out, progress->done);
	buf_put_svarint(out, progress->ended_ms);
	buf_put_uvarint(out, kinds);
	for (int i = 0; i < REFUSAL_COUNT; i++) {
		if (progress->skipped[i] == 0)
			continue;
		buf_put_bytes(out, span_of(refusal_code((enum refusal)i)));
		buf_put_uvarint(out, progress->skipped[i]);
	}
	return buf_fault(out);
}

static enum refusal refusal_of_code(struct span code)
{
	for (int i = REFUSED_NOTHING + 1; i < REFUSAL_COUNT; i++) {
		if (span_is(code, refusal_code((enum refusal)i)))
			return (enum refusal)i;
	}
	return REFUSED_NOTHING;
}

static void read_skipped(struct reader *reader, struct bulk_progress *progress)
{
	uint64_t kinds = reader_uvarint(reader);

	reader->broken |= kinds >= REFUSAL_COUNT;
	for (uint64_t i = 0; !reader->broken && i < kinds; i++) {
		enum refusal refusal = refusal_of_code(reader_bytes(reader));
		reader->broken |= refusal == REFUSED_NOTHING || progress->skipped[refusal] > 0;
		progress->skipped[refusal] = reader_uvarint(reader);
	}
}

int bulk_progress_read(struct span data, struct bulk_progress *ret_progress)
{
	struct bulk_progress progress = {0};
	struct reader reader;

	reader_init(&reader, data);
	reader.broken |= reader_uvarint(&reader) != PROGRESS_FORM;
	uint64_t state = reader_uvarint(&reader), stop = reader_uvarint(&reader);
	reader.broken |= state > BULK_STOPPED || stop >= BULK_STOP_COUNT;
	progress.state = (enum bulk_state)state;
	progress.stop = (enum bulk_stop)stop;
	progress.cursor = reader_svarint(&reader);
	progress.last = reader_svarint(&reader);
	progress.matched = reader_uvarint(&reader);
	progress.done = reader_uvarint(&reader);
	progress.ended_ms = reader_svarint(&reader);
	read_skipped(&reader, &progress);
	if (!reader_is_done(&reader) || !bulk_is_sound(&progress))
		return -EPROTO;
	*ret_progress = progress;
	return 0;
}
