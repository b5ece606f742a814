/*
 * Rows that wait to be written together: see pending.c. A row is begun with pending_row(), which has a value for each
 * column of the statement, all of them NULL; and ended with pending_end_row(). Bytes are copied.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

struct sqlite;

enum pending_table {
	PENDING_NEW_TASK,
	PENDING_TASK,
	PENDING_BODY,
	PENDING_TABLE_COUNT,
};

enum {
	PENDING_TASK_COLUMNS = 9,
	PENDING_BODY_COLUMNS = 3,
	PENDING_VALUES_MAX = 5000,      /* with this many values the rows are written, … */
	PENDING_BYTES_KEPT = 256 << 10, /* … or with this many bytes */
	PENDING_BYTES_MAX = 64 << 20,
};

enum pending_kind { PENDING_NULL, PENDING_INT, PENDING_TEXT, PENDING_BLOB };

struct pending_value {
	enum pending_kind kind;
	union {
		int64_t number;
		struct {
			size_t at, len; /* in pending.bytes */
		};
	};
};

/* The place of a row among the others: the first value is its key. */
struct pending_place {
	int64_t key;
	uint32_t at; /* its first value */
};

struct pending {
	uint32_t columns; /* of a row */
	struct pending_value *values;
	uint32_t count, cap;
	struct pending_place *order; /* of the rows, while they are written */
	uint32_t order_count, order_cap;
	struct buf bytes;
	int fault; /* of the row that is being put */
};

/* SQLite's code. Before the statements are prepared; pending_done() after they are finalized. */
int pending_init(struct sqlite *store);
void pending_done(struct sqlite *store);

/* NULL: no memory; pending_end_row() returns the fault. */
struct pending_value *pending_row(struct pending *pending);

static inline struct pending_value pending_int(int64_t value)
{
	return (struct pending_value){.kind = PENDING_INT, .number = value};
}

struct pending_value pending_text(struct pending *pending, struct span text);
struct pending_value pending_blob(struct pending *pending, struct span bytes);
int pending_end_row(struct sqlite *store, enum pending_table table);

/* Write the rows that wait; 0 or the fault that any statement may have. */
int pending_write(struct sqlite *store, enum pending_table table);

/* At a rollback. */
void pending_forget(struct pending *pending);
