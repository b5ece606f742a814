#include "exec/confine.h"

#define READ(path_)   {path_, -1, GRANT_READ, true}
#define DEVICE(path_) {path_, -1, GRANT_DEVICE, true}

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
