/*
 * The dead man's switch of a tree: how long it may run without a message of the supervisor.
 *
 * The supervisor holds its work under leases. It may be stopped, starved or frozen, with its children running on; then its
 * leases end, somebody else gets the work, and two would run at once. So the shim has a deadline, which a supervisor that
 * lives keeps pushing (process_lease()), and ends the tree itself when that has not come in time: TERM, then KILL after the
 * grace, both before the lease is over. A tree that is on its way out when it is pushed after all stays so.
 *
 * Which clock? That of leases, which counts from boot and cannot be set. It runs on while the machine sleeps, and after that
 * everybody is late at once:
 *
 *   the server is elsewhere   it did not sleep: the lease is over, and the tree ends as soon as the machine wakes
 *   the server is here        it gives everybody a window from its waking on, for as long as the lease or 30 s; a supervisor
 *                             that lives has pushed by then. When it woke nobody tells us, but not before as much time had
 *                             passed since the last push as it slept. From there the window counts: never longer than the
 *                             server's
 *
 * A shim that was late itself hears all orders that wait for it before it looks at the deadline. What is not under a lease
 * (an idle worker of a pool, git that makes a work tree) has none.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "exec/request/terms.h"

/* A machine that slept less long did not sleep: so the server counts, too. */
enum { DEADLINE_SLEPT_MS = 2000 };

struct deadline {
	int timer; /* a timerfd on the clock of leases: also the end of a sleep wakes it */
	struct process_lease lease;
	int64_t pushed_ms; /* when the lease arrived */
	int64_t asleep_ms; /* how long the machine had slept since boot, at that time */
};

/* Negative errno. */
int deadline_open(struct deadline *deadline);

/* Replaces the lease; until_ms 0: no deadline. */
void deadline_push(struct deadline *deadline, const struct process_lease *lease);

/* Is the deadline over? *ret_grace_ms is then the time between TERM and KILL. True once for each lease. */
bool deadline_is_over(struct deadline *deadline, uint32_t *ret_grace_ms);

/* When the deadline is over, if the machine has slept asleep_ms since boot; INT64_MAX: never. */
int64_t deadline_end_ms(const struct deadline *deadline, int64_t asleep_ms);
