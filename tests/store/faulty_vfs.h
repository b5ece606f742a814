/*
 * The system's file layer of SQLite with a disk that can be told to fail. Enough of it for one connection in
 * exclusive mode, which uses no shared memory. The ballast does not come this way; it is on the same disk all
 * the same, so posix_fallocate() is a function of this disk too.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct faulty {
	bool is_full;           /* no file can be made larger */
	int64_t capacity_bytes; /* what all open files and the ballast may have; 0: no limit */
	int64_t used_bytes;     /* by the open files */
	const char *ballast_path;
	int write_fault; /* an errno that every write ends with */
	bool sync_fails;
	unsigned syncs;
};

static struct faulty faulty; /* one disk per process */

struct faulty_file {
	sqlite3_file file;
	sqlite3_file *real; /* behind it */
};

static inline sqlite3_file *faulty_real(sqlite3_file *file)
{
	return ((struct faulty_file *)file)->real;
}

static int faulty_size(sqlite3_file *file, sqlite3_int64 *size)
{
	return faulty_real(file)->pMethods->xFileSize(faulty_real(file), size);
}

static int64_t faulty_size_now(sqlite3_file *file)
{
	sqlite3_int64 size = 0;

	faulty_size(file, &size);
	return size;
}

/* Is there room for so much more? */
static bool faulty_has_room(int64_t more_bytes)
{
	struct stat stat;
	int64_t ballast = faulty.ballast_path && lstat(faulty.ballast_path, &stat) == 0 ? stat.st_size : 0;

	return !faulty.capacity_bytes || faulty.used_bytes + ballast + more_bytes <= faulty.capacity_bytes;
}

/* Takes the place of the C library's. */
int posix_fallocate(int fd, off_t at, off_t len)
{
	if (!faulty_has_room(len))
		return ENOSPC;
	return fallocate(fd, 0, at, len) < 0 ? errno : 0;
}

static int faulty_close(sqlite3_file *file)
{
	faulty.used_bytes -= faulty_size_now(file);
	return faulty_real(file)->pMethods->xClose(faulty_real(file));
}

static int faulty_read(sqlite3_file *file, void *data, int len, sqlite3_int64 at)
{
	return faulty_real(file)->pMethods->xRead(faulty_real(file), data, len, at);
}

static int faulty_write(sqlite3_file *file, const void *data, int len, sqlite3_int64 at)
{
	int64_t size = faulty_size_now(file);
	int64_t more = at + len > size ? at + len - size : 0;
	int code;

	if (faulty.write_fault) {
		errno = faulty.write_fault;
		return SQLITE_IOERR_WRITE;
	}
	if (more > 0 && (faulty.is_full || !faulty_has_room(more)))
		return SQLITE_FULL;
	code = faulty_real(file)->pMethods->xWrite(faulty_real(file), data, len, at);
	if (code == SQLITE_OK)
		faulty.used_bytes += more;
	return code;
}

static int faulty_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	int64_t before = faulty_size_now(file);
	int code = faulty_real(file)->pMethods->xTruncate(faulty_real(file), size);

	faulty.used_bytes += faulty_size_now(file) - before;
	return code;
}

static int faulty_sync(sqlite3_file *file, int flags)
{
	faulty.syncs++;
	if (faulty.sync_fails)
		return SQLITE_IOERR_FSYNC;
	return faulty_real(file)->pMethods->xSync(faulty_real(file), flags);
}

static int faulty_lock(sqlite3_file *file, int level)
{
	return faulty_real(file)->pMethods->xLock(faulty_real(file), level);
}

static int faulty_unlock(sqlite3_file *file, int level)
{
	return faulty_real(file)->pMethods->xUnlock(faulty_real(file), level);
}

static int faulty_reserved(sqlite3_file *file, int *reserved)
{
	return faulty_real(file)->pMethods->xCheckReservedLock(faulty_real(file), reserved);
}

static int faulty_control(sqlite3_file *file, int op, void *argument)
{
	return faulty_real(file)->pMethods->xFileControl(faulty_real(file), op, argument);
}

static int faulty_sector(sqlite3_file *file)
{
	return faulty_real(file)->pMethods->xSectorSize(faulty_real(file));
}

static int faulty_device(sqlite3_file *file)
{
	return faulty_real(file)->pMethods->xDeviceCharacteristics(faulty_real(file));
}

static const sqlite3_io_methods faulty_methods = {
	.iVersion = 1,
	.xClose = faulty_close,
	.xRead = faulty_read,
	.xWrite = faulty_write,
	.xTruncate = faulty_truncate,
	.xSync = faulty_sync,
	.xFileSize = faulty_size,
	.xLock = faulty_lock,
	.xUnlock = faulty_unlock,
	.xCheckReservedLock = faulty_reserved,
	.xFileControl = faulty_control,
	.xSectorSize = faulty_sector,
	.xDeviceCharacteristics = faulty_device,
};

static int faulty_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
	struct faulty_file *opened = (struct faulty_file *)file;
	sqlite3_vfs *system = vfs->pAppData;
	int code;

	opened->real = (sqlite3_file *)(opened + 1);
	code = system->xOpen(system, name, opened->real, flags, ret_flags);
	file->pMethods = code == SQLITE_OK ? &faulty_methods : NULL;
	if (code == SQLITE_OK)
		faulty.used_bytes += faulty_size_now(file);
	return code;
}

/* The name to give to sqlite_open(). */
static const char *faulty_vfs(void)
{
	static sqlite3_vfs vfs;
	sqlite3_vfs *system = sqlite3_vfs_find("unix");

	if (!vfs.zName) {
		vfs = *system;
		vfs.zName = "faulty";
		vfs.pAppData = system;
		vfs.szOsFile = (int)sizeof(struct faulty_file) + system->szOsFile;
		vfs.xOpen = faulty_open;
		sqlite3_vfs_register(&vfs, 0);
	}
	faulty = (struct faulty){0};
	return vfs.zName;
}
