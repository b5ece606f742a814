/* Ending a work tree: is there work in it? Then it is kept; else it goes. */
#include "worker/worktree_parts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/take.h"

enum {
	REMOVE_MS = 15 * 60 * 1000,
	COUNTED_MAX = 100, /* files with work in them */
};

static void finish_end(struct worktree *tree)
{
	if (tree->ended)
		tree->ended(tree->context);
	else
		tree->made(tree->context, tree->fault);
}

static void keep(struct worktree *tree, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void keep(struct worktree *tree, const char *format, ...)
{
	bool before = tree->record.state == TREE_KEPT;
	va_list args;

	va_start(args, format);
	vsnprintf(tree->record.kept, sizeof tree->record.kept, format, args);
	va_end(args);
	if (!before)
		tree->record.since_ms = clock_wall_ms();
	/* one that is being removed stays so: what is left of it is nobody's work */
	worktree_write_record(tree, tree->record.state == TREE_REMOVING ? TREE_REMOVING : TREE_KEPT);
	finish_end(tree);
}

static void keep_for_fault(struct worktree *tree, const char *what, int fault)
{
	keep(tree, "%s cannot be run: %s", what, strerror(-fault));
}

static void after_branch(void *context)
{
	struct worktree *tree = context;

	worktree_forget_record(
		tree); /* if the branch has moved on meanwhile it stays: it is in the repository */
	finish_end(tree);
}

static void remove_branch(struct worktree *tree)
{
	const char *argv[] = {"git", "update-ref", "-d",
		arena_text(&tree->arena, "refs/heads/%s", tree->record.branch), tree->tip, NULL};
	struct worktree_call call = {.argv = argv,
		.dir = tree->record.common,
		.changes_common = true,
		.timeout_ms = GIT_MS,
		.done = after_branch};

	if (!tree->tip[0] || !tree->record.branch[0] || worktree_run(tree, &call) < 0)
		after_branch(tree);
}

static void clear_away(struct worktree *tree);

static void after_opened_up(void *context)
{
	clear_away(context);
}

static void after_cleared(void *context)
{
	struct worktree *tree = context;
	const char *argv[] = {"chmod", "-R", "u+rwX", "--", tree->record.path, NULL};
	struct worktree_call call = {.argv = argv,
		.dir = tree->record.common,
		.changes = worktree_place(tree),
		.timeout_ms = REMOVE_MS,
		.done = after_opened_up};
	char why[400];

	if (job_went_well(&tree->job)) {
		remove_branch(tree);
	} else if (!tree->cleared &&
		worktree_run(tree, &call) == 0) { /* somebody took the permissions away */
		tree->cleared = true;
	} else {
		job_explain(&tree->job, why, sizeof why);
		keep(tree, "it is being removed, and that fails: %.200s", why);
	}
}

static void clear_away(struct worktree *tree)
{
	struct worktree_record *record = &tree->record;

	worktree_find_admin(tree);
	const char *argv[] = {"rm", "-rf", "--one-file-system", "--", record->path,
		record->git[0] ? record->git : NULL, NULL};
	struct worktree_call call = {.argv = argv,
		.dir = record->common,
		.changes_common = true,
		.changes = worktree_place(tree),
		.timeout_ms = REMOVE_MS,
		.done = after_cleared};
	int fault = worktree_run(tree, &call);
	if (fault)
		keep_for_fault(tree, "rm", fault);
}

static void remove_tree(struct worktree *tree)
{
	int fault = worktree_write_record(tree, TREE_REMOVING);

	if (fault) {
		tree->record.state = TREE_LIVE;
		keep(tree, "its record cannot be written: %s", strerror(-fault));
	} else {
		clear_away(tree);
	}
}

/* Commits that only this tree, or its branch, has. */
static void after_counted(void *context)
{
	struct worktree *tree = context;
	char count[24], why[300];

	worktree_take_line(&tree->job, count, sizeof count);
	if (!job_went_well(&tree->job)) {
		job_explain(&tree->job, why, sizeof why);
		keep(tree, "git cannot tell whether its commits were pushed: %.200s", why);
	} else if (strcmp(count, "0") != 0) {
		keep(tree, "%s commit%s on %.150s that no remote branch has", count,
			strcmp(count, "1") == 0 ? "" : "s", tree->record.branch);
	} else {
		remove_tree(tree);
	}
}

static void after_tip(void *context)
{
	struct worktree *tree = context;

	tree->tip[0] = 0;
	if (job_went_well(&tree->job))
		worktree_take_line(&tree->job, tree->tip, sizeof tree->tip);
	const char *with_tip[] = {"git", "rev-list", "--count", "HEAD", tree->tip, "--not", tree->record.base,
		"--remotes", NULL};
	const char *without[] = {
		"git", "rev-list", "--count", "HEAD", "--not", tree->record.base, "--remotes", NULL};
	struct worktree_call call = {.argv = tree->tip[0] ? with_tip : without,
		.dir = tree->record.path,
		.in_tree = true,
		.timeout_ms = GIT_MS,
		.done = after_counted};
	int fault = worktree_run(tree, &call);
	if (fault)
		keep_for_fault(tree, "git", fault);
}

/* The entry at the start, with its NUL; the rest stays. */
static struct span take_entry(struct span *list)
{
	size_t len = strnlen(list->data, list->len);
	struct span entry = {list->data, len + (len < list->len)};

	list->data += entry.len;
	list->len -= entry.len;
	return entry;
}

static bool is_among(struct span entry, struct span list, struct span *ret_rest)
{
	while (list.len > 0) {
		struct span one = take_entry(&list);
		if (one.len == entry.len && memcmp(one.data, entry.data, one.len) == 0) {
			*ret_rest = list;
			return true;
		}
	}
	return false;
}

/* How many of these are not among those that the set-up made; no more than COUNTED_MAX. Both lists are git's and have its order,
 * so that the next one mostly stands behind the one before. */
static uint32_t count_work(struct span now, struct span made)
{
	struct span rest = made;
	uint32_t count = 0;

	while (now.len > 0 && count < COUNTED_MAX) {
		struct span entry = take_entry(&now);
		count += !is_among(entry, rest, &rest) && !is_among(entry, made, &rest);
	}
	return count;
}

static void after_status(void *context)
{
	struct worktree *tree = context;
	const char *argv[] = {"git", "rev-parse", "--verify", "--quiet",
		arena_text(&tree->arena, "refs/heads/%s", tree->record.branch), NULL};
	struct worktree_call call = {.argv = argv,
		.dir = tree->record.path,
		.in_tree = true,
		.timeout_ms = GIT_MS,
		.done = after_tip};
	cleanup(buf_done) struct buf now = {0}, made = {0};
	char why[300];

	buf_init(&now, 2 * JOB_OUTPUT_BYTES_MAX);
	buf_init(&made, 2 * JOB_OUTPUT_BYTES_MAX);
	if (!job_went_well(&tree->job)) {
		job_explain(&tree->job, why, sizeof why);
		keep(tree, "git cannot tell whether there is work in it: %.200s", why);
		return;
	}
	file_read(tree->dir_fd, "made", &made);
	uint32_t work = worktree_put_entries(tree, false, &now) < 0
		? COUNTED_MAX
		: count_work(buf_span(&now), buf_span(&made));
	if (work > 0) {
		keep(tree, "%u%s uncommitted file%s", work, work < COUNTED_MAX ? "" : " or more",
			work == 1 ? "" : "s");
		return;
	}
	int fault = worktree_run(tree, &call);
	if (fault)
		keep_for_fault(tree, "git", fault);
}

/* What only git's own directory of the tree knows; NULL: nothing. */
static const char *half_done(struct worktree *tree)
{
	static const struct {
		const char *name, *text;
	} signs[] = {
		{"locked", "somebody has locked it"},
		{"rebase-merge", "a rebase is not finished"},
		{"rebase-apply", "a rebase is not finished"},
		{"MERGE_HEAD", "a merge is not finished"},
		{"CHERRY_PICK_HEAD", "a cherry-pick is not finished"},
		{"REVERT_HEAD", "a revert is not finished"},
		{"BISECT_LOG", "a bisection is not finished"},
		{"modules", "it has submodules"},
	};

	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
		if (access(arena_text(&tree->arena, "%s/%s", tree->record.git, signs[i].name), F_OK) == 0)
			return signs[i].text;
	return NULL;
}

/* Is there work in it? */
static void look_for_work(struct worktree *tree)
{
	struct worktree_call call = {.argv = worktree_look,
		.dir = tree->record.path,
		.in_tree = true,
		.timeout_ms = GIT_MS,
		.done = after_status};
	const char *half = half_done(tree);
	int fault = half ? 0 : worktree_run(tree, &call);

	if (half)
		keep(tree, "%s", half);
	else if (fault)
		keep_for_fault(tree, "git", fault);
}

/* A git that was killed leaves the lock of the branch that it was making or removing, and no other could remove it then. The name
 * is of this attempt alone. */
static void unlock_branch(const struct worktree *tree)
{
	char lock[4200];
	int len = snprintf(
		lock, sizeof lock, "%s/refs/heads/%s.lock", tree->record.common, tree->record.branch);

	if (tree->record.branch[0] && len < (int)sizeof lock)
		unlink(lock);
}

void worktree_begin_end(struct worktree *tree)
{
	const struct worktree_record *record = &tree->record;

	if (access(record->common, F_OK) < 0 && access(record->path, F_OK) == 0) {
		keep(tree, "its repository %.200s is gone", record->common);
	} else if (record->state == TREE_MAKING || record->state == TREE_REMOVING) {
		if (record->state ==
			TREE_MAKING) /* nobody has worked in it: its branch is where it began, or not ours */
			snprintf(tree->tip, sizeof tree->tip, "%s", record->base);
		unlock_branch(tree);
		if (access(record->common, F_OK) < 0)
			after_branch(tree);
		else
			remove_tree(tree);
	} else if (access(record->path, F_OK) <
		0) { /* somebody has removed it; what is on its branch stays */
		after_branch(tree);
	} else {
		look_for_work(tree);
	}
}

static void on_end_due(uv_timer_t *timer)
{
	struct job *job = timer->data;

	worktree_begin_end(job->context);
}

void worktree_end(struct worktree *tree, void (*ended)(void *context), void *context)
{
	tree->ended = ended;
	tree->context = context;
	uv_timer_start(&tree->job.clock, on_end_due, 0, 0);
}
