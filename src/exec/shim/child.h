/* The last steps of a child of the shim before it becomes the program: everything that it gives up. */
#pragma once

#include "exec/request/request.h"
#include "exec/tree/proc.h"

struct child {
	const struct request *request;
	const struct proc_self *self;
	const int *fds; /* by enum request_fd, then the grants' */
	int ruleset;    /* of Landlock, -1 for none */
	int status; /* a pipe that exec closes; a struct status_message is written to it if there is a fault */
	pid_t shim;
	char *const *
		cgroups; /* paths of the leaves, in the order of their descriptors from REQUEST_FD_CGROUP on */
	uint32_t cgroup_count;
};

/* In the child of the fork: it becomes the program, or what makes a wall around it. Does not return. */
_Noreturn void child_become(const struct child *child);

/* The second half, for the shim inside of a wall: it sets the limits and gives up what the program must not have.
 * */
_Noreturn void child_confine(const struct child *child);
