/*
 * An executor: one way to run a task, as the worker's configuration defines it (worker/settings/settings.h). A task can name one and never define
 * one. All texts are the configuration's and live as long as the worker.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "exec/request/confine.h"
#include "exec/wall/wall.h"

enum {
	ARGV_MAX = 1024,
	PATHS_MAX = 32,
};

/* A work tree of its own for each attempt (worktree/worktree.h). */
struct settings_worktree {
	bool on;
	const char *root;    /* directory of the trees; NULL: in the state directory */
	const char *branch;  /* name of the branch, with {fence} in it, and maybe {task} */
	const char *base;    /* the commit that the branch begins with */
	const char *include; /* file that names ignored files to copy; NULL: the usual names of this file */
	const char *const *setup; /* a program that is run in the tree first; NULL: none */
	bool setup_of_repository; /* the repository's own set-up program is run instead */
	int64_t setup_ms;
};

/*
 * A path of the configuration. Where it leads is looked up once, before anything runs, because what lies on the way may be in a
 * directory that tasks can change: a link that they put there is not followed.
 */
struct settings_path {
	const char *name; /* as it was given, with ~ expanded */
	const char *real;
};

struct agent_settings;

struct executor {
	const char *name;
	const char *kind;        /* "command", "pool", "agent" */
	const char *const *argv; /* NULL at the end; NULL: the argv of the task */
	const char *const *env;  /* NAME=value; NULL at the end */
	const char *const *env_allow;
	const char *const *env_from_task; /* names that a task may set; without an argv of its own: any */
	const char *const
		*subtasks; /* executors that subtasks of its tasks may name besides itself; NULL at the end */
	const struct settings_path *read, *write; /* grants besides the usual ones; NULL at the end */
	bool reads_home; /* "read" has "home": the person's home without its private entries (person_home.h) */
	const struct settings_path *files; /* those that its argv names; NULL at the end */
	int64_t timeout_ms;                /* upper limit; 0: the task's timeout */
	int64_t start_ms, stall_ms; /* longest time to the first and between two signs of life; 0: no limit */
	int64_t grace_ms;           /* between TERM and KILL */
	struct limits limits;
	struct wall wall; /* its level, and the files it needs; a task may ask for a stricter level */
	bool offline;     /* the configuration says "network": false */
	const char *const
		*hosts; /* "network" as a list: reached through our proxy; NULL at the end; NULL: no list */
	int64_t size;   /* of a pool: number of workers; 0: not a pool */
	int64_t silence_ms;      /* of a pool: a worker that is silent for longer counts as crashed */
	const char *working_dir; /* of a pool: where its workers run; NULL: each in a directory of its own */
	struct settings_worktree worktree;
	int64_t budget_ms;            /* of wall time; 0: no limit besides the timeout */
	struct agent_settings *agent; /* of kind agent (agent/settings.h); NULL: another kind */
	unsigned bounds;              /* bits of enum bound that its limits need on this machine */
};

/* The grants of `read` and `write`; returns how many, at most 2 * PATHS_MAX. */
size_t executor_grants(const struct executor *executor, struct grant *grants);

/* Why this executor can never run at that level; NULL: it can, where the machine can. */
const char *executor_unfit(const struct executor *executor, enum wall_level level);
