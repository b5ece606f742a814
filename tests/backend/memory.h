/*
 * The memory backend: for tests and the simulator. It keeps rows as SQLite would, forgets an unfinished
 * transaction at rollback, and can be told to fail.
 */
#pragma once

#include "store/backend.h"

struct backend *memory_open(void);

/* What the next transactions meet. */
void memory_set_full(struct backend *backend, bool full); /* commits fail with -ENOSPC; so does reserve() */
void memory_fail_commits_with(struct backend *backend, int fault); /* 0: no longer */
void memory_settle_after(struct backend *backend, uint32_t asked); /* settle() is asked so often in vain */

/* Forget the transaction that is open, as a crash would, and hand the rows to a new writer. */
struct backend *memory_reopen(struct backend *backend);

/* A copy of everything that was committed, as a backup would have it; restore: a new generation on open. */
struct backend *memory_copy(struct backend *backend);
