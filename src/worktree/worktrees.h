/*
 * All work trees of a state directory: those that live, those that were kept because there is work in them, and those that
 * a worker which died has left half made, half removed, or not looked at. Whoever starts a worker looks after the last;
 * `stint worker worktrees` lists all and, with --prune, removes what has become clean.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Before the loop runs, and with no host open: blocks while git works. What a dead worker left is removed or kept; what is
 * kept, or somebody works with, is not touched. How many were looked after. */
uint32_t worktrees_heal(const char *home, bool landlock_optional);

/* The whole command: a line for each tree, or JSON. The status to end with. */
int worktrees_list(const char *home, bool landlock_optional, bool prune, bool json);
