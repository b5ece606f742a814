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
	enum cgroup_kind kind;        /* of the leaf that holds the tree; CGROUP_NONE: there is none */
	char tree[CGROUP_PATH_BYTES]; /* where that one is made; "" */
	bool own; /* nobody but us is there: whatever is in leaves beneath it was left by a predecessor that is dead with
		   * all its shims */
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
	bool bounded; /* there are limits in them: a process that does not get in does not start */
	bool counts_tasks; /* one of them has the limit of tasks: a limit of the user's would hold back later, or others */
	char paths[CGROUP_LEAVES_MAX][CGROUP_PATH_BYTES];
	int fds[CGROUP_LEAVES_MAX];
};

/* All that these limits need, with the limits in them. -EOPNOTSUPP: a bound that cannot be made here. On a fault nothing is
 * left. */
int cgroup_make_leaves(const struct cgroup_place *place, const char *run, const struct limits *limits,
	struct cgroup_leaves *ret_leaves);

/* The descriptors only; their paths stay. */
void cgroup_leaves_close(struct cgroup_leaves *leaves);
void cgroup_leaves_remove(const struct cgroup_leaves *leaves);

/* Empty leaves, wherever they can be, that nobody came back for (cgroup_sweep()). Where the place is our own, also what is in
 * them is ended: worker and shims were killed together, and nobody else can know of it. */
void cgroup_sweep_place(const struct cgroup_place *place);

/* What a dead worker left of this run in the hierarchies of the first version; only what is empty goes. */
void cgroup_remove_of(const char *run);
