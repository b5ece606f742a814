/*
 * A path is resolved once, here: it is opened, compared with the state directory, and named to the wall as the kernel names
 * it. The program that makes the wall resolves that name again, and somebody could have put a link there since. So the shim
 * inside compares what it finds with what was opened, before anything else runs.
 */
#include "exec/wall/plan.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/take.h"
#include "exec/request/ancestors.h"

enum {
	PLAN_BYTES_MAX = 1 << 20,
	PLAN_ARGS_MAX = 1024,
};

/* ---- for sandbox.c, container.c and machine.c ---------------------------------------------------------------------------------- */

const char *plan_text(struct wall_plan *plan, const char *format, ...)
{
	char text[4096 + 512];
	struct span kept;
	va_list args;

	va_start(args, format);
	int len = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (len >= 0 && len < (int)sizeof text && arena_copy(&plan->arena, span_of(text), &kept) == 0)
		return kept.data;
	plan->short_of = true;
	return "";
}

void plan_word(struct wall_plan *plan, const char *word)
{
	if (plan->argc + 1 < PLAN_ARGS_MAX)
		plan->argv[plan->argc++] = word;
	else
		plan->short_of = true;
}

void plan_words(struct wall_plan *plan, const char *const *words)
{
	while (*words)
		plan_word(plan, *words++);
}

void plan_grant(struct wall_plan *plan, const char *path, enum grant_access access)
{
	if (plan->grant_count < GRANTS_MAX)
		plan->grants[plan->grant_count++] =
			(struct grant){.path = path, .fd = -1, .access = access, .optional = true};
	else
		plan->short_of = true;
}

const char *wall_program(struct arena *arena, const char *name)
{
	const char *dir = getenv("PATH"), *end;
	char path[4096];
	struct span kept;

	if (strchr(name, '/'))
		return access(name, X_OK) == 0 ? name : NULL;
	for (dir = dir && dir[0] ? dir : "/usr/local/bin:/usr/bin:/bin"; dir; dir = *end ? end + 1 : NULL) {
		end = strchrnul(dir, ':');
		int len = snprintf(path, sizeof path, "%.*s/%s", (int)(end - dir), dir, name);
		if (dir[0] == '/' && len < (int)sizeof path && access(path, X_OK) == 0)
			return arena_copy(arena, span_of(path), &kept) < 0 ? NULL : kept.data;
	}
	return NULL;
}

/* ---- what is granted ------------------------------------------------------------------------------------------------ */

/* What the kernel calls it. */
static const char *path_of(struct wall_plan *plan, int fd)
{
	char link[64], path[4096];
	ssize_t len;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof path);
	return len <= 0 || len == sizeof path ? NULL : plan_text(plan, "%.*s", (int)len, path);
}

/* Takes the descriptor. */
static int add_bind(struct wall_plan *plan, int taken, const char *inside, enum grant_access access)
{
	assert(taken >= 0);
	cleanup(close_at) int fd = taken;
	const char *source = path_of(plan, fd);

	if (!source)
		return -ENAMETOOLONG;
	if (plan->bind_count == REQUEST_GRANT_FDS_MAX)
		return -E2BIG;
	plan->binds[plan->bind_count++] =
		(struct plan_bind){inside ? inside : source, source, access, take_fd(fd)};
	return 0;
}

static int add_granted(struct wall_plan *plan, const struct process_spec *spec, const struct grant *grant,
	const struct place *ancestors, int ancestor_count)
{
	char inside[4096];

	/* A container has a system of its own: an optional grant, a path of this machine, is left out. */
	if (grant->optional && spec->wall->level == WALL_CONTAINER)
		return 0;
	cleanup(close_at) int fd = grant_open(grant);
	struct stat stat_;
	if (fd < 0)
		return grant_is_left_out(grant, fd) ? 0 : fd;
	if (fstat(fd, &stat_) < 0)
		return -errno;
	if (grant_opens(grant, fd, place_of(&stat_), spec->confine.keep_out, ancestors, ancestor_count))
		return -EXDEV;
	const char *path = grant->inside ? grant->inside : grant->path ? grant->path : path_of(plan, fd);
	int fault = path ? wall_name(spec->wall, path, inside, sizeof inside) : -ENAMETOOLONG;
	return fault ? fault : add_bind(plan, take_fd(fd), plan_text(plan, "%s", inside), grant->access);
}

/* The root of a container needs no mount, but the shim inside compares it, too, with what was opened. */
static int add_rootfs(
	struct wall_plan *plan, const struct wall *wall, const struct place *ancestors, int count)
{
	const struct grant rootfs = {.path = wall->rootfs ? wall->rootfs : "", .direct = true};
	cleanup(close_at) int fd = grant_open(&rootfs);

	if (fd < 0)
		return fd;
	if (ancestors_index(ancestors, count, fd) >= 0)
		return -EXDEV;
	plan->rootfs = path_of(plan, fd);
	int fault = plan->rootfs ? add_bind(plan, take_fd(fd), "/", GRANT_READ) : -ENAMETOOLONG;
	if (!fault)
		plan->binds[plan->bind_count - 1].source = NULL;
	return fault;
}

static bool is_ancestor(const char *path, const struct place *ancestors, int count)
{
	cleanup(close_at) int fd = open(path, O_PATH | O_CLOEXEC);

	return fd >= 0 && ancestors_index(ancestors, count, fd) >= 0;
}

static int check_system(const struct wall *wall, const struct place *ancestors, int count)
{
	if (wall->level == WALL_CONTAINER)
		return wall->rootfs && is_ancestor(wall->rootfs, ancestors, count) ? -EXDEV : 0;
	for (size_t i = 0; i < grants_system_count; i++)
		if (is_ancestor(grants_system[i].path, ancestors, count))
			return -EXDEV;
	return 0;
}

int wall_system_check(const struct wall *wall, const char *keep_out)
{
	struct place ancestors[ANCESTORS_MAX];
	int count = ancestors_find_path(keep_out, ancestors);

	return count < 0 ? count : check_system(wall, ancestors, count);
}

static int add_workdir(
	struct wall_plan *plan, const struct process_spec *spec, const struct place *ancestors, int count)
{
	enum grant_access access = spec->confine.workdir_read_only ? GRANT_READ : GRANT_WRITE;
	const char *path = path_of(plan, spec->workdir_fd);
	char inside[4096];

	if (ancestors_index(ancestors, count, spec->workdir_fd) >= 0)
		return -EXDEV;
	int fault = path ? wall_workdir_name(spec->wall, path, inside, sizeof inside) : -ENAMETOOLONG;
	if (fault)
		return fault;
	plan->workdir = plan_text(plan, "%s", inside);
	int fd = fcntl(spec->workdir_fd, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? -errno : add_bind(plan, fd, plan->workdir, access);
}

/* What lies beneath comes after what lies above, or it would be covered; of the same path the last stays on top, and
 * that is the work dir. */
static void sort_binds(struct wall_plan *plan)
{
	for (size_t i = 1; i < plan->bind_count; i++) {
		struct plan_bind bind = plan->binds[i];
		size_t at = i;

		for (; at > 0 && strlen(plan->binds[at - 1].path) > strlen(bind.path); at--)
			plan->binds[at] = plan->binds[at - 1];
		plan->binds[at] = bind;
	}
}

static int name_proxy(struct wall_plan *plan, const struct wall *wall)
{
	char inside[4096];

	plan->proxy = "";
	if (!wall->proxy)
		return 0;
	int fault = wall_name(wall, wall->proxy, inside, sizeof inside);
	plan->proxy = fault ? "" : plan_text(plan, "%s", inside);
	return fault;
}

static int collect(struct wall_plan *plan, const struct process_spec *spec)
{
	const struct confine *confine = &spec->confine;
	struct place ancestors[ANCESTORS_MAX];
	int count = ancestors_find_path(confine->keep_out, ancestors),
	    fault = count < 0 ? count : check_system(spec->wall, ancestors, count);

	if (!fault && spec->wall->level == WALL_CONTAINER)
		fault = add_rootfs(plan, spec->wall, ancestors, count);
	for (size_t i = 0; i < confine->grant_count && !fault; i++)
		fault = add_granted(plan, spec, &confine->grants[i], ancestors, count);
	if (!fault)
		fault = add_workdir(plan, spec, ancestors, count);
	if (!fault)
		fault = name_proxy(plan, spec->wall);
	sort_binds(plan);
	for (size_t i = 0; i < plan->bind_count; i++) {
		plan->bind_paths[i] = plan->binds[i].path;
		plan_grant(plan, plan->binds[i].path, plan->binds[i].access);
	}
	return fault;
}

/* ---- all of it ------------------------------------------------------------------------------------------------------ */

int wall_plan_make(struct wall_plan *plan, const char *shim, const struct process_spec *spec)
{
	int fault;

	*plan = (struct wall_plan){0};
	arena_init(&plan->arena, PLAN_BYTES_MAX);
	plan->argv = arena_alloc(&plan->arena, PLAN_ARGS_MAX * sizeof *plan->argv);
	fault = !plan->argv                    ? -ENOMEM
		: spec->wall->level == WALL_VM ? machine_plan(plan, shim, spec)
					       : collect(plan, spec);
	if (!fault && spec->wall->level == WALL_SANDBOX)
		fault = sandbox_plan(plan, shim, spec);
	if (!fault && spec->wall->level == WALL_CONTAINER)
		fault = container_plan(plan, shim, spec);
	if (!fault && plan->short_of)
		fault = -E2BIG;
	if (fault)
		wall_plan_done(plan);
	return fault;
}

void wall_plan_done(struct wall_plan *plan)
{
	for (size_t i = 0; i < plan->bind_count; i++)
		close(plan->binds[i].fd);
	plan->bind_count = 0;
	short_link_remove(plan->short_link);
	buf_done(&plan->input);
	arena_done(&plan->arena);
}

/* Both versions of cgroups are mounted: crun knows it by this directory, and by what is mounted there. */
static bool machine_is_hybrid(void)
{
	return access("/sys/fs/cgroup/unified/cgroup.procs", F_OK) == 0;
}

void wall_plan_ask(const struct wall_plan *plan, const struct process_spec *spec, struct request *request)
{
	bool container = spec->wall->level == WALL_CONTAINER;

	assert(plan->argc > 0); /* there is a program that makes the wall */
	assert(plan->workdir != NULL);
	assert(plan->bind_paths[plan->bind_count] == NULL);
	for (size_t i = 0; i < plan->bind_count; i++)
		assert(plan->bind_paths[i] == plan->binds[i].path); /* compared is what was opened for it */
	request->grants = plan->grants;
	request->grant_count = plan->grant_count;
	request->keep_out = "";
	request->wall = (struct request_wall){
		.argv = plan->argv,
		.env = plan->maker_env,
		.workdir = plan->workdir,
		.fixed = container ? "/sys/fs/cgroup" : "",
		.cover = container && machine_is_hybrid() ? "/sys/fs/cgroup/unified" : "",
		.proxy = plan->proxy,
		.own_user = container && (geteuid() != 0 || spec->drop_user),
		.loose = plan->loose,
		.binds = plan->bind_paths,
	};
}
