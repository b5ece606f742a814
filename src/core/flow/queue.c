#include "core/flow/queue.h"

#include <assert.h>

struct queue_decision queue_set(enum queue_state now, enum queue_state wanted)
{
	static const enum event_kind events[] = {
		[QUEUE_OPEN] = EVENT_QUEUE_RESUMED,
		[QUEUE_PAUSED] = EVENT_QUEUE_PAUSED,
		[QUEUE_DRAINING] = EVENT_QUEUE_DRAINING,
	};

	return (struct queue_decision){
		.event = now == wanted ? EVENT_NONE : events[wanted],
		.state = wanted,
	};
}

const char *queue_state_name(enum queue_state state)
{
	switch (state) {
	case QUEUE_OPEN:
		return "open";
	case QUEUE_PAUSED:
		return "paused";
	case QUEUE_DRAINING:
		return "draining";
	}
	assert(0 && "a queue is open, paused or draining");
	return "";
}
