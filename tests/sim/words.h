/*
 * The names that the simulated world uses. No capability is part of another one's text, so that a set can be
 * read from the text of its name.
 */
#pragma once

#include <stdint.h>

#include "base/span.h"

enum {
	WORD_QUEUES = 4,
	WORD_SLOTS = 4,
	WORD_CAPABILITIES = 3,
	WORD_EXECUTORS = 2,
	WORD_HOSTS = 2,
	WORD_GATES = 2,
	WORD_EVENTS = 18,
	WORD_KEYS = 5,
	WORD_GROUPS = 3,
	WORD_ACCOUNTS = 2,
};

extern const struct span word_queues[WORD_QUEUES];
extern const struct span word_slots[WORD_SLOTS];
extern const struct span word_capabilities[WORD_CAPABILITIES];
extern const struct span word_executors[WORD_EXECUTORS];
extern const struct span word_hosts[WORD_HOSTS];
extern const struct span word_gates[WORD_GATES];
extern const struct span word_keys[WORD_KEYS]; /* of concurrency */
extern const struct span word_groups[WORD_GROUPS];
extern const struct span word_accounts[WORD_ACCOUNTS];
extern const struct span word_events[WORD_EVENTS]; /* of workflows */

/* Where the worker of that id lives: all instances of one on one host. */
struct span word_host_of(struct span worker);

/* The place of the text in the list, or -1. */
int word_find(const struct span *words, int count, struct span text);
