#include "core/event.h"

#include <assert.h>

static const char *const names[EVENT_KIND_COUNT] = {
#define X(name, number, wire, text) [number] = wire,
	EVENT_KINDS(X)
#undef X
};

bool event_kind_is_known(enum event_kind kind)
{
	return kind > EVENT_NONE && kind < EVENT_KIND_COUNT && names[kind];
}

bool event_kind_is_of_session(enum event_kind kind)
{
	return kind == EVENT_SESSION_STARTED || kind == EVENT_SESSION_OUTPUT || kind == EVENT_SESSION_USAGE ||
		kind == EVENT_SESSION_GONE || kind == EVENT_SESSION_ENDED;
}

const char *event_kind_name(enum event_kind kind)
{
	assert(kind > EVENT_NONE);
	assert(kind < EVENT_KIND_COUNT);
	return names[kind];
}
