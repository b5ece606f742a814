/*
 * Subtasks: what a task may create under its claim. A subtask has no more rights than its parent; the tree has limits.
 *
 * What is in the text of a task (isolation, work dir) is looked at where that text is read: api/task/subtask.c.
 */
#pragma once

#include "core/task/task.h"

enum {
	SUBTASK_LEVELS_MAX = 4, /* of a tree, its root is the first */
};

/* Where the tree stands before the new one is added. */
struct subtask_place {
	uint32_t level;    /* of the new one */
	uint32_t children; /* of the parent, since an operator last retried it */
	uint32_t in_tree;  /* tasks, with the root */
};

/* What the new one has more than it may have. */
enum subtask_excess {
	EXCESS_NONE = 0,
	EXCESS_CHILDREN,
	EXCESS_LEVELS,
	EXCESS_TREE,
	EXCESS_PRIORITY,
	EXCESS_EXECUTOR,
	EXCESS_CREDENTIAL,
	EXCESS_QUEUE, /* without an executor it is for that of its parent's queue */
	EXCESS_GROUP,
	EXCESS_PARENTS, /* one of those that block it is not in its tree */
	EXCESS_KEY, /* its concurrency key is that of a task above it, in a sequential queue: it would wait for itself */
	EXCESS_BUDGET, /* it must say one, out of what its parent has left */
};

enum {
	SUBTASK_BUDGET_PARTS = 5, /* usd, minutes, tokens, turns, toolCalls */
};

/* The budget of a subtask beside that of its parent. */
struct subtask_budget {
	uint32_t limited; /* bit per part: the parent's has it */
	uint32_t said;    /* … and the subtask's */
	double left[SUBTASK_BUDGET_PARTS];
	double wanted[SUBTASK_BUDGET_PARTS];
	uint32_t seen; /* subtasks that the parent had made when `left` was counted */
};

/* The draft says nothing of these: it has those of its parent. */
void subtask_inherit(struct task *draft, const struct task *parent, bool says_priority);

/* `is_listed`: its executor is one that the configuration of the parent's executor names. */
enum subtask_excess subtask_exceeds(const struct task *draft, const struct task *parent, bool is_listed,
	const struct subtask_place *place, const struct rules *rules);

/* The first part of which the subtask wants more than is left, or says nothing; SUBTASK_BUDGET_PARTS: none. `taken`: by subtasks that were
 * created since `left` was counted; *ret_left: what is left. */
uint32_t subtask_budget_excess(
	const struct subtask_budget *budget, const double taken[SUBTASK_BUDGET_PARTS], double *ret_left);

/* May the holder of the claim create one? */
enum refusal subtask_refusal(const struct task *parent, const struct proof *proof);

/* The task has its first subtask. */
struct task_decision task_begin_tree(const struct task *task);

/* With the task its open subtasks are called off: it was cancelled, is about to be, or has failed for good. */
bool task_calls_off_subtasks(const struct task *before, const struct task *after);
