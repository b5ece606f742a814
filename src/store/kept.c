#include "store/kept.h"

#include <assert.h>
#include <errno.h>

#include "base/buf.h"
#include "base/take.h"
#include "store/read/sound.h"
#include "store/turn/turn.h"

enum {
	AUDIT_DROPPED_MAX = 64, /* by one event that comes */
};

static int put_row(struct buf *row, int64_t seq, struct span data)
{
	buf_put_uvarint(row, (uint64_t)seq);
	buf_put_bytes(row, data);
	return buf_fault(row);
}

/* False: the row has no more. */
static bool take_row(struct reader *reader, int64_t *ret_seq, struct span *ret_data)
{
	if (reader->broken || reader->at >= reader->end)
		return false;
	*ret_seq = (int64_t)reader_uvarint(reader);
	*ret_data = reader_bytes(reader);
	return !reader->broken;
}

/* ---- the last events of a task -------------------------------------------------------------------------------------- */

/* As many of the last ones as there is room for, beside one of so many bytes. */
static struct span last_of(struct span row, size_t bytes)
{
	struct reader reader, rest;
	uint32_t count = 0;
	struct span data;
	int64_t seq;

	reader_init(&reader, row);
	rest = reader;
	while (take_row(&reader, &seq, &data))
		count++;
	while (count > 0 &&
		(count >= KEPT_EVENTS_MAX || (size_t)(rest.end - rest.at) + bytes > KEPT_BYTES_MAX)) {
		take_row(&rest, &seq, &data);
		count--;
	}
	return count == 0 ? (struct span){0}
			  : (struct span){(const char *)rest.at, (size_t)(rest.end - rest.at)};
}

/* A row that is damaged is begun anew: its place was noted, and nothing else hangs on it. */
static int keep_with_task(struct turn *turn, const struct record *record, struct span data)
{
	struct task_row found;
	struct span row;

	int r = store_rows(turn->store, get_task, record->task, &turn->arena, &found);
	if (r == -ENOENT)
		return 0; /* removed already: its purge follows in the log */
	if (r == 0)
		r = store_get_kept(turn->store, record->task, EXTRA_EVENTS, &turn->arena, &row);
	if (r == -EBADMSG) {
		row = (struct span){0};
		r = 0;
	}
	if (r < 0)
		return r;
	if (data.len > KEPT_BYTES_MAX / 2) /* without it there would be a gap */
		return keep_no_events(turn, record->task);
	buf_clear(&turn->record);
	buf_put_span(&turn->record, last_of(row, data.len + 2 * UVARINT_BYTES_MAX));
	r = put_row(&turn->record, record->seq, data);
	return r < 0 ? r : turn_put(turn, put_extra, record->task, EXTRA_EVENTS, 0, buf_span(&turn->record));
}

int keep_no_events(struct turn *turn, int64_t task)
{
	return turn_put(turn, delete_extra, task, EXTRA_EVENTS, 0);
}

int store_each_kept(struct store *store, int64_t task,
	int (*each)(void *context, const struct record *record), void *context)
{
	struct reader reader;
	struct arena arena;
	struct span row, data;
	int64_t seq;

	arena_init(&arena, 2 * KEPT_BYTES_MAX);
	int r = store_get_kept(store, task, EXTRA_EVENTS, &arena, &row);
	if (r == 0)
		reader_init(&reader, row);
	while (r == 0 && take_row(&reader, &seq, &data)) {
		struct record record;
		r = record_decode(seq, data, &record);
		r = r < 0 ? store_damaged(store, extra_table(EXTRA_EVENTS), task) : each(context, &record);
	}
	arena_done(&arena);
	return r;
}

/* ---- the audit ----------------------------------------------------------------------------------------------------------- */

/* Which there are: from `first` to `last`, none if first > last; and the newest event that was among them and no longer is. */
struct audit {
	int64_t first, last, dropped;
};

static int get_audit(struct store *store, struct arena *arena, struct audit *ret_audit)
{
	struct reader reader;
	struct span row;
	int r = store_rows(store, get_extra, 0, EXTRA_AUDIT, 0, arena, &row);

	*ret_audit = (struct audit){.first = 1};
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	reader_init(&reader, row);
	*ret_audit = (struct audit){.first = (int64_t)reader_uvarint(&reader),
		.last = (int64_t)reader_uvarint(&reader),
		.dropped = (int64_t)reader_uvarint(&reader)};
	return reader_is_done(&reader) && ret_audit->first >= 1 && ret_audit->last >= ret_audit->first - 1
		? 0
		: store_damaged(store, extra_table(EXTRA_AUDIT), 0);
}

static int get_audited(struct store *store, int64_t number, struct arena *arena, struct record *ret_record)
{
	struct reader reader;
	struct span row, data;
	int64_t seq;
	int r = store_rows(store, get_extra, 0, EXTRA_AUDIT, number, arena, &row);

	if (r < 0)
		return r == -ENOENT ? store_damaged(store, extra_table(EXTRA_AUDIT), 0) : r;
	reader_init(&reader, row);
	if (!take_row(&reader, &seq, &data) || record_decode(seq, data, ret_record) < 0)
		return store_damaged(store, extra_table(EXTRA_AUDIT), 0);
	return 0;
}

/* The oldest goes if there are too many, or if its time is over. 1: it went. */
static int drop_oldest(struct turn *turn, struct audit *audit)
{
	const struct retention *retention = &turn->store->retention;
	struct record record;

	if (audit->first > audit->last)
		return 0;
	int r = get_audited(turn->store, audit->first, &turn->arena, &record);
	if (r < 0 && r != -EBADMSG) /* what cannot be read goes, too: its place was noted */
		return r;
	bool many = audit->last - audit->first >= (int64_t)retention->audit_max;
	if (r == 0 && !many && record.wall_ms + retention->event_ms > turn->given.now.wall_ms)
		return 0;
	if (r == 0)
		audit->dropped = record.seq;
	r = turn_put(turn, delete_extra, 0, EXTRA_AUDIT, audit->first++);
	return r < 0 ? r : 1;
}

static int keep_for_audit(struct turn *turn, const struct record *record, struct span data)
{
	struct audit audit;
	int went = 1;

	int r = get_audit(turn->store, &turn->arena, &audit);
	if (r < 0)
		return r;
	assert(record->seq > audit.dropped); /* events are taken out of the log in order */
	buf_clear(&turn->record);
	r = put_row(&turn->record, record->seq, data);
	if (r == 0)
		r = turn_put(turn, put_extra, 0, EXTRA_AUDIT, ++audit.last, buf_span(&turn->record));
	for (int i = 0; r == 0 && went > 0 && i < AUDIT_DROPPED_MAX; i++) {
		went = drop_oldest(turn, &audit);
		r = went < 0 ? went : 0;
	}
	if (r < 0)
		return r;
	buf_clear(&turn->record);
	buf_put_uvarint(&turn->record, (uint64_t)audit.first);
	buf_put_uvarint(&turn->record, (uint64_t)audit.last);
	buf_put_uvarint(&turn->record, (uint64_t)audit.dropped);
	r = buf_fault(&turn->record);
	return r < 0 ? r : turn_put(turn, put_extra, 0, EXTRA_AUDIT, 0, buf_span(&turn->record));
}

/* The number of the first one behind `after`; audit->last + 1: there is none. */
static int find_audited(struct store *store, const struct audit *audit, int64_t after, struct arena *arena,
	int64_t *ret_number)
{
	int64_t low = audit->first, high = audit->last + 1;

	while (low < high) {
		int64_t middle = low + (high - low) / 2;
		struct record record;
		int r = get_audited(store, middle, arena, &record);
		if (r < 0)
			return r;
		if (record.seq > after)
			high = middle;
		else
			low = middle + 1;
	}
	*ret_number = low;
	return 0;
}

int store_audit_base(struct store *store, int64_t *ret_base)
{
	struct arena arena;
	struct audit audit;

	arena_init(&arena, 1 << 10);
	int r = get_audit(store, &arena, &audit);
	if (r == 0)
		*ret_base = audit.dropped;
	arena_done(&arena);
	return r;
}

int store_page_audit(struct store *store, int64_t after, uint32_t limit,
	int (*each)(void *context, const struct record *record), void *context)
{
	struct arena arena;
	struct audit audit;
	int64_t number = 0;

	arena_init(&arena, 64 << 20);
	int r = get_audit(store, &arena, &audit);
	if (r == 0 && after < audit.dropped)
		r = -ESTALE;
	if (r == 0)
		r = find_audited(store, &audit, after, &arena, &number);
	for (uint32_t i = 0; r == 0 && i < limit && number <= audit.last; i++, number++) {
		struct record record;
		arena_reset(&arena);
		r = get_audited(store, number, &arena, &record);
		if (r == 0)
			r = each(context, &record);
	}
	arena_done(&arena);
	return r;
}

/* ---- both -------------------------------------------------------------------------------------------------------------- */

int keep_event(struct turn *turn, const struct record *record, struct span data, bool old)
{
	int r = !old && event_kind_is_of_audit(record->kind) ? keep_for_audit(turn, record, data) : 0;

	return r == 0 && record->task != 0 ? keep_with_task(turn, record, data) : r;
}
