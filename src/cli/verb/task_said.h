/*
 * What the verbs of a program inside a task share: who it is. It comes from the environment, or from flags.
 */
#pragma once

#include "cli/frame/cli.h"

#define WHO                                                                                                \
	{"task", 0, FLAG_TEXT, OFFER_TASKS, .value = "ID", .text = "the task (default $STINT_TASK_ID)"},   \
		{"fence", 0, FLAG_TEXT, .value = "N", .text = "the claim's fence (default $STINT_FENCE)"}, \
		{"worker", 0, FLAG_TEXT, OFFER_WORKERS, .value = "ID",                                     \
			.text = "who holds it (default $STINT_WORKER_ID)"},                                \
		{0}

/* What the flag says, else the variable; NULL: neither. */
const char *task_given_or(struct cli *cli, const char *flag, const char *variable);

/* The beginning of a report: who says it. The token of a claim says it itself. 0, or the ending. */
int task_begin(struct cli *cli, struct json_object *body);
