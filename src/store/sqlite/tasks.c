/*
 * Tasks and what hangs on them: body, extras, baseline, ids, keys, edges.
 *
 * Writing a task is the hot path: one statement by rowid, without the claim's columns when there is none.
 */
#include "base/buf.h"
#include "store/sqlite/sqlite_backend.h"

enum {
	FLAG_KEYED = 1,
	FLAG_HAS_PARENT = 2,
	FLAG_NAMED_ID = 4,

	CLAIM_FLAG_NAMED = 1,
	CLAIM_FLAG_STOPPING = 2,
	CLAIM_FLAG_REPORTED = 4,
};

/* The SQL knows a few of the stored numbers. */
_Static_assert(TASK_FAILED == 10 && TASK_DONE == 11 && TASK_CANCELLED == 12, "as in scan_live_tasks");
_Static_assert(META_EVENT_BASE == 4, "as in facts");
_Static_assert(CLOCK_WORKER == 2, "as in worker_task_claims");

/* ---- the column `rest` ---- */

/*
 * Most numbers of a task are 0 most of the time. `rest` is the bits of those that are not, and those, in this order;
 * all as LEB128. The order is part of the format: new ones are appended.
 */
enum rest {
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
	REST_DEADLINE_MS,
	REST_VERIFY_AT_MS,
	REST_RUN_UNTIL_MS,
	REST_RUN_MS,
	REST_ASKED_AT_MS,
	REST_REQUEST,
	REST_CLAIM_FLAGS,
	REST_COUNT,
	REST_BYTES_MAX = (REST_COUNT + 1) * UVARINT_BYTES_MAX,
};

static void rest_gather(const struct task *task, uint64_t values[REST_COUNT])
{
	const struct claim *claim = &task->claim;

	values[REST_FLAGS] = (task->keyed ? FLAG_KEYED : 0) | (task->has_parent ? FLAG_HAS_PARENT : 0) |
		(task->named_id ? FLAG_NAMED_ID : 0);
	values[REST_REQUIRES] = task->requires;
	values[REST_EXECUTOR] = task->executor;
	values[REST_TIMEOUT_MS] = task->timeout_ms;
	values[REST_MAX_ATTEMPTS] = task->max_attempts;
	values[REST_START_BY_MS] = (uint64_t)task->start_by_ms;
	values[REST_FINISH_BY_MS] = (uint64_t)task->finish_by_ms;
	values[REST_ATTEMPT] = task->attempt;
	values[REST_SPENT] = task->spent;
	values[REST_CRASHES] = task->crashes;
	values[REST_INTERRUPTIONS] = task->interruptions;
	values[REST_OPEN_PARENTS] = task->open_parents;
	values[REST_DEAD_PARENTS] = task->dead_parents;
	values[REST_FENCE] = task->fence;
	values[REST_CLAIMANT] = task->claimant;
	values[REST_ENDED] = task->ended;
	values[REST_CODE] = task->code;
	values[REST_DEADLINE_MS] = (uint64_t)claim->lease.deadline_ms;
	values[REST_VERIFY_AT_MS] = (uint64_t)claim->verify_at_ms;
	values[REST_RUN_UNTIL_MS] = (uint64_t)claim->run_until_ms;
	values[REST_RUN_MS] = (uint64_t)claim->run_ms;
	values[REST_ASKED_AT_MS] = (uint64_t)claim->asked_at_ms;
	values[REST_REQUEST] = claim->request;
	values[REST_CLAIM_FLAGS] = (claim->named ? CLAIM_FLAG_NAMED : 0) |
		(claim->stopping ? CLAIM_FLAG_STOPPING : 0) | (claim->reported ? CLAIM_FLAG_REPORTED : 0);
}

static void rest_scatter(const uint64_t values[REST_COUNT], struct task *task)
{
	struct claim *claim = &task->claim;

	task->keyed = values[REST_FLAGS] & FLAG_KEYED;
	task->has_parent = values[REST_FLAGS] & FLAG_HAS_PARENT;
	task->named_id = values[REST_FLAGS] & FLAG_NAMED_ID;
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
	claim->lease.deadline_ms = (int64_t)values[REST_DEADLINE_MS];
	claim->verify_at_ms = (int64_t)values[REST_VERIFY_AT_MS];
	claim->run_until_ms = (int64_t)values[REST_RUN_UNTIL_MS];
	claim->run_ms = (int64_t)values[REST_RUN_MS];
	claim->asked_at_ms = (int64_t)values[REST_ASKED_AT_MS];
	claim->request = values[REST_REQUEST];
	claim->named = values[REST_CLAIM_FLAGS] & CLAIM_FLAG_NAMED;
	claim->stopping = values[REST_CLAIM_FLAGS] & CLAIM_FLAG_STOPPING;
	claim->reported = values[REST_CLAIM_FLAGS] & CLAIM_FLAG_REPORTED;
}

static struct span rest_pack(const struct task *task, char bytes[REST_BYTES_MAX])
{
	struct buf buf = {.data = bytes, .cap = REST_BYTES_MAX, .max = REST_BYTES_MAX};
	uint64_t values[REST_COUNT], given = 0;

	rest_gather(task, values);
	for (int i = 0; i < REST_COUNT; i++)
		given |= (uint64_t)(values[i] != 0) << i;
	buf_put_uvarint(&buf, given);
	for (uint64_t left = given; left != 0; left &= left - 1)
		buf_put_uvarint(&buf, values[__builtin_ctzll(left)]);
	return buf_span(&buf);
}

static bool rest_unpack(struct span bytes, struct task *task)
{
	uint64_t values[REST_COUNT] = {0};
	struct reader reader;

	reader_init(&reader, bytes);
	uint64_t given = reader_uvarint(&reader);
	if (given >> REST_COUNT != 0)
		return false;
	for (; given != 0; given &= given - 1)
		values[__builtin_ctzll(given)] = reader_uvarint(&reader);
	rest_scatter(values, task);
	return reader_is_done(&reader) && values[REST_ENDED] <= ENDED_LOST &&
		values[REST_CODE] < FAILURE_CODE_COUNT;
}

/* ---- rows ---- */

/* In the order of the list `task` in statements.sql; `rest` is borrowed until the statement has run. */
static void bind_task(struct binding *binding, const struct task_row *row, struct span rest)
{
	const struct task *task = &row->task;

	bind_int(binding, task->seq);
	bind_int(binding, task->state);
	bind_int(binding, task->version);
	bind_int(binding, row->updated_ms);
	bind_int(binding, task->created_ms);
	bind_int(binding, task->ready_at_ms);
	bind_int(binding, task->queue);
	bind_int(binding, task->owner);
	bind_int(binding, task->priority);
	bind_blob(binding, rest);
}

static bool read_task(struct columns *columns, struct task_row *row)
{
	struct task *task = &row->task;

	task->seq = column_int(columns);
	task->state = column_u32(columns);
	task->version = column_int(columns);
	row->updated_ms = column_int(columns);
	task->created_ms = column_int(columns);
	task->ready_at_ms = column_int(columns);
	task->queue = column_u32(columns);
	task->owner = column_u32(columns);
	task->priority = (int32_t)column_int(columns);
	return rest_unpack(column_span(columns), task) && task->state > TASK_NOWHERE &&
		task->state < TASK_STATE_COUNT;
}

/* In the order of the list `claim`. */
static void bind_claim(struct binding *binding, const struct task_row *row)
{
	const struct claim *claim = &row->task.claim;

	bind_text(binding, row->holder);
	bind_int(binding, claim->clock);
	bind_int(binding, claim->lease.granted_ms);
	bind_int(binding, claim->claimed_wall_ms);
}

static bool read_claim(struct columns *columns, struct task_row *row)
{
	struct claim *claim = &row->task.claim;

	if (sqlite3_column_type(columns->statement, columns->at) == SQLITE_NULL)
		return true;
	row->holder = column_span(columns);
	claim->clock = column_u32(columns);
	claim->lease.granted_ms = column_u32(columns);
	claim->claimed_wall_ms = column_int(columns);
	return claim->clock <= CLOCK_WORKER;
}

/* The row that a statement of {task}, {claim} stands on. Its holder is borrowed from it. */
static int read_row(struct binding *binding, struct task_row *ret_row)
{
	struct columns columns = {binding->statement, 0};

	*ret_row = (struct task_row){0};
	if (read_task(&columns, ret_row) && read_claim(&columns, ret_row))
		return 0;
	return sqlite_fault_row(binding->store, "task", ret_row->task.seq);
}

int sqlite_put_task(struct backend *backend, const struct task_row *row, bool fresh)
{
	bool claimed = !span_is_empty(row->holder);
	char rest[REST_BYTES_MAX];
	struct binding binding = bind_start(sqlite_of(backend),
		fresh ? (claimed ? SQL_INSERT_TASK_CLAIMED : SQL_INSERT_TASK)
		      : (claimed ? SQL_REPLACE_TASK_CLAIMED : SQL_REPLACE_TASK));

	bind_task(&binding, row, rest_pack(&row->task, rest));
	if (claimed)
		bind_claim(&binding, row);
	return bind_run(&binding);
}

int sqlite_get_task(struct backend *backend, int64_t seq, struct arena *arena, struct task_row *ret_row)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_GET_TASK);
	struct task_row row;
	int fault;

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
	struct binding binding = bind_start(sqlite_of(backend), SQL_PAGE_TASKS);
	int fault;

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
	struct binding binding = bind_start(sqlite_of(backend), SQL_PAGE_OUTLINES);
	int fault;

	bind_int(&binding, before);
	bind_int(&binding, limit);
	while ((fault = bind_next(&binding)) == 0) {
		struct columns columns = {binding.statement, 0};
		struct task_outline outline;
		int verdict;

		outline.seq = column_int(&columns);
		outline.created_ms = column_int(&columns);
		outline.queue = column_u32(&columns);
		outline.owner = column_u32(&columns);
		outline.priority = (int32_t)column_int(&columns);
		outline.state = column_u32(&columns);
		verdict = outline.state > TASK_NOWHERE && outline.state < TASK_STATE_COUNT
			? each(context, &outline)
			: sqlite_fault_row(binding.store, "task", outline.seq);
		if (verdict)
			return bind_stop(&binding, verdict);
	}
	return bind_end(fault);
}

static int scan_live(struct sqlite *store, int (*each)(void *context, const struct task_row *row),
	void *context, uint64_t *ret_count)
{
	struct binding binding = bind_start(store, SQL_SCAN_LIVE_TASKS);
	int fault;

	*ret_count = 0;
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
	struct binding binding = bind_start(sqlite_of(backend), SQL_PUT_BODY);

	bind_int(&binding, seq);
	bind_blob(&binding, body);
	bodies_keep(sqlite_of(backend), seq, body);
	return bind_run(&binding);
}

int sqlite_get_body(struct backend *backend, int64_t seq, struct arena *arena, struct span *ret_body)
{
	struct span kept;

	if (bodies_find(sqlite_of(backend), seq, &kept))
		return arena_copy(arena, kept, ret_body);
	struct binding binding = bind_start(sqlite_of(backend), SQL_GET_BODY);

	bind_int(&binding, seq);
	return bind_get_span(&binding, arena, ret_body);
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

	bodies_drop(sqlite_of(backend), seq);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct binding binding = bind_start(sqlite_of(backend), parts[i]);
		int fault;

		bind_int(&binding, seq);
		fault = bind_run(&binding);
		if (fault)
			return fault;
	}
	return 0;
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
