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
// clang-format off
#define WORKER_COLUMNS(INT_, TEXT_) \
	TEXT_(row->id) INT_(worker->principal) INT_(row->instance) INT_(worker->state) INT_(worker->ended) INT_(flags) \
	INT_(worker->token) INT_(worker->credential) INT_(worker->lease.deadline_ms) INT_(worker->lease.granted_ms) \
	INT_(worker->stored_deadline_ms) INT_(worker->slot) INT_(worker->capabilities) INT_(worker->executors) \
	INT_(worker->max_concurrent) INT_(worker->registered_ms) INT_(worker->last_beat_ms) INT_(row->ended_ms) \
	TEXT_(row->metadata) INT_(worker->process.host) INT_(worker->process.boot_hi) INT_(worker->process.boot_lo) \
	INT_(worker->process.pid) INT_(worker->process.start) INT_(worker->version)
// clang-format on

int sqlite_put_worker(struct backend *backend, const struct worker_row *row)
{
	const struct worker *worker = &row->worker;
	int flags = (worker->named ? FLAG_NAMED : 0) | (worker->any_executor ? FLAG_ANY_EXECUTOR : 0);

	return RUN_SEALED(sqlite_of(backend), SQL_PUT_WORKER, WORKER_COLUMNS(PUT_INT, PUT_TEXT));
}

/* The row that the statement stands on. Id and metadata are borrowed from it. */
static int read_worker(struct binding *binding, struct worker_row *row)
{
	struct columns columns = {binding->statement, 0};
	struct worker *worker = &row->worker;
	int flags;

	*row = (struct worker_row){0};
	WORKER_COLUMNS(GET_INT, GET_TEXT)
	worker->named = flags & FLAG_NAMED;
	worker->any_executor = flags & FLAG_ANY_EXECUTOR;
	if (!row_is_sealed(binding->statement) || worker->state > WORKER_INACTIVE ||
		worker->ended > WORKER_REPLACED)
		return sqlite_fault_key(binding->store, "worker", row->id);
	return 0;
}

int sqlite_get_worker(
	struct backend *backend, struct span id, struct arena *arena, struct worker_row *ret_row)
{
	struct binding binding = BIND(sqlite_of(backend), SQL_GET_WORKER, TEXT(id));
	struct worker_row row;
	int fault = bind_next(&binding);

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
	struct binding binding = BIND(sqlite_of(backend), SQL_SCAN_WORKERS);
	int fault = 0;

	while (bind_more(&binding, &fault)) {
		struct worker_row row;

		fault = read_worker(&binding, &row);
		if (!fault)
			fault = each(context, &row);
	}
	return fault;
}

int sqlite_delete_worker(struct backend *backend, struct span id)
{
	return RUN(sqlite_of(backend), SQL_DELETE_WORKER, TEXT(id));
}
