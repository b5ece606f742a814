/*
 * Names: queues, slots, executors, capabilities and sets of capabilities as small numbers.
 *
 * A name is given a number the first time a turn needs it and keeps it for ever, so that rows, events and
 * the index in memory carry four bytes. 0 is "none". A set is a name too: its members' texts in order,
 * each after a separator. Names that a turn added and that were not committed are forgotten again.
 */
#pragma once

#include "base/hash.h"
#include "base/map.h"
#include "base/span.h"
#include "core/command.h"

enum {
	NAMES_MAX = 1000000,
	NAME_SET_MAX = COMMAND_LIST_MAX,
};

struct name;

struct names {
	struct name *items; /* by number − 1 */
	uint32_t count, cap;
	uint32_t committed; /* names up to here are on disk */
	struct map by_text;
	struct hash_key key;
};

/* Members of a set, ascending. */
struct name_set {
	uint32_t ids[NAME_SET_MAX];
	uint32_t count;
};

void names_init(struct names *names, struct hash_key key);
void names_done(struct names *names);

/* The number of that text, 0 if it has none. */
uint32_t names_find(const struct names *names, struct span text);

/* The number of that text; a new one if *ret_added. -E2BIG: too many names. */
int names_add(struct names *names, struct span text, uint32_t *ret_id, bool *ret_added);

/* As it was read from the store: numbers come in order. */
int names_load(struct names *names, uint32_t id, struct span text);

struct span names_text(const struct names *names, uint32_t id);

/* The text of a set, sorted and without repeats, appended to `text`; empty for no members. */
struct buf;
int names_set_text(struct name_list members, struct buf *text);

/* The members of a set by its number; 0 gives the empty set. */
void names_set_members(const struct names *names, uint32_t set, struct name_set *ret_set);

/* The numbers of those of the list that have one. */
void names_resolve(const struct names *names, struct name_list list, struct name_set *ret_set);

bool name_set_contains(const struct name_set *set, uint32_t id);
bool name_set_covers(const struct name_set *set, const struct name_set *needed);

/* A turn was committed, or not. */
void names_commit(struct names *names);
void names_forget(struct names *names);
