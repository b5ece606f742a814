#include "exec/shim/landlock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/take.h"
#include "exec/request/ancestors.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule       445
#define SYS_landlock_restrict_self  446
#endif

/* As of version 7; the headers of Debian 12 end at 2. */
enum {
	FS_EXECUTE = 1 << 0,
	FS_WRITE_FILE = 1 << 1,
	FS_READ_FILE = 1 << 2,
	FS_READ_DIR = 1 << 3,
	FS_REMOVE_DIR = 1 << 4,
	FS_REMOVE_FILE = 1 << 5,
	FS_MAKE_CHAR = 1 << 6,
	FS_MAKE_DIR = 1 << 7,
	FS_MAKE_REG = 1 << 8,
	FS_MAKE_SOCK = 1 << 9,
	FS_MAKE_FIFO = 1 << 10,
	FS_MAKE_BLOCK = 1 << 11,
	FS_MAKE_SYM = 1 << 12,
	FS_REFER = 1 << 13,     /* 2 */
	FS_TRUNCATE = 1 << 14,  /* 3 */
	FS_IOCTL_DEV = 1 << 15, /* 5 */

	FS_FIRST = (1 << 13) - 1,
	FS_OF_FILES = FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV,
	FS_READ = FS_EXECUTE | FS_READ_FILE | FS_READ_DIR,
	FS_CHANGE = FS_READ | FS_WRITE_FILE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | FS_MAKE_REG |
		FS_MAKE_SOCK | FS_MAKE_FIFO | FS_MAKE_SYM | FS_REFER | FS_TRUNCATE,
	FS_DEVICE = FS_READ_FILE | FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV,

	SCOPE_ABSTRACT_SOCKET = 1 << 0, /* 6 */
	SCOPE_SIGNAL = 1 << 1,          /* 6 */

	RULE_PATH_BENEATH = 1,
};

struct ruleset_attr {
	uint64_t fs, net, scoped;
};

struct path_attr {
	uint64_t allowed;
	int32_t parent_fd;
} __attribute__((packed));

static uint64_t handled(int abi)
{
	return (uint64_t)FS_FIRST | (abi >= 2 ? FS_REFER : 0) | (abi >= 3 ? FS_TRUNCATE : 0) |
		(abi >= 5 ? FS_IOCTL_DEV : 0);
}

static uint64_t access_bits(enum grant_access access)
{
	switch (access) {
	case GRANT_READ:
		return FS_READ;
	case GRANT_WRITE:
		return FS_CHANGE;
	case GRANT_DEVICE:
		return FS_DEVICE | FS_READ_DIR; /* a directory of devices: /dev/pts */
	}
	return 0;
}

static int add_grant(int ruleset, int abi, const struct grant *grant, const char *keep_out,
	const struct place *ancestors, int ancestor_count)
{
	cleanup(close_at) int opened =
		grant_has_fd(grant) ? -1 : grant_open(grant); /* there may be a thousand */
	int fd = grant_has_fd(grant) ? grant->fd : opened;
	bool is_directory = grant->is_directory;
	struct place place = grant->place;
	struct stat stat;

	if (fd < 0)
		return grant_is_left_out(grant, fd) ? 0 : fd;
	if (!grant->held) {
		if (fstat(fd, &stat) < 0)
			return -errno;
		is_directory = S_ISDIR(stat.st_mode);
		place = place_of(&stat);
	}
	if (grant_opens(grant, fd, place, keep_out, ancestors, ancestor_count))
		return -EXDEV;
	struct path_attr attr = {access_bits(grant->access) & handled(abi), fd};
	if (!is_directory)
		attr.allowed &= FS_OF_FILES;
	assert(!(attr.allowed & ~handled(abi)));
	assert(grant->access != GRANT_READ || !(attr.allowed & ~(uint64_t)FS_READ));
	assert(grant->access != GRANT_DEVICE || !(attr.allowed & FS_EXECUTE));
	return syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &attr, 0) < 0 ? -errno : 0;
}

int landlock_ruleset(int abi, const struct grant *grants, size_t count, const char *keep_out,
	const struct grant **ret_culprit)
{
	struct ruleset_attr attr = {handled(abi), 0, abi >= 6 ? SCOPE_ABSTRACT_SOCKET | SCOPE_SIGNAL : 0};
	size_t attr_bytes = abi >= 6 ? sizeof attr
		: abi >= 4           ? offsetof(struct ruleset_attr, scoped)
				     : offsetof(struct ruleset_attr, net);
	struct place ancestors[ANCESTORS_MAX];
	int ancestor_count = ancestors_find_path(keep_out && keep_out[0] ? keep_out : NULL, ancestors), fault;

	*ret_culprit = NULL;
	if (ancestor_count < 0)
		return ancestor_count;
	cleanup(close_at) int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, attr_bytes, 0);
	if (ruleset < 0)
		return -errno;
	for (size_t i = 0; i < count; i++) {
		fault = add_grant(ruleset, abi, &grants[i], keep_out, ancestors, ancestor_count);
		if (fault) {
			*ret_culprit = &grants[i];
			return fault;
		}
	}
	return take_fd(ruleset);
}

int landlock_enforce(int ruleset)
{
	return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? -errno : 0;
}
