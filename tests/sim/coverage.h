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

/* What flow control may mean for a task when it is claimed. */
// clang-format off
#define FLOWS(X) \
	X(CONCURRENCY, "concurrency") \
	X(PER_KEY,     "perKey") \
	X(SEQUENTIAL,  "sequential") \
	X(RATE,        "rate") \
	X(REVIEW,      "review") \
	X(FAIR,        "fair") \
	X(MAX_OPEN,    "maxOpen") \
	X(AGEING,      "ageing") \
	X(HOLD,        "hold") \
	X(UNIQUE,      "unique") \
	X(SUCCESSOR,   "successor") \
	X(PARENTS,     "parents") \
	X(MEMBER,      "group") \
	X(WAITED,      "blockedByGroups") \
	X(SUBTASK,     "subtask") \
	X(SCHEDULE,    "schedule") \
	X(BULK,        "bulk")
// clang-format on

enum flow {
#define X(name, word) FLOW_##name,
	FLOWS(X)
#undef X
		FLOW_COUNT
};

struct coverage {
	uint64_t ops[COMMAND_KIND_COUNT][COVERAGE_STATES][COVERAGE_WEATHERS];
	uint64_t moves[EVENT_KIND_COUNT][TASK_STATE_COUNT][TASK_STATE_COUNT];
	uint64_t kinds[EVENT_KIND_COUNT];
	uint64_t refusals[REFUSAL_COUNT];
	uint64_t flows[FLOW_COUNT][FLOW_COUNT]; /* claims of tasks for which both meant something */
};

/* A task was claimed: a bit for each. */
void coverage_flow(struct coverage *coverage, uint32_t flows);

void coverage_op(struct coverage *coverage, enum command_kind op, uint32_t state, uint32_t weather);
void coverage_event(
	struct coverage *coverage, enum event_kind kind, enum task_state from, enum task_state to);

/* Prints the matrix. `thorough`: each weather of each cell counts by itself. Returns the number of empty
 * reachable cells. */
uint32_t coverage_print(const struct coverage *coverage, bool thorough);
