/*
 * Commits that only the memory of a tree knows. One that a task made on a detached HEAD, and then left for its branch, is on
 * nothing but the reflog of that HEAD, and that goes with the tree. Only commits made without a branch count: a commit that was
 * once on the tree's branch and is not any more was dropped on purpose, by an amend, a rebase or a reset, and keeps nothing.
 *
 * Rejected: a ref in the repository for each of them. Somebody would have to remove those, and nobody looks there.
 */
#include "worktree/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/take.h"

enum {
	OID_BYTES = 64, /* of sha256, as text */
	LOST_BYTES_MAX = 8 << 20,
};

/* What makes a commit. A rebase makes them too, and then they are on what it was asked for, or were thrown away. */
static bool is_making(struct span action)
{
	static const char *const makes[] = {"commit", "cherry-pick", "revert", "merge", "am", "pull"};
	size_t len = 0;

	while (len < action.len && !strchr(": \n", action.data[len]))
		len++;
	for (size_t i = 0; i < sizeof makes / sizeof *makes; i++)
		if (len == strlen(makes[i]) && strncmp(action.data, makes[i], len) == 0)
			return true;
	return false;
}

/* Takes a line of the log: the commit, and what was done. False: not such a line. */
static bool take_line(struct span *log, struct span *ret_oid, struct span *ret_action)
{
	const char *end = log->len > 0 ? memchr(log->data, '\n', log->len) : NULL;
	size_t len = end ? (size_t)(end - log->data) : 0, oid = 0;

	if (!end)
		return false;
	while (oid < len && strchr("0123456789abcdef", log->data[oid]))
		oid++;
	*ret_oid = (struct span){log->data, oid};
	*ret_action = (struct span){log->data + oid + (oid < len), len - oid - (oid < len)};
	log->data = end + 1;
	log->len -= len + 1;
	return true;
}

static bool is_amend(struct span action)
{
	return action.len >= 14 && strncmp(action.data, "commit (amend)", 14) == 0;
}

/* The commits that were made, the newest first, for `git rev-list --stdin`. A commit that was amended counts as the next one. */
static int put_made(struct span log, struct buf *out)
{
	struct span oid, action;
	bool amended = false;

	while (take_line(&log, &oid, &action)) {
		if (oid.len >= 40 && oid.len <= OID_BYTES && is_making(action) && !amended)
			buf_printf(out, "%.*s\n", SPAN_ARGS(oid));
		amended = is_amend(action);
	}
	return buf_fault(out);
}

static void run(struct worktree *tree, const struct worktree_call *call)
{
	int fault = worktree_run(tree, call);

	if (fault)
		tree->counted(tree, fault);
}

static void after_counted(void *context)
{
	struct worktree *tree = context;
	char count[24];

	worktree_take_line(&tree->job, count, sizeof count);
	tree->counted(tree, job_went_well(&tree->job) ? strtoll(count, NULL, 10) : -EIO);
}

/* Of these, how many nothing else in the repository leads to. */
static void count_unreachable(struct worktree *tree, struct span made)
{
	const char *argv[] = {"sh", "-c",
		"{ cat; git log -g -s --no-show-signature --format=^%H \"$1\" -- 2>/dev/null; } | "
		"git rev-list --count --stdin --not \"$2\" --branches --tags --remotes",
		"sh", arena_text(&tree->arena, "refs/heads/%s", tree->record.branch), tree->record.base,
		NULL};
	run(tree,
		&(struct worktree_call){.argv = argv, .in_tree = true, .input = made, .done = after_counted});
}

static void after_logged(void *context)
{
	struct worktree *tree = context;
	cleanup(buf_done) struct buf made = {0};

	buf_init(&made, LOST_BYTES_MAX);
	if (!job_went_well(&tree->job) || put_made(buf_span(&tree->job.out), &made) < 0)
		tree->counted(tree, -EIO);
	else if (made.len == 0)
		tree->counted(tree, 0);
	else
		count_unreachable(tree, buf_span(&made));
}

void worktree_count_lost(struct worktree *tree, void (*counted)(struct worktree *tree, int64_t count))
{
	static const char *const argv[] = {
		"git", "log", "-g", "-s", "--no-show-signature", "--format=%H %gs", "HEAD", "--", NULL};

	tree->counted = counted;
	run(tree, &(struct worktree_call){.argv = argv, .in_tree = true, .done = after_logged});
}
