/*
 * The life of one store: opened on an empty disk, worked with, cut off, opened again, and looked at each time.
 *
 * One seed is one life. Nothing in it depends on anything but the seed, so a violation is found again by
 * living the same life up to the same cycle.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "powerloss/disk.h"

struct life_totals {
	uint64_t cuts, kills, restarts, full_disks, failed_syncs, looks_inside;
	uint64_t turns;      /* acknowledged */
	uint64_t lost_turns; /* of those; only NORMAL may lose any */
	uint64_t in_doubt_found;
	uint64_t operations;
};

struct life_options {
	const char *synchronous; /* FULL: nothing may be lost; NORMAL: the losses are counted */
	struct life_totals *totals;
	bool stale_cache; /* after a failed sync and a restart the system still shows what never reached the disk */
	bool trace;
};

/* Once per process, before the first life. */
void life_prepare(void);

/* Up to `cycles` cycles; returns how many there were. A violation ends the program. */
uint32_t life_run(const struct life_options *options, uint64_t seed, uint32_t cycles);

/* A fixed script on an empty disk, cut at that operation. False if the script ended before it. */
bool life_run_script(const struct life_options *options, uint64_t seed, uint64_t cut_at);
