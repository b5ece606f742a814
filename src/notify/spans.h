/*
 * Events as spans of OpenTelemetry: one for each attempt that ended, and one for the task when it is over, in the JSON of OTLP/HTTP.
 *
 *	the producer's span
 *	└── task      from its creation to its end
 *	    ├── attempt 1   from its claim to its end
 *	    └── attempt 2
 *	        └── what the child made of TRACEPARENT
 */
#pragma once

#include "wire/json/json.h"

/* Does the event end an attempt? */
bool spans_end_attempt(yyjson_val *event);

/* Does it end an attempt, or the task, whose trace is to be recorded? */
bool spans_are_due(yyjson_val *event);

/* The attempt that is open, as the events of its task tell it, one after the other. */
struct spans_attempt {
	int64_t number, began_ms; /* number 0: none is open */
	struct span worker;       /* lies in the event */
};

void spans_follow(struct spans_attempt *attempt, yyjson_val *event);

/* The request of an event that has "about" and "trace" (feed.h). Without spans nothing is appended. -ENOMEM, -E2BIG. */
int spans_put(struct buf *out, const char *source, yyjson_val *event);
