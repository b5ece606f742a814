#include "core/flow/hold.h"

#include <assert.h>

#define MINUTE_MS     INT64_C(60000)
#define HOLD_MS_MAX   (8 * 24 * 60 * MINUTE_MS) /* a later time that a service names counts as this */
#define RELEASING_MS  (10 * MINUTE_MS)
#define JITTER_MS_MAX MINUTE_MS

/* The length of hold number k in a row, where the service named no time. */
static int64_t length_ms(enum failure_code code, uint32_t k)
{
	int64_t first_ms = code == CODE_UPSTREAM ? MINUTE_MS : 5 * MINUTE_MS;
	int64_t most_ms = code == CODE_UPSTREAM ? 15 * MINUTE_MS : 60 * MINUTE_MS;

	while (k > 1 && first_ms < most_ms) {
		first_ms *= 2;
		k--;
	}
	return first_ms < most_ms ? first_ms : most_ms;
}

/* So that not every worker comes back in the same second: up to a fifth, and up to a minute. */
static int64_t jitter_ms(int64_t length, uint32_t random)
{
	int64_t most_ms = length / 5 < JITTER_MS_MAX ? length / 5 : JITTER_MS_MAX;

	return most_ms * (int64_t)(random >> 8) / (INT64_C(1) << 24);
}

static int64_t end_ms(enum failure_code code, int64_t retry_at_ms, uint32_t k, const struct given *given)
{
	int64_t now_ms = given->now.wall_ms;
	int64_t named_ms = retry_at_ms - now_ms < HOLD_MS_MAX ? retry_at_ms - now_ms : HOLD_MS_MAX;

	if (code == CODE_AUTH)
		return 0; /* a login comes back by a person's hand alone */
	int64_t wait_ms = retry_at_ms > now_ms ? named_ms : length_ms(code, k);
	return now_ms + wait_ms + jitter_ms(wait_ms, given->random);
}

/* Does the first end later? 0 is never. */
static bool is_later(int64_t a_ms, int64_t b_ms)
{
	return b_ms != 0 && (a_ms == 0 || a_ms > b_ms);
}

struct hold_decision hold_fail(
	const struct hold *hold, enum failure_code code, int64_t retry_at_ms, const struct given *given)
{
	struct hold_decision decision = {.hold = *hold};
	struct hold *after = &decision.hold;

	if (hold->state ==
		HOLD_HELD) { /* others that ran when it was opened fail, too: it is the same hold */
		int64_t until_ms = end_ms(code, retry_at_ms, hold->in_row, given);
		if (!is_later(until_ms, hold->until_ms))
			return decision;
		after->until_ms = until_ms;
		after->code = code;
		decision.event = EVENT_HOLD_EXTENDED;
		return decision;
	}
	*after = (struct hold){
		.state = HOLD_HELD,
		.code = code,
		.in_row = hold->in_row + 1,
		.since_ms = given->now.wall_ms,
		.until_ms = end_ms(code, retry_at_ms, hold->in_row + 1, given),
	};
	decision.event = EVENT_HOLD_OPENED;
	return decision;
}

struct hold_decision hold_spend(const struct hold *hold, int64_t until_ms, const struct given *given)
{
	struct hold_decision decision = {.hold = *hold};

	if (hold->state == HOLD_HELD && !is_later(until_ms, hold->until_ms))
		return decision;
	decision.event = hold->state == HOLD_HELD ? EVENT_HOLD_EXTENDED : EVENT_HOLD_OPENED;
	decision.hold = (struct hold){
		.state = HOLD_HELD,
		.code = CODE_BUDGET_EXCEEDED,
		.in_row = hold->in_row,
		.since_ms = hold->state == HOLD_HELD ? hold->since_ms : given->now.wall_ms,
		.until_ms = until_ms,
	};
	return decision;
}

struct hold_decision hold_set(const struct hold *hold, int64_t until_ms, const struct given *given)
{
	struct hold_decision decision = {.hold = *hold};

	decision.event = hold->state == HOLD_HELD ? EVENT_HOLD_EXTENDED : EVENT_HOLD_OPENED;
	decision.hold = (struct hold){
		.state = HOLD_HELD,
		.in_row = hold->in_row,
		.since_ms = hold->state == HOLD_HELD ? hold->since_ms : given->now.wall_ms,
		.until_ms = until_ms,
	};
	return decision;
}

struct hold_decision hold_lift(const struct hold *hold)
{
	bool is_open = hold->state == HOLD_HELD || hold->state == HOLD_PROBING;

	return (struct hold_decision){.event = is_open ? EVENT_HOLD_CLOSED : EVENT_NONE};
}

/* When its release ends. */
static int64_t released_ms(const struct hold *hold)
{
	assert(hold->state == HOLD_RELEASING);
	return hold->since_ms + RELEASING_MS;
}

struct hold_decision hold_due(const struct hold *hold, const struct given *given)
{
	struct hold_decision decision = {.hold = *hold};

	if (hold->state == HOLD_NONE || hold_next_ms(hold) > given->now.wall_ms)
		return decision;
	if (hold->state == HOLD_HELD) {
		decision.hold.state = HOLD_PROBING;
		decision.event = EVENT_HOLD_PROBING;
	} else if (given->now.wall_ms < released_ms(hold)) {
		decision.hold.next_ms = 0; /* the next claim may come, and this is said once */
	} else {
		decision.hold = (struct hold){0};
	}
	return decision;
}

struct hold_decision hold_prove(
	const struct hold *hold, int64_t task, uint64_t fence, const struct given *given)
{
	struct hold_decision decision = {.hold = *hold};

	if (hold->state != HOLD_PROBING || hold->probe_task != task || hold->probe_fence != fence)
		return decision;
	decision.hold = (struct hold){
		.state = HOLD_RELEASING,
		.code = hold->code,
		.in_row = hold->in_row,
		.since_ms = given->now.wall_ms,
	};
	decision.event = EVENT_HOLD_CLOSED;
	return decision;
}

bool hold_lets(const struct hold *hold, bool probe_lives, const struct given *given)
{
	switch (hold->state) {
	case HOLD_NONE:
		return true;
	case HOLD_HELD:
		return false;
	case HOLD_PROBING:
		return hold->probe_task == 0 || !probe_lives;
	case HOLD_RELEASING:
		return given->now.wall_ms >= hold->next_ms;
	}
	return false;
}

struct hold hold_claimed(const struct hold *hold, int64_t task, uint64_t fence, const struct given *given)
{
	struct hold after = *hold;

	if (hold->state == HOLD_PROBING) {
		after.probe_task = task;
		after.probe_fence = fence;
	} else if (hold->state == HOLD_RELEASING) {
		after.next_ms = given->now.wall_ms + MINUTE_MS / given->rules->hold_release_per_minute;
	}
	return after;
}

struct hold hold_resumed(const struct hold *hold, int64_t task, uint64_t fence)
{
	struct hold after = *hold;

	if (hold->state == HOLD_PROBING && hold->probe_task == task)
		after.probe_fence = fence;
	return after;
}

int64_t hold_next_ms(const struct hold *hold)
{
	switch (hold->state) {
	case HOLD_NONE:
	case HOLD_PROBING:
		break;
	case HOLD_HELD:
		return hold->until_ms != 0 ? hold->until_ms : INT64_MAX;
	case HOLD_RELEASING:
		return hold->next_ms != 0 && hold->next_ms < released_ms(hold) ? hold->next_ms
									       : released_ms(hold);
	}
	return INT64_MAX;
}

const char *hold_state_name(enum hold_state state)
{
	static const char *const names[] = {"none", "held", "probing", "releasing"};

	assert(state >= HOLD_NONE);
	assert(state <= HOLD_RELEASING);
	return names[state];
}

bool hold_is_sound(const struct hold *hold)
{
	return hold->state >= HOLD_HELD && hold->state <= HOLD_RELEASING && hold->code < FAILURE_CODE_COUNT &&
		(hold->probe_task == 0 || hold->state == HOLD_PROBING);
}
