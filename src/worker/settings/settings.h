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
 *	  "prices": {"asOf": "2026-11-01", "models": {"gpt-5*": {"input": 1.25, "output": 10}}},   dollars for a million tokens
 *	  "prSweep": {"kind": "github", "repository": "o/n", "queue": "dev-team"}   pull requests as tasks, or what a program prints (sweep.h)
 *	}
 *
 * A task can name an executor and never define one: all of this comes from files whose owner was checked. Of several
 * files the one that stands higher replaces an executor or a queue of the same name, and the whole list of roots.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/price.h"
#include "config/config.h"
#include "wire/json/json.h"
#include "attempt/program.h"

enum {
	EXECUTORS_MAX = 64,
	QUEUES_MAX = 64,
	ROOTS_MAX = 32,
	ENV_MAX = 256,
	PROGRAM_DIRS_MAX = 64,
	POOL_SIZE_MAX = 100, /* workers of one pool */
};

struct settings_queue {
	const char *name;
	const char *executor; /* for tasks that name no executor; NULL: none */
	int64_t weight;       /* 1 and more */
	struct config_origin where;
};

struct settings_sweep {
	bool on;                /* it is configured */
	const char *repository; /* owner/name; NULL: the repository of the current directory */
	const char *queue;      /* of the tasks */
	const char *executor;   /* of the tasks; NULL: none */
	const char *const
		*argv; /* a program that prints tasks, a line of JSON each; NULL: pull requests, by gh */
};

struct settings {
	struct config *config; /* owns the memory of all texts */
	const char *file;      /* where a person configures it: --config, else their own file */
	struct executor executors[EXECUTORS_MAX];
	struct config_origin executor_origins[EXECUTORS_MAX]; /* of executors[i] */
	uint32_t executor_count;
	struct settings_queue queues[QUEUES_MAX];
	uint32_t queue_count;
	const char *roots[ROOTS_MAX];
	uint32_t root_count;
	bool home_root; /* the last of them is the person's home: tasks work in its open entries, and not in it */
	struct config_origin roots_origin;           /* where "roots" stands; CONFIG_DEFAULT: nowhere */
	struct person_home home;                     /* of the person; filled by settings_settle_path() */
	struct program_place place;                  /* where programs are found; the same */
	const char *path_text;                       /* PATH of tasks */
	struct settings_path path[PROGRAM_DIRS_MAX]; /* the directories of path_text */
	uint32_t path_count;
	bool landlock_optional;
	struct settings_sweep sweep;
	struct prices prices;
};

/* For config_request.foreign_read. */
void settings_read(
	void *settings, struct config *config, struct form *form, struct span key, yyjson_val *value);

/* After all files were read: checks that the settings fit together. Complaints go to the configuration. */
void settings_check(struct settings *settings, struct config *config);

/* For settings without complaints: asserts what all users of them rely on. */
void settings_assert(const struct settings *settings);

/* After the last root: from here on we find programs only where no task can have put them. What makes a wall runs outside of it.
 * `state` is the state directory. */
void settings_settle_path(struct settings *settings, struct config *config, const char *state);

/* The roots that the configuration or the command line names. */
static inline uint32_t settings_named_roots(const struct settings *settings)
{
	return settings->root_count - settings->home_root;
}

/* The file in which something with that origin is configured, or would be if it is in none. */
const char *settings_file_of(const struct settings *settings, struct config_origin origin);

/* Where an executor is configured; CONFIG_DEFAULT: in no file. */
struct config_origin settings_origin_of(const struct settings *settings, const struct executor *executor);

/* Can this machine enforce all budgets? A budget that nobody enforces is a mistake of the configuration. */
void settings_check_budgets(const struct settings *settings, struct config *config);

/* The bounds that all executors need, as bits. */
unsigned settings_bounds(const struct settings *settings);

/* Adds an executor that runs the argv of the task and is shown the person's home, unless one of that name exists. */
void settings_add_payload(struct settings *settings, const char *name);

/* Adds an executor for each agent that is installed here, under the name of its adapter, unless one of that name exists. Tasks that
 * name it get a home of their own and, if they ask, a work tree. */
void settings_add_agents(struct settings *settings, struct config *config);

/* Adds a queue to serve; a known queue keeps its executor. NULL: too many queues. */
struct settings_queue *settings_add_queue(struct settings *settings, const char *name, int64_t weight);

/* NULL: no such executor. */
const struct executor *settings_executor(const struct settings *settings, const char *name);

/* The executor for a task of this queue that names none: the queue's, else the only executor there is; or NULL. */
const struct executor *settings_queue_executor(const struct settings *settings, const char *queue);

/* owner/name, as GitHub calls a repository. */
bool settings_is_repository(const char *name);

/* Letters, digits and -._: after one of the first two, at most 128 bytes. */
bool settings_is_name(const char *name);

/* The program of an executor's own argv that cannot be found; NULL: it can, or only a task, a container or a machine
 * knows. */
const char *settings_missing_program(const struct settings *settings, const struct executor *executor);

/* Notes as problems what would only fail when a task comes: missing programs. For --check-config. */
void settings_check_programs(const struct settings *settings, struct config *config);

/* For doctors, as further members of the list of walls_report(): programs that are missing, and a token that only its being
 * hidden by name protects. Faults as buf_put(). */
int settings_put_findings(struct buf *out, const struct settings *settings);

/* The file with the worker's own token, from now on out of reach of all tasks. False: an executor grants it, which is noted as a
 * problem. */
bool settings_hide_token(struct settings *settings, struct config *config, const char *file);

/* What was understood, for people. -ENOMEM, -E2BIG. */
int settings_put(struct buf *out, const struct settings *settings);
