#include "exec/system_grants.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/take.h"

/* Does it lie in one of these directories that grants as much? */
static bool is_covered(const struct system_grants *system, const struct grant *grant)
{
	struct place ancestors[ANCESTORS_MAX];
	int count = grant->is_directory ? ancestors_find(grant->fd, ancestors) : 0;

	for (size_t i = 0; i < system->count; i++)
		if (system->grants[i].held && system->grants[i].access == grant->access &&
			ancestors_index_of(ancestors, count, system->grants[i].place) >= 0)
			return true;
	return false;
}

static void hold(struct grant *grant)
{
	grant->fd = open(grant->path, O_PATH | O_CLOEXEC);
	if (grant->fd >= 0 && grant_hold(grant) < 0)
		close(take_fd(grant->fd));
}

void system_grants_open(struct system_grants *ret_system)
{
	assert(grants_system_count <= SYSTEM_GRANTS_MAX);
	*ret_system = (struct system_grants){0};
	for (size_t i = 0; i < grants_system_count; i++) {
		struct grant grant = grants_system[i];
		if (strncmp(grant.path, "/run/", 5) != 0)
			hold(&grant);
		if (grant.held && is_covered(ret_system, &grant))
			close(grant.fd);
		else
			ret_system->grants[ret_system->count++] = grant;
	}
}

void system_grants_look(struct system_grants *system, int64_t now_ms)
{
	if (now_ms < system->look_at_ms)
		return;
	system->look_at_ms = now_ms + SYSTEM_GRANTS_LOOK_MS;
	for (size_t i = 0; i < system->count; i++)
		system->there[i] = system->grants[i].held || access(system->grants[i].path, F_OK) == 0;
}

void system_grants_close(struct system_grants *system)
{
	for (size_t i = 0; i < system->count; i++)
		if (system->grants[i].held)
			close(system->grants[i].fd);
	system->count = 0;
}
