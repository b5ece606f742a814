/*
 * The sweep of pull requests: asks `gh` for open pull requests that wait for a review, and adds a task for each. A task
 * has an id of its repository, number and commit, and a unique key of the first two: while one is open there is no second,
 * and a commit that was looked at is not looked at again. Or it runs a program of the configuration that prints tasks itself, one
 * JSON object a line, each with an id or a uniqueKey.
 */
#pragma once

#include "worker/supervisor/supervisor.h"

enum { SWEEP_COMPLAINT_BYTES = 600 };

struct sweep_result {
	uint32_t found, added;                 /* that need attention; of them, new */
	char complaint[SWEEP_COMPLAINT_BYTES]; /* if it failed */
};

/* With a loop of its own, before any other runs. -ENOENT: there is no gh, and nothing was done; other faults as they come:
 * the complaint says it in a sentence. */
int sweep_prs(const struct supervisor_options *options, const struct settings_sweep *sweep,
	struct sweep_result *ret);
