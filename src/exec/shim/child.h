/* The last steps of a child of the shim before it becomes the program: everything that it gives up. */
#pragma once

#include "exec/request/request.h"
#include "exec/tree/proc.h"

struct child {
	const struct request *request;
	const struct proc_self *self;
	const int *fds; /* by enum request_fd, those of grants after them */
	int ruleset;    /* of Landlock, -1 for none */
	int status; /* a pipe that exec closes: here a struct status_word is written if it comes to that */
	pid_t shim;
	char *const *cgroups; /* paths of REQUEST_FD_CGROUP and those after it */
	uint32_t cgroup_count;
};

/* In the child of the fork: it becomes the program, or what makes a wall around it. Does not return. */
_Noreturn void child_become(const struct child *child);

/* The second half of it, for who is inside of the wall already: the limits, and what it gives up. */
_Noreturn void child_confine(const struct child *child);
