/*
 * Lists of tasks that are made in slices, so that no list stands in the way of a commit: the keys of the tasks are
 * gathered first, then the tasks behind them are read, a few at a time.
 */
#pragma once

#include "api/call.h"
#include "api/task/keys.h"

enum {
	/* of one slice */
	SLICE_SCAN = 500,             /* outlines */
	SLICE_SORT = 1000,            /* keys */
	SLICE_READ = 32,              /* tasks … */
	SLICE_READ_BYTES = 128 << 10, /* … or as many as have this much text */
};

/* Gets a task that the caller sees, and the memory that it was read into. Not 0: the slice ends with that. */
typedef int task_use(
	void *context, const struct task_key *key, struct task_document *document, struct arena *arena);

/* Reads the tasks behind keys[*at …end], until that is enough for one slice. Tasks that were purged since are left out. */
int task_slice(struct api_call *call, const struct task_keys *keys, uint32_t *at, uint32_t end, task_use *use,
	void *context);

/* The open tasks that gather() adds to `keys`, in order: found, sorted, read. */
struct open_pass {
	struct task_keys keys;
	uint32_t at, scan_at;
	bool scanned, sorted;
};

int open_pass_slice(struct api_call *call, struct open_pass *pass,
	int (*gather)(void *context, const struct task_outline *outline), task_use *use, void *context);
bool open_pass_has_more(const struct open_pass *pass);
