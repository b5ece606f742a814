#include "exec/request/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#define READ(path_)   {.path = path_, .fd = -1, .access = GRANT_READ, .optional = true}
#define DEVICE(path_) {.path = path_, .fd = -1, .access = GRANT_DEVICE, .optional = true}

/* Read-only, and nothing in which people or other tasks keep things. /dev itself is not there: as root it would be every
 * disk; nor is /dev/shm, through which tasks could reach each other. */
const struct grant grants_system[] = {
	READ("/usr"),
	READ("/bin"),
	READ("/sbin"),
	READ("/lib"),
	READ("/lib32"),
	READ("/lib64"),
	READ("/libx32"),
	READ("/etc"),
	READ("/opt"),
	READ("/nix"),
	READ("/snap"),
	READ("/proc"),
	READ("/sys"),
	READ("/run/systemd/resolve"), /* where /etc/resolv.conf may point */
	READ("/run/resolvconf"),
	DEVICE("/dev/null"),
	DEVICE("/dev/zero"),
	DEVICE("/dev/full"),
	DEVICE("/dev/random"),
	DEVICE("/dev/urandom"),
	DEVICE("/dev/tty"),
	DEVICE("/dev/ptmx"),
	DEVICE("/dev/pts"),
};

const size_t grants_system_count = sizeof grants_system / sizeof *grants_system;

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#endif

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1);

	return abi < 0 ? 0 : (int)abi;
}

enum { RACES_MAX = 16 }; /* a rename beside us makes the kernel unsure */

static int open_direct(const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	long fd = -1;

	for (int race = 0; race < RACES_MAX; race++) {
		fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	return (int)fd;
}

int grant_open(const struct grant *grant)
{
	int fd = grant_has_fd(grant) ? fcntl(grant->fd, F_DUPFD_CLOEXEC, 3)
		: grant->direct      ? open_direct(grant->path)
				     : open(grant->path, O_PATH | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int grant_hold(struct grant *grant)
{
	struct stat stat;

	if (fstat(grant->fd, &stat) < 0)
		return -errno;
	grant->held = true;
	grant->is_directory = S_ISDIR(stat.st_mode);
	grant->place = place_of(&stat);
	return 0;
}

bool grant_opens(const struct grant *grant, int fd, struct place place, const char *keep_out,
	const struct place *ancestors, int ancestor_count)
{
	return ancestors_index_of(ancestors, ancestor_count, place) >= 0 ||
		(ancestor_count > 0 && grant->outside && ancestors_holds(keep_out, fd));
}

struct limits limits_default(void)
{
	return (struct limits){
		.files = 1024,
		.core_bytes = 0,
		.file_bytes = 1ull << 30,
		.tasks = 512,
		.cpu_milli = LIMIT_UNCHANGED,
		.memory_bytes = LIMIT_UNCHANGED,
		.cpu_us = LIMIT_UNCHANGED,
		.output_bytes = LIMIT_UNCHANGED,
	};
}

unsigned limits_bounds(const struct limits *limits)
{
	return (limits->memory_bytes != LIMIT_UNCHANGED ? 1u << BOUND_MEMORY : 0) |
		(limits->cpu_milli != LIMIT_UNCHANGED ? 1u << BOUND_CPU : 0);
}
