/*
 * A timing wheel: setting, moving and dropping a timer cost the same however many there are.
 *
 * Timers are 32-bit numbers whose nodes live in the caller's records. Time is cut into ticks; a timer hangs
 * in the list of its tick, modulo the size of the wheel, so one that is further away than a full turn of
 * the wheel is merely looked at once per turn. A timer is never given out early, and at most one tick late.
 *
 * Why there is a heap (base/heap.h) beside it: a wheel only goes forward, so it is for a clock that cannot be set. Leases
 * run on such a clock. People's times (not before, deadlines, back-off) run on the wall clock, which may be set back: then a
 * wheel has passed the ticks that come once more, and the timers of those ticks would be late by a full turn. The heap
 * keeps no position in time and has only its earliest entry compared with the clock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define WHEEL_TICK_MS 128
#define WHEEL_SPOKES  4096u
#define WHEEL_NONE    UINT32_MAX

struct wheel_node {
	int64_t at_ms; /* meaningful while it hangs in the wheel */
	uint32_t next, previous;
	uint16_t spoke;
	bool hangs;
};

struct wheel {
	uint32_t spokes[WHEEL_SPOKES]; /* first timer of each list */
	uint64_t busy[WHEEL_SPOKES / 64];
	int64_t tick; /* everything before it has been given out */
	uint32_t count;
	struct wheel_node *(*node_of)(void *context, uint32_t timer);
	void *context;
};

/* Allocates nothing. The wheel starts at now_ms. */
void wheel_init(struct wheel *wheel, struct wheel_node *(*node_of)(void *context, uint32_t timer),
	void *context, int64_t now_ms);

/* Hang it in, or move it. */
void wheel_set(struct wheel *wheel, uint32_t timer, int64_t at_ms);

/* Take it out; nothing happens if it does not hang. */
void wheel_drop(struct wheel *wheel, uint32_t timer);

/* Take out the timers whose time has come, at most `limit`, and hand each to `each`, which must leave the wheel
 * alone. Returns how many; `limit` means that there may be more. */
uint32_t wheel_advance(struct wheel *wheel, int64_t now_ms, uint32_t limit,
	void (*each)(void *context, uint32_t timer), void *context);

/* How long until the wheel wants to be asked again: a lower bound; INT64_MAX when it is empty. */
int64_t wheel_idle_ms(const struct wheel *wheel, int64_t now_ms);
