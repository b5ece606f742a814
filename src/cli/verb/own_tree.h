/*
 * The git work tree that an agent gets when a person adds a task in a repository: whether it gets one, and what of the person's own
 * tree it begins with.
 */
#pragma once

#include "cli/frame/cli.h"

/* The member "worktree" of a task of an agent in that directory. With --with-changes the tree begins with the changes that are not
 * committed; what keeps git from that ends the run. */
void own_tree_put(struct cli *cli, struct json_object *task, const char *dir);

/* The task was made: says what the agent does not see. */
void own_tree_tell(struct cli *cli, yyjson_val *task);

/* Of stint add alone. */
bool takes_changes(const struct cli *cli);
