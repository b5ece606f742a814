/*
 * Names: queues, slots, executors, capabilities and sets of capabilities as small numbers.
 *
 * A name is given a number the first time a turn needs it and keeps it for ever, so that rows, events and
 * the index in memory carry four bytes. 0 is "none". A set is a name too: its members' texts in order,
 * each after a separator. Names that a turn added and that were not committed are forgotten again.
 *
 * Because a name is for ever, it remembers which principal added it, and each principal has a limit.
 */
#pragma once

#include "base/hash.h"
#include "base/map.h"
#include "base/span.h"
#include "core/command.h"

enum {
	NAMES_MAX = 1000000,
	NAMES_PER_PRINCIPAL_MAX = 100000, /* for principals that are neither admin nor operator */
	NAME_SET_MAX = COMMAND_LIST_MAX,
};

struct name;
struct name_tally;

struct names {
	struct name *items; /* by number − 1 */
	uint32_t count, cap;
	uint32_t committed; /* names up to here are on disk */
	struct map by_text;
	struct name_tally *tallies; /* one for each principal that added names */
	uint32_t tally_count, tally_cap;
	struct map by_principal;
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

/* The number of that text; a new text gets a number, which counts for `principal`. -E2BIG: too many names. */
int names_add(struct names *names, struct span text, uint32_t principal, uint32_t *ret_id);

/* A name read from the store: numbers come in order, texts are unique, and the members of a set come before it.
 * -EPROTO: this name breaks one of these rules. */
int names_load(struct names *names, uint32_t id, struct span text, uint32_t principal);

struct span names_text(const struct names *names, uint32_t id);

/* Is it 0 or the number of a name, or of a set? For numbers that were read from a store. */
bool names_have(const struct names *names, uint32_t id);
bool names_have_set(const struct names *names, uint32_t id);

/* The principal that added a name; how many names a principal has added. */
uint32_t names_principal(const struct names *names, uint32_t id);
uint32_t names_of_principal(const struct names *names, uint32_t principal);

/* The text of a set, sorted and without repeats, appended to `text`; empty for no members. */
struct buf;
int names_set_text(struct name_list members, struct buf *text);

/* The members of a set by its number; 0 gives the empty set. */
void names_set_members(const struct names *names, uint32_t set, struct name_set *ret_set);

/* The numbers of the names in the list; unknown names are left out. */
void names_resolve(const struct names *names, struct name_list list, struct name_set *ret_set);

bool name_set_contains(const struct name_set *set, uint32_t id);
bool name_set_covers(const struct name_set *set, const struct name_set *needed);

/* A turn was committed, or not. */
void names_commit(struct names *names);
void names_forget(struct names *names);

/* Forgets all names after the first `count`. Committed names stay. */
void names_rewind(struct names *names, uint32_t count);
