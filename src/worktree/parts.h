/*
 * What the files of src/worktree share. Only they include this.
 *
 *	worktree.c  the life of a tree, and the grants of a task in it
 *	find.c      which repository a directory is in
 *	record.c    records of trees, and their locks
 *	git.c       running git, and reading its output
 *	make.c      making a tree, up to `git worktree add`
 *	include.c   the rest of making: included files, the set-up
 *	end.c       ending a tree: kept, or removed
 *	lost.c      commits that would be lost with a tree
 */
#pragma once

#include "base/arena.h"
#include "attempt/job.h"
#include "worktree/worktree.h"

enum {
	GIT_MS = 2 * 60 * 1000,
	CHECKOUT_MS = 15 * 60 * 1000,
};

struct worktree {
	struct worktree_site site;
	struct worktree_wish wish;
	struct worktree_record record;
	char branch_why[300]; /* why its branch could not be removed */
	struct arena arena;
	struct job job;
	int records_fd, dir_fd; /* directory of all records, directory of its own record */
	int lock_fd;            /* lock of its record, held */
	int jobs_fd;  /* a lock that our programs hold, too: a successor waits until they have ended */
	int alone_fd; /* lock of its repository, while we change git's list of trees there; -1: not held */
	int alone_waited_ms;
	void (*alone)(struct worktree *tree); /* called once we have that lock */
	bool begun;                           /* its record was written: the tree has to be cleared away */
	bool cancelled, gone, cleared;
	bool unwritten; /* its record on disk is out of date */
	int fault;      /* why it could not be made */
	char reason[WORKTREE_REASON_BYTES];
	void (*made)(void *context, int fault);
	void (*ended)(void *context);
	void *context;
	void (*counted)(struct worktree *tree, int64_t count); /* lost.c */
};

struct worktree *worktree_new(const struct worktree_site *site);

/* The same for the same repository, on every machine. */
uint64_t worktree_fingerprint(const char *common);

/* The directory that holds the tree. */
const char *worktree_place(struct worktree *tree);

/* record.c: the record is written before each step, so that a successor finds it. */
int worktree_write_record(struct worktree *tree, enum worktree_state state);
int worktree_read_record(int dir_fd, const char *name, struct worktree_record *record);
int worktree_take_lock(struct worktree *tree);

/* A process that waits for the lock finds no record then. */
void worktree_forget_record(struct worktree *tree);

/* Calls back from the loop, or at once, when nobody else adds a tree to this repository or removes one: git that adds one looks at
 * all the others, and fails over one that is half there. After ALONE_MS it goes on without the lock. */
void worktree_when_alone(struct worktree *tree, void (*then)(struct worktree *tree));
void worktree_let_others(struct worktree *tree);

/* git.c */
/* One program of ours: where, and what it may change. */
struct worktree_call {
	const char *const *argv;
	bool in_tree;        /* git runs on the tree, with the tree's own git directory */
	const char *dir;     /* NULL: the tree if it is in_tree, else the repository */
	bool changes_common; /* it may change the repository */
	bool checks_out; /* it fills the tree: it may change the tree's own git directory, and where Git LFS keeps files */
	const char *changes; /* a further path that it may change, or NULL */
	struct span input;
	int64_t timeout_ms; /* 0: GIT_MS */
	void (*done)(void *tree);
};

int worktree_run(struct worktree *tree, const struct worktree_call *call);
void worktree_add_grant(const struct worktree_record *record, struct grant *grants, size_t *count,
	const char *path, enum grant_access access);

/* The first line of its output. */
void worktree_take_line(const struct job *job, char *line, size_t room);

/* A directory in the repository, by a way that has no link in it. */
int worktree_open_in_common(const struct worktree_record *record, const char *path, bool make);

/* What a task may write of the repository's refs must be there before it starts, and stay: git removes directories of refs that it
 * has packed, and a new one is nothing that was granted. Also the log of its HEAD: git goes on with one that is there, also where
 * it would begin none, and lost.c reads it. Returns NULL, or the path that is not a directory. */
const char *worktree_prepare_refs(struct worktree *tree);

/* The file that keeps git from removing the directory of its branch; NULL: the branch is in no directory. */
const char *worktree_ref_keeper(struct worktree *tree);

/* git's own directory of the tree, also of one that git did not come to an end with. */
void worktree_find_admin(struct worktree *tree);

/* The command that lists what could be work: see git.c. */
extern const char *const worktree_look[];

/* The entry at the start of such a list, with its NUL if it has one; the rest stays. */
struct span worktree_take_entry(struct span *list);

/* Its result in a form that can be compared later; `made`: the list of what the set-up made. */
int worktree_put_entries(struct worktree *tree, bool made, struct buf *out);

/* find.c: the text after `before` in a file of one line; false: not such a file. */
bool worktree_read_word(const char *path, const char *before, char *out, size_t room);

/* `name` as seen from `dir`, without links, . and .. in it; false: it is not there. */
bool worktree_resolve(const char *dir, const char *name, char out[WORKTREE_PATH_BYTES]);

/* make.c: the next step. If it cannot be run, making ends: `what` names it. */
void worktree_go_on(struct worktree *tree, const struct worktree_call *call, const char *what);

/* Making ends; the format goes on after "a work tree of 'SOURCE' cannot be made: ". What there is of it is cleared away. */
void worktree_give_up(struct worktree *tree, int fault, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void worktree_give_up_after(struct worktree *tree, const char *what); /* the last job failed */
void worktree_become_live(struct worktree *tree);

/* include.c: the rest of making. */
void worktree_include(struct worktree *tree);

/* lost.c: counts commits that were made in the tree without a branch and are on no branch now. `count` below 0: unknown. */
void worktree_count_lost(struct worktree *tree, void (*counted)(struct worktree *tree, int64_t count));

/* end.c */
void worktree_begin_end(struct worktree *tree);
