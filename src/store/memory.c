/*
 * The memory backend: one ordered list of rows, keyed by table and key, with a log that undoes the open
 * transaction.
 *
 * A skip list whose heights come from a hash of the key: the same history gives the same list, so a
 * simulation can be replayed from its seed.
 */
#include "store/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum {
	LEVELS = 16,
	KEY_MAX = 600,
	RELIEF_COMMITS = 4, /* what the ballast is good for */
};

enum table {
	TABLE_META = 1,
	TABLE_NAME,
	TABLE_TASK,
	TABLE_BODY,
	TABLE_EXTRA,
	TABLE_EVENT,
	TABLE_BASE,
	TABLE_ID,
	TABLE_KEY,
	TABLE_CHILD,  /* parent, child */
	TABLE_PARENT, /* child, parent */
	TABLE_WORKER,
	TABLE_SLOT,
	TABLE_QUEUE,
	TABLE_IDEM,
	TABLE_TOKEN,
	TABLE_ASSIGNMENT,
};

struct row {
	char *key, *value;
	size_t key_len, value_len;
	int height;
	struct row *next[];
};

struct undo {
	char *key, *value; /* value NULL: there was none */
	size_t key_len, value_len;
};

struct memory {
	struct backend backend;
	struct row *head;
	struct undo *undo;
	size_t undo_count, undo_cap;
	bool open, full, broken;
	int fault;
	int relief;
};

static struct memory *of(struct backend *backend)
{
	return (struct memory *)backend;
}

/* ---- keys ------------------------------------------------------------------------------------------- */

struct key {
	char bytes[KEY_MAX];
	size_t len;
};

static struct key key_of(enum table table)
{
	struct key key = {.len = 1};

	key.bytes[0] = (char)table;
	return key;
}

static void key_number(struct key *key, int64_t number)
{
	uint64_t bits = (uint64_t)number ^ UINT64_C(1) << 63; /* so that bytes sort as numbers do */

	for (int shift = 56; shift >= 0; shift -= 8)
		key->bytes[key->len++] = (char)(bits >> shift & 0xff);
}

static void key_text(struct key *key, struct span text)
{
	assert(key->len + text.len + 1 < KEY_MAX);
	if (text.len > 0)
		memcpy(key->bytes + key->len, text.data, text.len);
	key->len += text.len;
	key->bytes[key->len++] = 0;
}

static int64_t number_at(const struct row *row, size_t at)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < 8; i++)
		bits = bits << 8 | (unsigned char)row->key[at + i];
	return (int64_t)(bits ^ UINT64_C(1) << 63);
}

static struct key numbered(enum table table, int64_t number)
{
	struct key key = key_of(table);

	key_number(&key, number);
	return key;
}

static struct key texted(enum table table, struct span text)
{
	struct key key = key_of(table);

	key_text(&key, text);
	return key;
}

static int compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return order ? order : (a_len > b_len) - (a_len < b_len);
}

/* ---- the list --------------------------------------------------------------------------------------- */

/* The first row not before the key; `ret_before` gets its predecessor on each level. */
static struct row *seek(const struct memory *memory, const char *key, size_t len, struct row **ret_before)
{
	struct row *at = memory->head;

	for (int level = LEVELS - 1; level >= 0; level--) {
		while (at->next[level] &&
			compare(at->next[level]->key, at->next[level]->key_len, key, len) < 0)
			at = at->next[level];
		if (ret_before)
			ret_before[level] = at;
	}
	return at->next[0];
}

static struct row *find(const struct memory *memory, const char *key, size_t len)
{
	struct row *row = seek(memory, key, len, NULL);

	return row && compare(row->key, row->key_len, key, len) == 0 ? row : NULL;
}

static char *copy_of(const void *data, size_t len)
{
	char *copy = malloc(len + 1);

	if (copy && len > 0)
		memcpy(copy, data, len);
	return copy;
}

static int height_of(const char *key, size_t len)
{
	static const struct hash_key seed = {1, 2};
	uint64_t bits = hash_bytes(&seed, key, len);
	int height = 1;

	while (height < LEVELS && (bits & 3) == 0) {
		height++;
		bits >>= 2;
	}
	return height;
}

static int list_set(
	struct memory *memory, const char *key, size_t key_len, const void *value, size_t value_len)
{
	struct row *before[LEVELS];
	struct row *row = seek(memory, key, key_len, before);
	char *copy = copy_of(value, value_len);

	if (!copy)
		return -ENOMEM;
	if (!row || compare(row->key, row->key_len, key, key_len) != 0) {
		int height = height_of(key, key_len);
		row = calloc(1, sizeof *row + (size_t)height * sizeof *row->next);
		if (!row || !(row->key = copy_of(key, key_len))) {
			free(row);
			free(copy);
			return -ENOMEM;
		}
		row->key_len = key_len;
		row->height = height;
		for (int level = 0; level < height; level++) {
			row->next[level] = before[level]->next[level];
			before[level]->next[level] = row;
		}
	}
	free(row->value);
	row->value = copy;
	row->value_len = value_len;
	return 0;
}

static void list_remove(struct memory *memory, const char *key, size_t key_len)
{
	struct row *before[LEVELS];
	struct row *row = seek(memory, key, key_len, before);

	if (!row || compare(row->key, row->key_len, key, key_len) != 0)
		return;
	for (int level = 0; level < row->height; level++)
		before[level]->next[level] = row->next[level];
	free(row->key);
	free(row->value);
	free(row);
}

static void list_free(struct memory *memory)
{
	for (struct row *row = memory->head, *next; row; row = next) {
		next = row->next[0];
		free(row->key);
		free(row->value);
		free(row);
	}
}

/* ---- transactions ------------------------------------------------------------------------------------ */

static int remember(struct memory *memory, const char *key, size_t len)
{
	const struct row *row = find(memory, key, len);

	if (memory->undo_count == memory->undo_cap) {
		size_t cap = memory->undo_cap ? memory->undo_cap * 2 : 64;
		struct undo *grown = realloc(memory->undo, cap * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		memory->undo = grown;
		memory->undo_cap = cap;
	}
	struct undo undo = {.key = copy_of(key, len), .key_len = len};
	if (row) {
		undo.value = copy_of(row->value, row->value_len);
		undo.value_len = row->value_len;
	}
	if (!undo.key || (row && !undo.value)) {
		free(undo.key);
		free(undo.value);
		return -ENOMEM;
	}
	memory->undo[memory->undo_count++] = undo;
	return 0;
}

static int put(struct backend *backend, const struct key *key, const void *value, size_t len)
{
	struct memory *memory = of(backend);

	assert(memory->open);
	int r = remember(memory, key->bytes, key->len);
	return r < 0 ? r : list_set(memory, key->bytes, key->len, value, len);
}

static int discard(struct backend *backend, const char *key, size_t len)
{
	struct memory *memory = of(backend);

	assert(memory->open);
	if (!find(memory, key, len))
		return 0;
	int r = remember(memory, key, len);
	if (r == 0)
		list_remove(memory, key, len);
	return r;
}

static void forget_undo(struct memory *memory)
{
	for (size_t i = 0; i < memory->undo_count; i++) {
		free(memory->undo[i].key);
		free(memory->undo[i].value);
	}
	memory->undo_count = 0;
}

static int memory_begin(struct backend *backend)
{
	struct memory *memory = of(backend);

	assert(!memory->open);
	memory->open = true;
	return 0;
}

static void memory_rollback(struct backend *backend)
{
	struct memory *memory = of(backend);

	while (memory->undo_count > 0) {
		struct undo *undo = &memory->undo[--memory->undo_count];
		if (!undo->value)
			list_remove(memory, undo->key, undo->key_len);
		else if (list_set(memory, undo->key, undo->key_len, undo->value, undo->value_len) < 0)
			abort();
		free(undo->key);
		free(undo->value);
	}
	memory->open = false;
}

static int memory_commit(struct backend *backend)
{
	struct memory *memory = of(backend);

	assert(memory->open);
	if (memory->fault != 0)
		return memory->fault;
	if (memory->full) {
		if (memory->relief == 0)
			return -ENOSPC;
		memory->relief--;
	}
	forget_undo(memory);
	memory->open = false;
	return 0;
}

/* ---- rows ------------------------------------------------------------------------------------------- */

static int with_text(
	struct backend *backend, const struct key *key, const void *fixed, size_t fixed_len, struct span text)
{
	char *value = malloc(fixed_len + text.len + 1);

	if (!value)
		return -ENOMEM;
	memcpy(value, fixed, fixed_len);
	if (text.len > 0)
		memcpy(value + fixed_len, text.data, text.len);
	int r = put(backend, key, value, fixed_len + text.len);
	free(value);
	return r;
}

static int put_task(struct backend *backend, const struct task_row *row, bool fresh)
{
	struct key key = numbered(TABLE_TASK, row->task.seq);
	struct task_row copy = *row;

	assert(fresh == !find(of(backend), key.bytes, key.len));
	copy.task.claim.holder = 0;
	copy.holder = (struct span){NULL, row->holder.len};
	return with_text(backend, &key, &copy, sizeof copy, row->holder);
}

static void task_from(const struct row *row, struct task_row *ret_row)
{
	memcpy(ret_row, row->value, sizeof *ret_row);
	ret_row->holder.data = row->value + sizeof *ret_row;
	ret_row->task.claim.holder = 0;
}

static int put_body(struct backend *backend, int64_t seq, struct span body)
{
	struct key key = numbered(TABLE_BODY, seq);

	return put(backend, &key, body.data, body.len);
}

static struct key extra_key(int64_t seq, enum extra_kind kind, int64_t n)
{
	struct key key = numbered(TABLE_EXTRA, seq);

	key_number(&key, kind);
	key_number(&key, n);
	return key;
}

static int put_extra(struct backend *backend, int64_t seq, enum extra_kind kind, int64_t n, struct span data)
{
	struct key key = extra_key(seq, kind, n);

	return put(backend, &key, data.data, data.len);
}

static int put_event(struct backend *backend, int64_t seq, struct span data)
{
	struct key key = numbered(TABLE_EVENT, seq);

	assert(!find(of(backend), key.bytes, key.len));
	return put(backend, &key, data.data, data.len);
}

static int put_base(struct backend *backend, int64_t seq, struct span data)
{
	struct key key = numbered(TABLE_BASE, seq);

	return put(backend, &key, data.data, data.len);
}

static int put_name(struct backend *backend, const struct name_row *row)
{
	struct key key = numbered(TABLE_NAME, row->id);
	struct name_row copy = *row;

	copy.text.data = NULL;
	return with_text(backend, &key, &copy, sizeof copy, row->text);
}

static int put_id(struct backend *backend, struct span id, int64_t seq)
{
	struct key key = texted(TABLE_ID, id);

	return put(backend, &key, &seq, sizeof seq);
}

static int put_key(struct backend *backend, struct span text, int64_t seq)
{
	struct key key = texted(TABLE_KEY, text);

	return put(backend, &key, &seq, sizeof seq);
}

static struct key edge_key(enum table table, int64_t first, int64_t second)
{
	struct key key = numbered(table, first);

	key_number(&key, second);
	return key;
}

static int put_edge(struct backend *backend, const struct edge_row *row)
{
	struct key down = edge_key(TABLE_CHILD, row->parent, row->child);
	struct key up = edge_key(TABLE_PARENT, row->child, row->parent);
	int r = put(backend, &down, row, sizeof *row);

	return r < 0 ? r : put(backend, &up, row, sizeof *row);
}

static int put_worker(struct backend *backend, const struct worker_row *row)
{
	struct key key = texted(TABLE_WORKER, row->id);
	struct worker_row copy = *row;

	copy.worker.handle = 0;
	copy.worker.held = 0;
	copy.id = (struct span){NULL, row->id.len};
	copy.metadata = (struct span){NULL, row->metadata.len};
	return with_text(backend, &key, &copy, sizeof copy, row->metadata);
}

static void worker_from(const struct row *row, struct worker_row *ret_row)
{
	memcpy(ret_row, row->value, sizeof *ret_row);
	ret_row->id = (struct span){row->key + 1, row->key_len - 2};
	ret_row->metadata.data = row->value + sizeof *ret_row;
}

static int put_slot(struct backend *backend, const struct slot_row *row)
{
	struct key key = numbered(TABLE_SLOT, row->name);

	return put(backend, &key, row, sizeof *row);
}

static int put_queue(struct backend *backend, const struct queue_row *row)
{
	struct key key = numbered(TABLE_QUEUE, row->name);

	return put(backend, &key, row, sizeof *row);
}

static int put_assignment(struct backend *backend, uint32_t slot, struct span queues)
{
	struct key key = numbered(TABLE_ASSIGNMENT, slot);

	return put(backend, &key, queues.data, queues.len);
}

/* The row, then its texts one behind the other; their lengths are in the row. */
static int put_token(struct backend *backend, const struct token *token)
{
	struct key key = texted(TABLE_TOKEN, token->id);
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
	int r = put(backend, &key, value, len);
	free(value);
	return r;
}

static void token_from(const struct row *row, struct token *ret_token)
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

static int delete_token(struct backend *backend, struct span id)
{
	struct key key = texted(TABLE_TOKEN, id);

	return discard(backend, key.bytes, key.len);
}

static struct key idem_key(struct span principal, struct span text)
{
	struct key key = texted(TABLE_IDEM, principal);

	key_text(&key, text);
	return key;
}

static int put_idem(struct backend *backend, const struct idem_row *row)
{
	struct key key = idem_key(row->principal, row->key);
	struct idem_row copy = *row;

	copy.principal = copy.key = (struct span){0};
	return put(backend, &key, &copy, sizeof copy);
}

static int put_meta(struct backend *backend, enum meta_key name, int64_t value)
{
	struct key key = numbered(TABLE_META, name);

	return put(backend, &key, &value, sizeof value);
}

/* ---- deletions ---------------------------------------------------------------------------------------- */

static struct row *first_with(struct backend *backend, const struct key *prefix)
{
	struct row *row = seek(of(backend), prefix->bytes, prefix->len, NULL);

	if (!row || row->key_len < prefix->len || memcmp(row->key, prefix->bytes, prefix->len) != 0)
		return NULL;
	return row;
}

static int delete_edge(struct backend *backend, int64_t parent, int64_t child)
{
	struct key down = edge_key(TABLE_CHILD, parent, child);
	struct key up = edge_key(TABLE_PARENT, child, parent);
	int r = discard(backend, down.bytes, down.len);

	return r < 0 ? r : discard(backend, up.bytes, up.len);
}

static int delete_edges(struct backend *backend, int64_t seq)
{
	struct key down = numbered(TABLE_CHILD, seq), up = numbered(TABLE_PARENT, seq);
	struct row *row;
	int r = 0;

	while (r == 0 && (row = first_with(backend, &down)))
		r = delete_edge(backend, seq, number_at(row, 9));
	while (r == 0 && (row = first_with(backend, &up)))
		r = delete_edge(backend, number_at(row, 9), seq);
	return r;
}

static int delete_task(struct backend *backend, int64_t seq)
{
	struct key task = numbered(TABLE_TASK, seq), body = numbered(TABLE_BODY, seq);
	struct key extras = numbered(TABLE_EXTRA, seq), own = extra_key(seq, EXTRA_ID, 0);
	struct row *row = find(of(backend), own.bytes, own.len);
	int r = 0;

	if (row) {
		struct key id = texted(TABLE_ID, (struct span){row->value, row->value_len});
		r = discard(backend, id.bytes, id.len);
	}
	while (r == 0 && (row = first_with(backend, &extras))) {
		struct key extra = {.len = row->key_len};
		memcpy(extra.bytes, row->key, row->key_len);
		r = discard(backend, extra.bytes, extra.len);
	}
	if (r == 0)
		r = delete_edges(backend, seq);
	if (r == 0)
		r = discard(backend, task.bytes, task.len);
	return r < 0 ? r : discard(backend, body.bytes, body.len);
}

static int delete_base(struct backend *backend, int64_t seq)
{
	struct key key = numbered(TABLE_BASE, seq);

	return discard(backend, key.bytes, key.len);
}

static int delete_extra(struct backend *backend, int64_t seq, enum extra_kind kind, int64_t n)
{
	struct key key = extra_key(seq, kind, n);

	return discard(backend, key.bytes, key.len);
}

static int delete_key(struct backend *backend, struct span text)
{
	struct key key = texted(TABLE_KEY, text);

	return discard(backend, key.bytes, key.len);
}

static int delete_worker(struct backend *backend, struct span id)
{
	struct key key = texted(TABLE_WORKER, id);

	return discard(backend, key.bytes, key.len);
}

static int delete_events(struct backend *backend, int64_t upto)
{
	struct key events = key_of(TABLE_EVENT);
	struct row *row;
	int r = 0;

	while (r == 0 && (row = first_with(backend, &events)) && number_at(row, 1) <= upto) {
		struct key key = numbered(TABLE_EVENT, number_at(row, 1));
		r = discard(backend, key.bytes, key.len);
	}
	return r;
}

static int delete_idems(struct backend *backend, int64_t before_ms, uint32_t limit)
{
	struct key all = key_of(TABLE_IDEM);
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
		r = discard(backend, key.bytes, key.len);
		deleted++;
	}
	return r;
}

/* ---- look-ups ----------------------------------------------------------------------------------------- */

static int get_bytes(
	struct backend *backend, const struct key *key, struct arena *arena, struct span *ret_data)
{
	const struct row *row = find(of(backend), key->bytes, key->len);

	return row ? arena_copy(arena, (struct span){row->value, row->value_len}, ret_data) : -ENOENT;
}

static int get_fixed(struct backend *backend, const struct key *key, void *ret_value, size_t len)
{
	const struct row *row = find(of(backend), key->bytes, key->len);

	if (!row)
		return -ENOENT;
	assert(row->value_len == len);
	memcpy(ret_value, row->value, len);
	return 0;
}

static int get_task(struct backend *backend, int64_t seq, struct arena *arena, struct task_row *ret_row)
{
	struct key key = numbered(TABLE_TASK, seq);
	const struct row *row = find(of(backend), key.bytes, key.len);

	if (!row)
		return -ENOENT;
	task_from(row, ret_row);
	return arena_copy(arena, ret_row->holder, &ret_row->holder);
}

static int get_body(struct backend *backend, int64_t seq, struct arena *arena, struct span *ret_body)
{
	struct key key = numbered(TABLE_BODY, seq);

	return get_bytes(backend, &key, arena, ret_body);
}

static int get_extra(struct backend *backend, int64_t seq, enum extra_kind kind, int64_t n,
	struct arena *arena, struct span *ret_data)
{
	struct key key = extra_key(seq, kind, n);

	return get_bytes(backend, &key, arena, ret_data);
}

static int get_assignment(
	struct backend *backend, uint32_t slot, struct arena *arena, struct span *ret_queues)
{
	struct key key = numbered(TABLE_ASSIGNMENT, slot);

	return get_bytes(backend, &key, arena, ret_queues);
}

static int get_event(struct backend *backend, int64_t seq, struct arena *arena, struct span *ret_data)
{
	struct key key = numbered(TABLE_EVENT, seq);

	return get_bytes(backend, &key, arena, ret_data);
}

static int get_base(struct backend *backend, int64_t seq, struct arena *arena, struct span *ret_data)
{
	struct key key = numbered(TABLE_BASE, seq);

	return get_bytes(backend, &key, arena, ret_data);
}

static int get_worker(
	struct backend *backend, struct span id, struct arena *arena, struct worker_row *ret_row)
{
	struct key key = texted(TABLE_WORKER, id);
	const struct row *row = find(of(backend), key.bytes, key.len);

	if (!row)
		return -ENOENT;
	worker_from(row, ret_row);
	int r = arena_copy(arena, ret_row->id, &ret_row->id);
	return r < 0 ? r : arena_copy(arena, ret_row->metadata, &ret_row->metadata);
}

static int get_idem(
	struct backend *backend, struct span principal, struct span text, struct idem_row *ret_row)
{
	struct key key = idem_key(principal, text);
	int r = get_fixed(backend, &key, ret_row, sizeof *ret_row);

	ret_row->principal = principal;
	ret_row->key = text;
	return r;
}

static int get_meta(struct backend *backend, enum meta_key name, int64_t *ret_value)
{
	struct key key = numbered(TABLE_META, name);

	return get_fixed(backend, &key, ret_value, sizeof *ret_value);
}

static int find_id(struct backend *backend, struct span id, int64_t *ret_seq)
{
	struct key key = texted(TABLE_ID, id);

	return get_fixed(backend, &key, ret_seq, sizeof *ret_seq);
}

static int find_key(struct backend *backend, struct span text, int64_t *ret_seq)
{
	struct key key = texted(TABLE_KEY, text);

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
	return (struct range){of(backend), prefix, *from, limit};
}

static const struct row *range_next(struct range *range)
{
	struct row *row = seek(range->memory, range->from.bytes, range->from.len, NULL);

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

static int children(
	struct backend *backend, int64_t parent, int (*each)(void *, const struct edge_row *), void *context)
{
	struct key prefix = numbered(TABLE_CHILD, parent);

	return each_edge(backend, &prefix, each, context);
}

static int parents(
	struct backend *backend, int64_t child, int (*each)(void *, const struct edge_row *), void *context)
{
	struct key prefix = numbered(TABLE_PARENT, child);

	return each_edge(backend, &prefix, each, context);
}

static int scan_edges(struct backend *backend, int (*each)(void *, const struct edge_row *), void *context)
{
	struct key prefix = key_of(TABLE_CHILD);

	return each_edge(backend, &prefix, each, context);
}

static int scan_names(struct backend *backend, int (*each)(void *, const struct name_row *), void *context)
{
	struct key prefix = key_of(TABLE_NAME);
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

static int64_t last_number(struct backend *backend, enum table table)
{
	struct key after = key_of((enum table)(table + 1));
	struct row *before[LEVELS];

	seek(of(backend), after.bytes, after.len, before);
	return before[0]->key && before[0]->key[0] == (char)table ? number_at(before[0], 1) : 0;
}

static uint64_t count_shadows(struct backend *backend)
{
	struct key prefix = key_of(TABLE_ID);
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

static int scan_live_tasks(struct backend *backend, int (*each)(void *, const struct task_row *),
	void *context, struct backend_facts *ret_facts)
{
	struct key prefix = key_of(TABLE_TASK);
	struct range range = range_of(backend, &prefix, &prefix, UINT32_MAX);
	const struct row *row;
	struct task_row task;
	int r = 0;

	int64_t last_event = last_number(backend, TABLE_EVENT);
	if (last_event == 0) /* every event has been folded away */
		get_meta(backend, META_EVENT_BASE, &last_event);
	*ret_facts = (struct backend_facts){
		.last_event = last_event,
		.last_task = last_number(backend, TABLE_TASK),
		.shadow_ids = count_shadows(backend),
	};
	while (r == 0 && (row = range_next(&range))) {
		task_from(row, &task);
		if (task_state_is_final(task.task.state))
			ret_facts->finals++;
		else
			r = each(context, &task);
	}
	return r;
}

static int scan_workers(
	struct backend *backend, int (*each)(void *, const struct worker_row *), void *context)
{
	struct key prefix = key_of(TABLE_WORKER);
	struct range range = range_of(backend, &prefix, &prefix, UINT32_MAX);
	const struct row *row;
	struct worker_row worker;
	int r = 0;

	while (r == 0 && (row = range_next(&range))) {
		worker_from(row, &worker);
		r = each(context, &worker);
	}
	return r;
}

static int scan_slots(struct backend *backend, int (*each)(void *, const struct slot_row *), void *context)
{
	struct key prefix = key_of(TABLE_SLOT);
	struct range range = range_of(backend, &prefix, &prefix, UINT32_MAX);
	const struct row *row;
	int r = 0;

	while (r == 0 && (row = range_next(&range))) {
		struct slot_row slot;
		memcpy(&slot, row->value, sizeof slot);
		r = each(context, &slot);
	}
	return r;
}

static int scan_queues(struct backend *backend, int (*each)(void *, const struct queue_row *), void *context)
{
	struct key prefix = key_of(TABLE_QUEUE);
	struct range range = range_of(backend, &prefix, &prefix, UINT32_MAX);
	const struct row *row;
	int r = 0;

	while (r == 0 && (row = range_next(&range))) {
		struct queue_row queue;
		memcpy(&queue, row->value, sizeof queue);
		r = each(context, &queue);
	}
	return r;
}

static int scan_tokens(struct backend *backend, int (*each)(void *, const struct token *), void *context)
{
	struct key prefix = key_of(TABLE_TOKEN);
	struct range range = range_of(backend, &prefix, &prefix, UINT32_MAX);
	const struct row *row;
	struct token token;
	int r = 0;

	while (r == 0 && (row = range_next(&range))) {
		token_from(row, &token);
		r = each(context, &token);
	}
	return r;
}

static int page_tasks(struct backend *backend, int64_t after, uint32_t limit,
	int (*each)(void *, const struct task_row *), void *context)
{
	struct key prefix = key_of(TABLE_TASK), from = numbered(TABLE_TASK, after + 1);
	struct range range = range_of(backend, &prefix, &from, limit);
	const struct row *row;
	struct task_row task;
	int r = 0;

	while (r == 0 && (row = range_next(&range))) {
		task_from(row, &task);
		r = each(context, &task);
	}
	return r;
}

static int page_outlines(struct backend *backend, int64_t before, uint32_t limit,
	int (*each)(void *, const struct task_outline *), void *context)
{
	struct key key = numbered(TABLE_TASK, before);
	struct row *at[LEVELS];
	struct task_row row;
	int r = 0;

	for (; r == 0 && limit > 0; limit--) {
		seek(of(backend), key.bytes, key.len, at);
		if (!at[0]->key || at[0]->key[0] != TABLE_TASK)
			break;
		task_from(at[0], &row);
		key = numbered(TABLE_TASK, row.task.seq);
		struct task_outline outline = {
			.seq = row.task.seq,
			.created_ms = row.task.created_ms,
			.queue = row.task.queue,
			.owner = row.task.owner,
			.priority = row.task.priority,
			.state = row.task.state,
		};
		r = each(context, &outline);
	}
	return r;
}

static int page_bytes(struct backend *backend, enum table table, int64_t after, uint32_t limit,
	int (*each)(void *, int64_t, struct span), void *context)
{
	struct key prefix = key_of(table), from = numbered(table, after + 1);
	struct range range = range_of(backend, &prefix, &from, limit);
	const struct row *row;
	int r = 0;

	while (r == 0 && (row = range_next(&range))) {
		/* the callback may put rows: hand it a copy that stays */
		char *copy = copy_of(row->value, row->value_len);
		if (!copy)
			return -ENOMEM;
		r = each(context, number_at(row, 1), (struct span){copy, row->value_len});
		free(copy);
	}
	return r;
}

static int page_events(struct backend *backend, int64_t after, uint32_t limit,
	int (*each)(void *, int64_t, struct span), void *context)
{
	return page_bytes(backend, TABLE_EVENT, after, limit, each, context);
}

static int page_bases(struct backend *backend, int64_t after, uint32_t limit,
	int (*each)(void *, int64_t, struct span), void *context)
{
	return page_bytes(backend, TABLE_BASE, after, limit, each, context);
}

static int page_assignments(struct backend *backend, int64_t after, uint32_t limit,
	int (*each)(void *, int64_t, struct span), void *context)
{
	return page_bytes(backend, TABLE_ASSIGNMENT, after, limit, each, context);
}

/* ---- upkeep ------------------------------------------------------------------------------------------- */

static int checkpoint(struct backend *backend, bool idle)
{
	(void)backend;
	(void)idle;
	return 0;
}

static int relieve(struct backend *backend)
{
	of(backend)->relief = RELIEF_COMMITS;
	return 0;
}

static int reserve(struct backend *backend)
{
	if (of(backend)->full)
		return -ENOSPC;
	of(backend)->relief = 0;
	return 0;
}

static int query(struct backend *backend, struct question *question)
{
	(void)backend;
	snprintf(question->complaint, sizeof question->complaint, "a store in memory has no SQL");
	return -ENOTSUP;
}

static int backup_begin(struct backend *backend, const char *path)
{
	(void)backend;
	(void)path;
	return -ENOTSUP; /* memory_copy() is its backup */
}

static int backup_step(struct backend *backend, uint32_t pages, uint32_t *ret_remaining)
{
	(void)backend;
	(void)pages;
	(void)ret_remaining;
	return -ENOTSUP;
}

static void backup_end(struct backend *backend)
{
	(void)backend;
}

static void memory_close(struct backend *backend)
{
	if (!backend)
		return;
	struct memory *memory = of(backend);
	forget_undo(memory);
	free(memory->undo);
	list_free(memory);
	free(memory);
}

static const struct backend_ops memory_ops = {
	.name = "memory",
	.begin = memory_begin,
	.commit = memory_commit,
	.rollback = memory_rollback,
	.put_task = put_task,
	.put_body = put_body,
	.put_extra = put_extra,
	.put_event = put_event,
	.put_base = put_base,
	.put_name = put_name,
	.put_id = put_id,
	.put_key = put_key,
	.put_edge = put_edge,
	.put_worker = put_worker,
	.put_slot = put_slot,
	.put_queue = put_queue,
	.put_token = put_token,
	.put_assignment = put_assignment,
	.put_idem = put_idem,
	.put_meta = put_meta,
	.delete_task = delete_task,
	.delete_base = delete_base,
	.delete_extra = delete_extra,
	.delete_key = delete_key,
	.delete_edge = delete_edge,
	.delete_worker = delete_worker,
	.delete_token = delete_token,
	.delete_events = delete_events,
	.delete_idems = delete_idems,
	.get_task = get_task,
	.get_body = get_body,
	.get_extra = get_extra,
	.get_event = get_event,
	.get_base = get_base,
	.get_worker = get_worker,
	.get_idem = get_idem,
	.get_meta = get_meta,
	.get_assignment = get_assignment,
	.find_id = find_id,
	.find_key = find_key,
	.children = children,
	.parents = parents,
	.scan_names = scan_names,
	.scan_live_tasks = scan_live_tasks,
	.scan_edges = scan_edges,
	.scan_workers = scan_workers,
	.scan_slots = scan_slots,
	.scan_queues = scan_queues,
	.scan_tokens = scan_tokens,
	.page_tasks = page_tasks,
	.page_outlines = page_outlines,
	.page_events = page_events,
	.page_bases = page_bases,
	.page_assignments = page_assignments,
	.checkpoint = checkpoint,
	.relieve = relieve,
	.reserve = reserve,
	.query = query,
	.backup_begin = backup_begin,
	.backup_step = backup_step,
	.backup_end = backup_end,
	.close = memory_close,
};

struct backend *memory_open(void)
{
	struct memory *memory = calloc(1, sizeof *memory);
	if (!memory)
		return NULL;
	memory->backend.ops = &memory_ops;
	memory->head = calloc(1, sizeof *memory->head + LEVELS * sizeof *memory->head->next);
	if (!memory->head) {
		free(memory);
		return NULL;
	}
	return &memory->backend;
}

void memory_set_full(struct backend *backend, bool full)
{
	of(backend)->full = full;
}

void memory_fail_commits_with(struct backend *backend, int fault)
{
	of(backend)->fault = fault;
}

struct backend *memory_reopen(struct backend *backend)
{
	if (of(backend)->open)
		memory_rollback(backend);
	return backend;
}

static int mark_restored(struct backend *copy)
{
	int64_t generation = 1, floor = 0;

	get_meta(copy, META_GENERATION, &generation);
	get_meta(copy, META_TASK_FLOOR, &floor);
	int64_t last = last_number(copy, TABLE_TASK);
	memory_begin(copy);
	int r = put_meta(copy, META_GENERATION, generation + 1);
	if (r == 0)
		r = put_meta(copy, META_TASK_FLOOR, (last > floor ? last : floor) + 1000000);
	if (r == 0)
		r = put_meta(copy, META_RESTORED, RESTORED);
	return r < 0 ? r : memory_commit(copy);
}

struct backend *memory_copy(struct backend *backend)
{
	struct backend *copy = memory_open();
	int r = copy ? 0 : -ENOMEM;

	assert(!of(backend)->open);
	for (struct row *row = of(backend)->head->next[0]; r == 0 && row; row = row->next[0])
		r = list_set(of(copy), row->key, row->key_len, row->value, row->value_len);
	if (r == 0)
		r = mark_restored(copy);
	if (r == 0)
		return copy;
	memory_close(copy);
	return NULL;
}
