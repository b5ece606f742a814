/*
 * Executors that ready tasks wait for and that no live worker of their queue has.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct holder;
struct store;
struct turn;

enum {
	MISSING_MAX = 256, /* pairs of executor and queue; others have to wait until one of these is found */
};

struct missing_executor {
	uint32_t executor, queue;
	int64_t since_ms; /* lease clock */
	uint64_t sweep;   /* number of the last sweep that did not find it */
};

struct missing_executors {
	struct missing_executor items[MISSING_MAX];
	uint32_t count;
	uint64_t sweep;
};

/* Is it active, and does it take work of that queue and have that executor (0: any)? It may be busy. */
bool holder_runs(const struct store *store, const struct holder *holder, uint32_t executor, uint32_t queue);

/* Block at most `limit` tasks that have waited too long for an executor that was missing all that time. */
int executors_sweep(struct turn *turn, uint32_t limit);
