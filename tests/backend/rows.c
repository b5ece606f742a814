/*
 * Putting rows and deleting them. A row is its struct as it lies in memory, with the texts behind it.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/memory_backend.h"

static int with_text(
	struct backend *backend, const struct key *key, const void *fixed, size_t fixed_len, struct span text)
{
	char *value = malloc(fixed_len + text.len + 1);

	if (!value)
		return -ENOMEM;
	memcpy(value, fixed, fixed_len);
	if (text.len > 0)
		memcpy(value + fixed_len, text.data, text.len);
	int r = memory_put(backend, key, value, fixed_len + text.len);
	free(value);
	return r;
}

int memory_put_task(struct backend *backend, const struct task_row *row, bool fresh)
{
	struct key key = memory_key_numbered(TABLE_TASK, row->task.seq);
	struct task_row copy = *row;

	assert(fresh == !memory_find(memory_of(backend), key.bytes, key.len));
	copy.task.claim.holder = 0;
	copy.holder = (struct span){NULL, row->holder.len};
	return with_text(backend, &key, &copy, sizeof copy, row->holder);
}

void memory_task_from(const struct row *row, struct task_row *ret_row)
{
	memcpy(ret_row, row->value, sizeof *ret_row);
	ret_row->holder.data = row->value + sizeof *ret_row;
	ret_row->task.claim.holder = 0;
}

int memory_put_body(struct backend *backend, int64_t seq, struct span body)
{
	struct key key = memory_key_numbered(TABLE_BODY, seq);

	return memory_put(backend, &key, body.data, body.len);
}

struct key memory_key_extra(int64_t seq, enum extra_kind kind, int64_t n)
{
	struct key key = memory_key_numbered(TABLE_EXTRA, seq);

	memory_key_number(&key, kind);
	memory_key_number(&key, n);
	return key;
}

int memory_put_extra(struct backend *backend, int64_t seq, enum extra_kind kind, int64_t n, struct span data)
{
	struct key key = memory_key_extra(seq, kind, n);

	return memory_put(backend, &key, data.data, data.len);
}

int memory_put_event(struct backend *backend, int64_t seq, struct span data)
{
	struct key key = memory_key_numbered(TABLE_EVENT, seq);

	assert(!memory_find(memory_of(backend), key.bytes, key.len));
	return memory_put(backend, &key, data.data, data.len);
}

int memory_put_base(struct backend *backend, int64_t seq, struct span data)
{
	struct key key = memory_key_numbered(TABLE_BASE, seq);

	return memory_put(backend, &key, data.data, data.len);
}

int memory_put_name(struct backend *backend, const struct name_row *row)
{
	struct key key = memory_key_numbered(TABLE_NAME, row->id);
	struct name_row copy = *row;

	copy.text.data = NULL;
	return with_text(backend, &key, &copy, sizeof copy, row->text);
}

int memory_put_id(struct backend *backend, struct span id, int64_t seq)
{
	struct key key = memory_key_texted(TABLE_ID, id);

	return memory_put(backend, &key, &seq, sizeof seq);
}

int memory_put_key(struct backend *backend, struct span text, int64_t seq)
{
	struct key key = memory_key_texted(TABLE_KEY, text);

	return memory_put(backend, &key, &seq, sizeof seq);
}

static struct key key_edge(enum table table, int64_t first, int64_t second)
{
	struct key key = memory_key_numbered(table, first);

	memory_key_number(&key, second);
	return key;
}

int memory_put_edge(struct backend *backend, const struct edge_row *row)
{
	struct key down = key_edge(TABLE_CHILD, row->parent, row->child);
	struct key up = key_edge(TABLE_PARENT, row->child, row->parent);
	int r = memory_put(backend, &down, row, sizeof *row);

	return r < 0 ? r : memory_put(backend, &up, row, sizeof *row);
}

int memory_put_worker(struct backend *backend, const struct worker_row *row)
{
	struct key key = memory_key_texted(TABLE_WORKER, row->id);
	struct worker_row copy = *row;

	copy.worker.handle = 0;
	copy.worker.held = 0;
	copy.id = (struct span){NULL, row->id.len};
	copy.metadata = (struct span){NULL, row->metadata.len};
	return with_text(backend, &key, &copy, sizeof copy, row->metadata);
}

void memory_worker_from(const struct row *row, struct worker_row *ret_row)
{
	memcpy(ret_row, row->value, sizeof *ret_row);
	ret_row->id = (struct span){row->key + 1, row->key_len - 2};
	ret_row->metadata.data = row->value + sizeof *ret_row;
}

struct key memory_key_small(enum small_kind kind, struct span text)
{
	struct key key = memory_key_numbered(TABLE_SMALL, kind);

	memory_key_text(&key, text);
	return key;
}

int memory_put_small(struct backend *backend, enum small_kind kind, struct span text, struct span data)
{
	struct key key = memory_key_small(kind, text);

	return memory_put(backend, &key, data.data, data.len);
}

int memory_delete_small(struct backend *backend, enum small_kind kind, struct span text)
{
	struct key key = memory_key_small(kind, text);

	return memory_discard(backend, key.bytes, key.len);
}

/* The row, then its texts one behind the other; their lengths are in the row. */
int memory_put_token(struct backend *backend, const struct token *token)
{
	struct key key = memory_key_texted(TABLE_TOKEN, token->id);
	const struct span texts[] = {
		token->name, token->gate, token->queues, token->created_by, token->revoked_by};
	size_t len = sizeof *token;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		len += texts[i].len;
	char *value = malloc(len), *at = value + sizeof *token;
	if (!value)
		return -ENOMEM;
	struct token copy = *token;
	copy.id.data = copy.name.data = copy.gate.data = copy.queues.data = NULL;
	copy.created_by.data = copy.revoked_by.data = NULL;
	memcpy(value, &copy, sizeof copy);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		if (texts[i].len > 0)
			memcpy(at, texts[i].data, texts[i].len);
		at += texts[i].len;
	}
	int r = memory_put(backend, &key, value, len);
	free(value);
	return r;
}

void memory_token_from(const struct row *row, struct token *ret_token)
{
	const char *at = row->value + sizeof *ret_token;

	memcpy(ret_token, row->value, sizeof *ret_token);
	ret_token->id = (struct span){row->key + 1, row->key_len - 2};
	struct span *const texts[] = {&ret_token->name, &ret_token->gate, &ret_token->queues,
		&ret_token->created_by, &ret_token->revoked_by};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		texts[i]->data = at;
		at += texts[i]->len;
	}
}

int memory_delete_token(struct backend *backend, struct span id)
{
	struct key key = memory_key_texted(TABLE_TOKEN, id);

	return memory_discard(backend, key.bytes, key.len);
}

struct key memory_key_idem(struct span principal, struct span text)
{
	struct key key = memory_key_texted(TABLE_IDEM, principal);

	memory_key_text(&key, text);
	return key;
}

int memory_put_idem(struct backend *backend, const struct idem_row *row)
{
	struct key key = memory_key_idem(row->principal, row->key);
	struct idem_row copy = *row;

	copy.principal = copy.key = (struct span){0};
	return memory_put(backend, &key, &copy, sizeof copy);
}

int memory_put_meta(struct backend *backend, enum meta_key name, int64_t value)
{
	struct key key = memory_key_numbered(TABLE_META, name);

	return memory_put(backend, &key, &value, sizeof value);
}

/* ---- deletions ---------------------------------------------------------------------------------------- */

static struct row *first_with(struct backend *backend, const struct key *prefix)
{
	struct row *row = memory_seek(memory_of(backend), prefix->bytes, prefix->len, NULL);

	if (!row || row->key_len < prefix->len || memcmp(row->key, prefix->bytes, prefix->len) != 0)
		return NULL;
	return row;
}

int memory_delete_edge(struct backend *backend, int64_t parent, int64_t child)
{
	struct key down = key_edge(TABLE_CHILD, parent, child);
	struct key up = key_edge(TABLE_PARENT, child, parent);
	int r = memory_discard(backend, down.bytes, down.len);

	return r < 0 ? r : memory_discard(backend, up.bytes, up.len);
}

static int delete_edges(struct backend *backend, int64_t seq)
{
	struct key down = memory_key_numbered(TABLE_CHILD, seq), up = memory_key_numbered(TABLE_PARENT, seq);
	struct row *row;
	int r = 0;

	while (r == 0 && (row = first_with(backend, &down)))
		r = memory_delete_edge(backend, seq, memory_number_at(row, 9));
	while (r == 0 && (row = first_with(backend, &up)))
		r = memory_delete_edge(backend, memory_number_at(row, 9), seq);
	return r;
}

int memory_delete_task(struct backend *backend, int64_t seq)
{
	struct key task = memory_key_numbered(TABLE_TASK, seq), body = memory_key_numbered(TABLE_BODY, seq);
	struct key extras = memory_key_numbered(TABLE_EXTRA, seq), own = memory_key_extra(seq, EXTRA_ID, 0);
	struct row *row = memory_find(memory_of(backend), own.bytes, own.len);
	int r = 0;

	if (row) {
		struct key id = memory_key_texted(TABLE_ID, (struct span){row->value, row->value_len});
		r = memory_discard(backend, id.bytes, id.len);
	}
	while (r == 0 && (row = first_with(backend, &extras))) {
		struct key extra = {.len = row->key_len};
		memcpy(extra.bytes, row->key, row->key_len);
		r = memory_discard(backend, extra.bytes, extra.len);
	}
	if (r == 0)
		r = delete_edges(backend, seq);
	if (r == 0)
		r = memory_discard(backend, task.bytes, task.len);
	return r < 0 ? r : memory_discard(backend, body.bytes, body.len);
}

int memory_delete_base(struct backend *backend, int64_t seq)
{
	struct key key = memory_key_numbered(TABLE_BASE, seq);

	return memory_discard(backend, key.bytes, key.len);
}

int memory_delete_extra(struct backend *backend, int64_t seq, enum extra_kind kind, int64_t n)
{
	struct key key = memory_key_extra(seq, kind, n);

	return memory_discard(backend, key.bytes, key.len);
}

int memory_delete_key(struct backend *backend, struct span text)
{
	struct key key = memory_key_texted(TABLE_KEY, text);

	return memory_discard(backend, key.bytes, key.len);
}

int memory_delete_worker(struct backend *backend, struct span id)
{
	struct key key = memory_key_texted(TABLE_WORKER, id);

	return memory_discard(backend, key.bytes, key.len);
}

int memory_delete_events(struct backend *backend, int64_t upto)
{
	struct key events = memory_key(TABLE_EVENT);
	struct row *row;
	int r = 0;

	while (r == 0 && (row = first_with(backend, &events)) && memory_number_at(row, 1) <= upto) {
		struct key key = memory_key_numbered(TABLE_EVENT, memory_number_at(row, 1));
		r = memory_discard(backend, key.bytes, key.len);
	}
	return r;
}

int memory_delete_idems(struct backend *backend, int64_t before_ms, uint32_t limit)
{
	struct key all = memory_key(TABLE_IDEM);
	struct row *row = first_with(backend, &all), *next;
	int r = 0;

	for (uint32_t deleted = 0; r == 0 && row && row->key[0] == TABLE_IDEM && deleted < limit;
		row = next) {
		struct idem_row idem;
		next = row->next[0];
		memcpy(&idem, row->value, sizeof idem);
		if (idem.created_ms >= before_ms)
			continue;
		struct key key = {.len = row->key_len};
		memcpy(key.bytes, row->key, row->key_len);
		r = memory_discard(backend, key.bytes, key.len);
		deleted++;
	}
	return r;
}
