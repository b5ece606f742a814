/*
 * The subtasks of a task, and theirs, as stint show has them.
 */
#pragma once

#include "cli/frame/cli.h"

/* A list in JSON, each before its own subtasks: id, title, state, parent, level (from 1). At most TREE_SHOWN_MAX of them. */
enum {
	TREE_SHOWN_MAX = 100,
};
void tree_read(struct cli *cli, yyjson_val *task, struct buf *list);

/* The list for people; nothing, if it is empty. `children`: how many the task itself has. */
void tree_put(struct cli *cli, yyjson_val *list, size_t children);
