/*
 * A question to the store in the backend's own language, for admins; and what comes back. Nobody above the backend
 * looks into its text.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

enum {
	ADMIN_QUERY_PARAMS_MAX = 100,
	ADMIN_QUERY_COLUMNS_MAX = 200,
	ADMIN_QUERY_ROWS_MAX = 500,
	ADMIN_QUERY_RUN_MS = 20,
	ADMIN_QUERY_VALUE_BYTES_MAX = 4 << 20, /* of one value, also on the way to it */
	ADMIN_QUERY_COMPLAINT_MAX = 400,
};

enum cell_kind {
	CELL_NULL,
	CELL_INT,
	CELL_REAL,
	CELL_TEXT,
	CELL_BYTES,
};

struct cell {
	enum cell_kind kind;
	int64_t integer;
	double real;
	struct span text; /* or bytes */
};

struct admin_query {
	struct span text;
	const struct cell *params;
	uint32_t param_count;
	uint32_t rows_max;
	int64_t now_wall_ms, now_lease_ms; /* both clocks, for times that are still to come */
	bool (*is_over)(
		void *context); /* called repeatedly while the query runs; true: it has run long enough */
	void *over_context;
	/* Called once with the names of the columns, then once per row; what they get is borrowed for the call. Not 0:
	 * no more rows are wanted, and the question ends with that value if it is negative. */
	int (*columns)(void *context, const struct span *names, uint32_t count);
	int (*row)(void *context, const struct cell *cells, uint32_t count);
	void *context;
	/* answered */
	bool truncated; /* there were more rows than were delivered */
	char complaint[ADMIN_QUERY_COMPLAINT_MAX];
};
