#include "exec/shim/budget.h"

#include <assert.h>
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "exec/tree/cgroup.h"
#include "exec/tree/proc.h"
#include "exec/tree/tree.h"

enum {
	LOOK_LEAST_MS = 10, /* between two looks */
	LOOK_MOST_MS = 250,
};

static bool has_cpu(const struct budget *budget)
{
	return budget->limits->cpu_us != LIMIT_UNCHANGED;
}

static bool has_memory(const struct budget *budget)
{
	return budget->limits->memory_bytes != LIMIT_UNCHANGED;
}

static uint64_t waited_for_us(void)
{
	struct rusage usage = {0};

	getrusage(RUSAGE_CHILDREN, &usage);
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
		(uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Of all that was ever in the tree, where a cgroup counts; else of what was waited for and what is there. */
static uint64_t cpu_used_us(struct budget *budget)
{
	int64_t counted_us = budget->cgroup_count > 0 ? cgroup_cpu_us(budget->cgroups[0]) : -ENOENT;

	if (counted_us >= 0)
		return (uint64_t)counted_us;
	uint64_t sum_us = waited_for_us() + tree_cpu_us(getpid());
	if (sum_us < budget->cpu_sum_us)
		budget->cpu_vanished_us += budget->cpu_sum_us - sum_us;
	budget->cpu_sum_us = sum_us;
	return sum_us + budget->cpu_vanished_us;
}

static uint64_t cpu_left_us(struct budget *budget)
{
	if (!has_cpu(budget) || !budget->cpu_counts)
		return LIMIT_UNCHANGED;
	uint64_t used_us = cpu_used_us(budget) - budget->cpu_before_us;
	return used_us < budget->limits->cpu_us ? budget->limits->cpu_us - used_us : 0;
}

static bool memory_is_spent(const struct budget *budget)
{
	uint64_t kills = 0;

	for (uint32_t i = 0; has_memory(budget) && i < budget->cgroup_count; i++)
		kills += cgroup_oom_kills(budget->cgroups[i]);
	return kills > 0;
}

/* When the next look is worth it: processor time cannot be used up faster than all processors together use it. */
static int64_t next_look_ms(uint64_t left_us)
{
	static long processors;

	if (processors <= 0)
		processors = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t soonest_ms = left_us / 1000 / (uint64_t)(processors > 0 ? processors : 1);
	return soonest_ms < LOOK_LEAST_MS   ? LOOK_LEAST_MS
		: soonest_ms > LOOK_MOST_MS ? LOOK_MOST_MS
					    : (int64_t)soonest_ms;
}

void budget_init(struct budget *budget, const struct limits *limits, const int *cgroups,
	uint32_t cgroup_count, bool cpu_counts)
{
	*budget = (struct budget){.limits = limits,
		.cgroups = cgroups,
		.cgroup_count = cgroup_count,
		.cpu_counts = cpu_counts,
		.look_at_ms = INT64_MAX};
	if (has_cpu(budget) || has_memory(budget))
		budget->look_at_ms = 0;
}

void budget_begin(struct budget *budget, bool cpu_counts)
{
	budget->orders++;
	budget->cpu_counts = cpu_counts;
	if (has_cpu(budget))
		budget->cpu_before_us = cpu_used_us(budget);
	if (budget->look_at_ms != INT64_MAX)
		budget->look_at_ms = 0;
}

void budget_look(struct budget *budget)
{
	uint64_t left_us;

	if (budget->look_at_ms == INT64_MAX)
		return;
	left_us = cpu_left_us(budget);
	if (memory_is_spent(budget))
		budget->spent = SPENT_MEMORY;
	else if (left_us == 0)
		budget->spent = SPENT_CPU;
	assert(budget->orders_seen <= budget->orders);
	budget->orders_seen = budget->orders;
	budget->look_at_ms =
		budget->spent != SPENT_NOTHING ? INT64_MAX : monotonic_ms() + next_look_ms(left_us);
}
