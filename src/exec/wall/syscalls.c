/*
 * A short list of what is denied, everything else allowed: the level `process` runs compilers, interpreters and agents,
 * and must not break them. Denied is what reaches into other processes, what changes the machine, and doors into the
 * kernel that unprivileged programs hardly need and exploits like: EPERM, as if a privilege were missing.
 *
 * The program is made once and sent to every shim; the library is not linked into those.
 */
#include "exec/wall/syscalls.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/take.h"

static const char *const denied[] = {
	/* other processes */
	"ptrace",
	"process_vm_readv",
	"process_vm_writev",
	"process_madvise",
	"kcmp",
	"pidfd_getfd",
	/* mounts and namespaces */
	"mount",
	"umount",
	"umount2",
	"move_mount",
	"fsopen",
	"fsconfig",
	"fsmount",
	"fspick",
	"open_tree",
	"mount_setattr",
	"pivot_root",
	"chroot",
	"setns",
	"unshare",
	/* the kernel */
	"kexec_load",
	"kexec_file_load",
	"init_module",
	"finit_module",
	"delete_module",
	"bpf",
	"perf_event_open",
	"userfaultfd",
	"io_uring_setup",
	"io_uring_enter",
	"io_uring_register",
	"lookup_dcookie",
	"open_by_handle_at",
	"vm86",
	"vm86old",
	/* keys */
	"keyctl",
	"add_key",
	"request_key",
	/* the machine */
	"reboot",
	"swapon",
	"swapoff",
	"acct",
	"quotactl",
	"quotactl_fd",
	"sethostname",
	"setdomainname",
	"settimeofday",
	"stime",
	"clock_settime",
	"clock_settime64",
	"clock_adjtime",
	"clock_adjtime64",
	"iopl",
	"ioperm",
	"syslog",
	"nfsservctl",
	"vhangup",
};

/* Younger than the library of Debian 12, which therefore has no name for them. Such numbers are the same on every architecture. */
static const uint32_t denied_numbers[] = {
	467, /* open_tree_attr: a mount, as open_tree */
};

static void filter_release_at(scmp_filter_ctx *filter)
{
	if (*filter)
		seccomp_release(*filter);
}

/* A name that the library does not know is not one of this architecture, or is among denied_numbers. */
static int deny(scmp_filter_ctx filter, const char *name)
{
	int number = seccomp_syscall_resolve_name(name);

	return number == __NR_SCMP_ERROR ? 0 : seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0);
}

static int deny_all(scmp_filter_ctx filter)
{
	int fault = 0;

	for (size_t i = 0; i < sizeof denied / sizeof *denied && !fault; i++)
		fault = deny(filter, denied[i]);
	return fault;
}

/* Calls that are denied by an argument, or in another way. */
static const struct {
	int call;
	int error;
	unsigned args; /* 1: `arg` decides; 0: all of them */
	struct scmp_arg_cmp arg;
	bool offline; /* denied only to a program without a network */
} conditions[] = {
	/* Typing into the terminal that somebody else reads. Only the low half counts for the kernel. */
	{SCMP_SYS(ioctl), EPERM, 1, {1, SCMP_CMP_MASKED_EQ, 0xffffffffu, TIOCSTI}, false},
	{SCMP_SYS(ioctl), EPERM, 1, {1, SCMP_CMP_MASKED_EQ, 0xffffffffu, TIOCLINUX}, false},
	/* The limits of another process: a limit of processor time ends it as surely as a signal, and Landlock lets that pass. Pid 0
	 * means the caller and stays allowed. */
	{SCMP_SYS(prlimit64), EPERM, 1, {0, SCMP_CMP_NE, 0, 0}, false},
	/* Sockets between machines and their host: the one network that a network namespace does not hold. Programs for the small
	 * sibling ask for all sockets by one call that hides which: there it is all of them. */
	{SCMP_SYS(socket), EPERM, 1, {0, SCMP_CMP_EQ, AF_VSOCK, 0}, true},
	/* A new user namespace is a set of privileges. clone3 hides its flags from us: without it the C library takes clone. */
	{SCMP_SYS(clone), EPERM, 1, {0, SCMP_CMP_MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER}, false},
	{SCMP_SYS(clone3), ENOSYS, 0, {0}, false},
};

static int deny_by_argument(scmp_filter_ctx filter, bool offline)
{
	int fault = 0;

	for (size_t i = 0; i < sizeof conditions / sizeof *conditions && !fault; i++)
		if (!conditions[i].offline || offline)
			fault = seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(conditions[i].error),
				conditions[i].call, conditions[i].args, &conditions[i].arg);
	return fault;
}

/* Programs for the small sibling of this processor are held to the same; others' calls do not exist. */
static int add_architectures(scmp_filter_ctx filter)
{
	uint32_t small = seccomp_arch_native() == SCMP_ARCH_X86_64 ? SCMP_ARCH_X86
		: seccomp_arch_native() == SCMP_ARCH_AARCH64       ? SCMP_ARCH_ARM
								   : 0;
	int fault = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));

	if (!fault && small)
		fault = seccomp_arch_add(filter, small);
	return fault == -EEXIST ? 0 : fault;
}

/* Before the library's own program, whose jumps are relative: what it has no name for. */
static int put_numbers(struct buf *buf)
{
	const struct sock_filter load = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	int fault = buf_put(buf, &load, sizeof load);

	for (size_t i = 0; i < sizeof denied_numbers / sizeof *denied_numbers && !fault; i++) {
		const struct sock_filter refusal[] = {
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, denied_numbers[i], 0, 1),
			BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		};
		fault = buf_put(buf, refusal, sizeof refusal);
	}
	return fault;
}

static int export(scmp_filter_ctx filter, struct buf *buf)
{
	cleanup(close_at) int fd = memfd_create("stint-filter", MFD_CLOEXEC);
	struct stat stat;
	int fault;

	if (fd < 0)
		return -errno;
	fault = seccomp_export_bpf(filter, fd);
	if (fault)
		return fault;
	if (fstat(fd, &stat) < 0)
		return -errno;
	fault = buf_reserve(buf, (size_t)stat.st_size);
	if (fault)
		return fault;
	if (pread(fd, buf->data + buf->len, (size_t)stat.st_size, 0) != stat.st_size)
		return -EIO;
	buf->len += (size_t)stat.st_size;
	return 0;
}

int syscalls_filter(bool offline, struct buf *buf)
{
	cleanup(filter_release_at) scmp_filter_ctx filter = NULL;
	int fault;

	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0)
		return -EOPNOTSUPP;
	filter = seccomp_init(SCMP_ACT_ALLOW);
	if (!filter)
		return -ENOMEM;
	fault = add_architectures(filter);
	if (!fault)
		fault = deny_all(filter);
	if (!fault)
		fault = deny_by_argument(filter, offline);
	if (!fault)
		seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE,
			2); /* a tree: cheaper to walk; older ones keep a list */
	if (!fault)
		fault = put_numbers(buf);
	return fault ? fault : export(filter, buf);
}
