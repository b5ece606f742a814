/*
 * The host: what a program needs once to run others. It finds out what this machine can enforce and refuses to open
 * where a promise cannot be kept; afterwards every process of process.h is started through it.
 *
 * For one thread and one libuv loop. Opening changes the program: it becomes a subreaper, ignores SIGPIPE, has no
 * closed descriptor among 0 to 2 any more, may open as many descriptors as the system lets it and, as root, starts
 * nothing with privileges that no level of isolation needs. While a host is open
 * the program starts children in no other way and reaps none: a child that the host does not know is taken for what a
 * dead shim left behind, and ended.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

enum {
	HOST_PROCESSES_MAX = 8192,
	HOST_COMPLAINT_BYTES = 512,
};

enum cgroup_kind {
	CGROUP_NONE, /* none can be made here: the shim and its descendants are the tree */
	CGROUP_V1,   /* the freezer; also on hybrid machines without a second version that we may write */
	CGROUP_V2,
};

struct host_options {
	const char *shim;       /* NULL: stint-shim beside this program, then where it was installed */
	bool landlock_optional; /* without it a kernel that has no Landlock is refused */
	bool cgroup_unwanted;   /* do not even try */
	unsigned bounds;        /* of limits_bounds(): what processes will need; a missing one is a fault */
};

struct host_facts {
	int landlock_abi; /* 0: the kernel has none */
	enum cgroup_kind cgroup;
	uint32_t processes; /* started and not yet gone */
};

struct host;

/*
 * Borrows the loop until host_close(). On a fault *ret_host is untouched and `complaint` says in a sentence what is
 * missing:
 *   -ENOENT      there is no shim, or it is not ours
 *   -EOPNOTSUPP  the kernel lacks what is not optional (Landlock, seccomp, pidfd)
 *   -ENOMEM, -EMFILE, ...
 */
int host_open(uv_loop_t *loop, const struct host_options *options, struct host **ret_host,
	char complaint[HOST_COMPLAINT_BYTES]);

/* Every process must be freed. Its last handles close in the loop, which has to run once more. NULL is fine. */
void host_close(struct host *host);

void host_describe(const struct host *host, struct host_facts *ret_facts);
