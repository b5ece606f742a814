/*
 * A VFS that gathers what SQLite writes to its log.
 *
 * A commit appends frames to the log, and SQLite writes each of them in two pieces: 24 bytes of header, then a page.
 * At ten pages per commit that is twenty system calls before the sync. Here they are put together and written at
 * once when SQLite asks for the sync, or for anything else of the file. All other files go straight to the VFS below.
 *
 * A write that fails is so told later, by the sync, and SQLite treats both alike: the commit has failed, and the
 * frames are written again over the same place. Without a sync per commit there would be no such moment: the VFS is
 * only for stores that sync before every acknowledgement.
 *
 * A file that grows costs the sync one more write, of its length: 140 µs instead of 80 on a plain ext4, more where there
 * is a journal. So the log grows by many frames at once, by zeros that are no frame to anybody who reads it, and then
 * the frames go over them. SQLite begins at its start again after a checkpoint: it grows no further than one of those.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "store/sqlite/sqlite_backend.h"

enum {
	GATHERED_BYTES_MAX = 64 << 10, /* SQLite's own writer masks lengths to less than 128 KiB */
	GATHERERS_MAX = 4,
	GROWTH_BYTES = 256 << 10,
};

struct gatherer {
	sqlite3_vfs vfs;
	sqlite3_vfs *below;
	char name[64];
};

struct log_file {
	sqlite3_file file;
	sqlite3_int64 size; /* of the file below */
	sqlite3_int64 at;   /* where the gathered bytes go */
	int len;
	char *bytes;
};

static sqlite3_file *below(sqlite3_file *file)
{
	return (sqlite3_file *)((struct log_file *)file + 1);
}

/* Zeros behind the end. They may fail, on a full disk for one: the write that needs the room will say so. */
static void grow(sqlite3_file *file)
{
	static char zeros[GATHERED_BYTES_MAX];
	struct log_file *log = (struct log_file *)file;

	for (int grown = 0; grown < GROWTH_BYTES; grown += (int)sizeof zeros) {
		if (below(file)->pMethods->xWrite(below(file), zeros, sizeof zeros, log->size) != SQLITE_OK)
			return;
		log->size += (sqlite3_int64)sizeof zeros;
	}
}

static int write_below(sqlite3_file *file, const void *bytes, int len, sqlite3_int64 at)
{
	struct log_file *log = (struct log_file *)file;

	if (at + len > log->size)
		grow(file);
	int code = below(file)->pMethods->xWrite(below(file), bytes, len, at);
	if (code == SQLITE_OK && at + len > log->size)
		log->size = at + len;
	return code;
}

static int flush(sqlite3_file *file)
{
	struct log_file *log = (struct log_file *)file;
	int len = log->len;

	assert(len >= 0);
	assert(len <= GATHERED_BYTES_MAX);
	log->len = 0;
	return len == 0 ? SQLITE_OK : write_below(file, log->bytes, len, log->at);
}

static int log_write(sqlite3_file *file, const void *bytes, int len, sqlite3_int64 at)
{
	struct log_file *log = (struct log_file *)file;

	if (log->len > 0 && (at != log->at + log->len || len > GATHERED_BYTES_MAX - log->len)) {
		int code = flush(file);
		if (code != SQLITE_OK)
			return code;
	}
	if (len > GATHERED_BYTES_MAX)
		return write_below(file, bytes, len, at);
	if (log->len == 0)
		log->at = at;
	assert(at == log->at + log->len); /* what is gathered is one piece */
	assert(len <= GATHERED_BYTES_MAX - log->len);
	memcpy(log->bytes + log->len, bytes, (size_t)len);
	log->len += len;
	return SQLITE_OK;
}

static int log_read(sqlite3_file *file, void *bytes, int len, sqlite3_int64 at)
{
	int code = flush(file);

	return code == SQLITE_OK ? below(file)->pMethods->xRead(below(file), bytes, len, at) : code;
}

static int log_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	struct log_file *log = (struct log_file *)file;
	int code = flush(file);

	if (code == SQLITE_OK)
		code = below(file)->pMethods->xTruncate(below(file), size);
	if (code == SQLITE_OK)
		log->size = size;
	return code;
}

static int log_sync(sqlite3_file *file, int flags)
{
	int code = flush(file);

	return code == SQLITE_OK ? below(file)->pMethods->xSync(below(file), flags) : code;
}

static int log_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
	int code = flush(file);

	return code == SQLITE_OK ? below(file)->pMethods->xFileSize(below(file), ret_size) : code;
}

static int log_close(sqlite3_file *file)
{
	struct log_file *log = (struct log_file *)file;
	int flushed = flush(file);
	int closed = below(file)->pMethods->xClose(below(file));

	assert(log->len == 0); /* nothing that was gathered is left behind */
	free(log->bytes);
	log->bytes = NULL;
	return flushed == SQLITE_OK ? closed : flushed;
}

static int log_lock(sqlite3_file *file, int level)
{
	return below(file)->pMethods->xLock(below(file), level);
}

static int log_unlock(sqlite3_file *file, int level)
{
	return below(file)->pMethods->xUnlock(below(file), level);
}

static int log_is_reserved(sqlite3_file *file, int *ret_reserved)
{
	return below(file)->pMethods->xCheckReservedLock(below(file), ret_reserved);
}

static int log_control(sqlite3_file *file, int operation, void *argument)
{
	return below(file)->pMethods->xFileControl(below(file), operation, argument);
}

static int log_sector_size(sqlite3_file *file)
{
	return below(file)->pMethods->xSectorSize(below(file));
}

static int log_characteristics(sqlite3_file *file)
{
	return below(file)->pMethods->xDeviceCharacteristics(below(file));
}

static const sqlite3_io_methods log_methods = {
	.iVersion = 1, /* what later versions add is for the database */
	.xClose = log_close,
	.xRead = log_read,
	.xWrite = log_write,
	.xTruncate = log_truncate,
	.xSync = log_sync,
	.xFileSize = log_size,
	.xLock = log_lock,
	.xUnlock = log_unlock,
	.xCheckReservedLock = log_is_reserved,
	.xFileControl = log_control,
	.xSectorSize = log_sector_size,
	.xDeviceCharacteristics = log_characteristics,
};

static int gather_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
	struct gatherer *gatherer = (struct gatherer *)vfs;
	struct log_file *log = (struct log_file *)file;

	if (!(flags & SQLITE_OPEN_WAL))
		return gatherer->below->xOpen(gatherer->below, name, file, flags, ret_flags);
	*log = (struct log_file){.bytes = malloc(GATHERED_BYTES_MAX)};
	if (!log->bytes)
		return SQLITE_NOMEM;
	int code = gatherer->below->xOpen(gatherer->below, name, below(file), flags, ret_flags);
	if (code == SQLITE_OK)
		code = below(file)->pMethods->xFileSize(below(file), &log->size);
	if (code == SQLITE_OK) {
		log->file.pMethods = &log_methods;
		return SQLITE_OK;
	}
	if (below(file)->pMethods) /* SQLite closes a file only if it has methods */
		below(file)->pMethods->xClose(below(file));
	free(log->bytes);
	return code;
}

const char *gather_over(const char *vfs_name)
{
	static struct gatherer gatherers[GATHERERS_MAX];
	sqlite3_vfs *found = sqlite3_vfs_find(vfs_name);

	for (int i = 0; found && i < GATHERERS_MAX; i++) {
		struct gatherer *gatherer = &gatherers[i];
		if (gatherer->below == found)
			return gatherer->name;
		if (gatherer->below)
			continue;
		sqlite3_snprintf(sizeof gatherer->name, gatherer->name, "gather-%s", found->zName);
		gatherer->vfs = *found;
		gatherer->vfs.pNext = NULL;
		gatherer->vfs.zName = gatherer->name;
		gatherer->vfs.szOsFile = (int)sizeof(struct log_file) + found->szOsFile;
		gatherer->vfs.xOpen = gather_open;
		gatherer->below = found;
		return sqlite3_vfs_register(&gatherer->vfs, 0) == SQLITE_OK ? gatherer->name : vfs_name;
	}
	return vfs_name;
}
