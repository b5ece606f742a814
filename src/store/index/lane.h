/*
 * Lanes: the ready tasks in claim order.
 *
 * Tasks that are the same to every claimant (queue, owner, required capabilities, executor, account, the host that alone may have
 * it for now, parked or not, autonomous or not) are in one lane; a claim looks at the heads of the lanes it may take from
 * and takes the first of them. A lane is a sorted list cut into chunks: appending at its end and taking from its front
 * are cheap, any other place costs a binary search. An entry is four bytes. Tasks with a concurrency key have lanes of their own,
 * in which they stand by key: see sublane.h.
 *
 * Lanes hold committed tasks only. During a turn a cursor per lane remembers how far the turn has looked.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/slab.h"
#include "store/index/sublane.h"

struct lane_key {
	uint32_t queue, owner, requires, executor;
	uint32_t host; /* only claimants on that host may have it; 0: all may */
	uint32_t credential;
	bool pending, autonomous;
	bool keyed; /* its tasks have a concurrency key … */
	bool begun; /* … and were claimed before */
	/* With queue.ageMs: then the order of two tasks of one priority is the same in every queue, fair or not, and the order of two
	 * priorities is that of the heads of two lanes. Else 0. */
	int32_t priority;
};

bool lane_key_equal(const struct lane_key *a, const struct lane_key *b);

struct chunk;

struct lane {
	struct lane_key key;
	uint32_t number;
	uint32_t group;
	uint32_t next; /* lane of the same group */
	struct chunk **chunks;
	uint32_t chunk_count, chunk_cap;
	uint32_t total;
	uint32_t reserved; /* tasks that lanes_reserve() made room for and that are not there yet */
	/* how far the current turn has looked */
	uint64_t cursor_turn;
	uint32_t cursor_chunk, cursor_at;
	struct sublane_sides sides; /* keyed: in place of the chunks */
	uint32_t cursor_sublane;
};

/* All lanes of one queue and owner. */
struct lane_group {
	uint32_t queue, owner;
	uint32_t first_lane;
	uint32_t next, previous; /* in the list of all groups */
};

struct lanes {
	struct sublanes sublanes;
	struct slab lanes, groups;
	struct map by_place; /* (queue, owner) → group */
	uint32_t first_stand;
	/* Negative if task a is claimed before task b: both are places in the index. */
	int (*order)(const void *context, uint32_t a, uint32_t b);
	const void *context;
	uint32_t reserved; /* sum over all lanes */
	struct chunk *spare;
	uint32_t spare_count, spare_wanted;
};

void lanes_init(struct lanes *lanes, int (*order)(const void *, uint32_t, uint32_t), const void *context);
void lanes_done(struct lanes *lanes);

/* Room for one more task in the lane of that key, which may be empty until then; -ENOMEM. lanes_release() gives back all that
 * is not used. */
int lanes_reserve(struct lanes *lanes, const struct lane_key *key, struct lane **ret_lane);
void lanes_release(struct lanes *lanes);

/* Uses up one room that was reserved in the lane. */
void lanes_insert(struct lanes *lanes, struct lane *lane, uint32_t task);

/* The task must be in that lane. */
void lanes_remove(struct lanes *lanes, const struct lane_key *key, uint32_t task);

/* The same for a keyed lane: the key is lifted, see sublane.h. */
void lanes_insert_keyed(struct lanes *lanes, struct lane *lane, uint32_t key, uint32_t task);
void lanes_remove_keyed(struct lanes *lanes, const struct lane_key *lane_key, uint32_t key, uint32_t task);

/* The queue is fair from now on, or no longer: to be called while the keys that have begun, or were served, are lifted. All others stand
 * in the same order either way. */
void lanes_set_fair(struct lanes *lanes, uint32_t queue, bool is_fair);

/* The group of that queue and owner, or NULL. */
const struct lane_group *lanes_stand(const struct lanes *lanes, uint32_t queue, uint32_t owner);

/* Walk all lanes, group by group: start with NULL; NULL at the end. */
struct lane *lanes_walk(const struct lanes *lanes, const struct lane *lane);

/* Walk all groups: start with NULL; NULL at the end. */
const struct lane_group *lanes_next_stand(const struct lanes *lanes, const struct lane_group *group);

/* The first lane of a group and the next one; NULL at the end. */
struct lane *lanes_first(const struct lanes *lanes, const struct lane_group *group);
struct lane *lanes_next(const struct lanes *lanes, const struct lane *lane);

/* The key of lane number `number`. */
const struct lane_key *lanes_key(const struct lanes *lanes, uint32_t number);

/* The tasks of a lane in order, a piece at a time: how many pieces, and one of them. */
uint32_t lane_pieces(const struct lane *lane);
const uint32_t *lane_piece(const struct lane *lane, uint32_t at, uint32_t *ret_count);

/* The task under the lane's cursor in this turn, or MAP_NONE at the end; and a step forward. */
uint32_t lane_peek(struct lane *lane, uint64_t turn);
void lane_skip(struct lane *lane);

/* A keyed lane: the sublane under its cursor in this turn among those that are open, or MAP_NONE at the end; and a step forward. */
uint32_t lane_peek_sublane(const struct lanes *lanes, struct lane *lane, uint64_t turn);
void lane_skip_sublane(const struct lanes *lanes, struct lane *lane);

/* Walk all tasks of a lane, those behind a limit of their key too: start with {0}. MAP_NONE at the end. The lane must not change. */
struct lane_walk {
	bool begun, in_shut;
	uint32_t chunk, at;     /* without keys */
	uint32_t sublane, task; /* keyed: where it stands */
};
uint32_t lane_next_task(const struct lanes *lanes, const struct lane *lane, struct lane_walk *walk);
