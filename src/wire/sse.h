/*
 * Server-sent events: the body of a stream, in whatever pieces it comes, into events.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/span.h"

/* Spans live until the function that gets them returns. */
struct sse_event {
	struct span id; /* of the last event that had one: what to resume from */
	struct span type;
	struct span data;
};

struct sse {
	struct buf id; /* of the last event that came whole */
	struct buf coming_id;
	bool has_coming_id;
	struct buf line, type, data;
	bool after_cr;
};

/* No line, and no event, is longer than `bytes_max`. */
void sse_init(struct sse *sse, size_t bytes_max);
void sse_done(struct sse *sse);

/* The connection was lost: what was incomplete is forgotten, the id of the last whole event stays. */
void sse_restart(struct sse *sse);

/* Calls `each` for every event that is complete; a value below 0 from it ends the feed and is returned. -E2BIG,
 * -ENOMEM. */
__attribute__((warn_unused_result)) int sse_feed(struct sse *sse, struct span bytes,
	int (*each)(void *context, const struct sse_event *event), void *context);
