/*
 * Making a work tree: its commit, its branch, its place; then git adds it, and what the include file names is copied and the
 * set-up runs (include.c).
 */
#include "worktree/parts.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"

enum { LITTLE_BYTES = 64 << 20 };

/* ---- names ---- */

/* A part of a name of a directory and of a branch: letters, digits, - and _ and single dots. */
static void put_clean(char *out, size_t room, const char *text)
{
	size_t len = strlen(out);

	for (; *text && len + 1 < room; text++) {
		bool good = isalnum((unsigned char)*text) || *text == '-' || *text == '_' ||
			(*text == '.' && len > 0 && out[len - 1] != '.' && out[len - 1] != '/');
		out[len++] = good ? *text : '_';
	}
	out[len] = 0;
}

static void make_branch(struct worktree_record *record, const char *pattern)
{
	size_t room = sizeof record->branch;

	record->branch[0] = 0;
	for (const char *at = pattern; *at;) {
		size_t len = strlen(record->branch);
		if (strncmp(at, "{task}", 6) == 0) {
			put_clean(record->branch, room, record->task);
			at += 6;
		} else if (strncmp(at, "{fence}", 7) == 0) {
			put_clean(record->branch, room, record->fence);
			at += 7;
		} else {
			if (len + 1 < room)
				memcpy(record->branch + len, (char[]){*at, 0}, 2);
			at++;
		}
	}
}

/* The directory that holds the tree; made if it is not there. */
static int make_place(struct worktree *tree)
{
	const struct settings_worktree *settings = tree->wish.settings;
	struct worktree_record *record = &tree->record;
	char place[PATH_MAX];

	int len = settings->root ? snprintf(place, sizeof place, "%s", settings->root)
				 : snprintf(place, sizeof place, "%s/worktrees", tree->site.home);
	if (len < 0 || len >= (int)sizeof place - 20)
		return -ENAMETOOLONG;
	if (mkdir(place, 0700) < 0 && errno != EEXIST)
		return -errno;
	snprintf(place + len, sizeof place - (size_t)len, "/%016llx",
		(unsigned long long)worktree_fingerprint(record->common));
	if (mkdir(place, 0700) < 0 && errno != EEXIST)
		return -errno;
	if ((size_t)snprintf(record->path, sizeof record->path, "%.3800s/%s", place, record->name) >=
		sizeof record->path)
		return -ENAMETOOLONG;
	return 0;
}

/* ---- steps ---- */

void worktree_give_up(struct worktree *tree, int fault, const char *format, ...)
{
	int len = snprintf(tree->reason, sizeof tree->reason,
		"a work tree of '%.200s' cannot be made: ", tree->record.source);
	va_list args;

	va_start(args, format);
	vsnprintf(tree->reason + len, sizeof tree->reason - (size_t)len, format, args);
	va_end(args);
	tree->fault = tree->cancelled ? -ECANCELED : fault;
	worktree_let_others(tree);
	if (tree->begun) {
		worktree_begin_end(tree);
		return;
	}
	tree->gone = true;
	tree->made(tree->context, tree->fault);
}

/* The last job failed. */
void worktree_give_up_after(struct worktree *tree, const char *what)
{
	char why[400];

	job_explain(&tree->job, why, sizeof why);
	worktree_give_up(tree, -EIO, "%s: %s", what, why);
}

void worktree_go_on(struct worktree *tree, const struct worktree_call *call, const char *what)
{
	int fault = tree->cancelled    ? -ECANCELED
		: tree->records_fd < 0 ? tree->records_fd
				       : worktree_run(tree, call);

	if (fault)
		worktree_give_up(tree, fault, "%s: %s", what, strerror(-fault));
}

void worktree_become_live(struct worktree *tree)
{
	assert(tree->record.state == TREE_MAKING);
	assert(tree->record.git[0]); /* git has added it */
	int fault = tree->cancelled ? -ECANCELED : worktree_write_record(tree, TREE_LIVE);

	if (!fault) {
		tree->made(tree->context, 0);
		return;
	}
	tree->record.state = TREE_MAKING;
	worktree_give_up(tree, fault, "its record cannot be written: %s", strerror(-fault));
}

/* git says that a file cannot be written, and not why: if there is little room, that is it. */
static const char *room_left(struct worktree *tree)
{
	struct statvfs disk;
	const char *place = worktree_place(tree);

	if (statvfs(place, &disk) < 0 || disk.f_bavail * disk.f_frsize > LITTLE_BYTES)
		return "git";
	return arena_text(&tree->arena, "git, with %llu KiB left on the disk of %.300s",
		(unsigned long long)disk.f_bavail * disk.f_frsize / 1024, place);
}

static void after_checked_out(void *context)
{
	struct worktree *tree = context;

	if (job_went_well(&tree->job))
		worktree_include(tree);
	else
		worktree_give_up_after(tree, room_left(tree));
}

/* Filters of the repository run here. Of its .git they may write what belongs to this tree; refs, configuration and hooks are not
 * in it, so this is no `git reset`, which writes the branch once more. */
static void check_out(struct worktree *tree)
{
	static const char *const argv[] = {"git", "read-tree", "--reset", "-u", "HEAD", NULL};
	const char *culprit = worktree_prepare_refs(tree);

	if (culprit)
		worktree_give_up(tree, -ENOTDIR,
			"%.100s in its repository is a symbolic link, or no directory", culprit);
	else
		worktree_go_on(tree,
			&(struct worktree_call){.argv = argv,
				.in_tree = true,
				.checks_out = true,
				.changes = tree->record.path,
				.timeout_ms = CHECKOUT_MS,
				.done = after_checked_out},
			"git");
}

static void after_added(void *context)
{
	struct worktree *tree = context;

	worktree_let_others(tree);
	if (!job_went_well(&tree->job)) {
		worktree_give_up_after(tree, room_left(tree));
		return;
	}
	worktree_find_admin(tree);
	int fault = tree->record.git[0] ? worktree_write_record(tree, TREE_MAKING) : -ENOENT;
	if (fault)
		worktree_give_up(tree, fault, "%s", strerror(-fault));
	else
		check_out(tree);
}

/* Adds the tree without its files: checking them out may take long, and others need not wait for it. */
static void add(struct worktree *tree)
{
	const struct worktree_record *record = &tree->record;
	const char *argv[] = {"git", "worktree", "add", "--quiet", "--no-checkout", "-b", record->branch,
		record->path, record->base, NULL};
	struct worktree_call call = {.argv = argv,
		.dir = record->source,
		.changes_common = true,
		.changes = worktree_place(tree),
		.done = after_added};

	worktree_go_on(tree, &call, "git");
}

/* From here on a successor finds what there is of it. */
static int begin_record(struct worktree *tree)
{
	int fault = make_place(tree);

	if (fault)
		return fault;
	if (mkdirat(tree->records_fd, tree->record.name, 0700) < 0)
		return -errno;
	tree->dir_fd =
		openat(tree->records_fd, tree->record.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (tree->dir_fd < 0)
		return -errno;
	fault = worktree_take_lock(tree);
	if (!fault && mkdir(tree->record.path, 0700) < 0)
		fault = -errno; /* what lies there is somebody else's, and is not to be cleared away */
	if (fault)
		return fault;
	fault = worktree_write_record(tree, TREE_MAKING);
	tree->begun = !fault;
	if (fault)
		rmdir(tree->record.path);
	return fault;
}

static void after_looked(void *context)
{
	struct worktree *tree = context;
	const struct worktree_record *record = &tree->record;
	const char *root = tree->wish.settings->root;

	if (job_went_well(&tree->job)) {
		worktree_give_up(tree, -EEXIST, "there is a branch '%s' already", record->branch);
		return;
	}
	if (tree->job.end.how != ENDED_EXIT || tree->job.end.code != 1) {
		worktree_give_up_after(tree, "git show-ref");
		return;
	}
	int fault = begin_record(tree);
	if (fault) {
		if (tree->dir_fd >= 0)
			worktree_forget_record(tree);
		worktree_give_up(
			tree, fault, "beneath %.200s: %s", root ? root : tree->site.home, strerror(-fault));
		return;
	}
	worktree_when_alone(tree, add);
}

/* A server that was begun anew gives a task the same name and fence again: its branch may be somebody else's. */
static void after_base(void *context)
{
	struct worktree *tree = context;
	struct worktree_record *record = &tree->record;
	const char *argv[] = {"git", "show-ref", "--verify", "--quiet",
		arena_text(&tree->arena, "refs/heads/%s", record->branch), NULL};

	if (!job_went_well(&tree->job)) {
		worktree_give_up_after(tree,
			arena_text(&tree->arena, "it has no commit '%.60s'", tree->wish.settings->base));
		return;
	}
	worktree_take_line(&tree->job, record->base, sizeof record->base);
	worktree_go_on(tree,
		&(struct worktree_call){.argv = argv, .dir = record->source, .done = after_looked}, "git");
}

static void on_make_due(uv_timer_t *timer)
{
	struct job *job = timer->data;
	struct worktree *tree = job->context;
	const char *argv[] = {"git", "rev-parse", "--verify", "--quiet",
		arena_text(&tree->arena, "%s^{commit}", tree->wish.settings->base), NULL};

	worktree_go_on(tree,
		&(struct worktree_call){.argv = argv, .dir = tree->record.source, .done = after_base}, "git");
}

struct worktree *worktree_make(const struct worktree_site *site, const struct worktree_wish *wish,
	void (*made)(void *context, int fault), void *context)
{
	struct worktree *tree = worktree_new(site);

	if (!tree)
		return NULL;
	struct worktree_record *record = &tree->record;
	tree->wish = *wish;
	record->walled = wish->walled;
	tree->made = made;
	tree->context = context;
	record->since_ms = clock_wall_ms();
	snprintf(record->task, sizeof record->task, "%s", wish->task);
	snprintf(record->fence, sizeof record->fence, "%s", wish->fence);
	snprintf(record->source, sizeof record->source, "%s", wish->top);
	snprintf(record->common, sizeof record->common, "%s", wish->common);
	put_clean(record->name, 120, wish->task);
	strcat(record->name, "-");
	put_clean(record->name, sizeof record->name, wish->fence);
	make_branch(record, wish->settings->branch);
	uv_timer_start(&tree->job.clock, on_make_due, 0, 0);
	return tree;
}
