/*
 * Look-ups, and scans: from a key on, while a prefix holds, up to a limit.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/memory_backend.h"

static int get_bytes(
	struct backend *backend, const struct key *key, struct arena *arena, struct span *ret_data)
{
	const struct row *row = memory_find(memory_of(backend), key->bytes, key->len);

	return row ? arena_copy(arena, (struct span){row->value, row->value_len}, ret_data) : -ENOENT;
}

static int get_fixed(struct backend *backend, const struct key *key, void *ret_value, size_t len)
{
	const struct row *row = memory_find(memory_of(backend), key->bytes, key->len);

	if (!row)
		return -ENOENT;
	assert(row->value_len == len);
	memcpy(ret_value, row->value, len);
	return 0;
}

int memory_get_task(struct backend *backend, int64_t seq, struct arena *arena, struct task_row *ret_row)
{
	struct key key = memory_key_numbered(TABLE_TASK, seq);
	const struct row *row = memory_find(memory_of(backend), key.bytes, key.len);

	if (!row)
		return -ENOENT;
	memory_task_from(row, ret_row);
	return arena_copy(arena, ret_row->holder, &ret_row->holder);
}

int memory_get_body(struct backend *backend, int64_t seq, struct arena *arena, struct span *ret_body)
{
	struct key key = memory_key_numbered(TABLE_BODY, seq);

	return get_bytes(backend, &key, arena, ret_body);
}

int memory_get_extra(struct backend *backend, int64_t seq, enum extra_kind kind, int64_t n,
	struct arena *arena, struct span *ret_data)
{
	struct key key = memory_key_extra(seq, kind, n);

	return get_bytes(backend, &key, arena, ret_data);
}

int memory_get_small(struct backend *backend, enum small_kind kind, struct span text, struct arena *arena,
	struct span *ret_data)
{
	struct key key = memory_key_small(kind, text);

	return get_bytes(backend, &key, arena, ret_data);
}

int memory_get_event(struct backend *backend, int64_t seq, struct arena *arena, struct span *ret_data)
{
	struct key key = memory_key_numbered(TABLE_EVENT, seq);

	return get_bytes(backend, &key, arena, ret_data);
}

int memory_get_base(struct backend *backend, int64_t seq, struct arena *arena, struct span *ret_data)
{
	struct key key = memory_key_numbered(TABLE_BASE, seq);

	return get_bytes(backend, &key, arena, ret_data);
}

int memory_get_worker(
	struct backend *backend, struct span id, struct arena *arena, struct worker_row *ret_row)
{
	struct key key = memory_key_texted(TABLE_WORKER, id);
	const struct row *row = memory_find(memory_of(backend), key.bytes, key.len);

	if (!row)
		return -ENOENT;
	memory_worker_from(row, ret_row);
	int r = arena_copy(arena, ret_row->id, &ret_row->id);
	return r < 0 ? r : arena_copy(arena, ret_row->metadata, &ret_row->metadata);
}

int memory_get_idem(
	struct backend *backend, struct span principal, struct span text, struct idem_row *ret_row)
{
	struct key key = memory_key_idem(principal, text);
	int r = get_fixed(backend, &key, ret_row, sizeof *ret_row);

	ret_row->principal = principal;
	ret_row->key = text;
	return r;
}

int memory_get_meta(struct backend *backend, enum meta_key name, int64_t *ret_value)
{
	struct key key = memory_key_numbered(TABLE_META, name);

	return get_fixed(backend, &key, ret_value, sizeof *ret_value);
}

int memory_find_id(struct backend *backend, struct span id, int64_t *ret_seq)
{
	struct key key = memory_key_texted(TABLE_ID, id);

	return get_fixed(backend, &key, ret_seq, sizeof *ret_seq);
}

int memory_find_key(struct backend *backend, struct span text, int64_t *ret_seq)
{
	struct key key = memory_key_texted(TABLE_KEY, text);

	return get_fixed(backend, &key, ret_seq, sizeof *ret_seq);
}

/* ---- scans: from a key on, while a prefix holds, up to a limit ----------------------------------------- */

/* It goes on by key, not by pointer: a callback may put and delete rows. */
struct range {
	struct memory *memory;
	const struct key *prefix;
	struct key from;
	uint32_t left;
};

static struct range range_of(
	struct backend *backend, const struct key *prefix, const struct key *from, uint32_t limit)
{
	return (struct range){memory_of(backend), prefix, *from, limit};
}

static const struct row *range_next(struct range *range)
{
	struct row *row = memory_seek(range->memory, range->from.bytes, range->from.len, NULL);

	if (!row || range->left == 0 || row->key_len < range->prefix->len ||
		memcmp(row->key, range->prefix->bytes, range->prefix->len) != 0)
		return NULL;
	range->left--;
	range->from.len = row->key_len + 1; /* the next key is at least this one and a zero byte */
	memcpy(range->from.bytes, row->key, row->key_len);
	range->from.bytes[row->key_len] = 0;
	return row;
}

static int each_edge(struct backend *backend, const struct key *prefix,
	int (*each)(void *, const struct edge_row *), void *context)
{
	struct range range = range_of(backend, prefix, prefix, UINT32_MAX);
	const struct row *row;
	int r = 0;

	while (r == 0 && (row = range_next(&range))) {
		struct edge_row edge;
		memcpy(&edge, row->value, sizeof edge);
		r = each(context, &edge);
	}
	return r;
}

int memory_children(
	struct backend *backend, int64_t parent, int (*each)(void *, const struct edge_row *), void *context)
{
	struct key prefix = memory_key_numbered(TABLE_CHILD, parent);

	return each_edge(backend, &prefix, each, context);
}

int memory_parents(
	struct backend *backend, int64_t child, int (*each)(void *, const struct edge_row *), void *context)
{
	struct key prefix = memory_key_numbered(TABLE_PARENT, child);

	return each_edge(backend, &prefix, each, context);
}

int memory_scan_edges(struct backend *backend, int (*each)(void *, const struct edge_row *), void *context)
{
	struct key prefix = memory_key(TABLE_CHILD);

	return each_edge(backend, &prefix, each, context);
}

int memory_scan_names(struct backend *backend, int (*each)(void *, const struct name_row *), void *context)
{
	struct key prefix = memory_key(TABLE_NAME);
	struct range range = range_of(backend, &prefix, &prefix, UINT32_MAX);
	struct name_row name;
	const struct row *row;
	int r = 0;

	while (r == 0 && (row = range_next(&range))) {
		memcpy(&name, row->value, sizeof name);
		name.text.data = row->value + sizeof name;
		r = each(context, &name);
	}
	return r;
}

int64_t memory_last_number(struct backend *backend, enum table table)
{
	struct key after = memory_key((enum table)(table + 1));
	struct row *before[LEVELS];

	memory_seek(memory_of(backend), after.bytes, after.len, before);
	return before[0]->key && before[0]->key[0] == (char)table ? memory_number_at(before[0], 1) : 0;
}

static uint64_t count_shadows(struct backend *backend)
{
	struct key prefix = memory_key(TABLE_ID);
	uint64_t count = 0;

	memcpy(prefix.bytes + prefix.len, "t-", 2);
	prefix.len += 2;
	struct range range = range_of(backend, &prefix, &prefix, UINT32_MAX);
	const struct row *row;
	while ((row = range_next(&range))) {
		bool shadow = row->key_len > 4;
		for (size_t i = 3; i + 1 < row->key_len; i++)
			shadow &= strchr("0123456789abcdefghijklmnopqrstuvwxyz", row->key[i]) != NULL;
		count += shadow;
	}
	return count;
}

int memory_scan_live_tasks(struct backend *backend, int (*each)(void *, const struct task_row *),
	void *context, struct backend_facts *ret_facts)
{
	struct key prefix = memory_key(TABLE_TASK);
	struct range range = range_of(backend, &prefix, &prefix, UINT32_MAX);
	const struct row *row;
	struct task_row task;
	int r = 0;

	int64_t last_event = memory_last_number(backend, TABLE_EVENT);
	if (last_event == 0) /* every event has been folded away */
		memory_get_meta(backend, META_EVENT_BASE, &last_event);
	*ret_facts = (struct backend_facts){
		.last_event = last_event,
		.last_task = memory_last_number(backend, TABLE_TASK),
		.shadow_ids = count_shadows(backend),
	};
	while (r == 0 && (row = range_next(&range))) {
		memory_task_from(row, &task);
		if (task_state_is_final(task.task.state))
			ret_facts->finals++;
		else
			r = each(context, &task);
	}
	return r;
}

int memory_scan_workers(
	struct backend *backend, int (*each)(void *, const struct worker_row *), void *context)
{
	struct key prefix = memory_key(TABLE_WORKER);
	struct range range = range_of(backend, &prefix, &prefix, UINT32_MAX);
	const struct row *row;
	struct worker_row worker;
	int r = 0;

	while (r == 0 && (row = range_next(&range))) {
		memory_worker_from(row, &worker);
		r = each(context, &worker);
	}
	return r;
}

int memory_scan_tokens(struct backend *backend, int (*each)(void *, const struct token *), void *context)
{
	struct key prefix = memory_key(TABLE_TOKEN);
	struct range range = range_of(backend, &prefix, &prefix, UINT32_MAX);
	const struct row *row;
	struct token token;
	int r = 0;

	while (r == 0 && (row = range_next(&range))) {
		memory_token_from(row, &token);
		r = each(context, &token);
	}
	return r;
}

int memory_page_tasks(struct backend *backend, int64_t after, uint32_t limit,
	int (*each)(void *, const struct task_row *), void *context)
{
	struct key prefix = memory_key(TABLE_TASK), from = memory_key_numbered(TABLE_TASK, after + 1);
	struct range range = range_of(backend, &prefix, &from, limit);
	const struct row *row;
	struct task_row task;
	int r = 0;

	while (r == 0 && (row = range_next(&range))) {
		memory_task_from(row, &task);
		r = each(context, &task);
	}
	return r;
}

int memory_page_outlines(struct backend *backend, int64_t before, uint32_t limit,
	int (*each)(void *, const struct task_outline *), void *context)
{
	struct key key = memory_key_numbered(TABLE_TASK, before);
	struct row *at[LEVELS];
	struct task_row row;
	int r = 0;

	for (; r == 0 && limit > 0; limit--) {
		memory_seek(memory_of(backend), key.bytes, key.len, at);
		if (!at[0]->key || at[0]->key[0] != TABLE_TASK)
			break;
		memory_task_from(at[0], &row);
		key = memory_key_numbered(TABLE_TASK, row.task.seq);
		struct task_outline outline = {
			.seq = row.task.seq,
			.created_ms = row.task.created_ms,
			.queue = row.task.queue,
			.owner = row.task.owner,
			.priority = row.task.priority,
			.state = row.task.state,
			.group = row.task.group,
			.subtask_of = row.task.subtask_of,
		};
		r = each(context, &outline);
	}
	return r;
}

static int page_bytes(struct backend *backend, enum table table, int64_t after, uint32_t limit,
	int (*each)(void *, int64_t, struct span), void *context)
{
	struct key prefix = memory_key(table), from = memory_key_numbered(table, after + 1);
	struct range range = range_of(backend, &prefix, &from, limit);
	const struct row *row;
	int r = 0;

	while (r == 0 && (row = range_next(&range))) {
		/* the callback may put rows: hand it a copy that stays */
		char *copy = memory_copy_of(row->value, row->value_len);
		if (!copy)
			return -ENOMEM;
		r = each(context, memory_number_at(row, 1), (struct span){copy, row->value_len});
		free(copy);
	}
	return r;
}

int memory_page_events(struct backend *backend, int64_t after, uint32_t limit,
	int (*each)(void *, int64_t, struct span), void *context)
{
	return page_bytes(backend, TABLE_EVENT, after, limit, each, context);
}

int memory_page_bases(struct backend *backend, int64_t after, uint32_t limit,
	int (*each)(void *, int64_t, struct span), void *context)
{
	return page_bytes(backend, TABLE_BASE, after, limit, each, context);
}

int memory_delete_inbox(struct backend *backend, int64_t id)
{
	(void)backend;
	(void)id;
	return 0;
}

int memory_page_inbox(struct backend *backend, int64_t after, uint32_t limit,
	int (*each)(void *, const struct inbox_row *), void *context)
{
	(void)backend;
	(void)after;
	(void)limit;
	(void)each;
	(void)context;
	return 0;
}

int memory_page_small(struct backend *backend, enum small_kind kind, struct span after, uint32_t limit,
	int (*each)(void *, struct span, struct span), void *context)
{
	struct key prefix = memory_key_numbered(TABLE_SMALL, kind), from = memory_key_small(kind, after);
	struct range range = range_of(backend, &prefix, &from, UINT32_MAX);
	const struct row *row;
	uint32_t count = 0;
	int r = 0;

	while (r == 0 && count < limit && (row = range_next(&range))) {
		struct span key = {row->key + prefix.len, row->key_len - prefix.len - 1};
		if (span_equal(key, after))
			continue;
		count++;
		r = each(context, key, (struct span){row->value, row->value_len});
	}
	return r;
}

/* ---- what a copy reads ---- */

int memory_scan_bodies(struct backend *backend, int (*each)(void *, int64_t, struct span), void *context)
{
	return page_bytes(backend, TABLE_BODY, INT64_MIN, UINT32_MAX, each, context);
}

int memory_scan_extras(
	struct backend *backend, int (*each)(void *, int64_t, int64_t, int64_t, struct span), void *context)
{
	struct key prefix = memory_key(TABLE_EXTRA);
	struct range range = range_of(backend, &prefix, &prefix, UINT32_MAX);
	const struct row *row;
	int r = 0;

	while (r == 0 && (row = range_next(&range)))
		r = each(context, memory_number_at(row, 1), memory_number_at(row, 9),
			memory_number_at(row, 17), (struct span){row->value, row->value_len});
	return r;
}

static int each_texted(
	struct backend *backend, enum table table, int (*each)(void *, struct span, int64_t), void *context)
{
	struct key prefix = memory_key(table);
	struct range range = range_of(backend, &prefix, &prefix, UINT32_MAX);
	const struct row *row;
	int64_t seq;
	int r = 0;

	while (r == 0 && (row = range_next(&range))) {
		memcpy(&seq, row->value, sizeof seq);
		r = each(context, (struct span){row->key + 1, row->key_len - 2}, seq);
	}
	return r;
}

int memory_scan_ids(struct backend *backend, int (*each)(void *, struct span, int64_t), void *context)
{
	return each_texted(backend, TABLE_ID, each, context);
}

int memory_scan_keys(struct backend *backend, int (*each)(void *, struct span, int64_t), void *context)
{
	return each_texted(backend, TABLE_KEY, each, context);
}

int memory_scan_idems(struct backend *backend, int (*each)(void *, const struct idem_row *), void *context)
{
	struct key prefix = memory_key(TABLE_IDEM);
	struct range range = range_of(backend, &prefix, &prefix, UINT32_MAX);
	const struct row *row;
	int r = 0;

	while (r == 0 && (row = range_next(&range))) {
		struct idem_row idem;
		memcpy(&idem, row->value, sizeof idem);
		idem.principal = span_of(row->key + 1);
		idem.key = span_of(row->key + 2 + idem.principal.len);
		r = each(context, &idem);
	}
	return r;
}
