/*
 * A copy while running, some pages at a time, by the connection that owns the store. Pages that change
 * behind the copier are copied again by SQLite itself as they are committed, so the copy is the store at
 * the moment of its completion. It grows under another name and gets its own only when it is whole and synced.
 *
 * What was copied goes to the disk as it is copied: if it all waited for the sync at the end, that one would hold up
 * every turn for as long as the disk needs for the whole store.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/take.h"
#include "store/sqlite/sqlite_backend.h"

static int backup_fault(struct sqlite *store, int code)
{
	int fault = sqlite_fault_of(code);

	snprintf(store->complaint, sizeof(store->complaint), "backup to %s: %s (%d)", store->backup.path,
		sqlite3_errmsg(store->backup.db), code);
	store->backend.complaint = store->complaint;
	return fault;
}

static int backup_open(struct sqlite *store)
{
	struct backup *backup = &store->backup;
	int code = sqlite3_open_v2(backup->partial, &backup->db,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE,
		NULL);

	/* Half a copy is thrown away, so nothing of it needs a journal; it is synced once, when it is whole. */
	if (code == SQLITE_OK)
		code = sqlite3_exec(backup->db,
			"PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF",
			NULL, NULL, NULL);
	if (code != SQLITE_OK)
		return backup_fault(store, code);
	backup->run = sqlite3_backup_init(backup->db, "main", store->db, "main");
	return backup->run ? 0 : backup_fault(store, sqlite3_extended_errcode(backup->db));
}

static int backup_place(struct sqlite *store, const char *path)
{
	struct backup *backup = &store->backup;
	int fault = file_resolve(path, &backup->path);

	if (fault)
		return fault;
	backup->partial = file_beside(backup->path, ".partial");
	if (!backup->partial)
		return -ENOMEM;
	if (access(backup->path, F_OK) == 0)
		return -EEXIST; /* an older backup may be the only one */
	fault = file_remove(backup->partial);
	if (!fault)
		fault = file_create(backup->partial);
	if (fault)
		return fault;
	backup->file = open(backup->partial, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	return backup->file < 0 ? -errno : 0;
}

/* Starts the write-back of what was written since the last call, and waits for the write-back that the last call started. The
 * kernel reports an error of the file only once, so an error here must not be ignored. */
static int backup_push(struct sqlite *store)
{
	struct backup *backup = &store->backup;

	if (sync_file_range(backup->file, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE) == 0)
		return 0;
	if (errno != EIO && errno != ENOSPC && errno != EDQUOT)
		return 0; /* a file system that cannot: the sync at the end does it all */
	return sqlite_fault_because(store, -errno, "cannot write", backup->partial);
}

int sqlite_backup_begin(struct backend *backend, const char *path)
{
	struct sqlite *store = sqlite_of(backend);
	int fault;

	assert(!store->backup.path);
	fault = backup_place(store, path);
	if (fault)
		sqlite_fault_because(store, fault, "no place for a backup at", path);
	else
		fault = backup_open(store);
	if (fault)
		sqlite_backup_end(backend);
	return fault;
}

/* The keys of derived tokens stay out of it. Deleted bytes are overwritten: see schema/004-seals.sql. Without a journal the page is
 * changed in place. */
static int drop_secrets(sqlite3 *db)
{
	return sqlite3_exec(db, "PRAGMA secure_delete = 1; DELETE FROM secret", NULL, NULL, NULL);
}

/* Out of the log and into one file that opens anywhere, read-only media included. */
static int backup_seal(struct sqlite *store)
{
	struct backup *backup = &store->backup;
	int code = sqlite3_backup_finish(take(backup->run));

	if (code == SQLITE_OK)
		code = drop_secrets(backup->db);
	if (code == SQLITE_OK)
		code = sqlite3_exec(backup->db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
	if (code != SQLITE_OK)
		return backup_fault(store, code);
	code = sqlite3_close(take(backup->db));
	assert(code == SQLITE_OK);
	return 0;
}

static int backup_publish(struct sqlite *store)
{
	struct backup *backup = &store->backup;
	int fault = fsync(backup->file) < 0 ? -errno : 0;

	if (!fault && renameat2(AT_FDCWD, backup->partial, AT_FDCWD, backup->path, RENAME_NOREPLACE) < 0)
		fault = -errno;
	if (!fault)
		fault = file_sync_directory_of(backup->path);
	return fault ? sqlite_fault_because(store, fault, "cannot finish the backup", backup->path) : 0;
}

int sqlite_backup_step(struct backend *backend, uint32_t pages, uint32_t *ret_remaining)
{
	struct sqlite *store = sqlite_of(backend);
	struct backup *backup = &store->backup;
	int code, remaining, fault;

	assert(backup->run);
	assert(sqlite3_get_autocommit(store->db));
	code = sqlite3_backup_step(backup->run, pages < INT_MAX ? (int)pages : INT_MAX);
	if (code == SQLITE_OK) {
		remaining = sqlite3_backup_remaining(backup->run);
		*ret_remaining = remaining > 0 ? (uint32_t)remaining : 1;
		return backup_push(store);
	}
	if (code != SQLITE_DONE)
		return backup_fault(store, code);
	fault = backup_seal(store);
	if (!fault)
		fault = backup_publish(store);
	if (!fault)
		*ret_remaining = 0;
	return fault;
}

void sqlite_backup_end(struct backend *backend)
{
	struct sqlite *store = sqlite_of(backend);
	struct backup *backup = &store->backup;

	if (backup->run)
		sqlite3_backup_finish(backup->run);
	sqlite3_close(backup->db);
	if (backup->file >= 0)
		close(backup->file);
	if (backup->partial)
		file_remove(backup->partial); /* gone already if it was published */
	free(backup->partial);
	free(backup->path);
	*backup = (struct backup){.file = -1};
}
