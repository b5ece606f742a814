/*
 * Choosing the next task for a claimant. Only claim.c includes this.
 */
#pragma once

#include "store/command/commands.h"

struct head;

/* Who claims, and what it may take. */
struct chooser {
	struct turn_worker *worker;
	const struct command_claim *wants;
	uint32_t slot;
	struct name_set capabilities, executors;
	bool any_executor;
	size_t handed_before; /* by this turn to others */
	struct slot_entry slot_entry,
		own_entry; /* of the slot it claims for, and of its own if that is another */
	bool enters;
	struct worker_decision entry;
	int fault;
	struct head *heads; /* of the fair queues that this choice has looked at */
};

/* The task that it should get next; *ret_seq 0: there is none. -ENOMEM. */
int choose_next(struct turn *turn, struct chooser *chooser, int64_t *ret_seq);

/* Does it take work of that queue, which is not paused? */
bool chooser_wants_queue(const struct turn *turn, const struct chooser *chooser, uint32_t queue);
