/*
 * A row as bytes, the rows of the turn under way, and the rows that are kept behind it.
 *
 * A task is mostly claimed soon after it was made and finished soon after that, and a look-up in another process costs a hundred
 * microseconds: so the latest tasks and their bodies are kept, in one place per number, and the newest takes it. There is one
 * writer, so what is kept is what is there, until the session is lost together with the lead.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "store/postgres/postgres_backend.h"

const struct pg_table_form pg_tables[PG_TABLE_COUNT] = {
	[PG_TASK] = {"task", "llllllbbc", 1, PG_PUT_TASK, PG_GET_TASK, -1},
	[PG_BODY] = {"task_body", "lbc", 1, PG_PUT_BODY, PG_GET_BODY, -1},
	[PG_EXTRA] = {"task_extra", "lllbc", 3, PG_PUT_EXTRA, PG_GET_EXTRA, PG_DELETE_EXTRA},
	[PG_EVENT] = {"event", "lbc", 1, PG_PUT_EVENT, -1, -1},
	[PG_BASE] = {"task_base", "lbc", 1, PG_PUT_BASE, PG_GET_BASE, PG_DELETE_BASE},
	[PG_TASK_ID] = {"task_id", "blc", 1, PG_PUT_ID, PG_GET_ID, -1},
	[PG_TASK_KEY] = {"task_key", "blc", 1, PG_PUT_KEY, PG_GET_KEY, PG_DELETE_KEY},
	[PG_EDGE] = {"edge", "lllc", 2, PG_PUT_EDGE, -1, PG_DELETE_EDGE},
	[PG_NAME] = {"name", "lblc", 1, PG_PUT_NAME, -1, -1},
	[PG_WORKER] = {"worker", "blllllllllllllllllbllllllc", 1, PG_PUT_WORKER, PG_GET_WORKER,
		PG_DELETE_WORKER},
	[PG_SMALL] = {"small", "lbbc", 2, PG_PUT_SMALL, PG_GET_SMALL, PG_DELETE_SMALL},
	[PG_SECRET] = {"secret", "lbbc", 2, PG_PUT_SECRET, PG_GET_SECRET, PG_DELETE_SECRET},
	[PG_TOKEN] = {"token", "bllbbbblbllbc", 1, PG_PUT_TOKEN, -1, PG_DELETE_TOKEN},
	[PG_IDEM] = {"idem", "bbblllc", 2, PG_PUT_IDEM, PG_GET_IDEM, -1},
	[PG_META] = {"meta", "llc", 1, PG_PUT_META, PG_GET_META, -1},
	[PG_INBOX] = {"inbox", "lc", 1, -1, -1, PG_DELETE_INBOX},
};

enum {
	ROW_BYTES_MAX = 64 << 20,
	LENGTH_BYTES = 4,
	SEAL_BYTES = 2 * LENGTH_BYTES, /* its column */
};

/* ---- putting a row together ------------------------------------------------------------------------------ */

void row_begin(struct postgres *store)
{
	buf_clear(&store->row);
	store->row.max = ROW_BYTES_MAX;
}

static void put_length(struct buf *row, int32_t length)
{
	uint32_t packed = htobe32((uint32_t)length);

	buf_put(row, &packed, sizeof packed);
}

void row_int(struct postgres *store, int64_t value)
{
	uint64_t packed = htobe64((uint64_t)value);

	put_length(&store->row, sizeof packed);
	buf_put(&store->row, &packed, sizeof packed);
}

void row_bytes(struct postgres *store, struct span value)
{
	if (value.len > INT32_MAX)
		buf_fail(&store->row, -E2BIG);
	put_length(&store->row, (int32_t)value.len);
	buf_put_span(&store->row, value);
}

void row_null(struct postgres *store)
{
	put_length(&store->row, -1);
}

static uint32_t length_at(const char *at)
{
	uint32_t packed;

	memcpy(&packed, at, sizeof packed);
	return be32toh(packed);
}

/* The column behind this one. */
static const char *column_end(const char *at)
{
	uint32_t length = length_at(at);

	return at + LENGTH_BYTES + (length == UINT32_MAX ? 0 : length);
}

static uint32_t key_bytes(enum pg_table table, struct span row)
{
	const char *at = row.data;

	for (int i = 0; i < pg_tables[table].keys; i++)
		at = column_end(at);
	assert(at <= row.data + row.len);
	return (uint32_t)(at - row.data);
}

/* ---- reading columns --------------------------------------------------------------------------------------- */

struct span column_span(struct row_columns *columns)
{
	if (columns->end - columns->at < LENGTH_BYTES) {
		columns->broken = true;
		return (struct span){0};
	}
	uint32_t length = length_at(columns->at);
	columns->at += LENGTH_BYTES;
	if (length == UINT32_MAX) /* NULL */
		return (struct span){0};
	if (length > (size_t)(columns->end - columns->at)) {
		columns->broken = true;
		columns->at = columns->end;
		return (struct span){0};
	}
	struct span value = {columns->at, length};
	columns->at += length;
	return value;
}

int64_t column_int(struct row_columns *columns)
{
	struct span value = column_span(columns);
	uint64_t packed = 0;

	if (value.len == sizeof packed)
		memcpy(&packed, value.data, sizeof packed);
	else if (value.data)
		columns->broken = true;
	return (int64_t)be64toh(packed);
}

/* Is the last column the seal of those before it? */
static bool is_sealed(struct span row)
{
	if (row.len < SEAL_BYTES || length_at(row.data + row.len - SEAL_BYTES) != sizeof(uint32_t))
		return false;
	return length_at(row.data + row.len - sizeof(uint32_t)) ==
		crc32c(0, (struct span){row.data, row.len - SEAL_BYTES});
}

int row_of_result(struct postgres *store, enum pg_table table, const PGresult *result, int at,
	struct buf *found, struct row_columns *ret_columns)
{
	int count = pq.PQnfields(result);

	buf_clear(found);
	found->max = ROW_BYTES_MAX;
	assert(count == (int)strlen(pg_tables[table].columns)); /* the SQL and the C agree */
	for (int i = 0; i < count; i++) {
		bool null = pq.PQgetisnull(result, at, i);
		put_length(found, null ? -1 : pq.PQgetlength(result, at, i));
		if (!null)
			buf_put(found, pq.PQgetvalue(result, at, i), (size_t)pq.PQgetlength(result, at, i));
	}
	if (buf_fault(found))
		return buf_fault(found);
	struct span row = buf_span(found);
	*ret_columns = (struct row_columns){row.data, row.data + row.len, false};
	if (is_sealed(row))
		return 0;
	return pg_fault_row(store, table, row);
}

/* ---- the rows of the turn ------------------------------------------------------------------------------------ */

static uint64_t key_hash(const struct postgres *store, enum pg_table table, struct span key)
{
	return hash_bytes(&store->key, key.data, key.len) + (uint64_t)table;
}

static uint64_t row_hash(void *context, uint32_t index)
{
	const struct postgres *store = context;
	const struct pg_row *row = store->turn.rows[index];

	return key_hash(store, row->table, (struct span){row->bytes, row->key_len});
}

static const struct map_ops row_ops = {.hash_of = row_hash};

static uint32_t find_row(const struct postgres *store, enum pg_table table, struct span key)
{
	const struct pg_turn *turn = &store->turn;
	struct map_probe probe;
	uint32_t index = map_first(&turn->row_by_key, key_hash(store, table, key), &probe);

	for (; index != MAP_NONE; index = map_next(&turn->row_by_key, &probe)) {
		const struct pg_row *row = turn->rows[index];
		if (row->table == table && row->key_len == key.len &&
			memcmp(row->bytes, key.data, key.len) == 0)
			break;
	}
	return index;
}

static int grow_rows(struct pg_turn *turn)
{
	if (turn->row_count < turn->row_cap)
		return 0;
	uint32_t cap = turn->row_cap > 0 ? 2 * turn->row_cap : 256;
	struct pg_row **rows = reallocarray(turn->rows, cap, sizeof *rows);
	if (!rows)
		return -ENOMEM;
	turn->rows = rows;
	turn->row_cap = cap;
	return 0;
}

static int add_row(struct postgres *store, struct pg_row *row)
{
	struct pg_turn *turn = &store->turn;
	struct span key = {row->bytes, row->key_len};
	uint32_t index = find_row(store, row->table, key);

	if (index != MAP_NONE) {
		turn->rows[index] = row;
		return 0;
	}
	if (!turn->row_by_key.ops)
		map_init(&turn->row_by_key, &row_ops, store);
	int r = grow_rows(turn);
	if (r == 0)
		r = map_insert(&turn->row_by_key, key_hash(store, row->table, key), turn->row_count);
	if (r < 0)
		return r;
	turn->rows[turn->row_count++] = row;
	turn->of_table[row->table]++;
	return 0;
}

static int keep_in_turn(struct postgres *store, enum pg_table table, bool gone)
{
	struct span bytes = buf_span(&store->row);

	assert(store->turn.begun);
	if (buf_fault(&store->row))
		return buf_fault(&store->row);
	struct pg_row *row = arena_take(&store->turn.arena, sizeof *row + bytes.len);
	if (!row)
		return arena_fault(&store->turn.arena, sizeof *row + bytes.len);
	*row = (struct pg_row){
		.table = table, .gone = gone, .key_len = key_bytes(table, bytes), .len = (uint32_t)bytes.len};
	memcpy(row->bytes, bytes.data, bytes.len);
	return add_row(store, row);
}

int row_put(struct postgres *store, enum pg_table table)
{
	struct span unsealed = buf_span(&store->row);
	uint32_t seal = htobe32(crc32c(0, unsealed));

	put_length(&store->row, sizeof seal);
	buf_put(&store->row, &seal, sizeof seal);
	return keep_in_turn(store, table, false);
}

int row_delete(struct postgres *store, enum pg_table table)
{
	assert(pg_tables[table].remove >= 0);
	return keep_in_turn(store, table, true);
}

bool turn_drops(const struct postgres *store, int64_t seq)
{
	for (uint32_t i = 0; i < store->turn.dropped_count; i++) {
		if (store->turn.dropped[i] == seq)
			return true;
	}
	return false;
}

static void remove_row(struct postgres *store, uint32_t index)
{
	struct pg_turn *turn = &store->turn;
	uint32_t last = turn->row_count - 1;

	map_remove(&turn->row_by_key, row_hash(store, index), index);
	turn->of_table[turn->rows[index]->table]--;
	if (index != last) {
		map_remove(&turn->row_by_key, row_hash(store, last), last);
		turn->rows[index] = turn->rows[last];
		/* there is room: two were just removed */
		int r = map_insert(&turn->row_by_key, row_hash(store, index), index);
		assert(r == 0);
	}
	turn->row_count--;
}

static bool hangs_on(const struct pg_row *row, int64_t seq)
{
	struct row_columns columns = {row->bytes, row->bytes + row->len, false};

	switch (row->table) {
	case PG_TASK:
	case PG_BODY:
	case PG_EXTRA:
		return column_int(&columns) == seq;
	case PG_EDGE: {
		int64_t parent = column_int(&columns);
		return parent == seq || column_int(&columns) == seq;
	}
	case PG_TASK_ID:
		column_span(&columns);
		return column_int(&columns) == seq;
	case PG_EVENT:
	case PG_BASE:
	case PG_TASK_KEY:
	case PG_NAME:
	case PG_WORKER:
	case PG_SMALL:
	case PG_SECRET:
	case PG_TOKEN:
	case PG_IDEM:
	case PG_META:
	case PG_INBOX:
	case PG_TABLE_COUNT:
		break;
	}
	return false;
}

void turn_forget_task(struct postgres *store, int64_t seq)
{
	for (uint32_t i = store->turn.row_count; i-- > 0;) {
		if (hangs_on(store->turn.rows[i], seq))
			remove_row(store, i);
	}
}

void turn_forget_table(struct postgres *store, enum pg_table table)
{
	for (uint32_t i = store->turn.row_count; i-- > 0;) {
		if (store->turn.rows[i]->table == table)
			remove_row(store, i);
	}
}

void turn_forget_rows(struct postgres *store)
{
	struct pg_turn *turn = &store->turn;

	while (turn->row_count > 0) {
		uint32_t last = turn->row_count - 1;
		map_remove(&turn->row_by_key, row_hash(store, last), last);
		turn->row_count--;
	}
	memset(turn->of_table, 0, sizeof turn->of_table);
	arena_reset(&turn->arena);
}

void turn_forget(struct postgres *store)
{
	struct pg_turn *turn = &store->turn;

	turn_forget_rows(store);
	buf_clear(&turn->pack);
	turn->dropped_count = turn->dropped_sent = 0;
	turn->drop_events = turn->first_event = turn->pack_last = 0;
	turn->drop_idems_limit = 0;
	turn->begun = turn->open = turn->in_doubt = false;
}

/* ---- the rows that are kept ------------------------------------------------------------------------------------ */

static struct kept_row *place_of(struct postgres *store, enum pg_table table, int64_t seq)
{
	if (table != PG_TASK && table != PG_BODY)
		return NULL;
	struct kept_row **places = &store->kept[table == PG_BODY];
	if (!*places)
		*places = calloc(PG_KEPT_ROWS, sizeof **places); /* without memory nothing is kept */
	return *places ? &(*places)[(uint64_t)seq % PG_KEPT_ROWS] : NULL;
}

static int64_t seq_of(struct span row)
{
	struct row_columns columns = {row.data, row.data + row.len, false};

	return column_int(&columns);
}

static void keep(struct postgres *store, enum pg_table table, struct span row)
{
	int64_t seq = seq_of(row);
	struct kept_row *place = place_of(store, table, seq);

	if (!place)
		return;
	place->seq = 0;
	if (row.len > PG_KEPT_BYTES_MAX)
		return;
	if (row.len > place->cap) {
		char *bytes = realloc(place->bytes, row.len);
		if (!bytes)
			return;
		place->bytes = bytes;
		place->cap = (uint32_t)row.len;
	}
	memcpy(place->bytes, row.data, row.len);
	place->len = (uint32_t)row.len;
	place->seq = seq;
}

void turn_keep(struct postgres *store)
{
	const struct pg_turn *turn = &store->turn;

	for (uint32_t i = 0; i < turn->row_count; i++) {
		const struct pg_row *row = turn->rows[i];
		if (row->table == PG_TASK || row->table == PG_BODY)
			keep(store, row->table, (struct span){row->bytes, row->len});
	}
	for (uint32_t i = 0; i < turn->dropped_count; i++)
		kept_drop(store, turn->dropped[i]);
}

void kept_drop(struct postgres *store, int64_t seq)
{
	for (int i = 0; i < 2; i++) {
		struct kept_row *place =
			store->kept[i] ? &store->kept[i][(uint64_t)seq % PG_KEPT_ROWS] : NULL;
		if (place && place->seq == seq)
			place->seq = 0;
	}
}

void kept_clear(struct postgres *store)
{
	for (int i = 0; i < 2; i++) {
		for (int at = 0; store->kept[i] && at < PG_KEPT_ROWS; at++)
			store->kept[i][at].seq = 0;
	}
}

void kept_free(struct postgres *store)
{
	for (int i = 0; i < 2; i++) {
		for (int at = 0; store->kept[i] && at < PG_KEPT_ROWS; at++)
			free(store->kept[i][at].bytes);
		free(store->kept[i]);
	}
}

/* ---- look-ups ---------------------------------------------------------------------------------------------------- */

static int ask_for_row(
	struct postgres *store, enum pg_table table, struct span key, struct row_columns *ret_columns)
{
	const struct pg_table_form *form = &pg_tables[table];
	struct row_columns columns = {key.data, key.data + key.len, false};
	struct pg_parameter parameters[4];
	PGresult *result;

	assert(form->keys <= 4);
	for (int i = 0; i < form->keys; i++)
		parameters[i] = pg_bytes(column_span(&columns)); /* as it stands in the row */
	int r = pg_ask(store, (enum pg_statement)form->get, form->keys, parameters, &result);
	if (r < 0)
		return r;
	r = pq.PQntuples(result) > 0 ? row_of_result(store, table, result, 0, &store->found, ret_columns)
				     : -ENOENT;
	pq.PQclear(result);
	return r;
}

static bool is_of_task(enum pg_table table)
{
	return table == PG_TASK || table == PG_BODY || table == PG_EXTRA;
}

int row_find(struct postgres *store, enum pg_table table, struct row_columns *ret_columns)
{
	struct span key = buf_span(&store->row);
	uint32_t index = find_row(store, table, key);

	if (buf_fault(&store->row))
		return buf_fault(&store->row);
	if (index != MAP_NONE) {
		const struct pg_row *row = store->turn.rows[index];
		*ret_columns = (struct row_columns){row->bytes, row->bytes + row->len, false};
		return row->gone ? -ENOENT : 0;
	}
	int64_t seq = is_of_task(table) ? seq_of(key) : 0;
	if (is_of_task(table) && turn_drops(store, seq))
		return -ENOENT;
	const struct kept_row *place = place_of(store, table, seq);
	if (place && place->seq == seq && seq != 0) {
		*ret_columns = (struct row_columns){place->bytes, place->bytes + place->len, false};
		return 0;
	}
	int r = ask_for_row(store, table, key, ret_columns);
	if (r == 0 && place)
		keep(store, table, buf_span(&store->found));
	return r;
}
