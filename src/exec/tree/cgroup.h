/*
 * A cgroup per process, where one can be made: of the second version, also beside the first on hybrid machines, or of
 * the first version's freezer. It is a second hand on the tree, not the only one: with it a kill is one stroke, and
 * what is in it is found after shim and supervisor have both died. Without it the tree is as complete, only slower.
 *
 * The leaves are made beneath our own cgroup (exec/cgroup_place.h says where); no process of others is moved.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CGROUP_PATH_BYTES = 512,
	CGROUP_LEAVES_MAX = 4, /* of one process: the tree's, and on the first version one for each bound */
};

/* Removes abandoned leaves: their worker and shim died together during a start. A new leaf may be about to be entered and is
 * left alone. */
void cgroup_sweep(const char *place);

/* Where the leaf of a run will be. -ENAMETOOLONG. */
int cgroup_path(const char *place, const char *run, char ret_path[CGROUP_PATH_BYTES]);

/* Make the leaf; its path must fit. On a fault nothing is left. */
int cgroup_make(const char *place, const char *run, char ret_path[CGROUP_PATH_BYTES], int *ret_fd);

/* Moves the calling process, and everything it forks from then on, into the leaf. */
int cgroup_enter(int fd);

/* Send a signal to all that are in it; returns how many. KILL is one stroke where the kernel has it, and otherwise
 * comes to frozen processes, which cannot fork away from it. */
uint32_t cgroup_signal(int fd, const char *path, int signal);

/* 0 also if it does not exist; -EBUSY while somebody is in it. */
int cgroup_remove(const char *path);

/* Processor time of all that was ever in it, in us; -ENOENT: this hierarchy does not count it. */
int64_t cgroup_cpu_us(int fd);

/* How many of its processes the kernel has killed because they had no memory left. */
uint64_t cgroup_oom_kills(int fd);

/* For cgroup_place.c. */
int cgroup_write(int dir, const char *name, const char *text);
