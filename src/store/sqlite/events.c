/*
 * Events, several to a row.
 *
 * The events of a commit follow one upon the other, and a statement costs far more than the few dozen bytes of an
 * event. So they are gathered into packs: each event as its length and its bytes, one behind the other without a gap
 * in their numbers. The key of the row is the number of the last one. A pack is written when the next event does not
 * fit, when somebody reads events, and before the commit; it is never larger than what a page holds, except for an event
 * that is so by itself.
 */
#include <assert.h>

#include "base/buf.h"
#include "store/sqlite/sqlite_backend.h"

enum {
	PACK_BYTES_MAX = 1900,      /* a row of a page of 2 KiB without overflow */
	PACK_BYTES_KEPT = 64 << 10, /* buffer bytes kept after a large event */
};

static int put_pack(struct sqlite *store, enum sql_statement which, int64_t last, struct span data)
{
	return RUN(store, which, INT(last), BLOB(data), INT((int32_t)SEAL(data, (struct span){0}, last)));
}

int events_flush(struct sqlite *store)
{
	int fault = buf_fault(&store->pack);

	if (!fault && store->pack.len > 0)
		fault = put_pack(store, SQL_PUT_EVENTS, store->pack_last, buf_span(&store->pack));
	events_forget(store);
	return fault;
}

void events_forget(struct sqlite *store)
{
	if (store->pack.cap > PACK_BYTES_KEPT)
		buf_done(&store->pack);
	buf_clear(&store->pack);
}

int sqlite_put_event(struct backend *backend, int64_t seq, struct span data)
{
	struct sqlite *store = sqlite_of(backend);
	struct buf *pack = &store->pack;
	bool follows = seq == store->pack_last + 1;
	int fault = 0;

	assert(seq > 0);
	assert(pack->len == 0 || seq > store->pack_last); /* events are put in order */

	if (pack->len > 0 && (!follows || pack->len + data.len + UVARINT_BYTES_MAX > PACK_BYTES_MAX))
		fault = events_flush(store);
	if (!fault)
		fault = buf_put_bytes(pack, data);
	store->pack_last = seq;
	return fault;
}

/* ---- reading ---- */

struct pack {
	struct reader reader;
	int64_t next; /* the number of the event that the reader stands before */
	int64_t last;
};

/* The pack that the statement stands on. */
static int pack_open(struct binding *binding, struct pack *ret_pack)
{
	struct columns columns = {binding->statement, 0};
	int64_t last = column_int(&columns), count = 0;
	struct span data = column_span(&columns);
	struct reader reader;

	if (!seal_is_right(
		    &columns, SEAL(data, (struct span){0}, last), last <= binding->store->unsealed_event))
		return sqlite_fault_row(binding->store, "event", last);
	reader_init(&reader, data);
	for (; !reader.broken && reader.at < reader.end; count++)
		reader_bytes(&reader);
	if (reader.broken || count == 0 || count > last)
		return sqlite_fault_row(binding->store, "event", last);
	*ret_pack = (struct pack){.next = last - count + 1, .last = last};
	reader_init(&ret_pack->reader, data);
	return 0;
}

/* Pass over those before `seq`; what is left is in the reader. */
static void pack_skip_to(struct pack *pack, int64_t seq)
{
	for (; pack->next < seq && pack->next <= pack->last; pack->next++)
		reader_bytes(&pack->reader);
}

/* The packs with events after `after`, in order; as bind_next(). */
static int next_pack(struct binding *binding, int64_t after, struct pack *ret_pack)
{
	int fault = bind_next(binding);

	if (fault)
		return fault;
	fault = pack_open(binding, ret_pack);
	if (fault)
		return bind_stop(binding, fault);
	pack_skip_to(ret_pack, after + 1);
	return 0;
}

static int start_packs(struct sqlite *store, int64_t after, uint32_t limit, struct binding *ret_binding)
{
	int fault = events_flush(store);

	if (fault)
		return fault;
	*ret_binding = BIND(store, SQL_PAGE_EVENTS, INT(after), INT(limit));
	return 0;
}

int sqlite_page_events(struct backend *backend, int64_t after, uint32_t limit,
	int (*each)(void *context, int64_t seq, struct span data), void *context)
{
	struct binding binding;
	struct pack pack;
	uint32_t count = 0;
	int fault = start_packs(sqlite_of(backend), after, limit, &binding);

	if (fault)
		return fault;
	while ((fault = next_pack(&binding, after, &pack)) == 0) {
		for (; pack.next <= pack.last; pack.next++) {
			if (count++ == limit)
				return bind_stop(&binding, 0);
			int verdict = each(context, pack.next, reader_bytes(&pack.reader));
			if (verdict)
				return bind_stop(&binding, verdict);
		}
	}
	return fault == -ENOENT ? 0 : fault;
}

int sqlite_get_event(struct backend *backend, int64_t seq, struct arena *arena, struct span *ret_data)
{
	struct binding binding;
	struct pack pack;
	int fault = start_packs(sqlite_of(backend), seq - 1, 1, &binding);

	if (!fault)
		fault = next_pack(&binding, seq - 1, &pack);
	if (fault)
		return fault;
	fault = pack.next == seq ? arena_copy(arena, reader_bytes(&pack.reader), ret_data) : -ENOENT;
	return bind_stop(&binding, fault);
}

/* ---- removing ---- */

/* The pack that has events on both sides of `upto` keeps those after it. */
static int trim_pack(struct sqlite *store, int64_t upto)
{
	struct binding binding;
	struct pack pack;
	struct buf *kept = &store->pack; /* empty: start_packs() has flushed it */
	int fault = start_packs(store, upto, 1, &binding);

	assert(kept->len == 0);
	if (!fault)
		fault = next_pack(&binding, upto, &pack);
	if (fault)
		return fault == -ENOENT ? 0 : fault;
	if (pack.next == upto + 1)
		fault = buf_put(kept, pack.reader.at, (size_t)(pack.reader.end - pack.reader.at));
	bind_stop(&binding, 0);
	if (!fault && kept->len > 0)
		fault = put_pack(store, SQL_TRIM_EVENTS, pack.last, buf_span(kept));
	events_forget(store);
	return fault;
}

int sqlite_delete_events(struct backend *backend, int64_t upto)
{
	struct sqlite *store = sqlite_of(backend);
	int fault = events_flush(store);

	if (fault)
		return fault;
	fault = RUN(store, SQL_DELETE_EVENTS, INT(upto));
	return fault ? fault : trim_pack(store, upto);
}
