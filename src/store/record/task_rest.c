/*
 * The column `rest` of a task.
 *
 * Most numbers of a task are 0 most of the time. It begins with 40 bits, lowest byte first, one for each number
 * that is not; then come those, in the order below, as LEB128. Moments that mostly lie near the creation are counted from
 * there. The order is part of the format: new ones are appended.
 */
#include "store/record/task_rest.h"

#include <assert.h>

#include "base/buf.h"

/* In the order of core/task/fields.h, which says what each is. */
// clang-format off
enum rest {
#define X(name, ...) REST_##name,
	TASK_FIELDS_FIRST(X)
	REST_flags,
	TASK_FIELDS_SECOND(X)
	CLAIM_FIELDS(X)
	REST_claim_flags,
	TASK_FIELDS_THIRD(X)
	TASK_FIELDS_FOURTH(X)
#undef X
	REST_COUNT,
	REST_HEAD_BYTES = 5,
};

/* The second and the third part: a byte with a bit for each, and those that are not 0. A part is there if it, or the one behind it,
 * has any. */
enum more {
#define X(name, ...) MORE_##name,
	TASK_FIELDS_FIFTH(X)
#undef X
	MORE_COUNT,
};
enum most {
#define X(name, ...) MOST_##name,
	TASK_FIELDS_SIXTH(X)
#undef X
	MOST_COUNT,
};
_Static_assert(MORE_COUNT <= 8 && MOST_COUNT <= 8, "a bit for each");
// clang-format on
_Static_assert(REST_flags == 5 && REST_code == 21 && REST_request == 30 && REST_resume_until_ms == 38 &&
		REST_charge == 39,
	"as in the rows of every release");
_Static_assert(REST_COUNT <= 8 * REST_HEAD_BYTES, "a bit for each");
_Static_assert(REST_HEAD_BYTES + (REST_COUNT + MORE_COUNT + MOST_COUNT) * UVARINT_BYTES_MAX + 2 <=
		TASK_REST_BYTES_MAX,
	"room for all");

struct rest_writer {
	char *at;
	uint64_t present;
};

static inline void rest_put(struct rest_writer *rest, enum rest number, uint64_t value)
{
	if (value == 0)
		return;
	rest->present |= UINT64_C(1) << number;
	rest->at = uvarint_write(rest->at, value);
}

#define PLAIN(value) ((uint64_t)(value))
#define AFTER(value) ((uint64_t)(value) - created_ms)

/* In the order of their bits. */
static void rest_gather(const struct task *task, struct rest_writer *rest)
{
	const struct claim *claim = &task->claim;
	uint64_t created_ms = (uint64_t)task->created_ms;

#define X(name, column, row, memory) rest_put(rest, REST_##name, row(task->name));
	TASK_FIELDS_FIRST(X)
	rest_put(rest, REST_flags, task_flags(task));
	TASK_FIELDS_SECOND(X)
#undef X
	if (claim->clock != 0) {
#define X(name, field, row) rest_put(rest, REST_##name, row(claim->field));
		CLAIM_FIELDS(X)
#undef X
		rest_put(rest, REST_claim_flags, claim_flags(claim));
	}
#define X(name, column, row, memory) rest_put(rest, REST_##name, row(task->name));
	TASK_FIELDS_THIRD(X)
	TASK_FIELDS_FOURTH(X)
#undef X
}

#undef PLAIN
#undef AFTER
#define PLAIN(field, value) field = (__typeof__(field))(value)
#define AFTER(field, value) field = (int64_t)(values[REST_created_ms] + (value))

static void rest_scatter(const uint64_t values[REST_COUNT], struct task *task)
{
	struct claim *claim = &task->claim;

#define X(name, column, row, memory) row(task->name, values[REST_##name]);
	TASK_FIELDS_FIRST(X)
	task_set_flags(task, (unsigned)values[REST_flags]);
	TASK_FIELDS_SECOND(X)
	TASK_FIELDS_THIRD(X)
	TASK_FIELDS_FOURTH(X)
#undef X
	if (values[REST_clock] == 0)
		return;
#define X(name, field, row) row(claim->field, values[REST_##name]);
	CLAIM_FIELDS(X)
#undef X
	claim_set_flags(claim, values[REST_claim_flags]);
}

#define PUT(number, value)                                 \
	if ((value) != 0) {                                \
		present |= 1u << (number);                 \
		at = uvarint_write(at, (uint64_t)(value)); \
	}

static char *most_pack(const struct task *task, char *at)
{
	char *head = at++;
	unsigned present = 0;

#define X(name, ...) PUT(MOST_##name, task->name)
	TASK_FIELDS_SIXTH(X)
#undef X
	*head = (char)present;
	return present != 0 ? at : head;
}

static char *more_pack(const struct task *task, char *at)
{
	char *head = at++, *end;
	unsigned present = 0;

#define X(name, ...) PUT(MORE_##name, task->name)
	TASK_FIELDS_FIFTH(X)
#undef X
	*head = (char)present;
	end = most_pack(task, at);
	return present != 0 || end != at ? end : head;
}
#undef PUT

#define TAKE(number, field)           \
	if (present & 1u << (number)) \
		field = (__typeof__(field))reader_uvarint(reader);

/* False: bits that nothing is known of. */
static bool most_unpack(struct reader *reader, struct task *task)
{
	unsigned present = reader_byte(reader);

#define X(name, ...) TAKE(MOST_##name, task->name)
	TASK_FIELDS_SIXTH(X)
#undef X
	return present >> MOST_COUNT == 0;
}

static bool more_unpack(struct reader *reader, struct task *task)
{
	unsigned present = reader_byte(reader);

#define X(name, ...) TAKE(MORE_##name, task->name)
	TASK_FIELDS_FIFTH(X)
#undef X
	return present >> MORE_COUNT == 0 && (reader_is_done(reader) || most_unpack(reader, task));
}
#undef TAKE

struct span task_rest_pack(const struct task *task, char bytes[TASK_REST_BYTES_MAX])
{
	struct rest_writer rest = {.at = bytes + REST_HEAD_BYTES};

	rest_gather(task, &rest);
	for (int i = 0; i < REST_HEAD_BYTES; i++)
		bytes[i] = (char)(rest.present >> 8 * i);
	rest.at = more_pack(task, rest.at);
	assert(rest.at <= bytes + TASK_REST_BYTES_MAX);
	return (struct span){bytes, (size_t)(rest.at - bytes)};
}

bool task_rest_unpack(struct span bytes, struct task *task)
{
	uint64_t values[REST_COUNT] = {0}, present = 0;
	struct reader reader;

	reader_init(&reader, bytes);
	for (int i = 0; i < REST_HEAD_BYTES; i++)
		present |= (uint64_t)reader_byte(&reader) << 8 * i;
	if (present >> REST_COUNT != 0)
		return false;
	for (; present != 0; present &= present - 1)
		values[__builtin_ctzll(present)] = reader_uvarint(&reader);
	rest_scatter(values, task);
	if (!reader_is_done(&reader) && !more_unpack(&reader, task))
		return false;
	return reader_is_done(&reader) && values[REST_ended] <= ENDED_WAIT &&
		values[REST_code] < FAILURE_CODE_COUNT && values[REST_clock] <= CLOCK_WORKER &&
		values[REST_workflow] < WORKFLOW_MAX && values[REST_stage] < STAGE_COUNT &&
		values[REST_gate_count] <= TASK_GATES_MAX && task->subtasks <= SUBTASKS_AWAITED;
}
