/*
 * Putting a backup in the place of a store.
 *
 * The copy is made, checked and marked under another name, and takes the store's place by one rename: until
 * then the old store is untouched, after it the new one is whole. The old one's log is written back into it
 * and removed before the rename, because a log that is found beside a file is taken to belong to it.
 *
 * Fences, tokens and ids that the old store gave out are still in somebody's hands. So the copy goes on behind
 * the numbers of both, the backup and the old store, which is read once it is locked and cannot give out more.
 * One that cannot be read, or is not there, may have given out anything: the clock tells what it cannot have.
 * It is taken to have had fewer restores and fewer starts than there were minutes since 2026, and fewer than a
 * million new tasks in each of them. Restoring over nothing twice within one minute is the one way left to
 * repeat a number. Rejected: a random generation (a fence must rise), and a file of numbers beside the store
 * (lost together with it).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/take.h"
#include "core/flow/execution.h"
#include "store/sqlite/mark.h"

/* restore.sql writes them by number. */
_Static_assert(META_GENERATION == 1, "as in restore.sql");
_Static_assert(META_STARTS == 2, "as in restore.sql");
_Static_assert(META_TASK_FLOOR == 3, "as in restore.sql");
_Static_assert(META_RESTORED == 5, "as in restore.sql");
_Static_assert(META_KEY_OF_ADMIN == 15, "as in restore.sql");
_Static_assert(TOKEN_JOIN == 10, "as in restore.sql");
_Static_assert(SMALL_TOKEN == 60, "as in restore.sql");
_Static_assert(META_EXECUTION == 9, "as in restore.sql");
_Static_assert(RESTORED == 1, "as in restore.sql");
_Static_assert(RESTORED_OVER_DISARMED == 2, "as in restore.sql");

#define CLOCK_BEGINS_S   INT64_C(1767225600) /* 2026 */
#define TASKS_PER_MINUTE INT64_C(1000000)

enum {
	/* Of generations and of starts. A token has 24 bits for the start; a fence has room for 18,000,000
	 * generations. Minutes reach it in 2057. */
	NUMBER_MAX = (1 << 24) - 1,
};

/* The highest numbers that the old store may have given out, and whether it handed out nothing any more. */
struct given_out {
	int64_t generation, starts, task;
	bool disarmed;
};

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

static int open_copy(const char *path, sqlite3 **ret_db)
{
	int code = sqlite3_open_v2(path, ret_db,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE,
		NULL);

	if (!*ret_db)
		return SQLITE_NOMEM;
	sqlite_harden(*ret_db);
	return code == SQLITE_OK ? seals_in_sql(*ret_db) : code;
}

/* Half a copy is thrown away, so it needs no log. */
static int settle_copy(sqlite3 *db)
{
	return sqlite3_exec(db,
		"PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL",
		NULL, NULL, NULL);
}

static int make_copy(const char *backup_path, const char *copy_path, char **ret_complaint)
{
	cleanup(connection_close_at) sqlite3 *from = NULL;
	cleanup(connection_close_at) sqlite3 *to = NULL;
	int code, fault = open_backup(backup_path, &from, ret_complaint);

	if (fault)
		return fault;
	code = open_copy(copy_path, &to);
	if (code == SQLITE_OK)
		code = copy_pages(from, to);
	if (code == SQLITE_OK)
		code = settle_copy(to);
	if (code == SQLITE_OK)
		code = check_copy(to);
	if (code == SQLITE_CORRUPT)
		return sqlite_complain(
			ret_complaint, -EIO, "%s is damaged; take an older backup", backup_path);
	if (code != SQLITE_OK)
		return sqlite_complain(ret_complaint, sqlite_fault_of(code), "cannot copy %s to %s: %s",
			backup_path, copy_path, sqlite3_errmsg(to));
	return 0;
}

/* What given_out is for restore.sql. */
static int tell_given_out(sqlite3 *db, const struct given_out *given_out)
{
	const int64_t values[] = {
		given_out->generation, given_out->starts, given_out->task, given_out->disarmed};
	sqlite3_stmt *statement;
	int code = sqlite3_exec(db,
		"PRAGMA temp_store = MEMORY;"
		"DROP TABLE IF EXISTS temp.given_out;"
		"CREATE TABLE temp.given_out (key INTEGER PRIMARY KEY, value INTEGER NOT NULL)",
		NULL, NULL, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_prepare_v2(db,
			"INSERT INTO temp.given_out (key, value) VALUES (1, ?), (2, ?), (3, ?), (9, ?)", -1,
			&statement, NULL);
	if (code != SQLITE_OK)
		return code;
	for (int i = 0; i < 4; i++)
		sqlite3_bind_int64(statement, i + 1, values[i]);
	sqlite3_step(statement);
	return sqlite3_finalize(statement);
}

static int mark_copy(const char *path, sqlite3 *old, const struct given_out *given_out,
	const struct restore_teller *teller, char **ret_complaint)
{
	cleanup(connection_close_at) sqlite3 *db = NULL;
	int code = open_copy(path, &db);

	if (code == SQLITE_OK)
		code = settle_copy(db);
	if (code == SQLITE_OK)
		code = sqlite_migrate(db);
	if (code == SQLITE_OK && old)
		code = carry_over(old, db);
	if (code == SQLITE_OK && teller)
		code = carry_tell(db, teller);
	if (code == SQLITE_OK)
		code = tell_given_out(db, given_out);
	if (code == SQLITE_OK)
		code = sqlite3_exec(db, sql_restore, NULL, NULL, NULL);
	if (code != SQLITE_OK)
		return sqlite_complain(
			ret_complaint, sqlite_fault_of(code), "cannot mark %s: %s", path, sqlite3_errmsg(db));
	return 0;
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* More than a store that nobody can ask can have given out, as long as the clock is right. */
static struct given_out given_out_by_now(void)
{
	int64_t minutes = larger(((int64_t)time(NULL) - CLOCK_BEGINS_S) / 60, 0);

	if (minutes > NUMBER_MAX - 1) /* a clock that is wrong, or a release that is very old */
		minutes = 0;
	return (struct given_out){minutes, minutes, minutes * TASKS_PER_MINUTE, false};
}

static void given_out_raise(struct given_out *given_out, const struct mark *mark)
{
	given_out->generation = larger(given_out->generation, mark->generation);
	given_out->starts = larger(given_out->starts, mark->starts);
	given_out->task = larger(given_out->task, mark->task);
}

static bool mark_is_possible(const struct mark *mark)
{
	return mark->generation >= 0 && mark->generation < NUMBER_MAX && mark->starts >= 0 &&
		mark->starts < NUMBER_MAX && mark->task >= 0 && mark->task < INT64_MAX / 2;
}

int sqlite_raise(sqlite3 *db, const struct mark *mark)
{
	struct given_out given_out = {0};

	if (mark && mark_is_possible(mark))
		given_out_raise(&given_out, mark);
	else
		given_out = given_out_by_now();
	int code = tell_given_out(db, &given_out);
	if (code == SQLITE_OK)
		code = sqlite3_exec(db, sql_restore, NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_exec(db, "DROP TABLE temp.given_out", NULL, NULL, NULL);
	return code;
}

/* What cannot be read is disarmed, and what was never written is not. So is a store that was restored over one that was
 * disarmed, and never started since. */
static bool is_disarmed(sqlite3 *old)
{
	static const char *const questions[] = {
		"SELECT count(*) FROM sqlite_schema WHERE name = 'meta'",
		"SELECT coalesce((SELECT value FROM meta WHERE key = 9), 0)",
		"SELECT coalesce((SELECT value FROM meta WHERE key = 5), 0)",
	};
	int64_t answers[3];

	for (int i = 0; i < 3; i++) {
		if (sqlite_ask(old, questions[i], &answers[i]) != SQLITE_OK)
			return true;
		if (i == 0 && answers[0] == 0)
			return false;
	}
	return !execution_is_armed(answers[1]) || answers[2] == RESTORED_OVER_DISARMED;
}

/* False if it is damaged, or was never used: a number that no store reaches is damage too. */
static bool given_out_ask(sqlite3 *old, struct given_out *ret_given_out)
{
	static const char *const questions[] = {
		"SELECT coalesce((SELECT value FROM meta WHERE key = 1), 1)",
		"SELECT coalesce((SELECT value FROM meta WHERE key = 2), 0)",
		"SELECT max(0, ifnull((SELECT value FROM meta WHERE key = 3), 0), ifnull((SELECT max(seq) FROM task), 0))",
	};
	int64_t answers[3];

	for (int i = 0; i < 3; i++) {
		if (sqlite_ask(old, questions[i], &answers[i]) != SQLITE_OK)
			return false;
		if (answers[i] < 0 || answers[i] >= (i < 2 ? NUMBER_MAX : INT64_MAX / 2))
			return false;
	}
	*ret_given_out = (struct given_out){answers[0], answers[1], answers[2], false};
	return true;
}

/* Lock the store that is to go and empty its log. A file that SQLite cannot read has nothing to keep, and
 * a damaged store is what people restore over; what is whole and not a store of ours stays. */
static int lock_old(const char *path, sqlite3 **ret_db, char **ret_complaint)
{
	int code = sqlite3_open_v2(path, ret_db,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE,
		NULL);
	int keep = 1;
	int fault;

	if (!*ret_db)
		return -ENOMEM;
	/* Closing it must not remove a log by name that the new store has begun, nor one that is kept. */
	sqlite3_file_control(*ret_db, "main", SQLITE_FCNTL_PERSIST_WAL, &keep);
	if (code == SQLITE_OK)
		code = sqlite3_exec(*ret_db, "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT", NULL,
			NULL, NULL);
	if (code == SQLITE_NOTADB || (code & 0xff) == SQLITE_CORRUPT)
		return 0;
	if (code != SQLITE_OK)
		return sqlite_complain_open(*ret_db, code, path, ret_complaint);
	code = sqlite3_wal_checkpoint_v2(*ret_db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	if (code != SQLITE_OK && (code & 0xff) != SQLITE_CORRUPT)
		return sqlite_complain_open(*ret_db, code, path, ret_complaint);
	fault = sqlite_check_kind(*ret_db, path, true, ret_complaint);
	if (fault != -EIO)
		return fault;
	if (ret_complaint) {
		free(*ret_complaint);
		*ret_complaint = NULL;
	}
	return 0;
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

/* The log of a store that cannot be read was not written back: it is all there is of what was said last. Two names for
 * one file for no longer than a moment: what is written by one of them with the other's log beside it is lost. */
static int keep_old(const char *path, const char *kept_path)
{
	cleanup(free_at) char *log = file_beside(path, "-wal");
	cleanup(free_at) char *kept_log = file_beside(kept_path, "-wal");
	struct stat stat_buf;

	if (!log || !kept_log)
		return -ENOMEM;
	if (link(path, kept_path) < 0)
		return errno == ENOENT || errno == EPERM || errno == EOPNOTSUPP ? 0 : -errno;
	if (lstat(log, &stat_buf) < 0 || stat_buf.st_size == 0)
		return 0;
	return rename(log, kept_log) < 0 ? -errno : 0;
}

static int put_in_place(const char *copy_path, const char *path, const char *kept_path, char **ret_complaint)
{
	int fault = file_sync(copy_path);

	if (fault)
		return sqlite_complain(
			ret_complaint, fault, "cannot sync %s: %s", copy_path, strerror(-fault));
	fault = kept_path ? keep_old(path, kept_path) : 0;
	if (fault)
		return sqlite_complain(
			ret_complaint, fault, "cannot keep %s as %s: %s", path, kept_path, strerror(-fault));
	fault = remove_leftovers(path);
	if (!fault) /* it speaks of the store that goes; the next start writes one of the store that comes */
		fault = mark_remove(path);
	if (!fault && rename(copy_path, path) < 0)
		fault = -errno;
	if (!fault)
		fault = file_sync_directory_of(path);
	if (fault)
		sqlite_complain(
			ret_complaint, fault, "cannot put the copy at %s: %s", path, strerror(-fault));
	return fault;
}

/* The old store stays locked until the new one has its name: nobody gets a number between the question and that. */
static int replace(const char *copy_path, const char *path, const char *kept_path,
	const struct restore_teller *teller, char **ret_complaint)
{
	cleanup(connection_close_at) sqlite3 *old = NULL;
	struct given_out given_out;
	struct mark mark;
	int fault = file_check(path);

	if (fault && fault != -ENOENT)
		return sqlite_complain(ret_complaint, fault, "%s is not a plain file of ours", path);
	fault = fault ? 0 : lock_old(path, &old, ret_complaint);
	if (fault)
		return fault;
	bool has_mark = mark_read(path, &mark, NULL) == 0 && mark_is_possible(&mark);
	if (!old || !given_out_ask(old, &given_out))
		given_out = has_mark ? (struct given_out){0} : given_out_by_now();
	if (has_mark)
		given_out_raise(&given_out, &mark);
	given_out.disarmed = old && is_disarmed(old);
	fault = mark_copy(copy_path, old, &given_out, teller, ret_complaint);
	return fault ? fault : put_in_place(copy_path, path, kept_path, ret_complaint);
}

static int restore_through(const char *backup_path, const char *copy_path, const char *path,
	const char *kept_path, const struct restore_teller *teller, char **ret_complaint)
{
	int fault = file_remove(copy_path);

	if (!fault)
		fault = file_create(copy_path);
	if (fault)
		return sqlite_complain(
			ret_complaint, fault, "cannot create %s: %s", copy_path, strerror(-fault));
	fault = make_copy(backup_path, copy_path, ret_complaint);
	if (!fault)
		fault = replace(copy_path, path, kept_path, teller, ret_complaint);
	if (fault)
		file_remove(copy_path);
	return fault;
}

int sqlite_restore(const char *backup_path, const char *store_path, const char *kept_path,
	const struct restore_teller *teller, char **ret_complaint)
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
	return restore_through(backup_path, copy_path, path, kept_path, teller, ret_complaint);
}

/* ---- aside ---- */

/* Under its lock. The mark has the higher numbers where the store has lost some. */
static int move_aside(sqlite3 *old, const char *path, const char *kept_path)
{
	cleanup(free_at) char *log = file_beside(path, "-wal");
	cleanup(free_at) char *kept_log = file_beside(kept_path, "-wal");
	struct mark mark;
	int fault = mark_read(path, &mark, NULL);

	if (!log || !kept_log)
		return -ENOMEM;
	if (fault == -ENOENT && old && mark_of(old, &mark) == SQLITE_OK)
		fault = mark_write(path, &mark);
	if (fault && fault != -ENOENT && fault != -EBADMSG)
		return fault;
	if (renameat2(AT_FDCWD, path, AT_FDCWD, kept_path, RENAME_NOREPLACE) < 0)
		return -errno;
	if (rename(log, kept_log) < 0 && errno != ENOENT)
		return -errno;
	return file_sync_directory_of(path);
}

/* Nobody serves a file that SQLite cannot read, and nothing of it is written back. */
static int lock_aside(const char *path, sqlite3 **ret_db, char **ret_complaint)
{
	int code = open_copy(path, ret_db);

	if (!*ret_db)
		return -ENOMEM;
	sqlite3_db_config(*ret_db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_exec(*ret_db, "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT", NULL,
			NULL, NULL);
	if (code == SQLITE_OK || code == SQLITE_NOTADB || (code & 0xff) == SQLITE_CORRUPT)
		return 0;
	return sqlite_complain_open(*ret_db, code, path, ret_complaint);
}

int sqlite_set_aside(const char *store_path, const char *kept_path, char **ret_complaint)
{
	cleanup(free_at) char *path = NULL;
	cleanup(connection_close_at) sqlite3 *old = NULL;
	int fault;

	if (ret_complaint)
		*ret_complaint = NULL;
	sqlite_prepare_library();
	fault = file_resolve(store_path, &path);
	if (!fault && file_bytes(path) < 0)
		return 0;
	if (!fault)
		fault = file_check(path);
	if (fault)
		return sqlite_complain(
			ret_complaint, fault, "no store at %s: %s", store_path, strerror(-fault));
	if (file_bytes(path) > 0)
		fault = lock_aside(path, &old, ret_complaint);
	if (fault)
		return fault;
	fault = move_aside(old, path, kept_path);
	return fault ? sqlite_complain(ret_complaint, fault, "cannot keep %s as %s: %s", path, kept_path,
			       strerror(-fault))
		     : 0;
}
