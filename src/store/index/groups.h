/*
 * All groups in memory: by number for tasks, by name for people, in order of name for lists.
 */
#pragma once

#include "base/map.h"
#include "base/slab.h"
#include "base/span.h"
#include "core/flow/group.h"

struct known_group {
	struct group_state
		group;    /* first, and never number 0: the slab overwrites the first bytes of a free item */
	struct span name; /* on the heap */
	/* tasks that wait for it, at least: one that was removed or let go by hand may still be counted until the next start */
	uint32_t waiters;
};

struct groups {
	struct slab all;
	struct map by_number;
	uint32_t *order; /* places, by name */
	uint32_t count, cap;
};

void groups_init(struct groups *groups);
void groups_done(struct groups *groups);

struct known_group *groups_find(const struct groups *groups, struct span name); /* NULL: none */
struct known_group *groups_find_number(const struct groups *groups, uint32_t number);
/* The group at that place in the order of names, and the first place behind a name. */
struct known_group *groups_at(const struct groups *groups, uint32_t at);
uint32_t groups_place(const struct groups *groups, const struct known_group *known); /* below slab_high() */
uint32_t groups_behind(const struct groups *groups, struct span name);

/* After it, so many new ones fit. -ENOMEM. */
int groups_reserve(struct groups *groups, uint32_t more);
/* `name` is on the heap and is taken over. */
struct known_group *groups_add(struct groups *groups, uint32_t number, struct span name);
void groups_drop(struct groups *groups, struct known_group *known);
