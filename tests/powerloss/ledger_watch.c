/*
 * A backend that writes down what passes through it.
 */
#include <errno.h>
#include <stdlib.h>

#include "powerloss/ledger_book.h"

struct watch {
	struct backend base; /* first */
	struct backend *inner;
	struct ledger *ledger;
};

static struct watch *watch_of(struct backend *backend)
{
	return (struct watch *)backend;
}

/* Pass a call on, and with it the sentence that explains its fault. */
#define PASS(op, ...)                                                              \
	({                                                                         \
		struct watch *watch_ = watch_of(backend);                          \
		int fault_ = watch_->inner->ops->op(watch_->inner, ##__VA_ARGS__); \
		watch_->base.complaint = watch_->inner->complaint;                 \
		fault_;                                                            \
	})

static void note(struct backend *backend, int fault, struct row_key key, uint64_t digest)
{
	if (fault == 0)
		book_put(watch_of(backend)->ledger, &key, digest);
}

/* ---- transactions ----------------------------------------------------------------------------- */

static int watch_begin(struct backend *backend)
{
	int fault = PASS(begin);

	if (fault == 0)
		book_begin(watch_of(backend)->ledger);
	return fault;
}

static int watch_send(struct backend *backend)
{
	int fault;

	book_commit_begins(watch_of(backend)->ledger);
	fault = PASS(send);
	if (fault < 0)
		book_commit_ended(watch_of(backend)->ledger, fault);
	return fault;
}

static int watch_settle(struct backend *backend)
{
	int fault = PASS(settle);

	if (fault != -EAGAIN)
		book_commit_ended(watch_of(backend)->ledger, fault);
	return fault;
}

static int watch_damaged(struct backend *backend, const char *table, int64_t row)
{
	return PASS(damaged, table, row);
}

static void watch_rollback(struct backend *backend)
{
	struct watch *watch = watch_of(backend);

	watch->inner->ops->rollback(watch->inner);
	book_rollback(watch->ledger);
}

/* ---- rows ------------------------------------------------------------------------------------- */

static int watch_put_task(struct backend *backend, const struct task_row *row, bool fresh)
{
	int fault = PASS(put_task, row, fresh);

	note(backend, fault, (struct row_key){.table = ROW_TASK, .a = row->task.seq}, digest_task(row));
	return fault;
}

static int watch_put_body(struct backend *backend, int64_t seq, struct span body)
{
	int fault = PASS(put_body, seq, body);

	note(backend, fault, (struct row_key){.table = ROW_BODY, .a = seq}, digest_bytes(body));
	return fault;
}

static int watch_put_extra(
	struct backend *backend, int64_t seq, enum extra_kind kind, int64_t n, struct span data)
{
	int fault = PASS(put_extra, seq, kind, n, data);

	note(backend, fault, (struct row_key){.table = ROW_EXTRA, .a = seq, .b = kind, .c = n},
		digest_bytes(data));
	return fault;
}

static int watch_put_event(struct backend *backend, int64_t seq, struct span data)
{
	int fault = PASS(put_event, seq, data);

	note(backend, fault, (struct row_key){.table = ROW_EVENT, .a = seq}, digest_bytes(data));
	return fault;
}

static int watch_put_base(struct backend *backend, int64_t seq, struct span data)
{
	int fault = PASS(put_base, seq, data);

	note(backend, fault, (struct row_key){.table = ROW_BASE, .a = seq}, digest_bytes(data));
	return fault;
}

static int watch_put_name(struct backend *backend, const struct name_row *row)
{
	int fault = PASS(put_name, row);

	note(backend, fault, (struct row_key){.table = ROW_NAME, .a = row->id}, digest_name(row));
	return fault;
}

static int watch_put_id(struct backend *backend, struct span id, int64_t seq)
{
	int fault = PASS(put_id, id, seq);

	note(backend, fault, (struct row_key){.table = ROW_ID, .text = id}, digest_number(seq));
	return fault;
}

static int watch_put_key(struct backend *backend, struct span key, int64_t seq)
{
	int fault = PASS(put_key, key, seq);

	note(backend, fault, (struct row_key){.table = ROW_KEY, .text = key}, digest_number(seq));
	return fault;
}

static int watch_put_edge(struct backend *backend, const struct edge_row *row)
{
	int fault = PASS(put_edge, row);

	note(backend, fault, (struct row_key){.table = ROW_EDGE, .a = row->parent, .b = row->child},
		digest_edge(row));
	return fault;
}

static int watch_put_worker(struct backend *backend, const struct worker_row *row)
{
	int fault = PASS(put_worker, row);

	note(backend, fault, (struct row_key){.table = ROW_WORKER, .text = row->id}, digest_worker(row));
	return fault;
}

static int watch_put_small(struct backend *backend, enum small_kind kind, struct span key, struct span data)
{
	int fault = PASS(put_small, kind, key, data);

	note(backend, fault, (struct row_key){.table = ROW_SMALL, .a = kind, .text = key},
		digest_bytes(data));
	return fault;
}

static int watch_delete_small(struct backend *backend, enum small_kind kind, struct span key)
{
	int fault = PASS(delete_small, kind, key);

	note(backend, fault, (struct row_key){.table = ROW_SMALL, .a = kind, .text = key}, 0);
	return fault;
}

static int watch_get_small(struct backend *backend, enum small_kind kind, struct span key,
	struct arena *arena, struct span *ret_data)
{
	return PASS(get_small, kind, key, arena, ret_data);
}

static int watch_page_small(struct backend *backend, enum small_kind kind, struct span after, uint32_t limit,
	int (*each)(void *context, struct span key, struct span data), void *context)
{
	return PASS(page_small, kind, after, limit, each, context);
}

static int watch_put_token(struct backend *backend, const struct token *token)
{
	int fault = PASS(put_token, token);

	note(backend, fault, (struct row_key){.table = ROW_TOKEN, .text = token->id}, digest_token(token));
	return fault;
}

static int watch_put_idem(struct backend *backend, const struct idem_row *row)
{
	char room[IDEM_KEY_MAX];
	struct row_key key = idem_key(row->principal, row->key, room);
	int fault = PASS(put_idem, row);

	note(backend, fault, key, digest_idem(row));
	return fault;
}

static int watch_put_meta(struct backend *backend, enum meta_key key, int64_t value)
{
	int fault = PASS(put_meta, key, value);

	note(backend, fault, (struct row_key){.table = ROW_META, .a = key}, digest_number(value));
	return fault;
}

static int watch_delete_task(struct backend *backend, int64_t seq)
{
	int fault = PASS(delete_task, seq);

	if (fault == 0)
		book_forget_task(watch_of(backend)->ledger, seq);
	return fault;
}

static int watch_delete_base(struct backend *backend, int64_t seq)
{
	int fault = PASS(delete_base, seq);

	note(backend, fault, (struct row_key){.table = ROW_BASE, .a = seq}, 0);
	return fault;
}

static int watch_delete_extra(struct backend *backend, int64_t seq, enum extra_kind kind, int64_t n)
{
	int fault = PASS(delete_extra, seq, kind, n);

	note(backend, fault, (struct row_key){.table = ROW_EXTRA, .a = seq, .b = kind, .c = n}, 0);
	return fault;
}

static int watch_delete_key(struct backend *backend, struct span key)
{
	int fault = PASS(delete_key, key);

	note(backend, fault, (struct row_key){.table = ROW_KEY, .text = key}, 0);
	return fault;
}

static int watch_delete_edge(struct backend *backend, int64_t parent, int64_t child)
{
	int fault = PASS(delete_edge, parent, child);

	note(backend, fault, (struct row_key){.table = ROW_EDGE, .a = parent, .b = child}, 0);
	return fault;
}

static int watch_delete_worker(struct backend *backend, struct span id)
{
	int fault = PASS(delete_worker, id);

	note(backend, fault, (struct row_key){.table = ROW_WORKER, .text = id}, 0);
	return fault;
}

static int watch_delete_token(struct backend *backend, struct span id)
{
	int fault = PASS(delete_token, id);

	note(backend, fault, (struct row_key){.table = ROW_TOKEN, .text = id}, 0);
	return fault;
}

static int watch_delete_events(struct backend *backend, int64_t upto)
{
	int fault = PASS(delete_events, upto);

	if (fault == 0)
		book_forget_events(watch_of(backend)->ledger, upto);
	return fault;
}

/* Which of them went is the backend's choice: ask for each. */
static int watch_delete_idems(struct backend *backend, int64_t before_ms, uint32_t limit)
{
	struct rows *rows = &watch_of(backend)->ledger->rows;
	int fault = PASS(delete_idems, before_ms, limit);

	for (uint32_t i = 0; i < rows->count && fault == 0; i++) {
		const struct row *row = &rows->rows[i];
		struct row_key key = {.table = ROW_IDEM, .text = {row->text, row->text_len}};
		struct idem_row found;

		if (row->table != ROW_IDEM || !row->digest)
			continue;
		if (PASS(get_idem, (struct span){row->text, row->split - 1},
			    (struct span){row->text + row->split, row->text_len - row->split},
			    &found) == -ENOENT)
			book_put(watch_of(backend)->ledger, &key, 0);
	}
	return fault;
}

/* ---- everything else is passed on ------------------------------------------------------------- */

static int watch_get_task(struct backend *backend, int64_t seq, struct arena *arena, struct task_row *ret_row)
{
	return PASS(get_task, seq, arena, ret_row);
}

static int watch_get_body(struct backend *backend, int64_t seq, struct arena *arena, struct span *ret_body)
{
	return PASS(get_body, seq, arena, ret_body);
}

static int watch_get_extra(struct backend *backend, int64_t seq, enum extra_kind kind, int64_t n,
	struct arena *arena, struct span *ret_data)
{
	return PASS(get_extra, seq, kind, n, arena, ret_data);
}

static int watch_get_event(struct backend *backend, int64_t seq, struct arena *arena, struct span *ret_data)
{
	return PASS(get_event, seq, arena, ret_data);
}

static int watch_get_base(struct backend *backend, int64_t seq, struct arena *arena, struct span *ret_data)
{
	return PASS(get_base, seq, arena, ret_data);
}

static int watch_get_worker(
	struct backend *backend, struct span id, struct arena *arena, struct worker_row *ret_row)
{
	return PASS(get_worker, id, arena, ret_row);
}

static int watch_get_idem(
	struct backend *backend, struct span principal, struct span key, struct idem_row *ret_row)
{
	return PASS(get_idem, principal, key, ret_row);
}

static int watch_get_meta(struct backend *backend, enum meta_key key, int64_t *ret_value)
{
	return PASS(get_meta, key, ret_value);
}

static int watch_find_id(struct backend *backend, struct span id, int64_t *ret_seq)
{
	return PASS(find_id, id, ret_seq);
}

static int watch_find_key(struct backend *backend, struct span key, int64_t *ret_seq)
{
	return PASS(find_key, key, ret_seq);
}

static int watch_children(struct backend *backend, int64_t parent,
	int (*each)(void *context, const struct edge_row *row), void *context)
{
	return PASS(children, parent, each, context);
}

static int watch_parents(struct backend *backend, int64_t child,
	int (*each)(void *context, const struct edge_row *row), void *context)
{
	return PASS(parents, child, each, context);
}

static int watch_scan_names(
	struct backend *backend, int (*each)(void *context, const struct name_row *row), void *context)
{
	return PASS(scan_names, each, context);
}

static int watch_scan_live_tasks(struct backend *backend,
	int (*each)(void *context, const struct task_row *row), void *context,
	struct backend_facts *ret_facts)
{
	return PASS(scan_live_tasks, each, context, ret_facts);
}

static int watch_scan_edges(
	struct backend *backend, int (*each)(void *context, const struct edge_row *row), void *context)
{
	return PASS(scan_edges, each, context);
}

static int watch_scan_workers(
	struct backend *backend, int (*each)(void *context, const struct worker_row *row), void *context)
{
	return PASS(scan_workers, each, context);
}

static int watch_scan_tokens(
	struct backend *backend, int (*each)(void *context, const struct token *token), void *context)
{
	return PASS(scan_tokens, each, context);
}

static int watch_page_tasks(struct backend *backend, int64_t after, uint32_t limit,
	int (*each)(void *context, const struct task_row *row), void *context)
{
	return PASS(page_tasks, after, limit, each, context);
}

static int watch_page_outlines(struct backend *backend, int64_t before, uint32_t limit,
	int (*each)(void *context, const struct task_outline *outline), void *context)
{
	return PASS(page_outlines, before, limit, each, context);
}

static int watch_page_events(struct backend *backend, int64_t after, uint32_t limit,
	int (*each)(void *context, int64_t seq, struct span data), void *context)
{
	return PASS(page_events, after, limit, each, context);
}

static int watch_page_bases(struct backend *backend, int64_t after, uint32_t limit,
	int (*each)(void *context, int64_t seq, struct span data), void *context)
{
	return PASS(page_bases, after, limit, each, context);
}

static int watch_checkpoint(struct backend *backend, bool idle)
{
	return PASS(checkpoint, idle);
}

static int watch_relieve(struct backend *backend)
{
	return PASS(relieve);
}

static int watch_mark(struct backend *backend)
{
	return PASS(mark);
}

static int watch_reserve(struct backend *backend)
{
	return PASS(reserve);
}

static int watch_query(struct backend *backend, struct admin_query *question)
{
	return PASS(query, question);
}

static int watch_backup_begin(struct backend *backend, const char *path)
{
	return PASS(backup_begin, path);
}

static int watch_backup_step(struct backend *backend, uint32_t pages, uint32_t *ret_remaining)
{
	return PASS(backup_step, pages, ret_remaining);
}

static void watch_backup_end(struct backend *backend)
{
	watch_of(backend)->inner->ops->backup_end(watch_of(backend)->inner);
}

static void watch_close(struct backend *backend)
{
	struct watch *watch = watch_of(backend);

	if (!watch)
		return;
	watch->inner->ops->close(watch->inner);
	free(watch);
}

// clang-format off
#define WATCH_OPS(X) \
	X(begin) X(send) X(settle) X(rollback) X(damaged) \
	X(put_task) X(put_body) X(put_extra) X(put_event) X(put_base) X(put_name) X(put_id) X(put_key) X(put_edge) \
	X(put_worker) X(put_small) X(delete_small) X(get_small) X(page_small) X(put_token) X(put_idem) X(put_meta) \
	X(delete_task) X(delete_base) X(delete_extra) X(delete_key) X(delete_edge) X(delete_worker) X(delete_token) X(delete_events) X(delete_idems) \
	X(get_task) X(get_body) X(get_extra) X(get_event) X(get_base) X(get_worker) X(get_idem) X(get_meta) \
	X(find_id) X(find_key) X(children) X(parents) \
	X(scan_names) X(scan_live_tasks) X(scan_edges) X(scan_workers) X(scan_tokens) \
	X(page_tasks) X(page_outlines) X(page_events) X(page_bases) \
	X(checkpoint) X(mark) X(relieve) X(reserve) X(query) X(backup_begin) X(backup_step) X(backup_end) X(close)
// clang-format on

static const struct backend_ops watch_ops = {.name = "watched",
#define X(op) .op = watch_##op,
	WATCH_OPS(X)
#undef X
};

struct backend *ledger_watch(struct ledger *ledger, struct backend *inner)
{
	struct watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		abort();
	watch->base.ops = &watch_ops;
	watch->inner = inner;
	watch->ledger = ledger;
	return &watch->base;
}
