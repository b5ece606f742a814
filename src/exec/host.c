/*
 * Opening looks at the machine once. After that the host has one task of its own: when a shim dies before its tree (the
 * machine ran out of memory, or an old kernel let a child kill it), the tree becomes ours, because we are a subreaper
 * too. Every child of ours that is not a shim is such an orphan. Which process it belonged to is not known any
 * more, and does not matter: all orphans are killed, in rounds, and a lost process is gone when no orphan is left.
 */
#include "exec/host.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/complain.h"
#include "base/take.h"
#include "exec/parts.h"
#include "exec/tree/proc.h"
#include "exec/wall/syscalls.h"
#include "exec/tree/tree.h"

enum {
	SWEEP_EVERY_MS = 10,
	FILTER_BYTES_MAX = 65536,
	EVENTS_AT_ONCE = 64, /* of processes, in one iteration of the loop */
};

/* ---- opening ------------------------------------------------------------------------------------------------------ */

/* A descriptor that we open must never be taken for somebody's standard output. */
static int fill_stdio(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (fd < 0)
			return -errno;
	} while (fd <= 2);
	close(fd);
	return 0;
}

static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* Beside this program, or where it was installed. */
static int find_shim(const struct host_options *options, char *path, size_t room)
{
	ssize_t len;

	if (options->shim)
		return (size_t)snprintf(path, room, "%s", options->shim) < room ? 0 : -ENAMETOOLONG;
	len = readlink("/proc/self/exe", path, room - 1);
	if (len > 0) {
		path[len] = 0;
		char *slash = strrchr(path, '/');
		size_t left = room - (size_t)(slash + 1 - path);
		if ((size_t)snprintf(slash + 1, left, "stint-shim") < left && access(path, X_OK) == 0)
			return 0;
	}
	snprintf(path, room, "%s/stint-shim", STINT_LIBEXECDIR);
	return 0;
}

static int check_shim(const char *path, char *complaint)
{
	struct stat stat_;

	if (stat(path, &stat_) < 0)
		return complain(complaint, HOST_COMPLAINT_BYTES, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(stat_.st_mode) || access(path, X_OK) < 0)
		return complain(complaint, HOST_COMPLAINT_BYTES, -ENOENT, "%s is not a program", path);
	if (stat_.st_mode & S_IWOTH || (stat_.st_uid != 0 && stat_.st_uid != geteuid()))
		return complain(
			complaint, HOST_COMPLAINT_BYTES, -ENOENT, "%s can be changed by other users", path);
	return 0;
}

/* Does the kernel have what nothing can replace? */
static int check_kernel(const struct host *host, const struct host_options *options, char *complaint)
{
	int pidfd = pidfd_open_of(getpid());
	struct proc_stat stat;

	if (pidfd < 0 && pidfd != -EMFILE && pidfd != -ENFILE)
		return complain(complaint, HOST_COMPLAINT_BYTES, -EOPNOTSUPP,
			"this kernel has no pidfd: Linux 5.11 or later is needed");
	if (pidfd < 0)
		return complain(complaint, HOST_COMPLAINT_BYTES, pidfd, "%s", strerror(-pidfd));
	close(pidfd);
	if (proc_stat_read(getpid(), &stat) < 0)
		return complain(complaint, HOST_COMPLAINT_BYTES, -EOPNOTSUPP, "/proc is not mounted");
	if (host->landlock_abi == 0 && !options->landlock_optional)
		return complain(complaint, HOST_COMPLAINT_BYTES, -EOPNOTSUPP,
			"this kernel has no Landlock, or it is switched off (lsm=... at boot), so a child could read everything "
			"that we can; \"landlock\":\"optional\" runs without it");
	return 0;
}

/* Under root: the capabilities that neither a wall nor a program needs at any level are given up here, for us and
 * all that we start. The child gives up the others that a container does not have (shim/child.c). */
static void drop_useless_privileges(void)
{
	static const uint64_t useless = 1ull << CAP_LINUX_IMMUTABLE | 1ull << CAP_NET_BROADCAST |
		1ull << CAP_NET_RAW | 1ull << CAP_IPC_LOCK | 1ull << CAP_IPC_OWNER | 1ull << CAP_SYS_MODULE |
		1ull << CAP_SYS_RAWIO | 1ull << CAP_SYS_PACCT | 1ull << CAP_SYS_BOOT | 1ull << CAP_SYS_NICE |
		1ull << CAP_SYS_TIME | 1ull << CAP_SYS_TTY_CONFIG | 1ull << CAP_LEASE |
		1ull << CAP_AUDIT_CONTROL | 1ull << CAP_MAC_OVERRIDE | 1ull << CAP_MAC_ADMIN |
		1ull << CAP_SYSLOG | 1ull << CAP_WAKE_ALARM | 1ull << CAP_BLOCK_SUSPEND |
		1ull << CAP_AUDIT_READ | 1ull << CAP_PERFMON | 1ull << CAP_BPF |
		1ull << CAP_CHECKPOINT_RESTORE;
	struct proc_self self;

	proc_self_read(&self);
	if (proc_drop_bounding(&self, useless) < 0)
		return; /* then each child does it for itself */
}

static int prepare(struct host *host, const struct host_options *options, char *complaint)
{
	int fault = fill_stdio();

	if (fault)
		return complain(complaint, HOST_COMPLAINT_BYTES, fault, "/dev/null: %s", strerror(-fault));
	raise_descriptor_limit();
	signal(SIGPIPE, SIG_IGN);
	drop_useless_privileges();
	find_shim(options, host->shim, sizeof host->shim);
	host->landlock_abi = landlock_abi();
	fault = check_shim(host->shim, complaint);
	if (!fault)
		fault = check_kernel(host, options, complaint);
	if (fault)
		return fault;
	fault = syscalls_filter(false, &host->filter);
	if (!fault)
		fault = syscalls_filter(true, &host->filter_offline);
	if (fault)
		return complain(complaint, HOST_COMPLAINT_BYTES, fault, "seccomp: %s", strerror(-fault));
	if (boot_id_read(host->boot, sizeof host->boot) < 0)
		return complain(complaint, HOST_COMPLAINT_BYTES, -EOPNOTSUPP,
			"/proc/sys/kernel/random/boot_id cannot be read");
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return complain(complaint, HOST_COMPLAINT_BYTES, -errno, "subreaper: %s", strerror(errno));
	system_grants_open(&host->system);
	if (!options->cgroup_unwanted)
		cgroup_look(&host->place);
	cgroup_sweep_place(&host->place);
	return cgroup_open_bounds(&host->place, options->bounds, complaint, HOST_COMPLAINT_BYTES);
}

/* One of them may close another, or start a process: what is closed is passed over, and what is freed stays until the loop
 * closes its handles, after all of these. */
static void processes_ready(uv_poll_t *poll, int status, int events)
{
	struct host *host = poll->data;
	struct epoll_event ready[EVENTS_AT_ONCE];
	int count = epoll_wait(host->epoll, ready, EVENTS_AT_ONCE, 0);

	(void)status, (void)events;
	for (int i = 0; i < count; i++) {
		struct watch *watch = ready[i].data.ptr;
		assert(watch->process->host == host);
		if (watch->fd >= 0)
			watch->ready(watch);
	}
}

/* A descriptor costs libuv six calls, from its first to its last. An epoll of our own takes one, and the loop has one
 * descriptor to watch for all processes. */
static int open_epoll(struct host *host, uv_loop_t *loop)
{
	int fault;

	host->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (host->epoll < 0)
		return -errno;
	fault = uv_poll_init(loop, &host->watches, host->epoll);
	if (fault)
		return fault; /* libuv's faults are ours on Linux */
	host->watches.data = host;
	uv_poll_start(&host->watches, UV_READABLE, processes_ready);
	uv_unref((uv_handle_t *)&host->watches);
	return 0;
}

static void host_free(struct host *host)
{
	close_at(&host->epoll);
	system_grants_close(&host->system);
	buf_done(&host->filter);
	buf_done(&host->filter_offline);
	free(host);
}

int host_open(uv_loop_t *loop, const struct host_options *options, struct host **ret_host,
	char complaint[HOST_COMPLAINT_BYTES])
{
	struct host *host = calloc(1, sizeof *host);
	int fault;

	if (!host)
		return complain(complaint, HOST_COMPLAINT_BYTES, -ENOMEM, "%s", strerror(ENOMEM));
	host->epoll = -1;
	buf_init(&host->filter, FILTER_BYTES_MAX);
	buf_init(&host->filter_offline, FILTER_BYTES_MAX);
	fault = prepare(host, options, complaint);
	if (!fault && (fault = open_epoll(host, loop)) != 0)
		complain(complaint, HOST_COMPLAINT_BYTES, fault, "epoll: %s", strerror(-fault));
	if (fault) {
		host_free(host);
		return fault;
	}
	host->loop = loop;
	uv_timer_init(loop, &host->sweep);
	host->sweep.data = host;
	host->handles = 2;
	*ret_host = host;
	return 0;
}

static void free_closed(uv_handle_t *handle)
{
	struct host *host = handle->data;

	if (--host->handles == 0)
		host_free(host);
}

void host_close(struct host *host)
{
	if (!host)
		return;
	assert(host->count == 0);
	uv_close((uv_handle_t *)&host->watches, free_closed);
	uv_close((uv_handle_t *)&host->sweep, free_closed);
}

void host_describe(const struct host *host, struct host_facts *ret_facts)
{
	*ret_facts = (struct host_facts){host->landlock_abi, host->place.kind, host->count};
}

/* ---- what dead shims left ----------------------------------------------------------------------------------------- */

static bool is_shim(const struct host *host, pid_t pid)
{
	for (const struct process *process = host->first; process; process = process->next)
		if (process->shim == pid)
			return true;
	return false;
}

/* End one orphan and all beneath it, and take its status if it has ended. True if it was there. */
static bool end_orphan(pid_t pid)
{
	siginfo_t info = {0};

	assert(pid > 0);
	assert(pid != getpid());
	/* Ours until we wait for it: nobody else can have the number. */
	cleanup(close_at) int pidfd = pidfd_open_of(pid);
	if (pidfd < 0)
		return pidfd != -ESRCH;
	tree_signal(pid, SIGKILL);
	pidfd_signal(pidfd, SIGKILL);
	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG) == 0;
}

/* True when they are empty, and removed. */
static bool sweep_cgroups(const struct cgroup_leaves *leaves)
{
	bool empty = true;

	for (uint32_t i = 0; i < leaves->count; i++) {
		cleanup(close_at) int fd = open(leaves->paths[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0)
			cgroup_signal(fd, leaves->paths[i], SIGKILL);
		empty &= cgroup_remove(leaves->paths[i]) != -EBUSY;
	}
	return empty;
}

/* One round over all that dead shims left: true when nothing is left. */
static bool sweep_round(struct host *host)
{
	static pid_t children[TREE_PIDS_MAX];
	uint32_t count = tree_children(getpid(), children, TREE_PIDS_MAX);
	bool empty = true;

	for (struct process *process = host->first; process; process = process->next)
		if (process->state == PROCESS_LOST && !sweep_cgroups(&process->leaves))
			empty = false;
	for (uint32_t i = 0; i < count; i++)
		if (!is_shim(host, children[i]) && end_orphan(children[i]))
			empty = false;
	return empty;
}

static void sweep(uv_timer_t *timer)
{
	struct host *host = timer->data;
	struct process *process, *next;

	if (!sweep_round(host))
		return;
	uv_timer_stop(timer);
	for (process = host->first; process; process = next) {
		next = process->next;
		if (process->state == PROCESS_LOST)
			process_swept(process);
	}
}

void host_sweep_begin(struct host *host)
{
	uv_timer_start(&host->sweep, sweep, 0, SWEEP_EVERY_MS);
}
