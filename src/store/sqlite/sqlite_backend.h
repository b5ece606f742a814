/*
 * Inside the SQLite backend. Nobody outside this directory and its tests includes this.
 *
 *   open.c      a store is opened: lock, settings, migrations, statements; and closed
 *   file.c      paths, files and directories, as far as SQLite does not handle them
 *   fault.c     SQLite's result codes as faults, with a sentence
 *   tasks.c     the rows of tasks
 *   extras.c    what hangs on tasks: bodies, extras, baselines, ids, keys, edges
 *   bodies.c    the latest bodies, in memory
 *   pending.c   rows that wait to be written together
 *   gather.c    a VFS that writes the log in fewer pieces
 *   workers.c   workers
 *   tokens.c    credentials
 *   events.c    events
 *   rows.c      small records, names, requests, facts; and how rows are bound and read
 *   seal.c      the checksum of a row
 *   upkeep.c    transactions, checkpoints
 *   log_check.c the write-ahead log, looked at before SQLite writes to it
 *   check.c     a look at every page and row
 *   mark.c      a file beside the store that says how far it is
 *   query.c     questions in SQL, for people
 *   ballast.c   room to breathe on a full disk
 *   backup.c    a copy while running
 *   restore.c   a copy put in the place of a store
 *   carry.c     what a restore keeps of the store that goes
 *
 * The SQL is in statements.sql and schema/, and becomes sqlite_sql.h when built.
 */
#pragma once

#include <assert.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "store/backend.h"
#include "store/record/task_rest.h"
#include "store/sqlite.h"
#include "store/sqlite/pending.h"
#include "store/sqlite/sqlite_sql.h"

enum {
	SQLITE_STORE_APPLICATION = 0x73746e74, /* "stnt", in the file's header */
	SQLITE_PARAMETERS_MAX = 48,            /* of one statement */
	SQLITE_COMPLAINT_MAX = 512,
	SQLITE_EVENT_BYTES_MAX = 32 << 20,
};

/* A copy under way. The destination is a connection of its own to a file of its own. */
struct backup {
	sqlite3_backup *run; /* NULL: none, or complete */
	sqlite3 *db;
	char *path, *partial;
	int file; /* the partial one; -1: none */
};

/* The integers that are bound to a statement. A bound value stays until another takes its place, and most columns of
 * a row are those of the row before it: what is there already is not bound again. */
struct bound {
	int parameters; /* how many the statement has */
	uint64_t known; /* bit per parameter: values[] has what is bound */
	int64_t values[SQLITE_PARAMETERS_MAX];
};

struct sqlite {
	struct backend backend; /* first: see sqlite_of() */
	sqlite3 *db;
	sqlite3_stmt *statements[SQL_STATEMENT_COUNT];
	struct bound bound[SQL_STATEMENT_COUNT];
	struct pending pending[PENDING_TABLE_COUNT];
	struct kept_body *bodies; /* bodies.c */
	int64_t next_body;        /* task of the body after the last ones read; 0: none */
	struct buf pack;          /* events that were put and are not written yet: see events.c */
	int64_t pack_last;        /* the number of the last event in `pack` */
	char *path;
	int file;               /* only for reading ahead; see file_read_ahead() */
	uint64_t ballast_bytes; /* 0: none is kept */
	char *ballast_path;
	uint32_t wal_pages;                    /* in the log and not yet in the file */
	int64_t unsealed_task, unsealed_event; /* rows up to these may have no checksum: see seal.c */
	bool is_elsewhere; /* in a file system of a test: there are no files of ours beside it */
	bool is_full;      /* the ballast was given back: see ballast.c */
	bool is_log_new;   /* a look made the log, and removes it */
	bool has_mark;     /* of this run: see mark.c */
	bool is_broken;    /* a fault after which nobody knows what is on disk */
	struct backup backup;
	bool is_asked; /* a question of an admin is under way: see sqlite_authorize() */
	int64_t asked_wall_ms, asked_lease_ms; /* … and when */
	char denied[SQLITE_COMPLAINT_MAX];     /* what the question asked for and may not read or do */
	char *tables; /* tables that a question may read; NULL before the first question */
	char complaint[SQLITE_COMPLAINT_MAX];
};

static inline struct sqlite *sqlite_of(struct backend *backend)
{
	return (struct sqlite *)backend;
}

/* fault.c: a fault of the running store. Sets the complaint. */
int sqlite_fault(struct sqlite *store, int code);
int sqlite_fault_of_statement(struct sqlite *store, sqlite3_stmt *statement, int code);
int sqlite_fault_because(struct sqlite *store, int fault, const char *what, const char *path);
int sqlite_fault_page(struct sqlite *store, const char *table);
int sqlite_fault_row(struct sqlite *store, const char *table, int64_t key); /* it holds what we never wrote */
int sqlite_fault_key(struct sqlite *store, const char *table,
	struct span key); /* the same, of a row whose key is a text */

/* A result code as a negative errno. Asked for at once: errno tells which system call failed. */
int sqlite_fault_of(int code);

/* A sentence for people in memory that they free; ret_complaint may be NULL. Returns `fault`. */
int sqlite_complain(char **ret_complaint, int fault, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* What to do about a store that has lost something. */
#define SQLITE_CHOICES                                                                                                 \
	"restore a backup (stintd --restore FILE), go on without what is lost (stintd --accept-loss), or begin a new " \
	"store and keep this one aside (stintd --new-store)"

/* log_check.c: 0, or -EBADMSG: commits lie behind a damaged frame; or a fault. With the lock held, before the first write.
 * *ret_has_remains: frames that belong to no commit lie behind the last one; wipe them before the first write. */
int log_check(struct sqlite *store, const struct sqlite_options *options, bool is_in_doubt,
	bool *ret_has_remains, char **ret_complaint);
int log_wipe_remains(struct sqlite *store); /* a result code of SQLite */

/* restore.c: go on behind the numbers that the mark has, or that any store can have given out (NULL), as after a restore.
 * Returns a result code of SQLite. */
struct mark;
int sqlite_raise(sqlite3 *db, const struct mark *mark);

/* carry.c: what `old` knows of ended tokens and of quarantines goes into the copy `db`, which has this release's schema. Returns a
 * result code of SQLite, of the copy. */
int carry_over(sqlite3 *old, sqlite3 *db);
int carry_tell(sqlite3 *db, const struct restore_teller *teller);

/* check.c: every row of the small tables, meta above all, has its checksum; 0, or -EBADMSG with a complaint. */
int check_small(struct sqlite *store);

/* open.c: brings a store to this release's schema. Returns a result code of SQLite. */
int sqlite_migrate(sqlite3 *db);

/* file.c. All return 0 or a negative errno and keep no descriptor unless they say so. */

/* The file's own name in the real path of its directory: a directory may be a link, a store may not. */
int file_resolve(const char *path, char **ret_path);

/* A new, empty file that only its owner reads; -EEXIST if there is one. */
int file_create(const char *path);

/* 0 for a plain file of ours, -ENOENT, -ELOOP for a link, -EINVAL for anything else, -EPERM for another owner's. */
int file_check(const char *path);

/* Ask the kernel to read the file in one go. Keeps the descriptor: closing any descriptor of a file drops
 * all locks that the process has on it, so it is closed after SQLite's own. */
int file_read_ahead(const char *path);

/* Sync it and have the next read come from the disk, not from what the kernel remembers; none there: 0. */
int file_settle(const char *path);
int file_sync(const char *path);
int file_sync_directory_of(const char *path);
int file_remove(const char *path);    /* none there: 0 */
int64_t file_bytes(const char *path); /* its length; -1: there is none */

/* `path` with `suffix` behind it; NULL if there is no memory. */
char *file_beside(const char *path, const char *suffix);

/* open.c */

/* Before SQLite is used in this process for the first time. */
void sqlite_prepare_library(void);

/* bodies.c: a cache of the bodies put or read last. A body that is found is borrowed until the next one is kept. */
bool bodies_keep(struct sqlite *store, int64_t seq, struct span body); /* false: it is too large */
bool bodies_find(const struct sqlite *store, int64_t seq, struct span *ret_body);
void bodies_drop(struct sqlite *store, int64_t seq);
void bodies_clear(struct sqlite *store);

/* tasks.c: write all that was put and is not written yet, before a commit. */
int sqlite_write_pending(struct sqlite *store);

/* events.c: write the events that were put, before a commit; and forget them, at a rollback. */
int events_flush(struct sqlite *store);
void events_forget(struct sqlite *store);

/* The name of a VFS over the named one (NULL: the system's) that gathers writes to the log. */
const char *gather_over(const char *vfs_name);

/* SQLite's own defences against a schema that somebody else wrote. */
void sqlite_harden(sqlite3 *db);

/* Refuses a file that is not a store, or is of a newer release; `may_be_new` allows an empty file. */
int sqlite_check_kind(sqlite3 *db, const char *path, bool may_be_new, char **ret_complaint);

/* The one integer that a PRAGMA or SELECT gives. Returns a result code of SQLite. */
int sqlite_ask(sqlite3 *db, const char *sql, int64_t *ret_value);

/* The fault of opening `path`, as a sentence. */
int sqlite_complain_open(sqlite3 *db, int code, const char *path, char **ret_complaint);

/* upkeep.c: write the log back and cut it to nothing, between transactions. -ENOSPC: no room to write it back. */
int sqlite_empty_log(struct sqlite *store);

/* upkeep.c: the same, as a result code of SQLite. */
int log_cut(struct sqlite *store);

/* upkeep.c: roll the transaction back, if one is open. It needs no memory. */
void drop_transaction(struct sqlite *store);

/* query_tables.c: the tables `tasks`, `events` and `claims`, for questions. A code of SQLite. */
int query_tables_create(struct sqlite *store);

/* query.c: denies what an admin's question may not read or do, and allows the rest. */
int sqlite_authorize(void *context, int action, const char *first, const char *second, const char *schema,
	const char *accessor);

/* Every function of the interface, declared with the type that backend.h gives it and named sqlite_ and its
 * name there. */
#define X(op) __typeof__(*((struct backend_ops *)0)->op) sqlite_##op;
BACKEND_OPS(X)
#undef X

/* Binding and reading: in order, so that the SQL and the C are read side by side. */

struct binding {
	struct sqlite *store;
	sqlite3_stmt *statement;
	int code; /* of a bind that failed */
};

enum parameter_kind { PARAMETER_NONE, PARAMETER_INT, PARAMETER_TEXT, PARAMETER_BLOB };

struct parameter {
	enum parameter_kind kind;
	int64_t number;
	struct span bytes; /* borrowed until the statement has run */
};

#define INT(value) ((struct parameter){.kind = PARAMETER_INT, .number = (int64_t)(value)})
#define TEXT(text) ((struct parameter){.kind = PARAMETER_TEXT, .bytes = (text)})
#define BLOB(blob) ((struct parameter){.kind = PARAMETER_BLOB, .bytes = (blob)})

/* A statement with its parameters: BIND(store, SQL_GET_EXTRA, INT(seq), INT(kind), INT(n)). An empty
 * parameter stands first, because the list may have no other. */
struct binding bind_start(
	struct sqlite *store, enum sql_statement which, const struct parameter *parameters, size_t count);
#define BIND(store, which, ...)                                                  \
	bind_start(store, which, (const struct parameter[]){{0}, ##__VA_ARGS__}, \
		sizeof((const struct parameter[]){{0}, ##__VA_ARGS__}) / sizeof(struct parameter))

/* Run a statement that gives no rows, with its parameters; and one that has none. */
int statement_run(struct sqlite *store, enum sql_statement which);
int bind_run(struct binding binding);
#define RUN(store, which, ...) bind_run(BIND(store, which, ##__VA_ARGS__))

/* Put a row: its columns, and behind them the seal, which is computed here. */
int run_sealed(
	struct sqlite *store, enum sql_statement which, const struct parameter *parameters, size_t count);
#define RUN_SEALED(store, which, ...)                                            \
	run_sealed(store, which, (const struct parameter[]){{0}, ##__VA_ARGS__}, \
		sizeof((const struct parameter[]){{0}, ##__VA_ARGS__}) / sizeof(struct parameter))

/* Step to the next row: 0, or -ENOENT behind the last one, or a fault; after those two the statement is at
 * rest. A reader that stops before that calls bind_stop(), which returns its verdict. */
int bind_next(struct binding *binding);
int bind_stop(struct binding *binding, int verdict);

struct columns {
	sqlite3_stmt *statement;
	int at;
};

static inline int64_t column_int(struct columns *columns)
{
	return sqlite3_column_int64(columns->statement, columns->at++);
}

static inline uint32_t column_u32(struct columns *columns)
{
	return (uint32_t)column_int(columns);
}

/* Borrowed until the next step. */
static inline struct span column_span(struct columns *columns)
{
	const char *data = sqlite3_column_blob(columns->statement, columns->at);

	return (struct span){data, (size_t)sqlite3_column_bytes(columns->statement, columns->at++)};
}

/* seal.c: the checksum of a row: of some numbers, first its key, and of bytes. */
enum {
	SEAL_NUMBERS_MAX = 4,
};
uint32_t seal_of(const int64_t *numbers, int count, struct span bytes, struct span more);
#define SEAL(bytes, more, ...)                                                                            \
	seal_of((const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t), \
		bytes, more)

/* The column at hand is the seal. False: the row is damaged. */
bool seal_is_right(struct columns *columns, uint32_t seal, bool may_be_missing);
int seals_load(struct sqlite *store);

/* Of a row of the other tables: the statement stands on it and has all of its columns, the seal last. */
bool row_is_sealed(sqlite3_stmt *statement);
uint32_t seal_of_parameters(const struct parameter *parameters, size_t count);
int seals_in_sql(sqlite3 *db); /* makes the function seal(); returns a result code of SQLite */

/* For a list of columns that is written once and used to put and to get. */
#define PUT_INT(field)  INT(field),
#define PUT_TEXT(field) TEXT(field),
#define PUT_BLOB(field) BLOB(field),
#define GET_INT(field)  field = (__typeof__(field))column_int(&columns);
#define GET_TEXT(field) field = column_span(&columns);

/* For a scan: is there another row? False after the last row, and when *fault is set; then the statement is at rest, and
 * *fault is what the scan returns. */
bool bind_more(struct binding *binding, int *fault);
