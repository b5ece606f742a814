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
		int64_t next = column_int(&columns);
		kept = bodies_keep(store, next, column_span(&columns));
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
