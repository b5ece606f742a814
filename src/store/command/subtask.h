/*
 * Subtasks in a turn: see subtask.c.
 */
#pragma once

#include "core/task/subtask.h"
#include "store/command/commands.h"

struct open_subtasks {
	int64_t *seqs;
	uint32_t count;
};

/* The task whose claim the command shows. NULL: the command was refused. */
int subtask_find_parent(struct turn *turn, const struct command *command, struct result *result,
	struct turn_task **ret_parent);

/* The draft has what it inherits; the command is refused if it is more than its parent's. */
int subtask_check(struct turn *turn, const struct command *command, struct turn_task *parent,
	struct task *draft, struct result *result);

/* The parent has one more, with that budget. */
int subtask_note(
	struct turn *turn, struct turn_task *parent, int64_t subtask, const struct subtask_budget *budget);

/* The task was claimed: what its holder announced of its executor is kept with it, so that a restart does not forget which executors
 * its subtasks may name. */
int subtask_keep_list(struct turn *turn, const struct turn_task *view);

/* An attempt asks again for one that is there: the result is that one. */
int subtask_take_up(
	struct turn *turn, struct turn_task *parent, struct turn_task *view, struct result *result);

/* Has the principal held an attempt of a task in the tree that this one is of? */
int subtasks_tree_held(struct turn *turn, int64_t seq, uint32_t principal, bool *ret_held);

int subtasks_count_open(struct turn *turn, const struct turn_task *view, uint32_t *ret_count);

/* An attempt ends, because it waits for them; or it goes on, because none is open. */
int stage_wait(
	struct turn *turn, struct turn_task *view, const struct command *command, struct result *result);
int execute_go_on(
	struct turn *turn, struct turn_task *view, const struct command *command, struct result *result);
