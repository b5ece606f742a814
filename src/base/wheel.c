#include "base/wheel.h"

#include <assert.h>
#include <string.h>

static int64_t tick_of(int64_t at_ms)
{
	/* rounded up: the list of a tick is looked at when the tick has passed, so nothing is early */
	return (at_ms + WHEEL_TICK_MS - 1) / WHEEL_TICK_MS;
}

static uint32_t spoke_of(int64_t tick)
{
	return (uint32_t)((uint64_t)tick % WHEEL_SPOKES);
}

void wheel_init(struct wheel *wheel, struct wheel_node *(*node_of)(void *context, uint32_t timer),
	void *context, int64_t now_ms)
{
	memset(wheel, 0, sizeof *wheel);
	memset(wheel->spokes, 0xff, sizeof wheel->spokes); /* WHEEL_NONE */
	wheel->tick = now_ms / WHEEL_TICK_MS;
	wheel->node_of = node_of;
	wheel->context = context;
}

void wheel_set(struct wheel *wheel, uint32_t timer, int64_t at_ms)
{
	struct wheel_node *node = wheel->node_of(wheel->context, timer);

	assert(at_ms < INT64_MAX - WHEEL_TICK_MS);
	wheel_drop(wheel, timer);
	int64_t tick = tick_of(at_ms);
	if (tick < wheel->tick)
		tick = wheel->tick;
	uint32_t spoke = spoke_of(tick);
	*node = (struct wheel_node){at_ms, wheel->spokes[spoke], WHEEL_NONE, (uint16_t)spoke, true};
	if (node->next != WHEEL_NONE)
		wheel->node_of(wheel->context, node->next)->previous = timer;
	else
		wheel->busy[spoke / 64] |= UINT64_C(1) << spoke % 64;
	wheel->spokes[spoke] = timer;
	wheel->count++;
}

void wheel_drop(struct wheel *wheel, uint32_t timer)
{
	struct wheel_node *node = wheel->node_of(wheel->context, timer);

	if (!node->hangs)
		return;
	node->hangs = false;
	wheel->count--;
	if (node->next != WHEEL_NONE)
		wheel->node_of(wheel->context, node->next)->previous = node->previous;
	if (node->previous != WHEEL_NONE) {
		wheel->node_of(wheel->context, node->previous)->next = node->next;
		return;
	}
	assert(wheel->spokes[node->spoke] == timer);
	wheel->spokes[node->spoke] = node->next;
	if (node->next == WHEEL_NONE)
		wheel->busy[node->spoke / 64] &= ~(UINT64_C(1) << node->spoke % 64);
}

/* The due timers of one spoke. */
static uint32_t empty_spoke(struct wheel *wheel, uint32_t spoke, int64_t now_ms, uint32_t limit,
	void (*each)(void *context, uint32_t timer), void *context)
{
	uint32_t given = 0;

	for (uint32_t timer = wheel->spokes[spoke], next; timer != WHEEL_NONE && given < limit;
		timer = next) {
		const struct wheel_node *node = wheel->node_of(wheel->context, timer);
		next = node->next;
		if (node->at_ms > now_ms)
			continue; /* of a later turn of the wheel */
		wheel_drop(wheel, timer);
		each(context, timer);
		given++;
	}
	return given;
}

uint32_t wheel_advance(struct wheel *wheel, int64_t now_ms, uint32_t limit,
	void (*each)(void *context, uint32_t timer), void *context)
{
	int64_t now_tick = now_ms / WHEEL_TICK_MS;
	uint32_t given = 0;

	if (now_tick - wheel->tick >= WHEEL_SPOKES)
		wheel->tick = now_tick - WHEEL_SPOKES + 1; /* one full turn looks at everything */
	for (;;) {
		given += empty_spoke(wheel, spoke_of(wheel->tick), now_ms, limit - given, each, context);
		if (given == limit || wheel->tick >= now_tick)
			return given;
		wheel->tick++;
	}
}

/* Word by word: a server asks this after every turn. */
int64_t wheel_idle_ms(const struct wheel *wheel, int64_t now_ms)
{
	if (wheel->count == 0)
		return INT64_MAX;
	for (uint32_t ahead = 0; ahead < WHEEL_SPOKES;) {
		uint32_t spoke = spoke_of(wheel->tick + ahead);
		uint64_t busy = wheel->busy[spoke / 64] >> spoke % 64;
		if (busy != 0) {
			int64_t tick = wheel->tick + ahead + __builtin_ctzll(busy);
			int64_t wait_ms = tick * WHEEL_TICK_MS - now_ms;
			return wait_ms > 0 ? wait_ms : 0;
		}
		ahead += 64 - spoke % 64;
	}
	return INT64_MAX;
}
