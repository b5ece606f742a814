/*
 * Putting a backup in the place of a store.
 *
 * The copy is made, checked and marked under another name, and takes the store's place by one rename: until
 * then the old store is untouched, after it the new one is whole. The old one's log is written back into it
 * and removed before the rename, because a log that is found beside a file is taken to belong to it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/take.h"
#include "store/sqlite/sqlite_backend.h"

/* restore.sql writes them by number. */
_Static_assert(META_GENERATION == 1, "as in restore.sql");
_Static_assert(META_TASK_FLOOR == 3, "as in restore.sql");
_Static_assert(META_RESTORED == 5, "as in restore.sql");

static void connection_close_at(sqlite3 **db)
{
	int code = sqlite3_close(*db);

	assert(code == SQLITE_OK);
}

static int copy_pages(sqlite3 *from, sqlite3 *to)
{
	sqlite3_backup *run = sqlite3_backup_init(to, "main", from, "main");
	int code;

	if (!run)
		return sqlite3_extended_errcode(to);
	code = sqlite3_backup_step(run, -1);
	sqlite3_backup_finish(run); /* knows no more than the step, and keeps quiet about a lock */
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* Not only the pages that are read first: a store is not replaced by something that fails next week. */
static int check_copy(sqlite3 *db)
{
	sqlite3_stmt *statement;
	const unsigned char *answer;
	int code = sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &statement, NULL);

	if (code != SQLITE_OK)
		return code;
	code = sqlite3_step(statement);
	answer = code == SQLITE_ROW ? sqlite3_column_text(statement, 0) : NULL;
	if (code == SQLITE_ROW)
		code = answer && strcmp((const char *)answer, "ok") == 0 ? SQLITE_OK : SQLITE_CORRUPT;
	sqlite3_finalize(statement);
	return code;
}

static int mark_copy(sqlite3 *db)
{
	int code = sqlite3_exec(db,
		"PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL",
		NULL, NULL, NULL);

	if (code == SQLITE_OK)
		code = check_copy(db);
	return code == SQLITE_OK ? sqlite3_exec(db, sql_restore, NULL, NULL, NULL) : code;
}

static int open_backup(const char *path, sqlite3 **ret_db, char **ret_complaint)
{
	int code = sqlite3_open_v2(
		path, ret_db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);

	if (!*ret_db)
		return -ENOMEM;
	if (code != SQLITE_OK)
		return sqlite_complain_open(*ret_db, code, path, ret_complaint);
	return sqlite_check_kind(*ret_db, path, false, ret_complaint);
}

static int make_copy(const char *backup_path, const char *copy_path, char **ret_complaint)
{
	cleanup(connection_close_at) sqlite3 *from = NULL;
	cleanup(connection_close_at) sqlite3 *to = NULL;
	int code, fault = open_backup(backup_path, &from, ret_complaint);

	if (fault)
		return fault;
	code = sqlite3_open_v2(copy_path, &to,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE,
		NULL);
	if (!to)
		return -ENOMEM;
	sqlite_harden(to);
	if (code == SQLITE_OK)
		code = copy_pages(from, to);
	if (code == SQLITE_OK)
		code = mark_copy(to);
	if (code == SQLITE_CORRUPT)
		return sqlite_complain(
			ret_complaint, -EIO, "%s is damaged; take an older backup", backup_path);
	if (code != SQLITE_OK)
		return sqlite_complain(ret_complaint, sqlite_fault_of(code), "cannot copy %s to %s: %s",
			backup_path, copy_path, sqlite3_errmsg(to));
	return 0;
}

/* Lock the store that is to go and empty its log. A file that SQLite cannot read has nothing to keep, and
 * a damaged store is what people restore over. */
static int lock_old(const char *path, sqlite3 **ret_db, char **ret_complaint)
{
	int code = sqlite3_open_v2(path, ret_db,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE,
		NULL);
	int keep = 1;

	if (!*ret_db)
		return -ENOMEM;
	if (code == SQLITE_OK)
		code = sqlite3_exec(*ret_db, "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT", NULL,
			NULL, NULL);
	if (code == SQLITE_NOTADB || (code & 0xff) == SQLITE_CORRUPT)
		return 0;
	if (code != SQLITE_OK)
		return sqlite_complain_open(*ret_db, code, path, ret_complaint);
	/* Closing it must not remove a log by name that the new store has begun. */
	sqlite3_file_control(*ret_db, "main", SQLITE_FCNTL_PERSIST_WAL, &keep);
	code = sqlite3_wal_checkpoint_v2(*ret_db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	if (code != SQLITE_OK && (code & 0xff) != SQLITE_CORRUPT)
		return sqlite_complain_open(*ret_db, code, path, ret_complaint);
	return sqlite_check_kind(*ret_db, path, true, ret_complaint);
}

static int remove_leftovers(const char *path)
{
	static const char *const suffixes[] = {"-wal", "-shm", "-journal"};

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		cleanup(free_at) char *name = file_beside(path, suffixes[i]);
		int fault = name ? file_remove(name) : -ENOMEM;

		if (fault)
			return fault;
	}
	return 0;
}

static int replace(const char *copy_path, const char *path, char **ret_complaint)
{
	cleanup(connection_close_at) sqlite3 *old = NULL;
	int fault = file_check(path);

	if (fault && fault != -ENOENT)
		return sqlite_complain(ret_complaint, fault, "%s is not a plain file of ours", path);
	if (!fault)
		fault = lock_old(path, &old, ret_complaint);
	else
		fault = 0;
	if (fault)
		return fault;
	fault = remove_leftovers(path);
	if (!fault && rename(copy_path, path) < 0)
		fault = -errno;
	if (!fault)
		fault = file_sync_directory_of(path);
	if (fault)
		sqlite_complain(
			ret_complaint, fault, "cannot put the copy at %s: %s", path, strerror(-fault));
	return fault;
}

static int restore_through(
	const char *backup_path, const char *copy_path, const char *path, char **ret_complaint)
{
	int fault = file_remove(copy_path);

	if (!fault)
		fault = file_create(copy_path);
	if (fault)
		return sqlite_complain(
			ret_complaint, fault, "cannot create %s: %s", copy_path, strerror(-fault));
	fault = make_copy(backup_path, copy_path, ret_complaint);
	if (!fault) {
		fault = file_sync(copy_path);
		if (fault)
			sqlite_complain(
				ret_complaint, fault, "cannot sync %s: %s", copy_path, strerror(-fault));
	}
	if (!fault)
		fault = replace(copy_path, path, ret_complaint);
	if (fault)
		file_remove(copy_path);
	return fault;
}

int sqlite_restore(const char *backup_path, const char *store_path, char **ret_complaint)
{
	cleanup(free_at) char *path = NULL;
	cleanup(free_at) char *copy_path = NULL;
	int fault;

	if (ret_complaint)
		*ret_complaint = NULL;
	sqlite_prepare_library();
	fault = file_resolve(store_path, &path);
	if (fault)
		return sqlite_complain(
			ret_complaint, fault, "no place for a store at %s: %s", store_path, strerror(-fault));
	copy_path = file_beside(path, ".restoring");
	if (!copy_path)
		return -ENOMEM;
	return restore_through(backup_path, copy_path, path, ret_complaint);
}
