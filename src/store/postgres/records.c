/*
 * Everything else that has one row for each key: ids, unique keys, edges, names, workers, small records, tokens, requests, facts.
 */
#include <string.h>

#include "store/postgres/postgres_backend.h"

/* ---- ids and keys ---- */

static int put_seq(struct postgres *store, enum pg_table table, struct span key, int64_t seq)
{
	row_begin(store);
	row_bytes(store, key);
	row_int(store, seq);
	return row_put(store, table);
}

/* A row of a task that this turn deletes is as good as gone. */
static int find_seq(struct postgres *store, enum pg_table table, struct span key, int64_t *ret_seq)
{
	struct row_columns columns;

	row_begin(store);
	row_bytes(store, key);
	int r = row_find(store, table, &columns);
	if (r < 0)
		return r;
	column_span(&columns);
	int64_t seq = column_int(&columns);
	if (table == PG_TASK_ID && turn_drops(store, seq))
		return -ENOENT;
	*ret_seq = seq;
	return 0;
}

int postgres_put_id(struct backend *backend, struct span id, int64_t seq)
{
	return put_seq(postgres_of(backend), PG_TASK_ID, id, seq);
}

int postgres_find_id(struct backend *backend, struct span id, int64_t *ret_seq)
{
	return find_seq(postgres_of(backend), PG_TASK_ID, id, ret_seq);
}

int postgres_put_key(struct backend *backend, struct span key, int64_t seq)
{
	return put_seq(postgres_of(backend), PG_TASK_KEY, key, seq);
}

int postgres_find_key(struct backend *backend, struct span key, int64_t *ret_seq)
{
	return find_seq(postgres_of(backend), PG_TASK_KEY, key, ret_seq);
}

int postgres_delete_key(struct backend *backend, struct span key)
{
	struct postgres *store = postgres_of(backend);

	row_begin(store);
	row_bytes(store, key);
	return row_delete(store, PG_TASK_KEY);
}

/* ---- edges ---- */

static void edge_key(struct postgres *store, int64_t parent, int64_t child)
{
	row_begin(store);
	row_int(store, parent);
	row_int(store, child);
}

int postgres_put_edge(struct backend *backend, const struct edge_row *row)
{
	struct postgres *store = postgres_of(backend);

	edge_key(store, row->parent, row->child);
	row_int(store, edge_standing(row));
	return row_put(store, PG_EDGE);
}

int postgres_delete_edge(struct backend *backend, int64_t parent, int64_t child)
{
	struct postgres *store = postgres_of(backend);

	edge_key(store, parent, child);
	return row_delete(store, PG_EDGE);
}

/* ---- names ---- */

int postgres_put_name(struct backend *backend, const struct name_row *row)
{
	struct postgres *store = postgres_of(backend);

	row_begin(store);
	row_int(store, row->id);
	row_bytes(store, row->text);
	row_int(store, row->principal);
	return row_put(store, PG_NAME);
}

/* ---- workers: in the order of the list `worker` in statements.sql ---- */

enum {
	FLAG_NAMED = 1,
	FLAG_ANY_EXECUTOR = 2,
};

// clang-format off
#define WORKER_COLUMNS(INT_, TEXT_) \
	TEXT_(row->id) INT_(worker->principal) INT_(row->instance) INT_(worker->state) INT_(worker->ended) INT_(flags) \
	INT_(worker->token) INT_(worker->credential) INT_(worker->lease.deadline_ms) INT_(worker->lease.granted_ms) \
	INT_(worker->stored_deadline_ms) INT_(worker->slot) INT_(worker->capabilities) INT_(worker->executors) \
	INT_(worker->max_concurrent) INT_(worker->registered_ms) INT_(worker->last_beat_ms) INT_(row->ended_ms) \
	TEXT_(row->metadata) INT_(worker->process.host) INT_(worker->process.boot_hi) INT_(worker->process.boot_lo) \
	INT_(worker->process.pid) INT_(worker->process.start) INT_(worker->version)

#define TOKEN_COLUMNS(INT_, TEXT_) \
	TEXT_(token->id) INT_(token->principal) INT_(token->kind) TEXT_(hash) TEXT_(token->name) TEXT_(token->gate) \
	TEXT_(token->queues) INT_(token->created_ms) TEXT_(token->created_by) INT_(token->expires_ms) \
	INT_(token->revoked_ms) TEXT_(token->revoked_by)

#define PUT_INT(field)   row_int(store, (int64_t)(field));
#define PUT_TEXT(field)  row_bytes(store, field);
#define GET_INT(field)   field = (__typeof__(field))column_int(&columns);
#define GET_TEXT(field)  field = column_span(&columns);
// clang-format on

int postgres_put_worker(struct backend *backend, const struct worker_row *row)
{
	struct postgres *store = postgres_of(backend);
	const struct worker *worker = &row->worker;
	int flags = (worker->named ? FLAG_NAMED : 0) | (worker->any_executor ? FLAG_ANY_EXECUTOR : 0);

	row_begin(store);
	WORKER_COLUMNS(PUT_INT, PUT_TEXT)
	return row_put(store, PG_WORKER);
}

bool worker_of_columns(struct row_columns columns, struct worker_row *row)
{
	struct worker *worker = &row->worker;
	int flags;

	*row = (struct worker_row){0};
	WORKER_COLUMNS(GET_INT, GET_TEXT)
	worker->named = flags & FLAG_NAMED;
	worker->any_executor = flags & FLAG_ANY_EXECUTOR;
	return !columns.broken && worker->state <= WORKER_INACTIVE && worker->ended <= WORKER_REPLACED;
}

int postgres_get_worker(
	struct backend *backend, struct span id, struct arena *arena, struct worker_row *ret_row)
{
	struct postgres *store = postgres_of(backend);
	struct row_columns columns;
	struct worker_row row;

	row_begin(store);
	row_bytes(store, id);
	int r = row_find(store, PG_WORKER, &columns);
	if (r == 0 && !worker_of_columns(columns, &row))
		r = pg_fault_row(store, PG_WORKER, buf_span(&store->found));
	if (r == 0)
		r = arena_copy(arena, row.id, &row.id);
	if (r == 0)
		r = arena_copy(arena, row.metadata, &row.metadata);
	if (r == 0)
		*ret_row = row;
	return r;
}

int postgres_delete_worker(struct backend *backend, struct span id)
{
	struct postgres *store = postgres_of(backend);

	row_begin(store);
	row_bytes(store, id);
	return row_delete(store, PG_WORKER);
}

/* ---- tokens: never the secret, only its hash ---- */

int postgres_put_token(struct backend *backend, const struct token *token)
{
	struct postgres *store = postgres_of(backend);
	struct span hash = {(const char *)token->hash, sizeof token->hash};

	row_begin(store);
	TOKEN_COLUMNS(PUT_INT, PUT_TEXT)
	return row_put(store, PG_TOKEN);
}

bool token_of_columns(struct row_columns columns, struct token *token)
{
	struct span hash;

	*token = (struct token){0};
	TOKEN_COLUMNS(GET_INT, GET_TEXT)
	if (columns.broken || token->kind < TOKEN_ADMIN || token->kind >= TOKEN_KIND_COUNT ||
		hash.len != sizeof token->hash)
		return false;
	memcpy(token->hash, hash.data, sizeof token->hash);
	return true;
}

int postgres_delete_token(struct backend *backend, struct span id)
{
	struct postgres *store = postgres_of(backend);

	row_begin(store);
	row_bytes(store, id);
	return row_delete(store, PG_TOKEN);
}

/* ---- small records ---- */

static enum pg_table small_key(struct postgres *store, enum small_kind kind, struct span key)
{
	row_begin(store);
	row_int(store, kind);
	row_bytes(store, key);
	return small_is_secret(kind) ? PG_SECRET : PG_SMALL;
}

int postgres_put_small(struct backend *backend, enum small_kind kind, struct span key, struct span data)
{
	struct postgres *store = postgres_of(backend);
	enum pg_table table = small_key(store, kind, key);

	row_bytes(store, data);
	return row_put(store, table);
}

int postgres_delete_small(struct backend *backend, enum small_kind kind, struct span key)
{
	struct postgres *store = postgres_of(backend);

	return row_delete(store, small_key(store, kind, key));
}

int postgres_get_small(struct backend *backend, enum small_kind kind, struct span key, struct arena *arena,
	struct span *ret_data)
{
	struct postgres *store = postgres_of(backend);
	struct row_columns columns;
	int r = row_find(store, small_key(store, kind, key), &columns);

	if (r < 0)
		return r;
	column_span(&columns);
	column_span(&columns);
	return arena_copy(arena, column_span(&columns), ret_data);
}

/* ---- requests that were answered ---- */

int postgres_put_idem(struct backend *backend, const struct idem_row *row)
{
	struct postgres *store = postgres_of(backend);

	row_begin(store);
	row_bytes(store, row->principal);
	row_bytes(store, row->key);
	row_bytes(store, (struct span){(const char *)row->fingerprint, sizeof row->fingerprint});
	row_int(store, row->task);
	row_int(store, row->created_ms);
	row_int(store, row->deduplicated);
	return row_put(store, PG_IDEM);
}

bool idem_of_columns(struct row_columns columns, struct idem_row *ret_row)
{
	ret_row->principal = column_span(&columns);
	ret_row->key = column_span(&columns);
	struct span fingerprint = column_span(&columns);
	ret_row->task = column_int(&columns);
	ret_row->created_ms = column_int(&columns);
	ret_row->deduplicated = column_int(&columns) != 0;
	if (columns.broken || fingerprint.len != sizeof ret_row->fingerprint)
		return false;
	memcpy(ret_row->fingerprint, fingerprint.data, sizeof ret_row->fingerprint);
	return true;
}

int postgres_get_idem(
	struct backend *backend, struct span principal, struct span key, struct idem_row *ret_row)
{
	struct postgres *store = postgres_of(backend);
	struct idem_row row = {0};
	struct row_columns columns;
	int r = store->turn.drop_idems_limit > 0 ? turn_show(store, PG_IDEM) : 0;

	row_begin(store);
	row_bytes(store, principal);
	row_bytes(store, key);
	if (r == 0)
		r = row_find(store, PG_IDEM, &columns);
	if (r < 0)
		return r;
	if (!idem_of_columns(columns, &row))
		return pg_fault_row(store, PG_IDEM, buf_span(&store->found));
	row.principal = principal;
	row.key = key;
	*ret_row = row;
	return 0;
}

/* Which ones go is found out by the server, so it has to know those of this turn. */
int postgres_delete_idems(struct backend *backend, int64_t before_ms, uint32_t limit)
{
	struct postgres *store = postgres_of(backend);
	struct pg_turn *turn = &store->turn;
	int r = 0;

	if (turn->of_table[PG_IDEM] > 0 || turn->drop_idems_limit > 0) {
		r = turn_flush(store);
		turn_forget_table(store, PG_IDEM);
	}
	turn->drop_idems_before_ms = before_ms;
	turn->drop_idems_limit = limit;
	return r;
}

/* ---- the inbox ---- */

int postgres_delete_inbox(struct backend *backend, int64_t id)
{
	struct postgres *store = postgres_of(backend);

	row_begin(store);
	row_int(store, id);
	return row_delete(store, PG_INBOX);
}

/* ---- facts ---- */

int postgres_put_meta(struct backend *backend, enum meta_key key, int64_t value)
{
	struct postgres *store = postgres_of(backend);

	if (key == META_EXECUTION) { /* a failover must not arm what was disarmed */
		store->has_execution = true;
		store->execution = value;
	}
	row_begin(store);
	row_int(store, key);
	row_int(store, value);
	return row_put(store, PG_META);
}

int postgres_get_meta(struct backend *backend, enum meta_key key, int64_t *ret_value)
{
	struct postgres *store = postgres_of(backend);
	struct row_columns columns;

	row_begin(store);
	row_int(store, key);
	int r = row_find(store, PG_META, &columns);
	if (r < 0)
		return r;
	column_span(&columns);
	*ret_value = column_int(&columns);
	return 0;
}
