/*
 * Rows that hang on nothing: small records, names, answered requests, facts; pages of baselines. And how any row is bound and read.
 */
#include <string.h>

#include "store/sqlite/sqlite_backend.h"

int bind_run(struct binding *binding)
{
	int fault = 0, code = binding->code;

	if (code == SQLITE_OK)
		code = sqlite3_step(binding->statement);
	if (code != SQLITE_DONE)
		fault = sqlite_fault(binding->store, code);
	sqlite3_reset(binding->statement);
	return fault;
}

int bind_next(struct binding *binding)
{
	int fault = -ENOENT, code = binding->code;

	if (code == SQLITE_OK)
		code = sqlite3_step(binding->statement);
	if (code == SQLITE_ROW)
		return 0;
	if (code != SQLITE_DONE)
		fault = sqlite_fault(binding->store, code);
	sqlite3_reset(binding->statement);
	return fault;
}

int bind_stop(struct binding *binding, int verdict)
{
	sqlite3_reset(binding->statement);
	return verdict;
}

int bind_get_span(struct binding *binding, struct arena *arena, struct span *ret_span)
{
	struct columns columns = {binding->statement, 0};
	int fault = bind_next(binding);

	if (fault)
		return fault;
	return bind_stop(binding, arena_copy(arena, column_span(&columns), ret_span));
}

int bind_get_int(struct binding *binding, int64_t *ret_value)
{
	int fault = bind_next(binding);

	if (fault)
		return fault;
	*ret_value = sqlite3_column_int64(binding->statement, 0);
	return bind_stop(binding, 0);
}

/* Baselines. */

int sqlite_page_bases(struct backend *backend, int64_t after, uint32_t limit,
	int (*each)(void *context, int64_t seq, struct span data), void *context)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_PAGE_BASES);
	int fault;

	bind_int(&binding, after);
	bind_int(&binding, limit);
	while ((fault = bind_next(&binding)) == 0) {
		struct columns columns = {binding.statement, 0};
		int64_t key = column_int(&columns);
		int verdict = each(context, key, column_span(&columns));

		if (verdict)
			return bind_stop(&binding, verdict);
	}
	return bind_end(fault);
}

/* Small records. */

int sqlite_put_small(struct backend *backend, enum small_kind kind, struct span key, struct span data)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_PUT_SMALL);

	bind_int(&binding, kind);
	bind_text(&binding, key);
	bind_blob(&binding, data);
	return bind_run(&binding);
}

int sqlite_delete_small(struct backend *backend, enum small_kind kind, struct span key)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_DELETE_SMALL);

	bind_int(&binding, kind);
	bind_text(&binding, key);
	return bind_run(&binding);
}

int sqlite_get_small(struct backend *backend, enum small_kind kind, struct span key, struct arena *arena,
	struct span *ret_data)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_GET_SMALL);

	bind_int(&binding, kind);
	bind_text(&binding, key);
	return bind_get_span(&binding, arena, ret_data);
}

int sqlite_page_small(struct backend *backend, enum small_kind kind, struct span after, uint32_t limit,
	int (*each)(void *context, struct span key, struct span data), void *context)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_PAGE_SMALL);
	int fault;

	bind_int(&binding, kind);
	bind_text(&binding, after);
	bind_int(&binding, limit);
	while ((fault = bind_next(&binding)) == 0) {
		struct columns columns = {binding.statement, 0};
		struct span key = column_span(&columns);
		int verdict = each(context, key, column_span(&columns));

		if (verdict)
			return bind_stop(&binding, verdict);
	}
	return bind_end(fault);
}

/* Names. */

int sqlite_put_name(struct backend *backend, const struct name_row *row)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_PUT_NAME);

	bind_int(&binding, row->id);
	bind_text(&binding, row->text);
	bind_int(&binding, row->principal);
	return bind_run(&binding);
}

int sqlite_scan_names(
	struct backend *backend, int (*each)(void *context, const struct name_row *row), void *context)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_SCAN_NAMES);
	int fault;

	while ((fault = bind_next(&binding)) == 0) {
		struct columns columns = {binding.statement, 0};
		struct name_row row = {.id = column_u32(&columns)};

		row.text = column_span(&columns);
		row.principal = column_u32(&columns);
		int verdict = each(context, &row);

		if (verdict)
			return bind_stop(&binding, verdict);
	}
	return bind_end(fault);
}

/* Requests that were answered. */

int sqlite_put_idem(struct backend *backend, const struct idem_row *row)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_PUT_IDEM);

	bind_blob(&binding, row->principal);
	bind_blob(&binding, row->key);
	bind_blob(&binding, (struct span){(const char *)row->fingerprint, sizeof(row->fingerprint)});
	bind_int(&binding, row->task);
	bind_int(&binding, row->created_ms);
	bind_int(&binding, row->deduplicated);
	return bind_run(&binding);
}

int sqlite_get_idem(struct backend *backend, struct span principal, struct span key, struct idem_row *ret_row)
{
	struct sqlite *store = sqlite_of(backend);
	struct binding binding = bind_start(store, SQL_GET_IDEM);
	struct columns columns = {binding.statement, 0};
	struct idem_row row = {.principal = principal, .key = key};
	struct span fingerprint;
	int fault;

	bind_blob(&binding, principal);
	bind_blob(&binding, key);
	fault = bind_next(&binding);
	if (fault)
		return fault;
	fingerprint = column_span(&columns);
	if (fingerprint.len != sizeof(row.fingerprint))
		return bind_stop(&binding, sqlite_fault_row(store, "idem", 0));
	memcpy(row.fingerprint, fingerprint.data, sizeof(row.fingerprint));
	row.task = column_int(&columns);
	row.created_ms = column_int(&columns);
	row.deduplicated = column_int(&columns) != 0;
	*ret_row = row;
	return bind_stop(&binding, 0);
}

int sqlite_delete_idems(struct backend *backend, int64_t before_ms, uint32_t limit)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_DELETE_IDEMS);

	bind_int(&binding, before_ms);
	bind_int(&binding, limit);
	return bind_run(&binding);
}

/* Facts. */

int sqlite_put_meta(struct backend *backend, enum meta_key key, int64_t value)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_PUT_META);

	bind_int(&binding, key);
	bind_int(&binding, value);
	return bind_run(&binding);
}

int sqlite_get_meta(struct backend *backend, enum meta_key key, int64_t *ret_value)
{
	struct binding binding = bind_start(sqlite_of(backend), SQL_GET_META);

	bind_int(&binding, key);
	return bind_get_int(&binding, ret_value);
}
