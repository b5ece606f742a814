/*
 * Where tasks stand in a list: the open ones in claim order, then the final ones, newest first.
 *
 * A key is all that a list remembers of a task while it chooses. The keys of a list are gathered in any order and as
 * many are kept as it may show: the first ones behind its cursor. So a list of a million tasks takes the memory of one
 * page. The largest key stands at the top of a heap and gives way to any smaller one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "core/task/document.h"

struct task_key {
	int64_t created_ms,
		seq;      /* created_ms and priority are 0 for final tasks, which are ordered by seq alone */
	int32_t priority; /* 0 with queue.ageMs: then created_ms is since when it stands in line */
	bool final;
};

struct task_key task_key_of(const struct task_outline *outline, int64_t age_ms);

/* Negative: a stands before b. */
int task_key_order(const struct task_key *a, const struct task_key *b);

/* A key as the cursor that goes on behind it. Each has exactly one spelling; -EINVAL: the text is not a cursor. */
int task_key_put(struct buf *out, const struct task_key *key);
int task_key_read(struct span text, struct task_key *ret_key);

struct task_keys {
	struct arena *arena;
	struct task_key *items;
	uint32_t count, room, max;
	uint32_t heaped; /* the first `heaped` items are a heap; the others are in order */
};

/* Its memory is the arena's. */
void task_keys_init(struct task_keys *keys, struct arena *arena, uint32_t max);

/* Gather, before the first task_keys_sort(); -ENOMEM. */
int task_keys_add(struct task_keys *keys, const struct task_key *key);

/* Put up to `steps` keys into their places; false: not all of them stand there yet. */
bool task_keys_sort(struct task_keys *keys, uint32_t steps);

/* Adds a key behind all others; there must be room below the maximum. -ENOMEM. */
int task_keys_append(struct task_keys *keys, const struct task_key *key);

/* Is the key among these, which are in order? */
bool task_keys_have(const struct task_keys *keys, const struct task_key *key);
