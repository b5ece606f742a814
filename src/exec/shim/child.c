/*
 * In order, because each step needs what a later one takes away: the session, the cgroup, limits, descriptors and the
 * directory as we are; then privileges and the user; then no_new_privs, Landlock and seccomp, which cannot be undone;
 * then the program. A step that fails ends it: the status pipe says which and why.
 *
 * With a wall it stops half way: what makes the wall needs what a child gives up. The other half comes inside.
 */
#include "exec/shim/child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "exec/tree/cgroup.h"
#include "exec/request/search.h"
#include "exec/shim/landlock.h"

#define OOM_SCORE "200" /* rather a task than its supervisor, rather the supervisor than the machine */

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1u << 2)
#endif

static _Noreturn void fail(const struct child *child, enum start_step step, int error, const char *detail)
{
	struct status_message message = {.kind = STATUS_FAULT, .fault = {.step = step, .error = error}};

	snprintf(message.fault.detail, sizeof message.fault.detail, "%s", detail);
	/* Small enough for a pipe to take in one piece; nobody is left to tell if it does not. */
	if (write(child->status, &message, sizeof message) < 0)
		_exit(126);
	_exit(127);
}

static void step(const struct child *child, enum start_step step, bool done)
{
	if (!done)
		fail(child, step, errno, "");
}

/* RLIMIT_NPROC counts all processes and threads of a user, also those outside of the tree: with a small limit a
 * browser of the same user would keep every task from starting anything. So the limit counts from what the whole
 * machine runs now. */
static uint64_t tasks_now(void)
{
	unsigned long total = 0;
	char text[128];

	proc_text_read(AT_FDCWD, "/proc/loadavg", text, sizeof text);
	return sscanf(text, "%*s %*s %*s %*u/%lu", &total) == 1 ? total : 0;
}

static void limit(const struct child *child, int resource, uint64_t value)
{
	struct rlimit old, new = {value, value};

	if (value == LIMIT_UNCHANGED)
		return;
	if (prlimit(0, resource, &new, &old) < 0)
		step(child, START_LIMITS, getrlimit(resource, &old) == 0);
	else if (value <= old.rlim_max)
		return;
	new.rlim_cur = new.rlim_max = old.rlim_max; /* what we were given is less, and stays */
	step(child, START_LIMITS, setrlimit(resource, &new) == 0);
}

static void set_limits(const struct child *child)
{
	const struct limits *limits = &child->request->limits;

	if (limits->tasks != LIMIT_UNCHANGED)
		limit(child, RLIMIT_NPROC, tasks_now() + limits->tasks);
	limit(child, RLIMIT_NOFILE, limits->files);
	limit(child, RLIMIT_CORE, limits->core_bytes);
	limit(child, RLIMIT_FSIZE, limits->file_bytes);
}

/* Into a file of the kernel's. The descriptor is left to exec, which closes it. */
static bool put_text(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) >= 0;
}

/* The shim owns the tree also without cgroups. But a limit in a cgroup binds only what is in it: then it is a fault
 * not to get in. */
static void enter_cgroups(const struct child *child)
{
	for (uint32_t i = 0; i < child->cgroup_count; i++)
		if (!put_text(child->fds[REQUEST_FD_CGROUP + i], "cgroup.procs", "0") &&
			child->request->cgroups_needed)
			fail(child, START_LIMITS, errno, child->cgroups[i]);
}

/* 0 to 2 become the program's; exec closes all others, the status pipe too. */
static void set_descriptors(const struct child *child)
{
	for (int i = 0; i < 3; i++)
		step(child, START_STDIO, dup2(child->fds[REQUEST_FD_STDIN + i], i) == i);
	step(child, START_STDIO, syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC) == 0);
}

/* Also under root a child has only the capabilities that containers give: enough to install a package, not to look
 * into other processes or to change the machine. And no raw sockets: a container has a network of its own, while here
 * a child could listen to what others tell the server. What is not in the bounding set no exec brings back. */
static void drop_privileges(const struct child *child)
{
	static const uint64_t kept = 1ull << CAP_CHOWN | 1ull << CAP_DAC_OVERRIDE | 1ull << CAP_FOWNER |
		1ull << CAP_FSETID | 1ull << CAP_KILL | 1ull << CAP_SETGID | 1ull << CAP_SETUID |
		1ull << CAP_SETPCAP | 1ull << CAP_SETFCAP | 1ull << CAP_NET_BIND_SERVICE |
		1ull << CAP_AUDIT_WRITE;
	int fault = proc_drop_bounding(child->self, ~kept);

	if (fault)
		fail(child, START_PRIVILEGES, -fault, "");
	if (child->self->ambient)
		step(child, START_PRIVILEGES, prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0);
}

static void drop_user(const struct child *child)
{
	const struct request *request = child->request;

	if (!request->drop_user)
		return;
	step(child, START_USER, setgroups(0, NULL) == 0);
	step(child, START_USER, setresgid(request->gid, request->gid, request->gid) == 0);
	step(child, START_USER, setresuid(request->uid, request->uid, request->uid) == 0);
}

/* If the shim is killed, so are we. A change of user forgets this: it comes after. */
static void die_with_shim(const struct child *child)
{
	step(child, START_SESSION, prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0);
	if (getppid() != child->shim)
		_exit(127);
}

static void confine(const struct child *child)
{
	struct span filter = child->request->filter;
	struct sock_fprog program = {
		.len = (unsigned short)(filter.len / sizeof(struct sock_filter)),
		.filter = (struct sock_filter *)filter.data,
	};

	assert(filter.len > 0); /* nothing runs without a filter */
	assert(filter.len % sizeof(struct sock_filter) == 0);
	assert(child->ruleset >= 0 ||
		child->request->landlock_abi == 0); /* nor without Landlock, where there is one */
	step(child, START_SECCOMP, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	if (child->ruleset >= 0) {
		int fault = landlock_enforce(child->ruleset);
		if (fault)
			fail(child, START_LANDLOCK, -fault, "");
	}
	step(child, START_SECCOMP, syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
}

/* Returns only if it fails, with the reason. A script without a first line that names its interpreter is ENOEXEC: we do
 * not guess a shell, as execvp() would. */
static struct start_fault try_program(const struct request *request, const char *path)
{
	struct start_fault fault = {.step = START_EXEC};
	struct stat stat_;

	execve(path, (char *const *)request->argv, (char *const *)request->env);
	fault.error = errno;
	if (fault.error == ENOENT && access(path, F_OK) == 0)
		fault.step = START_INTERPRETER;
	if (fault.error == EACCES && stat(path, &stat_) == 0 && S_ISDIR(stat_.st_mode))
		fault.error = EISDIR;
	return fault;
}

/* A container has a system of its own: what its directories hold is known only in it. */
static struct start_fault search_inside(const struct request *request)
{
	struct start_fault fault = {.step = START_EXEC, .error = ENOENT};
	char program[SEARCH_PATH_BYTES];

	if (search_program(search_path_of(request->env), request->argv[0], program) == 0)
		fault = try_program(request, program);
	return fault;
}

/* ---- a wall ------------------------------------------------------------------------------------------------------- */

static void write_map(const struct child *child, const char *path, const char *text)
{
	if (!put_text(AT_FDCWD, path, text))
		fail(child, START_WALL, errno, path);
}

/* A user namespace with one user, who is root in it: only the root of a namespace may mount. */
static void become_own_root(const struct child *child)
{
	unsigned uid = geteuid(), gid = getegid();
	char text[40];

	prctl(PR_SET_DUMPABLE, 1, 0, 0,
		0); /* not dumpable, like the shim, its files in /proc would belong to root; after exec it is dumpable anyway */
	if (unshare(CLONE_NEWUSER) < 0)
		fail(child, START_WALL, errno, "user namespace");
	write_map(child, "/proc/self/setgroups", "deny");
	snprintf(text, sizeof text, "0 %u 1", gid);
	write_map(child, "/proc/self/gid_map", text);
	snprintf(text, sizeof text, "0 %u 1", uid);
	write_map(child, "/proc/self/uid_map", text);
}

/* Mounts of its own. The cgroups become read-only: a runtime would move the tree into cgroups of its own, where our
 * limits do not hold. crun does not run where it sees both versions of cgroups: an empty file system hides the second
 * one. */
static void arrange_mounts(const struct child *child, const struct request_wall *wall)
{
	struct {
		uint64_t set, clear, propagation, userns_fd;
	} read_only = {.set = 1}; /* struct mount_attr with MOUNT_ATTR_RDONLY */

	if (unshare(CLONE_NEWNS) < 0)
		fail(child, START_WALL, errno, "mount namespace");
	if (mount("none", "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		fail(child, START_WALL, errno, "/");
	if (wall->cover[0] &&
		mount("none", wall->cover, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, NULL) < 0)
		fail(child, START_WALL, errno, wall->cover);
	if (syscall(SYS_mount_setattr, AT_FDCWD, wall->fixed, AT_RECURSIVE, &read_only, sizeof read_only) <
			0 &&
		errno != EINVAL) /* it is not a mount: there are no cgroups */
		fail(child, START_WALL, errno, wall->fixed);
}

/* The request, the status pipe and what the binds name, at the numbers where inside.c looks for them: the next exec
 * leaves these open and no others. First each is copied to a high number, because the number that one needs may still
 * be another's. */
static void pass_descriptors(const struct child *child)
{
	const struct request_wall *wall = &child->request->wall;
	int high[2 + REQUEST_GRANT_FDS_MAX], count = 0;

	high[count++] = child->fds[REQUEST_FD_REQUEST];
	high[count++] = child->status;
	for (int i = 0; wall->binds[i]; i++)
		high[count++] = child->fds[REQUEST_FD_COUNT + i];
	for (int i = 0; i < count; i++) {
		high[i] = fcntl(high[i], F_DUPFD_CLOEXEC, INSIDE_REQUEST_FD + count);
		step(child, START_STDIO, high[i] >= 0);
	}
	for (int i = 0; i < count; i++)
		if (dup2(high[i], INSIDE_REQUEST_FD + i) < 0)
			_exit(127);
}

/* Requests to end are for the program inside: if TERM ended what makes the wall, the program would die with it,
 * without its grace. */
static void block_asking(void)
{
	static const int asking[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
	sigset_t mask;

	sigemptyset(&mask);
	for (size_t i = 0; i < sizeof asking / sizeof *asking; i++)
		sigaddset(&mask, asking[i]);
	sigprocmask(SIG_SETMASK, &mask, NULL);
}

static _Noreturn void enter_wall(struct child own)
{
	struct child *child = &own;
	const struct request *request = child->request;
	const char *env[2 + WALL_ENV_MAX + 1] = {request->env[0], WALL_PATH};

	for (size_t i = 0; i < WALL_ENV_MAX && request->wall.env[i]; i++)
		env[2 + i] = request->wall.env[i];
	drop_user(child);
	if (request->wall.own_user)
		become_own_root(child);
	if (request->wall.fixed[0])
		arrange_mounts(child, &request->wall);
	step(child, START_PRIVILEGES, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	die_with_shim(child);
	block_asking();
	pass_descriptors(child);
	child->status = INSIDE_STATUS_FD;
	execve(request->wall.argv[0], (char *const *)request->wall.argv, (char *const *)env);
	fail(child, START_WALL, errno, request->wall.argv[0]);
}

/* ---- in order ----------------------------------------------------------------------------------------------------- */

_Noreturn void child_confine(const struct child *child)
{
	const struct request *request = child->request;
	struct start_fault fault;
	sigset_t none;

	set_limits(child);
	drop_privileges(child);
	if (!request->wall.argv[0])
		drop_user(child);
	die_with_shim(child);
	confine(child);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (request->program[0])
		fault = try_program(request, request->program);
	else if (strchr(request->argv[0], '/'))
		fault = try_program(request, request->argv[0]);
	else
		fault = search_inside(request);
	fail(child, fault.step, fault.error, request->program[0] ? request->program : request->argv[0]);
}

_Noreturn void child_become(const struct child *child)
{
	const struct request *request = child->request;

	assert(child->status >
		2); /* what it says of its start reaches the shim, and never the program's own output */
	assert(child->cgroup_count <= CGROUP_LEAVES_MAX);
	step(child, START_SESSION, setsid() >= 0);
	enter_cgroups(child);
	(void)put_text(
		AT_FDCWD, "/proc/self/oom_score_adj", OOM_SCORE); /* if not: as likely a victim as before */
	step(child, START_WORKDIR, fchdir(child->fds[REQUEST_FD_WORKDIR]) == 0);
	set_descriptors(child);
	umask(request->umask);
	if (request->wall.argv[0])
		enter_wall(*child);
	child_confine(child);
}
