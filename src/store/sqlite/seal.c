/*
 * Seals: the checksum of a row, in its column `crc`. It covers the row's key too, so that a row that stands in another's place is
 * found.
 *
 * Tasks, bodies, extras and events have theirs since schema 3. A row of them without a seal is one of before: those have low
 * numbers. All other tables have theirs since schema 4, which gave one to every row that was there: a seal of all columns before
 * it, in order, an integer as 8 bytes, a text or blob as its length and its bytes.
 */
#include <endian.h>

#include "base/crc32c.h"
#include "store/sqlite/sqlite_backend.h"

uint32_t seal_of(const int64_t *numbers, int count, struct span bytes, struct span more)
{
	uint64_t packed[SEAL_NUMBERS_MAX]; /* the same bytes on every machine */

	assert(count <= SEAL_NUMBERS_MAX);
	for (int i = 0; i < count; i++)
		packed[i] = htole64((uint64_t)numbers[i]);
	struct span key = {(const char *)packed, (size_t)count * sizeof *packed};
	uint32_t crc = crc32c(crc32c(0, key), bytes);
	return more.len > 0 ? crc32c(crc, more) : crc;
}

bool seal_is_right(struct columns *columns, uint32_t seal, bool may_be_missing)
{
	if (sqlite3_column_type(columns->statement, columns->at) == SQLITE_NULL)
		return columns->at++, may_be_missing;
	return column_int(columns) == (int32_t)seal;
}

static uint32_t add_number(uint32_t seal, int64_t number)
{
	uint64_t packed = htole64((uint64_t)number);

	return crc32c(seal, (struct span){(const char *)&packed, sizeof packed});
}

static uint32_t add_bytes(uint32_t seal, struct span bytes)
{
	return crc32c(add_number(seal, (int64_t)bytes.len), bytes);
}

uint32_t seal_of_parameters(const struct parameter *parameters, size_t count)
{
	uint32_t seal = 0;

	for (size_t i = 0; i < count; i++)
		seal = parameters[i].kind == PARAMETER_INT ? add_number(seal, parameters[i].number)
							   : add_bytes(seal, parameters[i].bytes);
	return seal;
}

/* A column of another kind than we write is damage, whatever it says. */
static bool add_column(struct columns *columns, uint32_t *seal)
{
	switch (sqlite3_column_type(columns->statement, columns->at)) {
	case SQLITE_INTEGER:
		*seal = add_number(*seal, column_int(columns));
		return true;
	case SQLITE_TEXT:
	case SQLITE_BLOB:
		*seal = add_bytes(*seal, column_span(columns));
		return true;
	default:
		return false;
	}
}

bool row_is_sealed(sqlite3_stmt *statement)
{
	struct columns columns = {statement, 0};
	uint32_t seal = 0;
	int last = sqlite3_column_count(statement) - 1;

	while (columns.at < last) {
		if (!add_column(&columns, &seal))
			return false;
	}
	return seal_is_right(&columns, seal, false);
}

/* seal(…) in SQL. */
static void seal_in_sql(sqlite3_context *context, int count, sqlite3_value **values)
{
	uint32_t seal = 0;

	for (int i = 0; i < count; i++) {
		if (sqlite3_value_type(values[i]) == SQLITE_INTEGER) {
			seal = add_number(seal, sqlite3_value_int64(values[i]));
		} else {
			const char *data = sqlite3_value_blob(values[i]);
			seal = add_bytes(seal, (struct span){data, (size_t)sqlite3_value_bytes(values[i])});
		}
	}
	sqlite3_result_int64(context, (int32_t)seal);
}

int seals_in_sql(sqlite3 *db)
{
	return sqlite3_create_function_v2(db, "seal", -1,
		SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, NULL, seal_in_sql, NULL, NULL, NULL);
}

_Static_assert(META_UNSEALED_TASK == 13 && META_UNSEALED_EVENT == 14, "as in schema/003-crc.sql");

/* Without the facts nothing may be missing. Returns a result code of SQLite. */
int seals_load(struct sqlite *store)
{
	int code = sqlite_ask(store->db, "SELECT coalesce((SELECT value FROM meta WHERE key = 13), -1)",
		&store->unsealed_task);

	return code != SQLITE_OK
		? code
		: sqlite_ask(store->db, "SELECT coalesce((SELECT value FROM meta WHERE key = 14), -1)",
			  &store->unsealed_event);
}
