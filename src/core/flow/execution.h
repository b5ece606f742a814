/*
 * The kill switch: while execution is disarmed no API hands out work. Reads, heartbeats and reports go on, so running
 * work is neither lost nor hidden.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/event.h"

/* Stored numbers. A store without this number is armed; any unknown number means disarmed: what cannot be read must not
 * start work. */
enum execution {
	EXECUTION_UNTOUCHED = 0,
	EXECUTION_ARMED = 1,
	EXECUTION_DISARMED = 2,
};

bool execution_is_armed(int64_t stored);

struct execution_decision {
	enum event_kind event; /* EVENT_NONE: no change */
	enum execution execution;
};

struct execution_decision execution_set(bool is_armed, bool wanted);
