/*
 * Tasks and what hangs on them: body, extras, baseline, ids, keys, edges.
 *
 * Writing tasks and bodies is the hot path: they wait to be written together, see pending.c. Whoever reads them here
 * has them written first.
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

	BODIES_AHEAD = 16, /* read at once where one after the other is asked for */
};

/* The SQL knows a few of the stored numbers. */
_Static_assert(TASK_FAILED == 10 && TASK_DONE == 11 && TASK_CANCELLED == 12, "as in scan_live_tasks");
_Static_assert(META_EVENT_BASE == 4, "as in facts");

/* ---- the column `rest` ---- */

/*
 * Most numbers of a task are 0 most of the time. `rest` begins with 40 bits, lowest byte first, one for each number
 * that is not; then come those, in this order, as LEB128. Moments that mostly lie near the creation are counted from
 * there. The order is part of the format: new ones are appended.
 */
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
	REST_BYTES_MAX = REST_HEAD_BYTES + REST_COUNT * UVARINT_BYTES_MAX,
};
_Static_assert(REST_COUNT <= 8 * REST_HEAD_BYTES, "a bit for each");

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
			(claim->reported ? CLAIM_FLAG_REPORTED : 0));
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
	task->workflow = (enum workflow)values[REST_WORKFLOW];
	task->stage = (enum stage)values[REST_STAGE];
	task->gates = (uint32_t)values[REST_GATES];
	task->gate_count = (uint32_t)values[REST_GATE_COUNT];
	task->gates_passed = (uint32_t)values[REST_GATES_PASSED];
	task->resume_host = (uint32_t)values[REST_RESUME_HOST];
	task->resume_until_ms = (int64_t)values[REST_RESUME_UNTIL_MS];
}

static struct span rest_pack(const struct task_row *row, char bytes[REST_BYTES_MAX])
{
	struct rest_writer rest = {.at = bytes + REST_HEAD_BYTES};

	rest_gather(row, &rest);
	for (int i = 0; i < REST_HEAD_BYTES; i++)
		bytes[i] = (char)(rest.given >> 8 * i);
	return (struct span){bytes, (size_t)(rest.at - bytes)};
}

static bool rest_unpack(struct span bytes, struct task_row *row)
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

/* ---- rows ---- */

/* In the order of the lists `task` and `claim` in statements.sql; what is not set is NULL. */
static void put_row(struct pending *pending, const struct task_row *row)
{
	const struct task *task = &row->task;
	const struct claim *claim = &task->claim;
	struct pending_value *values = pending_row(pending);
	char rest[REST_BYTES_MAX];

	if (!values)
		return;
	values[0] = pending_int(task->seq);
	values[1] = pending_int(task->state);
	values[2] = pending_int(task->queue);
	values[3] = pending_int(task->priority);
	values[4] = pending_blob(pending, rest_pack(row, rest));
	if (span_is_empty(row->holder))
		return;
	values[5] = pending_text(pending, row->holder);
	values[6] = pending_int(claim->claimed_wall_ms);
	if (claim->clock == CLOCK_CLAIM)
		values[7] = pending_int(row->updated_ms + claim->lease.granted_ms);
}

static bool read_task(struct columns *columns, struct task_row *row)
{
	struct task *task = &row->task;

	task->seq = column_int(columns);
	task->state = column_u32(columns);
	task->queue = column_u32(columns);
	task->priority = (int32_t)column_int(columns);
	return rest_unpack(column_span(columns), row) && task->state > TASK_NOWHERE &&
		task->state < TASK_STATE_COUNT;
}

/* The row that a statement of {task}, {claim} stands on. Its holder is borrowed from it. */
static int read_row(struct binding *binding, struct task_row *ret_row)
{
	struct columns columns = {binding->statement, 0};

	*ret_row = (struct task_row){0};
	if (!read_task(&columns, ret_row))
		return sqlite_fault_row(binding->store, "task", ret_row->task.seq);
	ret_row->holder = column_span(&columns);
	return 0;
}

int sqlite_put_task(struct backend *backend, const struct task_row *row, bool fresh)
{
	struct sqlite *store = sqlite_of(backend);
	enum pending_table table = fresh ? PENDING_NEW_TASK : PENDING_TASK;

	put_row(&store->pending[table], row);
	return pending_end_row(store, table);
}

/* The new ones first: what else is written may be about them. */
static int write_tasks(struct sqlite *store)
{
	int fault = pending_write(store, PENDING_NEW_TASK);

	return fault ? fault : pending_write(store, PENDING_TASK);
}

int sqlite_write_pending(struct sqlite *store)
{
	int fault = write_tasks(store);

	if (!fault)
		fault = pending_write(store, PENDING_BODY);
	return fault ? fault : events_flush(store);
}

int sqlite_get_task(struct backend *backend, int64_t seq, struct arena *arena, struct task_row *ret_row)
{
	struct task_row row;
	int fault = write_tasks(sqlite_of(backend));

	if (fault)
		return fault;
	struct binding binding = bind_start(sqlite_of(backend), SQL_GET_TASK);
	bind_int(&binding, seq);
	fault = bind_next(&binding);
	if (fault)
		return fault;
	fault = read_row(&binding, &row);
	if (!fault && !span_is_empty(row.holder))
		fault = arena_copy(arena, row.holder, &row.holder);
	if (!fault)
		*ret_row = row;
	return bind_stop(&binding, fault);
}

int sqlite_page_tasks(struct backend *backend, int64_t after, uint32_t limit,
	int (*each)(void *context, const struct task_row *row), void *context)
{
	int fault = write_tasks(sqlite_of(backend));

	if (fault)
		return fault;
	struct binding binding = bind_start(sqlite_of(backend), SQL_PAGE_TASKS);
	bind_int(&binding, after);
	bind_int(&binding, limit);
	while ((fault = bind_next(&binding)) == 0) {
		struct task_row row;
		int verdict = read_row(&binding, &row);

		if (!verdict)
			verdict = each(context, &row);
		if (verdict)
			return bind_stop(&binding, verdict);
	}
	return bind_end(fault);
}

int sqlite_page_outlines(struct backend *backend, int64_t before, uint32_t limit,
	int (*each)(void *context, const struct task_outline *outline), void *context)
{
	int fault = write_tasks(sqlite_of(backend));

	if (fault)
		return fault;
	struct binding binding = bind_start(sqlite_of(backend), SQL_PAGE_OUTLINES);
	bind_int(&binding, before);
	bind_int(&binding, limit);
	while ((fault = bind_next(&binding)) == 0) {
		struct columns columns = {binding.statement, 0};
		struct task_row row = {0};
		bool good = read_task(&columns, &row);
		const struct task *task = &row.task;
		struct task_outline outline = {
			.seq = task->seq,
			.created_ms = task->created_ms,
			.queue = task->queue,
			.owner = task->owner,
			.priority = task->priority,
			.state = task->state,
		};
		int verdict =
			good ? each(context, &outline) : sqlite_fault_row(binding.store, "task", task->seq);

		if (verdict)
			return bind_stop(&binding, verdict);
	}
	return bind_end(fault);
}

static int scan_live(struct sqlite *store, int (*each)(void *context, const struct task_row *row),
	void *context, uint64_t *ret_count)
{
	int fault = write_tasks(store);

	*ret_count = 0;
	if (fault)
		return fault;
	struct binding binding = bind_start(store, SQL_SCAN_LIVE_TASKS);
	while ((fault = bind_next(&binding)) == 0) {
		struct task_row row;
		int verdict = read_row(&binding, &row);

		if (!verdict)
			verdict = each(context, &row);
		if (verdict)
			return bind_stop(&binding, verdict);
		++*ret_count;
	}
	return bind_end(fault);
}

int sqlite_scan_live_tasks(struct backend *backend, int (*each)(void *context, const struct task_row *row),
	void *context, struct backend_facts *ret_facts)
{
	struct sqlite *store = sqlite_of(backend);
	struct binding binding;
	struct columns columns;
	uint64_t live, all;
	int fault = scan_live(store, each, context, &live);

	if (fault)
		return fault;
	binding = bind_start(store, SQL_FACTS);
	columns = (struct columns){binding.statement, 0};
	fault = bind_next(&binding);
	if (fault)
		return fault;
	ret_facts->last_event = column_int(&columns);
	ret_facts->last_task = column_int(&columns);
	ret_facts->shadow_ids = (uint64_t)column_int(&columns);
	all = (uint64_t)column_int(&columns);
	assert(all >= live);
	ret_facts->finals = all - live;
	return bind_stop(&binding, 0);
}

/* Bodies, extras, baselines. */

int sqlite_put_body(struct backend *backend, int64_t seq, struct span body)
{
	struct sqlite *store = sqlite_of(backend);
	struct pending *pending = &store->pending[PENDING_BODY];
	struct pending_value *values = pending_row(pending);

	if (values) {
		values[0] = pending_int(seq);
		values[1] = pending_blob(pending, body);
	}
	bodies_keep(store, seq, body);
	return pending_end_row(store, PENDING_BODY);
}

/* The body that the statement stands on is wanted, those behind it may be soon. Large ones are not read for nothing:
 * the first one that cannot be kept ends it. */
static int read_bodies(struct binding *binding, int64_t seq, struct arena *arena, struct span *ret_body)
{
	struct sqlite *store = binding->store;
	struct columns columns = {binding->statement, 0};
	int fault = column_int(&columns) == seq ? 0 : -ENOENT;

	if (fault)
		return bind_stop(binding, fault);
	struct span body = column_span(&columns);
	bool kept = bodies_keep(store, seq, body);
	fault = arena_copy(arena, body, ret_body);
	store->next_body = kept ? seq + 1 : 0;
	while (!fault && kept) {
		fault = bind_next(binding);
		if (fault)
			return bind_end(fault);
		columns = (struct columns){binding->statement, 0};
		seq = column_int(&columns);
		kept = bodies_keep(store, seq, column_span(&columns));
		store->next_body = seq + 1;
	}
	return bind_stop(binding, fault);
}

int sqlite_get_body(struct backend *backend, int64_t seq, struct arena *arena, struct span *ret_body)
{
	struct sqlite *store = sqlite_of(backend);
	struct span kept;

	if (bodies_find(store, seq, &kept))
		return arena_copy(arena, kept, ret_body);
	int fault = pending_write(store, PENDING_BODY);
	if (fault)
		return fault;
	struct binding binding = bind_start(store, SQL_PAGE_BODIES);

	bind_int(&binding, seq);
	bind_int(&binding, seq == store->next_body ? BODIES_AHEAD : 1);
	fault = bind_next(&binding);
	return fault ? fault : read_bodies(&binding, seq, arena, ret_body);
}

int sqlite_put_extra(struct backend *backend, int64_t seq, enum extra_kind kind, int64_t n, struct span data)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_PUT_EXTRA);

	bind_int(&binding, seq);
	bind_int(&binding, kind);
	bind_int(&binding, n);
	bind_blob(&binding, data);
	return bind_run(&binding);
}

int sqlite_get_extra(struct backend *backend, int64_t seq, enum extra_kind kind, int64_t n,
	struct arena *arena, struct span *ret_data)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_GET_EXTRA);

	bind_int(&binding, seq);
	bind_int(&binding, kind);
	bind_int(&binding, n);
	return bind_get_span(&binding, arena, ret_data);
}

int sqlite_delete_extra(struct backend *backend, int64_t seq, enum extra_kind kind, int64_t n)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_DELETE_EXTRA);

	bind_int(&binding, seq);
	bind_int(&binding, kind);
	bind_int(&binding, n);
	return bind_run(&binding);
}

int sqlite_put_base(struct backend *backend, int64_t seq, struct span data)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_PUT_BASE);

	bind_int(&binding, seq);
	bind_blob(&binding, data);
	return bind_run(&binding);
}

int sqlite_get_base(struct backend *backend, int64_t seq, struct arena *arena, struct span *ret_data)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_GET_BASE);

	bind_int(&binding, seq);
	return bind_get_span(&binding, arena, ret_data);
}

int sqlite_delete_base(struct backend *backend, int64_t seq)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_DELETE_BASE);

	bind_int(&binding, seq);
	return bind_run(&binding);
}

int sqlite_delete_task(struct backend *backend, int64_t seq)
{
	static const enum sql_statement parts[] = {
		SQL_DELETE_TASK,
		SQL_DELETE_BODY,
		SQL_DELETE_EXTRAS,
		SQL_DELETE_EDGES_DOWN,
		SQL_DELETE_EDGES_UP,
		SQL_DELETE_IDS,
	};

	int fault = sqlite_write_pending(sqlite_of(backend));

	bodies_drop(sqlite_of(backend), seq);
	for (size_t i = 0; !fault && i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct binding binding = bind_start(sqlite_of(backend), parts[i]);

		bind_int(&binding, seq);
		fault = bind_run(&binding);
	}
	return fault;
}

/* Ids and keys. */

int sqlite_put_id(struct backend *backend, struct span id, int64_t seq)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_PUT_ID);

	bind_text(&binding, id);
	bind_int(&binding, seq);
	return bind_run(&binding);
}

int sqlite_find_id(struct backend *backend, struct span id, int64_t *ret_seq)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_FIND_ID);

	bind_text(&binding, id);
	return bind_get_int(&binding, ret_seq);
}

int sqlite_put_key(struct backend *backend, struct span key, int64_t seq)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_PUT_KEY);

	bind_blob(&binding, key);
	bind_int(&binding, seq);
	return bind_run(&binding);
}

int sqlite_find_key(struct backend *backend, struct span key, int64_t *ret_seq)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_FIND_KEY);

	bind_blob(&binding, key);
	return bind_get_int(&binding, ret_seq);
}

int sqlite_delete_key(struct backend *backend, struct span key)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_DELETE_KEY);

	bind_blob(&binding, key);
	return bind_run(&binding);
}

/* Edges. */

int sqlite_put_edge(struct backend *backend, const struct edge_row *row)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_PUT_EDGE);

	bind_int(&binding, row->parent);
	bind_int(&binding, row->child);
	bind_int(&binding, row->dead);
	return bind_run(&binding);
}

int sqlite_delete_edge(struct backend *backend, int64_t parent, int64_t child)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_DELETE_EDGE);

	bind_int(&binding, parent);
	bind_int(&binding, child);
	return bind_run(&binding);
}

static int each_edge(
	struct binding *binding, int (*each)(void *context, const struct edge_row *row), void *context)
{
	int fault;

	while ((fault = bind_next(binding)) == 0) {
		struct columns columns = {binding->statement, 0};
		struct edge_row row;
		int verdict;

		row.parent = column_int(&columns);
		row.child = column_int(&columns);
		row.dead = column_int(&columns) != 0;
		verdict = each(context, &row);
		if (verdict)
			return bind_stop(binding, verdict);
	}
	return bind_end(fault);
}

int sqlite_children(struct backend *backend, int64_t parent,
	int (*each)(void *context, const struct edge_row *row), void *context)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_CHILDREN);

	bind_int(&binding, parent);
	return each_edge(&binding, each, context);
}

int sqlite_parents(struct backend *backend, int64_t child,
	int (*each)(void *context, const struct edge_row *row), void *context)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_PARENTS);

	bind_int(&binding, child);
	return each_edge(&binding, each, context);
}

int sqlite_scan_edges(
	struct backend *backend, int (*each)(void *context, const struct edge_row *row), void *context)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_SCAN_EDGES);

	return each_edge(&binding, each, context);
}
