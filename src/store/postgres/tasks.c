/*
 * Tasks, and what hangs on them.
 */
#include <stdlib.h>
#include <string.h>

#include "store/postgres/postgres_backend.h"
#include "store/record/task_rest.h"

/* The SQL knows a few of the stored numbers. */
_Static_assert(TASK_FAILED == 10 && TASK_DONE == 11 && TASK_CANCELLED == 12, "as in page_live_tasks");
_Static_assert(META_EVENT_BASE == 4, "as in facts");

int postgres_put_task(struct backend *backend, const struct task_row *row, bool fresh)
{
	struct postgres *store = postgres_of(backend);
	const struct task *task = &row->task;
	const struct claim *claim = &task->claim;
	bool is_claimed = !span_is_empty(row->holder);
	char rest[TASK_REST_BYTES_MAX];

	(void)fresh;
	row_begin(store);
	row_int(store, task->seq);
	/* the claim, for people */
	if (is_claimed)
		row_int(store, claim->claimed_wall_ms);
	else
		row_null(store);
	if (is_claimed && claim->clock == CLOCK_CLAIM)
		row_int(store, task->updated_ms + claim->lease.granted_ms);
	else
		row_null(store);
	row_int(store, task->state);
	row_int(store, task->queue);
	row_int(store, task->priority);
	row_bytes(store, task_rest_pack(task, rest));
	if (is_claimed)
		row_bytes(store, row->holder);
	else
		row_null(store);
	return row_put(store, PG_TASK);
}

bool task_of_columns(struct row_columns columns, struct task_row *ret_row)
{
	struct task *task = &ret_row->task;

	*ret_row = (struct task_row){0};
	task->seq = column_int(&columns);
	column_span(&columns);
	column_span(&columns);
	task->state = (enum task_state)column_int(&columns);
	task->queue = (uint32_t)column_int(&columns);
	task->priority = (int32_t)column_int(&columns);
	struct span rest = column_span(&columns);
	ret_row->holder = column_span(&columns);
	return !columns.broken && task_rest_unpack(rest, task) && task->state > TASK_NOWHERE &&
		task->state < TASK_STATE_COUNT;
}

int postgres_get_task(struct backend *backend, int64_t seq, struct arena *arena, struct task_row *ret_row)
{
	struct postgres *store = postgres_of(backend);
	struct row_columns columns;
	struct task_row row;

	row_begin(store);
	row_int(store, seq);
	int r = row_find(store, PG_TASK, &columns);
	if (r == 0 && !task_of_columns(columns, &row))
		r = postgres_damaged(backend, "task", seq);
	if (r == 0 && !span_is_empty(row.holder))
		r = arena_copy(arena, row.holder, &row.holder);
	if (r == 0)
		*ret_row = row;
	return r;
}

static int grow_dropped(struct pg_turn *turn)
{
	if (turn->dropped_count < turn->dropped_cap)
		return 0;
	uint32_t cap = turn->dropped_cap > 0 ? 2 * turn->dropped_cap : 64;
	int64_t *dropped = reallocarray(turn->dropped, cap, sizeof *dropped);
	if (!dropped)
		return -ENOMEM;
	turn->dropped = dropped;
	turn->dropped_cap = cap;
	return 0;
}

/* What this turn has put of it is not put, and what is there goes, before anything is put. */
int postgres_delete_task(struct backend *backend, int64_t seq)
{
	struct postgres *store = postgres_of(backend);
	int r = grow_dropped(&store->turn);

	if (r < 0)
		return r;
	turn_forget_task(store, seq);
	store->turn.dropped[store->turn.dropped_count++] = seq;
	return 0;
}

/* ---- bytes that hang on a task ---- */

static int put_bytes(struct postgres *store, enum pg_table table, int64_t seq, struct span data)
{
	row_begin(store);
	row_int(store, seq);
	row_bytes(store, data);
	return row_put(store, table);
}

static int get_bytes(
	struct postgres *store, enum pg_table table, int64_t seq, struct arena *arena, struct span *ret_data)
{
	struct row_columns columns;

	row_begin(store);
	row_int(store, seq);
	int r = row_find(store, table, &columns);
	if (r < 0)
		return r;
	column_span(&columns);
	return arena_copy(arena, column_span(&columns), ret_data);
}

int postgres_put_body(struct backend *backend, int64_t seq, struct span body)
{
	return put_bytes(postgres_of(backend), PG_BODY, seq, body);
}

int postgres_get_body(struct backend *backend, int64_t seq, struct arena *arena, struct span *ret_body)
{
	return get_bytes(postgres_of(backend), PG_BODY, seq, arena, ret_body);
}

int postgres_put_base(struct backend *backend, int64_t seq, struct span data)
{
	return put_bytes(postgres_of(backend), PG_BASE, seq, data);
}

int postgres_get_base(struct backend *backend, int64_t seq, struct arena *arena, struct span *ret_data)
{
	return get_bytes(postgres_of(backend), PG_BASE, seq, arena, ret_data);
}

int postgres_delete_base(struct backend *backend, int64_t seq)
{
	struct postgres *store = postgres_of(backend);

	row_begin(store);
	row_int(store, seq);
	return row_delete(store, PG_BASE);
}

static void extra_key(struct postgres *store, int64_t seq, enum extra_kind kind, int64_t n)
{
	row_begin(store);
	row_int(store, seq);
	row_int(store, kind);
	row_int(store, n);
}

int postgres_put_extra(
	struct backend *backend, int64_t seq, enum extra_kind kind, int64_t n, struct span data)
{
	struct postgres *store = postgres_of(backend);

	extra_key(store, seq, kind, n);
	row_bytes(store, data);
	return row_put(store, PG_EXTRA);
}

int postgres_get_extra(struct backend *backend, int64_t seq, enum extra_kind kind, int64_t n,
	struct arena *arena, struct span *ret_data)
{
	struct postgres *store = postgres_of(backend);
	struct row_columns columns;

	extra_key(store, seq, kind, n);
	int r = row_find(store, PG_EXTRA, &columns);
	if (r < 0)
		return r;
	for (int i = 0; i < pg_tables[PG_EXTRA].keys; i++)
		column_span(&columns);
	return arena_copy(arena, column_span(&columns), ret_data);
}

int postgres_delete_extra(struct backend *backend, int64_t seq, enum extra_kind kind, int64_t n)
{
	struct postgres *store = postgres_of(backend);

	extra_key(store, seq, kind, n);
	return row_delete(store, PG_EXTRA);
}
