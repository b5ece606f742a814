/*
 * The system's own paths (grants_system), opened once for all processes: a start then takes one call for each instead of
 * five. What lies beneath another that grants as much (/bin, where it is /usr/bin) is left out.
 *
 * Only what stays what it is: /run is made anew by its services, and what does not exist yet may come. Such paths are
 * opened at each start, if they were there when they were last looked for, which is at most SYSTEM_GRANTS_LOOK_MS ago. Whether one of them would open the state directory is asked at each start, too. The price: a file
 * system that is mounted at one of them stays busy for as long as the host is open.
 */
#pragma once

#include "exec/request/confine.h"

enum { SYSTEM_GRANTS_MAX = 32, SYSTEM_GRANTS_LOOK_MS = 1000 };

struct system_grants {
	struct grant grants[SYSTEM_GRANTS_MAX]; /* held, or by path */
	size_t count;
	bool there[SYSTEM_GRANTS_MAX]; /* of grants by path: did it exist at the last look? */
	int64_t look_at_ms;            /* the next look, by monotonic_ms() */
};

/* Whatever cannot be opened now is left as a path. */
void system_grants_open(struct system_grants *ret_system);

/* Before a start: which grants by path exist now? */
void system_grants_look(struct system_grants *system, int64_t now_ms);

void system_grants_close(struct system_grants *system);
