/*
 * Why a task is where it is, in a sentence, and the command that moves it.
 */
#pragma once

#include "cli/frame/cli.h"

struct answer_why {
	const char *sentence, *fix; /* they live as long as the run; a fix may be NULL */
};

/* From what the server says (GET /api/tasks/ID/why) and the task itself. May ask the server for the tasks it waits
 * for. */
struct answer_why reason_tell(struct cli *cli, yyjson_val *why, yyjson_val *task);
