/*
 * Workers.
 */
#include "store/sqlite/sqlite_backend.h"

enum {
	FLAG_NAMED = 1,
	FLAG_ANY_EXECUTOR = 2,
};

_Static_assert(WORKER_INACTIVE == 4 && WORKER_TERMINATED == 3, "as in worker_registry");

/* In the order of the list `worker` in statements.sql. */
static void bind_worker(struct binding *binding, const struct worker_row *row)
{
	const struct worker *worker = &row->worker;

	bind_text(binding, row->id);
	bind_int(binding, worker->principal);
	bind_int(binding, row->instance);
	bind_int(binding, worker->state);
	bind_int(binding, worker->ended);
	bind_int(binding, (worker->named ? FLAG_NAMED : 0) | (worker->any_executor ? FLAG_ANY_EXECUTOR : 0));
	bind_int(binding, (int64_t)worker->token);
	bind_int(binding, (int64_t)worker->credential);
	bind_int(binding, worker->lease.deadline_ms);
	bind_int(binding, worker->lease.granted_ms);
	bind_int(binding, worker->stored_deadline_ms);
	bind_int(binding, worker->slot);
	bind_int(binding, worker->capabilities);
	bind_int(binding, worker->executors);
	bind_int(binding, worker->max_concurrent);
	bind_int(binding, worker->registered_ms);
	bind_int(binding, worker->last_beat_ms);
	bind_int(binding, row->ended_ms);
	bind_text(binding, row->metadata);
	bind_int(binding, worker->process.host);
	bind_int(binding, (int64_t)worker->process.boot_hi);
	bind_int(binding, (int64_t)worker->process.boot_lo);
	bind_int(binding, worker->process.pid);
	bind_int(binding, (int64_t)worker->process.start);
	bind_int(binding, worker->version);
}

/* The row that the statement stands on. Id and metadata are borrowed from it. */
static int read_worker(struct binding *binding, struct worker_row *ret_row)
{
	struct columns columns = {binding->statement, 0};
	struct worker_row row = {0};
	struct worker *worker = &row.worker;
	int64_t flags;

	row.id = column_span(&columns);
	worker->principal = column_u32(&columns);
	row.instance = column_u32(&columns);
	worker->state = column_u32(&columns);
	worker->ended = column_u32(&columns);
	flags = column_int(&columns);
	worker->named = flags & FLAG_NAMED;
	worker->any_executor = flags & FLAG_ANY_EXECUTOR;
	worker->token = (uint64_t)column_int(&columns);
	worker->credential = (uint64_t)column_int(&columns);
	worker->lease.deadline_ms = column_int(&columns);
	worker->lease.granted_ms = column_u32(&columns);
	worker->stored_deadline_ms = column_int(&columns);
	worker->slot = column_u32(&columns);
	worker->capabilities = column_u32(&columns);
	worker->executors = column_u32(&columns);
	worker->max_concurrent = column_u32(&columns);
	worker->registered_ms = column_int(&columns);
	worker->last_beat_ms = column_int(&columns);
	row.ended_ms = column_int(&columns);
	row.metadata = column_span(&columns);
	worker->process.host = column_u32(&columns);
	worker->process.boot_hi = (uint64_t)column_int(&columns);
	worker->process.boot_lo = (uint64_t)column_int(&columns);
	worker->process.pid = column_u32(&columns);
	worker->process.start = (uint64_t)column_int(&columns);
	worker->version = column_u32(&columns);
	if (worker->state > WORKER_INACTIVE || worker->ended > WORKER_REPLACED)
		return sqlite_fault_row(binding->store, "worker", row.instance);
	*ret_row = row;
	return 0;
}

int sqlite_put_worker(struct backend *backend, const struct worker_row *row)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_PUT_WORKER);

	bind_worker(&binding, row);
	return bind_run(&binding);
}

int sqlite_get_worker(
	struct backend *backend, struct span id, struct arena *arena, struct worker_row *ret_row)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_GET_WORKER);
	struct worker_row row;
	int fault;

	bind_text(&binding, id);
	fault = bind_next(&binding);
	if (fault)
		return fault;
	fault = read_worker(&binding, &row);
	if (!fault)
		fault = arena_copy(arena, row.id, &row.id);
	if (!fault)
		fault = arena_copy(arena, row.metadata, &row.metadata);
	if (!fault)
		*ret_row = row;
	return bind_stop(&binding, fault);
}

int sqlite_scan_workers(
	struct backend *backend, int (*each)(void *context, const struct worker_row *row), void *context)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_SCAN_WORKERS);
	int fault;

	while ((fault = bind_next(&binding)) == 0) {
		struct worker_row row;
		int verdict = read_worker(&binding, &row);

		if (!verdict)
			verdict = each(context, &row);
		if (verdict)
			return bind_stop(&binding, verdict);
	}
	return bind_end(fault);
}

int sqlite_delete_worker(struct backend *backend, struct span id)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_DELETE_WORKER);

	bind_text(&binding, id);
	return bind_run(&binding);
}
