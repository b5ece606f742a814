/*
 * Where on this machine cgroups can be made, and which bounds they give: memory, number of tasks, share of the
 * processors. On the second version one leaf has them all, where its controllers were handed to us; on the first, and
 * on hybrid machines, each controller has a hierarchy of its own and a leaf in it.
 *
 * Tried out, not assumed. Looking changes nothing.
 */
#pragma once

#include "exec/tree/cgroup.h"
#include "exec/request/confine.h"
#include "exec/host.h"

enum { BOUND_REASON_BYTES = 400 };

struct cgroup_place {
	enum cgroup_kind kind;        /* of the leaf that holds the tree; CGROUP_NONE: no leaf can be made */
	char tree[CGROUP_PATH_BYTES]; /* where that leaf is made; "": nowhere */
	/* Nobody but us is there: processes in leaves beneath it were left by a predecessor that is dead with all its shims. */
	bool own;
	/* By enum bound: where its leaf is made, the same as `tree` on the second version; "": why_not says in a
	 * sentence what is missing and what to do. */
	char bounds[BOUND_COUNT][CGROUP_PATH_BYTES];
	char why_not[BOUND_COUNT][BOUND_REASON_BYTES];
	bool closed[BOUND_COUNT]; /* of the second version: cgroup_open_bounds() must be called first */
};

void cgroup_look(struct cgroup_place *ret_place);

/*
 * Make sure of these bounds (bits). On the second version a cgroup that has processes gives no controllers to those
 * beneath it: if we are alone in ours, we step aside into one of our own and open them. -EOPNOTSUPP: `complaint` is the
 * reason.
 */
int cgroup_open_bounds(struct cgroup_place *place, unsigned bounds, char *complaint, size_t room);

/* The leaves of one process. The first holds the tree; further ones are of the first version's controllers. */
struct cgroup_leaves {
	uint32_t count;
	bool bounded; /* they hold limits: a process that cannot enter them does not start */
	bool counts_tasks; /* one of them limits tasks: no limit of the user is set, which would also count others' tasks */
	char paths[CGROUP_LEAVES_MAX][CGROUP_PATH_BYTES];
	int fds[CGROUP_LEAVES_MAX];
};

/* Makes the leaves that these limits need, and sets the limits. -EOPNOTSUPP: a bound that cannot be made here. On a fault
 * nothing is left. */
int cgroup_make_leaves(const struct cgroup_place *place, const char *run, const struct limits *limits,
	struct cgroup_leaves *ret_leaves);

/* The descriptors only; their paths stay. */
void cgroup_leaves_close(struct cgroup_leaves *leaves);
void cgroup_leaves_remove(const struct cgroup_leaves *leaves);

/* Removes abandoned empty leaves everywhere (cgroup_sweep()). Where the place is our own, processes in such leaves are ended
 * first: their worker and shims were killed together, and nobody else knows of them. */
void cgroup_sweep_place(const struct cgroup_place *place);

/* Removes the empty leaves that a dead worker left of this run in the hierarchies of the first version. */
void cgroup_remove_of(const char *run);
