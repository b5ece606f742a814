/*
 * The ballast: a file of some megabytes that holds nothing. A full store cannot even delete, because
 * deleting writes; when the disk is full the ballast goes, and what it held is room for a purge.
 *
 * The log keeps its size, so a log that grew while the disk filled up, or while the store lived on the ballast's
 * room, holds that room for ever. When the ballast does not fit the log is therefore written back and cut to
 * nothing. What that adds to the file is at most what it takes from the log: where the log had its room and the
 * ballast was given back, the ballast fits again.
 *
 * The room that the ballast itself gave back is no room: a store that serves again because of it is full at the next
 * turn. So there must be some room beside it. On a small file system both are smaller: a third of it, and an eighth of that.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
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

enum {
	SHARE = 3,        /* of a small file system */
	BESIDE_SHARE = 8, /* of the ballast: room that there must be beside it */
};

static uint64_t bytes_of(const struct statvfs *disk, fsblkcnt_t blocks)
{
	return (uint64_t)blocks * (uint64_t)disk->f_frsize;
}

/* How large it is to be here. */
static uint64_t ballast_wanted(const struct sqlite *store)
{
	struct statvfs disk;
	uint64_t third =
		statvfs(store->path, &disk) == 0 ? bytes_of(&disk, disk.f_blocks) / SHARE : UINT64_MAX;

	return third > 0 && third < store->ballast_bytes ? third : store->ballast_bytes;
}

/* Is there room beside it, on the disk or in the store's own file, where retention made some? What the file system does not
 * say is no reason to wait. */
static bool has_room_beside(const struct sqlite *store, uint64_t bytes)
{
	struct statvfs disk;
	int64_t pages = 0, page_bytes = 0;

	if (statvfs(store->path, &disk) < 0 || disk.f_blocks == 0)
		return true;
	if (sqlite_ask(store->db, "PRAGMA freelist_count", &pages) != SQLITE_OK ||
		sqlite_ask(store->db, "PRAGMA page_size", &page_bytes) != SQLITE_OK)
		return true;
	return bytes_of(&disk, disk.f_bavail) + (uint64_t)(pages * page_bytes) >= bytes / BESIDE_SHARE;
}

/* Half a ballast would only take the room that the store itself may need. */
static int ballast_try(const struct sqlite *store, uint64_t bytes)
{
	int fault = ballast_make(store->ballast_path, bytes);

	if (!fault && store->is_full && !has_room_beside(store, bytes))
		fault = -ENOSPC;
	if (fault)
		file_remove(store->ballast_path);
	return fault;
}

int sqlite_reserve(struct backend *backend)
{
	struct sqlite *store = sqlite_of(backend);
	uint64_t bytes = ballast_wanted(store);
	int fault;

	if (!store->ballast_bytes || ballast_is_whole(store->ballast_path, bytes))
		return 0;
	fault = ballast_try(store, bytes);
	if (fault == -ENOSPC || fault == -EDQUOT) {
		fault = sqlite_empty_log(store);
		if (fault)
			return fault;
		fault = ballast_try(store, bytes);
	}
	store->is_full &= fault != 0;
	return fault ? sqlite_fault_because(store, fault, "cannot set room aside in", store->ballast_path)
		     : 0;
}

int sqlite_relieve(struct backend *backend)
{
	struct sqlite *store = sqlite_of(backend);
	int fault;

	if (!store->ballast_bytes)
		return 0;
	store->is_full = true;
	fault = file_remove(store->ballast_path);
	if (fault)
		return sqlite_fault_because(store, fault, "cannot remove", store->ballast_path);
	uint64_t bytes = ballast_wanted(store);
	snprintf(store->complaint, sizeof store->complaint,
		"the store goes on by itself once %llu KiB are free",
		(unsigned long long)(bytes + bytes / BESIDE_SHARE + 1023) / 1024);
	store->backend.complaint = store->complaint;
	return 0;
}
