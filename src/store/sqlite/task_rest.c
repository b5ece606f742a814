/*
 * The column `rest` of a task.
 *
 * Most numbers of a task are 0 most of the time. It begins with 40 bits, lowest byte first, one for each number
 * that is not; then come those, in the order below, as LEB128. Moments that mostly lie near the creation are counted from
 * there. The order is part of the format: new ones are appended.
 */
#include "base/buf.h"
#include "store/sqlite/sqlite_backend.h"

enum {
	FLAG_KEYED = 1,
	FLAG_HAS_PARENT = 2,
	FLAG_NAMED_ID = 4,
	FLAG_AUTONOMOUS = 8,

	CLAIM_FLAG_NAMED = 1,
	CLAIM_FLAG_STOPPING = 2,
	CLAIM_FLAG_REPORTED = 4,
	CLAIM_FLAG_BITS = 3, /* above them: how often its token was replaced */
};

enum rest {
	REST_VERSION,
	REST_CREATED_MS,
	REST_UPDATED_AFTER_MS,
	REST_READY_AFTER_MS,
	REST_OWNER,
	REST_FLAGS,
	REST_REQUIRES,
	REST_EXECUTOR,
	REST_TIMEOUT_MS,
	REST_MAX_ATTEMPTS,
	REST_START_BY_MS,
	REST_FINISH_BY_MS,
	REST_ATTEMPT,
	REST_SPENT,
	REST_CRASHES,
	REST_INTERRUPTIONS,
	REST_OPEN_PARENTS,
	REST_DEAD_PARENTS,
	REST_FENCE,
	REST_CLAIMANT,
	REST_ENDED,
	REST_CODE,
	/* of the live claim */
	REST_CLOCK,
	REST_GRANTED_MS,
	REST_CLAIMED_AFTER_MS, /* where there is a claim */
	REST_DEADLINE_MS,
	REST_VERIFY_AT_MS,
	REST_RUN_UNTIL_MS,
	REST_RUN_MS,
	REST_ASKED_AT_MS,
	REST_REQUEST,
	REST_CLAIM_FLAGS,
	/* of workflows and gates */
	REST_WORKFLOW,
	REST_STAGE,
	REST_GATES,
	REST_GATE_COUNT,
	REST_GATES_PASSED,
	/* of a question */
	REST_RESUME_HOST,
	REST_RESUME_UNTIL_MS,
	REST_COUNT,
	REST_HEAD_BYTES = 5,
};
_Static_assert(REST_COUNT <= 8 * REST_HEAD_BYTES, "a bit for each");
_Static_assert(REST_HEAD_BYTES + REST_COUNT * UVARINT_BYTES_MAX <= TASK_REST_BYTES_MAX, "room for all");

struct rest_writer {
	char *at;
	uint64_t given;
};

static inline void rest_put(struct rest_writer *rest, enum rest number, uint64_t value)
{
	if (value == 0)
		return;
	rest->given |= UINT64_C(1) << number;
	rest->at = uvarint_write(rest->at, value);
}

/* In the order of their bits. */
static void rest_gather(const struct task_row *row, struct rest_writer *rest)
{
	const struct task *task = &row->task;
	const struct claim *claim = &task->claim;
	uint64_t created_ms = (uint64_t)task->created_ms;

	rest_put(rest, REST_VERSION, (uint64_t)task->version);
	rest_put(rest, REST_CREATED_MS, created_ms);
	rest_put(rest, REST_UPDATED_AFTER_MS, (uint64_t)row->updated_ms - created_ms);
	rest_put(rest, REST_READY_AFTER_MS, (uint64_t)task->ready_at_ms - created_ms);
	rest_put(rest, REST_OWNER, task->owner);
	rest_put(rest, REST_FLAGS,
		(task->keyed ? FLAG_KEYED : 0) | (task->has_parent ? FLAG_HAS_PARENT : 0) |
			(task->named_id ? FLAG_NAMED_ID : 0) | (task->autonomous ? FLAG_AUTONOMOUS : 0));
	rest_put(rest, REST_REQUIRES, task->requires);
	rest_put(rest, REST_EXECUTOR, task->executor);
	rest_put(rest, REST_TIMEOUT_MS, task->timeout_ms);
	rest_put(rest, REST_MAX_ATTEMPTS, task->max_attempts);
	rest_put(rest, REST_START_BY_MS, (uint64_t)task->start_by_ms);
	rest_put(rest, REST_FINISH_BY_MS, (uint64_t)task->finish_by_ms);
	rest_put(rest, REST_ATTEMPT, task->attempt);
	rest_put(rest, REST_SPENT, task->spent);
	rest_put(rest, REST_CRASHES, task->crashes);
	rest_put(rest, REST_INTERRUPTIONS, task->interruptions);
	rest_put(rest, REST_OPEN_PARENTS, task->open_parents);
	rest_put(rest, REST_DEAD_PARENTS, task->dead_parents);
	rest_put(rest, REST_FENCE, task->fence);
	rest_put(rest, REST_CLAIMANT, task->claimant);
	rest_put(rest, REST_ENDED, task->ended);
	rest_put(rest, REST_CODE, task->code);
	rest_put(rest, REST_CLOCK, claim->clock);
	rest_put(rest, REST_GRANTED_MS, (uint64_t)claim->lease.granted_ms);
	rest_put(rest, REST_CLAIMED_AFTER_MS,
		claim->clock != 0 ? (uint64_t)claim->claimed_wall_ms - created_ms : 0);
	rest_put(rest, REST_DEADLINE_MS, (uint64_t)claim->lease.deadline_ms);
	rest_put(rest, REST_VERIFY_AT_MS, (uint64_t)claim->verify_at_ms);
	rest_put(rest, REST_RUN_UNTIL_MS, (uint64_t)claim->run_until_ms);
	rest_put(rest, REST_RUN_MS, (uint64_t)claim->run_ms);
	rest_put(rest, REST_ASKED_AT_MS, (uint64_t)claim->asked_at_ms);
	rest_put(rest, REST_REQUEST, claim->request);
	rest_put(rest, REST_CLAIM_FLAGS,
		(claim->named ? CLAIM_FLAG_NAMED : 0) | (claim->stopping ? CLAIM_FLAG_STOPPING : 0) |
			(claim->reported ? CLAIM_FLAG_REPORTED : 0) |
			(uint64_t)claim->reissued << CLAIM_FLAG_BITS);
	rest_put(rest, REST_WORKFLOW, task->workflow);
	rest_put(rest, REST_STAGE, task->stage);
	rest_put(rest, REST_GATES, task->gates);
	rest_put(rest, REST_GATE_COUNT, task->gate_count);
	rest_put(rest, REST_GATES_PASSED, task->gates_passed);
	rest_put(rest, REST_RESUME_HOST, task->resume_host);
	rest_put(rest, REST_RESUME_UNTIL_MS, (uint64_t)task->resume_until_ms);
}

static void rest_scatter(const uint64_t values[REST_COUNT], struct task_row *row)
{
	struct task *task = &row->task;
	struct claim *claim = &task->claim;

	task->version = (int64_t)values[REST_VERSION];
	task->created_ms = (int64_t)values[REST_CREATED_MS];
	row->updated_ms = (int64_t)(values[REST_CREATED_MS] + values[REST_UPDATED_AFTER_MS]);
	task->ready_at_ms = (int64_t)(values[REST_CREATED_MS] + values[REST_READY_AFTER_MS]);
	task->owner = (uint32_t)values[REST_OWNER];
	task->keyed = values[REST_FLAGS] & FLAG_KEYED;
	task->has_parent = values[REST_FLAGS] & FLAG_HAS_PARENT;
	task->named_id = values[REST_FLAGS] & FLAG_NAMED_ID;
	task->autonomous = values[REST_FLAGS] & FLAG_AUTONOMOUS;
	task->requires = (uint32_t)values[REST_REQUIRES];
	task->executor = (uint32_t)values[REST_EXECUTOR];
	task->timeout_ms = (uint32_t)values[REST_TIMEOUT_MS];
	task->max_attempts = (uint32_t)values[REST_MAX_ATTEMPTS];
	task->start_by_ms = (int64_t)values[REST_START_BY_MS];
	task->finish_by_ms = (int64_t)values[REST_FINISH_BY_MS];
	task->attempt = (uint32_t)values[REST_ATTEMPT];
	task->spent = (uint32_t)values[REST_SPENT];
	task->crashes = (uint32_t)values[REST_CRASHES];
	task->interruptions = (uint32_t)values[REST_INTERRUPTIONS];
	task->open_parents = (uint32_t)values[REST_OPEN_PARENTS];
	task->dead_parents = (uint32_t)values[REST_DEAD_PARENTS];
	task->fence = values[REST_FENCE];
	task->claimant = (uint32_t)values[REST_CLAIMANT];
	task->ended = (enum claim_end)values[REST_ENDED];
	task->code = (enum failure_code)values[REST_CODE];
	claim->clock = (enum claim_clock)values[REST_CLOCK];
	claim->lease.granted_ms = (uint32_t)values[REST_GRANTED_MS];
	if (claim->clock != 0)
		claim->claimed_wall_ms = (int64_t)(values[REST_CREATED_MS] + values[REST_CLAIMED_AFTER_MS]);
	claim->lease.deadline_ms = (int64_t)values[REST_DEADLINE_MS];
	claim->verify_at_ms = (int64_t)values[REST_VERIFY_AT_MS];
	claim->run_until_ms = (int64_t)values[REST_RUN_UNTIL_MS];
	claim->run_ms = (int64_t)values[REST_RUN_MS];
	claim->asked_at_ms = (int64_t)values[REST_ASKED_AT_MS];
	claim->request = values[REST_REQUEST];
	claim->named = values[REST_CLAIM_FLAGS] & CLAIM_FLAG_NAMED;
	claim->stopping = values[REST_CLAIM_FLAGS] & CLAIM_FLAG_STOPPING;
	claim->reported = values[REST_CLAIM_FLAGS] & CLAIM_FLAG_REPORTED;
	claim->reissued = (uint32_t)(values[REST_CLAIM_FLAGS] >> CLAIM_FLAG_BITS);
	task->workflow = (enum workflow)values[REST_WORKFLOW];
	task->stage = (enum stage)values[REST_STAGE];
	task->gates = (uint32_t)values[REST_GATES];
	task->gate_count = (uint32_t)values[REST_GATE_COUNT];
	task->gates_passed = (uint32_t)values[REST_GATES_PASSED];
	task->resume_host = (uint32_t)values[REST_RESUME_HOST];
	task->resume_until_ms = (int64_t)values[REST_RESUME_UNTIL_MS];
}

struct span task_rest_pack(const struct task_row *row, char bytes[TASK_REST_BYTES_MAX])
{
	struct rest_writer rest = {.at = bytes + REST_HEAD_BYTES};

	rest_gather(row, &rest);
	for (int i = 0; i < REST_HEAD_BYTES; i++)
		bytes[i] = (char)(rest.given >> 8 * i);
	return (struct span){bytes, (size_t)(rest.at - bytes)};
}

bool task_rest_unpack(struct span bytes, struct task_row *row)
{
	uint64_t values[REST_COUNT] = {0}, given = 0;
	struct reader reader;

	reader_init(&reader, bytes);
	for (int i = 0; i < REST_HEAD_BYTES; i++)
		given |= (uint64_t)reader_byte(&reader) << 8 * i;
	if (given >> REST_COUNT != 0)
		return false;
	for (; given != 0; given &= given - 1)
		values[__builtin_ctzll(given)] = reader_uvarint(&reader);
	rest_scatter(values, row);
	return reader_is_done(&reader) && values[REST_ENDED] <= ENDED_LOST &&
		values[REST_CODE] < FAILURE_CODE_COUNT && values[REST_CLOCK] <= CLOCK_WORKER &&
		values[REST_WORKFLOW] < WORKFLOW_MAX && values[REST_STAGE] < STAGE_COUNT &&
		values[REST_GATE_COUNT] <= TASK_GATES_MAX;
}
