/*
 * Queues: open, paused (nothing is claimed), draining (nothing is added).
 */
#pragma once

#include "core/event.h"
#include "core/refusal.h"

/* Stored numbers. */
enum queue_state {
	QUEUE_OPEN = 0,
	QUEUE_PAUSED = 1,
	QUEUE_DRAINING = 2,
};

struct queue_decision {
	enum refusal refusal;
	enum event_kind event; /* EVENT_NONE: no change */
	enum queue_state state;
};

struct queue_decision queue_set(enum queue_state now, enum queue_state wanted);

const char *queue_state_name(enum queue_state state);
