/*
 * What a tree has used of its budget, as its shim sees it, and when the next look is worth it. The shim enforces processor
 * time. The kernel enforces memory: it kills a process that asks for more, and that is noticed here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "exec/request/confine.h"
#include "exec/request/terms.h"

struct budget {
	const struct limits *limits; /* borrowed, like the next */
	const int *cgroups;          /* descriptors, the tree's first; none: what /proc shows counts */
	uint32_t cgroup_count;
	bool cpu_counts;
	uint64_t cpu_before_us; /* used before that */
	uint64_t cpu_sum_us,
		cpu_vanished_us; /* without a cgroup: who vanishes unwaited for stays in the sum */
	int64_t look_at_ms;      /* by monotonic_ms(); INT64_MAX: it has none, or it is spent */
	enum process_spent spent;
	uint32_t orders, orders_seen; /* that have begun or ended one; and at the last look */
};

void budget_init(struct budget *budget, const struct limits *limits, const int *cgroups,
	uint32_t cgroup_count, bool cpu_counts);

/* From now on it is whole again and processor time counts, or it does not. */
void budget_begin(struct budget *budget, bool cpu_counts);

/* Now, whether it is time or not. */
void budget_look(struct budget *budget);
