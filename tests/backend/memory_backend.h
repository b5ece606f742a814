/*
 * The memory backend from the inside: one ordered list of rows, keyed by table and key.
 *
 *   list.c   keys, the list, and the log that undoes the open transaction
 *   rows.c   putting rows and deleting them
 *   read.c   look-ups and scans
 *   open.c   opening, copying, upkeep
 */
#pragma once

#include "store/backend.h"

enum {
	LEVELS = 16,
	KEY_MAX = 600,
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
	TABLE_IDEM,
	TABLE_TOKEN,
	TABLE_SMALL, /* kind, key */
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
	uint32_t settles_after, unsettled; /* how often settle() says that nothing is known yet */
};

static inline struct memory *memory_of(struct backend *backend)
{
	return (struct memory *)backend;
}

struct key {
	char bytes[KEY_MAX];
	size_t len;
};

/* list.c: a key is its table, then numbers and texts in order. */
struct key memory_key(enum table table);
void memory_key_number(struct key *key, int64_t number);
void memory_key_text(struct key *key, struct span text);
struct key memory_key_numbered(enum table table, int64_t number);
struct key memory_key_texted(enum table table, struct span text);

/* The number in the key of a row, from that byte on. */
int64_t memory_number_at(const struct row *row, size_t at);

/* The first row not before the key; `ret_before` gets its predecessor on each level. The row of the key, or NULL. */
struct row *memory_seek(const struct memory *memory, const char *key, size_t len, struct row **ret_before);
struct row *memory_find(const struct memory *memory, const char *key, size_t len);

/* Set a row outside of any transaction; free them all. */
int memory_list_set(
	struct memory *memory, const char *key, size_t key_len, const void *value, size_t value_len);
void memory_list_free(struct memory *memory);

/* Bytes in memory that the caller frees; NULL: there is none. */
char *memory_copy_of(const void *data, size_t len);

/* Within a transaction. */
int memory_put(struct backend *backend, const struct key *key, const void *value, size_t len);
int memory_discard(struct backend *backend, const char *key, size_t len);

/* What was done cannot be undone any more. */
void memory_forget_undo(struct memory *memory);

/* rows.c: keys of several parts, and rows as they were put. Texts are borrowed from the row. */
struct key memory_key_extra(int64_t seq, enum extra_kind kind, int64_t n);
struct key memory_key_small(enum small_kind kind, struct span text);
struct key memory_key_idem(struct span principal, struct span text);
void memory_task_from(const struct row *row, struct task_row *ret_row);
void memory_worker_from(const struct row *row, struct worker_row *ret_row);
void memory_token_from(const struct row *row, struct token *ret_token);

/* read.c: the highest number in a table, 0 if it is empty. */
int64_t memory_last_number(struct backend *backend, enum table table);

/* Every function of the interface, declared with the type that backend.h gives it and named memory_ and its
 * name there. */
#define X(op) __typeof__(*((struct backend_ops *)0)->op) memory_##op;
BACKEND_OPS(X)
#undef X
