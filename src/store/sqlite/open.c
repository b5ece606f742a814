/*
 * Opening a store: one connection in one process owns the file.
 *
 * The order matters. First the lock, so that a second opener is turned away before it has changed
 * anything; then the question whether the file is a store of ours and of a release we know; only then the
 * settings that write. SQLite up to 3.51.2 can lose pages when one connection checkpoints while another one
 * writes: with the lock held from here to the end there is no other one.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/take.h"
#include "store/sqlite/mark.h"

#define BALLAST_BYTES (8ull << 20)

enum {
	LOCK_TRIES_MAX = 8,
	LOCK_PAUSE_MS_MAX = 32,
	STORE_BYTES_MIN = 512, /* SQLite begins anew in a file that is shorter */
};

/* What the mark beside the store says, and whether the store has lost what it says. */
struct found {
	bool has_mark;
	bool has_lost;    /* and the caller goes on without it */
	bool has_remains; /* of a torn turn, in the log */
	struct mark mark;
};

static const struct backend_ops sqlite_ops = {.name = "sqlite",
#define X(op) .op = sqlite_##op,
	BACKEND_OPS(X)
#undef X
};

static void library_configure(void)
{
	/* Counting every allocation costs a lock each; nobody reads the counts. Refused, and no matter, when
	 * the process has used SQLite before. */
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

void sqlite_prepare_library(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, library_configure);
}

int sqlite_ask(sqlite3 *db, const char *sql, int64_t *ret_value)
{
	sqlite3_stmt *statement;
	int code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);

	if (code != SQLITE_OK)
		return code;
	code = sqlite3_step(statement);
	if (code == SQLITE_ROW)
		*ret_value = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return code == SQLITE_ROW ? SQLITE_OK : code;
}

int sqlite_complain_open(sqlite3 *db, int code, const char *path, char **ret_complaint)
{
	int system = sqlite3_system_errno(db);

	switch (code & 0xff) {
	case SQLITE_BUSY:
		return sqlite_complain(ret_complaint, -EBUSY,
			"%s is in use by another stintd; stop that one first, or give this one a store of its own",
			path);
	case SQLITE_NOTADB:
		return sqlite_complain(ret_complaint, -EPROTO, "%s is not a stint store", path);
	case SQLITE_CORRUPT:
		return sqlite_complain(ret_complaint, -EIO, "%s is damaged (%s); restore a backup", path,
			sqlite3_errmsg(db));
	case SQLITE_CANTOPEN:
		return sqlite_complain(ret_complaint, system ? -system : -EIO, "cannot open %s: %s", path,
			system ? strerror(system) : sqlite3_errmsg(db));
	default:
		return sqlite_complain(ret_complaint, sqlite_fault_of(code), "cannot open %s: %s (%d)", path,
			sqlite3_errmsg(db), code);
	}
}

int sqlite_check_kind(sqlite3 *db, const char *path, bool may_be_new, char **ret_complaint)
{
	int64_t application = 0, version = 0, tables = 0;
	int code = sqlite_ask(db, "PRAGMA application_id", &application);

	if (code == SQLITE_OK)
		code = sqlite_ask(db, "PRAGMA user_version", &version);
	if (code == SQLITE_OK)
		code = sqlite_ask(db, "SELECT count(*) FROM sqlite_schema", &tables);
	if (code != SQLITE_OK)
		return sqlite_complain_open(db, code, path, ret_complaint);
	if (may_be_new && !application && !version && !tables)
		return 0;
	if (application != SQLITE_STORE_APPLICATION)
		return sqlite_complain(ret_complaint, -EPROTO, "%s is not a stint store", path);
	if (version < 0)
		return sqlite_complain(ret_complaint, -EIO,
			"%s is damaged (its schema is called %d); restore a backup", path, (int)version);
	if (version > SQL_MIGRATION_COUNT)
		return sqlite_complain(ret_complaint, -EPROTO,
			"%s was written by a newer stintd (schema %d, this one knows up to %d); install that release",
			path, (int)version, (int)SQL_MIGRATION_COUNT);
	return 0;
}

/* A place for the store that is a plain file of ours. */
static int prepare_file(const char *path, char **ret_complaint)
{
	int fault = file_create(path);

	if (fault == -EEXIST)
		fault = file_check(path);
	else if (!fault)
		fault = file_sync_directory_of(path); /* a file that is not in its directory holds nothing */
	switch (fault) {
	case 0:
		return 0;
	case -ELOOP:
		return sqlite_complain(
			ret_complaint, fault, "%s is a symbolic link; name the file itself", path);
	case -EINVAL:
		return sqlite_complain(ret_complaint, fault, "%s is not a plain file", path);
	case -EPERM:
		return sqlite_complain(ret_complaint, fault, "%s belongs to another user", path);
	default:
		return sqlite_complain(ret_complaint, fault, "cannot create %s: %s", path, strerror(-fault));
	}
}

/*
 * The process before us may have ended because a sync failed. The kernel then still shows log frames that never
 * reached the disk; committing on top of them would lose what we acknowledge when the power goes. So the log is
 * read from the disk itself. The database needs no such care: whatever of it is in doubt is still in the log.
 */
static int settle_log(const char *path, char **ret_complaint)
{
	cleanup(free_at) char *log = file_beside(path, "-wal");
	int fault = log ? file_settle(log) : -ENOMEM;

	if (fault)
		return sqlite_complain(
			ret_complaint, fault, "cannot sync %s-wal: %s", path, strerror(-fault));
	return 0;
}

void sqlite_harden(sqlite3 *db)
{
	sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
}

static bool syncs_every_commit(const char *synchronous)
{
	return !synchronous || strcmp(synchronous, "FULL") == 0 || strcmp(synchronous, "EXTRA") == 0;
}

static int open_connection(struct sqlite *store, const struct sqlite_options *options, char **ret_complaint)
{
	const char *vfs = syncs_every_commit(options->synchronous) ? gather_over(options->vfs) : options->vfs;
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
	int code;

	/* A file system of a test makes its own files and follows nothing. */
	flags |= options->vfs ? SQLITE_OPEN_CREATE : SQLITE_OPEN_NOFOLLOW;
	code = sqlite3_open_v2(store->path, &store->db, flags, vfs);
	if (!store->db)
		return -ENOMEM;
	if (code != SQLITE_OK)
		return sqlite_complain_open(store->db, code, store->path, ret_complaint);
	if (sqlite3_db_readonly(store->db, "main"))
		return sqlite_complain(ret_complaint, -EROFS, "%s cannot be written", store->path);
	/* Until it is known to be whole, nothing of it is changed: not by closing it either. */
	sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	sqlite_harden(store->db);
	code = seals_in_sql(store->db);
	if (code != SQLITE_OK)
		return sqlite_complain_open(store->db, code, store->path, ret_complaint);
	sqlite3_set_authorizer(store->db, sqlite_authorize, store);
	return 0;
}

/* Loss that the caller accepts is no fault. */
static int meet_loss(
	const struct sqlite_options *options, int fault, struct found *found, char **ret_complaint)
{
	if (fault != -EBADMSG || !options->accept_loss)
		return fault;
	if (ret_complaint) {
		free(*ret_complaint);
		*ret_complaint = NULL;
	}
	found->has_lost = true;
	return 0;
}

static int compare_with_mark(struct sqlite *store, const struct found *found, char **ret_complaint)
{
	struct mark here;
	int64_t version = 0;

	/* numbers that a flipped bit made say nothing about the store, and the start names their rows */
	if (sqlite_ask(store->db, "PRAGMA user_version", &version) == SQLITE_OK &&
		version == SQL_MIGRATION_COUNT && check_small(store) != 0)
		return 0;
	int code = found->has_mark ? mark_of(store->db, &here) : SQLITE_OK;

	if ((code & 0xff) == SQLITE_CORRUPT)
		return 0; /* whoever reads that table next names it */
	if (code != SQLITE_OK)
		return sqlite_complain_open(store->db, code, store->path, ret_complaint);
	return found->has_mark ? mark_compare(store->path, &found->mark, &here, ret_complaint) : 0;
}

/* With the lock held, and before the first write. */
static int check_whole(
	struct sqlite *store, const struct sqlite_options *options, struct found *found, char **ret_complaint)
{
	int64_t version = 0;
	/* Without a sync per commit any number of turns may lie there torn. */
	int fault = syncs_every_commit(options->synchronous)
		? log_check(store, options, found->mark.is_in_doubt, &found->has_remains, ret_complaint)
		: 0;

	fault = meet_loss(options, fault, found, ret_complaint);
	if (!fault)
		fault = sqlite_check_kind(store->db, store->path, true, ret_complaint);
	if (fault || found->has_lost)
		return fault;
	int code = sqlite_ask(store->db, "PRAGMA user_version", &version);
	if (code != SQLITE_OK)
		return sqlite_complain_open(store->db, code, store->path, ret_complaint);
	if (version == 0 && found->has_mark)
		fault = sqlite_complain(ret_complaint, -EBADMSG,
			"%s holds nothing, and a store was here (see the mark beside it); " SQLITE_CHOICES,
			store->path);
	else if (version > 0)
		fault = compare_with_mark(store, found, ret_complaint);
	return meet_loss(options, fault, found, ret_complaint);
}

/* With locking_mode EXCLUSIVE the lock that BEGIN takes stays until the connection is closed. A commit writes whole
 * pages of at least three tables, with a checksum over every byte of them: small pages make a lone commit cheap, and
 * rows are small. */
static int take_lock(
	struct sqlite *store, const struct sqlite_options *options, struct found *found, char **ret_complaint)
{
	int code = sqlite3_exec(store->db,
		"PRAGMA locking_mode = EXCLUSIVE;"
		"PRAGMA page_size = 2048;"
		"BEGIN EXCLUSIVE",
		NULL, NULL, NULL);
	int fault;

	if (code != SQLITE_OK)
		return sqlite_complain_open(store->db, code, store->path, ret_complaint);
	fault = check_whole(store, options, found, ret_complaint);
	if (fault)
		return fault;
	code = sqlite3_exec(store->db, "COMMIT", NULL, NULL, NULL);
	if ((code & 0xff) ==
		SQLITE_CORRUPT) /* a page that was met on the way; nothing was written, and the lock stays */
		code = sqlite3_get_autocommit(store->db)
			? SQLITE_OK
			: sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
	return code == SQLITE_OK ? 0 : sqlite_complain_open(store->db, code, store->path, ret_complaint);
}

static void pause_a_little(void)
{
	uint8_t random;

	sqlite3_randomness(sizeof random, &random);
	sqlite3_sleep(1 + random % LOCK_PAUSE_MS_MAX);
}

/* Two servers that start at the same moment may each hold half of the lock and refuse each other. So a server that is refused
 * lets go and tries again after a random time; a server that really has the store still has it then. */
static int open_and_lock(
	struct sqlite *store, const struct sqlite_options *options, struct found *found, char **ret_complaint)
{
	for (int tries = 1;; tries++) {
		int fault = open_connection(store, options, ret_complaint);

		if (!fault)
			fault = take_lock(store, options, found, ret_complaint);
		if (fault != -EBUSY || tries == LOCK_TRIES_MAX)
			return fault;
		int code = sqlite3_close(store->db);
		assert(code == SQLITE_OK);
		store->db = NULL;
		if (ret_complaint) {
			free(*ret_complaint);
			*ret_complaint = NULL;
		}
		pause_a_little();
	}
}

static const char *synchronous_pragma(const char *level)
{
	static const char *const levels[][2] = {
		{"OFF", "PRAGMA synchronous = OFF"},
		{"NORMAL", "PRAGMA synchronous = NORMAL"},
		{"FULL", "PRAGMA synchronous = FULL"},
		{"EXTRA", "PRAGMA synchronous = EXTRA"},
	};

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		if (strcmp(level, levels[i][0]) == 0)
			return levels[i][1];
	}
	return NULL;
}

static int on_wal(void *context, sqlite3 *db, const char *schema, int pages)
{
	struct sqlite *store = context;

	(void)db;
	(void)schema;
	store->wal_pages = (uint32_t)pages;
	return SQLITE_OK;
}

static int apply_settings(struct sqlite *store, const char *synchronous, char **ret_complaint)
{
	const char *pragma = synchronous_pragma(synchronous ? synchronous : "FULL");
	int code;

	if (!pragma)
		return sqlite_complain(
			ret_complaint, -EINVAL, "no such level of synchronous: %s", synchronous);
	/* secure_delete: distributions differ; FAST wipes what costs no extra write. */
	code = sqlite3_exec(store->db,
		"PRAGMA journal_mode = WAL;"
		"PRAGMA journal_size_limit = -1;"
		"PRAGMA cache_size = -8192;"
		"PRAGMA temp_store = MEMORY;"
		"PRAGMA foreign_keys = OFF;"
		"PRAGMA secure_delete = FAST",
		NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_exec(store->db, pragma, NULL, NULL, NULL);
	if (code != SQLITE_OK)
		return sqlite_complain_open(store->db, code, store->path, ret_complaint);
	sqlite3_wal_hook(store->db, on_wal, store); /* takes the place of SQLite's own checkpoints */
	return 0;
}

static int wipe_remains(struct sqlite *store, char **ret_complaint)
{
	int code = log_wipe_remains(store);

	return code == SQLITE_OK ? 0 : sqlite_complain_open(store->db, code, store->path, ret_complaint);
}

/* Each step in one transaction: it ends by writing its number. */
static int migrate_step(sqlite3 *db, const char *sql)
{
	int code = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_exec(db, sql, NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	return code;
}

int sqlite_migrate(sqlite3 *db)
{
	int64_t version = 0, reached = 0;
	int code = sqlite_ask(db, "PRAGMA user_version", &version);

	while (code == SQLITE_OK && version < SQL_MIGRATION_COUNT) {
		code = migrate_step(db, sql_migrations[version]);
		if (code == SQLITE_OK)
			code = sqlite_ask(db, "PRAGMA user_version", &reached);
		assert(code != SQLITE_OK || reached == version + 1);
		version++;
	}
	return code;
}

static int migrate(struct sqlite *store, char **ret_complaint)
{
	int code = sqlite_migrate(store->db);

	return code == SQLITE_OK ? 0 : sqlite_complain_open(store->db, code, store->path, ret_complaint);
}

static int prepare_statements(struct sqlite *store, char **ret_complaint)
{
	int code = pending_init(store);

	if (code != SQLITE_OK)
		return sqlite_complain_open(store->db, code, store->path, ret_complaint);
	for (int i = 0; i < SQL_STATEMENT_COUNT; i++) {
		code = sqlite3_prepare_v3(store->db, sql_statements[i], -1, SQLITE_PREPARE_PERSISTENT,
			&store->statements[i], NULL);

		if (code != SQLITE_OK)
			return sqlite_complain_open(store->db, code, store->path, ret_complaint);
		store->bound[i].parameters = sqlite3_bind_parameter_count(store->statements[i]);
	}
	return 0;
}

/* Numbers that the lost part gave out are in somebody's hands: the store goes on behind them, as after a restore. */
static int go_on_without(struct sqlite *store, const struct found *found, char **ret_complaint)
{
	int code = sqlite_raise(store->db, found->has_mark ? &found->mark : NULL);

	return code == SQLITE_OK ? 0 : sqlite_complain_open(store->db, code, store->path, ret_complaint);
}

static int load_seals(struct sqlite *store, char **ret_complaint)
{
	int code = seals_load(store);

	if ((code & 0xff) == SQLITE_CORRUPT)
		return 0; /* a page of meta, which the next reader names */
	return code == SQLITE_OK ? 0 : sqlite_complain_open(store->db, code, store->path, ret_complaint);
}

/* As it is: an older schema has other tables. */
static int prepare_to_look(struct sqlite *store, char **ret_complaint)
{
	int64_t version = 0;
	int code = sqlite_ask(store->db, "PRAGMA user_version", &version);

	if (code == SQLITE_OK)
		code = sqlite3_exec(
			store->db, "PRAGMA query_only = 1; PRAGMA temp_store = MEMORY", NULL, NULL, NULL);
	if (code != SQLITE_OK)
		return sqlite_complain_open(store->db, code, store->path, ret_complaint);
	if (version != SQL_MIGRATION_COUNT)
		return sqlite_complain(ret_complaint, -EPROTO,
			"%s has schema %d, and this stintd checks schema %d: check it with the release that wrote it, or start this one once",
			store->path, (int)version, (int)SQL_MIGRATION_COUNT);
	int fault = prepare_statements(store, ret_complaint);
	return fault ? fault : load_seals(store, ret_complaint);
}

static int open_database(
	struct sqlite *store, const struct sqlite_options *options, struct found *found, char **ret_complaint)
{
	int fault = open_and_lock(store, options, found, ret_complaint);

	if (options->look_only)
		return fault ? fault : prepare_to_look(store, ret_complaint);
	if (!fault)
		fault = apply_settings(store, options->synchronous, ret_complaint);
	if (!fault && found->has_remains)
		fault = wipe_remains(store, ret_complaint);
	if (!fault)
		fault = migrate(store, ret_complaint);
	if (!fault && found->has_lost)
		fault = go_on_without(store, found, ret_complaint);
	if (!fault)
		fault = prepare_statements(store, ret_complaint);
	return fault ? fault : load_seals(store, ret_complaint);
}

/* A file that is empty, shorter than any store or not there, where a store was. SQLite would begin a new one, and throw the log
 * away. */
static int check_there(const char *path, struct found *found, char **ret_complaint)
{
	cleanup(free_at) char *log = file_beside(path, "-wal");
	int64_t bytes = file_bytes(path), log_bytes = log ? file_bytes(log) : -1;

	if (!log)
		return -ENOMEM;
	if (bytes >= STORE_BYTES_MIN || (bytes > 0 && file_check(path) != 0))
		return 0; /* what is not a plain file is refused later */
	if (!found->has_mark && log_bytes <= 0)
		return bytes <= 0 ? 0
				  : sqlite_complain(ret_complaint, -EPROTO,
					    "%s is not a stint store: it has %d bytes", path, (int)bytes);
	return sqlite_complain(ret_complaint, -EBADMSG,
		"%s %s, and a store was here (see %s beside it); " SQLITE_CHOICES, path,
		bytes < 0            ? "is missing"
			: bytes == 0 ? "is empty"
				     : "is cut to less than a page",
		found->has_mark ? "the mark" : "the log");
}

/* What is left of a store that is gone does not belong to the one that is begun. */
static int drop_log(const char *path)
{
	cleanup(free_at) char *log = file_beside(path, "-wal");
	cleanup(free_at) char *kept = file_beside(path, "-wal.lost");

	if (!log || !kept)
		return -ENOMEM;
	return rename(log, kept) < 0 && errno != ENOENT ? -errno : 0;
}

static int find_store(
	const char *path, const struct sqlite_options *options, struct found *ret_found, char **ret_complaint)
{
	int fault = mark_read(path, &ret_found->mark, ret_complaint);

	ret_found->has_mark = fault == 0;
	if (fault && fault != -ENOENT)
		return meet_loss(options, fault, ret_found, ret_complaint);
	fault = check_there(path, ret_found, ret_complaint);
	if (fault != -EBADMSG || !options->accept_loss)
		return fault;
	fault = meet_loss(options, fault, ret_found, ret_complaint);
	return fault || options->look_only ? fault : drop_log(path);
}

/* SQLite would make a log where there is none, and complete a change that was interrupted. */
static int find_to_look(struct sqlite *store, char **ret_complaint)
{
	cleanup(free_at) char *log = file_beside(store->path, "-wal");
	cleanup(free_at) char *journal = file_beside(store->path, "-journal");

	if (!log || !journal)
		return -ENOMEM;
	int fault = file_check(store->path);
	if (fault)
		return sqlite_complain(
			ret_complaint, fault, "no store at %s: %s", store->path, strerror(-fault));
	if (file_bytes(journal) > 0)
		return sqlite_complain(ret_complaint, -EIO,
			"%s is there: the first start of this store was interrupted, and the next one completes it",
			journal);
	if (file_bytes(store->path) < STORE_BYTES_MIN)
		return sqlite_complain(ret_complaint, -EIO, "%s is %s", store->path,
			file_bytes(store->path) == 0 ? "empty" : "cut to less than a page");
	store->is_log_new = file_bytes(log) < 0;
	return 0;
}

static int resolve_path(struct sqlite *store, const struct sqlite_options *options, struct found *ret_found,
	char **ret_complaint)
{
	int fault;

	store->is_elsewhere = options->vfs != NULL;
	if (options->vfs) {
		store->path = strdup(options->path);
		return store->path ? 0 : -ENOMEM;
	}
	fault = file_resolve(options->path, &store->path);
	if (fault)
		return sqlite_complain(ret_complaint, fault, "no place for a store at %s: %s", options->path,
			strerror(-fault));
	fault = find_store(store->path, options, ret_found, ret_complaint);
	if (options->look_only)
		return fault ? fault : find_to_look(store, ret_complaint);
	if (!fault)
		fault = prepare_file(store->path, ret_complaint);
	return fault ? fault : settle_log(store->path, ret_complaint);
}

static int open_store(struct sqlite *store, const struct sqlite_options *options, char **ret_complaint)
{
	struct found found = {0};
	int fault = resolve_path(store, options, &found, ret_complaint);

	if (!fault)
		fault = open_database(store, options, &found, ret_complaint);
	if (fault)
		return fault;
	if (options->look_only)
		return 0;
	sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
	if (!options->vfs)
		store->file = file_read_ahead(store->path);
	if (options->no_ballast)
		return 0;
	store->ballast_path = file_beside(store->path, ".ballast");
	if (!store->ballast_path)
		return -ENOMEM;
	store->ballast_bytes = options->ballast_bytes ? options->ballast_bytes : BALLAST_BYTES;
	/* A full disk is no reason not to start: the sweep asks for the ballast again. */
	fault = sqlite_reserve(&store->backend);
	if (store->is_broken)
		return sqlite_complain(ret_complaint, fault, "%s", store->complaint);
	store->backend.complaint = NULL;
	return 0;
}

int sqlite_open(const struct sqlite_options *options, struct backend **ret_backend, char **ret_complaint)
{
	struct sqlite *store = calloc(1, sizeof(*store));
	int fault;

	if (ret_complaint)
		*ret_complaint = NULL;
	if (!store)
		return -ENOMEM;
	store->backend.ops = &sqlite_ops;
	store->backend.schema = SQL_MIGRATION_COUNT;
	store->file = store->backup.file = -1;
	buf_init(&store->pack, SQLITE_EVENT_BYTES_MAX);
	sqlite_prepare_library();
	fault = open_store(store, options, ret_complaint);
	if (fault) {
		sqlite_close(&store->backend);
		return fault;
	}
	*ret_backend = &store->backend;
	return 0;
}

void sqlite_close(struct backend *backend)
{
	struct sqlite *store = backend ? sqlite_of(backend) : NULL;
	int code;

	if (!store)
		return;
	sqlite_backup_end(backend);
	if (store->has_mark)
		sqlite_mark(backend); /* an older one is true, too */
	for (int i = 0; i < SQL_STATEMENT_COUNT; i++)
		sqlite3_finalize(store->statements[i]);
	/* What a disk in trouble holds is left to the next start to find out. */
	if (store->is_broken)
		sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	code = sqlite3_close(store->db);
	assert(code == SQLITE_OK);
	cleanup(free_at) char *log = store->is_log_new ? file_beside(store->path, "-wal") : NULL;
	if (log && file_bytes(log) == 0)
		file_remove(log);
	if (store->file >= 0)
		close(store->file);
	free(store->tables);
	free(store->bodies);
	pending_done(store);
	buf_done(&store->pack);
	free(store->ballast_path);
	free(store->path);
	free(store);
}
