/*
 * What a hostile child tries: exec-hostile ATTEMPT [ARGUMENT...]. Prints "done" if it got what it wanted, otherwise the
 * name of the error. None of the attempts does harm where it succeeds.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

enum { RACES = 3000 };

/* Each returns below 0 with errno if it was stopped. */

static long try_read(char **args)
{
	char byte;
	int fd = open(args[0], O_RDONLY);

	return fd < 0 ? -1 : read(fd, &byte, 1) < 0 ? -1 : 0;
}

static long try_write(char **args)
{
	int fd = open(args[0], O_WRONLY | O_CREAT | O_APPEND, 0600);

	return fd < 0 ? -1 : write(fd, "x", 1);
}

static long try_list(char **args)
{
	return opendir(args[0]) ? 0 : -1;
}

static long try_remove(char **args)
{
	return unlink(args[0]);
}

static long try_truncate(char **args)
{
	return truncate(args[0], 0);
}

static long try_hard_link(char **args)
{
	return link(args[0], "hard");
}

static long try_rename(char **args)
{
	return rename(args[0], "renamed");
}

static long try_link(char **args)
{
	unlink("soft");
	return symlink(args[0], "soft") < 0 ? -1 : try_read((char *[]){"soft"});
}

/* A name that is now a file of ours and now a link to theirs: 0 if ever their bytes came out. */
static long try_race(char **args)
{
	char text[64];
	int error = 0;

	for (int i = 0; i < RACES; i++) {
		int ours = open("ours", O_WRONLY | O_CREAT | O_TRUNC, 0600);
		close(ours);
		unlink("swap");
		if (symlink(args[0], "swap") < 0)
			return -1;
		if (i % 2)
			rename("ours", "swap");
		int fd = open("swap", O_RDONLY);
		if (fd < 0)
			error = errno;
		else if (read(fd, text, sizeof text) > 0)
			return 0;
		if (fd >= 0)
			close(fd);
	}
	errno = error;
	return -1;
}

static long try_signal(char **args)
{
	return kill(atoi(args[0]), atoi(args[1]));
}

static long try_pidfd(char **args)
{
	long fd = syscall(SYS_pidfd_open, atoi(args[0]), 0);

	return fd < 0 ? -1 : syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0);
}

/* limit PID: one of processor time would kill it as surely as a signal. */
static long try_limit(char **args)
{
	struct rlimit core = {0, 0};

	return prlimit(atoi(args[0]), RLIMIT_CORE, &core, NULL);
}

static long try_trace(char **args)
{
	return ptrace(PTRACE_ATTACH, atoi(args[0]), NULL, NULL);
}

static long try_memory(char **args)
{
	char byte;
	struct iovec here = {&byte, 1}, there = {&byte, 1};

	return process_vm_readv(atoi(args[0]), &here, 1, &there, 1, 0);
}

/* proc PID FILE */
static long try_proc(char **args)
{
	char path[256];

	snprintf(path, sizeof path, "/proc/%s/%s", args[0], args[1]);
	return try_read((char *[]){path});
}

static long try_abstract(char **args)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s", args[0]);
	return connect(fd, (struct sockaddr *)&address,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(args[0])));
}

/* Type into a terminal: of our own, which a child without privileges may. */
static long try_type(char **args)
{
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
	char name[64], byte = 'x';

	(void)args;
	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0 ||
		ptsname_r(master, name, sizeof name) != 0)
		return -1;
	int slave = open(name, O_RDWR);
	return slave < 0 ? -1 : ioctl(slave, TIOCSTI, &byte);
}

static long try_namespace(char **args)
{
	(void)args;
	return syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
}

/* call NUMBER: with arguments that the kernel refuses in another way if it comes so far. */
static long try_call(char **args)
{
	return syscall(atol(args[0]), -1L, -1L, -1L, -1L, -1L, -1L);
}

/* fill BYTES: one file. */
static long try_fill(char **args)
{
	int fd = open("large", O_WRONLY | O_CREAT, 0600);

	signal(SIGXFSZ, SIG_IGN);
	return fd < 0 ? -1 : pwrite(fd, "x", 1, atol(args[0]) - 1);
}

/* spread PATH BYTES: room that is taken, not only a large number. */
static long try_spread(char **args)
{
	int fd = open(args[0], O_WRONLY | O_CREAT, 0600);

	return fd < 0 ? -1 : fallocate(fd, 0, 0, atol(args[1]));
}

/* shared ID: memory of System V that somebody has made. */
static long try_shared(char **args)
{
	return shmat(atoi(args[0]), NULL, 0) == (void *)-1 ? -1 : 0;
}

/* tcp PORT: of the machine itself. */
static long try_tcp(char **args)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(args[0]))};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&address, sizeof address);
}

/* socket FAMILY: of a network that no namespace holds. */
static long try_socket(char **args)
{
	return socket(atoi(args[0]), SOCK_STREAM, 0);
}

/* What others tell the server over the loopback, tokens too. */
static long try_sniff(char **args)
{
	(void)args;
	return socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
}

static long try_unix(char **args)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(address.sun_path, sizeof address.sun_path, "%s", args[0]);
	return connect(fd, (struct sockaddr *)&address, sizeof address);
}

/* Is anybody there besides ourselves and the first process? */
static long try_others(char **args)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;

	(void)args;
	while (dir && (entry = readdir(dir)))
		if (atoi(entry->d_name) > 1 && atoi(entry->d_name) != getpid())
			return 0;
	errno = dir ? ESRCH : errno;
	return -1;
}

/* touch BYTES: memory that is used, not only asked for. */
static long try_touch(char **args)
{
	size_t bytes = strtoul(args[0], NULL, 10);
	char *memory = malloc(bytes);

	if (!memory)
		return -1;
	for (size_t i = 0; i < bytes; i += 4096)
		((volatile char *)memory)[i] = 1;
	return 0;
}

/* forks COUNT: processes that stay. */
static long try_forks(char **args)
{
	for (int i = 0; i < atoi(args[0]); i++) {
		pid_t pid = fork();
		if (pid < 0)
			return -1;
		if (pid == 0) {
			pause();
			_exit(0);
		}
	}
	return 0;
}

/* Bytes of a device, not a byte of a file: a disk of the machine. */
static long try_device(char **args)
{
	if (mknod("disk", S_IFBLK | 0600, (dev_t)strtoul(args[0], NULL, 10)) < 0)
		return -1;
	return try_read((char *[]){"disk"});
}

/* capability NUMBER; -1 is any */
static long try_capability(char **args)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2];
	int number = atoi(args[0]);

	if (syscall(SYS_capget, &header, data) < 0)
		return -1;
	errno = EPERM;
	if (number < 0)
		return data[0].effective | data[1].effective ? 0 : -1;
	return data[number / 32].effective >> number % 32 & 1 ? 0 : -1;
}

static const struct attempt {
	const char *name;
	long (*attempt)(char **args);
	int args;
} attempts[] = {
	{"read", try_read, 1},
	{"write", try_write, 1},
	{"list", try_list, 1},
	{"remove", try_remove, 1},
	{"truncate", try_truncate, 1},
	{"hard link", try_hard_link, 1},
	{"rename", try_rename, 1},
	{"link", try_link, 1},
	{"race", try_race, 1},
	{"signal", try_signal, 2},
	{"pidfd", try_pidfd, 1},
	{"limit", try_limit, 1},
	{"trace", try_trace, 1},
	{"memory", try_memory, 1},
	{"proc", try_proc, 2},
	{"abstract", try_abstract, 1},
	{"type", try_type, 0},
	{"namespace", try_namespace, 0},
	{"call", try_call, 1},
	{"fill", try_fill, 1},
	{"touch", try_touch, 1},
	{"forks", try_forks, 1},
	{"spread", try_spread, 2},
	{"shared", try_shared, 1},
	{"tcp", try_tcp, 1},
	{"socket", try_socket, 1},
	{"sniff", try_sniff, 0},
	{"unix", try_unix, 1},
	{"others", try_others, 0},
	{"device", try_device, 1},
	{"capability", try_capability, 1},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof attempts / sizeof *attempts; i++) {
		if (strcmp(argv[1], attempts[i].name) != 0 || argc - 2 < attempts[i].args)
			continue;
		long got = attempts[i].attempt(argv + 2);
		printf("%s", got < 0 ? strerrorname_np(errno) : "done");
		return 0;
	}
	printf("no such attempt");
	return 99;
}
