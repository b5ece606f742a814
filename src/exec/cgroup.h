/*
 * A cgroup per process, where one can be made: of the second version, also beside the first on hybrid machines, or of
 * the first version's freezer. It is a second hand on the tree, not the only one: with it a kill is one stroke, and
 * what is in it is found after shim and supervisor have both died. Without it the tree is as complete, only slower.
 *
 * The leaves are made beneath our own cgroup; no controller is touched, no process of others moved.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exec/host.h"

enum { CGROUP_PATH_BYTES = 512 };

/* Where leaves can be made: tried out, not assumed. CGROUP_NONE leaves the path empty. */
enum cgroup_kind cgroup_find(char path[CGROUP_PATH_BYTES]);

/* Leaves that nobody came back for: of a worker and a shim that died together while they started something. One that is
 * new may be about to be entered and is left alone. */
void cgroup_sweep(const char *place);

/* Where the leaf of a run will be. -ENAMETOOLONG. */
int cgroup_path(const char *place, const char *run, char ret_path[CGROUP_PATH_BYTES]);

/* Make the leaf; its path must fit. On a fault nothing is left. */
int cgroup_make(const char *place, const char *run, char ret_path[CGROUP_PATH_BYTES], int *ret_fd);

/* The calling process goes in, and everything it forks from then on. */
int cgroup_enter(int fd);

/* Send a signal to all that are in it; returns how many. KILL is one stroke where the kernel has it, and otherwise
 * comes to frozen processes, which cannot fork away from it. */
uint32_t cgroup_signal(int fd, const char *path, int signal);

/* 0 also if it does not exist; -EBUSY while somebody is in it. */
int cgroup_remove(const char *path);
