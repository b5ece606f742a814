/*
 * All rows of one store into another one that has none, whatever the two are made of: how a store in PostgreSQL is backed up, restored,
 * and checked. Keys of derived tokens and the hash of the admin's token stay behind, as in every backup.
 */
#pragma once

#include "store/backend.h"

struct copy_options {
	/* Called now and then with the rows so far; not 0 ends the copy with that fault. NULL: nobody asks. */
	int (*go_on)(void *context, uint64_t rows);
	void *context;
	/* Rows that were put are written, so that memory need not hold all of them. NULL: the backend does so itself. */
	int (*spill)(struct backend *to);
};

struct copied {
	uint64_t rows;
	int64_t last_event;
};

/* One transaction of `to`. 0, or a fault of either, and then `to` is as it was. `options` may be NULL. */
int copy_rows(struct backend *from, struct backend *to, const struct copy_options *options,
	struct copied *ret_copied);

/* The rows of one table are read and checked; -ENOENT: there are no more tables. *ret_table: its name. */
int copy_check_table(struct backend *from, uint32_t number, const char **ret_table);

/* Was it never started, and holds no row? A fault, or 1: so it is; 0: it holds a store. */
int copy_is_empty(struct backend *backend);
