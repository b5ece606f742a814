/*
 * What the repository we stand in says of new tasks: the file .stint/config.json beside its .git.
 *
 * It comes with a clone, so it is not trusted: it may name a queue, an executor and labels, and nothing that runs. Any
 * other key is an error, because its author believes that it has an effect.
 */
#pragma once

#include "cli/frame/cli.h"

struct defaults {
	const char *queue, *executor; /* NULL: not given */
	struct span labels;           /* a JSON array; empty: not given */
};

/* Without such a file all defaults are empty; a file with a mistake ends the run. The texts live as long as the run. */
struct defaults defaults_read(struct cli *cli);
