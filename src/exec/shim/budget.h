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
	const struct limits *limits; /* borrowed, like `cgroups` */
	const int *cgroups;          /* descriptors, the tree's first; without any, /proc is read */
	uint32_t cgroup_count;
	bool cpu_counts;
	uint64_t cpu_before_us; /* used before the current budget began */
	/* without a cgroup: the last sum of /proc, and the time of processes that vanished from it unwaited for */
	uint64_t cpu_sum_us, cpu_vanished_us;
	int64_t look_at_ms; /* the next look, by monotonic_ms(); INT64_MAX: no budget, or it is spent */
	enum process_spent spent;
	uint32_t orders, orders_seen; /* orders that began or ended a budget: now, and at the last look */
};

void budget_init(struct budget *budget, const struct limits *limits, const int *cgroups,
	uint32_t cgroup_count, bool cpu_counts);

/* Begins a new budget; processor time counts from now on if `cpu_counts`. */
void budget_begin(struct budget *budget, bool cpu_counts);

/* Looks at once, also before look_at_ms. */
void budget_look(struct budget *budget);
