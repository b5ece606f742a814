/*
 * The ballast: a file of some megabytes that holds nothing. A full store cannot even delete, because
 * deleting writes; when the disk is full the ballast goes, and what it held is room for a purge.
 *
 * The log keeps its size, so a log that grew while the disk filled up, or while the store lived on the ballast's
 * room, holds that room for ever. When the ballast does not fit the log is therefore written back and cut to
 * nothing. What that adds to the file is at most what it takes from the log: where the log had its room and the
 * ballast was given back, the ballast fits again.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/take.h"
#include "store/sqlite/sqlite_backend.h"

/* posix_fallocate() and not a hole: room that was promised must have been set aside. */
static int ballast_make(const char *path, uint64_t bytes)
{
	cleanup(close_at) int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	int fault;

	if (fd < 0)
		return -errno;
	fault = posix_fallocate(fd, 0, (off_t)bytes);
	if (fault)
		return -fault;
	return fsync(fd) < 0 ? -errno : 0;
}

static bool ballast_is_whole(const char *path, uint64_t bytes)
{
	struct stat stat;

	return lstat(path, &stat) == 0 && S_ISREG(stat.st_mode) && (uint64_t)stat.st_blocks * 512 >= bytes;
}

/* Half a ballast would only take the room that the store itself may need. */
static int ballast_try(const struct sqlite *store)
{
	int fault = ballast_make(store->ballast_path, store->ballast_bytes);

	if (fault)
		file_remove(store->ballast_path);
	return fault;
}

int sqlite_reserve(struct backend *backend)
{
	struct sqlite *store = sqlite_of(backend);
	int fault;

	if (!store->ballast_bytes || ballast_is_whole(store->ballast_path, store->ballast_bytes))
		return 0;
	fault = ballast_try(store);
	if (fault == -ENOSPC || fault == -EDQUOT) {
		fault = sqlite_empty_log(store);
		if (fault)
			return fault;
		fault = ballast_try(store);
	}
	return fault ? sqlite_fault_because(store, fault, "cannot set room aside in", store->ballast_path)
		     : 0;
}

int sqlite_relieve(struct backend *backend)
{
	struct sqlite *store = sqlite_of(backend);
	int fault;

	if (!store->ballast_bytes)
		return 0;
	fault = file_remove(store->ballast_path);
	return fault ? sqlite_fault_because(store, fault, "cannot remove", store->ballast_path) : 0;
}
