/*
 * What a restore keeps of the store that goes: a backup knows nothing of tokens that were revoked or got new secrets since, nor of
 * slots that crashed too often since.
 *
 * The rows of the old store are copied into temporary tables of the copy, and carry.sql does the rest. What cannot be read of a
 * damaged store is lost with it, and the restore says so.
 */
#include <time.h>

#include "core/worker/slot.h"
#include "store/sqlite/sqlite_backend.h"

/* carry.sql writes them by number. */
_Static_assert(SMALL_RESTORED == 10, "as in carry.sql");
_Static_assert(SMALL_SLOT == 2, "as in carry.sql");
_Static_assert(SMALL_TOKEN == 60, "as in carry.sql");
_Static_assert(TOKEN_JOIN == 10, "as in old_tokens");
_Static_assert(SLOT_QUARANTINED == 1 && SLOT_ON_TRIAL == 2, "as in old_slots");
_Static_assert(
	META_PRINCIPALS == 8 && META_STORE_HI == 11 && META_STORE_LO == 12, "as in knows_principals()");
_Static_assert(RESTORED_TOKEN_UNKNOWN == 0, "as in carry_over()");
_Static_assert(RESTORED_TOKEN_CAME == 1, "as in carry.sql");
_Static_assert(RESTORED_TOKEN_WENT == 2, "as in carry.sql");
_Static_assert(RESTORED_TOKEN_ENDED == 3, "as in carry.sql");

static const char tables[] =
	"PRAGMA temp_store = MEMORY;"
	"CREATE TABLE temp.old_token (id TEXT PRIMARY KEY, name TEXT, expires_ms INTEGER, revoked_ms INTEGER, revoked_by TEXT, hash BLOB);"
	"CREATE TABLE temp.old_more (key TEXT PRIMARY KEY, data BLOB);"
	"CREATE TABLE temp.old_slot (key TEXT PRIMARY KEY, data BLOB, principal INTEGER);"
	"CREATE TABLE temp.old_fact (key INTEGER PRIMARY KEY, value INTEGER)";

static const char old_tokens[] =
	"SELECT id, name, expires_ms, revoked_ms, revoked_by, hash FROM token WHERE kind <> 10";

static const char old_mores[] = "SELECT key, data FROM small WHERE kind = 60";

/* As text a slot begins with its state. */
static const char old_slots[] =
	"SELECT key, data, coalesce((SELECT principal FROM name WHERE text = key), 0) FROM small "
	"WHERE kind = 2 AND substr(CAST(data AS TEXT), 1, 2) IN ('1 ', '2 ')";

/* Schema 1 had a table of slots; the text is that of 002-small.sql. */
static const char older_slots[] =
	"SELECT n.text, CAST(s.state || ' ' || s.since_ms || ' ' || s.restarts || ' ' || s.trial_by"
	" || ' ' || coalesce(s.crashed_1, '-') || ' ' || coalesce(s.crashed_2, '-')"
	" || ' ' || coalesce(s.crashed_3, '-') || ' ' || coalesce(s.crashed_4, '-')"
	" || ' ' || coalesce(s.crashed_5, '-') || ' ' || coalesce(s.crashed_6, '-')"
	" || ' ' || coalesce(s.crashed_7, '-') || ' ' || coalesce(s.crashed_8, '-') AS BLOB), n.principal "
	"FROM slot AS s JOIN name AS n ON n.id = s.name WHERE s.state IN (1, 2)";

/* Each row of the old store into a table of the copy. *ret_whole: all of them could be read. Returns the code of the copy. */
static int take_rows(sqlite3 *old, const char *from, sqlite3 *db, const char *into, bool *ret_whole)
{
	sqlite3_stmt *read = NULL, *write = NULL;
	int code = sqlite3_prepare_v2(db, into, -1, &write, NULL), step = SQLITE_ROW;

	*ret_whole = sqlite3_prepare_v2(old, from, -1, &read, NULL) == SQLITE_OK;
	while (code == SQLITE_OK && *ret_whole && (step = sqlite3_step(read)) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(read); i++)
			sqlite3_bind_value(write, i + 1, sqlite3_column_value(read, i));
		code = sqlite3_step(write) == SQLITE_DONE ? SQLITE_OK : sqlite3_extended_errcode(db);
		sqlite3_reset(write);
	}
	*ret_whole = *ret_whole && step == SQLITE_DONE;
	sqlite3_finalize(read);
	sqlite3_finalize(write);
	return code;
}

/* Only in a store of the same line do numbers of principals mean the same. */
static bool is_same_store(sqlite3 *old, sqlite3 *db)
{
	int64_t there[2] = {0, 0}, here[2] = {0, 0};

	for (int i = 0; i < 2; i++) {
		const char *question = i == 0 ? "SELECT coalesce((SELECT value FROM meta WHERE key = 11), 0)"
					      : "SELECT coalesce((SELECT value FROM meta WHERE key = 12), 0)";
		if (sqlite_ask(old, question, &there[i]) != SQLITE_OK ||
			sqlite_ask(db, question, &here[i]) != SQLITE_OK)
			return false;
	}
	return there[0] == here[0] && there[1] == here[1] && (there[0] != 0 || there[1] != 0);
}

static int put_facts(sqlite3 *old, sqlite3 *db, bool knows_tokens)
{
	int64_t principals = 0;
	sqlite3_stmt *statement;
	int code = sqlite3_prepare_v2(
		db, "INSERT INTO temp.old_fact (key, value) VALUES (0, ?), (8, ?)", -1, &statement, NULL);

	if (code != SQLITE_OK)
		return code;
	if (knows_tokens && is_same_store(old, db) &&
		sqlite_ask(old, "SELECT value FROM meta WHERE key = 8", &principals) != SQLITE_OK)
		principals = 0;
	sqlite3_bind_int64(statement, 1, (int64_t)time(NULL) * 1000);
	sqlite3_bind_int64(statement, 2, principals);
	sqlite3_step(statement);
	return sqlite3_finalize(statement);
}

int carry_over(sqlite3 *old, sqlite3 *db)
{
	int64_t version = 0;
	bool whole, knows_tokens = true;
	int code = sqlite3_exec(db, tables, NULL, NULL, NULL);

	if (sqlite_ask(old, "PRAGMA user_version", &version) == SQLITE_OK && version == 0)
		return code; /* an empty file: nothing was here */
	if (code == SQLITE_OK)
		code = take_rows(old, old_tokens, db,
			"REPLACE INTO temp.old_token (id, name, expires_ms, revoked_ms, revoked_by, hash) VALUES (?, ?, ?, ?, ?, ?)",
			&knows_tokens);
	if (code == SQLITE_OK && version > 1 && knows_tokens)
		code = take_rows(old, old_mores, db, "REPLACE INTO temp.old_more (key, data) VALUES (?, ?)",
			&knows_tokens);
	if (code == SQLITE_OK)
		code = take_rows(old, version == 1 ? older_slots : old_slots, db,
			"REPLACE INTO temp.old_slot (key, data, principal) VALUES (?, ?, ?)", &whole);
	if (code == SQLITE_OK)
		code = put_facts(old, db, knows_tokens);
	if (code == SQLITE_OK)
		code = sqlite3_exec(db, sql_carry, NULL, NULL, NULL);
	if (code != SQLITE_OK || (knows_tokens && whole))
		return code;
	/* which tokens came back is not known: one record says that */
	return sqlite3_exec(db,
		"REPLACE INTO small (kind, key, data, crc) "
		"VALUES (10, '-', CAST('0 ' AS BLOB), seal(10, '-', CAST('0 ' AS BLOB)))",
		NULL, NULL, NULL);
}

int carry_tell(sqlite3 *db, const struct restore_teller *teller)
{
	sqlite3_stmt *statement;
	int code = sqlite3_prepare_v2(db,
		"SELECT key, CAST(substr(CAST(data AS TEXT), 1, 1) AS INTEGER), substr(CAST(data AS TEXT), 3) "
		"FROM small WHERE kind = 10 ORDER BY key",
		-1, &statement, NULL);

	if (code != SQLITE_OK)
		return code;
	while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
		struct columns columns = {statement, 0};
		struct span id = column_span(&columns);
		enum restored_token what = (enum restored_token)column_int(&columns);
		teller->token(teller->context, what, id, column_span(&columns));
	}
	sqlite3_finalize(statement);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}
