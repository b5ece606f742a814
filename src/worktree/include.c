/* What a new work tree gets besides what git has: files that git ignores, and what the set-up makes. */
#include "worktree/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/take.h"

enum { INCLUDED_MAX = 20000 }; /* files */

/* ---- the set-up ---- */

static void after_made(void *context)
{
	struct worktree *tree = context;
	cleanup(buf_done) struct buf made = {0};

	buf_init(&made, 2 * JOB_OUTPUT_BYTES_MAX);
	int fault = job_went_well(&tree->job) ? worktree_put_entries(tree, true, &made) : -EIO;
	if (!fault)
		fault = file_write(tree->dir_fd, "made", buf_span(&made), true);
	if (fault)
		worktree_give_up_after(tree, "git status");
	else
		worktree_become_live(tree);
}

static void after_set_up(void *context)
{
	struct worktree *tree = context;
	struct worktree_call call = {.argv = worktree_look, .in_tree = true, .done = after_made};

	if (job_went_well(&tree->job) ||
		(tree->job.end.how == ENDED_EXIT && tree->job.end.code == 0 && !tree->job.timed_out))
		worktree_go_on(tree, &call, "git status");
	else
		worktree_give_up_after(tree, "its set-up");
}

/* The set-up hook of the configuration, or of the repository where the configuration allows that; or NULL. */
static const char *const *set_up_argv(struct worktree *tree, const char *argv[3])
{
	static const char *const usual[] = {".stint/setup.sh", ".openclaw/worktree-setup.sh"};

	if (tree->wish.settings->setup)
		return tree->wish.settings->setup;
	for (size_t i = 0; tree->wish.settings->setup_of_repository && i < sizeof usual / sizeof *usual;
		i++) {
		const char *path = arena_text(&tree->arena, "%s/%s", tree->record.path, usual[i]);
		int at = 0;
		if (access(path, R_OK) < 0)
			continue;
		if (access(path, X_OK) < 0)
			argv[at++] = "sh";
		argv[at++] = path;
		argv[at] = NULL;
		return argv;
	}
	return NULL;
}

static const char **set_up_env(struct worktree *tree, const char *const *env)
{
	const struct worktree_record *record = &tree->record;
	size_t count = 0;

	while (env[count])
		count++;
	const char **all = arena_alloc(&tree->arena, (count + 4) * sizeof *all);
	if (!all)
		return NULL;
	memcpy(all, env, count * sizeof *all);
	all[count++] = arena_text(&tree->arena, "STINT_SOURCE_TREE=%s", record->source);
	all[count++] = arena_text(&tree->arena, "OPENCLAW_SOURCE_TREE_PATH=%s", record->source);
	all[count++] = arena_text(&tree->arena, "OPENCLAW_WORKTREE_PATH=%s", record->path);
	all[count] = NULL;
	return all;
}

static int start_set_up(struct worktree *tree, const char *const *argv)
{
	struct process_spec spec = process_spec_default();
	struct grant grants[GRANTS_MAX];

	cleanup(close_at) int dir_fd = open(tree->record.path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir_fd < 0)
		return -errno;
	int fault = tree->wish.like_the_task(tree->context, dir_fd, &spec);
	if (fault)
		return fault;
	if (spec.confine.grant_count + 1 >= GRANTS_MAX)
		return -E2BIG;
	memcpy(grants, spec.confine.grants, spec.confine.grant_count * sizeof *grants);
	size_t count = spec.confine.grant_count;
	worktree_add_grant(&tree->record, grants, &count, tree->record.source, GRANT_READ);
	spec.confine.grants = grants;
	spec.confine.grant_count = count;
	spec.argv = argv;
	spec.program = NULL; /* not the task's */
	spec.env = set_up_env(tree, spec.env);
	spec.stdin_from = STDIN_NULL;
	spec.run = tree->site.run;
	spec.hold_fds[0] = tree->jobs_fd;
	return spec.env ? job_start(&tree->job, &spec, tree->wish.settings->setup_ms, after_set_up) : -ENOMEM;
}

static void set_up(struct worktree *tree)
{
	const char *room[3];
	const char *const *argv = set_up_argv(tree, room);
	int fault = tree->cancelled ? -ECANCELED : argv ? start_set_up(tree, argv) : 0;

	if (fault)
		worktree_give_up(tree, fault, "its set-up cannot be run: %s", strerror(-fault));
	else if (!argv)
		worktree_become_live(tree);
}

/* ---- the include file ---- */

static void after_included(void *context)
{
	struct worktree *tree = context;

	if (job_went_well(&tree->job))
		set_up(tree);
	else
		worktree_give_up_after(tree, "files of its include file");
}

/* Ignored files that the tree does not have yet. A repository among them is one entry: it is copied as a whole. */
static void after_ignored(void *context)
{
	struct worktree *tree = context;
	const char *argv[] = {"xargs", "-0", "cp", "--parents", "-r", "-P", "--preserve=mode,timestamps",
		"-t", tree->record.path, "--", NULL};
	struct worktree_call call = {.argv = argv,
		.dir = tree->record.source,
		.changes = tree->record.path,
		.timeout_ms = CHECKOUT_MS,
		.done = after_included};
	cleanup(buf_done) struct buf list = {0};
	struct span text = buf_span(&tree->job.out);
	uint32_t count = 0;

	if (!job_went_well(&tree->job) && !(tree->job.end.how == ENDED_EXIT && tree->job.end.code == 1)) {
		worktree_give_up_after(tree, "git check-ignore");
		return;
	}
	buf_init(&list, JOB_OUTPUT_BYTES_MAX);
	cleanup(close_at) int top = open(tree->record.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	while (text.len > 0) {
		struct span entry = worktree_take_entry(&text);
		if (entry.data[entry.len - 1] == 0 &&
			faccessat(top, entry.data, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && ++count)
			buf_put_span(&list, entry);
	}
	call.input = buf_span(&list);
	if (count > INCLUDED_MAX)
		worktree_give_up(tree, -E2BIG, "its include file names more than %d files", INCLUDED_MAX);
	else if (count == 0)
		set_up(tree);
	else
		worktree_go_on(tree, &call, "cp");
}

static void after_listed(void *context)
{
	static const char *const argv[] = {"git", "check-ignore", "-z", "--stdin", NULL};
	struct worktree *tree = context;
	cleanup(buf_done) struct buf list = {0};
	struct worktree_call call = {.argv = argv, .dir = tree->record.source, .done = after_ignored};

	if (!job_went_well(&tree->job)) {
		worktree_give_up_after(tree, "its include file");
		return;
	}
	if (tree->job.out.len == 0) {
		set_up(tree);
		return;
	}
	buf_init(&list, JOB_OUTPUT_BYTES_MAX);
	buf_put_span(&list, buf_span(&tree->job.out)); /* the job's own goes when it starts again */
	call.input = buf_span(&list);
	worktree_go_on(tree, &call, "git check-ignore");
}

/* Copies the files that the include file names into the new tree, although git ignores them. */
void worktree_include(struct worktree *tree)
{
	static const char *const usual[] = {".worktreeinclude", ".stint/include"};
	const char *chosen = tree->wish.settings->include, *path = NULL;

	for (size_t i = 0; i < sizeof usual / sizeof *usual && !path; i++) {
		const char *name = chosen ? chosen : usual[i];
		path = arena_text(&tree->arena, "%s/%s", tree->record.source, name);
		if (access(path, R_OK) < 0)
			path = NULL;
	}
	const char *argv[] = {"git", "ls-files", "-z", "--others", "--ignored",
		arena_text(&tree->arena, "--exclude-from=%s", path ? path : ""), NULL};
	if (path)
		worktree_go_on(tree,
			&(struct worktree_call){
				.argv = argv, .dir = tree->record.source, .done = after_listed},
			"git ls-files");
	else
		set_up(tree);
}
