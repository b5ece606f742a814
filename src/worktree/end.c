/* Ending a work tree: is there work in it? Then it is kept; else it goes. */
#include "worktree/parts.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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

/* Why a tree stays. */
enum stays {
	KEPT, /* there may be work in it. One that is being made or removed stays so: what is there of it is nobody's work */
	PUT_OFF, /* something of this host, which may pass: it stays what it is, and its end begins anew later */
};

static void stay(struct worktree *tree, enum stays stays, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void stay(struct worktree *tree, enum stays stays, const char *format, ...)
{
	struct worktree_record *record = &tree->record;
	bool becomes_kept = stays == KEPT && record->state == TREE_LIVE;
	va_list args;

	va_start(args, format);
	vsnprintf(record->kept, sizeof record->kept, format, args);
	va_end(args);
	if (becomes_kept)
		record->since_ms = clock_wall_ms();
	worktree_write_record(tree, becomes_kept ? TREE_KEPT : record->state);
	finish_end(tree);
}

/* The next program; without it the end is put off. */
static void run(struct worktree *tree, const struct worktree_call *call)
{
	int fault = worktree_run(tree, call);

	if (!fault)
		return;
	worktree_let_others(tree);
	stay(tree, PUT_OFF, "%s cannot be run: %s", call->argv[0], strerror(-fault));
}

static void forget(struct worktree *tree)
{
	assert(!tree->gone); /* it ends once */
	worktree_forget_record(tree);
	finish_end(tree);
}

/* A branch that has moved since its end began stays: it is in the repository. */
static void after_branch_seen(void *context)
{
	struct worktree *tree = context;
	const struct process_end *end = &tree->job.end;
	char tip[sizeof tree->record.tip];

	worktree_take_line(&tree->job, tip, sizeof tip);
	if ((job_went_well(&tree->job) && strcmp(tip, tree->record.tip) != 0) ||
		(end->how == ENDED_EXIT && end->code == 1))
		forget(tree);
	else
		stay(tree, PUT_OFF, "it is being removed, and its branch cannot be: %.200s",
			tree->branch_why);
}

/* git says much alike whether it is gone, has moved on, or could not be removed. */
static void after_branch(void *context)
{
	struct worktree *tree = context;
	const char *argv[] = {"git", "rev-parse", "--verify", "--quiet",
		arena_text(&tree->arena, "refs/heads/%s", tree->record.branch), NULL};

	if (job_went_well(&tree->job)) {
		forget(tree);
		return;
	}
	job_explain(&tree->job, tree->branch_why, sizeof tree->branch_why);
	run(tree, &(struct worktree_call){.argv = argv, .done = after_branch_seen});
}

static void remove_branch(struct worktree *tree)
{
	const char *argv[] = {"git", "update-ref", "-d",
		arena_text(&tree->arena, "refs/heads/%s", tree->record.branch), tree->record.tip, NULL};

	assert(tree->record.state == TREE_REMOVING);
	if (!tree->record.tip[0] || !tree->record.branch[0])
		forget(tree);
	else
		run(tree,
			&(struct worktree_call){.argv = argv, .changes_common = true, .done = after_branch});
}

static void clear_away(struct worktree *tree);

static void after_opened_up(void *context)
{
	worktree_when_alone(context, clear_away);
}

static void after_cleared(void *context)
{
	struct worktree *tree = context;
	const char *argv[] = {"chmod", "-R", "u+rwX", "--", tree->record.path, NULL};
	struct worktree_call call = {.argv = argv,
		.changes = worktree_place(tree),
		.timeout_ms = REMOVE_MS,
		.done = after_opened_up};
	char why[400];

	assert(tree->record.state == TREE_REMOVING);
	worktree_let_others(tree);
	if (job_went_well(&tree->job)) {
		remove_branch(tree);
	} else if (!tree->cleared &&
		worktree_run(tree, &call) == 0) { /* somebody took the permissions away */
		tree->cleared = true;
	} else {
		job_explain(&tree->job, why, sizeof why);
		stay(tree, PUT_OFF, "it is being removed, and that fails: %.200s", why);
	}
}

static void clear_away(struct worktree *tree)
{
	struct worktree_record *record = &tree->record;

	assert(record->state ==
		TREE_REMOVING); /* on disk, after it was looked at: nothing of somebody's work is deleted */
	assert(tree->lock_fd >= 0);
	assert(record->path[0] == '/');
	worktree_find_admin(tree);
	const char *keeper = worktree_ref_keeper(tree);
	const char *argv[8] = {"rm", "-rf", "--one-file-system", "--", record->path};
	size_t count = 5;
	if (record->git[0])
		argv[count++] = record->git;
	if (keeper)
		argv[count++] = keeper;
	run(tree,
		&(struct worktree_call){.argv = argv,
			.changes_common = true,
			.changes = worktree_place(tree),
			.timeout_ms = REMOVE_MS,
			.done = after_cleared});
}

static void remove_tree(struct worktree *tree)
{
	enum worktree_state before = tree->record.state;
	int fault = worktree_write_record(tree, TREE_REMOVING);

	if (fault) {
		tree->record.state = before;
		stay(tree, PUT_OFF, "its record cannot be written: %s", strerror(-fault));
	} else {
		worktree_when_alone(tree, clear_away);
	}
}

static void after_lost(struct worktree *tree, int64_t count)
{
	if (count < 0)
		stay(tree, KEPT, "git cannot tell which commits were made in it");
	else if (count > 0)
		stay(tree, KEPT,
			"%lld commit%s made without a branch and left again: 'git reflog' in it says which",
			(long long)count, count == 1 ? "" : "s");
	else
		remove_tree(tree);
}

/* Commits that only this tree, or its branch, has. */
static void after_counted(void *context)
{
	struct worktree *tree = context;
	char count[24], why[300];

	worktree_take_line(&tree->job, count, sizeof count);
	if (!job_went_well(&tree->job)) {
		job_explain(&tree->job, why, sizeof why);
		stay(tree, KEPT, "git cannot tell whether its commits were pushed: %.200s", why);
	} else if (strcmp(count, "0") != 0) {
		stay(tree, KEPT, "%s commit%s on %.150s that no remote branch has", count,
			strcmp(count, "1") == 0 ? "" : "s", tree->record.branch);
	} else {
		worktree_count_lost(tree, after_lost);
	}
}

static void after_tip(void *context)
{
	struct worktree *tree = context;

	tree->record.tip[0] = 0;
	if (job_went_well(&tree->job))
		worktree_take_line(&tree->job, tree->record.tip, sizeof tree->record.tip);
	/* refs/worktree are the tree's own: they go with it */
	const char *with_tip[] = {"git", "rev-list", "--count", "HEAD", "--glob=refs/worktree",
		tree->record.tip, "--not", tree->record.base, "--remotes", NULL};
	const char *without[] = {"git", "rev-list", "--count", "HEAD", "--glob=refs/worktree", "--not",
		tree->record.base, "--remotes", NULL};
	run(tree,
		&(struct worktree_call){.argv = tree->record.tip[0] ? with_tip : without,
			.in_tree = true,
			.done = after_counted});
}

static bool is_among(struct span entry, struct span list, struct span *ret_rest)
{
	while (list.len > 0) {
		struct span one = worktree_take_entry(&list);
		if (one.len == entry.len && memcmp(one.data, entry.data, one.len) == 0) {
			*ret_rest = list;
			return true;
		}
	}
	return false;
}

/* How many entries of `now` are not in `made`, the list of the set-up; no more than COUNTED_MAX. Both lists are git's and have its order,
 * so that the next one mostly stands behind the one before. */
static uint32_t count_work(struct span now, struct span made)
{
	struct span rest = made;
	uint32_t count = 0;

	while (now.len > 0 && count < COUNTED_MAX) {
		struct span entry = worktree_take_entry(&now);
		count += !is_among(entry, rest, &rest) && !is_among(entry, made, &rest);
	}
	return count;
}

static void after_status(void *context)
{
	struct worktree *tree = context;
	const char *argv[] = {"git", "rev-parse", "--verify", "--quiet",
		arena_text(&tree->arena, "refs/heads/%s", tree->record.branch), NULL};
	cleanup(buf_done) struct buf now = {0}, made = {0};
	char why[300];

	buf_init(&now, 2 * JOB_OUTPUT_BYTES_MAX);
	buf_init(&made, 2 * JOB_OUTPUT_BYTES_MAX);
	if (!job_went_well(&tree->job)) {
		job_explain(&tree->job, why, sizeof why);
		stay(tree, KEPT, "git cannot tell whether there is work in it: %.200s", why);
		return;
	}
	if (file_read(tree->dir_fd, "made", &made) < 0)
		buf_clear(&made); /* then all that is there counts as work */
	uint32_t work = worktree_put_entries(tree, false, &now) < 0
		? COUNTED_MAX
		: count_work(buf_span(&now), buf_span(&made));
	if (work > 0) {
		stay(tree, KEPT, "%u%s uncommitted file%s", work, work < COUNTED_MAX ? "" : " or more",
			work == 1 ? "" : "s");
		return;
	}
	run(tree, &(struct worktree_call){.argv = argv, .in_tree = true, .done = after_tip});
}

/*
 * What only git's own directory of the tree knows; NULL: nothing. CHERRY_PICK_HEAD and REVERT_HEAD are not among it: git leaves them
 * behind after every rebase, because a task cannot lock the list of packed refs, and what they stopped at is a changed file.
 */
static const char *half_done(struct worktree *tree)
{
	static const struct {
		const char *name, *text;
	} signs[] = {
		{"locked", "somebody has locked it"},
		{"rebase-merge", "a rebase is not finished"},
		{"rebase-apply", "a rebase is not finished"},
		{"MERGE_HEAD", "a merge is not finished"},
		{"sequencer", "a cherry-pick or a revert is not finished"},
		{"BISECT_LOG", "a bisection is not finished"},
		{"modules", "it has submodules"},
	};

	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
		if (access(arena_text(&tree->arena, "%s/%s", tree->record.git, signs[i].name), F_OK) == 0)
			return signs[i].text;
	return NULL;
}

/* A task may have put a repository of its own in place of the file that leads to git's directory of the tree: nobody looks into that. */
static bool has_own_repository(const struct worktree *tree)
{
	char path[WORKTREE_PATH_BYTES + 8], word[PATH_MAX], real[WORKTREE_PATH_BYTES];
	struct stat stat_;

	snprintf(path, sizeof path, "%s/.git", tree->record.path);
	if (lstat(path, &stat_) < 0)
		return errno != ENOENT;
	if (!S_ISREG(stat_.st_mode) || !worktree_read_word(path, "gitdir: ", word, sizeof word))
		return true;
	return strcmp(word, tree->record.git) != 0 &&
		(!worktree_resolve(tree->record.path, word, real) || strcmp(real, tree->record.git) != 0);
}

/* Is there work in it? */
static void look_for_work(struct worktree *tree)
{
	const char *half = has_own_repository(tree) ? "there is a repository of its own in place of its .git"
						    : half_done(tree);

	if (half)
		stay(tree, KEPT, "%s", half);
	else
		run(tree,
			&(struct worktree_call){
				.argv = worktree_look, .in_tree = true, .done = after_status});
}

/* Something else than that it is not there keeps us from it: a server that does not answer, a permission. */
static bool is_hidden(const char *path, int *ret_fault)
{
	*ret_fault = access(path, F_OK) < 0 ? -errno : 0;
	return *ret_fault && *ret_fault != -ENOENT && *ret_fault != -ENOTDIR;
}

/*
 * A tree that is not there was removed by somebody, or is on a disk that is not mounted. The first is sure if the directory that
 * held it is there and git has forgotten it, too. True: it is kept.
 */
static bool is_away(struct worktree *tree)
{
	const struct worktree_record *record = &tree->record;
	const char *place = worktree_place(tree);
	int fault;

	if (is_hidden(record->path, &fault)) {
		stay(tree, KEPT, "it cannot be looked at: %s", strerror(-fault));
		return true;
	}
	if (fault == 0)
		return false;
	if (access(place, F_OK) < 0) {
		stay(tree, KEPT,
			"the directory that held it is not there: is its disk mounted? If it is gone for good: mkdir -p %.150s",
			place);
		return true;
	}
	if (record->state != TREE_MAKING && record->state != TREE_REMOVING && record->git[0] &&
		access(record->git, F_OK) == 0) {
		stay(tree, KEPT,
			"it is not there, and git knows of it: is its disk mounted? If it was removed: git -C %.120s worktree prune",
			record->source);
		return true;
	}
	return false;
}

/* A git that was killed leaves the lock of the branch that it was making or removing, and no other could remove it then. The name
 * is of this attempt alone. */
static void unlock_branch(struct worktree *tree)
{
	const char *lock = arena_text(&tree->arena, "refs/heads/%s.lock", tree->record.branch);
	const char *slash = strrchr(lock, '/');

	if (!tree->record.branch[0])
		return;
	cleanup(close_at) int dir_fd = worktree_open_in_common(
		&tree->record, arena_text(&tree->arena, "%.*s", (int)(slash - lock), lock), false);
	if (dir_fd >= 0)
		unlinkat(dir_fd, slash + 1, 0);
}

/* Half made, or half removed: nobody's work. */
static void remove_half(struct worktree *tree)
{
	if (tree->record.state == TREE_MAKING) /* its branch is where it began, or not ours */
		snprintf(tree->record.tip, sizeof tree->record.tip, "%s", tree->record.base);
	unlock_branch(tree);
	remove_tree(tree);
}

void worktree_begin_end(struct worktree *tree)
{
	const struct worktree_record *record = &tree->record;
	bool half = record->state == TREE_MAKING || record->state == TREE_REMOVING;

	assert(tree->lock_fd >= 0); /* nobody else works with it */
	assert(!tree->gone);
	assert(!tree->job.process);
	if (is_away(tree))
		return;
	bool here = access(record->path, F_OK) == 0, repository = access(record->common, F_OK) == 0;
	if (here && !repository)
		stay(tree, KEPT, "its repository %.200s is gone", record->common);
	else if (!repository || (!here && !half)) /* somebody has removed it; what is on its branch stays */
		forget(tree);
	else if (half)
		remove_half(tree);
	else
		look_for_work(tree);
}

static void on_end_due(uv_timer_t *timer)
{
	struct job *job = timer->data;

	worktree_begin_end(job->context);
}

void worktree_end(struct worktree *tree, void (*ended)(void *context), void *context)
{
	assert(!tree->job.process);
	tree->ended = ended;
	tree->context = context;
	uv_timer_start(&tree->job.clock, on_end_due, 0, 0);
}
