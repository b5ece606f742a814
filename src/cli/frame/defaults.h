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

/* 0, also where there is no such file; or the ending. What is given lives as long as the run. */
int defaults_read(struct cli *cli, struct defaults *ret_defaults);
