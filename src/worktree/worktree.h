/*
 * A work tree of its own for an attempt: `git worktree` on a branch of its own, beside the repository that the task
 * names. What the task changes stays there until it is committed and pushed; what it leaves behind clean goes.
 *
 *	making ──added, included, set up──▶ live ──the attempt is over──▶ removing ──▶ gone      (kept ──the task goes on──▶ live)
 *	   └──something failed────────────────┐        └──there is work in it──▶ kept ──prune, and it is clean──▶ removing
 *	                                      └──▶ removing
 *
 * Each state is on disk before anything is done about it, in a record below the state directory. A process that works
 * with a tree holds the lock of its record: a tree whose lock is free was left by a worker that died, and the next worker
 * goes on with it (worktrees.h).
 *
 * Nothing that could be somebody's work is deleted: not what is changed, new or staged, not a commit that no remote branch
 * has, not a merge or rebase half done, not a submodule, not a tree that somebody has locked. Files that the set-up
 * made and that are as it made them are no work, nor is what git ignores.
 *
 * git runs through exec, confined, without hooks, without the user's or the machine's configuration, and at the level of the task: what
 * that wrote into its tree can make git run something (a filter, say), which must not get further than the task itself.
 * A task may read the repository and write objects, its own branches and what is git's of its own tree: not the
 * configuration, not the hooks, not the branches of others.
 */
#pragma once

#include <uv.h>

#include "exec/host.h"
#include "exec/process.h"
#include "attempt/executor.h"

enum {
	WORKTREE_REASON_BYTES = 700,
	WORKTREE_GRANTS_MAX = 10,
	WORKTREE_PATH_BYTES = 4096,
	WORKTREE_NAME_BYTES = 200,
};

enum worktree_state { TREE_MAKING, TREE_LIVE, TREE_KEPT, TREE_REMOVING };

/* What is written down of one. */
struct worktree_record {
	enum worktree_state state;
	char name[WORKTREE_NAME_BYTES];
	char task[160], fence[80];
	char source[WORKTREE_PATH_BYTES]; /* the tree that the task named */
	char common[WORKTREE_PATH_BYTES]; /* the repository itself: its .git */
	char path[WORKTREE_PATH_BYTES];   /* of the tree */
	char git[WORKTREE_PATH_BYTES];    /* git's own directory of the tree; "": not made yet */
	char branch[256];
	char base[80];  /* the commit that its branch began with */
	char tip[80];   /* the commit of its branch when its end began; "": no such branch */
	char kept[300]; /* why it is kept */
	bool walled;    /* its task is behind a wall: so is git when it looks at the tree afterwards */
	int64_t since_ms;
};

const char *worktree_state_name(enum worktree_state state);

/* The owner's loop, host and state directory. Borrowed until the tree is freed. */
struct worktree_site {
	uv_loop_t *loop;
	struct host *host;
	const char *home; /* the state directory */
	const char *run;  /* name of the processes */
};

/* The request for a tree. Borrowed until `made`. */
struct worktree_wish {
	const struct settings_worktree *settings;
	const char *task, *fence;
	const char *top; /* top of the repository's tree, from worktree_find(), like `common` */
	const char *common;
	bool walled;
	bool network; /* behind its wall */
	/* The set-up is confined and limited like the task: this makes the spec of one. */
	int (*like_the_task)(void *context, int workdir_fd, struct process_spec *spec);
};

struct worktree;

/* Which repository is this directory in? It, and what is git's of it, lie beneath a root and not in the state directory. -ENOENT: it is in none; else
 * -EXDEV and the like, with the reason. `ret_rest` is what of `path` lies beneath the top, "" or "a/b". */
int worktree_find(const char *const *roots, size_t root_count, const char *home, const char *path,
	char ret_top[WORKTREE_PATH_BYTES], char ret_common[WORKTREE_PATH_BYTES], const char **ret_rest,
	char reason[WORKTREE_REASON_BYTES]);

/* Make one. `made` comes from the loop, with a fault if it could not: then nothing is left of it but what could not be
 * removed, and worktree_reason() is a sentence for people. NULL: no memory. */
struct worktree *worktree_make(const struct worktree_site *site, const struct worktree_wish *wish,
	void (*made)(void *context, int fault), void *context);

/* One that is there, by the name of its record. -EBUSY: somebody works with it; -ENOENT. */
int worktree_open(const struct worktree_site *site, const char *name, struct worktree **ret_tree);

/* Stop making: `made` comes with -ECANCELED. */
void worktree_cancel(struct worktree *tree);

/* The attempt is over, or never was: remove it, or keep it and say why. `ended` comes from the loop: the record is gone, or
 * its state is TREE_KEPT; or something that may pass kept us from it, and it is to be ended again (leftovers.h). */
void worktree_end(struct worktree *tree, void (*ended)(void *context), void *context);

/* For a task that works in the same tree in each of its attempts: a tree that was opened is worked in again. -ENOENT: it is not
 * there any more; -ENOTDIR: its repository has no place for its branch. */
int worktree_resume(struct worktree *tree);

/* The attempt is over and its task is not: the tree stays as it is, for this reason. Faults as of its record. */
int worktree_keep(struct worktree *tree, const char *why);

const struct worktree_record *worktree_record(const struct worktree *tree);
bool worktree_is_gone(const struct worktree *tree);
bool worktree_is_settled(const struct worktree *tree); /* gone, or kept, and that is on disk */
const char *worktree_reason(const struct worktree *tree);

/* The grants of a task in the tree, besides the usual ones; paths are borrowed from the tree. Returns how many. */
size_t worktree_grants(const struct worktree *tree, struct grant grants[WORKTREE_GRANTS_MAX]);

/* Not while something of it runs. The memory goes when the loop has closed its handle. NULL is fine. */
void worktree_free(struct worktree *tree);

/* For worktrees.c. Records are in this directory, below the state directory. */
int worktree_records_open(const char *home);
int worktree_record_read(int records_fd, const char *name, struct worktree_record *ret_record);
