/*
 * Events, several to a row, as in SQLite: those of a turn follow one upon the other, each as its length and its bytes. The key of the row is
 * the number of the last one. A row has at most as much as fits into a page without being taken apart.
 */
#include "store/postgres/postgres_backend.h"

enum {
	PACK_BYTES_MAX = 8000,
	PACK_BYTES_KEPT = 64 << 10, /* buffer bytes kept after a large event */
	EVENT_BYTES_MAX = 32 << 20,
};

static int put_pack(struct postgres *store, int64_t last, struct span data)
{
	row_begin(store);
	row_int(store, last);
	row_bytes(store, data);
	return row_put(store, PG_EVENT);
}

int pack_close(struct postgres *store)
{
	struct buf *pack = &store->turn.pack;
	int r = buf_fault(pack);

	if (r == 0 && pack->len > 0)
		r = put_pack(store, store->turn.pack_last, buf_span(pack));
	if (pack->cap > PACK_BYTES_KEPT)
		buf_done(pack);
	buf_clear(pack);
	return r;
}

int postgres_put_event(struct backend *backend, int64_t seq, struct span data)
{
	struct postgres *store = postgres_of(backend);
	struct pg_turn *turn = &store->turn;
	struct buf *pack = &turn->pack;
	bool follows = seq == turn->pack_last + 1;
	int r = 0;

	if (pack->len > 0 && (!follows || pack->len + data.len + UVARINT_BYTES_MAX > PACK_BYTES_MAX))
		r = pack_close(store);
	pack->max = EVENT_BYTES_MAX;
	if (r == 0)
		r = buf_put_bytes(pack, data);
	turn->pack_last = seq;
	if (turn->first_event == 0)
		turn->first_event = seq;
	return r;
}

/* ---- reading ---- */

struct event_pack {
	struct reader reader;
	int64_t next; /* the number of the event that the reader stands before */
	int64_t last;
};

/* The pack of a row, from the event behind `after` on. */
static int open_pack(struct postgres *store, const PGresult *result, int at, int64_t after, struct buf *bytes,
	struct event_pack *ret_pack)
{
	struct row_columns columns;
	struct reader reader;
	int64_t count = 0;
	int r = row_of_result(store, PG_EVENT, result, at, bytes, &columns);

	if (r < 0)
		return r;
	int64_t last = column_int(&columns);
	struct span data = column_span(&columns);
	reader_init(&reader, data);
	for (; !reader.broken && reader.at < reader.end; count++)
		reader_bytes(&reader);
	if (reader.broken || count == 0 || count > last)
		return pg_fault_row(store, PG_EVENT, buf_span(bytes));
	*ret_pack = (struct event_pack){.next = last - count + 1, .last = last};
	reader_init(&ret_pack->reader, data);
	for (; ret_pack->next <= after && ret_pack->next <= last; ret_pack->next++)
		reader_bytes(&ret_pack->reader);
	return 0;
}

static int ask_for_packs(struct postgres *store, int64_t after, uint32_t limit, PGresult **ret_result)
{
	int r = turn_show(store, PG_EVENT);

	return r < 0 ? r : ASK(store, PG_PAGE_EVENTS, ret_result, pg_int(after), pg_int(limit));
}

/* Rows that are asked for at once: a row has a few dozen events, as a rule. */
static uint32_t packs_for(uint32_t events)
{
	enum { PACKS_MAX = 64 };

	return events < PACKS_MAX ? events : PACKS_MAX;
}

int postgres_page_events(struct backend *backend, int64_t after, uint32_t limit,
	int (*each)(void *context, int64_t seq, struct span data), void *context)
{
	struct postgres *store = postgres_of(backend);
	struct buf bytes;
	uint32_t count = 0;
	int r = 0, rows = 1;

	buf_init(&bytes, 0);
	while (r == 0 && rows > 0 && count < limit) {
		PGresult *result;
		r = ask_for_packs(store, after, packs_for(limit - count), &result);
		if (r < 0)
			break;
		rows = pq.PQntuples(result);
		for (int at = 0; r == 0 && at < rows && count < limit; at++) {
			struct event_pack pack;
			r = open_pack(store, result, at, after, &bytes, &pack);
			for (; r == 0 && pack.next <= pack.last && count < limit; count++, pack.next++) {
				after = pack.next;
				r = each(context, pack.next, reader_bytes(&pack.reader));
			}
		}
		pq.PQclear(result);
	}
	buf_done(&bytes);
	return r;
}

int postgres_get_event(struct backend *backend, int64_t seq, struct arena *arena, struct span *ret_data)
{
	struct postgres *store = postgres_of(backend);
	PGresult *result;
	struct event_pack pack;
	int r = ask_for_packs(store, seq - 1, 1, &result);

	if (r < 0)
		return r;
	r = pq.PQntuples(result) == 1 ? open_pack(store, result, 0, seq - 1, &store->found, &pack) : -ENOENT;
	if (r == 0)
		r = pack.next == seq ? arena_copy(arena, reader_bytes(&pack.reader), ret_data) : -ENOENT;
	pq.PQclear(result);
	return r;
}

/* ---- removing ---- */

/* The pack that has events on both sides of `upto` keeps those after it. */
static int trim_pack(struct postgres *store, int64_t upto)
{
	PGresult *result;
	struct event_pack pack;
	int r = ASK(store, PG_PAGE_EVENTS, &result, pg_int(upto), pg_int(1));

	if (r < 0)
		return r;
	r = pq.PQntuples(result) == 1 ? open_pack(store, result, 0, upto, &store->found, &pack) : -ENOENT;
	pq.PQclear(result);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	struct span kept = {(const char *)pack.reader.at, (size_t)(pack.reader.end - pack.reader.at)};
	return pack.next == upto + 1 ? put_pack(store, pack.last, kept) : 0;
}

/* Events of this very turn, or a pack that this turn has trimmed: the server has to know them first. */
int postgres_delete_events(struct backend *backend, int64_t upto)
{
	struct postgres *store = postgres_of(backend);
	struct pg_turn *turn = &store->turn;
	int r = 0;

	if (turn->drop_events > 0 || (turn->first_event > 0 && upto >= turn->first_event) || turn->open) {
		r = turn_flush(store);
		turn_forget_table(store, PG_EVENT);
	}
	if (r == 0)
		r = trim_pack(store, upto);
	if (r == 0)
		turn->drop_events = upto;
	return r;
}
