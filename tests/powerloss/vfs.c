#include "powerloss/vfs.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

enum {
	VFS_MAX = 2,
};

struct handle {
	sqlite3_file base; /* first: SQLite's view of it */
	struct disk *disk;
	struct disk_file *file;
	bool fresh_log; /* its first sync makes names safe too, as in SQLite's own VFS */
};

static struct rng randomness;
static int last_errno;

static struct handle *handle_of(sqlite3_file *file)
{
	return (struct handle *)file;
}

static struct disk *disk_of(sqlite3_vfs *vfs)
{
	return vfs->pAppData;
}

/* A fault as the result code that SQLite's own VFS would give. */
static int code_of(int fault, int io_code)
{
	if (fault == 0)
		return SQLITE_OK;
	last_errno = -fault;
	return fault == -ENOSPC ? SQLITE_FULL : io_code;
}

static int file_close(sqlite3_file *file)
{
	(void)file;
	return SQLITE_OK;
}

static int file_read(sqlite3_file *file, void *into, int len, sqlite3_int64 offset)
{
	struct handle *handle = handle_of(file);
	int64_t there = disk_read(handle->disk, handle->file, into, (size_t)len, offset);

	if (there < 0)
		return code_of((int)there, SQLITE_IOERR_READ);
	if (there == len)
		return SQLITE_OK;
	memset((char *)into + there, 0, (size_t)(len - there));
	return SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *file, const void *from, int len, sqlite3_int64 offset)
{
	struct handle *handle = handle_of(file);

	return code_of(disk_write(handle->disk, handle->file, from, (size_t)len, offset), SQLITE_IOERR_WRITE);
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	struct handle *handle = handle_of(file);

	return code_of(disk_truncate(handle->disk, handle->file, size), SQLITE_IOERR_TRUNCATE);
}

static int file_sync(sqlite3_file *file, int flags)
{
	struct handle *handle = handle_of(file);
	int fault = disk_sync(handle->disk, handle->file, handle->fresh_log);

	(void)flags;
	if (fault == 0)
		handle->fresh_log = false;
	return code_of(fault, SQLITE_IOERR_FSYNC);
}

static int file_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
	*ret_size = disk_size(handle_of(file)->file);
	return SQLITE_OK;
}

static int file_lock(sqlite3_file *file, int level)
{
	(void)file;
	(void)level;
	return SQLITE_OK;
}

static int file_check_lock(sqlite3_file *file, int *ret_locked)
{
	(void)file;
	*ret_locked = 0;
	return SQLITE_OK;
}

static int file_control(sqlite3_file *file, int op, void *argument)
{
	(void)file;
	(void)op;
	(void)argument;
	return SQLITE_NOTFOUND;
}

static int file_sector_bytes(sqlite3_file *file)
{
	return (int)disk_make_of(handle_of(file)->disk).sector_bytes;
}

static int file_promises(sqlite3_file *file)
{
	return disk_make_of(handle_of(file)->disk).powersafe ? SQLITE_IOCAP_POWERSAFE_OVERWRITE : 0;
}

static const sqlite3_io_methods file_methods = {
	.iVersion = 1,
	.xClose = file_close,
	.xRead = file_read,
	.xWrite = file_write,
	.xTruncate = file_truncate,
	.xSync = file_sync,
	.xFileSize = file_size,
	.xLock = file_lock,
	.xUnlock = file_lock,
	.xCheckReservedLock = file_check_lock,
	.xFileControl = file_control,
	.xSectorSize = file_sector_bytes,
	.xDeviceCharacteristics = file_promises,
};

/* The store keeps temporary tables in memory: a file without a name is a mistake. */
static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
	struct handle *handle = handle_of(file);
	bool create = flags & SQLITE_OPEN_CREATE;
	bool is_log = flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL);

	*handle = (struct handle){.disk = disk_of(vfs)};
	if (!name)
		abort();
	int fault = disk_open(handle->disk, name, create, &handle->file);
	if (fault)
		return code_of(fault, SQLITE_CANTOPEN);
	handle->fresh_log = is_log && create;
	handle->base.pMethods = &file_methods;
	if (ret_flags)
		*ret_flags = flags;
	return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync_directory)
{
	int fault = disk_remove(disk_of(vfs), name, sync_directory != 0);

	return code_of(fault, fault == -ENOENT ? SQLITE_IOERR_DELETE_NOENT : SQLITE_IOERR_DELETE);
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret_answer)
{
	(void)flags;
	if (disk_is_off(disk_of(vfs)))
		return SQLITE_IOERR_ACCESS;
	*ret_answer = disk_has(disk_of(vfs), name);
	return SQLITE_OK;
}

static int vfs_full_path(sqlite3_vfs *vfs, const char *name, int room, char *out)
{
	(void)vfs;
	if (strlen(name) >= (size_t)room)
		return SQLITE_CANTOPEN;
	memcpy(out, name, strlen(name) + 1);
	return SQLITE_OK;
}

static int vfs_randomness(sqlite3_vfs *vfs, int len, char *out)
{
	(void)vfs;
	for (int i = 0; i < len; i++)
		out[i] = (char)rng_u32(&randomness);
	return len;
}

static int vfs_sleep(sqlite3_vfs *vfs, int us)
{
	(void)vfs;
	return us;
}

static int vfs_current_time(sqlite3_vfs *vfs, double *ret_days)
{
	(void)vfs;
	*ret_days = 2460000.5;
	return SQLITE_OK;
}

static int vfs_last_error(sqlite3_vfs *vfs, int room, char *out)
{
	(void)vfs;
	(void)room;
	(void)out;
	return last_errno;
}

void vfs_register(const char *name, struct disk *disk)
{
	static sqlite3_vfs vfss[VFS_MAX];
	static int used;

	if (used == VFS_MAX)
		abort();
	sqlite3_vfs *vfs = &vfss[used++];

	*vfs = (sqlite3_vfs){
		.iVersion = 1,
		.szOsFile = sizeof(struct handle),
		.mxPathname = DISK_NAME_MAX,
		.zName = name,
		.pAppData = disk,
		.xOpen = vfs_open,
		.xDelete = vfs_delete,
		.xAccess = vfs_access,
		.xFullPathname = vfs_full_path,
		.xRandomness = vfs_randomness,
		.xSleep = vfs_sleep,
		.xCurrentTime = vfs_current_time,
		.xGetLastError = vfs_last_error,
	};
	if (sqlite3_vfs_register(vfs, 1) != SQLITE_OK)
		abort();
}

void vfs_seed(uint64_t seed)
{
	rng_seed(&randomness, seed);
	sqlite3_randomness(0, NULL); /* what it has drawn in advance is forgotten */
}
