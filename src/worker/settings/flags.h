/*
 * The command line of stint-worker and of its words run, run-once, sweep-prs, worktrees and agent, and what it says of itself (usage.c).
 */
#pragma once

#include "config/config.h"
#include "worker/supervisor/supervisor.h"

extern const char worker_usage[], worker_usage_once[], worker_usage_trees[], worker_usage_sweep[],
	worker_usage_agent[], worker_usage_enroll[];

struct worker_flags {
	const char *slot, *queues, *capabilities, *name, *home, *url, *token, *token_file, *ca, *config,
		*config_object;
	const char *roots[ROOTS_MAX];
	uint32_t root_count;
	struct config_sets sets;
	int64_t concurrency, drain_ms, lease_ms;
	bool remote, plain, shell, under_home, check_config, check_isolation, help, version;
	bool once;                             /* run-once */
	bool sweeps;                           /* sweep-prs */
	bool trees;                            /* worktrees */
	bool asks_agents;                      /* agent ls, show, test or login */
	bool enrols;                           /* enroll */
	const char *agent_action, *agent_name; /* its two words; NULL: not given */
	const char *enrol_url, *enrol_code;    /* the same */
	bool agents;                           /* an executor for each agent that is installed */
	bool prune, json;
	struct settings_sweep sweep;
	struct once_config pass;
	struct arena arena; /* of the texts of `pass` */
};

/* On standard error. Returns EXIT_USAGE. */
int worker_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A whole number within bounds; else a complaint that names `flag`. */
int flags_take_number(const char *flag, const char *text, int64_t least, int64_t most, int64_t *ret_number);

/* For run-once: first the object is read, then the flags, which override it. A status to end with; 0: go on. */
int flags_read_object(int argc, char **argv, struct worker_flags *flags);
int flags_read(int argc, char **argv, struct worker_flags *flags);

/* Takes the first argument if it names a mode (run, run-once, …); the flags follow it. */
void flags_take_mode(int *argc, char ***argv, struct worker_flags *flags);
