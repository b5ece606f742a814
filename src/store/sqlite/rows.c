/*
 * Rows that hang on nothing: small records, names, answered requests, facts; pages of baselines. And how any row is bound and read.
 */
#include <string.h>

#include "store/sqlite/sqlite_backend.h"

static void bind_int(struct binding *binding, struct bound *bound, int at, int64_t value)
{
	uint64_t bit = UINT64_C(1) << at;

	if (bound->known & bit && bound->values[at] == value)
		return;
	int code = sqlite3_bind_int64(binding->statement, at + 1, value);
	binding->code |= code;
	bound->values[at] = value;
	if (code == SQLITE_OK) /* of one that failed nobody knows what is bound */
		bound->known |= bit;
	else
		bound->known &= ~bit;
}

/* SQLite would take a NULL pointer for NULL: empty is not that. */
static void bind_bytes(
	struct binding *binding, struct bound *bound, int at, const struct parameter *parameter)
{
	const char *data = parameter->bytes.data ? parameter->bytes.data : "";
	size_t len = parameter->bytes.len;

	bound->known &= ~(UINT64_C(1) << at);
	binding->code |= parameter->kind == PARAMETER_TEXT
		? sqlite3_bind_text64(binding->statement, at + 1, data, len, SQLITE_STATIC, SQLITE_UTF8)
		: sqlite3_bind_blob64(binding->statement, at + 1, data, len, SQLITE_STATIC);
}

struct binding bind_start(
	struct sqlite *store, enum sql_statement which, const struct parameter *parameters, size_t count)
{
	struct binding binding = {.store = store, .statement = store->statements[which]};
	struct bound *bound = &store->bound[which];

	assert(binding.statement);
	assert(!sqlite3_stmt_busy(
		binding.statement)); /* a callback must not start the scan that it is called from */
	assert(parameters[0].kind == PARAMETER_NONE);
	assert(count <= SQLITE_PARAMETERS_MAX);
	assert((int)count - 1 == bound->parameters); /* the SQL and the C agree */
	for (int at = 0; at < (int)count - 1; at++) {
		const struct parameter *parameter = &parameters[at + 1];
		assert(parameter->kind != PARAMETER_NONE);
		if (parameter->kind == PARAMETER_INT)
			bind_int(&binding, bound, at, parameter->number);
		else
			bind_bytes(&binding, bound, at, parameter);
	}
	return binding;
}

int run_sealed(
	struct sqlite *store, enum sql_statement which, const struct parameter *parameters, size_t count)
{
	struct parameter sealed[SQLITE_PARAMETERS_MAX];

	assert(count > 0 && count < SQLITE_PARAMETERS_MAX);
	memcpy(sealed, parameters, count * sizeof *parameters);
	sealed[count] = INT((int32_t)seal_of_parameters(parameters + 1, count - 1));
	return bind_run(bind_start(store, which, sealed, count + 1));
}

/* The fault is read before the reset, which changes SQLite's message about it. */
static int run_to_end(struct sqlite *store, sqlite3_stmt *statement, int code)
{
	int fault = 0;

	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	if (code != SQLITE_DONE)
		fault = sqlite_fault_of_statement(store, statement, code);
	sqlite3_reset(statement);
	return fault;
}

int bind_run(struct binding binding)
{
	return run_to_end(binding.store, binding.statement, binding.code);
}

int statement_run(struct sqlite *store, enum sql_statement which)
{
	assert(store->bound[which].parameters == 0); /* the SQL and the C agree */
	return run_to_end(store, store->statements[which], SQLITE_OK);
}

int bind_next(struct binding *binding)
{
	int fault = -ENOENT, code = binding->code;

	if (code == SQLITE_OK)
		code = sqlite3_step(binding->statement);
	if (code == SQLITE_ROW)
		return 0;
	if (code != SQLITE_DONE)
		fault = sqlite_fault_of_statement(binding->store, binding->statement, code);
	sqlite3_reset(binding->statement);
	return fault;
}

int bind_stop(struct binding *binding, int verdict)
{
	sqlite3_reset(binding->statement);
	return verdict;
}

bool bind_more(struct binding *binding, int *fault)
{
	if (*fault) {
		sqlite3_reset(binding->statement);
		return false;
	}
	*fault = bind_next(binding);
	if (*fault == 0)
		return true;
	if (*fault == -ENOENT) /* the end of the rows is no fault */
		*fault = 0;
	return false;
}

/* Baselines. */

int sqlite_page_bases(struct backend *backend, int64_t after, uint32_t limit,
	int (*each)(void *context, int64_t seq, struct span data), void *context)
{
	struct binding binding = BIND(sqlite_of(backend), SQL_PAGE_BASES, INT(after), INT(limit));
	int fault = 0;

	while (bind_more(&binding, &fault)) {
		struct columns columns = {binding.statement, 0};
		int64_t key = column_int(&columns);
		fault = row_is_sealed(binding.statement) ? each(context, key, column_span(&columns))
							 : sqlite_fault_row(binding.store, "task_base", key);
	}
	return fault;
}

/* Small records. */

int sqlite_put_small(struct backend *backend, enum small_kind kind, struct span key, struct span data)
{
	enum sql_statement put = small_is_secret(kind) ? SQL_PUT_SECRET : SQL_PUT_SMALL;

	return RUN_SEALED(sqlite_of(backend), put, INT(kind), TEXT(key), BLOB(data));
}

int sqlite_delete_small(struct backend *backend, enum small_kind kind, struct span key)
{
	enum sql_statement delete = small_is_secret(kind) ? SQL_DELETE_SECRET : SQL_DELETE_SMALL;

	return RUN(sqlite_of(backend), delete, INT(kind), TEXT(key));
}

/* The record that the statement stands on; both texts are borrowed from it. */
static int read_small(
	const struct binding *binding, enum small_kind kind, struct span *ret_key, struct span *ret_data)
{
	struct columns columns = {binding->statement, 1};

	*ret_key = column_span(&columns);
	*ret_data = column_span(&columns);
	if (row_is_sealed(binding->statement))
		return 0;
	return sqlite_fault_key(binding->store, small_is_secret(kind) ? "secret" : "small", *ret_key);
}

int sqlite_get_small(struct backend *backend, enum small_kind kind, struct span key, struct arena *arena,
	struct span *ret_data)
{
	enum sql_statement get = small_is_secret(kind) ? SQL_GET_SECRET : SQL_GET_SMALL;
	struct binding binding = BIND(sqlite_of(backend), get, INT(kind), TEXT(key));
	struct span found, data;
	int fault = bind_next(&binding);

	if (fault)
		return fault;
	fault = read_small(&binding, kind, &found, &data);
	if (!fault)
		fault = arena_copy(arena, data, ret_data);
	return bind_stop(&binding, fault);
}

int sqlite_page_small(struct backend *backend, enum small_kind kind, struct span after, uint32_t limit,
	int (*each)(void *context, struct span key, struct span data), void *context)
{
	enum sql_statement page = small_is_secret(kind) ? SQL_PAGE_SECRET : SQL_PAGE_SMALL;
	struct binding binding = BIND(sqlite_of(backend), page, INT(kind), TEXT(after), INT(limit));
	int fault = 0;

	while (bind_more(&binding, &fault)) {
		struct span key, data;
		fault = read_small(&binding, kind, &key, &data);
		if (!fault)
			fault = each(context, key, data);
	}
	return fault;
}

/* Names. */

int sqlite_put_name(struct backend *backend, const struct name_row *row)
{
	return RUN_SEALED(
		sqlite_of(backend), SQL_PUT_NAME, INT(row->id), TEXT(row->text), INT(row->principal));
}

int sqlite_scan_names(
	struct backend *backend, int (*each)(void *context, const struct name_row *row), void *context)
{
	/* the first rows that a start asks for: behind them, small records are asked for by their keys */
	int fault = check_small(sqlite_of(backend));
	if (fault)
		return fault;
	struct binding binding = BIND(sqlite_of(backend), SQL_SCAN_NAMES);

	while (bind_more(&binding, &fault)) {
		struct columns columns = {binding.statement, 0};
		struct name_row row = {.id = column_u32(&columns)};

		row.text = column_span(&columns);
		row.principal = column_u32(&columns);
		fault = row_is_sealed(binding.statement) ? each(context, &row)
							 : sqlite_fault_row(binding.store, "name", row.id);
	}
	return fault;
}

/* Requests that were answered. */

int sqlite_put_idem(struct backend *backend, const struct idem_row *row)
{
	struct span fingerprint = {(const char *)row->fingerprint, sizeof(row->fingerprint)};

	return RUN_SEALED(sqlite_of(backend), SQL_PUT_IDEM, BLOB(row->principal), BLOB(row->key),
		BLOB(fingerprint), INT(row->task), INT(row->created_ms), INT(row->deduplicated));
}

int sqlite_get_idem(struct backend *backend, struct span principal, struct span key, struct idem_row *ret_row)
{
	struct sqlite *store = sqlite_of(backend);
	struct binding binding = BIND(store, SQL_GET_IDEM, BLOB(principal), BLOB(key));
	struct columns columns = {binding.statement, 2};
	struct idem_row row = {.principal = principal, .key = key};
	struct span fingerprint;

	int fault = bind_next(&binding);
	if (fault)
		return fault;
	fingerprint = column_span(&columns);
	if (!row_is_sealed(binding.statement) || fingerprint.len != sizeof(row.fingerprint))
		return bind_stop(&binding, sqlite_fault_key(store, "idem", key));
	memcpy(row.fingerprint, fingerprint.data, sizeof(row.fingerprint));
	row.task = column_int(&columns);
	row.created_ms = column_int(&columns);
	row.deduplicated = column_int(&columns) != 0;
	*ret_row = row;
	return bind_stop(&binding, 0);
}

int sqlite_scan_idems(
	struct backend *backend, int (*each)(void *context, const struct idem_row *row), void *context)
{
	struct sqlite *store = sqlite_of(backend);
	struct binding binding = BIND(store, SQL_SCAN_IDEMS);
	int fault = 0;

	while (bind_more(&binding, &fault)) {
		struct columns columns = {binding.statement, 0};
		struct idem_row row = {0};
		row.principal = column_span(&columns);
		row.key = column_span(&columns);
		struct span fingerprint = column_span(&columns);
		if (!row_is_sealed(binding.statement) || fingerprint.len != sizeof(row.fingerprint)) {
			fault = sqlite_fault_key(store, "idem", row.key);
			continue;
		}
		memcpy(row.fingerprint, fingerprint.data, sizeof(row.fingerprint));
		row.task = column_int(&columns);
		row.created_ms = column_int(&columns);
		row.deduplicated = column_int(&columns) != 0;
		fault = each(context, &row);
	}
	return fault;
}

int sqlite_delete_idems(struct backend *backend, int64_t before_ms, uint32_t limit)
{
	return RUN(sqlite_of(backend), SQL_DELETE_IDEMS, INT(before_ms), INT(limit));
}

/* There is no inbox: nobody else has transactions of this store. */

int sqlite_delete_inbox(struct backend *backend, int64_t id)
{
	(void)backend;
	(void)id;
	return 0;
}

int sqlite_page_inbox(struct backend *backend, int64_t after, uint32_t limit,
	int (*each)(void *context, const struct inbox_row *row), void *context)
{
	(void)backend;
	(void)after;
	(void)limit;
	(void)each;
	(void)context;
	return 0;
}

/* Facts. */

int sqlite_put_meta(struct backend *backend, enum meta_key key, int64_t value)
{
	return RUN_SEALED(sqlite_of(backend), SQL_PUT_META, INT(key), INT(value));
}

int sqlite_get_meta(struct backend *backend, enum meta_key key, int64_t *ret_value)
{
	struct binding binding = BIND(sqlite_of(backend), SQL_GET_META, INT(key));
	struct columns value = {binding.statement, 1};
	int fault = bind_next(&binding);

	if (fault)
		return fault;
	if (!row_is_sealed(binding.statement))
		return bind_stop(&binding, sqlite_fault_row(binding.store, "meta", key));
	*ret_value = column_int(&value);
	return bind_stop(&binding, 0);
}
