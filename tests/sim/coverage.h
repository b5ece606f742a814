/*
 * What the runs have touched: every operation in every state of its object under every weather, and every
 * move of the transition table. Cells that cannot be reached are named with the reason.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/command.h"
#include "sim/options.h"

enum {
	COVERAGE_STATES = TASK_STATE_COUNT, /* states of tasks, workers, queues or slots */
	COVERAGE_REPEAT = FAULT_COUNT,      /* the weather of a request that had arrived before */
	COVERAGE_WEATHERS,
};

struct coverage {
	uint64_t ops[COMMAND_KIND_COUNT][COVERAGE_STATES][COVERAGE_WEATHERS];
	uint64_t moves[EVENT_KIND_COUNT][TASK_STATE_COUNT][TASK_STATE_COUNT];
	uint64_t kinds[EVENT_KIND_COUNT];
	uint64_t refusals[REFUSAL_COUNT];
};

void coverage_op(struct coverage *coverage, enum command_kind op, uint32_t state, uint32_t weather);
void coverage_event(
	struct coverage *coverage, enum event_kind kind, enum task_state from, enum task_state to);

/* Prints the matrix. `thorough`: each weather of each cell counts by itself. Returns the number of empty
 * reachable cells. */
uint32_t coverage_print(const struct coverage *coverage, bool thorough);
