/*
 * One ordered list of rows, keyed by table and key, with a log that undoes the open transaction.
 *
 * A skip list whose heights come from a hash of the key: the same history gives the same list, so a
 * simulation can be replayed from its seed.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "backend/memory_backend.h"

struct key memory_key(enum table table)
{
	struct key key = {.len = 1};

	key.bytes[0] = (char)table;
	return key;
}

void memory_key_number(struct key *key, int64_t number)
{
	uint64_t bits = (uint64_t)number ^ UINT64_C(1) << 63; /* so that bytes sort as numbers do */

	for (int shift = 56; shift >= 0; shift -= 8)
		key->bytes[key->len++] = (char)(bits >> shift & 0xff);
}

void memory_key_text(struct key *key, struct span text)
{
	assert(key->len + text.len + 1 < KEY_MAX);
	if (text.len > 0)
		memcpy(key->bytes + key->len, text.data, text.len);
	key->len += text.len;
	key->bytes[key->len++] = 0;
}

int64_t memory_number_at(const struct row *row, size_t at)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < 8; i++)
		bits = bits << 8 | (unsigned char)row->key[at + i];
	return (int64_t)(bits ^ UINT64_C(1) << 63);
}

struct key memory_key_numbered(enum table table, int64_t number)
{
	struct key key = memory_key(table);

	memory_key_number(&key, number);
	return key;
}

struct key memory_key_texted(enum table table, struct span text)
{
	struct key key = memory_key(table);

	memory_key_text(&key, text);
	return key;
}

static int compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return order ? order : (a_len > b_len) - (a_len < b_len);
}

/* ---- the list --------------------------------------------------------------------------------------- */

/* The first row not before the key; `ret_before` gets its predecessor on each level. */
struct row *memory_seek(const struct memory *memory, const char *key, size_t len, struct row **ret_before)
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

struct row *memory_find(const struct memory *memory, const char *key, size_t len)
{
	struct row *row = memory_seek(memory, key, len, NULL);

	return row && compare(row->key, row->key_len, key, len) == 0 ? row : NULL;
}

char *memory_copy_of(const void *data, size_t len)
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

int memory_list_set(
	struct memory *memory, const char *key, size_t key_len, const void *value, size_t value_len)
{
	struct row *before[LEVELS];
	struct row *row = memory_seek(memory, key, key_len, before);
	char *copy = memory_copy_of(value, value_len);

	if (!copy)
		return -ENOMEM;
	if (!row || compare(row->key, row->key_len, key, key_len) != 0) {
		int height = height_of(key, key_len);
		row = calloc(1, sizeof *row + (size_t)height * sizeof *row->next);
		if (!row || !(row->key = memory_copy_of(key, key_len))) {
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
	struct row *row = memory_seek(memory, key, key_len, before);

	if (!row || compare(row->key, row->key_len, key, key_len) != 0)
		return;
	for (int level = 0; level < row->height; level++)
		before[level]->next[level] = row->next[level];
	free(row->key);
	free(row->value);
	free(row);
}

void memory_list_free(struct memory *memory)
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
	const struct row *row = memory_find(memory, key, len);

	if (memory->undo_count == memory->undo_cap) {
		size_t cap = memory->undo_cap ? memory->undo_cap * 2 : 64;
		struct undo *grown = realloc(memory->undo, cap * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		memory->undo = grown;
		memory->undo_cap = cap;
	}
	struct undo undo = {.key = memory_copy_of(key, len), .key_len = len};
	if (row) {
		undo.value = memory_copy_of(row->value, row->value_len);
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

int memory_put(struct backend *backend, const struct key *key, const void *value, size_t len)
{
	struct memory *memory = memory_of(backend);

	assert(memory->open);
	int r = remember(memory, key->bytes, key->len);
	return r < 0 ? r : memory_list_set(memory, key->bytes, key->len, value, len);
}

int memory_discard(struct backend *backend, const char *key, size_t len)
{
	struct memory *memory = memory_of(backend);

	assert(memory->open);
	if (!memory_find(memory, key, len))
		return 0;
	int r = remember(memory, key, len);
	if (r == 0)
		list_remove(memory, key, len);
	return r;
}

void memory_forget_undo(struct memory *memory)
{
	for (size_t i = 0; i < memory->undo_count; i++) {
		free(memory->undo[i].key);
		free(memory->undo[i].value);
	}
	memory->undo_count = 0;
}

int memory_begin(struct backend *backend)
{
	struct memory *memory = memory_of(backend);

	assert(!memory->open);
	memory->open = true;
	return 0;
}

void memory_rollback(struct backend *backend)
{
	struct memory *memory = memory_of(backend);

	while (memory->undo_count > 0) {
		struct undo *undo = &memory->undo[--memory->undo_count];
		if (!undo->value)
			list_remove(memory, undo->key, undo->key_len);
		else if (memory_list_set(memory, undo->key, undo->key_len, undo->value, undo->value_len) < 0)
			assert(0 && "a roll-back finds memory for what was there before");
		free(undo->key);
		free(undo->value);
	}
	memory->open = false;
}

int memory_send(struct backend *backend)
{
	struct memory *memory = memory_of(backend);

	assert(memory->open);
	memory->unsettled = memory->settles_after;
	return 0;
}

int memory_settle(struct backend *backend)
{
	struct memory *memory = memory_of(backend);

	assert(memory->open);
	if (memory->unsettled > 0) {
		memory->unsettled--;
		return -EAGAIN;
	}
	if (memory->fault != 0)
		return memory->fault;
	if (memory->full) {
		if (memory->relief == 0)
			return -ENOSPC;
		memory->relief--;
	}
	memory_forget_undo(memory);
	memory->open = false;
	return 0;
}
