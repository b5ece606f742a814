/*
 * By bubblewrap. Everything is looked up outside and put at the same path inside, so that a work dir, a cache or a
 * worktree that names its repository by path works there as it does here. What was not put there does not exist.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "exec/wall/plan.h"

#define TMP_BYTES "268435456" /* of /tmp, which is memory; TMPDIR is on the disk */
#define SHM_BYTES "67108864"  /* of /dev/shm; as a container has it */

static bool begins_with(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Files that nearly every program reads, except those the sandbox creates (/proc, /dev). Resolver files only with a
 * network. */
static void show_system(struct wall_plan *plan, bool network)
{
	for (size_t i = 0; i < grants_system_count; i++) {
		const struct grant *grant = &grants_system[i];
		bool bound = !begins_with(grant->path, "/dev/") && strcmp(grant->path, "/proc") != 0;
		if (strcmp(grant->path, "/sys") == 0 || (begins_with(grant->path, "/run/") && !network))
			continue;
		if (bound)
			plan_words(
				plan, (const char *const[]){"--ro-bind-try", grant->path, grant->path, NULL});
		plan_grant(plan, grant->path, grant->access);
	}
	plan_words(plan,
		(const char *const[]){"--ro-bind-try", "/sys/devices/system/cpu", "/sys/devices/system/cpu",
			NULL}); /* how many there are */
	plan_grant(plan, "/sys/devices/system/cpu", GRANT_READ);
	plan_grant(plan, "/tmp", GRANT_WRITE);
	plan_grant(plan, "/dev/shm", GRANT_WRITE);
	plan_grant(plan, WALL_PLACE, GRANT_READ); /* the shim, for a trial */
}

/* By the system's own paths. */
static bool is_shown(const char *path)
{
	for (size_t i = 0; i < grants_system_count; i++)
		if (path_lies_in(path, grants_system[i].path))
			return access(path, F_OK) == 0;
	return false;
}

static void show_granted(struct wall_plan *plan)
{
	static const char *const flags[] = {
		[GRANT_READ] = "--ro-bind", [GRANT_WRITE] = "--bind", [GRANT_DEVICE] = "--dev-bind"};

	for (size_t i = 0; i < plan->bind_count; i++)
		plan_words(plan,
			(const char *const[]){flags[plan->binds[i].access], plan->binds[i].source,
				plan->binds[i].path, NULL});
}

int sandbox_plan(struct wall_plan *plan, const char *shim, const struct process_spec *spec)
{
	static const char *const walls[] = {"--unshare-user", "--unshare-pid", "--unshare-ipc",
		"--unshare-uts", "--unshare-cgroup-try", "--hostname", "stint", "--die-with-parent",
		"--as-pid-1", "--cap-drop", "ALL", NULL};
	static const char *const own[] = {"--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--size",
		TMP_BYTES, "--tmpfs", "/tmp", "--perms", "1777", "--size", SHM_BYTES, "--tmpfs", "/dev/shm",
		NULL};
	const char *program = wall_program(&plan->arena, "bwrap");

	if (!program)
		return -ENOENT;
	plan_word(plan, program);
	plan_words(plan, walls);
	if (!spec->wall->network)
		plan_word(plan, "--unshare-net");
	show_system(plan, spec->wall->network);
	if (spec->confine.hidden && is_shown(spec->confine.hidden))
		plan_words(plan, (const char *const[]){"--ro-bind", "/dev/null", spec->confine.hidden, NULL});
	plan_words(plan, own);
	show_granted(plan);
	if (wall_is_long(spec->wall->socket))
		plan_words(plan, (const char *const[]){"--ro-bind", spec->wall->socket, WALL_SOCKET, NULL});
	if (wall_is_long(spec->wall->proxy))
		plan_words(plan, (const char *const[]){"--ro-bind", spec->wall->proxy, WALL_PROXY, NULL});
	plan_words(plan, (const char *const[]){"--ro-bind", shim, WALL_PLACE "/shim", NULL});
	plan_words(plan,
		(const char *const[]){
			"--remount-ro", "/", "--chdir", "/", "--", WALL_PLACE "/shim", SHIM_INSIDE, NULL});
	return 0;
}
