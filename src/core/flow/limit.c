#include "core/flow/limit.h"

#include <assert.h>
#include <stddef.h>

#include "base/hash.h"

static bool limits_equal(const struct queue_limits *a, const struct queue_limits *b)
{
	return a->concurrency == b->concurrency && a->per_key == b->per_key &&
		a->sequential == b->sequential && a->review == b->review && a->fair == b->fair &&
		a->max_open == b->max_open && a->rate.count == b->rate.count &&
		a->rate.burst == b->rate.burst && a->rate.per_ms == b->rate.per_ms &&
		a->rate.per_key == b->rate.per_key;
}

struct limits_decision limits_change(const struct queue_limits *limits, const struct limits_patch *patch)
{
	struct queue_limits after = *limits;

	if (patch->set & LIMITS_SET_CONCURRENCY)
		after.concurrency = patch->wanted.concurrency;
	if (patch->set & LIMITS_SET_PER_KEY)
		after.per_key = patch->wanted.per_key;
	if (patch->set & LIMITS_SET_SEQUENTIAL)
		after.sequential = patch->wanted.sequential;
	if (patch->set & LIMITS_SET_RATE)
		after.rate = patch->wanted.rate;
	if (patch->set & LIMITS_SET_REVIEW)
		after.review = patch->wanted.review;
	if (patch->set & LIMITS_SET_FAIR)
		after.fair = patch->wanted.fair;
	if (patch->set & LIMITS_SET_MAX_OPEN)
		after.max_open = patch->wanted.max_open;
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
	if (limits->review != 0 && load->review >= limits->review)
		return LIMIT_REVIEW;
	return LIMIT_NONE;
}

enum limit_kind limits_judge_key(
	const struct queue_limits *limits, uint32_t cap, const struct key_load *load, bool begun)
{
	uint32_t most = cap != 0 ? cap : limits->per_key;

	if (most != 0 && load->live >= most)
		return LIMIT_PER_KEY;
	if (limits->sequential && (begun ? load->live : load->begun) > 0)
		return LIMIT_SEQUENTIAL;
	return LIMIT_NONE;
}

uint32_t limits_room(const struct queue_limits *limits, const struct queue_load *load)
{
	if (limits_judge(limits, load) != LIMIT_NONE)
		return 0;
	return limits->concurrency != 0 ? limits->concurrency - load->live : UINT32_MAX;
}

uint32_t limits_key_room(const struct queue_limits *limits, uint32_t cap, const struct key_load *load)
{
	uint32_t most = cap != 0 ? cap : limits->per_key;
	uint32_t room = most == 0 ? UINT32_MAX : most > load->live ? most - load->live : 0;

	if (!limits->sequential || room == 0)
		return room;
	return load->live == 0 ? 1 : 0;
}

int fair_order(const struct fair_turn *a, const struct fair_turn *b)
{
	if (a->live != b->live)
		return a->live < b->live ? -1 : 1;
	return a->served < b->served ? -1 : a->served > b->served;
}

bool limits_are_full(const struct queue_limits *limits, uint64_t open)
{
	return limits->max_open != 0 && open >= limits->max_open;
}

/* ---- rates ------------------------------------------------------------------------------------------------------- */

#define NS_PER_MS INT64_C(1000000)

/* Rounded up: a rate is rather a little too slow than too fast. */
static int64_t step_ns(const struct rate *rate)
{
	return (rate->per_ms * NS_PER_MS + rate->count - 1) / rate->count;
}

int64_t rate_take(const struct rate *rate, int64_t due_ns, int64_t now_ms)
{
	int64_t now_ns = now_ms * NS_PER_MS;

	return (due_ns > now_ns ? due_ns : now_ns) + step_ns(rate);
}

int64_t rate_clamp(const struct rate *rate, int64_t due_ns, int64_t now_ms)
{
	int64_t most_ns = rate->count != 0 ? now_ms * NS_PER_MS + rate->burst * step_ns(rate) : due_ns;

	return due_ns < most_ns ? due_ns : most_ns;
}

int64_t rate_opens_ms(const struct rate *rate, int64_t due_ns, int64_t now_ms)
{
	int64_t opens_ns = due_ns - (rate->burst - 1) * step_ns(rate);

	if (opens_ns <= now_ms * NS_PER_MS)
		return now_ms;
	return (opens_ns + NS_PER_MS - 1) / NS_PER_MS;
}

bool rate_is_sound(const struct rate *rate)
{
	if (rate->count == 0)
		return rate->burst == 0 && rate->per_ms == 0 && !rate->per_key;
	return rate->count <= LIMIT_MAX && rate->burst >= 1 && rate->burst <= LIMIT_MAX &&
		rate->per_ms >= 1 && rate->per_ms <= RATE_FILL_MS_MAX &&
		(double)rate->per_ms / rate->count * rate->burst <= (double)RATE_FILL_MS_MAX;
}

bool limits_are_none(const struct queue_limits *limits)
{
	return limits->concurrency == 0 && limits->per_key == 0 && !limits->sequential &&
		limits->rate.count == 0 && limits->review == 0 && !limits->fair && limits->max_open == 0;
}

bool limits_are_sound(const struct queue_limits *limits)
{
	return limits->concurrency <= LIMIT_MAX && limits->per_key <= LIMIT_MAX &&
		limits->review <= LIMIT_MAX && limits->max_open <= LIMIT_MAX && rate_is_sound(&limits->rate);
}

const char *limit_kind_name(enum limit_kind kind)
{
	static const char *const names[LIMIT_KIND_COUNT] = {
		[LIMIT_HOLD] = "hold",
		[LIMIT_CONCURRENCY] = "concurrency",
		[LIMIT_PER_KEY] = "perKey",
		[LIMIT_SEQUENTIAL] = "sequential",
		[LIMIT_RATE] = "rate",
		[LIMIT_REVIEW] = "review",
		[LIMIT_BUDGET] = "budget",
	};

	assert(kind > LIMIT_NONE);
	assert(kind < LIMIT_KIND_COUNT);
	return names[kind];
}

uint64_t concurrency_key_number(struct span text)
{
	static const struct hash_key fixed = {UINT64_C(0x7374696e742e6b65), UINT64_C(0x79732e2e2e2e2e2e)};
	uint64_t number = text.len > 0 ? hash_bytes(&fixed, text.data, text.len) : 0;

	return text.len > 0 && number == 0 ? 1 : number;
}
