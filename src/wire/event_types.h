/*
 * The types of events that there are, for those who choose among them.
 */
#pragma once

#include <stdbool.h>

#include "base/span.h"

extern const char *const event_types[]; /* NULL behind the last */

/* Is there an event of that type (task.failed), or of that noun (task, task.*)? */
bool event_types_has(struct span pattern);

enum {
	EVENT_TYPE_BYTES = 64,
};

/* The nearest type, or noun with .* if it was one that was typed; NULL: none is near. */
const char *event_types_like(const char *typed, char room[EVENT_TYPE_BYTES]);
