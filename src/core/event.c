#include "core/event.h"

#include <assert.h>

static const struct event_row {
	const char *name;
	const char *text;
} rows[EVENT_KIND_COUNT] = {
#define X(name, number, wire, text) [number] = {wire, text},
	EVENT_KINDS(X)
#undef X
};

static const struct event_row *row_of(enum event_kind kind)
{
	assert(kind > EVENT_NONE);
	assert(kind < EVENT_KIND_COUNT);
	return &rows[kind];
}

bool event_kind_is_known(enum event_kind kind)
{
	return kind > EVENT_NONE && kind < EVENT_KIND_COUNT && rows[kind].name;
}

bool event_kind_is_of_session(enum event_kind kind)
{
	return kind == EVENT_SESSION_STARTED || kind == EVENT_SESSION_OUTPUT || kind == EVENT_SESSION_GONE ||
		kind == EVENT_SESSION_ENDED;
}

const char *event_kind_name(enum event_kind kind)
{
	return row_of(kind)->name;
}

const char *event_kind_text(enum event_kind kind)
{
	return row_of(kind)->text;
}
