#include "core/event.h"

#include <assert.h>
#include <string.h>

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

bool event_kind_is_of_audit(enum event_kind kind)
{
	static const char *const nouns[] = {"token.", "gate.", "execution.", "server."};
	const char *name = event_kind_name(kind);

	for (size_t i = 0; i < sizeof nouns / sizeof *nouns; i++) {
		if (strncmp(name, nouns[i], strlen(nouns[i])) == 0)
			return true;
	}
	return false;
}

const char *event_kind_name(enum event_kind kind)
{
	assert(kind > EVENT_NONE);
	assert(kind < EVENT_KIND_COUNT);
	return names[kind];
}
