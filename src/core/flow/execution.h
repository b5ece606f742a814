/*
 * The kill switch: while execution is disarmed nothing is handed out, by any door. Reads, heartbeats and reports go on,
 * so what runs is neither lost nor hidden.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/event.h"

/* As it is stored. A store that never heard of it is armed; whatever is neither of these is disarmed: what cannot be
 * read must not set anything going. */
enum execution {
	EXECUTION_UNTOUCHED = 0,
	EXECUTION_ARMED = 1,
	EXECUTION_DISARMED = 2,
};

bool execution_is_armed(int64_t stored);

struct execution_decision {
	enum event_kind event; /* EVENT_NONE: it was so already */
	enum execution execution;
};

struct execution_decision execution_set(bool is_armed, bool wanted);
