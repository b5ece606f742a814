#include "core/flow/execution.h"

bool execution_is_armed(int64_t stored)
{
	return stored == EXECUTION_UNTOUCHED || stored == EXECUTION_ARMED;
}

struct execution_decision execution_set(bool is_armed, bool wanted)
{
	struct execution_decision decision = {.execution = wanted ? EXECUTION_ARMED : EXECUTION_DISARMED};

	if (is_armed != wanted)
		decision.event = wanted ? EVENT_EXECUTION_ARMED : EVENT_EXECUTION_DISARMED;
	return decision;
}
