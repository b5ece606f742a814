/*
 * What a seed expands to: the rules in force, who takes part, and how often what goes wrong. Everything is
 * printed before the run, so that a failure says under which weather it happened.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

// clang-format off
#define FAULTS(X) \
	X(CRASH,        "crash",        8, "the server dies between two turns") \
	X(CRASH_UNSAID, "crash-unsaid", 5, "it dies after a commit, before the replies") \
	X(REBOOT,       "reboot",       5, "the machine restarts: a new boot id, the lease clock at a small number") \
	X(SUSPEND,      "suspend",      4, "the machine sleeps; the lease clock goes on") \
	X(STALL,        "stall",        4, "the server does nothing for a while") \
	X(WALL_JUMP,    "wall-jump",    6, "somebody sets the wall clock") \
	X(DISK_FULL,    "disk-full",    4, "commits fail until there is room again") \
	X(COMMIT_FAULT, "commit-fault", 3, "a commit fails for good: the process ends and starts again") \
	X(BACKUP,       "backup",       4, "a copy of the store is made") \
	X(RESTORE,      "restore",      3, "the store is replaced by that copy")
// clang-format on

enum fault {
	FAULT_NONE = 0,
#define X(name, word, weight, text) FAULT_##name,
	FAULTS(X)
#undef X
		FAULT_COUNT
};

struct sim_options {
	/* as given */
	uint64_t seed;
	uint32_t seeds;
	uint64_t steps;
	bool thorough; /* --long: the coverage must be complete */
	bool verbose;
	const char *states_md;
	const char *history_path; /* where the history goes too; NULL: nowhere */

	/* as expanded from the seed; rates are "one in", 0 is never */
	struct rules rules;
	struct retention retention;
	uint32_t pace_percent; /* of all waiting of actors, and of the rules */
	uint32_t steady, workers, plain, named, producers, operators, impostors, remote;
	uint32_t live_max; /* producers wait while so many tasks are not final */
	uint32_t lose_request, lose_reply, duplicate, delay, hang_up;
	int64_t delay_max_ms;
	uint32_t batch_max;
	uint32_t fault_one_in; /* per step */
	uint32_t fault_weight[FAULT_COUNT];
	int64_t wall_jump_max_ms;
};

/* Fill in what the seed stands for. */
void options_expand(struct sim_options *options, uint64_t seed);
void options_print(const struct sim_options *options);

const char *fault_name(enum fault fault);
