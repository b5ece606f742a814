/*
 * Are these the rows? What a backend can list is listed, and nothing may be missing or too many; the rest is
 * looked up, also what must no longer be there.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/arena.h"
#include "powerloss/ledger_book.h"

enum {
	PAGE_ROWS = 500,
	ARENA_BYTES = 64 << 20,
};

struct match {
	struct rows *rows;
	struct backend *backend;
	struct arena arena;
	uint32_t seen[ROW_TABLE_COUNT];
	int64_t last_key; /* of a page */
	char *complaint;
	size_t len;
};

static int differs(struct match *match, const struct row *row, const char *how)
{
	snprintf(match->complaint, match->len, "%s (%" PRId64 ", %" PRId64 ", %" PRId64 ") '%.*s' %s",
		row_table_name(row->table), row->a, row->b, row->c, (int)row->text_len,
		row->text ? row->text : "", how);
	return -EPROTO;
}

static int match_row(struct match *match, const struct row_key *key, uint64_t digest)
{
	const struct row *row = &match->rows->rows[rows_at(match->rows, key)];

	match->seen[key->table]++;
	match->last_key = key->a;
	if (row->digest == digest)
		return 0;
	return differs(match, row, row->digest ? "is another one" : "should not be there");
}

/* ---- listed ----------------------------------------------------------------------------------- */

static int match_task(void *context, const struct task_row *row)
{
	return match_row(context, &(struct row_key){.table = ROW_TASK, .a = row->task.seq}, digest_task(row));
}

static int match_event(void *context, int64_t seq, struct span data)
{
	return match_row(context, &(struct row_key){.table = ROW_EVENT, .a = seq}, digest_bytes(data));
}

static int match_base(void *context, int64_t seq, struct span data)
{
	return match_row(context, &(struct row_key){.table = ROW_BASE, .a = seq}, digest_bytes(data));
}

static int match_name(void *context, const struct name_row *row)
{
	return match_row(context, &(struct row_key){.table = ROW_NAME, .a = row->id}, digest_name(row));
}

static int match_edge(void *context, const struct edge_row *row)
{
	return match_row(context, &(struct row_key){.table = ROW_EDGE, .a = row->parent, .b = row->child},
		digest_edge(row));
}

static int match_worker(void *context, const struct worker_row *row)
{
	return match_row(
		context, &(struct row_key){.table = ROW_WORKER, .text = row->id}, digest_worker(row));
}

struct small_match {
	void *match;
	enum small_kind kind;
};

static int match_small(void *context, struct span key, struct span data)
{
	const struct small_match *small = context;

	return match_row(small->match, &(struct row_key){.table = ROW_SMALL, .a = small->kind, .text = key},
		digest_bytes(data));
}

static int match_token(void *context, const struct token *token)
{
	return match_row(
		context, &(struct row_key){.table = ROW_TOKEN, .text = token->id}, digest_token(token));
}

/* Nothing may be missing. */
static int match_count(struct match *match, enum row_table table)
{
	if (match->seen[table] == match->rows->live[table])
		return 0;
	snprintf(match->complaint, match->len, "%u rows of %s instead of %u", match->seen[table],
		row_table_name(table), match->rows->live[table]);
	return -EPROTO;
}

static int match_pages(struct match *match, enum row_table table)
{
	const struct backend_ops *ops = match->backend->ops;
	uint32_t before;
	int fault = 0;

	match->last_key = 0;
	do {
		int64_t after = match->last_key;

		before = match->seen[table];
		if (table == ROW_TASK)
			fault = ops->page_tasks(match->backend, after, PAGE_ROWS, match_task, match);
		else if (table == ROW_EVENT)
			fault = ops->page_events(match->backend, after, PAGE_ROWS, match_event, match);
		else
			fault = ops->page_bases(match->backend, after, PAGE_ROWS, match_base, match);
	} while (fault == 0 && match->seen[table] == before + PAGE_ROWS);
	return fault ? fault : match_count(match, table);
}

static int match_counts(struct match *match)
{
	int fault = 0;

	for (int table = 1; table < ROW_TABLE_COUNT && fault == 0; table++)
		fault = match_count(match, (enum row_table)table);
	return fault;
}

static int match_listed(struct match *match)
{
	const struct backend_ops *ops = match->backend->ops;
	int fault = match_pages(match, ROW_EVENT);

	if (!fault)
		fault = match_pages(match, ROW_TASK);
	if (!fault)
		fault = match_pages(match, ROW_BASE);
	if (!fault)
		fault = ops->scan_names(match->backend, match_name, match);
	if (!fault)
		fault = ops->scan_edges(match->backend, match_edge, match);
	if (!fault)
		fault = ops->scan_workers(match->backend, match_worker, match);
	for (int kind = SMALL_QUEUE; !fault && kind < SMALL_KIND_END; kind++)
		fault = ops->page_small(match->backend, (enum small_kind)kind, (struct span){0}, UINT32_MAX,
			match_small, &(struct small_match){match, (enum small_kind)kind});
	if (!fault)
		fault = ops->scan_tokens(match->backend, match_token, match);
	return fault;
}

/* ---- looked up -------------------------------------------------------------------------------- */

static int look_up_bytes(struct match *match, const struct row *row, uint64_t *ret_digest)
{
	const struct backend_ops *ops = match->backend->ops;
	struct span data = {0};
	int fault;

	arena_reset(&match->arena);
	if (row->table == ROW_BODY)
		fault = ops->get_body(match->backend, row->a, &match->arena, &data);
	else
		fault = ops->get_extra(
			match->backend, row->a, (enum extra_kind)row->b, row->c, &match->arena, &data);
	*ret_digest = digest_bytes(data);
	return fault;
}

static int look_up_number(struct match *match, const struct row *row, uint64_t *ret_digest)
{
	const struct backend_ops *ops = match->backend->ops;
	struct span text = {row->text, row->text_len};
	int64_t value = 0;
	int fault;

	if (row->table == ROW_ID)
		fault = ops->find_id(match->backend, text, &value);
	else if (row->table == ROW_KEY)
		fault = ops->find_key(match->backend, text, &value);
	else
		fault = ops->get_meta(match->backend, (enum meta_key)row->a, &value);
	*ret_digest = digest_number(value);
	return fault;
}

static int look_up_idem(struct match *match, const struct row *row, uint64_t *ret_digest)
{
	struct span principal = {row->text, row->split - 1};
	struct span key = {row->text + row->split, row->text_len - row->split};
	struct idem_row found = {0};
	int fault = match->backend->ops->get_idem(match->backend, principal, key, &found);

	*ret_digest = fault ? 0 : digest_idem(&found);
	return fault;
}

static int look_up(struct match *match, const struct row *row)
{
	uint64_t digest = 0;
	int fault;

	if (row->table == ROW_BODY || row->table == ROW_EXTRA)
		fault = look_up_bytes(match, row, &digest);
	else if (row->table == ROW_IDEM)
		fault = look_up_idem(match, row, &digest);
	else
		fault = look_up_number(match, row, &digest);
	if (fault == -ENOENT)
		digest = 0;
	else if (fault)
		return fault;
	match->seen[row->table] += digest != 0;
	if (digest == row->digest)
		return 0;
	return differs(match, row,
		!row->digest     ? "should not be there"
			: digest ? "is another one"
				 : "is missing");
}

static bool is_looked_up(enum row_table table)
{
	return table == ROW_BODY || table == ROW_EXTRA || table == ROW_ID || table == ROW_KEY ||
		table == ROW_IDEM || table == ROW_META;
}

int book_match(const struct ledger *ledger, struct backend *backend, char *complaint, size_t len)
{
	struct match match = {
		.rows = (struct rows *)&ledger->rows, .backend = backend, .complaint = complaint, .len = len};
	int fault;

	arena_init(&match.arena, ARENA_BYTES);
	complaint[0] = '\0';
	fault = match_listed(&match);
	for (uint32_t i = ledger->rows.count; i > 0 && fault == 0; i--)
		if (is_looked_up(match.rows->rows[i - 1].table))
			fault = look_up(&match, &match.rows->rows[i - 1]);
	if (fault == 0)
		fault = match_counts(&match);
	arena_done(&match.arena);
	return fault;
}
