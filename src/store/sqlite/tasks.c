/*
 * Tasks and what hangs on them: body, extras, baseline, ids, keys, edges.
 *
 * Writing a task is the hot path: one statement by rowid, without the claim's columns when there is none.
 */
#include "store/sqlite/sqlite_backend.h"

enum {
	FLAG_KEYED = 1,
	FLAG_HAS_PARENT = 2,
	FLAG_NAMED_ID = 4,
	FLAG_HAS_PAST = 8, /* there is more to read than the list `task` */

	CLAIM_FLAG_NAMED = 1,
	CLAIM_FLAG_STOPPING = 2,
};

/* The SQL knows a few of the stored numbers. */
_Static_assert(TASK_FAILED == 10 && TASK_DONE == 11 && TASK_CANCELLED == 12, "as in scan_live_tasks");
_Static_assert(META_EVENT_BASE == 4, "as in facts");
_Static_assert(CLOCK_WORKER == 2, "as in worker_task_claims");

static bool has_past(const struct task_row *row)
{
	const struct task *task = &row->task;

	return task->attempt || task->spent || task->crashes || task->interruptions || task->open_parents ||
		task->dead_parents || task->fence || task->ended || task->code || !span_is_empty(row->holder);
}

static int64_t task_flags(const struct task_row *row)
{
	const struct task *task = &row->task;

	return (task->keyed ? FLAG_KEYED : 0) | (task->has_parent ? FLAG_HAS_PARENT : 0) |
		(task->named_id ? FLAG_NAMED_ID : 0) | (has_past(row) ? FLAG_HAS_PAST : 0);
}

/* In the order of the list `task` in statements.sql. */
static void bind_task(struct binding *binding, const struct task_row *row)
{
	const struct task *task = &row->task;

	bind_int(binding, task->seq);
	bind_int(binding, task->state);
	bind_int(binding, task->version);
	bind_int(binding, row->updated_ms);
	bind_int(binding, task->created_ms);
	bind_int(binding, task->ready_at_ms);
	bind_int(binding, task->queue);
	bind_int(binding, task->priority);
	bind_int(binding, task_flags(row));
	bind_int(binding, task->owner);
	bind_int(binding, task->requires);
	bind_int(binding, task->executor);
	bind_int(binding, task->timeout_ms);
	bind_int(binding, task->max_attempts);
	bind_int(binding, task->start_by_ms);
	bind_int(binding, task->finish_by_ms);
}

static bool read_task(struct columns *columns, struct task_row *row, bool *ret_has_past)
{
	struct task *task = &row->task;
	int64_t flags;

	task->seq = column_int(columns);
	task->state = column_u32(columns);
	task->version = column_int(columns);
	row->updated_ms = column_int(columns);
	task->created_ms = column_int(columns);
	task->ready_at_ms = column_int(columns);
	task->queue = column_u32(columns);
	task->priority = (int32_t)column_int(columns);
	flags = column_int(columns);
	task->keyed = flags & FLAG_KEYED;
	task->has_parent = flags & FLAG_HAS_PARENT;
	task->named_id = flags & FLAG_NAMED_ID;
	task->owner = column_u32(columns);
	task->requires = column_u32(columns);
	task->executor = column_u32(columns);
	task->timeout_ms = column_u32(columns);
	task->max_attempts = column_u32(columns);
	task->start_by_ms = column_int(columns);
	task->finish_by_ms = column_int(columns);
	*ret_has_past = flags & FLAG_HAS_PAST;
	return task->state > TASK_NOWHERE && task->state < TASK_STATE_COUNT;
}

/* In the order of the list `past`. */
static void bind_past(struct binding *binding, const struct task *task)
{
	bind_int(binding, task->attempt);
	bind_int(binding, task->spent);
	bind_int(binding, task->crashes);
	bind_int(binding, task->interruptions);
	bind_int(binding, task->open_parents);
	bind_int(binding, task->dead_parents);
	bind_int(binding, (int64_t)task->fence);
	bind_int(binding, task->claimant);
	bind_int(binding, task->ended);
	bind_int(binding, task->code);
}

static bool read_past(struct columns *columns, struct task *task)
{
	task->attempt = column_u32(columns);
	task->spent = column_u32(columns);
	task->crashes = column_u32(columns);
	task->interruptions = column_u32(columns);
	task->open_parents = column_u32(columns);
	task->dead_parents = column_u32(columns);
	task->fence = (uint64_t)column_int(columns);
	task->claimant = column_u32(columns);
	task->ended = column_u32(columns);
	task->code = column_u32(columns);
	return task->ended <= ENDED_LOST && task->code < FAILURE_CODE_COUNT;
}

/* In the order of the list `claim`. */
static void bind_claim(struct binding *binding, const struct task_row *row)
{
	const struct claim *claim = &row->task.claim;

	bind_text(binding, row->holder);
	bind_int(binding, claim->clock);
	bind_int(binding, claim->lease.deadline_ms);
	bind_int(binding, claim->lease.granted_ms);
	bind_int(binding, claim->verify_at_ms);
	bind_int(binding, claim->run_until_ms);
	bind_int(binding, claim->run_ms);
	bind_int(binding, claim->asked_at_ms);
	bind_int(binding, claim->claimed_wall_ms);
	bind_int(binding, (int64_t)claim->request);
	bind_int(
		binding, (claim->named ? CLAIM_FLAG_NAMED : 0) | (claim->stopping ? CLAIM_FLAG_STOPPING : 0));
}

static bool read_claim(struct columns *columns, struct task_row *row)
{
	struct claim *claim = &row->task.claim;
	int64_t flags;

	if (sqlite3_column_type(columns->statement, columns->at) == SQLITE_NULL)
		return true;
	row->holder = column_span(columns);
	claim->clock = column_u32(columns);
	claim->lease.deadline_ms = column_int(columns);
	claim->lease.granted_ms = column_u32(columns);
	claim->verify_at_ms = column_int(columns);
	claim->run_until_ms = column_int(columns);
	claim->run_ms = column_int(columns);
	claim->asked_at_ms = column_int(columns);
	claim->claimed_wall_ms = column_int(columns);
	claim->request = (uint64_t)column_int(columns);
	flags = column_int(columns);
	claim->named = flags & CLAIM_FLAG_NAMED;
	claim->stopping = flags & CLAIM_FLAG_STOPPING;
	return claim->clock <= CLOCK_WORKER;
}

/* The row that a statement of {task}, {past}, {claim} stands on. Its holder is borrowed from it. */
static int read_row(struct binding *binding, struct task_row *ret_row)
{
	struct columns columns = {binding->statement, 0};
	bool past;

	*ret_row = (struct task_row){0};
	if (read_task(&columns, ret_row, &past) && read_past(&columns, &ret_row->task) &&
		read_claim(&columns, ret_row))
		return 0;
	return sqlite_fault_row(binding->store, "task", ret_row->task.seq);
}

int sqlite_put_task(struct backend *backend, const struct task_row *row, bool fresh)
{
	bool claimed = !span_is_empty(row->holder);
	struct binding binding = bind_start(sqlite_of(backend),
		fresh ? (claimed ? SQL_INSERT_TASK_CLAIMED : SQL_INSERT_TASK)
		      : (claimed ? SQL_REPLACE_TASK_CLAIMED : SQL_REPLACE_TASK));

	bind_task(&binding, row);
	bind_past(&binding, &row->task);
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

/* The scan at open reads a million rows that mostly nobody has touched since they were made. */
static int each_with_past(struct sqlite *store, struct task_row *row,
	int (*each)(void *context, const struct task_row *row), void *context)
{
	struct binding binding = bind_start(store, SQL_GET_PAST);
	struct columns columns = {binding.statement, 0};
	int fault;

	bind_int(&binding, row->task.seq);
	fault = bind_next(&binding);
	if (fault)
		return fault;
	if (!read_past(&columns, &row->task) || !read_claim(&columns, row))
		return bind_stop(&binding, sqlite_fault_row(store, "task", row->task.seq));
	return bind_stop(&binding, each(context, row));
}

static int scan_live(struct sqlite *store, int (*each)(void *context, const struct task_row *row),
	void *context, uint64_t *ret_count)
{
	struct binding binding = bind_start(store, SQL_SCAN_LIVE_TASKS);
	int fault;

	*ret_count = 0;
	while ((fault = bind_next(&binding)) == 0) {
		struct columns columns = {binding.statement, 0};
		struct task_row row = {0};
		bool past;
		int verdict;

		if (!read_task(&columns, &row, &past))
			verdict = sqlite_fault_row(store, "task", row.task.seq);
		else if (past)
			verdict = each_with_past(store, &row, each, context);
		else
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
	return bind_run(&binding);
}

int sqlite_get_body(struct backend *backend, int64_t seq, struct arena *arena, struct span *ret_body)
{
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
