/*
 * Sublanes: where ready tasks with a concurrency key stand.
 *
 * A sublane is the tasks of one key in one lane. The lane keeps its sublanes in the order of their first tasks, those that are open
 * apart from those that are shut by a limit of their key. So a claim looks at the first open sublanes and never at the tasks behind a
 * key that is full, and a limit only moves sublanes from one side to the other.
 *
 *   key (queue, number) ──▶ its sublanes ──▶ tree of tasks           lane ──▶ open sublanes, by their first task
 *        live, begun                         (one task: no tree)         └──▶ shut sublanes
 *
 * In a fair queue the sublanes of one priority stand by whose turn it is (core/flow/limit.h) before they stand by their first task.
 *
 * A key is kept while it has a ready task or one that has begun and is not final; keys that nobody uses cost nothing.
 *
 * A task that comes behind the first one of its sublane, and counts for nothing, moves nothing: so a million of them are loaded at a start
 * without a look at the lane. Whatever moves a sublane (its first task, its key's counts, the limits) happens between sublanes_lift(), which takes the sublanes of
 * the key out of their lanes, and sublanes_lower(), which asks sublanes.is_open and puts each where it belongs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/slab.h"
#include "base/treap.h"

/* A concurrency key in one queue. */
struct running_key {
	uint64_t key;     /* first, because the slab overwrites the first bytes of a free item */
	uint32_t queue;   /* name */
	uint32_t live;    /* tasks with a live claim */
	uint32_t begun;   /* tasks that were claimed once and are not final */
	uint32_t first;   /* sublane */
	uint32_t waiting; /* tasks in its sublanes */
	uint64_t served;  /* see struct fair_turn */
};

/* The sublanes of a lane: SLAB_NONE is the empty tree. */
struct sublane_sides {
	uint32_t open, shut;
	bool fair; /* the queue is: sublanes stand by priority, then by the turn of their key, then by their first task */
};

struct sublane {
	uint32_t key;             /* number of its running_key */
	uint32_t lane;            /* number of its lane */
	uint32_t next;            /* of the same key */
	uint32_t tasks;           /* root of its tree, or its only task with SUBLANE_SINGLE */
	uint32_t head;            /* its first task: sublanes are compared by it all the time */
	struct treap_links links; /* in its lane */
	bool begun;               /* its tasks were claimed before */
	bool shut;
};

#define SUBLANE_SINGLE UINT32_C(0x80000000)

enum {
	KEYS_REMEMBERED = 1024, /* a power of 2 */
};

/* When a key that nobody uses any more was served last: it does not come first again and again because it was forgotten. */
struct remembered_key {
	uint64_t hash, served;
};

struct sublanes {
	struct slab keys, sublanes, nodes;
	struct map by_key;
	struct treap order_of_tasks, order_of_sublanes;
	/* Negative if task a is claimed before task b: both are places in the index. */
	int (*order)(const void *context, uint32_t a, uint32_t b);
	const void *context;
	/* May a task of the key be claimed, as far as its key is concerned? `begun`: one that was claimed before. */
	bool (*is_open)(const void *judge, const struct running_key *key, bool begun);
	const void *judge;
	/* Is the queue fair? And the priority of a task. */
	bool (*is_fair)(const void *judge, uint32_t queue);
	int32_t (*priority)(const void *context, uint32_t task);
	uint64_t served_last;
	struct remembered_key remembered[KEYS_REMEMBERED]; /* by hash; the last one of each place */
};

void sublanes_init(struct sublanes *sublanes);
void sublanes_done(struct sublanes *sublanes);

/* Memory for that many changes of tasks; -ENOMEM. */
int sublanes_reserve(struct sublanes *sublanes, uint32_t changes);

/* The number of a key, or MAP_NONE. */
uint32_t sublanes_find(const struct sublanes *sublanes, uint32_t queue, uint64_t key);
static inline struct running_key *sublanes_key(const struct sublanes *sublanes, uint32_t number)
{
	return slab_at(&sublanes->keys, number);
}
static inline struct sublane *sublane_at(const struct sublanes *sublanes, uint32_t number)
{
	return slab_at(&sublanes->sublanes, number);
}

/* The sides of lane number `lane`: lanes_sides() in lane.c. */
struct sublane_sides *sublane_sides_of(const struct sublanes *sublanes, uint32_t lane);

/* The number of the key, which is made if it is not there; memory was reserved. */
uint32_t sublanes_make(struct sublanes *sublanes, uint32_t queue, uint64_t key);

/* When the key was served last, also if it was forgotten since; 0: nobody knows. */
uint64_t sublanes_served(const struct sublanes *sublanes, uint32_t queue, uint64_t key);

/* See above. Lowering a key that nobody uses any more forgets it. */
void sublanes_lift(struct sublanes *sublanes, uint32_t key);
void sublanes_lower(struct sublanes *sublanes, uint32_t key);

/* A task of a key that is lifted comes into a lane, or leaves it. */
void sublanes_insert(struct sublanes *sublanes, uint32_t key, uint32_t lane, bool begun, uint32_t task);
void sublanes_remove(struct sublanes *sublanes, uint32_t key, uint32_t lane, uint32_t task);

/* The first task of the key in that lane, or MAP_NONE. */
uint32_t sublanes_head(const struct sublanes *sublanes, uint32_t key, uint32_t lane);

/* The sublanes of a lane in order, on one side; its tasks in order. MAP_NONE: no more. */
uint32_t sublanes_first(const struct sublanes *sublanes, uint32_t root);
uint32_t sublanes_after(const struct sublanes *sublanes, uint32_t root, uint32_t sublane);
uint32_t sublane_first(const struct sublanes *sublanes, const struct sublane *sublane);
uint32_t sublane_after(const struct sublanes *sublanes, const struct sublane *sublane, uint32_t task);
