/*
 * What a question in SQL is asked about: `tasks`, `events` and `claims`, as people know them. The rows of the store are packed for
 * speed and have numbers for names; these tables show the same, one row per task, per event and per claim, in words. They are
 * virtual: each value is read from the store when the question looks at it, and nothing is kept twice. Live claims come from the
 * tasks, ended ones from the events that ended them, as long as those are kept.
 *
 * A question that names the number or the id of a task, or a range of numbers, reads only those.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base36.h"
#include "base/iso_time.h"
#include "base/take.h"
#include "store/record/record.h"
#include "store/sqlite/sqlite_backend.h"

enum {
	ARENA_BYTES_MAX = 8 << 20,
	BOUND_EXACT = 1 << 0, /* seq = ? */
	BOUND_LEAST = 1 << 1, /* seq >= ?, seq > ? */
	BOUND_MOST = 1 << 2,  /* seq <= ?, seq < ? */
	BOUND_ID = 1 << 3,    /* id = ? */
	BOUND_LIVE = 1 << 4,  /* released_at IS NULL */
};

/* A claim, live or ended. */
struct query_claim {
	int64_t task;
	struct span id, worker;
	uint64_t fence;
	int64_t claimed_ms, expires_ms, released_ms; /* wall; 0: not known, or not yet */
};

struct query_table {
	sqlite3_vtab base;
	struct sqlite *store;
};

struct query_cursor {
	sqlite3_vtab_cursor base;
	struct sqlite *store;
	sqlite3_stmt *rows; /* of tasks */
	struct task task;
	struct record record;
	int64_t next, last; /* of events */
	struct query_claim claim;
	struct arena arena; /* of the row */
	bool over;
};

enum task_column {
	TASKS_SEQ,
	TASKS_ID,
	TASKS_TITLE,
	TASKS_STATE_NAME,
	TASKS_QUEUE,
	TASKS_PRIORITY,
	TASKS_OWNER,
	TASKS_EXECUTOR,
	TASKS_ATTEMPT,
	TASKS_SPENT,
	TASKS_CRASHES,
	TASKS_MAX_ATTEMPTS,
	TASKS_TIMEOUT,
	TASKS_WORKER,
	TASKS_CLAIMED_AT,
	TASKS_CREATED_AT,
	TASKS_UPDATED_AT,
	TASKS_DOCUMENT,
};

static const char tasks_columns[] =
	"CREATE TABLE x(seq INTEGER, id TEXT, title TEXT, state TEXT, queue TEXT, priority INTEGER, owner TEXT, executor TEXT, "
	"attempt INTEGER, spent INTEGER, crashes INTEGER, max_attempts INTEGER, timeout_ms INTEGER, worker_id TEXT, "
	"claimed_at TEXT, created_at TEXT, updated_at TEXT, document TEXT)";

enum event_column {
	EVENTS_SEQ,
	EVENTS_TIME,
	EVENTS_TYPE,
	EVENTS_TASK,
	EVENTS_WORKER,
	EVENTS_ACTOR,
	EVENTS_SUBJECT,
	EVENTS_NOTE,
};

static const char events_columns[] =
	"CREATE TABLE x(seq INTEGER, time TEXT, type TEXT, task TEXT, worker TEXT, actor TEXT, subject TEXT, note TEXT)";

/* ---- values ---- */

static void tell_text(sqlite3_context *context, struct span text)
{
	if (text.len > 0)
		sqlite3_result_text(context, text.data, (int)text.len, SQLITE_TRANSIENT);
}

static void tell_time(sqlite3_context *context, int64_t wall_ms)
{
	char text[ISO_TIME_BYTES + 1];

	if (wall_ms == 0)
		return;
	iso_time_put(wall_ms, text);
	sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

static void tell_id(sqlite3_context *context, int64_t seq, struct span own)
{
	char text[2 + BASE36_MAX] = "t-";

	if (own.len == 0 && seq > 0)
		own = (struct span){text, 2 + base36_encode((uint64_t)seq, text + 2)};
	tell_text(context, own);
}

static struct span text_at(sqlite3_stmt *statement, int column)
{
	const char *text = (const char *)sqlite3_column_text(statement, column);

	return (struct span){text, text ? (size_t)sqlite3_column_bytes(statement, column) : 0};
}

/* The first value of a statement with one parameter. */
static int tell_found(
	sqlite3_context *context, struct sqlite *store, const char *sql, int64_t number, struct span text)
{
	sqlite3_stmt *statement;
	int code = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);

	if (code != SQLITE_OK)
		return code;
	code = text.data ? sqlite3_bind_text64(statement, 1, text.data, text.len, SQLITE_STATIC, SQLITE_UTF8)
			 : sqlite3_bind_int64(statement, 1, number);
	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	if (code == SQLITE_ROW)
		sqlite3_result_value(context, sqlite3_column_value(statement, 0));
	sqlite3_finalize(statement);
	return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

static int tell_name(sqlite3_context *context, struct sqlite *store, uint32_t number)
{
	return number == 0
		? SQLITE_OK
		: tell_found(context, store, "SELECT text FROM name WHERE id = ?1", number, (struct span){0});
}

/* What the caller said: the members of an object. */
static int read_document(struct query_cursor *cursor, struct buf *document)
{
	struct backend *backend = &cursor->store->backend;
	struct span body = {0};
	int r = backend->ops->get_body(backend, cursor->task.seq, &cursor->arena, &body);

	if (r < 0 && r != -ENOENT)
		return r == -ENOMEM ? SQLITE_NOMEM : SQLITE_CORRUPT;
	buf_put_byte(document, '{');
	buf_put_span(document, body);
	buf_put_byte(document, '}');
	return buf_fault(document) < 0 ? SQLITE_NOMEM : SQLITE_OK;
}

static int tell_document(sqlite3_context *context, struct query_cursor *cursor, bool title)
{
	cleanup(buf_done) struct buf document = {0};

	buf_init(&document, ARENA_BYTES_MAX);
	int code = read_document(cursor, &document);
	if (code != SQLITE_OK)
		return code;
	if (title)
		return tell_found(
			context, cursor->store, "SELECT json_extract(?1, '$.title')", 0, buf_span(&document));
	tell_text(context, buf_span(&document));
	return SQLITE_OK;
}

/* ---- tasks ---- */

static const char task_rows[] =
	"SELECT t.seq, t.state, t.queue, t.priority, t.rest, t.holder, t.claimed_ms, i.id FROM task AS t "
	"LEFT JOIN task_id AS i ON i.seq = t.seq WHERE t.seq >= ?1 AND t.seq <= ?2 ORDER BY t.seq";

static int tasks_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
	struct query_cursor *cursor = (struct query_cursor *)base;
	const struct task *task = &cursor->task;

	switch ((enum task_column)column) {
	case TASKS_SEQ:
		sqlite3_result_int64(context, task->seq);
		break;
	case TASKS_ID:
		tell_id(context, task->seq, text_at(cursor->rows, 7));
		break;
	case TASKS_TITLE:
		return tell_document(context, cursor, true);
	case TASKS_STATE_NAME:
		tell_text(context, span_of(task_state_name(task->state)));
		break;
	case TASKS_QUEUE:
		return tell_name(context, cursor->store, task->queue);
	case TASKS_PRIORITY:
		sqlite3_result_int64(context, task->priority);
		break;
	case TASKS_OWNER:
		return tell_name(context, cursor->store, task->owner);
	case TASKS_EXECUTOR:
		return tell_name(context, cursor->store, task->executor);
	case TASKS_ATTEMPT:
		sqlite3_result_int64(context, task->attempt);
		break;
	case TASKS_SPENT:
		sqlite3_result_int64(context, task->spent);
		break;
	case TASKS_CRASHES:
		sqlite3_result_int64(context, task->crashes);
		break;
	case TASKS_MAX_ATTEMPTS:
		sqlite3_result_int64(context, task->max_attempts);
		break;
	case TASKS_TIMEOUT:
		sqlite3_result_int64(context, task->timeout_ms);
		break;
	case TASKS_WORKER:
		tell_text(context, text_at(cursor->rows, 5));
		break;
	case TASKS_CLAIMED_AT:
		tell_time(context, sqlite3_column_int64(cursor->rows, 6));
		break;
	case TASKS_CREATED_AT:
		tell_time(context, task->created_ms);
		break;
	case TASKS_UPDATED_AT:
		tell_time(context, task->updated_ms);
		break;
	case TASKS_DOCUMENT:
		return tell_document(context, cursor, false);
	}
	return SQLITE_OK;
}

static int tasks_next(sqlite3_vtab_cursor *base)
{
	struct query_cursor *cursor = (struct query_cursor *)base;
	struct task *task = &cursor->task;
	int code = sqlite3_step(cursor->rows);

	arena_reset(&cursor->arena);
	cursor->over = code != SQLITE_ROW;
	if (cursor->over)
		return code == SQLITE_DONE ? SQLITE_OK : code;
	*task = (struct task){.seq = sqlite3_column_int64(cursor->rows, 0),
		.state = (enum task_state)sqlite3_column_int(cursor->rows, 1),
		.queue = (uint32_t)sqlite3_column_int64(cursor->rows, 2),
		.priority = sqlite3_column_int(cursor->rows, 3)};
	const char *rest = sqlite3_column_blob(cursor->rows, 4);
	struct span packed = {rest, rest ? (size_t)sqlite3_column_bytes(cursor->rows, 4) : 0};
	bool sound = task_rest_unpack(packed, task) && task->state > TASK_NOWHERE &&
		task->state < TASK_STATE_COUNT;
	return sound ? SQLITE_OK : SQLITE_CORRUPT;
}

/* 0: there is no such task. */
static int64_t seq_of(struct sqlite *store, struct span id)
{
	sqlite3_stmt *statement;
	uint64_t number;
	int64_t seq = 0;

	if (id.len > 2 && memcmp(id.data, "t-", 2) == 0 &&
		base36_decode((struct span){id.data + 2, id.len - 2}, &number) == 0 && number <= INT64_MAX)
		seq = (int64_t)number;
	if (sqlite3_prepare_v2(store->db, "SELECT seq FROM task_id WHERE id = ?1", -1, &statement, NULL) !=
		SQLITE_OK)
		return seq;
	if (sqlite3_bind_text64(statement, 1, id.data, id.len, SQLITE_STATIC, SQLITE_UTF8) == SQLITE_OK &&
		sqlite3_step(statement) == SQLITE_ROW)
		seq = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return seq;
}

/* The values come in the order of the bits. */
static void read_bounds(struct query_cursor *cursor, int bounds, sqlite3_value **values, int64_t *ret_least,
	int64_t *ret_most)
{
	*ret_least = 1;
	*ret_most = INT64_MAX;
	if (bounds & BOUND_EXACT)
		*ret_least = *ret_most = sqlite3_value_int64(*values++);
	if (bounds & BOUND_LEAST)
		*ret_least = sqlite3_value_int64(*values++);
	if (bounds & BOUND_MOST)
		*ret_most = sqlite3_value_int64(*values++);
	if (bounds & BOUND_ID) {
		const char *text = (const char *)sqlite3_value_text(*values);
		struct span id = {text ? text : "", text ? (size_t)sqlite3_value_bytes(*values) : 0};
		*ret_least = *ret_most = seq_of(cursor->store, id);
	}
}

static int tasks_filter(
	sqlite3_vtab_cursor *base, int bounds, const char *text, int count, sqlite3_value **values)
{
	struct query_cursor *cursor = (struct query_cursor *)base;
	int64_t least, most;

	(void)text;
	(void)count;
	read_bounds(cursor, bounds, values, &least, &most);
	sqlite3_finalize(cursor->rows);
	cursor->rows = NULL;
	int code = sqlite3_prepare_v2(cursor->store->db, task_rows, -1, &cursor->rows, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_bind_int64(cursor->rows, 1, least);
	if (code == SQLITE_OK)
		code = sqlite3_bind_int64(cursor->rows, 2, most);
	return code == SQLITE_OK ? tasks_next(base) : code;
}

static int tasks_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret_rowid)
{
	*ret_rowid = ((struct query_cursor *)base)->task.seq;
	return SQLITE_OK;
}

/* ---- events ---- */

static int events_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
	const struct record *record = &((struct query_cursor *)base)->record;

	switch ((enum event_column)column) {
	case EVENTS_SEQ:
		sqlite3_result_int64(context, record->seq);
		break;
	case EVENTS_TIME:
		tell_time(context, record->wall_ms);
		break;
	case EVENTS_TYPE:
		tell_text(context, span_of(event_kind_name(record->kind)));
		break;
	case EVENTS_TASK:
		tell_id(context, record->task, record->id);
		break;
	case EVENTS_WORKER:
		tell_text(context, record->worker);
		break;
	case EVENTS_ACTOR:
		tell_text(context, record->actor);
		break;
	case EVENTS_SUBJECT:
		tell_text(context, record->subject);
		break;
	case EVENTS_NOTE:
		if (record->note.len > 0) {
			cleanup(buf_done) struct buf note = {0};
			buf_init(&note, ARENA_BYTES_MAX);
			buf_put_byte(&note, '{');
			buf_put_span(&note, record->note);
			buf_put_byte(&note, '}');
			if (buf_fault(&note) < 0)
				return SQLITE_NOMEM;
			tell_text(context, buf_span(&note));
		}
		break;
	}
	return SQLITE_OK;
}

static int events_next(sqlite3_vtab_cursor *base)
{
	struct query_cursor *cursor = (struct query_cursor *)base;
	struct backend *backend = &cursor->store->backend;
	struct span data;
	int r;

	arena_reset(&cursor->arena);
	cursor->over = cursor->next > cursor->last;
	if (cursor->over)
		return SQLITE_OK;
	r = backend->ops->get_event(backend, cursor->next, &cursor->arena, &data);
	if (r == 0)
		r = record_decode(cursor->next, data, &cursor->record);
	cursor->next++;
	return r == 0 ? SQLITE_OK : r == -ENOMEM ? SQLITE_NOMEM : SQLITE_CORRUPT;
}

/* The numbers of the events that are there. */
static int events_kept(struct sqlite *store, int64_t *ret_first, int64_t *ret_last)
{
	sqlite3_stmt *statement;
	int code = sqlite3_prepare_v2(store->db,
		"SELECT (SELECT value FROM meta WHERE key = 4), (SELECT last FROM event ORDER BY last DESC LIMIT 1)",
		-1, &statement, NULL);

	if (code != SQLITE_OK)
		return code;
	code = sqlite3_step(statement);
	if (code == SQLITE_ROW) {
		*ret_first = sqlite3_column_int64(statement, 0) + 1;
		*ret_last = sqlite3_column_int64(statement, 1);
	}
	sqlite3_finalize(statement);
	return code == SQLITE_ROW ? SQLITE_OK : code;
}

static int events_filter(
	sqlite3_vtab_cursor *base, int bounds, const char *text, int count, sqlite3_value **values)
{
	struct query_cursor *cursor = (struct query_cursor *)base;
	int64_t least, most, first = 1, last = 0;

	(void)text;
	(void)count;
	read_bounds(cursor, bounds, values, &least, &most);
	int code = events_kept(cursor->store, &first, &last);
	cursor->next = least > first ? least : first;
	cursor->last = most < last ? most : last;
	return code == SQLITE_OK ? events_next(base) : code;
}

static int events_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret_rowid)
{
	*ret_rowid = ((struct query_cursor *)base)->record.seq;
	return SQLITE_OK;
}

/* ---- claims ---- */

enum claim_column {
	CLAIMS_TASK,
	CLAIMS_FENCE,
	CLAIMS_WORKER,
	CLAIMS_CLAIMED_AT,
	CLAIMS_EXPIRES_AT,
	CLAIMS_RELEASED_AT,
	CLAIMS_RELEASE_REASON,
};

static const char claims_columns[] =
	"CREATE TABLE x(task TEXT, fence TEXT, worker TEXT, claimed_at TEXT, expires_at TEXT, released_at TEXT, release_reason TEXT)";

static const char claim_rows[] =
	"SELECT t.seq, t.state, t.queue, t.priority, t.rest, t.holder, t.claimed_ms, i.id FROM task AS t "
	"LEFT JOIN task_id AS i ON i.seq = t.seq WHERE t.holder IS NOT NULL ORDER BY t.seq";

/* The reason that a connector gave, or what happened: `completed`, `failed`, `expired` … */
static int tell_reason(sqlite3_context *context, const struct query_cursor *cursor)
{
	const struct record *record = &cursor->record;
	const char *name = event_kind_name(record->kind), *dot = strchr(name, '.');
	cleanup(buf_done) struct buf note = {0};

	tell_text(context, span_of(dot ? dot + 1 : name));
	if (record->kind != EVENT_TASK_RELEASED || record->note.len == 0)
		return SQLITE_OK;
	buf_init(&note, ARENA_BYTES_MAX);
	buf_put_byte(&note, '{');
	buf_put_span(&note, record->note);
	buf_put_byte(&note, '}');
	if (buf_fault(&note) < 0)
		return SQLITE_NOMEM;
	return tell_found(context, cursor->store, "SELECT coalesce(json_extract(?1, '$.reason'), 'released')",
		0, buf_span(&note));
}

static int claims_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
	struct query_cursor *cursor = (struct query_cursor *)base;
	const struct query_claim *claim = &cursor->claim;
	char fence[24];

	switch ((enum claim_column)column) {
	case CLAIMS_TASK:
		tell_id(context, claim->task, claim->id);
		break;
	case CLAIMS_FENCE:
		snprintf(fence, sizeof fence, "%" PRIu64, claim->fence);
		tell_text(context, span_of(fence));
		break;
	case CLAIMS_WORKER:
		tell_text(context, claim->worker);
		break;
	case CLAIMS_CLAIMED_AT:
		tell_time(context, claim->claimed_ms);
		break;
	case CLAIMS_EXPIRES_AT:
		tell_time(context, claim->expires_ms);
		break;
	case CLAIMS_RELEASED_AT:
		tell_time(context, claim->released_ms);
		break;
	case CLAIMS_RELEASE_REASON:
		return claim->released_ms == 0 ? SQLITE_OK : tell_reason(context, cursor);
	}
	return SQLITE_OK;
}

/* How long an attempt of the task may last; 0: it is gone. */
static int read_timeout(struct sqlite *store, int64_t seq, int64_t *ret_timeout_ms)
{
	sqlite3_stmt *statement;
	struct task task = {.seq = seq};
	int code =
		sqlite3_prepare_v2(store->db, "SELECT rest FROM task WHERE seq = ?1", -1, &statement, NULL);

	if (code != SQLITE_OK)
		return code;
	code = sqlite3_bind_int64(statement, 1, seq);
	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	const char *rest = code == SQLITE_ROW ? sqlite3_column_blob(statement, 0) : NULL;
	if (rest && !task_rest_unpack((struct span){rest, (size_t)sqlite3_column_bytes(statement, 0)}, &task))
		code = SQLITE_CORRUPT;
	*ret_timeout_ms = rest ? task.timeout_ms : 0;
	sqlite3_finalize(statement);
	return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

/* Back from the event that ended a claim to the one that made it, if that one is kept. */
static int find_begin(struct query_cursor *cursor, int64_t first)
{
	struct backend *backend = &cursor->store->backend;
	struct query_claim *claim = &cursor->claim;
	int64_t seq = cursor->record.previous;

	while (seq >= first) {
		struct record record;
		struct span data;
		int r = backend->ops->get_event(backend, seq, &cursor->arena, &data);
		if (r == 0)
			r = record_decode(seq, data, &record);
		if (r < 0)
			return r == -ENOMEM ? SQLITE_NOMEM : SQLITE_CORRUPT;
		seq = record.previous;
		if (record.kind != EVENT_TASK_CLAIMED)
			continue;
		claim->claimed_ms = record.wall_ms;
		claim->fence = record.columns.fence;
		seq = 0;
	}
	return SQLITE_OK;
}

/* The claim that ends with the event of the cursor. */
static int read_ended_claim(struct query_cursor *cursor, int64_t first)
{
	const struct record *record = &cursor->record;
	struct query_claim *claim = &cursor->claim;
	int64_t timeout_ms;

	*claim = (struct query_claim){.task = record->task,
		.id = record->id,
		.worker = record->worker,
		.released_ms = record->wall_ms};
	int code = find_begin(cursor, first);
	if (code != SQLITE_OK)
		return code;
	if (record_has(record, FACT_EXPIRES)) {
		claim->expires_ms = record->fact[FACT_EXPIRES];
		return SQLITE_OK;
	}
	code = read_timeout(cursor->store, record->task, &timeout_ms);
	if (timeout_ms > 0 && claim->claimed_ms > 0)
		claim->expires_ms = claim->claimed_ms + timeout_ms;
	return code;
}

static int next_live_claim(struct query_cursor *cursor)
{
	struct query_claim *claim = &cursor->claim;
	int code = tasks_next(&cursor->base);

	if (code != SQLITE_OK || cursor->over)
		return code;
	const struct claim *held = &cursor->task.claim;
	int64_t since_ms = held->asked_at_ms != 0 ? held->asked_at_ms : cursor->store->asked_lease_ms;
	*claim = (struct query_claim){
		.task = cursor->task.seq,
		.id = text_at(cursor->rows, 7),
		.worker = text_at(cursor->rows, 5),
		.fence = cursor->task.fence,
		.claimed_ms = sqlite3_column_int64(cursor->rows, 6),
		.expires_ms = cursor->store->asked_wall_ms + held->run_until_ms - since_ms,
	};
	return SQLITE_OK;
}

/* Live ones first, then those that have ended, in the order in which they did. */
static int claims_next(sqlite3_vtab_cursor *base)
{
	struct query_cursor *cursor = (struct query_cursor *)base;
	int64_t first = 1, last = 0;
	int code = cursor->rows ? next_live_claim(cursor) : SQLITE_OK;

	if (code != SQLITE_OK || (cursor->rows && !cursor->over))
		return code;
	sqlite3_finalize(cursor->rows);
	cursor->rows = NULL;
	code = events_kept(cursor->store, &first, &last);
	do {
		if (code == SQLITE_OK)
			code = events_next(base);
	} while (code == SQLITE_OK && !cursor->over && !record_ends_claim(&cursor->record));
	return code == SQLITE_OK && !cursor->over ? read_ended_claim(cursor, first) : code;
}

static int claims_filter(
	sqlite3_vtab_cursor *base, int bounds, const char *text, int count, sqlite3_value **values)
{
	struct query_cursor *cursor = (struct query_cursor *)base;
	int code = events_kept(cursor->store, &cursor->next, &cursor->last);

	(void)text;
	(void)count;
	(void)values;
	if (bounds & BOUND_LIVE)
		cursor->last = cursor->next - 1;
	sqlite3_finalize(cursor->rows);
	cursor->rows = NULL;
	if (code == SQLITE_OK)
		code = sqlite3_prepare_v2(cursor->store->db, claim_rows, -1, &cursor->rows, NULL);
	return code == SQLITE_OK ? claims_next(base) : code;
}

static int claims_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret_rowid)
{
	*ret_rowid = (int64_t)((struct query_cursor *)base)->claim.fence;
	return SQLITE_OK;
}

/* ---- all three ---- */

static int connect_as(sqlite3 *db, void *store, const char *columns, sqlite3_vtab **ret_table)
{
	int code = sqlite3_declare_vtab(db, columns);
	struct query_table *table = code == SQLITE_OK ? sqlite3_malloc(sizeof *table) : NULL;

	if (!table)
		return code == SQLITE_OK ? SQLITE_NOMEM : code;
	*table = (struct query_table){.store = store};
	*ret_table = &table->base;
	return SQLITE_OK;
}

static int tasks_connect(
	sqlite3 *db, void *store, int argc, const char *const *argv, sqlite3_vtab **ret, char **error)
{
	(void)argc;
	(void)argv;
	(void)error;
	return connect_as(db, store, tasks_columns, ret);
}

static int events_connect(
	sqlite3 *db, void *store, int argc, const char *const *argv, sqlite3_vtab **ret, char **error)
{
	(void)argc;
	(void)argv;
	(void)error;
	return connect_as(db, store, events_columns, ret);
}

static int claims_connect(
	sqlite3 *db, void *store, int argc, const char *const *argv, sqlite3_vtab **ret, char **error)
{
	(void)argc;
	(void)argv;
	(void)error;
	return connect_as(db, store, claims_columns, ret);
}

static int disconnect(sqlite3_vtab *table)
{
	sqlite3_free(table);
	return SQLITE_OK;
}

static int bound_of(const struct sqlite3_index_constraint *constraint)
{
	if (!constraint->usable)
		return 0;
	if (constraint->iColumn == TASKS_ID)
		return constraint->op == SQLITE_INDEX_CONSTRAINT_EQ ? BOUND_ID : 0;
	if (constraint->iColumn != TASKS_SEQ && constraint->iColumn != -1)
		return 0;
	switch (constraint->op) {
	case SQLITE_INDEX_CONSTRAINT_EQ:
		return BOUND_EXACT;
	case SQLITE_INDEX_CONSTRAINT_GT:
	case SQLITE_INDEX_CONSTRAINT_GE:
		return BOUND_LEAST;
	case SQLITE_INDEX_CONSTRAINT_LT:
	case SQLITE_INDEX_CONSTRAINT_LE:
		return BOUND_MOST;
	default:
		return 0;
	}
}

/* SQLite compares again what we leave out and what we do not: a bound only saves work. */
static int best_index(sqlite3_index_info *info, int allowed)
{
	int place = 0;

	for (int bound = BOUND_EXACT; bound <= BOUND_ID; bound <<= 1) {
		for (int i = 0; (bound & allowed) && i < info->nConstraint; i++) {
			if (bound_of(&info->aConstraint[i]) != bound)
				continue;
			info->aConstraintUsage[i].argvIndex = ++place;
			info->idxNum |= bound;
			break;
		}
	}
	bool one = info->idxNum & (BOUND_EXACT | BOUND_ID);
	info->estimatedRows = one ? 1 : 1000000;
	info->estimatedCost = one ? 1 : info->idxNum ? 100000 : 1000000;
	info->orderByConsumed =
		info->nOrderBy == 1 && info->aOrderBy[0].iColumn == TASKS_SEQ && !info->aOrderBy[0].desc;
	return SQLITE_OK;
}

static int tasks_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
	(void)table;
	return best_index(info, BOUND_EXACT | BOUND_LEAST | BOUND_MOST | BOUND_ID);
}

static int events_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
	(void)table;
	return best_index(info, BOUND_EXACT | BOUND_LEAST | BOUND_MOST);
}

/* A question for live claims alone reads no events. */
static int claims_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
	(void)table;
	for (int i = 0; i < info->nConstraint; i++) {
		const struct sqlite3_index_constraint *constraint = &info->aConstraint[i];
		if (constraint->usable && constraint->iColumn == CLAIMS_RELEASED_AT &&
			constraint->op == SQLITE_INDEX_CONSTRAINT_ISNULL)
			info->idxNum = BOUND_LIVE;
	}
	info->estimatedCost = info->idxNum ? 1000 : 1000000;
	return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **ret_cursor)
{
	struct query_cursor *cursor = calloc(1, sizeof *cursor);

	if (!cursor)
		return SQLITE_NOMEM;
	cursor->store = ((struct query_table *)table)->store;
	arena_init(&cursor->arena, ARENA_BYTES_MAX);
	*ret_cursor = &cursor->base;
	return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
	struct query_cursor *cursor = (struct query_cursor *)base;

	sqlite3_finalize(cursor->rows);
	arena_done(&cursor->arena);
	free(cursor);
	return SQLITE_OK;
}

static int is_over(sqlite3_vtab_cursor *base)
{
	return ((struct query_cursor *)base)->over;
}

int query_tables_create(struct sqlite *store)
{
	static const sqlite3_module tasks = {
		.xConnect = tasks_connect,
		.xBestIndex = tasks_best_index,
		.xDisconnect = disconnect,
		.xOpen = open_cursor,
		.xClose = close_cursor,
		.xFilter = tasks_filter,
		.xNext = tasks_next,
		.xEof = is_over,
		.xColumn = tasks_column,
		.xRowid = tasks_rowid,
	};
	static const sqlite3_module events = {
		.xConnect = events_connect,
		.xBestIndex = events_best_index,
		.xDisconnect = disconnect,
		.xOpen = open_cursor,
		.xClose = close_cursor,
		.xFilter = events_filter,
		.xNext = events_next,
		.xEof = is_over,
		.xColumn = events_column,
		.xRowid = events_rowid,
	};
	static const sqlite3_module claims = {
		.xConnect = claims_connect,
		.xBestIndex = claims_best_index,
		.xDisconnect = disconnect,
		.xOpen = open_cursor,
		.xClose = close_cursor,
		.xFilter = claims_filter,
		.xNext = claims_next,
		.xEof = is_over,
		.xColumn = claims_column,
		.xRowid = claims_rowid,
	};
	int code = sqlite3_create_module_v2(store->db, "tasks", &tasks, store, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_create_module_v2(store->db, "events", &events, store, NULL);
	return code == SQLITE_OK ? sqlite3_create_module_v2(store->db, "claims", &claims, store, NULL) : code;
}
