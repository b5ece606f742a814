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

/* At the value that begins there: an object, or a list. False: it is none, and the walk says so. */
bool json_walk_object(struct json_walk *walk, struct span text, size_t at);
bool json_walk_list(struct json_walk *walk, struct span text, size_t at);

/* The next member or element; false behind the last one, or where something is wrong. The key is as it is written,
 * without its quotes. Spans lie in the text. */
bool json_walk_member(struct json_walk *walk, struct span *ret_key, struct span *ret_value);
bool json_walk_element(struct json_walk *walk, struct span *ret_value);

/* A member in two steps, for a value that is to be walked through itself: `at` is where it begins, and is to be moved
 * behind it. */
bool json_walk_key(struct json_walk *walk, struct span *ret_key);
bool json_walk_value(struct json_walk *walk, struct span *ret_value);

/* Nothing but space is left behind the value that was walked through. */
bool json_walk_end(struct json_walk *walk);
