#include "core/flow/limit.h"

#include <assert.h>
#include <stddef.h>

static bool limits_equal(const struct queue_limits *a, const struct queue_limits *b)
{
	return a->concurrency == b->concurrency;
}

struct limits_decision limits_change(const struct queue_limits *limits, const struct limits_patch *patch)
{
	struct queue_limits after = *limits;

	if (patch->set & LIMITS_SET_CONCURRENCY)
		after.concurrency = patch->wanted.concurrency;
	assert(limits_are_sound(&after));
	return (struct limits_decision){
		.event = limits_equal(limits, &after) ? EVENT_NONE : EVENT_QUEUE_UPDATED,
		.limits = after,
	};
}

enum limit_kind limits_judge(const struct queue_limits *limits, const struct queue_load *load)
{
	if (limits->concurrency != 0 && load->live >= limits->concurrency)
		return LIMIT_CONCURRENCY;
	return LIMIT_NONE;
}

uint32_t limits_room(const struct queue_limits *limits, const struct queue_load *load)
{
	if (limits_judge(limits, load) != LIMIT_NONE)
		return 0;
	return limits->concurrency != 0 ? limits->concurrency - load->live : UINT32_MAX;
}

bool limits_are_none(const struct queue_limits *limits)
{
	return limits->concurrency == 0;
}

bool limits_are_sound(const struct queue_limits *limits)
{
	return limits->concurrency <= LIMIT_MAX;
}

const char *limit_kind_name(enum limit_kind kind)
{
	static const char *const names[LIMIT_KIND_COUNT] = {
		[LIMIT_HOLD] = "hold",
		[LIMIT_CONCURRENCY] = "concurrency",
	};

	assert(kind > LIMIT_NONE);
	assert(kind < LIMIT_KIND_COUNT);
	return names[kind];
}
