/*
 * Proofs about a store, for tests, the simulator and stint-verify; and what else only they read.
 */
#pragma once

#include "store/store.h"

/* Tasks by key, final or not, with who holds them; and every worker. */
int store_page_tasks(struct store *store, int64_t after, uint32_t limit,
	int (*each)(void *context, const struct task *task, struct span holder), void *context);
int store_each_worker(const struct store *store,
	int (*each)(void *context, struct span id, const struct worker *worker), void *context);
