/*
 * Pages and scans. A page is whole in memory before its first row is shown, so a callback may look other rows up; a scan is pages, one
 * behind the other.
 */
#include <endian.h>
#include <string.h>

#include "store/postgres/postgres_backend.h"

enum { SCAN_ROWS = 10000 };

/* The rows of an answer, one after the other. */
struct rows {
	struct postgres *store;
	enum pg_table table;
	PGresult *result;
	int at, count;
	struct buf bytes;
};

static void rows_init(struct rows *rows, struct postgres *store, enum pg_table table)
{
	*rows = (struct rows){.store = store, .table = table};
	buf_init(&rows->bytes, 0);
}

static int rows_done(struct rows *rows, int fault)
{
	pq.PQclear(rows->result);
	buf_done(&rows->bytes);
	return fault;
}

static int rows_ask(struct rows *rows, enum pg_statement which, int count, struct pg_parameter *parameters)
{
	int r = turn_show(rows->store, rows->table);

	pq.PQclear(rows->result);
	rows->result = NULL;
	rows->at = rows->count = 0;
	if (r == 0)
		r = pg_ask(rows->store, which, count, parameters, &rows->result);
	if (r == 0)
		rows->count = pq.PQntuples(rows->result);
	return r;
}
#define ROWS_ASK(rows, which, ...)                                                                        \
	rows_ask(rows, which, sizeof((struct pg_parameter[]){__VA_ARGS__}) / sizeof(struct pg_parameter), \
		(struct pg_parameter[]){__VA_ARGS__})

static bool rows_next(struct rows *rows, int *fault, struct row_columns *ret_columns)
{
	if (*fault != 0 || rows->at == rows->count)
		return false;
	*fault = row_of_result(rows->store, rows->table, rows->result, rows->at++, &rows->bytes, ret_columns);
	return *fault == 0;
}

static int damaged_row(const struct rows *rows)
{
	return pg_fault_row(rows->store, rows->table, buf_span(&rows->bytes));
}

/* ---- tasks ---- */

static int each_task(struct rows *rows, int (*each)(void *context, const struct task_row *row), void *context,
	int64_t *ret_last)
{
	struct row_columns columns;
	int fault = 0;

	while (rows_next(rows, &fault, &columns)) {
		struct task_row row;
		if (!task_of_columns(columns, &row))
			return damaged_row(rows);
		*ret_last = row.task.seq;
		fault = each(context, &row);
	}
	return fault;
}

int postgres_page_tasks(struct backend *backend, int64_t after, uint32_t limit,
	int (*each)(void *context, const struct task_row *row), void *context)
{
	struct rows rows;
	int64_t last;

	rows_init(&rows, postgres_of(backend), PG_TASK);
	int r = ROWS_ASK(&rows, PG_PAGE_TASKS, pg_int(after), pg_int(limit));
	return rows_done(&rows, r == 0 ? each_task(&rows, each, context, &last) : r);
}

int postgres_page_outlines(struct backend *backend, int64_t before, uint32_t limit,
	int (*each)(void *context, const struct task_outline *outline), void *context)
{
	struct row_columns columns;
	struct rows rows;

	rows_init(&rows, postgres_of(backend), PG_TASK);
	int r = ROWS_ASK(&rows, PG_PAGE_OUTLINES, pg_int(before), pg_int(limit));
	while (rows_next(&rows, &r, &columns)) {
		struct task_row row;
		bool good = task_of_columns(columns, &row);
		struct task_outline outline = task_outline_of(&row.task);
		r = good ? each(context, &outline) : damaged_row(&rows);
	}
	return rows_done(&rows, r);
}

static int read_facts(struct postgres *store, uint64_t live, struct backend_facts *ret_facts)
{
	PGresult *result;
	int r = pg_ask(store, PG_FACTS, 0, NULL, &result);
	int64_t numbers[4];

	if (r < 0)
		return r;
	for (int i = 0; i < 4; i++) {
		uint64_t packed = 0;
		if (pq.PQgetlength(result, 0, i) == sizeof packed)
			memcpy(&packed, pq.PQgetvalue(result, 0, i), sizeof packed);
		numbers[i] = (int64_t)__builtin_bswap64(packed);
	}
	pq.PQclear(result);
	ret_facts->last_event = numbers[0];
	ret_facts->last_task = numbers[1];
	ret_facts->shadow_ids = (uint64_t)numbers[2];
	ret_facts->finals = (uint64_t)numbers[3] > live ? (uint64_t)numbers[3] - live : 0;
	return 0;
}

int postgres_scan_live_tasks(struct backend *backend, int (*each)(void *context, const struct task_row *row),
	void *context, struct backend_facts *ret_facts)
{
	struct postgres *store = postgres_of(backend);
	int64_t last = INT64_MIN;
	uint64_t live = 0;
	struct rows rows;
	int r;

	rows_init(&rows, store, PG_TASK);
	do {
		r = ROWS_ASK(&rows, PG_PAGE_LIVE_TASKS, pg_int(last), pg_int(SCAN_ROWS));
		live += (uint64_t)rows.count;
		if (r == 0)
			r = each_task(&rows, each, context, &last);
	} while (r == 0 && rows.count == SCAN_ROWS);
	rows_done(&rows, 0);
	for (int table = 0; r == 0 && table < PG_TABLE_COUNT; table++)
		r = turn_show(store, (enum pg_table)table);
	return r == 0 ? read_facts(store, live, ret_facts) : r;
}

/* ---- edges ---- */

static int each_edge(struct rows *rows, int fault, int (*each)(void *context, const struct edge_row *row),
	void *context, struct edge_row *ret_last)
{
	struct row_columns columns;

	while (rows_next(rows, &fault, &columns)) {
		ret_last->parent = column_int(&columns);
		ret_last->child = column_int(&columns);
		int64_t standing = column_int(&columns);
		ret_last->dead = standing == EDGE_DEAD;
		ret_last->done = standing == EDGE_DONE;
		const struct edge_row row = *ret_last;
		fault = columns.broken ? damaged_row(rows) : each(context, &row);
	}
	return fault;
}

static int edges_of(struct backend *backend, enum pg_statement which, int64_t task,
	int (*each)(void *context, const struct edge_row *row), void *context)
{
	struct edge_row last;
	struct rows rows;

	rows_init(&rows, postgres_of(backend), PG_EDGE);
	int r = ROWS_ASK(&rows, which, pg_int(task));
	return rows_done(&rows, each_edge(&rows, r, each, context, &last));
}

int postgres_children(struct backend *backend, int64_t parent,
	int (*each)(void *context, const struct edge_row *row), void *context)
{
	return edges_of(backend, PG_CHILDREN, parent, each, context);
}

int postgres_parents(struct backend *backend, int64_t child,
	int (*each)(void *context, const struct edge_row *row), void *context)
{
	return edges_of(backend, PG_PARENTS, child, each, context);
}

int postgres_scan_edges(
	struct backend *backend, int (*each)(void *context, const struct edge_row *row), void *context)
{
	struct edge_row last = {.parent = INT64_MIN, .child = INT64_MIN};
	struct rows rows;
	int r;

	rows_init(&rows, postgres_of(backend), PG_EDGE);
	do {
		r = ROWS_ASK(
			&rows, PG_PAGE_EDGES, pg_int(last.parent), pg_int(last.child), pg_int(SCAN_ROWS));
		r = each_edge(&rows, r, each, context, &last);
	} while (r == 0 && rows.count == SCAN_ROWS);
	return rows_done(&rows, r);
}

/* ---- the inbox ---- */

static struct span value_at(const PGresult *result, int row, int column)
{
	return (struct span){pq.PQgetvalue(result, row, column), (size_t)pq.PQgetlength(result, row, column)};
}

/* Its rows are not ours: whoever may call enqueue() puts them, and there is no seal to be wrong. */
int postgres_page_inbox(struct backend *backend, int64_t after, uint32_t limit,
	int (*each)(void *context, const struct inbox_row *row), void *context)
{
	struct rows rows;

	rows_init(&rows, postgres_of(backend), PG_INBOX);
	int r = ROWS_ASK(&rows, PG_PAGE_INBOX, pg_int(after), pg_int(limit));
	for (int i = 0; r == 0 && i < rows.count; i++) {
		struct inbox_row row = {.queue = value_at(rows.result, i, 1),
			.role = value_at(rows.result, i, 2),
			.task = value_at(rows.result, i, 3)};
		uint64_t id;
		memcpy(&id, pq.PQgetvalue(rows.result, i, 0), sizeof id);
		row.id = (int64_t)be64toh(id);
		r = each(context, &row);
	}
	return rows_done(&rows, r);
}

/* ---- names, workers, tokens ---- */

/* The start believes its facts after this scan: every one of them is looked at first. */
static int check_facts(struct postgres *store)
{
	struct row_columns columns;
	struct rows rows;

	rows_init(&rows, store, PG_META);
	int r = rows_ask(&rows, PG_ALL_META, 0, NULL);
	while (rows_next(&rows, &r, &columns))
		;
	return rows_done(&rows, r);
}

int postgres_scan_names(
	struct backend *backend, int (*each)(void *context, const struct name_row *row), void *context)
{
	int64_t last = INT64_MIN;
	struct row_columns columns;
	struct rows rows;
	int r = check_facts(postgres_of(backend));

	rows_init(&rows, postgres_of(backend), PG_NAME);
	while (r == 0) {
		r = ROWS_ASK(&rows, PG_PAGE_NAMES, pg_int(last), pg_int(SCAN_ROWS));
		while (rows_next(&rows, &r, &columns)) {
			last = column_int(&columns);
			struct name_row row = {.id = (uint32_t)last};
			row.text = column_span(&columns);
			row.principal = (uint32_t)column_int(&columns);
			r = columns.broken ? damaged_row(&rows) : each(context, &row);
		}
		if (rows.count < SCAN_ROWS)
			break;
	}
	return rows_done(&rows, r);
}

/* The key of the last row of a page of rows whose key is one text. It is kept, because the page goes. */
static int keep_key(struct buf *key, struct span text)
{
	buf_clear(key);
	key->max = UINT16_MAX;
	return buf_put_span(key, text);
}

int postgres_scan_workers(
	struct backend *backend, int (*each)(void *context, const struct worker_row *row), void *context)
{
	struct row_columns columns;
	struct rows rows;
	struct buf last;
	int r = 0;

	rows_init(&rows, postgres_of(backend), PG_WORKER);
	buf_init(&last, 0);
	while (r == 0) {
		r = ROWS_ASK(&rows, PG_PAGE_WORKERS, pg_bytes(buf_span(&last)), pg_int(SCAN_ROWS));
		while (rows_next(&rows, &r, &columns)) {
			struct worker_row row;
			r = worker_of_columns(columns, &row) ? keep_key(&last, row.id) : damaged_row(&rows);
			if (r == 0)
				r = each(context, &row);
		}
		if (rows.count < SCAN_ROWS)
			break;
	}
	buf_done(&last);
	return rows_done(&rows, r);
}

int postgres_scan_tokens(
	struct backend *backend, int (*each)(void *context, const struct token *token), void *context)
{
	struct row_columns columns;
	struct rows rows;
	struct buf last;
	int r = 0;

	rows_init(&rows, postgres_of(backend), PG_TOKEN);
	buf_init(&last, 0);
	while (r == 0) {
		r = ROWS_ASK(&rows, PG_PAGE_TOKENS, pg_bytes(buf_span(&last)), pg_int(SCAN_ROWS));
		while (rows_next(&rows, &r, &columns)) {
			struct token token;
			r = token_of_columns(columns, &token) ? keep_key(&last, token.id)
							      : damaged_row(&rows);
			if (r == 0)
				r = each(context, &token);
		}
		if (rows.count < SCAN_ROWS)
			break;
	}
	buf_done(&last);
	return rows_done(&rows, r);
}

/* ---- what a copy reads ---- */

enum { COPY_ROWS = 200 }; /* some of them are large */

int postgres_scan_bodies(
	struct backend *backend, int (*each)(void *context, int64_t seq, struct span body), void *context)
{
	int64_t last = INT64_MIN;
	struct row_columns columns;
	struct rows rows;
	int r = 0;

	rows_init(&rows, postgres_of(backend), PG_BODY);
	while (r == 0) {
		r = ROWS_ASK(&rows, PG_PAGE_BODIES, pg_int(last), pg_int(COPY_ROWS));
		while (rows_next(&rows, &r, &columns)) {
			last = column_int(&columns);
			struct span body = column_span(&columns);
			r = columns.broken ? damaged_row(&rows) : each(context, last, body);
		}
		if (rows.count < COPY_ROWS)
			break;
	}
	return rows_done(&rows, r);
}

int postgres_scan_extras(struct backend *backend,
	int (*each)(void *context, int64_t seq, int64_t kind, int64_t n, struct span data), void *context)
{
	int64_t seq = INT64_MIN, kind = INT64_MIN, n = INT64_MIN;
	struct row_columns columns;
	struct rows rows;
	int r = 0;

	rows_init(&rows, postgres_of(backend), PG_EXTRA);
	while (r == 0) {
		r = ROWS_ASK(&rows, PG_PAGE_EXTRAS, pg_int(seq), pg_int(kind), pg_int(n), pg_int(COPY_ROWS));
		while (rows_next(&rows, &r, &columns)) {
			seq = column_int(&columns);
			kind = column_int(&columns);
			n = column_int(&columns);
			struct span data = column_span(&columns);
			r = columns.broken ? damaged_row(&rows) : each(context, seq, kind, n, data);
		}
		if (rows.count < COPY_ROWS)
			break;
	}
	return rows_done(&rows, r);
}

static int scan_texted(struct backend *backend, enum pg_table table, enum pg_statement which,
	int (*each)(void *context, struct span text, int64_t seq), void *context)
{
	struct row_columns columns;
	struct rows rows;
	struct buf last;
	int r = 0;

	rows_init(&rows, postgres_of(backend), table);
	buf_init(&last, 0);
	while (r == 0) {
		r = ROWS_ASK(&rows, which, pg_bytes(buf_span(&last)), pg_int(SCAN_ROWS));
		while (rows_next(&rows, &r, &columns)) {
			struct span text = column_span(&columns);
			int64_t seq = column_int(&columns);
			r = columns.broken ? damaged_row(&rows) : keep_key(&last, text);
			if (r == 0)
				r = each(context, text, seq);
		}
		if (rows.count < SCAN_ROWS)
			break;
	}
	buf_done(&last);
	return rows_done(&rows, r);
}

int postgres_scan_ids(
	struct backend *backend, int (*each)(void *context, struct span id, int64_t seq), void *context)
{
	return scan_texted(backend, PG_TASK_ID, PG_PAGE_IDS, each, context);
}

int postgres_scan_keys(
	struct backend *backend, int (*each)(void *context, struct span key, int64_t seq), void *context)
{
	return scan_texted(backend, PG_TASK_KEY, PG_PAGE_KEYS, each, context);
}

int postgres_scan_idems(
	struct backend *backend, int (*each)(void *context, const struct idem_row *row), void *context)
{
	struct row_columns columns;
	struct buf principal, key;
	struct rows rows;
	int r = 0;

	rows_init(&rows, postgres_of(backend), PG_IDEM);
	buf_init(&principal, 0);
	buf_init(&key, 0);
	while (r == 0) {
		r = ROWS_ASK(&rows, PG_PAGE_IDEMS, pg_bytes(buf_span(&principal)), pg_bytes(buf_span(&key)),
			pg_int(SCAN_ROWS));
		while (rows_next(&rows, &r, &columns)) {
			struct idem_row row = {0};
			r = idem_of_columns(columns, &row) ? keep_key(&principal, row.principal)
							   : damaged_row(&rows);
			if (r == 0)
				r = keep_key(&key, row.key);
			if (r == 0)
				r = each(context, &row);
		}
		if (rows.count < SCAN_ROWS)
			break;
	}
	buf_done(&principal);
	buf_done(&key);
	return rows_done(&rows, r);
}

/* ---- baselines and small records ---- */

int postgres_page_bases(struct backend *backend, int64_t after, uint32_t limit,
	int (*each)(void *context, int64_t seq, struct span data), void *context)
{
	struct row_columns columns;
	struct rows rows;

	rows_init(&rows, postgres_of(backend), PG_BASE);
	int r = ROWS_ASK(&rows, PG_PAGE_BASES, pg_int(after), pg_int(limit));
	while (rows_next(&rows, &r, &columns)) {
		int64_t seq = column_int(&columns);
		struct span data = column_span(&columns);
		r = columns.broken ? damaged_row(&rows) : each(context, seq, data);
	}
	return rows_done(&rows, r);
}

int postgres_page_small(struct backend *backend, enum small_kind kind, struct span after, uint32_t limit,
	int (*each)(void *context, struct span key, struct span data), void *context)
{
	bool secret = small_is_secret(kind);
	struct row_columns columns;
	struct rows rows;

	rows_init(&rows, postgres_of(backend), secret ? PG_SECRET : PG_SMALL);
	int r = ROWS_ASK(
		&rows, secret ? PG_PAGE_SECRET : PG_PAGE_SMALL, pg_int(kind), pg_bytes(after), pg_int(limit));
	while (rows_next(&rows, &r, &columns)) {
		column_span(&columns);
		struct span key = column_span(&columns), data = column_span(&columns);
		r = columns.broken ? damaged_row(&rows) : each(context, key, data);
	}
	return rows_done(&rows, r);
}
