#include "exec/shim/inside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/take.h"
#include "exec/shim/child.h"
#include "exec/shim/landlock.h"
#include "exec/shim/loopback.h"
#include "exec/request/request.h"

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1u << 2)
#endif

enum { EXIT_BROKEN = 125 };

static void say(const struct status_message *message)
{
	if (write(INSIDE_STATUS_FD, message, sizeof *message) < 0)
		return; /* the shim outside is gone, and its death ends us, too */
}

static _Noreturn void refuse(enum start_step step, int error, const char *detail)
{
	struct status_message message = {.kind = STATUS_FAULT, .fault = {.step = step, .error = error}};

	snprintf(message.fault.detail, sizeof message.fault.detail, "%s", detail);
	say(&message);
	_exit(EXIT_BROKEN);
}

static void read_request(struct request *ret_request)
{
	struct stat stat;
	void *bytes;

	if (fstat(INSIDE_REQUEST_FD, &stat) < 0 || stat.st_size <= 0)
		_exit(EXIT_BROKEN); /* started by hand, not by a wall */
	bytes = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, INSIDE_REQUEST_FD, 0);
	if (bytes == MAP_FAILED ||
		request_decode((struct span){bytes, (size_t)stat.st_size}, ret_request) < 0)
		refuse(START_REQUEST, EPROTO, "");
}

/* Is this path what was opened outside? exec closes the descriptor. */
static void check_bind(const char *path, int fd)
{
	struct stat meant, found;

	if (fstat(fd, &meant) < 0 || stat(path, &found) < 0)
		refuse(START_WALL, errno, path);
	if (meant.st_dev != found.st_dev || meant.st_ino != found.st_ino)
		refuse(START_WALL, ESTALE, path);
}

static int make_ruleset(const struct request *request)
{
	const struct grant *culprit;
	int ruleset;

	if (request->landlock_abi == 0)
		return -1;
	ruleset =
		landlock_ruleset(request->landlock_abi, request->grants, request->grant_count, "", &culprit);
	if (ruleset < 0)
		refuse(START_LANDLOCK, -ruleset, culprit && culprit->path ? culprit->path : "");
	return ruleset;
}

/* What the child has to say before it is the program: its fault, or nothing. */
static void pass_on(int status)
{
	struct status_message message = {0};
	ssize_t got;

	do
		got = read(status, &message, sizeof message);
	while (got < 0 && errno == EINTR);
	close(status);
	if (got == sizeof message) {
		say(&message);
		_exit(EXIT_BROKEN);
	}
	say(&(struct status_message){.kind = STATUS_STARTED});
}

static pid_t start(const struct request *request, const struct proc_self *self)
{
	struct child child = {.request = request, .self = self, .shim = getpid()};
	int status[2], listener = -1, r;
	pid_t pid;

	child.ruleset = make_ruleset(request);
	if (request->wall.proxy[0]) { /* before the program can look for it */
		listener = loopback_listen();
		if (listener < 0)
			refuse(START_WALL, -listener, "the proxy for its network");
	}
	if (pipe2(status, O_CLOEXEC) < 0)
		refuse(START_STDIO, errno, "");
	child.status = status[1];
	pid = fork();
	if (pid < 0)
		refuse(START_FORK, errno, "");
	if (pid == 0) {
		if (setsid() < 0)
			_exit(EXIT_BROKEN);
		child_confine(&child);
	}
	/* Input and output are the program's alone, so that their ends are seen. Only the two status pipes stay
	 * open. */
	syscall(SYS_close_range, 0, INSIDE_REQUEST_FD, 0);
	if (listener >= 0) {
		syscall(SYS_close_range, INSIDE_BIND_FD, listener - 1, 0);
		syscall(SYS_close_range, listener + 1, status[0] - 1, 0);
	} else {
		syscall(SYS_close_range, INSIDE_BIND_FD, status[0] - 1, 0);
	}
	syscall(SYS_close_range, status[0] + 1, ~0u, 0);
	r = listener >= 0 ? loopback_serve(listener, request->wall.proxy) : 0;
	if (r < 0)
		refuse(START_WALL, -r, "the proxy for its network");
	pass_on(status[0]);
	return pid;
}

/* How many processes are left besides us; without /proc at least one is known. */
static uint32_t count_others(void)
{
	DIR *dir = opendir("/proc");
	uint32_t count = 0;
	struct dirent *entry;

	if (!dir)
		return 1;
	while ((entry = readdir(dir)))
		count += entry->d_name[0] >= '1' && entry->d_name[0] <= '9';
	closedir(dir);
	return count > 1 ? count - 1 : 1;
}

static void tell_end(const siginfo_t *info)
{
	struct status_message message = {.kind = STATUS_ENDED};
	siginfo_t other = {0};
	bool left;

	message.status = info->si_code == CLD_EXITED ? info->si_status : 0;
	message.signal = info->si_code == CLD_EXITED ? 0 : info->si_status;
	message.core_dumped = info->si_code == CLD_DUMPED;
	do {
		other.si_pid = 0;
		left = waitid(P_ALL, 0, &other, WEXITED | WNOHANG) == 0;
	} while (left && other.si_pid != 0);
	message.strays = left ? count_others() : 0;
	say(&message);
}

int inside_main(void)
{
	static struct request request;
	struct proc_self self;
	siginfo_t info = {0};
	sigset_t all;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	read_request(&request);
	if (syscall(SYS_close_range, INSIDE_REQUEST_FD, ~0u, CLOSE_RANGE_CLOEXEC) < 0 ||
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		refuse(START_SESSION, errno, "");
	for (int i = 0; request.wall.binds[i]; i++)
		check_bind(request.wall.binds[i], INSIDE_BIND_FD + i);
	if (chdir(request.wall.workdir) < 0)
		refuse(START_WORKDIR, errno, request.wall.workdir);
	umask(request.umask);
	proc_self_read(&self);
	proc_heed_signals(&self);
	pid = start(&request, &self);
	/* It stays until no process is left: when the first process of a namespace ends, the kernel kills the
	 * others at once. */
	while (waitid(P_ALL, 0, &info, WEXITED) == 0 || errno == EINTR) {
		if (info.si_pid == pid)
			tell_end(&info);
		info.si_pid = 0;
	}
	return 0;
}
