/*
 * The private directory of one attempt: 0700, with home/ and tmp/ in it for the child, and 0600 files for its secrets.
 * Everything goes through descriptors and follows no link: what is in it was written by strangers.
 */
#pragma once

#include "base/span.h"

/* Ask the file system to spread new directories in there over the disk. Once, when it is opened; a refusal is no fault. */
void rundir_spread(int runs_fd);

/* Make `name` beneath the directory `runs_fd`, which must be ours, and open it. -EEXIST: the run has been; -EINVAL: no
 * name of a run. On a fault nothing is left. */
int rundir_make(int runs_fd, const char *name, int *ret_fd);

/* A file that only we can read, complete before anybody can open it. -EEXIST: the name is taken. */
int rundir_put_secret(int run_fd, const char *name, struct span secret);

/* Remove `name` and all that is in it, whatever its permissions. 0 also if it does not exist. A child that still runs
 * can keep it from succeeding: -ENOTEMPTY. */
int rundir_remove(int runs_fd, const char *name);

/* The same in pieces, for a loop that has others to serve: a child can leave more files than anybody wants to wait for.
 * -EAGAIN: entries_max entries were removed, and there are more. */
int rundir_remove_some(int runs_fd, const char *name, unsigned entries_max);
