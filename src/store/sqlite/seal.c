/*
 * Seals: the checksum of a row, in its column `crc`. It covers the row's key too, so that a row that stands in another's place is
 * found. A row without a seal is one of before there were seals: those have low numbers.
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
