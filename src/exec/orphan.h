/*
 * Orphans: what a predecessor started and did not live to end.
 *
 * Their shims end them by themselves within SHIM_ORPHAN_MS; this waits for that, and ends what is left without one. An
 * orphan is known by what was written down: pid and start time within one boot, the cgroup, and the marker in the
 * environment. A record of another boot, or a pid that somebody else has now, touches nobody.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "exec/process.h"

struct orphans_left {
	uint32_t found; /* processes that were still there when we looked first */
	uint32_t left;  /* that are there now: 0 unless the time was too short */
};

/*
 * Waits at most timeout_ms for all of them to be gone; 10 s is ample. A record may have only the run: then the marker
 * finds it. Blocks, for use before the loop runs; no host may be open.
 */
int orphans_end(
	const struct process_identity *records, size_t count, int timeout_ms, struct orphans_left *ret_left);
