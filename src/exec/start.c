/*
 * Starting: everything that can fail comes before the shim is asked, so that a fault leaves nothing behind. A shim that
 * was not asked yet ends when it sees our end of the socket close.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/take.h"
#include "exec/request/ancestors.h"
#include "exec/env.h"
#include "exec/parts.h"
#include "exec/tree/proc.h"
#include "exec/request/request.h"
#include "exec/request/search.h"
#include "exec/wall/plan.h"

enum {
	LINGER_DEFAULT_MS = 1000,
	OUTPUT_DEFAULT_BYTES = 1 << 20,
	SPAWN_STACK_BYTES = 16 << 10,
	NAMES_BYTES_MAX = 1 << 20,
};

/* What a start has open: start_done() closes what was not handed over. */
struct start {
	struct process *process;
	const struct process_spec *spec;
	struct buf bytes; /* of the request */
	int request;      /* a file with them; -1: they go in the packet */
	int shim_control;
	int child[3];                         /* stdin, stdout, stderr */
	struct grant workdir;                 /* held: check_workdir() has seen which directory it is */
	struct wall_plan *plan;               /* NULL: there is no wall */
	bool walled;                          /* there is one for the shim to make */
	struct arena names;                   /* of what lies around a hidden file */
	int grant_fds[REQUEST_GRANT_FDS_MAX]; /* not ours */
	size_t grant_fd_count;
};

static void start_done(struct start *start)
{
	buf_done(&start->bytes);
	arena_done(&start->names);
	close_at(&start->request);
	close_at(&start->shim_control);
	if (start->process)
		cgroup_leaves_close(&start->process->leaves);
	for (int i = 0; i < 3; i++)
		close_at(&start->child[i]);
	if (start->plan)
		wall_plan_done(start->plan);
	free(start->plan);
}

/* A machine (WALL_VM) is a program at level process: qemu, with a spec of its own. */
static int plan_wall(struct start *start)
{
	struct wall_plan *plan = calloc(1, sizeof *plan);
	int fault = plan ? wall_plan_make(plan, start->process->host->shim, start->spec) : -ENOMEM;

	if (fault)
		free(plan);
	else
		start->plan = plan;
	if (!fault) {
		memcpy(start->process->short_link, plan->short_link, sizeof plan->short_link);
		plan->short_link[0] = 0; /* it stays as long as the process does */
	}
	start->walled = !fault && start->spec->wall->level != WALL_VM;
	if (!fault && !start->walled) {
		start->spec = &plan->spec;
		start->workdir.held = false; /* it is another one */
	}
	return fault;
}

struct process_spec process_spec_default(void)
{
	return (struct process_spec){
		.workdir_fd = -1,
		.hold_fds = {-1, -1},
		.output_bytes_max = {OUTPUT_DEFAULT_BYTES, OUTPUT_DEFAULT_BYTES},
		.umask = 077,
		.linger_ms = LINGER_DEFAULT_MS,
		.confine = {.limits = limits_default()},
	};
}

static bool run_is_good(const char *run)
{
	size_t len = run ? strlen(run) : 0;

	return len > 0 && len <= PROCESS_RUN_BYTES_MAX && run[0] != '.' && run[0] != '-' &&
		strspn(run, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == len;
}

static int check_spec(const struct process_spec *spec)
{
	size_t args = 0;

	if (!run_is_good(spec->run) || !spec->argv || !spec->argv[0] || spec->workdir_fd < 0 ||
		!spec->events || !spec->events->gone)
		return -EINVAL;
	if (spec->drop_user && geteuid() != 0)
		return -EPERM;
	while (spec->argv[args])
		args++;
	if (args > PROCESS_ARGS_MAX || spec->input.len > PROCESS_INPUT_BYTES_MAX ||
		spec->confine.grant_count + grants_system_count + 1 > GRANTS_MAX)
		return -E2BIG;
	for (int i = 0; i < 2; i++)
		if (spec->output_bytes_max[i] == 0 || spec->output_bytes_max[i] > PROCESS_OUTPUT_BYTES_MAX)
			return -EINVAL;
	return 0;
}

/* Is the granted path one of these directories? 1 or 0; 0 also for a path that does not exist. A shortage is a
 * fault. */
static int grant_is_on_the_way(const struct grant *grant, const struct place *ancestors, int count)
{
	if (grant->held)
		return ancestors_index_of(ancestors, count, grant->place) >= 0;
	cleanup(close_at) int fd = grant_open(grant);
	if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM)
		return fd;
	return fd >= 0 && ancestors_index(ancestors, count, fd) >= 0;
}

/* A task chooses its work dir, and a root may lie above the state directory. A work dir in the state directory must
 * lie in something that this attempt was granted there: its own run dir, or its work tree. */
static int check_workdir(struct start *start)
{
	const struct confine *confine = &start->spec->confine;
	struct place ancestors[ANCESTORS_MAX], home;
	struct stat stat;
	int count, inside;

	if (!confine->keep_out)
		return 0;
	cleanup(close_at) int keep_out = open(confine->keep_out, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (keep_out < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(keep_out, &stat) < 0)
		return -errno;
	home = place_of(&stat);
	count = ancestors_until(start->spec->workdir_fd, &home, ancestors);
	if (count < 0)
		return count;
	start->workdir.held = start->workdir.is_directory = true;
	start->workdir.place = ancestors[0];
	inside = ancestors_index_of(ancestors, count, home);
	for (size_t i = 0; i < confine->grant_count && inside >= 0; i++) {
		int r = grant_is_on_the_way(&confine->grants[i], ancestors, inside);
		if (r != 0)
			return r < 0 ? r : 0;
	}
	return inside < 0 ? 0 : -EXDEV;
}

/* A pipe whose end on our side never makes us wait: 0 to read, 1 to write. The program's end is as programs expect it. */
static int open_pipe(int our_end, int *ret_ours, int *ret_childs)
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	*ret_ours = pair[our_end];
	*ret_childs = pair[!our_end];
	return fcntl(*ret_ours, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

/* A file in memory with these bytes, to be read from its beginning. Never -1. */
static int memory_file(const char *name, struct span bytes)
{
	cleanup(close_at) int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t done = 0;

	if (fd < 0)
		return -errno;
	while (done < bytes.len) {
		ssize_t put = pwrite(fd, bytes.data + done, bytes.len - done, (off_t)done);
		if (put < 0 && errno != EINTR)
			return -errno;
		done += put > 0 ? (size_t)put : 0;
	}
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return -errno;
	return take_fd(fd);
}

static int open_stdin(struct start *start)
{
	int *fd = &start->child[0];

	switch (start->spec->stdin_from) {
	case STDIN_NULL:
		*fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		return *fd < 0 ? -errno : 0;
	case STDIN_BYTES:
		*fd = memory_file("stint-input", start->spec->input);
		return *fd < 0 ? *fd : 0;
	case STDIN_PIPE:
		return open_pipe(1, &start->process->input.fd, fd);
	}
	return -EINVAL;
}

static int open_pipes(struct start *start)
{
	struct process *process = start->process;
	int fault = open_stdin(start), pair[2];

	for (int i = 0; i < 2 && !fault; i++)
		fault = open_pipe(0, &process->streams[i].watch.fd, &start->child[i + 1]);
	if (fault)
		return fault;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	process->control.fd = pair[0];
	start->shim_control = pair[1];
	return 0;
}

/* A descriptor of a grant goes with the request, and its number there is an index. */
static int list_grant(
	struct start *start, const struct grant *grant, struct grant *ret_grants, size_t *ret_count)
{
	struct grant *listed = &ret_grants[(*ret_count)++];

	if (*ret_count > GRANTS_MAX)
		return -E2BIG;
	*listed = *grant;
	if (!grant_has_fd(grant))
		return 0;
	if (start->grant_fd_count == REQUEST_GRANT_FDS_MAX)
		return -E2BIG;
	listed->fd = REQUEST_FD_COUNT + (int)start->grant_fd_count;
	start->grant_fds[start->grant_fd_count++] = grant->fd;
	return 0;
}

/* Landlock has grants only. So everything beside a hidden file is granted by itself: what lies in the directories between
 * the system's path and the file. Links are left out: where they lead is granted there, or not at all. */
static int list_around(struct start *start, const struct grant *grant, const char *hidden,
	struct grant *ret_grants, size_t *ret_count)
{
	const char *dir = grant->path;
	int fault = 0;

	while (!fault && strcmp(dir, hidden) != 0) {
		const char *next = hidden + strlen(dir) + 1;
		size_t len = strcspn(next, "/");
		struct dirent *entry;
		DIR *listing = opendir(dir);
		if (!listing)
			return errno == ENOENT || errno == EACCES ? 0 : -errno;
		while (!fault && (entry = readdir(listing))) {
			bool way = strncmp(entry->d_name, next, len) == 0 && entry->d_name[len] == 0;
			const char *path = arena_text(&start->names, "%s/%s", dir, entry->d_name);
			struct grant beside = {
				.path = path, .fd = -1, .access = grant->access, .optional = true};
			if (way || entry->d_type == DT_LNK || strcmp(entry->d_name, ".") == 0 ||
				strcmp(entry->d_name, "..") == 0)
				continue;
			fault = path[0] ? list_grant(start, &beside, ret_grants, ret_count) : -ENOMEM;
		}
		closedir(listing);
		dir = arena_text(&start->names, "%.*s", (int)(next + len - hidden), hidden);
		fault = fault ? fault : dir[0] ? 0 : -ENOMEM;
	}
	return fault;
}

/* check_spec() has made sure that they fit. */
static int list_grants(struct start *start, struct grant *ret_grants, size_t *ret_count)
{
	const struct confine *confine = &start->spec->confine;
	struct system_grants *system = &start->process->host->system;
	int fault = 0;

	*ret_count = 0;
	system_grants_look(system, monotonic_ms());
	for (size_t i = 0; i < system->count && !fault; i++)
		if (!system->there[i])
			continue;
		else if (confine->hidden && path_lies_in(confine->hidden, system->grants[i].path))
			fault = list_around(
				start, &system->grants[i], confine->hidden, ret_grants, ret_count);
		else
			fault = list_grant(start, &system->grants[i], ret_grants, ret_count);
	start->workdir.fd = REQUEST_FD_WORKDIR;
	start->workdir.access = confine->workdir_read_only ? GRANT_READ : GRANT_WRITE;
	ret_grants[(*ret_count)++] = start->workdir;
	for (size_t i = 0; i < confine->grant_count && !fault; i++)
		fault = list_grant(start, &confine->grants[i], ret_grants, ret_count);
	return fault;
}

/* "": it has a slash, or the system behind its wall is not ours: the child looks. */
static const char *find_program(
	const struct process_spec *spec, const char *const *env, char program[SEARCH_PATH_BYTES])
{
	if (spec->wall && spec->wall->level == WALL_CONTAINER)
		return "";
	if (spec->program)
		return spec->program;
	if (strchr(spec->argv[0], '/'))
		return "";
	return search_program(search_path_of(env), spec->argv[0], program) == 0 ? program : "";
}

static int write_request(struct start *start)
{
	const struct process_spec *spec = start->spec;
	struct process *process = start->process;
	struct grant grants[GRANTS_MAX];
	const char *env[PROCESS_ENV_MAX + 1];
	char marker[sizeof PROCESS_MARKER + 1 + PROCESS_RUN_BYTES_MAX + 1];
	struct request request = {
		.argv = spec->argv,
		.env = env,
		.umask = spec->umask,
		.linger_ms = spec->linger_ms,
		.drop_user = spec->drop_user,
		.uid = spec->uid,
		.gid = spec->gid,
		.limits = spec->confine.limits,
		.landlock_abi = process->host->landlock_abi,
		.grants = grants,
		.keep_out = spec->confine.keep_out ? spec->confine.keep_out : "",
		.cgroups_needed = process->leaves.bounded,
		.budget_later = spec->budget_later,
		.finishes = spec->finishes,
		.lease = spec->lease,
		.filter = buf_span(start->walled && !spec->wall->network ? &process->host->filter_offline
									 : &process->host->filter),
	};
	char program[SEARCH_PATH_BYTES];
	int fault;

	assert(request.filter.len > 0); /* nothing is started without a seccomp filter */
	snprintf(marker, sizeof marker, PROCESS_MARKER "=%s", spec->run);
	fault = env_build(spec, marker, env, sizeof env / sizeof *env);
	if (process->leaves.counts_tasks)
		request.limits.tasks = LIMIT_UNCHANGED;
	if (!fault)
		request.program = find_program(spec, env, program);
	if (!fault && !start->walled)
		fault = list_grants(start, grants, &request.grant_count);
	if (start->walled)
		wall_plan_ask(start->plan, spec, &request);
	if (!fault)
		fault = request_encode(&request, &start->bytes);
	if (fault || (!start->walled && start->bytes.len <= REQUEST_PACKET_BYTES))
		return fault;
	start->request = memory_file("stint-request", buf_span(&start->bytes));
	return start->request < 0 ? start->request : 0;
}

/* Until it has become the shim the new process shares our memory, and we do not run. */
struct newborn {
	const char *path;
	char **argv;
	int control;
	int error; /* 0 unless it could not become the shim */
};

__attribute__((no_sanitize("address"))) static int become_shim(void *context)
{
	static char *env[] = {NULL};
	struct newborn *newborn = context;

	if (setsid() >= 0 && dup2(newborn->control, SHIM_CONTROL_FD) == SHIM_CONTROL_FD)
		execve(newborn->path, newborn->argv, env);
	newborn->error = errno;
	_exit(127);
}

/* The shim begins in a session of its own, with its end of the socket alone, and with all signals blocked: a
 * handler of ours must not run in a process that shares our memory, and exec drops the handlers. posix_spawn() would
 * reset each signal instead, which takes 120 system calls more. */
static int spawn_shim(struct start *start)
{
	static char stack[SPAWN_STACK_BYTES] __attribute__((aligned(16)));
	struct process *process = start->process;
	char *argv[CGROUP_LEAVES_MAX + 3] = {"stint-shim", process->run};
	struct newborn newborn = {.path = process->host->shim, .argv = argv, .control = start->shim_control};
	sigset_t all, old;
	int status, pidfd = -1, fault = 0;

	assert(start->shim_control >= 0);
	assert(process->pidfd.fd < 0);
	assert(process->shim == 0);
	for (uint32_t i = 0; i < process->leaves.count; i++)
		argv[2 + i] = process->leaves.paths[i];
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	pid_t pid = clone(become_shim, stack + sizeof stack, CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD,
		&newborn, &pidfd);
	if (pid < 0)
		fault = -errno;
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (fault)
		return fault;
	process->pidfd.fd = pidfd; /* our child, and not waited for: the number is nobody else's */
	if (newborn.error == 0) {
		process->shim = pid;
		return 0;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return -newborn.error;
}

static int send_request(const struct start *start)
{
	const struct process_spec *spec = start->spec;
	const struct process *process = start->process;
	int fds[REQUEST_FDS_MAX] = {
		[REQUEST_FD_REQUEST] = start->request >= 0 ? start->request : spec->workdir_fd,
		[REQUEST_FD_STDIN] = start->child[0],
		[REQUEST_FD_STDOUT] = start->child[1],
		[REQUEST_FD_STDERR] = start->child[2],
		[REQUEST_FD_WORKDIR] = spec->workdir_fd,
	};
	size_t count = REQUEST_FD_COUNT;
	char room[CMSG_SPACE(sizeof fds)] __attribute__((aligned(8))) = {0};
	struct iovec iov = start->request >= 0 ? (struct iovec){"R", 1}
					       : (struct iovec){start->bytes.data, start->bytes.len};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = room};
	struct cmsghdr *rights;

	for (int i = 0; i < PROCESS_HOLDS; i++)
		fds[REQUEST_FD_HOLD + i] = spec->hold_fds[i] >= 0 ? spec->hold_fds[i] : spec->workdir_fd;
	for (uint32_t i = 0; i < CGROUP_LEAVES_MAX; i++)
		fds[REQUEST_FD_CGROUP + i] =
			i < process->leaves.count ? process->leaves.fds[i] : spec->workdir_fd;
	for (size_t i = 0; i < start->grant_fd_count; i++)
		fds[count++] = start->grant_fds[i];
	for (size_t i = 0; start->walled && i < start->plan->bind_count; i++)
		fds[count++] = start->plan->binds[i].fd;
	assert(count <= REQUEST_FDS_MAX);
	for (size_t i = 0; i < count; i++)
		assert(fds[i] >= 0); /* or the shim would get another one in its place */
	message.msg_controllen = CMSG_SPACE(count * sizeof *fds);
	rights = CMSG_FIRSTHDR(&message);
	*rights = (struct cmsghdr){
		.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(count * sizeof *fds)};
	memcpy(CMSG_DATA(rights), fds, count * sizeof *fds);
	if (sendmsg(process->control.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
		return 0;
	/* Descriptors that all processes of this user have on their way count against the limit too. */
	return errno == ETOOMANYREFS ? -EMFILE : -errno;
}

static int start_shim(struct start *start)
{
	struct process *process = start->process;
	struct proc_stat stat = {0};
	int fault = spawn_shim(start);

	if (fault)
		return fault;
	proc_stat_read(process->shim, &stat);
	process->shim_start = stat.start;
	fault = process_attach(process);
	return fault ? fault : send_request(start);
}

/* A shim that was never asked ends by itself when the socket closes. */
static void abandon(struct start *start)
{
	pid_t shim = start->process->shim;
	int status;

	assert(start->process->state == PROCESS_SPAWNED); /* nothing of the program has run */
	start->process->shim = 0;                         /* waited for below */
	cgroup_leaves_remove(&start->process->leaves);
	cgroup_leaves_close(&start->process->leaves);
	close_at(&start->shim_control);
	start->shim_control = -1;
	process_discard(take(start->process));
	while (shim && waitpid(shim, &status, 0) < 0 && errno == EINTR)
		;
}

int process_start(struct host *host, const struct process_spec *spec, struct process **ret_process)
{
	cleanup(start_done) struct start start = {
		.spec = spec, .request = -1, .shim_control = -1, .child = {-1, -1, -1}};
	int fault = check_spec(spec);

	buf_init(&start.bytes, REQUEST_BYTES_MAX);
	arena_init(&start.names, NAMES_BYTES_MAX);
	if (!fault)
		fault = check_workdir(&start);
	if (fault)
		return fault;
	if (host->count >= HOST_PROCESSES_MAX)
		return -EBUSY;
	start.process = process_new(host, spec);
	if (!start.process)
		return -ENOMEM;
	if (spec->wall && spec->wall->level != WALL_PROCESS)
		fault = plan_wall(&start);
	if (!fault)
		fault = open_pipes(&start);
	if (!fault)
		fault = cgroup_make_leaves(
			&host->place, spec->run, &spec->confine.limits, &start.process->leaves);
	if (!fault)
		fault = write_request(&start);
	if (!fault)
		fault = start_shim(&start);
	if (fault) {
		abandon(&start);
		return fault;
	}
	process_enlist(start.process);
	*ret_process = start.process;
	return 0;
}

static const char *const stage_texts[] = {
	[START_NONE] = "started",
	[START_SHIM] = "the shim did not start",
	[START_REQUEST] = "the shim is of another version",
	[START_FORK] = "no process could be made",
	[START_SESSION] = "cannot make a session",
	[START_STDIO] = "cannot set up input and output",
	[START_LIMITS] = "cannot set the limits",
	[START_WORKDIR] = "cannot enter the work dir",
	[START_PRIVILEGES] = "cannot give up privileges",
	[START_USER] = "cannot change the user",
	[START_LANDLOCK] = "cannot confine it by Landlock",
	[START_SECCOMP] = "cannot confine it by seccomp",
	[START_EXEC] = "cannot execute",
	[START_INTERPRETER] = "the interpreter is missing of",
	[START_WALL] = "the isolation could not be set up",
};

void start_fault_text(const struct start_fault *fault, char *text, size_t room)
{
	const char *reason = strerror(fault->error);
	/* a word from behind a wall may be anybody's */
	const char *step = (unsigned)fault->step <= START_WALL ? stage_texts[fault->step] : "failed";

	if (fault->step == START_LANDLOCK && fault->error == EXDEV)
		reason = "it would open the state directory";
	else if (fault->step == START_LANDLOCK && fault->error == ELOOP)
		reason =
			"a symbolic link appeared on its path after the worker was started; restart the worker if the link is meant";

	if (fault->step == START_LANDLOCK && fault->error == ENOENT && fault->detail[0])
		snprintf(text, room, "its executor grants %s, which does not exist any more", fault->detail);
	else if (fault->step == START_WALL && fault->error == 0)
		snprintf(text, room, "%s: %s", step, fault->detail);
	else if (fault->step == START_WALL && fault->error == ESTALE)
		snprintf(text, room, "%s: '%s' is not what it was a moment ago", step, fault->detail);
	else if (fault->detail[0])
		snprintf(text, room, "%s '%s': %s", step, fault->detail, reason);
	else
		snprintf(text, room, "%s: %s", step, reason);
}
