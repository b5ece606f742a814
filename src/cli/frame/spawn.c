#include "cli/frame/spawn.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/service.h"

enum {
	LOOK_MS = 5,
	NOTICE_MS = 2000,
};

/* In the child. The parent may have died before prctl() was called: then no signal would come when it dies. */
static void be_child(pid_t parent)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
}

static pid_t start(
	const char *const *argv, const char *without, int log_fd, const struct spawn_service *service)
{
	pid_t parent = getpid(), pid = fork();

	if (pid != 0)
		return pid > 0 ? pid : -errno;
	be_child(parent);
	if (log_fd >= 0) {
		dup2(log_fd, STDOUT_FILENO);
		dup2(log_fd, STDERR_FILENO);
	}
	if (without)
		unsetenv(without);
	if (service) {
		setenv("NOTIFY_SOCKET", service->notify, 1);
		service_hand_on(service->sockets, service->socket_count);
	}
	execvp(argv[0], (char *const *)argv);
	fprintf(stderr, "stint: cannot run %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

pid_t spawn_start(const char *const *argv, const char *without, int log_fd)
{
	return start(argv, without, log_fd, NULL);
}

pid_t spawn_start_service(const char *const *argv, int log_fd, const struct spawn_service *service)
{
	return start(argv, NULL, log_fd, service);
}

/* A byte says that the child is ready; without one it has ended. */
static int wait_ready(pid_t pid, int fd)
{
	char byte;
	ssize_t got;

	while ((got = read(fd, &byte, 1)) < 0 && errno == EINTR)
		;
	close(fd);
	if (got == 1)
		return 0;
	int status = spawn_wait(pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int spawn_detach(bool *ret_is_child, int *ret_ready_fd)
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	pid_t pid = fork();
	if (pid < 0) {
		int r = -errno;
		close(pair[0]);
		close(pair[1]);
		return r;
	}
	*ret_is_child = pid == 0;
	close(pair[pid == 0 ? 0 : 1]);
	if (pid > 0)
		return wait_ready(pid, pair[0]);
	setsid();
	int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (nothing >= 0)
		dup2(nothing, STDIN_FILENO);
	*ret_ready_fd = pair[1];
	return 0;
}

void spawn_tell_ready(int ready_fd, int log_fd)
{
	dup2(log_fd, STDOUT_FILENO);
	dup2(log_fd, STDERR_FILENO);
	while (write(ready_fd, "", 1) < 0 && errno == EINTR)
		;
	close(ready_fd);
}

bool spawn_has_ended(pid_t pid, int *ret_status)
{
	return waitpid(pid, ret_status, WNOHANG) == pid;
}

int spawn_wait(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

void spawn_signal(pid_t pid, int number)
{
	assert(pid > 0); /* 0 and less are groups, our own among them */
	kill(pid, number);
}

int spawn_open(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}

int spawn_signal_open(int pid_fd, int number)
{
	return syscall(SYS_pidfd_send_signal, pid_fd, number, NULL, 0) < 0 ? -errno : 0;
}

void spawn_end(pid_t pid, int patience_ms)
{
	int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + patience_ms;
	int status;

	spawn_signal(pid, SIGTERM);
	spawn_signal(pid, SIGTERM);
	while (!spawn_has_ended(pid, &status)) {
		if (clock_ms(CLOCK_MONOTONIC) > until_ms)
			spawn_signal(pid, SIGKILL);
		poll(NULL, 0, LOOK_MS);
	}
}

static int run_and_read(const char *const *argv, struct buf *said, bool is_silent)
{
	posix_spawn_file_actions_t actions;
	int pair[2];
	char block[4096];
	ssize_t got;
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -1;
	posix_spawn_file_actions_init(&actions);
	int error = posix_spawn_file_actions_adddup2(&actions, pair[1], STDOUT_FILENO);
	if (error == 0 && is_silent)
		error = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	if (error == 0)
		error = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(pair[1]);
	while (error == 0 && ((got = read(pair[0], block, sizeof block)) > 0 || (got < 0 && errno == EINTR)))
		if (got > 0 && buf_put(said, block, (size_t)got) < 0)
			break;
	close(pair[0]);
	if (error != 0)
		return -1;
	int status = spawn_wait(pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int spawn_and_read(const char *const *argv, struct buf *said)
{
	return run_and_read(argv, said, true);
}

int spawn_and_hear(const char *const *argv, struct buf *said)
{
	return run_and_read(argv, said, false);
}

/* 127 is what a shell says of a program that there is not: then nothing was shown. */
int spawn_pager(struct span text)
{
	const char *pager = getenv("PAGER");
	const char *argv[] = {"/bin/sh", "-c", pager ? pager : "exec less -FRX", NULL};
	struct sigaction ignored = {.sa_handler = SIG_IGN}, before_int, before_pipe;
	posix_spawn_file_actions_t actions;
	int pair[2], status = 0;
	pid_t pid;

	if (pager && (!pager[strspn(pager, " ")] || strcmp(pager, "cat") == 0))
		return -ENOENT;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	posix_spawn_file_actions_init(&actions);
	int error = posix_spawn_file_actions_adddup2(&actions, pair[0], STDIN_FILENO);
	if (error == 0)
		error = posix_spawn(&pid, argv[0], &actions, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(pair[0]);
	if (error == 0) {
		sigaction(SIGINT, &ignored, &before_int); /* Ctrl-C is the pager's */
		sigaction(SIGPIPE, &ignored, &before_pipe);
		int wrote = file_write_all(pair[1], text);
		(void)wrote; /* a reader that has seen enough closes its end: no error */
	}
	close(pair[1]);
	if (error != 0)
		return -error;
	status = spawn_wait(pid);
	sigaction(SIGINT, &before_int, NULL);
	sigaction(SIGPIPE, &before_pipe, NULL);
	return WIFEXITED(status) && WEXITSTATUS(status) == 127 ? -ENOENT : 0;
}

void spawn_notice(const char *title, const char *text)
{
	const char *const argv[] = {"notify-send", "--app-name=stint", "--", title, text, NULL};
	int status, null = -1;

	if (getenv("DISPLAY") || getenv("WAYLAND_DISPLAY"))
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return;
	pid_t pid = spawn_start(argv, NULL, null);
	close(null);
	int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + NOTICE_MS;
	while (pid > 0 && !spawn_has_ended(pid, &status)) {
		if (clock_ms(CLOCK_MONOTONIC) >= until_ms) {
			spawn_end(pid, 0);
			return;
		}
		poll(NULL, 0, LOOK_MS);
	}
}

int spawn_become(const char *const *argv)
{
	execvp(argv[0], (char *const *)argv);
	return -errno;
}
