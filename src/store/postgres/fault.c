/*
 * What PostgreSQL says, as faults. Only what surely left the rows as they were may be called "not now": a full disk, and a server
 * that takes no writes. A session that is lost is neither success nor failure.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "store/postgres/postgres_backend.h"

int pg_complain(struct postgres *store, int fault, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(store->complaint, sizeof store->complaint, format, args);
	va_end(args);
	store->backend.complaint = store->complaint;
	return fault;
}

/* The sentence of then is that of now. */
int pg_is_stale(struct postgres *store)
{
	store->backend.complaint = store->complaint;
	return -ESTALE;
}

/* The messages of the library end with a new line, and may have several. */
static void in_one_line(char *text, size_t size, const char *message)
{
	size_t len = 0;

	for (const char *at = message ? message : ""; *at && len + 1 < size; at++)
		text[len++] = *at == '\n' || *at == '\t' ? ' ' : *at;
	while (len > 0 && text[len - 1] == ' ')
		len--;
	text[len] = 0;
}

const char *pg_last_words(const struct postgres *store, char *text, size_t size)
{
	in_one_line(text, size, store->link ? pq.PQerrorMessage(store->link) : "no connection");
	return text;
}

bool pg_is_state(const PGresult *result, const char *state)
{
	const char *found = result ? pq.PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;

	return found && strncmp(found, state, strlen(state)) == 0;
}

void pg_take_notice(void *context, const PGresult *result)
{
	struct postgres *store = context;

	store->has_notice = true;
	in_one_line(store->notice, sizeof store->notice, pq.PQresultErrorMessage(result));
}

/* 08: connection; 57P01 to 57P03: the server goes down, crashed, or starts; 57P05: an idle session was ended. */
static bool is_lost(const struct postgres *store, const PGresult *result)
{
	return !store->link || pq.PQstatus(store->link) != CONNECTION_OK || pg_is_state(result, "08") ||
		pg_is_state(result, "57P");
}

int pg_fault(struct postgres *store, const PGresult *result)
{
	char text[PG_COMPLAINT_MAX / 2];

	in_one_line(text, sizeof text,
		result                ? pq.PQresultErrorMessage(result)
			: store->link ? pq.PQerrorMessage(store->link)
				      : "no connection");
	if (is_lost(store, result))
		return pg_complain(store, -ENOTCONN, "%s: the connection is lost (%s)", store->shown, text);
	if (pg_is_state(result, "53100"))
		return pg_complain(
			store, -ENOSPC, "%s: the disk of PostgreSQL is full (%s)", store->shown, text);
	if (pg_is_state(result, "25006"))
		return pg_complain(store, -EROFS,
			"%s: PostgreSQL takes no writes (%s); is it a standby, or set to read only?",
			store->shown, text);
	if (pg_is_state(result, "42501"))
		return pg_complain(store, -EPERM, "%s: the role may not do this (%s)", store->shown, text);
	if (pg_is_state(result, "XX001") || pg_is_state(result, "XX002")) {
		pg_complain(store, -EBADMSG, "%s: PostgreSQL found damage (%s); restore a backup",
			store->shown, text);
		return backend_note_damage(&store->backend, "meta", 0, NULL);
	}
	return pg_complain(store, -EIO, "%s: %s", store->shown, text);
}

static bool has_text_key(enum pg_table table)
{
	return table == PG_SMALL || table == PG_SECRET || table == PG_IDEM || table == PG_WORKER ||
		table == PG_TOKEN;
}

static int note_text(struct postgres *store, enum pg_table table, struct row_columns columns)
{
	char text[DAMAGE_KEY_BYTES];

	if (table == PG_SMALL || table == PG_SECRET || table == PG_IDEM)
		column_span(&columns); /* the kind, or the principal */
	backend_key_text(column_span(&columns), text);
	pg_complain(store, -EBADMSG, "%s: row \"%s\" of table %s is damaged; restore a backup", store->shown,
		text, pg_tables[table].name);
	return backend_note_damage(&store->backend, pg_tables[table].name, 0, text);
}

int pg_fault_row(struct postgres *store, enum pg_table table, struct span row)
{
	struct row_columns columns = {row.data, row.data + row.len, false};
	const char *name = pg_tables[table].name;

	if (has_text_key(table))
		return note_text(store, table, columns);
	if (table == PG_TASK_ID || table == PG_TASK_KEY || table == PG_EDGE)
		column_span(&columns); /* the task is the second column */
	int64_t number = column_int(&columns);
	if (table == PG_EXTRA)
		name = extra_table((enum extra_kind)column_int(&columns));
	return postgres_damaged(&store->backend, name, number);
}

int postgres_damaged(struct backend *backend, const char *table, int64_t row)
{
	struct postgres *store = postgres_of(backend);

	pg_complain(store, -EBADMSG, "%s: row %" PRId64 " of table %s is damaged; restore a backup",
		store->shown, row, table);
	return backend_note_damage(backend, table, row, NULL);
}
