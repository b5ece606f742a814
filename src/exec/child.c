/*
 * In order, because each step needs what a later one takes away: the session, the cgroup, limits, descriptors and the
 * directory as we are; then privileges and the user; then no_new_privs, Landlock and seccomp, which cannot be undone;
 * then the program. A step that fails ends it: the status pipe says which and why.
 */
#include "exec/child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "exec/cgroup.h"
#include "exec/landlock.h"

enum { OOM_SCORE = 200 }; /* rather a task than its supervisor, rather the supervisor than the machine */

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1u << 2)
#endif

static _Noreturn void fail(const struct child *child, enum start_stage stage, int error, const char *detail)
{
	struct start_fault fault = {.stage = stage, .error = error};

	snprintf(fault.detail, sizeof fault.detail, "%s", detail);
	/* Small enough for a pipe to take in one piece; nobody is left to tell if it does not. */
	if (write(child->status, &fault, sizeof fault) < 0)
		_exit(126);
	_exit(127);
}

static void step(const struct child *child, enum start_stage stage, bool done)
{
	if (!done)
		fail(child, stage, errno, "");
}

/* All processes and threads of the machine now: what RLIMIT_NPROC counts is some of them. A limit of its own would
 * count the rest of the user's, and a browser's threads would keep every task from starting anything. */
static uint64_t tasks_now(void)
{
	int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	unsigned long total = 0;
	char text[128];
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

	if (fd >= 0)
		close(fd);
	text[got < 0 ? 0 : got] = 0;
	return sscanf(text, "%*s %*s %*s %*u/%lu", &total) == 1 ? total : 0;
}

static void limit(const struct child *child, int resource, uint64_t value)
{
	struct rlimit old, new;

	if (value == LIMIT_UNCHANGED)
		return;
	step(child, STAGE_LIMITS, getrlimit(resource, &old) == 0);
	new.rlim_max = value < old.rlim_max ? value : old.rlim_max;
	new.rlim_cur = new.rlim_max;
	step(child, STAGE_LIMITS, setrlimit(resource, &new) == 0);
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

/* The shim has the tree also without them; but limits that are in them hold nobody who is not. */
static void enter_cgroups(const struct child *child)
{
	for (uint32_t i = 0; i < child->cgroup_count; i++) {
		int fault = cgroup_enter(child->fds[REQUEST_FD_CGROUP + i]);
		if (fault && child->request->cgroups_needed)
			fail(child, STAGE_LIMITS, -fault, child->cgroups[i]);
	}
}

static void set_oom_score(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	char text[16];
	int len = snprintf(text, sizeof text, "%d", OOM_SCORE);

	if (fd < 0)
		return;
	if (write(fd, text, (size_t)len) < 0) {
		/* It is as likely a victim as before. */
	}
	close(fd);
}

/* 0 to 2 are the child's; all others end with exec, the status pipe too. */
static void set_descriptors(const struct child *child)
{
	for (int i = 0; i < 3; i++)
		step(child, STAGE_STDIO, dup2(child->fds[REQUEST_FD_STDIN + i], i) == i);
	step(child, STAGE_STDIO, syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC) == 0);
}

/* As root too a child has only what containers give: enough to install a package, not to look into other processes
 * or to change the machine. What is not in the bounding set no exec brings back. Without privileges there is nothing
 * to drop, and no right to drop it. */
static void drop_privileges(const struct child *child)
{
	static const uint64_t kept = 1ull << CAP_CHOWN | 1ull << CAP_DAC_OVERRIDE | 1ull << CAP_FOWNER |
		1ull << CAP_FSETID | 1ull << CAP_KILL | 1ull << CAP_SETGID | 1ull << CAP_SETUID |
		1ull << CAP_SETPCAP | 1ull << CAP_SETFCAP | 1ull << CAP_NET_BIND_SERVICE |
		1ull << CAP_NET_RAW | 1ull << CAP_AUDIT_WRITE;

	for (int i = 0; i < 64 && prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		if (!(kept >> i & 1) && prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0 && errno != EPERM)
			fail(child, STAGE_PRIVILEGES, errno, "");
	step(child, STAGE_PRIVILEGES, prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0);
}

static void drop_user(const struct child *child)
{
	const struct request *request = child->request;

	if (!request->drop_user)
		return;
	step(child, STAGE_USER, setgroups(0, NULL) == 0);
	step(child, STAGE_USER, setresgid(request->gid, request->gid, request->gid) == 0);
	step(child, STAGE_USER, setresuid(request->uid, request->uid, request->uid) == 0);
}

/* If the shim is killed, so are we. A change of user forgets this: it comes after. */
static void die_with_shim(const struct child *child)
{
	step(child, STAGE_SESSION, prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0);
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

	step(child, STAGE_SECCOMP, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	if (child->ruleset >= 0) {
		int fault = landlock_enforce(child->ruleset);
		if (fault)
			fail(child, STAGE_LANDLOCK, -fault, "");
	}
	step(child, STAGE_SECCOMP, syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
}

static const char *path_of(const char *const *env)
{
	for (; *env; env++)
		if (strncmp(*env, "PATH=", 5) == 0)
			return *env + 5;
	return "/usr/local/bin:/usr/bin:/bin";
}

/* Returns only if it fails, with the reason. A script without a first line that names its interpreter is ENOEXEC: we do
 * not guess a shell, as execvp() would. */
static struct start_fault try_program(const struct request *request, const char *path)
{
	struct start_fault fault = {.stage = STAGE_EXEC};
	struct stat stat_;

	execve(path, (char *const *)request->argv, (char *const *)request->env);
	fault.error = errno;
	if (fault.error == ENOENT && access(path, F_OK) == 0)
		fault.stage = STAGE_INTERPRETER;
	if (fault.error == EACCES && stat(path, &stat_) == 0 && S_ISDIR(stat_.st_mode))
		fault.error = EISDIR;
	return fault;
}

/* Is it worth to look in the next directory of PATH? One that may not be executed is remembered. */
static bool search_goes_on(struct start_fault fault)
{
	return fault.stage == STAGE_EXEC &&
		(fault.error == ENOENT || fault.error == ENOTDIR || fault.error == EACCES ||
			fault.error == EISDIR);
}

static struct start_fault search_program(const struct request *request)
{
	struct start_fault fault, worst = {.stage = STAGE_EXEC, .error = ENOENT};
	const char *dir = path_of(request->env), *end;
	char path[4096];

	for (; dir; dir = *end ? end + 1 : NULL) {
		end = strchrnul(dir, ':');
		int len = snprintf(path, sizeof path, "%.*s/%s", (int)(end - dir), dir, request->argv[0]);
		if (end == dir || len >= (int)sizeof path)
			continue; /* an empty one would be the work dir, which is not ours */
		fault = try_program(request, path);
		if (!search_goes_on(fault))
			return fault;
		if (fault.error == EACCES)
			worst = fault;
	}
	return worst;
}

_Noreturn void child_become(const struct child *child)
{
	const struct request *request = child->request;
	struct start_fault fault;
	sigset_t none;

	step(child, STAGE_SESSION, setsid() >= 0);
	enter_cgroups(child);
	set_oom_score();
	set_limits(child);
	step(child, STAGE_WORKDIR, fchdir(child->fds[REQUEST_FD_WORKDIR]) == 0);
	set_descriptors(child);
	umask(request->umask);
	drop_privileges(child);
	drop_user(child);
	die_with_shim(child);
	confine(child);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	fault = strchr(request->argv[0], '/') ? try_program(request, request->argv[0])
					      : search_program(request);
	fail(child, fault.stage, fault.error, request->argv[0]);
}
