/*
 * SQLite's result codes as faults. Only what surely left the file as it was may be called "not now": a full
 * disk, a quota, a file system that has become read-only, each found by a write and not by a sync. After a
 * failed sync nobody knows what is on disk, and asking again would be told a comfortable lie.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "store/sqlite/mark.h"

/* errno and not sqlite3_system_errno(): not every release (3.40, for one) sets that one in a commit. */
static int fault_of_io(int code, int system)
{
	if (code == SQLITE_IOERR_NOMEM)
		return -ENOMEM;
	if (code == SQLITE_IOERR_WRITE && (system == EDQUOT || system == EROFS))
		return -system;
	return -EIO;
}

int sqlite_fault_of(int code)
{
	int system = errno;

	switch (code & 0xff) {
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_READONLY:
		return code == SQLITE_READONLY_DBMOVED ? -EIO : -EROFS;
	case SQLITE_IOERR:
		return fault_of_io(code, system);
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_TOOBIG:
		return -E2BIG;
	default:
		return -EIO;
	}
}

/* The table that a statement of ours is about. */
static void table_of(const char *sql, char *table, size_t size)
{
	const char *at = sql ? strstr(sql, "FROM ") : NULL;

	if (!at)
		at = sql ? strstr(sql, "INTO ") : NULL;
	if (at)
		snprintf(table, size, "%.*s", (int)strcspn(at + 5, " ,()\n"), at + 5);
	else
		snprintf(table, size, "?");
}

int sqlite_fault_of_statement(struct sqlite *store, sqlite3_stmt *statement, int code)
{
	char table[24];

	if ((code & 0xff) != SQLITE_CORRUPT)
		return sqlite_fault(store, code);
	table_of(sqlite3_sql(statement), table, sizeof table);
	return sqlite_fault_page(store, table);
}

int sqlite_fault_page(struct sqlite *store, const char *table)
{
	snprintf(store->complaint, sizeof(store->complaint),
		"%s: a page of table %s is damaged (%s); restore a backup (stintd --restore FILE)",
		store->path, table, sqlite3_errmsg(store->db));
	store->backend.complaint = store->complaint;
	return backend_note_damage(&store->backend, table, 0, NULL);
}

int sqlite_fault(struct sqlite *store, int code)
{
	int fault = sqlite_fault_of(code);

	snprintf(store->complaint, sizeof(store->complaint), "%s: %s (%d)", store->path,
		sqlite3_errmsg(store->db), code);
	store->backend.complaint = store->complaint;
	if (fault == -EIO && !store->is_broken)
		mark_doubt(store);
	store->is_broken |= fault == -EIO;
	return fault;
}

int sqlite_fault_because(struct sqlite *store, int fault, const char *what, const char *path)
{
	assert(fault < 0);
	snprintf(store->complaint, sizeof(store->complaint), "%s %s: %s", what, path, strerror(-fault));
	store->backend.complaint = store->complaint;
	return fault;
}

int sqlite_fault_row(struct sqlite *store, const char *table, int64_t key)
{
	snprintf(store->complaint, sizeof(store->complaint),
		"%s: row %" PRId64 " of table %s is damaged; restore a backup (stintd --restore FILE)",
		store->path, key, table);
	store->backend.complaint = store->complaint;
	return backend_note_damage(&store->backend, table, key, NULL);
}

int sqlite_fault_key(struct sqlite *store, const char *table, struct span key)
{
	char text[DAMAGE_KEY_BYTES];

	backend_key_text(key, text);
	snprintf(store->complaint, sizeof(store->complaint),
		"%s: row \"%s\" of table %s is damaged; restore a backup (stintd --restore FILE)",
		store->path, text, table);
	store->backend.complaint = store->complaint;
	return backend_note_damage(&store->backend, table, 0, text);
}

int sqlite_damaged(struct backend *backend, const char *table, int64_t row)
{
	return sqlite_fault_row(sqlite_of(backend), table, row);
}

int sqlite_complain(char **ret_complaint, int fault, const char *format, ...)
{
	char *text = NULL;
	va_list args;

	if (!ret_complaint)
		return fault;
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	*ret_complaint = text;
	return fault;
}
