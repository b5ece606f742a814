/*
 * Rows of the ledger: a key, and a digest of what stands there; 0 is "no such row".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/span.h"
#include "store/backend.h"

enum row_table {
	ROW_TASK = 1,
	ROW_BODY,
	ROW_EXTRA,
	ROW_EVENT,
	ROW_BASE,
	ROW_NAME,
	ROW_ID,
	ROW_KEY,
	ROW_EDGE,
	ROW_WORKER,
	ROW_SMALL,
	ROW_IDEM,
	ROW_META,
	ROW_TOKEN,
	ROW_TABLE_COUNT,
};

struct row {
	enum row_table table;
	int64_t a, b, c; /* the numbers of its key */
	char *text;      /* the text of its key, owned; of an idem row the principal, a NUL, the key */
	uint32_t text_len;
	uint32_t split;  /* of an idem row: where the key begins */
	uint64_t hash;   /* of the key */
	uint64_t digest; /* of the content */
};

struct rows {
	struct row *rows;
	uint32_t count, room;
	uint32_t live[ROW_TABLE_COUNT];
	struct map index;
};

void rows_init(struct rows *rows);
void rows_done(struct rows *rows);

/* A key: put together, then looked up. Text is borrowed. */
struct row_key {
	enum row_table table;
	int64_t a, b, c;
	struct span text;
	uint32_t split;
};

/* The row of that key, made without content if there is none. */
uint32_t rows_at(struct rows *rows, const struct row_key *key);

void rows_set(struct rows *rows, uint32_t at, uint64_t digest);

const char *row_table_name(enum row_table table);

/* Digests of content; never 0. */
uint64_t digest_number(int64_t value);
uint64_t digest_bytes(struct span bytes);
uint64_t digest_name(const struct name_row *row);
uint64_t digest_task(const struct task_row *row);
uint64_t digest_edge(const struct edge_row *row);
uint64_t digest_worker(const struct worker_row *row);
uint64_t digest_token(const struct token *token);
uint64_t digest_idem(const struct idem_row *row);

/* The key of an idem row, its text put together in `room`. */
enum {
	IDEM_KEY_MAX = 1024,
};
struct row_key idem_key(struct span principal, struct span key, char room[IDEM_KEY_MAX]);
