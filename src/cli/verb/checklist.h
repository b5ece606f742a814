/*
 * A Markdown checklist as tasks.
 *
 *	- [ ] release            waits for what is indented below it: build and test
 *	  - [ ] build            bullets may run side by side
 *	  - [ ] test
 *	    with the sanitizers  text below an item, indented, describes it
 *	1. [ ] announce          numbers go one after the other
 *	2. [ ] rest
 *	- [x] write it           done already: no task
 *
 * Headings, empty lines and text that belongs to no item are passed over.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/span.h"

enum {
	CHECKLIST_ITEMS_MAX = 1000,
	CHECKLIST_DEPTH_MAX = 32,
	CHECKLIST_NONE = -1,
};

struct checklist_item {
	struct span title, text;
	int32_t parent; /* the item it is indented below */
	int32_t before; /* the item that must be done first, by number */
	uint32_t line;
	bool done;
};

struct checklist {
	struct checklist_item *items;
	uint32_t count;
};

struct checklist_complaint {
	uint32_t line;
	const char *reason;
};

/* All of it lies in the arena. -EINVAL and the complaint; -ENOMEM. */
int checklist_parse(struct span text, struct arena *arena, struct checklist *ret,
	struct checklist_complaint *ret_complaint);
