/*
 * All work trees of a state directory: live trees, trees that were kept because there is work in them, and trees that a dead
 * worker left half made, half removed, or not looked at. A worker that starts takes care of the last;
 * `stint worker worktrees` lists all and, with --prune, removes trees that have become clean.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Before the loop runs, and with no host open: blocks while git works. Trees that a dead worker left are removed or kept; trees
 * that are kept already, or in use, are not touched. Returns how many it took care of. */
uint32_t worktrees_heal(const char *home, bool landlock_optional);

/* The whole command: a line for each tree, or JSON. The status to end with. */
int worktrees_list(const char *home, bool landlock_optional, bool prune, bool json);
