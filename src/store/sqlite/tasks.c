/*
 * The rows of tasks. Most of the time of a turn goes into writing them, so they wait to be written together: see pending.c.
 * A read writes them first.
 */
#include "base/take.h"
#include "store/sqlite/sqlite_backend.h"

/* The SQL knows a few of the stored numbers. */
_Static_assert(TASK_FAILED == 10 && TASK_DONE == 11 && TASK_CANCELLED == 12, "as in scan_live_tasks");
_Static_assert(META_EVENT_BASE == 4, "as in facts");

/* In the order of the lists `task` and `claim` in statements.sql; what is not set is NULL. */
static void put_row(struct pending *pending, const struct task_row *row)
{
	const struct task *task = &row->task;
	const struct claim *claim = &task->claim;
	struct pending_value *values = pending_row(pending);
	unset char rest[TASK_REST_BYTES_MAX];

	if (!values)
		return;
	struct span packed = task_rest_pack(task, rest);
	values[0] = pending_int(task->seq);
	values[1] = pending_int(task->state);
	values[2] = pending_int(task->queue);
	values[3] = pending_int(task->priority);
	values[4] = pending_blob(pending, packed);
	values[8] = pending_int(
		(int32_t)SEAL(packed, row->holder, task->seq, task->state, task->queue, task->priority));
	if (span_is_empty(row->holder))
		return;
	values[5] = pending_text(pending, row->holder);
	values[6] = pending_int(claim->claimed_wall_ms);
	if (claim->clock == CLOCK_CLAIM)
		values[7] = pending_int(task->updated_ms + claim->lease.granted_ms);
}

static bool read_task(
	const struct sqlite *store, struct columns *columns, struct task *task, struct span *ret_holder)
{
	int64_t seq = column_int(columns),
		state = column_int(columns); /* the seal is of all bits of a column */
	int64_t queue = column_int(columns), priority = column_int(columns);
	task->seq = seq;
	task->state = (enum task_state)state;
	task->queue = (uint32_t)queue;
	task->priority = (int32_t)priority;
	struct span rest = column_span(columns);
	*ret_holder = column_span(columns);
	return seal_is_right(columns, SEAL(rest, *ret_holder, seq, state, queue, priority),
		       seq <= store->unsealed_task) &&
		task_rest_unpack(rest, task) && task->state > TASK_NOWHERE && task->state < TASK_STATE_COUNT;
}

/* The row that a statement of {task}, holder, crc stands on. Its holder is borrowed from it. */
static int read_row(struct binding *binding, struct task_row *ret_row)
{
	struct columns columns = {binding->statement, 0};

	*ret_row = (struct task_row){0};
	if (!read_task(binding->store, &columns, &ret_row->task, &ret_row->holder))
		return sqlite_fault_row(binding->store, "task", ret_row->task.seq);
	return 0;
}

int sqlite_put_task(struct backend *backend, const struct task_row *row, bool fresh)
{
	struct sqlite *store = sqlite_of(backend);
	/* nobody holds a new one, so the columns of a claim need not be said for it */
	enum pending_table table = fresh && span_is_empty(row->holder) ? PENDING_NEW_TASK : PENDING_TASK;

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
	struct binding binding = BIND(sqlite_of(backend), SQL_GET_TASK, INT(seq));
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

static int each_row(struct binding binding, int (*each)(void *context, const struct task_row *row),
	void *context, uint64_t *ret_count)
{
	int fault = 0;

	for (*ret_count = 0; bind_more(&binding, &fault); ++*ret_count) {
		struct task_row row;

		fault = read_row(&binding, &row);
		if (!fault)
			fault = each(context, &row);
	}
	return fault;
}

int sqlite_page_tasks(struct backend *backend, int64_t after, uint32_t limit,
	int (*each)(void *context, const struct task_row *row), void *context)
{
	int fault = write_tasks(sqlite_of(backend));
	uint64_t count;

	if (fault)
		return fault;
	return each_row(
		BIND(sqlite_of(backend), SQL_PAGE_TASKS, INT(after), INT(limit)), each, context, &count);
}

int sqlite_page_outlines(struct backend *backend, int64_t before, uint32_t limit,
	int (*each)(void *context, const struct task_outline *outline), void *context)
{
	int fault = write_tasks(sqlite_of(backend));

	if (fault)
		return fault;
	struct binding binding = BIND(sqlite_of(backend), SQL_PAGE_OUTLINES, INT(before), INT(limit));
	while (bind_more(&binding, &fault)) {
		struct columns columns = {binding.statement, 0};
		struct task task = {0};
		struct span holder;
		bool good = read_task(binding.store, &columns, &task, &holder);
		struct task_outline outline = task_outline_of(&task);

		fault = good ? each(context, &outline) : sqlite_fault_row(binding.store, "task", task.seq);
	}
	return fault;
}

/* The statement of the facts reads several tables: find out which of them has the damaged page. */
static int name_damaged_fact(struct sqlite *store, int fault)
{
	static const char *const asked[][2] = {
		{"event", "SELECT max(last) FROM event"},
		{"task", "SELECT count(*) FROM task"},
		{"task_id", "SELECT count(*) FROM task_id WHERE id > 't-' AND id < 't.'"},
		{"meta", "SELECT max(value) FROM meta WHERE key = 4"},
	};
	int64_t ignored;

	for (size_t i = 0; fault == -EBADMSG && i < sizeof asked / sizeof *asked; i++) {
		if ((sqlite_ask(store->db, asked[i][1], &ignored) & 0xff) == SQLITE_CORRUPT)
			return sqlite_fault_page(store, asked[i][0]);
	}
	return fault;
}

int sqlite_scan_live_tasks(struct backend *backend, int (*each)(void *context, const struct task_row *row),
	void *context, struct backend_facts *ret_facts)
{
	struct sqlite *store = sqlite_of(backend);
	uint64_t live = 0, all;
	int fault = write_tasks(store);

	if (!fault)
		fault = each_row(BIND(store, SQL_SCAN_LIVE_TASKS), each, context, &live);
	if (fault)
		return fault;
	struct binding binding = BIND(store, SQL_FACTS);
	struct columns columns = {binding.statement, 0};
	fault = bind_next(&binding);
	if (fault)
		return name_damaged_fact(store, fault);
	ret_facts->last_event = column_int(&columns);
	ret_facts->last_task = column_int(&columns);
	ret_facts->shadow_ids = (uint64_t)column_int(&columns);
	all = (uint64_t)column_int(&columns);
	ret_facts->finals =
		all > live ? all - live : 0; /* a damaged index may count less than the scan found */
	return bind_stop(&binding, 0);
}
