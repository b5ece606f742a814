/*
 * What hangs on tasks: bodies, extras, baselines; ids, keys, edges. Bodies wait to be written with the tasks.
 */
#include "store/sqlite/sqlite_backend.h"

enum {
	BODIES_AHEAD = 16, /* read at once where one after the other is asked for */
};

int sqlite_put_body(struct backend *backend, int64_t seq, struct span body)
{
	struct sqlite *store = sqlite_of(backend);
	struct pending *pending = &store->pending[PENDING_BODY];
	struct pending_value *values = pending_row(pending);

	if (values) {
		values[0] = pending_int(seq);
		values[1] = pending_blob(pending, body);
		values[2] = pending_int((int32_t)SEAL(body, (struct span){0}, seq));
	}
	bodies_keep(store, seq, body);
	return pending_end_row(store, PENDING_BODY);
}

/* The body that the columns stand before. */
static bool read_body(const struct sqlite *store, struct columns *columns, int64_t seq, struct span *ret_body)
{
	*ret_body = column_span(columns);
	return seal_is_right(columns, SEAL(*ret_body, (struct span){0}, seq), seq <= store->unsealed_task);
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
	struct span body;
	if (!read_body(store, &columns, seq, &body))
		return bind_stop(binding, sqlite_fault_row(store, "task_body", seq));
	bool kept = bodies_keep(store, seq, body);
	fault = arena_copy(arena, body, ret_body);
	store->next_body = kept ? seq + 1 : 0;
	while (!fault && kept) {
		if (!bind_more(binding, &fault))
			return fault;
		columns = (struct columns){binding->statement, 0};
		int64_t next = column_int(&columns);
		kept = read_body(store, &columns, next, &body) && bodies_keep(store, next, body);
		store->next_body = next < INT64_MAX ? next + 1 : 0;
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
	uint32_t limit = seq == store->next_body ? BODIES_AHEAD : 1;
	struct binding binding = BIND(store, SQL_PAGE_BODIES, INT(seq), INT(limit));
	fault = bind_next(&binding);
	return fault ? fault : read_bodies(&binding, seq, arena, ret_body);
}

int sqlite_put_extra(struct backend *backend, int64_t seq, enum extra_kind kind, int64_t n, struct span data)
{
	return RUN(sqlite_of(backend), SQL_PUT_EXTRA, INT(seq), INT(kind), INT(n), BLOB(data),
		INT((int32_t)SEAL(data, (struct span){0}, seq, kind, n)));
}

int sqlite_get_extra(struct backend *backend, int64_t seq, enum extra_kind kind, int64_t n,
	struct arena *arena, struct span *ret_data)
{
	struct sqlite *store = sqlite_of(backend);
	struct binding binding = BIND(store, SQL_GET_EXTRA, INT(seq), INT(kind), INT(n));
	struct columns columns = {binding.statement, 0};
	int fault = bind_next(&binding);

	if (fault)
		return fault;
	struct span data = column_span(&columns);
	if (!seal_is_right(&columns, SEAL(data, (struct span){0}, seq, kind, n), seq <= store->unsealed_task))
		return bind_stop(&binding, sqlite_fault_row(store, extra_table(kind), seq));
	return bind_stop(&binding, arena_copy(arena, data, ret_data));
}

int sqlite_delete_extra(struct backend *backend, int64_t seq, enum extra_kind kind, int64_t n)
{
	return RUN(sqlite_of(backend), SQL_DELETE_EXTRA, INT(seq), INT(kind), INT(n));
}

int sqlite_scan_bodies(
	struct backend *backend, int (*each)(void *context, int64_t seq, struct span body), void *context)
{
	struct sqlite *store = sqlite_of(backend);
	int fault = pending_write(store, PENDING_BODY);

	if (fault)
		return fault;
	struct binding binding = BIND(store, SQL_SCAN_BODIES);
	while (bind_more(&binding, &fault)) {
		struct columns columns = {binding.statement, 0};
		int64_t seq = column_int(&columns);
		struct span body;
		fault = read_body(store, &columns, seq, &body) ? each(context, seq, body)
							       : sqlite_fault_row(store, "task_body", seq);
	}
	return fault;
}

int sqlite_scan_extras(struct backend *backend,
	int (*each)(void *context, int64_t seq, int64_t kind, int64_t n, struct span data), void *context)
{
	struct sqlite *store = sqlite_of(backend);
	struct binding binding = BIND(store, SQL_SCAN_EXTRAS);
	int fault = 0;

	while (bind_more(&binding, &fault)) {
		struct columns columns = {binding.statement, 0}, key = {binding.statement, 2};
		struct span data = column_span(&columns);
		int64_t seq = column_int(&key), kind = column_int(&key), n = column_int(&key);
		bool good = seal_is_right(
			&columns, SEAL(data, (struct span){0}, seq, kind, n), seq <= store->unsealed_task);
		fault = good ? each(context, seq, kind, n, data)
			     : sqlite_fault_row(store, extra_table((enum extra_kind)kind), seq);
	}
	return fault;
}

int sqlite_put_base(struct backend *backend, int64_t seq, struct span data)
{
	return RUN_SEALED(sqlite_of(backend), SQL_PUT_BASE, INT(seq), BLOB(data));
}

int sqlite_get_base(struct backend *backend, int64_t seq, struct arena *arena, struct span *ret_data)
{
	struct binding binding = BIND(sqlite_of(backend), SQL_GET_BASE, INT(seq));
	struct columns data = {binding.statement, 1};
	int fault = bind_next(&binding);

	if (fault)
		return fault;
	if (!row_is_sealed(binding.statement))
		return bind_stop(&binding, sqlite_fault_row(binding.store, "task_base", seq));
	return bind_stop(&binding, arena_copy(arena, column_span(&data), ret_data));
}

int sqlite_delete_base(struct backend *backend, int64_t seq)
{
	return RUN(sqlite_of(backend), SQL_DELETE_BASE, INT(seq));
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
	for (size_t i = 0; !fault && i < sizeof(parts) / sizeof(parts[0]); i++)
		fault = RUN(sqlite_of(backend), parts[i], INT(seq));
	return fault;
}

/* Ids and keys. */

int sqlite_put_id(struct backend *backend, struct span id, int64_t seq)
{
	return RUN_SEALED(sqlite_of(backend), SQL_PUT_ID, TEXT(id), INT(seq));
}

/* The task that the row behind the statement names. */
static int find_task(struct binding *binding, const char *table, int64_t *ret_seq)
{
	struct columns columns = {binding->statement, 1};
	int fault = bind_next(binding);

	if (fault)
		return fault;
	int64_t seq = column_int(&columns);
	if (!row_is_sealed(binding->statement))
		return bind_stop(binding, sqlite_fault_row(binding->store, table, seq));
	*ret_seq = seq;
	return bind_stop(binding, 0);
}

int sqlite_find_id(struct backend *backend, struct span id, int64_t *ret_seq)
{
	struct binding binding = BIND(sqlite_of(backend), SQL_FIND_ID, TEXT(id));

	return find_task(&binding, "task_id", ret_seq);
}

static int each_task(struct binding binding, const char *table,
	int (*each)(void *context, struct span text, int64_t seq), void *context)
{
	int fault = 0;

	while (bind_more(&binding, &fault)) {
		struct columns columns = {binding.statement, 0};
		struct span text = column_span(&columns);
		int64_t seq = column_int(&columns);
		fault = row_is_sealed(binding.statement) ? each(context, text, seq)
							 : sqlite_fault_row(binding.store, table, seq);
	}
	return fault;
}

int sqlite_scan_ids(
	struct backend *backend, int (*each)(void *context, struct span id, int64_t seq), void *context)
{
	return each_task(BIND(sqlite_of(backend), SQL_SCAN_IDS), "task_id", each, context);
}

int sqlite_scan_keys(
	struct backend *backend, int (*each)(void *context, struct span key, int64_t seq), void *context)
{
	return each_task(BIND(sqlite_of(backend), SQL_SCAN_KEYS), "task_key", each, context);
}

int sqlite_put_key(struct backend *backend, struct span key, int64_t seq)
{
	return RUN_SEALED(sqlite_of(backend), SQL_PUT_KEY, BLOB(key), INT(seq));
}

int sqlite_find_key(struct backend *backend, struct span key, int64_t *ret_seq)
{
	struct binding binding = BIND(sqlite_of(backend), SQL_FIND_KEY, BLOB(key));

	return find_task(&binding, "task_key", ret_seq);
}

int sqlite_delete_key(struct backend *backend, struct span key)
{
	return RUN(sqlite_of(backend), SQL_DELETE_KEY, BLOB(key));
}

/* Edges. */

int sqlite_put_edge(struct backend *backend, const struct edge_row *row)
{
	return RUN_SEALED(
		sqlite_of(backend), SQL_PUT_EDGE, INT(row->parent), INT(row->child), INT(edge_standing(row)));
}

int sqlite_delete_edge(struct backend *backend, int64_t parent, int64_t child)
{
	return RUN(sqlite_of(backend), SQL_DELETE_EDGE, INT(parent), INT(child));
}

static int each_edge(
	struct binding binding, int (*each)(void *context, const struct edge_row *row), void *context)
{
	int fault = 0;

	while (bind_more(&binding, &fault)) {
		struct columns columns = {binding.statement, 0};
		struct edge_row row = {.parent = column_int(&columns)};

		row.child = column_int(&columns);
		int64_t standing = column_int(&columns);
		row.dead = standing == EDGE_DEAD;
		row.done = standing == EDGE_DONE;
		fault = row_is_sealed(binding.statement) ? each(context, &row)
							 : sqlite_fault_row(binding.store, "edge", row.child);
	}
	return fault;
}

int sqlite_children(struct backend *backend, int64_t parent,
	int (*each)(void *context, const struct edge_row *row), void *context)
{
	return each_edge(BIND(sqlite_of(backend), SQL_CHILDREN, INT(parent)), each, context);
}

int sqlite_parents(struct backend *backend, int64_t child,
	int (*each)(void *context, const struct edge_row *row), void *context)
{
	return each_edge(BIND(sqlite_of(backend), SQL_PARENTS, INT(child)), each, context);
}

int sqlite_scan_edges(
	struct backend *backend, int (*each)(void *context, const struct edge_row *row), void *context)
{
	return each_edge(BIND(sqlite_of(backend), SQL_SCAN_EDGES), each, context);
}
