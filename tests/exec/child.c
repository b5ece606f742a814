/*
 * What the tests run: child MODE [ARGUMENT...]. Each mode misbehaves in one way. Everything is bounded: whatever does
 * not end by itself ends after fifteen minutes: later than anybody waits for its end (WORLD_PATIENCE_MS).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { LONGEST_S = 900 };

static int mode_exit(char **args)
{
	return atoi(args[0]);
}

static int mode_signal(char **args)
{
	raise(atoi(args[0]));
	return 0;
}

static int mode_crash(char **args)
{
	static int *volatile nowhere = NULL;

	(void)args;
	*nowhere = 1;
	return 0;
}

static void say(const char *text)
{
	printf("%s\n", text);
	fflush(stdout);
}

static void hang(void)
{
	for (int i = 0; i < LONGEST_S; i++)
		poll(NULL, 0, 1000);
}

static int mode_hang(char **args)
{
	(void)args;
	say("ready");
	hang();
	return 0;
}

/* Says nothing, so that a reader who has gone does not end it. */
static int mode_silent(char **args)
{
	(void)args;
	hang();
	return 0;
}

/* Deaf to all that can be ignored. */
static int mode_deaf(char **args)
{
	(void)args;
	for (int i = 1; i < 65; i++)
		signal(i, SIG_IGN);
	say("ready");
	hang();
	return 0;
}

static void on_term(int signal)
{
	(void)signal;
	_exit(41);
}

/* Ends with 41 at TERM. */
/* Goes on when nobody reads it any more, and takes its time. */
static int mode_late(char **args)
{
	(void)args;
	say("ready");
	poll(&(struct pollfd){.fd = 1}, 1, LONGEST_S * 1000);
	poll(NULL, 0, 300);
	return open("finished", O_WRONLY | O_CREAT, 0600) < 0;
}

static int mode_polite(char **args)
{
	(void)args;
	signal(SIGTERM, on_term);
	say("ready");
	hang();
	return 0;
}

/* Stops itself: TERM alone would never be seen. */
static int mode_stopped(char **args)
{
	(void)args;
	signal(SIGTERM, on_term);
	say("ready");
	raise(SIGSTOP);
	hang();
	return 0;
}

static int mode_env(char **args)
{
	(void)args;
	for (char **entry = environ; *entry; entry++)
		printf("%s\n", *entry);
	return 0;
}

static int mode_descriptors(char **args)
{
	(void)args;
	for (int fd = 0; fd < 4096; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			printf("%d ", fd);
	printf("\n");
	return 0;
}

/* What a program inherits besides. */
static int mode_state(char **args)
{
	sigset_t mask;
	int blocked = 0, ignored = 0;

	(void)args;
	sigprocmask(SIG_SETMASK, NULL, &mask);
	for (int i = 1; i < 65; i++) {
		struct sigaction action;
		blocked += sigismember(&mask, i) == 1;
		ignored += sigaction(i, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
	}
	mode_t mode = umask(0);
	char cwd[512];
	printf("blocked=%d ignored=%d umask=%03o leader=%d nnp=%d cwd=%s\n", blocked, ignored, (unsigned)mode,
		getsid(0) == getpid(), prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), getcwd(cwd, sizeof cwd));
	return 0;
}

static int mode_limits(char **args)
{
	struct rlimit limit;

	(void)args;
	getrlimit(RLIMIT_NOFILE, &limit);
	printf("files=%lu ", (unsigned long)limit.rlim_cur);
	getrlimit(RLIMIT_CORE, &limit);
	printf("core=%lu ", (unsigned long)limit.rlim_cur);
	getrlimit(RLIMIT_FSIZE, &limit);
	printf("file=%lu\n", (unsigned long)limit.rlim_cur);
	return 0;
}

static int mode_copy(char **args)
{
	char bytes[65536];
	ssize_t got;

	(void)args;
	while ((got = read(0, bytes, sizeof bytes)) > 0)
		if (write(1, bytes, (size_t)got) != got)
			return 1;
	return got < 0;
}

/* So many bytes as fast as they are taken: a counter in lines of 16. */
static int mode_flood(char **args)
{
	unsigned long total = strtoul(args[0], NULL, 10);
	static char block[65536 + 1];

	for (unsigned long done = 0; done < total;) {
		for (size_t at = 0; at < sizeof block - 1; at += 16)
			snprintf(block + at, 17, "%015lu", done + at), block[at + 15] = '\n';
		size_t most = total - done < sizeof block - 1 ? total - done : sizeof block - 1;
		ssize_t put = write(1, block, most);
		if (put < 0)
			return 1;
		done += (unsigned long)put;
	}
	return 0;
}

static int mode_closed(char **args)
{
	(void)args;
	close(0);
	close(1);
	close(2);
	return 7;
}

/* Says no more, and stays. */
static int mode_mute(char **args)
{
	(void)args;
	if (write(STDOUT_FILENO, "last", 4) != 4)
		return 1;
	close(STDOUT_FILENO);
	hang();
	return 0;
}

static int mode_text(char **args)
{
	fputs(args[0], stdout);
	fputs(args[1], stderr);
	return 0;
}

/* gate FILE STATUS: waits for the lock of the file, then ends. */
static int mode_gate(char **args)
{
	int fd = open(args[0], O_RDONLY | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_SH) < 0)
		return 101;
	return atoi(args[1]);
}

/* The last thing it does is to tell the time. */
static int mode_clock(char **args)
{
	struct timespec now;
	char text[32];

	(void)args;
	clock_gettime(CLOCK_MONOTONIC, &now);
	int len = snprintf(text, sizeof text, "%ld%09ld", (long)now.tv_sec, now.tv_nsec);
	_exit(write(1, text, (size_t)len) != len);
}

/* ---- those that fork ---------------------------------------------------------------------------------------------- */

/* As daemons do it: twice, a session in between, no descriptor kept, the marker forgotten, TERM ignored. */
static void daemonise(bool deaf)
{
	if (fork() != 0)
		return;
	setsid();
	if (deaf) /* before anybody can wait for our end and send it */
		signal(SIGTERM, SIG_IGN);
	if (fork() != 0)
		_exit(0);
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	hang();
	_exit(0);
}

/* daemon COUNT: leaves daemons behind and ends. */
static int mode_daemon(char **args)
{
	for (int i = 0; i < atoi(args[0]); i++)
		daemonise(args[1] != NULL);
	while (wait(NULL) > 0)
		;
	say("left");
	return 3;
}

/* family DEPTH: a chain of processes, each deaf and waiting for its child; the last says so. */
static int mode_family(char **args)
{
	int depth = atoi(args[0]);

	signal(SIGTERM, SIG_IGN);
	while (depth-- > 0)
		if (fork() != 0) {
			wait(NULL);
			hang();
			_exit(0);
		}
	say("ready");
	hang();
	return 0;
}

/* scrubbed: a daemon whose environment is gone too, by exec. */
static int mode_scrubbed(char **args)
{
	(void)args;
	if (fork() == 0) {
		setsid();
		if (fork() == 0) {
			char *argv[] = {"child", "deaf", NULL}, *env[] = {NULL};
			execve("/proc/self/exe", argv, env);
			_exit(1);
		}
		_exit(0);
	}
	wait(NULL);
	hang();
	return 0;
}

/* bomb MOST: forks without end, as far as it is let; MOST is its own bound. Says how many there were. */
static int mode_bomb(char **args)
{
	int most = atoi(args[0]), count = 0;

	for (; count < most; count++) {
		pid_t pid = fork();
		if (pid < 0)
			break;
		if (pid == 0) {
			hang();
			_exit(0);
		}
	}
	printf("forked %d %s\n", count, count < most ? strerror(errno) : "");
	fflush(stdout);
	hang();
	return 0;
}

/* respawn: a process that replaces itself all the time, so that a slow killer never sees it twice. Bounded by time. */
static int mode_respawn(char **args)
{
	int width = atoi(args[0]);

	say("ready");
	for (int i = 0; i < width; i++)
		if (fork() == 0)
			for (int turn = 0; turn < 200000; turn++) {
				pid_t pid = fork();
				if (pid > 0)
					_exit(0);
				if (pid < 0)
					poll(NULL, 0, 1);
			}
	hang();
	return 0;
}

/* ---- what costs --------------------------------------------------------------------------------------------------- */

static int mode_eat(char **args)
{
	size_t bytes = strtoul(args[0], NULL, 10);
	char *food = malloc(bytes);

	for (size_t i = 0; food && i < bytes; i += 4096)
		food[i] = 1;
	say("ate");
	return food ? 0 : 1;
}

/* Lets a child of its child eat, and does not mind what becomes of it. */
static int mode_feed(char **args)
{
	if (fork() == 0) {
		if (fork() == 0)
			_exit(mode_eat(args));
		wait(NULL);
		_exit(0);
	}
	wait(NULL);
	hang();
	return 0;
}

static void spin_ms(int64_t ms)
{
	struct timespec now;
	int64_t until_ms;

	clock_gettime(CLOCK_MONOTONIC, &now);
	until_ms = now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000 + ms;
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while (now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000 < until_ms);
}

/* So many at once, none of them for long by itself. */
static int mode_spin(char **args)
{
	int count = atoi(args[0]);

	for (int i = 0; i < count; i++)
		if (fork() == 0) {
			spin_ms(LONGEST_S * 1000);
			_exit(0);
		}
	hang();
	return 0;
}

/* One after the other, and nobody waits for them: what they used is in no sum of the kernel's but the cgroup's. */
static int mode_unwaited(char **args)
{
	signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < atoi(args[0]); i++) {
		if (fork() == 0) {
			spin_ms(300);
			_exit(0);
		}
		wait(NULL);
	}
	hang();
	return 0;
}

static const struct mode {
	const char *name;
	int (*run)(char **args);
	int args;
} modes[] = {
	{"exit", mode_exit, 1},
	{"signal", mode_signal, 1},
	{"crash", mode_crash, 0},
	{"hang", mode_hang, 0},
	{"silent", mode_silent, 0},
	{"deaf", mode_deaf, 0},
	{"polite", mode_polite, 0},
	{"late", mode_late, 0},
	{"stopped", mode_stopped, 0},
	{"env", mode_env, 0},
	{"descriptors", mode_descriptors, 0},
	{"state", mode_state, 0},
	{"limits", mode_limits, 0},
	{"copy", mode_copy, 0},
	{"flood", mode_flood, 1},
	{"closed", mode_closed, 0},
	{"mute", mode_mute, 0},
	{"text", mode_text, 2},
	{"gate", mode_gate, 2},
	{"clock", mode_clock, 0},
	{"daemon", mode_daemon, 1},
	{"family", mode_family, 1},
	{"scrubbed", mode_scrubbed, 0},
	{"bomb", mode_bomb, 1},
	{"respawn", mode_respawn, 1},
	{"eat", mode_eat, 1},
	{"feed", mode_feed, 1},
	{"spin", mode_spin, 1},
	{"unwaited", mode_unwaited, 1},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++)
		if (strcmp(argv[1], modes[i].name) == 0 && argc - 2 >= modes[i].args)
			return modes[i].run(argv + 2);
	fprintf(stderr, "no such mode\n");
	return 99;
}
