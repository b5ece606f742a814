/*
 * Transactions, and when the log of SQLite is written back.
 */
#include "store/sqlite/sqlite_backend.h"

/*
 * When the log is written back into the file. Not by SQLite in the middle of a commit that clients wait
 * for: after the replies have gone out once the log is long, and in idle moments once it is worth two
 * syncs. The log is started over from its beginning then and keeps its size, but on a full disk: see ballast.c.
 */
enum {
	WAL_PAGES_LONG = 4000,
	WAL_PAGES_WORTH_IT = 500,
};

static bool nothing_waits(const struct sqlite *store)
{
	bool waits = store->pack.len > 0;

	for (int i = 0; i < PENDING_TABLE_COUNT; i++)
		waits |= store->pending[i].count > 0;
	return !waits;
}

int sqlite_begin(struct backend *backend)
{
	const struct sqlite *store = sqlite_of(backend);

	assert(sqlite3_get_autocommit(store->db)); /* one transaction at a time */
	assert(nothing_waits(store));              /* the last one took all its rows, or forgot them */
	return statement_run(sqlite_of(backend), SQL_BEGIN);
}

/* The commit of SQLite waits for the disk itself. */
int sqlite_send(struct backend *backend)
{
	struct sqlite *store = sqlite_of(backend);
	/* SQLite rolls a transaction back by itself when a statement in it runs out of memory: nothing of it is left. */
	int fault = sqlite3_get_autocommit(store->db) ? -ENOMEM : sqlite_write_pending(store);

	if (!fault)
		fault = statement_run(store, SQL_COMMIT);
	if (fault)
		sqlite_rollback(backend);
	return fault;
}

int sqlite_settle(struct backend *backend)
{
	assert(sqlite3_get_autocommit(sqlite_of(backend)->db)); /* send() has ended the transaction */
	assert(nothing_waits(sqlite_of(backend)));              /* and everything is in it */
	return 0;
}

void drop_transaction(struct sqlite *store)
{
	/* After some faults SQLite has rolled back by itself, and would complain about being asked again. A
	 * rollback changes nothing on disk: whether it fails makes no difference to what is there. */
	if (sqlite3_get_autocommit(store->db))
		return;
	sqlite3_step(store->statements[SQL_ROLLBACK]);
	sqlite3_reset(store->statements[SQL_ROLLBACK]);
	assert(sqlite3_get_autocommit(store->db));
}

void sqlite_rollback(struct backend *backend)
{
	struct sqlite *store = sqlite_of(backend);

	bodies_clear(store);
	events_forget(store);
	for (int i = 0; i < PENDING_TABLE_COUNT; i++)
		pending_forget(&store->pending[i]);
	drop_transaction(store);
}

int sqlite_checkpoint(struct backend *backend, bool idle)
{
	struct sqlite *store = sqlite_of(backend);
	int logged = 0, copied = 0, code;

	assert(sqlite3_get_autocommit(store->db));
	if (store->wal_pages < (idle ? WAL_PAGES_WORTH_IT : WAL_PAGES_LONG))
		return 0;
	code = sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &logged, &copied);
	if (code != SQLITE_OK)
		return sqlite_fault(store, code);
	store->wal_pages = (uint32_t)(logged - copied);
	if (store->has_mark)
		sqlite_mark(backend); /* without it the one of before stays, which is true as well */
	store->backend.complaint = NULL;
	return 0;
}

/* The cut is synced before the log is written again. A log grows by zeros (gather.c): if the power went, and they were on disk
 * while the cut was not, they would lie amid old frames and look like damage. */
int log_cut(struct sqlite *store)
{
	sqlite3_file *log = NULL;
	int code = sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_file_control(store->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
	if (code == SQLITE_OK && log && log->pMethods)
		code = log->pMethods->xSync(log, SQLITE_SYNC_NORMAL);
	return code;
}

int sqlite_empty_log(struct sqlite *store)
{
	int code;

	assert(sqlite3_get_autocommit(store->db));
	code = log_cut(store);
	if (code != SQLITE_OK)
		return sqlite_fault(store, code);
	store->wal_pages = 0;
	return 0;
}
