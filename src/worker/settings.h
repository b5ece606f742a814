/*
 * What a worker may run, and for whom: the keys of the configuration that are its own.
 *
 *	{
 *	  "roots": ["~/work"],                                   directories beneath which a task may ask to work
 *	  "executors": {
 *	    "tests": {"kind": "command", "argv": ["make", "test"]},
 *	    "any":   {"kind": "command", "argv": "payload"},     runs the argv that the task carries
 *	    "airi":  {"kind": "pool", "argv": ["node", "worker.js"], "workingDir": "/srv/airi", "size": 2}   stays (pool.h)
 *	  },
 *	  "queues": {"ci": {"executor": "tests", "weight": 4}},  which are served, and by what a task that names nothing
 *	  "landlock": "optional",                                start on a kernel without it
 *	  "prSweep": {"kind": "github", "repository": "o/n", "queue": "dev-team"}   pull requests as tasks (sweep.h)
 *	}
 *
 * A task can name an executor and never define one: all of this comes from files whose owner was checked. Of several
 * files the one that stands higher replaces an executor or a queue of the same name, and the whole list of roots.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "exec/request/confine.h"
#include "exec/wall/wall.h"
#include "wire/json/json.h"

enum {
	EXECUTORS_MAX = 64,
	QUEUES_MAX = 64,
	ROOTS_MAX = 32,
	ARGV_MAX = 1024,
	ENV_MAX = 256,
	PATHS_MAX = 32,
	PROGRAM_DIRS_MAX = 64,
	POOL_SIZE_MAX = 100, /* workers of one pool */
};

/* A work tree of its own for each attempt (worktree.h). */
struct settings_worktree {
	bool on;
	const char *root;   /* of the trees; NULL: in the state directory */
	const char *branch; /* with {fence} in it, and maybe {task} */
	const char *base;   /* the commit it begins with */
	const char
		*include; /* the file that names what is copied though git ignores it; NULL: the usual ones */
	const char *const *setup; /* a program that is run in it first; NULL: none */
	bool setup_of_repository; /* or the one that the repository brings along */
	int64_t setup_ms;
};

/*
 * A path of the configuration. Where it leads is looked up once, before anything runs, because what lies on the way may be in a
 * directory that tasks can change: a link that they put there is not followed.
 */
struct settings_path {
	const char *name; /* as it was given, but for ~ */
	const char *real;
};

struct executor {
	const char *name;
	const char *kind;        /* "command", "pool" */
	const char *const *argv; /* NULL at the end; NULL: the task's own */
	const char *const *env;  /* NAME=value; NULL at the end */
	const char *const *env_allow;
	const struct settings_path *read, *write; /* besides the usual ones; NULL at the end */
	int64_t timeout_ms;                       /* at the most; 0: as the task says */
	int64_t start_ms, stall_ms; /* until the first and between two signs of life; 0: no such clock */
	int64_t grace_ms;           /* between TERM and KILL */
	struct limits limits;
	struct wall wall;   /* its level, and what that is made of; a task may ask for a stricter level */
	bool offline;       /* "network": false, in so many words */
	int64_t size;       /* of a pool: its workers; 0: it is none */
	int64_t silence_ms; /* of a pool: whose worker says nothing for so long has crashed */
	const char *working_dir; /* of a pool: where its workers run; NULL: each in a directory of its own */
	struct settings_worktree worktree;
	int64_t budget_ms; /* of wall time; 0: as long as the timeout lets it */
	unsigned bounds;   /* bits of enum bound: what its limits cannot do without on this machine */
	struct config_origin where;
};

struct settings_queue {
	const char *name;
	const char *executor; /* for tasks that name none; NULL: none */
	int64_t weight;       /* 1 and more */
	struct config_origin where;
};

struct settings_sweep {
	bool on;                /* it is configured */
	const char *repository; /* owner/name; NULL: that of the directory we are in */
	const char *queue;      /* of the tasks */
	const char *executor;   /* NULL: none is named */
};

struct settings {
	struct config *config; /* whose memory it is */
	struct executor executors[EXECUTORS_MAX];
	uint32_t executor_count;
	struct settings_queue queues[QUEUES_MAX];
	uint32_t queue_count;
	const char *roots[ROOTS_MAX];
	uint32_t root_count;
	const char *path_text;                       /* PATH, as tasks have it */
	struct settings_path path[PROGRAM_DIRS_MAX]; /* its directories */
	uint32_t path_count;
	bool landlock_optional;
	struct settings_sweep sweep;
};

/* For config_request.foreign_read. */
void settings_read(
	void *settings, struct config *config, struct config_file *file, yyjson_val *key, yyjson_val *value);

/* After all files: does it fit together? Complaints go to the configuration. */
void settings_check(struct settings *settings, struct config *config);

/* After the last root: from here on we find programs only where no task can have put them. What makes a wall runs outside of it. */
void settings_settle_path(struct settings *settings, struct config *config);

/* Can what it promises be kept on this machine? A budget that nobody enforces is a mistake of the configuration. */
void settings_check_budgets(const struct settings *settings, struct config *config);

/* Of all executors, as bits. */
unsigned settings_bounds(const struct settings *settings);

/* An executor that runs what the task carries, unless there is one of that name already. */
void settings_add_payload(struct settings *settings, const char *name);

/* A queue to serve; one that is known keeps its executor. -ENOSPC. */
int settings_add_queue(struct settings *settings, const char *name, int64_t weight);

/* What it may reach besides the usual: `read` and `write`. How many; there is room for 2 * PATHS_MAX. */
size_t settings_grants(const struct executor *executor, struct grant *grants);

/* Why this executor can never run at that level; NULL: it can, where the machine can. */
const char *settings_unfit(const struct executor *executor, enum wall_level level);

/* NULL: there is none. */
const struct executor *settings_executor(const struct settings *settings, const char *name);

/* By what a task of this queue is run that names none: what the queue says, else the only executor there is; NULL. */
const struct executor *settings_fallback(const struct settings *settings, const char *queue);

/* owner/name, as GitHub calls a repository. */
bool settings_is_repository(const char *name);

/* Letters, digits and -._: after one of the first two, at most 128 bytes. */
bool settings_is_name(const char *name);

/* What was understood, for people. -ENOMEM, -E2BIG. */
int settings_put(struct buf *out, const struct settings *settings);
