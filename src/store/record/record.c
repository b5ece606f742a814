#include "store/record/record.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "core/command.h"

/* The lifecycle columns by their bits in `changed`, which are stored: see core/task/fields.h. Whether the task is held is
 * a bit of its own; who holds it is the event's worker. What events do not tell is below 0. */
#define COLUMNS(X) TASK_FIELDS(X) TASK_FLAGS(X)

enum column {
#define X(name, column, ...) COLUMN_##name = column,
	COLUMNS(X)
#undef X
		COLUMN_held = 33,
};

#define COLUMN_BIT(name) (UINT64_C(1) << (COLUMN_##name & 63))

/* Every bit that has a meaning. */
static uint64_t known_columns(void)
{
#define X(name, column, ...) (column >= 0 ? COLUMN_BIT(name) : 0) |
	return COLUMNS(X) COLUMN_BIT(held);
#undef X
}

/* Of the columns whose bits are left, the first. */
static inline enum column first_column(uint64_t left)
{
	return (enum column)__builtin_ctzll(left);
}

enum record_part {
	PART_TASK = 1 << 0,
	PART_ID = 1 << 1,
	PART_WORKER = 1 << 2,
	PART_ACTOR = 1 << 3,
	PART_SUBJECT = 1 << 4,
	PART_NOTE = 1 << 5,
	PART_FACTS = 1 << 6,
	PART_COUNT = 1 << 7,
};

void record_diff(struct record *record, const struct task *before, const struct task *after)
{
	record->columns = *after;
	record->from = before->state;
	record->changed = 0;
#define X(name, column, ...)                            \
	if (column >= 0 && before->name != after->name) \
		record->changed |= COLUMN_BIT(name);
	COLUMNS(X)
#undef X
	if (before->claim.holder != after->claim.holder)
		record->changed |= COLUMN_BIT(held);
}

bool record_changes_claimant(const struct record *record)
{
	return (record->changed & COLUMN_BIT(claimant)) != 0;
}

bool record_ends_claim(const struct record *record)
{
	return (record->changed & COLUMN_BIT(ended)) != 0 && record->columns.ended != ENDED_NOT;
}

static unsigned parts_of(const struct record *record)
{
	unsigned parts = 0;

	parts |= record->task != 0 ? PART_TASK : 0;
	parts |= record->id.len != 0 ? PART_ID : 0;
	parts |= record->worker.len != 0 ? PART_WORKER : 0;
	parts |= record->actor.len != 0 ? PART_ACTOR : 0;
	parts |= record->subject.len != 0 ? PART_SUBJECT : 0;
	parts |= record->note.len != 0 ? PART_NOTE : 0;
	parts |= record->facts != 0 ? PART_FACTS : 0;
	return parts;
}

/* Everything of a record but its free texts fits into this. */
enum {
	RECORD_FIXED_MAX = (16 + 64 + FACT_COUNT) * UVARINT_BYTES_MAX,
};

static char *put_bytes(char *at, struct span bytes)
{
	at = uvarint_write(at, bytes.len);
	memcpy(at, bytes.data, bytes.len);
	return at + bytes.len;
}

static uint64_t column_value(const struct task *task, enum column column)
{
	switch (column) {
#define X(name, ...)        \
	case COLUMN_##name: \
		return zigzag((int64_t)task->name);
		COLUMNS(X)
#undef X
	case COLUMN_held:
		return task->claim.holder != 0;
	}
	return 0;
}

static char *encode_columns(const struct record *record, char *at)
{
	const struct task *task = &record->columns;

	at = uvarint_write(at, (uint64_t)record->from);
	at = uvarint_write(at, record->changed);
	for (uint64_t left = record->changed; left != 0; left &= left - 1)
		at = uvarint_write(at, column_value(task, first_column(left)));
	return at;
}

static char *encode_facts(const struct record *record, char *at)
{
	uint64_t known = (UINT64_C(1) << FACT_COUNT) - 1;

	at = uvarint_write(at, record->facts);
	for (uint64_t left = record->facts & known; left != 0; left &= left - 1)
		at = uvarint_write(at, zigzag(record->fact[__builtin_ctzll(left)]));
	return at;
}

int record_encode(const struct record *record, struct buf *buf)
{
	unsigned parts = parts_of(record);
	size_t texts = record->id.len + record->worker.len + record->actor.len + record->subject.len +
		record->note.len;
	int r = buf_reserve(buf, RECORD_FIXED_MAX + texts); /* there is room for all below */
	if (r < 0)
		return r;

	char *at = buf->data + buf->len;
	at = uvarint_write(at, (uint64_t)record->kind);
	at = uvarint_write(at, parts);
	at = uvarint_write(at, zigzag(record->wall_ms));
	at = uvarint_write(at, zigzag(record->lease_ms));
	if (parts & PART_TASK) {
		at = uvarint_write(at, (uint64_t)record->task);
		at = uvarint_write(at, (uint64_t)record->previous);
		at = encode_columns(record, at);
	}
	if (parts & PART_ID)
		at = put_bytes(at, record->id);
	if (parts & PART_WORKER)
		at = put_bytes(at, record->worker);
	if (parts & PART_ACTOR)
		at = put_bytes(at, record->actor);
	if (parts & PART_SUBJECT)
		at = put_bytes(at, record->subject);
	if (parts & PART_FACTS)
		at = encode_facts(record, at);
	if (parts & PART_NOTE)
		at = put_bytes(at, record->note);
	assert(at <=
		buf->data + buf->len + RECORD_FIXED_MAX + texts); /* the room that was reserved was enough */
	buf->len = (size_t)(at - buf->data);
	return 0;
}

static void decode_column(struct reader *reader, struct task *task, enum column column)
{
	switch (column) {
#define X(name, ...)                                                         \
	case COLUMN_##name:                                                  \
		task->name = (__typeof__(task->name))reader_svarint(reader); \
		return;
		COLUMNS(X)
#undef X
	case COLUMN_held:
		task->claim.holder = reader_uvarint(reader) != 0;
		return;
	}
}

static void decode_columns(struct reader *reader, struct record *record)
{
	uint64_t from = reader_uvarint(reader);
	record->changed = reader_uvarint(reader);
	if (from >= TASK_STATE_COUNT || (record->changed & ~known_columns()) != 0)
		reader->broken = true;
	record->from = (enum task_state)from;
	for (uint64_t left = record->changed; left != 0 && !reader->broken; left &= left - 1)
		decode_column(reader, &record->columns, first_column(left));
}

static void decode_facts(struct reader *reader, struct record *record)
{
	uint64_t facts = reader_uvarint(reader);

	if (facts >> FACT_COUNT)
		reader->broken = true;
	record->facts = facts;
	for (int fact = 0; fact < FACT_COUNT && !reader->broken; fact++) {
		if (record_has(record, (enum fact)fact))
			record->fact[fact] = reader_svarint(reader);
	}
}

/* What no writer of ours wrote is not taken over from a damaged file. */
static bool columns_are_sane(const struct record *record)
{
	const struct task *task = &record->columns;

	if (task->state >= TASK_STATE_COUNT || task->ended > ENDED_WAIT || task->code >= FAILURE_CODE_COUNT ||
		task->occurrence > OCCURRENCE_HELD || task->subtasks > SUBTASKS_AWAITED)
		return false;
	if (task->workflow >= WORKFLOW_MAX || task->stage >= STAGE_COUNT || task->gate_count > TASK_GATES_MAX)
		return false;
	if (record->id.len > COMMAND_ID_MAX || record->worker.len > COMMAND_ID_MAX)
		return false;
	return task->claim.holder == 0 || record->worker.len > 0;
}

int record_decode(int64_t seq, struct span data, struct record *ret_record)
{
	struct record record = {.seq = seq};
	struct reader reader;

	reader_init(&reader, data);
	uint64_t kind = reader_uvarint(&reader);
	uint64_t parts = reader_uvarint(&reader);
	record.wall_ms = reader_svarint(&reader);
	record.lease_ms = reader_svarint(&reader);
	if (parts & PART_TASK) {
		record.task = (int64_t)reader_uvarint(&reader);
		record.previous = (int64_t)reader_uvarint(&reader);
		decode_columns(&reader, &record);
	}
	if (parts & PART_ID)
		record.id = reader_bytes(&reader);
	if (parts & PART_WORKER)
		record.worker = reader_bytes(&reader);
	if (parts & PART_ACTOR)
		record.actor = reader_bytes(&reader);
	if (parts & PART_SUBJECT)
		record.subject = reader_bytes(&reader);
	if (parts & PART_FACTS)
		decode_facts(&reader, &record);
	if (parts & PART_NOTE)
		record.note = reader_bytes(&reader);
	if (!reader_is_done(&reader) || kind >= EVENT_KIND_COUNT ||
		!event_kind_is_known((enum event_kind)kind))
		return -EPROTO;
	if (parts >= PART_COUNT || !columns_are_sane(&record))
		return -EPROTO;
	record.kind = (enum event_kind)kind;
	*ret_record = record;
	return 0;
}

void fold_apply(struct fold *fold, const struct record *record)
{
	fold->task.seq = record->task;
	fold->task.version = record->seq;
#define X(name, column, ...)                                   \
	if (column >= 0 && record->changed & COLUMN_BIT(name)) \
		fold->task.name = record->columns.name;
	COLUMNS(X)
#undef X
	if (record->changed & COLUMN_BIT(held))
		fold->task.claim.holder = record->columns.claim.holder;
	if (fold->task.claim.holder == 0) {
		fold->holder[0] = 0;
	} else if (record->kind == EVENT_TASK_CLAIMED) {
		assert(record->worker.len < sizeof fold->holder);
		memcpy(fold->holder, record->worker.data, record->worker.len);
		fold->holder[record->worker.len] = 0;
	}
}

/* A baseline is one record that changes everything, by the last event that was folded into it. */
int fold_encode(const struct fold *fold, struct buf *buf)
{
	static const struct task nothing;
	struct record record = {
		.kind = EVENT_TASK_CLAIMED, /* so that the holder is taken over */
		.task = fold->task.seq,
		.previous = fold->task.version,
		.worker = span_of(fold->holder),
	};

	record_diff(&record, &nothing, &fold->task);
	return record_encode(&record, buf);
}

int fold_decode(int64_t seq, struct span data, struct fold *ret_fold)
{
	struct record record;
	int r = record_decode(0, data, &record);
	if (r < 0)
		return r;
	if (record.task != seq)
		return -EPROTO;
	memset(ret_fold, 0, sizeof *ret_fold);
	record.seq = record.previous;
	fold_apply(ret_fold, &record);
	return 0;
}

const char *fold_difference(const struct fold *fold, const struct task *task, struct span holder)
{
#define X(name, column, ...)                              \
	if (column >= 0 && fold->task.name != task->name) \
		return #name;
	COLUMNS(X)
#undef X
	if (fold->task.version != task->version)
		return "version";
	if (!span_equal(span_of(fold->holder), holder))
		return "holder";
	return NULL;
}
