#include "attempt/executor.h"

#include <stddef.h>

size_t executor_grants(const struct executor *executor, struct grant *grants)
{
	const struct settings_path *lists[] = {executor->read, executor->write};
	size_t count = 0;

	for (size_t i = 0; i < 2; i++)
		for (const struct settings_path *path = lists[i]; path && path->name; path++)
			grants[count++] = (struct grant){.path = path->real,
				.inside = path->name,
				.fd = -1,
				.access = i == 0 ? GRANT_READ : GRANT_WRITE,
				.direct = true,
				.outside = true};
	return count;
}

const char *executor_unfit(const struct executor *executor, enum wall_level level)
{
	if (executor->size > 0 && level == WALL_VM)
		return "a pool cannot be behind level \"vm\": a serial line has no end that its workers could wait for";
	if (executor->size > 0 && level > executor->wall.level)
		return "the workers of a pool run before there is a task, at the level of their executor";
	if (level == WALL_VM &&
		(executor->reads_home || (executor->read && executor->read->name) ||
			(executor->write && executor->write->name)))
		return "it has \"read\" or \"write\", and no directory is shared with a machine";
	if (level == WALL_VM && executor->limits.memory_bytes >> 20 < WALL_MACHINE_MIB_LEAST)
		return "its budget.memoryBytes is less than the 64 MiB that a machine needs";
	if (level == WALL_CONTAINER && executor->reads_home)
		return "it has \"home\" in \"read\", and a container has a system of its own";
	if (executor->agent && level > WALL_SANDBOX)
		return "the home and the sessions of an agent are on this host, which only levels \"process\" and \"sandbox\" can reach";
	if (level == WALL_PROCESS && executor->offline)
		return "it has \"network\": false, which needs \"sandbox\" or stricter";
	if (executor->hosts && level != WALL_SANDBOX && level != WALL_CONTAINER)
		return "it has a list of hosts in \"network\", which needs \"sandbox\" or \"container\"";
	if (executor->worktree.on && level > WALL_SANDBOX)
		return "a work tree is part of a repository, which only levels \"process\" and \"sandbox\" can reach";
	return NULL;
}
