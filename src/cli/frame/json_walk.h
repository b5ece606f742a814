/*
 * Walking through a large JSON text without holding it: the members of the object at its top, and the elements of a
 * list in it, one span at a time. The walk looks at what stands between them; what stands in them is for json_read().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"

struct json_walk {
	struct span text;
	size_t at;
	bool any;          /* a member, or an element, came before */
	const char *wrong; /* what is wrong, at byte `at`; NULL: nothing */
};

/* At the value that begins there: an object, or a list. False: it is something else, and `wrong` says so. */
bool json_walk_object(struct json_walk *walk, struct span text, size_t at);
bool json_walk_list(struct json_walk *walk, struct span text, size_t at);

/* The next element; false behind the last one, or where something is wrong. Spans lie in the text. */
bool json_walk_element(struct json_walk *walk, struct span *ret_value);

/* The next member, in two steps: its key as it is written, without its quotes; and its value. One that is to be walked
 * through itself begins at `at`, which is to be moved behind it instead. */
bool json_walk_key(struct json_walk *walk, struct span *ret_key);
bool json_walk_value(struct json_walk *walk, struct span *ret_value);

/* Nothing but space is left behind the value that was walked through. */
bool json_walk_end(struct json_walk *walk);
